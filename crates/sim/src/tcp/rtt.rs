//! Round trips and the retransmission timeout: RFC 6298, with the variance as Linux takes it (Sarolahti and
//! Kuznetsov, "Congestion Control in Linux TCP", 2002).
//!
//! A sample is taken with each acknowledgement, so a mean of deviations forgets within a fraction of a round
//! trip. What is added to the timeout is therefore the greatest mean deviation of a round trip: it rises at
//! once, falls by a quarter of the difference each round trip, and never under 200 ms; a sample below the
//! mean moves the deviation by an eighth.

use tidegate_packet::Nanos;

/// Before the first sample (RFC 6298 section 2.1).
const INITIAL: Nanos = Nanos::secs(1);
/// The least that the variance adds.
const FLOOR: Nanos = Nanos::millis(200);
/// The longest timeout, backed off or not.
pub(crate) const CEILING: Nanos = Nanos::secs(120);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rtt {
    /// Smoothed round trip in eighths of ns.
    srtt8: u64,
    /// Mean deviation in quarters of ns.
    dev4: u64,
    /// The greatest of this round trip, and what of it is added to the timeout.
    most4: u64,
    var4: u64,
    /// The round trip ends when what comes before this segment is acknowledged.
    round_end: u32,
    /// The shortest ever.
    pub(crate) min: Option<Nanos>,
}

impl Rtt {
    /// A sample; `una` and `next`: the first segment not acknowledged, and the first not sent.
    pub(crate) fn sample(&mut self, rtt: Nanos, una: u32, next: u32) {
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        if self.srtt8 == 0 {
            self.srtt8 = rtt.0 * 8;
            self.dev4 = rtt.0 * 2;
            self.var4 = self.dev4.max(FLOOR.0);
            (self.most4, self.round_end) = (self.var4, next);
            return;
        }
        let srtt = self.srtt8 / 8;
        let (error, dev) = (rtt.0.abs_diff(srtt), self.dev4 / 4);
        self.srtt8 = self.srtt8 - srtt + rtt.0;
        // A round trip that falls is no reason to wait longer.
        let rise = if rtt.0 < srtt { error.saturating_sub(dev) / 8 } else { error.saturating_sub(dev) };
        self.dev4 = self.dev4 + rise - dev.saturating_sub(error);
        self.most4 = self.most4.max(self.dev4);
        self.var4 = self.var4.max(self.most4);
        debug_assert!(self.var4 >= FLOOR.0, "the variance never falls below its floor");
        debug_assert!(self.min.is_some_and(|min| min <= rtt), "no sample is below the shortest");
        if una > self.round_end {
            self.var4 -= self.var4.saturating_sub(self.most4) / 4;
            (self.most4, self.round_end) = (FLOOR.0, next);
        }
    }

    pub(crate) fn smoothed(&self) -> Nanos {
        Nanos(self.srtt8 / 8)
    }

    /// The timeout, not backed off.
    pub(crate) fn timeout(&self) -> Nanos {
        if self.srtt8 == 0 {
            return INITIAL;
        }
        let timeout = Nanos((self.srtt8 / 8 + self.var4.max(FLOOR.0)).min(CEILING.0));
        debug_assert!(timeout >= FLOOR, "a timeout is at least 200 ms");
        timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A handshake of 400 ms: 800 ms are added, however many samples of one round trip agree; each round trip
    /// takes a quarter of what is above 200 ms.
    #[test]
    fn variance_lasts_for_round_trips_not_for_samples() {
        let mut rtt = Rtt::default();
        rtt.sample(Nanos::millis(400), 0, 10);
        let first = rtt.timeout();
        for una in 1..=10 {
            rtt.sample(Nanos::millis(400), una, 10 + una);
        }
        let same_round = rtt.timeout();
        rtt.sample(Nanos::millis(400), 11, 30);
        let one = rtt.timeout();
        rtt.sample(Nanos::millis(400), 31, 50);
        assert_eq!((first, same_round, one), (Nanos::millis(1200), Nanos::millis(1200), Nanos::millis(1200)));
        assert_eq!(rtt.timeout(), Nanos::millis(1050), "what is above the floor falls by a quarter");
    }

    #[test]
    fn a_jump_up_is_added_at_once_and_a_fall_hardly() {
        let mut rtt = Rtt::default();
        for una in 0..200 {
            rtt.sample(Nanos::millis(20), una, una + 1);
        }
        let calm = rtt.timeout();
        rtt.sample(Nanos::millis(420), 200, 300);
        let up = rtt.timeout();
        let mut down = Rtt::default();
        for una in 0..200 {
            down.sample(Nanos::millis(420), una, una + 1);
        }
        down.sample(Nanos::millis(20), 200, 300);
        assert!(calm < Nanos::millis(221) && up > Nanos::millis(460), "{calm:?} {up:?}");
        assert!(down.timeout() < Nanos::millis(580), "{:?}", down.timeout());
    }
}
