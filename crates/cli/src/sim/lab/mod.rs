//! `tidegate lab FILE`: the experiment of a scenario's file with real hosts, their kernel's TCP and real
//! programs, by the real clock.
//!
//! ```text
//! tidegate lab ──▶ itself, apart (own users, processes, networks) ──▶ Scenario ──▶ case × repeat, one after the other:
//!     tidegate_lab::experiment (a namespace per host, TUN devices, Driver) ──▶ the same document ──▶ expectations, text, JSON, page
//! ```

mod options;
pub mod shell;

pub use options::{Options, Who};

use super::{carry_through, failed, packets, progress};
use crate::exit::CliExit;
use indicatif::ProgressBar;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use tidegate_lab::experiment::{self, LabSettings};
use tidegate_measure::experiment::RunRecord;
use tidegate_scenario::model::{Scenario, TimelineEntry};
use tidegate_scenario::prepare::Prepared;
use tidegate_scenario::run::ExperimentWatch;
use tidegate_sys::apart::{self, Ended};

/// Runs that take longer are announced, s.
const LONG: u64 = 60;

/// Plays `tidegate lab`.
pub fn command(options: &Options) -> ExitCode {
    if !apart::here() {
        return set_apart();
    }
    match carry_through(
        &options.scenario,
        ("lab", &options.own_words()),
        &|scenario, prepared, commands, stop| carry_out(options, scenario, prepared, commands, stop),
    ) {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("tidegate lab: {error:#}");
            CliExit::of(&error).into()
        }
    }
}

/// Has this command carried out in isolation, and returns how it ended.
fn set_apart() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    match apart::run(&words) {
        Ok(Ended::Code(code)) => ExitCode::from(code),
        Ok(Ended::Refused) => {
            refused();
            CliExit::NotPermitted.into()
        }
        Err(error) => {
            eprintln!("tidegate: cannot start: {error}");
            CliExit::of(&error.into()).into()
        }
    }
}

/// What is needed to be set apart.
fn refused() {
    eprintln!(
        "tidegate: network namespaces are needed: run it as root, or allow unprivileged user namespaces \
         (sysctl kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0); \
         `tidegate sim` and `tidegate try` need neither"
    );
}

/// All runs, one after the other.
fn carry_out(
    options: &Options,
    scenario: &Scenario,
    prepared: &Prepared,
    commands: &[TimelineEntry],
    stop: &AtomicBool,
) -> anyhow::Result<Vec<RunRecord>> {
    let bar = OnceLock::new();
    let packets = options.scenario.pcapng.as_deref().map(packets::Wanted::parse);
    let watch = ExperimentWatch {
        stop,
        begin: &|runs, seconds| {
            if seconds > LONG {
                eprintln!("tidegate lab: {runs} runs take {seconds} s; Ctrl-C writes what is done by then");
            }
            bar.get_or_init(|| progress("running", seconds));
        },
        seconds: &|more| bar.get().into_iter().for_each(|bar| bar.inc(more)),
        observer: &|| packets.as_ref().map(packets::observer),
    };
    let settings = LabSettings {
        kernel_router: options.router == Who::Kernel,
        single_segments: options.no_gso,
        scheduling: options.effort.into(),
    };
    let say = |words: &str| eprintln!("tidegate lab: {words}");
    let runs = experiment::carry_out(scenario, prepared, commands, &settings, &watch, &say);
    bar.get().into_iter().for_each(ProgressBar::finish_and_clear);
    runs.map_err(|error| failed(scenario, error))
}
