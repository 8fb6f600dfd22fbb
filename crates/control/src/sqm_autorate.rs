//! The algorithm of sqm-autorate, written from its README (github.com/sqm-autorate/sqm-autorate, MPL 2.0).
//! Its program was not read. Settings have the program's names.
//!
//! Twice a second, for each direction: delay is the difference of a fast and a slow average of the
//! reflectors' delays one way. Below the threshold and with 80 % load the rate rises, at first by a share of
//! it, near the highest known good rate only by a small step, and the actual load joins a list of good
//! speeds. Above the threshold the rate becomes one of the good speeds, by chance, but less than 0.9 times
//! what is carried; if the load is low then, that is the lowest rate.
//!
//! Where the README gives no figure, ours are: averages with time constants of 0.4 s and 135 s; a rise by up
//! to a tenth of the rate plus 3 % of the base rate.

use crate::controller::RateLimits;
use crate::controller::{
    ControlEvent, ControlReason, Controlled, PerDirection, ProbeReply, RateController, RateDecision,
    RateDirection,
};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use tidegate_packet::{Nanos, RandomSource, Seeded, Time};

/// Between two decisions.
const TICK: Nanos = Nanos::millis(500);
/// Time constants of the averages, in seconds.
const FAST: f64 = 0.4;
const SLOW: f64 = 135.0;
const MS: f64 = 1e6;
/// The most reflectors whose averages are kept.
const MAX_REFLECTORS: usize = 256;
/// Reflectors that were not heard for so long do not count.
const FRESH: Nanos = Nanos::secs(2);

/// Settings of sqm-autorate that the algorithm uses.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names are those of sqm-autorate's configuration, which explains them")]
pub struct SqmAutorateSettings {
    pub base_kbits: PerDirection<f64>,
    pub min_percent: PerDirection<f64>,
    pub delay_ms: PerDirection<f64>,
    pub high_load_level: f64,
    pub speed_hist_size: usize,
    /// The seed of its choices.
    pub seed: u64,
}

impl SqmAutorateSettings {
    /// The defaults, with the base rates of these limits and their lowest rates as shares of them (10 to
    /// 75 %, as the program takes them).
    #[must_use]
    pub fn new(limits: RateLimits, seed: u64) -> SqmAutorateSettings {
        let same = |value| PerDirection { up: value, down: value };
        SqmAutorateSettings {
            base_kbits: PerDirection::of(|direction| limits.base[direction] as f64 / 1000.0),
            min_percent: PerDirection::of(|direction| {
                let share = 100.0 * limits.least[direction] as f64 / limits.base[direction].max(1) as f64;
                share.clamp(10.0, 75.0)
            }),
            delay_ms: same(15.0),
            high_load_level: 0.8,
            speed_hist_size: 100,
            seed,
        }
    }
}

/// Averages of a reflector's delay, ms.
#[derive(Clone, Copy, Debug)]
struct Averages {
    slow: f64,
    fast: f64,
    last: Time,
}

#[derive(Clone, Debug)]
struct Side {
    rate: Controlled,
    base: f64,
    bytes: u64,
    /// Good speeds, bit/s, and which is replaced next.
    good: Vec<f64>,
    next: usize,
}

/// The algorithm of sqm-autorate.
#[derive(Clone, Debug)]
pub struct SqmAutorate {
    settings: SqmAutorateSettings,
    sides: PerDirection<Side>,
    reflectors: BTreeMap<u16, PerDirection<Averages>>,
    random: Seeded,
    due: Time,
    since: Time,
}

impl SqmAutorate {
    /// With these settings.
    #[must_use]
    pub fn new(settings: SqmAutorateSettings) -> SqmAutorate {
        let size = settings.speed_hist_size.clamp(1, 10_000);
        let mut random = Seeded::new(settings.seed);
        let sides = PerDirection::of(|direction| {
            let base = settings.base_kbits[direction] * 1000.0;
            let least = base * settings.min_percent[direction] / 100.0;
            // Nothing is known to be good yet but what lies between the lowest and the base rate.
            let good = (0..size).map(|_| least + (0.75 + 0.2 * random.unit()) * (base - least)).collect();
            // The base rate is no maximum; ten times it is a bound all the same.
            let rate = Controlled::new(direction, least as u64, least as u64, (10.0 * base) as u64);
            Side { rate, base, bytes: 0, good, next: 0 }
        });
        SqmAutorate { settings, sides, reflectors: BTreeMap::new(), random, due: Time(0), since: Time(0) }
    }

    fn reply(&mut self, now: Time, reply: &ProbeReply) {
        let half = reply.rtt.0 as f64 / 2.0 / MS;
        let delays = match reply.one_way {
            Some(one_way) => PerDirection { up: one_way.up as f64 / MS, down: one_way.down as f64 / MS },
            None => PerDirection { up: half, down: half },
        };
        if self.reflectors.len() >= MAX_REFLECTORS && !self.reflectors.contains_key(&reply.reflector) {
            return;
        }
        let first = PerDirection::of(|direction| {
            let delay = delays[direction];
            Averages { slow: delay, fast: delay, last: now }
        });
        let averages = self.reflectors.entry(reply.reflector).or_insert(first);
        for direction in RateDirection::BOTH {
            let (delay, of) = (delays[direction], &mut averages[direction]);
            let gap = now.since(of.last).0 as f64 / 1e9;
            // For short gaps 1 - exp(-gap / constant) is gap / (constant + gap), near enough.
            of.slow += gap / (SLOW + gap) * (delay - of.slow);
            of.fast += gap / (FAST + gap) * (delay - of.fast);
            of.slow = of.slow.min(of.fast);
            of.last = now;
        }
    }

    /// The least delay above its baseline that a reflector shows, ms: a queue of the line delays them all.
    fn delay(&self, now: Time, direction: RateDirection) -> Option<f64> {
        let fresh =
            self.reflectors.values().map(|one| one[direction]).filter(|one| now.since(one.last) < FRESH);
        fresh.map(|one| one.fast - one.slow).min_by(f64::total_cmp)
    }

    fn tick(&mut self, now: Time, decisions: &mut Vec<RateDecision>) {
        let took = now.since(self.since).0.max(1) as f64;
        self.since = now;
        for direction in RateDirection::BOTH {
            let delay_ms = self.delay(now, direction);
            let side = &mut self.sides[direction];
            let carried = core::mem::take(&mut side.bytes) as f64 * 8e9 / took;
            let rate = side.rate.rate();
            let load = carried / rate;
            let Some(delay_ms) = delay_ms else {
                side.rate.set(side.rate.least(), ControlReason::NoReplies, None, decisions);
                continue;
            };
            let delay = Some(Nanos((delay_ms.max(0.0) * MS) as u64));
            let high = load > self.settings.high_load_level;
            if delay_ms > self.settings.delay_ms[direction] {
                if !high {
                    let reason = ControlReason::DelayWithoutLoad;
                    side.rate.set(side.rate.least(), reason, delay, decisions);
                    continue;
                }
                let chosen = side.good[self.random.below(side.good.len() as u32) as usize];
                side.rate.set(chosen.min(0.9 * carried), ControlReason::DelayHigh, delay, decisions);
            } else if high {
                let best = side.good.iter().copied().fold(0.0, f64::max);
                side.good[side.next] = carried;
                side.next = (side.next + 1) % side.good.len();
                let next = rate * (1.0 + 0.1 * (1.0 - rate / best).max(0.0)) + 0.03 * side.base;
                side.rate.set(next, ControlReason::LoadHigh, delay, decisions);
            }
        }
    }
}

impl RateController for SqmAutorate {
    fn name(&self) -> &str {
        "sqm-autorate"
    }

    fn limit(&mut self, limits: RateLimits) {
        for direction in RateDirection::BOTH {
            self.sides[direction].rate.limit(limits.least[direction], limits.most[direction]);
        }
    }

    fn on_event(&mut self, now: Time, event: &ControlEvent, decisions: &mut Vec<RateDecision>) {
        match event {
            ControlEvent::Start => {
                (self.since, self.due) = (now, now + TICK);
                for direction in RateDirection::BOTH {
                    let side = &mut self.sides[direction];
                    side.rate.set(side.rate.rate(), ControlReason::Begin, None, decisions);
                }
            }
            ControlEvent::ProbeReply(reply) => self.reply(now, reply),
            ControlEvent::Counters(counters) => {
                for direction in RateDirection::BOTH {
                    self.sides[direction].bytes += counters[direction].sent;
                }
            }
            ControlEvent::Timer if now >= self.due => {
                self.tick(now, decisions);
                self.due = now + TICK;
            }
            _ => {}
        }
    }

    fn due(&self) -> Option<Time> {
        Some(self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::ShaperCounters;

    /// Ten seconds: a reply each 100 ms with this delay in the download, and this load there.
    fn play(under_test: &mut SqmAutorate, from_s: u64, delay_ms: i64, load: f64) -> Vec<RateDecision> {
        let mut decisions = Vec::new();
        for n in 0..100 {
            let now = Time(from_s * 1_000_000_000 + n * 100_000_000);
            let one_way = crate::OneWayDelays { up: 10_000_000, down: delay_ms * 1_000_000 };
            let rtt = Nanos((one_way.up + one_way.down) as u64);
            let reply = ProbeReply { reflector: 1, sent: now, rtt, one_way: Some(one_way) };
            under_test.on_event(now, &ControlEvent::ProbeReply(reply), &mut decisions);
            let sent = (under_test.sides.down.rate.rate() * load / 80.0) as u64;
            let down = ShaperCounters { sent, ..ShaperCounters::default() };
            let counters = PerDirection { up: ShaperCounters::default(), down };
            under_test.on_event(now, &ControlEvent::Counters(counters), &mut decisions);
            under_test.on_event(now, &ControlEvent::Timer, &mut decisions);
        }
        decisions.retain(|one| one.direction == RateDirection::Down);
        decisions
    }

    #[test]
    fn good_speeds_are_learnt_and_used_when_delay_rises() {
        let both = |rate| PerDirection { up: rate, down: rate };
        let limits = RateLimits { least: both(2_000_000), base: both(10_000_000), most: both(90_000_000) };
        let mut under_test = SqmAutorate::new(SqmAutorateSettings::new(limits, 1));
        let mut decisions = Vec::new();
        under_test.on_event(Time(0), &ControlEvent::Start, &mut decisions);
        assert_eq!(decisions[1].bits_per_second, 2_000_000);

        let faster = play(&mut under_test, 0, 20, 1.0);
        assert!(faster.iter().all(|one| one.reason == ControlReason::LoadHigh), "{faster:?}");
        let reached = under_test.sides.down.rate.rate();
        assert!(reached > 6e6, "{reached}");

        let slower = play(&mut under_test, 10, 80, 1.0);
        let first = slower.iter().find(|one| one.reason == ControlReason::DelayHigh).expect("slower");
        assert!(first.bits_per_second as f64 <= 0.9 * reached * 1.1, "{first:?} after {reached}");

        play(&mut under_test, 20, 20, 1.0);
        assert!(under_test.sides.down.rate.rate() > 3e6);
        let idle = play(&mut under_test, 30, 200, 0.0);
        let last = idle.last().expect("a decision");
        assert_eq!((last.bits_per_second, last.reason), (2_000_000, ControlReason::DelayWithoutLoad));
    }
}
