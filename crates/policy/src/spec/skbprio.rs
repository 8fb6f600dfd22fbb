//! The table of skbprio.

use super::{KindSpec, OptionSpec, Takes, Voice};

const OPTIONS: &[OptionSpec] = &[OptionSpec::exact("limit", Takes::Size, "64", "packets that may wait")];

pub(super) const SKBPRIO: KindSpec = KindSpec {
    name: "skbprio",
    title: "by priority, 0 to 63; when full, the least important packet makes room",
    qdisc: Some(OPTIONS),
    class: None,
    voice: Voice::Plain,
};
