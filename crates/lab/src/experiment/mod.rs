//! A scenario's experiment with real hosts: their kernel's TCP and real programs, by the real clock.
//!
//! ```text
//! Scenario ── possible ──▶ case × repeat, one after the other:
//!     lay (a World, as for sim) ──▶ RealTraffic: a namespace per host, TUN devices, Driver ──▶ the same RunRecord as sim's
//! ```
//! The process must be one that may make namespaces (`tidegate_sys::apart`), and cover `/etc/hosts` of its
//! own.

mod behind;
mod error;
mod hosts;
mod kernel;
mod names;
mod scheduling;
mod traffic;

pub use behind::{ReadStep, RealNetwork, host_place};
pub use error::{Error, Result};
pub use hosts::possible;
pub use scheduling::SchedulingOptions;

use std::sync::atomic::Ordering;
use tidegate_measure::experiment::RunRecord;
use tidegate_scenario::model::{Scenario, TimelineEntry};
use tidegate_scenario::prepare::Prepared;
use tidegate_scenario::run::{ExperimentWatch, Outside, RunError, RunObserver, RunWatch};
use tidegate_scenario::{cases, link_seconds, run};
use traffic::RealTraffic;

/// How an experiment is carried out with real hosts.
#[derive(Clone, Copy, Debug, Default)]
pub struct LabSettings {
    /// The machine with the policy is this computer's kernel, and not the model.
    pub kernel_router: bool,
    /// Hosts send each segment on its own, as simulated ones do (GSO off).
    pub single_segments: bool,
    /// What the network gets of the machine.
    pub scheduling: SchedulingOptions,
}

/// All runs of a scenario, one after the other: by policy, then by load, then by repeat. After `stop` what
/// was done by then, one run at least. `say` gets messages about the scenario's programs that failed.
///
/// # Errors
/// The scenario requests what real hosts or this machine cannot do, a host cannot be made, or an observer
/// fails: an [`Error`] in [`RunError::Outside`]. A machine refuses a command: [`RunError::Scenario`].
pub fn carry_out(
    scenario: &Scenario,
    prepared: &Prepared,
    commands: &[TimelineEntry],
    settings: &LabSettings,
    watch: &ExperimentWatch<'_>,
    say: &dyn Fn(&str),
) -> Result<Vec<RunRecord>, RunError> {
    possible(scenario).map_err(outside)?;
    let mut scenario = scenario.clone();
    let mut first = (watch.observer)();
    if settings.kernel_router {
        scenario.kernel = Some(kernel::machine(&scenario, first.is_some()).map_err(outside)?);
    }
    let scenario = &scenario;
    let cases = cases(scenario);
    (watch.begin)(cases.len(), link_seconds(scenario));
    let mut runs = Vec::new();
    for case in cases {
        if !runs.is_empty() && watch.stop.load(Ordering::Relaxed) {
            break;
        }
        let plan = kernel::Plan::of(scenario, prepared, case.policy).map_err(outside)?;
        let traffic = RealTraffic::new((settings.scheduling, settings.single_segments), plan, say);
        let mut observer = if runs.is_empty() { first.take() } else { (watch.observer)() };
        let observer = observer.as_mut().map(|one| one.as_mut() as &mut dyn RunObserver);
        let watch = RunWatch { stop: watch.stop, seconds: watch.seconds, observer };
        runs.push(run(scenario, prepared, case, commands, watch, traffic)?);
    }
    Ok(runs)
}

fn outside(error: Error) -> RunError {
    RunError::Outside(Outside::from(error))
}
