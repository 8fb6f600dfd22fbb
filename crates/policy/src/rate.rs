//! Rates with their link layer, psched ticks, and size tables.

use alloc::vec::Vec;
use tidegate_packet::{Nanos, Rate};

/// A length of time in psched ticks of 64 ns, as it crosses netlink (32 bits).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks(pub u32);

impl Ticks {
    /// Ticks in a second: one is 64 ns (`PSCHED_SHIFT` 6).
    pub const PER_SECOND: u64 = 15_625_000;

    /// As nanoseconds.
    pub const fn duration(self) -> Nanos {
        Nanos((self.0 as u64) << 6)
    }
}

/// How the link below cuts frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkLayer {
    /// Whole frames.
    #[default]
    Ethernet,
    /// Cells of 53 bytes carrying 48.
    Atm,
}

impl LinkLayer {
    /// Its name in tc.
    pub const fn name(self) -> &'static str {
        match self {
            LinkLayer::Ethernet => "ethernet",
            LinkLayer::Atm => "atm",
        }
    }
}

/// A rate and what each packet costs at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSpec {
    /// The rate, bytes per second.
    pub rate: Rate,
    /// Bytes added to each packet.
    pub overhead: u16,
    /// Least bytes a packet counts.
    pub mpu: u16,
    /// Cells or whole frames.
    pub linklayer: LinkLayer,
}

/// A rate estimator (`estimator INTERVAL CONSTANT`), as tc passes it to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimator {
    /// Every 2^this quarter seconds the rate is measured, 0 to 5.
    pub interval_log: u8,
    /// The average moves by 1/2^this of the distance to it.
    pub ewma_log: u8,
}

/// A size table (`stab`): what a packet of each length costs, as tc computes it and the kernel looks it up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SizeTable {
    /// Bytes added before the lookup; may be negative.
    pub overhead: i32,
    /// Least bytes a packet counts (already in the table; kept for printing).
    pub mpu: u32,
    /// The longest length in mind when the table was made, bytes.
    pub mtu: u32,
    /// Entries of the table that were requested.
    pub tsize: u32,
    /// Cells or whole frames (already in the table; kept for printing).
    pub linklayer: LinkLayer,
    /// Was a link layer named? Without one `tc -d qdisc show` prints none.
    pub linklayer_stated: bool,
    /// Added to the length before the shift (-1 as tc makes tables).
    pub cell_align: i16,
    /// log2 of the bytes one entry covers.
    pub cell_log: u8,
    /// By how many bits an entry is shifted left to be a size.
    pub size_log: u8,
    /// The entries; empty when only `overhead` is used.
    pub data: Vec<u16>,
}

impl SizeTable {
    /// The table's entries as tc computes them; the kernel takes them and does not report them. Entry i is
    /// the cost of the longest length that falls into it, at least `mpu`, then whole cells. `None`: they do
    /// not fit with this `size_log`.
    pub fn entries(&self) -> Option<Vec<u16>> {
        let cost = |length: u64| {
            let length = length.max(self.mpu.into());
            match self.linklayer {
                LinkLayer::Ethernet => length,
                LinkLayer::Atm => length.div_ceil(48) * 53,
            }
        };
        let costs = (0..u64::from(self.tsize)).map(|i| cost((i + 1) << self.cell_log) >> self.size_log);
        costs.map(|cost| u16::try_from(cost).ok()).collect()
    }
}
