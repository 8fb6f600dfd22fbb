//! sfq: flows, distinguished by a hash, take turns.

use super::name::Kind;
use super::red::RedCurve;
use super::row::{Ahead, ClassLayout, Filters, Waits};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};
use alloc::vec;
use alloc::vec::Vec;

/// The options of sfq, stochastic fairness queueing (McKenney 1990; tc-sfq(8)), as tc sends them: 0 leaves
/// the value as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SfqParams {
    /// Bytes a flow sends in its turn.
    pub quantum: u32,
    /// Seconds between changes of the hash key; 0: never.
    pub perturb: i32,
    /// Packets that may wait, of all flows. Default: 127.
    pub limit: u32,
    /// Buckets of the hash, a power of two up to 65536. Default: 1024.
    pub divisor: u32,
    /// Flows that may be active at once.
    pub flows: u32,
    /// Packets that one flow may have.
    pub depth: u32,
    /// Drop the oldest packet of a flow instead of the newest.
    pub headdrop: bool,
    /// Random early detection in each flow.
    pub red: Option<SfqRed>,
}

/// Random early detection in each flow of sfq.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SfqRed {
    /// The limit in bytes of a flow; the kernel takes it and ignores it. Not in a dump.
    pub limit: u32,
    /// When to mark; bytes.
    pub curve: RedCurve,
    /// Mark packets that can carry a mark instead of dropping them.
    pub ecn: bool,
    /// Drop above the curve's `max` even what can carry a mark.
    pub harddrop: bool,
}

/// What sfq's random early detection did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SfqStats {
    /// Dropped by the probability.
    pub prob_drop: u32,
    /// Marked by the probability: the arrival.
    pub prob_mark: u32,
    /// Marked by the probability: the flow's oldest packet.
    pub prob_mark_head: u32,
    /// Dropped because the average was too long.
    pub forced_drop: u32,
    /// Marked for that: the arrival.
    pub forced_mark: u32,
    /// Marked for that: the flow's oldest packet.
    pub forced_mark_head: u32,
}

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("quantum", ValueKind::Size, "the largest frame", "bytes that a flow sends per round")
        .blamed("limit"),
    OptionSpec::exact("perturb", ValueKind::SignedAny, "0: never", "seconds between changes of the hash key"),
    OptionSpec::exact(
        "limit",
        ValueKind::Number,
        "127",
        "packets in all, at least 2 and at most depth times flows",
    )
    .at_least(2.0, ", must be > 1"),
    OptionSpec::exact(
        "divisor",
        ValueKind::Number,
        "1024",
        "buckets of the hash, a power of two up to 65536",
    ),
    OptionSpec::exact("flows", ValueKind::Number, "128", "flows that may be active at once"),
    OptionSpec::exact("depth", ValueKind::Number, "127", "maximum backlog of a flow in packets, at most 127")
        .blamed("flows"),
    OptionSpec::exact(
        "headdrop",
        ValueKind::Flag,
        "off",
        "drop a flow's oldest packet instead of its newest",
    ),
    OptionSpec::exact("redflowlimit", ValueKind::Number, "none", "RED in each flow: its limit in bytes"),
    OptionSpec::exact(
        "min",
        ValueKind::Number,
        "max/3",
        "average queue of a flow in bytes above which its packets are marked or dropped",
    ),
    OptionSpec::exact(
        "max",
        ValueKind::Number,
        "redflowlimit/4",
        "average queue of a flow in bytes above which all of them are",
    ),
    OptionSpec::exact(
        "burst",
        ValueKind::Number,
        "(2 min + max) / (3 avpkt)",
        "packets in a burst that the average tolerates",
    ),
    OptionSpec::exact("avpkt", ValueKind::Size, "1000", "usual packet size in bytes"),
    OptionSpec::exact("probability", ValueKind::Fraction, "0.02", "probability of a mark at max"),
    OptionSpec::exact("ecn", ValueKind::Flag, "off", "mark ECN-capable packets instead of dropping them"),
    OptionSpec::exact("harddrop", ValueKind::Flag, "off", "above max drop even ECN-capable packets"),
];

pub(super) const SFQ: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    classes: ClassLayout::Flows,
    filters: Filters::OfQdisc,
    waits: Waits::UntilFull,
    ..KindSpec::new(Kind::Sfq, "sfq", "stochastic fairness: flows, identified by a hash, take turns")
};

pub(super) fn ahead(params: &SfqParams) -> Vec<Ahead> {
    vec![
        Ahead::Turns { quantum: params.quantum, flows: Some(params.flows) },
        Ahead::Packets { queue: "flow's own queue", limit: params.depth.min(params.limit).max(1) },
    ]
}
