//! How fast a connection delivers, and how fast it sends: the delivery rate of
//! draft-cheng-iccrg-delivery-rate-estimation-00, and the pacer that spreads segments over time.

use alloc::collections::VecDeque;
use tidegate_packet::{Nanos, Time};

/// Segments of a new connection that are not paced, as the recorded Linux runs show.
const UNPACED: u32 = 10;

/// What was known when a segment was sent.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    at: Time,
    /// Segments delivered until then, and when the last of them was.
    delivered: u64,
    delivered_at: Time,
    /// When the first segment of that flight was sent.
    first_sent: Time,
    app_limited: bool,
}

/// One sample of the delivery rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Segments that had been delivered when the sampled one was sent.
    pub(crate) prior_delivered: u64,
    /// Segments delivered since.
    pub(crate) delivered: u64,
    /// The longer of the time they took to send and the time they took to be acknowledged.
    pub(crate) interval: Nanos,
    /// The application did not write enough to fill the path.
    pub(crate) app_limited: bool,
}

/// Stamps of the segments in flight, in the order of their numbers, and the count of what was delivered.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeliveryRate {
    stamps: VecDeque<Stamp>,
    pub(crate) delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    /// Samples are limited by the application until so many are delivered.
    limited_until: u64,
    /// The latest sent of the segments that the acknowledgement at hand reports.
    latest: Option<Stamp>,
}

impl DeliveryRate {
    /// Segment `at`, counted from the oldest not acknowledged, is sent; `idle`: nothing else is in flight.
    pub(crate) fn on_send(&mut self, now: Time, at: usize, idle: bool) {
        if idle {
            self.first_sent = now;
            self.delivered_at = now;
        }
        let stamp = Stamp {
            at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited: self.limited_until > 0,
        };
        match self.stamps.get_mut(at) {
            Some(known) => *known = stamp,
            None => self.stamps.push_back(stamp),
        }
    }

    /// The segment sent last was not sent after all.
    pub(crate) fn take_back(&mut self) {
        self.stamps.pop_back();
    }

    /// Segment `at` was delivered.
    pub(crate) fn on_delivered(&mut self, now: Time, at: usize) {
        let Some(&stamp) = self.stamps.get(at) else { return };
        self.delivered += 1;
        self.delivered_at = now;
        if self.latest.is_none_or(|known| (stamp.delivered, stamp.at) >= (known.delivered, known.at)) {
            self.latest = Some(stamp);
            self.first_sent = stamp.at;
        }
    }

    /// The oldest segment is acknowledged in order, and forgotten; `known`: SACK had reported it.
    pub(crate) fn on_acknowledged(&mut self, now: Time, known: bool) {
        if !known {
            self.on_delivered(now, 0);
        }
        self.stamps.pop_front();
    }

    /// The application has nothing more to send while the path could carry more.
    pub(crate) fn limit(&mut self, in_flight: u32) {
        self.limited_until = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// Is the path not filled because the application writes too little?
    pub(crate) fn is_app_limited(&self) -> bool {
        self.limited_until > 0
    }

    /// The sample of the last acknowledgement. A delivery faster than the shortest round trip gives none.
    pub(crate) fn sample(&mut self, shortest: Nanos) -> Option<Sample> {
        if self.limited_until > 0 && self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        let stamp = self.latest.take()?;
        debug_assert!(stamp.delivered <= self.delivered, "what is delivered is never less");
        debug_assert!(
            stamp.at >= stamp.first_sent && self.delivered_at >= stamp.delivered_at,
            "a sample's time is forward"
        );
        let sending = stamp.at.since(stamp.first_sent);
        let interval = sending.max(self.delivered_at.since(stamp.delivered_at));
        (interval >= shortest && interval.0 > 0).then_some(Sample {
            prior_delivered: stamp.delivered,
            delivered: self.delivered - stamp.delivered,
            interval,
            app_limited: stamp.app_limited,
        })
    }
}

/// Holds segments back so that they leave at a rate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pacer {
    /// The next segment may leave then.
    next: Time,
    sent: u32,
}

impl Pacer {
    /// When the next segment may leave, if that is not now.
    pub(crate) fn wait(&self, now: Time) -> Option<Time> {
        (self.next > now).then_some(self.next)
    }

    /// A segment leaves; `rate` in segments per second. A late sender gets the time back, up to half a gap.
    pub(crate) fn on_send(&mut self, now: Time, rate: f64) {
        self.sent = self.sent.saturating_add(1);
        if self.sent <= UNPACED || rate <= 0.0 {
            return;
        }
        let gap = (1e9 / rate).min(1e9) as u64;
        let late = now.since(self.next).0;
        self.next = now + Nanos(gap - late.min(gap / 2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Ten segments at once, then one per millisecond, each acknowledged after 10 ms.
    #[test]
    fn the_rate_is_that_of_the_slower_side() {
        let mut rate = DeliveryRate::default();
        let at = |ms: u64| Time(0) + Nanos::millis(ms);
        for i in 0..10 {
            rate.on_send(at(0), i, i == 0);
        }
        let mut samples = Vec::new();
        for ms in 10..14 {
            rate.on_acknowledged(at(ms), false);
            samples.push(
                rate.sample(Nanos::millis(10))
                    .map(|s| (s.prior_delivered, s.delivered, s.interval.0 / 1_000_000)),
            );
            rate.on_send(at(ms), 9, false);
        }
        assert_eq!(samples, [Some((0, 1, 10)), Some((0, 2, 11)), Some((0, 3, 12)), Some((0, 4, 13))]);
        assert_eq!(rate.sample(Nanos(0)), None, "nothing was delivered since");
    }

    /// The recorded run: ten at once; after a round trip of rest the second gap is half as long; then whole
    /// gaps.
    #[test]
    fn the_pacer_begins_after_ten_and_gives_back_lost_time() {
        let mut pacer = Pacer::default();
        let rate = 1e9 / 700_000.0;
        for _ in 0..10 {
            assert_eq!(pacer.wait(Time(0)), None);
            pacer.on_send(Time(0), rate);
        }
        let mut now = Time(20_000_000);
        let mut sent = Vec::new();
        for _ in 0..4 {
            now = pacer.wait(now).unwrap_or(now);
            sent.push(now.0 / 1000);
            pacer.on_send(now, rate);
        }
        assert_eq!(sent, [20_000, 20_350, 21_050, 21_750]);
    }
}
