//! choke: random early detection that also drops the arrival's match.

use super::name::Kind;
use super::row::{Changes, Waits};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("limit", ValueKind::Number, "", "packets that may wait; must be given"),
    OptionSpec::exact(
        "bandwidth",
        ValueKind::Rate32,
        "",
        "the link's rate, to let the average sink while it is idle; must be given",
    ),
    OptionSpec::exact(
        "min",
        ValueKind::Number,
        "max/3",
        "average queue in packets from which flows are compared",
    ),
    OptionSpec::exact(
        "max",
        ValueKind::Number,
        "limit/4",
        "average queue in packets from which every packet is marked",
    ),
    OptionSpec::exact(
        "burst",
        ValueKind::Number,
        "(2 min + max) / 3",
        "packets the average lets pass at once",
    ),
    OptionSpec::exact("avpkt", ValueKind::Size, "1000", "bytes of a usual packet"),
    OptionSpec::exact("probability", ValueKind::Fraction, "0.02", "probability of a mark at max"),
    OptionSpec::exact(
        "ecn",
        ValueKind::Flag,
        "off",
        "mark packets that can carry a mark instead of dropping them",
    ),
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
