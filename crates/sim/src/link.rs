//! Links: a queue, a rate, a delay. Packets on the way stand in a line, so a link has one pending event however many it carries.

use crate::machine::{Limit, Port};
use alloc::collections::VecDeque;
use tidegate_packet::{Pkt, Seeded, Span, Time};

/// A link of a [`crate::Net`], by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) u32);

/// What a link adds to each frame before its length counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// Bytes added to each frame (negative: the Ethernet header is not sent, say).
    pub overhead: i32,
    /// The shortest unit sent, in bytes.
    pub minimum: u32,
    /// Sent in ATM cells: 48 bytes carried by each 53.
    pub atm: bool,
}

impl Framing {
    /// Bytes on the wire for a frame of `len`.
    pub fn wire_len(&self, len: u32) -> u32 {
        let len = len.saturating_add_signed(self.overhead).max(self.minimum);
        if self.atm { len.div_ceil(48) * 53 } else { len }
    }
}

/// Where packets wait for a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// In a drop-tail queue of its own: what a modem has.
    DropTail(Limit),
    /// At a port of the machine, whose policy decides; the device takes `ring` packets ahead (at least 1: the one it sends), and, with
    /// a byte queue limit, none while it holds so many bytes or more.
    Port {
        /// Which.
        port: Port,
        /// The transmit ring, in packets.
        ring: u32,
        /// The byte queue limit (BQL), if the device has one.
        bytes: Option<u32>,
    },
}

/// What a link is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// Bits per second; `None` sends in no time.
    pub bits_per_second: Option<u64>,
    /// From the last bit sent to the packet's arrival.
    pub delay: Span,
    /// Each packet is held up by something between 0 and this, in order: the host's own irregularity. Without any, flows
    /// lock in phase (algorithms.md section 13.3).
    pub jitter: Span,
    /// Where packets wait.
    pub waiting: Waiting,
    /// What each frame costs.
    pub framing: Framing,
    /// Where it leads.
    pub far_end: FarEnd,
}

/// What is at the far end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarEnd {
    /// Another link, or a host.
    Elsewhere,
    /// A port of the machine. If that is the very port the link begins at, the device gives back what it is given, as ifb does.
    Port(Port),
    /// The device beneath this one, on the same machine: ppp0 above eth0, a tunnel.
    Beneath(Port),
}

impl LinkSpec {
    /// A pure delay.
    pub fn wire(delay: Span) -> LinkSpec {
        LinkSpec {
            bits_per_second: None,
            delay,
            jitter: Span(0),
            waiting: Waiting::DropTail(Limit::None),
            framing: Framing::default(),
            far_end: FarEnd::Elsewhere,
        }
    }
    /// A drop-tail queue before a rate.
    pub fn drop_tail(bits_per_second: u64, delay: Span, limit: Limit) -> LinkSpec {
        LinkSpec { bits_per_second: Some(bits_per_second), waiting: Waiting::DropTail(limit), ..LinkSpec::wire(delay) }
    }
    /// A device of the machine: its policy, then a rate (`None`: the policy alone sets the pace).
    pub fn port(port: Port, bits_per_second: Option<u64>, delay: Span) -> LinkSpec {
        LinkSpec { bits_per_second, waiting: Waiting::Port { port, ring: 1, bytes: None }, ..LinkSpec::wire(delay) }
    }
    /// With jitter.
    pub fn jitter(self, jitter: Span) -> LinkSpec {
        LinkSpec { jitter, ..self }
    }
    /// A device that gives back what it is given, at its policy's pace: ifb.
    pub fn returning(port: Port) -> LinkSpec {
        LinkSpec::port(port, None, Span(0)).into_port(port)
    }
    /// A device that stands on another of the same machine.
    pub fn above(port: Port) -> LinkSpec {
        LinkSpec { far_end: FarEnd::Beneath(port), ..LinkSpec::port(port, None, Span(0)) }
    }
    /// Ending at a port of the machine.
    pub fn into_port(self, port: Port) -> LinkSpec {
        LinkSpec { far_end: FarEnd::Port(port), ..self }
    }
}

/// What a link counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkStats {
    /// Packets put on the wire.
    pub sent: u64,
    /// Their bytes, framing not counted.
    pub sent_bytes: u64,
    /// Packets refused by the queue (a port: refused or lost later).
    pub dropped: u64,
    /// The most packets that ever waited, in a queue of the link's own.
    pub peak_packets: u32,
    /// The most bytes that ever waited there.
    pub peak_bytes: u64,
    /// Time packets waited there before their transmission began, summed, in ns.
    pub waited_ns: u128,
    /// Time the wire was busy, in ns.
    pub busy_ns: u64,
}

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) spec: LinkSpec,
    pub(crate) stats: LinkStats,
    /// Packets on the way, by arrival.
    pub(crate) line: VecDeque<(Time, Pkt)>,
    /// The wire is free from then on.
    free_at: Time,
    /// Those of the own queue that have not begun, with the start of their transmission and their length.
    waiting: VecDeque<(Time, u32)>,
    waiting_bytes: u64,
    /// The last length asked for, with its time on the wire.
    known: (u32, u64),
    /// A port: frames the device has taken that are not yet sent.
    pub(crate) in_ring: VecDeque<(Time, u32)>,
    pub(crate) ring_bytes: u64,
    /// A port: when the pending wake-up event is due.
    pub(crate) wake_at: Option<Time>,
}

impl Drop for Link {
    /// A link goes with its network, and so does the pool: what is under way then is not lost, it ends.
    fn drop(&mut self) {
        for (_, pkt) in self.line.drain(..) {
            core::mem::forget(pkt);
        }
    }
}

impl Link {
    pub(crate) fn new(spec: LinkSpec) -> Link {
        Link {
            spec,
            stats: LinkStats::default(),
            line: VecDeque::new(),
            free_at: Time(0),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            known: (u32::MAX, 0),
            in_ring: VecDeque::new(),
            ring_bytes: 0,
            wake_at: None,
        }
    }

    /// Nanoseconds a frame of `len` bytes takes, cut to whole ones.
    fn transmission(&mut self, len: u32) -> u64 {
        if self.known.0 != len {
            let time = match self.spec.bits_per_second {
                None => 0,
                Some(rate) => u64::from(self.spec.framing.wire_len(len)) * 8_000_000_000 / rate.max(1),
            };
            self.known = (len, time);
        }
        self.known.1
    }

    /// Is there room in the link's own queue?
    ///
    /// A drop-tail queue before a fixed rate needs no event of its own: when a packet will leave is known when it comes.
    #[inline]
    pub(crate) fn admits(&mut self, now: Time, len: u32) -> bool {
        if self.spec.bits_per_second.is_none() {
            return true;
        }
        let (packets, bytes) = self.backlog(now);
        let Waiting::DropTail(limit) = self.spec.waiting else { return true };
        // What finds the wire free does not wait at all.
        self.free_at <= now || limit.admits(u64::from(packets), bytes, len)
    }

    /// What waits in the own queue: packets and bytes.
    pub(crate) fn backlog(&mut self, now: Time) -> (u32, u64) {
        while let Some(&(start, bytes)) = self.waiting.front() {
            if start > now {
                break;
            }
            self.waiting_bytes -= u64::from(bytes);
            self.waiting.pop_front();
        }
        (self.waiting.len() as u32, self.waiting_bytes)
    }

    /// Puts a packet behind those before it; returns when it has left, and whether the line needs an arrival event.
    #[inline]
    pub(crate) fn send(&mut self, now: Time, pkt: Pkt, len: u32, draws: &mut Seeded) -> (Time, Option<Time>) {
        let time = self.transmission(len);
        let start = self.free_at.max(now);
        if start > now && matches!(self.spec.waiting, Waiting::DropTail(_)) {
            self.waiting.push_back((start, len));
            self.waiting_bytes += u64::from(len);
            self.stats.peak_packets = self.stats.peak_packets.max(self.waiting.len() as u32);
            self.stats.peak_bytes = self.stats.peak_bytes.max(self.waiting_bytes);
            self.stats.waited_ns += u128::from(start.since(now).0);
        }
        let left = start + Span(time);
        self.free_at = left;
        self.stats.sent += 1;
        self.stats.sent_bytes += u64::from(len);
        self.stats.busy_ns += time;
        let mut arrives = left + self.spec.delay;
        if self.spec.jitter.0 > 0 {
            let late = Span((draws.unit() * self.spec.jitter.0 as f64) as u64);
            let before = self.line.back().map_or(Time(0), |&(at, _)| at);
            arrives = (arrives + late).max(before);
        }
        let first = self.line.is_empty();
        self.line.push_back((arrives, pkt));
        (left, first.then_some(arrives))
    }
}
