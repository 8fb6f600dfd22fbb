//! Mutations without coverage: the short run in CI, the same on every machine.

/// Draws mutations of inputs; the same seed draws the same ones.
#[derive(Clone, Debug)]
pub struct Mutator(u64);

/// Values at which lengths and counts go wrong.
const EDGES: [&[u8]; 12] = [
    &[0; 4],
    &[0xff; 4],
    &[0xff; 8],
    &[0x7f, 0xff, 0xff, 0xff],
    &[0xff, 0xff, 0xff, 0x7f],
    b"4294967295",
    b"18446744073709551616",
    b"-1",
    b"1e999",
    "é".as_bytes(),
    "→\u{301}".as_bytes(),
    b"\0",
];

impl Mutator {
    /// Begins with a seed.
    #[must_use]
    pub fn new(seed: u64) -> Mutator {
        Mutator(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    /// A number below `bound`, which must not be 0 (SplitMix64).
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut drawn = self.0;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((drawn ^ (drawn >> 31)) % bound as u64) as usize
    }

    /// A mutation of `input`: one to four changes; `other` is spliced in now and then.
    #[must_use]
    pub fn mutate(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=self.below(4) {
            self.change(&mut bytes, other);
        }
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(bytes.len() + 1);
        let to = at + self.below(bytes.len() - at + 1).min(64);
        match self.below(7) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..to)),
            2 => {
                let piece = bytes[at..to].to_vec();
                bytes.splice(at..at, piece);
            }
            3 => {
                let from = self.below(other.len() + 1);
                let piece = &other[from..(from + 48).min(other.len())];
                bytes.splice(at..to, piece.iter().copied());
            }
            4 => {
                let edge = EDGES[self.below(EDGES.len())];
                let end = (at + edge.len()).min(bytes.len());
                bytes.splice(at..end, edge.iter().copied());
            }
            _ => {
                let drawn = self.below(256) as u8;
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = drawn;
                }
            }
        }
    }
}
