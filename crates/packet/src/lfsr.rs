//! LFSR113 (L'Ecuyer 1999, "Tables of maximally equidistributed combined LFSR generators"), as Linux seeds it
//! for one user.

/// The generator: four shift registers, whose outputs are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lfsr113([u32; 4]);

/// Of each register: two shifts of the feedback, the bits that are kept, and their shift.
const REGISTERS: [(u32, u32, u32, u32); 4] = [(6, 13, 1, 18), (2, 27, 3, 2), (13, 21, 4, 7), (3, 12, 7, 13)];

impl Lfsr113 {
    /// As a 64-bit seed begins it.
    pub fn new(seed: u64) -> Lfsr113 {
        let mixed = ((seed >> 32) ^ (seed << 10) ^ seed) as u32;
        // A register whose kept bits are all 0 would stay so.
        Lfsr113(REGISTERS.map(|(_, _, unused, _)| {
            let least = 1 << unused;
            if mixed < least { mixed + least } else { mixed }
        }))
    }

    /// The next 32 bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        for (state, (first, second, unused, shift)) in self.0.iter_mut().zip(REGISTERS) {
            let feedback = ((*state << first) ^ *state) >> second;
            *state = ((*state & (u32::MAX << unused)) << shift) ^ feedback;
        }
        self.0.iter().fold(0, |all, state| all ^ state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux 7.2 with this seed and `netem delay 5ms 3ms loss 10%`: loss and jitter take turns.
    #[test]
    fn draws_are_those_of_linux() {
        let mut random = Lfsr113::new(10_451_216_379_200_822_465);
        let jitters = [(); 8].map(|()| random.next_u32() % 6_000_000);
        assert_eq!(jitters, [2313960, 467698, 499908, 1916987, 2830330, 3417477, 3598736, 2875331]);
    }
}
