//! gred: random early detection with several curves in one queue.

use super::name::Kind;
use super::red::IdleTable;
use super::red::RedCurve;
use super::row::{Ahead, Waits};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// What tc configures of a gred: the table, or one of its virtual queues; in a dump, both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GredParams {
    /// `gred setup …`: the qdisc.
    Setup(GredSetup),
    /// `gred vq N …`: one of its queues.
    Queue(Box<GredQueue>),
    /// What a dump brings.
    InForce(GredSetup, Vec<GredQueueDump>),
}

/// The table of a gred (`gred setup`; sch_gred, generic random early detection).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GredSetup {
    /// Its number, from 0; packets choose it by the lower four bits of their `tc_index`.
    pub vqs: u32,
    /// The queue of packets that name none, or one that is not set up.
    pub default: u32,
    /// Does the average of a queue hold those of the queues before it?
    pub grio: bool,
    /// Bytes that may wait in all. Default: the device's transmit queue length times its largest frame.
    pub limit: Option<u32>,
    /// What happens to packets that are to be marked, in queues without flags of their own.
    pub flags: GredFlags,
}

/// What happens to packets that are to be marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GredFlags {
    /// Mark packets that can carry a mark instead of dropping them.
    pub ecn: bool,
    /// Drop above `max` even what can carry a mark.
    pub harddrop: bool,
}

/// A virtual queue of gred (`gred vq`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GredQueue {
    /// The virtual queue's number, 0 to 15 (`vq`).
    pub vq: u32,
    /// Its place in the order that `grio` adds averages by; 0: not given.
    pub prio: u8,
    /// Bytes that may wait in it.
    pub limit: u32,
    /// At which average queue packets are marked or dropped, bytes.
    pub curve: RedCurve,
    /// What idleness does to the average. Not in a dump.
    pub idle: Option<Box<IdleTable>>,
    /// Its own flags, where it has such.
    pub flags: Option<GredFlags>,
}

/// A virtual queue of gred, with what it counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GredQueueDump {
    /// Its options in force.
    pub queue: GredQueue,
    /// The average queue, bytes.
    pub average: u32,
    /// Bytes that wait in it.
    pub backlog: u32,
    /// Packets dropped because the average was too long.
    pub forced_drop: u32,
    /// Dropped by the probability.
    pub prob_drop: u32,
    /// Marked because the average was too long.
    pub forced_mark: u32,
    /// Marked by the probability.
    pub prob_mark: u32,
    /// Packets for which there was no space.
    pub pdrop: u32,
    /// Packets that came to it.
    pub packets: u32,
    /// Bytes that came to it.
    pub bytes: u64,
}

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact(
        "setup",
        ValueKind::Words("vqs N default N [grio] [limit SIZE] [ecn] [harddrop]"),
        "",
        "the table of virtual queues: their number, 1 to 16, and the default one; comes first",
    )
    .or(&["init"]),
    OptionSpec::exact("vq", ValueKind::Decimal, "", "the virtual queue to configure; required").or(&["DP"]),
    OptionSpec::exact(
        "prio",
        ValueKind::Decimal,
        "8",
        "with grio: averages of queues with a lower prio are added to its own",
    ),
    OptionSpec::exact(
        "limit",
        ValueKind::Size,
        "",
        "maximum backlog of the virtual queue in bytes; required",
    ),
    OptionSpec::exact(
        "min",
        ValueKind::Size,
        "",
        "average queue in bytes above which packets are marked or dropped; required",
    ),
    OptionSpec::exact(
        "max",
        ValueKind::Size,
        "",
        "average queue in bytes above which every packet is; required",
    ),
    OptionSpec::exact("avpkt", ValueKind::Size, "", "usual packet size in bytes; required"),
    OptionSpec::exact(
        "burst",
        ValueKind::Decimal,
        "(2 min + max) / (3 avpkt)",
        "packets in a burst that the average tolerates",
    ),
    OptionSpec::exact("probability", ValueKind::Fraction, "0.02", "probability of a mark at max"),
    OptionSpec::exact(
        "bandwidth",
        ValueKind::Rate32,
        "10mbit",
        "the link's rate, by which the average falls while the queue is idle",
    ),
    OptionSpec::exact("ecn", ValueKind::Flag, "off", "mark ECN-capable packets instead of dropping them"),
    OptionSpec::exact("harddrop", ValueKind::Flag, "off", "above max drop even ECN-capable packets"),
];

/// What follows `setup`.
pub const GRED_SETUP: &[OptionSpec] = &[
    OptionSpec::exact(
        "vqs",
        ValueKind::Decimal,
        "",
        "virtual queues, 1 to 16; must be given, before default",
    )
    .or(&["DPs"]),
    OptionSpec::exact(
        "default",
        ValueKind::Decimal,
        "",
        "the queue of packets that name none; must be given",
    ),
    OptionSpec::exact(
        "grio",
        ValueKind::Flag,
        "off",
        "averages of queues that go before count with a queue's own",
    ),
    OptionSpec::exact(
        "limit",
        ValueKind::Size,
        "the device's txqueuelen",
        "bytes that may wait in all queues together",
    ),
    OptionSpec::exact("ecn", ValueKind::Flag, "off", "mark ECN-capable packets instead of dropping them"),
    OptionSpec::exact("harddrop", ValueKind::Flag, "off", "above max drop even ECN-capable packets"),
];

pub(super) const GRED: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    waits: Waits::KeptShort,
    ..KindSpec::new(Kind::Gred, "gred", "random early detection with several curves in one queue")
};

pub(super) fn ahead(params: &GredParams) -> Vec<Ahead> {
    let GredParams::InForce(setup, queues) = params else { return Vec::new() };
    // A packet waits behind those of all virtual queues, and each has a limit of its own.
    let together: u32 = queues.iter().fold(0, |sum, dump| sum.saturating_add(dump.queue.limit));
    let limit = setup.limit.unwrap_or(0);
    vec![Ahead::Bytes { queue: "queue", limit: if queues.is_empty() { limit } else { limit.min(together) } }]
}

pub(super) const UNTOLD: &str = "how its averages fall while it is idle";
