//! The throughput of several transfers together, in equal pieces of time.
//!
//! What TCP delivers after a gap was filled arrived before: with a deep buffer that is a megabyte at once,
//! and the mean over a few seconds comes out above what the line carries. The median of pieces does not.

use crate::bits_per_second;
use alloc::vec::Vec;

/// A piece of time, ns.
pub const PIECE: u64 = 500_000_000;
/// Of fewer pieces the median is no better than the mean.
const FEW: usize = 4;
/// A throughput varies whose 80th percentile is so many times its 20th.
const VARIES: f64 = 2.0;

/// The throughput of pieces of time, bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throughput {
    /// Over the whole time.
    pub mean: f64,
    /// Half of the pieces had no more.
    pub median: f64,
    /// One in five had no more.
    pub low: f64,
    /// One in five had more.
    pub high: f64,
    /// How many pieces.
    pub pieces: usize,
}

impl Throughput {
    /// From the throughput of each piece; `None` of nothing.
    pub fn of(pieces: &[f64]) -> Option<Throughput> {
        let mut sorted = pieces.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        // Nearest rank, as everywhere here.
        let at = |percent: usize| sorted.get((sorted.len() * percent).div_ceil(100).max(1) - 1).copied();
        Some(Throughput {
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
            median: at(50)?,
            low: at(20)?,
            high: at(80)?,
            pieces: sorted.len(),
        })
    }

    /// What was carried: the mean, or the median where that is less.
    #[must_use]
    pub fn carried(&self) -> f64 {
        if self.pieces < FEW { self.mean } else { self.mean.min(self.median) }
    }

    /// Whether one rate does not describe it.
    #[must_use]
    pub fn varies(&self) -> bool {
        self.pieces >= 2 * FEW && self.high >= VARIES * self.low
    }
}

/// The throughput of all transfers in each whole piece between two moments; a transfer is its bytes so far by
/// time, ns. Between two of its notes it went evenly.
#[must_use]
pub fn pieces(transfers: &[&[(u64, u64)]], (from, to): (u64, u64)) -> Vec<f64> {
    let count = to.saturating_sub(from) / PIECE;
    let total = |at: u64| transfers.iter().map(|transfer| by(transfer, at)).sum::<f64>();
    let piece = |n: u64| {
        let (begin, end) = (from + n * PIECE, from + (n + 1) * PIECE);
        bits_per_second((total(end) - total(begin)).max(0.0) as u64, PIECE)
    };
    (0..count).map(piece).collect()
}

/// The bytes of a transfer until a moment.
fn by(transfer: &[(u64, u64)], at: u64) -> f64 {
    let next = transfer.partition_point(|(when, _)| *when <= at);
    let Some(&(before, had)) = next.checked_sub(1).and_then(|n| transfer.get(n)) else { return 0.0 };
    let Some(&(after, has)) = transfer.get(next) else { return had as f64 };
    had as f64 + (has - had.min(has)) as f64 * (at - before) as f64 / (after - before) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// A line of 16 Mbit/s whose buffer drops: a gap holds back 1.5 s of bytes, which come at once.
    #[test]
    fn bytes_that_a_gap_held_back_are_no_throughput() {
        let step = 100_000_000;
        let mut transfer: Vec<(u64, u64)> = (0..=60).map(|n| (n * step, n * 200_000)).collect();
        for note in &mut transfer[5..20] {
            note.1 = 1_000_000;
        }
        let all = pieces(&[&transfer], (1_500_000_000, 6_000_000_000));
        let found = Throughput::of(&all).expect("pieces");
        assert!(found.mean > 17.5e6, "{found:?}");
        assert_eq!((found.carried(), found.pieces), (16e6, 9));
        assert!(!found.varies(), "{found:?}");
    }

    #[test]
    fn transfers_add_up_and_end_when_they_do() {
        let first = [(0, 0), (1_000_000_000, 1_000_000)];
        let second = [(250_000_000, 0), (750_000_000, 500_000)];
        let expected = vec![bits_per_second(750_000, PIECE), bits_per_second(750_000, PIECE)];
        assert_eq!(pieces(&[&first, &second], (0, 1_200_000_000)), expected);
        assert_eq!(pieces(&[&first], (0, PIECE - 1)), Vec::<f64>::new());
        assert_eq!(Throughput::of(&[]), None);
    }

    #[test]
    fn a_rate_that_varies_is_seen() {
        let of = |pieces: &[f64]| Throughput::of(pieces).expect("pieces");
        let steady = of(&[9.0, 10.0, 10.0, 11.0, 10.0, 10.0, 9.0, 10.0]);
        assert!(!steady.varies() && steady.carried() <= 10.0);
        let mobile = of(&[4.0, 4.0, 5.0, 10.0, 12.0, 12.0, 11.0, 9.0]);
        assert!(mobile.varies());
        assert_eq!((mobile.low, mobile.high, mobile.carried()), (4.0, 12.0, 8.375));
        assert!(!of(&[1.0, 9.0]).varies(), "too few");
    }
}
