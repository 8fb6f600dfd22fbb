//! gred.

use super::{IdleTable, RedCurve};

/// What tc says of a gred: the table, or one of its virtual queues; in a dump, both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GredParams {
    /// `gred setup …`: the qdisc.
    Setup(GredSetup),
    /// `gred vq N …`: one of its queues.
    Queue(Box<GredQueue>),
    /// What a dump brings.
    InForce(GredSetup, Vec<GredQueueDump>),
}

/// The table of a gred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GredSetup {
    /// Virtual queues, 1 to 16.
    pub vqs: u32,
    /// The queue of packets that name none, or one that is not set up.
    pub default: u32,
    /// Does the average of a queue hold those of the queues before it?
    pub grio: bool,
    /// Bytes that may wait in all. Default: the device's transmit queue length times its largest frame.
    pub limit: Option<u32>,
    /// Flags of all queues.
    pub flags: GredFlags,
}

/// What becomes of packets that are to be marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GredFlags {
    /// Mark packets that can carry a mark instead of dropping them.
    pub ecn: bool,
    /// Drop above `max` even what can carry a mark.
    pub harddrop: bool,
}

/// A virtual queue of gred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GredQueue {
    /// Its number.
    pub vq: u32,
    /// Its place in the order that `grio` adds averages by; 0: not given.
    pub prio: u8,
    /// Bytes that may wait in it.
    pub limit: u32,
    /// When to mark.
    pub curve: RedCurve,
    /// What idleness does to the average. Not in a dump.
    pub idle: Option<Box<IdleTable>>,
    /// Its own flags, where it has such.
    pub flags: Option<GredFlags>,
}

/// A virtual queue of gred, with what it counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GredQueueDump {
    /// What it goes by.
    pub queue: GredQueue,
    /// The average, bytes.
    pub average: u32,
    /// Bytes that wait.
    pub backlog: u32,
    /// Packets dropped because the average was too long.
    pub forced_drop: u32,
    /// Dropped by the probability.
    pub prob_drop: u32,
    /// Marked because the average was too long.
    pub forced_mark: u32,
    /// Marked by the probability.
    pub prob_mark: u32,
    /// Packets for which there was no room.
    pub pdrop: u32,
    /// Packets that came.
    pub packets: u32,
    /// Bytes that came.
    pub bytes: u64,
}
