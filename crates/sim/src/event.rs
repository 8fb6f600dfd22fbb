//! The event queue: what happens next, in order of time and then of scheduling.

use alloc::collections::BinaryHeap;
use alloc::collections::binary_heap::PeekMut;
use core::cmp::Reverse;
use tidegate_packet::Time;

/// What an event is about. Each kind has at most one entry per index in the queue, so the queue's length is bounded by
/// the number of links, flows and probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The oldest packet in flight on a link arrives.
    Arrival = 0,
    /// A device behind a machine's port has put a frame on the wire and wants the next.
    Sent = 1,
    /// A machine's port asked to be polled.
    Wake = 2,
    /// A TCP sender's timer.
    Timer = 3,
    /// A TCP receiver's delayed acknowledgement.
    DelayedAck = 4,
    /// A flow begins.
    Start = 5,
    /// A probe is due.
    Probe = 6,
    /// An open-loop source emits.
    Source = 7,
    /// Series are sampled.
    Sample = 8,
}

const KINDS: [Kind; 9] = [
    Kind::Arrival,
    Kind::Sent,
    Kind::Wake,
    Kind::Timer,
    Kind::DelayedAck,
    Kind::Start,
    Kind::Probe,
    Kind::Source,
    Kind::Sample,
];

/// Bits of a key that hold the index of link, flow or probe; four more hold the kind, the rest the order of scheduling.
const INDEX_BITS: u32 = 20;
/// How many links, flows, probes of each sort there can be.
pub(crate) const MAX_INDEX: usize = 1 << INDEX_BITS;

/// A heap keyed by (time, order of scheduling): equal times run first come, first served, so a run repeats exactly.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    order: u64,
    /// Events taken so far.
    pub(crate) count: u64,
}

/// The event at the front, still in its place.
pub(crate) struct Front<'a> {
    top: PeekMut<'a, Reverse<(u64, u64)>>,
    order: &'a mut u64,
    /// When it happens.
    pub(crate) at: Time,
    /// What it is.
    pub(crate) kind: Kind,
    /// Of which link, flow or probe.
    pub(crate) index: usize,
}

impl Front<'_> {
    /// Takes the event out of the queue.
    pub(crate) fn pop(self) {
        PeekMut::pop(self.top);
    }
    /// Takes it out and schedules the same thing again, which costs one sift instead of two.
    pub(crate) fn again(mut self, at: Time) {
        *self.order += 1;
        let what = self.top.0.1 & ((1 << (INDEX_BITS + 4)) - 1);
        *self.top = Reverse((at.0, *self.order << (INDEX_BITS + 4) | what));
    }
}

impl Events {
    /// Schedules.
    pub(crate) fn push(&mut self, at: Time, kind: Kind, index: usize) {
        debug_assert!(index < MAX_INDEX, "index fits its bits");
        self.order += 1;
        let key = self.order << (INDEX_BITS + 4) | (kind as u64) << INDEX_BITS | index as u64;
        self.heap.push(Reverse((at.0, key)));
    }

    /// The next event, if it is not later than `until`.
    pub(crate) fn front(&mut self, until: Time) -> Option<Front<'_>> {
        let top = self.heap.peek_mut()?;
        let Reverse((at, key)) = *top;
        if at > until.0 {
            return None;
        }
        self.count += 1;
        let kind = KINDS[(key >> INDEX_BITS & 15) as usize];
        let index = (key & (MAX_INDEX as u64 - 1)) as usize;
        Some(Front { top, order: &mut self.order, at: Time(at), kind, index })
    }
}
