//! Impairments of a line: loss and reordering.

use alloc::vec::Vec;
use tidegate_packet::{Nanos, Seeded};

/// Which packets a line loses.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LossModel {
    /// None.
    #[default]
    None,
    /// Each with this probability, 0 to 1.
    Random(f64),
    /// In bursts: the line is good or bad, and changes before each packet (Gilbert 1960, Elliott 1963).
    Burst {
        /// The probability that a good line turns bad.
        p: f64,
        /// That a bad one turns good.
        r: f64,
        /// The probability that a packet is lost in the bad state.
        bad: f64,
        /// That a good one does.
        good: f64,
    },
    /// Every n-th.
    Every(u32),
    /// By a repeated pattern: true is lost.
    Pattern(Vec<bool>),
}

/// Packets that take longer than others, and so are overtaken.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reorder {
    /// The share of packets it happens to, 0 to 1.
    pub share: f64,
    /// How much longer they take.
    pub by: Nanos,
}

/// What a line does to packets after they were put on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Impairment {
    /// Its losses; lost packets take their time on the wire all the same.
    pub loss: LossModel,
    /// Those that others overtake.
    pub reorder: Reorder,
    /// Each packet takes something between 0 and this longer, in whatever order that brings.
    pub spread: Nanos,
}

impl Impairment {
    /// May packets arrive in another order?
    pub(crate) fn scrambles(&self) -> bool {
        self.spread.0 > 0 || self.reorder.share > 0.0 && self.reorder.by.0 > 0
    }
}

/// An impairment at work, with randomness of its own.
#[derive(Debug)]
pub(crate) struct ImpairmentState {
    pub(crate) what: Impairment,
    random: Seeded,
    /// Packets so far.
    count: u64,
    is_bad: bool,
}

impl ImpairmentState {
    pub(crate) fn new(what: Impairment, random: Seeded) -> ImpairmentState {
        ImpairmentState { what, random, count: 0, is_bad: false }
    }

    /// Is the next packet lost?
    pub(crate) fn should_drop(&mut self) -> bool {
        self.count += 1;
        match &self.what.loss {
            LossModel::None => false,
            LossModel::Random(share) => self.random.unit() < *share,
            LossModel::Every(n) => *n > 0 && self.count.is_multiple_of(u64::from(*n)),
            LossModel::Pattern(marks) => {
                let at = (self.count - 1) as usize;
                !marks.is_empty() && marks[at % marks.len()]
            }
            LossModel::Burst { p, r, bad, good } => {
                let turns = if self.is_bad { *r } else { *p };
                self.is_bad ^= self.random.unit() < turns;
                self.random.unit() < if self.is_bad { *bad } else { *good }
            }
        }
    }

    /// How much longer the next packet takes.
    pub(crate) fn extra(&mut self) -> Nanos {
        let mut extra = 0;
        if self.what.spread.0 > 0 {
            extra = (self.random.unit() * self.what.spread.0 as f64) as u64;
        }
        if self.what.reorder.share > 0.0 && self.random.unit() < self.what.reorder.share {
            extra += self.what.reorder.by.0;
        }
        Nanos(extra)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(loss: LossModel) -> f64 {
        let mut impairment =
            ImpairmentState::new(Impairment { loss, ..Impairment::default() }, Seeded::new(7));
        (0..1_000_000).filter(|_| impairment.should_drop()).count() as f64 / 1e6
    }

    /// Row V-E4's burst figures: in the long run the line is bad for p / (p + r) of the packets.
    #[test]
    fn shares_of_loss() {
        let burst = LossModel::Burst { p: 0.01, r: 0.1, bad: 0.7, good: 0.001 };
        let expected: f64 = (0.1 * 0.001 + 0.01 * 0.7) / 0.11;
        extern crate std;
        for (id, what, found, expected) in [
            ("V-E4-1", "random loss of 1 %", share(LossModel::Random(0.01)), 0.01),
            ("V-E4-2", "loss in bursts (1, 10, 70, 0.1 %)", share(burst), expected),
        ] {
            let within = (found / expected - 1.0).abs() < 0.03;
            std::println!(
                "validation: Queueing theory and hashing | {id} | {what}, a million packets | {expected:.5} \
                ± 3 % | {found:.5} | {} | Gilbert 1960, Elliott 1963",
                if within { "within" } else { "outside" }
            );
            assert!(within, "{what}: {found} for {expected}");
        }
        assert_eq!((share(LossModel::Every(8)), share(LossModel::None)), (0.125, 0.0));
        assert_eq!(share(LossModel::Pattern(alloc::vec![false, false, true, true])), 0.5);
    }
}
