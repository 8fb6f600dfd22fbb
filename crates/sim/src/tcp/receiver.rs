//! The receiving half: what has come, what to acknowledge and when.
//!
//! Acknowledgements: every second segment or after 40 ms; at once for anything out of order or filling a hole, and for the
//! first segments of a connection (RFC 5681 section 4.2; the recorded Linux runs acknowledge 17 at once). SACK: RFC 2018,
//! the latest block first. ECN: RFC 3168 section 6.1.3.

use alloc::vec::Vec;
use tidegate_packet::{Span, Time};

/// Blocks that fit beside timestamps.
pub(crate) const MAX_SACK: usize = 3;
/// Segments of a new connection that are acknowledged at once.
const QUICK: u32 = 17;
/// How long a lone segment waits for a second one.
const DELAY: Span = Span::millis(40);

/// What an acknowledgement says; segments are counted, not bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckSegment {
    /// The first segment not received in order.
    pub(crate) ack: u32,
    /// Ranges received beyond, end exclusive, the latest first.
    pub(crate) sack: [(u32, u32); MAX_SACK],
    pub(crate) blocks: u8,
    /// ECN echo.
    pub(crate) ece: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// The next segment in order.
    pub(crate) next: u32,
    /// Ranges beyond it, the most recently touched first. Bounded by the sender's window.
    blocks: Vec<(u32, u32)>,
    quick: u32,
    /// Segments received that no acknowledgement has covered.
    pending: u32,
    /// Acknowledge every n-th segment.
    every: u32,
    echo: bool,
    /// Segments that came twice.
    pub(crate) duplicates: u64,
    /// When a delayed acknowledgement is due.
    pub(crate) due: Option<Time>,
}

impl Receiver {
    pub(crate) fn new(delayed_ack: bool) -> Receiver {
        Receiver {
            next: 0,
            blocks: Vec::new(),
            quick: QUICK,
            pending: 0,
            every: if delayed_ack { 2 } else { 1 },
            echo: false,
            duplicates: 0,
            due: None,
        }
    }

    /// A data segment. Returns the acknowledgement to send now, if one is.
    pub(crate) fn on_segment(&mut self, now: Time, seq: u32, ce: bool, cwr: bool) -> Option<AckSegment> {
        if cwr {
            self.echo = false;
        }
        // A change of the echo is told at once.
        let news = ce && !self.echo;
        self.echo |= ce;
        let in_order = seq == self.next && self.blocks.is_empty();
        if in_order {
            self.next += 1;
        } else if !self.store(seq) {
            self.duplicates += 1;
        }
        self.pending += 1;
        if in_order && !news && self.quick == 0 && self.pending < self.every {
            if self.due.is_none() {
                self.due = Some(now + DELAY);
            }
            return None;
        }
        self.quick = self.quick.saturating_sub(1);
        Some(self.acknowledge())
    }

    /// The delayed acknowledgement's time has come.
    pub(crate) fn on_timer(&mut self, now: Time) -> Option<AckSegment> {
        match self.due {
            Some(due) if due <= now => Some(self.acknowledge()),
            _ => None,
        }
    }

    fn acknowledge(&mut self) -> AckSegment {
        self.pending = 0;
        self.due = None;
        let mut ack = AckSegment { ack: self.next, ece: self.echo, ..AckSegment::default() };
        for (to, from) in ack.sack.iter_mut().zip(&self.blocks) {
            *to = *from;
            ack.blocks += 1;
        }
        ack
    }

    /// Files a segment that is not simply the next one; false if it was there already.
    fn store(&mut self, seq: u32) -> bool {
        if seq < self.next {
            return false;
        }
        if seq == self.next {
            // A hole at the front is filled: what follows it directly is in order too.
            self.next += 1;
            if let Some(at) = self.blocks.iter().position(|block| block.0 == self.next) {
                self.next = self.blocks.remove(at).1;
            }
            return true;
        }
        let (mut start, mut end) = (seq, seq + 1);
        let mut at = 0;
        while at < self.blocks.len() {
            let block = self.blocks[at];
            if block.0 <= seq && seq < block.1 {
                return false;
            }
            if block.1 == start || block.0 == end {
                start = start.min(block.0);
                end = end.max(block.1);
                if at == 0 {
                    self.blocks[0] = (start, end);
                    // The common case, the latest block growing at its end, touches no other unless a hole just closed.
                    if self.blocks[1..].iter().all(|other| other.0 != end && other.1 != start) {
                        return true;
                    }
                }
                self.blocks.remove(at);
            } else {
                at += 1;
            }
        }
        self.blocks.insert(0, (start, end));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn sack_blocks_are_latest_first_and_merge() {
        let mut r = Receiver::new(true);
        let mut seen = Vec::new();
        for seq in [0, 2, 3, 6, 9, 5, 4, 1] {
            let ack =
                r.on_segment(Time(0), seq, false, false).expect("early and out-of-order segments are answered at once");
            seen.push((ack.ack, ack.sack[..usize::from(ack.blocks)].to_vec()));
        }
        let expected = [
            (1, vec![]),
            (1, vec![(2, 3)]),
            (1, vec![(2, 4)]),
            (1, vec![(6, 7), (2, 4)]),
            (1, vec![(9, 10), (6, 7), (2, 4)]),
            (1, vec![(5, 7), (9, 10), (2, 4)]),
            (1, vec![(2, 7), (9, 10)]),
            (7, vec![(9, 10)]),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn second_segment_or_forty_milliseconds() {
        let mut r = Receiver::new(true);
        for seq in 0..QUICK {
            assert!(r.on_segment(Time(0), seq, false, false).is_some());
        }
        let first = r.on_segment(Time(5), QUICK, false, false).is_some();
        let due = r.due;
        let second = r.on_segment(Time(6), QUICK + 1, false, false).map(|ack| ack.ack);
        assert_eq!((first, due, second, r.due), (false, Some(Time(40_000_005)), Some(QUICK + 2), None));
    }
}
