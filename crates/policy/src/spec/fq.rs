//! The table of fq.

use super::{KindSpec, OptionSpec, Takes, Voice};

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("limit", Takes::Number, "10000", "packets in all"),
    OptionSpec::exact("flow_limit", Takes::Number, "100", "packets of one flow"),
    OptionSpec::exact("buckets", Takes::Number, "1024", "places of the table of flows, rounded up to a power of two"),
    OptionSpec::exact("maxrate", Takes::Rate32, "none", "the rate that no flow exceeds"),
    OptionSpec::exact(
        "low_rate_threshold",
        Takes::Rate32,
        "550kbit",
        "a flow at most this fast is paced packet by packet",
    ),
    OptionSpec::exact("ce_threshold", Takes::Time, "off", "mark what leaves so much later than it should"),
    OptionSpec::exact("timer_slack", Takes::Nanos, "10us", "how much later than asked for a flow may be woken"),
    OptionSpec::exact("horizon", Takes::Time, "10s", "how far ahead a packet may be timed"),
    OptionSpec::exact("horizon_cap", Takes::Flag, "", "send what is timed further ahead at the horizon"),
    OptionSpec::exact("horizon_drop", Takes::Flag, "this", "drop what is timed further ahead"),
    OptionSpec::exact("defrate", Takes::Rate32, "", "without effect today"),
    OptionSpec::exact("quantum", Takes::Number, "two of the largest frames", "bytes that a flow sends in its turn"),
    OptionSpec::exact(
        "initial_quantum",
        Takes::Number,
        "ten of the largest frames",
        "bytes a new flow may send at first",
    ),
    OptionSpec::exact("orphan_mask", Takes::Number, "1023", "bits of the hash that tell flows without a socket apart")
        .blamed("initial_quantum"),
    OptionSpec::exact("refill_delay", Takes::Time, "40ms", "silence after which a flow may send its quantum at once"),
    OptionSpec::exact("pacing", Takes::Flag, "this", "hold flows to their rates"),
    OptionSpec::exact("nopacing", Takes::Flag, "", "do not hold flows to rates"),
];

pub(super) const FQ: KindSpec = KindSpec {
    name: "fq",
    title: "flows take turns and are held to their rates",
    qdisc: Some(OPTIONS),
    class: None,
    voice: Voice::Plain,
};
