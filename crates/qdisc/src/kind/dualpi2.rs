//! dualpi2: two queues, one delay law (RFC 9332).
//!
//! Low-latency packets (by their ECN field) and classic ones wait apart. A proportional integral controller
//! keeps the classic queue's delay at its target by a base probability p: classic packets are dropped or
//! marked with p², low-latency ones marked with k·p, which balances a sender whose rate follows 1/√p with one
//! whose rate follows 1/p. The low-latency queue also marks whatever waited longer than a step, and is served
//! first, except for a share that is guaranteed to the classic queue.
//!
//! Linux has it since 6.17. Numbers that RFC 9332 leaves open, and what is listed, follow Linux 7.2, which
//! was asked.

use super::classful;
use super::purge_queue;
use crate::batch::BuiltIn;
use crate::classful::Classful;
use crate::classify::{ClassifyResult, Consumed, classify};
use crate::context::{Context, DeviceInfo, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, QdiscState, Trimmed};
use alloc::vec::Vec;
use tidegate_classify::FilterList;
use tidegate_packet::{Fifo, Handle, Nanos, Pkt, Pool, RandomSource, Time};
use tidegate_policy::dump::{ClassDump, DualPi2Stats, QueueStats, Xstats};
use tidegate_policy::{ClassParams, DualPi2Params, Errno, Kind, QdiscParams, StepThreshold, TcError};

/// The probability 1.
const CERTAIN: u64 = u32::MAX as u64;
const NANOS: u64 = 1_000_000_000;

/// What a packet is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    /// Dropped or marked by the square of the probability.
    Classic,
    /// Marked in proportion, and by the step.
    LowLatency,
    /// Queued with low-latency packets and never marked: a filter chose the class.
    Unmarked,
}

/// What happens to a packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DequeueVerdict {
    Passes,
    Drops,
}

/// The coupled law: one base probability p, of 2^32 - 1, that moves with the delay.
#[derive(Clone, Copy, Debug)]
struct Law {
    /// How much of the probability one tick of 64 ns is worth: of distance from the target, and of growth.
    alpha: u64,
    beta: u64,
    target: Nanos,
    coupling: u8,
    probability: u64,
    last_delay: Nanos,
}

impl Law {
    /// One step of the proportional integral law (RFC 9332, appendix A.1). The probability stays within
    /// `most`. Linux keeps 32 bits of a change: one of more than the whole probability wraps around.
    fn update(&mut self, delay: Nanos, most: u64) {
        let part = |gain: u64, from: Nanos| (delay.0 as i64 - from.0 as i64).wrapping_mul(gain as i64);
        let change = part(self.alpha, self.target).wrapping_add(part(self.beta, self.last_delay));
        let before = self.probability as u32;
        let size = (change.unsigned_abs() >> TICK) as u32;
        let after = match change > 0 {
            true => before.saturating_add(size),
            false => before.saturating_sub(size),
        };
        self.last_delay = delay;
        self.probability = u64::from(after).min(most);
    }

    /// k·p of 2^32 - 1.
    fn coupled(&self) -> u64 {
        self.probability * u64::from(self.coupling)
    }

    /// Marking all low-latency packets is not enough.
    fn overload(&self) -> bool {
        self.coupled() > CERTAIN
    }

    /// Is a classic packet hit? With p², by two draws.
    fn hits_classic(&self, random: &mut dyn RandomSource) -> bool {
        falls(random, self.probability) && falls(random, self.probability)
    }

    /// Is a low-latency packet hit? With k·p.
    fn hits_low(&self, random: &mut dyn RandomSource) -> bool {
        falls(random, self.coupled())
    }

    fn forget(&mut self) {
        self.probability = 0;
        self.last_delay = Nanos(0);
    }
}

/// Whether a draw falls below `probability`, of 2^32 - 1.
fn falls(random: &mut dyn RandomSource, probability: u64) -> bool {
    u64::from(random.u32()) < probability
}

/// Gains count in ticks of 2^6 ns.
const TICK: u32 = 6;

/// From 1/256 Hz to what a tick is worth.
fn gain(weight: u32) -> u64 {
    (u64::from(weight) << 30) / NANOS
}

/// And back, for dumps: what was cut off stays so.
fn weight(gain: u64) -> u32 {
    ((gain * NANOS) >> 30) as u32
}

pub(crate) struct DualPi2 {
    limit: u32,
    memory_limit: u32,
    law: Law,
    tupdate: Nanos,
    step: StepThreshold,
    min_qlen_step: u32,
    drop_on_overload: bool,
    drop_at_enqueue: bool,
    /// The share in per cent that is guaranteed to the classic queue: its weight in the scheduler; the rest
    /// is the low-latency queue's.
    classic_protection: u8,
    ecn_mask: u8,
    split_gso: bool,
    classic: Fifo,
    low: Fifo,
    /// Since when the first packet of each queue waits, as the law takes it: a packet that comes to a queue
    /// sets it where it is none, one that leaves it makes it that of the next. What a change of the limit
    /// drops leaves it as it was.
    classic_head: Option<Time>,
    low_head: Option<Time>,
    overlimits: u32,
    /// Above 0 it is the classic queue's turn.
    credit: i32,
    next_update: Time,
    memory: u64,
    max_frame: u32,
    stats: DualPi2Stats,
}

impl DualPi2 {
    pub(crate) fn new(cx: &Context<'_>, params: Option<&DualPi2Params>) -> Result<DualPi2, TcError> {
        let DeviceInfo { max_frame, .. } = cx.device;
        let mut dual = DualPi2 {
            limit: 10_000,
            memory_limit: memory_of(10_000, max_frame),
            law: Law {
                alpha: gain(41),
                beta: gain(819),
                target: Nanos::millis(15),
                coupling: 2,
                probability: 0,
                last_delay: Nanos(0),
            },
            tupdate: Nanos::millis(16),
            step: StepThreshold::Micros(1000),
            min_qlen_step: 0,
            drop_on_overload: true,
            drop_at_enqueue: false,
            classic_protection: 10,
            ecn_mask: 1,
            split_gso: true,
            classic: Fifo::new(),
            low: Fifo::new(),
            classic_head: None,
            low_head: None,
            overlimits: 0,
            credit: 0,
            next_update: cx.now,
            memory: 0,
            max_frame,
            stats: DualPi2Stats::default(),
        };
        if let Some(params) = params {
            dual.set(params)?;
        }
        dual.next_update = cx.now + dual.tupdate;
        dual.restart_credit();
        Ok(dual)
    }

    fn set(&mut self, params: &DualPi2Params) -> Result<(), TcError> {
        let zero = |value: Option<u32>| value == Some(0);
        let gains = [params.alpha, params.beta];
        let steep = gains.into_iter().flatten().any(|weight| weight > GREATEST_WEIGHT);
        if zero(params.limit) || zero(params.tupdate_us) || gains.into_iter().any(zero) || steep {
            return Err(TcError::new(Errno::Range, "integer out of range"));
        }
        if params.coupling == Some(0) || params.classic_protection.is_some_and(|share| share > 100) {
            return Err(TcError::new(Errno::Range, "integer out of range"));
        }
        if let Some(limit) = params.limit {
            self.limit = limit;
            self.memory_limit = memory_of(limit, self.max_frame);
        }
        self.memory_limit = params.memory_limit.unwrap_or(self.memory_limit);
        self.law.target = params.target_us.map_or(self.law.target, |us| Nanos::micros(us.into()));
        self.tupdate = params.tupdate_us.map_or(self.tupdate, in_32_bits);
        self.law.alpha = params.alpha.map_or(self.law.alpha, gain);
        self.law.beta = params.beta.map_or(self.law.beta, gain);
        self.step = params.step.unwrap_or(self.step);
        self.min_qlen_step = params.min_qlen_step.unwrap_or(self.min_qlen_step);
        self.law.coupling = params.coupling.unwrap_or(self.law.coupling);
        self.drop_on_overload = params.drop_on_overload.unwrap_or(self.drop_on_overload);
        self.drop_at_enqueue = params.drop_at_enqueue.unwrap_or(self.drop_at_enqueue);
        if let Some(share) = params.classic_protection {
            self.classic_protection = share;
            self.restart_credit();
        }
        self.ecn_mask = params.ecn_mask.unwrap_or(self.ecn_mask);
        self.split_gso = params.split_gso.unwrap_or(self.split_gso);
        Ok(())
    }

    /// Both queues empty: the low-latency queue begins.
    fn restart_credit(&mut self) {
        let share = i32::from(self.classic_protection);
        self.credit = self.max_frame as i32 * (share - (100 - share));
    }

    fn traffic(
        &self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        pkt: &Pkt,
    ) -> Result<Traffic, Consumed> {
        let meta = cx.pool.meta(pkt);
        if meta.ecn() & self.ecn_mask != 0 {
            return Ok(Traffic::LowLatency);
        }
        let of = |class: Handle| match class.minor() {
            1 => Traffic::LowLatency,
            2 => Traffic::Unmarked,
            _ => Traffic::Classic,
        };
        let priority = meta.priority_class();
        if priority.qdisc() == own.handle && priority.minor() <= 2 {
            return Ok(of(priority));
        }
        match classify(filters, cx, own.handle, pkt) {
            ClassifyResult::Nothing => Ok(Traffic::Classic),
            ClassifyResult::Class(class) => Ok(of(class)),
            ClassifyResult::Consumed(gone) => Err(gone),
        }
    }

    /// The coupled law. `backlog`: bytes that wait without the packet.
    fn decide(&mut self, cx: &mut Context<'_>, backlog: u64, traffic: Traffic, pkt: &Pkt) -> DequeueVerdict {
        if backlog < 2 * u64::from(cx.device.max_frame) || traffic == Traffic::Unmarked {
            return DequeueVerdict::Passes;
        }
        let overload = self.law.overload();
        if traffic == Traffic::Classic {
            let hit = self.law.hits_classic(cx.random.source);
            return if !hit || !overload && self.mark(cx.pool, pkt) {
                DequeueVerdict::Passes
            } else {
                DequeueVerdict::Drops
            };
        }
        if overload {
            if self.drop_on_overload && self.law.hits_classic(cx.random.source) {
                return DequeueVerdict::Drops;
            }
        } else if !self.law.hits_low(cx.random.source) {
            return DequeueVerdict::Passes;
        }
        if self.mark(cx.pool, pkt) { DequeueVerdict::Passes } else { DequeueVerdict::Drops }
    }

    /// Marks the packet if it can carry a mark.
    fn mark(&mut self, pool: &mut Pool, pkt: &Pkt) -> bool {
        let marked = pool.meta_mut(pkt).set_ce();
        self.stats.ecn_mark += u32::from(marked);
        marked
    }

    /// The step: has a low-latency packet waited for too long? Then it is marked, or dropped where it cannot
    /// carry a mark.
    fn step(&mut self, cx: &mut Context<'_>, pkt: &Pkt) -> DequeueVerdict {
        let waiting = self.low.len();
        let over = match self.step {
            StepThreshold::Micros(us) => Note(cx.pool.meta(pkt).scratch.0).waited(cx.now) > in_32_bits(us),
            StepThreshold::Packets(packets) => waiting > packets,
        };
        if !over {
            return DequeueVerdict::Passes;
        }
        if cx.pool.meta_mut(pkt).set_ce() {
            self.stats.ecn_mark += 1;
            self.stats.step_marks += 1;
            return DequeueVerdict::Passes;
        }
        DequeueVerdict::Drops
    }

    /// The next packet by the weighted turns, whether it waited in the low-latency queue, and what it changes
    /// of the turns if it leaves.
    fn next(&mut self, pool: &mut Pool) -> Option<(Pkt, bool, i32)> {
        let low_turn = self.classic.is_empty() || self.credit <= 0;
        let from_low = !self.low.is_empty() && low_turn;
        let (queue, head) = match from_low {
            true => (&mut self.low, &mut self.low_head),
            false => (&mut self.classic, &mut self.classic_head),
        };
        let Some(pkt) = queue.pop_front(pool) else {
            self.restart_credit();
            return None;
        };
        *head = queue.front(pool).map(|meta| Note(meta.scratch.0).came());
        let meta = pool.meta(&pkt);
        let (len, share) = (meta.len as i32, i32::from(self.classic_protection));
        self.memory -= u64::from(meta.truesize);
        let change = match from_low {
            true if !self.classic.is_empty() => share * len,
            false if !self.low.is_empty() => -(100 - share) * len,
            _ => 0,
        };
        Some((pkt, from_low, change))
    }

    /// How long the packet at the head of each queue had waited at `now`: classic, low-latency.
    fn delays(&self, now: Time) -> (Nanos, Nanos) {
        let waited = |head: Option<Time>| head.map_or(Nanos(0), |came| now.since(came));
        (waited(self.classic_head), waited(self.low_head))
    }

    /// The highest probability: without drops the marks must keep a meaning, so k·p stays at 1.
    fn most(&self) -> u64 {
        if self.drop_on_overload { CERTAIN } else { CERTAIN / u64::from(self.law.coupling) }
    }

    /// The updates that were due up to `now`. One that is due when a packet leaves comes after it, and before
    /// whatever else happens then.
    fn bring_up(&mut self, now: Time) {
        while self.next_update <= now {
            let at = self.next_update;
            let (classic, low) = self.delays(at);
            self.law.update(classic.max(low), self.most());
            self.next_update = at + self.tupdate;
            if self.law.probability == 0
                && self.law.last_delay == Nanos(0)
                && self.classic_head.is_none()
                && self.low_head.is_none()
            {
                // Nothing changes until something waits.
                let rounds = now.since(at).0 / self.tupdate.0;
                self.next_update = at + Nanos((rounds + 1) * self.tupdate.0);
            }
        }
    }
}

/// The largest weight that is taken.
const GREATEST_WEIGHT: u32 = u32::MAX >> 1;

/// A time that Linux keeps in 32 bits of nanoseconds, at most 4.29 s.
fn in_32_bits(us: u32) -> Nanos {
    Nanos(Nanos::micros(us.into()).0.min(u32::MAX.into()))
}

fn micros(span: Nanos) -> u32 {
    (span.0 / 1000) as u32
}

/// The memory that so many packets may use.
fn memory_of(limit: u32, max_frame: u32) -> u32 {
    limit.saturating_mul(2).saturating_mul(max_frame)
}

/// What is written down about a packet: when it came, and in the lowest bits whether it is never marked, and
/// whether the step may mark it.
#[derive(Clone, Copy)]
struct Note(u64);

impl Note {
    fn new(now: Time, traffic: Traffic, step: bool) -> Note {
        let unmarked = u64::from(traffic == Traffic::Unmarked);
        Note(now.0 << 2 | u64::from(step) << 1 | unmarked)
    }
    fn unmarked(self) -> bool {
        self.0 & 1 == 1
    }
    fn step(self) -> bool {
        self.0 & 2 == 2
    }
    fn came(self) -> Time {
        Time(self.0 >> 2)
    }
    fn waited(self, now: Time) -> Nanos {
        now.since(self.came())
    }
}

impl Discipline for DualPi2 {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        self.bring_up(cx.now);
        let traffic = match self.traffic(cx, own, filters, &pkt) {
            Ok(traffic) => traffic,
            Err(gone) => return gone.carry_out(cx, own.handle, pkt),
        };
        let memory = self.memory + u64::from(cx.pool.meta(&pkt).truesize);
        if own.qlen >= self.limit || memory > u64::from(self.memory_limit) {
            self.overlimits = self.overlimits.wrapping_add(1);
            cx.drop(own.handle, pkt, DropReason::Full);
            return Enqueue::Dropped;
        }
        if self.drop_at_enqueue && self.decide(cx, own.backlog, traffic, &pkt) == DequeueVerdict::Drops {
            cx.drop(own.handle, pkt, DropReason::Early);
            return Enqueue::Dropped;
        }
        self.memory = memory;
        self.stats.max_memory_used = self.stats.max_memory_used.max(memory as u32);
        self.stats.maxq = self.stats.maxq.max(own.qlen);
        // Whether enough wait for the step to mark is asked when a packet comes.
        let step = traffic == Traffic::LowLatency && self.low.len() >= self.min_qlen_step;
        cx.pool.meta_mut(&pkt).scratch.0 = Note::new(cx.now, traffic, step).0;
        if traffic == Traffic::Classic {
            self.stats.packets_in_c += 1;
            self.classic_head.get_or_insert(cx.now);
            self.classic.push_back(cx.pool, pkt);
        } else {
            self.stats.packets_in_l += 1;
            self.low_head.get_or_insert(cx.now);
            self.low.push_back(cx.pool, pkt);
        }
        Enqueue::Queued
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, own: QdiscState) -> Dequeue {
        self.bring_up(Time(cx.now.0.saturating_sub(1)));
        let mut backlog = own.backlog;
        while let Some((pkt, from_low, turn)) = self.next(cx.pool) {
            let meta = cx.pool.meta(&pkt);
            let note = Note(meta.scratch.0);
            backlog -= u64::from(meta.len);
            let traffic = match (from_low, note.unmarked()) {
                (false, _) => Traffic::Classic,
                (true, false) => Traffic::LowLatency,
                (true, true) => Traffic::Unmarked,
            };
            let mut verdict = DequeueVerdict::Passes;
            if !self.drop_at_enqueue {
                verdict = self.decide(cx, backlog, traffic, &pkt);
            }
            if verdict == DequeueVerdict::Passes && note.step() {
                verdict = self.step(cx, &pkt);
            }
            if verdict == DequeueVerdict::Passes {
                self.credit = self.credit.saturating_add(turn);
                return Dequeue::Packet(pkt);
            }
            cx.drop(own.handle, pkt, DropReason::Early);
        }
        Dequeue::Empty
    }

    fn change(
        &mut self,
        cx: &mut Context<'_>,
        _own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        let params = match params {
            Some(QdiscParams::DualPi2(params)) if *params != DualPi2Params::default() => params,
            Some(QdiscParams::DualPi2(_)) | None => {
                return Err(TcError::new(Errno::Inval, "sch_dualpi2: Dualpi2 options are required"));
            }
            Some(_) => return Err(TcError::bare(Errno::Inval)),
        };
        self.bring_up(cx.now);
        self.set(params)
    }

    fn trim(&mut self, cx: &mut Context<'_>, own: QdiscState, peeked: &mut Option<Pkt>) -> Trimmed {
        if !(own.qlen > self.limit || self.memory > u64::from(self.memory_limit)) {
            return Trimmed::Nothing;
        }
        let held = peeked.take();
        let Some(pkt) =
            held.or_else(|| self.classic.pop_front(cx.pool)).or_else(|| self.low.pop_front(cx.pool))
        else {
            return Trimmed::Nothing;
        };
        self.memory = self.memory.saturating_sub(u64::from(cx.pool.meta(&pkt).truesize));
        Trimmed::Dropped(pkt)
    }

    fn purge(&mut self, cx: &mut Context<'_>, own: QdiscState) {
        purge_queue(cx, own.handle, &mut self.classic);
        purge_queue(cx, own.handle, &mut self.low);
        self.memory = 0;
        (self.classic_head, self.low_head) = (None, None);
        self.law.forget();
        self.next_update = cx.now + self.tupdate;
        self.restart_credit();
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::DualPi2(DualPi2Params {
            limit: Some(self.limit),
            memory_limit: Some(self.memory_limit),
            target_us: Some((self.law.target.0 / 1000) as u32),
            tupdate_us: Some(micros(self.tupdate)),
            alpha: Some(weight(self.law.alpha)),
            beta: Some(weight(self.law.beta)),
            step: Some(match self.step {
                StepThreshold::Micros(us) => StepThreshold::Micros(micros(in_32_bits(us))),
                packets => packets,
            }),
            min_qlen_step: Some(self.min_qlen_step),
            coupling: Some(self.law.coupling),
            drop_on_overload: Some(self.drop_on_overload),
            drop_at_enqueue: Some(self.drop_at_enqueue),
            classic_protection: Some(self.classic_protection),
            ecn_mask: Some(self.ecn_mask),
            split_gso: Some(self.split_gso),
        })
    }

    fn xstats(&mut self, now: Time) -> Xstats {
        self.bring_up(now);
        let (classic, low) = self.delays(now);
        Xstats::DualPi2(DualPi2Stats {
            delay_c_us: micros(classic),
            delay_l_us: micros(low),
            prob: self.law.probability as u32,
            credit: self.credit,
            memory_used: self.memory as u32,
            memory_limit: self.memory_limit,
            ..self.stats.clone()
        })
    }

    fn amend_stats(&self, stats: &mut QueueStats) {
        stats.overlimits = self.overlimits;
    }

    classful!();
}

impl Classful for DualPi2 {
    /// Both queues are listed as classes without a number.
    fn classes(&mut self, _now: Time, qdisc: Handle, out: &mut Vec<ClassDump>) {
        out.extend((0..2).map(|_| ClassDump {
            dev: Default::default(),
            kind: Kind::DualPi2,
            classid: qdisc,
            parent: qdisc,
            leaf: Handle::NONE,
            params: ClassParams::None,
            stats: None,
            xstats: Xstats::None,
        }));
    }
}

impl BuiltIn for DualPi2 {}

#[cfg(test)]
mod tests {
    use super::*;

    const LAW: Law = Law {
        alpha: 44,
        beta: 879,
        target: Nanos::millis(15),
        coupling: 2,
        probability: 0,
        last_delay: Nanos(0),
    };

    /// Draws that a test sets in advance.
    struct FixedDraws(Vec<u32>);

    impl RandomSource for FixedDraws {
        fn word(&mut self) -> u64 {
            self.u32().into()
        }
        fn u32(&mut self) -> u32 {
            self.0.remove(0)
        }
        fn u16(&mut self) -> u16 {
            self.u32() as u16
        }
        fn u64(&mut self) -> u64 {
            self.u32().into()
        }
        fn below(&mut self, _: u32) -> u32 {
            self.u32()
        }
    }

    /// V-D1. A draw is one of 2^32, of which p fall below p: classic packets are hit with p², low-latency
    /// ones with k·p, at most 1.
    #[test]
    fn v_d1_classic_packets_are_hit_by_the_square_and_others_in_proportion() {
        let law = Law { probability: 1_000_000, ..LAW };
        let classic = |random: [u32; 2]| law.hits_classic(&mut FixedDraws(random.into()));
        let below = [[999_999, 999_999], [1_000_000, 0], [999_999, 1_000_000]].map(classic);
        let low = [1_999_999, 2_000_000].map(|draw| law.hits_low(&mut FixedDraws([draw].into())));
        assert_eq!((below, low), ([true, false, false], [true, false]));
        let sure = Law { probability: CERTAIN / 2 + 1, ..LAW };
        assert!(!law.overload() && sure.overload() && sure.hits_low(&mut FixedDraws([u32::MAX].into())));
    }

    /// V-D1. The law as RFC 9332 writes it, with what 32 bits make of the weights 0.16 and 3.2 Hz.
    #[test]
    fn v_d1_the_probability_follows_the_law_of_the_rfc() {
        let (mut law, mut wanted, mut last) = (LAW, 0.0f64, 0.0);
        let hertz = |gain: u64| gain as f64 * 15_625_000.0 / CERTAIN as f64;
        for step in 0..200u64 {
            let delay = Nanos::micros((step * 7919) % 40_000);
            law.update(delay, CERTAIN);
            let seconds = delay.0 as f64 / 1e9;
            let change = hertz(LAW.alpha) * (seconds - 0.015) + hertz(LAW.beta) * (seconds - last);
            (wanted, last) = ((wanted + change).clamp(0.0, 1.0), seconds);
            let found = law.probability as f64 / CERTAIN as f64;
            assert!((found - wanted).abs() < 1e-4, "step {step}: {found} for {wanted}");
        }
        assert!(wanted > 0.01 && (hertz(44) - 0.16).abs() < 0.001 && (hertz(879) - 3.2).abs() < 0.01);
    }

    #[test]
    fn weights_come_back_as_linux_tells_them() {
        assert_eq!((weight(gain(41)), weight(gain(819))), (40, 818));
    }
}
