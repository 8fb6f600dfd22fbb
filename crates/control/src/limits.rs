//! Limits that are found by observation, for who does not know what a line carries at its best and worst.
//!
//! Principles. A second of full load without a queue shows a rate that the line carries, so the highest rate
//! may be a quarter above it: no more than a step beyond what was carried in fact. The lowest rate that the
//! controller set under load is one that it needed, and half of that leaves room for a worse day. A second at
//! the lowest rate in which the queue stays, and less comes out of the line than that, shows that the line
//! carries less still. One second may be chance: five of an hour count. Limits become wider as soon as that
//! is seen, and narrower only after a day, since lines have hours. Hours are those in which the controller
//! runs: no clock is needed that knows the time of day, and hours in which it did not run show nothing.

use crate::controller::RateLimits;
use crate::controller::{ControlEvent, PerDirection, RateController, RateDecision, RateDirection};
use crate::queue::QueueEstimator;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use tidegate_packet::{Nanos, Time};

/// Whole hours that are remembered, beside the one that runs: a day.
pub const LEARNED_HOURS: usize = 24;
/// The most bytes of a record that is read.
pub const MAX_RECORD_BYTES: usize = 16 << 10;
/// Seconds of an hour.
const HOUR: u32 = 3600;
/// So many seconds of an hour must show a rate.
const SHOWN: usize = 5;
/// The highest rate is so many times what was carried at most, and the lowest, where it becomes narrower,
/// this share of the lowest that was needed.
const ABOVE: f64 = 1.25;
const BELOW: f64 = 0.5;
/// A rate is the lowest if it is at most so many times that; the line carries less if it is below this share
/// of it. What is below half of it may as well be a light load.
const AT_LEAST: f64 = 1.02;
const CARRIES_LESS: f64 = 0.95;
const LIGHT: f64 = 0.5;
/// Below this a full frame takes a fifth of a second, bit/s: no limit is learned to be lower.
const LOWEST: u64 = 64_000;
/// A shorter queue than this, and than so many full frames take, is none, seconds.
const NONE: f64 = 0.008;
const FRAMES: f64 = 2.0;
const FRAME_BITS: f64 = 1514.0 * 8.0;
/// What a second is judged by: so many readings at least, and this share of them alike.
const READINGS: u32 = 5;
const MOST_ALIKE: f64 = 0.9;
/// Load is this share of the rate, or more than two full frames that wait.
const LOADED: f64 = 0.85;
const WAITS: u64 = 2 * 1514;
/// Limits that differ by less are not changed.
const WORTH: f64 = 0.05;
const SECOND: f64 = 1e9;
/// What a record begins with: the number changes when a line changes its meaning.
const HEAD: &str = "tidegate-limits 1";
/// No line is as fast, bit/s.
const FASTEST: u64 = 1_000_000_000_000;

/// What an hour showed of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct HourSeen {
    /// Seconds of it that are over, and those of load among them.
    seconds: u32,
    loaded: u32,
    /// The highest rates that were carried without a queue, highest first, bit/s; and the lowest that were
    /// needed.
    high: Vec<u64>,
    low: Vec<u64>,
}

impl HourSeen {
    /// Keeps the first few of a list in order.
    fn keep(list: &mut Vec<u64>, rate: u64, is_before: impl Fn(u64, u64) -> bool) {
        let at = list.iter().position(|other| is_before(rate, *other)).unwrap_or(list.len());
        list.insert(at, rate);
        list.truncate(SHOWN);
    }

    /// What five seconds showed.
    fn shown(list: &[u64]) -> Option<u64> {
        list.get(SHOWN - 1).copied()
    }
}

/// What was observed of one direction, the last hour last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Observed(VecDeque<HourSeen>);

impl Observed {
    /// The hour that runs.
    fn hour(&mut self) -> &mut HourSeen {
        if self.0.back().is_none_or(|hour| hour.seconds >= HOUR) {
            if self.0.len() > LEARNED_HOURS {
                self.0.pop_front();
            }
            self.0.push_back(HourSeen::default());
        }
        let last = self.0.len() - 1;
        &mut self.0[last]
    }

    /// Lets seconds pass.
    fn pass(&mut self, mut seconds: u32) {
        // More than that at once leaves nothing of what was before.
        seconds = seconds.min((LEARNED_HOURS as u32 + 1) * HOUR);
        while seconds > 0 {
            let hour = self.hour();
            let now = seconds.min(HOUR - hour.seconds);
            hour.seconds += now;
            seconds -= now;
        }
    }

    fn seconds(&self) -> u32 {
        self.0.iter().map(|hour| hour.seconds).sum()
    }

    /// The highest rate that was carried, and the lowest.
    fn extremes(&self) -> (Option<u64>, Option<u64>) {
        let high = self.0.iter().filter_map(|hour| HourSeen::shown(&hour.high)).max();
        (high, self.0.iter().filter_map(|hour| HourSeen::shown(&hour.low)).min())
    }
}

/// A record that cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLimitRecord {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub why: String,
}

impl fmt::Display for BadLimitRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl core::error::Error for BadLimitRecord {}

/// What was found of one direction's line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LearnedRates {
    /// Seconds of observation, 25 hours at most.
    pub seconds: u32,
    /// The highest rate that was carried without a queue, bit/s; `None`: no load has shown one.
    pub high: Option<u64>,
    /// The lowest that was needed under load.
    pub low: Option<u64>,
}

impl LearnedRates {
    /// Was it observed for a whole day?
    #[must_use]
    pub fn is_whole_day(&self) -> bool {
        self.seconds >= LEARNED_HOURS as u32 * HOUR
    }
}

/// Which limits are to be learned; those that are given are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LearnsLimits {
    /// The lowest rates.
    pub least: PerDirection<bool>,
    /// The highest.
    pub most: PerDirection<bool>,
}

impl LearnsLimits {
    /// Is there one?
    #[must_use]
    pub fn any(&self) -> bool {
        self.least.up || self.least.down || self.most.up || self.most.down
    }
}

/// What was observed of a line, as it is remembered from run to run.
///
/// ```
/// use tidegate_control::LearnedLimits;
///
/// let text = "tidegate-limits 1\nupload 3600 60 high 9000000 9000000 8900000 8800000 8000000 low -\n";
/// let learned = LearnedLimits::read(text).unwrap();
/// assert_eq!(learned.rates().up.high, Some(8_000_000));
/// assert_eq!(learned.text(), text);
/// assert!(LearnedLimits::read("upload 1").is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LearnedLimits {
    observed: PerDirection<Observed>,
}

impl LearnedLimits {
    /// Reads a record: a line for each hour, the last hour last.
    ///
    /// # Errors
    /// What is no record, with its line.
    pub fn read(text: &str) -> Result<LearnedLimits, BadLimitRecord> {
        let bad = |line: usize, why: &str| BadLimitRecord { line, why: why.into() };
        if text.len() > MAX_RECORD_BYTES {
            return Err(bad(1, "it is longer than any record"));
        }
        let mut lines = (1..).zip(text.lines());
        if lines.next().is_none_or(|(_, head)| head != HEAD) {
            return Err(bad(1, "it does not begin with `tidegate-limits 1`"));
        }
        let mut learned = LearnedLimits::default();
        for (number, line) in lines {
            let mut words = line.split(' ');
            let direction = match words.next() {
                Some("upload") => RateDirection::Up,
                Some("download") => RateDirection::Down,
                _ => return Err(bad(number, "it begins with neither `upload` nor `download`")),
            };
            let hour = hour(&mut words).map_err(|why| bad(number, why))?;
            let hours = &mut learned.observed[direction].0;
            if hours.len() > LEARNED_HOURS {
                return Err(bad(number, "there are more than 25 hours"));
            }
            if hours.back().is_some_and(|before| before.seconds < HOUR) {
                return Err(bad(number, "the hour before is not over"));
            }
            hours.push_back(hour);
        }
        Ok(learned)
    }

    /// The record.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{HEAD}\n");
        for direction in RateDirection::BOTH {
            for hour in &self.observed[direction].0 {
                text += &format!("{} {} {}", direction.word(), hour.seconds, hour.loaded);
                for (name, list) in [("high", &hour.high), ("low", &hour.low)] {
                    text += &format!(" {name}");
                    list.iter().for_each(|rate| text += &format!(" {rate}"));
                    if list.is_empty() {
                        text += " -";
                    }
                }
                text.push('\n');
            }
        }
        text
    }

    /// What was found.
    #[must_use]
    pub fn rates(&self) -> PerDirection<LearnedRates> {
        PerDirection::of(|direction| {
            let observed = &self.observed[direction];
            let (high, low) = observed.extremes();
            LearnedRates { seconds: observed.seconds(), high, low }
        })
    }

    /// The limits by what was found, where those that were assumed are to be learned: wider as soon as that
    /// is seen, narrower after a day. The base rate stays, and stays between them.
    #[must_use]
    pub fn limits(&self, assumed: RateLimits, learns: LearnsLimits) -> RateLimits {
        let (mut limits, rates) = (assumed, self.rates());
        for direction in RateDirection::BOTH {
            let (found, base) = (rates[direction], assumed.base[direction]);
            let is_whole_day = found.is_whole_day();
            if let Some(high) = found.high.filter(|_| learns.most[direction]) {
                let most = (high as f64 * ABOVE) as u64;
                let before = if is_whole_day { base } else { assumed.most[direction] };
                limits.most[direction] = most.max(before);
            }
            if let Some(low) = found.low.filter(|_| learns.least[direction]) {
                let assumed = assumed.least[direction];
                let wider = low.clamp(LOWEST.min(assumed), assumed);
                let narrower = if is_whole_day { (low as f64 * BELOW) as u64 } else { 0 };
                limits.least[direction] = wider.max(narrower.min(base));
            }
        }
        limits
    }

    /// Lets time pass in which nothing was seen.
    fn pass(&mut self, seconds: u32) {
        self.observed.up.pass(seconds);
        self.observed.down.pass(seconds);
    }

    /// A second is over in which this rate, bit/s, was carried without a queue.
    fn carried(&mut self, direction: RateDirection, rate: f64) {
        let rate = (rate as u64).clamp(1, FASTEST);
        HourSeen::keep(&mut self.observed[direction].hour().high, rate, |one, other| one > other);
    }

    /// A second is over in which no more than this rate, bit/s, would do.
    fn needed(&mut self, direction: RateDirection, rate: f64) {
        let rate = (rate as u64).clamp(1, FASTEST);
        HourSeen::keep(&mut self.observed[direction].hour().low, rate, |one, other| one < other);
    }
}

/// The hour of a line.
fn hour<'w>(words: &mut impl Iterator<Item = &'w str>) -> Result<HourSeen, &'static str> {
    let number = |word: Option<&str>| word.and_then(|word| word.parse::<u32>().ok());
    let (Some(seconds), Some(loaded)) = (number(words.next()), number(words.next())) else {
        return Err("seconds, and those of load, are two numbers");
    };
    if seconds > HOUR || loaded > seconds {
        return Err("an hour has at most 3600 seconds, and at most as many of load");
    }
    if words.next() != Some("high") {
        return Err("`high` is missing");
    }
    let (mut high, mut low) = (Vec::new(), Vec::new());
    let mut is_low = false;
    let mut count = 0;
    for word in words {
        count += 1;
        if count > 2 * SHOWN + 3 {
            return Err("there are more than five rates");
        }
        match word {
            "low" if !is_low => is_low = true,
            "-" => {}
            word => {
                let rate = word.parse().ok().filter(|rate| (1..=FASTEST).contains(rate));
                let rate: u64 = rate.ok_or("a rate is a number of bit/s, from 1 to 1000000000000")?;
                if is_low { &mut low } else { &mut high }.push(rate);
            }
        }
    }
    if !is_low {
        return Err("`low` is missing");
    }
    if high.len() > SHOWN || low.len() > SHOWN {
        return Err("there are more than five rates");
    }
    if !high.is_sorted_by(|one, other| one >= other) || !low.is_sorted() {
        return Err("rates are not in order");
    }
    Ok(HourSeen { seconds, loaded, high, low })
}

/// The second that runs, of one direction.
#[derive(Clone, Copy, Debug, Default)]
struct ThisSecond {
    readings: u32,
    loaded: u32,
    /// Readings with a queue, and without one.
    queued: u32,
    clear: u32,
    carried: u64,
    /// The sum of the rates that were set.
    rates: f64,
    /// The queue at its first reading, and at its last, seconds.
    queue: Option<(f64, f64)>,
}

/// A controller whose limits are found by observation: it hears what the controller within hears.
pub struct LearningController {
    inner: Box<dyn RateController + Send>,
    assumed: RateLimits,
    learns: LearnsLimits,
    /// The limits in force.
    limits: RateLimits,
    learned: LearnedLimits,
    queue: QueueEstimator,
    rates: PerDirection<f64>,
    second: PerDirection<ThisSecond>,
    began: Time,
    last: Time,
}

impl fmt::Debug for LearningController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LearningController").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl LearningController {
    /// Around a controller with the assumed limits, with what earlier runs found.
    #[must_use]
    pub fn new(
        inner: Box<dyn RateController + Send>,
        assumed: RateLimits,
        learns: LearnsLimits,
        learned: LearnedLimits,
    ) -> LearningController {
        let limits = learned.limits(assumed, learns);
        let mut all = LearningController {
            inner,
            assumed,
            learns,
            limits,
            learned,
            queue: QueueEstimator::default(),
            rates: PerDirection::of(|direction| assumed.base[direction] as f64),
            second: PerDirection::default(),
            began: Time(0),
            last: Time(0),
        };
        if limits != assumed {
            all.inner.limit(limits);
        }
        all
    }

    /// What was found so far.
    #[must_use]
    pub fn learned(&self) -> &LearnedLimits {
        &self.learned
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(&self) -> RateLimits {
        self.limits
    }

    /// Begins again with another controller that has these assumed limits, and keeps what was found.
    pub fn restart(&mut self, inner: Box<dyn RateController + Send>, assumed: RateLimits) {
        let (before, learned) = (self.last, core::mem::take(&mut self.learned));
        let began = self.began;
        *self = LearningController::new(inner, assumed, self.learns, learned);
        // The time since then counts as observed, without load.
        (self.began, self.last) = (began, before);
    }

    /// Takes the limits by what was found, where they differ.
    fn adopt(&mut self) {
        let found = self.learned.limits(self.assumed, self.learns);
        let differs = |one: u64, other: u64| one.abs_diff(other) as f64 > WORTH * one.max(other) as f64;
        let is_other = RateDirection::BOTH.into_iter().any(|direction| {
            differs(found.least[direction], self.limits.least[direction])
                || differs(found.most[direction], self.limits.most[direction])
        });
        if is_other {
            self.limits = found;
            self.inner.limit(found);
        }
    }

    /// Begins, or begins again: the time since then was observed, and there was no load.
    fn starts(&mut self, now: Time) {
        if self.last != Time(0) {
            let passed = now.since(self.began).0 / 1_000_000_000;
            self.learned.pass(u32::try_from(passed).unwrap_or(u32::MAX));
        }
        (self.began, self.last) = (now, now);
    }

    /// Takes a reading of the counters.
    fn read(&mut self, now: Time, counters: &PerDirection<crate::controller::ShaperCounters>) {
        let step = now.since(self.last).0 as f64 / SECOND;
        self.last = now;
        if step <= 0.0 {
            return;
        }
        let loaded = PerDirection::of(|direction| {
            let (of, rate) = (counters[direction], self.rates[direction]);
            of.backlog >= WAITS || of.sent as f64 * 8.0 / step > LOADED * rate
        });
        self.queue.passes(now, self.rates);
        let queue = self.queue.estimate(now, loaded);
        for direction in RateDirection::BOTH {
            let of = &mut self.second[direction];
            of.readings += 1;
            of.carried += match direction {
                RateDirection::Up => counters.up.sent,
                RateDirection::Down => counters.down.arrived,
            };
            let delay = queue.delay[direction] as f64 / SECOND;
            let none = NONE + FRAMES * FRAME_BITS / self.rates[direction].max(1.0);
            of.rates += self.rates[direction];
            of.queue = Some((of.queue.map_or(delay, |(first, _)| first), delay));
            of.loaded += u32::from(loaded[direction]);
            of.queued += u32::from(queue.known && delay > none);
            of.clear += u32::from(queue.known && delay <= none);
        }
        let passed = now.since(self.began);
        if passed >= Nanos::secs(1) {
            self.ends_second(passed);
            self.began = now;
        }
    }

    fn ends_second(&mut self, passed: Nanos) {
        let seconds = passed.0 as f64 / SECOND;
        let whole = u32::try_from(passed.0 / 1_000_000_000).unwrap_or(u32::MAX);
        self.learned.pass(whole);
        for direction in RateDirection::BOTH {
            let of = core::mem::take(&mut self.second[direction]);
            let is_most = |count: u32| f64::from(count) >= MOST_ALIKE * f64::from(of.readings);
            // What was not looked at all the time shows nothing.
            if of.readings < READINGS || seconds >= 2.0 {
                continue;
            }
            let rate = of.rates / f64::from(of.readings);
            let grew = of.queue.map_or(0.0, |(first, last)| (last - first) / seconds);
            let carried = of.carried as f64 * 8.0 / seconds;
            // Of the upload that is what was sent, over the time in which it comes out.
            let carried =
                if direction == RateDirection::Up { carried / (1.0 + grew).max(0.2) } else { carried };
            let is_lowest = rate <= AT_LEAST * self.limits.least[direction] as f64;
            if is_lowest && is_most(of.queued) && (LIGHT * rate..CARRIES_LESS * rate).contains(&carried) {
                self.learned.needed(direction, carried);
                continue;
            }
            if !is_most(of.loaded) {
                continue;
            }
            let hour = self.learned.observed[direction].hour();
            hour.loaded = (hour.loaded + 1).min(hour.seconds);
            self.learned.needed(direction, rate);
            if is_most(of.clear) {
                self.learned.carried(direction, carried);
            }
        }
        self.adopt();
    }
}

impl RateController for LearningController {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn on_event(&mut self, now: Time, event: &ControlEvent, decisions: &mut Vec<RateDecision>) {
        if self.learns.any() {
            match event {
                ControlEvent::Start => self.starts(now),
                ControlEvent::ProbeReply(reply) => self.queue.probe(now, reply),
                ControlEvent::TcpRoundTrip { flow, data, rtt } => {
                    self.queue.round_trip(now, *flow, *data, *rtt);
                }
                ControlEvent::Counters(counters) => self.read(now, counters),
                _ => {}
            }
        }
        let first = decisions.len();
        self.inner.on_event(now, event, decisions);
        for decision in &decisions[first..] {
            self.rates[decision.direction] = decision.bits_per_second as f64;
        }
    }

    fn due(&self) -> Option<Time> {
        self.inner.due()
    }

    fn knows_capacity(&self) -> bool {
        self.inner.knows_capacity()
    }

    fn decides_by_replies(&self) -> bool {
        self.inner.decides_by_replies()
    }

    fn limit(&mut self, limits: RateLimits) {
        self.assumed = limits;
        self.adopt();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{OneWayDelays, ProbeReply, ShaperCounters};
    use crate::fixed::FixedRates;
    use crate::own::{OwnController, OwnSettings};
    use alloc::vec;

    const MBIT: f64 = 1e6;
    const ALL: LearnsLimits = LearnsLimits {
        least: PerDirection { up: true, down: true },
        most: PerDirection { up: true, down: true },
    };

    fn both<T: Copy>(one: T) -> PerDirection<T> {
        PerDirection { up: one, down: one }
    }

    fn assumed() -> RateLimits {
        RateLimits { least: both(400_000), base: both(2_000_000), most: both(4_000_000) }
    }

    /// An uplink: what is sent beyond its capacity waits, and probes see that.
    struct Line {
        controller: LearningController,
        rate: f64,
        waiting: f64,
        now: Time,
    }

    impl Line {
        fn new(inner: Box<dyn RateController + Send>, learned: LearnedLimits) -> Line {
            let controller = LearningController::new(inner, assumed(), ALL, learned);
            let mut line = Line { controller, rate: 0.0, waiting: 0.0, now: Time(1_000_000_000) };
            line.hear(&ControlEvent::Start);
            line
        }

        fn own() -> Line {
            Line::new(Box::new(OwnController::new(OwnSettings::new(assumed()))), LearnedLimits::default())
        }

        fn hear(&mut self, event: &ControlEvent) {
            let mut decisions = Vec::new();
            self.controller.on_event(self.now, event, &mut decisions);
            for decision in decisions.iter().filter(|one| one.direction == RateDirection::Up) {
                self.rate = decision.bits_per_second as f64;
            }
        }

        /// Lets seconds pass at this capacity, bit/s, with a full load.
        fn pass(&mut self, seconds: u32, capacity: f64) {
            for _ in 0..seconds * 20 {
                self.now += Nanos::millis(50);
                let sent = self.rate * 0.05;
                self.waiting = (self.waiting + sent - capacity * 0.05).max(0.0);
                let up = (1e9 * (0.010 + self.waiting / capacity)) as i64;
                let one_way = Some(OneWayDelays { up, down: 10_000_000 });
                let rtt = Nanos(up as u64 + 10_000_000);
                for reflector in 0..2 {
                    let reply = ProbeReply { reflector, sent: self.now, rtt, one_way };
                    self.hear(&ControlEvent::ProbeReply(reply));
                }
                let up = ShaperCounters { sent: (sent / 8.0) as u64, backlog: 30_000, ..Default::default() };
                self.hear(&ControlEvent::Counters(PerDirection { up, down: ShaperCounters::default() }));
            }
        }

        fn limits(&self) -> (u64, u64) {
            let limits = self.controller.limits();
            (limits.least.up, limits.most.up)
        }
    }

    #[test]
    fn the_highest_rate_rises_with_what_the_line_carries_and_no_further() {
        let mut line = Line::own();
        line.pass(20, 3.0 * MBIT);
        assert_eq!(line.limits().1, 4_000_000, "what was assumed is enough");
        line.pass(60, 12.0 * MBIT);
        let (_, most) = line.limits();
        assert!((12_000_000..=15_100_000).contains(&most), "{most}");
        assert!(line.rate > 9.0 * MBIT, "{}", line.rate);
        // Four seconds show nothing.
        let mut line = Line::own();
        line.pass(4, 30.0 * MBIT);
        assert_eq!(line.limits().1, 4_000_000);
    }

    #[test]
    fn the_lowest_rate_falls_to_what_a_bad_line_carries() {
        let mut line = Line::own();
        line.pass(10, 3.0 * MBIT);
        assert_eq!(line.limits().0, 400_000);
        line.pass(60, 0.25 * MBIT);
        let (least, most) = line.limits();
        assert!((64_000..=270_000).contains(&least) && most == 4_000_000, "{least} {most}");
    }

    /// A delay that is not the shaper's drives a controller to its lowest rate, which is carried: that shows
    /// nothing, or limits would fall without end.
    #[test]
    fn the_lowest_rate_is_not_lower_for_being_used() {
        let slow = FixedRates::new(both(400_000));
        let mut line = Line::new(Box::new(slow), LearnedLimits::default());
        line.pass(5, 3.0 * MBIT);
        line.controller.queue = QueueEstimator::default();
        for _ in 0..60 {
            line.waiting = 0.1 * 3.0 * MBIT;
            line.pass(1, 3.0 * MBIT);
        }
        assert_eq!(line.limits(), (400_000, 4_000_000));
    }

    #[test]
    fn limits_become_narrower_after_a_whole_day_only() {
        let mut learned = LearnedLimits::default();
        learned.pass(HOUR);
        for rate in [3.0, 3.2, 3.1, 3.0, 3.0, 3.3] {
            learned.carried(RateDirection::Up, rate * MBIT);
            learned.needed(RateDirection::Up, 0.8 * rate * MBIT);
        }
        let of = |learned: &LearnedLimits| {
            let limits = learned.limits(assumed(), ALL);
            (limits.least.up, limits.most.up)
        };
        assert_eq!(of(&learned), (400_000, 4_000_000));
        learned.pass(22 * HOUR);
        assert_eq!(of(&learned), (400_000, 4_000_000));
        learned.pass(HOUR);
        assert!(learned.rates().up.is_whole_day());
        let narrower = (1_280_000, 3_750_000);
        assert_eq!(of(&learned), narrower, "half of 2.56, and 1.25 times 3.0 Mbit/s");
        learned.pass(HOUR / 2);
        assert_eq!(of(&learned), narrower, "an hour that begins changes nothing");
        // Nothing is known of the download, so nothing of it changes.
        assert_eq!(learned.limits(assumed(), ALL).most.down, 4_000_000);
        // What is given is not changed.
        assert_eq!(learned.limits(assumed(), LearnsLimits::default()), assumed());
        // A day later that hour does not count any more.
        learned.pass(2 * HOUR);
        assert_eq!(of(&learned), (400_000, 4_000_000));
        assert_eq!(learned.rates().up, LearnedRates { seconds: 24 * HOUR + HOUR / 2, high: None, low: None });
    }

    #[test]
    fn the_base_rate_stays_between_the_limits() {
        let mut learned = LearnedLimits::default();
        learned.pass(24 * HOUR);
        for _ in 0..SHOWN {
            learned.carried(RateDirection::Up, MBIT);
            learned.needed(RateDirection::Up, 900.0 * MBIT);
        }
        let limits = learned.limits(assumed(), ALL);
        assert_eq!((limits.least.up, limits.base.up, limits.most.up), (2_000_000, 2_000_000, 2_000_000));
    }

    #[test]
    fn a_record_comes_back_as_it_was_and_a_foreign_one_is_refused_with_its_line() {
        let mut line = Line::own();
        line.pass(20, 9.0 * MBIT);
        let learned = line.controller.learned().clone();
        let text = learned.text();
        assert_eq!(LearnedLimits::read(&text), Ok(learned.clone()), "{text}");
        // The next run begins with what this one found.
        let learned_limits = learned.limits(assumed(), ALL);
        assert!(learned_limits.most.up > 7_000_000, "{learned_limits:?}");
        let next = Line::new(Box::new(FixedRates::new(both(1_000_000))), learned);
        assert_eq!(next.controller.limits(), learned_limits);
        let mut full = LearnedLimits::default();
        full.pass(40 * 24 * HOUR);
        for direction in RateDirection::BOTH {
            for hour in &mut full.observed[direction].0 {
                (hour.loaded, hour.high, hour.low) = (HOUR, vec![FASTEST; SHOWN], vec![FASTEST; SHOWN]);
            }
        }
        assert!(full.text().len() <= MAX_RECORD_BYTES, "{}", full.text().len());
        assert_eq!(LearnedLimits::read(&full.text()), Ok(full));
        let hours = |count: usize| "upload 3600 0 high - low -\n".repeat(count);
        for (text, line, why) in [
            (String::new(), 1, "does not begin"),
            ("tidegate-limits 2\n".into(), 1, "does not begin"),
            (format!("{HEAD}\nsideways 1 1 high - low -\n"), 2, "neither"),
            (format!("{HEAD}\nupload 1\n"), 2, "two numbers"),
            (format!("{HEAD}\nupload 3601 0 high - low -\n"), 2, "at most 3600"),
            (format!("{HEAD}\nupload 5 6 high - low -\n"), 2, "at most"),
            (format!("{HEAD}\nupload 5 5 low -\n"), 2, "`high` is missing"),
            (format!("{HEAD}\nupload 5 5 high 1\n"), 2, "`low` is missing"),
            (format!("{HEAD}\nupload 5 5 high 0 low -\n"), 2, "from 1 to"),
            (format!("{HEAD}\nupload 5 5 high 1 2 low -\n"), 2, "not in order"),
            (format!("{HEAD}\nupload 5 5 high - low 2 1\n"), 2, "not in order"),
            (format!("{HEAD}\nupload 5 5 high 1 1 1 1 1 1 low -\n"), 2, "more than five"),
            (format!("{HEAD}\nupload 5 5 high{} low -\n", " 1".repeat(500)), 2, "more than five"),
            (format!("{HEAD}\n{}", hours(26)), 27, "more than 25"),
            (format!("{HEAD}\nupload 5 5 high - low -\nupload 5 5 high - low -\n"), 3, "is not over"),
            ("x".repeat(MAX_RECORD_BYTES + 1), 1, "longer than any record"),
        ] {
            let found = LearnedLimits::read(&text).expect_err(&text);
            assert!(found.line == line && found.why.contains(why), "{text}: {found}");
        }
        assert!(LearnedLimits::read(&format!("{HEAD}\n{}", hours(25))).is_ok());
    }
}
