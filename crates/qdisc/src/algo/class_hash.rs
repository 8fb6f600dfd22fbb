//! The order in which a qdisc's classes are listed: that of a hash table that grows, as tc's users see it.

use alloc::vec;
use alloc::vec::Vec;
use tidegate_packet::Handle;

/// Classes by id, each with an index into its owner's table.
///
/// Listing order: buckets from 0, newest first within a bucket; growing re-inserts bucket by bucket.
#[derive(Debug)]
#[repr(C)]
pub struct ClassHash {
    /// Most classes have numbers in a row and indices in the same row: those need no table.
    row: Row,
    /// The qdisc that ids belong to.
    qdisc: Handle,
    buckets: Vec<Vec<(Handle, u32)>>,
    len: usize,
    /// Indices by minor number, for finding a packet's class at once: pages of [`PAGE`], those that are used.
    pages: Vec<u32>,
    /// Where the page of a minor number begins, plus one; 0 = there is none.
    page: Vec<u32>,
    /// Classes with another qdisc's id (`0:0` is one that the kernel lets pass): found in their bucket.
    strangers: usize,
}

/// Minor numbers `minor..minor + len` with indices from `index` on.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    minor: u32,
    len: u32,
    index: u32,
}

impl Row {
    #[inline]
    fn get(self, minor: u16) -> Option<u32> {
        let place = u32::from(minor).wrapping_sub(self.minor);
        (place < self.len).then(|| self.index + place)
    }

    /// A class was added: it lengthens the row, or begins a new one where there is none worth the name.
    fn insert(&mut self, minor: u16, index: u32) {
        let minor = u32::from(minor);
        if self.len > 0 && (minor, index) == (self.minor + self.len, self.index + self.len) {
            self.len += 1;
        } else if self.len < 2 {
            *self = Row { minor, len: 1, index };
        }
    }

    /// A class is gone: the row ends before it.
    fn remove(&mut self, minor: u16) {
        let place = u32::from(minor).wrapping_sub(self.minor);
        self.len = self.len.min(place);
    }
}

const NONE: u32 = u32::MAX;
/// Indices in a page.
const PAGE: usize = 64;

impl Default for ClassHash {
    fn default() -> ClassHash {
        ClassHash {
            row: Row::default(),
            qdisc: Handle::NONE,
            buckets: vec![Vec::new(); 4],
            len: 0,
            pages: Vec::new(),
            page: Vec::new(),
            strangers: 0,
        }
    }
}

impl ClassHash {
    /// Number of classes.
    pub fn len(&self) -> usize {
        self.len
    }
    /// None?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The index of a class.
    #[inline]
    pub fn get(&self, id: Handle) -> Option<u32> {
        if id.qdisc() != self.qdisc || id.is_none() {
            return if self.strangers > 0 { self.get_stranger(id) } else { None };
        }
        if let Some(index) = self.row.get(id.minor()) {
            return Some(index);
        }
        let at = self.place(id)?;
        self.pages.get(at).copied().filter(|index| *index != NONE)
    }

    /// The index of a class of the qdisc's own whose number is in a row, as most do.
    #[inline]
    pub fn quick(&self, id: Handle) -> Option<u32> {
        if id.qdisc() == self.qdisc { self.row.get(id.minor()) } else { None }
    }

    /// Whether an id alone shows that it names no class of this qdisc.
    #[inline]
    pub fn is_foreign(&self, id: Handle) -> bool {
        id.qdisc() != self.qdisc && self.strangers == 0
    }

    /// Where the index of this qdisc's class is, or would be.
    #[inline]
    fn place(&self, id: Handle) -> Option<usize> {
        let minor = usize::from(id.minor());
        let page = (*self.page.get(minor / PAGE)? as usize).checked_sub(1)?;
        Some(page + minor % PAGE)
    }

    fn get_stranger(&self, id: Handle) -> Option<u32> {
        // It is listed, but not found by its number.
        if id.is_none() {
            return None;
        }
        let bucket = &self.buckets[bucket(id, self.buckets.len())];
        bucket.iter().find(|(class, _)| *class == id).map(|(_, index)| *index)
    }

    /// Adds a class that is not there yet.
    pub fn insert(&mut self, id: Handle, index: u32) {
        if self.qdisc.is_none() {
            self.qdisc = id.qdisc();
        }
        if !id.is_none() && id.qdisc() == self.qdisc {
            let page = usize::from(id.minor()) / PAGE;
            if self.page.len() <= page {
                self.page.resize(page + 1, 0);
            }
            if self.page[page] == 0 {
                self.page[page] = self.pages.len() as u32 + 1;
                self.pages.resize(self.pages.len() + PAGE, NONE);
            }
            if let Some(at) = self.place(id) {
                self.pages[at] = index;
            }
            self.row.insert(id.minor(), index);
        } else {
            self.strangers += 1;
        }
        let at = bucket(id, self.buckets.len());
        self.buckets[at].insert(0, (id, index));
        self.len += 1;
    }

    /// Doubles the table when it is more than three quarters full. Called after an insertion is complete.
    pub fn grow(&mut self) {
        let size = self.buckets.len();
        if self.len * 4 <= size * 3 {
            return;
        }
        let mut grown: Vec<Vec<(Handle, u32)>> = vec![Vec::new(); size * 2];
        for entry in self.buckets.iter().flatten() {
            grown[bucket(entry.0, size * 2)].insert(0, *entry);
        }
        self.buckets = grown;
    }

    /// Takes a class out.
    pub fn remove(&mut self, id: Handle) {
        let at = bucket(id, self.buckets.len());
        let before = self.buckets[at].len();
        self.buckets[at].retain(|(class, _)| *class != id);
        let gone = before - self.buckets[at].len();
        self.len -= gone;
        if !id.is_none() && id.qdisc() == self.qdisc {
            if let Some(at) = self.place(id) {
                self.pages[at] = NONE;
            }
            self.row.remove(id.minor());
        } else {
            self.strangers -= gone;
        }
    }

    /// All, in listing order.
    pub fn iter(&self) -> impl Iterator<Item = (Handle, u32)> + '_ {
        self.buckets.iter().flatten().copied()
    }
}

fn bucket(id: Handle, size: usize) -> usize {
    let x = id.0 ^ (id.0 >> 8);
    let x = x ^ (x >> 4);
    x as usize & (size - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use tidegate_packet::Seeded;

    #[test]
    fn finds_what_an_ordered_map_finds() {
        let mut random = Seeded::new(3);
        let qdisc = Handle::new(7, 0);
        for _ in 0..50 {
            let (mut hash, mut model, mut free) = (ClassHash::default(), BTreeMap::new(), Vec::new());
            for n in 0..400_u32 {
                // Rows of numbers with gaps, and indices that are used again, as qdiscs give them.
                let minor =
                    if random.next().is_multiple_of(8) { (random.next() % 300) as u16 } else { n as u16 };
                let id = qdisc.class(minor);
                if let Some(index) = model.remove(&id) {
                    hash.remove(id);
                    free.push(index);
                } else {
                    let index = free.pop().unwrap_or(model.len() as u32);
                    model.insert(id, index);
                    hash.insert(id, index);
                }
                for minor in 0..420 {
                    let id = qdisc.class(minor);
                    assert_eq!(hash.get(id), model.get(&id).copied(), "{id} after {n} steps");
                }
            }
        }
    }
}
