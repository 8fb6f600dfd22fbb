//! Rates and tables of sizes.

use super::message::numbers;
use alloc::vec::Vec;
use tidegate_netlink_wire::attribute::read;
use tidegate_packet::Rate;
use tidegate_policy::{LinkLayer, RateSpec, SizeTable};

/// Bytes of a rate (`tc_ratespec`).
pub(crate) const SPEC: usize = 12;

fn layer(number: u8) -> LinkLayer {
    if number & 15 == 2 { LinkLayer::Atm } else { LinkLayer::Ethernet }
}

/// A rate (`tc_ratespec`), or what is reported beside it because 32 bits are too few.
pub(crate) fn rate(bytes: &[u8], wide: Option<u64>) -> Option<RateSpec> {
    let bytes = bytes.get(..SPEC)?;
    let narrow = u32::from_ne_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
    Some(RateSpec {
        rate: Rate(wide.unwrap_or_else(|| narrow.into())),
        overhead: u16::from_ne_bytes([bytes[2], bytes[3]]),
        mpu: u16::from_ne_bytes([bytes[6], bytes[7]]),
        linklayer: layer(bytes[1]),
    })
}

/// A table of sizes; the kernel does not report its entries.
pub(crate) fn size_table(options: &[u8]) -> SizeTable {
    let base = read(options).get(1).unwrap_or_default();
    let (head, rest) = (base.get(..4).unwrap_or(&[0; 4]), numbers(base.get(4..).unwrap_or_default()));
    let at = |place: usize| rest.get(place).copied().unwrap_or(0);
    SizeTable {
        overhead: at(0) as i32,
        mpu: at(2),
        mtu: at(3),
        tsize: at(4),
        linklayer: layer(at(1) as u8),
        linklayer_stated: at(1) != 0,
        cell_align: i16::from_ne_bytes([head[2], head[3]]),
        cell_log: head[0],
        size_log: head[1],
        data: Vec::new(),
    }
}
