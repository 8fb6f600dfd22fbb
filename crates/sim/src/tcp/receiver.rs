//! The receiving half: what has come, what to acknowledge and when.
//!
//! Acknowledgements: every second segment or after 40 ms; at once for anything out of order or filling a
//! hole, and for the first 16 segments of a connection (RFC 5681 section 4.2; the recorded Linux runs). The
//! same holds for the first 16 after a pause longer than a retransmission timeout, and after a segment that
//! came twice: the sender may have a window of one and wait for each; for the first two after a change of the
//! mark; at once, too, with a segment that carries CWR, and one in order that carries PSH, because the
//! application has then read all there is: unless the next one comes in the same instant, and both are
//! acknowledged before the application reads. SACK: RFC 2018, the latest block first. ECN: RFC 3168 section
//! 6.1.3.
//!
//! Reports of what came out of order are sent three times at once and from then on a millisecond late, so
//! that several that come together need one (Linux's `tcp_comp_sack_delay_ns` and its neighbours; the
//! recorded runs show it segment by segment).
//!
//! The receive buffer follows the flow (dynamic right-sizing, Fisk and Feng 2001): when more came in one
//! round trip than in the one before, the window goes up to a multiple of it, by two segments for each that
//! comes; and these are acknowledged at once, as the recorded runs show. That decides where HyStart leaves
//! slow start, so it is modelled.

use super::clock::timer;
use super::rtt::Rtt;
use alloc::vec::Vec;
use tidegate_packet::{Nanos, Time};

/// Blocks that fit beside timestamps.
pub(crate) const MAX_SACK: usize = 3;
/// Segments of a new connection that are acknowledged at once.
const QUICK: u32 = 16;
/// And after a pause, or a segment that came twice.
const QUICK_AGAIN: u32 = 16;
/// And with a mark that is news: the sender's window may be as small as one or two.
const QUICK_MARKED: u32 = 2;
/// How long a lone segment waits for a second one.
const DELAY: Nanos = Nanos::millis(40);

/// Reports of data out of order that are sent at once, after each step forward.
const PROMPT_REPORTS: u32 = 3;
/// How long later reports wait: a twentieth of the round trip, at most this.
const REPORT_DELAY: Nanos = Nanos::millis(1);
/// The timer's leeway, which a quiet machine uses wholly.
const REPORT_SLACK: Nanos = Nanos::micros(100);
/// Segments that one report may wait for.
const REPORT_LIMIT: u32 = 44;

/// The window of a new connection, in segments of 1448 bytes.
const FIRST_WINDOW: u32 = 45;
/// What the first round trip is compared with, in segments.
const FIRST_SPACE: u32 = 10;

/// Right-sizing of the receive window, in segments.
#[derive(Clone, Copy, Debug)]
struct Sizing {
    /// Smoothed round trip as the receiver sees it, in eighths of ns; 0 before the first sample.
    rtt8: u64,
    echo: Time,
    since: Time,
    /// What came since then.
    came: u32,
    /// What came in the fullest round trip so far.
    space: u32,
    window: u32,
    wanted: u32,
}

impl Sizing {
    /// A segment came, in order or not. Returns whether the window still grows.
    fn on_segment(&mut self, now: Time, echo: Option<Time>) -> bool {
        // One sample per acknowledgement, on the millisecond clock of timestamps (RFC 7323).
        if let Some(echo) = echo.filter(|&echo| echo != self.echo) {
            self.echo = echo;
            let rtt = (now.0 / 1_000_000 - echo.0 / 1_000_000).max(1) * 1_000_000;
            self.rtt8 = if self.rtt8 == 0 { rtt * 8 } else { self.rtt8 - self.rtt8 / 16 + rtt / 2 };
        }
        if self.since.0 == 0 {
            self.since = now;
        }
        self.came += 1;
        if self.rtt8 > 0 && now.since(self.since).0 >= self.rtt8 / 8 {
            let copied = core::mem::take(&mut self.came);
            if copied > self.space {
                let window = 2 * u64::from(copied) + 16;
                let grown = window + 2 * window * u64::from(copied - self.space) / u64::from(self.space);
                self.wanted = self.wanted.max(grown.min(MAX_WINDOW.into()) as u32);
                self.space = copied;
            }
            self.since = now;
        }
        let grows = self.window < self.wanted;
        if grows {
            self.window += 2;
        }
        debug_assert!(self.wanted <= MAX_WINDOW && self.window <= MAX_WINDOW + 1, "a window has a bound");
        grows
    }
}

/// Ranges out of order that are compared with each other in builds with debug assertions.
const MAX_CHECKED: usize = 16;

/// The largest window (6 MiB), in segments of 1448 bytes.
const MAX_WINDOW: u32 = 4344;

/// The fields of an acknowledgement; segments are counted, not bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckSegment {
    /// The first segment not received in order.
    pub(crate) ack: u32,
    /// Ranges received beyond, end exclusive, the latest first.
    pub(crate) sack: [(u32, u32); MAX_SACK],
    pub(crate) blocks: u8,
    /// ECN echo.
    pub(crate) ece: bool,
    /// It acknowledges this segment a second time, with a D-SACK (RFC 2883).
    pub(crate) twice: Option<u32>,
    /// The timestamp it echoes, in ms: of the segment that it waited for longest (RFC 7323 section 4.3).
    pub(crate) echo: u32,
}

/// What a data segment carries beside its data.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    /// A CE mark of the network's.
    pub(crate) ce: bool,
    /// The sender has reduced its window.
    pub(crate) cwr: bool,
    /// It ends what the application wrote.
    pub(crate) push: bool,
    /// Its timestamp, in ms.
    pub(crate) stamp: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// The next segment in order.
    pub(crate) next: u32,
    /// Ranges beyond it, the most recently touched first. Bounded by the sender's window.
    blocks: Vec<(u32, u32)>,
    quick: u32,
    /// When the last segment came in order.
    came: Option<Time>,
    /// A longer pause of those is none of the network's: the own retransmission timeout, as the handshake has
    /// it.
    pause: Nanos,
    /// Segments received that no acknowledgement has covered.
    pending: u32,
    /// Acknowledge every n-th segment.
    every: u32,
    echo: bool,
    /// The timestamp to echo, and the last acknowledgement: a segment behind that does not change it (RFC
    /// 7323).
    recent: u32,
    acked: u32,
    /// Every acknowledgement returns whether what it covers was marked (RFC 8257 section 3.2), instead of an
    /// echo until CWR.
    exact: bool,
    sizing: Sizing,
    /// Reports of data out of order since the last step forward.
    reports: u32,
    /// Segments out of order that no acknowledgement has reported.
    untold: u32,
    /// Segments that came twice.
    pub(crate) duplicates: u64,
    /// When a delayed acknowledgement or report is due.
    pub(crate) due: Option<Time>,
}

impl Receiver {
    pub(crate) fn new(delayed_ack: bool, exact: bool) -> Receiver {
        Receiver {
            next: 0,
            blocks: Vec::new(),
            quick: QUICK,
            came: None,
            pause: Rtt::default().timeout(),
            pending: 0,
            every: if delayed_ack { 2 } else { 1 },
            echo: false,
            recent: 0,
            acked: 0,
            exact,
            sizing: Sizing {
                rtt8: 0,
                echo: Time(0),
                since: Time(0),
                came: 0,
                space: FIRST_SPACE,
                window: FIRST_WINDOW,
                wanted: FIRST_WINDOW,
            },
            reports: 0,
            untold: 0,
            duplicates: 0,
            due: None,
        }
    }

    /// The connection is established; `rtt`: how long the handshake took.
    pub(crate) fn on_handshake(&mut self, rtt: Nanos) {
        let mut own = Rtt::default();
        own.sample(rtt, 0, 0);
        self.pause = own.timeout();
    }

    /// Before a segment with another mark than the last one is taken in: the pending acknowledgement, which
    /// must not echo the new mark.
    pub(crate) fn on_mark(&mut self, ce: bool) -> Option<AckSegment> {
        if !self.exact || ce == self.echo {
            return None;
        }
        let waiting = (self.pending > 0).then(|| self.acknowledge());
        self.echo = ce;
        self.quick = self.quick.max(1);
        waiting
    }

    /// A data segment, answering an acknowledgement sent at `echo`. Returns the acknowledgement to send now,
    /// if one is.
    pub(crate) fn on_segment(
        &mut self,
        now: Time,
        seq: u32,
        marks: Marks,
        echo: Option<Time>,
    ) -> Option<AckSegment> {
        let Marks { ce, cwr, push, stamp } = marks;
        if seq <= self.acked {
            self.recent = self.recent.max(stamp);
        }
        if cwr && !self.exact {
            self.echo = false;
        }
        // A change of the echo is sent at once.
        let events = ce && !self.echo;
        self.echo |= ce && !self.exact;
        if events && !self.exact {
            self.quick = self.quick.max(QUICK_MARKED);
        }
        let (in_order, before) = (seq == self.next && self.blocks.is_empty(), self.next);
        let mut twice = false;
        if seq == self.next {
            if self.came.is_some_and(|came| now.since(came) > self.pause) {
                self.quick = self.quick.max(QUICK_AGAIN);
            }
            self.came = Some(now);
        }
        if in_order {
            self.next += 1;
        } else if !self.store(seq) {
            twice = true;
            self.duplicates += 1;
            self.quick = self.quick.max(QUICK_AGAIN);
        }
        self.pending += 1;
        let grows = !twice && self.sizing.on_segment(now, echo);
        let full = in_order && self.pending >= self.every || !in_order && self.next > before;
        // A window that was reduced may be one segment.
        if grows || self.quick > 0 || full || twice || events || cwr {
            self.quick = self.quick.saturating_sub(1);
            self.reports = if self.next > before { 0 } else { self.reports };
            return Some(AckSegment { twice: twice.then_some(seq), ..self.acknowledge() });
        }
        if self.next > before {
            self.reports = 0;
        } else if self.reports < PROMPT_REPORTS {
            self.reports += 1;
            return Some(self.acknowledge());
        }
        // What was pushed is read, and acknowledged then: when all has come that comes in this instant.
        if push && in_order {
            self.due = Some(now);
            return None;
        }
        self.wait(now, in_order)
    }

    /// Lets a segment wait for its acknowledgement; that of many out of order is due at once.
    fn wait(&mut self, now: Time, in_order: bool) -> Option<AckSegment> {
        if in_order {
            self.due = self.due.or(Some(timer(now, DELAY)));
            return None;
        }
        self.untold += 1;
        if self.untold >= REPORT_LIMIT {
            return Some(self.acknowledge());
        }
        if self.untold == 1 {
            let part = Nanos(self.sizing.rtt8 / 8 / 20);
            self.due = Some(now + part.min(REPORT_DELAY) + REPORT_SLACK);
        }
        None
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
        self.untold = 0;
        self.due = None;
        debug_assert!(self.acked <= self.next, "acknowledgements never go back");
        self.acked = self.next;
        self.check_blocks();
        let mut ack =
            AckSegment { ack: self.next, ece: self.echo, echo: self.recent, ..AckSegment::default() };
        for (to, from) in ack.sack.iter_mut().zip(&self.blocks) {
            *to = *from;
            ack.blocks += 1;
        }
        ack
    }

    /// What always holds of the ranges that came out of order (RFC 2018 section 3): each lies beyond what is
    /// acknowledged, with a hole before it, and none touches another.
    #[inline]
    fn check_blocks(&self) {
        if cfg!(debug_assertions) && self.blocks.len() <= MAX_CHECKED {
            let beyond = self.blocks.iter().all(|(from, to)| self.next < *from && from < to);
            debug_assert!(beyond, "ranges out of order lie beyond the first hole");
            let apart = |(n, one): (usize, &(u32, u32))| {
                self.blocks[n + 1..].iter().all(|other| one.1 < other.0 || other.1 < one.0)
            };
            debug_assert!(self.blocks.iter().enumerate().all(apart), "ranges out of order do not touch");
        }
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
                    // The common case, the latest block growing at its end, touches no other unless a hole
                    // just closed.
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
        let mut r = Receiver::new(true, false);
        let mut seen = Vec::new();
        for seq in [0, 2, 3, 6, 9, 5, 4, 1] {
            let ack = r
                .on_segment(Time(0), seq, Marks::default(), None)
                .expect("early and out-of-order segments are answered at once");
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
        let mut r = Receiver::new(true, false);
        for seq in 0..QUICK {
            assert!(r.on_segment(Time(0), seq, Marks::default(), None).is_some());
        }
        let first = r.on_segment(Time(5), QUICK, Marks::default(), None).is_some();
        let due = r.due;
        let second = r.on_segment(Time(6), QUICK + 1, Marks::default(), None).map(|ack| ack.ack);
        assert_eq!((first, due, second, r.due), (false, Some(Time(41_000_000)), Some(QUICK + 2), None));
    }
}
