//! What a trial's figures do not say by themselves.

use crate::verdict::{idle_run, percentile, unloaded};
use std::collections::BTreeSet;
use tidegate_measure::trial::{LinkFacts, TrialProbe, TrialRun};

/// What "lost" is of something that takes several packets, where any was.
pub(crate) fn incomplete(runs: &[TrialRun]) -> Option<String> {
    let mut titles = BTreeSet::new();
    for run in runs {
        let is_lost =
            |probe: &&TrialProbe| probe.unit.starts_with("until") && probe.figures(run.window).lost > 0;
        titles.extend(run.probes.iter().filter(is_lost).map(|probe| probe.title.as_str()));
    }
    let titles: Vec<&str> = titles.into_iter().collect();
    (!titles.is_empty()).then(|| {
        format!(
            "lost ({}) is what was not complete when it was given up, or when the run ended",
            titles.join(", ")
        )
    })
}

/// On a slow link the web pages and logins that are timed fill it by themselves.
pub(crate) fn busy_idle(runs: &[TrialRun], link: &LinkFacts) -> Option<String> {
    let median = idle_run(runs).and_then(|run| percentile(run, 50.0));
    // The delays of a line that varies are not known beforehand.
    let is_busy = link.varies.is_none() && median.is_some_and(|measured| measured > 2 * unloaded(link));
    is_busy.then(|| {
        "the idle link is not idle at this rate: pings wait behind the other things that are timed, web pages \
        above all"
            .to_owned()
    })
}

/// What the rates of a line that varies are.
pub(crate) fn varying(link: &LinkFacts) -> Option<String> {
    let line = link.varies.as_ref()?;
    Some(format!(
        "the line varies ({line}): recorded rates are given as means over the whole recording, and its own \
         delays come on top of the round trip; runs of another length meet other parts of it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Ten pings and a page of an idle link.
    fn idle(ping_ms: u64, page_ms: Option<u64>) -> Vec<TrialRun> {
        let probe = |id: &str, title: &str, unit: &str, answer: Option<u64>| TrialProbe {
            id: id.into(),
            title: title.into(),
            unit: unit.into(),
            answers: (0..10).map(|at| (at, answer)).collect(),
            ..TrialProbe::default()
        };
        let probes = vec![
            probe("ping", "ping", "round trip", Some(ping_ms * MS)),
            probe("web", "web page", "until complete", page_ms.map(|ms| ms * MS)),
        ];
        vec![TrialRun { probes, window: (0, 10), ..TrialRun::default() }]
    }

    /// How busy the idle line is cannot be told from a mean rate; that it is a mean is said.
    #[test]
    fn a_line_that_varies_is_called_so() {
        let link =
            LinkFacts { up_bits: 1_000_000, down_bits: 10_000_000, rtt_ns: 30 * MS, ..LinkFacts::default() };
        let varies = LinkFacts { varies: Some("the preset lte, seed 1".into()), ..link.clone() };
        assert!(
            busy_idle(&idle(900, None), &link).is_some() && busy_idle(&idle(900, None), &varies).is_none()
        );
        assert!(varying(&link).is_none());
        assert!(
            varying(&varies)
                .is_some_and(|note| note.starts_with("the line varies (the preset lte, seed 1): "))
        );
    }

    #[test]
    fn notes_have_their_conditions() {
        let link =
            LinkFacts { up_bits: 1_000_000, down_bits: 10_000_000, rtt_ns: 30 * MS, ..LinkFacts::default() };
        // A full frame takes 12.1 ms up and 1.2 ms down: 43.3 ms where nothing waits.
        assert_eq!(busy_idle(&idle(86, Some(1)), &link), None);
        assert!(busy_idle(&idle(87, Some(1)), &link).is_some_and(|note| note.contains("is not idle")));
        assert_eq!(incomplete(&idle(30, Some(1))), None);
        let note = incomplete(&idle(30, None));
        assert!(note.is_some_and(|note| note.starts_with("lost (web page) is what was not complete")));
        // A ping is answered or it is not: that needs no explanation.
        let mut lost = idle(30, Some(1));
        lost[0].probes[0].answers[0].1 = None;
        assert_eq!(incomplete(&lost), None);
    }
}
