//! Sets and maps over strings of bits, as decision diagrams (Bryant, "Graph-Based Algorithms for Boolean
//! Function Manipulation", 1986; with several terminals: Fujita, McGeer and Yang, 1997).
//!
//! A diagram tests bits in ascending order of their number; equal diagrams are one node, so that equality and
//! emptiness are a look at a number. A [`Set`] ends in no or yes, a [`Map`] in its owner's numbers (Bryant
//! 1986). Nodes are never freed: a store is made for one question and thrown away. It has a limited number of
//! nodes; beyond, every operation returns [`TooLarge`] and nothing is guessed.

use std::collections::BTreeMap;

/// Nodes of a store at most: some 60 MB with its tables.
const MOST_NODES: usize = 1 << 21;
/// The most steps of a store, in each of which a node is looked up: some seconds. A diagram may stay small
/// while it is used often.
const MOST_STEPS: u64 = 1 << 24;
/// Entries of the computed table at first, and at most.
const COMPUTED: (usize, usize) = (1 << 12, 1 << 19);
const TERMINAL: u32 = 1 << 31;
const NO: u32 = TERMINAL;
const YES: u32 = TERMINAL | 1;
/// The computed table's name for if-then-else; walks over maps have numbers above.
const CHOOSE: u32 = 0;

/// The question is larger than the store may become: it is not decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// A set of bit strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Set(u32);

/// A number for each bit string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Map(u32);

impl Set {
    /// Nothing.
    pub(crate) const NONE: Set = Set(NO);
    /// Everything.
    pub(crate) const ALL: Set = Set(YES);

    /// Is nothing in it?
    pub(crate) fn is_empty(self) -> bool {
        self == Set::NONE
    }
}

impl Map {
    /// The map with one number for all bit strings.
    pub(crate) const fn constant(number: u32) -> Map {
        Map(TERMINAL | number)
    }
}

/// What a bit must be.
pub(crate) type Literal = (u16, bool);

#[derive(Clone, Copy, Debug)]
struct Node {
    bit: u16,
    low: u32,
    high: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Computed {
    key: [u32; 4],
    result: u32,
}

/// Where diagrams live.
#[derive(Debug)]
pub(crate) struct Store {
    nodes: Vec<Node>,
    /// Nodes by their content: open addressing, at most half full; 0 = free, else the node's number plus one.
    unique: Vec<u32>,
    /// Results by question; a newer one takes an older one's place.
    computed: Vec<Computed>,
    walks: u32,
    limit: usize,
    steps: u64,
    most_steps: u64,
}

impl Default for Store {
    fn default() -> Store {
        Store::with_limit(MOST_NODES)
    }
}

impl Store {
    /// A store of so many nodes at most.
    pub(crate) fn with_limit(limit: usize) -> Store {
        let empty = Computed { key: [u32::MAX; 4], result: NO };
        Store {
            nodes: Vec::new(),
            unique: vec![0; 1 << 12],
            computed: vec![empty; COMPUTED.0],
            walks: CHOOSE,
            limit,
            steps: 0,
            most_steps: MOST_STEPS,
        }
    }

    /// Another limit of steps.
    #[cfg(test)]
    fn with_most_steps(self, most_steps: u64) -> Store {
        Store { most_steps, ..self }
    }

    /// What is in both.
    pub(crate) fn and(&mut self, a: Set, b: Set) -> Result<Set, TooLarge> {
        let (a, b) = if a.0 < b.0 { (a, b) } else { (b, a) };
        self.choose(a.0, b.0, NO).map(Set)
    }

    /// What is in either.
    pub(crate) fn or(&mut self, a: Set, b: Set) -> Result<Set, TooLarge> {
        let (a, b) = if a.0 < b.0 { (a, b) } else { (b, a) };
        self.choose(a.0, YES, b.0).map(Set)
    }

    /// What is in the first and not in the second.
    pub(crate) fn minus(&mut self, a: Set, b: Set) -> Result<Set, TooLarge> {
        self.choose(b.0, NO, a.0).map(Set)
    }

    /// The first in the test, the second elsewhere.
    pub(crate) fn either(&mut self, test: Set, yes: Set, no: Set) -> Result<Set, TooLarge> {
        self.choose(test.0, yes.0, no.0).map(Set)
    }

    /// What has these bits; in ascending order of their numbers, each once.
    pub(crate) fn cube(&mut self, literals: &[Literal]) -> Result<Set, TooLarge> {
        let mut set = YES;
        for (bit, value) in literals.iter().rev() {
            set = if *value { self.node(*bit, NO, set)? } else { self.node(*bit, set, NO)? };
        }
        Ok(Set(set))
    }

    /// Where the number that bits `from..from + width` spell, the highest first, lies between the two, both
    /// included.
    pub(crate) fn range(&mut self, from: u16, width: u16, low: u64, high: u64) -> Result<Set, TooLarge> {
        let (mut least, mut most) = (YES, YES);
        for place in 0..width {
            let bit = from + width - 1 - place;
            least =
                if low >> place & 1 == 1 { self.node(bit, NO, least)? } else { self.node(bit, least, YES)? };
            most =
                if high >> place & 1 == 1 { self.node(bit, YES, most)? } else { self.node(bit, most, NO)? };
        }
        self.and(Set(least), Set(most))
    }

    /// One of its bit strings: bits that do not matter are missing, and where both values would do, `prefer`
    /// decides.
    pub(crate) fn pick(&self, set: Set, prefer: impl Fn(u16) -> bool) -> Option<Vec<Literal>> {
        let (mut at, mut literals) = (set.0, Vec::new());
        while at < TERMINAL {
            let Node { bit, low, high } = self.nodes[at as usize];
            let value = if low == NO || high == NO { low == NO } else { prefer(bit) };
            literals.push((bit, value));
            at = if value { high } else { low };
        }
        (at == YES).then_some(literals)
    }

    /// Is the string with these bits in the set?
    pub(crate) fn contains(&self, set: Set, bit_of: impl Fn(u16) -> bool) -> bool {
        let mut at = set.0;
        while at < TERMINAL {
            let Node { bit, low, high } = self.nodes[at as usize];
            at = if bit_of(bit) { high } else { low };
        }
        at == YES
    }

    /// The map that is one within a set, and another elsewhere.
    pub(crate) fn either_map(&mut self, within: Set, one: Map, other: Map) -> Result<Map, TooLarge> {
        // No and yes are the numbers 0 and 1, and a set is a map to these.
        self.choose(within.0, one.0, other.0).map(Map)
    }

    /// The map with another number within a set, as a function of the one it had.
    pub(crate) fn alter(
        &mut self,
        map: Map,
        within: Set,
        change: &mut dyn FnMut(u32) -> u32,
    ) -> Result<Map, TooLarge> {
        self.walks += 1;
        let walk = self.walks;
        let end = &mut |within: u32, map: u32| match (within, map) {
            (NO, _) => Some(map),
            (YES, TERMINAL..) => Some(TERMINAL | change(map & !TERMINAL)),
            _ => None,
        };
        self.together(walk, within.0, map.0, end).map(Map)
    }

    /// What of a set has a number that a condition holds for.
    pub(crate) fn select(
        &mut self,
        map: Map,
        within: Set,
        wanted: &mut dyn FnMut(u32) -> bool,
    ) -> Result<Set, TooLarge> {
        self.walks += 1;
        let walk = self.walks;
        let end = &mut |within: u32, map: u32| match (within, map) {
            (NO, _) => Some(NO),
            (_, TERMINAL..) => Some(if wanted(map & !TERMINAL) { within } else { NO }),
            _ => None,
        };
        self.together(walk, within.0, map.0, end).map(Set)
    }

    /// A set by the groups that its numbers fall in, in their order.
    pub(crate) fn split(
        &mut self,
        map: Map,
        within: Set,
        group: &dyn Fn(u32) -> u32,
    ) -> Result<BTreeMap<u32, Set>, TooLarge> {
        self.walks += 1;
        let walk = self.walks;
        let mut parts = Vec::new();
        let whole = self.parted(walk, within.0, map.0, group, &mut parts)? as usize;
        Ok(parts.swap_remove(whole).into_iter().map(|(number, set)| (number, Set(set))).collect())
    }

    fn choose(&mut self, test: u32, yes: u32, no: u32) -> Result<u32, TooLarge> {
        match (test, yes, no) {
            (YES, _, _) => return Ok(yes),
            (NO, _, _) => return Ok(no),
            _ if yes == no => return Ok(yes),
            (_, YES, NO) => return Ok(test),
            // Within the test it holds, elsewhere it does not.
            _ if yes == test => return self.choose(test, YES, no),
            _ if no == test => return self.choose(test, yes, NO),
            _ => {}
        }
        let key = [CHOOSE, test, yes, no];
        if let Some(result) = self.recall(key) {
            return Ok(result);
        }
        self.step()?;
        let bit = self.bit(test).min(self.bit(yes)).min(self.bit(no));
        let [t, y, n] = [test, yes, no].map(|diagram| self.branches(diagram, bit));
        let low = self.choose(t.0, y.0, n.0)?;
        let high = self.choose(t.1, y.1, n.1)?;
        let result = self.node(bit, low, high)?;
        self.remember(key, result);
        Ok(result)
    }

    /// The combination of a set and a map: `end` gives the result of two nodes where it is known.
    fn together(
        &mut self,
        walk: u32,
        within: u32,
        map: u32,
        end: &mut dyn FnMut(u32, u32) -> Option<u32>,
    ) -> Result<u32, TooLarge> {
        if let Some(result) = end(within, map) {
            return Ok(result);
        }
        let key = [walk, within, map, 0];
        if let Some(result) = self.recall(key) {
            return Ok(result);
        }
        self.step()?;
        let bit = self.bit(within).min(self.bit(map));
        let [s, m] = [within, map].map(|diagram| self.branches(diagram, bit));
        let low = self.together(walk, s.0, m.0, end)?;
        let high = self.together(walk, s.1, m.1, end)?;
        let result = self.node(bit, low, high)?;
        self.remember(key, result);
        Ok(result)
    }

    /// The parts of a set, as a place in `parts`.
    fn parted(
        &mut self,
        walk: u32,
        within: u32,
        map: u32,
        group: &dyn Fn(u32) -> u32,
        parts: &mut Vec<Vec<(u32, u32)>>,
    ) -> Result<u32, TooLarge> {
        let key = [walk, within, map, 0];
        if let Some(at) = self.recall(key) {
            return Ok(at);
        }
        self.step()?;
        let whole = if within == NO {
            Vec::new()
        } else if map >= TERMINAL {
            vec![(group(map & !TERMINAL), within)]
        } else {
            let bit = self.bit(within).min(self.bit(map));
            let [s, m] = [within, map].map(|diagram| self.branches(diagram, bit));
            let low = self.parted(walk, s.0, m.0, group, parts)? as usize;
            let high = self.parted(walk, s.1, m.1, group, parts)? as usize;
            self.joined(bit, &parts[low], &parts[high])?
        };
        parts.push(whole);
        let at = parts.len() as u32 - 1;
        self.remember(key, at);
        Ok(at)
    }

    /// Two ordered lists of parts under a bit.
    fn joined(
        &mut self,
        bit: u16,
        low: &[(u32, u32)],
        high: &[(u32, u32)],
    ) -> Result<Vec<(u32, u32)>, TooLarge> {
        let (mut low, mut high) = (low.iter().peekable(), high.iter().peekable());
        let mut whole = Vec::with_capacity(low.len().max(high.len()));
        loop {
            let number = match (low.peek(), high.peek()) {
                (None, None) => return Ok(whole),
                (Some((a, _)), Some((b, _))) => *a.min(b),
                (Some((a, _)), None) => *a,
                (None, Some((b, _))) => *b,
            };
            let without = low.next_if(|part| part.0 == number).map_or(NO, |part| part.1);
            let with = high.next_if(|part| part.0 == number).map_or(NO, |part| part.1);
            whole.push((number, self.node(bit, without, with)?));
        }
    }

    /// One step more.
    fn step(&mut self) -> Result<(), TooLarge> {
        self.steps += 1;
        if self.steps > self.most_steps { Err(TooLarge) } else { Ok(()) }
    }

    /// The first bit that a diagram tests; behind all others for a terminal.
    fn bit(&self, diagram: u32) -> u16 {
        if diagram >= TERMINAL { u16::MAX } else { self.nodes[diagram as usize].bit }
    }

    /// A diagram where `bit` is 0 and where it is 1.
    fn branches(&self, diagram: u32, bit: u16) -> (u32, u32) {
        if diagram < TERMINAL {
            let node = self.nodes[diagram as usize];
            if node.bit == bit {
                return (node.low, node.high);
            }
        }
        (diagram, diagram)
    }

    /// The node with this content, made if it does not exist.
    fn node(&mut self, bit: u16, low: u32, high: u32) -> Result<u32, TooLarge> {
        if low == high {
            return Ok(low);
        }
        let wrap = self.unique.len() - 1;
        let mut at = spread([u32::from(bit), low, high, 0]) & wrap;
        while let Some(number) = (self.unique[at] as usize).checked_sub(1) {
            let node = self.nodes[number];
            if (node.bit, node.low, node.high) == (bit, low, high) {
                return Ok(number as u32);
            }
            at = (at + 1) & wrap;
        }
        if self.nodes.len() >= self.limit {
            return Err(TooLarge);
        }
        self.nodes.push(Node { bit, low, high });
        self.unique[at] = self.nodes.len() as u32;
        if self.unique.len() < 2 * self.nodes.len() {
            self.grow();
        }
        Ok(self.nodes.len() as u32 - 1)
    }

    /// Room for twice as many nodes, and for more results.
    fn grow(&mut self) {
        let size = 2 * self.unique.len();
        self.unique = vec![0; size];
        for (node, number) in self.nodes.iter().zip(1..) {
            let mut at = spread([u32::from(node.bit), node.low, node.high, 0]) & (size - 1);
            while self.unique[at] != 0 {
                at = (at + 1) & (size - 1);
            }
            self.unique[at] = number;
        }
        if self.computed.len() < size.min(COMPUTED.1) {
            let old = std::mem::take(&mut self.computed);
            self.computed = vec![Computed { key: [u32::MAX; 4], result: NO }; size.min(COMPUTED.1)];
            old.into_iter().for_each(|one| self.remember(one.key, one.result));
        }
    }

    fn recall(&self, key: [u32; 4]) -> Option<u32> {
        let one = &self.computed[spread(key) & (self.computed.len() - 1)];
        (one.key == key).then_some(one.result)
    }

    fn remember(&mut self, key: [u32; 4], result: u32) {
        let at = spread(key) & (self.computed.len() - 1);
        self.computed[at] = Computed { key, result };
    }
}

/// A place for a question, before wrapping.
fn spread(key: [u32; 4]) -> usize {
    let mixed = key.iter().fold(0u64, |mixed, word| {
        (mixed ^ u64::from(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
    });
    (mixed ^ mixed >> 29) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_packet::Seeded;

    const BITS: u16 = 8;

    /// A set and the truth about it, for each of the 256 strings.
    type Known = (Set, Vec<bool>);

    fn string(n: usize) -> impl Fn(u16) -> bool {
        move |bit| n >> (BITS - 1 - bit) & 1 == 1
    }

    fn random_cube(store: &mut Store, draws: &mut Seeded) -> Known {
        let (mask, value) = (draws.next() as usize & 0xff, draws.next() as usize & 0xff);
        let literals: Vec<Literal> =
            (0..BITS).filter(|bit| string(mask)(*bit)).map(|bit| (bit, string(value)(bit))).collect();
        let set = store.cube(&literals).expect("it is small");
        (set, (0..256).map(|n| (n ^ value) & mask == 0).collect())
    }

    fn agree(store: &Store, (set, truth): &Known) {
        for (n, truth) in truth.iter().enumerate() {
            assert_eq!(store.contains(*set, string(n)), *truth, "{n:#04x}");
        }
        assert_eq!(set.is_empty(), truth.iter().all(|matches| !matches));
    }

    #[test]
    fn sets_agree_with_brute_force() {
        let mut draws = Seeded::new(1);
        for _ in 0..200 {
            let mut store = Store::default();
            let mut known: Vec<Known> = (0..4).map(|_| random_cube(&mut store, &mut draws)).collect();
            for _ in 0..12 {
                let pick = |n: u64| n as usize % known.len();
                let (a, b) = (known[pick(draws.next())].clone(), known[pick(draws.next())].clone());
                let both = |f: fn(bool, bool) -> bool| a.1.iter().zip(&b.1).map(|(a, b)| f(*a, *b)).collect();
                let (set, truth) = match draws.next() % 4 {
                    0 => (store.and(a.0, b.0), both(|a, b| a && b)),
                    1 => (store.or(a.0, b.0), both(|a, b| a || b)),
                    2 => (store.minus(a.0, b.0), both(|a, b| a && !b)),
                    _ => (store.minus(Set::ALL, a.0), both(|a, _| !a)),
                };
                let made = (set.expect("it is small"), truth);
                agree(&store, &made);
                known.push(made);
            }
            // Equal sets are one.
            for (a, b) in known.iter().zip(known.iter().skip(1)) {
                assert_eq!(a.0 == b.0, a.1 == b.1);
            }
        }
    }

    #[test]
    fn ranges_agree_with_brute_force() {
        let mut store = Store::default();
        for (low, high) in [(0, 255), (3, 200), (7, 7), (128, 255), (0, 0), (9, 3), (64, 191)] {
            let set = store.range(0, BITS, low, high).expect("it is small");
            agree(&store, &(set, (0..256).map(|n| (low..=high).contains(&n)).collect()));
        }
    }

    #[test]
    fn what_is_picked_is_in_the_set() {
        let (mut store, mut draws) = (Store::default(), Seeded::new(2));
        for _ in 0..200 {
            let (a, b) = (random_cube(&mut store, &mut draws), random_cube(&mut store, &mut draws));
            let set = store.minus(a.0, b.0).expect("it is small");
            let wish = draws.next();
            match store.pick(set, |bit| wish >> bit & 1 == 1) {
                None => assert!(set.is_empty()),
                Some(literals) => {
                    let value = |bit| literals.contains(&(bit, true));
                    assert!(store.contains(set, value));
                }
            }
        }
    }

    #[test]
    fn a_map_tells_for_each_string_what_was_written_last() {
        let (mut store, mut draws) = (Store::default(), Seeded::new(3));
        for _ in 0..50 {
            let (mut map, mut truth) = (Map::constant(0), vec![0u32; 256]);
            for n in 1..8 {
                let (set, inside) = random_cube(&mut store, &mut draws);
                map = store.alter(map, set, &mut |old| old * 2 + n).expect("it is small");
                for (value, _) in truth.iter_mut().zip(&inside).filter(|(_, inside)| **inside) {
                    *value = *value * 2 + n;
                }
            }
            let (within, inside) = random_cube(&mut store, &mut draws);
            let odd = store.select(map, within, &mut |n| n % 2 == 1).expect("it is small");
            agree(
                &store,
                &(odd, truth.iter().zip(&inside).map(|(n, inside)| *inside && n % 2 == 1).collect()),
            );
            let parts = store.split(map, within, &|n| n % 5).expect("it is small");
            for group in 0..5 {
                let part = parts.get(&group).copied().unwrap_or(Set::NONE);
                agree(
                    &store,
                    &(part, truth.iter().zip(&inside).map(|(n, inside)| *inside && n % 5 == group).collect()),
                );
            }
        }
    }

    #[test]
    fn beyond_its_limit_a_store_decides_nothing() {
        let mut store = Store::with_limit(20);
        let mut set = Set::NONE;
        let mut draws = Seeded::new(4);
        let failed = (0..40).any(|_| {
            let literals: Vec<Literal> = (0..BITS).map(|bit| (bit, draws.next().is_multiple_of(2))).collect();
            match store.cube(&literals).and_then(|cube| store.or(set, cube)) {
                Ok(larger) => set = larger,
                Err(TooLarge) => return true,
            }
            false
        });
        assert!(failed);
    }

    #[test]
    fn beyond_its_steps_a_store_decides_nothing() {
        let mut store = Store::default().with_most_steps(50);
        let mut draws = Seeded::new(5);
        let mut set = Set::NONE;
        let requested = (0..200).find(|_| {
            let cube = random_cube(&mut store, &mut draws).0;
            store.or(set, cube).map(|larger| set = larger).is_err()
        });
        assert!(
            requested.is_some() && store.steps > 50 && store.steps < 60,
            "{requested:?}, {} steps",
            store.steps
        );
        // It continues to decide nothing, rather than something wrong.
        let (all, none) = (store.range(0, BITS, 3, 9), store.range(0, BITS, 4, 200));
        let both =
            all.and_then(|all| none.map(|none| (all, none))).and_then(|(all, none)| store.and(all, none));
        assert_eq!(both, Err(TooLarge));
    }
}
