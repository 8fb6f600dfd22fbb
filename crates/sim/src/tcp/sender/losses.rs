//! What SACK reports and what is lost: the scoreboard (RFC 2018) and RACK (RFC 8985).

use super::{DUP_THRESH, EVER, LOST, PROBE_SLACK, RETRANS, SACKED, Sender, Sent, State, Trips};
use crate::tcp::clock::{stamp, timer};
use tidegate_packet::{Nanos, Time};

/// Recoveries after which needless retransmissions are forgotten (RFC 8985 section 6.2 step 4).
const ROUNDS_LAST: u32 = 16;
/// Rounds that are counted at most.
const MOST_ROUNDS: u32 = 254;

impl Sender {
    /// Counts a segment that leaves the scoreboard.
    pub(super) fn leave(&mut self, flags: u8) {
        self.sacked_out -= u32::from(flags & SACKED != 0);
        self.lost_out -= u32::from(flags & LOST != 0);
        self.retrans_out -= u32::from(flags & RETRANS != 0);
    }

    /// Everything before segment `ack` has arrived in order; returns how many segments that newly reports.
    pub(super) fn on_cumulative(&mut self, now: Time, ack: u32, trips: &mut Trips) -> u32 {
        let mut delivered = 0;
        while self.una < ack {
            let Some(seg) = self.segs.pop_front() else { break };
            self.una += 1;
            self.leave(seg.flags);
            let known = seg.flags & SACKED != 0;
            if let Some(model) = &mut self.model {
                model.rate.on_acknowledged(now, known);
            }
            if known {
                continue;
            }
            delivered += 1;
            let rtt = now.since(seg.at);
            if seg.flags & EVER == 0 {
                trips.add(rtt);
                trips.fresh |= self.una <= self.high_seq;
                self.reordered |= self.una < trips.highest;
            } else {
                trips.again = true;
            }
            // The echo of an earlier timestamp: the retransmission is not what has arrived (RFC 8985 section
            // 6.2 step 2).
            let earlier = seg.flags & EVER != 0 && trips.echo > 0 && trips.echo < stamp(seg.at);
            if !earlier {
                self.note_delivery(now, seg);
            }
        }
        while self.known.front().is_some_and(|range| range.1 <= self.una) {
            self.known.pop_front();
        }
        delivered
    }

    /// One SACK block; returns how many segments it newly reports.
    pub(super) fn on_block(&mut self, now: Time, start: u32, end: u32, trips: &mut Trips) -> u32 {
        let (start, end) = (start.max(self.una), end.min(self.next));
        if start >= end {
            return 0;
        }
        // The first range known that is not wholly before the block.
        let at = self.known.partition_point(|range| range.1 < start);
        let (mut merged, mut upto, mut delivered) = ((start, end), start, 0);
        let mut gone = at;
        while let Some(&(from, to)) = self.known.get(gone) {
            if from > end {
                break;
            }
            if from <= start && to >= end {
                return 0;
            }
            for seq in upto..from {
                delivered += self.on_sacked(now, seq, trips);
            }
            upto = upto.max(to);
            merged = (merged.0.min(from), merged.1.max(to));
            gone += 1;
        }
        for seq in upto..end {
            delivered += self.on_sacked(now, seq, trips);
        }
        if gone == at {
            self.known.insert(at, merged);
        } else {
            self.known[at] = merged;
            self.known.drain(at + 1..gone);
        }
        self.sacked_high = self.sacked_high.max(end);
        delivered
    }

    fn on_sacked(&mut self, now: Time, seq: u32, trips: &mut Trips) -> u32 {
        let seg = &mut self.segs[(seq - self.una) as usize];
        let copy = *seg;
        if copy.flags & SACKED != 0 {
            return 0;
        }
        seg.flags = SACKED | copy.flags & EVER;
        if let Some(model) = &mut self.model {
            model.rate.on_delivered(now, (seq - self.una) as usize);
        }
        self.leave(copy.flags);
        self.sacked_out += 1;
        if copy.flags & EVER == 0 {
            self.reordered |= seq + 1 < self.sacked_high && copy.flags & LOST == 0;
            trips.fresh |= seq < self.high_seq;
            trips.add_sacked(now.since(copy.at));
        }
        self.note_delivery(now, copy);
        1
    }

    /// RACK: the latest sent of what has been delivered (RFC 8985 section 6.2 step 2).
    pub(super) fn note_delivery(&mut self, now: Time, seg: Sent) {
        let rtt = now.since(seg.at);
        if seg.flags & EVER != 0 && self.rtt.min.is_some_and(|min| rtt < min) {
            return;
        }
        // The round trip is that of what is reported last, whenever that was sent: the recorded runs wait by
        // it.
        (self.rack.order, self.rack.rtt) = (self.rack.order.max(seg.order), rtt);
    }

    /// RACK: segment `seq` came twice, so it was late rather than lost; once a round the reordering window
    /// grows (RFC 8985 section 6.2 step 4). A repeated probe gives no evidence.
    pub(super) fn widen(&mut self, seq: u32) {
        let by_probe = self.probed.is_some_and(|(end, again)| again && seq + 1 == end);
        if self.reordered && !by_probe && (self.rack.rounds == 0 || self.una >= self.rack.round_end) {
            self.rack.rounds = (self.rack.rounds + 1).min(MOST_ROUNDS);
            self.rack.round_end = self.next;
            self.rack.lasts = ROUNDS_LAST;
        }
    }

    /// RACK: a recovery is over.
    pub(super) fn narrow(&mut self) {
        self.rack.lasts = self.rack.lasts.saturating_sub(1);
        if self.rack.lasts == 0 {
            self.rack.rounds = 0;
        }
    }

    /// RACK: marks what was sent before something delivered and is overdue. Returns whether there was any.
    pub(super) fn detect_losses(&mut self, now: Time) -> bool {
        let found = self.mark_overdue(now);
        self.reorder_at = self.reorder_at.map(|due| timer(now, due.since(now) + PROBE_SLACK));
        found
    }

    fn mark_overdue(&mut self, now: Time) -> bool {
        self.lost_again = false;
        self.reorder_at = None;
        if self.rack.order == 0 || self.next == self.una {
            return false;
        }
        let known = matches!(self.state, State::Recovery | State::Loss) || self.sacked_out >= DUP_THRESH;
        let window = if !self.reordered && known {
            Nanos(0)
        } else {
            Nanos(self.rtt.min.unwrap_or_default().0 / 4 * u64::from(1 + self.rack.rounds))
                .min(self.rtt.smoothed())
        };
        let (rack, before) = (self.rack, self.lost_out);
        let overdue = |at: Time| at + rack.rtt + window;
        self.scan = self.scan.max(self.una);
        while self.scan < self.next {
            let seg = &mut self.segs[(self.scan - self.una) as usize];
            if seg.flags & (SACKED | LOST | EVER) == 0 {
                if seg.order >= rack.order {
                    break;
                }
                let due = overdue(seg.at);
                if due > now {
                    self.reorder_at = Some(due);
                    break;
                }
                seg.flags |= LOST;
                self.lost_out += 1;
                self.losses += 1;
                self.hint = self.hint.min(self.scan);
            }
            self.scan += 1;
        }
        while let Some(&(seq, order)) = self.resent.front() {
            let live = seq >= self.una && {
                let seg = &self.segs[(seq - self.una) as usize];
                seg.flags & RETRANS != 0 && seg.order == order
            };
            if live {
                if order >= rack.order {
                    break;
                }
                let due = overdue(self.segs[(seq - self.una) as usize].at);
                if due > now {
                    self.reorder_at = Some(self.reorder_at.map_or(due, |known| known.min(due)));
                    break;
                }
                let seg = &mut self.segs[(seq - self.una) as usize];
                self.lost_out += u32::from(seg.flags & LOST == 0);
                self.losses += 1;
                seg.flags = seg.flags & !RETRANS | LOST;
                self.retrans_out -= 1;
                self.hint = self.hint.min(seq);
                self.lost_again = true;
            }
            self.resent.pop_front();
        }
        self.lost_again || self.lost_out > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::cc::CongestionControl;
    use crate::tcp::sender::Config;
    use tidegate_packet::Seeded;

    fn config() -> Config {
        Config {
            control: CongestionControl::Reno,
            initial_window: 10,
            receive_window: 1000,
            send_memory: 4 << 20,
            total: 100,
            ecn: false,
            mss: 1448,
            pacing: false,
        }
    }

    /// A segment is overdue a round trip and the reordering window after it was sent: a quarter of the
    /// shortest round trip, more after needless retransmissions, never more than the smoothed one; nothing on
    /// a path that does not reorder, in recovery or once three later segments have come (RFC 8985 section 6.2
    /// steps 4 and 5).
    #[test]
    fn segments_are_overdue_after_the_reordering_window() {
        let due = |rounds: u32, reordered: bool, sacked: u32| {
            let mut sender = Sender::new(config(), Seeded::new(1));
            sender.on_handshake(Time(0), Nanos::millis(40));
            while sender.poll(Time(0), true).is_some() {}
            (sender.rack.order, sender.rack.rtt, sender.rack.rounds) = (5, Nanos::millis(40), rounds);
            (sender.reordered, sender.sacked_out) = (reordered, sacked);
            assert!(!sender.mark_overdue(Time(0)), "nothing is overdue yet");
            let due = sender.reorder_at.expect("something will be");
            assert!(!sender.mark_overdue(due - Nanos(1)) && sender.mark_overdue(due));
            due.0 / 1_000_000
        };
        assert_eq!([0, 1, 2, 3, 4, 9].map(|rounds| due(rounds, true, 0)), [50, 60, 70, 80, 80, 80]);
        assert_eq!([due(0, false, 0), due(0, false, 2), due(0, false, 3), due(0, true, 3)], [50, 50, 40, 50]);
    }

    /// Once a round, and only on a path that reorders; sixteen recoveries later it is forgotten (RFC 8985
    /// section 6.2).
    #[test]
    fn needless_retransmissions_widen_the_reordering_window() {
        let mut sender = Sender::new(config(), Seeded::new(1));
        sender.on_handshake(Time(0), Nanos::millis(50));
        while sender.poll(Time(0), true).is_some() {}
        let mut rounds = [0; 5];
        sender.widen(3);
        rounds[0] = sender.rack.rounds;
        sender.reordered = true;
        sender.widen(3);
        sender.widen(4);
        rounds[1] = sender.rack.rounds;
        sender.una = sender.rack.round_end;
        sender.widen(5);
        rounds[2] = sender.rack.rounds;
        for _ in 1..ROUNDS_LAST {
            sender.narrow();
        }
        rounds[3] = sender.rack.rounds;
        sender.narrow();
        rounds[4] = sender.rack.rounds;
        assert_eq!(rounds, [0, 1, 2, 2, 0]);
    }
}
