//! What several kinds of filter are configured with, and u32.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use tidegate_packet::Handle;

/// The device that packets must have come in by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indev {
    /// Its name, as given; in a dump, as it is called now.
    pub name: String,
    /// Its number on the machine; [`crate::action::Act::NOWHERE`] until the machine has looked it up, and
    /// when it is gone.
    pub device: u32,
}

impl Indev {
    /// A device of this name, which is yet to be looked up.
    pub fn named(name: &str) -> Indev {
        Indev { name: name.to_owned(), device: crate::action::Act::NOWHERE }
    }

    /// Did a packet come in by it that notes this of itself (a device's number, plus one)?
    pub fn is(&self, came_in: u16) -> bool {
        self.device.checked_add(1) == Some(u32::from(came_in))
    }
}

/// One comparison of u32: `(word at offset) & mask == value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct U32Key {
    /// The value, in network order.
    pub value: u32,
    /// The bits of the word that are compared.
    pub mask: u32,
    /// Bytes from the network header (negative: before it).
    pub offset: i32,
    /// -1: the offset counts from the header after the network header (`nexthdr+`), else 0.
    pub offset_mask: i32,
}

/// u32: 32-bit words of the packet are compared (tc-u32(8)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct U32Params {
    /// Where matching packets go.
    pub classid: Option<Handle>,
    /// All must hold; empty with `match u32 0 0` is one key of zero mask.
    pub keys: Vec<U32Key>,
    /// The firewall mark must also match: (value, mask).
    pub mark: Option<(u32, u32)>,
    /// The device that packets must have come in by.
    pub indev: Option<Indev>,
    /// The bucket to go in, by its handle (`2:1f:`); 0 = the preference's root table.
    pub table: u32,
    /// Not a filter but a hash table of so many buckets.
    pub divisor: Option<u32>,
    /// What matches is shown to the filters of the table of this number.
    pub link: Option<u32>,
    /// Which bucket of it: the word at this offset (second), in the bits of a mask (first), shifted down.
    pub hash: Option<(u32, i32)>,
    /// Where the header begins that the linked table's filters are about.
    pub offset: U32Offset,
    /// No card shall do its work.
    pub skip_hw: bool,
}

/// How far on the next header begins (`offset …`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct U32Offset {
    /// This many bytes always.
    pub plus: u16,
    /// Plus the length in this field, if one is given.
    pub field: Option<U32OffsetField>,
    /// All offsets count from there then; else those with `nexthdr+`.
    pub eat: bool,
}

/// A field of 16 bits that holds the length of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct U32OffsetField {
    /// The bits of the field that count.
    pub mask: u16,
    /// Shifted down by so many.
    pub shift: u8,
    /// The field's offset in bytes.
    pub at: i32,
}
