//! htb: a hierarchical token bucket (Devera 2002).
//!
//! Classes form a tree. Each has two buckets of tokens, kept as time: one for its `rate`, one for its `ceil`.
//! A class that can pay from the first may send; one that can pay only from the second may borrow from its
//! parent; otherwise it waits. Leaves that may send are served by priority, and in turns of a quantum among
//! equals; what a leaf sends is charged to it and all its ancestors. Packets that no class claims pass by
//! directly, unshaped.
//!
//! This file has the classes and their configuration, [`tree`] the scheduler.

mod tree;

use super::{NO_CHANGE, class_in_use, purge_queue};
use crate::algo::{ClassHash, Cost, Price, Sent};
use crate::batch::{Batch, Budget, BuiltIn, ParentQdisc};
use crate::classful::{Classful, InnerClasses};
use crate::classify::{ClassifyResult, Consumed, classify, classify_at_class};
use crate::context::{Context, DeviceInfo, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, QdiscState, Rehash, Visit};
use crate::kind::{classful, inner_classes, rehashes};
use crate::node::QdiscNode;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::hint::black_box;
use tidegate_classify::FilterList;
use tidegate_packet::{Fifo, Handle, Nanos, Pkt, Pool, Time, Timer};
use tidegate_policy::dump::{ClassDump, QueueStats, Xstats};
use tidegate_policy::{
    ClassOp, ClassParams, Errno, HtbClassParams, HtbParams, Kind, QdiscParams, RateSpec, TcError, Ticks, Verb,
};
use tree::{Inner, Tree};

/// Levels of the tree: leaves are 0, the top is 7.
const LEVELS: usize = 8;
/// Priorities.
const PRIOS: usize = 8;
/// Buckets never go below a debt of this much time.
const MAX_DEBT: i64 = 60_000_000_000;
/// The most filter lists that are evaluated for a packet; a packet in a loop of filters is dropped.
const MAX_HOPS: usize = 9;

pub(crate) struct Htb {
    params: HtbParams,
    direct_limit: u32,
    direct: Fifo,
    direct_packets: u32,
    /// `overlimits` as the last dump of the qdisc itself published it: a parent's class shows no more.
    published: u32,
    hash: ClassHash,
    /// Some class has been requested its list of filters.
    class_lists: bool,
    tree: Tree,
}

/// May a class send?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Mode {
    /// Not even by borrowing.
    Wait,
    /// Only on its parent's tokens.
    Borrow,
    /// On its own.
    Send,
}

/// A class: two lines of the cache with what every packet it sends needs, one with the rest, and its qdisc.
#[repr(C, align(64))]
struct Class {
    tokens: i64,
    ctokens: i64,
    checkpoint: Time,
    buffer: i64,
    cbuffer: i64,
    bytes: u64,
    packets: u64,
    quantum: i32,
    lends: u32,

    rate: Price,
    ceil: Price,
    /// [`NO_CLASS`] at the top.
    parent: u32,
    level: u8,
    mode: Mode,
    prio: u8,
    /// Priorities at which it has something to send, a bit each.
    activity: u8,
    deficit: [i32; LEVELS],

    /// Of the priorities of its activity, those at which it is in its parent's feed, and in its level's
    /// row.
    in_feed: u8,
    in_row: u8,
    /// ParentQdisc among all classes, and among its siblings, by id.
    rank: u32,
    sibling_rank: u32,
    id: Handle,
    children: u32,
    borrows: u32,
    drops: u32,
    overlimits: u32,
    /// The feeds of an inner class.
    inner: Option<alloc::boxed::Box<Inner>>,
    filters: FilterList,
    /// What rate and ceil were made from.
    specs: alloc::boxed::Box<[RateSpec; 2]>,
    /// The qdisc of a leaf; absent elsewhere.
    child: QdiscNode,
}

const NO_CLASS: u32 = u32::MAX;

impl Class {
    fn parent(&self) -> Option<u32> {
        (self.parent != NO_CLASS).then_some(self.parent)
    }

    fn set_rates(&mut self, params: &HtbClassParams) {
        self.rate = Cost::new(params.rate).price();
        self.ceil = Cost::new(params.ceil).price();
        *self.specs = [params.rate, params.ceil];
        self.buffer = params.buffer.duration().0 as i64;
        self.cbuffer = params.cbuffer.duration().0 as i64;
    }
}

/// Where a packet goes.
enum Choice {
    Leaf(u32),
    Direct,
    /// Filters send it round in circles.
    Nowhere,
    /// It does not stay.
    Consumed(Consumed),
}

impl Htb {
    pub(crate) fn new(
        device: DeviceInfo,
        _handle: Handle,
        params: Option<&HtbParams>,
    ) -> Result<Htb, TcError> {
        let params = params.ok_or(TcError::bare(Errno::Inval))?.clone();
        let direct_limit = params.direct_qlen.unwrap_or(device.tx_queue_len);
        Ok(Htb {
            params: HtbParams { r2q: (params.r2q as i32).max(1) as u32, ..params },
            direct_limit,
            direct: Fifo::new(),
            direct_packets: 0,
            published: 0,
            hash: ClassHash::default(),
            class_lists: false,
            tree: Tree::new(),
        })
    }

    fn find(&self, id: Handle) -> Option<u32> {
        self.hash.get(id)
    }

    /// A packet's leaf where its priority or its mark names it and no other filter can change that.
    #[inline]
    fn obvious_leaf(&self, pool: &Pool, qdisc: Handle, filters: &FilterList, pkt: &Pkt) -> Option<u32> {
        let meta = pool.meta(pkt);
        let mut class = meta.priority_class();
        if self.hash.is_foreign(class) {
            class = filters.obvious(meta.mark, meta.ethertype, qdisc)?;
        }
        if class == qdisc {
            return None;
        }
        let at = self.hash.quick(class)?;
        (self.tree.classes[at as usize].level == 0).then_some(at)
    }

    /// A packet's class by its priority, else by filters from the root (or the inner class its priority
    /// names) down, otherwise the default.
    fn choose(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        pkt: &Pkt,
    ) -> Choice {
        let priority = cx.pool.meta(pkt).priority_class();
        if priority == own.handle {
            return Choice::Direct;
        }
        let mut inner = None;
        if let Some(at) = self.find(priority) {
            if self.tree.classes[at as usize].level == 0 {
                return Choice::Leaf(at);
            }
            inner = Some(at);
        }
        for hop in 0.. {
            // Recorded: answers/filters-asked-nine-times, answers/filters-in-circles.
            if hop == MAX_HOPS {
                return Choice::Nowhere;
            }
            let answer = match inner {
                Some(at) => classify_at_class(
                    filters,
                    &mut self.tree.classes[at as usize].filters,
                    cx,
                    own.handle,
                    pkt,
                ),
                None => classify(filters, cx, own.handle, pkt),
            };
            let class = match answer {
                ClassifyResult::Nothing => break,
                ClassifyResult::Class(class) => class,
                ClassifyResult::Consumed(gone) => return Choice::Consumed(gone),
            };
            if class == own.handle {
                return Choice::Direct;
            }
            let Some(at) = self.find(class) else { break };
            if self.tree.classes[at as usize].level == 0 {
                return Choice::Leaf(at);
            }
            inner = Some(at);
        }
        match self.find(own.handle.class(self.params.default as u16)) {
            Some(at) if self.tree.classes[at as usize].level == 0 => Choice::Leaf(at),
            _ => Choice::Direct,
        }
    }

    /// Filters on classes hold this class, or no longer.
    fn rebind(&mut self, filters: &mut FilterList, class: Handle, bound: bool) {
        if self.class_lists {
            for one in &mut self.tree.classes {
                filters.swap_tables(&mut one.filters);
                one.filters.rebind(class, bound);
                filters.swap_tables(&mut one.filters);
            }
        }
    }

    fn quantum(&self, id: Handle, params: &HtbClassParams) -> (i32, Option<String>) {
        if params.quantum > 0 {
            return (params.quantum as i32, None);
        }
        let quantum = params.rate.rate.0 / u64::from(self.params.r2q);
        let (clamped, what) = match quantum {
            0..1000 => (1000, Some("small")),
            1000..=200_000 => (quantum, None),
            _ => (200_000, Some("big")),
        };
        let warning =
            what.map(|what| format!("sch_htb: quantum of class {:X} is {what}. Consider r2q change.", id.0));
        (clamped as i32, warning)
    }

    fn make(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        op: &ClassOp,
        params: &HtbClassParams,
    ) -> Result<Option<String>, TcError> {
        const INVALID: TcError = TcError::bare(Errno::Inval);
        if op.classid.is_none() || op.classid.qdisc() != own.handle {
            return Err(INVALID);
        }
        let parent = if op.parent == Handle::ROOT { None } else { self.find(op.parent) };
        let top = |at: u32| self.tree.classes[at as usize].level;
        if parent.and_then(|p| self.tree.classes[p as usize].parent()).is_some_and(|grand| top(grand) < 2) {
            // 6.1 gives its reason to the kernel's log only.
            return Err(INVALID);
        }
        if let Some(p) = parent
            && self.tree.classes[p as usize].level == 0
        {
            self.tree.leaf_to_inner(cx, p);
        }
        let (quantum, warning) = self.quantum(op.classid, params);
        let (buffer, cbuffer) = (params.buffer.duration().0 as i64, params.cbuffer.duration().0 as i64);
        let class = Class {
            id: op.classid,
            parent: parent.unwrap_or(NO_CLASS),
            level: 0,
            children: 0,
            rate: Cost::new(params.rate).price(),
            ceil: Cost::new(params.ceil).price(),
            specs: alloc::boxed::Box::new([params.rate, params.ceil]),
            buffer,
            cbuffer,
            quantum,
            prio: params.prio.min(PRIOS as u32 - 1) as u8,
            tokens: buffer,
            ctokens: cbuffer,
            checkpoint: cx.now,
            mode: Mode::Send,
            activity: 0,
            in_feed: 0,
            in_row: 0,
            rank: 0,
            sibling_rank: 0,
            deficit: [0; LEVELS],
            bytes: 0,
            packets: 0,
            drops: 0,
            overlimits: 0,
            lends: 0,
            borrows: 0,
            filters: FilterList::default(),
            child: QdiscNode::hidden(cx, Kind::Pfifo, op.classid),
            inner: None,
        };
        let at = self.tree.add(class);
        self.hash.insert(op.classid, at);
        self.hash.grow();
        Ok(warning)
    }

    fn alter(&mut self, at: u32, params: &HtbClassParams) -> Option<String> {
        let id = self.tree.classes[at as usize].id;
        let (quantum, warning) = self.quantum(id, params);
        let class = &mut self.tree.classes[at as usize];
        let leaf = class.level == 0;
        if leaf {
            class.quantum = quantum;
            class.prio = params.prio.min(PRIOS as u32 - 1) as u8;
        }
        class.set_rates(params);
        warning.filter(|_| leaf)
    }

    fn remove(&mut self, cx: &mut Context<'_>, filters: &mut FilterList, at: u32) -> Result<(), TcError> {
        let id = self.tree.classes[at as usize].id;
        let bound = filters.binds(id)
            || self.hash.iter().any(|(_, c)| self.tree.classes[c as usize].filters.binds(id));
        if self.tree.classes[at as usize].children > 0 || bound {
            return Err(class_in_use(cx, "HTB class in use"));
        }
        self.hash.remove(id);
        let of_class = &mut self.tree.classes[at as usize].filters;
        filters.swap_tables(of_class);
        of_class.clear();
        filters.swap_tables(of_class);
        self.tree.remove(cx, at);
        Ok(())
    }
}

impl Discipline for Htb {
    #[inline]
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        let chosen = match self.obvious_leaf(cx.pool, own.handle, filters, &pkt) {
            Some(leaf) => Choice::Leaf(leaf),
            None => self.choose(cx, own, filters, &pkt),
        };
        let at = match chosen {
            Choice::Leaf(at) => at,
            Choice::Direct if self.direct.len() < self.direct_limit => {
                self.direct.push_back(cx.pool, pkt);
                self.direct_packets = self.direct_packets.wrapping_add(1);
                return Enqueue::Queued;
            }
            Choice::Consumed(gone) => return gone.carry_out(cx, own.handle, pkt),
            Choice::Nowhere => {
                cx.drop(own.handle, pkt, DropReason::Unclassified);
                return Enqueue::Dropped;
            }
            Choice::Direct => {
                cx.drop(own.handle, pkt, DropReason::Full);
                return Enqueue::Dropped;
            }
        };
        let class = &mut self.tree.classes[at as usize];
        let result = class.child.enqueue(cx, pkt);
        let emptied = class.child.qlen() == 0;
        match result {
            Enqueue::Queued if class.activity != 0 => {}
            Enqueue::Queued => self.tree.activate(at),
            Enqueue::Congested | Enqueue::Dropped | Enqueue::DroppedSilently => {
                class.drops = class.drops.wrapping_add(1)
            }
            Enqueue::Taken | Enqueue::Parked => {}
        }
        if emptied {
            // The leaf made space by losing all it had.
            self.tree.deactivate(at);
        }
        result
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Context<'_>, own: QdiscState) -> Dequeue {
        if let Some(pkt) = self.direct.pop_front(cx.pool) {
            return Dequeue::Packet(pkt);
        }
        if own.qlen == 0 {
            return Dequeue::Empty;
        }
        match self.tree.dequeue(cx) {
            Ok(pkt) => Dequeue::Packet(pkt),
            Err(_) if cx.is_interrupted() => Dequeue::Throttled,
            Err(next_event) => {
                cx.wake(own, next_event.max(cx.now + Nanos(1)));
                Dequeue::Throttled
            }
        }
    }

    fn change(
        &mut self,
        _cx: &mut Context<'_>,
        _own: QdiscState,
        _params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        Err(NO_CHANGE)
    }

    fn purge(&mut self, cx: &mut Context<'_>, own: QdiscState) {
        for (_, at) in self.hash.iter() {
            if let Some(child) = self.tree.classes[at as usize].child.there_mut() {
                child.purge(cx);
            }
        }
        purge_queue(cx, own.handle, &mut self.direct);
        self.tree.forget_activity();
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::Htb(HtbParams { direct_qlen: Some(self.direct_limit), ..self.params.clone() })
    }

    fn xstats(&mut self, _now: Time) -> Xstats {
        // A class above shows `overlimits` as of the qdisc's last dump (recorded:
        // answers/htb-overlimits-published).
        self.published = self.tree.overlimits;
        Xstats::Htb { direct_packets: self.direct_packets }
    }

    fn amend_stats(&self, stats: &mut QueueStats) {
        stats.overlimits = self.published;
    }

    classful!();

    rehashes!();
}

impl Classful for Htb {
    fn has_class(&self, class: Handle) -> bool {
        self.find(class).is_some()
    }

    fn class_op(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        op: &ClassOp,
    ) -> Result<Option<String>, TcError> {
        let found = self.find(op.classid);
        if op.verb == Verb::Delete {
            let at = found.ok_or(TcError::bare(Errno::NoEnt))?;
            let removed = self.remove(cx, filters, at);
            // Even where the class stays, filters on classes no longer hold it.
            self.rebind(filters, op.classid, false);
            return removed.map(|()| None);
        }
        let Some(ClassParams::Htb(params)) = &op.params else { return Err(TcError::bare(Errno::Inval)) };
        if params.rate.rate.0 == 0 || params.ceil.rate.0 == 0 {
            return Err(TcError::bare(Errno::Inval));
        }
        match found {
            Some(at) => Ok(self.alter(at, params)),
            None => {
                let made = self.make(cx, own, op, params)?;
                self.rebind(filters, op.classid, true);
                Ok(made)
            }
        }
    }

    fn class_sent(&self, class: Handle) -> Option<Sent> {
        let class = &self.tree.classes[self.find(class)? as usize];
        Some(Sent { bytes: class.bytes, packets: class.packets })
    }

    fn child(&mut self, class: Handle) -> Option<&mut QdiscNode> {
        let at = self.find(class)?;
        self.tree.classes[at as usize].child.there_mut()
    }

    fn child_emptied(&mut self, _cx: &mut Context<'_>, class: Handle) {
        if let Some(at) = self.find(class) {
            self.tree.deactivate(at);
        }
    }

    fn visit(&mut self, visit: &mut dyn Visit) {
        for class in &mut self.tree.classes {
            if let Some(child) = class.child.there_mut() {
                visit.node(child);
            }
        }
    }

    fn classes(&mut self, _now: Time, _qdisc: Handle, out: &mut Vec<ClassDump>) {
        let ticks = |ns: i64| (ns >> 6).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
        for (_, at) in self.hash.iter() {
            let class = &self.tree.classes[at as usize];
            let (leaf, child) = class.child.there().map(|c| (c.handle(), c.stats())).unwrap_or_default();
            let parent = class.parent().map_or(Handle::ROOT, |p| self.tree.classes[p as usize].id);
            out.push(ClassDump {
                dev: Default::default(),
                kind: Kind::Htb,
                classid: class.id,
                parent,
                leaf,
                params: ClassParams::Htb(HtbClassParams {
                    rate: class.specs[0],
                    ceil: class.specs[1],
                    buffer: Ticks((class.buffer >> 6) as u32),
                    cbuffer: Ticks((class.cbuffer >> 6) as u32),
                    quantum: class.quantum as u32,
                    prio: u32::from(class.prio),
                }),
                stats: Some(QueueStats {
                    bytes: class.bytes,
                    packets: class.packets,
                    drops: class.drops,
                    overlimits: class.overlimits,
                    requeues: 0,
                    qlen: child.qlen,
                    backlog: child.backlog,
                    rate: None,
                }),
                xstats: Xstats::HtbClass {
                    lends: class.lends,
                    borrows: class.borrows,
                    giants: 0,
                    tokens: ticks(class.tokens),
                    ctokens: ticks(class.ctokens),
                    level: u32::from(class.level),
                },
            });
        }
    }

    inner_classes!();
}

impl InnerClasses for Htb {
    fn each_class_action(&self, show: &mut dyn FnMut(&[u32])) {
        self.tree.classes.iter().for_each(|class| class.filters.each_action(show));
    }

    fn class_filters(&mut self, class: Handle) -> Option<&mut FilterList> {
        let at = self.find(class)?;
        self.class_lists = true;
        Some(&mut self.tree.classes[at as usize].filters)
    }

    fn child_made(&mut self, class: Handle) {
        if let Some(at) = self.find(class) {
            self.tree.silence(at);
        }
    }
}

impl Rehash for Htb {
    fn rehash_due(&self) -> Timer {
        self.tree.classes.iter().map(|class| class.filters.perturb_due()).min().unwrap_or(Timer::NEVER)
    }

    fn rehash_due_after(&self, due: Timer) -> Timer {
        self.tree
            .classes
            .iter()
            .map(|class| class.filters.perturb_due_after(due))
            .min()
            .unwrap_or(Timer::NEVER)
    }

    fn rehash(&mut self, cx: &mut Context<'_>, _own: QdiscState, due: Timer, _filtered: bool) {
        if let Some(class) = self.tree.classes.iter_mut().find(|class| class.filters.perturb_due() == due) {
            class.filters.perturb(due, cx.now, cx.wheel, &mut cx.random.random());
        }
    }
}

impl Batch for Htb {
    fn enqueue_plain(&mut self, pool: &mut Pool, at: ParentQdisc<'_>, pkt: Pkt, len: u32) -> Result<(), Pkt> {
        let Some(leaf) = self.obvious_leaf(pool, at.qdisc, at.filters, &pkt) else { return Err(pkt) };
        let class = &mut self.tree.classes[leaf as usize];
        class.child.enqueue_plain(pool, pkt, len)?;
        if class.activity == 0 {
            self.tree.activate(leaf);
        }
        Ok(())
    }

    fn child_hint(
        &self,
        pool: &mut Pool,
        qdisc: Handle,
        filters: &FilterList,
        pkt: &Pkt,
    ) -> Option<&QdiscNode> {
        let meta = pool.meta(pkt);
        let at = match self.find(meta.priority_class()) {
            Some(at) => at,
            None => self.find(filters.guess(meta.mark, qdisc)?)?,
        };
        let class = &self.tree.classes[at as usize];
        black_box(class.activity);
        class.child.there()
    }

    fn dequeue_run(
        &mut self,
        cx: &mut Context<'_>,
        _own: QdiscState,
        budget: &mut Budget,
        out: &mut Vec<Pkt>,
    ) -> bool {
        self.direct.is_empty() && self.tree.dequeue_run(cx, budget, out)
    }
}

impl BuiltIn for Htb {}
