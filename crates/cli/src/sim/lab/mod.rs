//! `tidegate lab FILE`: the experiment of a scenario's file with real hosts, their kernel's TCP and real programs, by the real clock.
//!
//! ```text
//! tidegate lab ──▶ itself, apart (own users, processes, networks) ──▶ Scenario ──▶ case × repeat, one after the other:
//!     lay (a World, as for sim) ──▶ Real: a namespace per host, TUN devices, Driver ──▶ the same document ──▶ judge, text, JSON, page
//! ```

mod hosts;
mod kernel;
mod names;
mod options;
mod real;
pub mod shell;

pub use options::{Options, Who};

use super::packets::{self, Packets};
use super::{WRONG, experiment, failed, progress};
use real::Real;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use tidegate_measure::experiment::Run;
use tidegate_os::apart::{self, Ended};
use tidegate_scenario::model::{Scenario, TimelineEntry};
use tidegate_scenario::prepare::Prepared;
use tidegate_scenario::run::{RunObserver, RunWatch};
use tidegate_scenario::{cases, run};

/// Runs that take longer are announced, s.
const LONG: u64 = 60;

/// Plays `tidegate lab`.
pub fn command(options: &Options) -> ExitCode {
    if !apart::here() {
        return set_apart();
    }
    match experiment(&options.scenario, ("lab", &options.own_words()), &|scenario, prepared, asked, stop| {
        carry_out(options, scenario, prepared, asked, stop)
    }) {
        Ok((text, code)) => {
            crate::output::text(&text);
            ExitCode::from(code)
        }
        Err(error) => {
            eprintln!("tidegate lab: {error:#}");
            ExitCode::from(WRONG)
        }
    }
}

/// Has this command carried out where it can harm nothing, and tells how it ended.
fn set_apart() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    match apart::run(&words) {
        Ok(Ended::Code(code)) => ExitCode::from(code),
        Ok(Ended::Refused) => {
            eprintln!(
                "tidegate: hosts of its own need namespaces: run it as root, or allow them to everybody \
                 (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0)"
            );
            ExitCode::from(WRONG)
        }
        Err(error) => {
            eprintln!("tidegate: could not start: {error}");
            ExitCode::from(WRONG)
        }
    }
}

/// All runs, one after the other: by policy, then by load, then by repeat.
fn carry_out(
    options: &Options,
    scenario: &Scenario,
    prepared: &Prepared,
    asked: &[TimelineEntry],
    stop: &AtomicBool,
) -> anyhow::Result<Vec<Run>> {
    hosts::possible(scenario)?;
    let mut scenario = scenario.clone();
    if options.router == Who::Kernel {
        scenario.kernel = Some(kernel::machine(&scenario, options.scenario.pcapng.is_some())?);
    }
    let scenario = &scenario;
    let cases = cases(scenario);
    let seconds = cases.len() as u64 * (scenario.end().0 / 1_000_000_000);
    if seconds > LONG {
        eprintln!("tidegate lab: {} runs take {seconds} s; Ctrl-C writes what is done by then", cases.len());
    }
    let bar = progress("running", seconds);
    let packets = options.scenario.pcapng.as_deref().map(packets::Wanted::parse);
    let mut runs = Vec::new();
    for case in cases {
        if !runs.is_empty() && stop.load(Ordering::Relaxed) {
            break;
        }
        let traffic = Real::new(options, kernel::Plan::of(scenario, prepared, case.policy)?);
        let mut packets = packets.as_ref().map(Packets::new);
        let observer = packets.as_mut().map(|packets| packets as &mut dyn RunObserver);
        let watch = RunWatch { stop, seconds: &|n| bar.inc(n), observer };
        let done = run(scenario, prepared, case, asked, watch, traffic);
        runs.push(done.map_err(|error| failed(scenario, error))?);
    }
    bar.finish_and_clear();
    Ok(runs)
}
