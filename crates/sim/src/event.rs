//! The event queue: what happens next, in order of time and then of scheduling.

use alloc::vec::Vec;
use tidegate_packet::Time;

/// What an event is about. Each kind has few entries per index in the queue, so the queue's length is bounded
/// by the number of links, flows, probes and transactions in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The oldest packet in flight on a link arrives.
    Arrival = 0,
    /// A device behind a machine's port has put a frame on the wire and wants the next.
    Sent = 1,
    /// A machine's port is due to be polled.
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
    /// A transaction continues.
    Transaction = 9,
    /// A sender's pacer lets the next segment go.
    Pace = 10,
    /// A flow's application writes again: after everything else that happens in that instant, as a process
    /// runs when the packets are dealt with.
    Write = 11,
}

const KINDS: [Kind; 12] = [
    Kind::Arrival,
    Kind::Sent,
    Kind::Wake,
    Kind::Timer,
    Kind::DelayedAck,
    Kind::Start,
    Kind::Probe,
    Kind::Source,
    Kind::Sample,
    Kind::Transaction,
    Kind::Pace,
    Kind::Write,
];

/// Bits of a key that hold the index of link, flow or probe; four more hold the kind, the rest the order of
/// scheduling.
const INDEX_BITS: u32 = 20;
/// How many links, flows, probes of each sort there can be.
pub(crate) const MAX_INDEX: usize = 1 << INDEX_BITS;

/// A heap keyed by (time, order of scheduling): equal times run first come, first served, so a run repeats
/// exactly.
///
/// Four children per node, as in what is small and hot the depth is what costs. A popped root is only marked:
/// most events schedule another at once, which then takes the root's place with one sift instead of two.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// Time in the upper half, then order, kind and index.
    heap: Vec<u128>,
    vacant: bool,
    order: u64,
    /// Events taken so far.
    pub(crate) count: u64,
}

/// An event that is due: still at the front until [`Events::pop`] or [`Events::again`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Front {
    /// When it happens.
    pub(crate) at: Time,
    /// What it is.
    pub(crate) kind: Kind,
    /// Of which link, flow or probe.
    pub(crate) index: usize,
}

/// Bits of an entry that give its kind and its index.
const WHAT_BITS: u32 = INDEX_BITS + 4;

impl Events {
    /// Schedules.
    #[inline]
    pub(crate) fn push(&mut self, at: Time, kind: Kind, index: usize) {
        debug_assert!(index < MAX_INDEX, "index fits its bits");
        let entry = self.entry(at, (kind as u64) << INDEX_BITS | index as u64);
        if self.vacant {
            self.vacant = false;
            self.settle(entry);
        } else {
            self.rise(entry);
        }
    }

    /// The next event, if it is not later than `until`.
    #[inline]
    pub(crate) fn front(&mut self, until: Time) -> Option<Front> {
        self.settle_vacancy();
        let entry = *self.heap.first()?;
        let (at, key) = ((entry >> 64) as u64, entry as u64);
        if at > until.0 {
            return None;
        }
        self.count += 1;
        let kind = KINDS[(key >> INDEX_BITS & 15) as usize];
        let index = (key & (MAX_INDEX as u64 - 1)) as usize;
        Some(Front { at: Time(at), kind, index })
    }

    /// When the next event is due.
    pub(crate) fn due(&mut self) -> Option<Time> {
        self.settle_vacancy();
        Some(Time((self.heap.first()? >> 64) as u64))
    }

    /// Puts the last entry in the place of a root that was popped.
    #[inline]
    fn settle_vacancy(&mut self) {
        if self.vacant {
            self.vacant = false;
            if let Some(last) = self.heap.pop()
                && !self.heap.is_empty()
            {
                self.settle(last);
            }
        }
    }

    /// Takes the front event out.
    #[inline]
    pub(crate) fn pop(&mut self) {
        self.vacant = true;
    }

    /// Takes the front event out and schedules the same thing again.
    #[inline]
    pub(crate) fn again(&mut self, at: Time) {
        let what = self.heap.first().map_or(0, |&entry| entry as u64 & ((1 << WHAT_BITS) - 1));
        let entry = self.entry(at, what);
        self.settle(entry);
    }

    #[inline]
    fn entry(&mut self, at: Time, what: u64) -> u128 {
        self.order += 1;
        let late = what >> INDEX_BITS == Kind::Write as u64;
        u128::from(at.0) << 64 | u128::from(u64::from(late) << 63 | self.order << WHAT_BITS | what)
    }

    /// Puts an entry in the root's place and lets it sink.
    #[inline]
    fn settle(&mut self, entry: u128) {
        let heap = self.heap.as_mut_slice();
        let mut hole = 0;
        loop {
            let first = 4 * hole + 1;
            let (mut child, mut least) = (first, u128::MAX);
            if let Some(four) = heap.get(first..first + 4) {
                for (i, &other) in four.iter().enumerate() {
                    if other < least {
                        (child, least) = (first + i, other);
                    }
                }
            } else {
                for (i, &other) in heap.get(first..).unwrap_or_default().iter().enumerate() {
                    if other < least {
                        (child, least) = (first + i, other);
                    }
                }
            }
            if least >= entry {
                break;
            }
            heap[hole] = least;
            hole = child;
        }
        heap[hole] = entry;
    }

    /// Appends an entry and lets it rise.
    fn rise(&mut self, entry: u128) {
        let mut hole = self.heap.len();
        self.heap.push(entry);
        while hole > 0 {
            let parent = (hole - 1) / 4;
            let above = self.heap[parent];
            if above <= entry {
                break;
            }
            self.heap[hole] = above;
            hole = parent;
        }
        self.heap[hole] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use tidegate_packet::Seeded;

    /// Against a sorted list: pushes, pops and reschedulings at random.
    #[test]
    fn comes_out_in_order_of_time_then_of_scheduling() {
        let (mut events, mut random) = (Events::default(), Seeded::new(1));
        let mut model: Vec<(u64, u64, usize)> = Vec::new();
        let mut order = 0;
        for step in 0..20_000usize {
            let at = random.next() % 50 + step as u64;
            let chance = random.next() % 3;
            if chance == 0 || model.is_empty() {
                order += 1;
                events.push(Time(at), Kind::Timer, step);
                model.push((at, order, step));
                continue;
            }
            let due = (0..model.len()).min_by_key(|&i| model[i]).expect("not empty");
            let (expected, _, index) = model.swap_remove(due);
            let front = events.front(Time::NEVER).expect("one is due");
            assert_eq!((front.at.0, front.index, front.kind), (expected, index, Kind::Timer));
            if chance == 1 {
                events.pop();
            } else {
                order += 1;
                events.again(Time(at));
                model.push((at, order, index));
            }
        }
    }
}
