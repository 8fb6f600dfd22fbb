//! Attributes of netlink: a length, a number, bytes, and padding to four. Every message of this program to
//! the kernel is put together here, and every message of the kernel is taken apart here.

use alloc::vec::Vec;

/// Marks content that is attributes again (`NLA_F_NESTED`). Older kinds do not set it.
const NESTED: u16 = 0x8000;
/// What of an attribute's number is its number: not whether it is nested, nor its order of bytes
/// (`NLA_TYPE_MASK`).
const NUMBER: u16 = 0x3fff;
/// Bytes of an attribute's head.
const HEAD: usize = 4;

/// Appends the head of a message (`nlmsghdr`): how long it is with its head, its type, its flags, and its
/// number among those of its sender.
pub fn put_head(to: &mut Vec<u8>, length: u32, kind: u16, flags: u16, sequence: u32) {
    to.extend(length.to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(flags.to_ne_bytes());
    to.extend(sequence.to_ne_bytes());
    to.extend(0_u32.to_ne_bytes());
}

/// Appends an attribute of these bytes, padded to four.
pub fn put(to: &mut Vec<u8>, number: u16, value: &[u8]) {
    let length = u16::try_from(HEAD + value.len()).unwrap_or(u16::MAX);
    to.extend(length.to_ne_bytes());
    to.extend(number.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// The attributes in these bytes, in order: number and value. What is cut short ends them.
pub fn each(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    core::iter::from_fn(move || {
        let head = bytes.get(..HEAD)?;
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let value = bytes.get(HEAD..length)?;
        let number = u16::from_ne_bytes([head[2], head[3]]) & NUMBER;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((number, value))
    })
}

/// Attributes one after another.
///
/// ```
/// use tidegate_netlink_wire::attribute::{Attributes, read};
///
/// let mut attributes = Attributes::default();
/// attributes.text(1, "htb").u32(2, 10);
/// let found = read(attributes.bytes());
/// assert_eq!((found.text(1), found.u32(2), found.u32(3)), (Some("htb"), Some(10), None));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes(Vec<u8>);

impl Attributes {
    /// An attribute of these bytes.
    pub fn payload(&mut self, number: u16, bytes: &[u8]) -> &mut Attributes {
        put(&mut self.0, number, bytes);
        self
    }

    /// A number of 8 bits.
    pub fn u8(&mut self, number: u16, value: u8) -> &mut Attributes {
        self.payload(number, &[value])
    }

    /// A number of 16 bits.
    pub fn u16(&mut self, number: u16, value: u16) -> &mut Attributes {
        self.payload(number, &value.to_ne_bytes())
    }

    /// A number of 32 bits.
    pub fn u32(&mut self, number: u16, value: u32) -> &mut Attributes {
        self.payload(number, &value.to_ne_bytes())
    }

    /// A number of 64 bits.
    pub fn u64(&mut self, number: u16, value: u64) -> &mut Attributes {
        self.payload(number, &value.to_ne_bytes())
    }

    /// A number of 32 bits, if there is one.
    pub fn maybe(&mut self, number: u16, value: Option<u32>) -> &mut Attributes {
        if let Some(value) = value {
            self.u32(number, value);
        }
        self
    }

    /// A switch, as a number of 32 bits, if it is given.
    pub fn switch(&mut self, number: u16, on: Option<bool>) -> &mut Attributes {
        self.maybe(number, on.map(u32::from))
    }

    /// Text, ended by a zero.
    pub fn text(&mut self, number: u16, text: &str) -> &mut Attributes {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        self.payload(number, &bytes)
    }

    /// Attributes in an attribute.
    pub fn nest(&mut self, number: u16, inner: &Attributes) -> &mut Attributes {
        self.payload(number, &inner.0)
    }

    /// A nest with the flag `NLA_F_NESTED`.
    pub fn marked_nest(&mut self, number: u16, inner: &Attributes) -> &mut Attributes {
        self.payload(number | NESTED, &inner.0)
    }

    /// Puts these behind.
    pub fn append(&mut self, more: &Attributes) -> &mut Attributes {
        self.0.extend(&more.0);
        self
    }

    /// They.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// They.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Attributes that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found<'f>(Vec<(u16, &'f [u8])>);

/// Reads attributes; what is cut short ends them.
pub fn read(bytes: &[u8]) -> Found<'_> {
    Found(each(bytes).collect())
}

impl<'f> Found<'f> {
    /// The bytes of the last attribute of this number.
    pub fn get(&self, number: u16) -> Option<&'f [u8]> {
        self.0.iter().rev().find(|(known, _)| *known == number).map(|(_, bytes)| *bytes)
    }

    /// The attributes in it.
    #[must_use]
    pub fn nest(&self, number: u16) -> Found<'f> {
        self.get(number).map(read).unwrap_or_default()
    }

    /// A number of 8 bits.
    pub fn u8(&self, number: u16) -> Option<u8> {
        self.get(number).and_then(|bytes| bytes.first().copied())
    }

    /// A number of 16 bits.
    pub fn u16(&self, number: u16) -> Option<u16> {
        self.get(number).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes)
    }

    /// A switch in a number of 32 bits.
    pub fn switch(&self, number: u16) -> Option<bool> {
        self.u32(number).map(|value| value != 0)
    }

    /// A number of 32 bits.
    pub fn u32(&self, number: u16) -> Option<u32> {
        self.get(number).and_then(|bytes| bytes.try_into().ok()).map(u32::from_ne_bytes)
    }

    /// A number of 64 bits.
    pub fn u64(&self, number: u16) -> Option<u64> {
        self.get(number).and_then(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes)
    }

    /// Text up to its zero.
    pub fn text(&self, number: u16) -> Option<&'f str> {
        let bytes = self.get(number)?;
        core::str::from_utf8(bytes.split(|byte| *byte == 0).next()?).ok()
    }

    /// All of them, in order.
    pub fn all(&self) -> impl Iterator<Item = (u16, &'f [u8])> + '_ {
        self.0.iter().copied()
    }
}

/// Numbers of 32 bits one after another.
pub fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_nested() {
        let mut inner = Attributes::default();
        inner.u8(1, 7).text(2, "lo");
        assert_eq!(inner.bytes(), [5, 0, 1, 0, 7, 0, 0, 0, 7, 0, 2, 0, b'l', b'o', 0, 0]);
        let mut outer = Attributes::default();
        outer.marked_nest(3, &inner);
        assert_eq!(&outer.bytes()[..5], [20, 0, 3, 0x80, 5]);
        let found = read(outer.bytes());
        assert_eq!((found.nest(3).get(1), found.nest(3).text(2)), (Some(&[7][..]), Some("lo")));
        assert_eq!(read(&outer.bytes()[..19]).get(3), None);
        let mut flagged = Vec::new();
        put(&mut flagged, 0xc000 | 3, b"lo\0");
        assert_eq!(flagged, [7, 0, 3, 0xc0, b'l', b'o', 0, 0]);
        assert_eq!(each(&flagged).collect::<Vec<_>>(), [(3, &b"lo\0"[..])]);
    }
}
