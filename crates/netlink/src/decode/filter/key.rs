//! A key of u32, which ematches have too.

use tidegate_policy::U32Key;

/// The key in these 16 bytes.
pub(super) fn key(bytes: &[u8]) -> U32Key {
    let be = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let own = |at: usize| i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    U32Key { mask: be(0), value: be(4), offset: own(8), offset_mask: own(12) }
}
