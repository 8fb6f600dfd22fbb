//! fq_codel: controlled delay in each of many flows (RFC 8290).

use super::{Ahead, Changes, Classes, Filters, Kind, QdiscParams, Reports, Waits};
use crate::spec::{KindSpec, OptionSpec, Takes};

/// fq_codel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FqCodelParams {
    /// Packets in all.
    pub limit: Option<u32>,
    /// Queues; fixed once created.
    pub flows: Option<u32>,
    /// Bytes that a flow sends in its turn.
    pub quantum: Option<u32>,
    /// Sojourn time to hold, µs.
    pub target_us: Option<u32>,
    /// Time allowed for a sender to react, µs.
    pub interval_us: Option<u32>,
    /// Mark instead of dropping where the packet can carry the mark.
    pub ecn: Option<bool>,
    /// Mark everything that waited longer, µs. In a dump `None` = off.
    pub ce_threshold_us: Option<u32>,
    /// Only packets whose DS field under the mask equals the value are held against `ce_threshold_us`: (value, mask).
    pub ce_selector: Option<(u8, u8)>,
    /// Memory, bytes.
    pub memory_limit: Option<u32>,
    /// Packets dropped at once from the fattest flow when full.
    pub drop_batch: Option<u32>,
}

/// fq_codel's counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FqCodelStats {
    /// The largest packet seen, bytes.
    pub maxpacket: u32,
    /// Packets dropped because of the limits.
    pub drop_overlimit: u32,
    /// Packets marked instead of dropped.
    pub ecn_mark: u32,
    /// Times a flow became new.
    pub new_flow_count: u32,
    /// Flows on the list of new ones.
    pub new_flows_len: u32,
    /// Flows on the list of old ones.
    pub old_flows_len: u32,
    /// Marked for passing ce_threshold.
    pub ce_mark: u32,
    /// Memory in use, bytes.
    pub memory_used: u32,
    /// Drops because of the memory limit.
    pub drop_overmemory: u32,
}

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("limit", Takes::Number, "10240", "packets in all"),
    OptionSpec::exact("flows", Takes::Number, "1024", "queues, 1 to 65536; fixed once created"),
    OptionSpec::exact("quantum", Takes::Number, "the largest frame", "bytes that a flow sends in its turn"),
    OptionSpec::exact("target", Takes::Time, "5ms", "waiting time that is accepted as standing queue"),
    OptionSpec::exact("ce_threshold", Takes::Time, "off", "mark every packet that waited longer"),
    OptionSpec::exact(
        "ce_threshold_selector",
        Takes::Selector,
        "all packets",
        "which DS fields ce_threshold is for: (field & MASK) = VALUE",
    ),
    OptionSpec::exact("memory_limit", Takes::Size, "32m", "bytes of memory in all"),
    OptionSpec::exact("interval", Takes::Time, "100ms", "time given to senders to react: a usual worst round trip"),
    OptionSpec::exact("ecn", Takes::Flag, "this", "mark packets that can carry a mark instead of dropping them"),
    OptionSpec::exact("noecn", Takes::Flag, "", "always drop"),
    OptionSpec::exact("drop_batch", Takes::Number, "64", "packets dropped at once from the fattest flow when full"),
];

pub(super) const FQ_CODEL: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    classes: Classes::Flows,
    filters: Filters::OfQdisc,
    waits: Waits::KeptShort,
    ahead,
    changes: Changes::InPlaceIfSame { fixed: flows, unsaid: without_flows },
    reports: Reports::IfAccepted,
    ..KindSpec::new(Kind::FqCodel, "fq_codel", "fair queueing with controlled delay in each flow (RFC 8290)")
};

fn ahead(params: &QdiscParams) -> Vec<Ahead> {
    let QdiscParams::FqCodel(params) = params else { return Vec::new() };
    vec![
        Ahead::Turns { quantum: params.quantum.unwrap_or(1514) },
        Ahead::Held { us: params.target_us.unwrap_or(5000), spares_frame: true },
    ]
}

/// Queues cannot be added to it.
fn flows(params: &QdiscParams) -> Option<u32> {
    if let QdiscParams::FqCodel(params) = params { params.flows } else { None }
}

fn without_flows(params: &mut QdiscParams) {
    if let QdiscParams::FqCodel(params) = params {
        params.flows = None;
    }
}
