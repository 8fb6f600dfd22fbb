//! tidegate's own controller.
//!
//! Principles. A queue behind the shaper is measured by everything that passes it ([`crate::queue`]). While
//! there is one, what comes out of the line is its capacity; so the rate is set to that, less what drains the
//! queue within a given time (the control law of ABC: Goyal et al., NSDI 2020, with a capacity that is
//! measured instead of known). How the delay grows or shrinks counts too, as in PIE (RFC 8033, section 4.2).
//! A queue is drained further than to where it was noticed: else it never ends on a line that is just full.
//! Then the rate is as far below the capacity as that usually falls, returns to it, slower the nearer it is,
//! and rises beyond it, faster the longer no queue comes (as the window of CUBIC does, RFC 9438, here with a
//! square). Draining that does not shorten the delay shows that it is not the shaper's: the path became
//! longer. A line that carries nothing is waited for, and continues as before.

use crate::controller::RateLimits;
use crate::controller::{
    ControlEvent, ControlReason, Controlled, PerDirection, RateController, RateDecision, RateDirection,
    ShaperCounters,
};
use crate::queue::QueueEstimator;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use tidegate_packet::{Nanos, Time};

/// Bytes of a full frame.
const FRAME: u64 = 1514;
/// Readings of the counters that are kept.
const KEPT: usize = 24;
const SECOND: f64 = 1e9;
/// Readings over which a queue that is drained must become shorter; one that is short is drained slowly.
const WATCHED: [usize; 2] = [10, KEPT - 1];
/// That it does not shows something only while less than this share of the rate before is sent: a capacity
/// that was overrated explains less. And of a delay up to this, seconds: a longer one may be a full buffer,
/// which stays as long as it is. Chosen by the failure `base-moves` and the presets with the seeds 501 to
/// 508.
const MUCH_LESS: f64 = 0.6;
const LONGEST_STEP: f64 = 0.05;
/// In a silence the rate is this share of the one before: what is sent then waits.
const IN_SILENCE: f64 = 0.35;
/// After a silence the rate is this share of the one before, and stays so for a while.
const AFTER_SILENCE: f64 = 0.8;
const SETTLES: Nanos = Nanos::millis(170);
/// A path that seemed longer is checked after this, so often.
const CHECKED_AFTER: Nanos = Nanos::secs(2);
const CHECKS: u32 = 2;
/// Nothing is known of the line at first: the rate rises as it does so many seconds after a capacity that did
/// not come back.
const STARTS: f64 = 2.0;
/// Below this share of the base rate it rises by at least this share a second while there is no queue.
const LOW: f64 = 0.5;
const LEAST_GROWTH: f64 = 0.5;
/// So many times the mean jitter is no queue: of independent delays between 0 and J that is J. Of it this
/// share of the target, and of a frame's time at the base rate, are let be anyway. Chosen by trials on
/// jittery lines and on the presets with the seeds 501 to 524.
const JITTERS: f64 = 6.0;
const USUAL_TARGET: f64 = 0.5;
const USUAL_FRAME: f64 = 0.6;
/// The most that the rate stays below the capacity.
const MOST_MARGIN: f64 = 0.6;

/// Settings of tidegate's own controller; their defaults were found by `docs/gym.md#tuning`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnSettings {
    /// Between which rates it chooses.
    pub limits: RateLimits,
    /// The queueing delay behind the shaper that is let be, seconds, beside that of `frames`.
    pub target: f64,
    /// So many full frames may be under way in the line at once.
    pub frames: f64,
    /// A queue is drained until its delay is this share of what is let be.
    pub drained: f64,
    /// In how long a queue is to be drained, seconds.
    pub drain: f64,
    /// The least share of the capacity that is left while draining.
    pub floor: f64,
    /// By what share the rate stays below the capacity after a queue, on a steady line.
    pub margin: f64,
    /// The part of the usual fall of the capacity that is added to it.
    pub swing: f64,
    /// The weight of the last fall in the usual one.
    pub learns: f64,
    /// How long the rate takes back to the capacity that was found at a queue, seconds.
    pub returns: f64,
    /// By how much sooner where the capacity usually falls by much.
    pub hurry: f64,
    /// The most growth a second, as a share.
    pub fastest: f64,
    /// So far ahead the delay is taken to grow or shrink as it does, seconds.
    pub lead: f64,
    /// Over how long what the line carries is measured, seconds.
    pub measured: f64,
    /// How long the highest such measurement counts as the capacity, seconds.
    pub remembered: f64,
    /// Without any sign of life for so long the line is silent, seconds.
    pub silent: f64,
    /// So many times the mean jitter of probes is no queue.
    pub jitters: f64,
}

impl OwnSettings {
    /// The defaults, with these limits.
    #[must_use]
    pub fn new(limits: RateLimits) -> OwnSettings {
        OwnSettings {
            limits,
            target: 0.00442,
            frames: 0.819,
            drained: 0.284,
            drain: 0.113,
            floor: 0.258,
            margin: 0.0458,
            swing: 0.379,
            learns: 0.344,
            returns: 0.954,
            hurry: 9.58,
            fastest: 2.34,
            lead: 0.0313,
            measured: 0.1,
            remembered: 0.153,
            silent: 0.233,
            jitters: JITTERS,
        }
    }

    /// The aims that [`OwnSettings::aiming`] takes; 1 are the defaults.
    pub const AIMS: RangeInclusive<f64> = 0.1..=4.0;

    /// For less delay or more use of the line than the defaults: the rate takes longer back to the capacity,
    /// or less long. Below 1 the fall of the capacity counts for more, and less is put down to jitter; above
    /// 1 the rate stays less below it after a queue, and a longer queue is let be. An aim beyond
    /// [`OwnSettings::AIMS`] is taken as the nearest one within.
    #[must_use]
    pub fn aiming(self, aim: f64) -> OwnSettings {
        let aim = aim.clamp(*OwnSettings::AIMS.start(), *OwnSettings::AIMS.end());
        let (less, more) = (2.0 - aim.min(1.0), aim.max(1.0));
        OwnSettings {
            target: self.target * more,
            margin: self.margin / more,
            swing: self.swing * less / more,
            returns: self.returns / aim,
            jitters: self.jitters * aim.min(1.0),
            ..self
        }
    }

    /// The queueing delay that is let be at this rate, seconds.
    fn let_be(&self, rate: f64) -> f64 {
        self.target + self.frames * FRAME as f64 * 8.0 / rate.max(1.0)
    }
}

/// A reading of one direction.
#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Time,
    /// What the line carried since the reading before, bytes.
    carried: u64,
    /// What the shaper sent.
    sent: u64,
    /// Waits in the shaper.
    backlog: u64,
    /// The measured rate at this reading, bit/s.
    measured: f64,
    /// The queue, seconds, and the share of the capacity that was set.
    queue: f64,
    share: f64,
}

#[derive(Clone, Debug)]
struct Side {
    rate: Controlled,
    base: f64,
    readings: VecDeque<Reading>,
    /// Since when the queue is being drained.
    draining: Option<Time>,
    /// Seconds of queue that should be gone since then, and the longest that was seen.
    expected: f64,
    longest: f64,
    /// The rate when it began.
    before: f64,
    /// The capacity at the last queue, and the place on the way back to it and beyond: seconds.
    found: f64,
    place: f64,
    /// How far below the capacity it begins, as a share, and how long it takes, seconds.
    margin: f64,
    returns: f64,
    /// By what share the capacity usually falls until it is found again.
    falls: f64,
    /// The rate before the line fell silent.
    waiting: Option<f64>,
    /// When the line carried again.
    resumed: Time,
    /// What made the path seem longer is to be checked.
    check: Option<PathCheck>,
}

/// Whether the path became longer is checked by going slower for a moment: a queue would then be drained, and
/// the least delay become shorter.
#[derive(Clone, Copy, Debug)]
struct PathCheck {
    /// By how much it seemed longer, seconds.
    longer: f64,
    /// The next one.
    at: Time,
    /// So many are left.
    left: u32,
    /// One is under way: until then, and the rate before.
    until: Option<(Time, f64)>,
}

/// tidegate's own controller.
#[derive(Clone, Debug)]
pub struct OwnController {
    settings: OwnSettings,
    sides: PerDirection<Side>,
    queue: QueueEstimator,
    last_sign: Time,
    last_reading: Time,
}

impl OwnController {
    /// With these settings.
    #[must_use]
    pub fn new(settings: OwnSettings) -> OwnController {
        let limits = settings.limits;
        let sides = PerDirection::of(|direction| Side {
            rate: limits.controlled(direction),
            base: limits.base[direction] as f64,
            readings: VecDeque::new(),
            draining: None,
            expected: 0.0,
            longest: 0.0,
            before: 0.0,
            found: limits.base[direction] as f64,
            place: STARTS,
            margin: settings.margin,
            returns: settings.returns,
            falls: 0.0,
            waiting: None,
            resumed: Time(0),
            check: None,
        });
        OwnController {
            settings,
            sides,
            queue: QueueEstimator::default(),
            last_sign: Time(0),
            last_reading: Time(0),
        }
    }

    /// Takes a reading of the counters, and decides.
    fn read(
        &mut self,
        now: Time,
        counters: &PerDirection<ShaperCounters>,
        decisions: &mut Vec<RateDecision>,
    ) {
        let step = now.since(self.last_reading).0 as f64 / SECOND;
        if step <= 0.0 {
            return;
        }
        self.last_reading = now;
        if counters.down.arrived > 0 {
            self.last_sign = now;
        }
        let carried = PerDirection { up: counters.up.sent, down: counters.down.arrived };
        let mut loaded = PerDirection::default();
        for direction in RateDirection::BOTH {
            let side = &mut self.sides[direction];
            let of = counters[direction];
            side.take(now, carried[direction], of);
            loaded[direction] = side.is_loaded(&self.settings);
        }
        self.queue.passes(now, PerDirection::of(|direction| self.sides[direction].rate.rate()));
        let queue = self.queue.estimate(now, loaded);
        let delays = PerDirection::of(|direction| {
            self.queue_beyond_jitter(direction, queue.delay[direction], queue.jitter[direction])
        });
        for direction in RateDirection::BOTH {
            self.sides[direction].measure(&self.settings, direction, delays[direction]);
        }
        let silent = now.since(self.last_sign).0 as f64 / SECOND > self.settings.silent;
        for direction in RateDirection::BOTH {
            if silent {
                self.sides[direction].waits(decisions);
                continue;
            }
            let seen = (delays[direction], loaded[direction]);
            let longer = self.sides[direction].decide(&self.settings, now, step, seen, decisions);
            if longer {
                self.queue.path_is_longer(direction, (delays[direction] * SECOND) as i64);
            }
        }
    }

    /// The queueing delay in seconds of a delay in ns, without jitter, as far as that is more than a probe
    /// meets anyway: full frames that pass before it. Else a line with jitter would be drained all the time,
    /// and what it carries meanwhile, which is ever less, be taken for its capacity.
    fn queue_beyond_jitter(&self, direction: RateDirection, delay: i64, jitter: i64) -> f64 {
        // At the base rate: one that follows the rate would keep a slow one slow.
        let frame = FRAME as f64 * 8.0 / self.sides[direction].base.max(1.0);
        let usual = USUAL_TARGET * self.settings.target + USUAL_FRAME * frame;
        let jitter = (self.settings.jitters * jitter as f64 / SECOND - usual).max(0.0);
        (delay as f64 / SECOND - jitter).max(0.0)
    }
}

impl Side {
    fn take(&mut self, now: Time, carried: u64, counters: ShaperCounters) {
        let (sent, backlog) = (counters.sent, counters.backlog);
        let reading = Reading { at: now, carried, sent, backlog, measured: 0.0, queue: 0.0, share: 1.0 };
        self.readings.push_back(reading);
        while self.readings.len() > KEPT {
            self.readings.pop_front();
        }
    }

    /// What the line carries. Of the download that is what arrives. Of the upload it is what was sent, over
    /// the time in which that comes out: longer than that of sending by as much as the queue grew.
    fn measure(&mut self, settings: &OwnSettings, direction: RateDirection, queue: f64) {
        let mut measured = self.over(settings.measured, |reading| reading.carried);
        let Some(last) = self.readings.back() else { return };
        if direction == RateDirection::Up {
            let age = |reading: &Reading| last.at.since(reading.at).0 as f64 / SECOND;
            let before = self.readings.iter().rev().find(|reading| age(reading) >= settings.measured);
            let (took, before) = before.map_or((settings.measured, 0.0), |one| (age(one), one.queue));
            measured /= (1.0 + (queue - before) / took).max(0.2);
        }
        if let Some(last) = self.readings.back_mut() {
            (last.measured, last.queue) = (measured, queue);
        }
    }

    /// A rate over the last seconds, bit/s.
    fn over(&self, seconds: f64, bytes: impl Fn(&Reading) -> u64) -> f64 {
        let Some(last) = self.readings.back() else { return 0.0 };
        let since = |reading: &&Reading| last.at.since(reading.at).0 as f64 / SECOND;
        let mut sum = 0;
        for reading in self.readings.iter().rev() {
            let age = since(&reading);
            if age >= seconds {
                return sum as f64 * 8.0 / age;
            }
            sum += bytes(reading);
        }
        0.0
    }

    /// Does the shaper hold something up, or nearly?
    fn is_loaded(&self, settings: &OwnSettings) -> bool {
        let waits = self.readings.iter().rev().take(4).any(|reading| reading.backlog >= 2 * FRAME);
        waits || self.over(settings.measured, |reading| reading.sent) > 0.85 * self.rate.rate()
    }

    /// The highest rate measured lately: the line's capacity while a queue waits before it.
    fn capacity(&self, settings: &OwnSettings) -> f64 {
        let Some(last) = self.readings.back() else { return 0.0 };
        let recent = self
            .readings
            .iter()
            .rev()
            .take_while(|reading| last.at.since(reading.at).0 as f64 / SECOND <= settings.remembered);
        recent.map(|reading| reading.measured).fold(0.0, f64::max)
    }

    /// The line carries nothing.
    fn waits(&mut self, decisions: &mut Vec<RateDecision>) {
        if self.waiting.is_none() {
            self.waiting = Some(self.rate.rate());
            let rate = IN_SILENCE * self.rate.rate();
            self.rate.set(rate, ControlReason::Silence, None, decisions);
        }
    }

    /// Decides by the queue in seconds, and whether there is load; true: the path became longer.
    fn decide(
        &mut self,
        settings: &OwnSettings,
        now: Time,
        step: f64,
        (queue, loaded): (f64, bool),
        decisions: &mut Vec<RateDecision>,
    ) -> bool {
        let delay = Some(Nanos((queue.max(0.0) * SECOND) as u64));
        if let Some(before) = self.waiting.take() {
            self.rate.set(AFTER_SILENCE * before, ControlReason::Resumed, delay, decisions);
            self.resumed = now;
            self.draining = None;
            self.placed();
        }
        // What was carried in the silence says nothing, and what waited in it is late for another reason.
        if now.since(self.resumed) < SETTLES {
            return false;
        }
        let capacity = self.capacity(settings);
        if self.checks(now, capacity, delay, decisions) {
            return false;
        }
        let queue = self.ahead(settings, queue);
        let let_be = settings.let_be(self.rate.rate());
        let until = if self.draining.is_some() { settings.drained * let_be } else { let_be };
        if queue > until && capacity > 0.0 {
            return self.drain(settings, now, step, (queue, capacity), decisions);
        }
        if self.draining.take().is_some() {
            self.found = capacity;
            let fall = (1.0 - capacity / self.before.max(1.0)).clamp(0.0, 1.0);
            self.falls += settings.learns * (fall - self.falls);
            self.margin = (settings.margin + settings.swing * self.falls).min(MOST_MARGIN);
            self.returns = settings.returns / (1.0 + settings.hurry * self.falls);
            self.rate.set((1.0 - self.margin) * capacity, ControlReason::Drained, delay, decisions);
            self.placed();
            return false;
        }
        let rate = self.rate.rate();
        if loaded {
            let room = (1.0 - queue / let_be).clamp(0.0, 1.0);
            self.place += step * room / self.returns;
            let wanted = self.found * (1.0 + self.margin * self.place * self.place.abs());
            // A slow shaper delays packets itself, and its probes.
            let growth = if rate < LOW * self.base { LEAST_GROWTH } else { 0.0 };
            let [least, most] = [growth.min(settings.fastest), settings.fastest]
                .map(|share| rate * (1.0 + share * room * step));
            self.rate.set(wanted.clamp(least, most), ControlReason::LoadHigh, delay, decisions);
            if !(least..=most).contains(&wanted) {
                self.placed();
            }
        } else {
            // What was right a while ago may be too fast when load comes back.
            let next = rate + (self.base - rate) * (0.05 * step).min(1.0);
            self.rate.set(next, ControlReason::LoadLow, delay, decisions);
            self.placed();
        }
        false
    }

    /// The queue a moment later, if it goes on growing or shrinking as it does.
    fn ahead(&self, settings: &OwnSettings, queue: f64) -> f64 {
        let mut before = self.readings.iter().rev().skip(2);
        let (Some(last), Some(before)) = (self.readings.back(), before.next()) else { return queue };
        let took = last.at.since(before.at).0 as f64 / SECOND;
        (queue + settings.lead * (queue - before.queue) / took.max(0.02)).max(0.0)
    }

    /// The rate was set otherwise than by the way back to the capacity: where on it that is.
    fn placed(&mut self) {
        self.place = signed_root((self.rate.rate() / self.found.max(1.0) - 1.0) / self.margin);
    }

    fn drain(
        &mut self,
        settings: &OwnSettings,
        now: Time,
        step: f64,
        (queue, capacity): (f64, f64),
        decisions: &mut Vec<RateDecision>,
    ) -> bool {
        if self.draining.is_none() {
            self.draining = Some(now);
            (self.expected, self.longest, self.before) = (0.0, 0.0, self.rate.rate());
        }
        self.longest = self.longest.max(queue);
        let end = settings.drained * settings.let_be(self.rate.rate());
        let share = (1.0 - settings.margin - (queue - end) / settings.drain).max(settings.floor);
        // Until now the share of the reading before was in force.
        let before = self.readings.iter().rev().nth(1).map_or(1.0, |reading| reading.share);
        self.expected += (1.0 - before) * step;
        if let Some(last) = self.readings.back_mut() {
            last.share = share;
        }
        let delay = Some(Nanos((queue * SECOND) as u64));
        if self.is_no_queue() {
            self.draining = None;
            let at = now + CHECKED_AFTER;
            self.check = Some(PathCheck { longer: queue, at, left: CHECKS, until: None });
            self.rate.set(
                self.before.min(self.rate.rate().max(capacity)),
                ControlReason::PathLonger,
                delay,
                decisions,
            );
            self.placed();
            return true;
        }
        self.rate.set(share * capacity, ControlReason::Draining, delay, decisions);
        false
    }

    /// Carries out the checks of a path that seemed longer; true: one is under way.
    fn checks(
        &mut self,
        now: Time,
        capacity: f64,
        delay: Option<Nanos>,
        decisions: &mut Vec<RateDecision>,
    ) -> bool {
        let Some(mut check) = self.check.take() else { return false };
        match check.until {
            Some((until, _)) if now < until => {}
            Some((_, before)) => {
                self.rate.set(before, ControlReason::Resumed, delay, decisions);
                check = PathCheck { at: now + CHECKED_AFTER, left: check.left - 1, until: None, ..check };
            }
            None if now >= check.at => {
                let takes = Nanos(((2.0 * check.longer).clamp(0.1, 0.5) * SECOND) as u64);
                check.until = Some((now + takes, self.rate.rate()));
                let slower = 0.5 * capacity.min(self.rate.rate());
                self.rate.set(slower, ControlReason::Check, delay, decisions);
            }
            None => {}
        }
        self.check = Some(check).filter(|check| check.left > 0);
        check.until.is_some()
    }

    /// Draining has no effect: the delay stays as it is, or it is there long after all should be drained.
    fn is_no_queue(&self) -> bool {
        self.expected > 2.0 * self.longest + 0.3
            || WATCHED.into_iter().any(|watched| self.is_undrained_over(watched))
    }

    /// Over so many readings: much less is sent than before, and all should be drained, but the delay is as
    /// long in the later half as in the earlier. The shortest of each half is compared, because a slow shaper
    /// delays probes itself, each by another part of a full frame's time; and a delay that grows by more than
    /// that is a queue, whatever was found of the capacity.
    fn is_undrained_over(&self, watched: usize) -> bool {
        let half = watched / 2;
        let of = |at: usize| self.readings.iter().rev().nth(at);
        let (Some(last), Some(middle), Some(_)) = (of(0), of(half), of(watched)) else { return false };
        let queues = |from: usize, count: usize| {
            self.readings.iter().rev().skip(from).take(count).map(|reading| reading.queue)
        };
        let (before, now) =
            (queues(half, watched - half).fold(f64::MAX, f64::min), queues(0, half).fold(f64::MAX, f64::min));
        if now <= 0.0 || before <= 0.0 || before > LONGEST_STEP {
            return false;
        }
        let took = last.at.since(middle.at).0 as f64 / SECOND;
        let sent: u64 = self.readings.iter().rev().take(half).map(|reading| reading.sent).sum();
        let is_slower = sent as f64 * 8.0 < MUCH_LESS * self.before * took;
        // Each share was in force until the next reading.
        let later = self.readings.iter().rev().take(half);
        let earlier = self.readings.iter().rev().skip(1);
        let each =
            later.zip(earlier).map(|(to, from)| (1.0 - from.share) * to.at.since(from.at).0 as f64 / SECOND);
        let drained: f64 = each.sum();
        let frame = FRAME as f64 * 8.0 / self.rate.rate().max(1.0);
        let grows = queues(0, half).fold(0.0, f64::max) > before + frame + (0.15 * before).max(0.005);
        let differs = (before - now).abs();
        is_slower
            && !grows
            && drained > before.max(0.004)
            && differs < (0.25 * drained.min(before)).min((0.15 * before).max(0.003))
    }
}

/// The square root of a value's size, with its sign, by Newton's method: `core` has none.
fn signed_root(value: f64) -> f64 {
    let size = value.abs();
    if size < 1e-12 {
        return 0.0;
    }
    let mut root = size.max(1.0);
    for _ in 0..40 {
        root = 0.5 * (root + size / root);
    }
    root.copysign(value)
}

impl RateController for OwnController {
    fn name(&self) -> &str {
        "tidegate"
    }

    fn decides_by_replies(&self) -> bool {
        false
    }

    fn limit(&mut self, limits: RateLimits) {
        for direction in RateDirection::BOTH {
            self.sides[direction].rate.limit(limits.least[direction], limits.most[direction]);
        }
        self.settings.limits = RateLimits { base: self.settings.limits.base, ..limits };
    }

    fn on_event(&mut self, now: Time, event: &ControlEvent, decisions: &mut Vec<RateDecision>) {
        match event {
            ControlEvent::Start => {
                (self.last_sign, self.last_reading) = (now, now);
                for direction in RateDirection::BOTH {
                    let side = &mut self.sides[direction];
                    side.rate.set(side.rate.rate(), ControlReason::Begin, None, decisions);
                }
            }
            ControlEvent::ProbeReply(reply) => {
                self.last_sign = now;
                self.queue.probe(now, reply);
            }
            ControlEvent::TcpRoundTrip { flow, data, rtt } => {
                self.last_sign = now;
                self.queue.round_trip(now, *flow, *data, *rtt);
            }
            ControlEvent::Acknowledged(_) => self.last_sign = now,
            ControlEvent::Counters(counters) => self.read(now, counters, decisions),
            ControlEvent::ProbeLost { .. }
            | ControlEvent::Retransmission(_)
            | ControlEvent::Capacity(_)
            | ControlEvent::Timer => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{OneWayDelays, ProbeReply};

    const MBIT: f64 = 1e6;

    /// An uplink of a capacity that changes: what the shaper sends beyond it waits, and probes see that.
    struct Line {
        controller: OwnController,
        rate: f64,
        waiting: f64,
        base: f64,
        now: Time,
        decisions: Vec<RateDecision>,
        /// Probes come back.
        probes: bool,
    }

    impl Line {
        fn new() -> Line {
            let both = |rate| PerDirection { up: rate, down: rate };
            let limits = RateLimits { least: both(200_000), base: both(2_000_000), most: both(20_000_000) };
            let controller = OwnController::new(OwnSettings::new(limits));
            let mut line = Line {
                controller,
                rate: 2.0 * MBIT,
                waiting: 0.0,
                base: 0.020,
                now: Time(1_000_000_000),
                decisions: Vec::new(),
                probes: true,
            };
            line.controller.on_event(line.now, &ControlEvent::Start, &mut line.decisions);
            line
        }

        /// Lets time pass at this capacity, in bit/s, with a full load or none.
        fn pass(&mut self, seconds: f64, capacity: f64, loads: bool) {
            for _ in 0..(seconds / 0.05) as u32 {
                self.now += Nanos::millis(50);
                let sent = if loads { self.rate * 0.05 } else { 0.0 };
                self.waiting = (self.waiting + sent - capacity * 0.05).max(0.0);
                let queue = if capacity > 0.0 { self.waiting / capacity } else { 0.0 };
                if self.probes && capacity > 0.0 {
                    let ns = |seconds: f64| (seconds * SECOND) as i64;
                    let (up, down) = (ns(self.base / 2.0 + queue), ns(self.base / 2.0));
                    for reflector in 0..2 {
                        let rtt = Nanos((up + down) as u64);
                        let one_way = Some(OneWayDelays { up, down });
                        let reply = ProbeReply { reflector, sent: self.now, rtt, one_way };
                        let reply = ControlEvent::ProbeReply(reply);
                        self.controller.on_event(self.now, &reply, &mut self.decisions);
                    }
                }
                let backlog = if loads { 20 * FRAME } else { 0 };
                let up = ShaperCounters { sent: (sent / 8.0) as u64, backlog, ..ShaperCounters::default() };
                let counters = PerDirection { up, down: ShaperCounters::default() };
                let counters = ControlEvent::Counters(counters);
                let first = self.decisions.len();
                self.controller.on_event(self.now, &counters, &mut self.decisions);
                for decision in &self.decisions[first..] {
                    if decision.direction == LineSide::Up {
                        self.rate = decision.bits_per_second as f64;
                    }
                }
            }
        }

        fn last_reasons(&self, from: usize) -> Vec<ControlReason> {
            let mut reasons: Vec<ControlReason> = self.decisions[from..]
                .iter()
                .filter(|one| one.direction == LineSide::Up)
                .map(|one| one.reason)
                .collect();
            reasons.dedup();
            reasons
        }
    }

    use crate::controller::RateDirection as LineSide;

    #[test]
    fn the_rate_finds_the_capacity_and_follows_it_down_and_up() {
        let mut line = Line::new();
        line.pass(10.0, 8.0 * MBIT, true);
        assert!(line.rate > 6.5 * MBIT && line.rate < 9.5 * MBIT, "{}", line.rate);
        line.pass(3.0, 2.0 * MBIT, true);
        assert!(line.rate < 2.6 * MBIT && line.waiting < 0.05 * 2.0 * MBIT, "{} {}", line.rate, line.waiting);
        line.pass(6.0, 8.0 * MBIT, true);
        assert!(line.rate > 6.0 * MBIT, "{}", line.rate);
    }

    #[test]
    fn the_defaults_are_what_the_tuner_found() {
        let both = |rate| PerDirection { up: rate, down: rate };
        let defaults = OwnSettings::new(RateLimits { least: both(1), base: both(1), most: both(1) });
        let OwnSettings { limits: _, target, frames, drained, drain, floor, margin, swing, .. } = defaults;
        let OwnSettings { learns, returns, hurry, fastest, lead, measured, remembered, silent, .. } =
            defaults;
        let all = [
            ("target", target),
            ("frames", frames),
            ("drained", drained),
            ("drain", drain),
            ("floor", floor),
            ("margin", margin),
            ("swing", swing),
            ("learns", learns),
            ("returns", returns),
            ("hurry", hurry),
            ("fastest", fastest),
            ("lead", lead),
            ("measured", measured),
            ("remembered", remembered),
            ("silent", silent),
        ];
        let file = include_str!("../tuning.toml");
        let found = file.lines().filter_map(|line| {
            let (name, value) = line.split_once(" = ")?;
            Some((name, value.parse::<f64>().ok()?))
        });
        let found: Vec<(&str, f64)> = found.filter(|(name, _)| !name.starts_with("tuner_")).collect();
        assert_eq!(found, all);
    }

    #[test]
    fn an_aim_below_one_has_fewer_queues_and_one_above_it_more_use_of_the_line() {
        // How often there is a queue, and how much is sent, on a line that changes between 4 and 8 Mbit/s.
        let played = |aim: f64| {
            let mut line = Line::new();
            let settings = line.controller.settings.aiming(aim);
            line.controller = OwnController::new(settings);
            line.controller.on_event(line.now, &ControlEvent::Start, &mut line.decisions);
            let (mut queued, mut sent) = (0, 0.0);
            for step in 0..600 {
                let capacity = if step % 40 < 20 { 8.0 } else { 4.0 } * MBIT;
                line.pass(0.05, capacity, true);
                queued += u32::from(line.waiting > 0.008 * capacity);
                sent += line.rate;
            }
            (queued, sent)
        };
        let [less, usual, more] = [0.2, 1.0, 4.0].map(played);
        assert!(less.0 < usual.0 && usual.0 < more.0, "{less:?} {usual:?} {more:?}");
        assert!(less.1 < usual.1 && usual.1 < more.1, "{less:?} {usual:?} {more:?}");
    }

    #[test]
    fn a_steady_line_is_nearly_full_without_a_queue_most_of_the_time() {
        let mut line = Line::new();
        line.pass(10.0, 6.0 * MBIT, true);
        let (mut queued, mut sent) = (0, 0.0);
        for _ in 0..400 {
            line.pass(0.05, 6.0 * MBIT, true);
            queued += u32::from(line.waiting > 0.005 * 6.0 * MBIT);
            sent += line.rate / 400.0;
        }
        assert!(queued < 100 && sent > 0.92 * 6.0 * MBIT, "{queued} {sent}");
    }

    #[test]
    fn after_a_queue_the_rate_is_lower_where_the_capacity_usually_falls_by_more() {
        // Of the capacity that was found, by how much the rate is less right after the queue.
        let below = |high: f64, low: f64| {
            let mut line = Line::new();
            for step in 0..200 {
                line.pass(0.1, if step % 40 < 20 { high } else { low }, true);
            }
            line.controller.sides.up.margin
        };
        let (steady, varying) = (below(6.0 * MBIT, 6.0 * MBIT), below(8.0 * MBIT, 3.0 * MBIT));
        assert!(steady < 0.12 && varying > 1.5 * steady, "{steady} {varying}");
    }

    #[test]
    fn roots_have_the_sign_of_their_squares() {
        for (value, expected) in [(4.0, 2.0), (-9.0, -3.0), (0.0, 0.0), (1e-6, 1e-3), (1e8, 1e4)] {
            assert!((signed_root(value) - expected).abs() < 1e-9 * expected.abs() + 1e-9, "{value}");
        }
    }

    #[test]
    fn a_silent_line_is_waited_for_and_continues_as_before() {
        let mut line = Line::new();
        line.pass(8.0, 6.0 * MBIT, true);
        let (before, first) = (line.rate, line.decisions.len());
        line.pass(1.0, 0.0, false);
        line.pass(0.1, 6.0 * MBIT, true);
        let reasons = line.last_reasons(first);
        let starts = [ControlReason::Silence, ControlReason::Resumed];
        assert!(reasons.windows(2).any(|pair| pair == starts), "{reasons:?}");
        line.pass(2.0, 6.0 * MBIT, true);
        assert!(line.rate > 0.8 * before, "{} after {before}", line.rate);
    }

    #[test]
    fn jitter_counts_beyond_what_is_let_be_and_less_for_an_aim_below_one() {
        let limits = Line::new().controller.settings.limits;
        let at = |aim: f64, jitter_ms: f64| {
            let controller = OwnController::new(OwnSettings::new(limits).aiming(aim));
            1e3 * controller.queue_beyond_jitter(RateDirection::Up, 30_000_000, (jitter_ms * 1e6) as i64)
        };
        assert_eq!((at(1.0, 0.0), at(1.0, 0.3)), (30.0, 30.0));
        let (usual, less, more) = (at(1.0, 3.0), at(0.5, 3.0), at(4.0, 3.0));
        assert!(usual > 10.0 && usual < 20.0 && less > usual + 5.0, "{usual} {less}");
        assert!(more > usual, "its longer queue is let be anyway: {more}");
        assert_eq!(at(1.0, 40.0), 0.0);
    }

    #[test]
    fn a_longer_path_is_no_queue() {
        // Half of it each way: 15 ms are hardly above the target and cost nothing, 25 ms are found out.
        for (longer, is_found) in [(0.030, false), (0.050, true), (0.100, true)] {
            let mut line = Line::new();
            line.pass(8.0, 6.0 * MBIT, true);
            let first = line.decisions.len();
            line.base += longer;
            line.pass(4.0, 6.0 * MBIT, true);
            let reasons = line.last_reasons(first);
            assert!(!is_found || reasons.contains(&ControlReason::PathLonger), "{longer}: {reasons:?}");
            assert!(line.rate > 4.5 * MBIT, "{longer}: {}", line.rate);
        }
    }

    /// While the capacity falls the queue may stay as it is although it is drained: it is a queue all the
    /// same.
    #[test]
    fn a_capacity_that_falls_is_no_longer_path() {
        for falls in [0.1, 0.2] {
            let mut line = Line::new();
            line.pass(8.0, 8.0 * MBIT, true);
            let (first, mut capacity) = (line.decisions.len(), 8.0 * MBIT);
            while capacity > MBIT {
                capacity *= 1.0 - 0.05 * falls;
                line.pass(0.05, capacity, true);
            }
            let reasons = line.last_reasons(first);
            assert!(reasons.contains(&ControlReason::Draining), "{falls}: {reasons:?}");
            assert!(!reasons.contains(&ControlReason::PathLonger), "{falls}: {reasons:?}");
        }
    }

    #[test]
    fn without_load_the_rate_returns_slowly_to_its_base() {
        let mut line = Line::new();
        line.pass(8.0, 8.0 * MBIT, true);
        let (before, first) = (line.rate, line.decisions.len());
        line.pass(10.0, 8.0 * MBIT, false);
        assert!(line.rate < before && line.rate > 2.0 * MBIT, "{}", line.rate);
        assert_eq!(line.last_reasons(first).last(), Some(&ControlReason::LoadLow));
    }
}
