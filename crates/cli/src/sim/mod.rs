//! `tidegate sim FILE`: an experiment that a file describes.
//!
//! ```text
//! file/ ──▶ Scenario ──▶ prepare (policies loaded, tried once)
//!                          └─ cases × repeats: lay (a World) ──▶ run (read step by step) ──▶ document ──▶ expectations ──▶ text, JSON, page
//! ```
//! The same file and seed give the same document to the byte, however many processors work on it.

mod files;
pub mod lab;
mod options;
mod pace;
mod packets;
mod text;

pub(crate) use options::CaseOptions;
pub use options::Options;
pub(crate) use pace::{Pace, progress};

use crate::exit::CliExit;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use tidegate_measure::experiment::{Experiment, RunRecord};
use tidegate_scenario::document;
use tidegate_scenario::model::{MachineCommand, Scenario, TimelineEntry, TimelineEvent};
use tidegate_scenario::prepare::{self, Prepared};
use tidegate_scenario::run::{ExperimentWatch, RunError};
use tidegate_scenario::settings::{Setting, set_named};
use tidegate_scenario::shell::{exact_time as time, quoted, quoted_input};
use tidegate_scenario::tables::Diagnostic;
use tidegate_sessions::simulated::{self, ScenarioFiles};

/// Plays `tidegate sim`.
pub fn command(options: &Options) -> ExitCode {
    match attempt(options) {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("tidegate sim: {error:#}");
            CliExit::of(&error).into()
        }
    }
}

/// Carries out all runs of a scenario.
type CarryOut<'c> =
    &'c dyn Fn(&Scenario, &Prepared, &[TimelineEntry], &AtomicBool) -> anyhow::Result<Vec<RunRecord>>;

fn attempt(options: &Options) -> anyhow::Result<CliExit> {
    let packets = options.pcapng.as_deref().map(packets::Wanted::parse);
    carry_through(options, ("sim", ""), &|scenario, prepared, commands, stop| {
        simulate(scenario, prepared, commands, packets.as_ref(), stop)
    })
}

/// Reads the scenario, carries out its runs, prints the result and writes its files; `execution`: `sim`,
/// `lab`.
fn carry_through(
    options: &Options,
    (execution, own): (&str, &str),
    carry_out: CarryOut<'_>,
) -> anyhow::Result<CliExit> {
    let disk = ScenarioFiles { sandbox: (&options.sandbox).into() };
    let mut scenario = read(&options.file, &options.set, &disk)?;
    narrow(&mut scenario, options)?;
    if options.list {
        crate::output::report(&text::listing(&scenario));
        return Ok(CliExit::Yes);
    }
    let commands = timed_commands(options)?;
    let prepared = prepare::prepare(&mut scenario, &disk).map_err(|wrong| shown(&scenario, &wrong))?;
    if options.check {
        println!("{}: no error found", options.file.display());
        return Ok(CliExit::Yes);
    }
    files::may_write(options)?;
    let stop = tidegate_sys::interrupt::notice();
    let runs = carry_out(&scenario, &prepared, &commands, stop)?;
    let experiment = document::experiment(
        &scenario,
        &prepared,
        execution,
        again(options, (execution, own), &scenario),
        runs,
    );
    tidegate_scenario::check(&scenario, &experiment).map_err(|wrong| shown(&scenario, &wrong))?;
    let json = tidegate_analysis::experiment::to_json(&experiment);
    // Whatever happens to the files, the result is printed.
    match options.json {
        true => crate::output::text(&json),
        false => crate::output::report(&text::experiment(&experiment)),
    }
    files::write(options, &experiment, &json)?;
    Ok(code(&experiment))
}

/// Carries out a scenario that another command made; places in its text mean nothing to the user.
pub(crate) fn of_text(path: &Path, text: &str) -> anyhow::Result<Experiment> {
    let pace = Pace::default();
    let watch = ExperimentWatch {
        stop: tidegate_sys::interrupt::notice(),
        begin: &|_, seconds| pace.begin(seconds),
        seconds: &|more| pace.add(more),
        observer: &|| None,
    };
    let done = simulated::of_text((path, text), &ScenarioFiles::default(), &watch);
    pace.finish();
    done.map_err(|wrong| anyhow::anyhow!(wrong))
}

fn shown(scenario: &Scenario, wrong: &Diagnostic) -> anyhow::Error {
    anyhow::anyhow!(wrong.shown(&scenario.path, &scenario.text))
}

fn code(experiment: &Experiment) -> CliExit {
    let failed = experiment.comparisons.iter().any(|one| one.gated && !one.held);
    match experiment.runs.iter().any(|run| run.cut) {
        true => CliExit::Partial,
        false if failed => CliExit::No,
        false => CliExit::Yes,
    }
}

/// Applies the options that replace values of the file.
fn narrow(scenario: &mut Scenario, options: &Options) -> anyhow::Result<()> {
    options.cases.choice().narrow(scenario).map_err(|why| anyhow::anyhow!(why))?;
    packets::one_run(options.pcapng.is_some(), scenario.cases.len() * scenario.repeats as usize)?;
    Ok(())
}

/// `--at TIME -- COMMAND`: of every machine.
fn timed_commands(options: &Options) -> anyhow::Result<Vec<TimelineEntry>> {
    if options.command.is_empty() {
        return match options.at.first() {
            Some(_) => anyhow::bail!("--at needs a command: --at 60s -- tc -s class show dev eth0"),
            None => Ok(Vec::new()),
        };
    }
    let words = tidegate_scenario::command_of(options.command.clone())?;
    let command = MachineCommand { words, at: 0..0 };
    let what = TimelineEvent::Command { machine: usize::MAX, command };
    Ok(options.at.iter().map(|time| TimelineEntry { time: *time, what: what.clone() }).collect())
}

/// The command that gives the same document; `own`: options of this execution only.
fn again(options: &Options, (execution, own): (&str, &str), scenario: &Scenario) -> String {
    let mut line = format!("tidegate {execution} {}{own}", quoted_input(&options.file));
    for setting in &options.set {
        line.push_str(&format!(" --set {}", quoted(&setting.to_string())));
    }
    line.push_str(&options.cases.choice().words(Some(scenario.seed)));
    for at in &options.at {
        line.push_str(&format!(" --at {}", time(*at)));
    }
    if !options.command.is_empty() {
        line.push_str(" -- ");
        line.push_str(&options.command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
    }
    line
}

/// Reads a scenario's file, with values set.
fn read(path: &Path, settings: &[Setting], disk: &ScenarioFiles) -> anyhow::Result<Scenario> {
    let text = crate::input::scenario(path).map_err(|error| match error.kind() {
        // It names the option to add.
        std::io::ErrorKind::InvalidInput => anyhow::anyhow!("{}: {error}", path.display()),
        _ => anyhow::anyhow!("{}: {error}; name the file of a scenario", path.display()),
    })?;
    let text = set_named(&text, settings).map_err(|wrong| anyhow::anyhow!("--set {wrong}"))?;
    tidegate_scenario::parse(path, &text, disk).map_err(|wrong| {
        // Its place may be in what was set, which the file does not have.
        let set: Vec<String> = settings.iter().map(|setting| format!("--set {setting}")).collect();
        let with = if set.is_empty() { String::new() } else { format!("with {}: ", set.join(" ")) };
        anyhow::anyhow!("{with}{}", wrong.shown(path, &text))
    })
}

/// Why a run did not come to its end, with its place in the scenario if it has one.
fn failed(scenario: &Scenario, error: RunError) -> anyhow::Error {
    match error {
        RunError::Scenario(wrong) => shown(scenario, &wrong),
        RunError::Outside(error) => anyhow::anyhow!(error),
        other => other.into(),
    }
}

/// Does all runs in virtual time, several at once.
fn simulate(
    scenario: &Scenario,
    prepared: &Prepared,
    commands: &[TimelineEntry],
    packets: Option<&packets::Wanted>,
    stop: &AtomicBool,
) -> anyhow::Result<Vec<RunRecord>> {
    let pace = Pace::default();
    let watch = ExperimentWatch {
        stop,
        begin: &|_, seconds| pace.begin(seconds),
        seconds: &|more| pace.add(more),
        observer: &|| packets.map(packets::observer),
    };
    let runs = simulated::carry_out(scenario, prepared, commands, &watch);
    pace.finish();
    runs.map_err(|error| failed(scenario, error))
}
