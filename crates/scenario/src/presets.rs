//! Lines that vary, by name: generated from stated models, because recordings with a licence to ship them are
//! rare. The same name and seed give the same line.
//!
//! The models are simple on purpose. What they are for: to try a policy, or a controller, on a line that
//! changes as those lines do. What they are not: a prediction of a particular line; for that, record it.

use tidegate_packet::{Nanos, Seeded};
use tidegate_sim::Trace;

/// A line that varies, by name.
#[derive(Clone, Copy, Debug)]
pub struct LinePreset {
    /// What users call it.
    pub name: &'static str,
    /// What it is like, in one line.
    pub about: &'static str,
    /// The model, with its figures and where they are from.
    pub model: &'static str,
    /// What waits before it at most, up and down, as time at its mean rate.
    pub buffers: [Nanos; 2],
    generate: fn(&mut Seeded) -> [Vec<Step>; 2],
}

/// Both directions of a line that varies. After five minutes each begins again.
#[derive(Clone, Debug)]
pub struct VaryingLine {
    /// Towards the provider.
    pub up: Trace,
    /// From the provider.
    pub down: Trace,
}

/// What a direction is like for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    held: Nanos,
    /// Bit/s; 0: an outage.
    rate: f64,
    /// One way.
    delay: Nanos,
    /// The share of packets that are lost.
    loss: f64,
}

/// How long a generated line is before it begins again.
const LENGTH: Nanos = Nanos::secs(300);
const MEGABIT: f64 = 1e6;
const SECOND: f64 = 1e9;

/// One direction of a preset, by its name: `lte/down`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PresetDirection {
    preset: &'static LinePreset,
    is_up: bool,
}

impl PresetDirection {
    pub(crate) fn named(name: &str) -> Option<PresetDirection> {
        let (preset, way) = name.rsplit_once('/')?;
        let is_up = match way {
            "up" => true,
            "down" => false,
            _ => return None,
        };
        Some(PresetDirection { preset: LinePreset::named(preset)?, is_up })
    }

    pub(crate) fn trace(self, seed: u64) -> Trace {
        let VaryingLine { up, down } = self.preset.line(seed);
        if self.is_up { up } else { down }
    }
}

/// All of them.
pub const LINE_PRESETS: [LinePreset; 5] = [
    LinePreset {
        name: "lte",
        about: "a telephone on LTE: 0 to 12 Mbit/s down, 0 to 5 up, changing all the time, with outages",
        model: "log-normal variation about 5 Mbit/s down and 2 up (sigma 0.7, a time constant of 4 s), at most 12 \
                and 5; every 20 s in the mean an outage, 0.6 s in the mean, both ways (both exponential). Delays \
                20 ms up and 15 down. Our own figures: the range and the deep buffers are those published of \
                2010s LTE; buffers of 2 s",
        buffers: [Nanos::secs(2), Nanos::secs(2)],
        generate: lte,
    },
    LinePreset {
        name: "5g-driving",
        about: "5G in a moving car: 400, 120 or 30 Mbit/s down, with interruptions at each change of cell",
        model: "three kinds of cell, exponentially long (12, 10 and 8 s in the mean), medians of 400, 120 and 30 \
                Mbit/s down and 40, 15 and 8 up; within a cell log-normal variation (sigma 0.4, a time constant \
                of 1 s); at each change 50 to 300 ms without service. Delays 8, 12 and 22 ms. Our own figures, \
                chosen after published drive tests, fitted to none of them; buffers of 500 ms",
        buffers: [Nanos::millis(500), Nanos::millis(500)],
        generate: driving,
    },
    LinePreset {
        name: "starlink",
        about: "a satellite line that is reallocated every 15 s: 150 Mbit/s down, 15 up, in the median",
        model: "every 15 s (Starlink's slot: Huston, NANOG 92) another satellite: rate log-normal (sigma 0.35), \
                delay 12 to 30 ms each way, with 100 ms of silence and 2 % of loss for 300 ms between them; \
                within a slot log-normal variation (sigma 0.15, a time constant of 1 s). All figures but the \
                slot are our own; buffers of 200 ms",
        buffers: [Nanos::millis(200), Nanos::millis(200)],
        generate: starlink,
    },
    LinePreset {
        name: "cable-evening",
        about: "a cable line at eight in the evening: of 200/20 Mbit/s the neighbours leave 30 to 100 %",
        model: "the neighbours' use does a slow walk (a time constant of 30 s): 30 to 100 % of 200 Mbit/s are left \
                down, 60 to 100 % of 20 Mbit/s up; delays 5 to 9 ms with it. Our own figures; buffers of 250 ms \
                down and 500 ms up",
        buffers: [Nanos::millis(500), Nanos::millis(250)],
        generate: cable,
    },
    LinePreset {
        name: "dsl-retrain",
        about: "a bad telephone wire: 16/1 Mbit/s, until the modem trains again and comes back slower",
        model: "each 60 s, and exponentially 30 s more, the modem trains again: 25 to 40 s without service, then 60 \
                to 100 % of 16 Mbit/s down and 1 Mbit/s up. Delays 8 ms (interleaved). Our own figures; buffers \
                of 250 ms down and 1 s up",
        buffers: [Nanos::secs(1), Nanos::millis(250)],
        generate: dsl,
    },
];

impl LinePreset {
    /// The one of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static LinePreset> {
        LINE_PRESETS.iter().find(|preset| preset.name == name)
    }

    /// All names, for an error's remedy.
    #[must_use]
    pub fn names() -> String {
        LINE_PRESETS.map(|preset| preset.name).join(", ")
    }

    /// Its line, for this seed.
    ///
    /// ```
    /// use tidegate_scenario::presets::LinePreset;
    ///
    /// let starlink = LinePreset::named("starlink").unwrap().line(1);
    /// let mean = starlink.down.mean_rate().unwrap();
    /// assert!((100_000_000..250_000_000).contains(&mean));
    /// ```
    #[must_use]
    pub fn line(&self, seed: u64) -> VaryingLine {
        let [up, down] = (self.generate)(&mut Seeded::new(seed).fork(0x11e5)).map(|steps| trace(&steps));
        VaryingLine { up, down }
    }
}

/// The steps as a trace, cut at its length.
fn trace(steps: &[Step]) -> Trace {
    let mut left = LENGTH;
    let mut cut: Vec<Step> = Vec::new();
    for step in steps {
        let held = Nanos(step.held.0.min(left.0));
        left = Nanos(left.0 - held.0);
        if held > Nanos(0) {
            cut.push(Step { held, ..*step });
        }
    }
    let rates = cut.iter().map(|step| (step.held, step.rate.max(0.0) as u64));
    let trace =
        Trace::rates(rates).and_then(|trace| trace.with_delays(cut.iter().map(|s| (s.held, s.delay))));
    let losses = cut.iter().map(|step| (step.held, (step.loss * 1e6) as u32));
    let has_losses = cut.iter().any(|step| step.loss > 0.0);
    let trace = trace.and_then(|trace| if has_losses { trace.with_losses(losses) } else { Ok(trace) });
    // The models carry something, for some time: a test has all of them.
    trace.unwrap_or_else(|_| Trace::steady(1_000_000, LENGTH))
}

/// A draw from the normal distribution, nearly: no value is beyond six sigma.
fn normal(random: &mut Seeded) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

/// A draw from an exponential distribution.
fn exponential(random: &mut Seeded, mean: f64) -> f64 {
    -mean * libm::log(1.0 - random.unit())
}

fn between(random: &mut Seeded, low: f64, high: f64) -> f64 {
    low + (high - low) * random.unit()
}

fn seconds(seconds: f64) -> Nanos {
    Nanos((seconds * SECOND) as u64)
}

/// A walk that returns to 0, of variance 1: an autoregressive process of order 1.
struct Walk {
    at: f64,
    keeps: f64,
}

impl Walk {
    /// By steps of so long, with this time constant (both in seconds).
    fn new(random: &mut Seeded, step: f64, constant: f64) -> Walk {
        Walk { at: normal(random), keeps: libm::exp(-step / constant) }
    }

    fn next(&mut self, random: &mut Seeded) -> f64 {
        self.at = self.keeps * self.at + libm::sqrt(1.0 - self.keeps * self.keeps) * normal(random);
        self.at
    }
}

fn lte(random: &mut Seeded) -> [Vec<Step>; 2] {
    const TICK: f64 = 0.1;
    let [mut up, mut down] = [Vec::new(), Vec::new()];
    let mut walks = [Walk::new(random, TICK, 4.0), Walk::new(random, TICK, 4.0)];
    let (mut time, mut outage) = (0.0, exponential(random, 20.0));
    while time < LENGTH.0 as f64 / SECOND {
        let without = if time >= outage { exponential(random, 0.6).max(0.001) } else { 0.0 };
        for (steps, walk, median, most, delay) in [(&mut up, 0, 2.0, 5.0, 20), (&mut down, 1, 5.0, 12.0, 15)]
        {
            let delay = Nanos::millis(delay);
            let rate = (median * libm::exp(0.7 * walks[walk].next(random))).min(most) * MEGABIT;
            steps.push(Step { held: seconds(without), rate: 0.0, delay, loss: 0.0 });
            steps.push(Step { held: seconds(TICK), rate, delay, loss: 0.0 });
        }
        time += without + TICK;
        if without > 0.0 {
            outage = time + exponential(random, 20.0);
        }
    }
    [up, down]
}

fn driving(random: &mut Seeded) -> [Vec<Step>; 2] {
    /// Mean stay in seconds, medians in Mbit/s down and up, delay in ms.
    const CELLS: [(f64, f64, f64, u64); 3] =
        [(12.0, 400.0, 40.0, 8), (10.0, 120.0, 15.0, 12), (8.0, 30.0, 8.0, 22)];
    const TICK: f64 = 0.1;
    let [mut up, mut down] = [Vec::new(), Vec::new()];
    let (mut time, mut cell) = (0.0, 1);
    let mut walks = [Walk::new(random, TICK, 1.0), Walk::new(random, TICK, 1.0)];
    while time < LENGTH.0 as f64 / SECOND {
        let (stay, of_down, of_up, delay) = CELLS[cell];
        let delay = Nanos::millis(delay);
        let ticks = (exponential(random, stay) / TICK) as usize + 1;
        for _ in 0..ticks {
            for (steps, walk, median) in [(&mut up, 0, of_up), (&mut down, 1, of_down)] {
                let rate = median * MEGABIT * libm::exp(0.4 * walks[walk].next(random));
                steps.push(Step { held: seconds(TICK), rate, delay, loss: 0.0 });
            }
        }
        let without = between(random, 0.05, 0.3);
        for steps in [&mut up, &mut down] {
            steps.push(Step { held: seconds(without), rate: 0.0, delay, loss: 0.0 });
        }
        time += ticks as f64 * TICK + without;
        // One of the two others.
        cell = (cell + 1 + usize::from(random.unit() < 0.5)) % CELLS.len();
    }
    [up, down]
}

fn starlink(random: &mut Seeded) -> [Vec<Step>; 2] {
    const TICK: f64 = 0.1;
    /// Of 15 s: 100 ms of silence, 200 ms in which packets are lost, and what is left.
    const TICKS: usize = 150;
    let [mut up, mut down] = [Vec::new(), Vec::new()];
    let mut walks = [Walk::new(random, TICK, 1.0), Walk::new(random, TICK, 1.0)];
    for _ in 0..LENGTH.0 / Nanos::secs(15).0 {
        let slot = libm::exp(0.35 * normal(random));
        let delay = seconds(between(random, 0.012, 0.030));
        for tick in 0..TICKS {
            for (steps, walk, median) in [(&mut up, 0, 15.0), (&mut down, 1, 150.0)] {
                let rate = median * MEGABIT * slot * libm::exp(0.15 * walks[walk].next(random));
                let (rate, loss) = match tick {
                    0 => (0.0, 0.02),
                    1 | 2 => (rate, 0.02),
                    _ => (rate, 0.0),
                };
                steps.push(Step { held: seconds(TICK), rate, delay, loss });
            }
        }
    }
    [up, down]
}

fn cable(random: &mut Seeded) -> [Vec<Step>; 2] {
    const TICK: f64 = 1.0;
    let mut direction = |most: f64, least: f64| {
        let mut walk = Walk::new(random, TICK, 30.0);
        let steps = (0..LENGTH.0 / SECOND as u64).map(|_| {
            // The neighbours' use, from none to all that they may take.
            let use_of_it = (0.5 + 0.25 * walk.next(random)).clamp(0.0, 1.0);
            let rate = most * MEGABIT * (1.0 - (1.0 - least) * use_of_it);
            Step { held: seconds(TICK), rate, delay: seconds(0.005 + 0.004 * use_of_it), loss: 0.0 }
        });
        steps.collect()
    };
    [direction(20.0, 0.6), direction(200.0, 0.3)]
}

fn dsl(random: &mut Seeded) -> [Vec<Step>; 2] {
    let [mut up, mut down] = [Vec::new(), Vec::new()];
    let (mut time, mut share, delay) = (0.0, 1.0, Nanos::millis(8));
    while time < LENGTH.0 as f64 / SECOND {
        let works = 60.0 + exponential(random, 30.0);
        let trains = between(random, 25.0, 40.0);
        for (steps, most) in [(&mut up, 1.0), (&mut down, 16.0)] {
            steps.push(Step { held: seconds(works), rate: most * share * MEGABIT, delay, loss: 0.0 });
            steps.push(Step { held: seconds(trains), rate: 0.0, delay, loss: 0.0 });
        }
        time += works + trains;
        share = between(random, 0.6, 1.0);
    }
    [up, down]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each is as its line says: means within these bounds, in Mbit/s, whatever the seed; the same seed gives
    /// the same line, and another another.
    #[test]
    fn lines_are_what_they_are_called() {
        let bounds = [
            ("lte", [1.4, 3.4], [3.5, 8.5]),
            ("5g-driving", [8.0, 45.0], [60.0, 400.0]),
            ("starlink", [10.0, 22.0], [100.0, 220.0]),
            ("cable-evening", [12.0, 20.0], [60.0, 200.0]),
            ("dsl-retrain", [0.3, 0.9], [5.0, 14.0]),
        ];
        for (name, up, down) in bounds {
            let preset = LinePreset::named(name).unwrap();
            for seed in 0..20 {
                let line = preset.line(seed);
                for (trace, [least, most]) in [(&line.up, up), (&line.down, down)] {
                    let mean = trace.mean_rate().unwrap() as f64 / MEGABIT;
                    assert!((least..=most).contains(&mean), "{name}, seed {seed}: {mean} Mbit/s");
                    assert!(trace.has_delays(), "{name}");
                }
                assert_eq!(line.down, preset.line(seed).down, "{name}");
                assert_ne!(line.down, preset.line(seed + 1).down, "{name}");
            }
        }
        assert_eq!(bounds.len(), LINE_PRESETS.len());
        assert!(LinePreset::named("modem").is_none());
    }

    /// Outages are there: nothing is carried while a DSL modem trains, and at Starlink's changes.
    #[test]
    fn outages_carry_nothing() {
        let silent = |name: &str, step: Nanos| {
            let trace = LinePreset::named(name).unwrap().line(3).down;
            let times = (0..LENGTH.0 / step.0).map(|n| (Nanos(n * step.0), Nanos((n + 1) * step.0)));
            times.filter(|(from, to)| trace.carries(*from, *to) == Some(0)).count()
        };
        let trains = silent("dsl-retrain", Nanos::secs(1));
        assert!((50..150).contains(&trains), "{trains}");
        assert_eq!(silent("starlink", Nanos::millis(100)), 20);
        assert!((20..300).contains(&silent("lte", Nanos::millis(100))));
        assert_eq!(silent("cable-evening", Nanos::secs(1)), 0);
    }
}
