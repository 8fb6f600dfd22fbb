//! How what is shown looks, and what fits one chart.

use crate::chart::{LOOKS, Look};

pub(crate) use tidegate_analysis::experiment::{
    Happened, RunView, Under, distinct, end_of, happened, label, title, typical,
};

/// How a run looks on charts.
pub(crate) trait Looks {
    /// Its policy's look.
    fn look(&self) -> Look;
}

impl Looks for RunView<'_> {
    fn look(&self) -> Look {
        Look(self.policy)
    }
}

/// Policies that fit one chart: each such group has its own.
pub(crate) fn charts_of<'s, 'e>(shown: &'s [RunView<'e>]) -> impl Iterator<Item = &'s [RunView<'e>]> {
    shown.chunks(LOOKS)
}
