//! pfifo, bfifo and pfifo_head_drop: first in, first out.

use super::{Ahead, Changes, Kind, QdiscParams, Waits};
use crate::spec::{KindSpec, OptionSpec, Takes, Voice};
use alloc::vec;
use alloc::vec::Vec;

/// pfifo, bfifo and pfifo_head_drop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FifoParams {
    /// Packets (bfifo: bytes). Default: the device's transmit queue length (bfifo: times the largest frame).
    pub limit: Option<u32>,
}

const PACKETS: &[OptionSpec] =
    &[OptionSpec::exact("limit", Takes::Size, "the device's txqueuelen", "packets that may wait; 0 drops everything")];

const BYTES: &[OptionSpec] = &[OptionSpec::exact(
    "limit",
    Takes::Size,
    "txqueuelen times the largest frame",
    "bytes that may wait; a longer packet never enters",
)];

const VOICE: Voice = Voice {
    illegal: "{kind}: Illegal value for \"{name}\": \"{text}\"",
    unknown: "{kind}: unknown parameter \"{word}\"",
    ..Voice::PLAIN
};

pub(super) const PFIFO: KindSpec = KindSpec {
    qdisc: Some(PACKETS),
    voice: VOICE,
    waits: Waits::UntilFull,
    changes: Changes::InPlace,
    ahead,
    ..KindSpec::new(Kind::Pfifo, "pfifo", "first in, first out, limited in packets")
};

pub(super) const BFIFO: KindSpec = KindSpec {
    qdisc: Some(BYTES),
    voice: VOICE,
    waits: Waits::UntilFull,
    changes: Changes::InPlace,
    ahead: ahead_in_bytes,
    ..KindSpec::new(Kind::Bfifo, "bfifo", "first in, first out, limited in bytes")
};

pub(super) const PFIFO_HEAD_DROP: KindSpec = KindSpec {
    qdisc: Some(PACKETS),
    voice: VOICE,
    waits: Waits::UntilFull,
    changes: Changes::InPlace,
    ahead,
    ..KindSpec::new(
        Kind::PfifoHeadDrop,
        "pfifo_head_drop",
        "first in, first out; when full, the oldest packet is dropped",
    )
};

fn ahead(params: &QdiscParams) -> Vec<Ahead> {
    let QdiscParams::Fifo(params) = params else { return Vec::new() };
    vec![Ahead::Packets { queue: "queue", limit: params.limit.unwrap_or(1000) }]
}

fn ahead_in_bytes(params: &QdiscParams) -> Vec<Ahead> {
    let QdiscParams::Fifo(FifoParams { limit: Some(limit) }) = params else { return Vec::new() };
    vec![Ahead::Bytes { queue: "queue", limit: *limit }]
}
