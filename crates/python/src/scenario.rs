//! `simulate`.

use crate::failure::Failure;
use crate::input::{Confined, Given};
use crate::watch::watched;
use pyo3::prelude::*;
use std::sync::atomic::Ordering;
use tidegate_analysis::experiment::{from_json, to_json};
use tidegate_scenario::quantities::run_time;
use tidegate_scenario::run::{ExperimentWatch, RunError};
use tidegate_scenario::settings::{Setting, set_named};
use tidegate_scenario::shell::{quoted, quoted_input};
use tidegate_scenario::{CaseChoice, document, parse, prepare::prepare};
use tidegate_sessions::simulated::{self, ScenarioFiles};

/// Which cases of a scenario are run.
#[derive(Clone, Debug, FromPyObject)]
pub(crate) struct Cases {
    #[pyo3(item)]
    policies: Vec<String>,
    #[pyo3(item)]
    loads: Vec<String>,
    #[pyo3(item)]
    seed: Option<u64>,
    #[pyo3(item)]
    repeats: Option<u32>,
    #[pyo3(item)]
    duration: Option<String>,
}

/// The most repeats of a case.
const MAX_REPEATS: u32 = 10_000;

impl Cases {
    /// The same, for the libraries.
    pub(crate) fn choice(&self) -> Result<CaseChoice, Failure> {
        let time =
            |text: &String| run_time(text).map_err(|why| Failure::input(format!("duration {text}: {why}")));
        if self.repeats.is_some_and(|repeats| repeats == 0 || repeats > MAX_REPEATS) {
            return Err(Failure::input(format!("repeats must be 1 to {MAX_REPEATS}")));
        }
        Ok(CaseChoice {
            policies: self.policies.clone(),
            loads: self.loads.clone(),
            seed: self.seed,
            repeats: self.repeats,
            duration: self.duration.as_ref().map(time).transpose()?,
        })
    }
}

/// All runs of a scenario, as `tidegate sim --json` prints them, and the exit code that it has.
#[pyfunction]
pub(crate) fn simulate(
    py: Python<'_>,
    scenario: Given,
    set: Vec<(String, String)>,
    cases: Cases,
    sandbox: Confined,
    report: Option<Bound<'_, PyAny>>,
) -> PyResult<(String, u8)> {
    watched(py, report.as_ref(), move |watch| {
        let (path, text) = (scenario.path.as_path(), scenario.scenario()?);
        let set: Vec<Setting> = set.into_iter().map(|(path, value)| Setting { path, value }).collect();
        let text = set_named(&text, &set).map_err(|wrong| Failure::input(format!("set {wrong}")))?;
        let files = ScenarioFiles { sandbox: sandbox.options()? };
        let wrong = |wrong| Failure::scenario(&wrong, path, &text);
        let mut scenario = parse(path, &text, &files).map_err(wrong)?;
        let choice = cases.choice()?;
        choice.narrow(&mut scenario).map_err(Failure::input)?;
        let prepared = prepare(&mut scenario, &files).map_err(wrong)?;
        let of_runs = ExperimentWatch {
            stop: &watch.stop,
            begin: &|_, seconds| watch.total.store(seconds, Ordering::Relaxed),
            seconds: &|more| watch.add(more),
            observer: &|| None,
        };
        let runs =
            simulated::carry_out(&scenario, &prepared, &[], &of_runs).map_err(|error| match error {
                RunError::Scenario(diagnostic) => wrong(diagnostic),
                other => Failure::input(other),
            })?;
        let set: String = set.iter().map(|one| format!(" --set {}", quoted(&one.to_string()))).collect();
        let words = choice.words(Some(scenario.seed));
        let again = format!("tidegate sim {}{set}{words}", quoted_input(path));
        let experiment = document::experiment(&scenario, &prepared, "sim", again, runs);
        tidegate_scenario::check(&scenario, &experiment).map_err(wrong)?;
        let failed = experiment.comparisons.iter().any(|one| one.gated && !one.held);
        Ok((to_json(&experiment), u8::from(failed)))
    })
}

/// The page of an experiment, as `tidegate sim -o FILE.html` writes it.
#[pyfunction]
pub(crate) fn experiment_html(py: Python<'_>, json: String) -> PyResult<String> {
    watched(py, None, move |_| {
        let experiment = from_json(&json).map_err(Failure::input)?;
        Ok(tidegate_report::experiment::page(&experiment))
    })
}
