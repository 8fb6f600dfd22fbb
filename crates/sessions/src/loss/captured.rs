//! Losses from captures: what was sent on one side is looked for on the other. Our own packets are known by
//! their numbers; others by what does not change on the way: the identification of IPv4, ports, length, and
//! the front of what they carry.

use crate::error::{Context, Error, Result, invalid};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::path::Path;
use tidegate_measure::loss::{DirectionLoss, LossDocument};
use tidegate_measure::stream::{PacketRecord, StreamTrace};
use tidegate_probe_wire::{PacketHeader, ProbePacketKind};
use tidegate_replay::captured::frames::{self, Ip};
use tidegate_replay::{CaptureReader, ReadCaptureError};
use tidegate_sys::input_file;

/// Packets that `tidegate loss` sends by default.
pub const USUAL_COUNT: u32 = 100;
/// Bytes of the longest text of tcpdump's.
const MAX_LINES: u64 = 256 << 20;
/// Bytes of what a packet carries that are looked at.
const FRONT: usize = 32;
/// UDP's header.
const UDP: usize = 8;
const UDP_PROTOCOL: u8 = 17;

/// The content of a file.
enum CaptureFile {
    /// Packets one by one.
    Packets(Vec<Seen>),
    /// How many packets tcpdump printed.
    Lines(u64),
}

/// A packet of a capture.
#[derive(Clone, Debug)]
struct Seen {
    at: u64,
    key: Key,
    /// Of our own packets whose they are, and the number.
    ours: Option<(u32, u32)>,
}

/// What a packet is known by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    protocol: u8,
    /// The source port, which translation of addresses may change, and the destination's.
    ports: (Option<u16>, u16),
    identification: u16,
    length: u32,
    front: Vec<u8>,
}

/// Captures of one path, or what `tcpdump -nn` printed.
#[derive(Clone, Debug)]
pub struct Captures<'c> {
    /// Of what came to the far side.
    pub received: &'c Path,
    /// Of what was sent; without it our own packets are known by their numbers, others are only counted.
    pub sent: Option<&'c Path>,
    /// Only what goes to this port.
    pub port: Option<u16>,
    /// How many were sent, if that is known.
    pub count: Option<u32>,
    /// The command line that looks again, for the document.
    pub again: String,
}

/// What was lost between two captures. `say` gets a message about a capture that is damaged at its end.
///
/// # Errors
/// A file cannot be read or is no capture, or it is unknown how many packets were sent.
pub fn captured(captures: &Captures<'_>, say: &dyn Fn(&str)) -> Result<LossDocument> {
    let result_of = |path| read_capture(path, captures.port, say);
    let far = result_of(captures.received)?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let mut lost = LossDocument { version, again: captures.again.clone(), ..LossDocument::default() };
    let way = match (captures.sent, far) {
        (Some(sent), far) => match (result_of(sent)?, far) {
            (CaptureFile::Packets(near), CaptureFile::Packets(far)) => both(near, far, &mut lost.notes)?,
            (near, far) => DirectionLoss::counted("sent to received", near.count(), far.count()),
        },
        (None, CaptureFile::Packets(far)) if far.iter().any(|seen| seen.ours.is_some()) => {
            ours(&far, captures.count, &mut lost.notes)
        }
        (None, far) => {
            let Some(sent) = captures.count else {
                return invalid(
                    "how many were sent? Say it with -c, or show a capture of that side with --sent",
                );
            };
            DirectionLoss::counted("sent to received", sent.into(), far.count())
        }
    };
    lost.ways = vec![way];
    Ok(lost)
}

impl CaptureFile {
    fn count(&self) -> u64 {
        match self {
            CaptureFile::Packets(packets) => packets.len() as u64,
            CaptureFile::Lines(lines) => *lines,
        }
    }
}

/// Reads a capture, or what tcpdump printed.
fn read_capture(path: &Path, port: Option<u16>, say: &dyn Fn(&str)) -> Result<CaptureFile> {
    let open = || -> Result<CaptureReader<File>> {
        let file = input_file::open(path).context(format!("cannot read {}", path.display()))?;
        Ok(CaptureReader::new(file))
    };
    if open()?.format()? == "no capture" {
        let text = input_file::read(path, MAX_LINES).context(format!("cannot read {}", path.display()))?;
        let counted = lines(&String::from_utf8_lossy(&text), port);
        let what = || format!("{} is neither a capture nor what `tcpdump -nn` prints", path.display());
        return counted.ok_or_else(|| Error::Invalid(what()));
    }
    let mut seen = Vec::new();
    let broken = open()?.each(|packet, _| {
        if let Ok(ip) = frames::open(&packet)
            && let Some(one) = Seen::of(&ip, packet.time.unwrap_or(0))
            && port.is_none_or(|port| one.key.ports.1 == port)
        {
            seen.push(one);
        }
        Ok::<(), ReadCaptureError>(())
    })?;
    if let Some(broken) = broken {
        say(&format!("{}: {broken}; the part before is used", path.display()));
    }
    Ok(CaptureFile::Packets(seen))
}

/// Counts the packets that `tcpdump -nn` printed: `12:00:00.000001 IP 192.0.2.1.2013 > 192.0.2.2.8787: UDP,
/// length 0`.
fn lines(text: &str, port: Option<u16>) -> Option<CaptureFile> {
    let is_packet = |line: &&str| line.contains(" IP ") || line.contains(" IP6 ") || line.starts_with("IP");
    let to = |line: &str| -> Option<u16> {
        let (_, rest) = line.split_once(" > ")?;
        let (address, _) = rest.split_once(": ")?;
        address.rsplit_once('.')?.1.parse().ok()
    };
    let packets: Vec<&str> = text.lines().filter(is_packet).collect();
    // A file of nothing is one in which nothing was captured.
    if packets.is_empty() && text.lines().any(|line| !line.trim().is_empty()) {
        return None;
    }
    let meant = |line: &&&str| port.is_none_or(|port| to(line) == Some(port));
    Some(CaptureFile::Lines(packets.iter().filter(meant).count() as u64))
}

impl Seen {
    fn of(ip: &Ip<'_>, at: u64) -> Option<Seen> {
        let (source, to) = ip.ports()?;
        let is_udp = ip.protocol() == UDP_PROTOCOL;
        let carried = ip.bytes.get(ip.header() + UDP..).unwrap_or_default();
        let header =
            PacketHeader::read(carried).filter(|header| is_udp && header.kind == ProbePacketKind::Data);
        let identification = if ip.v6 { 0 } else { u16::from_be_bytes([ip.bytes[4], ip.bytes[5]]) };
        let front = if is_udp { carried } else { ip.bytes.get(ip.header()..).unwrap_or_default() };
        let key = Key {
            protocol: ip.protocol(),
            ports: (Some(source), to),
            identification,
            length: ip.len,
            front: front[..front.len().min(FRONT)].to_vec(),
        };
        Some(Seen { at, key, ours: header.map(|header| (header.session, header.number)) })
    }
}

/// Looks for what was sent among what came.
fn both(mut near: Vec<Seen>, mut far: Vec<Seen>, notes: &mut Vec<String>) -> Result<DirectionLoss> {
    if near.is_empty() {
        return invalid(
            "nothing in the capture of what was sent has ports; is it the right file, and the right \
            --filter-port?",
        );
    }
    let mut course = matched(&near, &far);
    if course.arrived() == 0 && !far.is_empty() {
        // A router on the path may have translated their source.
        for seen in near.iter_mut().chain(&mut far) {
            seen.key.ports.0 = None;
        }
        course = matched(&near, &far);
        if course.arrived() > 0 {
            notes.push(
                "source ports were changed on the way (translated addresses), so packets were matched \
                without them"
                    .to_owned(),
            );
        }
    }
    let strangers = far.len() as u64
        - course.arrived()
        - course.packets.iter().map(|j| u64::from(j.duplicates)).sum::<u64>();
    if strangers > 0 {
        notes.push(format!(
            "{strangers} packets came that were not sent in the other capture: it began \
        later or ended earlier, or they are others' (see --filter-port)"
        ));
    }
    Ok(DirectionLoss::of("sent to received", &course))
}

/// Each packet that came belongs to the first of its kind that is not found yet; one more of a kind than were
/// sent is a copy.
fn matched(near: &[Seen], far: &[Seen]) -> StreamTrace {
    let mut journeys: Vec<PacketRecord> =
        near.iter().map(|seen| PacketRecord { sent: Some(seen.at), ..PacketRecord::default() }).collect();
    let mut open: BTreeMap<&Key, VecDeque<usize>> = BTreeMap::new();
    for (place, seen) in near.iter().enumerate() {
        open.entry(&seen.key).or_default().push_back(place);
    }
    let mut last: BTreeMap<&Key, usize> = BTreeMap::new();
    let mut rank = 0;
    for seen in far {
        let Some(places) = open.get_mut(&seen.key) else { continue };
        match places.pop_front() {
            Some(place) => {
                journeys[place] = PacketRecord { arrived: Some(seen.at), rank, ..journeys[place] };
                last.insert(&seen.key, place);
                rank += 1;
            }
            None => {
                if let Some(place) = last.get(&seen.key) {
                    journeys[*place].duplicates += 1;
                }
            }
        }
    }
    StreamTrace { packets: journeys, ..StreamTrace::default() }
}

/// Our own packets, known by their numbers: those of the session that has most of them.
fn ours(far: &[Seen], count: Option<u32>, notes: &mut Vec<String>) -> DirectionLoss {
    let mut sessions: BTreeMap<u32, Vec<&Seen>> = BTreeMap::new();
    for seen in far {
        if let Some((session, _)) = seen.ours {
            sessions.entry(session).or_default().push(seen);
        }
    }
    let several = sessions.len();
    let most = sessions.into_values().max_by_key(Vec::len).unwrap_or_default();
    if several > 1 {
        notes.push(format!(
            "the capture holds {several} measurements; the one with the most packets is \
        reported"
        ));
    }
    let numbers = || most.iter().filter_map(|seen| Some((seen.ours?.1, seen.at)));
    let highest = numbers().map(|(number, _)| number + 1).max().unwrap_or(0).min(1_000_000);
    let sent = count.unwrap_or_else(|| {
        notes.push(format!(
            "how many were sent is taken from the last that came; say it with -c (as sent: {USUAL_COUNT} if \
            nothing was said)"
        ));
        highest
    });
    let mut journeys =
        vec![PacketRecord { sent: Some(0), ..PacketRecord::default() }; sent.max(highest) as usize];
    let mut rank = 0;
    for (number, at) in numbers() {
        let Some(journey) = journeys.get_mut(number as usize) else { continue };
        if journey.arrived.is_some() {
            journey.duplicates += 1;
        } else {
            *journey = PacketRecord { arrived: Some(at), rank, ..*journey };
            rank += 1;
        }
    }
    DirectionLoss::of("sent to received", &StreamTrace { packets: journeys, ..StreamTrace::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(identification: u16, source: u16) -> Seen {
        let key =
            Key { protocol: 17, ports: (Some(source), 8787), identification, length: 28, front: vec![] };
        Seen { at: identification.into(), key, ours: None }
    }

    #[test]
    fn what_was_sent_is_found_among_what_came() {
        let near: Vec<Seen> = (0..10).map(|n| seen(n, 2000 + n)).collect();
        // 3 and 4 are lost, 7 overtakes 6, 9 comes twice; a stranger comes, too.
        let far: Vec<Seen> =
            [0, 1, 2, 5, 7, 6, 8, 9, 9].map(|n| seen(n, 2000 + n)).into_iter().chain([seen(99, 1)]).collect();
        let mut notes = Vec::new();
        let way = both(near, far, &mut notes).unwrap_or_default();
        assert_eq!((way.losses.sent, way.losses.lost, &way.losses.runs[..]), (10, 2, &[2][..]));
        assert_eq!((way.duplicates, way.order.map(|order| order.reordered), notes.len()), (1, Some(1), 1));
    }

    #[test]
    fn translated_sources_are_seen_through() {
        let near: Vec<Seen> = (0..10).map(|n| seen(n, 2000)).collect();
        let far: Vec<Seen> = (1..10).map(|n| seen(n, 40_000)).collect();
        let mut notes = Vec::new();
        let way = both(near, far, &mut notes).unwrap_or_default();
        assert_eq!((way.losses.lost, notes.len()), (1, 1));
    }

    #[test]
    fn lines_of_tcpdump_are_counted() {
        let text = "tcpdump: verbose output suppressed\n\
                    12:00:00.000001 IP 192.0.2.1.2013 > 192.0.2.2.8787: UDP, length 0\n\
                    12:00:00.100001 IP6 2001:db8::1.2014 > 2001:db8::2.8787: UDP, length 0\n\
                    12:00:00.200001 IP 192.0.2.2.8787 > 192.0.2.1.2013: UDP, length 9\n";
        let count = |port| lines(text, port).map(|file| file.count());
        assert_eq!((count(None), count(Some(8787)), count(Some(7))), (Some(3), Some(2), Some(0)));
        assert!(lines("nothing of the kind\n", None).is_none());
        assert_eq!(lines("", None).map(|file| file.count()), Some(0));
    }
}
