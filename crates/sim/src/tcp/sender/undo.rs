//! Reductions that were needless, and taking them back (RFC 4015).
//!
//! A timeout, or an assumed loss, may have been only late. Three things show it: something arrives after a
//! timeout that was never sent again (F-RTO with SACK, RFC 5682 section 3); the answer echoes a timestamp
//! from before the first retransmission (Eifel, RFC 3522); or every retransmission is reported to have come
//! twice (RFC 3708). The oracle's runs show each of them.

use super::reduction::Undo;
use super::{EVER, LOST, Sender, State};
use crate::tcp::receiver::AckSegment;

impl Sender {
    /// A reduction begins that may turn out to be needless: before window and threshold change.
    pub(super) fn remember(&mut self, threshold: Option<u32>) {
        self.undo = Undo {
            marker: Some(self.una),
            open: Some(self.retrans_out).filter(|&out| out > 0),
            window: self.window.cwnd,
            threshold,
            first: self.undo.first,
        };
    }

    /// Nothing is being repaired and nothing that was sent again is out: the next retransmission is a first
    /// one.
    pub(super) fn forget_resent(&mut self) {
        let out = self.retrans_out > 0 || self.segs.front().is_some_and(|head| head.flags & EVER != 0);
        if !out && matches!(self.state, State::Open | State::Reduced) {
            self.undo.first = None;
        }
    }

    /// One begins that nothing takes back.
    pub(super) fn remember_nothing(&mut self) {
        self.undo = Undo { first: self.undo.first, ..Undo::default() };
    }

    /// Undoes the reduction. `found`: segments assumed lost are not.
    fn take_back(&mut self, found: bool) {
        if found {
            for seg in &mut self.segs {
                seg.flags &= !LOST;
            }
            self.lost_out = 0;
            // What is overdue all the same is found again.
            self.scan = self.una;
        }
        if let (Some(threshold), None) = (self.undo.threshold, &self.model) {
            self.window.cwnd = self.window.cwnd.max(self.undo.window);
            if threshold > self.window.ssthresh {
                self.window.ssthresh = threshold;
                self.send_cwr = false;
            }
        }
        self.undo.marker = None;
        self.undone += 1;
    }

    /// A recovery ends: it may have been needless.
    pub(super) fn check_recovery_undo(&mut self, ack: &AckSegment) -> bool {
        let needless = self.undo.is_late(ack) || self.undo.all_twice();
        if needless {
            self.take_back(false);
        }
        needless
    }

    /// In a recovery, or when one is over: every retransmission was reported to have come twice.
    pub(super) fn check_duplicate_sacks(&mut self) {
        if matches!(self.state, State::Open | State::Recovery) && self.undo.all_twice() {
            self.take_back(false);
            self.state = State::Open;
        }
    }

    /// More is acknowledged in a recovery that is not over, by what was sent before the first retransmission:
    /// that was late, and so, it may be, is the rest. While a retransmission is out nothing else is assumed
    /// lost or sent again, and when none is, the reduction is undone. Returns whether losses are left alone
    /// until then.
    pub(super) fn check_partial_ack(&mut self, ack: &AckSegment) -> bool {
        if !self.undo.is_late(ack) {
            return false;
        }
        self.reordered = true;
        if self.retrans_out > 0 {
            self.only_new = true;
            return true;
        }
        self.take_back(true);
        self.state = State::Open;
        false
    }

    /// After a timeout: what an acknowledgement shows about it. `fresh`: it reports something sent before the
    /// timeout and never again; `sacked`: SACK reports something new. Returns whether the timeout was
    /// spurious.
    pub(super) fn check_timeout_undo(
        &mut self,
        ack: &AckSegment,
        advanced: bool,
        fresh: bool,
        sacked: bool,
    ) -> bool {
        let late = advanced && (self.undo.is_late(ack) || self.undo.all_twice());
        if late || self.suspects && fresh {
            self.take_back(true);
            self.suspects = false;
            self.backoff = 0;
            self.state = State::Open;
            return true;
        }
        if !self.suspects {
            return false;
        }
        if self.next > self.high_seq {
            // RFC 5682 section 3.1, step 3a: what was sent since arrives, and of the rest nothing.
            self.suspects = !sacked;
        } else if advanced && self.una < self.high_seq {
            // Step 2b (RFC 5682): the acknowledgement of new data decides, so that is sent instead of what is
            // assumed lost.
            self.high_seq = self.next;
            self.prefer_new = true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::cc::CongestionControl;
    use crate::tcp::clock::stamp;
    use crate::tcp::receiver::MAX_SACK;
    use crate::tcp::sender::Config;
    use tidegate_packet::{Nanos, Seeded, Time};

    const MS: u64 = 1_000_000;

    /// Ten segments are out since 50 ms, the timeout was at `at`, and the first was sent again.
    fn after_timeout() -> (Sender, Time) {
        let config = Config {
            control: CongestionControl::Reno,
            initial_window: 10,
            receive_window: 1000,
            send_memory: 4 << 20,
            total: 12,
            ecn: false,
            mss: 1448,
            pacing: false,
        };
        let mut sender = Sender::new(config, Seeded::new(1));
        sender.on_handshake(Time(50 * MS), Nanos::millis(50));
        while sender.poll(Time(50 * MS), true).is_some() {}
        while sender.timeouts == 0 {
            let due = sender.timeout().expect("a timer runs");
            sender.on_timeout(due);
            while let Some(segment) = sender.poll(due, true) {
                if segment.again && sender.timeouts == 1 {
                    assert_eq!((segment.seq, sender.window.cwnd), (0, 1 + sender.in_flight() - 1));
                    return (sender, due);
                }
            }
        }
        unreachable!("the timeout sends the first segment again");
    }

    fn answer(ack: u32, blocks: &[(u32, u32)], echo: Time) -> AckSegment {
        let mut sack = [(0, 0); MAX_SACK];
        sack[..blocks.len()].copy_from_slice(blocks);
        AckSegment { ack, sack, blocks: blocks.len() as u8, echo: stamp(echo), ..AckSegment::default() }
    }

    /// Eifel: the answer echoes what was sent before the timeout.
    #[test]
    fn a_late_answer_takes_the_timeout_back() {
        let (mut sender, at) = after_timeout();
        sender.on_ack(at + Nanos::millis(1), &answer(1, &[], Time(50 * MS)));
        let resent =
            core::iter::from_fn(|| sender.poll(at + Nanos::millis(1), true)).filter(|one| one.again).count();
        assert_eq!((sender.undone, sender.state, resent), (1, State::Open, 0));
        assert!(sender.window.cwnd >= 10, "{}", sender.window.cwnd);
    }

    /// An acknowledgement of the retransmission itself decides nothing, nor does a timestamp of the same
    /// millisecond: new data go first, and if then something arrives that was never retransmitted, the
    /// timeout was spurious (F-RTO, RFC 5682).
    #[test]
    fn what_was_never_sent_again_arrives() {
        let (mut sender, at) = after_timeout();
        sender.on_ack(at + Nanos::millis(60), &answer(1, &[], at));
        let new = sender.poll(at + Nanos::millis(60), true).map(|one| one.again);
        let before = (sender.undone, sender.state);
        sender.on_ack(at + Nanos::millis(61), &answer(2, &[], at));
        assert_eq!(
            (new, before, sender.undone, sender.state),
            (Some(false), (0, State::Loss), 1, State::Open)
        );
    }

    /// Only what was sent since the timeout arrives: it was needed, and the rest is sent again.
    #[test]
    fn only_new_data_arrive() {
        let (mut sender, at) = after_timeout();
        sender.on_ack(at + Nanos::millis(60), &answer(1, &[], at));
        while sender.poll(at + Nanos::millis(60), true).is_some() {}
        let high = sender.next;
        sender.on_ack(at + Nanos::millis(120), &answer(1, &[(high - 1, high)], at));
        let next = sender.poll(at + Nanos::millis(120), true).map(|one| (one.seq, one.again));
        assert_eq!((sender.undone, next), (0, Some((1, true))));
    }

    /// Ten segments are out since 50 ms; at 100 ms these are reported, and what they leave out is sent again.
    fn in_recovery(blocks: &[(u32, u32)]) -> (Sender, Time) {
        let at = Time(100 * MS);
        let (mut sender, _) = after_timeout_of(10);
        sender.on_ack(at, &answer(0, blocks, Time(50 * MS)));
        while sender.poll(at, true).is_some() {}
        assert_eq!(sender.state, State::Recovery);
        (sender, at)
    }

    /// A sender with so many segments out since 50 ms.
    fn after_timeout_of(window: u32) -> (Sender, Time) {
        let config = Config {
            control: CongestionControl::Reno,
            initial_window: window,
            receive_window: 1000,
            send_memory: 4 << 20,
            total: 100,
            ecn: false,
            mss: 1448,
            pacing: false,
        };
        let mut sender = Sender::new(config, Seeded::new(1));
        sender.on_handshake(Time(50 * MS), Nanos::millis(50));
        while sender.poll(Time(50 * MS), true).is_some() {}
        (sender, Time(50 * MS))
    }

    /// Eifel before the recovery is over (RFC 4015): `tests/data/late.csv` has what the oracle does with a
    /// packet 30 ms late.
    #[test]
    fn what_was_late_ends_a_recovery_at_once() {
        let (mut sender, at) = in_recovery(&[(1, 6)]);
        let reduced = sender.window.ssthresh;
        sender.on_ack(at + Nanos::millis(10), &answer(6, &[], Time(50 * MS)));
        assert!(reduced < 10 && sender.window.ssthresh > 10 && sender.window.cwnd >= 10, "{reduced}");
        assert_eq!((sender.undone, sender.state, sender.reordered), (1, State::Open, true));
    }

    /// With a second retransmission out, nothing is taken back yet, and nothing more is sent again.
    #[test]
    fn a_retransmission_that_is_out_is_waited_for() {
        let (mut sender, at) = in_recovery(&[(3, 8), (1, 2)]);
        while sender.retrans_out < 2 {
            sender.window.cwnd += 1;
            assert!(sender.poll(at, true).is_some());
        }
        sender.on_ack(at + Nanos::millis(10), &answer(2, &[(3, 8)], Time(50 * MS)));
        let again =
            core::iter::from_fn(|| sender.poll(at + Nanos::millis(10), true)).filter(|one| one.again).count();
        let before = (sender.undone, sender.state, again);
        sender.on_ack(at + Nanos::millis(20), &answer(8, &[], Time(50 * MS)));
        assert_eq!((before, sender.undone, sender.state), ((0, State::Recovery, 0), 1, State::Open));
    }

    /// A recovery that begins where another ends, with a retransmission of that still out, knows when that
    /// was sent: its answer is not late (the oracle's flows through fq_codel do this all the time).
    #[test]
    fn the_first_retransmission_is_the_first_of_all_that_are_out() {
        let (mut sender, at) = in_recovery(&[(1, 6)]);
        let first = sender.undo.first;
        sender.remember(Some(10));
        let kept = sender.undo.first;
        sender.state = State::Open;
        sender.forget_resent();
        assert_eq!((first, kept, sender.undo.first), (Some(stamp(at)), first, first));
        // It arrives, and with it everything.
        sender.on_ack(at + Nanos::millis(50), &answer(sender.next, &[], at));
        assert_eq!(sender.undo.first, None);
    }

    /// Every retransmission is reported to have come twice (RFC 3708).
    #[test]
    fn all_came_twice() {
        let mut undo = Undo { marker: Some(5), ..Undo::default() };
        let mut seen = [undo.all_twice(); 4];
        undo.on_resend(Time(MS));
        undo.on_resend(Time(MS));
        // The first was no part of it.
        for (seen, seq) in seen[1..].iter_mut().zip([4, 5, 6]) {
            undo.on_twice(seq);
            *seen = undo.all_twice();
        }
        assert_eq!(seen, [false, false, false, true]);
    }
}
