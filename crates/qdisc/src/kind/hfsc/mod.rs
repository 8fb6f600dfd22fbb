//! hfsc: hierarchical fair service curves (Stoica, Zhang and Ng, SIGCOMM 1997).
//!
//! Classes form a tree. A curve gives the bytes that a class gets over time, at first and later on: its
//! *real-time* curve what a leaf is guaranteed whatever others send, so delay and rate can be set apart; its
//! *link-sharing* curve its part of what is left among its siblings; its *upper limit* the most that it takes
//! of that. Filters on inner classes lead further down. What nothing classifies goes to the default class,
//! and is dropped if there is none.
//!
//! This file has the classes and their configuration, [`tree`] the scheduler.

mod tree;

use crate::algo::{ClassHash, Sent, Shape};
use crate::batch::BuiltIn;
use crate::classful::{Classful, InnerClasses};
use crate::classify::{ClassifyResult, Consumed, classify, classify_at_class};
use crate::context::{Context, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, Peek, QdiscState, Rehash, Visit};
use crate::kind::{class_in_use, classful, inner_classes, rehashes};
use crate::node::QdiscNode;
use alloc::string::String;
use alloc::vec::Vec;
use tidegate_classify::FilterList;
use tidegate_packet::{Handle, Pkt, Time, Timer};
use tidegate_policy::dump::{ClassDump, QueueStats, Xstats};
use tidegate_policy::{
    ClassOp, ClassParams, Errno, HfscClassParams, HfscParams, Kind, QdiscParams, ServiceCurve, TcError, Verb,
};
use tree::{ROOT, State, Tree};

/// The most filter lists that are evaluated for a packet; a packet in a loop of filters is dropped.
const MAX_HOPS: usize = 9;
/// Nanoseconds in a tick, as a shift.
const TICK: u32 = 6;

pub(crate) struct Hfsc {
    default: u16,
    hash: ClassHash,
    tree: Tree,
    /// Some class has been requested its list of filters.
    class_lists: bool,
    overlimits: u32,
}

/// The curves of a class.
#[derive(Clone, Copy, Default)]
struct Curves {
    rt: Option<Shape>,
    ls: Option<Shape>,
    ul: Option<Shape>,
}

impl Curves {
    fn new(params: &HfscClassParams) -> Curves {
        let shape = |curve: Option<ServiceCurve>| {
            curve.filter(|curve| curve.m1 != 0 || curve.m2 != 0).map(|curve| Shape::new(&curve))
        };
        Curves { rt: shape(params.rt), ls: shape(params.ls), ul: shape(params.ul) }
    }

    fn params(&self) -> HfscClassParams {
        let curve = |shape: Option<Shape>| shape.map(|shape| shape.curve());
        HfscClassParams { rt: curve(self.rt), ls: curve(self.ls), ul: curve(self.ul) }
    }
}

struct Class {
    id: Handle,
    parent: Option<u32>,
    /// 0 for a leaf, else one more than its highest child's.
    level: u32,
    packets: u64,
    bytes: u64,
    drops: u32,
    filters: FilterList,
    curves: Curves,
    state: State,
    /// Its qdisc; only an empty slot has none. That of an inner class is empty, and waits for the class to be
    /// a leaf again.
    child: Option<QdiscNode>,
}

impl Class {
    fn new(cx: &mut Context<'_>, id: Handle, parent: Option<u32>) -> Class {
        Class {
            id,
            parent,
            level: 0,
            packets: 0,
            bytes: 0,
            drops: 0,
            filters: FilterList::default(),
            curves: Curves::default(),
            state: State::default(),
            child: Some(QdiscNode::hidden(cx, Kind::Pfifo, id)),
        }
    }

    fn child(&mut self) -> &mut QdiscNode {
        let Some(child) = self.child.as_mut() else { unreachable!("a class has a qdisc") };
        child
    }
}

impl Hfsc {
    pub(crate) fn new(
        cx: &mut Context<'_>,
        handle: Handle,
        params: Option<&HfscParams>,
    ) -> Result<Hfsc, TcError> {
        let default = params.ok_or(TcError::bare(Errno::Inval))?.default;
        let mut hash = ClassHash::default();
        hash.insert(handle, ROOT);
        hash.grow();
        Ok(Hfsc {
            default,
            hash,
            tree: Tree::new(Class::new(cx, handle, None)),
            class_lists: false,
            overlimits: 0,
        })
    }

    fn find(&self, id: Handle) -> Option<u32> {
        self.hash.get(id)
    }

    /// A packet's leaf by its priority, else by filters from the root down, otherwise the default; `None` if
    /// there is none.
    fn choose(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        pkt: &Pkt,
    ) -> Result<Option<u32>, Consumed> {
        let priority = cx.pool.meta(pkt).priority_class();
        if priority.qdisc() == own.handle
            && let Some(at) = self.find(priority)
            && self.tree.class(at).level == 0
        {
            return Ok(Some(at));
        }
        let mut head = ROOT;
        for hop in 0.. {
            if hop == MAX_HOPS {
                return Ok(None);
            }
            let answer = match head {
                ROOT => classify(filters, cx, own.handle, pkt),
                _ => classify_at_class(filters, &mut self.tree.class_mut(head).filters, cx, own.handle, pkt),
            };
            let class = match answer {
                ClassifyResult::Nothing => break,
                ClassifyResult::Class(class) => class,
                ClassifyResult::Consumed(gone) => return Err(gone),
            };
            let level = self.tree.class(head).level;
            let Some(at) = self.find(class) else { break };
            // A filter may only point downwards, unless it did when it was made.
            if self.tree.class(at).level >= level && !self.pins_class(head, filters, class) {
                break;
            }
            if self.tree.class(at).level == 0 {
                return Ok(Some(at));
            }
            head = at;
        }
        Ok(self.find(own.handle.class(self.default)).filter(|at| self.tree.class(*at).level == 0))
    }

    /// Do the filters of a class hold another since they were made?
    fn pins_class(&self, head: u32, filters: &FilterList, class: Handle) -> bool {
        let one = self.tree.class(head);
        if head == ROOT { filters.binds(class) } else { one.filters.binds_for(one.id, filters, class) }
    }

    /// The length of a class's next packet; 0 if its qdisc gives none now.
    fn peek_len(&mut self, cx: &mut Context<'_>, at: u32) -> u32 {
        let child = self.tree.class_mut(at).child();
        let len = match child.peek(cx) {
            Peek::Packet(len) => len,
            Peek::Empty | Peek::Throttled => 0,
        };
        if child.qlen() == 0 {
            self.tree.silence(at);
        }
        len
    }

    /// A class with a real-time curve was served: its next packet has another deadline.
    fn next_packet(&mut self, cx: &mut Context<'_>, at: u32, real_time: bool) {
        if self.tree.class_mut(at).child().qlen() == 0 {
            self.tree.silence(at);
            return;
        }
        let len = self.peek_len(cx, at);
        if real_time {
            self.tree.next_real_time(at, len);
        } else {
            self.tree.next_deadline(at, len);
        }
    }

    fn make(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        op: &ClassOp,
        new: &Curves,
    ) -> Result<Option<String>, TcError> {
        const INVALID: TcError = TcError::bare(Errno::Inval);
        if op.parent == Handle::ROOT {
            return Err(TcError::bare(Errno::Exist));
        }
        let parent = match op.parent {
            Handle::NONE => ROOT,
            id => self.find(id).ok_or(TcError::bare(Errno::NoEnt))?,
        };
        if op.classid.is_none() || op.classid.qdisc() != own.handle || new.rt.is_none() && new.ls.is_none() {
            return Err(INVALID);
        }
        let class = Class::new(cx, op.classid, Some(parent));
        let was_leaf = self.tree.class(parent).level == 0;
        let at = self.tree.add(class);
        self.tree.set_curves(at, new, 0);
        self.hash.insert(op.classid, at);
        if was_leaf {
            self.tree.class_mut(parent).child().purge(cx);
            self.tree.silence(parent);
        }
        let warning = self.upgrade(parent);
        self.hash.grow();
        Ok(warning)
    }

    /// A class that has only a real-time curve cannot share among children: it gets the same curve for that.
    fn upgrade(&mut self, at: u32) -> Option<String> {
        let curves = self.tree.class(at).curves;
        let (true, None, Some(rt)) = (at != ROOT, curves.ls, curves.rt) else { return None };
        self.tree.set_curves(at, &Curves { ls: Some(rt), ..Curves::default() }, 0);
        Some("Forced curve change on parent 'rt' to 'sc'.".into())
    }

    fn alter(&mut self, cx: &mut Context<'_>, op: &ClassOp, at: u32, new: &Curves) -> Result<(), TcError> {
        let parent = self.tree.class(at).parent.map_or(Handle::ROOT, |parent| self.tree.class(parent).id);
        if !op.parent.is_none() && op.parent != parent {
            return Err(TcError::bare(Errno::Inval));
        }
        let now = cx.now.psched();
        let had = (self.tree.class(at).curves.rt.is_some(), self.tree.class(at).curves.ls.is_some());
        self.tree.set_curves(at, new, now);
        if self.tree.class_mut(at).child().qlen() > 0 {
            let len = self.peek_len(cx, at);
            self.tree.curves_changed(at, len, now, had);
        }
        Ok(())
    }

    fn remove(&mut self, cx: &mut Context<'_>, filters: &mut FilterList, at: u32) -> Result<(), TcError> {
        let id = self.tree.class(at).id;
        let bound = filters.binds(id) || self.tree.classes.iter().any(|class| class.filters.binds(id));
        if self.tree.class(at).level > 0 || bound || at == ROOT {
            return Err(class_in_use(cx, "HFSC class in use"));
        }
        self.tree.silence(at);
        self.hash.remove(id);
        let of_class = &mut self.tree.class_mut(at).filters;
        filters.swap_tables(of_class);
        of_class.clear();
        filters.swap_tables(of_class);
        if let Some(child) = self.tree.remove(at).and_then(|class| class.child) {
            child.destroy(cx);
        }
        Ok(())
    }

    /// Filters hold this class, or no longer.
    fn rebind(&mut self, filters: &mut FilterList, class: Handle, bound: bool) {
        let level = |id: Handle| self.find(id).map(|at| self.tree.class(at).level);
        let Some(own) = level(class) else { return };
        filters.rebind(class, bound && self.tree.class(ROOT).level > own);
        if self.class_lists {
            for one in &mut self.tree.classes {
                filters.swap_tables(&mut one.filters);
                one.filters.rebind(class, bound && one.level > own);
                filters.swap_tables(&mut one.filters);
            }
        }
    }
}

impl Discipline for Hfsc {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        let at = match self.choose(cx, own, filters, &pkt) {
            Ok(Some(at)) => at,
            Ok(None) => {
                cx.drop(own.handle, pkt, DropReason::Unclassified);
                return Enqueue::Dropped;
            }
            Err(gone) => return gone.carry_out(cx, own.handle, pkt),
        };
        let len = cx.pool.meta(&pkt).len;
        let class = self.tree.class_mut(at);
        let first = class.child().qlen() == 0;
        let result = class.child().enqueue(cx, pkt);
        if class.child().qlen() == 0 {
            // It made space by losing all it had, or refused.
            self.tree.silence(at);
        }
        match result {
            Enqueue::Queued => {}
            Enqueue::Congested | Enqueue::Dropped | Enqueue::DroppedSilently => {
                let class = self.tree.class_mut(at);
                class.drops = class.drops.wrapping_add(1);
                return result;
            }
            Enqueue::Taken | Enqueue::Parked => return result,
        }
        if first && !self.tree.is_active(at) {
            self.tree.activate(at, len, cx.now.psched());
            if self.tree.class(at).curves.rt.is_some() {
                // The deadline was set for this packet: nothing may take its place.
                self.peek_len(cx, at);
            }
        }
        result
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, own: QdiscState) -> Dequeue {
        if own.qlen == 0 {
            return Dequeue::Empty;
        }
        let Some((at, real_time)) = self.tree.choose(cx.now.psched()) else {
            self.overlimits = self.overlimits.wrapping_add(1);
            if let Some(next) = self.tree.next_event() {
                cx.wake(own, Time(next << TICK));
            }
            return Dequeue::Throttled;
        };
        let child = self.tree.class_mut(at).child();
        let had = child.qlen() > 0;
        let result = child.dequeue(cx);
        let empty = child.qlen() == 0;
        let Dequeue::Packet(pkt) = &result else {
            // A child with a backlog that may not leave yet stops all, as in Linux; so does one whose packets
            // vanished.
            if had && empty {
                self.tree.silence(at);
            }
            return result;
        };
        let len = cx.pool.meta(pkt).len;
        let class = self.tree.class_mut(at);
        class.packets += 1;
        class.bytes += u64::from(len);
        self.tree.account(at, len, empty);
        if real_time {
            let state = &mut self.tree.class_mut(at).state;
            state.rtwork = state.rtwork.wrapping_add(u64::from(len));
        }
        if self.tree.class(at).curves.rt.is_some() {
            self.next_packet(cx, at, real_time);
        }
        result
    }

    fn change(
        &mut self,
        _cx: &mut Context<'_>,
        _own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        let Some(QdiscParams::Hfsc(params)) = params else { return Err(TcError::bare(Errno::Inval)) };
        self.default = params.default;
        Ok(())
    }

    fn purge(&mut self, cx: &mut Context<'_>, _own: QdiscState) {
        for (_, at) in self.hash.iter() {
            self.tree.class_mut(at).child().purge(cx);
        }
        self.tree.forget();
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::Hfsc(HfscParams { default: self.default })
    }

    fn amend_stats(&self, stats: &mut QueueStats) {
        stats.overlimits = self.overlimits;
    }

    classful!();

    rehashes!();
}

impl Classful for Hfsc {
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
            // Even where the class stays, filters no longer hold it.
            self.rebind(filters, op.classid, false);
            return removed.map(|()| None);
        }
        let Some(ClassParams::Hfsc(params)) = &op.params else { return Err(TcError::bare(Errno::Inval)) };
        let new = Curves::new(params);
        match found {
            Some(at) => self.alter(cx, op, at, &new).map(|()| None),
            None => {
                let warning = self.make(cx, own, op, &new)?;
                self.rebind(filters, op.classid, true);
                Ok(warning)
            }
        }
    }

    fn class_sent(&self, class: Handle) -> Option<Sent> {
        let class = self.tree.class(self.find(class)?);
        Some(Sent { bytes: class.bytes, packets: class.packets })
    }

    fn child(&mut self, class: Handle) -> Option<&mut QdiscNode> {
        let at = self.find(class).filter(|at| self.tree.class(*at).level == 0)?;
        self.tree.class_mut(at).child.as_mut()
    }

    fn child_emptied(&mut self, _cx: &mut Context<'_>, class: Handle) {
        if let Some(at) = self.find(class) {
            self.tree.silence(at);
        }
    }

    fn visit(&mut self, visit: &mut dyn Visit) {
        for class in &mut self.tree.classes {
            if let Some(child) = &mut class.child {
                visit.node(child);
            }
        }
    }

    fn classes(&mut self, _now: Time, _qdisc: Handle, out: &mut Vec<ClassDump>) {
        for (_, at) in self.hash.iter() {
            let class = self.tree.class(at);
            let (leaf, child) = class.child.as_ref().map(|c| (c.handle(), c.stats())).unwrap_or_default();
            out.push(ClassDump {
                dev: Default::default(),
                kind: Kind::Hfsc,
                classid: class.id,
                parent: class.parent.map_or(Handle::ROOT, |parent| self.tree.class(parent).id),
                leaf: if class.level == 0 { leaf } else { Handle::NONE },
                params: ClassParams::Hfsc(class.curves.params()),
                stats: Some(QueueStats {
                    bytes: class.bytes,
                    packets: class.packets,
                    drops: class.drops,
                    overlimits: 0,
                    requeues: 0,
                    qlen: child.qlen,
                    backlog: child.backlog,
                    rate: None,
                }),
                xstats: Xstats::HfscClass {
                    work: class.state.work,
                    rtwork: class.state.rtwork,
                    period: class.state.period,
                    level: class.level,
                },
            });
        }
    }

    inner_classes!();
}

impl InnerClasses for Hfsc {
    fn may_pin(&self, holder: Handle, class: Handle) -> bool {
        // The qdisc's own list may hold any class, an inner class's only those below its level.
        let level = |id: Handle| self.find(id).map(|at| self.tree.class(at).level);
        level(class)
            .is_some_and(|below| holder.minor() == 0 || level(holder).is_some_and(|above| above > below))
    }

    fn each_class_action(&self, show: &mut dyn FnMut(&[u32])) {
        self.tree.classes.iter().for_each(|class| class.filters.each_action(show));
    }

    fn class_filters(&mut self, class: Handle) -> Option<&mut FilterList> {
        let at = self.find(class)?;
        self.class_lists = true;
        Some(&mut self.tree.class_mut(at).filters)
    }

    fn attached(&mut self, class: Handle) -> Option<&mut QdiscNode> {
        let at = self.find(class)?;
        self.tree.class_mut(at).child.as_mut()
    }

    fn child_refused(&mut self, _cx: &mut Context<'_>, class: Handle) {
        if let Some(at) = self.find(class) {
            let is_so = self.tree.class_mut(at).child().qlen() == 0;
            self.tree.hear(at, is_so);
        }
    }

    fn child_made(&mut self, class: Handle) {
        if let Some(at) = self.find(class).filter(|at| self.tree.class(*at).level > 0) {
            self.tree.silence(at);
        }
    }
}

impl Rehash for Hfsc {
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

impl BuiltIn for Hfsc {}
