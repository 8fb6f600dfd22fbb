//! The table of ets.

use super::{KindSpec, OptionSpec, Takes, Voice};

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("bands", Takes::Decimal, "as many as strict and quanta need", "bands in all, 1 to 16"),
    OptionSpec::exact("strict", Takes::Decimal, "0", "how many of them are strict; they come first"),
    OptionSpec::exact(
        "quanta",
        Takes::Words("BYTES…"),
        "the largest frame",
        "bytes that each band that is not strict sends in its turn",
    ),
    OptionSpec::exact(
        "priomap",
        Takes::Priomap,
        "the last band",
        "band of each priority from 0 to 15, for packets that no filter takes",
    ),
];

const CLASS: &[OptionSpec] = &[OptionSpec::exact(
    "quantum",
    Takes::Decimal,
    "",
    "bytes that the band sends in its turn; strict bands have none",
)];

pub(super) const ETS: KindSpec = KindSpec {
    name: "ets",
    title: "strict bands, then bands that share by quanta (IEEE 802.1Qaz)",
    qdisc: Some(OPTIONS),
    class: Some(CLASS),
    voice: Voice::Plain,
};
