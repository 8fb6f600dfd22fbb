//! skbprio: the packet of the least priority makes space.

use super::name::Kind;
use super::row::{Ahead, Changes, ClassLayout, Filters, Waits};
use crate::spec::error_style::ErrorStyle;
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};
use alloc::vec;
use alloc::vec::Vec;

/// The options of skbprio (tc-skbprio(8)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkbprioParams {
    /// Packets that may wait. Default: 64.
    pub limit: Option<u32>,
}

const OPTIONS: &[OptionSpec] =
    &[OptionSpec::exact("limit", ValueKind::Size, "64", "maximum backlog in packets")];

const VOICE: ErrorStyle = ErrorStyle {
    illegal: "skbprio: Illegal \"{name}\" value:\"{text}\"",
    unknown: "skbprio: unknown parameter \"{word}\"",
    ..ErrorStyle::PLAIN
};

pub(super) const SKBPRIO: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    classes: ClassLayout::Priorities,
    filters: Filters::Unsupported,
    waits: Waits::UntilFull,
    changes: Changes::InPlace,
    error_style: VOICE,
    ..KindSpec::new(
        Kind::Skbprio,
        "skbprio",
        "by priority, 0 to 63; when full, the least important packet makes room",
    )
};

pub(super) fn ahead(params: &SkbprioParams) -> Vec<Ahead> {
    vec![Ahead::Packets { queue: "queue", limit: params.limit.unwrap_or(64) }]
}
