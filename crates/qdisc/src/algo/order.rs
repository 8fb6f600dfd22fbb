//! Entries in order of a key, first come first among equals; and the least value of the first ones, or of
//! all, at once.
//!
//! A treap: a search tree over the keys that is a heap over a scramble of the slots' numbers, so it is as
//! balanced as chance makes it and the same on any machine. Each node knows the least value below it. Many
//! trees share one table, because an entry is in one tree only.

use alloc::vec::Vec;

const NIL: u32 = u32::MAX;

/// One tree: its root.
#[derive(Clone, Copy, Debug)]
pub struct Ordered {
    root: u32,
}

impl Default for Ordered {
    fn default() -> Ordered {
        Ordered { root: NIL }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    /// Order of arrival, among equal keys.
    arrival: u64,
    value: u64,
    /// The least value here and below.
    least: u64,
    left: u32,
    right: u32,
    inside: bool,
}

const ABSENT: Entry =
    Entry { key: 0, arrival: 0, value: u64::MAX, least: u64::MAX, left: NIL, right: NIL, inside: false };

/// The table of entries, by slot.
#[derive(Debug, Default)]
pub struct Orders {
    entries: Vec<Entry>,
    arrivals: u64,
}

impl Orders {
    /// Makes space for slots below `size`.
    pub fn reserve(&mut self, size: usize) {
        if self.entries.len() < size {
            self.entries.resize(size, ABSENT);
        }
    }

    /// Does the entry are in a tree?
    pub fn is_inside(&self, at: u32) -> bool {
        self.entries.get(at as usize).is_some_and(|entry| entry.inside)
    }

    /// Puts in an entry that is in no tree, behind those of the same key.
    pub fn insert(&mut self, tree: &mut Ordered, at: u32, key: u64, value: u64) {
        self.arrivals += 1;
        self.insert_as(tree, at, key, self.arrivals, value);
    }

    fn insert_as(&mut self, tree: &mut Ordered, at: u32, key: u64, arrival: u64, value: u64) {
        self.reserve(at as usize + 1);
        self.entries[at as usize] =
            Entry { key, arrival, value, least: value, left: NIL, right: NIL, inside: true };
        let (before, after) = self.split(tree.root, (key, arrival));
        let front = self.join(before, at);
        tree.root = self.join(front, after);
    }

    /// Takes an entry of this tree out; returns whether it was there.
    pub fn remove(&mut self, tree: &mut Ordered, at: u32) -> bool {
        if !self.is_inside(at) {
            return false;
        }
        tree.root = self.without(tree.root, at);
        self.entries[at as usize].inside = false;
        true
    }

    /// Gives an entry of this tree another value; it keeps its place.
    pub fn set_value(&mut self, tree: &mut Ordered, at: u32, value: u64) {
        if self.remove(tree, at) {
            let Entry { key, arrival, .. } = self.entries[at as usize];
            self.insert_as(tree, at, key, arrival, value);
        }
    }

    /// The first entry.
    pub fn first(&self, tree: Ordered) -> Option<u32> {
        let mut at = tree.root;
        while at != NIL && self.entries[at as usize].left != NIL {
            at = self.entries[at as usize].left;
        }
        (at != NIL).then_some(at)
    }

    /// The last entry.
    pub fn last(&self, tree: Ordered) -> Option<u32> {
        let mut at = tree.root;
        while at != NIL && self.entries[at as usize].right != NIL {
            at = self.entries[at as usize].right;
        }
        (at != NIL).then_some(at)
    }

    /// The least value of all.
    pub fn least(&self, tree: Ordered) -> Option<u64> {
        (tree.root != NIL).then(|| self.least_below(tree.root))
    }

    /// The first entry whose value is at most `limit`.
    pub fn first_within(&self, tree: Ordered, limit: u64) -> Option<u32> {
        let mut at = tree.root;
        while self.least_below(at) <= limit && at != NIL {
            let entry = &self.entries[at as usize];
            if entry.left != NIL && self.least_below(entry.left) <= limit {
                at = entry.left;
            } else if entry.value <= limit {
                return Some(at);
            } else {
                at = entry.right;
            }
        }
        None
    }

    /// Of the entries whose key is at most `limit` the one with the least value; of equals the first.
    pub fn least_up_to(&self, tree: Ordered, limit: u64) -> Option<u32> {
        let (mut at, mut best) = (tree.root, None);
        while at != NIL {
            let entry = &self.entries[at as usize];
            if entry.key > limit {
                at = entry.left;
                continue;
            }
            // All on the left count, and come first.
            let better =
                |value: u64, best: &Option<(u64, u32, bool)>| best.is_none_or(|(least, ..)| value < least);
            if entry.left != NIL && better(self.least_below(entry.left), &best) {
                best = Some((self.least_below(entry.left), entry.left, true));
            }
            if better(entry.value, &best) {
                best = Some((entry.value, at, false));
            }
            at = entry.right;
        }
        match best? {
            (_, at, false) => Some(at),
            (value, below, true) => self.first_within(Ordered { root: below }, value),
        }
    }

    fn least_below(&self, at: u32) -> u64 {
        if at == NIL { u64::MAX } else { self.entries[at as usize].least }
    }

    fn refresh(&mut self, at: u32) {
        let Entry { left, right, value, .. } = self.entries[at as usize];
        let least = value.min(self.least_below(left)).min(self.least_below(right));
        self.entries[at as usize].least = least;
    }

    /// Cuts a tree in two: what comes before a place, and the rest.
    fn split(&mut self, at: u32, place: (u64, u64)) -> (u32, u32) {
        if at == NIL {
            return (NIL, NIL);
        }
        let Entry { key, arrival, left, right, .. } = self.entries[at as usize];
        if (key, arrival) < place {
            let (before, after) = self.split(right, place);
            self.entries[at as usize].right = before;
            self.refresh(at);
            (at, after)
        } else {
            let (before, after) = self.split(left, place);
            self.entries[at as usize].left = after;
            self.refresh(at);
            (before, at)
        }
    }

    /// Makes one tree of two, of which the first comes before the second.
    fn join(&mut self, before: u32, after: u32) -> u32 {
        if before == NIL || after == NIL {
            return if before == NIL { after } else { before };
        }
        if scramble(before) > scramble(after) {
            let right = self.join(self.entries[before as usize].right, after);
            self.entries[before as usize].right = right;
            self.refresh(before);
            before
        } else {
            let left = self.join(before, self.entries[after as usize].left);
            self.entries[after as usize].left = left;
            self.refresh(after);
            after
        }
    }

    /// A tree without one of its entries.
    fn without(&mut self, top: u32, at: u32) -> u32 {
        if top == NIL {
            return NIL;
        }
        let Entry { key, arrival, left, right, .. } = self.entries[top as usize];
        if top == at {
            return self.join(left, right);
        }
        let gone = &self.entries[at as usize];
        if (gone.key, gone.arrival) < (key, arrival) {
            let left = self.without(left, at);
            self.entries[top as usize].left = left;
        } else {
            let right = self.without(right, at);
            self.entries[top as usize].right = right;
        }
        self.refresh(top);
        top
    }
}

/// A number that looks random, and is another for every slot.
fn scramble(at: u32) -> u64 {
    let x = (u64::from(at) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 27)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_packet::Seeded;

    /// The same order kept as a plain list, to compare with.
    #[derive(Default)]
    struct Model(Vec<(u64, u64, u32, u64)>);

    impl Model {
        fn sorted(&mut self) -> &[(u64, u64, u32, u64)] {
            self.0.sort_unstable();
            &self.0
        }
    }

    #[test]
    fn agrees_with_a_sorted_list() {
        let mut random = Seeded::new(11);
        let (mut orders, mut trees) = (Orders::default(), [Ordered::default(); 2]);
        let mut models = [Model::default(), Model::default()];
        for step in 0..20_000u64 {
            let (at, which) = ((random.next() % 60) as u32, (random.next() % 2) as usize);
            let (tree, model) = (&mut trees[at as usize % 2], &mut models[at as usize % 2]);
            let (key, value) = (random.next() % 20, random.next() % 20);
            match random.next() % 3 {
                0 if !orders.is_inside(at) => {
                    orders.insert(tree, at, key, value);
                    model.0.push((key, step, at, value));
                }
                1 => {
                    let before = model.0.len();
                    model.0.retain(|entry| entry.2 != at);
                    assert_eq!(orders.remove(tree, at), model.0.len() < before);
                }
                _ => {
                    orders.set_value(tree, at, value);
                    model.0.iter_mut().filter(|entry| entry.2 == at).for_each(|entry| entry.3 = value);
                }
            }
            let (tree, list, limit) = (trees[which], models[which].sorted(), random.next() % 20);
            assert_eq!(orders.first(tree), list.first().map(|entry| entry.2));
            assert_eq!(orders.last(tree), list.last().map(|entry| entry.2));
            assert_eq!(orders.least(tree), list.iter().map(|entry| entry.3).min());
            let within = list.iter().find(|entry| entry.3 <= limit).map(|entry| entry.2);
            assert_eq!(orders.first_within(tree, limit), within);
            let least =
                list.iter().filter(|entry| entry.0 <= limit).min_by_key(|entry| entry.3).map(|entry| entry.2);
            assert_eq!(orders.least_up_to(tree, limit), least);
        }
    }
}
