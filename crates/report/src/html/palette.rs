//! The colours of classes: each the same everywhere on the page.

use crate::chart::{COLOURS, OTHERS};
use tidegate_measure::trial::TrialDocument;

/// Which class has which colour.
#[derive(Debug)]
pub(super) struct Palette {
    chosen: Vec<String>,
}

impl Palette {
    /// Colours for the leaf classes that sent anything; where there are more than colours, for those that
    /// sent most.
    pub(super) fn new(trial: &TrialDocument) -> Palette {
        let mut leaves: Vec<(String, u64)> = Vec::new();
        for class in trial.runs.iter().flat_map(|run| &run.classes).filter(|class| class.leaf) {
            let sent: u64 = class.sent.iter().sum();
            match leaves.iter_mut().find(|(id, _)| *id == class.id) {
                Some(known) => known.1 += sent,
                None => leaves.push((class.id.clone(), sent)),
            }
        }
        leaves.retain(|(_, sent)| *sent > 0);
        if leaves.len() > COLOURS {
            let mut most: Vec<u64> = leaves.iter().map(|(_, sent)| *sent).collect();
            most.sort_unstable_by(|a, b| b.cmp(a));
            leaves.retain(|(_, sent)| *sent >= most[COLOURS - 1]);
            leaves.truncate(COLOURS);
        }
        Palette { chosen: leaves.into_iter().map(|(id, _)| id).collect() }
    }

    /// The colour of a class, from 1.
    pub(super) fn colour(&self, id: &str) -> usize {
        self.own(id).unwrap_or(OTHERS)
    }

    /// Its colour if it has one of its own.
    pub(super) fn own(&self, id: &str) -> Option<usize> {
        self.chosen.iter().position(|known| known == id).map(|n| n + 1)
    }
}
