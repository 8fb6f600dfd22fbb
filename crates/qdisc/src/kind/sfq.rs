//! sfq: stochastic fairness queueing (McKenney 1990).
//!
//! Packets are hashed into buckets; a bucket with packets occupies a slot, and slots take turns of a quantum
//! of bytes. When the qdisc is full the longest slot drops its newest packet. Slots of equal length are kept
//! on one list per length, so the longest is found at once. The hash key changes every `perturb` seconds, and
//! the backlog is hashed again. Random early detection, if requested, judges each flow by its own average
//! backlog ([`crate::algo::red`]).

use super::NO_CHANGE;
use crate::algo::red::{Params, RedVerdict, State};
use crate::batch::BuiltIn;
use crate::classful::Classful;
use crate::classify::{ClassifyResult, Consumed, classify};
use crate::context::{Context, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, QdiscState, Rehash};
use crate::kind::{classful, rehashes};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use tidegate_classify::FilterList;
use tidegate_packet::{Fifo, Handle, HashKey, Meta, Pkt, Time, Timer};
use tidegate_policy::dump::{ClassDump, QueueStats, SfqStats, Xstats};
use tidegate_policy::{ClassParams, Errno, Kind, QdiscParams, SfqParams, SfqRed, TcError};

const DEFAULT_FLOWS: u32 = 128;
const MAX_DEPTH: u32 = 127;
const MIN_QUANTUM: u32 = 256;
const MAX_QUANTUM: u32 = 1 << 20;
const MAX_FLOWS: u32 = 65_408;
const DEFAULT_DIVISOR: u32 = 1024;
const NONE: u32 = u32::MAX;

pub(crate) struct Sfq {
    limit: u32,
    depth: u32,
    flow_limit: u32,
    divisor: u32,
    quantum: u32,
    perturb_secs: i32,
    headdrop: bool,
    red: Option<Box<Red>>,
    overlimits: u32,
    key: HashKey,
    perturb: Timer,
    /// Slot of each bucket; `NONE` = empty. Made when the first packet comes.
    buckets: Vec<u32>,
    slots: Vec<Slot>,
    /// By number of packets: the slot most recently linked. Index 0 holds the free ones.
    by_length: Vec<u32>,
    longest: u32,
    /// The slot at the end of the ring; its `ring_next` is served next.
    tail: u32,
}

/// Random early detection in the flows.
struct Red {
    law: Params,
    ecn: bool,
    harddrop: bool,
    stats: SfqStats,
}

#[derive(Default)]
struct Slot {
    queue: Fifo,
    red: State,
    bucket: u32,
    allot: i32,
    ring_next: u32,
    prev: u32,
    next: u32,
}

impl Sfq {
    pub(crate) fn new(cx: &mut Context<'_>, params: Option<&SfqParams>) -> Result<Sfq, TcError> {
        let mut sfq = Sfq {
            limit: MAX_DEPTH,
            depth: MAX_DEPTH,
            flow_limit: DEFAULT_FLOWS,
            divisor: DEFAULT_DIVISOR,
            quantum: cx.device.max_frame,
            perturb_secs: 0,
            headdrop: false,
            red: None,
            overlimits: 0,
            key: HashKey::default(),
            perturb: Timer::NEVER,
            buckets: Vec::new(),
            slots: Vec::new(),
            by_length: Vec::new(),
            longest: 0,
            tail: NONE,
        };
        // Linux draws a key for every new qdisc, and another one for its parameters when they ask for
        // perturbation.
        sfq.key = cx.random.source.key();
        if let Some(params) = params {
            sfq.set(params)?;
            if sfq.perturb_secs > 0 {
                sfq.key = cx.random.source.key();
                sfq.perturb = cx.wheel.arm(cx.now, sfq.perturb_secs as u32);
            }
        }
        Ok(sfq)
    }

    fn set(&mut self, params: &SfqParams) -> Result<(), TcError> {
        if params.divisor != 0 && (!params.divisor.is_power_of_two() || params.divisor > 65_536) {
            return Err(TcError::bare(Errno::Inval));
        }
        let red = match &params.red {
            Some(red) => {
                let law = Params::new(red.curve, None).ok_or(TcError::bare(Errno::Inval))?;
                let (ecn, harddrop) = (red.ecn, red.harddrop);
                Some(Box::new(Red { law, ecn, harddrop, stats: SfqStats::default() }))
            }
            None => None,
        };
        if params.perturb < 0 {
            return Err(TcError::new(Errno::Inval, "sch_sfq: invalid perturb period"));
        }
        if params.quantum != 0 {
            if params.quantum > i32::MAX as u32 {
                return Err(TcError::new(Errno::Inval, "sch_sfq: invalid quantum"));
            }
            // Current kernels hold it in bounds.
            if params.quantum > MAX_QUANTUM {
                return Err(TcError::new(Errno::Inval, "sch_sfq: quantum too large"));
            }
            self.quantum = params.quantum.max(MIN_QUANTUM);
        }
        self.perturb_secs = params.perturb;
        if params.flows != 0 {
            self.flow_limit = params.flows.min(MAX_FLOWS);
        }
        if params.divisor != 0 {
            self.divisor = params.divisor;
            self.flow_limit = self.flow_limit.min(params.divisor);
        }
        if params.depth != 0 {
            self.depth = params.depth.min(MAX_DEPTH);
        }
        self.headdrop = params.headdrop;
        self.red = red;
        if params.limit != 0 {
            self.limit = params.limit.min(self.depth * self.flow_limit);
            self.flow_limit = self.flow_limit.min(params.limit);
        }
        // Depth and flows may leave space for a single packet: that is no queue.
        if self.limit == 1 {
            return Err(TcError::new(Errno::Inval, "sch_sfq: invalid limit"));
        }
        Ok(())
    }

    fn make_tables(&mut self) {
        self.buckets = vec![NONE; self.divisor as usize];
        self.by_length = vec![NONE; self.depth as usize + 1];
        self.slots.resize_with(self.flow_limit as usize, Slot::default);
        for slot in 0..self.flow_limit {
            self.link(slot);
        }
    }

    /// The bucket of a packet; `None` when a filter sends it nowhere.
    fn choose(
        &self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        pkt: &Pkt,
    ) -> Result<Option<u32>, Consumed> {
        let priority = cx.pool.meta(pkt).priority_class();
        let named = |class: Handle| (1..=self.divisor).contains(&u32::from(class.minor()));
        if priority.qdisc() == own.handle && named(priority) {
            return Ok(Some(u32::from(priority.minor()) - 1));
        }
        if filters.is_empty() {
            return Ok(Some(self.hash(cx, pkt)));
        }
        match classify(filters, cx, own.handle, pkt) {
            ClassifyResult::Nothing => Ok(None),
            ClassifyResult::Class(class) => Ok(named(class).then(|| u32::from(class.minor()) - 1)),
            ClassifyResult::Consumed(gone) => Err(gone),
        }
    }

    fn hash(&self, cx: &mut Context<'_>, pkt: &Pkt) -> u32 {
        cx.pool.keyed_hash(pkt, self.key) & (self.divisor - 1)
    }

    /// Puts a slot on the list of its length, in front.
    fn link(&mut self, slot: u32) {
        let length = self.slots[slot as usize].queue.len() as usize;
        let first = core::mem::replace(&mut self.by_length[length], slot);
        let s = &mut self.slots[slot as usize];
        (s.prev, s.next) = (NONE, first);
        if first != NONE {
            self.slots[first as usize].prev = slot;
        }
    }

    /// Takes a slot off the list of slots of `length`.
    fn unlink(&mut self, slot: u32, length: u32) {
        let (prev, next) = (self.slots[slot as usize].prev, self.slots[slot as usize].next);
        if prev == NONE {
            self.by_length[length as usize] = next;
        } else {
            self.slots[prev as usize].next = next;
        }
        if next != NONE {
            self.slots[next as usize].prev = prev;
        }
    }

    fn append(&mut self, cx: &mut Context<'_>, slot: u32, pkt: Pkt) {
        let queue = &mut self.slots[slot as usize].queue;
        let length = queue.len();
        queue.push_back(cx.pool, pkt);
        self.unlink(slot, length);
        self.link(slot);
        self.longest = self.longest.max(length + 1);
        if length == 0 {
            self.join_ring(slot);
        }
    }

    fn take(&mut self, cx: &mut Context<'_>, slot: u32, newest: bool) -> Option<Pkt> {
        let queue = &mut self.slots[slot as usize].queue;
        let length = queue.len();
        let pkt = if newest { queue.pop_back(cx.pool) } else { queue.pop_front(cx.pool) }?;
        self.unlink(slot, length);
        if self.longest == length && self.by_length[length as usize] == NONE {
            self.longest -= 1;
        }
        self.link(slot);
        Some(pkt)
    }

    /// A slot that became busy goes to the end of the ring with a whole quantum.
    fn join_ring(&mut self, slot: u32) {
        if self.tail == NONE {
            self.slots[slot as usize].ring_next = slot;
        } else {
            let first = core::mem::replace(&mut self.slots[self.tail as usize].ring_next, slot);
            self.slots[slot as usize].ring_next = first;
        }
        self.tail = slot;
        self.slots[slot as usize].allot = self.quantum as i32;
    }

    /// The slot served next leaves the ring.
    fn leave_ring(&mut self, slot: u32) {
        let s = &self.slots[slot as usize];
        let (next, bucket) = (s.ring_next, s.bucket);
        self.buckets[bucket as usize] = NONE;
        if next == slot {
            self.tail = NONE;
        } else {
            self.slots[self.tail as usize].ring_next = next;
        }
    }

    /// Makes space: the longest slot drops a packet, the one served next if all have one.
    fn drop_one(&mut self, cx: &mut Context<'_>, at: Handle) {
        let slot = if self.longest > 1 {
            self.by_length[self.longest as usize]
        } else {
            let first = self.slots[self.tail as usize].ring_next;
            self.leave_ring(first);
            first
        };
        if let Some(pkt) = self.take(cx, slot, !self.headdrop) {
            cx.drop(at, pkt, DropReason::Overflow);
        }
    }

    /// The slot of a bucket, a free one if it has none; `None` when all are busy.
    fn slot_for(&mut self, bucket: u32) -> Option<u32> {
        let slot = self.buckets[bucket as usize];
        if slot != NONE {
            return Some(slot);
        }
        let free = self.by_length[0];
        if free == NONE {
            return None;
        }
        self.buckets[bucket as usize] = free;
        self.slots[free as usize].bucket = bucket;
        self.slots[free as usize].red = State::default();
        Some(free)
    }

    /// Judges an arrival by the average backlog of its slot, which is not empty; returns whether it is to be
    /// dropped. With headdrop the slot's oldest packet is marked in its place.
    fn decide(&mut self, cx: &mut Context<'_>, slot: u32, pkt: &Pkt) -> bool {
        let (Some(red), slot) = (&mut self.red, &mut self.slots[slot as usize]) else { return false };
        slot.red.arrival(&red.law, slot.queue.bytes() as u32, cx.now);
        let hard = match slot.red.decide(&red.law, cx.random.source) {
            RedVerdict::Pass => return false,
            verdict => verdict == RedVerdict::Hard,
        };
        self.overlimits = self.overlimits.wrapping_add(1);
        let stats = &mut red.stats;
        let (head, own, drop) = if hard {
            (&mut stats.forced_mark_head, &mut stats.forced_mark, &mut stats.forced_drop)
        } else {
            (&mut stats.prob_mark_head, &mut stats.prob_mark, &mut stats.prob_drop)
        };
        let may_mark = red.ecn && !(hard && red.harddrop);
        let counter = if may_mark && self.headdrop && slot.queue.front_mut(cx.pool).is_some_and(Meta::set_ce)
        {
            head
        } else if may_mark && cx.pool.meta_mut(pkt).set_ce() {
            own
        } else {
            *drop += 1;
            return true;
        };
        *counter += 1;
        false
    }

    /// Takes no more into a slot: the arrival is refused, or with headdrop takes the place of the slot's
    /// oldest packet.
    fn refuse(&mut self, cx: &mut Context<'_>, at: Handle, slot: u32, pkt: Pkt) -> Enqueue {
        if !self.headdrop {
            cx.drop(at, pkt, DropReason::Full);
            return Enqueue::Dropped;
        }
        let queue = &mut self.slots[slot as usize].queue;
        if let Some(oldest) = queue.pop_front(cx.pool) {
            cx.drop(at, oldest, DropReason::Overflow);
        }
        queue.push_back(cx.pool, pkt);
        Enqueue::Congested
    }

    /// Hashes everything that waits again.
    fn rehash(&mut self, cx: &mut Context<'_>, at: Handle) {
        let mut all = Fifo::new();
        for slot in 0..self.slots.len() as u32 {
            if self.slots[slot as usize].queue.is_empty() {
                continue;
            }
            while let Some(pkt) = self.take(cx, slot, false) {
                all.push_back(cx.pool, pkt);
            }
            let bucket = self.slots[slot as usize].bucket;
            self.buckets[bucket as usize] = NONE;
        }
        self.tail = NONE;
        while let Some(pkt) = all.pop_front(cx.pool) {
            let bucket = self.hash(cx, &pkt);
            match self.slot_for(bucket) {
                Some(slot) if self.slots[slot as usize].queue.len() < self.depth => {
                    // The average is updated with the backlog before this packet.
                    if let (Some(red), slot) = (&self.red, &mut self.slots[slot as usize]) {
                        slot.red.arrival(&red.law, slot.queue.bytes() as u32, cx.now);
                    }
                    self.append(cx, slot, pkt);
                }
                _ => cx.drop(at, pkt, DropReason::Rehash),
            }
        }
    }
}

impl Discipline for Sfq {
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
        let Some(bucket) = chosen else {
            cx.drop(own.handle, pkt, DropReason::Unclassified);
            return Enqueue::Dropped;
        };
        cx.pool.note_queue(&pkt, bucket + 1);
        if self.slots.is_empty() {
            self.make_tables();
        }
        let Some(slot) = self.slot_for(bucket) else {
            cx.drop(own.handle, pkt, DropReason::Full);
            return Enqueue::Dropped;
        };
        let waiting = self.slots[slot as usize].queue.len();
        if waiting > 0 && self.decide(cx, slot, &pkt) || waiting >= self.depth {
            return self.refuse(cx, own.handle, slot, pkt);
        }
        self.append(cx, slot, pkt);
        if own.qlen < self.limit {
            return Enqueue::Queued;
        }
        let length = self.slots[slot as usize].queue.len();
        self.drop_one(cx, own.handle);
        let own_lost = self.slots[slot as usize].queue.len() != length;
        if own_lost { Enqueue::Congested } else { Enqueue::Queued }
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, _own: QdiscState) -> Dequeue {
        if self.tail == NONE {
            return Dequeue::Empty;
        }
        let slot = loop {
            let first = self.slots[self.tail as usize].ring_next;
            let s = &mut self.slots[first as usize];
            if s.allot > 0 {
                break first;
            }
            s.allot += self.quantum as i32;
            self.tail = first;
        };
        let Some(pkt) = self.take(cx, slot, false) else { unreachable!("a slot in the ring has a packet") };
        if self.slots[slot as usize].queue.is_empty() {
            self.leave_ring(slot);
        } else {
            self.slots[slot as usize].allot -= cx.pool.meta(&pkt).len as i32;
        }
        Dequeue::Packet(pkt)
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
        // In the order of service, each packet a group of its own (recorded: answers/sfq-purge-order).
        while let Dequeue::Packet(pkt) = self.dequeue(cx, own) {
            cx.next_purge_group();
            cx.purge(own.handle, pkt);
        }
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::Sfq(SfqParams {
            quantum: self.quantum,
            perturb: self.perturb_secs,
            limit: self.limit,
            divisor: self.divisor,
            flows: self.flow_limit,
            depth: self.depth,
            headdrop: self.headdrop,
            red: self.red.as_ref().map(|red| SfqRed {
                limit: 0,
                curve: red.law.curve(),
                ecn: red.ecn,
                harddrop: red.harddrop,
            }),
        })
    }

    fn xstats(&mut self, _now: Time) -> Xstats {
        self.red.as_ref().map_or(Xstats::None, |red| Xstats::Sfq(red.stats.clone()))
    }

    fn amend_stats(&self, stats: &mut QueueStats) {
        stats.overlimits = self.overlimits;
    }

    classful!();

    rehashes!();
}

impl Classful for Sfq {
    fn classes(&mut self, _now: Time, qdisc: Handle, out: &mut Vec<ClassDump>) {
        for (bucket, slot) in self.buckets.iter().enumerate() {
            let Some(slot) = self.slots.get(*slot as usize) else { continue };
            out.push(ClassDump {
                dev: Default::default(),
                kind: Kind::Sfq,
                classid: qdisc.class(bucket as u16 + 1),
                parent: qdisc,
                leaf: Handle::NONE,
                params: ClassParams::None,
                stats: Some(QueueStats {
                    qlen: slot.queue.len(),
                    backlog: slot.queue.bytes() as u32,
                    ..QueueStats::default()
                }),
                xstats: Xstats::SfqClass { allot: slot.allot },
            });
        }
    }
}

impl Rehash for Sfq {
    fn rehash_due(&self) -> Timer {
        self.perturb
    }

    fn rehash(&mut self, cx: &mut Context<'_>, own: QdiscState, _due: Timer, filtered: bool) {
        self.key = cx.random.source.key();
        if !filtered && self.tail != NONE {
            self.rehash(cx, own.handle);
        }
        self.perturb = cx.wheel.arm(cx.now, self.perturb_secs as u32);
    }
}

impl BuiltIn for Sfq {}
