//! Sets of small numbers that find their next member at once: a tree of 64-way bitmaps.
//!
//! The idea is that of Eiffel (NSDI 2019): ranks are integers, so the order is in the bits.

use alloc::vec;
use alloc::vec::Vec;

/// Levels there may be: enough for 16,777,216 numbers.
const HEIGHT: usize = 4;

/// A set of numbers below its size.
#[derive(Clone, Debug, Default)]
pub struct BitTree {
    /// First a bit per number, then for each further level a bit per word of the one below; the last level
    /// has one word.
    words: Vec<u64>,
    /// Where each level begins.
    start: [u32; HEIGHT],
    height: u8,
}

impl BitTree {
    /// Makes space for numbers below `size` (at most 64^4) if there is less; what is in stays in.
    pub fn reserve(&mut self, size: usize) {
        let lowest = size.div_ceil(64).max(1);
        let present = if self.height > 1 { self.start[1] as usize } else { usize::from(self.height) };
        if present >= lowest {
            return;
        }
        let old: Vec<u32> = self.iter().collect();
        let (mut words, mut total) = (lowest, 0);
        self.height = 0;
        for start in &mut self.start {
            *start = total as u32;
            total += words;
            self.height += 1;
            if words == 1 {
                break;
            }
            words = words.div_ceil(64);
        }
        self.words = vec![0; total];
        for member in old {
            self.insert(member);
        }
    }

    /// Takes all out.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// None in it?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words.last().is_none_or(|top| *top == 0)
    }

    fn levels(&self) -> &[u32] {
        &self.start[..usize::from(self.height).min(HEIGHT)]
    }

    /// Puts a number in; it must be below the reserved size.
    #[inline]
    pub fn insert(&mut self, member: u32) {
        let mut at = member as usize;
        for level in 0..self.levels().len() {
            self.words[self.start[level] as usize + at / 64] |= 1 << (at % 64);
            at /= 64;
        }
    }

    /// Takes a number out.
    #[inline]
    pub fn remove(&mut self, member: u32) {
        let mut at = member as usize;
        for level in 0..self.levels().len() {
            let word = &mut self.words[self.start[level] as usize + at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                return;
            }
            at /= 64;
        }
    }

    /// The smallest member that is not below `from`.
    #[inline]
    pub fn next(&self, from: u32) -> Option<u32> {
        let mut at = from as usize;
        let levels = self.levels();
        // Up until a word has a bit at or after the place, then down along first bits.
        for (height, level) in levels.iter().enumerate() {
            let end = levels.get(height + 1).map_or(self.words.len(), |next| *next as usize);
            let place = *level as usize + at / 64;
            let rest = if place < end { self.words[place] & (u64::MAX << (at % 64)) } else { 0 };
            if rest != 0 {
                let mut found = at / 64 * 64 + rest.trailing_zeros() as usize;
                for below in levels[..height].iter().rev() {
                    found = found * 64 + self.words[*below as usize + found].trailing_zeros() as usize;
                }
                return Some(found as u32);
            }
            at = at / 64 + 1;
        }
        None
    }

    /// All members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let mut from = 0;
        core::iter::from_fn(move || {
            let member = self.next(from)?;
            from = member + 1;
            Some(member)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use tidegate_packet::Seeded;

    #[test]
    fn agrees_with_an_ordered_set() {
        let mut random = Seeded::new(7);
        for size in [1u32, 63, 64, 65, 4096, 5000, 300_000] {
            let (mut bits, mut model) = (BitTree::default(), BTreeSet::new());
            bits.reserve(size as usize);
            for _ in 0..2000 {
                let n = (random.next() % u64::from(size)) as u32;
                if random.next().is_multiple_of(3) {
                    bits.remove(n);
                    model.remove(&n);
                } else {
                    bits.insert(n);
                    model.insert(n);
                }
                let from = (random.next() % u64::from(size)) as u32;
                assert_eq!(bits.next(from), model.range(from..).next().copied(), "size {size} from {from}");
                assert_eq!(bits.is_empty(), model.is_empty());
            }
        }
    }
}
