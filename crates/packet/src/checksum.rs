//! The Internet's checksum (RFC 1071), and how it changes when octets under it change (RFC 1624).

/// A sum of 16-bit words; what is carried out is added again at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum(u64);

impl Sum {
    /// With these octets, the first of which begins a word.
    #[must_use]
    pub(crate) fn with(self, octets: &[u8]) -> Sum {
        let words = octets.chunks(2).map(|word| u64::from(word[0]) << 8 | word.get(1).map_or(0, |low| u64::from(*low)));
        Sum(self.0 + words.sum::<u64>())
    }

    /// With a word.
    #[must_use]
    pub(crate) fn with_word(self, word: u16) -> Sum {
        Sum(self.0 + u64::from(word))
    }

    /// All of it in one word.
    pub(crate) fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// What is written into a header.
    pub(crate) fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// A checksum after octets that it covers became others, as many and as aligned.
pub(crate) fn adjusted(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    let gone = old.chunks(2).map(|word| u16::from(word[0]) << 8 | word.get(1).map_or(0, |low| u16::from(*low)));
    let kept = gone.fold(Sum::default().with_word(!checksum), |sum, word| sum.with_word(!word));
    kept.with(new).checksum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_carried_over_as_if_all_were_summed_anew() {
        let mut octets: [u8; 20] = core::array::from_fn(|at| (at * 37 + 11) as u8);
        let before = Sum::default().with(&octets).checksum();
        let old = octets;
        octets[4..8].copy_from_slice(&[0xff, 0x00, 0x12, 0x34]);
        assert_eq!(adjusted(before, &old[4..8], &octets[4..8]), Sum::default().with(&octets).checksum());
        // RFC 1624 section 4: 0x5555 becomes 0x3285 under 0xdd2f.
        assert_eq!(adjusted(0xdd2f, &[0x55, 0x55], &[0x32, 0x85]), 0x0000);
    }
}
