//! How much delays differ from one probe to the next, whatever the rate: jitter, as of Wi-Fi or of a radio's
//! schedule.
//!
//! A queue grows for a while, and shrinks for a while. Jitter goes up and down with every probe. So what
//! counts is how far a delay is above both its neighbours, or below both: by the nearer of the two. Of
//! independent delays between 0 and J that is J/6 in the mean (in two of three cases the middle one is the
//! highest or the lowest, and then by J/4); of a queue that grows or shrinks it is 0, however fast, but where
//! it turns.

use tidegate_packet::{Nanos, Time};

/// The weight of a probe in the mean: about the last 64 count.
const WEIGHT: f64 = 1.0 / 64.0;
/// The most that one probe counts, ns: an outage is no jitter.
const MOST: i64 = 40_000_000;
/// Probes that are further apart say nothing of each other.
const APART: Nanos = Nanos::millis(500);

/// The jitter of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Jitter {
    last: Option<(Time, i64)>,
    /// From the delay before to the last one, ns.
    rose: i64,
    mean: f64,
}

impl Jitter {
    /// Takes a delay in, ns.
    pub(crate) fn take(&mut self, at: Time, delay: i64) {
        let before = self.last.replace((at, delay));
        let Some((_, before)) = before.filter(|(before, _)| at.since(*before) <= APART) else {
            self.rose = 0;
            return;
        };
        let rises = delay.saturating_sub(before);
        let turns = (rises > 0) != (self.rose > 0) && rises != 0 && self.rose != 0;
        let turn = if turns { rises.saturating_abs().min(self.rose.saturating_abs()).min(MOST) } else { 0 };
        self.mean += WEIGHT * (turn as f64 - self.mean);
        self.rose = rises;
    }

    /// By how much delays differ from their neighbours, ns: a sixth of the range of independent ones.
    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f64 = 1e6;

    /// After delays in milliseconds, one each 40 ms.
    fn after(delays: impl IntoIterator<Item = f64>) -> f64 {
        let mut jitter = Jitter::default();
        for (n, delay) in delays.into_iter().enumerate() {
            jitter.take(Time(40_000_000 * n as u64), (delay * MS) as i64);
        }
        jitter.mean() / MS
    }

    #[test]
    fn of_independent_delays_it_is_a_sixth_of_their_range() {
        // A linear congruential generator (Knuth): the same draws each time.
        let mut state = 1_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let found = after((0..4000).map(|_| 18.0 * draw()));
        assert!((2.2..3.8).contains(&found), "{found}");
    }

    #[test]
    fn of_a_queue_that_grows_and_shrinks_it_is_next_to_nothing() {
        let saw = |n: usize| 4.0 * if n % 40 < 20 { n % 20 } else { 20 - n % 20 } as f64;
        assert!(after((0..400).map(saw)) < 0.3, "{}", after((0..400).map(saw)));
        // An outage of a second, and what waited in it.
        let outage =
            (0..200).map(|n| if n < 100 { 1.0 } else { (1000.0 - 40.0 * (n - 100) as f64).max(1.0) });
        assert!(after(outage) < 0.7);
        assert_eq!(after([5.0; 50]), 0.0);
        // Far apart they are no neighbours.
        let mut jitter = Jitter::default();
        for n in 0..50 {
            jitter.take(Time(1_000_000_000 * n), if n % 2 == 0 { 0 } else { 20_000_000 });
        }
        assert_eq!(jitter.mean(), 0.0);
        // Whatever a clock says, nothing overflows.
        jitter.take(Time(50_000_000_000), i64::MAX);
        jitter.take(Time(50_000_000_001), i64::MIN);
        jitter.take(Time(50_000_000_002), i64::MAX);
        assert!(jitter.mean() <= MOST as f64);
    }
}
