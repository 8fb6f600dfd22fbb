//! A scenario's text, carried out.

use crate::refusal::Refusal;
use crate::request::{RequestLimits, SimRequest};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use tidegate_scenario::run::{RunError, RunWatch};
use tidegate_scenario::shell::quoted_input;
use tidegate_scenario::tables::Diagnostic;
use tidegate_scenario::{
    CaseChoice, NoFiles, can_be_simulated, cases, check, document, link_seconds, parse, prepare, quantities,
    simulate_case,
};

/// `tidegate sim --json`.
pub(crate) fn sim(request: &SimRequest) -> Result<String, Refusal> {
    let text = request.scenario.as_str();
    let wrong = |wrong: Diagnostic| Refusal::of_scenario(&wrong, text);
    let path = Path::new(&request.name);
    let mut scenario = parse(path, text, &NoFiles).map_err(wrong)?;
    let duration = request.duration.as_deref().map(quantities::measured).transpose().map_err(Refusal::new)?;
    let choice = CaseChoice {
        policies: request.policies.clone(),
        loads: request.loads.clone(),
        seed: request.seed,
        repeats: request.repeats,
        duration,
    };
    choice.narrow(&mut scenario).map_err(Refusal::new)?;
    let seconds = link_seconds(&scenario);
    if seconds > RequestLimits::SECONDS {
        return Err(Refusal::with(
            format!(
                "all runs together last {seconds} s, and {} s are the most in a page",
                RequestLimits::SECONDS
            ),
            "shorten `duration`, or run the file with `tidegate sim`",
        ));
    }
    let prepared = prepare::prepare(&mut scenario, &NoFiles).map_err(wrong)?;
    can_be_simulated(&scenario).map_err(wrong)?;
    let mut runs = Vec::new();
    for case in cases(&scenario) {
        let stop = AtomicBool::new(false);
        let watch = RunWatch { stop: &stop, seconds: &|_| {}, observer: None };
        let run = simulate_case(&scenario, &prepared, case, &[], watch);
        runs.push(run.map_err(|error| match error {
            RunError::Scenario(diagnostic) => wrong(diagnostic),
            other => Refusal::new(other.to_string()),
        })?);
    }
    let again = format!("tidegate sim {}{}", quoted_input(path), choice.words(Some(scenario.seed)));
    let experiment = document::experiment(&scenario, &prepared, "sim", again, runs);
    check(&scenario, &experiment).map_err(wrong)?;
    Ok(tidegate_analysis::experiment::to_json(&experiment))
}
