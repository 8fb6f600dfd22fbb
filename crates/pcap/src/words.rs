//! Words of a file in one of the two byte orders.

/// Bytes, and how their words are put together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'b> {
    pub(crate) bytes: &'b [u8],
    pub(crate) big: bool,
}

impl<'b> Words<'b> {
    /// A word of four bytes; 0 where there is none.
    pub(crate) fn word(&self, at: usize) -> u32 {
        let Some(word) = self.bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) else { return 0 };
        if self.big { u32::from_be_bytes(*word) } else { u32::from_le_bytes(*word) }
    }

    /// A word of two bytes; 0 where there is none.
    pub(crate) fn u16_at(&self, at: usize) -> u16 {
        let Some(half) = self.bytes.get(at..).and_then(|rest| rest.first_chunk::<2>()) else { return 0 };
        if self.big { u16::from_be_bytes(*half) } else { u16::from_le_bytes(*half) }
    }

    /// A number of eight bytes; 0 where there is none.
    pub(crate) fn long(&self, at: usize) -> u64 {
        let (first, second) = (u64::from(self.word(at)), u64::from(self.word(at + 4)));
        if self.big { first << 32 | second } else { second << 32 | first }
    }

    /// The options from `at` on: code and value.
    pub(crate) fn options(self, at: usize) -> impl Iterator<Item = (u16, Words<'b>)> {
        let mut at = at;
        core::iter::from_fn(move || {
            let (code, length) = (self.u16_at(at), usize::from(self.u16_at(at + 2)));
            let value = self.bytes.get(at + 4..at + 4 + length)?;
            at += 4 + length.next_multiple_of(4);
            (code != 0).then_some((code, Words { bytes: value, big: self.big }))
        })
    }
}
