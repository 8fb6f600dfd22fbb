//! The law of PIE (RFC 8033), shared by pie and fq_pie.
//!
//! A probability of dropping is kept such that the queue's delay comes to its target: at every update it
//! moves by the delay's distance from the target and by its growth. Arrivals are dropped with that
//! probability, but not in the first moments of a burst, not from a short queue, and never much earlier or
//! later than on average: the probabilities since the last drop are summed. The delay is that of the packet
//! sent last, or it is taken from the backlog and a measured rate. Times are psched ticks, 64 ns.

use tidegate_packet::{RandomSource, Time};
use tidegate_policy::PieParams;

/// The probability 1: 56 bits.
pub const CERTAIN: u64 = u64::MAX >> 8;
/// Ticks per second.
const PER_SECOND: u64 = 15_625_000;
/// How long after an idle phase nothing is dropped: 150 ms.
const BURST_TICKS: u64 = 150_000_000 >> 6;
/// A delay that requests more: 250 ms.
const LONG_TICKS: u64 = 250_000_000 >> 6;
/// Bytes that a measurement of the rate spans.
const MEASURED_BYTES: u32 = 16_384;
/// Rates are scaled by 2^this.
const RATE_SCALE: u32 = 8;

/// The options in force. Times are in ticks of the packet scheduler (64 ns).
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// The delay to hold, ticks.
    pub target: u64,
    /// Weight of the delay's distance from the target, 1/16 Hz.
    pub alpha: u32,
    /// Weight of the delay's growth, 1/16 Hz.
    pub beta: u32,
    /// Weigh the probability by the packet's length.
    pub bytemode: bool,
    /// The delay is taken from the backlog and a measured rate, not from the packets' own times.
    pub rate_estimator: bool,
}

impl Default for Params {
    fn default() -> Params {
        Params { target: ticks(15_000), alpha: 2, beta: 20, bytemode: false, rate_estimator: false }
    }
}

impl Params {
    /// Takes over the parameters that are given; the others stay.
    pub fn set(&mut self, pie_params: &PieParams) {
        self.target = pie_params.target_us.map_or(self.target, ticks);
        self.alpha = pie_params.alpha.unwrap_or(self.alpha);
        self.beta = pie_params.beta.unwrap_or(self.beta);
        self.bytemode = pie_params.bytemode.unwrap_or(self.bytemode);
        self.rate_estimator = pie_params.rate_estimator.unwrap_or(self.rate_estimator);
    }
}

/// Ticks of a time in µs.
fn ticks(us: u32) -> u64 {
    (u64::from(us) * 1000) >> 6
}

/// What is kept about a queue.
#[derive(Clone, Debug)]
pub struct State {
    /// The probability of a drop.
    pub probability: u64,
    /// The delay, ticks.
    pub delay: u64,
    /// The delay at the last update.
    old_delay: u64,
    burst: u64,
    /// When the last packet was sent, or the measurement began.
    since: Option<u64>,
    /// The probabilities since the last drop.
    sum: u64,
    /// Bytes sent in the present measurement of the rate.
    measured: Option<u32>,
    /// Bytes per tick, scaled.
    rate: u32,
}

impl Default for State {
    fn default() -> State {
        State {
            probability: 0,
            delay: 0,
            old_delay: 0,
            burst: BURST_TICKS,
            since: None,
            sum: 0,
            measured: None,
            rate: 0,
        }
    }
}

impl State {
    /// Begins again with bursts and measurements; the probability stays.
    pub fn restart(&mut self) {
        let fresh = State { probability: self.probability, delay: self.delay, ..State::default() };
        *self = State { old_delay: self.old_delay, ..fresh };
    }

    /// Is an arrival of `len` bytes to be dropped, when `backlog` bytes wait?
    pub fn drops(
        &mut self,
        params: &Params,
        random: &mut dyn RandomSource,
        backlog: u32,
        len: u32,
        mtu: u32,
    ) -> bool {
        if self.burst > 0
            || self.delay < params.target / 2 && self.probability < CERTAIN / 5
            || backlog < 2 * mtu
        {
            return false;
        }
        let probability = if params.bytemode && len <= mtu {
            u64::from(len) * (self.probability / u64::from(mtu))
        } else {
            self.probability
        };
        self.sum = if probability == 0 { 0 } else { self.sum.wrapping_add(probability) };
        if self.sum < CERTAIN / 100 * 85 {
            return false;
        }
        if self.sum >= CERTAIN / 2 * 17 {
            return true;
        }
        let drop = random.word() >> 8 < probability;
        if drop {
            self.sum = 0;
        }
        drop
    }

    /// An arrival was dropped.
    pub fn dropped(&mut self) {
        self.sum = 0;
    }

    /// A packet of `len` bytes that came at `stamp` was sent; `backlog` bytes are left.
    pub fn sent(&mut self, params: &Params, now: Time, stamp: u64, len: u32, backlog: u32) {
        let now = now.psched();
        let since_last = if params.rate_estimator {
            match self.measure(now, len, backlog) {
                Some(span) => span,
                None => return,
            }
        } else {
            self.delay = if backlog == 0 { 0 } else { now.wrapping_sub(stamp) };
            let before = self.since.replace(now);
            before.map_or(0, |before| now - before)
        };
        self.burst = self.burst.saturating_sub(since_last);
    }

    /// Takes a sent packet into the measurement of the rate; returns how long the measurement took when this
    /// one ends it.
    fn measure(&mut self, now: u64, len: u32, backlog: u32) -> Option<u64> {
        if backlog >= MEASURED_BYTES && self.measured.is_none() {
            (self.since, self.measured) = (Some(now), Some(0));
        }
        let bytes = self.measured.as_mut()?;
        *bytes += len;
        if *bytes < MEASURED_BYTES {
            return None;
        }
        let span = now - self.since.unwrap_or(now);
        if span == 0 {
            return None;
        }
        let rate = (u64::from(*bytes << RATE_SCALE) / span) as u32;
        self.rate = if self.rate == 0 { rate } else { self.rate - (self.rate >> 3) + (rate >> 3) };
        if backlog < MEASURED_BYTES {
            self.measured = None;
        } else {
            (self.since, self.measured) = (Some(now), Some(0));
        }
        Some(span)
    }

    /// The update: moves the probability. `backlog` bytes wait.
    pub fn update(&mut self, params: &Params, backlog: u32) {
        let (delay, old) = if params.rate_estimator {
            let delay = (backlog << RATE_SCALE).checked_div(self.rate).unwrap_or(0);
            (u64::from(delay), self.delay)
        } else {
            (self.delay, self.old_delay)
        };
        // The backlog is too short to estimate a delay from: the probability must not fall because of that.
        let mut may_sink = delay != 0 || backlog == 0;
        if !self.adjust(params, delay, old) {
            may_sink = false;
        }
        if delay == 0 && old == 0 && may_sink {
            self.probability -= self.probability / 64;
        }
        (self.delay, self.old_delay) = (delay, delay);
        let low = params.target / 2;
        let measured = !params.rate_estimator || self.rate > 0;
        if delay < low && old < low && self.probability == 0 && measured {
            self.restart();
        }
    }

    /// Moves the probability by the delay; returns whether it stayed within bounds.
    fn adjust(&mut self, params: &Params, delay: u64, old: u64) -> bool {
        let gain = |weight: u32| (u64::from(weight) * (CERTAIN / PER_SECOND)) >> 4;
        let (mut alpha, mut beta) = (gain(params.alpha), gain(params.beta));
        // The smaller the probability, the smaller the steps.
        if self.probability < CERTAIN / 10 {
            (alpha, beta) = (alpha >> 1, beta >> 1);
            let mut part = 100;
            while self.probability < CERTAIN / part && part <= 1_000_000 {
                (alpha, beta) = (alpha >> 2, beta >> 2);
                part *= 10;
            }
        }
        let times = |gain: u64, span: u64| (gain as i64).wrapping_mul(span as i64);
        let mut change = times(alpha, delay.wrapping_sub(params.target));
        change = change.wrapping_add(times(beta, delay.wrapping_sub(old)));
        let before = self.probability;
        let two_percent = (CERTAIN / 100 * 2) as i64;
        if change > (CERTAIN / 50) as i64 && before >= CERTAIN / 10 {
            change = two_percent;
        }
        if delay > LONG_TICKS {
            change = change.wrapping_add((CERTAIN / 50) as i64);
        }
        self.probability = before.wrapping_add_signed(change);
        if change > 0 {
            if self.probability < before {
                self.probability = CERTAIN;
                return false;
            }
        } else if self.probability > before {
            self.probability = 0;
        }
        true
    }

    /// The measured rate, bytes per second.
    pub fn rate(&self) -> u32 {
        ((u64::from(self.rate) * PER_SECOND) >> RATE_SCALE) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use tidegate_packet::Seeded;

    const PARAMS: Params =
        Params { target: 15_000_000 >> 6, alpha: 2, beta: 20, bytemode: false, rate_estimator: false };

    fn busy(probability: u64) -> State {
        State { probability, delay: 20_000_000 >> 6, burst: 0, ..State::default() }
    }

    /// V-E3. RFC 8033, 5.1: no drop comes before the probabilities since the last sum to 0.85, none is
    /// missing when they come to 8.5.
    #[test]
    fn drops_are_neither_too_close_nor_too_far_apart() {
        let (mut state, mut random) = (busy(CERTAIN / 100), Seeded::new(3));
        let (mut gaps, mut gap) = (Vec::new(), 0);
        for _ in 0..200_000 {
            gap += 1;
            if state.drops(&PARAMS, &mut random, 100_000, 1000, 1514) {
                state.dropped();
                gaps.push(core::mem::take(&mut gap));
            }
        }
        let mean = gaps.iter().sum::<u32>() as f64 / gaps.len() as f64;
        assert!(gaps.iter().all(|gap| (85..=851).contains(gap)), "{gaps:?}");
        assert!((mean / 184.1 - 1.0).abs() <= 0.03, "84 packets of grace and 100 of chance, not {mean}");
        extern crate std;
        std::println!(
            "validation: Queueing theory and hashing | V-E3 | PIE: mean gap between drops, p = 0.01 | 184.1 \
            ± 3 %, 85 to 851 | {mean:.1} | within | RFC 8033"
        );
    }

    #[test]
    fn short_queues_bursts_and_short_delays_are_spared() {
        let drops =
            |state: State, backlog| state.clone().drops(&PARAMS, &mut Seeded::new(1), backlog, 1000, 1514);
        let certain = || State { sum: CERTAIN / 2 * 17, ..busy(CERTAIN / 6) };
        let spared = [
            drops(certain(), 3027),
            drops(State { burst: 1, ..certain() }, 100_000),
            drops(State { delay: 100, ..certain() }, 100_000),
        ];
        assert_eq!((spared, drops(certain(), 3028)), ([false; 3], true));
    }

    /// While nothing waits the probability sinks by a 64th at each update, whatever the weights; while the
    /// delay is not known, or there is one, it does not.
    #[test]
    fn an_idle_queue_forgets_slowly() {
        let params = Params { alpha: 0, beta: 0, ..PARAMS };
        let after = |delay: u64, old_delay: u64, backlog: u32| {
            let mut state = State { delay, old_delay, ..busy(CERTAIN / 5) };
            state.update(&params, backlog);
            CERTAIN / 5 - state.probability
        };
        assert_eq!(after(0, 0, 0), CERTAIN / 5 / 64);
        assert_eq!([after(1, 0, 0), after(0, 1, 0), after(0, 0, 1000)], [0, 0, 0]);
    }

    /// The steps of the probability: by its own size, at most 2 per cent at once, and 2 more when the delay
    /// is long.
    #[test]
    fn updates_move_the_probability_by_delay_and_growth() {
        let after = |probability: u64, delay_ms: u64, old_ms: u64| {
            let ticks = |ms: u64| (ms * 1_000_000) >> 6;
            let mut state = State { delay: ticks(delay_ms), old_delay: ticks(old_ms), ..busy(probability) };
            state.update(&PARAMS, 100_000);
            (state.probability as f64 - probability as f64) / CERTAIN as f64
        };
        let near = |change: f64, wanted: f64| (change - wanted).abs() < 1e-6;
        // 2/16 Hz times 5 ms, and 20/16 Hz times 10 ms; a sixteenth of a half of that at 0.05 per cent.
        assert!(near(after(CERTAIN / 5, 20, 20), 0.000_625));
        assert!(near(after(CERTAIN / 5, 20, 10), 0.013_125));
        assert!(near(after(CERTAIN / 2000, 20, 10), 0.013_125 / 32.0));
        assert!(near(after(CERTAIN / 5, 90, 20), 0.02));
        assert!(near(after(CERTAIN / 5, 260, 20), 0.04));
        assert!(near(after(CERTAIN / 5, 0, 0), 0.0 - 0.001_875));
        assert!(near(after(CERTAIN, 260, 260), 0.04), "it may pass 1, as Linux lets it");
    }

    #[test]
    fn a_rate_is_measured_over_sixteen_kilobytes() {
        let params = Params { rate_estimator: true, ..PARAMS };
        let mut state = State::default();
        // 1000 bytes a millisecond.
        for n in 0..40 {
            state.sent(&params, Time(n * 1_000_000), 0, 1000, 20_000);
        }
        assert!((990_000..1_100_000).contains(&state.rate()), "{}", state.rate());
        state.update(&params, 30_000);
        assert!((27..31).contains(&((state.delay << 6) / 1_000_000)), "{}", state.delay);
    }
}
