//! qfq: quick fair queueing (Checconi, Rizzo and Valente, IEEE/ACM ToN 2013), in its form with aggregates
//! (QFQ+, Valente 2013).
//!
//! Classes share by weight, nearly as exactly as packets allow, at a constant cost per packet. Classes with
//! the same parameters share an [aggregate](aggregates), which is served for a budget and takes turns inside
//! by deficit round robin; [`groups`] chooses the next aggregate. A packet longer than its class's `maxpkt`
//! raises that. There is no default class: a packet that nothing classifies is dropped.

mod aggregates;
mod groups;

use crate::algo::{ClassHash, Linked, ListLink, Sent};
use crate::batch::BuiltIn;
use crate::classful::Classful;
use crate::classify::{Consumed, choose_class};
use crate::context::{Context, DeviceInfo, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, Peek, QdiscState, Visit};
use crate::kind::classful;
use crate::kind::{NO_CHANGE, class_in_use};
use crate::node::QdiscNode;
use aggregates::{Aggregate, Aggregates, ONE};
use alloc::string::String;
use alloc::vec::Vec;
use groups::Schedule;
use tidegate_classify::FilterList;
use tidegate_packet::{Handle, Pkt, Time};
use tidegate_policy::dump::{ClassDump, QueueStats, Xstats};
use tidegate_policy::{ClassOp, ClassParams, Errno, Kind, QdiscParams, QfqClassParams, TcError, Verb};

/// The greatest weight of a class, and of all together.
const MOST_WEIGHT: u32 = 1024;
const MOST_WEIGHTS: u32 = 65_536;
/// What `maxpkt` is held to, bytes.
const SHORTEST: u32 = 512;
const LONGEST: u32 = 65_536;
/// Classes of an aggregate, at most.
const MOST_CLASSES: u32 = 8;

pub(crate) struct Qfq {
    /// By slot; a deleted class leaves its slot to the next.
    classes: Vec<Slot>,
    hash: ClassHash,
    aggregates: Aggregates,
    schedule: Schedule,
    in_service: Option<u32>,
    /// All classes' weights together, and 1 / that.
    weights: u32,
    inverse: u32,
    /// Classes of an aggregate, at most, on this device.
    most: u32,
}

struct Slot {
    link: ListLink,
    class: Option<Class>,
}

impl Linked for Slot {
    fn link(&mut self) -> &mut ListLink {
        &mut self.link
    }
}

struct Class {
    id: Handle,
    aggregate: u32,
    deficit: i32,
    packets: u64,
    bytes: u64,
    child: QdiscNode,
}

impl Qfq {
    pub(crate) fn new(device: DeviceInfo) -> Qfq {
        let most = device.tx_queue_len.saturating_add(1).min(MOST_CLASSES).ilog2();
        Qfq {
            classes: Vec::new(),
            hash: ClassHash::default(),
            aggregates: Aggregates::default(),
            schedule: Schedule::new(most),
            in_service: None,
            weights: 0,
            inverse: 0,
            most: 1 << most,
        }
    }

    fn find(&self, id: Handle) -> Option<u32> {
        self.hash.get(id)
    }

    fn class(&mut self, at: u32) -> &mut Class {
        let Some(class) = self.classes[at as usize].class.as_mut() else {
            unreachable!("only classes are found")
        };
        class
    }

    fn aggregate(&mut self, at: u32) -> &mut Aggregate {
        &mut self.aggregates.list[at as usize]
    }

    fn is_active(&self, at: u32) -> bool {
        self.classes[at as usize].link.is_linked()
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

    // --- aggregates

    /// A class of this aggregate has packets, and none had before: puts it in line, or serves it if none is
    /// served.
    fn activate(&mut self, at: u32) {
        let start = self.schedule.start_of(&self.aggregates.list[at as usize]);
        let aggregate = self.aggregate(at);
        aggregate.recharge();
        aggregate.start_at(start);
        match self.in_service {
            None => {
                self.in_service = Some(at);
                self.schedule.begin_at(start);
            }
            Some(served) if served != at => self.schedule.insert(&mut self.aggregates.list, at, false),
            Some(_) => {}
        }
    }

    /// No class of this aggregate has packets any more.
    fn deactivate(&mut self, at: u32) {
        if self.in_service == Some(at) {
            self.aggregate(at).charge();
            self.serve_next();
            return;
        }
        self.schedule.remove(&mut self.aggregates.list, at);
        let aggregate = self.aggregate(at);
        aggregate.finish = aggregate.start;
    }

    fn serve_next(&mut self) {
        self.in_service = self.schedule.take_next(&mut self.aggregates.list);
    }

    /// A class has no packets any more, and not by sending them.
    fn silence(&mut self, at: u32) {
        if !self.is_active(at) {
            return;
        }
        let of = self.class(at).aggregate;
        self.aggregates.list[of as usize].active.remove(&mut self.classes, at);
        if self.aggregate(of).active.is_empty() {
            self.deactivate(of);
        }
    }

    fn set_weights(&mut self, weights: u32) {
        self.weights = weights;
        if let Some(inverse) = ONE.checked_div(weights) {
            self.inverse = inverse;
        }
    }

    /// Puts a class into the aggregate for such classes.
    fn join(&mut self, at: u32, longest: u32, weight: u32) {
        let into = self.aggregates.find_or_make(longest, weight);
        self.class(at).aggregate = into;
        let classes = self.aggregate(into).classes + 1;
        self.aggregates.resize(into, classes, self.most);
        if classes == 1 {
            let turn = self.aggregate(into).turn();
            self.aggregate(into).group = self.schedule.group_of(turn);
        }
        self.set_weights(self.weights + weight);
        if self.class(at).child.qlen() > 0 {
            self.push_active(at);
        }
    }

    /// A class has packets: it takes its turn in its aggregate, and that in line.
    fn push_active(&mut self, at: u32) {
        let of = self.class(at).aggregate;
        self.aggregates.list[of as usize].active.push(&mut self.classes, at);
        if self.aggregate(of).active.first() == Some(at) && self.in_service != Some(of) {
            self.activate(of);
        }
    }

    /// Takes a class out of its aggregate, which ends with its last class.
    fn leave(&mut self, at: u32) {
        let of = self.class(at).aggregate;
        let Aggregate { classes, weight, .. } = *self.aggregate(of);
        if classes > 1 {
            self.aggregates.resize(of, classes - 1, self.most);
        } else {
            self.aggregates.end(of);
        }
        self.set_weights(self.weights - weight);
        if classes == 1 && self.in_service == Some(of) {
            self.serve_next();
        }
    }

    /// A class has another weight, or another longest packet: another aggregate.
    fn move_class(&mut self, at: u32, longest: u32, weight: u32) {
        if self.class(at).child.qlen() > 0 {
            self.silence(at);
        }
        self.leave(at);
        self.join(at, longest, weight);
    }

    // --- packets

    /// The length of a class's next packet; `None` if its qdisc gives none now.
    fn peek(&mut self, cx: &mut Context<'_>, at: u32) -> Option<u32> {
        let child = &mut self.class(at).child;
        let len = match child.peek(cx) {
            Peek::Packet(len) => Some(len),
            Peek::Empty | Peek::Throttled => None,
        };
        if child.qlen() == 0 {
            // It dropped its whole backlog.
            self.silence(at);
        }
        len
    }

    /// The class whose turn it is in an aggregate, and the length of its next packet.
    fn next_in(&mut self, cx: &mut Context<'_>, aggregate: u32) -> Option<(u32, u32)> {
        let at = self.aggregate(aggregate).active.first()?;
        self.peek(cx, at).map(|len| (at, len))
    }

    /// The turn of the aggregate in service is over, or its classes are: gives the next.
    fn end_turn(&mut self, served: u32, waiting: u32) -> Option<u32> {
        let aggregate = self.aggregate(served);
        aggregate.charge();
        aggregate.recharge();
        if !aggregate.active.is_empty() {
            let finish = aggregate.finish;
            aggregate.start_at(finish);
            self.schedule.insert(&mut self.aggregates.list, served, false);
        } else if waiting == 0 {
            self.in_service = None;
            return None;
        }
        self.serve_next();
        self.in_service
    }

    /// A class sends its packet of `len` bytes, and its turn in its aggregate may be over with it.
    fn send(&mut self, cx: &mut Context<'_>, of: u32, at: u32, len: u32) -> Dequeue {
        let class = self.class(at);
        let result = class.child.dequeue(cx);
        let empty = class.child.qlen() == 0;
        if !matches!(result, Dequeue::Packet(_)) {
            if empty {
                self.silence(at);
            }
            return result;
        }
        class.deficit = class.deficit.wrapping_sub(len as i32);
        if empty {
            if self.is_active(at) {
                self.aggregates.list[of as usize].active.remove(&mut self.classes, at);
            }
        } else {
            let next = self.peek(cx, at).unwrap_or(0);
            let longest = self.aggregate(of).longest;
            let class = self.class(at);
            if is_short(class.deficit, next) {
                class.deficit = class.deficit.wrapping_add(longest as i32);
                self.put_last(of, at);
            }
        }
        result
    }

    /// The other classes of the aggregate come first.
    fn put_last(&mut self, of: u32, at: u32) {
        let active = &mut self.aggregates.list[of as usize].active;
        if self.classes[at as usize].link.is_linked() {
            active.remove(&mut self.classes, at);
        }
        active.push(&mut self.classes, at);
    }

    /// A packet came to a class that has others. If it is the next all the same, and the class's deficit does
    /// not pay for it, the other classes of the aggregate come first.
    fn overtaken(&mut self, cx: &mut Context<'_>, at: u32, slot: usize, len: u32) {
        let of = self.class(at).aggregate;
        if self.peek(cx, at).is_none() {
            return;
        }
        let class = self.class(at);
        let (is_next, deficit) = (class.child.peek_slot() == Some(slot), class.deficit);
        if is_next && self.aggregate(of).active.first() == Some(at) && is_short(deficit, len) {
            self.put_last(of, at);
        }
    }

    // --- classes

    fn wanted(cx: &Context<'_>, params: &QfqClassParams) -> Result<(u32, u32), TcError> {
        const OUT_OF_RANGE: TcError = TcError::new(Errno::Range, "integer out of range");
        let weight = params.weight.unwrap_or(1);
        if !(1..=MOST_WEIGHT).contains(&weight)
            || params.maxpkt.is_some_and(|most| !(SHORTEST..=LONGEST).contains(&most))
        {
            return Err(OUT_OF_RANGE);
        }
        let longest = params.maxpkt.unwrap_or(cx.device.max_frame);
        if !(SHORTEST..=LONGEST).contains(&longest) {
            return Err(TcError::new(Errno::Inval, "sch_qfq: MTU size out of bounds for qfq"));
        }
        Ok((longest, ONE / (ONE / weight)))
    }

    fn make(&mut self, cx: &mut Context<'_>, id: Handle) -> u32 {
        let child = QdiscNode::hidden(cx, Kind::Pfifo, id);
        let class = Some(Class { id, aggregate: 0, deficit: 0, packets: 0, bytes: 0, child });
        let at = match self.classes.iter().position(|slot| slot.class.is_none()) {
            Some(at) => {
                self.classes[at].class = class;
                at as u32
            }
            None => {
                self.classes.push(Slot { link: ListLink::default(), class });
                self.classes.len() as u32 - 1
            }
        };
        self.hash.insert(id, at);
        at
    }

    fn remove(&mut self, cx: &mut Context<'_>, filters: &FilterList, id: Handle) -> Result<(), TcError> {
        let at = self.find(id).ok_or(TcError::bare(Errno::NoEnt))?;
        if filters.binds(id) {
            return Err(class_in_use(cx, "sch_qfq: QFQ class in use"));
        }
        self.silence(at);
        self.hash.remove(id);
        self.leave(at);
        if let Some(class) = self.classes[at as usize].class.take() {
            class.child.destroy(cx);
        }
        Ok(())
    }
}

/// Does a deficit not pay for this many bytes? Linux compares without signs, so that a negative one pays for
/// all.
fn is_short(deficit: i32, len: u32) -> bool {
    (deficit as u32) < len
}

impl Discipline for Qfq {
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
        let (len, slot) = (cx.pool.meta(&pkt).len, pkt.slot());
        let of = self.class(at).aggregate;
        let Aggregate { longest, weight, .. } = *self.aggregate(of);
        if len > LONGEST {
            cx.drop(own.handle, pkt, DropReason::TooLong);
            return Enqueue::Dropped;
        }
        if len > longest {
            self.move_class(at, len, weight);
        }
        let class = self.class(at);
        let result = class.child.enqueue(cx, pkt);
        if class.child.qlen() == 0 {
            // It made space by losing all it had, or refused.
            self.silence(at);
            return result;
        }
        if result != Enqueue::Queued {
            return result;
        }
        class.packets += 1;
        class.bytes += u64::from(len);
        if self.is_active(at) {
            self.overtaken(cx, at, slot, len);
            return result;
        }
        let of = self.class(at).aggregate;
        let longest = self.aggregate(of).longest;
        self.class(at).deficit = longest as i32;
        self.push_active(at);
        result
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, own: QdiscState) -> Dequeue {
        let nothing = if own.qlen == 0 { Dequeue::Empty } else { Dequeue::Throttled };
        let Some(mut served) = self.in_service else { return nothing };
        let mut next = self.next_in(cx, served);
        let budget = self.aggregate(served).budget;
        if next.is_none_or(|(_, len)| len > budget) {
            let Some(other) = self.end_turn(served, own.qlen) else { return nothing };
            served = other;
            next = self.next_in(cx, served);
        }
        // When it withholds its packets, no other class is polled, as in Linux.
        let Some((at, len)) = next else { return nothing };
        let result = self.send(cx, served, at, len);
        if matches!(result, Dequeue::Packet(_)) {
            let aggregate = self.aggregate(served);
            aggregate.budget = aggregate.budget.saturating_sub(len);
            self.schedule.v = self.schedule.v.wrapping_add(u64::from(len) * u64::from(self.inverse));
        }
        result
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
        let all: Vec<u32> = self.hash.iter().map(|(_, at)| at).collect();
        for at in all {
            self.silence(at);
            self.class(at).child.purge(cx);
        }
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::Qfq
    }

    classful!();
}

impl Classful for Qfq {
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
        if op.verb == Verb::Delete {
            return self.remove(cx, filters, op.classid).map(|()| None);
        }
        let Some(ClassParams::Qfq(params)) = &op.params else { return Err(TcError::bare(Errno::Inval)) };
        let (longest, weight) = Qfq::wanted(cx, params)?;
        let found = self.find(op.classid);
        let before = found
            .map(|at| self.class(at).aggregate)
            .map(|of| (self.aggregate(of).longest, self.aggregate(of).weight));
        if before == Some((longest, weight)) {
            return Ok(None);
        }
        let before = before.map_or(0, |(_, weight)| weight);
        if self.weights - before + weight > MOST_WEIGHTS {
            return Err(TcError::bare(Errno::Inval));
        }
        match found {
            Some(at) => self.move_class(at, longest, weight),
            None => {
                let at = self.make(cx, op.classid);
                self.class(at).deficit = longest as i32;
                self.join(at, longest, weight);
                self.hash.grow();
            }
        }
        Ok(None)
    }

    fn class_sent(&self, class: Handle) -> Option<Sent> {
        let class = self.classes[self.find(class)? as usize].class.as_ref()?;
        Some(Sent { bytes: class.bytes, packets: class.packets })
    }

    fn child(&mut self, class: Handle) -> Option<&mut QdiscNode> {
        let at = self.find(class)?;
        Some(&mut self.class(at).child)
    }

    fn child_emptied(&mut self, _cx: &mut Context<'_>, class: Handle) {
        if let Some(at) = self.find(class) {
            self.silence(at);
        }
    }

    fn visit(&mut self, visit: &mut dyn Visit) {
        for class in self.classes.iter_mut().filter_map(|slot| slot.class.as_mut()) {
            visit.node(&mut class.child);
        }
    }

    fn classes(&mut self, _now: Time, _qdisc: Handle, out: &mut Vec<ClassDump>) {
        for (_, at) in self.hash.iter() {
            let Some(class) = &self.classes[at as usize].class else { continue };
            let Aggregate { weight, longest, .. } = self.aggregates.list[class.aggregate as usize];
            out.push(ClassDump {
                dev: Default::default(),
                kind: Kind::Qfq,
                classid: class.id,
                parent: Handle::ROOT,
                leaf: class.child.handle(),
                params: ClassParams::Qfq(QfqClassParams { weight: Some(weight), maxpkt: Some(longest) }),
                stats: Some(QueueStats { bytes: class.bytes, packets: class.packets, ..class.child.stats() }),
                xstats: Xstats::None,
            });
        }
    }
}

impl BuiltIn for Qfq {}
