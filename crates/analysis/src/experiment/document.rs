//! An experiment as JSON, and back. Member names are those of the structs, units included; docs/results.md
//! describes them.

use crate::json::{DocumentError, document, text};
use crate::outcome::scores;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tidegate_measure::experiment::{Experiment, RunRecord};

/// The member that gives the form, and its number: it changes when a member changes its meaning or is
/// removed.
const FORM: (&str, u64) = ("tidegate_experiment", 2);
const ORIGIN: &str = "a result is written by `tidegate sim FILE -o RESULT.json`";

/// An experiment as JSON, ended by a newline.
pub fn to_json(experiment: &Experiment) -> String {
    text(FORM, experiment, |value| {
        let Some(runs) = value.get_mut("runs").and_then(Value::as_array_mut) else { return };
        for (value, run) in runs.iter_mut().zip(&experiment.runs) {
            if experiment.execution == "field" {
                value["round_trips_per_minute"] = json!(run.responsiveness());
            }
            let probes = value.get_mut("probes").and_then(Value::as_array_mut);
            for (value, probe) in probes.into_iter().flatten().zip(&run.probes) {
                if let Some(scores) = scores(&probe.unit, &probe.figures(run.window)) {
                    value["qoo"] = scores;
                }
            }
        }
    })
}

/// Reads what [`to_json`] wrote. Members it does not know are passed over.
///
/// # Errors
///
/// The text is no JSON, of another form, or a member is missing, of another type or out of its range; the
/// error names the place.
pub fn from_json(text: &str) -> Result<Experiment, DocumentError> {
    let experiment: Experiment = document(text, FORM, ORIGIN)?;
    for (number, run) in experiment.runs.iter().enumerate() {
        if let Some(what) = out_of_range(run) {
            return Err(DocumentError { place: format!("runs[{number}]"), what, origin: ORIGIN });
        }
    }
    let mut known: BTreeMap<(&str, &str, u32), usize> = BTreeMap::new();
    for (number, run) in experiment.runs.iter().enumerate() {
        if let Some(first) = known.insert((&run.policy, &run.load, run.repeat), number) {
            let what =
                format!("the same policy, load and repeat as runs[{first}]; which is meant is unknown");
            return Err(DocumentError { place: format!("runs[{number}]"), what, origin: ORIGIN });
        }
    }
    Ok(experiment)
}

/// The longest run, ns: four months. Sums of times stay far below 2^64.
const MAX_NS: u64 = 10_000_000_000_000_000;
/// The most bytes in a series: with so many steps as a document may have the sum stays below 2^64.
const MAX_BYTES: u64 = 1 << 40;

/// Why a run's times or series are none; `None`: they may be.
fn out_of_range(run: &RunRecord) -> Option<String> {
    let steps = run.transfers.iter().map(|transfer| transfer.series.len());
    let steps = steps.chain(run.queues.iter().map(|queue| queue.backlog.len()));
    let steps = steps.chain(run.classes.iter().map(|class| class.sent.len())).max().unwrap_or(0) as u64;
    let long = |ns: u64| ns > MAX_NS;
    let answers = || run.probes.iter().flat_map(|probe| &probe.answers);
    if long(run.window.1) || steps.checked_mul(run.step_ns).is_none_or(long) {
        return Some("a run of more than four months".to_owned());
    }
    if answers().any(|(sent, took)| long(*sent) || took.is_some_and(long)) {
        return Some("a reply after more than four months".to_owned());
    }
    let mut series = run.transfers.iter().flat_map(|transfer| &transfer.series);
    let queues = run.queues.iter().flat_map(|queue| [&queue.sent, &queue.capacity, &queue.backlog]);
    let classes = run.classes.iter().flat_map(|class| [&class.sent, &class.backlog]);
    let large = |bytes: &u64| *bytes > MAX_BYTES;
    (series.any(large) || queues.chain(classes).flatten().any(large))
        .then(|| "a series with more than 2^40 bytes in a step".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_measure::experiment::{ProbeRecord, TransferRecord};

    #[test]
    fn runs_that_cannot_be_told_apart_are_refused() {
        let run = RunRecord { policy: "a".into(), step_ns: 1, window: (0, 1), ..RunRecord::default() };
        let other = RunRecord { repeat: 1, ..run.clone() };
        let read = |runs: &[&RunRecord]| {
            let runs = runs.iter().map(|run| (*run).clone()).collect();
            from_json(&to_json(&Experiment { runs, ..Experiment::default() }))
        };
        assert!(read(&[&run, &other]).is_ok());
        let error = read(&[&run, &other, &run]).expect_err("two of a kind");
        assert!(error.place == "runs[2]" && error.what.contains("runs[0]"), "{error}");
    }

    #[test]
    fn what_no_run_can_have_is_refused() {
        let series = TransferRecord { series: vec![u64::MAX; 2], ..TransferRecord::default() };
        let probe = ProbeRecord { answers: vec![(u64::MAX - 1, None)], ..ProbeRecord::default() };
        let plain = RunRecord { step_ns: 1, window: (0, 1), ..RunRecord::default() };
        let two = TransferRecord { series: vec![1; 2], ..TransferRecord::default() };
        for (run, what) in [
            (RunRecord { window: (0, u64::MAX), ..plain.clone() }, "a run of"),
            (RunRecord { step_ns: u64::MAX / 2 + 1, transfers: vec![two], ..plain.clone() }, "a run of"),
            (RunRecord { transfers: vec![series], ..plain.clone() }, "a series"),
            (RunRecord { probes: vec![probe], ..plain.clone() }, "a reply"),
        ] {
            let text = to_json(&Experiment { runs: vec![run], ..Experiment::default() });
            let error = from_json(&text).expect_err(what);
            assert!(error.place == "runs[0]" && error.what.starts_with(what), "{error}");
        }
        assert!(from_json(&to_json(&Experiment { runs: vec![plain], ..Experiment::default() })).is_ok());
    }
}
