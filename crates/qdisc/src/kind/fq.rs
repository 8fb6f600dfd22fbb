//! fq: fair queueing with pacing.
//!
//! Flows take turns as in fq_codel, those that just began first. A flow that may not send yet waits for its
//! time apart from the others. Packets without a socket, as all are here, are distinguished by some bits of
//! their hash; what paces them is the rate that no flow exceeds. (Sockets' own rates and time stamps of
//! packets are not in recordings, nor in this model.) A flow that has been silent may send its quantum at
//! once.
//!
//! Linux 6.1 lets packets of the control priority go ahead of all flows. Linux 7.2 has three bands of flows
//! instead, which take turns by weight, and lets packets that come while no flow has any skip the flows.
//! Recordings: `fq-…` of the archive `linux-7.2`.

use crate::algo::{IndexList, Linked, ListLink};
use crate::batch::BuiltIn;
use crate::context::{Context, DeviceInfo, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, QdiscState, Trimmed};
use crate::kind::purge_queue;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use tidegate_classify::FilterList;
use tidegate_packet::{Fifo, LinuxChange, LinuxVersion, Meta, Nanos, Pkt, Pool, Time};
use tidegate_policy::dump::{FqStats, Xstats};
use tidegate_policy::{Errno, FqBands, FqParams, QdiscParams, TcError};

const MIN_QUANTUM: u32 = 256;
const MAX_QUANTUM: u32 = 1 << 20;
const MOST_BUCKETS_LOG: u32 = 18;
const SECOND: u64 = 1_000_000_000;
/// The priority of packets that go ahead of all flows (TC_PRIO_CONTROL).
const CONTROL: u32 = 7;
const PRIORITIES: u32 = 15;

/// Packets that may wait ahead of the flows at once, where they may.
const FAST_PACKETS: u32 = 8;
const BANDS: usize = FqBands::COUNT;

/// What releases of Linux do otherwise.
#[derive(Clone, Copy, Debug)]
struct Release {
    /// Bands take turns ([`LinuxChange::FqBands`]).
    bands: bool,
    /// Packets may skip the flows ([`LinuxChange::FqFastPath`]).
    skips: bool,
    /// A flow is inactive once it has no packets, and takes one more turn ([`LinuxChange::FqInactive`]).
    empties: bool,
    /// Flows served in time count in the mean of how late they are ([`LinuxChange::FqLatency`]).
    counts_punctual: bool,
    /// Quanta are brought within their bounds ([`LinuxChange::FqQuantum`]).
    clamps: bool,
}

impl Release {
    fn of(linux: LinuxVersion) -> Release {
        Release {
            bands: linux.has(LinuxChange::FqBands),
            skips: linux.has(LinuxChange::FqFastPath),
            empties: linux.has(LinuxChange::FqInactive),
            counts_punctual: !linux.has(LinuxChange::FqLatency),
            clamps: linux.has(LinuxChange::FqQuantum),
        }
    }
}

/// The flows of a band that have packets, or had some.
#[derive(Default)]
struct Band {
    new: IndexList,
    old: IndexList,
    /// Bytes that it may send before the next band's turn, and what that is at most.
    credit: i32,
    weight: i32,
    /// Packets of its priorities that wait in flows.
    packets: u32,
    drops: u64,
}

impl Band {
    fn has_flows(&self) -> bool {
        !self.new.is_empty() || !self.old.is_empty()
    }
}

pub(crate) struct Fq {
    release: Release,
    limit: u32,
    flow_limit: u32,
    buckets_log: u32,
    orphan_mask: u32,
    pacing: bool,
    quantum: u32,
    initial_quantum: u32,
    /// Bytes per second.
    max_rate: Option<u32>,
    low_rate_threshold: u32,
    /// Jiffies.
    refill_delay: u32,
    ce_threshold_us: u32,
    timer_slack_ns: u32,
    horizon_us: u32,
    horizon_drop: bool,
    device: DeviceInfo,
    /// The place of each flow, in the order in which the kernel would walk over them.
    places: BTreeMap<ParentQdisc, u32>,
    flows: Vec<Flow>,
    /// Where the release has no bands, all is in the first, whose turn it always is.
    bands: [Band; BANDS],
    priomap: [u8; 16],
    /// The band whose turn it is.
    turn: usize,
    /// Flows that wait for their time: when, in order of arrival, which.
    delayed: BTreeSet<(u64, u64, u32)>,
    delays: u64,
    /// When the first of them may send; `u64::MAX`: none waits.
    next_delayed: u64,
    internal: Fifo,
    inactive: u32,
    stats: FqStats,
}

/// A flow's bucket, and its place there: the kernel sorts by an address made of the hash, the greatest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ParentQdisc {
    bucket: u32,
    from_last: u32,
}

#[derive(Default)]
struct Flow {
    link: ListLink,
    queue: Fifo,
    credit: i32,
    /// The band of the last packet that it got.
    band: u8,
    /// When it last left the bands, jiffies.
    age: i64,
    next_packet: u64,
    delayed: bool,
}

impl Linked for Flow {
    fn link(&mut self) -> &mut ListLink {
        &mut self.link
    }
}

impl Fq {
    pub(crate) fn new(cx: &Context<'_>, params: Option<&FqParams>) -> Result<Fq, TcError> {
        let device = cx.device;
        let release = Release::of(device.switches.linux);
        let FqBands { priomap, weights } = FqBands::default();
        let mut fq = Fq {
            release,
            limit: 10_000,
            flow_limit: 100,
            buckets_log: 10,
            orphan_mask: 1023,
            pacing: true,
            quantum: 2 * device.max_frame,
            initial_quantum: 10 * device.max_frame,
            max_rate: None,
            low_rate_threshold: 550_000 / 8,
            refill_delay: device.jiffies.of_micros(40_000),
            ce_threshold_us: u32::MAX,
            timer_slack_ns: 10_000,
            horizon_us: 10_000_000,
            horizon_drop: true,
            device,
            places: BTreeMap::new(),
            flows: Vec::new(),
            bands: weights.map(|weight| Band { weight, ..Band::default() }),
            priomap: if release.bands { priomap } else { [0; 16] },
            turn: 0,
            delayed: BTreeSet::new(),
            delays: 0,
            next_delayed: u64::MAX,
            internal: Fifo::new(),
            inactive: 0,
            stats: FqStats::default(),
        };
        if let Some(params) = params {
            fq.set(params)?;
        }
        for band in &mut fq.bands {
            band.credit = band.weight;
        }
        Ok(fq)
    }

    fn set(&mut self, params: &FqParams) -> Result<(), TcError> {
        let most = if self.release.clamps { MAX_QUANTUM } else { i32::MAX as u32 };
        if params.initial_quantum.is_some_and(|bytes| bytes > most) {
            // Refused before anything is set: it is beyond the attribute's range.
            return Err(TcError::bare(Errno::Range));
        }
        let mut refused = None;
        if let Some(log) = params.buckets_log {
            if (1..=MOST_BUCKETS_LOG).contains(&log) {
                self.resize(log);
            } else {
                refused = Some(TcError::bare(Errno::Inval));
            }
        }
        let keep = |value: Option<u32>, place: &mut u32| *place = value.unwrap_or(*place);
        keep(params.limit, &mut self.limit);
        keep(params.flow_limit, &mut self.flow_limit);
        match params.quantum {
            Some(bytes) if self.release.clamps => self.quantum = bytes.clamp(MIN_QUANTUM, MAX_QUANTUM),
            Some(bytes) if bytes == 0 || bytes > MAX_QUANTUM => {
                refused = Some(TcError::new(Errno::Inval, "sch_fq: invalid quantum"));
            }
            quantum => keep(quantum, &mut self.quantum),
        }
        keep(params.initial_quantum, &mut self.initial_quantum);
        if let Some(rate) = params.max_rate {
            self.max_rate = (rate != u32::MAX).then_some(rate);
        }
        keep(params.low_rate_threshold, &mut self.low_rate_threshold);
        self.pacing = params.pacing.unwrap_or(self.pacing);
        keep(params.refill_delay_us.map(|us| self.device.jiffies.of_micros(us)), &mut self.refill_delay);
        keep(params.orphan_mask, &mut self.orphan_mask);
        keep(params.ce_threshold_us, &mut self.ce_threshold_us);
        keep(params.timer_slack_ns, &mut self.timer_slack_ns);
        keep(params.horizon_us, &mut self.horizon_us);
        self.horizon_drop = params.horizon_drop.unwrap_or(self.horizon_drop);
        if self.release.bands {
            let is_band = |band: &u8| usize::from(*band) < BANDS;
            let is_weight = |weight: &i32| *weight >= FqBands::LEAST_WEIGHT;
            if params.priomap.is_some_and(|map| !map.iter().all(is_band))
                || params.weights.is_some_and(|weights| !weights.iter().all(is_weight))
            {
                // tc lets neither through.
                return Err(TcError::bare(Errno::Inval));
            }
            self.priomap = params.priomap.unwrap_or(self.priomap);
            for (band, weight) in self.bands.iter_mut().zip(params.weights.into_iter().flatten()) {
                band.weight = weight;
            }
            if params.offload_horizon_us.is_some_and(|us| us > 0) {
                // None of the devices sends ahead of time.
                refused = Some(TcError::new(Errno::Inval, "sch_fq: invalid offload_horizon"));
            }
        }
        refused.map_or(Ok(()), Err)
    }

    fn place(&self, hash: u32) -> ParentQdisc {
        // The kernel's multiplicative hash of an address.
        let address = u64::from(hash) << 1 | 1;
        let bucket = address.wrapping_mul(0x61c8_8646_80b5_83eb) >> (64 - self.buckets_log);
        ParentQdisc { bucket: bucket as u32, from_last: u32::MAX - hash }
    }

    fn resize(&mut self, log: u32) {
        self.buckets_log = log;
        let flows = core::mem::take(&mut self.places);
        for (place, flow) in flows {
            let moved = self.place(u32::MAX - place.from_last);
            self.places.insert(moved, flow);
        }
    }

    /// The flow of a packet, begun if it was never seen.
    fn flow_of(&mut self, now: Time, pool: &mut Pool, pkt: &Pkt) -> u32 {
        let place = self.place(pool.hash(pkt) & self.orphan_mask);
        if let Some(at) = self.places.get(&place) {
            return *at;
        }
        let at = self.flows.len() as u32;
        let age = self.device.jiffies.at(now);
        self.flows.push(Flow { credit: self.initial_quantum as i32, age, ..Flow::default() });
        self.places.insert(place, at);
        self.inactive += 1;
        at
    }

    /// The flow leaves the bands.
    fn detach(&mut self, now: Time, at: u32) {
        // The kernel keeps the lowest bit set, which tells the time from a pointer.
        self.flows[at as usize].age = self.device.jiffies.at(now) | 1;
        self.inactive += u32::from(!self.release.empties);
    }

    /// Appends a flow to the old ones of its band.
    fn push_old(&mut self, at: u32) {
        let band = usize::from(self.flows[at as usize].band);
        self.bands[band].old.push(&mut self.flows, at);
    }

    /// May a packet skip the flows? None of them has packets then that may leave, and few others skipped
    /// them.
    fn skips(&self, own: QdiscState) -> bool {
        let eligible = || self.flows.len() as u32 - self.inactive - self.stats.throttled;
        self.release.skips
            && self.max_rate.is_none()
            && (own.qlen == 0 || eligible() == 0 && self.internal.len() < FAST_PACKETS)
    }

    /// The band to serve, if any has flows. A band whose turn comes gets its weight, but saves none up.
    #[inline]
    fn band_to_serve(&mut self) -> Option<usize> {
        if !self.release.bands {
            return self.bands[0].has_flows().then_some(0);
        }
        let mut empty = 0;
        loop {
            let band = &self.bands[self.turn];
            if !band.has_flows() {
                empty += 1;
                if empty > BANDS {
                    return None;
                }
            } else if band.credit > 0 {
                return Some(self.turn);
            } else {
                empty = 0;
            }
            self.turn = (self.turn + 1) % BANDS;
            let next = &mut self.bands[self.turn];
            if next.has_flows() {
                next.credit = next.credit.saturating_add(next.weight).min(next.weight);
            }
        }
    }

    /// The flow waits for its time.
    fn delay(&mut self, at: u32) {
        let flow = &mut self.flows[at as usize];
        flow.delayed = true;
        self.delays += 1;
        self.delayed.insert((flow.next_packet, self.delays, at));
        self.stats.throttled += 1;
        self.stats.throttled_times += 1;
        self.next_delayed = self.next_delayed.min(flow.next_packet);
    }

    /// Flows whose time has come are among the others again.
    fn release_due(&mut self, now: u64) {
        if self.next_delayed > now {
            return;
        }
        // How late this is, averaged over eight times.
        let late = now - self.next_delayed;
        if late > 0 || self.release.counts_punctual {
            self.stats.latency_ns = self.stats.latency_ns - (self.stats.latency_ns >> 3) + (late >> 3);
        }
        self.next_delayed = u64::MAX;
        while let Some(&(time, order, at)) = self.delayed.first() {
            if time > now {
                self.next_delayed = time;
                return;
            }
            self.delayed.remove(&(time, order, at));
            self.flows[at as usize].delayed = false;
            self.stats.throttled -= 1;
            self.push_old(at);
        }
    }

    /// A packet of `len` bytes was sent: when may the flow send the next?
    fn pace(&mut self, now: u64, at: u32, len: u32) {
        if !self.pacing {
            return;
        }
        let flow = &mut self.flows[at as usize];
        let mut bytes = u64::from(len);
        if self.max_rate.is_some_and(|rate| rate <= self.low_rate_threshold) {
            flow.credit = 0;
        } else {
            bytes = bytes.max(u64::from(self.quantum));
            if flow.credit > 0 {
                return;
            }
        }
        let Some(rate) = self.max_rate else { return };
        let mut wait = bytes * SECOND;
        if rate > 0 {
            wait /= u64::from(rate);
        }
        if wait > SECOND {
            wait = SECOND;
            self.stats.too_long += 1;
        }
        if flow.next_packet > 0 {
            wait -= (wait / 2).min(now.wrapping_sub(flow.next_packet));
        }
        flow.next_packet = now + wait;
    }

    /// A band as listings have it: none where the release has no bands.
    fn shown(&self, band: usize) -> Option<&Band> {
        self.bands.get(band).filter(|_| self.release.bands)
    }

    fn is_late(&self, now: u64, due: u64) -> bool {
        let accepted = u64::from(self.ce_threshold_us) * 1000;
        (now.wrapping_sub(due).wrapping_sub(accepted) as i64) > 0
    }
}

impl Discipline for Fq {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        _filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        let meta = cx.pool.meta_mut(&pkt);
        let band = usize::from(self.priomap[(meta.priority & PRIORITIES) as usize]);
        let waiting = if self.release.bands { self.bands[band].packets } else { own.qlen };
        if waiting >= self.limit {
            self.bands[band].drops += 1;
            cx.drop(own.handle, pkt, DropReason::Full);
            return Enqueue::Dropped;
        }
        meta.scratch.0 = cx.now.0;
        if !self.release.bands && meta.priority & PRIORITIES == CONTROL {
            self.stats.highprio += 1;
            self.internal.push_back(cx.pool, pkt);
            return Enqueue::Queued;
        }
        if self.skips(own) {
            self.stats.fastpath += 1;
            self.internal.push_back(cx.pool, pkt);
            return Enqueue::Queued;
        }
        // The words of `scratch` are taken by the time.
        meta.cost = band as u32;
        let at = self.flow_of(cx.now, cx.pool, &pkt);
        let flow = &mut self.flows[at as usize];
        if flow.queue.len() >= self.flow_limit {
            self.stats.flows_plimit += 1;
            cx.drop(own.handle, pkt, DropReason::Full);
            return Enqueue::Dropped;
        }
        let begins = !flow.link.is_linked() && !flow.delayed;
        let was_inactive = if self.release.empties { flow.queue.is_empty() } else { begins };
        self.inactive -= u32::from(was_inactive);
        if begins {
            if self.device.jiffies.at(cx.now) > flow.age + i64::from(self.refill_delay) {
                flow.credit = flow.credit.max(self.quantum as i32);
            }
            // In the band of its packets before: a flow that was never seen begins in the first.
            self.bands[usize::from(flow.band)].new.push(&mut self.flows, at);
        }
        let flow = &mut self.flows[at as usize];
        flow.band = band as u8;
        flow.queue.push_back(cx.pool, pkt);
        self.bands[band].packets += 1;
        Enqueue::Queued
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, own: QdiscState) -> Dequeue {
        if let Some(pkt) = self.internal.pop_front(cx.pool) {
            return Dequeue::Packet(pkt);
        }
        if own.qlen == 0 {
            return Dequeue::Empty;
        }
        let now = cx.now.0;
        self.release_due(now);
        loop {
            let serving = self.band_to_serve();
            let band = &mut self.bands[serving.unwrap_or(0)];
            let from_new = !band.new.is_empty();
            let list = if from_new { &mut band.new } else { &mut band.old };
            let Some(at) = list.first() else {
                if self.next_delayed != u64::MAX {
                    cx.wake(own, Time(self.next_delayed) + Nanos(u64::from(self.timer_slack_ns)));
                }
                return Dequeue::Throttled;
            };
            let flow = &mut self.flows[at as usize];
            if flow.credit <= 0 {
                flow.credit += self.quantum as i32;
                list.remove(&mut self.flows, at);
                self.push_old(at);
                continue;
            }
            let Some(stamp) = flow.queue.front(cx.pool).map(|meta| meta.scratch.0) else {
                list.remove(&mut self.flows, at);
                if from_new && (self.release.empties || !band.old.is_empty()) {
                    self.push_old(at);
                } else {
                    self.detach(cx.now, at);
                }
                continue;
            };
            let due = flow.next_packet.max(stamp);
            if now < due {
                flow.next_packet = due;
                list.remove(&mut self.flows, at);
                self.delay(at);
                continue;
            }
            let Some(pkt) = flow.queue.pop_front(cx.pool) else { continue };
            self.inactive += u32::from(self.release.empties && flow.queue.is_empty());
            let &Meta { len, cost, .. } = cx.pool.meta(&pkt);
            flow.credit -= len as i32;
            band.credit = band.credit.saturating_sub(len as i32);
            self.bands[cost as usize].packets -= 1;
            if self.is_late(now, due) {
                cx.pool.meta_mut(&pkt).set_ce();
                self.stats.ce_mark += 1;
            }
            self.pace(now, at, len);
            return Dequeue::Packet(pkt);
        }
    }

    fn change(
        &mut self,
        _cx: &mut Context<'_>,
        _own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        match params {
            Some(QdiscParams::Fq(params)) => self.set(params),
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
        purge_queue(cx, own.handle, &mut self.internal);
        let order: Vec<u32> = self.places.values().copied().collect();
        for at in order {
            purge_queue(cx, own.handle, &mut self.flows[at as usize].queue);
        }
        self.places.clear();
        self.flows.clear();
        for band in &mut self.bands {
            (band.new, band.old, band.packets) = (IndexList::default(), IndexList::default(), 0);
        }
        self.delayed.clear();
        // The moment of the next that waits is kept, as in Linux.
        (self.inactive, self.stats.throttled) = (0, 0);
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::Fq(FqParams {
            limit: Some(self.limit),
            flow_limit: Some(self.flow_limit),
            buckets_log: Some(self.buckets_log),
            orphan_mask: Some(self.orphan_mask),
            pacing: Some(self.pacing),
            quantum: Some(self.quantum),
            initial_quantum: Some(self.initial_quantum),
            max_rate: Some(self.max_rate.unwrap_or(u32::MAX)),
            low_rate_threshold: Some(self.low_rate_threshold),
            refill_delay_us: Some(self.device.jiffies.micros(self.refill_delay)),
            ce_threshold_us: Some(self.ce_threshold_us),
            timer_slack_ns: Some(self.timer_slack_ns),
            horizon_us: Some(self.horizon_us),
            horizon_drop: Some(self.horizon_drop),
            priomap: self.release.bands.then_some(self.priomap),
            weights: self.release.bands.then(|| core::array::from_fn(|at| self.bands[at].weight)),
            offload_horizon_us: self.release.bands.then_some(0),
        })
    }

    fn xstats(&mut self, now: Time) -> Xstats {
        Xstats::Fq(FqStats {
            flows: self.flows.len() as u32,
            inactive: self.inactive,
            next_packet_ns: self.next_delayed.wrapping_add(u64::from(self.timer_slack_ns)).wrapping_sub(now.0)
                as i64,
            band_packets: core::array::from_fn(|at| self.shown(at).map_or(0, |band| band.packets)),
            band_drops: core::array::from_fn(|at| self.shown(at).map_or(0, |band| band.drops)),
            ..self.stats.clone()
        })
    }
}

impl BuiltIn for Fq {}
