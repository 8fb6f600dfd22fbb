//! fq_codel: controlled delay in each of many flows (RFC 8290).

use super::name::Kind;
use super::row::{Ahead, Changes, ClassLayout, Filters, Reports, Waits};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};
use alloc::vec;
use alloc::vec::Vec;

/// The options of fq_codel (RFC 8290; tc-fq_codel(8)). `None`: not given, so the default when it is made, and
/// as it was when it is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FqCodelParams {
    /// Packets that may wait, of all flows. Default: 10240.
    pub limit: Option<u32>,
    /// Queues that flows are hashed into, 1 to 65536; fixed once it is made. Default: 1024.
    pub flows: Option<u32>,
    /// Bytes that a flow sends in its turn, 256 to 2^20. Default: the device's largest frame.
    pub quantum: Option<u32>,
    /// The sojourn time that is tolerated, µs. Default: 5000.
    pub target_us: Option<u32>,
    /// How long the sojourn time must stay above the target before packets are dropped, µs. Default: 100000.
    pub interval_us: Option<u32>,
    /// Packets that can carry a CE mark (RFC 3168) get one instead of being dropped. Default: yes.
    pub ecn: Option<bool>,
    /// Packets that waited longer are marked, µs. In a dump `None`: off, as by default.
    pub ce_threshold_us: Option<u32>,
    /// Only packets whose DS field under the mask equals the value are compared with `ce_threshold_us`:
    /// (value, mask).
    pub ce_selector: Option<(u8, u8)>,
    /// Bytes of memory that waiting packets may take. Default: 32 MiB.
    pub memory_limit: Option<u32>,
    /// Packets dropped at once from the longest flow where a limit is reached, at most half of it. Default:
    /// 64.
    pub drop_batch: Option<u32>,
}

/// What fq_codel counted since it was made, and its lists of flows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FqCodelStats {
    /// The largest packet seen, bytes.
    pub maxpacket: u32,
    /// Packets dropped because of the limits.
    pub drop_overlimit: u32,
    /// Packets marked instead of dropped.
    pub ecn_mark: u32,
    /// How often a flow went onto the list of new ones.
    pub new_flow_count: u32,
    /// Flows on the list of new ones.
    pub new_flows_len: u32,
    /// Flows on the list of old ones.
    pub old_flows_len: u32,
    /// Packets marked because they waited longer than `ce_threshold`.
    pub ce_mark: u32,
    /// Bytes of memory that waiting packets take.
    pub memory_used: u32,
    /// Packets dropped because of the memory limit.
    pub drop_overmemory: u32,
}

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("limit", ValueKind::Number, "10240", "packets in all"),
    OptionSpec::exact("flows", ValueKind::Number, "1024", "queues, 1 to 65536; fixed once created"),
    OptionSpec::exact("quantum", ValueKind::Number, "the largest frame", "bytes that a flow sends per round"),
    OptionSpec::exact("target", ValueKind::Time, "5ms", "sojourn time that is accepted as a standing queue"),
    OptionSpec::exact("ce_threshold", ValueKind::Time, "off", "mark every packet with a longer sojourn time"),
    OptionSpec::exact(
        "ce_threshold_selector",
        ValueKind::Selector,
        "all packets",
        "packets to which ce_threshold applies: (DS field & MASK) = VALUE",
    ),
    OptionSpec::exact("memory_limit", ValueKind::Size, "32m", "bytes of memory in all"),
    OptionSpec::exact(
        "interval",
        ValueKind::Time,
        "100ms",
        "usual worst-case round trip: the time in which senders can react",
    ),
    OptionSpec::exact("ecn", ValueKind::Flag, "this", "mark ECN-capable packets instead of dropping them"),
    OptionSpec::exact("noecn", ValueKind::Flag, "", "always drop"),
    OptionSpec::exact(
        "drop_batch",
        ValueKind::Number,
        "64",
        "packets dropped at once from the largest flow when full",
    ),
];

pub(super) const FQ_CODEL: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    classes: ClassLayout::Flows,
    filters: Filters::OfQdisc,
    waits: Waits::KeptShort,
    changes: Changes::InPlaceIfSame,
    reports: Reports::IfAccepted,
    ..KindSpec::new(Kind::FqCodel, "fq_codel", "fair queueing with controlled delay in each flow (RFC 8290)")
};

pub(super) fn ahead(params: &FqCodelParams) -> Vec<Ahead> {
    vec![
        Ahead::Turns { quantum: params.quantum.unwrap_or(1514), flows: params.flows },
        Ahead::ShortDelay { us: params.target_us.unwrap_or(5000), spares_frame: true },
    ]
}

/// Queues cannot be added to it.
pub(super) fn flows(params: &FqCodelParams) -> Option<u32> {
    params.flows
}

pub(super) fn without_flows(params: &mut FqCodelParams) {
    params.flows = None;
}
