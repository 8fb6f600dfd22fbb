//! hhf: flows that send much are set apart.

use super::name::Kind;
use super::row::{Ahead, Changes, Reports};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};
use alloc::vec;
use alloc::vec::Vec;

/// The options of hhf, the heavy-hitter filter (tc-hhf(8)). `None`: not given, so the default when it is
/// made, and as it was when it is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HhfParams {
    /// Packets that may wait. Default: 1000.
    pub limit: Option<u32>,
    /// Bytes that the heavy hitters send in their turn. Default: the device's largest frame.
    pub quantum: Option<u32>,
    /// Heavy hitters that are known at once. Default: 2048.
    pub hh_limit: Option<u32>,
    /// For how long a flow's bytes are added up, µs. Default: 40000.
    pub reset_timeout_us: Option<u32>,
    /// Bytes in that time that make a flow a heavy hitter. Default: 128 KiB.
    pub admit_bytes: Option<u32>,
    /// Silence after which a flow is no heavy hitter any more, µs. Default: 1000000.
    pub evict_timeout_us: Option<u32>,
    /// How many quanta the other flows send in their turn. Default: 2.
    pub non_hh_weight: Option<u32>,
}

/// What hhf counted since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HhfStats {
    /// Packets dropped because the queue was full.
    pub drop_overlimit: u32,
    /// Heavy hitters that could not be noted, because the table was full.
    pub hh_overlimit: u32,
    /// Heavy hitters found since it was made.
    pub tot_hh: u32,
    /// Heavy hitters known now.
    pub cur_hh: u32,
}

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("limit", ValueKind::Number, "1000", "packets in all"),
    OptionSpec::exact(
        "quantum",
        ValueKind::Number,
        "the largest frame",
        "bytes that heavy hitters send per round",
    ),
    OptionSpec::exact("hh_limit", ValueKind::Number, "2048", "heavy hitters tracked at once"),
    OptionSpec::exact(
        "reset_timeout",
        ValueKind::Time,
        "40ms",
        "interval over which each flow's bytes are counted",
    ),
    OptionSpec::exact(
        "admit_bytes",
        ValueKind::Number,
        "131072",
        "bytes in that interval that make a flow a heavy hitter",
    ),
    OptionSpec::exact(
        "evict_timeout",
        ValueKind::Time,
        "1s",
        "idle time after which a flow is no longer a heavy hitter",
    ),
    OptionSpec::exact("non_hh_weight", ValueKind::Number, "2", "quanta that all other flows send per round"),
];

pub(super) const HHF: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    changes: Changes::InPlace,
    reports: Reports::IfAccepted,
    ..KindSpec::new(Kind::Hhf, "hhf", "heavy hitters are found and set apart from the rest")
};

pub(super) fn ahead(params: &HhfParams) -> Vec<Ahead> {
    vec![Ahead::Packets { queue: "queue", limit: params.limit.unwrap_or(1000) }]
}
