//! qfq: classes share by weight.

use super::name::Kind;
use super::row::{ClassLayout, Filters};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};

/// The options of a class of qfq (QFQ+: Checconi, Valente, Rizzo 2013; tc-qfq(8)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QfqClassParams {
    /// Its share, 1 to 1024. In a dump: the value in force. Default: 1.
    pub weight: Option<u32>,
    /// Its longest packet, bytes, 512 to 65536. Default: the largest frame.
    pub maxpkt: Option<u32>,
}

const CLASS: &[OptionSpec] = &[
    OptionSpec::short("weight", ValueKind::Decimal, "1", "weight relative to the other classes, 1 to 1024"),
    OptionSpec::short(
        "maxpkt",
        ValueKind::Decimal,
        "the largest frame",
        "longest packet in bytes, 512 to 65536",
    ),
];

pub(super) const QFQ: KindSpec = KindSpec {
    qdisc: Some(&[]),
    class: Some(CLASS),
    classes: ClassLayout::Made,
    filters: Filters::OfQdisc,
    ..KindSpec::new(
        Kind::Qfq,
        "qfq",
        "quick fair queueing: classes share by weight, nearly as fairly as can be; filters must name the class",
    )
};
