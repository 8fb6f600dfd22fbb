//! One of the results that are compared.

use tidegate_measure::experiment::Experiment;

/// A result and what it is called here.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// A short name: its file's.
    pub label: String,
    /// The result.
    pub experiment: Experiment,
}

/// How a result came about, and by which version of what.
pub fn by(experiment: &Experiment) -> String {
    match experiment.execution.as_str() {
        "flent" => format!("flent {}", experiment.version),
        execution => format!("{execution}, tidegate {}", experiment.version),
    }
}
