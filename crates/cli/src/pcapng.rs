//! Packets with their class, queue, wait and fate, written as pcapng: Wireshark shows why a packet was late.

use crate::output::ResultFile;
use anyhow::Context;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tidegate_packet::{Handle, Head, Stand, Time};
use tidegate_pcap::{Direction, Interface, Record, Verdict, Writer, link};
use tidegate_replay::captured::reason;
use tidegate_sim::{Fate, Stay};

/// Octets that are gathered before they are written.
const PIECE: usize = 1 << 16;

/// A file in the making.
pub(crate) struct Diary {
    path: PathBuf,
    /// Until the end.
    file: Option<BufWriter<ResultFile>>,
    writer: Writer,
    /// Entries whose time has not come: packets leave a modem later than they are told of.
    ahead: BinaryHeap<Reverse<Waiting>>,
    count: u64,
    /// Of each interface what was lost since its last packet.
    lost: Vec<u64>,
    octets: Vec<u8>,
}

/// A packet to note.
pub(crate) struct Entry<'s> {
    /// Its number, the same wherever it is noted.
    pub(crate) number: u64,
    /// When it left or was lost.
    pub(crate) at: Time,
    pub(crate) interface: u32,
    /// The queue it was in, as a number.
    pub(crate) queue: u32,
    /// Its last stay.
    pub(crate) stay: &'s Stay,
    /// Octets of link header that the frame counts there.
    pub(crate) link_header: u32,
    pub(crate) direction: Option<Direction>,
    /// In words, what happened to it.
    pub(crate) comment: String,
}

/// What will be written, in the order of time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    at: Time,
    count: u64,
    interface: u32,
    number: u64,
    octets: Vec<u8>,
    length: u32,
    outward: Option<bool>,
    queue: u32,
    sent: bool,
    comment: String,
}

impl Diary {
    /// Begins a file; `about` stands in it for people.
    pub(crate) fn create(path: &Path, about: &str) -> anyhow::Result<Diary> {
        let file = crate::output::begin(path)?;
        let writer = Writer::new(&format!("tidegate {}, {about}", env!("CARGO_PKG_VERSION")));
        Ok(Diary {
            path: path.to_owned(),
            file: Some(BufWriter::new(file)),
            writer,
            ahead: BinaryHeap::new(),
            count: 0,
            lost: Vec::new(),
            octets: Vec::new(),
        })
    }

    /// Describes the next interface, before any packet.
    pub(crate) fn interface(&mut self, name: &str, description: &str) {
        self.writer.interface(Interface { name, description, link: link::ETHERNET });
        self.lost.push(0);
    }

    /// Notes a packet.
    pub(crate) fn note(&mut self, entry: Entry<'_>) {
        let Entry { number, at, interface, queue, stay, link_header, direction, comment } = entry;
        let mut head = stay.head.on_wire();
        head.set_addresses([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]);
        head.set_dsfield(stay.dsfield);
        let network = stay.len.saturating_sub(link_header);
        let kept = (network as usize).min(head.network().len()) + Head::ETHERNET;
        self.count += 1;
        self.ahead.push(Reverse(Waiting {
            at,
            count: self.count,
            interface,
            number,
            octets: head.frame()[..kept.min(head.frame().len())].to_vec(),
            length: network + Head::ETHERNET as u32,
            outward: direction.map(|direction| direction == Direction::Out),
            queue,
            sent: stay.fate == Fate::Sent,
            comment,
        }));
    }

    /// Writes what happened until now; `since` is the moment in the network that stands for `began`, ns since 1970.
    pub(crate) fn write(&mut self, now: Time, (since, began): (Time, u64)) -> anyhow::Result<()> {
        while let Some(Reverse(first)) = self.ahead.peek()
            && first.at <= now
        {
            let Some(Reverse(waiting)) = self.ahead.pop() else { break };
            self.one(&waiting, began + waiting.at.since(since).0);
        }
        self.octets.extend(self.writer.take());
        self.put(now == Time::NEVER).with_context(|| crate::output::cannot_write(&self.path))
    }

    /// Writes a piece once it is long enough; at the end the file appears in its place.
    fn put(&mut self, is_end: bool) -> std::io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if self.octets.len() >= PIECE || is_end {
            file.write_all(&self.octets)?;
            self.octets.clear();
        }
        match self.file.take_if(|_| is_end) {
            Some(file) => file.into_inner()?.commit(),
            None => Ok(()),
        }
    }

    fn one(&mut self, waiting: &Waiting, time: u64) {
        let mut lost_before = None;
        if let Some(lost) = self.lost.get_mut(waiting.interface as usize) {
            match waiting.sent {
                true => lost_before = Some(std::mem::take(lost)),
                false => *lost += 1,
            }
        }
        self.writer.packet(&Record {
            interface: waiting.interface,
            time,
            octets: &waiting.octets,
            length: waiting.length,
            direction: waiting.outward.map(|outward| if outward { Direction::Out } else { Direction::In }),
            lost_before,
            id: Some(waiting.number),
            queue: Some(waiting.queue),
            verdict: Some(if waiting.sent { Verdict::Passed } else { Verdict::Dropped }),
            comment: &waiting.comment,
        });
    }
}

/// The class as a number; of a root whose flows have queues of their own that of the flow, as tc lists it.
pub(crate) fn queue(stand: Stand) -> u32 {
    match stand.on {
        Handle::NONE => 0,
        on if on == Handle::ROOT || on.minor() == 0 => stand.qdisc.0 | stand.queue.unwrap_or(0),
        class => class.0,
    }
}

/// A wait in words.
pub(crate) fn wait(ns: u64) -> String {
    if ns == 0 { "0 ms".to_owned() } else { tidegate_report::span(ns) }
}

/// What a stay's end is called: `sent`, `dropped: CoDel`.
pub(crate) fn fate(stay: &Stay, in_device: bool) -> String {
    let marked = if stay.dsfield & 3 == 3 && stay.came_with & 3 != 3 { "marked CE, " } else { "" };
    match stay.fate {
        Fate::Sent => format!("{marked}sent"),
        Fate::Lost(why) => format!("dropped: {}", reason(why, in_device)),
    }
}
