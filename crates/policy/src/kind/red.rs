//! red: random early detection.

use super::name::Kind;
use super::row::{Ahead, Changes, ClassLayout, Filters, Waits};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// What random early detection goes by, as tc computes it and the kernel keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedCurve {
    /// Below this average nothing happens; bytes (choke: packets).
    pub min: u32,
    /// From this average on every packet is marked or dropped.
    pub max: u32,
    /// The average moves by 1/2^this of the difference with each packet.
    pub wlog: u8,
    /// log2 of (max - min) / probability: what kernels before 3.3 went by.
    pub plog: u8,
    /// Each entry of the idle table covers 2^this microseconds.
    pub scell_log: u8,
    /// Probability of a mark at `max`, in 2^-32.
    pub max_p: u32,
}

/// By how many bits the average shrinks while the queue is idle, by the idle time in cells.
pub type IdleTable = [u8; 256];

/// The options of red (Floyd and Jacobson 1993; tc-red(8)), in bytes, and of choke (Pan, Prabhakar, Psounis
/// 2000; tc-choke(8)), in packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedParams {
    /// Bytes (choke: packets) that may wait.
    pub limit: u32,
    /// At which average queue packets are marked or dropped.
    pub curve: RedCurve,
    /// What idleness does to the average. Not in a dump.
    pub idle: Option<Box<IdleTable>>,
    /// Mark packets that can carry a mark instead of dropping them.
    pub ecn: bool,
    /// Drop above `max` even what can carry a mark.
    pub harddrop: bool,
    /// Move the probability so that the average stays between the thresholds.
    pub adaptive: bool,
    /// Never drop early, also what cannot carry a mark.
    pub nodrop: bool,
}

/// The counters of red and choke.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedStats {
    /// Packets dropped before the queue was full.
    pub early: u32,
    /// Packets that the queue below had no space for.
    pub pdrop: u32,
    /// Packets dropped in other ways.
    pub other: u32,
    /// Packets marked instead of dropped.
    pub marked: u32,
    /// choke: pairs of packets of one flow.
    pub matched: Option<u32>,
}

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("limit", ValueKind::Size, "", "maximum backlog in bytes; required"),
    OptionSpec::exact(
        "min",
        ValueKind::Size,
        "max/3",
        "average queue in bytes above which packets are marked or dropped",
    ),
    OptionSpec::exact(
        "max",
        ValueKind::Size,
        "limit/4",
        "average queue in bytes above which every packet is",
    ),
    OptionSpec::exact(
        "burst",
        ValueKind::Number,
        "(2 min + max) / (3 avpkt)",
        "packets in a burst that the average tolerates",
    ),
    OptionSpec::exact("avpkt", ValueKind::Size, "", "usual packet size in bytes; required"),
    OptionSpec::exact("probability", ValueKind::Fraction, "0.02", "probability of a mark at max"),
    OptionSpec::exact(
        "bandwidth",
        ValueKind::Rate32,
        "10mbit",
        "the link's rate, by which the average falls while the queue is idle",
    ),
    OptionSpec::exact("ecn", ValueKind::Flag, "off", "mark ECN-capable packets instead of dropping them"),
    OptionSpec::exact("harddrop", ValueKind::Flag, "off", "above max drop even ECN-capable packets"),
    OptionSpec::exact(
        "nodrop",
        ValueKind::Flag,
        "off",
        "let packets pass that should be marked and are not ECN-capable; needs ecn",
    ),
    OptionSpec::exact(
        "adaptive",
        ValueKind::Flag,
        "off",
        "accepted, without effect since iproute2 5.7: was meant to adapt the probability",
    )
    .or(&["adaptative"]),
];

pub(super) const RED: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    classes: ClassLayout::One,
    filters: Filters::Unsupported,
    waits: Waits::KeptShort,
    changes: Changes::AsMade,
    ..KindSpec::new(
        Kind::Red,
        "red",
        "random early detection: drops or marks more the longer the average queue is",
    )
};

pub(super) fn ahead(params: &RedParams) -> Vec<Ahead> {
    vec![Ahead::Bytes { queue: "queue", limit: params.limit }]
}

pub(super) fn ahead_in_choke(params: &RedParams) -> Vec<Ahead> {
    vec![Ahead::Packets { queue: "choke", limit: params.limit }]
}

pub(super) fn untold(params: &RedParams) -> Option<&'static str> {
    params.idle.is_none().then_some("how its average falls while it is idle")
}
