//! What always holds of a sender, checked in builds with debug assertions (the tests' profiles have them).

use super::{LOST, RETRANS, SACKED, Sender};

/// A scoreboard up to this long is counted again each time,
const SHORT: usize = 32;
/// a longer one every so many transmissions: counting takes as long as the window is wide.
const SELDOM: u32 = 64;

impl Sender {
    /// Checks the order of sequence numbers, the counts of the scoreboard (RFC 2018: what is reported, lost
    /// and in flight again), and the order of what SACK has reported.
    #[inline]
    pub(super) fn check(&self) {
        if cfg!(debug_assertions) {
            self.check_counts();
            if self.segs.len() <= SHORT || self.order.is_multiple_of(SELDOM) {
                self.check_scoreboard();
            }
        }
    }

    fn check_counts(&self) {
        debug_assert!(self.una <= self.next, "nothing is acknowledged that was not sent");
        let out = self.next - self.una;
        debug_assert_eq!(self.segs.len(), out as usize, "each segment that is out has its place");
        debug_assert!(self.sacked_out + self.lost_out <= out, "what left the path was out");
        debug_assert!(self.retrans_out <= out, "each segment is under way again once");
        debug_assert!(self.sacked_high <= self.next, "SACK reports what was sent");
    }

    fn check_scoreboard(&self) {
        let count = |flag: u8| self.segs.iter().filter(|seg| seg.flags & flag != 0).count() as u32;
        let counts = [SACKED, LOST, RETRANS].map(count);
        debug_assert_eq!(
            counts,
            [self.sacked_out, self.lost_out, self.retrans_out],
            "counts are those of the flags"
        );
        let both = self.segs.iter().any(|seg| seg.flags & SACKED != 0 && seg.flags & (LOST | RETRANS) != 0);
        debug_assert!(!both, "what was reported is neither lost nor under way");
        let known: u32 = self.known.iter().map(|(from, to)| to - (*from).max(self.una)).sum();
        debug_assert_eq!(known, self.sacked_out, "ranges hold what was reported");
        let apart =
            self.known.iter().zip(self.known.iter().skip(1)).all(|(before, after)| before.1 < after.0);
        debug_assert!(apart, "ranges are in order and do not touch");
        let inside = self.known.iter().all(|(from, to)| from < to && *to > self.una && *to <= self.next);
        debug_assert!(inside, "ranges are of what is out");
        debug_assert!(
            self.resent.iter().is_sorted_by_key(|(_, order)| *order),
            "retransmissions are in order"
        );
    }
}
