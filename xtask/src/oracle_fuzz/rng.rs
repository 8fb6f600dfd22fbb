//! A small generator of random numbers, ours so that a (seed, number) means the same case for ever.

/// `SplitMix64` (Steele, Lea, Flood 2014): one 64-bit word of state, good enough for choosing cases.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// The stream of case `number` of `seed`.
    pub(crate) fn of_case(seed: u64, number: u64) -> Self {
        let mut rng = Self(seed ^ number.wrapping_mul(0xd134_2543_de82_ef95));
        rng.next();
        rng.next();
        rng
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 .. n-1; 0 for n = 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.next() % n }
    }

    /// Both ends included.
    pub(crate) fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True in `percent` of 100 cases.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Evenly on a logarithmic scale, both ends included: small and large values are equally likely.
    pub(crate) fn log_range(&mut self, low: u64, high: u64) -> u64 {
        let low = low.max(1);
        let mut top = low;
        let mut steps = Vec::new();
        while top < high && steps.len() < 64 {
            steps.push(top);
            top = top.saturating_mul(2);
        }
        if steps.is_empty() {
            return low;
        }
        let from = *self.pick(&steps);
        self.range(from, from.saturating_mul(2).min(high))
    }

    /// One of a list that is not empty.
    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        let at = self.below(list.len() as u64) as usize;
        &list[at]
    }

    /// The place of one of `weights`, in proportion to them.
    pub(crate) fn weighted(&mut self, weights: &[u64]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (at, weight) in weights.iter().enumerate() {
            if left < *weight {
                return at;
            }
            left -= weight;
        }
        0
    }
}
