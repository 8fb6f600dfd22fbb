//! Runs and figures that sentences are about.

use tidegate_measure::numbers::milliseconds;
use tidegate_measure::trial::{TrialDocument, TrialRun};

/// A time: below a second in ms, above in s.
pub(crate) fn seconds(ns: u64) -> String {
    if ns < 1_000_000_000 { milliseconds(ns) } else { format!("{:.1} s", ns as f64 / 1e9) }
}

/// The runs of each load, without and with the policy.
pub(crate) fn pairs_of_runs(trial: &TrialDocument) -> impl Iterator<Item = (&TrialRun, &TrialRun)> {
    trial.runs.iter().filter(|run| !run.policy).filter_map(|without| {
        let is_twin = |run: &&TrialRun| run.policy && !run.witnesses && run.load == without.load;
        Some((without, trial.runs.iter().find(is_twin)?))
    })
}

/// Those of loads that fill the link.
pub(crate) fn loads(trial: &TrialDocument) -> impl Iterator<Item = (&TrialRun, &TrialRun)> {
    pairs_of_runs(trial).filter(|(without, _)| !without.flows.is_empty())
}

/// The first step of the window.
pub(crate) fn window_start(run: &TrialRun) -> usize {
    (run.window.0 / run.step_ns.max(1)) as usize
}
