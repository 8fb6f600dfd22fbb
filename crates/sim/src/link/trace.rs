//! Links that were recorded: a file of mahimahi's (Netravali et al., USENIX ATC 2015) names the milliseconds
//! at which a line could carry 1,500 bytes, one per line; other recordings name rates, delays and losses, and
//! how long each held. At its end a recording begins again.

mod compose;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use tidegate_packet::{Nanos, RandomSource, Seeded, Time};

/// Bytes that one opportunity carries.
const OPPORTUNITY: u32 = 1500;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u128 = 1_000_000_000;
/// Losses are counted of so many packets.
const MILLION: u32 = 1_000_000;
/// The most opportunities a trace may have: an hour at a gigabit per second is no home link's.
const MAX_OPPORTUNITIES: usize = 20_000_000;
/// The longest recording, and the highest rate: their product is far below what 128 bits hold.
const LONGEST: Nanos = Nanos::secs(31_536_000);
const FASTEST: u64 = 1_000_000_000_000;

/// What a line was like over time: its rate, its delay, its losses, or some of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    capacity: Option<Capacity>,
    delays: Option<Steps<Nanos>>,
    /// Of a million packets.
    losses: Option<Steps<u32>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Capacity {
    /// Milliseconds from its beginning at which the line could carry 1,500 bytes, not falling; the last one
    /// is its length.
    Opportunities(Arc<[u64]>),
    Rates(Arc<Rates>),
}

/// Values, one after the other: when each ends, from the beginning, rising.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Steps<T>(Vec<(Nanos, T)>);

impl<T: Copy + PartialEq> Steps<T> {
    fn new(steps: impl IntoIterator<Item = (Nanos, T)>) -> Result<Steps<T>, (usize, String)> {
        let mut found: Vec<(Nanos, T)> = Vec::new();
        let mut end = Nanos(0);
        for (at, (held, value)) in steps.into_iter().enumerate() {
            if held == Nanos(0) {
                return Err((at, "this held for no time".into()));
            }
            end = Nanos(end.0.saturating_add(held.0));
            if end > LONGEST {
                return Err((at, "this is more than a year of recording".into()));
            }
            match found.last_mut() {
                // The same again is one step.
                Some((until, before)) if *before == value => *until = end,
                _ => found.push((end, value)),
            }
        }
        if found.is_empty() { Err((0, "nothing was recorded".into())) } else { Ok(Steps(found)) }
    }

    fn length(&self) -> Nanos {
        self.0.last().map_or(Nanos(1), |(end, _)| *end)
    }

    /// The value at a time after the beginning.
    fn at(&self, time: Nanos) -> Option<T> {
        let within = time.0 % self.length().0;
        self.0.get(self.0.partition_point(|(end, _)| end.0 <= within)).map(|(_, value)| *value)
    }
}

/// Rates, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rates {
    /// Bits per second.
    steps: Steps<u64>,
    /// Bits that are carried before each of them, and in one round, times 10^9.
    before: Vec<u128>,
    round: u128,
}

impl Trace {
    /// Reads a file of mahimahi's.
    ///
    /// # Errors
    /// The line (from 1), and what is wrong with it.
    pub fn parse(text: &str) -> Result<Trace, (usize, String)> {
        let mut at_ms: Vec<u64> = Vec::new();
        for (line, word) in text.lines().enumerate().map(|(n, line)| (n + 1, line.trim())) {
            if word.is_empty() {
                continue;
            }
            let at = word.parse().map_err(|_| (line, not_a_number(word)))?;
            if at_ms.last().is_some_and(|before| at < *before) {
                return Err((line, format!("{at} ms is before the line above: times may not fall")));
            }
            if at_ms.len() == MAX_OPPORTUNITIES {
                return Err((line, format!("more than {MAX_OPPORTUNITIES} lines")));
            }
            at_ms.push(at);
        }
        match at_ms.last() {
            None => Err((1, "it is empty: one number of milliseconds per line is needed".into())),
            Some(0) => Err((at_ms.len(), "the last time is 0 ms: the trace would have no length".into())),
            Some(_) => Ok(Trace::of(Capacity::Opportunities(at_ms.into()))),
        }
    }

    /// Rates in bits per second, each with how long it held; 0 is an outage.
    ///
    /// # Errors
    /// The number of the step (from 0), and what is wrong with it: one that held for no time, a rate above
    /// 1 Tbit/s, more than a year altogether, or nothing ever carried.
    ///
    /// ```
    /// use tidegate_packet::Nanos;
    /// use tidegate_sim::Trace;
    ///
    /// let trace = Trace::rates([(Nanos::secs(3), 10_000_000), (Nanos::secs(1), 0)]).unwrap();
    /// assert_eq!(trace.mean_rate(), Some(7_500_000));
    /// assert!(Trace::rates([(Nanos::secs(1), 0)]).is_err());
    /// ```
    pub fn rates(steps: impl IntoIterator<Item = (Nanos, u64)>) -> Result<Trace, (usize, String)> {
        let steps = Steps::new(steps)?;
        let (mut round, mut from, mut before) = (0, Nanos(0), Vec::with_capacity(steps.0.len()));
        for (at, (end, rate)) in steps.0.iter().enumerate() {
            if *rate > FASTEST {
                return Err((at, format!("{rate} bit/s is more than {FASTEST}")));
            }
            before.push(round);
            round += u128::from(*rate) * u128::from(end.0 - from.0);
            from = *end;
        }
        if round < SECOND {
            return Err((0, "nothing could be carried at any time".into()));
        }
        Ok(Trace::of(Capacity::Rates(Arc::new(Rates { steps, before, round }))))
    }

    fn of(capacity: Capacity) -> Trace {
        Trace { capacity: Some(capacity), ..Trace::nothing() }
    }

    /// The same line, faster or slower by a factor; delays and losses stay as they are.
    ///
    /// # Errors
    /// Opportunities, which are packets, cannot be scaled; a factor that leaves no rate, or one above 1
    /// Tbit/s.
    pub fn scaled(&self, factor: f64) -> Result<Trace, String> {
        let rates = match &self.capacity {
            None => return Ok(self.clone()),
            Some(Capacity::Opportunities(_)) => {
                return Err("a file of mahimahi's counts packets: its rate cannot be scaled".into());
            }
            Some(Capacity::Rates(rates)) => rates,
        };
        if !(factor.is_finite() && factor > 0.0) {
            return Err(format!("{factor} is no factor of a rate"));
        }
        let mut from = Nanos(0);
        let steps = rates.steps.0.iter().map(|(end, rate)| {
            let held = Nanos(end.0 - from.0);
            from = *end;
            (held, (*rate as f64 * factor) as u64)
        });
        let scaled = Trace::rates(steps).map_err(|(_, why)| why)?;
        Ok(Trace { delays: self.delays.clone(), losses: self.losses.clone(), ..scaled })
    }

    /// A recording of nothing yet: the link stays as it is.
    pub fn nothing() -> Trace {
        Trace { capacity: None, delays: None, losses: None }
    }

    /// The same with delays one way, each with how long it held.
    ///
    /// # Errors
    /// The number of the step (from 0), and what is wrong with it: one that held for no time, more than a
    /// year altogether, or none at all.
    pub fn with_delays(
        self,
        steps: impl IntoIterator<Item = (Nanos, Nanos)>,
    ) -> Result<Trace, (usize, String)> {
        Ok(Trace { delays: Some(Steps::new(steps)?), ..self })
    }

    /// The same with losses, of a million packets, each with how long it held.
    ///
    /// # Errors
    /// As for [`Trace::with_delays`]; more than a million of a million.
    pub fn with_losses(
        self,
        steps: impl IntoIterator<Item = (Nanos, u32)>,
    ) -> Result<Trace, (usize, String)> {
        let losses = Steps::new(steps)?;
        match losses.0.iter().position(|(_, lost)| *lost > MILLION) {
            Some(at) => Err((at, "more than all packets are lost".into())),
            None => Ok(Trace { losses: Some(losses), ..self }),
        }
    }

    /// A steady rate for so long, as a trace.
    pub fn steady(bits_per_second: u64, length: Nanos) -> Trace {
        let length_ms = (length.0 / MILLISECOND).max(1);
        let bits = u64::from(OPPORTUNITY) * 8;
        let count =
            (bits_per_second.saturating_mul(length_ms) / 1000 / bits).clamp(1, MAX_OPPORTUNITIES as u64);
        Trace::of(Capacity::Opportunities((1..=count).map(|n| n * length_ms / count).collect()))
    }

    /// As a file of mahimahi's; `None`: it names no opportunities.
    pub fn to_text(&self) -> Option<String> {
        match &self.capacity {
            Some(Capacity::Opportunities(at_ms)) => Some(at_ms.iter().map(|at| format!("{at}\n")).collect()),
            _ => None,
        }
    }

    /// Its mean rate in bits per second, where it has rates.
    pub fn mean_rate(&self) -> Option<u64> {
        Some(match self.capacity.as_ref()? {
            Capacity::Opportunities(at_ms) => {
                at_ms.len() as u64 * u64::from(OPPORTUNITY) * 8 * 1000 / length_ms(at_ms)
            }
            Capacity::Rates(rates) => (rates.round / u128::from(rates.steps.length().0)) as u64,
        })
    }

    /// Its highest rate in bits per second, where it has rates; of opportunities that of the best 100 ms.
    pub fn highest_rate(&self) -> Option<u64> {
        Some(match self.capacity.as_ref()? {
            Capacity::Opportunities(at_ms) => {
                let within = |n: usize| at_ms.partition_point(|at| *at < at_ms[n] + 100) - n;
                let most = (0..at_ms.len()).map(within).max().unwrap_or(0) as u64;
                most * u64::from(OPPORTUNITY) * 8 * 10
            }
            Capacity::Rates(rates) => rates.steps.0.iter().map(|(_, rate)| *rate).max().unwrap_or(0),
        })
    }

    /// Does it say what the line could carry?
    pub fn has_rates(&self) -> bool {
        self.capacity.is_some()
    }

    /// Does it say how late the line was?
    pub fn has_delays(&self) -> bool {
        self.delays.is_some()
    }

    /// Does it say what was lost?
    pub fn has_losses(&self) -> bool {
        self.losses.is_some()
    }

    /// Bytes that it could carry between two times after its beginning, where it has rates.
    pub fn carries(&self, from: Nanos, to: Nanos) -> Option<u64> {
        let until = |time: Nanos| match self.capacity.as_ref() {
            Some(Capacity::Opportunities(at_ms)) => {
                let (ms, length) = (time.0 / MILLISECOND, length_ms(at_ms));
                let within = at_ms.partition_point(|at| *at <= ms % length) as u64;
                Some((ms / length * at_ms.len() as u64 + within) * u64::from(OPPORTUNITY))
            }
            Some(Capacity::Rates(rates)) => Some((rates.until(time) / (8 * SECOND)) as u64),
            None => None,
        };
        Some(until(to)?.saturating_sub(until(from)?))
    }

    /// The mean of its delays over time, where it has any.
    pub fn mean_delay(&self) -> Option<Nanos> {
        let delays = self.delays.as_ref()?;
        let (mut sum, mut from) = (0, 0);
        for (end, delay) in &delays.0 {
            sum += u128::from(delay.0) * u128::from(end.0 - from);
            from = end.0;
        }
        Some(Nanos((sum / u128::from(delays.length().0)) as u64))
    }
}

fn length_ms(at_ms: &[u64]) -> u64 {
    at_ms.last().copied().unwrap_or(1).max(1)
}

impl Rates {
    /// Bits that are carried until a time after the beginning, times 10^9.
    fn until(&self, time: Nanos) -> u128 {
        let length = self.steps.length().0;
        let (rounds, within) = (time.0 / length, time.0 % length);
        let step = self.steps.0.partition_point(|(end, _)| end.0 <= within);
        let begin = step.checked_sub(1).map_or(0, |before| self.steps.0[before].0.0);
        let now = u128::from(self.steps.0[step].1) * u128::from(within - begin);
        u128::from(rounds) * self.round + self.before[step] + now
    }

    /// When so many bits are through that begin at a time after the beginning.
    fn through(&self, begins: Nanos, bits: u64) -> Nanos {
        let (steps, length) = (&self.steps.0, self.steps.length().0);
        let mut left = u128::from(bits) * SECOND;
        // Whole rounds first: they may carry little.
        let rounds = left.saturating_sub(1) / self.round;
        left -= rounds * self.round;
        let rounds = u64::try_from(rounds).unwrap_or(u64::MAX);
        let mut at = begins.0.saturating_add(rounds.saturating_mul(length));
        let within = begins.0 % length;
        let mut step = steps.partition_point(|(end, _)| end.0 <= within);
        let mut from = within;
        // Less than a round is left: no step comes three times.
        for _ in 0..2 * steps.len() + 1 {
            let (end, rate) = steps[step];
            let room = u128::from(rate) * u128::from(end.0 - from);
            if left <= room {
                let takes = left.div_ceil(u128::from(rate.max(1)));
                return Nanos(at.saturating_add(takes as u64));
            }
            left -= room;
            at = at.saturating_add(end.0 - from);
            (step, from) = if step + 1 == steps.len() { (0, 0) } else { (step + 1, end.0) };
        }
        Nanos(at)
    }
}

/// A trace being used up.
#[derive(Debug)]
pub(crate) struct Replay {
    start: Time,
    pub(super) capacity: Option<CapacityReplay>,
    delays: Option<Steps<Nanos>>,
    losses: Option<Steps<u32>>,
    /// Draws which packets are lost.
    random: Seeded,
}

impl Replay {
    pub(crate) fn new(trace: Trace, start: Time, random: Seeded) -> Replay {
        let capacity = trace.capacity.map(|capacity| match capacity {
            Capacity::Opportunities(at_ms) => CapacityReplay::Opportunities(Opportunities::new(at_ms, start)),
            Capacity::Rates(rates) => CapacityReplay::Rates(RateReplay { rates, start, free: start }),
        });
        Replay { start, capacity, delays: trace.delays, losses: trace.losses, random }
    }

    pub(super) fn varies_delay(&self) -> bool {
        self.delays.is_some()
    }

    /// The delay one way of a packet that is through at this time, where delays were recorded.
    pub(super) fn delay(&self, through: Time) -> Option<Nanos> {
        self.delays.as_ref()?.at(through.since(self.start))
    }

    /// Is a packet lost that is through at this time?
    pub(super) fn is_lost(&mut self, through: Time) -> bool {
        let lost = self.losses.as_ref().and_then(|losses| losses.at(through.since(self.start)));
        lost.is_some_and(|lost| lost > 0 && self.random.below(MILLION) < lost)
    }
}

/// What a line could carry, being used up.
#[derive(Debug)]
pub(super) enum CapacityReplay {
    /// By opportunities.
    Opportunities(Opportunities),
    /// By rates.
    Rates(RateReplay),
}

impl CapacityReplay {
    /// Must a packet wait for its time although nothing is before it?
    pub(super) fn waits_alone(&self) -> bool {
        matches!(self, CapacityReplay::Opportunities(_))
    }

    /// Carries `bytes` that come at `now`, after all that came before: when it begins, and when it is
    /// through.
    pub(super) fn carry(&mut self, now: Time, bytes: u32) -> (Time, Time) {
        match self {
            CapacityReplay::Opportunities(opportunities) => opportunities.carry(now, bytes),
            CapacityReplay::Rates(replay) => replay.carry(now, bytes),
        }
    }
}

/// Rates being used up.
#[derive(Debug)]
pub(super) struct RateReplay {
    rates: Arc<Rates>,
    start: Time,
    /// All before is through then.
    free: Time,
}

impl RateReplay {
    fn carry(&mut self, now: Time, bytes: u32) -> (Time, Time) {
        let begins = self.free.max(now);
        let through = self.rates.through(begins.since(self.start), u64::from(bytes) * 8);
        self.free = self.start + through;
        (begins, self.free)
    }
}

/// Opportunities being used up.
#[derive(Debug)]
pub(super) struct Opportunities {
    at_ms: Arc<[u64]>,
    start: Time,
    /// The round and the entry in it that is used next.
    round: u64,
    entry: usize,
    /// Bytes left in it.
    left: u32,
}

impl Opportunities {
    fn new(at_ms: Arc<[u64]>, start: Time) -> Opportunities {
        Opportunities { at_ms, start, round: 0, entry: 0, left: OPPORTUNITY }
    }

    fn at(&self) -> Time {
        let ms = self.round * length_ms(&self.at_ms) + self.at_ms[self.entry];
        self.start + Nanos(ms * MILLISECOND)
    }

    fn next(&mut self) {
        self.left = OPPORTUNITY;
        self.entry += 1;
        if self.entry == self.at_ms.len() {
            self.entry = 0;
            self.round += 1;
        }
    }

    /// Continues to the first opportunity at or after `now`.
    fn skip(&mut self, now: Time) {
        if self.at() >= now {
            return;
        }
        let since_ms = now.since(self.start).0.div_ceil(MILLISECOND);
        let length = length_ms(&self.at_ms);
        // A time that is a multiple of the length is at the end of a round.
        self.round = since_ms.saturating_sub(1) / length;
        let within = since_ms - self.round * length;
        self.left = OPPORTUNITY;
        self.entry = self.at_ms.partition_point(|&at| at < within);
    }

    fn carry(&mut self, now: Time, mut bytes: u32) -> (Time, Time) {
        self.skip(now);
        let begins = self.at();
        loop {
            let through = self.at();
            let part = bytes.min(self.left);
            bytes -= part;
            self.left -= part;
            if self.left == 0 {
                self.next();
            }
            if bytes == 0 {
                return (begins, through);
            }
        }
    }
}

/// A word that should be a time; what is quoted of it has an end.
fn not_a_number(word: &str) -> String {
    const QUOTED: usize = 60;
    let more = if word.chars().nth(QUOTED).is_some() { "…" } else { "" };
    let shown: String = word.chars().take(QUOTED).collect();
    format!("`{shown}{more}` is not a number of milliseconds")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    #[test]
    fn opportunities_are_used_in_turn_and_begin_again() {
        let trace = Trace::parse("2\n2\n5\n").expect("a trace");
        let mut line = Replay::new(trace, Time(0), Seeded::new(1)).capacity.expect("rates");
        let ms = |time: Time| time.0 / MILLISECOND;
        let mut carry = |now_ms: u64, bytes| {
            let (begins, through) = line.carry(Time(now_ms * MILLISECOND), bytes);
            (ms(begins), ms(through))
        };
        // Two at 2 ms; 750 bytes of the one at 5; that one's rest and half of the next; nothing came for a
        // while.
        let found =
            [carry(0, 1500), carry(0, 1500), carry(0, 750), carry(1, 1500), carry(11, 1500), carry(15, 100)];
        assert_eq!(found, [(2, 2), (2, 2), (5, 5), (5, 7), (12, 12), (15, 15)]);
    }

    #[test]
    fn a_steady_rate_survives_its_file() {
        let trace = Trace::steady(12_000_000, Nanos::secs(1));
        assert_eq!(trace.mean_rate(), Some(12_000_000));
        assert_eq!(trace.to_text().map(|text| Trace::parse(&text)), Some(Ok(trace)));
    }

    #[test]
    fn rates_are_used_in_turn_and_begin_again() {
        // 8 Mbit/s for 2 ms, nothing for 3 ms, 4 Mbit/s for 5 ms: 4,500 bytes a round.
        let ms = |n: u64| Nanos(n * MILLISECOND);
        let steps = [(ms(2), 8_000_000), (ms(3), 0), (ms(5), 4_000_000)];
        let trace = Trace::rates(steps).expect("a trace");
        assert_eq!((trace.mean_rate(), trace.to_text()), (Some(3_600_000), None));
        let carried = |from, to| trace.carries(ms(from), ms(to));
        // Until the outage, in it, over all of a round, and over the end of one.
        assert_eq!(
            [carried(0, 2), carried(2, 5), carried(3, 13), carried(9, 11)],
            [2000, 0, 4500, 1500].map(Some)
        );
        let mut line = Replay::new(trace, Time(0), Seeded::new(1)).capacity.expect("rates");
        let micros = |time: Time| time.0 / 1000;
        let mut carry = |now_us: u64, bytes| {
            let (begins, through) = line.carry(Time(now_us * 1000), bytes);
            (micros(begins), micros(through))
        };
        // 1 ms at 8 Mbit/s; its rest there and half behind the outage; in the outage; a whole round and more,
        // in the second.
        let found = [carry(0, 1000), carry(500, 1500), carry(3000, 500), carry(30_000, 4500), carry(0, 2250)];
        assert_eq!(found, [(0, 1000), (1000, 6000), (6000, 7000), (30_000, 40_000), (40_000, 45_500)]);
        // Hardly anything a round: no search through all of them.
        let slow = Trace::rates([(Nanos::secs(1), 1), (Nanos::secs(1), 0)]).expect("a trace");
        let slow = Replay::new(slow, Time(0), Seeded::new(1)).capacity;
        let (_, through) = slow.expect("rates").carry(Time(0), 1500);
        assert_eq!(through, Time(0) + Nanos::secs(2 * 12_000 - 1));
    }

    #[test]
    fn delays_and_losses_hold_for_their_time() {
        let ms = |n: u64| Nanos(n * MILLISECOND);
        let trace = Trace::nothing().with_delays([(ms(10), ms(20)), (ms(30), ms(60))]).expect("delays");
        let trace = trace.with_losses([(ms(15), 0), (ms(5), MILLION)]).expect("losses");
        assert_eq!((trace.mean_rate(), trace.mean_delay()), (None, Some(ms(50))));
        let mut line = Replay::new(trace, Time(0), Seeded::new(1));
        let at = |n: u64| Time(n * MILLISECOND);
        assert_eq!(
            [0, 9, 10, 39, 40, 50].map(|n| line.delay(at(n))),
            [20, 20, 60, 60, 20, 60].map(|n| Some(ms(n)))
        );
        assert_eq!(
            [0, 14, 15, 19, 20, 35].map(|n| line.is_lost(at(n))),
            [false, false, true, true, false, true]
        );
        assert!(Trace::nothing().with_losses([(ms(1), MILLION + 1)]).is_err());
        assert!(Trace::nothing().with_delays([]).is_err());
    }

    #[test]
    fn rates_are_scaled_and_delays_are_not() {
        let second = Nanos::secs(1);
        let trace = Trace::rates([(second, 8_000_000), (second, 0)]).expect("rates");
        let trace = trace.with_delays([(second, Nanos::millis(7))]).expect("delays");
        let half = trace.scaled(0.5).expect("a factor");
        assert_eq!((half.mean_rate(), half.mean_delay()), (Some(2_000_000), Some(Nanos::millis(7))));
        assert_eq!(half.carries(second, Nanos::secs(2)), Some(0));
        assert!(trace.scaled(0.0).is_err() && trace.scaled(f64::NAN).is_err() && trace.scaled(1e9).is_err());
        assert!(Trace::steady(1_000_000, second).scaled(0.5).is_err());
    }

    #[test]
    fn rates_that_are_none_are_refused() {
        let second = Nanos::secs(1);
        for steps in [
            vec![],
            vec![(second, 0)],
            vec![(Nanos(0), 5)],
            vec![(second, u64::MAX)],
            vec![(Nanos(u64::MAX), 5)],
        ] {
            assert!(Trace::rates(steps).is_err());
        }
    }

    #[test]
    fn invalid_traces_are_reported_with_their_line() {
        let result_of = |text: &str| Trace::parse(text).map(|_| ());
        assert_eq!(result_of("1\nx\n"), Err((2, "`x` is not a number of milliseconds".to_string())));
        assert_eq!(
            result_of("5\n4\n"),
            Err((2, "4 ms is before the line above: times may not fall".to_string()))
        );
        assert!(result_of("").is_err() && result_of("0\n").is_err());
    }
}
