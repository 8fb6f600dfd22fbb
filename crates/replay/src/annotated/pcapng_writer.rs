//! Packets in the order of time, as blocks of pcapng.

use crate::captured::{ExternalError, reason};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tidegate_measure::numbers::format_duration;
use tidegate_packet::{Handle, Head, QueueLocation, Time};
use tidegate_pcap::{CaptureDirection, Interface, Record, TcVerdict, Writer, link};
use tidegate_sim::{SojournEnd, SojournRecord};

/// Where the bytes of a pcapng file go.
pub trait PcapSink {
    /// Takes what follows; at the end, `is_last`, the file is complete.
    ///
    /// # Errors
    /// It does not take them; the run ends.
    fn put(&mut self, bytes: &[u8], is_last: bool) -> Result<(), ExternalError>;
}

/// A file in the making.
pub(super) struct PcapngWriter {
    sink: Box<dyn PcapSink>,
    writer: Writer,
    /// Entries that are not due: packets leave a modem later than they are reported.
    ahead: BinaryHeap<Reverse<Waiting>>,
    count: u64,
    /// For each interface the packets missing since its last packet.
    lost: Vec<u64>,
}

/// A packet to note.
pub(super) struct Entry<'s> {
    /// Its number, the same wherever it is noted.
    pub(super) number: u64,
    /// When it left or was dropped.
    pub(super) at: Time,
    pub(super) interface: u32,
    /// The queue it was in, as a number.
    pub(super) queue: u32,
    /// Its last stay.
    pub(super) sojourn: &'s SojournRecord,
    /// Bytes of link header that the frame counts there.
    pub(super) link_header: u32,
    pub(super) direction: Option<CaptureDirection>,
    /// In words, what happened to it.
    pub(super) comment: String,
}

/// What will be written, in the order of time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    at: Time,
    count: u64,
    interface: u32,
    number: u64,
    bytes: Vec<u8>,
    length: u32,
    outward: Option<bool>,
    queue: u32,
    sent: bool,
    comment: String,
}

impl PcapngWriter {
    /// Begins a file; `about` is in it for people.
    pub(super) fn new(sink: Box<dyn PcapSink>, about: &str) -> PcapngWriter {
        let writer = Writer::new(&format!("tidegate {}, {about}", env!("CARGO_PKG_VERSION")));
        PcapngWriter { sink, writer, ahead: BinaryHeap::new(), count: 0, lost: Vec::new() }
    }

    /// Describes the next interface, before any packet.
    pub(super) fn interface(&mut self, name: &str, description: &str) {
        self.writer.interface(Interface { name, description, link: link::ETHERNET });
        self.lost.push(0);
    }

    /// Notes a packet.
    pub(super) fn note(&mut self, entry: Entry<'_>) {
        let Entry { number, at, interface, queue, sojourn: stay, link_header, direction, comment } = entry;
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
            bytes: head.frame()[..kept.min(head.frame().len())].to_vec(),
            length: network + Head::ETHERNET as u32,
            outward: direction.map(|direction| direction == CaptureDirection::Out),
            queue,
            sent: stay.end == SojournEnd::Sent,
            comment,
        }));
    }

    /// Writes everything until now; `since` is the simulated time of `began`, ns since 1970.
    pub(super) fn write(&mut self, now: Time, (since, began): (Time, u64)) -> Result<(), ExternalError> {
        while let Some(Reverse(first)) = self.ahead.peek()
            && first.at <= now
        {
            let Some(Reverse(waiting)) = self.ahead.pop() else { break };
            self.one(&waiting, began + waiting.at.since(since).0);
        }
        self.sink.put(&self.writer.take(), now == Time::NEVER)
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
            bytes: &waiting.bytes,
            length: waiting.length,
            direction: waiting
                .outward
                .map(|outward| if outward { CaptureDirection::Out } else { CaptureDirection::In }),
            dropped_before: lost_before,
            id: Some(waiting.number),
            queue: Some(waiting.queue),
            verdict: Some(if waiting.sent { TcVerdict::Passed } else { TcVerdict::Dropped }),
            comment: &waiting.comment,
        });
    }
}

/// The class as a number; of a root whose flows have queues of their own that of the flow, as tc lists it.
pub(super) fn queue(location: QueueLocation) -> u32 {
    match location.on {
        Handle::NONE => 0,
        on if on == Handle::ROOT || on.minor() == 0 => location.qdisc.0 | location.queue.unwrap_or(0),
        class => class.0,
    }
}

/// A wait in words: `12.4 ms`.
pub fn wait(ns: u64) -> String {
    if ns == 0 { "0 ms".to_owned() } else { format_duration(ns) }
}

/// What a stay's end is called: `sent`, `dropped: CoDel`.
pub(super) fn fate(sojourn: &SojournRecord, in_device: bool) -> String {
    let marked = if sojourn.dsfield & 3 == 3 && sojourn.came_with & 3 != 3 { "marked CE, " } else { "" };
    match sojourn.end {
        SojournEnd::Sent => format!("{marked}sent"),
        SojournEnd::Dropped(why) => format!("dropped: {}", reason(why, in_device)),
    }
}
