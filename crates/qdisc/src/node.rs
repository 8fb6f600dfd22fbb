//! One qdisc: the counting that all kinds have in common, around the qdisc that makes it this kind.

mod listing;

use crate::algo::{RateEstimator, Sent};
use crate::batch::{Budget, ParentQdisc};
use crate::classful::{Classful, InnerClasses};
use crate::context::{Context, DeviceInfo, DropReason, Watchdogs};
use crate::discipline::{Dequeue, Enqueue, Peek, QdiscState, Trimmed, Visit};
use crate::kind::{Body, Mq, Noop};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::hint::black_box;
use tidegate_classify::FilterList;
use tidegate_packet::{Handle, Pkt, Pool, Time, Timer};
use tidegate_policy::dump::{QueueStats, RateSample};
use tidegate_policy::{ClassOp, Errno, Estimator, Kind, NetemParams, QdiscParams, SizeTable, TcError};

/// Counters of a qdisc, wide.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stats {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    pub(crate) drops: u32,
    pub(crate) qlen: u32,
    pub(crate) backlog: u64,
}

impl Stats {
    /// A packet of `len` bytes leaves.
    #[inline]
    fn sent(&mut self, len: u32) {
        self.qlen -= 1;
        self.gone(u64::from(len));
        self.packets += 1;
        self.bytes += u64::from(len);
    }

    /// Takes this many bytes from the backlog. The sum may fall below zero above a qdisc that reported a
    /// wrong length ([`Context::drop_instead`]).
    #[inline]
    fn gone(&mut self, bytes: u64) {
        self.backlog = self.backlog.wrapping_sub(bytes);
    }
}

/// One qdisc.
///
/// Conservation: packets taken in = sent + dropped + waiting, and likewise for bytes. Both hold after every
/// call.
///
/// Two lines of the cache, of which most packets need the first only: a tree of thousands of leaves is as
/// fast as it is small.
#[repr(C, align(64))]
pub struct QdiscNode {
    body: Body,
    pub(crate) stats: Stats,
    handle: Handle,
    watchdog: u32,
    /// Made when something is put there.
    rare: Option<Box<Rare>>,

    /// A packet taken for a peek: already counted as sent, still waiting.
    peeked: Option<Pkt>,
    parent: Handle,
    kind: Kind,
    /// Rate estimators are at work; then something is in `rare`.
    measured: bool,
}

/// Packets sent up to which each operation is checked, and how often later ones are ([`QdiscNode::check`]).
const OFTEN: u64 = 256;
const SELDOM: u64 = 64;

const NO_FILTERS: &FilterList = &FilterList::new();

/// What few qdiscs have.
#[derive(Default)]
struct Rare {
    /// The filters that are attached to it.
    filters: FilterList,
    stab: Option<SizeTable>,
    /// Its rate estimators: its own under its handle, those of its classes under theirs.
    estimators: Vec<(Handle, RateEstimator)>,
    /// When it was made, for the order of dumps.
    born: u64,
}

impl core::fmt::Debug for QdiscNode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let QdiscNode { kind, handle, parent, .. } = self;
        write!(f, "{} {handle} on {parent}: {} packets", kind.name(), self.qlen())
    }
}

impl QdiscNode {
    /// A qdisc of `kind` with parameters as tc sends them.
    ///
    /// # Errors
    /// As the kernel refuses them.
    pub(crate) fn new(
        cx: &mut Context<'_>,
        kind: Kind,
        handle: Handle,
        parent: Handle,
        params: Option<&QdiscParams>,
        born: u64,
    ) -> Result<QdiscNode, TcError> {
        let body = Body::new(cx, kind, handle, parent, params)?;
        let watchdog = cx.watchdogs.register();
        let mut node = QdiscNode::assemble(kind, body, parent, watchdog);
        node.handle = handle;
        node.rare_mut().born = born;
        Ok(node)
    }

    /// A qdisc that was not requested, with the parameters of a command without options: it has no handle and
    /// no dump shows it. Classes begin with one. `kind` is that of a fifo.
    pub fn hidden(cx: &mut Context<'_>, kind: Kind, parent: Handle) -> QdiscNode {
        QdiscNode::hidden_body(cx, kind, Body::default_of(cx.device, kind), parent)
    }

    /// What a transmit queue of an mq begins with.
    pub(crate) fn of_queue(cx: &mut Context<'_>, parent: Handle) -> QdiscNode {
        let body = Body::pfifo_fast(cx.device, false);
        QdiscNode::hidden_body(cx, Kind::PfifoFast, body, parent)
    }

    /// The byte-limited queue that TBF and RED make for themselves.
    pub(crate) fn hidden_bfifo(cx: &mut Context<'_>, limit: u32, parent: Handle) -> QdiscNode {
        QdiscNode::hidden_body(cx, Kind::Bfifo, Body::fifo(Kind::Bfifo, limit), parent)
    }

    /// The queue limited in packets that SFB makes for itself.
    pub(crate) fn hidden_pfifo(cx: &mut Context<'_>, limit: u32, parent: Handle) -> QdiscNode {
        QdiscNode::hidden_body(cx, Kind::Pfifo, Body::fifo(Kind::Pfifo, limit), parent)
    }

    /// The placeholder where a qdisc may be attached and none is. (An `Option` would have its tag in the
    /// cache line that packets do not need.)
    pub(crate) fn absent() -> QdiscNode {
        QdiscNode::assemble(Kind::Pfifo, Body::Noop(Noop), Handle::NONE, Watchdogs::NO_WATCHDOG)
    }

    /// The qdisc, if one is attached here.
    #[inline]
    pub(crate) fn there(&self) -> Option<&QdiscNode> {
        (self.watchdog != Watchdogs::NO_WATCHDOG).then_some(self)
    }

    /// The qdisc's body, mutable.
    #[inline]
    pub(crate) fn there_mut(&mut self) -> Option<&mut QdiscNode> {
        (self.watchdog != Watchdogs::NO_WATCHDOG).then_some(self)
    }

    /// Takes it away, if one is attached here, and ends it.
    pub(crate) fn leave(&mut self, cx: &mut Context<'_>) {
        if self.watchdog != Watchdogs::NO_WATCHDOG {
            core::mem::replace(self, QdiscNode::absent()).destroy(cx);
        }
    }

    /// The qdisc that drops everything: what is left where a child was deleted and nothing takes its place.
    pub(crate) fn noop(cx: &mut Context<'_>, parent: Handle) -> QdiscNode {
        QdiscNode::hidden_body(cx, Kind::Pfifo, Body::Noop(Noop), parent)
    }

    fn hidden_body(cx: &mut Context<'_>, kind: Kind, body: Body, parent: Handle) -> QdiscNode {
        QdiscNode::assemble(kind, body, parent, cx.watchdogs.register())
    }

    /// The root of a new device.
    pub(crate) fn untouched(device: DeviceInfo, watchdogs: &mut Watchdogs) -> QdiscNode {
        QdiscNode::unconfigured(device, device.queueless, watchdogs)
    }

    /// What takes the place of a root that is deleted: without a transmit queue there is no pfifo_fast
    /// (6.1 and 7.2 were asked).
    pub(crate) fn instead(cx: &mut Context<'_>) -> QdiscNode {
        let noqueue = cx.device.queueless || cx.device.tx_queue_len == 0;
        QdiscNode::unconfigured(cx.device, noqueue, cx.watchdogs)
    }

    fn unconfigured(device: DeviceInfo, noqueue: bool, watchdogs: &mut Watchdogs) -> QdiscNode {
        let kind = if noqueue { Kind::Noqueue } else { Kind::PfifoFast };
        let body = Body::pfifo_fast(device, noqueue);
        QdiscNode::assemble(kind, body, Handle::ROOT, watchdogs.register())
    }

    fn assemble(kind: Kind, body: Body, parent: Handle, watchdog: u32) -> QdiscNode {
        QdiscNode {
            handle: Handle::NONE,
            parent,
            kind,
            body,
            peeked: None,
            stats: Stats::default(),
            watchdog,
            measured: false,
            rare: None,
        }
    }

    /// Are rate estimators at work? Asked so that the second line is not needed for most.
    #[inline]
    fn is_measured(&self) -> bool {
        self.rare.is_some() && self.measured
    }

    fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    fn filters(&self) -> &FilterList {
        self.rare.as_ref().map_or(NO_FILTERS, |rare| &rare.filters)
    }

    /// Its handle; [`Handle::NONE`] of a default qdisc that no command names.
    pub fn handle(&self) -> Handle {
        self.handle
    }
    /// The class it is attached to.
    pub fn parent(&self) -> Handle {
        self.parent
    }
    /// Its kind of qdisc.
    pub fn kind(&self) -> Kind {
        self.kind
    }
    /// Packets waiting in it and below.
    pub fn qlen(&self) -> u32 {
        self.stats.qlen
    }
    /// Packets it has sent.
    pub(crate) fn sent_packets(&self) -> u64 {
        self.stats.packets
    }

    /// Its counters, as a dump brings them.
    pub fn stats(&self) -> QueueStats {
        let mut stats = QueueStats {
            bytes: self.stats.bytes,
            packets: self.stats.packets,
            drops: self.stats.drops,
            overlimits: 0,
            requeues: 0,
            qlen: self.stats.qlen,
            backlog: self.stats.backlog as u32,
            rate: self.rate_of(self.handle),
        };
        self.body.get().amend_stats(&mut stats);
        stats
    }

    fn rate_of(&self, of: Handle) -> Option<RateSample> {
        let estimators = &self.rare.as_ref()?.estimators;
        estimators.iter().find(|(id, _)| *id == of).map(|(_, estimator)| estimator.sample())
    }

    /// Begins to estimate the rate of the qdisc or of one of its classes, if the parameters request it.
    pub(crate) fn estimate(&mut self, cx: &Context<'_>, of: Handle, params: Option<Estimator>) {
        self.measure(cx.now);
        let (Some(params), Some(sent)) = (params, self.sent(of)) else { return };
        let all = &mut self.rare_mut().estimators;
        let before = all.iter().position(|(id, _)| *id == of).map(|at| all.swap_remove(at).1);
        all.push((of, RateEstimator::new(params, cx.device.jiffies, cx.now, sent, before.as_ref())));
        self.measured = true;
    }

    /// What the qdisc or one of its classes has sent.
    fn sent(&self, of: Handle) -> Option<Sent> {
        if of == self.handle && self.kind == Kind::PfifoFast && self.parent != Handle::ROOT {
            // Linux moves its counters when it is attached below a class, and its estimator continues reading
            // the place where they were.
            return Some(Sent::default());
        }
        if of == self.handle {
            return Some(Sent { bytes: self.stats.bytes, packets: self.stats.packets });
        }
        self.classful()?.class_sent(of)
    }

    /// Lets the estimators see what was sent until now, before that changes.
    #[cold]
    fn measure(&mut self, now: Time) {
        let Some(rare) = &mut self.rare else { return };
        let mut estimators = core::mem::take(&mut rare.estimators);
        estimators.retain_mut(|(of, estimator)| match self.sent(*of) {
            Some(sent) => {
                estimator.catch_up(now, sent);
                true
            }
            // The class is gone.
            None => false,
        });
        self.measured = !estimators.is_empty();
        self.rare_mut().estimators = estimators;
    }
    /// When it was made.
    pub fn born(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| rare.born)
    }
    /// Its size table (`stab`), if it has one.
    pub fn stab(&self) -> Option<&SizeTable> {
        self.rare.as_ref()?.stab.as_ref()
    }
    pub(crate) fn set_stab(&mut self, stab: Option<SizeTable>) {
        if stab.is_some() || self.stab().is_some() {
            self.rare_mut().stab = stab;
        }
    }
    pub(crate) fn is_noop(&self) -> bool {
        matches!(self.body, Body::Noop(_))
    }
    /// Sets a fifo's limit from above; other kinds do not listen.
    pub(crate) fn set_fifo_limit(&mut self, limit: u32) {
        self.body.set_fifo_limit(limit);
    }
    pub(crate) fn filters_mut(&mut self) -> &mut FilterList {
        &mut self.rare_mut().filters
    }

    fn own(&self) -> QdiscState {
        QdiscState {
            handle: self.handle,
            qlen: self.stats.qlen,
            backlog: self.stats.backlog,
            watchdog: self.watchdog,
        }
    }

    /// Hands it a packet, which waits here or below, goes elsewhere, or is dropped and counted.
    #[inline]
    pub fn enqueue(&mut self, cx: &mut Context<'_>, pkt: Pkt) -> Enqueue {
        if cx.pool.tracks_queue_locations() {
            // The fast path passes several qdiscs at once; an observer needs each of them.
            cx.note_location(&pkt, self.handle, self.parent);
            return self.enqueue_any(cx, pkt);
        }
        let len = cx.pool.meta(&pkt).len;
        match self.enqueue_plain(cx.pool, pkt, len) {
            Ok(()) => Enqueue::Queued,
            Err(pkt) => self.enqueue_any(cx, pkt),
        }
    }

    /// See [`crate::batch::Batch`].
    #[inline]
    pub(crate) fn enqueue_plain(&mut self, pool: &mut Pool, pkt: Pkt, len: u32) -> Result<(), Pkt> {
        if let Body::Fifo(fifo) = &mut self.body {
            if !fifo.has_room(self.stats.qlen, self.stats.backlog, len) {
                return Err(pkt);
            }
            fifo.push(pool, pkt);
        } else {
            self.enqueue_below(pool, pkt, len)?;
        }
        self.stats.qlen += 1;
        self.stats.backlog = self.stats.backlog.wrapping_add(u64::from(len));
        Ok(())
    }

    fn enqueue_below(&mut self, pool: &mut Pool, pkt: Pkt, len: u32) -> Result<(), Pkt> {
        let filters = self.rare.as_ref().map_or(NO_FILTERS, |rare| &rare.filters);
        let at = ParentQdisc { qdisc: self.handle, filters };
        self.body.enqueue_plain(pool, at, pkt, len)
    }

    fn enqueue_any(&mut self, cx: &mut Context<'_>, pkt: Pkt) -> Enqueue {
        if self.measured {
            self.measure(cx.now);
        }
        let (before, len) = (cx.dropped, cx.pool.meta(&pkt).len);
        let own = self.own();
        let result = match &mut self.rare {
            Some(rare) => self.body.enqueue(cx, own, &mut rare.filters, pkt),
            None => self.body.enqueue_unfiltered(cx, own, pkt),
        };
        if result != Enqueue::Taken {
            self.stats.qlen += 1;
            self.stats.backlog = self.stats.backlog.wrapping_add(u64::from(len));
        }
        self.settle(cx, before);
        self.check();
        if result == Enqueue::Congested {
            cx.dropped.bytes = cx.dropped.bytes.wrapping_add(core::mem::take(&mut cx.misheard));
        }
        result
    }

    /// Takes the next packet out, the held one first.
    // In a body of its own it costs each packet of a DRR 15 instructions.
    #[inline(always)]
    pub fn dequeue(&mut self, cx: &mut Context<'_>) -> Dequeue {
        // A fifo can be looked at and never has a packet held: its second line is not needed.
        if !matches!(self.body, Body::Fifo(_))
            && let Some(pkt) = self.peeked.take()
        {
            self.body.catch_up(cx.now, self.own());
            self.stats.qlen -= 1;
            self.stats.gone(u64::from(cx.pool.meta(&pkt).len));
            return Dequeue::Packet(pkt);
        }
        self.dequeue_fresh(cx)
    }

    /// Takes the next packet out without regard to a held one, as HTB does with its leaves.
    #[inline]
    pub(crate) fn dequeue_fresh(&mut self, cx: &mut Context<'_>) -> Dequeue {
        let measured = self.is_measured();
        if let Body::Fifo(fifo) = &mut self.body
            && !measured
        {
            let Some((pkt, len)) = fifo.take(cx.pool) else { return Dequeue::Empty };
            self.stats.sent(len);
            return Dequeue::Packet(pkt);
        }
        self.dequeue_any(cx)
    }

    fn dequeue_any(&mut self, cx: &mut Context<'_>) -> Dequeue {
        if self.measured {
            self.measure(cx.now);
        }
        let before = cx.dropped;
        let own = self.own();
        let result = self.body.dequeue(cx, own);
        if let Dequeue::Packet(pkt) = &result {
            self.stats.sent(cx.pool.meta(pkt).len);
        }
        self.settle(cx, before);
        self.check();
        result
    }

    /// In builds with debug assertions: a qdisc counts no fewer packets than wait in its children. (It may
    /// count more, and other bytes, as in Linux: [`Context::vanish`], [`Context::drop_instead`].) Often at
    /// first, later seldom: it takes as long as there are children.
    #[inline]
    fn check(&mut self) {
        if cfg!(debug_assertions) && (self.stats.packets < OFTEN || self.stats.packets.is_multiple_of(SELDOM))
        {
            self.check_children();
        }
    }

    fn check_children(&mut self) {
        struct Sum(u32);
        impl Visit for Sum {
            fn node(&mut self, node: &mut QdiscNode) {
                self.0 += node.stats.qlen;
            }
        }
        let mut sum = Sum(0);
        self.visit(&mut sum);
        let (all, below) = (self.stats.qlen, sum.0);
        debug_assert!(
            all >= below,
            "{all} packets wait in {:?} {}, {below} in its children",
            self.kind,
            self.handle
        );
    }

    /// One step of a packet's way down, loading what taking it in will need: see [`crate::batch::Batch`].
    #[inline]
    pub(crate) fn child_hint(&self, pool: &mut Pool, pkt: &Pkt) -> Option<&QdiscNode> {
        match &self.body {
            Body::Fifo(fifo) => {
                fifo.touch_back(pool);
                None
            }
            body => body.child_hint(pool, self.handle, self.filters(), pkt),
        }
    }

    /// Loads what the next packets to leave will need, `depth` steps down from here: first this, then what
    /// lies behind it, so that each step finds what it walks over and waits for all that is new at once.
    #[inline]
    pub(crate) fn prefetch(&self, pool: &mut Pool, depth: u32, room: u32) {
        match &self.body {
            _ if depth == 0 => {
                black_box((self.stats.qlen, self.handle));
            }
            Body::Fifo(fifo) => fifo.touch(pool, depth - 1),
            body => body.prefetch(pool, depth - 1, room),
        }
    }

    /// Takes several packets out in a row: see [`crate::batch::Batch`].
    pub(crate) fn dequeue_run(
        &mut self,
        cx: &mut Context<'_>,
        budget: &mut Budget,
        out: &mut Vec<Pkt>,
    ) -> bool {
        if budget.is_spent() || self.stats.qlen == 0 || self.is_measured() {
            return false;
        }
        let before = *budget;
        match &mut self.body {
            Body::Fifo(fifo) => fifo.take_run(cx.pool, budget, out),
            // It can be looked at and never has a packet held.
            Body::Prio(_) => {
                let own = self.own();
                if !self.body.dequeue_run(cx, own, budget, out) {
                    return false;
                }
            }
            _ => {
                let own = self.own();
                if self.peeked.is_some() || !self.body.dequeue_run(cx, own, budget, out) {
                    return false;
                }
            }
        }
        let (packets, bytes) =
            ((before.packets - budget.packets) as u32, (before.bytes - budget.bytes) as u64);
        self.stats.qlen -= packets;
        self.stats.gone(bytes);
        self.stats.packets += u64::from(packets);
        self.stats.bytes += bytes;
        true
    }

    /// Loads the beginning of what is beside it in memory.
    #[inline]
    pub(crate) fn touch_body(&self, pool: &mut Pool) {
        if !self.is_fifo() {
            self.body.prefetch(pool, 0, 1);
        }
    }

    /// May it know how to give packets in a row?
    #[inline]
    pub(crate) fn knows_runs(&self) -> bool {
        self.body.knows_runs()
    }

    /// Is it a fifo?
    #[inline]
    pub(crate) fn is_fifo(&self) -> bool {
        matches!(self.body, Body::Fifo(_))
    }

    /// Is it a fifo in which nothing waits? Asking such a one for a packet changes nothing.
    pub(crate) fn is_idle_fifo(&self) -> bool {
        matches!(self.body, Body::Fifo(_)) && self.stats.qlen == 0
    }

    /// Tells what it would send next: by looking, where the kind can, else by taking it and holding it.
    #[inline]
    pub fn peek(&mut self, cx: &mut Context<'_>) -> Peek {
        if let Body::Fifo(fifo) = &self.body {
            return fifo.front(cx.pool);
        }
        self.peek_any(cx)
    }

    fn peek_any(&mut self, cx: &mut Context<'_>) -> Peek {
        if let Some(pkt) = &self.peeked {
            return Peek::Packet(cx.pool.meta(pkt).len);
        }
        let before = cx.dropped;
        if let Some(seen) = self.body.peek(cx) {
            self.settle(cx, before);
            return seen;
        }
        match self.dequeue_fresh(cx) {
            Dequeue::Packet(pkt) => {
                let len = cx.pool.meta(&pkt).len;
                self.stats.qlen += 1;
                self.stats.backlog = self.stats.backlog.wrapping_add(u64::from(len));
                self.peeked = Some(pkt);
                Peek::Packet(len)
            }
            Dequeue::Empty => Peek::Empty,
            Dequeue::Throttled => Peek::Throttled,
        }
    }

    /// The slot of the packet that the last [`QdiscNode::peek`] returned; the queue has not changed since.
    pub(crate) fn peek_slot(&self) -> Option<usize> {
        self.peeked.as_ref().map(Pkt::slot).or_else(|| self.body.peek_slot())
    }

    /// Whatever was dropped below since `before` no longer waits here, and counts as dropped here.
    #[inline]
    fn settle(&mut self, cx: &Context<'_>, before: crate::context::DropCount) {
        if cx.dropped.packets != before.packets {
            let lost = cx.dropped.since(before);
            self.stats.drops = self.stats.drops.wrapping_add(lost.packets);
            self.stats.qlen -= lost.packets;
            self.stats.gone(lost.bytes);
        }
    }

    /// Takes new parameters, and drops what they leave no space for: a held packet first, then as the kind
    /// gives them up.
    pub(crate) fn change(
        &mut self,
        cx: &mut Context<'_>,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        let before = cx.dropped;
        let own = self.own();
        let result = self.body.get_mut().change(cx, own, params);
        self.settle(cx, before);
        let vanished = core::mem::take(&mut cx.vanished);
        self.stats.qlen -= vanished.packets;
        self.stats.gone(vanished.bytes);
        loop {
            let (before, own, fresh) = (cx.dropped, self.own(), self.peeked.is_none());
            let trimmed = self.body.get_mut().trim(cx, own, &mut self.peeked);
            self.settle(cx, before);
            let (pkt, sent) = match trimmed {
                Trimmed::Dropped(pkt) => (pkt, false),
                Trimmed::Sent(pkt) => (pkt, true),
                Trimmed::Nothing => break,
            };
            let len = u64::from(cx.pool.meta(&pkt).len);
            self.stats.qlen -= 1;
            self.stats.gone(len);
            if !sent {
                self.stats.drops = self.stats.drops.wrapping_add(1);
            } else if fresh {
                self.stats.packets += 1;
                self.stats.bytes += len;
            }
            cx.next_purge_group();
            cx.purge(self.handle, pkt);
        }
        result
    }

    /// Drops the whole backlog; the qdisc's own counters stay as they are, its ancestors' follow. They
    /// subtract what it counted as its backlog, which need not be what was there (`Context::drop_instead`,
    /// `Context::vanish`).
    pub fn purge(&mut self, cx: &mut Context<'_>) {
        let (before, own) = (cx.dropped, self.own());
        self.body.get_mut().purge(cx, own);
        if matches!(self.body, Body::Choke(_)) {
            // Linux drops what it empties it of (recorded: down-up-choke).
            let held = u32::from(self.peeked.is_some());
            self.stats.drops = self.stats.drops.wrapping_add(self.stats.qlen.saturating_sub(held));
        }
        if matches!(self.body, Body::Sfq(_) | Body::Hhf(_)) {
            // Linux empties it by taking everything out as if to send it (recorded: down-up-hhf).
            let waiting = self.peeked.as_ref().map_or(0, |pkt| u64::from(cx.pool.meta(pkt).len));
            self.stats.packets += u64::from(self.stats.qlen) - u64::from(self.peeked.is_some());
            self.stats.bytes += self.stats.backlog - waiting;
        }
        if let Some(pkt) = self.peeked.take() {
            cx.drop(self.handle, pkt, DropReason::PurgedAtOnce);
        }
        cx.dropped = before.and(self.stats.qlen, self.stats.backlog);
        self.stats.qlen = 0;
        self.stats.backlog = 0;
    }

    /// Adapts to a new length of the device's transmit queue: the backlog is dropped without being counted,
    /// and the root takes the new size if its kind does.
    pub(crate) fn resize(&mut self, cx: &mut Context<'_>) {
        self.purge(cx);
        self.body.resize(cx.device);
    }

    /// The same where the backlog stays: the kind that takes the new size drops what has no place in it.
    pub(crate) fn resize_kept(&mut self, cx: &mut Context<'_>) {
        if let Body::PfifoFast(bands) = &mut self.body {
            bands.shrink(cx, self.handle);
        }
    }

    /// Takes it out of the tree and ends it: packets are dropped, watchdogs given back, children's too.
    pub fn destroy(mut self, cx: &mut Context<'_>) {
        if self.there().is_none() {
            return;
        }
        self.purge(cx);
        self.end(cx);
    }

    /// Ends it once it was purged. Linux resets whatever it ends, and with it all that is attached below,
    /// once more: nothing is left to drop, but a kind that draws when it is reset draws again.
    pub(crate) fn end(mut self, cx: &mut Context<'_>) {
        struct End<'c, 'd>(&'c mut Context<'d>);
        impl Visit for End<'_, '_> {
            fn node(&mut self, node: &mut QdiscNode) {
                node.purge(self.0);
                self.0.watchdogs.forget(node.watchdog);
                node.visit(self);
            }
        }
        End(cx).node(&mut self);
    }

    /// Runs `f` on the qdisc at the end of a way, keeping all counts on it right; `None`: it leads nowhere.
    pub(crate) fn with<R>(
        &mut self,
        cx: &mut Context<'_>,
        way: &[Handle],
        f: &mut dyn FnMut(&mut QdiscNode, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let Some((class, rest)) = way.split_first() else { return Some(f(self, cx)) };
        let before = cx.dropped;
        let child = self.attached(*class)?;
        let had = child.qlen() > 0;
        let found = child.with(cx, rest, f);
        // Of packets that vanished it does not learn.
        if found.is_some() && had && child.qlen() == 0 && cx.dropped.packets != before.packets {
            self.child_emptied(cx, *class);
        }
        self.settle(cx, before);
        found
    }

    /// A qdisc is made for `class`: see [`crate::classful::InnerClasses`]. If it is refused, what is attached
    /// there stays, and the class is silent though it may have packets: until the next one comes.
    pub(crate) fn child_made(&mut self, cx: &mut Context<'_>, class: Handle, accepted: bool) {
        if let Some(inner) = self.inner_classes_mut() {
            inner.child_made(class);
        }
        if accepted || self.child(class).is_none() {
            return;
        }
        match self.inner_classes_mut() {
            Some(inner) => inner.child_refused(cx, class),
            None => self.child_emptied(cx, class),
        }
    }

    /// Puts `new` where the child of `class` is attached and ends what is attached there. `None` brings back
    /// the kind's default. A class that takes no child (an inner one of HTB) refuses.
    pub(crate) fn graft(
        &mut self,
        cx: &mut Context<'_>,
        class: Handle,
        new: Option<QdiscNode>,
    ) -> Result<(), TcError> {
        let before = cx.dropped;
        let new = match new {
            Some(node) if node.kind == Kind::Noqueue => {
                node.end(cx);
                return Err(TcError::new(Errno::Inval, "Cannot assign noqueue to a class"));
            }
            Some(node) => node,
            None => match self.classful() {
                Some(classful) => classful.default_child(cx, class),
                None => QdiscNode::hidden(cx, Kind::Pfifo, class),
            },
        };
        if let Some(slot) = self.child(class) {
            let old = core::mem::replace(slot, new);
            let had = old.qlen() > 0;
            old.destroy(cx);
            if had {
                self.child_emptied(cx, class);
            }
            self.settle(cx, before);
            return Ok(());
        }
        // It was never attached in the tree, so it is not taken out.
        new.end(cx);
        Err(TcError::bare(Errno::Inval))
    }

    /// Makes, changes or deletes a class of this qdisc, whose words may be another kind's.
    pub(crate) fn class_op(&mut self, cx: &mut Context<'_>, op: &ClassOp) -> Result<Option<String>, TcError> {
        let exists = self.has_class(op.classid);
        match &op.params {
            Some(params)
                if params.kind().is_some_and(|kind| kind != self.kind())
                    && (exists || self.kind() != Kind::Ets) =>
            {
                let params = params.read_by(self.kind())?;
                self.own_class_op(cx, &ClassOp { params, ..op.clone() })
            }
            _ => self.own_class_op(cx, op),
        }
    }

    fn own_class_op(&mut self, cx: &mut Context<'_>, op: &ClassOp) -> Result<Option<String>, TcError> {
        let before = cx.dropped;
        let own = self.own();
        let filters = &mut self.rare.get_or_insert_default().filters;
        let result = match self.body.get_mut().as_classful_mut() {
            Some(classful) => classful.class_op(cx, own, filters, op),
            None => Err(TcError::bare(Errno::OpNotSupp)),
        };
        self.settle(cx, before);
        if result.is_ok() {
            self.estimate(cx, op.classid, op.estimator);
        }
        result
    }

    fn classful(&self) -> Option<&dyn Classful> {
        self.body.get().as_classful()
    }
    fn classful_mut(&mut self) -> Option<&mut dyn Classful> {
        self.body.get_mut().as_classful_mut()
    }
    fn inner_classes_mut(&mut self) -> Option<&mut dyn InnerClasses> {
        self.classful_mut()?.as_inner_classes_mut()
    }
    fn child_emptied(&mut self, cx: &mut Context<'_>, class: Handle) {
        if let Some(classful) = self.classful_mut() {
            classful.child_emptied(cx, class);
        }
    }
    fn own_rehash_due(&self) -> Timer {
        self.body.get().as_rehash().map_or(Timer::NEVER, |own| own.rehash_due())
    }
    pub(crate) fn has_class(&self, class: Handle) -> bool {
        self.classful().is_some_and(|classful| classful.has_class(class))
    }
    pub(crate) fn may_pin(&self, holder: Handle, class: Handle) -> bool {
        let Some(classful) = self.classful() else { return false };
        match classful.as_inner_classes() {
            Some(inner) => inner.may_pin(holder, class),
            None => classful.has_class(class),
        }
    }
    pub(crate) fn child(&mut self, class: Handle) -> Option<&mut QdiscNode> {
        self.classful_mut()?.child(class)
    }
    /// What is attached to a class, even where the class takes no child any more.
    pub(crate) fn attached(&mut self, class: Handle) -> Option<&mut QdiscNode> {
        let classful = self.classful_mut()?;
        // Borrowed twice: the compiler does not see that what is not returned is not lent.
        if classful.as_inner_classes().is_some() {
            return classful.as_inner_classes_mut()?.attached(class);
        }
        classful.child(class)
    }
    pub(crate) fn class_filters(&mut self, class: Handle) -> Option<&mut FilterList> {
        self.inner_classes_mut()?.class_filters(class)
    }
    /// Shows the places that the actions of each of its filters have.
    pub(crate) fn each_action(&self, show: &mut dyn FnMut(&[u32])) {
        self.filters().each_action(show);
        if let Some(inner) = self.classful().and_then(|classful| classful.as_inner_classes()) {
            inner.each_class_action(show);
        }
    }
    /// Shows each child of it, not the children's children.
    pub fn visit(&mut self, visit: &mut dyn Visit) {
        if let Some(classful) = self.classful_mut() {
            classful.visit(visit);
        }
    }
    pub(crate) fn rehash_due(&self) -> Timer {
        self.own_rehash_due().min(self.filters().perturb_due())
    }
    pub(crate) fn rehash_due_after(&self, due: Timer) -> Timer {
        self.body
            .get()
            .as_rehash()
            .map_or(Timer::NEVER, |own| own.rehash_due_after(due))
            .min(self.filters().perturb_due_after(due))
    }

    /// Runs the perturbation that was due at `due`: the qdisc's own, or one of its filters'.
    pub(crate) fn perturb(&mut self, cx: &mut Context<'_>, due: Timer) {
        let before = cx.dropped;
        if self.own_rehash_due() == due {
            let (own, filtered) = (self.own(), !self.filters().is_empty());
            if let Some(rehash) = self.body.get_mut().as_rehash_mut() {
                rehash.rehash(cx, own, due, filtered);
            }
            // A packet without space in its new bucket counts as dropped in the qdiscs above, but not here
            // (recorded: answers/sfq-rehash-drops-above-only).
            self.stats.drops = self.stats.drops.wrapping_sub(cx.dropped.since(before).packets);
        } else {
            self.filters_mut().perturb(due, cx.now, cx.wheel, &mut cx.random.random());
        }
        self.settle(cx, before);
    }

    /// The second copy of a packet that it set aside is through.
    pub(crate) fn resume(&mut self, cx: &mut Context<'_>) {
        if let Body::Netem(netem) = &mut self.body {
            netem.resume(cx);
        }
    }

    /// Is it a netem on which nothing is attached?
    pub(crate) fn is_bare_netem(&mut self) -> bool {
        match &mut self.body {
            Body::Netem(netem) => netem.child(self.handle).is_none_or(|child| child.there().is_none()),
            _ => false,
        }
    }

    /// A netem takes over the part of a change that Linux does before it refuses it.
    pub(crate) fn change_partly(&mut self, params: &NetemParams) {
        if let Body::Netem(netem) = &mut self.body {
            netem.change_partly(params);
        }
    }

    /// The body of an mq.
    pub(crate) fn as_mq_mut(&mut self) -> Option<&mut Mq> {
        match &mut self.body {
            Body::Mq(mq) => Some(mq),
            _ => None,
        }
    }

    /// The numbers of its watchdog and of those below it.
    pub(crate) fn watchdogs(&mut self, show: &mut dyn FnMut(u32)) {
        struct Each<'a>(&'a mut dyn FnMut(u32));
        impl Visit for Each<'_> {
            fn node(&mut self, node: &mut QdiscNode) {
                (self.0)(node.watchdog);
                node.visit(self);
            }
        }
        Each(show).node(self);
    }

    /// Does it delay packets as a network, and does it make second copies?
    pub(crate) fn as_netem(&self) -> Option<bool> {
        match &self.body {
            Body::Netem(netem) => Some(netem.copies()),
            _ => None,
        }
    }
}

/// A tree may end with packets in it, their pool with them: the ticket held for a peek is then no loss.
impl Drop for QdiscNode {
    fn drop(&mut self) {
        core::mem::forget(self.peeked.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qdisc_is_two_lines_of_the_cache_and_most_packets_need_the_first() {
        assert_eq!((size_of::<QdiscNode>(), core::mem::offset_of!(QdiscNode, peeked)), (128, 64));
    }
}
