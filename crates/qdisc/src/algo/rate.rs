//! The rate estimator (`estimator` on tc's command line): how fast a qdisc or class sent lately.
//!
//! Every interval, of 2^n quarter seconds, what was sent in it becomes a rate, and the average moves by
//! 1/2^ewma of its distance to that rate. Averages are scaled by 2^8.

use tidegate_packet::{Jiffies, PeriodicTimer, Time};
use tidegate_policy::Estimator;
use tidegate_policy::dump::RateSample;

/// An estimator at work.
#[derive(Clone, Debug)]
pub struct RateEstimator {
    params: Estimator,
    /// When the present interval ends, jiffies; the timer may be a little later.
    ends: i64,
    timer: PeriodicTimer,
    bytes_rate: u64,
    packets_rate: u64,
    last: Sent,
}

/// What was sent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
}

impl RateEstimator {
    /// Begins to measure what has sent so much until `now`; takes over the averages of the estimator before
    /// it.
    pub fn new(
        params: Estimator,
        jiffies: Jiffies,
        now: Time,
        sent: Sent,
        before: Option<&RateEstimator>,
    ) -> RateEstimator {
        let ends = jiffies.at(now) + interval(params, jiffies);
        RateEstimator {
            params,
            ends,
            timer: PeriodicTimer::until(jiffies, now, ends),
            bytes_rate: before.map_or(0, |before| before.bytes_rate),
            packets_rate: before.map_or(0, |before| before.packets_rate),
            last: sent,
        }
    }

    /// Ends the intervals that ended by `now`, when so much had been sent.
    pub fn catch_up(&mut self, now: Time, sent: Sent) {
        let jiffies = self.timer.jiffies();
        loop {
            let planned = self.ends + interval(self.params, jiffies);
            let next = |present: i64| if present >= planned { present + 1 } else { planned };
            let Some(at) = self.timer.fired_until(now, next) else { return };
            self.ends = next(jiffies.at(at));
            self.end_interval(sent);
        }
    }

    fn end_interval(&mut self, sent: Sent) {
        let (scale, weight) = (10 - u32::from(self.params.interval_log), u32::from(self.params.ewma_log));
        let moved = |average: u64, before: u64, sent: u64| {
            let rate = sent.wrapping_sub(before) << scale;
            average.wrapping_add(rate >> weight).wrapping_sub(average >> weight)
        };
        self.bytes_rate = moved(self.bytes_rate, self.last.bytes, sent.bytes);
        self.packets_rate = moved(self.packets_rate, self.last.packets, sent.packets);
        self.last = sent;
    }

    /// The averages, in bytes and packets per second.
    pub fn sample(&self) -> RateSample {
        RateSample { bytes: self.bytes_rate >> 8, packets: self.packets_rate >> 8 }
    }
}

/// An interval in jiffies.
fn interval(params: Estimator, jiffies: Jiffies) -> i64 {
    i64::from(jiffies.hz / 4) << params.interval_log
}
