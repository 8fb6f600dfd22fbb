//! What was lost on the way, in each direction, as one document.

use crate::oneway::{LossStats, Order};
use crate::spread::gathered_by_chance;
use crate::stream::StreamTrace;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Bursts whose probability by chance is at most this are reported as bursts.
const BY_CHANCE: f64 = 0.01;

/// What was lost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LossDocument {
    /// The version that measured.
    pub version: String,
    /// The command that measures again.
    pub again: String,
    /// Why it is not the whole, if it is not.
    pub partial: Option<String>,
    /// Each direction that was looked at.
    pub ways: Vec<DirectionLoss>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// One way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectionLoss {
    /// From where to where.
    pub name: String,
    /// What was lost; of what was only counted there are no runs.
    pub losses: LossStats,
    /// What was overtaken; `None`: it was only counted.
    pub order: Option<Order>,
    /// Copies beside the packets themselves.
    pub duplicates: u64,
}

impl DirectionLoss {
    /// Of packets each of which is known.
    pub fn of(name: &str, trace: &StreamTrace) -> DirectionLoss {
        DirectionLoss {
            name: name.into(),
            losses: LossStats::of(trace),
            order: Some(Order::of(trace)),
            duplicates: trace.packets.iter().map(|packet| u64::from(packet.duplicates)).sum(),
        }
    }

    /// Of packets that were counted on both sides; more at the remote end than were sent are duplicates.
    pub fn counted(name: &str, sent: u64, arrived: u64) -> DirectionLoss {
        let losses = LossStats { sent, lost: sent.saturating_sub(arrived), ..LossStats::default() };
        DirectionLoss { name: name.into(), losses, order: None, duplicates: arrived.saturating_sub(sent) }
    }

    /// When its figures must not be believed, and why.
    pub fn caveats(&self) -> Vec<String> {
        let LossStats { sent, lost, .. } = self.losses;
        let mut caveats = Vec::new();
        if sent == 0 {
            caveats.push(format!("{}: nothing was sent", self.name));
        } else if lost == sent {
            caveats.push(format!("{}: nothing arrived; a firewall, or the wrong server", self.name));
        } else if lost == 0 {
            // With 95 % confidence a share of up to three in so many shows nothing ("rule of three").
            caveats.push(format!(
                "{}: of {sent} packets none was lost, which a loss of up to {:.2} % may look like; -c sends more",
                self.name,
                self.losses.interval().1 * 100.0
            ));
        } else if self.order.is_some()
            && gathered_by_chance(sent, lost, self.losses.runs.len() as u64) < BY_CHANCE
        {
            caveats.push(format!(
                "{}: losses come in bursts (if each came for itself, {lost} would gather in so few in under \
                {} of 100 measurements), so the interval, which takes each for itself, is too narrow",
                self.name,
                BY_CHANCE * 100.0
            ));
        }
        caveats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn each_way_has_its_caveat() {
        let of = |sent, lost, runs| DirectionLoss {
            name: "up".into(),
            losses: LossStats { sent, lost, runs, ..LossStats::default() },
            order: Some(Order::default()),
            ..DirectionLoss::default()
        };
        let text_of = |way: DirectionLoss| way.caveats().join("|");
        assert!(text_of(of(0, 0, vec![])).contains("nothing was sent"));
        assert!(text_of(of(5, 5, vec![5])).contains("nothing arrived"));
        assert!(text_of(of(100, 0, vec![])).contains("up to 3.70 %"));
        assert!(text_of(of(1000, 3, vec![3])).contains("in under 1 of 100 measurements"));
        // Two neighbours of three losses are no more than chance makes.
        assert_eq!(text_of(of(100, 3, vec![2, 1])), "");
        assert_eq!(text_of(of(100, 2, vec![1, 1])), "");
    }

    #[test]
    fn counts_alone_know_no_order() {
        let way = DirectionLoss::counted("up", 10, 12);
        assert_eq!((way.losses.lost, way.duplicates, way.order), (0, 2, None));
        assert_eq!(DirectionLoss::counted("up", 10, 7).losses.lost, 3);
    }
}
