//! Rates with their tables, and tables of sizes.

use alloc::vec;
use alloc::vec::Vec;
use tidegate_netlink_wire::attribute::{Attributes, words};
use tidegate_netlink_wire::numbers::TCA_STAB;
use tidegate_policy::{LinkLayer, RateSpec, SizeTable};

const TCA_STAB_BASE: u16 = 1;
const TCA_STAB_DATA: u16 = 2;
/// Ticks of 64 ns.
const TICKS_PER_MICROSECOND: f64 = 15.625;
/// Entries of a table of times.
const ENTRIES: u64 = 256;
/// log2 of the bytes that an entry covers where packets have at most 2,047 bytes.
pub(crate) const CELL_LOG: u8 = 3;
/// The number of the last entry.
pub(crate) const LAST_ENTRY: u32 = 255;
/// What a rate is in 32 bits when it does not fit.
pub(crate) const FULL: u32 = u32::MAX;

const fn layer(layer: LinkLayer) -> u8 {
    match layer {
        LinkLayer::Ethernet => 1,
        LinkLayer::Atm => 2,
    }
}

/// log2 of the bytes that an entry covers where packets have at most `longest` bytes.
pub(crate) fn cell_log(longest: u32) -> u8 {
    (0..31).find(|log| longest >> log <= LAST_ENTRY).unwrap_or(CELL_LOG)
}

/// A rate as the kernel takes it (`tc_ratespec`); one that does not fit is sent beside it as 64 bits.
pub(crate) fn spec(spec: &RateSpec, cell_log: u8) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[0] = cell_log;
    bytes[1] = layer(spec.linklayer);
    bytes[2..4].copy_from_slice(&spec.overhead.to_ne_bytes());
    bytes[4..6].copy_from_slice(&(-1_i16).to_ne_bytes());
    bytes[6..8].copy_from_slice(&spec.mpu.to_ne_bytes());
    bytes[8..].copy_from_slice(&u32::try_from(spec.rate.0).unwrap_or(FULL).to_ne_bytes());
    bytes
}

/// No rate.
pub(crate) const NO_RATE: [u8; 12] = [0; 12];

/// The rate, where 32 bits are too few for it.
pub(crate) fn wide(to: &mut Attributes, number: u16, spec: &RateSpec) {
    if spec.rate.0 > u64::from(FULL) {
        to.u64(number, spec.rate.0);
    }
}

/// How long packets take at a rate, by their length: kernels before 3.8 went by this table, and later ones
/// still want it sent.
pub(crate) fn table(to: &mut Attributes, number: u16, spec: &RateSpec, cell_log: u8) {
    let cost = |entry: u64| {
        let bytes = (entry << cell_log).max(spec.mpu.into());
        let bytes = if spec.linklayer == LinkLayer::Atm { bytes.div_ceil(48) * 53 } else { bytes };
        // In whole microseconds, by way of a fraction: where that is a hair too small, tc's entry is one
        // short.
        let micros = (1_000_000.0 * (bytes as f64 / spec.rate.0 as f64)) as i64 as u32;
        (f64::from(micros) * TICKS_PER_MICROSECOND) as i64 as u32
    };
    let costs: Vec<u32> = (1..=ENTRIES).map(cost).collect();
    to.payload(number, &words(&costs));
}

/// `stab`.
pub(crate) fn size_table(to: &mut Attributes, table: &SizeTable) {
    let mut base = vec![table.cell_log, table.size_log];
    base.extend(table.cell_align.to_ne_bytes());
    let layer = if table.linklayer_stated { layer(table.linklayer) } else { 0 };
    base.extend(words(&[table.overhead as u32, layer.into(), table.mpu, table.mtu, table.tsize]));
    let mut inner = Attributes::default();
    inner.payload(TCA_STAB_BASE, &base);
    if !table.data.is_empty() {
        let entries: Vec<u8> = table.data.iter().flat_map(|entry| entry.to_ne_bytes()).collect();
        inner.payload(TCA_STAB_DATA, &entries);
    }
    to.nest(TCA_STAB, &inner);
}
