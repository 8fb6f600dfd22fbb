//! Scalable congestion control: the window gives way in proportion to how much is marked.
//!
//! DCTCP: RFC 8257. The share of marked segments is taken once per round trip and smoothed; a round trip with
//! marks shrinks the window by half of that share. Prague (draft-briscoe-iccrg-prague-congestion-control)
//! does the same with ECT(1), paced, and below a round trip of 25 ms it grows as slowly as if the round trip
//! were that long, so that short ways do not starve long ones. Prague's fallback for queues that mark as for
//! RFC 3168 is not modelled.

use tidegate_packet::Nanos;

/// The share 1.
const WHOLE: u32 = 1024;
/// The smoothed share moves by 1/2^this of the difference with each round trip (RFC 8257 section 3.3: g =
/// 1/16).
const SHIFT: u32 = 4;
/// The round trip that Prague's growth is made for.
const REFERENCE: Nanos = Nanos::millis(25);

#[derive(Clone, Debug)]
pub(crate) struct Scalable {
    /// Smoothed share of marked segments, of [`WHOLE`].
    alpha: u32,
    acked: u32,
    marked: u32,
    /// The round trip ends when this segment is acknowledged.
    round_end: u32,
}

impl Default for Scalable {
    /// At first everything counts as marked, so the first mark halves the window (RFC 8257 section 3.3).
    fn default() -> Scalable {
        Scalable { alpha: WHOLE, acked: 0, marked: 0, round_end: 0 }
    }
}

impl Scalable {
    /// So many segments were acknowledged, with or without an echo of a mark; `una` and `next` as in
    /// [`super::cc::Acked`].
    pub(crate) fn on_ack(&mut self, segments: u32, echo: bool, una: u32, next: u32) {
        self.acked += segments;
        if echo {
            self.marked += segments;
        }
        if una <= self.round_end {
            return;
        }
        self.alpha -= (self.alpha >> SHIFT).max(1).min(self.alpha);
        if self.marked > 0 {
            let share = u64::from(self.marked) * u64::from(WHOLE >> SHIFT) / u64::from(self.acked.max(1));
            self.alpha = (self.alpha + share as u32).min(WHOLE);
        }
        (self.acked, self.marked, self.round_end) = (0, 0, next);
    }

    /// What marks leave of a window.
    pub(crate) fn reduced(&self, cwnd: u32) -> u32 {
        cwnd - ((u64::from(cwnd) * u64::from(self.alpha)) >> 11) as u32
    }
}

/// By how much less than one segment per round trip Prague grows: of 1024.
pub(crate) fn growth(rtt: Nanos) -> u32 {
    let part = (rtt.0.min(REFERENCE.0) * 1024 / REFERENCE.0) as u32;
    (part * part / 1024).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8257 section 3.3: alpha = (1 - g) * alpha + g * F once per round trip.
    #[test]
    fn the_share_of_marks_is_smoothed_once_per_round_trip() {
        let mut scalable = Scalable { alpha: 0, ..Scalable::default() };
        for round in 1..=200 {
            for segment in 0..10 {
                scalable.on_ack(1, segment < 3, round * 10 + segment - 9, round * 10);
            }
        }
        // Three of ten; what the integers cut off makes it a little less.
        assert!((280..=308).contains(&scalable.alpha), "{}", scalable.alpha);
        assert_eq!(Scalable::default().reduced(100), 50, "the first mark halves");
        assert!((84..=87).contains(&scalable.reduced(100)));
    }

    #[test]
    fn short_round_trips_grow_as_if_they_were_long() {
        assert_eq!(
            (growth(Nanos::millis(25)), growth(Nanos::millis(100)), growth(Nanos::millis(5))),
            (1024, 1024, 40)
        );
    }
}
