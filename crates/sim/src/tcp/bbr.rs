//! BBR, first version: the path is modelled by its bandwidth and its shortest round trip, and both window and
//! pace follow the model (Cardwell et al., CACM 2017; draft-cardwell-iccrg-bbr-congestion-control-00; margin,
//! even windows and space for aggregated acknowledgements from its draft -02, as recorded Linux runs show
//! them).
//!
//! Not modelled: the detection of policers.

use super::rate::Sample;
use tidegate_packet::{Nanos, Seeded, Time};

/// Doubles the rate of delivery each round: 2 / ln 2, in the 256ths that Linux counts in.
const HIGH_GAIN: f64 = 739.0 / 256.0;
/// Empties in one round what startup queued.
const DRAIN_GAIN: f64 = 88.0 / 256.0;
/// Window over bandwidth-delay product in the steady state: space for delayed and aggregated
/// acknowledgements.
const WINDOW_GAIN: f64 = 2.0;
/// The paces of a cycle: probe, drain what that queued, cruise.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The pace stays this much below the model, so that queues shrink.
const MARGIN: f64 = 0.99;
/// Rounds that the bandwidth filter remembers.
const FILTER_ROUNDS: u64 = 10;
/// How long a shortest round trip is believed.
const RTT_LIFETIME: Nanos = Nanos::secs(10);
/// How long the window stays at its least to measure a new one.
const PROBE_RTT: Nanos = Nanos::millis(200);
/// The least window, in segments.
const MIN_WINDOW: u32 = 4;
/// The pipe is full when bandwidth did not grow by a quarter in three rounds.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// The longest burst of acknowledgements that the window makes space for, in seconds of bandwidth.
const EXTRA_SECONDS: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// What is wrong with the connection, as the sender sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LossState {
    #[default]
    None,
    Recovery,
    Timeout,
}

/// What an acknowledgement shows about delivery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub(crate) now: Time,
    /// Segments delivered so far, and by this acknowledgement; segments it showed to be lost.
    pub(crate) total: u64,
    pub(crate) segments: u32,
    pub(crate) lost: u32,
    /// Segments in flight after and before it.
    pub(crate) in_flight: u32,
    pub(crate) prior_in_flight: u32,
    /// When the pacer lets the next segment go.
    pub(crate) departs: Time,
    pub(crate) rtt: Option<Nanos>,
    pub(crate) sample: Option<Sample>,
    pub(crate) problem: LossState,
}

/// The greatest of the values of the last ten rounds.
#[derive(Clone, Debug, Default)]
struct RoundMax {
    values: [f64; FILTER_ROUNDS as usize],
    round: u64,
}

impl RoundMax {
    fn update(&mut self, round: u64, value: f64) {
        while self.round < round {
            self.round =
                if round - self.round > FILTER_ROUNDS { round - FILTER_ROUNDS } else { self.round + 1 };
            self.values[(self.round % FILTER_ROUNDS) as usize] = 0.0;
        }
        let slot = &mut self.values[(round % FILTER_ROUNDS) as usize];
        *slot = slot.max(value);
    }

    fn get(&self) -> f64 {
        self.values.iter().fold(0.0, |most, &value| most.max(value))
    }
}

/// How many more segments are acknowledged in a burst than the bandwidth would deliver.
#[derive(Clone, Debug, Default)]
struct Aggregation {
    since: Time,
    acked: f64,
    extra: RoundMax,
}

impl Aggregation {
    fn update(&mut self, bandwidth: f64, round: u64, window: u32, delivery: &Delivery) {
        // Whole segments in whole microseconds, as the recorded runs show: two that come just in time count
        // one too many.
        let micros = delivery.now.since(self.since).0 / 1000;
        let mut expected = libm::floor(bandwidth * micros as f64 / 1e6);
        if self.acked <= expected {
            (self.acked, self.since, expected) = (0.0, delivery.now, 0.0);
        }
        self.acked += f64::from(delivery.segments);
        self.extra.update(round, (self.acked - expected).min(f64::from(window)));
    }

    fn room(&self, bandwidth: f64) -> f64 {
        self.extra.get().min(bandwidth * EXTRA_SECONDS)
    }
}

/// BBR's model and its state.
#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    random: Seeded,
    mss: u32,
    initial_window: u32,
    mode: Mode,
    pacing_gain: f64,
    /// Segments per second.
    pacing_rate: f64,
    bandwidth: RoundMax,
    round: u64,
    round_started: bool,
    /// The round ends when a segment is delivered that was sent after so many.
    round_end: u64,
    rtt_min: Option<Nanos>,
    rtt_min_at: Time,
    full_bandwidth: f64,
    full_rounds: u32,
    filled: bool,
    phase: usize,
    phase_at: Time,
    probe_until: Option<Time>,
    probe_round_over: bool,
    prior_window: u32,
    problem: LossState,
    /// The first round of recovery sends as much as is delivered.
    conserving: bool,
    restarted: bool,
    aggregation: Aggregation,
}

impl Bbr {
    /// Before the first segment; `rtt`: of the handshake.
    pub(crate) fn new(initial_window: u32, mss: u32, random: Seeded) -> Bbr {
        Bbr {
            random,
            mss,
            initial_window,
            mode: Mode::Startup,
            pacing_gain: HIGH_GAIN,
            pacing_rate: HIGH_GAIN * f64::from(initial_window) / 0.001,
            bandwidth: RoundMax::default(),
            round: 0,
            round_started: false,
            round_end: 0,
            rtt_min: None,
            rtt_min_at: Time(0),
            full_bandwidth: 0.0,
            full_rounds: 0,
            filled: false,
            phase: 0,
            phase_at: Time(0),
            probe_until: None,
            probe_round_over: false,
            prior_window: 0,
            problem: LossState::None,
            conserving: false,
            restarted: false,
            aggregation: Aggregation::default(),
        }
    }

    /// The handshake took so long.
    pub(crate) fn on_handshake(&mut self, now: Time, rtt: Nanos) {
        self.rtt_min = Some(rtt);
        self.rtt_min_at = now;
        let bandwidth = f64::from(self.initial_window) / rtt.as_secs_f64().max(1e-6);
        self.pacing_rate = HIGH_GAIN * bandwidth * MARGIN;
    }

    /// Segments per second.
    pub(crate) fn pacing_rate(&self) -> f64 {
        self.pacing_rate
    }

    /// The sender enters recovery, or meets a timeout, with this window.
    pub(crate) fn on_loss_event(&mut self, window: u32, timeout: bool) {
        self.save_window(window);
        if timeout {
            self.full_bandwidth = 0.0;
            self.round_started = true;
            self.problem = LossState::Timeout;
        }
    }

    /// Sends again after a rest: at the pace of the model at once.
    pub(crate) fn on_restart(&mut self) {
        self.restarted = true;
        if self.mode == Mode::ProbeBandwidth {
            self.set_pace(1.0);
        }
    }

    /// An acknowledgement; returns the new window. `window`: the present one.
    pub(crate) fn on_ack(&mut self, delivery: &Delivery, window: u32) -> u32 {
        self.update_bandwidth(delivery);
        self.aggregation.update(self.bandwidth.get(), self.round, window, delivery);
        self.update_phase(delivery);
        self.look_whether_full(delivery);
        self.look_whether_drained(delivery);
        let restored = self.update_rtt(delivery, window);
        self.set_pace(self.pacing_gain);
        self.window(delivery, restored.unwrap_or(window))
    }

    /// Whether the present sample is useless because this state does not fill the path.
    pub(crate) fn is_probing_rtt(&self) -> bool {
        self.mode == Mode::ProbeRtt
    }

    fn update_bandwidth(&mut self, delivery: &Delivery) {
        self.round_started = false;
        let Some(sample) = delivery.sample else { return };
        if sample.prior_delivered >= self.round_end {
            self.round_end = delivery.total;
            self.round += 1;
            self.round_started = true;
            self.conserving = false;
        }
        let rate = sample.delivered as f64 / sample.interval.as_secs_f64();
        if !sample.app_limited || rate >= self.bandwidth.get() {
            self.bandwidth.update(self.round, rate);
        }
    }

    fn update_phase(&mut self, delivery: &Delivery) {
        if self.mode != Mode::ProbeBandwidth {
            return;
        }
        let full = delivery.now.since(self.phase_at) > self.rtt_min.unwrap_or_default();
        let over = if self.pacing_gain > 1.0 {
            full && (delivery.lost > 0
                || self.by_departure(delivery, delivery.prior_in_flight) >= self.inflight(self.pacing_gain))
        } else if self.pacing_gain < 1.0 {
            full || self.by_departure(delivery, delivery.prior_in_flight) <= self.inflight(1.0)
        } else {
            full
        };
        if over {
            self.next_phase(delivery.now);
        }
    }

    fn next_phase(&mut self, now: Time) {
        self.phase = (self.phase + 1) % CYCLE.len();
        self.phase_at = now;
        self.pacing_gain = CYCLE[self.phase];
    }

    fn look_whether_full(&mut self, delivery: &Delivery) {
        let limited = delivery.sample.is_none_or(|sample| sample.app_limited);
        if self.filled || !self.round_started || limited {
            return;
        }
        let bandwidth = self.bandwidth.get();
        if bandwidth >= self.full_bandwidth * FULL_GROWTH {
            self.full_bandwidth = bandwidth;
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.filled = self.full_rounds >= FULL_ROUNDS;
    }

    fn look_whether_drained(&mut self, delivery: &Delivery) {
        if self.mode == Mode::Startup && self.filled {
            self.mode = Mode::Drain;
            self.pacing_gain = DRAIN_GAIN;
        }
        if self.mode == Mode::Drain && self.by_departure(delivery, delivery.in_flight) <= self.inflight(1.0) {
            self.probe_bandwidth(delivery.now);
        }
    }

    /// Begins a cycle anywhere but where it drains, so that flows do not probe in step.
    fn probe_bandwidth(&mut self, now: Time) {
        self.mode = Mode::ProbeBandwidth;
        self.phase = CYCLE.len() - 1 - (self.random.next() % (CYCLE.len() as u64 - 1)) as usize;
        self.next_phase(now);
    }

    /// The shortest round trip, and the state that measures it again. Tells the window, where that state
    /// ends.
    fn update_rtt(&mut self, delivery: &Delivery, window: u32) -> Option<u32> {
        let now = delivery.now;
        let expired = now > self.rtt_min_at + RTT_LIFETIME;
        if let Some(rtt) = delivery.rtt
            && (expired || self.rtt_min.is_none_or(|min| rtt <= min))
        {
            self.rtt_min = Some(rtt);
            self.rtt_min_at = now;
        }
        if expired && !self.restarted && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.pacing_gain = 1.0;
            self.save_window(window);
            self.probe_until = None;
        }
        if delivery.segments > 0 {
            self.restarted = false;
        }
        if self.mode == Mode::ProbeRtt { self.probe_rtt(delivery, window) } else { None }
    }

    fn probe_rtt(&mut self, delivery: &Delivery, window: u32) -> Option<u32> {
        match self.probe_until {
            None if delivery.in_flight <= MIN_WINDOW => {
                self.probe_until = Some(delivery.now + PROBE_RTT);
                self.probe_round_over = false;
                self.round_end = delivery.total;
            }
            None => {}
            Some(until) => {
                self.probe_round_over |= self.round_started;
                if self.probe_round_over && delivery.now > until {
                    self.rtt_min_at = delivery.now;
                    if self.filled {
                        self.probe_bandwidth(delivery.now);
                    } else {
                        self.mode = Mode::Startup;
                        self.pacing_gain = HIGH_GAIN;
                    }
                    return Some(window.max(self.prior_window));
                }
            }
        }
        None
    }

    fn save_window(&mut self, window: u32) {
        let untouched = self.problem == LossState::None && self.mode != Mode::ProbeRtt;
        self.prior_window = if untouched { window } else { self.prior_window.max(window) };
    }

    fn set_pace(&mut self, gain: f64) {
        let rate = self.bandwidth.get() * gain * MARGIN;
        if self.filled || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Segments that leave together: what fills a millisecond or so, one or two on slow paths.
    fn quantum(&self) -> f64 {
        let bytes = self.pacing_rate * f64::from(self.mss);
        if bytes < 150_000.0 {
            return 1.0;
        }
        libm::floor((bytes / 1024.0).min(65_536.0) / f64::from(self.mss)).max(2.0)
    }

    /// What will be left of `in_flight` when the next segment departs: phases end by that, as recorded runs
    /// show.
    fn by_departure(&self, delivery: &Delivery, in_flight: u32) -> u32 {
        let wait = delivery.departs.since(delivery.now).as_secs_f64();
        in_flight.saturating_sub(libm::floor(self.bandwidth.get() * wait) as u32)
    }

    /// What is in flight when the path delivers at `gain` times the model's bandwidth.
    fn inflight(&self, gain: f64) -> u32 {
        self.budget(gain, 0.0)
    }

    /// What is in flight with space for `extra` segments acknowledged at once, and for what sender and
    /// receiver buffer together.
    fn budget(&self, gain: f64, extra: f64) -> u32 {
        let Some(rtt) = self.rtt_min else { return self.initial_window };
        let product = libm::ceil(self.bandwidth.get() * rtt.as_secs_f64() * gain);
        // Delayed acknowledgements come for two.
        ((product + extra + 3.0 * self.quantum()) as u32).next_multiple_of(2)
    }

    fn window(&mut self, delivery: &Delivery, window: u32) -> u32 {
        let mut window = window;
        if delivery.segments > 0 {
            window = self.modulate_for_loss(delivery, window);
            if !self.conserving {
                window = self.approach(delivery, window);
            }
            window = window.max(MIN_WINDOW);
        }
        if self.mode == Mode::ProbeRtt { window.min(MIN_WINDOW) } else { window }
    }

    /// Grows towards the target, and at once falls to it when the pipe was seen full.
    fn approach(&self, delivery: &Delivery, window: u32) -> u32 {
        let gain = match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBandwidth => WINDOW_GAIN,
            Mode::ProbeRtt => 1.0,
        };
        let extra = if self.filled { libm::floor(self.aggregation.room(self.bandwidth.get())) } else { 0.0 };
        let probes = self.mode == Mode::ProbeBandwidth && self.phase == 0;
        let target = self.budget(gain, extra) + if probes { 2 } else { 0 };
        if self.filled {
            (window + delivery.segments).min(target)
        } else if window < target || delivery.total < u64::from(self.initial_window) {
            window + delivery.segments
        } else {
            window
        }
    }

    /// What recovery makes of the window: its first round sends what is delivered; when it is over all is as
    /// before.
    fn modulate_for_loss(&mut self, delivery: &Delivery, window: u32) -> u32 {
        let mut window = if delivery.lost > 0 { window.saturating_sub(delivery.lost).max(1) } else { window };
        let before = core::mem::replace(&mut self.problem, delivery.problem);
        if delivery.problem == LossState::Recovery && before != LossState::Recovery {
            self.conserving = true;
            self.round_end = delivery.total;
            window = delivery.in_flight + delivery.segments;
        } else if before != LossState::None && delivery.problem == LossState::None {
            self.conserving = false;
            window = window.max(self.prior_window);
        }
        if self.conserving { window.max(delivery.in_flight + delivery.segments) } else { window }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The eight phases of a cycle: one round trip at 5/4 of the bandwidth, one at 3/4, six at it (Cardwell
    /// and others, "BBR: Congestion-Based Congestion Control", 2016). It begins anywhere but where it drains.
    #[test]
    fn a_cycle_probes_drains_and_cruises() {
        let mut firsts = [0; 8];
        for seed in 0..200 {
            let mut bbr = Bbr::new(10, 1448, Seeded::new(seed));
            bbr.probe_bandwidth(Time(0));
            let first = bbr.phase;
            firsts[first] += 1;
            let mut gains = [0.0; 8];
            for _ in 0..8 {
                gains[bbr.phase] = bbr.pacing_gain;
                bbr.next_phase(Time(0));
            }
            assert_eq!((gains, bbr.phase), ([1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], first));
        }
        assert!(firsts[1] == 0 && firsts.iter().filter(|count| **count > 0).count() == 7, "{firsts:?}");
    }

    /// A phase lasts a round trip; the one that probes lasts until it has put more in flight or a packet is
    /// lost, the one that drains ends as soon as what is in flight fits the path.
    #[test]
    fn phases_end_by_time_and_by_what_is_under_way() {
        let over = |phase: usize, ms: u64, under_way: u32, lost: u32| {
            let mut bbr = Bbr::new(10, 1448, Seeded::new(1));
            (bbr.mode, bbr.phase, bbr.pacing_gain) = (Mode::ProbeBandwidth, phase, CYCLE[phase]);
            // 1000 segments a second and 40 ms: 40 fit, 50 at 5/4; 3 bursts of a segment or two are added.
            bbr.rtt_min = Some(Nanos::millis(40));
            bbr.bandwidth.update(0, 1000.0);
            let now = Time(ms * 1_000_000);
            let delivery = Delivery {
                now,
                total: 100,
                segments: 1,
                lost,
                in_flight: under_way,
                prior_in_flight: under_way,
                departs: now,
                rtt: None,
                sample: None,
                problem: LossState::None,
            };
            bbr.update_phase(&delivery);
            bbr.phase != phase
        };
        let fits =
            Bbr { rtt_min: Some(Nanos::millis(40)), ..Bbr::new(10, 1448, Seeded::new(1)) }.initial_window;
        assert_eq!(fits, 10);
        // Cruising: by time alone.
        assert_eq!([(40, 500), (41, 0)].map(|(ms, under_way)| over(2, ms, under_way, 0)), [false, true]);
        // Probing: time, and what is in flight or a loss.
        assert_eq!(
            [over(0, 41, 20, 0), over(0, 41, 200, 0), over(0, 41, 20, 1), over(0, 40, 200, 1)],
            [false, true, true, false]
        );
        // Draining: time, or what is in flight.
        assert_eq!([over(1, 10, 200, 0), over(1, 41, 200, 0), over(1, 10, 40, 0)], [false, true, true]);
    }

    /// The pipe is full when three rounds in a row brought less than a quarter more bandwidth; rounds that
    /// are limited by the application do not count.
    #[test]
    fn three_rounds_without_growth_fill_the_pipe() {
        let filled_after = |bandwidths: &[f64]| {
            let mut bbr = Bbr::new(10, 1448, Seeded::new(1));
            for (round, bandwidth) in (1..).zip(bandwidths) {
                bbr.round_started = true;
                bbr.bandwidth.update(round, *bandwidth);
                bbr.look_whether_full(&Delivery {
                    now: Time(0),
                    total: 0,
                    segments: 1,
                    lost: 0,
                    in_flight: 10,
                    prior_in_flight: 10,
                    departs: Time(0),
                    rtt: None,
                    sample: Some(Sample {
                        delivered: 1,
                        prior_delivered: 0,
                        interval: Nanos::millis(1),
                        app_limited: false,
                    }),
                    problem: LossState::None,
                });
                if bbr.filled {
                    return Some(round);
                }
            }
            None
        };
        assert_eq!(filled_after(&[100.0, 125.0, 157.0, 197.0]), None);
        assert_eq!(filled_after(&[100.0, 124.0, 124.0, 124.0]), Some(4));
        assert_eq!(filled_after(&[100.0, 124.0, 124.0, 125.0, 125.0, 125.0, 125.0]), Some(7));
    }
}
