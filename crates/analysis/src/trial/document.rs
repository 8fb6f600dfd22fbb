//! A trial as JSON, and back.

use crate::json::{DocumentError, document, text};
use crate::outcome::scores;
use serde_json::Value;
use tidegate_measure::trial::TrialDocument;

/// The member that gives the form, and its number: it changes when a member changes its meaning or is
/// removed.
const FORM: (&str, u64) = ("tidegate_trial", 2);
const ORIGIN: &str = "a trial is written by `tidegate try SCRIPT --json`";

/// The name of the load `idle` in results of 0.1.0.
const OLD_IDLE: &str = "empty";

/// A trial as JSON, ended by a newline.
pub fn to_json(trial: &TrialDocument) -> String {
    text(FORM, trial, |value| {
        let runs = value.get_mut("runs").and_then(Value::as_array_mut);
        for (value, run) in runs.into_iter().flatten().zip(&trial.runs) {
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
pub fn from_json(text: &str) -> Result<TrialDocument, DocumentError> {
    let mut trial: TrialDocument = document(text, FORM, ORIGIN)?;
    for run in trial.runs.iter_mut().filter(|run| run.load == OLD_IDLE) {
        run.load = "idle".to_owned();
    }
    Ok(trial)
}
