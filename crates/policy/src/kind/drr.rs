//! drr: classes take turns by bytes.

use super::name::Kind;
use super::row::{ClassLayout, Filters};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};

/// The options of a class of drr, deficit round robin (Shreedhar and Varghese 1995; tc-drr(8)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrrClassParams {
    /// Bytes sent in its turn. Default: the largest frame.
    pub quantum: Option<u32>,
}

const CLASS: &[OptionSpec] = &[OptionSpec::exact(
    "quantum",
    ValueKind::Size,
    "the largest frame",
    "bytes that the class sends per round, not 0",
)];

pub(super) const DRR: KindSpec = KindSpec {
    qdisc: Some(&[]),
    class: Some(CLASS),
    classes: ClassLayout::Made,
    filters: Filters::OfQdisc,
    ..KindSpec::new(
        Kind::Drr,
        "drr",
        "deficit round robin: classes take turns by bytes; filters must name the class",
    )
};
