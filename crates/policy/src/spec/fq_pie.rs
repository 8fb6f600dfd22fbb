//! The table of fq_pie.

use super::{KindSpec, OptionSpec, Takes, Voice};

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("limit", Takes::Number, "10240", "packets in all"),
    OptionSpec::exact("flows", Takes::Number, "1024", "queues, 1 to 65536; fixed once created"),
    OptionSpec::exact("target", Takes::Time, "15ms", "delay to hold"),
    OptionSpec::exact(
        "tupdate",
        Takes::Time,
        "15ms",
        "time between adjustments of the probabilities, in whole timer ticks",
    ),
    OptionSpec::exact("alpha", Takes::Number, "2", "weight of the delay's distance from target, 0 to 32, in 1/16 Hz"),
    OptionSpec::exact("beta", Takes::Number, "20", "weight of the delay's growth, 0 to 32, in 1/16 Hz"),
    OptionSpec::exact("quantum", Takes::Size, "the largest frame", "bytes that a flow sends in its turn, 256 to 2^20"),
    OptionSpec::exact("memory_limit", Takes::Size, "32m", "bytes of memory; what comes beyond is counted, not dropped"),
    OptionSpec::exact("ecn_prob", Takes::Number, "10", "per cent of probability up to which packets are marked"),
    OptionSpec::exact("ecn", Takes::Flag, "", "mark packets that can carry a mark instead of dropping them"),
    OptionSpec::exact("noecn", Takes::Flag, "this", "always drop"),
    OptionSpec::exact("bytemode", Takes::Flag, "", "weigh the probability by the packet's length"),
    OptionSpec::exact("nobytemode", Takes::Flag, "this", "every packet is worth the same"),
    OptionSpec::exact("dq_rate_estimator", Takes::Flag, "", "delay from backlog and measured rate, as RFC 8033 has it"),
    OptionSpec::exact("no_dq_rate_estimator", Takes::Flag, "this", "delay from the time that packets waited"),
];

pub(super) const FQ_PIE: KindSpec = KindSpec {
    name: "fq_pie",
    title: "fair queueing with PIE (RFC 8033) in each flow",
    qdisc: Some(OPTIONS),
    class: None,
    voice: Voice::Plain,
};
