//! Which queue of all tins is the longest: a heap that is kept only while the memory is full.

use super::tin::{QUEUES, Tin};
use super::tins::MOST;
use alloc::vec::Vec;

/// Packets sent after which the heap is left to decay.
const KEPT_FOR: u32 = 65535;
const PLACES: usize = MOST * QUEUES;

/// The heap over all queues. Queues of equal length stay in the order in which they came there, so the order
/// in which the heap is repaired matters.
#[derive(Default)]
pub(super) struct Overflow {
    /// Packets that may be sent until it is built again; 0: it is not kept.
    left: u32,
    /// Tin and queue at each place of the heap: `tin * QUEUES + queue`. Made when it is first needed.
    heap: Vec<u16>,
    /// The place of each.
    places: Vec<u16>,
}

fn split(code: u16) -> (usize, usize) {
    (usize::from(code) / QUEUES, usize::from(code) % QUEUES)
}

impl Overflow {
    /// Is the heap kept at present?
    #[inline]
    pub(super) fn is_kept(&self) -> bool {
        self.left > 0
    }

    /// A packet was sent.
    #[inline]
    pub(super) fn sent(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// The heap is wrong: it is built again when it is needed next.
    pub(super) fn forget(&mut self) {
        self.left = 0;
    }

    /// The tin and queue that have the most bytes.
    pub(super) fn longest(&mut self, tins: &[Tin]) -> (usize, usize) {
        if self.left == 0 {
            self.build(tins);
            self.left = KEPT_FOR;
        }
        split(self.heap[0])
    }

    /// A queue has become shorter.
    pub(super) fn shorter(&mut self, tins: &[Tin], tin: usize, queue: usize) {
        let place = self.place(tin, queue);
        self.sift_down(tins, place);
    }

    /// A queue has become longer.
    pub(super) fn longer(&mut self, tins: &[Tin], tin: usize, queue: usize) {
        let mut at = self.place(tin, queue);
        while at > 0 {
            let above = (at - 1) / 2;
            if self.bytes(tins, at) <= self.bytes(tins, above) {
                break;
            }
            self.swap(at, above);
            at = above;
        }
    }

    fn place(&self, tin: usize, queue: usize) -> usize {
        self.places[tin * QUEUES + queue].into()
    }

    fn build(&mut self, tins: &[Tin]) {
        if self.heap.is_empty() {
            self.heap = (0..PLACES).map(|place| (place % MOST * QUEUES + place / MOST) as u16).collect();
            self.places = (0..PLACES).map(|code| (code % QUEUES * MOST + code / QUEUES) as u16).collect();
        }
        for place in (0..PLACES / 2).rev() {
            self.sift_down(tins, place);
        }
    }

    /// Lets the queue at a place sink below longer ones. Linux continues comparing with the one that rose, so
    /// it sinks by one step where the heap below is in order: the heap is not quite one, and which queue pays
    /// depends on it.
    fn sift_down(&mut self, tins: &[Tin], mut at: usize) {
        let mut most = self.bytes(tins, at);
        loop {
            let mut longest = at;
            for below in [2 * at + 1, 2 * at + 2] {
                if below < PLACES && self.bytes(tins, below) > most {
                    (longest, most) = (below, self.bytes(tins, below));
                }
            }
            if longest == at {
                return;
            }
            self.swap(at, longest);
            at = longest;
        }
    }

    fn bytes(&self, tins: &[Tin], place: usize) -> u64 {
        let (tin, queue) = split(self.heap[place]);
        tins[tin].bytes_in(queue)
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.places[usize::from(self.heap[a])] = a as u16;
        self.places[usize::from(self.heap[b])] = b as u16;
    }
}
