//! skbprio: the packet of the least priority makes room.

use super::name::Kind;
use super::row::{Ahead, Changes, Classes, Filters, Waits};
use crate::spec::table::{KindSpec, OptionSpec, Takes};
use crate::spec::voice::Voice;
use alloc::vec;
use alloc::vec::Vec;

/// The options of skbprio (tc-skbprio(8)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkbprioParams {
    /// Packets that may wait. Default: 64.
    pub limit: Option<u32>,
}

const OPTIONS: &[OptionSpec] = &[OptionSpec::exact("limit", Takes::Size, "64", "packets that may wait")];

const VOICE: Voice = Voice {
    illegal: "skbprio: Illegal \"{name}\" value:\"{text}\"",
    illegal_usage: true,
    unknown: "skbprio: unknown parameter \"{word}\"",
    ..Voice::PLAIN
};

pub(super) const SKBPRIO: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    classes: Classes::Priorities,
    filters: Filters::Unsupported,
    waits: Waits::UntilFull,
    changes: Changes::InPlace,
    voice: VOICE,
    ..KindSpec::new(
        Kind::Skbprio,
        "skbprio",
        "by priority, 0 to 63; when full, the least important packet makes room",
    )
};

pub(super) fn ahead(params: &SkbprioParams) -> Vec<Ahead> {
    vec![Ahead::Packets { queue: "queue", limit: params.limit.unwrap_or(64) }]
}
