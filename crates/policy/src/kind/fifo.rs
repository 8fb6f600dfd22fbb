//! pfifo, bfifo and pfifo_head_drop: first in, first out.

use super::name::Kind;
use super::row::{Ahead, Changes, Waits};
use crate::spec::error_style::ErrorStyle;
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};
use alloc::vec;
use alloc::vec::Vec;

/// pfifo, bfifo and pfifo_head_drop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FifoParams {
    /// Packets (bfifo: bytes). Default: the device's transmit queue length (bfifo: times the largest frame).
    pub limit: Option<u32>,
}

const PACKETS: &[OptionSpec] = &[OptionSpec::exact(
    "limit",
    ValueKind::Size,
    "the device's txqueuelen",
    "maximum backlog in packets; 0 drops everything",
)];

const BYTES: &[OptionSpec] = &[OptionSpec::exact(
    "limit",
    ValueKind::Size,
    "txqueuelen times the largest frame",
    "maximum backlog in bytes; a longer packet never enters",
)];

const VOICE: ErrorStyle = ErrorStyle {
    illegal: "{kind}: Illegal value for \"{name}\": \"{text}\"",
    unknown: "{kind}: unknown parameter \"{word}\"",
    ..ErrorStyle::PLAIN
};

pub(super) const PFIFO: KindSpec = KindSpec {
    qdisc: Some(PACKETS),
    error_style: VOICE,
    waits: Waits::UntilFull,
    changes: Changes::InPlace,
    ..KindSpec::new(Kind::Pfifo, "pfifo", "first in, first out, limited in packets")
};

pub(super) const BFIFO: KindSpec = KindSpec {
    qdisc: Some(BYTES),
    error_style: VOICE,
    waits: Waits::UntilFull,
    changes: Changes::InPlace,
    ..KindSpec::new(Kind::Bfifo, "bfifo", "first in, first out, limited in bytes")
};

pub(super) const PFIFO_HEAD_DROP: KindSpec = KindSpec {
    qdisc: Some(PACKETS),
    error_style: VOICE,
    waits: Waits::UntilFull,
    changes: Changes::InPlace,
    ..KindSpec::new(
        Kind::PfifoHeadDrop,
        "pfifo_head_drop",
        "first in, first out; when full, the oldest packet is dropped",
    )
};

pub(super) fn ahead(params: &FifoParams) -> Vec<Ahead> {
    vec![Ahead::Packets { queue: "queue", limit: params.limit.unwrap_or(1000) }]
}

pub(super) fn ahead_in_bytes(params: &FifoParams) -> Vec<Ahead> {
    let FifoParams { limit: Some(limit) } = params else { return Vec::new() };
    vec![Ahead::Bytes { queue: "queue", limit: *limit }]
}
