#![no_std]
#![forbid(unsafe_code)]
//! The arithmetic of measurement, each figure with its definition.
//!
//! Durations are nanoseconds in `u64` unless a name has another unit; nothing here reads a clock.

extern crate alloc;

pub mod calibrate;
pub mod capacity;
pub mod doctor;
mod document;
pub mod experiment;
pub mod loss;
pub mod numbers;
pub mod oneway;
pub mod outcome;
pub mod overhead;
pub mod paired;
pub mod pinged;
pub mod quick;
pub mod ramp;
pub mod record;
pub mod replayed;
pub mod responsiveness;
mod service;
mod spread;
pub mod stream;
pub mod throughput;
pub mod trial;

pub use spread::{Jitter, deviation, wilson};

use alloc::vec::Vec;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// A sample of spans with its usual figures.
///
/// A percentile p is the smallest value that at least p percent of the sample do not exceed (the nearest-rank
/// definition): always a value that occurred, and p 100 is the maximum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    sorted: Vec<u64>,
}

impl Durations {
    /// From values in any order.
    pub fn new(mut values: Vec<u64>) -> Durations {
        values.sort_unstable();
        Durations { sorted: values }
    }
    /// How many values the sample has.
    pub fn count(&self) -> usize {
        self.sorted.len()
    }
    /// The arithmetic mean, rounded down; `None` of nothing.
    pub fn mean(&self) -> Option<u64> {
        let sum: u128 = self.sorted.iter().map(|&value| u128::from(value)).sum();
        sum.checked_div(self.sorted.len() as u128).map(|mean| mean as u64)
    }
    /// The percentile `p` of 0 to 100 (beyond: clamped); `None` of nothing.
    pub fn percentile(&self, p: f64) -> Option<u64> {
        let n = self.sorted.len();
        let exact = p.clamp(0.0, 100.0) / 100.0 * n as f64;
        // Rounded up, with a tolerance for the division by a hundred.
        let mut rank = exact as usize;
        if exact - rank as f64 > 1e-9 {
            rank += 1;
        }
        self.sorted.get(rank.max(1) - 1).copied()
    }
    /// The smallest value; `None` of nothing.
    pub fn min(&self) -> Option<u64> {
        self.sorted.first().copied()
    }
    /// The largest value; `None` of nothing.
    pub fn max(&self) -> Option<u64> {
        self.sorted.last().copied()
    }
    /// Mean, median, 95th and 99th percentile and maximum; `None` of nothing.
    pub fn summary(&self) -> Option<Summary> {
        Some(Summary {
            count: self.count(),
            mean: self.mean()?,
            p50: self.percentile(50.0)?,
            p95: self.percentile(95.0)?,
            p99: self.percentile(99.0)?,
            max: self.max()?,
        })
    }
}

/// The figures of a sample, in the unit of its values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many values.
    pub count: usize,
    /// Arithmetic mean, rounded down.
    pub mean: u64,
    /// Median (nearest rank).
    pub p50: u64,
    /// 95th percentile (nearest rank).
    pub p95: u64,
    /// 99th percentile (nearest rank).
    pub p99: u64,
    /// The largest value.
    pub max: u64,
}

/// The outcome of probes: round trips of those answered, and how many were not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pings {
    /// Round trips in ns.
    pub rtt: Durations,
    /// Requests without an answer.
    pub lost: usize,
}

impl Pings {
    /// From one entry per request: its round trip in ns, or nothing.
    pub fn new(echoes: impl IntoIterator<Item = Option<u64>>) -> Pings {
        let mut lost = 0;
        let answered = echoes.into_iter().filter_map(|rtt| {
            lost += usize::from(rtt.is_none());
            rtt
        });
        let rtt = Durations::new(answered.collect());
        Pings { rtt, lost }
    }
    /// Requests sent.
    pub fn sent(&self) -> usize {
        self.lost + self.rtt.count()
    }
    /// Requests lost over requests sent, 0 to 1; 0 of nothing.
    pub fn loss(&self) -> f64 {
        share(self.lost as u64, (self.lost + self.rtt.count()) as u64)
    }
    /// What the share of losses is with 95 % confidence, if these requests are a sample.
    pub fn loss_interval(&self) -> (f64, f64) {
        wilson(self.lost as u64, (self.lost + self.rtt.count()) as u64)
    }
}

/// `part` of `whole`, 0 of nothing.
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Bits per second of `bytes` in `ns`; 0 of no time.
pub fn bits_per_second(bytes: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { bytes as f64 * 8e9 / ns as f64 }
}

/// Jain's fairness index of shares: (sum)² / (n × sum of squares), 1/n to 1; 1 of nothing, and of nothing but
/// zeros.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn nearest_rank_percentiles() {
        let hundred = Durations::new((1..=100).rev().collect());
        let five = Durations::new(vec![15, 20, 35, 40, 50]);
        let cases = [
            (&hundred, 0.0, 1),
            (&hundred, 50.0, 50),
            (&hundred, 95.0, 95),
            (&hundred, 99.0, 99),
            (&hundred, 100.0, 100),
            (&five, 5.0, 15),
            (&five, 30.0, 20),
            (&five, 40.0, 20),
            (&five, 50.0, 35),
            (&five, 100.0, 50),
        ];
        for (spans, p, expected) in cases {
            assert_eq!(spans.percentile(p), Some(expected), "p{p}");
        }
        assert_eq!(five.mean(), Some(32));
    }

    #[test]
    fn nothing_has_no_figures() {
        let none = Durations::default();
        assert_eq!(
            (none.mean(), none.percentile(50.0), none.max(), none.summary()),
            (None, None, None, None)
        );
        assert_eq!(
            (Pings::default().loss(), bits_per_second(5, 0), jain(&[]), jain(&[0.0, 0.0])),
            (0.0, 0.0, 1.0, 1.0)
        );
    }

    #[test]
    fn loss_rates_and_fairness() {
        let pings = Pings::new([Some(3), None, Some(1), Some(2)]);
        assert_eq!((pings.lost, pings.loss(), pings.rtt.max()), (1, 0.25, Some(3)));
        assert_eq!(
            (bits_per_second(125, 1_000_000), jain(&[1.0, 1.0, 1.0]), jain(&[3.0, 0.0, 0.0])),
            (1e6, 1.0, 1.0 / 3.0)
        );
    }
}
