//! An experiment as JSON, and back. Member names are those of the structs, units included; docs/results.md
//! describes them.

use crate::json::{DocumentError, document, text};
use serde_json::{Value, json};
use tidegate_measure::experiment::Experiment;

/// The member that gives the form, and its number: it changes when a member changes its meaning or is
/// removed.
const FORM: (&str, u64) = ("tidegate_experiment", 2);
const ORIGIN: &str = "a result is written by `tidegate sim FILE -o RESULT.json`";

/// An experiment as JSON, ended by a newline.
pub fn to_json(experiment: &Experiment) -> String {
    text(FORM, experiment, |value| {
        if experiment.execution == "field"
            && let Some(runs) = value.get_mut("runs").and_then(Value::as_array_mut)
        {
            for (value, run) in runs.iter_mut().zip(&experiment.runs) {
                value["round_trips_per_minute"] = json!(run.responsiveness());
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
    document(text, FORM, ORIGIN)
}
