//! The table of hhf.

use super::{KindSpec, OptionSpec, Takes, Voice};

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("limit", Takes::Number, "1000", "packets in all"),
    OptionSpec::exact("quantum", Takes::Number, "the largest frame", "bytes that heavy hitters send in their turn"),
    OptionSpec::exact("hh_limit", Takes::Number, "2048", "heavy hitters that are known at once"),
    OptionSpec::exact("reset_timeout", Takes::Time, "40ms", "for how long each flow's bytes are added up"),
    OptionSpec::exact("admit_bytes", Takes::Number, "131072", "bytes in that time that make a flow a heavy hitter"),
    OptionSpec::exact("evict_timeout", Takes::Time, "1s", "silence after which it is none any more"),
    OptionSpec::exact("non_hh_weight", Takes::Number, "2", "how many quanta all others send in their turn"),
];

pub(super) const HHF: KindSpec = KindSpec {
    name: "hhf",
    title: "heavy hitters are found and set apart from the rest",
    qdisc: Some(OPTIONS),
    class: None,
    voice: Voice::Plain,
};
