//! choke: random early detection that also drops the arrival's match.

use super::name::Kind;
use super::row::{Changes, Waits};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("limit", ValueKind::Number, "", "maximum backlog in packets; required"),
    OptionSpec::exact(
        "bandwidth",
        ValueKind::Rate32,
        "",
        "the link's rate, by which the average falls while the queue is idle; required",
    ),
    OptionSpec::exact(
        "min",
        ValueKind::Number,
        "max/3",
        "average queue in packets above which flows are compared",
    ),
    OptionSpec::exact(
        "max",
        ValueKind::Number,
        "limit/4",
        "average queue in packets above which every packet is marked or dropped",
    ),
    OptionSpec::exact(
        "burst",
        ValueKind::Number,
        "(2 min + max) / 3",
        "packets in a burst that the average tolerates",
    ),
    OptionSpec::exact("avpkt", ValueKind::Size, "1000", "usual packet size in bytes"),
    OptionSpec::exact("probability", ValueKind::Fraction, "0.02", "probability of a mark at max"),
    OptionSpec::exact("ecn", ValueKind::Flag, "off", "mark ECN-capable packets instead of dropping them"),
];

pub(super) const CHOKE: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    waits: Waits::KeptShort,
    changes: Changes::AsMade,
    ..KindSpec::new(
        Kind::Choke,
        "choke",
        "random early detection that drops a packet's own kin from the queue with it",
    )
};
