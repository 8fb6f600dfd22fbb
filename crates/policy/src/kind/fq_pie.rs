//! fq_pie: PIE in each of many flows.

use super::name::Kind;
use super::pie::PieParams;
use super::row::{Ahead, Changes, Reports, Waits};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};
use alloc::vec;
use alloc::vec::Vec;

/// The options of fq_pie (tc-fq_pie(8); PIE is RFC 8033). `None`: not given, so the default when it is made,
/// and as it was when it is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FqPieParams {
    /// What each flow's PIE goes by; its limit is that of all packets together.
    pub pie: PieParams,
    /// Queues that flows are hashed into, 1 to 65536; fixed once it is made. Default: 1024.
    pub flows: Option<u32>,
    /// Bytes that a flow sends in its turn.
    pub quantum: Option<u32>,
    /// Bytes of memory that waiting packets should not exceed; what does is counted and not dropped. Default:
    /// 32 MiB.
    pub memory_limit: Option<u32>,
    /// The highest drop probability at which packets are marked, percent; beyond it they are dropped.
    /// Default: 10.
    pub ecn_prob: Option<u32>,
}

/// What fq_pie counted since it was made, and its lists of flows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FqPieStats {
    /// Packets that it took in.
    pub packets_in: u32,
    /// Packets that came to a full queue.
    pub overlimit: u32,
    /// Packets that came when too much memory was in use.
    pub overmemory: u32,
    /// Packets dropped by a flow's probability.
    pub dropped: u32,
    /// Packets marked instead of dropped.
    pub ecn_mark: u32,
    /// How often a flow went onto the list of new ones.
    pub new_flow_count: u32,
    /// Flows on the list of new ones.
    pub new_flows_len: u32,
    /// Flows on the list of old ones.
    pub old_flows_len: u32,
    /// Bytes of memory that waiting packets take.
    pub memory_used: u32,
}

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("limit", ValueKind::Number, "10240", "packets in all"),
    OptionSpec::exact("flows", ValueKind::Number, "1024", "queues, 1 to 65536; fixed once created"),
    OptionSpec::exact("target", ValueKind::Time, "15ms", "target delay"),
    OptionSpec::exact(
        "tupdate",
        ValueKind::Time,
        "15ms",
        "time between updates of the probabilities, in whole timer ticks",
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
    OptionSpec::exact(
        "quantum",
        ValueKind::Size,
        "the largest frame",
        "bytes that a flow sends in its turn, 256 to 2^20",
    ),
    OptionSpec::exact(
        "memory_limit",
        ValueKind::Size,
        "32m",
        "maximum memory in bytes; exceeding it is counted, nothing is dropped",
    ),
    OptionSpec::exact(
        "ecn_prob",
        ValueKind::Number,
        "10",
        "probability in percent up to which packets are marked",
    )
    .within(0.0, 99.0),
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

pub(super) const FQ_PIE: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    waits: Waits::KeptShort,
    changes: Changes::InPlaceIfSame,
    reports: Reports::IfAccepted,
    ..KindSpec::new(Kind::FqPie, "fq_pie", "fair queueing with PIE (RFC 8033) in each flow")
};

pub(super) fn ahead(params: &FqPieParams) -> Vec<Ahead> {
    vec![
        Ahead::Turns { quantum: params.quantum.unwrap_or(1514), flows: params.flows },
        Ahead::ShortDelay { us: params.pie.target_us.unwrap_or(15_000), spares_frame: false },
    ]
}

/// Their number is as it was made: Linux refuses even the same.
pub(super) fn flows(params: &FqPieParams) -> Option<u32> {
    params.flows
}

pub(super) fn without_flows(params: &mut FqPieParams) {
    params.flows = None;
}
