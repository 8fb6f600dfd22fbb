//! pie: a controller that drops by the delay and its growth (RFC 8033).

use super::name::Kind;
use super::row::{Ahead, Changes, Reports, Waits};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};
use alloc::vec;
use alloc::vec::Vec;

/// The options of pie (RFC 8033; tc-pie(8)). `None`: not given, so the default when it is made, and as it was
/// when it is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PieParams {
    /// Packets that may wait. Default: 1000.
    pub limit: Option<u32>,
    /// The queueing delay that it aims at, µs. Default: 15000.
    pub target_us: Option<u32>,
    /// Time between adjustments of the probability, µs. Default: 15000.
    pub tupdate_us: Option<u32>,
    /// Weight of the delay's distance from the target, in 1/16 Hz, 0 to 32. Default: 2.
    pub alpha: Option<u32>,
    /// Weight of the delay's growth, in 1/16 Hz, 0 to 32. Default: 20.
    pub beta: Option<u32>,
    /// Mark packets that can carry a mark instead of dropping them.
    pub ecn: Option<bool>,
    /// Weigh the probability by the packet's length.
    pub bytemode: Option<bool>,
    /// Take the delay from the backlog and a measured rate instead of the packets' own times.
    pub rate_estimator: Option<bool>,
}

/// What pie counted since it was made, and its controller's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PieStats {
    /// Probability of a drop, 2^64 - 1 = 1.
    pub prob: u64,
    /// The queueing delay as it was last estimated, µs.
    pub delay_us: u32,
    /// The measured rate, bytes per second; shown with the rate estimator.
    pub avg_dq_rate: u32,
    /// Is the rate being measured?
    pub dq_rate_estimating: bool,
    /// Packets that it took in.
    pub packets_in: u32,
    /// Packets that came to a full queue.
    pub overlimit: u32,
    /// Packets dropped by the probability.
    pub dropped: u32,
    /// The longest queue, packets.
    pub maxq: u32,
    /// Packets marked instead of dropped.
    pub ecn_mark: u32,
}

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("limit", ValueKind::Number, "1000", "maximum backlog in packets"),
    OptionSpec::exact("target", ValueKind::Time, "15ms", "target delay"),
    OptionSpec::exact(
        "tupdate",
        ValueKind::Time,
        "15ms",
        "time between updates of the probability, in whole timer ticks",
    ),
    OptionSpec::exact(
        "alpha",
        ValueKind::Number,
        "2",
        "gain of the delay's distance from target, 0 to 32, in 1/16 Hz",
    )
    .within(0.0, 32.0),
    OptionSpec::exact("beta", ValueKind::Number, "20", "gain of the delay's growth, 0 to 32, in 1/16 Hz")
        .within(0.0, 32.0),
    OptionSpec::exact("ecn", ValueKind::Flag, "", "mark ECN-capable packets instead of dropping them"),
    OptionSpec::exact("noecn", ValueKind::Flag, "this", "always drop"),
    OptionSpec::exact("bytemode", ValueKind::Flag, "", "scale the probability by the packet's length"),
    OptionSpec::exact("nobytemode", ValueKind::Flag, "this", "the same probability for every length"),
    OptionSpec::exact(
        "dq_rate_estimator",
        ValueKind::Flag,
        "",
        "delay from backlog and measured rate, as in RFC 8033",
    ),
    OptionSpec::exact(
        "no_dq_rate_estimator",
        ValueKind::Flag,
        "this",
        "delay from the packets' sojourn times",
    ),
];

pub(super) const PIE: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    waits: Waits::KeptShort,
    changes: Changes::InPlace,
    reports: Reports::IfAccepted,
    ..KindSpec::new(
        Kind::Pie,
        "pie",
        "proportional integral controller: drops by the queue's delay and its growth (RFC 8033)",
    )
};

pub(super) fn ahead(params: &PieParams) -> Vec<Ahead> {
    vec![Ahead::ShortDelay { us: params.target_us.unwrap_or(15_000), spares_frame: false }]
}
