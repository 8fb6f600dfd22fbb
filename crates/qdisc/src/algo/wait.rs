//! Entries that wait for their time, the earliest first and in order of arrival among equals; any can be
//! taken out.

use alloc::vec::Vec;
use tidegate_packet::Time;

const ABSENT: u32 = u32::MAX;

/// A binary heap that keeps the position of each entry, so that any entry can be moved or removed.
#[derive(Debug, Default)]
pub struct WaitHeap {
    heap: Vec<(Time, u64, u32)>,
    /// Place in the heap, by entry.
    place: Vec<u32>,
    arrivals: u64,
}

impl WaitHeap {
    /// The earliest entry.
    #[inline]
    pub fn first(&self) -> Option<(Time, u32)> {
        self.heap.first().map(|(at, _, entry)| (*at, *entry))
    }

    /// Puts in an entry that is not there.
    pub fn insert(&mut self, entry: u32, at: Time) {
        if self.place.len() <= entry as usize {
            self.place.resize(entry as usize + 1, ABSENT);
        }
        self.arrivals += 1;
        self.heap.push((at, self.arrivals, entry));
        self.place[entry as usize] = self.heap.len() as u32 - 1;
        self.up(self.heap.len() - 1);
    }

    /// Takes an entry out, if it is there.
    pub fn remove(&mut self, entry: u32) {
        let Some(place) = self.place.get_mut(entry as usize) else { return };
        let at = core::mem::replace(place, ABSENT);
        if at == ABSENT {
            return;
        }
        let at = at as usize;
        self.heap.swap_remove(at);
        if let Some((_, _, moved)) = self.heap.get(at) {
            self.place[*moved as usize] = at as u32;
            self.up(at);
            self.down(at);
        }
    }

    fn up(&mut self, mut at: usize) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.heap[parent] <= self.heap[at] {
                return;
            }
            self.swap(at, parent);
            at = parent;
        }
    }

    fn down(&mut self, mut at: usize) {
        loop {
            let child = 2 * at + 1;
            if child >= self.heap.len() {
                return;
            }
            let least = if child + 1 < self.heap.len() && self.heap[child + 1] < self.heap[child] {
                child + 1
            } else {
                child
            };
            if self.heap[at] <= self.heap[least] {
                return;
            }
            self.swap(at, least);
            at = least;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.place[self.heap[a].2 as usize] = a as u32;
        self.place[self.heap[b].2 as usize] = b as u32;
    }
}
