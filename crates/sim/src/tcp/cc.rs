//! Congestion control: how the window grows and what a congestion event leaves of it.
//!
//! NewReno: RFC 5681 and RFC 6582, counting acknowledged segments (RFC 3465 with L unlimited). CUBIC: RFC
//! 9438, slow start left early by HyStart (Ha and Rhee 2011). As in a recorded Linux run, a CUBIC flow that
//! has not met congestion yet grows by at least one segment in twenty acknowledged.

use super::scalable::{Scalable, growth};
use tidegate_packet::{Nanos, Time};

/// Which congestion control a sender uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionControl {
    /// RFC 5681, 6582.
    Reno,
    /// RFC 9438 with HyStart: Linux's default.
    Cubic,
    /// CUBIC without HyStart.
    CubicSlowStart,
    /// BBR, first version: paced by a model of the path.
    Bbr,
    /// RFC 8257: gives way in proportion to what is marked.
    Dctcp,
    /// DCTCP for L4S (RFC 9331): ECT(1), paced, and no faster on short paths.
    Prague,
}

impl CongestionControl {
    /// Whether it reduces in proportion to marks, and needs every mark reported.
    pub fn is_scalable(self) -> bool {
        matches!(self, CongestionControl::Dctcp | CongestionControl::Prague)
    }
}

/// Why a window shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A packet was lost, or refused by the own machine.
    Loss,
    /// Something was marked.
    Mark,
}

/// Multiplicative decrease of CUBIC (RFC 9438 section 4.6).
const BETA: f64 = 0.7;
/// CUBIC's aggressiveness in segments per cubic second (RFC 9438 section 5.1).
const C: f64 = 0.4;
/// Growth of CUBIC's estimate of what Reno would have, segments per window (RFC 9438 section 4.3). It stays
/// so when the estimate passes the last maximum: the recorded Linux does not go over to 1 there.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// CUBIC looks at its curve when the window has changed or after this many milliseconds: the recorded windows
/// move so.
const LOOK_MS: u64 = 31;
/// HyStart does not look at windows below this, in segments.
const HYSTART_LOW: u32 = 16;
/// Round trips that HyStart samples at the beginning of a round.
const HYSTART_SAMPLES: u32 = 8;
/// Acknowledgements closer than this belong to one train.
const HYSTART_TRAIN_GAP: Nanos = Nanos::millis(2);
/// What a train may last beside the round trip, of which half is then allowed: for senders that send in
/// lumps.
const HYSTART_LUMP: Nanos = Nanos::millis(1);
/// For this long after a reduction, round trips are no measure of the path.
const UNSETTLED: Nanos = Nanos::secs(1);
/// The smallest window a reduction leaves, in segments.
const MIN_WINDOW: u32 = 2;
/// `ssthresh` before the first congestion event.
pub(crate) const NO_THRESHOLD: u32 = u32::MAX >> 1;

/// Window, threshold and the algorithm's memory; all in segments.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    kind: CongestionControl,
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    /// Segments acknowledged that have not yet moved the window.
    credit: u32,
    last_rtt: Nanos,
    cubic: Cubic,
    hystart: HyStart,
    scalable: Scalable,
}

#[derive(Clone, Debug, Default)]
struct Cubic {
    w_max: u32,
    epoch: Option<Time>,
    /// Seconds from the epoch's start to the plateau.
    k: f64,
    origin: u32,
    /// What Reno would have (RFC 9438 W_est), and the segments acknowledged that have not yet moved it.
    w_est: u32,
    w_est_credit: u32,
    /// The result of the last update: after this many acknowledged segments the window grows by one.
    step: u32,
    looked_at: u64,
    looked_cwnd: u32,
    delay_min: Option<Nanos>,
}

#[derive(Clone, Debug, Default)]
struct HyStart {
    found: bool,
    round_start: Time,
    last_ack: Time,
    /// The round ends with this segment; `None` before the first.
    round_end: Option<u32>,
    current: Option<Nanos>,
    samples: u32,
}

/// What one acknowledgement carries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) now: Time,
    /// Segments newly delivered.
    pub(crate) segments: u32,
    /// The first segment not acknowledged, and the first not sent.
    pub(crate) una: u32,
    pub(crate) next: u32,
    /// Round trip of the latest segment acknowledged, when it was sent once.
    pub(crate) rtt: Option<Nanos>,
}

impl Window {
    pub(crate) fn new(kind: CongestionControl, initial: u32) -> Window {
        Window {
            kind,
            cwnd: initial.max(1),
            ssthresh: NO_THRESHOLD,
            credit: 0,
            last_rtt: Nanos(0),
            cubic: Cubic::default(),
            hystart: HyStart::default(),
            scalable: Scalable::default(),
        }
    }

    /// How much of what was sent was marked, for those that go by it.
    pub(crate) fn on_echo(&mut self, acked: &Acked, echo: bool) {
        if self.kind.is_scalable() {
            self.scalable.on_ack(acked.segments, echo, acked.una, acked.next);
        }
    }

    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    fn is_cubic(&self) -> bool {
        matches!(self.kind, CongestionControl::Cubic | CongestionControl::CubicSlowStart)
    }

    /// A round-trip sample, in whatever state the sender is.
    pub(crate) fn on_rtt(&mut self, acked: &Acked) {
        let Some(rtt) = acked.rtt else { return };
        self.last_rtt = rtt;
        if !self.is_cubic() {
            return;
        }
        if self.cubic.epoch.is_some_and(|epoch| acked.now.since(epoch) < UNSETTLED) {
            return;
        }
        let min = self.cubic.delay_min.map_or(rtt, |min| min.min(rtt));
        self.cubic.delay_min = Some(min);
        let watch = self.kind == CongestionControl::Cubic && self.in_slow_start() && !self.hystart.found;
        if watch && self.hystart.leaves(acked, rtt, min, self.cwnd) {
            self.ssthresh = self.cwnd;
        }
    }

    /// Grows the window by what was acknowledged.
    pub(crate) fn grow(&mut self, acked: &Acked) {
        let mut segments = acked.segments;
        if self.in_slow_start() {
            let target = self.cwnd.saturating_add(segments).min(self.ssthresh);
            segments -= target - self.cwnd;
            self.cwnd = target;
            if segments == 0 {
                return;
            }
        }
        let per_step = match self.kind {
            CongestionControl::Prague => {
                let slower = growth(acked.rtt.unwrap_or(self.last_rtt));
                (u64::from(self.cwnd) * 1024 / u64::from(slower)).min(u64::from(u32::MAX >> 1)) as u32
            }
            _ if self.is_cubic() => self.cubic_step(acked, segments),
            _ => self.cwnd,
        };
        debug_assert!(per_step > 0, "a window grows by whole segments");
        if self.credit >= per_step {
            self.credit = 0;
            self.cwnd += 1;
        }
        self.credit += segments;
        if self.credit >= per_step {
            let steps = self.credit / per_step;
            self.credit -= steps * per_step;
            self.cwnd += steps;
        }
        debug_assert!(self.credit < per_step, "what moves the window is spent");
    }

    /// How many acknowledged segments CUBIC wants to see before the window grows by one.
    fn cubic_step(&mut self, acked: &Acked, segments: u32) -> u32 {
        let cubic = &mut self.cubic;
        let cwnd = self.cwnd;
        cubic.w_est_credit += segments;
        let now_ms = acked.now.0 / 1_000_000;
        if cubic.epoch.is_some() && cubic.looked_cwnd == cwnd && now_ms - cubic.looked_at <= LOOK_MS {
            return cubic.step;
        }
        (cubic.looked_at, cubic.looked_cwnd) = (now_ms, cwnd);
        let epoch = match cubic.epoch {
            Some(epoch) => epoch,
            None => cubic.begin(acked.now, cwnd, segments),
        };
        let mut step = match cubic.target(acked.now, epoch) {
            target if target > cwnd => cwnd / (target - cwnd),
            _ => cwnd.saturating_mul(100),
        };
        if cubic.w_max == 0 {
            step = step.min(20);
        }
        let reno = cubic.reno_window(cwnd);
        if reno > cwnd {
            step = step.min(cwnd / (reno - cwnd));
        }
        cubic.step = step.max(2);
        cubic.step
    }

    /// A congestion event: sets the threshold and forgets the growth so far. The window itself is the
    /// caller's.
    pub(crate) fn on_congestion(&mut self, cause: Cause) {
        self.credit = 0;
        if self.kind.is_scalable() && cause == Cause::Mark {
            self.ssthresh = self.scalable.reduced(self.cwnd).max(MIN_WINDOW);
            return;
        }
        if !self.is_cubic() {
            self.ssthresh = (self.cwnd / 2).max(MIN_WINDOW);
            return;
        }
        self.cubic.epoch = None;
        // Fast convergence (RFC 9438 section 4.7).
        self.cubic.w_max =
            if self.cwnd < self.cubic.w_max { (u64::from(self.cwnd) * 17 / 20) as u32 } else { self.cwnd };
        self.ssthresh = ((u64::from(self.cwnd) * 7 / 10) as u32).max(MIN_WINDOW);
        debug_assert!(self.ssthresh <= self.cwnd.max(MIN_WINDOW), "congestion leaves no larger window");
        debug_assert!(self.cubic.w_max <= self.cwnd, "the maximum is what the window was, or less");
    }

    /// A retransmission timeout with so much still in flight: slow start again, with what is known about the
    /// path forgotten: the last maximum, too.
    pub(crate) fn on_timeout(&mut self, in_flight: u32) {
        self.credit = 0;
        self.cwnd = in_flight + 1;
        self.cubic = Cubic::default();
        self.hystart = HyStart::default();
    }

    /// The threshold that a needless reduction is to give back: what it is, or three quarters of the window.
    pub(crate) fn threshold_worth(&self) -> u32 {
        self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4)
    }
}

impl Cubic {
    /// The first acknowledgement after a congestion event: from here to the plateau it takes K seconds.
    fn begin(&mut self, now: Time, cwnd: u32, segments: u32) -> Time {
        (self.w_est, self.w_est_credit) = (cwnd, segments);
        self.origin = self.w_max.max(cwnd);
        self.k = libm::cbrt(f64::from(self.origin - cwnd) / C);
        self.epoch = Some(now);
        now
    }

    /// The window of the curve one round trip from now, in whole segments.
    fn target(&self, now: Time, epoch: Time) -> u32 {
        let ms = now.0 / 1_000_000 - epoch.0 / 1_000_000
            + self.delay_min.unwrap_or_default().0.div_ceil(1_000_000);
        let d = ms as f64 / 1000.0 - self.k;
        let away = (C * d * d * d) as i64;
        (i64::from(self.origin) + away).clamp(0, i64::from(u32::MAX >> 1)) as u32
    }

    /// What Reno would have by now.
    fn reno_window(&mut self, cwnd: u32) -> u32 {
        let per_segment = ((f64::from(cwnd) / ALPHA) as u32).max(1);
        // One is added only when the credit is more than what it costs.
        let steps = self.w_est_credit.saturating_sub(1) / per_segment;
        self.w_est_credit -= steps * per_segment;
        self.w_est += steps;
        self.w_est
    }
}

impl HyStart {
    /// Is it time to leave slow start? By an acknowledgement train as long as half the shortest round trip,
    /// or by round trips that grew.
    fn leaves(&mut self, acked: &Acked, rtt: Nanos, min: Nanos, cwnd: u32) -> bool {
        if self.round_end.is_none_or(|end| acked.una > end) {
            *self = HyStart {
                found: self.found,
                round_start: acked.now,
                last_ack: acked.now,
                round_end: Some(acked.next),
                current: None,
                samples: 0,
            };
        }
        if cwnd < HYSTART_LOW {
            return false;
        }
        if acked.now.since(self.last_ack) <= HYSTART_TRAIN_GAP {
            self.last_ack = acked.now;
            if acked.now.since(self.round_start).0 > (min.0 + HYSTART_LUMP.0) / 2 {
                self.found = true;
            }
        }
        self.current = Some(self.current.map_or(rtt, |current| current.min(rtt)));
        if self.samples < HYSTART_SAMPLES {
            self.samples += 1;
        } else if self.current.unwrap_or(rtt).0 > min.0 + (min.0 / 8).clamp(4_000_000, 16_000_000) {
            self.found = true;
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(now: Nanos, segments: u32) -> Acked {
        Acked { now: Time(now.0), segments, una: 0, next: 0, rtt: None }
    }

    #[test]
    fn reno_grows_by_one_per_window_and_halves() {
        let mut w = Window::new(CongestionControl::Reno, 10);
        w.grow(&ack(Nanos(0), 10));
        let doubled = w.cwnd;
        w.on_congestion(Cause::Loss);
        w.cwnd = w.ssthresh;
        for _ in 0..10 {
            w.grow(&ack(Nanos(0), 1));
        }
        assert_eq!((doubled, w.ssthresh, w.cwnd), (20, 10, 11));
    }

    /// V-W7: after a loss at 100 segments CUBIC is back at 100 after K = 4.217 s, less what its last segment
    /// takes in whole segments: the curve is nearer than one to 100 from 1.357 s before.
    #[test]
    fn cubic_returns_to_its_plateau_after_k() {
        let mut w = Window::new(CongestionControl::Cubic, 100);
        w.on_congestion(Cause::Loss);
        w.cwnd = w.ssthresh;
        let rtt = 100;
        let mut reached = None;
        for round in 0..80 {
            for _ in 0..w.cwnd {
                w.grow(&ack(Nanos::millis(round * rtt), 1));
            }
            if w.cwnd >= 100 && reached.is_none() {
                reached = Some(round * rtt);
            }
        }
        assert!((w.cubic.k - 4.217).abs() < 0.001, "K is {}", w.cubic.k);
        let at = reached.unwrap_or(0);
        assert!((2800..=3000).contains(&at), "reached 100 segments after {at} ms");
        extern crate std;
        std::println!(
            "validation: TCP models | V-W7 | CUBIC: K after a loss at 100 segments, s | 4.217 | {:.3} | \
            within | RFC 9438",
            w.cubic.k
        );
    }
}
