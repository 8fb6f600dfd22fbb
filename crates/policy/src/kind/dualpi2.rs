//! dualpi2: two queues under one law (RFC 9332).

use super::name::Kind;
use super::row::{Ahead, ClassLayout, Filters, Waits};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};
use alloc::vec;
use alloc::vec::Vec;

/// The options of dualpi2 (RFC 9332). `None`: not given, so the default when it is made, and as it was when
/// it is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DualPi2Params {
    /// Packets that may wait, in both queues together.
    pub limit: Option<u32>,
    /// Memory of both queues together, bytes. Default: `limit` times two largest frames.
    pub memory_limit: Option<u32>,
    /// The delay of the classic queue that it aims at, µs.
    pub target_us: Option<u32>,
    /// Time between adjustments of the probability, µs.
    pub tupdate_us: Option<u32>,
    /// Weight of the delay's distance from the target, in 1/256 Hz.
    pub alpha: Option<u32>,
    /// Weight of the delay's growth, in 1/256 Hz.
    pub beta: Option<u32>,
    /// From where on every packet of the low-latency queue is marked.
    pub step: Option<StepThreshold>,
    /// Packets that must wait in the low-latency queue when one comes for the step to mark that one.
    pub min_qlen_step: Option<u32>,
    /// How much more often low-latency packets are marked: k of RFC 9332.
    pub coupling: Option<u8>,
    /// Overload: drop low-latency packets too, instead of letting the queue grow to its limit.
    pub drop_on_overload: Option<bool>,
    /// Drop when a packet arrives instead of when it leaves.
    pub drop_at_enqueue: Option<bool>,
    /// The share of the link that the classic queue gets beside a full low-latency queue, percent.
    pub classic_protection: Option<u8>,
    /// Bits of the ECN field that make a packet low-latency: 1 = ECT(1) and CE, 3 = ECT(0) as well.
    pub ecn_mask: Option<u8>,
    /// Split GSO packets into the segments that they stand for.
    pub split_gso: Option<bool>,
}

/// From where on every packet of the low-latency queue is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepThreshold {
    /// It waited longer than so many µs.
    Micros(u32),
    /// More packets wait behind it.
    Packets(u32),
}

/// What dualpi2 counted since it was made, and its controller's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DualPi2Stats {
    /// The base probability, 2^32 - 1 = 1.
    pub prob: u32,
    /// How long the classic queue's first packet has waited, µs.
    pub delay_c_us: u32,
    /// How long the low-latency queue's first packet has waited, µs.
    pub delay_l_us: u32,
    /// Packets taken into the classic queue.
    pub packets_in_c: u32,
    /// Packets taken into the low-latency queue.
    pub packets_in_l: u32,
    /// The most packets that ever waited when another was taken.
    pub maxq: u32,
    /// Packets marked by the probability or by the step.
    pub ecn_mark: u32,
    /// Packets marked by the step.
    pub step_marks: u32,
    /// Whose turn it is: above 0 the classic queue's.
    pub credit: i32,
    /// Bytes of memory that waiting packets take.
    pub memory_used: u32,
    /// The most bytes of memory that they ever took.
    pub max_memory_used: u32,
    /// The bytes of memory that they may take.
    pub memory_limit: u32,
}

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact(
        "limit",
        ValueKind::Decimal,
        "10000",
        "maximum backlog of both queues in packets, at least 1",
    ),
    OptionSpec::exact(
        "memlimit",
        ValueKind::Decimal,
        "limit times two largest frames",
        "maximum memory of both queues in bytes",
    ),
    OptionSpec::exact(
        "coupling_factor",
        ValueKind::Number,
        "2",
        "ratio of the marking probability to the base probability, 1 to 255",
    ),
    OptionSpec::exact("target", ValueKind::Time, "15ms", "target delay of the classic queue"),
    OptionSpec::exact("tupdate", ValueKind::Time, "16ms", "time between updates of the probability"),
    OptionSpec::exact(
        "alpha",
        ValueKind::Fraction,
        "0.16",
        "gain of the delay's distance from the target, in Hz",
    ),
    OptionSpec::exact("beta", ValueKind::Fraction, "3.2", "gain of the delay's growth, in Hz"),
    OptionSpec::exact(
        "max_rtt",
        ValueKind::Time,
        "",
        "longest round trip: target, tupdate, alpha and beta follow from it",
    ),
    OptionSpec::exact(
        "typical_rtt",
        ValueKind::Time,
        "max_rtt/6",
        "usual round trip: the target; needs max_rtt, or gives it",
    ),
    OptionSpec::exact(
        "step_thresh",
        ValueKind::TimeOrPackets,
        "1ms",
        "low-latency packets with a longer sojourn time are marked; or `Np`: N packets",
    ),
    OptionSpec::exact(
        "min_qlen_step",
        ValueKind::Decimal,
        "0",
        "low-latency packets that must wait when one comes for the step to mark it",
    ),
    OptionSpec::exact(
        "classic_protection",
        ValueKind::Number,
        "10",
        "percent of the link guaranteed to the classic queue",
    ),
    OptionSpec::exact(
        "drop_on_overload",
        ValueKind::Flag,
        "on",
        "when marks do not help, drop low-latency packets too",
    ),
    OptionSpec::exact("overflow", ValueKind::Flag, "", "let the low-latency queue grow to the limit instead"),
    OptionSpec::exact("drop_dequeue", ValueKind::Flag, "on", "drop or mark a packet when it leaves"),
    OptionSpec::exact("drop_enqueue", ValueKind::Flag, "", "drop or mark a packet when it arrives"),
    OptionSpec::exact("l4s_ect", ValueKind::Flag, "on", "ECT(1) and CE packets are low-latency"),
    OptionSpec::exact("any_ect", ValueKind::Flag, "", "every ECN-capable packet is low-latency"),
    OptionSpec::exact("split_gso", ValueKind::Flag, "on", "split GSO super-packets"),
    OptionSpec::exact("no_split_gso", ValueKind::Flag, "", "keep GSO super-packets whole"),
];

pub(super) const DUALPI2: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    classes: ClassLayout::Flows,
    filters: Filters::OfQdisc,
    waits: Waits::KeptShort,
    ..KindSpec::new(
        Kind::DualPi2,
        "dualpi2",
        "two queues under one law: low latency beside classic traffic (RFC 9332)",
    )
};

pub(super) fn ahead(params: &DualPi2Params) -> Vec<Ahead> {
    vec![Ahead::ShortDelay { us: params.target_us.unwrap_or(15_000), spares_frame: false }]
}
