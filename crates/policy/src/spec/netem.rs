//! The table of netem.

use super::{KindSpec, OptionSpec, Takes, Voice};

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("limit", Takes::Size, "1000", "packets that may wait"),
    OptionSpec::exact(
        "delay",
        Takes::Words("TIME [JITTER [CORRELATION]]"),
        "0",
        "how long each packet waits, how far that varies, and how like the one before it is",
    )
    .or(&["latency"]),
    OptionSpec::exact(
        "distribution",
        Takes::Words("normal|pareto|paretonormal|experimental"),
        "uniform",
        "how delays spread around their mean; needs a delay with jitter",
    ),
    OptionSpec::exact(
        "loss",
        Takes::Words("[random] PERCENT [CORRELATION] | state P13 [P31 [P32 [P23 [P14]]]] | gemodel P [R [1-H [1-K]]]"),
        "0%",
        "loss by chance, by a chain of four states, or by Gilbert and Elliott's chain of two",
    )
    .or(&["drop"]),
    OptionSpec::exact("ecn", Takes::Flag, "off", "mark packets that can carry a mark instead of losing them"),
    OptionSpec::exact("duplicate", Takes::Words("PERCENT [CORRELATION]"), "0%", "packets that get a second copy"),
    OptionSpec::exact("corrupt", Takes::Words("PERCENT [CORRELATION]"), "0%", "packets that get one wrong bit"),
    OptionSpec::exact(
        "reorder",
        Takes::Words("PERCENT [CORRELATION]"),
        "0%",
        "packets that leave at once, before those that wait; needs a delay",
    ),
    OptionSpec::exact("gap", Takes::Number, "1", "only every so many packets one may be reordered; needs reorder"),
    OptionSpec::exact(
        "rate",
        Takes::Words("RATE [PACKETOVERHEAD [CELLSIZE [CELLOVERHEAD]]]"),
        "none",
        "a serial link, that adds bytes to each packet or cuts it into cells",
    ),
    OptionSpec::exact(
        "slot",
        Takes::Words("MIN [MAX] | distribution NAME TIME JITTER, then [packets N] [bytes SIZE]"),
        "none",
        "packets leave in bursts, at such intervals and of such a size",
    ),
];

pub(super) const NETEM: KindSpec = KindSpec {
    name: "netem",
    title: "a network's delay, jitter, loss, second copies, wrong bits, reordering and rate",
    qdisc: Some(OPTIONS),
    class: None,
    voice: Voice::Plain,
};
