//! What only kinds of this crate do: fast paths, and exactness in corners that nothing outside needs.
//!
//! Both traits are called without a table of functions. [`Batch`] is implemented by the kinds in
//! `kind/mod.rs`'s list of them, [`BuiltIn`] by all.

use crate::context::{Context, DeviceInfo};
use crate::discipline::{Discipline, Peek, QdiscState};
use crate::node::QdiscNode;
use alloc::vec::Vec;
use tidegate_classify::FilterList;
use tidegate_packet::{Handle, Pkt, Pool, Time};

/// How much may be taken in a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Packets.
    pub(crate) packets: usize,
    /// Bytes; the last packet may be longer than what is left.
    pub(crate) bytes: i64,
}

impl Budget {
    /// A packet of `len` bytes is taken.
    #[inline]
    pub(crate) fn take(&mut self, len: u32) {
        self.packets -= 1;
        self.bytes -= i64::from(len);
    }

    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.packets == 0 || self.bytes <= 0
    }
}

/// The qdisc in which a plain enqueue takes place.
#[derive(Clone, Copy)]
pub(crate) struct ParentQdisc<'a> {
    /// The handle of the qdisc whose batch this is.
    pub(crate) qdisc: Handle,
    /// The qdisc's filters, in order of preference.
    pub(crate) filters: &'a FilterList,
}

/// Kinds whose packets travel in batches where nothing but the obvious can happen to them.
pub(crate) trait Batch: Discipline {
    /// Takes a packet of `len` bytes where that is plain: the class is obvious, there is space in its queue,
    /// and no packet is dropped, marked or refused for it. Otherwise gives it back, with nothing done.
    fn enqueue_plain(&mut self, pool: &mut Pool, at: ParentQdisc<'_>, pkt: Pkt, len: u32) -> Result<(), Pkt>;

    /// The child that a packet will be handed to, as far as that shows at a glance. Taking in a batch goes
    /// down the tree with all its packets at once first, so that they wait for their cache lines together;
    /// nothing depends on the result but time.
    fn child_hint(
        &self,
        pool: &mut Pool,
        qdisc: Handle,
        filters: &FilterList,
        pkt: &Pkt,
    ) -> Option<&QdiscNode>;

    /// Loads what the next packets to leave will need, `depth` steps down from here: see
    /// [`QdiscNode::prefetch`].
    fn prefetch(&self, pool: &mut Pool, depth: u32, room: u32) {
        let _ = (pool, depth, room);
    }

    /// Gives several packets in a row, at least one, appended to `out`: those that as many calls of
    /// [`Discipline::dequeue`] at this moment would give, with the same effects, and without dropping any on
    /// the way. `false`: it does not know how, or cannot be sure; then nothing has happened.
    fn dequeue_run(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        budget: &mut Budget,
        out: &mut Vec<Pkt>,
    ) -> bool;
}

/// What a kind of this crate may do beside [`Discipline`].
pub(crate) trait BuiltIn {
    /// Kinds that can look at their next packet without taking it do so; `None` means that the Node must take
    /// it and hold it.
    fn peek(&mut self, cx: &mut Context<'_>) -> Option<Peek> {
        let _ = cx;
        None
    }

    /// The slot of the packet that [`BuiltIn::peek`] found; nothing has changed since.
    fn peek_slot(&self) -> Option<usize> {
        None
    }

    /// Runs the maintenance that was due up to `now`, when the state was as it is. A kind that has such runs
    /// it at the beginning of every call; the Node requests it where it does something behind the kind's
    /// back.
    fn catch_up(&mut self, now: Time, own: QdiscState) {
        let _ = (now, own);
    }

    /// The device's transmit queue has another length; for the kinds that take their size from it at any
    /// time. Nothing waits.
    fn resize(&mut self, device: DeviceInfo) {
        let _ = device;
    }
}
