//! Sets of small numbers that find their next member at once: a tree of 64-way bitmaps.
//!
//! The idea is that of Eiffel (NSDI 2019): ranks are integers, so the order is in the bits.

use alloc::vec;
use alloc::vec::Vec;

/// A set of numbers below its size.
#[derive(Clone, Debug, Default)]
pub struct BitTree {
    /// `levels[0]` has a bit per number, each further level a bit per word of the one below.
    levels: Vec<Vec<u64>>,
}

impl BitTree {
    /// Makes room for numbers below `size` if there is less; what is in stays in.
    pub fn reserve(&mut self, size: usize) {
        let words = size.div_ceil(64).max(1);
        if self.levels.first().is_some_and(|l| l.len() >= words) {
            return;
        }
        let old: Vec<u32> = self.iter().collect();
        self.levels.clear();
        let mut words = words;
        loop {
            self.levels.push(vec![0; words]);
            if words == 1 {
                break;
            }
            words = words.div_ceil(64);
        }
        for member in old {
            self.insert(member);
        }
    }

    /// Takes all out.
    pub fn clear(&mut self) {
        for level in &mut self.levels {
            level.fill(0);
        }
    }

    /// None in it?
    pub fn is_empty(&self) -> bool {
        self.levels.last().is_none_or(|top| top[0] == 0)
    }

    /// Puts a number in; it must be below the reserved size.
    #[inline]
    pub fn insert(&mut self, member: u32) {
        let mut at = member as usize;
        for level in &mut self.levels {
            level[at / 64] |= 1 << (at % 64);
            at /= 64;
        }
    }

    /// Takes a number out.
    #[inline]
    pub fn remove(&mut self, member: u32) {
        let mut at = member as usize;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
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
        // Up until a word has a bit at or after the place, then down along first bits.
        for (height, level) in self.levels.iter().enumerate() {
            let rest = level.get(at / 64).map_or(0, |word| word & (u64::MAX << (at % 64)));
            if rest != 0 {
                let mut found = at / 64 * 64 + rest.trailing_zeros() as usize;
                for below in self.levels[..height].iter().rev() {
                    found = found * 64 + below[found].trailing_zeros() as usize;
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
        let mut draws = Seeded::new(7);
        for size in [1u32, 63, 64, 65, 4096, 5000, 300_000] {
            let (mut bits, mut model) = (BitTree::default(), BTreeSet::new());
            bits.reserve(size as usize);
            for _ in 0..2000 {
                let n = (draws.next() % u64::from(size)) as u32;
                if draws.next() % 3 == 0 {
                    bits.remove(n);
                    model.remove(&n);
                } else {
                    bits.insert(n);
                    model.insert(n);
                }
                let from = (draws.next() % u64::from(size)) as u32;
                assert_eq!(bits.next(from), model.range(from..).next().copied(), "size {size} from {from}");
                assert_eq!(bits.is_empty(), model.is_empty());
            }
        }
    }
}
