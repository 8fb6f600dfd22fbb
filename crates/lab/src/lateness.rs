//! How late events happened: what a real clock adds to the network's schedule.

use tidegate_packet::Nanos;

/// Upper bounds of the classes, in ns: each a quarter more than the last, from 1 µs to beyond 10 s.
const CLASSES: usize = 73;
const FIRST: u64 = 1_000;

/// A count of delays, by size: percentiles within a quarter of their value, in a fixed space.
#[derive(Clone, Debug)]
pub struct LatenessHistogram {
    counts: [u64; CLASSES],
    total: u64,
    most: u64,
}

impl Default for LatenessHistogram {
    fn default() -> LatenessHistogram {
        LatenessHistogram { counts: [0; CLASSES], total: 0, most: 0 }
    }
}

fn bounds() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(FIRST), |bound| Some(bound + bound / 4)).take(CLASSES)
}

impl LatenessHistogram {
    /// One more.
    pub fn note(&mut self, late: Nanos) {
        let class = bounds().position(|bound| late.0 <= bound).unwrap_or(CLASSES - 1);
        self.counts[class] += 1;
        self.total += 1;
        self.most = self.most.max(late.0);
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The greatest lateness.
    pub fn most(&self) -> Nanos {
        Nanos(self.most)
    }

    /// What this share of them stayed below, a quarter too much at most; nothing was noted: 0.
    pub fn quantile(&self, share: f64) -> Nanos {
        let rank = (share * self.total as f64).ceil() as u64;
        let mut seen = 0;
        for (count, bound) in self.counts.iter().zip(bounds()) {
            seen += count;
            if seen >= rank.max(1) {
                return Nanos(bound.min(self.most));
            }
        }
        Nanos(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_quarter() {
        let mut lateness = LatenessHistogram::default();
        for micros in 1..=1000_u64 {
            lateness.note(Nanos(micros * 1_000));
        }
        for (share, exact) in [(0.5, 500_000.0), (0.99, 990_000.0), (1.0, 1_000_000.0)] {
            let found = lateness.quantile(share).0 as f64;
            assert!((exact..=exact * 1.25).contains(&found), "{share}: {found}");
        }
        assert_eq!((lateness.count(), lateness.most()), (1000, Nanos(1_000_000)));
        assert_eq!(LatenessHistogram::default().quantile(0.99), Nanos(0));
    }
}
