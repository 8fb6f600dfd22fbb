//! What takes longer, or is lost more often, with the policy: a headline about the ping says nothing of the
//! rest.

use crate::figures::{pairs_of_runs, seconds};
use tidegate_measure::numbers::percent;
use tidegate_measure::trial::{TrialDocument, TrialProbe, TrialRun};

/// The most that are named.
const NAMED: usize = 3;
/// A time is worse if it is this many times longer and by this many ns.
const RATIO: f64 = 1.25;
const LONGER_NS: u64 = 10_000_000;
/// A loss is worse if it is higher by this share.
const MORE_LOST: f64 = 0.02;

/// What is worse with the policy, under any load, the worst first, but for a load and probe that the headline
/// is about; `None`: nothing is.
pub(super) fn sentence(trial: &TrialDocument, (load, probe): (&str, &str)) -> Option<String> {
    let is_new = |pair: &Pair<'_>| pair.0.0.load != load || pair.0.1.id != probe;
    let mut found: Vec<(f64, String)> = pairs(trial).filter(is_new).filter_map(worse).collect();
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
    pairs_of_runs(trial).flat_map(|(without, with)| {
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
    for (percentile, name) in [(50.0, "median"), (95.0, "95th percentile")] {
        if let Some((was, is)) = a.rtt.percentile(percentile).zip(b.rtt.percentile(percentile)) {
            let ratio = is as f64 / was.max(1) as f64;
            if ratio >= RATIO && is - was >= LONGER_NS {
                worst = worst.max(ratio);
                changes.push(format!("{name} {} instead of {}", seconds(is), seconds(was)));
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

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const STEP: u64 = 100 * MS;

    fn run(policy: bool, probes: &[(&str, Option<u64>)]) -> TrialRun {
        let probe = |(id, ms): &(&str, Option<u64>)| TrialProbe {
            id: (*id).into(),
            title: (*id).into(),
            answers: (0..100).map(|n| (n * STEP, ms.map(|ms| ms * MS))).collect(),
            ..TrialProbe::default()
        };
        TrialRun {
            load: "up".into(),
            title: "1 upload".into(),
            policy,
            window: (0, 100 * STEP),
            step_ns: STEP,
            probes: probes.iter().map(probe).collect(),
            flows: vec![tidegate_measure::trial::TrialFlow::default()],
            ..TrialRun::default()
        }
    }

    fn said(without: &[(&str, Option<u64>)], with: &[(&str, Option<u64>)]) -> Option<String> {
        let runs = vec![run(false, without), run(true, with)];
        sentence(&TrialDocument { runs, ..TrialDocument::default() }, ("up", "ping"))
    }

    #[test]
    fn what_gets_worse_is_named_and_what_does_not_is_not() {
        let before = [("ping", Some(100)), ("dns", Some(100)), ("call", Some(100))];
        assert_eq!(said(&before, &before), None);
        // A little longer, and what the headline is about.
        assert_eq!(said(&before, &[("ping", Some(900)), ("dns", Some(110)), ("call", Some(90))]), None);
        assert_eq!(
            said(&[("dns", Some(4))], &[("dns", Some(12))]),
            None,
            "8 ms are little, though thrice as long"
        );
        let expected = "Worse with the policy in this run: call under 1 upload (100.0 % lost instead of 0.0 %); \
            dns under 1 upload (median 300 ms instead of 100 ms, 95th percentile 300 ms instead of 100 ms).";
        let after = [("ping", Some(30)), ("dns", Some(300)), ("call", None)];
        assert_eq!(said(&before, &after).as_deref(), Some(expected));
    }

    #[test]
    fn three_are_named_and_the_others_counted() {
        let names = ["a", "b", "c", "d", "e"];
        let (before, after) = (names.map(|name| (name, Some(20))), names.map(|name| (name, Some(200))));
        let text = said(&before, &after).expect("all are worse");
        assert!(text.ends_with("; and 2 more in the tables."), "{text}");
    }
}
