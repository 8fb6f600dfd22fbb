//! What a qdisc must do: take a packet, give one, change. The counting around it is [`QdiscNode`]'s.

use crate::classful::Classful;
use crate::context::Context;
use crate::node::QdiscNode;
use tidegate_classify::FilterList;
use tidegate_packet::{Handle, Pkt, Time, Timer};
use tidegate_policy::dump::{QueueStats, Xstats};
use tidegate_policy::{QdiscParams, TcError};

/// What happened to a packet that was handed to a qdisc.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueue {
    /// The packet is queued.
    Queued,
    /// It is queued or dropped, and its own flow had a drop: slow down.
    Congested,
    /// It is gone.
    Dropped,
    /// It is gone, but the sender must not know (netem's loss): a drop to every ancestor.
    DroppedSilently,
    /// It was taken elsewhere (stolen, redirected): neither sent nor dropped.
    Taken,
    /// The shaper must first offer a copy at the root (netem's duplicate), then resume.
    Parked,
}

/// What a qdisc has to send.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub enum Dequeue {
    /// This packet, now.
    Packet(Pkt),
    /// Nothing waits.
    Empty,
    /// There is a backlog that may not leave yet; the qdisc that delays it has armed its watchdog.
    Throttled,
}

/// What a qdisc would send next, left in place.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peek {
    /// A packet of this many bytes.
    Packet(u32),
    /// Nothing waits.
    Empty,
    /// Something waits but may not go yet.
    Throttled,
}

/// A packet that a qdisc drops because a change left no space for it.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub enum Trimmed {
    /// It counts as dropped here.
    Dropped(Pkt),
    /// It counts as sent here, and as dropped by the ancestors.
    Sent(Pkt),
    /// What waits fits.
    Nothing,
}

/// The state of the node that its qdisc may need: limits read these, not a private list, because a packet
/// held for a peek still counts.
#[derive(Clone, Copy, Debug)]
pub struct QdiscState {
    /// The handle of the qdisc.
    pub handle: Handle,
    /// Packets waiting.
    pub qlen: u32,
    /// Bytes waiting.
    pub backlog: u64,
    /// The number of its watchdog: see [`Context::wake`].
    pub(crate) watchdog: u32,
}

/// What a walk over a tree is shown.
pub trait Visit {
    /// A qdisc; called before its children's.
    fn node(&mut self, node: &mut QdiscNode);
}

/// The policy of one kind of qdisc: its law, without counting.
///
/// A [`QdiscNode`] runs it and keeps packets in = sent + dropped + waiting. So a qdisc
/// - returns a packet or keeps it, and drops one by [`Context::drop`] only (a [`Pkt`] that goes out of scope
///   is a bug, and panics);
/// - takes limits from [`QdiscState`], in which a packet that a parent peeked at still counts;
/// - returns [`Dequeue::Throttled`] when it has a backlog that may not leave yet, after [`Context::wake`];
/// - takes the time, randomness and the pool from [`Context`] and from nowhere else: the same seed must give
///   the same bytes.
///
/// Implement it outside this crate and put it into a tree by [`custom`](crate::custom); the `custom-qdisc`
/// example crate does.
pub trait Discipline: Send {
    /// Takes a packet. `filters` are those of the qdisc: see [`Context::classify`].
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue;

    /// Gives the next packet. Never called while a packet is held for a peek.
    fn dequeue(&mut self, cx: &mut Context<'_>, own: QdiscState) -> Dequeue;

    /// Takes new parameters; `None`: those of a command without options. [`Discipline::trim`] then removes
    /// what no longer fits.
    ///
    /// # Errors
    /// Kinds without a change operation refuse; others refuse what the kernel would. Nothing has changed
    /// then.
    fn change(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError>;

    /// If more waits than the parameters allow, the packet to drop for it: `held`, the one that was held for
    /// a peek, goes first. Called after a change, until there is none.
    fn trim(&mut self, cx: &mut Context<'_>, own: QdiscState, peeked: &mut Option<Pkt>) -> Trimmed {
        let _ = (cx, own, peeked);
        Trimmed::Nothing
    }

    /// Drops every packet, children's included ([`Context::purge`], [`QdiscNode::purge`]), and begins again
    /// as if new.
    fn purge(&mut self, cx: &mut Context<'_>, own: QdiscState);

    /// The parameters in force, as a dump brings them.
    fn params(&self) -> QdiscParams;

    /// What only this kind counts.
    fn xstats(&mut self, now: Time) -> Xstats {
        let _ = now;
        Xstats::None
    }

    /// Adds to what the Node counted: `overlimits`, `requeues`, further drops, or a backlog that the kernel's
    /// own kind miscounts.
    fn amend_stats(&self, stats: &mut QueueStats) {
        let _ = stats;
    }

    /// Its classes, if it has such.
    fn as_classful(&self) -> Option<&dyn Classful> {
        None
    }

    /// The classful interface, mutable; see `as_classful`.
    fn as_classful_mut(&mut self) -> Option<&mut dyn Classful> {
        None
    }

    /// Its changing hash key, if it has such.
    fn as_rehash(&self) -> Option<&dyn Rehash> {
        None
    }

    /// The rehashing interface, mutable; see `as_rehash`.
    fn as_rehash_mut(&mut self) -> Option<&mut dyn Rehash> {
        None
    }
}

/// A hash key that changes from time to time, of the qdisc or of its classes' filters.
pub trait Rehash {
    /// When the hash key is due to change; [`Timer::NEVER`] if it stays.
    fn rehash_due(&self) -> Timer;

    /// When the keys that fire later than `due` are next to change.
    fn rehash_due_after(&self, due: Timer) -> Timer {
        Some(self.rehash_due()).filter(|timer| timer.at > due.at).unwrap_or(Timer::NEVER)
    }

    /// Changes the hash key that was due at `due`, and arms the next change. `filtered`: the qdisc has
    /// filters.
    fn rehash(&mut self, cx: &mut Context<'_>, own: QdiscState, due: Timer, filtered: bool);
}
