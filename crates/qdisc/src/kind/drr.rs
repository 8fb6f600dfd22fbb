//! drr: deficit round robin (Shreedhar and Varghese 1995).
//!
//! Classes with packets are in a ring. The first one sends while its deficit pays for its next packet; when
//! it does not, the deficit grows by the class's quantum and the class goes to the end. There is no default
//! class: a packet that nothing classifies is dropped.

use crate::algo::{ClassHash, IndexList, Linked, ListLink, Sent};
use crate::batch::{Batch, Budget, BuiltIn, ParentQdisc};
use crate::classful::Classful;
use crate::classify::{Consumed, choose_class};
use crate::context::{Context, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, Peek, QdiscState, Visit};
use crate::kind::classful;
use crate::kind::{NO_CHANGE, class_in_use};
use crate::node::QdiscNode;
use alloc::string::String;
use alloc::vec::Vec;
use core::hint::black_box;
use tidegate_classify::FilterList;
use tidegate_packet::{Handle, Pkt, Pool, Time};
use tidegate_policy::dump::{ClassDump, QueueStats, Xstats};
use tidegate_policy::{ClassOp, ClassParams, DrrClassParams, Errno, Kind, QdiscParams, TcError, Verb};

/// What a class's quantum is held to, bytes.
const MIN_QUANTUM: u32 = 256;
const MAX_QUANTUM: u32 = 1 << 20;
/// How many classes are looked at ahead.
const AHEAD: u32 = 4;

#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct Drr {
    /// By slot; a deleted class leaves its slot to the next.
    classes: Vec<Slot>,
    active: IndexList,
    hash: ClassHash,
}

/// A class with its place in the ring; its qdisc is absent while the slot is free.
struct Slot {
    link: ListLink,
    class: Class,
}

impl Linked for Slot {
    fn link(&mut self) -> &mut ListLink {
        &mut self.link
    }
}

struct Class {
    id: Handle,
    quantum: u32,
    deficit: u32,
    packets: u64,
    bytes: u64,
    child: QdiscNode,
}

impl Drr {
    fn find(&self, id: Handle) -> Option<u32> {
        self.hash.get(id)
    }

    fn class(&mut self, at: u32) -> &mut Class {
        &mut self.classes[at as usize].class
    }

    fn choose(
        &self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        pkt: &Pkt,
    ) -> Result<Option<u32>, Consumed> {
        choose_class(cx, own, filters, pkt, |class| self.find(class))
    }

    fn deactivate(&mut self, at: u32) {
        if self.classes[at as usize].link.is_linked() {
            self.active.remove(&mut self.classes, at);
        }
    }

    fn quantum(params: Option<&ClassParams>) -> Result<Option<u32>, TcError> {
        match params {
            Some(ClassParams::Drr(DrrClassParams { quantum: Some(0) })) => {
                Err(TcError::new(Errno::Inval, "Specified DRR quantum cannot be zero"))
            }
            Some(ClassParams::Drr(params)) => {
                // Recorded: answers/drr-quantum-clamped.
                Ok(params.quantum.map(|bytes| bytes.clamp(MIN_QUANTUM, MAX_QUANTUM)))
            }
            _ => Err(TcError::new(Errno::Inval, "DRR options are required for this operation")),
        }
    }
}

impl Discipline for Drr {
    #[inline]
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        let chosen = match self.choose(cx, own, filters, &pkt) {
            Ok(chosen) => chosen,
            Err(gone) => return gone.carry_out(cx, own.handle, pkt),
        };
        let Some(at) = chosen else {
            cx.drop(own.handle, pkt, DropReason::Unclassified);
            return Enqueue::Dropped;
        };
        let Slot { link, class } = &mut self.classes[at as usize];
        let result = class.child.enqueue(cx, pkt);
        if class.child.qlen() == 0 {
            // It made space by losing all it had.
            self.deactivate(at);
            return result;
        }
        if result == Enqueue::Queued && !link.is_linked() {
            class.deficit = class.quantum;
            self.active.push(&mut self.classes, at);
        }
        result
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Context<'_>, _own: QdiscState) -> Dequeue {
        while let Some(at) = self.active.first() {
            let class = &mut self.classes[at as usize].class;
            let had = class.child.qlen() > 0;
            let len = match class.child.peek(cx) {
                Peek::Packet(len) => len,
                // A child with a backlog that may not leave yet stops the whole ring, as in Linux; so does
                // one whose packets vanished. One that dropped all it had is idle (recorded:
                // answers/drr-class-idle-when-its-child-dropped-all).
                nothing => {
                    if had && class.child.qlen() == 0 {
                        self.deactivate(at);
                    }
                    return if nothing == Peek::Empty { Dequeue::Empty } else { Dequeue::Throttled };
                }
            };
            if len > class.deficit {
                class.deficit = class.deficit.wrapping_add(class.quantum);
                self.active.remove(&mut self.classes, at);
                self.active.push(&mut self.classes, at);
                continue;
            }
            class.deficit -= len;
            let result = class.child.dequeue(cx);
            if let Dequeue::Packet(_) = &result {
                class.packets += 1;
                class.bytes += u64::from(len);
            }
            if class.child.qlen() == 0 {
                self.deactivate(at);
            }
            return result;
        }
        Dequeue::Empty
    }

    fn change(
        &mut self,
        _cx: &mut Context<'_>,
        _own: QdiscState,
        _params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        Err(NO_CHANGE)
    }

    fn purge(&mut self, cx: &mut Context<'_>, _own: QdiscState) {
        for (_, at) in self.hash.iter() {
            self.classes[at as usize].class.child.purge(cx);
            if self.classes[at as usize].link.is_linked() {
                self.active.remove(&mut self.classes, at);
            }
        }
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::Drr
    }

    classful!();
}

impl Classful for Drr {
    fn has_class(&self, class: Handle) -> bool {
        self.find(class).is_some()
    }

    fn class_op(
        &mut self,
        cx: &mut Context<'_>,
        _own: QdiscState,
        filters: &mut FilterList,
        op: &ClassOp,
    ) -> Result<Option<String>, TcError> {
        let found = self.find(op.classid);
        if op.verb == Verb::Delete {
            let at = found.ok_or(TcError::bare(Errno::NoEnt))?;
            if filters.binds(op.classid) {
                return Err(class_in_use(cx, "DRR class is in use"));
            }
            self.deactivate(at);
            self.hash.remove(op.classid);
            self.class(at).child.leave(cx);
            return Ok(None);
        }
        let quantum = Drr::quantum(op.params.as_ref())?;
        if let Some(at) = found {
            if let Some(quantum) = quantum {
                self.class(at).quantum = quantum;
            }
            return Ok(None);
        }
        let class = Class {
            id: op.classid,
            quantum: quantum.unwrap_or(cx.device.max_frame),
            deficit: 0,
            packets: 0,
            bytes: 0,
            child: QdiscNode::hidden(cx, Kind::Pfifo, op.classid),
        };
        let slot = Slot { link: ListLink::default(), class };
        let at = match self.classes.iter().position(|slot| slot.class.child.there().is_none()) {
            Some(at) => {
                self.classes[at] = slot;
                at
            }
            None => {
                self.classes.push(slot);
                self.classes.len() - 1
            }
        };
        self.hash.insert(op.classid, at as u32);
        self.hash.grow();
        Ok(None)
    }

    fn class_sent(&self, class: Handle) -> Option<Sent> {
        let class = &self.classes[self.find(class)? as usize].class;
        Some(Sent { bytes: class.bytes, packets: class.packets })
    }

    fn child(&mut self, class: Handle) -> Option<&mut QdiscNode> {
        let at = self.find(class)?;
        Some(&mut self.class(at).child)
    }

    fn child_emptied(&mut self, _cx: &mut Context<'_>, class: Handle) {
        if let Some(at) = self.find(class) {
            self.deactivate(at);
        }
    }

    fn visit(&mut self, visit: &mut dyn Visit) {
        for slot in &mut self.classes {
            if let Some(child) = slot.class.child.there_mut() {
                visit.node(child);
            }
        }
    }

    fn classes(&mut self, _now: Time, _qdisc: Handle, out: &mut Vec<ClassDump>) {
        for (_, at) in self.hash.iter() {
            let class = &self.classes[at as usize].class;
            let child = class.child.stats();
            out.push(ClassDump {
                dev: Default::default(),
                kind: Kind::Drr,
                classid: class.id,
                parent: Handle::ROOT,
                leaf: class.child.handle(),
                params: ClassParams::Drr(DrrClassParams { quantum: Some(class.quantum) }),
                stats: Some(QueueStats { bytes: class.bytes, packets: class.packets, ..child }),
                xstats: Xstats::DrrClass { deficit: if child.qlen > 0 { class.deficit } else { 0 } },
            });
        }
    }
}

impl Batch for Drr {
    fn enqueue_plain(
        &mut self,
        pool: &mut Pool,
        _at: ParentQdisc<'_>,
        pkt: Pkt,
        len: u32,
    ) -> Result<(), Pkt> {
        let Some(at) = self.hash.quick(pool.meta(&pkt).priority_class()) else { return Err(pkt) };
        let Slot { link, class } = &mut self.classes[at as usize];
        if !class.child.is_fifo() {
            return Err(pkt);
        }
        class.child.enqueue_plain(pool, pkt, len)?;
        if !link.is_linked() {
            class.deficit = class.quantum;
            self.active.push(&mut self.classes, at);
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
        let class = &self.classes[at as usize].class;
        black_box(class.deficit);
        Some(&class.child)
    }

    fn prefetch(&self, pool: &mut Pool, depth: u32, room: u32) {
        let Some(mut at) = self.active.first() else { return };
        for _ in 0..room.min(AHEAD) {
            let Slot { link, class } = &self.classes[at as usize];
            black_box(class.deficit);
            class.child.prefetch(pool, depth, room);
            let Some(next) = link.next() else { return };
            at = next;
        }
    }

    fn dequeue_run(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        budget: &mut Budget,
        out: &mut Vec<Pkt>,
    ) -> bool {
        let mut ran = false;
        while !budget.is_spent()
            && let Some(at) = self.active.first()
            && self.class(at).child.is_fifo()
            && let Dequeue::Packet(pkt) = self.dequeue(cx, own)
        {
            budget.take(cx.pool.meta(&pkt).len);
            out.push(pkt);
            ran = true;
        }
        ran
    }
}

impl BuiltIn for Drr {}
