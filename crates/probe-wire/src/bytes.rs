//! Numbers as bytes: fixed ones with the most significant byte first, others in as few as they need
//! (LEB128, signed ones in zigzag).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Bytes that are no valid message, or more than is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl Malformed {
    /// The other side speaks another version.
    pub const VERSION: Malformed =
        Malformed("another version of tidegate's protocol: have the same tidegate at both ends");
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not what was agreed: {}", self.0)
    }
}

impl core::error::Error for Malformed {}

/// Reads from the front of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (front, rest) = self.0.split_at_checked(count).ok_or(Malformed("it ends too early"))?;
        self.0 = rest;
        Ok(front)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (front, rest) = self.0.split_first_chunk().ok_or(Malformed("it ends too early"))?;
        self.0 = rest;
        Ok(*front)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// A number in as few bytes as it needs.
    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                break;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed("a number is too large"))
    }

    /// Such a number that fits a smaller type.
    pub(crate) fn small<T: TryFrom<u64>>(&mut self) -> Result<T, Malformed> {
        T::try_from(self.number()?).map_err(|_| Malformed("a number is too large"))
    }

    /// A number with a sign.
    pub(crate) fn signed(&mut self) -> Result<i64, Malformed> {
        let folded = self.number()?;
        Ok((folded >> 1) as i64 ^ -((folded & 1) as i64))
    }

    /// Text with its length before it.
    pub(crate) fn text(&mut self, most: usize) -> Result<String, Malformed> {
        let length = self.small::<usize>()?;
        if length > most {
            return Err(Malformed("a text is too long"));
        }
        let text = core::str::from_utf8(self.take(length)?).map_err(|_| Malformed("a text is not UTF-8"))?;
        Ok(text.into())
    }

    /// Nothing may be left.
    pub(crate) fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed("something follows its end")) }
    }
}

/// Writes to the end of bytes.
#[derive(Debug, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8);
    }

    pub(crate) fn signed(&mut self, value: i64) {
        self.number(((value << 1) ^ (value >> 63)) as u64);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let mut writer = Writer::default();
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        let signed = [0, 1, -1, 63, -64, 64, i64::MAX, i64::MIN];
        numbers.iter().for_each(|n| writer.number(*n));
        signed.iter().for_each(|n| writer.signed(*n));
        let mut reader = Reader(&writer.0);
        assert_eq!(numbers.map(|_| reader.number()), numbers.map(Ok));
        assert_eq!(signed.map(|_| reader.signed()), signed.map(Ok));
        assert_eq!(reader.end(), Ok(()));
    }

    #[test]
    fn numbers_beyond_64_bits_are_refused() {
        assert!(Reader(&[0xff; 10]).number().is_err());
        assert!(Reader(&[0xff, 0xff]).number().is_err());
        assert!(Reader(&[0x80, 0x02]).small::<u8>().is_err());
    }

    /// Numbers in groups of seven bits, the least first (as LEB128 of DWARF 5, section 7.6), up to 64 bits.
    #[test]
    fn numbers_in_as_few_bytes_as_they_need() {
        let table: [(u64, &[u8]); 5] = [
            (0, &[0]),
            (127, &[0x7f]),
            (128, &[0x80, 1]),
            (624_485, &[0xe5, 0x8e, 0x26]),
            (u64::MAX, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
        ];
        for (number, bytes) in table {
            let mut writer = Writer::default();
            writer.number(number);
            assert_eq!(writer.0, bytes, "{number}");
            assert_eq!(Reader(bytes).number(), Ok(number));
            assert!(Reader(&bytes[..bytes.len() - 1]).number().is_err(), "cut short");
        }
        let large = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        assert_eq!(Reader(&large).number(), Err(Malformed("a number is too large")), "65 bits");
    }

    #[test]
    fn texts_have_a_bound_and_nothing_follows_the_end() {
        let text = b"\x03abcd";
        assert_eq!(Reader(text).text(3).as_deref(), Ok("abc"));
        assert_eq!(Reader(text).text(2), Err(Malformed("a text is too long")));
        assert_eq!(Reader(b"\x01\xff").text(9), Err(Malformed("a text is not UTF-8")));
        assert_eq!((Reader(b"").end(), Reader(b"x").end().is_err()), (Ok(()), true));
    }
}
