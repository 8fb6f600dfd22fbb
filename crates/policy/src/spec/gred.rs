//! The table of gred.

use super::{KindSpec, OptionSpec, Takes, Voice};

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact(
        "setup",
        Takes::Words("vqs N default N [grio] [limit SIZE] [ecn] [harddrop]"),
        "",
        "the table of virtual queues, 1 to 16: how many, and whose packets are that name none; comes before all else",
    )
    .or(&["init"]),
    OptionSpec::exact("vq", Takes::Decimal, "", "the virtual queue that is set up; must be given").or(&["DP"]),
    OptionSpec::exact(
        "prio",
        Takes::Decimal,
        "8",
        "with grio: averages of queues before it in this order count with its own",
    ),
    OptionSpec::exact("limit", Takes::Size, "", "bytes that may wait in the virtual queue; must be given"),
    OptionSpec::exact("min", Takes::Size, "", "average queue in bytes from which packets are marked; must be given"),
    OptionSpec::exact("max", Takes::Size, "", "average queue in bytes from which every packet is; must be given"),
    OptionSpec::exact("avpkt", Takes::Size, "", "bytes of a usual packet; must be given"),
    OptionSpec::exact("burst", Takes::Decimal, "(2 min + max) / (3 avpkt)", "packets the average lets pass at once"),
    OptionSpec::exact("probability", Takes::Fraction, "0.02", "probability of a mark at max"),
    OptionSpec::exact(
        "bandwidth",
        Takes::Rate32,
        "10mbit",
        "the link's rate, to let the average sink while it is idle",
    ),
    OptionSpec::exact("ecn", Takes::Flag, "off", "mark packets that can carry a mark instead of dropping them"),
    OptionSpec::exact("harddrop", Takes::Flag, "off", "above max drop even packets that can carry a mark"),
];

pub(super) const GRED: KindSpec = KindSpec {
    name: "gred",
    title: "random early detection with several curves in one queue",
    qdisc: Some(OPTIONS),
    class: None,
    voice: Voice::Plain,
};
