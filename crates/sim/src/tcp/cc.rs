//! Congestion control: how the window grows and what a congestion event leaves of it.
//!
//! NewReno: RFC 5681 and RFC 6582, counting acknowledged segments (RFC 3465 with L unlimited). CUBIC: RFC 9438, slow start
//! left early by HyStart (Ha and Rhee 2011). As in a recorded Linux run, a CUBIC flow that has not met congestion yet grows
//! by at least one segment in twenty acknowledged.

use tidegate_packet::{Span, Time};

/// Which congestion control a sender uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionControl {
    /// RFC 5681, 6582.
    Reno,
    /// RFC 9438 with HyStart: what Linux uses unless told otherwise.
    Cubic,
    /// CUBIC without HyStart.
    CubicSlowStart,
    /// BBR, first version: paced by a model of the path.
    Bbr,
}

/// Multiplicative decrease of CUBIC (RFC 9438 section 4.6).
const BETA: f64 = 0.7;
/// CUBIC's aggressiveness in segments per cubic second (RFC 9438 section 5.1).
const C: f64 = 0.4;
/// Growth of CUBIC's estimate of what Reno would have, segments per window (RFC 9438 section 4.3). It stays so when the
/// estimate passes the last maximum: the recorded Linux does not go over to 1 there.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// HyStart does not look at windows below this, in segments.
const HYSTART_LOW: u32 = 16;
/// Round trips that HyStart samples at the beginning of a round.
const HYSTART_SAMPLES: u32 = 8;
/// Acknowledgements closer than this belong to one train.
const HYSTART_TRAIN_GAP: Span = Span::millis(2);
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
    cubic: Cubic,
    hystart: HyStart,
}

#[derive(Clone, Debug, Default)]
struct Cubic {
    w_max: u32,
    epoch: Option<Time>,
    /// Seconds from the epoch's start to the plateau.
    k: f64,
    origin: u32,
    /// What Reno would have (RFC 9438 W_est).
    w_est: f64,
    delay_min: Option<Span>,
}

#[derive(Clone, Debug, Default)]
struct HyStart {
    found: bool,
    round_start: Time,
    last_ack: Time,
    /// The round ends with this segment; `None` before the first.
    round_end: Option<u32>,
    current: Option<Span>,
    samples: u32,
}

/// What one acknowledgement says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) now: Time,
    /// Segments newly delivered.
    pub(crate) segments: u32,
    /// The first segment not acknowledged, and the first not sent.
    pub(crate) una: u32,
    pub(crate) next: u32,
    /// Round trip of the latest segment acknowledged, when it was sent once.
    pub(crate) rtt: Option<Span>,
}

impl Window {
    pub(crate) fn new(kind: CongestionControl, initial: u32) -> Window {
        Window {
            kind,
            cwnd: initial.max(1),
            ssthresh: NO_THRESHOLD,
            credit: 0,
            cubic: Cubic::default(),
            hystart: HyStart::default(),
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
        if !self.is_cubic() {
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
        let per_step = if self.is_cubic() { self.cubic_step(acked, segments) } else { self.cwnd };
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
    }

    /// How many acknowledged segments CUBIC wants to see before the window grows by one.
    fn cubic_step(&mut self, acked: &Acked, segments: u32) -> u32 {
        let cubic = &mut self.cubic;
        let cwnd = f64::from(self.cwnd);
        let epoch = match cubic.epoch {
            Some(epoch) => epoch,
            None => {
                cubic.w_est = cwnd;
                if self.cwnd < cubic.w_max {
                    cubic.k = libm::cbrt(f64::from(cubic.w_max - self.cwnd) / C);
                    cubic.origin = cubic.w_max;
                } else {
                    cubic.k = 0.0;
                    cubic.origin = self.cwnd;
                }
                cubic.epoch = Some(acked.now);
                acked.now
            }
        };
        let t = (acked.now.since(epoch) + cubic.delay_min.unwrap_or_default()).as_secs_f64();
        let d = t - cubic.k;
        let target = f64::from(cubic.origin) + C * d * d * d;
        let mut step = if target > cwnd { cwnd / (target - cwnd) } else { 100.0 * cwnd };
        if cubic.w_max == 0 {
            step = step.min(20.0);
        }
        cubic.w_est += ALPHA * f64::from(segments) / cwnd;
        // In whole segments, as the recorded runs show: half a segment more makes a difference in small windows.
        let behind = libm::floor(cubic.w_est) - cwnd;
        if behind > 0.0 {
            step = step.min(cwnd / behind);
        }
        step.max(2.0) as u32
    }

    /// A congestion event: sets the threshold and forgets the growth so far. The window itself is the caller's.
    pub(crate) fn on_congestion(&mut self) {
        self.credit = 0;
        if !self.is_cubic() {
            self.ssthresh = (self.cwnd / 2).max(MIN_WINDOW);
            return;
        }
        self.cubic.epoch = None;
        // Fast convergence (RFC 9438 section 4.7).
        self.cubic.w_max =
            if self.cwnd < self.cubic.w_max { (f64::from(self.cwnd) * (1.0 + BETA) / 2.0) as u32 } else { self.cwnd };
        self.ssthresh = ((f64::from(self.cwnd) * BETA) as u32).max(MIN_WINDOW);
    }

    /// A retransmission timeout: slow start again, with what is known of the path forgotten.
    pub(crate) fn on_timeout(&mut self) {
        self.credit = 0;
        self.cwnd = 1;
        self.cubic.epoch = None;
        self.hystart = HyStart::default();
    }
}

impl HyStart {
    /// Is it time to leave slow start? By an acknowledgement train as long as half the shortest round trip, or by round
    /// trips that grew.
    fn leaves(&mut self, acked: &Acked, rtt: Span, min: Span, cwnd: u32) -> bool {
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
            if acked.now.since(self.round_start).0 > min.0 / 2 {
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

    fn ack(now: Span, segments: u32) -> Acked {
        Acked { now: Time(now.0), segments, una: 0, next: 0, rtt: None }
    }

    #[test]
    fn reno_grows_by_one_per_window_and_halves() {
        let mut w = Window::new(CongestionControl::Reno, 10);
        w.grow(&ack(Span(0), 10));
        let doubled = w.cwnd;
        w.on_congestion();
        w.cwnd = w.ssthresh;
        for _ in 0..10 {
            w.grow(&ack(Span(0), 1));
        }
        assert_eq!((doubled, w.ssthresh, w.cwnd), (20, 10, 11));
    }

    /// V-W7: after a loss at 100 segments CUBIC is back at 100 after K = 4.217 s.
    #[test]
    fn cubic_returns_to_its_plateau_after_k() {
        let mut w = Window::new(CongestionControl::Cubic, 100);
        w.on_congestion();
        w.cwnd = w.ssthresh;
        let rtt = 100;
        let mut reached = None;
        for round in 0..80 {
            for _ in 0..w.cwnd {
                w.grow(&ack(Span::millis(round * rtt), 1));
            }
            if w.cwnd >= 99 && reached.is_none() {
                reached = Some(round * rtt);
            }
        }
        // One segment below the plateau: 4.217 s less the cube root of 1/0.4, 1.357 s; then one round trip of leeway.
        let at = reached.unwrap_or(0);
        assert!((2700..=3100).contains(&at), "reached 99 segments after {at} ms");
    }
}
