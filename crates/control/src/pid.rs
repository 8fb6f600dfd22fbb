//! A PID controller of the queueing delay behind the shaper: our own design.
//!
//! Principles. The error is how far the delay is from the target, in targets. Each reading changes the
//! rate, as a share of itself, by three terms: how the error changed, the error itself for as long as it
//! lasts, and how its change changed. The first two are the form of PIE's control law (RFC 8033, section
//! 4.2), with a rate instead of a drop probability. It measures the queue as tidegate's own controller
//! does, and has none of its other rules: it shows what those are worth.

use crate::controller::RateLimits;
use crate::controller::{
    ControlEvent, ControlReason, Controlled, PerDirection, RateController, RateDecision, RateDirection,
};
use crate::queue::QueueEstimator;
use alloc::vec::Vec;
use tidegate_packet::{Nanos, Time};

/// The error, in targets, is never taken for more.
const MOST_ERROR: f64 = 6.0;
/// The most by which one reading changes a rate, as a share.
const MOST_CHANGE: f64 = 0.35;
/// The share of the rate that a load fills.
const LOADED: f64 = 0.8;

/// Settings of the PID controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PidSettings {
    /// Between which rates it chooses.
    pub limits: RateLimits,
    /// The queueing delay that is wanted, seconds.
    pub target: f64,
    /// The change of the rate, as a share, for a change of the error by a target.
    pub proportional: f64,
    /// The same, a second, for an error of a target.
    pub integral: f64,
    /// The same for a change of the change of the error.
    pub derivative: f64,
}

impl PidSettings {
    /// The defaults, chosen by hand, with these limits.
    #[must_use]
    pub fn new(limits: RateLimits) -> PidSettings {
        PidSettings { limits, target: 0.015, proportional: 0.1, integral: 0.4, derivative: 0.03 }
    }
}

#[derive(Clone, Copy, Debug)]
struct Side {
    rate: Controlled,
    base: f64,
    /// The errors at the last two readings.
    errors: [f64; 2],
}

/// A PID controller of the queueing delay.
#[derive(Clone, Debug)]
pub struct PidController {
    settings: PidSettings,
    sides: PerDirection<Side>,
    queue: QueueEstimator,
    last_reading: Time,
}

impl PidController {
    /// With these settings.
    #[must_use]
    pub fn new(settings: PidSettings) -> PidController {
        let limits = settings.limits;
        let sides = PerDirection::of(|direction| Side {
            rate: limits.controlled(direction),
            base: limits.base[direction] as f64,
            errors: [0.0; 2],
        });
        PidController { settings, sides, queue: QueueEstimator::default(), last_reading: Time(0) }
    }
}

impl Side {
    fn decide(
        &mut self,
        settings: &PidSettings,
        step: f64,
        queue: f64,
        loaded: bool,
    ) -> (f64, ControlReason) {
        let error = (queue / settings.target - 1.0).min(MOST_ERROR);
        let [last, before] = self.errors;
        self.errors = [error, last];
        let rate = self.rate.rate();
        if !loaded && error < 0.0 {
            return (rate + (self.base - rate) * (0.05 * step).min(1.0), ControlReason::LoadLow);
        }
        let change = settings.proportional * (error - last)
            + settings.integral * error * step
            + settings.derivative * (error - 2.0 * last + before);
        (rate * (1.0 - change.clamp(-MOST_CHANGE, MOST_CHANGE)), ControlReason::Error)
    }
}

impl RateController for PidController {
    fn name(&self) -> &str {
        "pid"
    }

    fn decides_by_replies(&self) -> bool {
        false
    }

    fn limit(&mut self, limits: RateLimits) {
        for direction in RateDirection::BOTH {
            self.sides[direction].rate.limit(limits.least[direction], limits.most[direction]);
        }
    }

    fn on_event(&mut self, now: Time, event: &ControlEvent, decisions: &mut Vec<RateDecision>) {
        match event {
            ControlEvent::Start => {
                self.last_reading = now;
                for direction in RateDirection::BOTH {
                    let side = &mut self.sides[direction];
                    side.rate.set(side.rate.rate(), ControlReason::Begin, None, decisions);
                }
            }
            ControlEvent::ProbeReply(reply) => self.queue.probe(now, reply),
            ControlEvent::TcpRoundTrip { flow, data, rtt } => self.queue.round_trip(now, *flow, *data, *rtt),
            ControlEvent::Counters(counters) => {
                let step = now.since(self.last_reading).as_secs_f64();
                if step <= 0.0 {
                    return;
                }
                self.last_reading = now;
                self.queue.passes(now, PerDirection::of(|direction| self.sides[direction].rate.rate()));
                let loaded = PerDirection::of(|direction| {
                    let of = counters[direction];
                    of.backlog > 0 || of.sent as f64 * 8.0 / step > LOADED * self.sides[direction].rate.rate()
                });
                let found = self.queue.estimate(now, loaded);
                if !found.known {
                    return;
                }
                for direction in RateDirection::BOTH {
                    let queue = found.delay[direction].max(0) as f64 / 1e9;
                    let side = &mut self.sides[direction];
                    let (rate, reason) = side.decide(&self.settings, step, queue, loaded[direction]);
                    side.rate.set(rate, reason, Some(Nanos((queue * 1e9) as u64)), decisions);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{OneWayDelays, ProbeReply, ShaperCounters};

    #[test]
    fn the_rate_comes_to_rest_near_the_capacity_at_the_wanted_delay() {
        let both = |rate| PerDirection { up: rate, down: rate };
        let limits = RateLimits { least: both(200_000), base: both(2_000_000), most: both(20_000_000) };
        let mut under_test = PidController::new(PidSettings::new(limits));
        let mut decisions = Vec::new();
        let (mut now, mut waiting, capacity) = (Time(1_000_000_000), 0.0_f64, 6e6);
        under_test.on_event(now, &ControlEvent::Start, &mut decisions);
        let mut late = Vec::new();
        for step in 0..600 {
            now += Nanos::millis(50);
            let sent = under_test.sides.up.rate.rate() * 0.05;
            waiting = (waiting + sent - capacity * 0.05).max(0.0);
            let (up, down) = (((0.01 + waiting / capacity) * 1e9) as i64, 10_000_000);
            for reflector in 0..2 {
                let (rtt, one_way) = (Nanos((up + down) as u64), Some(OneWayDelays { up, down }));
                let reply = ProbeReply { reflector, sent: now, rtt, one_way };
                under_test.on_event(now, &ControlEvent::ProbeReply(reply), &mut decisions);
            }
            let up = ShaperCounters { sent: (sent / 8.0) as u64, backlog: 9000, ..ShaperCounters::default() };
            let counters = PerDirection { up, down: ShaperCounters::default() };
            under_test.on_event(now, &ControlEvent::Counters(counters), &mut decisions);
            if step > 300 {
                late.push((waiting / capacity, under_test.sides.up.rate.rate()));
            }
        }
        let mean = |of: fn(&(f64, f64)) -> f64| late.iter().map(of).sum::<f64>() / late.len() as f64;
        let (queue, rate) = (mean(|one| one.0), mean(|one| one.1));
        assert!((rate / capacity - 1.0).abs() < 0.05, "{rate}");
        assert!(queue < 0.04, "{queue}");
        assert!(decisions.iter().all(|one| one.reason != ControlReason::NoReplies));
    }
}
