//! What takes longer, or is lost more often, with the policy: a headline about the ping says nothing of the
//! rest.

use crate::figures::seconds;
use tidegate_measure::numbers::percent;
use tidegate_measure::trial::{TrialDocument, TrialProbe, TrialRun};

/// The most that are named.
const NAMED: usize = 3;
/// A time is worse if it is this many times longer and by this many ns.
const RATIO: f64 = 1.25;
const LONGER_NS: u64 = 10_000_000;
/// A loss is worse if it is higher by this share.
const MORE_LOST: f64 = 0.02;

/// What is worse with the policy, under any load, the worst first; `None`: nothing is.
pub(super) fn sentence(trial: &TrialDocument) -> Option<String> {
    let mut found: Vec<(f64, String)> = pairs(trial).filter_map(worse).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let more = found.len().saturating_sub(NAMED);
    let mut named: Vec<String> = found.into_iter().take(NAMED).map(|(_, text)| text).collect();
    if more > 0 {
        named.push(format!("and {more} more in the tables"));
    }
    (!named.is_empty()).then(|| format!("Worse with the policy in this run: {}.", named.join("; ")))
}

/// A probe under a load, without and with the policy.
type Pair<'t> = ((&'t TrialRun, &'t TrialProbe), (&'t TrialRun, &'t TrialProbe));

fn pairs(trial: &TrialDocument) -> impl Iterator<Item = Pair<'_>> {
    let runs = trial.runs.iter().filter(|run| !run.policy).filter_map(|without| {
        let is_twin = |run: &&TrialRun| run.policy && !run.witnesses && run.load == without.load;
        Some((without, trial.runs.iter().find(is_twin)?))
    });
    runs.flat_map(|(without, with)| {
        without.probes.iter().filter_map(move |before| {
            let after = with.probes.iter().find(|probe| probe.id == before.id)?;
            Some(((without, before), (with, after)))
        })
    })
}

/// How many times worse a probe fares, and in what; `None`: it does not.
fn worse(((without, before), (with, after)): Pair<'_>) -> Option<(f64, String)> {
    let (a, b) = (before.figures(without.window), after.figures(with.window));
    let mut changes = Vec::new();
    let mut worst = 1.0_f64;
    for (percentile, name) in [(50.0, "half"), (95.0, "95 %")] {
        if let Some((was, is)) = a.rtt.percentile(percentile).zip(b.rtt.percentile(percentile)) {
            let ratio = is as f64 / was.max(1) as f64;
            if ratio >= RATIO && is - was >= LONGER_NS {
                worst = worst.max(ratio);
                changes.push(format!("{name} within {} instead of {}", seconds(is), seconds(was)));
            }
        }
    }
    if b.loss() > a.loss() + MORE_LOST {
        worst = worst.max(b.loss() / a.loss().max(MORE_LOST));
        changes.push(format!("{} lost instead of {}", percent(b.loss()), percent(a.loss())));
    }
    let load = match with.flows.is_empty() {
        true => " on the idle link".to_owned(),
        false => format!(" under {}", with.title),
    };
    let text = || format!("{}{load} ({})", after.title, changes.join(", "));
    (!changes.is_empty()).then(|| (worst, text()))
}
