//! Randomness as an argument.

use crate::flow::HashKey;

/// A source of random draws. Each qdisc states how wide a draw it needs, so that a recorded run can be
/// replayed draw by draw.
pub trait RandomSource {
    /// One 64-bit word of a random key.
    fn word(&mut self) -> u64;
    /// A 32-bit draw.
    fn u32(&mut self) -> u32;
    /// A 16-bit draw.
    fn u16(&mut self) -> u16;
    /// A 64-bit draw.
    fn u64(&mut self) -> u64;
    /// A uniform draw from `0..n`; 0 when `n` is 0.
    fn below(&mut self, n: u32) -> u32;
    /// A key for the flow hash: two words.
    fn key(&mut self) -> HashKey {
        let first = self.word();
        HashKey(first, self.word())
    }
}

/// A seeded stream: SplitMix64 (Steele, Lea and Flood 2014). The same seed gives the same draws on any
/// machine.
#[derive(Clone, Debug)]
pub struct Seeded(u64);

impl Seeded {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Seeded {
        Seeded(seed)
    }
    /// An independent stream for the place named by `salt`.
    pub fn fork(&self, salt: u64) -> Seeded {
        let mut derived = Seeded(self.0 ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Seeded(derived.next())
    }
    /// The next 64 bits of the stream.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// A uniform draw from 0 ≤ x < 1, with 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

impl RandomSource for Seeded {
    fn word(&mut self) -> u64 {
        self.next()
    }
    fn u32(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }
    fn u16(&mut self) -> u16 {
        (self.next() >> 48) as u16
    }
    fn u64(&mut self) -> u64 {
        self.next()
    }
    fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.u32()) * u64::from(n)) >> 32) as u32
    }
}
