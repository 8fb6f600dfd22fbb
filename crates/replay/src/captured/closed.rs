//! `--closed`: the capture's connections made again with the simulator's TCP, so that they react to the
//! policies; modelled, not captured.
//!
//! Each connection becomes a transfer of as many bytes as it carried in its main direction, begun when it
//! began, with the round trip that its handshake shows. Datagrams come at their mean interval, independent of
//! losses. The result is the text of a scenario.

use super::arrivals::{CapturedFlowKey, Surveyed};
use super::frames::{self, Ip};
use super::network::CandidatePolicy;
use super::settings::CaptureSettings;
use super::side::as_address;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::fmt::Write as _;
use tidegate_measure::numbers::format_duration;
use tidegate_packet::header::{proto, tcp_flags};
use tidegate_packet::{Nanos, Rate};
use tidegate_pcap::CaptureDirection;

/// Conversations that are made again, the largest first.
const MOST: usize = 60;
/// Conversations that are distinguished while the capture is read.
const MOST_KNOWN: usize = 65_536;
/// The default round trip of a connection whose handshake is not in the capture.
const USUAL_RTT: Nanos = Nanos::millis(30);
/// Link time after the last packet of the capture: what is slower than it was needs longer.
const AFTER: u64 = 10;
/// The longest capture whose connections are made again, ns.
const LONGEST: u64 = 2 * 3600 * 1_000_000_000;
/// Datagrams that make a flow.
const FEW: u64 = 5;

/// A conversation: its client's side first, as far as that is known.
#[derive(Clone, Debug, Default)]
pub struct ConversationRecord {
    /// When its first packet came by, ns after the capture's first.
    pub began: u64,
    /// And its last one.
    pub ended: u64,
    /// Packets and payload bytes of the client, and of the other.
    pub sent: [(u64, u64); 2],
    /// DS field of the first packet.
    dsfield: u8,
    /// The client is here.
    pub here: bool,
    /// When the first packet of the handshake came by.
    syn: Option<u64>,
    /// The round trip that its handshake shows, in ns.
    pub rtt: Option<u64>,
}

impl ConversationRecord {
    fn bytes(&self) -> u64 {
        self.sent[0].1 + self.sent[1].1
    }

    /// Does more go from the client than to it?
    pub fn forth(&self) -> bool {
        self.sent[0].1 >= self.sent[1].1
    }

    /// Does its main direction go out?
    fn is_out(&self) -> bool {
        self.here == self.forth()
    }
}

/// A conversation that becomes part of the scenario.
pub struct Conversation {
    /// The two ends.
    pub key: CapturedFlowKey,
    /// What they exchanged.
    pub talk: ConversationRecord,
    /// Its name in the scenario, and in the results.
    pub id: String,
}

/// Why the conversations of a capture cannot be made again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClosedError {
    /// The capture is too long: so many ns.
    TooLong(u64),
    /// The line has no rate.
    NoRate,
}

impl fmt::Display for ClosedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClosedError::TooLong(ns) => write!(
                f,
                "the capture lasts {}, and --closed simulates two hours at most; cut a part out of it with \
                `editcap -A BEGIN -B END`",
                format_duration(*ns)
            ),
            ClosedError::NoRate => write!(f, "--closed needs --rate"),
        }
    }
}

impl Error for ClosedError {}

/// Is a capture short enough to make its conversations again?
///
/// # Errors
/// It is not.
pub fn short_enough(surveyed: &Surveyed) -> Result<(), ClosedError> {
    if surveyed.duration > LONGEST { Err(ClosedError::TooLong(surveyed.duration)) } else { Ok(()) }
}

/// The conversations of a capture.
pub struct Conversations<'s> {
    surveyed: &'s Surveyed,
    known: BTreeMap<CapturedFlowKey, ConversationRecord>,
    /// In the order in which they began.
    order: Vec<CapturedFlowKey>,
}

impl<'s> Conversations<'s> {
    /// Of a capture that was surveyed; none of its packets were seen yet.
    pub fn new(surveyed: &'s Surveyed) -> Conversations<'s> {
        Conversations { surveyed, known: BTreeMap::new(), order: Vec::new() }
    }

    /// The next packet.
    pub fn packet(&mut self, packet: &tidegate_pcap::CapturedPacket<'_>) {
        if let (Ok(ip), Some(time)) = (frames::open(packet), packet.time)
            && let Ok(way) = self.surveyed.rule.way(&ip)
        {
            self.see(&ip, time.saturating_sub(self.surveyed.began).min(self.surveyed.duration), way);
        }
    }

    /// Those that are made again, and what is to be known about the others.
    pub fn chosen(self, options: &CaptureSettings) -> (Vec<Conversation>, Vec<String>) {
        let mut notes = Vec::new();
        let mut all: Vec<(CapturedFlowKey, ConversationRecord)> =
            self.order.iter().map(|key| (*key, self.known[key].clone())).collect();
        let before = all.len();
        all.retain(|(key, talk)| {
            talk.bytes() > 0 && (key.protocol == proto::TCP || talk.sent[usize::from(!talk.forth())].0 >= FEW)
        });
        if before > all.len() {
            notes.push(format!(
                "{} conversations without payload, or of a few datagrams, are left out",
                before - all.len()
            ));
        }
        let inward = all.iter().filter(|(_, talk)| !talk.is_out()).count();
        if options.down.is_none() && inward > 0 {
            all.retain(|(_, talk)| talk.is_out());
            notes.push(format!(
                "{inward} conversations that mainly come in are left out: --down says how fast the line is \
                towards here"
            ));
        }
        all.sort_by_key(|(_, talk)| std::cmp::Reverse(talk.bytes()));
        if all.len() > MOST {
            notes.push(format!("the {MOST} largest of {} conversations are made again", all.len()));
            all.truncate(MOST);
        }
        all.sort_by_key(|(_, talk)| talk.began);
        let unseen =
            all.iter().filter(|(key, talk)| key.protocol == proto::TCP && talk.rtt.is_none()).count();
        if unseen > 0 {
            let rtt = options.rtt.unwrap_or(USUAL_RTT);
            notes.push(format!(
                "the handshakes of {unseen} connections are not in the capture: their round trip is taken as {}",
                format_duration(rtt.0)
            ));
        }
        let part = |(n, (key, talk)): (usize, (CapturedFlowKey, ConversationRecord))| Conversation {
            key,
            talk,
            id: format!("talk-{}", n + 1),
        };
        (all.into_iter().enumerate().map(part).collect(), notes)
    }

    fn see(&mut self, ip: &Ip<'_>, at: u64, way: CaptureDirection) {
        let key = CapturedFlowKey::of(ip);
        let transport = ip.header() as u32;
        let (headers, flags) = match ip.protocol() {
            proto::TCP => {
                let byte_of = |at: usize| ip.bytes.get(ip.header() + at).copied().unwrap_or(0);
                (transport + u32::from(byte_of(12) >> 4) * 4, byte_of(13))
            }
            proto::UDP => (transport + 8, 0),
            _ => return,
        };
        // The side that answers a call is not the client, even if the call itself is not in the capture.
        let answers = flags & (tcp_flags::SYN | tcp_flags::ACK) == tcp_flags::SYN | tcp_flags::ACK;
        let (key, by_client) = match self.known.contains_key(&key.back()) || answers {
            true => (key.back(), false),
            false => (key, true),
        };
        if !self.known.contains_key(&key) {
            if self.order.len() >= MOST_KNOWN {
                return;
            }
            self.order.push(key);
            let here = (way == CaptureDirection::Out) == by_client;
            self.known.insert(
                key,
                ConversationRecord {
                    began: at,
                    dsfield: ip.dsfield(),
                    here,
                    ..ConversationRecord::default()
                },
            );
        }
        let Some(talk) = self.known.get_mut(&key) else { return };
        talk.ended = at.max(talk.began);
        let (packets, bytes) = &mut talk.sent[usize::from(!by_client)];
        *packets += 1;
        *bytes += u64::from(ip.len.saturating_sub(headers));
        if flags & (tcp_flags::SYN | tcp_flags::ACK) == tcp_flags::SYN {
            talk.syn = Some(at);
        } else if by_client
            && talk.rtt.is_none()
            && talk.sent[1].0 > 0
            && let Some(syn) = talk.syn
        {
            // The client's first packet after the answer to its call.
            talk.rtt = Some(at.saturating_sub(syn));
        }
    }
}

/// The scenario that makes conversations again, for one policy: its devices are its own. `file`: where its
/// file is, if it has one.
///
/// # Errors
/// The line has no rate.
pub fn scenario(
    options: &CaptureSettings,
    surveyed: &Surveyed,
    (candidate, file): (&CandidatePolicy, Option<&str>),
    parts: &[Conversation],
    seed: u64,
) -> Result<String, ClosedError> {
    let policy = &candidate.policy;
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let (rate, buffer) = options.modem().ok_or(ClosedError::NoRate)?;
    let down = options.down.unwrap_or(rate);
    let seconds = surveyed.duration.div_ceil(1_000_000_000) + AFTER;
    let mut text = format!(
        "title = {}\nduration = \"{seconds}s\"\nwarm-up = \"0s\"\nseed = {seed}\n",
        quoted(&format!("The connections of {}, made again", options.file))
    );
    let mut hosts: BTreeMap<String, String> = BTreeMap::new();
    let (mut here, mut links, mut traffic) = (Vec::new(), String::new(), String::new());
    for part in parts {
        let (source, destination) =
            (as_address(&part.key.source).to_string(), as_address(&part.key.destination).to_string());
        let (near, session) = if part.talk.here { (source, destination) } else { (destination, source) };
        let near = hosts.entry(near).or_insert_with(|| {
            here.push(format!("here-{}", here.len() + 1));
            here[here.len() - 1].clone()
        });
        let near = near.clone();
        // Each has a way of its own to the line, with its own round trip.
        let name = format!("far-{}", part.id);
        let rtt = part.talk.rtt.map_or(options.rtt.unwrap_or(USUAL_RTT).0, |rtt| rtt);
        let _ =
            writeln!(links, "[links.{name}]\nbetween = [\"isp\", \"{name}\"]\ndelay = \"{}us\"", rtt / 2000);
        let _ = writeln!(links, "[hosts.{name}]\naddress = {}", quoted(&session));
        traffic.push_str(&item(part, &near, &name));
    }
    let names: Vec<String> = here.iter().map(|name| quoted(name)).collect();
    let (lan, wan) = (&policy.lan, policy.beneath.as_ref().unwrap_or(&policy.wan));
    let _ = writeln!(
        text,
        "[links.lan]\nbetween = [{}, {}]",
        names.join(", "),
        quoted(&format!("gateway:{lan}"))
    );
    let _ = writeln!(text, "[links.cable]\nbetween = [{}, \"modem\"]", quoted(&format!("gateway:{wan}")));
    let bits = |rate: Rate| rate.as_bits();
    let _ = writeln!(
        text,
        "[links.line]\nbetween = [\"modem\", \"isp\"]\nup = \
        {{ rate = \"{}bit\", buffer = \"{buffer}B\" }}\ndown = {{ rate = \"{}bit\", buffer = \"250ms\" }}",
        bits(rate),
        bits(down)
    );
    for (address, name) in &hosts {
        let _ = writeln!(text, "[hosts.{name}]\naddress = {}", quoted(address));
    }
    let ifbs = policy.returning.iter().map(|name| format!("{} = {{}}", quoted(name)));
    let stacked =
        policy.beneath.iter().map(|lower| format!("{} = {{ on = {} }}", quoted(&policy.wan), quoted(lower)));
    let devices: Vec<String> = ifbs.chain(stacked).collect();
    if !devices.is_empty() {
        let _ = writeln!(text, "[machines.gateway]\ndevices = {{ {} }}", devices.join(", "));
    }
    text.push_str(&links);
    let _ = writeln!(text, "[policies.{}]", quoted(&candidate.name));
    if let Some(file) = file {
        let _ = writeln!(text, "gateway = {}", quoted(file));
        let args: Vec<String> = candidate.args.iter().map(|arg| quoted(arg)).collect();
        let _ = writeln!(text, "args = [{}]", args.join(", "));
    }
    Ok(text + &traffic)
}

/// A conversation as an item of a scenario.
fn item(part: &Conversation, near: &str, session: &str) -> String {
    let Conversation { key, talk, id } = part;
    let (from, to) = if talk.is_out() { (near, session) } else { (session, near) };
    let time = |ns: u64| format!("{}us", ns / 1000);
    let mut text = format!(
        "[[traffic]]\nid = \"{id}\"\nstart = \"{}\"\nport = {}\ntos = {}\n",
        time(talk.began),
        key.ports.1.max(1),
        talk.dsfield & 0xfc
    );
    let (packets, bytes) = talk.sent[usize::from(!talk.forth())];
    if key.protocol == proto::TCP {
        // The local side calls, whichever way the bytes go.
        let way = if talk.is_out() { format!("{near} -> {session}") } else { format!("{near} <- {session}") };
        let _ = writeln!(text, "tcp = \"{way}\"\nbytes = {}", bytes.max(1));
    } else {
        let every = (talk.ended - talk.began) / packets.saturating_sub(1).max(1);
        let stop = talk.ended + every;
        let _ = writeln!(
            text,
            "udp = \"{from} -> {to}\"\nsize = {}\nevery = \"{}\"\nstop = \"{}\"",
            (bytes / packets.max(1)).clamp(1, 1472),
            time(every.max(1000)),
            time(stop)
        );
    }
    text
}
