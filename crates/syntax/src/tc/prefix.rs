//! Addresses with masks, as tc and iptables read them.

use crate::number::u32_in;
use std::net::Ipv6Addr;

/// An IPv4 prefix as tc reads it: `10/8`, `1.2.3.4/255.255`, `any`. Masks have no holes.
pub(crate) fn parse_prefix4(text: &str) -> Option<(u32, u32)> {
    let whole = |mask: &u32| mask.leading_ones() + mask.trailing_zeros() == 32 || *mask == 0;
    masked4(text, |mask| dotted(mask).filter(whole))
}

/// An IPv4 address and its mask as iptables reads them: masks are written in full, and may have holes.
pub(crate) fn parse_masked4(text: &str) -> Option<(u32, u32)> {
    masked4(text, |mask| dotted(mask).filter(|_| mask.split('.').count() == 4))
}

fn masked4(text: &str, read_mask: impl Fn(&str) -> Option<u32>) -> Option<(u32, u32)> {
    if matches!(text, "any" | "all" | "default") {
        return Some((0, 0));
    }
    let Some((address, mask)) = text.split_once('/') else { return Some((dotted(text)?, u32::MAX)) };
    let mask = match u32_in(mask, 0) {
        Some(length) => length.le(&32).then(|| prefix_mask(length))?,
        None => read_mask(mask)?,
    };
    Some((dotted(address)?, mask))
}

/// The mask of a prefix of this length.
pub(crate) fn prefix_mask(length: u32) -> u32 {
    u32::MAX.checked_shl(32 - length.min(32)).unwrap_or(0)
}

/// One to four numbers with dots; what is missing at the end is 0.
pub(crate) fn dotted(text: &str) -> Option<u32> {
    let mut bytes = [0u8; 4];
    for (count, part) in text.split('.').enumerate() {
        let slot = bytes.get_mut(count)?;
        *slot = part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok())??;
    }
    Some(u32::from_be_bytes(bytes))
}

/// An IPv6 address and its prefix length.
pub(crate) fn parse_prefix6(text: &str) -> Option<([u8; 16], u32)> {
    if matches!(text, "any" | "all" | "default") {
        return Some(([0; 16], 0));
    }
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, u32_in(length, 0).filter(|length| *length <= 128)?),
        None => (text, 128),
    };
    Some((address.parse::<Ipv6Addr>().ok()?.octets(), length))
}
