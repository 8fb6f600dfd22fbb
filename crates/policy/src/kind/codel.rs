//! codel: controlled delay (RFC 8289).

use super::{Ahead, Changes, Kind, QdiscParams, Reports, Waits};
use crate::spec::{KindSpec, OptionSpec, Takes};

/// codel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodelParams {
    /// Packets.
    pub limit: Option<u32>,
    /// Sojourn time to hold, µs.
    pub target_us: Option<u32>,
    /// Time allowed for a sender to react, µs.
    pub interval_us: Option<u32>,
    /// Mark instead of dropping where the packet can carry the mark.
    pub ecn: Option<bool>,
    /// Mark everything that waited longer, µs. In a dump `None` = off.
    pub ce_threshold_us: Option<u32>,
}

/// CoDel's state and counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodelStats {
    /// The largest packet seen, bytes.
    pub maxpacket: u32,
    /// Drops in this dropping episode.
    pub count: u32,
    /// Drops in the last.
    pub lastcount: u32,
    /// The last packet's sojourn time, µs.
    pub ldelay_us: u32,
    /// Until the next drop, µs; negative when due.
    pub drop_next_us: i32,
    /// In a dropping episode?
    pub dropping: bool,
    /// Packets refused at the limit.
    pub drop_overlimit: u32,
    /// Marked instead of dropped.
    pub ecn_mark: u32,
    /// Marked for passing ce_threshold.
    pub ce_mark: u32,
}

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("limit", Takes::Number, "1000", "packets that may wait"),
    OptionSpec::exact("target", Takes::Time, "5ms", "waiting time that is accepted as standing queue"),
    OptionSpec::exact("ce_threshold", Takes::Time, "off", "mark every packet that waited longer"),
    OptionSpec::exact("interval", Takes::Time, "100ms", "time given to senders to react: a usual worst round trip"),
    OptionSpec::exact("ecn", Takes::Flag, "", "mark packets that can carry a mark instead of dropping them"),
    OptionSpec::exact("noecn", Takes::Flag, "this", "always drop"),
];

pub(super) const CODEL: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    waits: Waits::KeptShort,
    changes: Changes::InPlace,
    ahead,
    reports: Reports::IfAccepted,
    ..KindSpec::new(Kind::Codel, "codel", "controlled delay: drops when packets keep waiting too long (RFC 8289)")
};

fn ahead(params: &QdiscParams) -> Vec<Ahead> {
    let QdiscParams::Codel(params) = params else { return Vec::new() };
    vec![Ahead::Held { us: params.target_us.unwrap_or(5000), spares_frame: true }]
}
