//! The table of dualpi2.

use super::{KindSpec, OptionSpec, Takes, Voice};

pub(super) const SPEC: KindSpec = KindSpec {
    name: "dualpi2",
    title: "two queues under one law: low latency beside classic traffic (RFC 9332)",
    qdisc: Some(QDISC),
    class: None,
    voice: Voice::Plain,
};

const QDISC: &[OptionSpec] = &[
    OptionSpec::exact("limit", Takes::Decimal, "10000", "packets that may wait in both queues together, at least 1"),
    OptionSpec::exact("memlimit", Takes::Size, "limit times two largest frames", "bytes of memory that both may use"),
    OptionSpec::exact(
        "coupling_factor",
        Takes::Decimal,
        "2",
        "low-latency packets are marked so much more often, 1 to 255",
    ),
    OptionSpec::exact("target", Takes::Time, "15ms", "delay to hold in the classic queue"),
    OptionSpec::exact("tupdate", Takes::Time, "16ms", "time between adjustments of the probability"),
    OptionSpec::exact("alpha", Takes::Fraction, "0.16", "weight of the delay's distance from the target, Hz"),
    OptionSpec::exact("beta", Takes::Fraction, "3.2", "weight of the delay's growth, Hz"),
    OptionSpec::exact("max_rtt", Takes::Time, "", "longest round trip: target, tupdate, alpha and beta follow from it"),
    OptionSpec::exact(
        "typical_rtt",
        Takes::Time,
        "max_rtt/6",
        "usual round trip: the target; needs max_rtt, or gives it",
    ),
    OptionSpec::exact(
        "step_thresh",
        Takes::TimeOrPackets,
        "1ms",
        "low-latency packets that waited longer are marked; or `Np`",
    ),
    OptionSpec::exact("min_qlen_step", Takes::Decimal, "0", "packets that must wait for the step to mark"),
    OptionSpec::exact(
        "classic_protection",
        Takes::Decimal,
        "10",
        "per cent of the link that the classic queue is sure of",
    ),
    OptionSpec::exact("drop_on_overload", Takes::Flag, "on", "when marks do not help, drop low-latency packets too"),
    OptionSpec::exact("overflow", Takes::Flag, "", "let the low-latency queue grow to the limit instead"),
    OptionSpec::exact("drop_dequeue", Takes::Flag, "on", "decide about a packet when it leaves"),
    OptionSpec::exact("drop_enqueue", Takes::Flag, "", "decide about a packet when it arrives"),
    OptionSpec::exact("l4s_ect", Takes::Flag, "on", "ECT(1) and CE packets are low-latency"),
    OptionSpec::exact("any_ect", Takes::Flag, "", "every packet that can carry a mark is low-latency"),
    OptionSpec::exact("split_gso", Takes::Flag, "on", "cut what the sender put together into packets"),
    OptionSpec::exact("no_split_gso", Takes::Flag, "", "leave it together"),
];
