//! hhf: heavy hitters apart from the rest.
//!
//! What each flow sends is added up in four arrays of counters, each looked up by another part of its hash
//! (the multistage filter of Estan and Varghese, SIGCOMM 2002, with conservative update and shielding). A
//! flow whose four counters all pass a threshold within a period is a heavy hitter, and is known by name
//! until it was silent for long. Heavy hitters share one queue, all others another that sends some quanta to
//! the first's one. When the qdisc is full the heavy hitters' oldest packet is dropped.

use crate::algo::{IndexList, Linked, ListLink};
use crate::batch::BuiltIn;
use crate::context::{Context, DeviceInfo, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, QdiscState, Trimmed};
use alloc::vec;
use alloc::vec::Vec;
use tidegate_classify::FilterList;
use tidegate_packet::{Fifo, HashKey, Jiffies, Pkt};
use tidegate_policy::dump::{HhfStats, Xstats};
use tidegate_policy::{Errno, HhfParams, QdiscParams, TcError};

const ARRAYS: usize = 4;
const BITS: u32 = 10;
const PLACES: usize = 1 << BITS;
/// The least quantum, bytes.
const MIN_QUANTUM: u32 = 256;
/// The queues: heavy hitters, and the others.
const HEAVY: usize = 0;
const LIGHT: usize = 1;

pub(crate) struct Hhf {
    limit: u32,
    quantum: u32,
    hh_limit: u32,
    admit_bytes: u32,
    light_weight: u32,
    /// Jiffies.
    reset_timeout: u32,
    evict_timeout: u32,
    jiffies: Jiffies,
    key: HashKey,
    /// The counters, array by array; those whose bit is not set count as 0.
    counters: Vec<u32>,
    counted: Vec<u64>,
    /// When they were begun again, jiffies.
    begun: u32,
    /// The heavy hitters, by the lowest bits of their hash.
    known: Vec<Vec<HeavyHitter>>,
    queues: [Queue; 2],
    new: IndexList,
    old: IndexList,
    stats: HhfStats,
}

struct HeavyHitter {
    hash: u32,
    /// When it was seen last, jiffies.
    seen: u32,
}

#[derive(Default)]
struct Queue {
    link: ListLink,
    queue: Fifo,
    deficit: i32,
}

impl Linked for Queue {
    fn link(&mut self) -> &mut ListLink {
        &mut self.link
    }
}

/// Does `a` lie before `b`, on a counter of 32 bits?
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Hhf {
    pub(crate) fn new(cx: &mut Context<'_>, params: Option<&HhfParams>) -> Result<Hhf, TcError> {
        let DeviceInfo { jiffies, max_frame, .. } = cx.device;
        let mut hhf = Hhf {
            limit: 1000,
            quantum: max_frame,
            hh_limit: 2 * PLACES as u32,
            admit_bytes: 128 << 10,
            light_weight: 2,
            reset_timeout: jiffies.of_micros(40_000),
            evict_timeout: jiffies.of_micros(1_000_000),
            jiffies,
            key: cx.random.source.key(),
            counters: vec![0; ARRAYS * PLACES],
            counted: vec![0; ARRAYS * PLACES / 64],
            begun: jiffies.at(cx.now) as u32,
            known: Vec::new(),
            queues: [Queue::default(), Queue::default()],
            new: IndexList::default(),
            old: IndexList::default(),
            stats: HhfStats::default(),
        };
        hhf.known.resize_with(PLACES, Vec::new);
        if let Some(params) = params {
            hhf.set(params)?;
        }
        Ok(hhf)
    }

    fn set(&mut self, params: &HhfParams) -> Result<(), TcError> {
        let quantum = params.quantum.map_or(self.quantum, |bytes| bytes.max(MIN_QUANTUM));
        let weight = params.non_hh_weight.unwrap_or(self.light_weight);
        let most = u64::from(quantum) * u64::from(weight);
        if most == 0 || most > i32::MAX as u64 {
            return Err(TcError::bare(Errno::Inval));
        }
        (self.quantum, self.light_weight) = (quantum, weight);
        self.limit = params.limit.unwrap_or(self.limit);
        self.hh_limit = params.hh_limit.unwrap_or(self.hh_limit);
        self.admit_bytes = params.admit_bytes.unwrap_or(self.admit_bytes);
        let ticks = |us: Option<u32>, present| us.map_or(present, |us| self.jiffies.of_micros(us));
        let (reset, evict) = (
            ticks(params.reset_timeout_us, self.reset_timeout),
            ticks(params.evict_timeout_us, self.evict_timeout),
        );
        (self.reset_timeout, self.evict_timeout) = (reset, evict);
        Ok(())
    }

    /// The queue that a packet belongs to.
    fn classify(&mut self, cx: &mut Context<'_>, pkt: &Pkt) -> usize {
        let now = self.jiffies.at(cx.now) as u32;
        if before(self.begun.wrapping_add(self.reset_timeout), now) {
            self.counted.fill(0);
            self.begun = now;
        }
        let hash = cx.pool.keyed_hash(pkt, self.key);
        let bucket = hash as usize % PLACES;
        if self.is_known(bucket, hash, now) {
            return HEAVY;
        }
        let len = cx.pool.meta(pkt).len;
        let places = places(hash);
        let counts = places.map(|place| self.count(place).wrapping_add(len));
        let least = counts.into_iter().min().unwrap_or(0);
        if least > self.admit_bytes {
            // Its counters stay as they are, so that they do not shield others' from it.
            return if self.note(bucket, hash, now) { HEAVY } else { LIGHT };
        }
        for place in places {
            let counter = &mut self.counters[place];
            *counter = (*counter).max(least);
        }
        LIGHT
    }

    /// The counter at a place, begun at 0 if it was not used in this period.
    fn count(&mut self, place: usize) -> u32 {
        let bit = 1 << (place % 64);
        if self.counted[place / 64] & bit == 0 {
            self.counted[place / 64] |= bit;
            self.counters[place] = 0;
        }
        self.counters[place]
    }

    /// Is this a heavy hitter? Those found on the way that were silent for too long are forgotten, but for
    /// the last of a bucket.
    fn is_known(&mut self, bucket: usize, hash: u32, now: u32) -> bool {
        let known = &mut self.known[bucket];
        let mut at = 0;
        while at < known.len() {
            if before(known[at].seen.wrapping_add(self.evict_timeout), now) {
                if at + 1 == known.len() {
                    return false;
                }
                known.remove(at);
                self.stats.cur_hh -= 1;
            } else if known[at].hash == hash {
                known[at].seen = now;
                return true;
            } else {
                at += 1;
            }
        }
        false
    }

    /// Notes a new heavy hitter, in the place of a silent one if there is such; returns whether there was
    /// room.
    fn note(&mut self, bucket: usize, hash: u32, now: u32) -> bool {
        let timeout = self.evict_timeout;
        let silent = self.known[bucket].iter_mut().find(|one| before(one.seen.wrapping_add(timeout), now));
        match silent {
            Some(one) => *one = HeavyHitter { hash, seen: now },
            None if self.stats.cur_hh >= self.hh_limit => {
                self.stats.hh_overlimit += 1;
                return false;
            }
            None => {
                self.stats.cur_hh += 1;
                self.known[bucket].push(HeavyHitter { hash, seen: now });
            }
        }
        self.stats.tot_hh += 1;
        true
    }

    fn turn(&self, queue: usize) -> i32 {
        let weight = if queue == HEAVY { 1 } else { self.light_weight };
        weight.wrapping_mul(self.quantum) as i32
    }

    /// The heavy hitters' oldest packet, or the others' where those have none, makes space for one of `len`
    /// bytes in the queue `to`.
    fn drop_oldest(&mut self, cx: &mut Context<'_>, own: QdiscState, to: usize, len: u32) -> Enqueue {
        let from = if self.queues[HEAVY].queue.is_empty() { LIGHT } else { HEAVY };
        let Some(pkt) = self.queues[from].queue.pop_front(cx.pool) else { return Enqueue::Queued };
        if from == to {
            cx.drop_instead(own.handle, pkt, DropReason::Overflow, len);
            return Enqueue::Congested;
        }
        cx.drop(own.handle, pkt, DropReason::Overflow);
        Enqueue::Queued
    }
}

/// Where a flow counts: three parts of its hash, and what is left with their sum (modulo 2, bit by bit).
fn places(hash: u32) -> [usize; ARRAYS] {
    let mask = PLACES as u32 - 1;
    let part = |n: u32| hash >> (n * BITS) & mask;
    let last = part(0) ^ part(1) ^ part(2) ^ (hash >> (3 * BITS));
    let all = [part(0), part(1), part(2), last];
    let mut places = [0; ARRAYS];
    for (n, place) in places.iter_mut().enumerate() {
        *place = n * PLACES + all[n] as usize;
    }
    places
}

impl Discipline for Hhf {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        _filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        let at = self.classify(cx, &pkt);
        let len = cx.pool.meta(&pkt).len;
        self.queues[at].queue.push_back(cx.pool, pkt);
        if !self.queues[at].link.is_linked() {
            self.queues[at].deficit = self.turn(at);
            let list = if at == HEAVY { &mut self.old } else { &mut self.new };
            list.push(&mut self.queues, at as u32);
        }
        if own.qlen < self.limit {
            return Enqueue::Queued;
        }
        self.stats.drop_overlimit += 1;
        self.drop_oldest(cx, own, at, len)
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, _own: QdiscState) -> Dequeue {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let Some(at) = list.first() else { return Dequeue::Empty };
            let queue = &mut self.queues[at as usize];
            if queue.deficit <= 0 {
                list.remove(&mut self.queues, at);
                self.old.push(&mut self.queues, at);
                let turn = self.turn(at as usize);
                self.queues[at as usize].deficit += turn;
                continue;
            }
            if let Some(pkt) = queue.queue.pop_front(cx.pool) {
                queue.deficit -= cx.pool.meta(&pkt).len as i32;
                return Dequeue::Packet(pkt);
            }
            list.remove(&mut self.queues, at);
            if from_new && !self.old.is_empty() {
                self.old.push(&mut self.queues, at);
            }
        }
    }

    fn change(
        &mut self,
        _cx: &mut Context<'_>,
        _own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        match params {
            Some(QdiscParams::Hhf(params)) => self.set(params),
            _ => Err(TcError::bare(Errno::Inval)),
        }
    }

    fn trim(&mut self, cx: &mut Context<'_>, own: QdiscState, peeked: &mut Option<Pkt>) -> Trimmed {
        if own.qlen <= self.limit {
            return Trimmed::Nothing;
        }
        if let Some(pkt) = peeked.take() {
            return Trimmed::Sent(pkt);
        }
        match self.dequeue(cx, own) {
            Dequeue::Packet(pkt) => Trimmed::Sent(pkt),
            _ => Trimmed::Nothing,
        }
    }

    fn purge(&mut self, cx: &mut Context<'_>, own: QdiscState) {
        while let Dequeue::Packet(pkt) = self.dequeue(cx, own) {
            cx.next_purge_group();
            cx.purge(own.handle, pkt);
        }
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::Hhf(HhfParams {
            limit: Some(self.limit),
            quantum: Some(self.quantum),
            hh_limit: Some(self.hh_limit),
            reset_timeout_us: Some(self.jiffies.micros(self.reset_timeout)),
            admit_bytes: Some(self.admit_bytes),
            evict_timeout_us: Some(self.jiffies.micros(self.evict_timeout)),
            non_hh_weight: Some(self.light_weight),
        })
    }

    fn xstats(&mut self, _now: tidegate_packet::Time) -> Xstats {
        Xstats::Hhf(self.stats.clone())
    }
}

impl BuiltIn for Hhf {}
