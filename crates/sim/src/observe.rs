//! Packets at observed links: when each was queued there, when it left, and how.

use crate::link::LinkId;
use crate::machine::DropRecord;
use crate::machine::Port;
use alloc::vec::Vec;
use tidegate_gateway::DropReason;
use tidegate_packet::{Handle, Head, QueueLocation, Time};

/// A packet's sojourn at a link, from its arrival until its transmission began or it was dropped.
#[derive(Clone, Debug)]
pub struct SojournRecord {
    /// The link where it ended: for a packet that filters redirected, that of the device it left by.
    pub link: LinkId,
    /// When it came.
    pub came: Time,
    /// When its transmission began, or when it was dropped.
    pub ended: Time,
    /// How it ended.
    pub end: SojournEnd,
    /// The qdisc and class it waited in; nothing where no policy governs.
    pub queue: QueueLocation,
    /// Its header bytes in the end, but for the DS field.
    pub head: Head,
    /// The frame's length in the end, bytes.
    pub len: u32,
    /// Its DS field when it came.
    pub came_with: u8,
    /// And in the end.
    pub dsfield: u8,
    /// The tag it was injected with, if it is a foreign packet: see [`Net::inject`](crate::Net::inject).
    pub owner: Option<u32>,
    /// A machine made it of another packet.
    pub copy: bool,
}

/// How a stay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SojournEnd {
    /// Its transmission began.
    Sent,
    /// It was dropped: in which qdisc and why; `None` where a full buffer refused it.
    Dropped(Option<(Handle, DropReason)>),
}

/// What is observed.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(crate) links: Vec<bool>,
    /// The machine's ports behind them.
    pub(crate) ports: Vec<Port>,
    /// By slot, those that wait.
    pub(crate) open: Vec<Option<Open>>,
    pub(crate) done: Vec<SojournRecord>,
    pub(crate) losses: Vec<DropRecord>,
}

/// A stay that continues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) came: Time,
    pub(crate) came_with: u8,
}
