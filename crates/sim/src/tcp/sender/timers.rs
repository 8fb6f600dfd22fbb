//! The retransmission timer (RFC 6298 section 5) and the tail-loss probe (RFC 8985 section 7), which share
//! one: where a probe is due before a timeout, it takes its place.

use super::{PROBE_SLACK, SACKED, Segment, Sender, State, WORST_DELAYED_ACK};
use crate::tcp::clock::timer;
use crate::tcp::rtt::CEILING;
use tidegate_packet::{Nanos, Time};

/// A timeout that is overdue already is taken so much later.
const AT_ONCE: Nanos = Nanos::millis(1);

impl Sender {
    pub(super) fn backed_off(&self) -> Nanos {
        Nanos((self.rtt.timeout().0 << self.backoff).min(CEILING.0))
    }

    /// The timeout counted from when the oldest segment was last sent, as it is where a probe had taken its
    /// place.
    fn due_from_head(&self, now: Time) -> Time {
        let sent = self.segs.front().map_or(now, |head| head.at);
        timer(now, (sent + self.backed_off()).since(now).max(AT_ONCE))
    }

    /// When a probe would be due, if one may be sent. `timeout`: when the timer would run out.
    fn probe_due(&self, now: Time, timeout: Time) -> Option<Time> {
        let calm = match self.state {
            State::Open => self.sacked_out == 0,
            State::Reduced => true,
            State::Recovery | State::Loss => false,
        };
        if !calm || self.rtt.min.is_none() || self.next == self.una {
            return None;
        }
        let slack = if self.next - self.una == 1 { WORST_DELAYED_ACK } else { PROBE_SLACK };
        // Where the timeout would come first, the probe takes its time (RFC 8985 section 7.2).
        Some(timeout.min(timer(now, Nanos(self.rtt.smoothed().0 * 2) + slack)))
    }

    /// Something was acknowledged: both begin again.
    pub(super) fn arm(&mut self, now: Time) {
        let replaced = self.probe_at.take().is_some();
        if self.next == self.una {
            self.rto_at = None;
            return;
        }
        let timeout = timer(now, self.backed_off());
        self.probe_at = self.probe_due(now, timeout);
        self.rto_at =
            Some(if replaced && self.probe_at.is_none() { self.due_from_head(now) } else { timeout });
    }

    /// Segment `seq` was sent, or sent again.
    pub(super) fn arm_for(&mut self, now: Time, seq: u32, again: bool) {
        if again {
            if seq == self.una || self.rto_at.is_none() {
                self.rto_at = Some(timer(now, self.backed_off()));
            }
            return;
        }
        if self.next == self.una + 1 || self.rto_at.is_none() {
            self.rto_at = Some(timer(now, self.backed_off()));
        } else if self.probe_at.is_some() {
            self.rto_at = Some(self.due_from_head(now));
        }
        // A probe is about the last segment: with each new one it is put off.
        let from_head = self.due_from_head(now);
        if let Some(due) = self.probe_due(now, from_head) {
            self.probe_at = Some(due);
        }
    }

    /// A probe (RFC 8985 section 7.3): new data if there is some, otherwise the last segment again. The
    /// timeout counts from now, and there is no second probe until something is acknowledged or sent.
    pub(super) fn send_probe(&mut self, now: Time, may: bool) -> Option<Segment> {
        let segment = if may {
            self.probed = Some((self.next + 1, false));
            self.send_new(now)
        } else if self.next > self.una && self.segs.back().is_some_and(|seg| seg.flags & SACKED == 0) {
            self.probed = Some((self.next, true));
            self.resend(now, self.next - 1)
        } else {
            return None;
        };
        self.probe_at = None;
        self.rto_at = Some(timer(now, self.backed_off()));
        Some(segment)
    }

    /// The time of a probe has come: [`Sender::poll`] sends it. One at a time.
    pub(super) fn probe_is_due(&mut self, now: Time) {
        self.probe_at = None;
        if self.probed.is_some() {
            self.rto_at = Some(self.due_from_head(now));
            return;
        }
        self.probing = true;
        self.rto_at = Some(timer(now, self.backed_off()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::cc::CongestionControl;
    use crate::tcp::sender::Config;
    use tidegate_packet::Seeded;

    fn micros(us: u64) -> Time {
        Time(us * 1000)
    }

    pub(crate) fn sender(total: u32) -> Sender {
        let config = Config {
            control: CongestionControl::Reno,
            initial_window: 10,
            receive_window: 1000,
            send_memory: 4 << 20,
            total,
            ecn: false,
            mss: 1448,
            pacing: false,
        };
        let mut sender = Sender::new(config, Seeded::new(1));
        sender.on_handshake(micros(8_190), Nanos::micros(8_190));
        while sender.poll(micros(8_190), true).is_some() {}
        sender
    }

    /// All of the first ten are lost: the probe is due two round trips after the last of them, not where the
    /// first one's delayed acknowledgement would be waited for. The oracle's flow sent segment 10 at 28.0 ms.
    #[test]
    fn each_new_segment_puts_the_probe_off() {
        let mut sender = sender(100);
        let due = sender.timeout();
        sender.on_timeout(micros(28_000));
        let probe = sender.poll(micros(28_000), true).map(|segment| (segment.seq, segment.again));
        assert_eq!((due, probe), (Some(micros(28_000)), Some((10, false))));
    }

    /// After a probe the timeout counts from then, not from when the oldest segment was sent: the oracle's
    /// flow whose path grew by 240 ms had none (`tests/data/late.csv`).
    #[test]
    fn after_a_probe_the_timeout_counts_anew() {
        let mut sender = sender(100);
        sender.on_timeout(micros(28_000));
        assert!(sender.poll(micros(28_000), true).is_some());
        assert_eq!(
            (sender.probe_at, sender.rto_at),
            (None, Some(timer(micros(28_000), sender.backed_off())))
        );
    }

    /// While the answer to a probe is out there is no second one: what is next is the timeout.
    #[test]
    fn one_probe_at_a_time() {
        let mut sender = sender(100);
        sender.on_timeout(micros(28_000));
        while sender.poll(micros(28_000), true).is_some() {}
        for at in 1..40 {
            sender.on_timeout(micros(28_000 + at * 5_000));
            while sender.poll(micros(28_000 + at * 5_000), true).is_some() {}
        }
        assert_eq!((sender.next, sender.timeouts), (11, 0));
    }
}
