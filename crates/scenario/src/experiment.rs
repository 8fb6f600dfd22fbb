//! A whole experiment in virtual time.

use crate::document;
use crate::drive::run;
use crate::expectations;
use crate::files::Files;
use crate::model::{Scenario, TimelineEntry};
use crate::prepare::{Prepared, prepare};
use crate::run::{CaseRun, RunError, RunWatch};
use crate::simulated::Simulated;
use crate::tables::Diagnostic;
use std::sync::atomic::AtomicBool;
use tidegate_measure::experiment::{Experiment, RunRecord};

/// All runs: by policy, then by load, then by repeat.
pub fn cases(scenario: &Scenario) -> Vec<CaseRun> {
    let repeats = |&(policy, load)| (0..scenario.repeats).map(move |repeat| CaseRun { policy, load, repeat });
    scenario.cases.iter().flat_map(repeats).collect()
}

/// How many seconds of link time all runs take together, up to the last one's end.
pub fn link_seconds(scenario: &Scenario) -> u64 {
    cases(scenario).len() as u64 * (scenario.end().0 / 1_000_000_000)
}

/// Whether simulated hosts can produce all of the traffic.
///
/// # Errors
/// The first program: those run on real hosts only.
pub fn can_be_simulated(scenario: &Scenario) -> Result<(), Diagnostic> {
    match scenario.cases.iter().flat_map(|(_, load)| &scenario.loads[*load].programs).next() {
        None => Ok(()),
        Some(program) => {
            let how = "`tidegate lab` runs them on real hosts; for the rest of the file: `--load NAME` of a \
            load without";
            Err(Diagnostic::new(program.at.clone(), "simulated hosts run no programs", how))
        }
    }
}

/// Does one run of a scenario in virtual time.
///
/// # Errors
/// A policy that a machine refuses, or a failure of the observer.
pub fn simulate_case(
    scenario: &Scenario,
    prepared: &Prepared,
    case: CaseRun,
    commands: &[TimelineEntry],
    watch: RunWatch<'_>,
) -> Result<RunRecord, RunError> {
    run(scenario, prepared, case, commands, watch, Simulated::default())
}

/// Carries out all runs of a scenario in virtual time, one after the other, and checks the expectations. A
/// program with several processors can use the parts, with [`simulate_case`] on each: runs share nothing that
/// changes.
///
/// # Errors
/// What a machine refuses, a program that would have to run, or a figure that nothing measures; each with its
/// place.
pub fn simulate(scenario: &mut Scenario, files: &dyn Files) -> Result<Experiment, RunError> {
    let prepared = prepare(scenario, files)?;
    can_be_simulated(scenario)?;
    let never = AtomicBool::new(false);
    let mut runs = Vec::new();
    for case in cases(scenario) {
        let watch = RunWatch { stop: &never, seconds: &|_| {}, observer: None };
        runs.push(simulate_case(scenario, &prepared, case, &[], watch)?);
    }
    let experiment = document::experiment(scenario, &prepared, "sim", String::new(), runs);
    expectations::check(scenario, &experiment)?;
    Ok(experiment)
}
