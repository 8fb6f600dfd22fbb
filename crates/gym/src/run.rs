//! A run: the network and the controller, step by step.

use crate::case::{GymCase, GymFaults};
use crate::network::{GymNetwork, START, build};
use crate::score::{self, GymScore};
use crate::seen::Seen;
use serde::Serialize;
use std::fmt;
use tidegate_control::{ControlEvent, PerDirection, RateController, RateDecision, RateDirection};
use tidegate_packet::{Nanos, Seeded, Time};

/// Between two looks at the network: a program that waits for packets runs within that time.
const STEP: Nanos = Nanos::millis(5);
/// Between two readings of the counters.
const COUNTERS: Nanos = Nanos::millis(50);
/// A yardstick hears what the line carries during this time, from now on.
const AHEAD: Nanos = Nanos::millis(100);
/// Between two points of a record.
const POINT: Nanos = Nanos::millis(100);
/// How often a program that pauses does.
const PAUSED_EVERY: Nanos = Nanos::secs(5);
/// How long after the window replies are waited for.
const GRACE: Nanos = Nanos::secs(2);
/// Decisions of one run that are carried out: a controller that wants more is broken.
const MAX_CHANGES: u64 = 100_000;

/// Why a run came to no score.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GymError {
    /// A command for the shaper was refused.
    Refused(String),
    /// The controller set more rates than a run has time for.
    TooManyChanges,
}

impl fmt::Display for GymError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GymError::Refused(why) => write!(f, "the shaper refused a rate: {why}"),
            GymError::TooManyChanges => {
                write!(f, "the controller set more than {MAX_CHANGES} rates in one run: it never rests")
            }
        }
    }
}

impl std::error::Error for GymError {}

/// A decision that was carried out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MadeDecision {
    /// Seconds since the run began.
    pub at: f64,
    /// `upload` or `download`.
    pub direction: &'static str,
    /// The rate, bit/s.
    pub rate: u64,
    /// Why: the id of [`tidegate_control::ControlReason`], and its words.
    pub reason: &'static str,
    /// The same for people.
    pub words: &'static str,
    /// The delay that it was decided by, ms.
    pub delay_ms: Option<f64>,
}

/// Time series of a run, each 100 ms from its begin.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GymRecord {
    /// Seconds between two points.
    pub step: f64,
    /// Seconds that are not measured, at first.
    pub warm_up: f64,
    /// What the line could carry, bit/s, up and down.
    pub capacity: [Vec<f64>; 2],
    /// The rate in force.
    pub rate: [Vec<f64>; 2],
    /// What the line carried.
    pub carried: [Vec<f64>; 2],
    /// The worst delay of the call's packets sent in that time, ms; 2,000: lost, or later.
    pub call_ms: [Vec<f64>; 2],
    /// Every decision.
    pub decisions: Vec<MadeDecision>,
}

/// A run.
#[derive(Clone, Debug, PartialEq)]
pub struct GymRun {
    /// Its score.
    pub score: GymScore,
    /// Its record, if one was wanted.
    pub record: Option<GymRecord>,
}

/// Plays a case with a controller.
///
/// # Errors
/// The shaper refuses a rate, or the controller never rests.
pub fn run_case(
    case: &GymCase,
    controller: &mut dyn RateController,
    records: bool,
) -> Result<GymRun, GymError> {
    let mut first = Vec::new();
    controller.on_event(START, &ControlEvent::Start, &mut first);
    let base = case.line.limits().base;
    let begin = PerDirection::of(|direction| {
        let set = first.iter().rev().find(|decision| decision.direction == direction);
        set.map_or(base[direction], |decision| decision.bits_per_second.max(1))
    });
    let network = build(case, begin).map_err(GymError::Refused)?;
    let mut running = Running::new(case, network, begin, records);
    for decision in &first {
        running.note(START, decision);
    }
    running.play(controller)?;
    Ok(running.finish())
}

/// The window in which loaded directions are counted.
struct Carried {
    from: PerDirection<u64>,
    to: PerDirection<u64>,
}

struct Running<'c> {
    case: &'c GymCase,
    network: GymNetwork,
    seen: Seen,
    /// Draws how late the controller is called.
    random: Seeded,
    rates: PerDirection<u64>,
    changes: u64,
    carried: Carried,
    record: Option<GymRecord>,
    /// Bytes carried until the last point of the record.
    pointed: PerDirection<u64>,
}

impl<'c> Running<'c> {
    fn new(case: &'c GymCase, network: GymNetwork, rates: PerDirection<u64>, records: bool) -> Running<'c> {
        let seen = Seen::new(&network);
        let record = records.then(|| GymRecord {
            step: POINT.as_secs_f64(),
            warm_up: case.warm_up.as_secs_f64(),
            ..GymRecord::default()
        });
        let none = Carried { from: PerDirection::default(), to: PerDirection::default() };
        let random = Seeded::new(case.seed).fork(2);
        Running {
            case,
            network,
            seen,
            random,
            rates,
            changes: 0,
            carried: none,
            record,
            pointed: PerDirection::default(),
        }
    }

    fn play(&mut self, controller: &mut dyn RateController) -> Result<(), GymError> {
        let case = self.case;
        let from = START + case.warm_up;
        let end = from + case.duration;
        let mut counters_due = START + COUNTERS;
        let mut decisions = Vec::new();
        let mut dead = case.faults.dead_reflectors == 0;
        // The controller runs again from then on.
        let mut awake = START;
        let mut now = START;
        while now < end {
            now = (now + STEP).min(end);
            self.network.net.run(now);
            if !dead && now >= START + case.faults.dead_from {
                dead = true;
                self.network.kill_reflectors(case.faults.dead_reflectors);
            }
            self.points(now);
            if now == from {
                self.carried.from = self.bytes();
            }
            self.seen.collect(case, &mut self.network, START);
            awake = awake.max(paused_until(&case.faults, now));
            if now < awake {
                continue;
            }
            for (at, event) in std::mem::take(&mut self.seen.events) {
                // What came while it did not run is heard late.
                let heard = if at + STEP < now { now } else { at.max(awake) };
                controller.on_event(heard, &event, &mut decisions);
            }
            if now >= counters_due {
                let counters = self.seen.counters(&mut self.network);
                controller.on_event(now, &ControlEvent::Counters(counters), &mut decisions);
                let late = Nanos((self.random.unit() * case.faults.late.0 as f64) as u64);
                counters_due = now + COUNTERS + late;
                if controller.knows_capacity() {
                    let capacity = self.capacity(now);
                    controller.on_event(now, &ControlEvent::Capacity(capacity), &mut decisions);
                }
            }
            if controller.due().is_some_and(|due| due <= now) {
                controller.on_event(now, &ControlEvent::Timer, &mut decisions);
            }
            for decision in decisions.drain(..) {
                self.carry_out(now, &decision)?;
            }
        }
        self.carried.to = self.bytes();
        self.network.net.run(end + GRACE);
        Ok(())
    }

    fn carry_out(&mut self, now: Time, decision: &RateDecision) -> Result<(), GymError> {
        self.changes += 1;
        if self.changes > MAX_CHANGES {
            return Err(GymError::TooManyChanges);
        }
        let (direction, rate) = (decision.direction, decision.bits_per_second.max(1));
        self.network.set_rate(self.case, direction, rate).map_err(GymError::Refused)?;
        self.rates[direction] = rate;
        self.note(now, decision);
        Ok(())
    }

    fn note(&mut self, now: Time, decision: &RateDecision) {
        let Some(record) = &mut self.record else { return };
        record.decisions.push(MadeDecision {
            at: now.since(START).as_secs_f64(),
            direction: decision.direction.word(),
            rate: decision.bits_per_second,
            reason: decision.reason.id(),
            words: decision.reason.words(),
            delay_ms: decision.delay.map(|delay| delay.0 as f64 / 1e6),
        });
    }

    /// What the line could carry from now on, for a while: the upstream shaper's share of it, if there is
    /// one.
    fn capacity(&self, now: Time) -> PerDirection<u64> {
        PerDirection::of(|direction| (self.could_carry(direction, now, now + AHEAD) * 8.0 / 0.1) as u64)
    }

    /// Bytes that the line could carry between two times.
    fn could_carry(&self, direction: RateDirection, from: Time, to: Time) -> f64 {
        let began = self.network.began;
        let bytes = self.case.line.traces[direction].carries(from.since(began), to.since(began)).unwrap_or(0);
        let most = self.case.faults.upstream_share.map_or(f64::INFINITY, |share| {
            share * self.case.line.means()[direction] as f64 / 8.0 * to.since(from).as_secs_f64()
        });
        (bytes as f64).min(most)
    }

    /// Bytes that the line has begun to send so far.
    fn bytes(&mut self) -> PerDirection<u64> {
        PerDirection::of(|direction| {
            let link = self.network.line[direction];
            let waits = self.network.net.link_backlog(link).1;
            self.network.net.link_stats(link).sent_bytes.saturating_sub(waits)
        })
    }

    fn points(&mut self, now: Time) {
        if self.record.is_none() || !now.since(START).0.is_multiple_of(POINT.0) {
            return;
        }
        let (bytes, before) = (self.bytes(), Time(now.0 - POINT.0));
        let capacity = PerDirection::of(|direction| self.could_carry(direction, before, now));
        let (rates, pointed) = (self.rates, std::mem::replace(&mut self.pointed, bytes));
        let Some(record) = &mut self.record else { return };
        let bits = |bytes: f64| bytes * 8.0 / POINT.as_secs_f64();
        for (at, direction) in RateDirection::BOTH.into_iter().enumerate() {
            record.capacity[at].push(bits(capacity[direction]));
            record.rate[at].push(rates[direction] as f64);
            record.carried[at].push(bits((bytes[direction] - pointed[direction]) as f64));
        }
    }

    fn finish(mut self) -> GymRun {
        let from = START + self.case.warm_up;
        let to = from + self.case.duration;
        let mut score = GymScore { changes: self.changes, ..GymScore::default() };
        for (at, direction) in RateDirection::BOTH.into_iter().enumerate() {
            let packets = self.network.net.source_stats(self.network.call[direction]).packets;
            let ([p50, p95, p99], lost) = score::call(&packets, (from, to));
            score.call_p50_ms = score.call_p50_ms.max(p50);
            score.call_p95_ms = score.call_p95_ms.max(p95);
            score.call_p99_ms = score.call_p99_ms.max(p99);
            score.call_lost = score.call_lost.max(lost);
            if let Some(record) = &mut self.record {
                let steps = record.rate[at].len();
                let mut worst = vec![0.0_f64; steps];
                for packet in &packets {
                    let took = packet.took.unwrap_or(score::USELESS).min(score::USELESS).0 as f64 / 1e6;
                    if let Some(worst) = worst.get_mut((packet.sent.since(START).0 / POINT.0) as usize) {
                        *worst = worst.max(took);
                    }
                }
                record.call_ms[at] = worst;
            }
        }
        let mut probes: Vec<f64> = self
            .seen
            .replies
            .iter()
            .filter(|(at, _)| *at >= from && *at < to)
            .map(|(_, rtt)| rtt.0 as f64 / 1e6)
            .collect();
        probes.sort_by(f64::total_cmp);
        score.probe_p95_ms = score::percentile(&probes, 95.0);
        let fills = self.case.load.fills();
        let loaded: Vec<f64> = RateDirection::BOTH
            .into_iter()
            .filter(|direction| fills[*direction])
            .map(|direction| {
                let carried = self.carried.to[direction].saturating_sub(self.carried.from[direction]);
                carried as f64 / self.could_carry(direction, from, to).max(1.0)
            })
            .collect();
        score.utilisation = loaded.iter().sum::<f64>() / loaded.len().max(1) as f64;
        GymRun { score, record: self.record }
    }
}

/// Until when a program that pauses does not run.
fn paused_until(faults: &GymFaults, now: Time) -> Time {
    let within = now.since(START).0 % PAUSED_EVERY.0;
    if faults.paused.0 > 0 && within < faults.paused.0 && now.since(START) >= PAUSED_EVERY {
        Time(now.0 - within + faults.paused.0)
    } else {
        Time(0)
    }
}
