//! Draws for the fuzzer: from a seed, the same on every machine.

/// splitmix64.
pub(super) struct Draws(u64);

impl Draws {
    /// The stream of a case: seed and number decide it alone.
    pub(super) fn of_case(seed: u64, case: u64) -> Draws {
        let mut draws = Draws(seed ^ case.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        draws.next();
        draws
    }
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
    /// 0 to n - 1.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
    /// `low` to `high`, both included.
    pub(super) fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }
    /// True so many times of a hundred.
    pub(super) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
    /// One of these.
    pub(super) fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len() as u64) as usize]
    }
    /// One of these numbers.
    pub(super) fn one(&mut self, of: &[u64]) -> u64 {
        of[self.below(of.len() as u64) as usize]
    }
}
