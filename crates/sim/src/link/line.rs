//! One line: what it does with frames.

use super::framing::LinkFraming;
use super::impair::ImpairmentState;
use super::trace::{CapacityReplay, Replay};
use crate::machine::{Limit, Port};
use alloc::collections::VecDeque;
use tidegate_packet::{Nanos, Pkt, Seeded, Time};

/// A link of a [`crate::Net`], by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) u32);

/// Where packets wait for a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkQueue {
    /// In a drop-tail queue of its own: what a modem has.
    DropTail(Limit),
    /// At a port of the machine, whose policy decides; the device takes `ring` packets ahead (at least 1: the
    /// one it sends), and, with a byte queue limit, none while it holds this many bytes or more.
    Port {
        /// The machine's port.
        port: Port,
        /// The transmit ring, in packets.
        ring: u32,
        /// The byte queue limit (BQL), if the device has one.
        bytes: Option<u32>,
    },
}

/// One direction of a link: its rate, delay and buffer, and where it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// Bits per second; `None` sends in no time.
    pub bits_per_second: Option<u64>,
    /// At most so many packets per second, whatever their size: what small processors in modems manage.
    pub packet_rate: Option<u64>,
    /// From the last bit sent to the packet's arrival.
    pub delay: Nanos,
    /// Each packet is delayed by between 0 and this, in order: the host's own irregularity. Without any,
    /// flows lock in phase (algorithms.md section 13.3).
    pub jitter: Nanos,
    /// The queue before the link.
    pub waiting: LinkQueue,
    /// What the link adds to each frame, in bytes or cells.
    pub framing: LinkFraming,
    /// What its packets come to.
    pub peer: LinkPeer,
}

/// What is at the remote end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkPeer {
    /// Another link, or a host.
    Elsewhere,
    /// A port of the machine. If that is the very port the link begins at, the device gives back what it is
    /// given, as ifb does.
    Port(Port),
    /// The device beneath this one, on the same machine: ppp0 above eth0, a tunnel.
    Beneath(Port),
}

impl LinkSpec {
    /// A link without a rate or a queue: every packet arrives after this delay.
    pub fn wire(delay: Nanos) -> LinkSpec {
        LinkSpec {
            bits_per_second: None,
            packet_rate: None,
            delay,
            jitter: Nanos(0),
            waiting: LinkQueue::DropTail(Limit::None),
            framing: LinkFraming::default(),
            peer: LinkPeer::Elsewhere,
        }
    }
    /// A drop-tail queue before a rate.
    pub fn drop_tail(bits_per_second: u64, delay: Nanos, limit: Limit) -> LinkSpec {
        LinkSpec {
            bits_per_second: Some(bits_per_second),
            waiting: LinkQueue::DropTail(limit),
            ..LinkSpec::wire(delay)
        }
    }
    /// A device of the machine: its policy, then a rate (`None`: the policy alone sets the pace).
    pub fn port(port: Port, bits_per_second: Option<u64>, delay: Nanos) -> LinkSpec {
        LinkSpec {
            bits_per_second,
            waiting: LinkQueue::Port { port, ring: 1, bytes: None },
            ..LinkSpec::wire(delay)
        }
    }
    /// The same link with jitter: each packet is delayed by between 0 and this, in order.
    pub fn jitter(self, jitter: Nanos) -> LinkSpec {
        LinkSpec { jitter, ..self }
    }
    /// A device that gives back what it is given, at its policy's pace: ifb.
    pub fn returning(port: Port) -> LinkSpec {
        LinkSpec::port(port, None, Nanos(0)).into_port(port)
    }
    /// A device that is stacked on another of the same machine.
    pub fn above(port: Port) -> LinkSpec {
        LinkSpec { peer: LinkPeer::Beneath(port), ..LinkSpec::port(port, None, Nanos(0)) }
    }
    /// The same link, ending at a port of the machine.
    pub fn into_port(self, port: Port) -> LinkSpec {
        LinkSpec { peer: LinkPeer::Port(port), ..self }
    }
}

/// What a link counted since the network was made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkStats {
    /// Packets put on the wire.
    pub sent: u64,
    /// Their bytes, framing not counted.
    pub sent_bytes: u64,
    /// Packets refused by the queue (a port: refused or dropped later).
    pub dropped: u64,
    /// Packets put on the wire and lost there.
    pub lost: u64,
    /// The most packets that ever waited, in a queue of the link's own.
    pub peak_packets: u32,
    /// The most bytes that ever waited there.
    pub peak_bytes: u64,
    /// Time packets waited there before their transmission began, summed, in ns.
    pub waited_ns: u128,
    /// Time the wire was busy, in ns.
    pub busy_ns: u64,
}

/// A frame in a link's own queue, or in the ring of the device before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// Its transmission begins.
    pub(super) start: Time,
    /// It is through.
    pub(crate) left: Time,
    pub(crate) len: u32,
    /// It will not arrive.
    pub(super) lost: bool,
}

/// What happened to a packet that was put on a link.
#[derive(Debug)]
pub(crate) struct Sending {
    /// When its transmission begins.
    pub(crate) start: Time,
    /// When it is through.
    pub(crate) left: Time,
    /// An arrival to schedule.
    pub(crate) arrival: Option<Time>,
    /// The packet, if it is lost on the line.
    pub(crate) lost: Option<Pkt>,
}

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) spec: LinkSpec,
    pub(crate) stats: LinkStats,
    /// Packets on the way, by arrival.
    pub(crate) line: VecDeque<(Time, Pkt)>,
    /// The wire is free from then on.
    pub(super) free_at: Time,
    /// In the own queue: those that have not begun. In a device's ring: those that are not through.
    pub(super) frames: VecDeque<Frame>,
    pub(super) frames_bytes: u64,
    /// The last length requested, with its time on the wire.
    pub(super) known: (u32, u64),
    pub(crate) impairment: Option<ImpairmentState>,
    /// The recording that it follows.
    pub(super) replay: Option<Replay>,
    /// The delay was changed: a packet may not overtake those before it.
    pub(super) uneven: bool,
    /// A port: when the pending wake-up event is due.
    pub(crate) wake_at: Option<Time>,
}

impl Drop for Link {
    /// A link is dropped with its network, and so is the pool: packets in flight then are not lost, they end.
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
            frames: VecDeque::new(),
            frames_bytes: 0,
            known: (u32::MAX, 0),
            impairment: None,
            replay: None,
            uneven: false,
            wake_at: None,
        }
    }

    /// Does anything keep it from sending in no time?
    #[inline]
    pub(crate) fn is_paced(&self) -> bool {
        self.spec.bits_per_second.is_some() || self.spec.packet_rate.is_some() || self.is_recorded()
    }

    /// Does a recording say what it carries?
    #[inline]
    pub(crate) fn is_recorded(&self) -> bool {
        self.replay.as_ref().is_some_and(|replay| replay.capacity.is_some())
    }

    /// Has each packet an arrival event of its own?
    #[inline]
    pub(crate) fn has_own_events(&self) -> bool {
        self.impairment.is_some()
    }

    /// Nanoseconds of sending that lie behind.
    pub(crate) fn worked(&self, now: Time) -> Nanos {
        Nanos(self.stats.busy_ns.saturating_sub(self.free_at.since(now).0))
    }

    /// Nanoseconds a frame of `len` bytes takes, cut to whole ones.
    pub(super) fn transmission(&mut self, len: u32) -> u64 {
        if self.known.0 != len {
            let bits = match self.spec.bits_per_second {
                None => 0,
                Some(rate) => u64::from(self.spec.framing.wire_len(len)) * 8_000_000_000 / rate.max(1),
            };
            let packet = self.spec.packet_rate.map_or(0, |rate| 1_000_000_000 / rate.max(1));
            self.known = (len, bits.max(packet));
        }
        self.known.1
    }

    /// Is there space in the link's own queue?
    ///
    /// A drop-tail queue before a fixed rate needs no event of its own: when a packet will leave is known
    /// when it comes.
    #[inline]
    pub(crate) fn admits(&mut self, now: Time, len: u32) -> bool {
        if !self.is_paced() {
            return true;
        }
        let (packets, bytes) = self.backlog(now);
        let LinkQueue::DropTail(limit) = self.spec.waiting else { return true };
        // What finds the wire free does not wait at all.
        let capacity = self.replay.as_ref().and_then(|replay| replay.capacity.as_ref());
        let waits = self.free_at > now || capacity.is_some_and(CapacityReplay::waits_alone);
        !waits || limit.admits(u64::from(packets), bytes, len)
    }

    /// What waits in the own queue: packets and bytes.
    pub(crate) fn backlog(&mut self, now: Time) -> (u32, u64) {
        if !matches!(self.spec.waiting, LinkQueue::DropTail(_)) {
            return (0, 0);
        }
        while let Some(&Frame { start, len, .. }) = self.frames.front() {
            if start > now {
                break;
            }
            self.frames_bytes -= u64::from(len);
            self.frames.pop_front();
        }
        (self.frames.len() as u32, self.frames_bytes)
    }

    /// Puts a packet behind those before it.
    #[inline]
    pub(crate) fn send(&mut self, now: Time, pkt: Pkt, len: u32, random: &mut Seeded) -> Sending {
        let (start, left) = self.transmit(now, len);
        let lost = self.impairment.as_mut().is_some_and(ImpairmentState::should_drop)
            || self.replay.as_mut().is_some_and(|replay| replay.is_lost(left));
        let frame = Frame { start, left, len, lost };
        match self.spec.waiting {
            LinkQueue::DropTail(_) if start > now => self.wait(now, frame),
            LinkQueue::Port { .. } if self.is_paced() => {
                self.frames.push_back(frame);
                self.frames_bytes += u64::from(len);
            }
            _ => {}
        }
        self.stats.sent += 1;
        self.stats.sent_bytes += u64::from(len);
        self.stats.busy_ns += left.since(start).0;
        if lost {
            self.stats.lost += 1;
            return Sending { start, left, arrival: None, lost: Some(pkt) };
        }
        let recorded = self.replay.as_ref().and_then(|replay| replay.delay(left));
        let mut arrives = left + recorded.unwrap_or(self.spec.delay);
        if self.spec.jitter.0 > 0 || self.uneven {
            let late = Nanos((random.unit() * self.spec.jitter.0 as f64) as u64);
            let before = self.line.back().map_or(Time(0), |&(at, _)| at);
            arrives = (arrives + late).max(before);
        }
        let arrival = self.put_in_line(arrives, pkt);
        Sending { start, left, arrival, lost: None }
    }

    /// When a frame's transmission begins and ends.
    #[inline]
    pub(super) fn transmit(&mut self, now: Time, len: u32) -> (Time, Time) {
        let (start, left) = match self.replay.as_mut().and_then(|replay| replay.capacity.as_mut()) {
            None => {
                let start = self.free_at.max(now);
                (start, start + Nanos(self.transmission(len)))
            }
            Some(capacity) => capacity.carry(now, self.spec.framing.wire_len(len)),
        };
        self.free_at = left;
        (start, left)
    }

    /// Books a frame into the own queue.
    pub(super) fn wait(&mut self, now: Time, frame: Frame) {
        self.frames.push_back(frame);
        self.frames_bytes += u64::from(frame.len);
        self.stats.peak_packets = self.stats.peak_packets.max(self.frames.len() as u32);
        self.stats.peak_bytes = self.stats.peak_bytes.max(self.frames_bytes);
        self.stats.waited_ns += u128::from(frame.start.since(now).0);
    }

    /// Puts a packet in line; returns an arrival to schedule.
    #[inline]
    pub(super) fn put_in_line(&mut self, arrives: Time, pkt: Pkt) -> Option<Time> {
        let Some(hazard) = &mut self.impairment else {
            let first = self.line.is_empty();
            self.line.push_back((arrives, pkt));
            return first.then_some(arrives);
        };
        let arrives = arrives + hazard.extra();
        let at = if hazard.what.scrambles() {
            self.line.partition_point(|(at, _)| *at <= arrives)
        } else {
            self.line.len()
        };
        self.line.insert(at, (arrives, pkt));
        Some(arrives)
    }

    /// May the device take one more frame ahead?
    #[inline]
    pub(crate) fn ring_has_room(&self) -> bool {
        let LinkQueue::Port { ring, bytes, .. } = self.spec.waiting else { return false };
        !self.is_paced()
            || self.frames.len() < ring.max(1) as usize
                && bytes.is_none_or(|limit| self.frames_bytes < u64::from(limit.max(1)))
    }

    /// When the frame that the device sends now is through.
    pub(crate) fn sending_until(&self) -> Option<Time> {
        self.frames.front().map(|frame| frame.left)
    }

    /// Frames in the device's ring.
    pub(crate) fn in_ring(&self) -> usize {
        self.frames.len()
    }

    /// The frame that the device sends is through.
    pub(crate) fn frame_is_through(&mut self) {
        if let Some(frame) = self.frames.pop_front() {
            self.frames_bytes -= u64::from(frame.len);
        }
    }
}
