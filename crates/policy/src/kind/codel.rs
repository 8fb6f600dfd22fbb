//! codel: controlled delay (RFC 8289).

use super::name::Kind;
use super::row::{Ahead, Changes, Reports, Waits};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};
use alloc::vec;
use alloc::vec::Vec;

/// The options of codel (RFC 8289; tc-codel(8)). `None`: not given, so the default when it is made, and as it
/// was when it is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodelParams {
    /// Packets that may wait. Default: 1000.
    pub limit: Option<u32>,
    /// The sojourn time that is tolerated, µs. Default: 5000.
    pub target_us: Option<u32>,
    /// How long the sojourn time must stay above the target before packets are dropped: about the longest
    /// usual round trip, µs. Default: 100000.
    pub interval_us: Option<u32>,
    /// Packets that can carry a CE mark (RFC 3168) get one instead of being dropped. Default: no.
    pub ecn: Option<bool>,
    /// Packets that waited longer are marked, µs. In a dump `None`: off, as by default.
    pub ce_threshold_us: Option<u32>,
}

/// CoDel's state and counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodelStats {
    /// The largest packet seen, bytes.
    pub maxpacket: u32,
    /// Packets dropped in this dropping episode.
    pub count: u32,
    /// Packets dropped in the episode before, from which the next one begins.
    pub lastcount: u32,
    /// The last packet's sojourn time, µs.
    pub ldelay_us: u32,
    /// Time until the next drop, µs; negative: it is due.
    pub drop_next_us: i32,
    /// Is it in a dropping episode?
    pub dropping: bool,
    /// Packets refused at the limit.
    pub drop_overlimit: u32,
    /// Packets marked instead of dropped.
    pub ecn_mark: u32,
    /// Packets marked because they waited longer than `ce_threshold`.
    pub ce_mark: u32,
}

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("limit", ValueKind::Number, "1000", "maximum backlog in packets"),
    OptionSpec::exact("target", ValueKind::Time, "5ms", "sojourn time that is accepted as a standing queue"),
    OptionSpec::exact("ce_threshold", ValueKind::Time, "off", "mark every packet with a longer sojourn time"),
    OptionSpec::exact(
        "interval",
        ValueKind::Time,
        "100ms",
        "usual worst-case round trip: the time in which senders can react",
    ),
    OptionSpec::exact("ecn", ValueKind::Flag, "", "mark ECN-capable packets instead of dropping them"),
    OptionSpec::exact("noecn", ValueKind::Flag, "this", "always drop"),
];

pub(super) const CODEL: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    waits: Waits::KeptShort,
    changes: Changes::InPlace,
    reports: Reports::IfAccepted,
    ..KindSpec::new(
        Kind::Codel,
        "codel",
        "controlled delay: drops when packets keep waiting too long (RFC 8289)",
    )
};

pub(super) fn ahead(params: &CodelParams) -> Vec<Ahead> {
    vec![Ahead::ShortDelay { us: params.target_us.unwrap_or(5000), spares_frame: true }]
}
