//! `tidegate run SCRIPT`: a script run against the model machine, and what it came to.
//!
//! The script runs unmodified in a sandbox, once for each list of arguments, on one machine. Its output
//! passes through; the resulting machine is printed as commands, as a batch file, as JSON or as a tree.

mod done;
mod json;
mod options;
pub(crate) mod text;

pub use options::{Options, RunOutput};

use crate::graph;
use crate::input::MAX_POLICY;
use done::{NO_SANDBOX, Run, code};
use std::io::ErrorKind;
use std::process::ExitCode;
use tidegate_capture::{CaptureError, CaptureOptions, Output, run_in_turn};
use tidegate_loader::{InputFormat, LoadError, LoadedPolicy, ReadOptions};
use tidegate_packet::{Pool, Seeded, Time};
use tidegate_shims::Machine;
use tidegate_sys::input_file;

/// When the script runs: a machine's clock does not begin at nothing.
const STARTED: Time = Time(1_000_000_000);
/// What it cannot run, as `env(1)` has it.
const NOT_RUNNABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Plays `tidegate run`.
pub fn command(options: &Options) -> ExitCode {
    match run(options) {
        Ok(mut run) => {
            let text = match options.print() {
                None => String::new(),
                Some(RunOutput::Tc) => {
                    let devices = run.outcomes.first().map_or(&[][..], |outcome| &outcome.devices);
                    text::devices_first(devices, &run.machine.carried) + &text::commands(&run.machine.carried)
                }
                Some(RunOutput::Batch) => text::batch(&run.machine.carried),
                Some(RunOutput::Json) => json::document(&mut run),
                Some(RunOutput::Tree) => graph::tree(&mut run.machine),
            };
            match options.print() {
                Some(RunOutput::Tree) => crate::output::report(&text),
                _ => crate::output::text(&text),
            }
            eprint!("{}", text::summary(&mut run));
            if let Some(nothing) = nothing_found(&run) {
                eprintln!("tidegate run: {nothing}");
            }
            ExitCode::from(code(&run.outcomes))
        }
        Err(error) => {
            eprintln!("tidegate run: {error}");
            let LoadError::Capture(error) = error else { return ExitCode::from(NOT_RUNNABLE) };
            ExitCode::from(match error {
                CaptureError::NotFound(_) => NOT_FOUND,
                CaptureError::Forbidden { .. } | CaptureError::Sandbox(_) | CaptureError::Io { .. } => {
                    NO_SANDBOX
                }
                _ => NOT_RUNNABLE,
            })
        }
    }
}

/// A script without traffic control gets a note, and is no error: it did what it does.
fn nothing_found(run: &Run<'_>) -> Option<String> {
    let name = run.options.script.to_string_lossy();
    let bytes = input_file::read(&run.options.script, MAX_POLICY).unwrap_or_default();
    let lines: Vec<String> = String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect();
    tidegate_loader::nothing_found(&run.outcomes, [(&*name, &lines[..])])
}

fn run(options: &Options) -> Result<Run<'_>, LoadError> {
    let bytes = match input_file::read(&options.script, MAX_POLICY) {
        Ok(bytes) => bytes,
        Err(error)
            if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::TimedOut)
                && !options.script.is_dir() =>
        {
            return Err(LoadError::File(options.script.clone(), error.to_string()));
        }
        // What cannot be read for another reason is reported where the script is run.
        Err(_) => Vec::new(),
    };
    match tidegate_loader::sniff(&options.script.to_string_lossy(), &bytes) {
        Ok(InputFormat::Script) if input_file::is_handed_over(&options.script) => {
            let why = "a script must be a file, because it is run; save it first";
            Err(LoadError::File(options.script.clone(), why.to_owned()))
        }
        // A file that cannot be read, or has no known format, has the message for scripts: `run` is for
        // scripts.
        Ok(InputFormat::Script) | Err(_) => run_script(options).map_err(LoadError::Capture),
        Ok(_) => {
            let how = ReadOptions {
                devices: options.dev.clone(),
                sandbox: options.sandbox.into(),
                dissector: options.dissect.into(),
                ..ReadOptions::default()
            };
            let LoadedPolicy { machine, outcomes, .. } =
                tidegate_loader::read(std::slice::from_ref(&options.script), &how)?;
            Ok(Run { options, machine, outcomes })
        }
    }
}

fn run_script(options: &Options) -> Result<Run<'_>, CaptureError> {
    let capture = CaptureOptions {
        timeout: options.sandbox.timeout,
        private: options.sandbox.private,
        output: if options.print().is_none() { Output::PassThrough } else { Output::ToErrors },
        print: crate::output::pass_on,
        devices: options.dev.clone(),
        ..CaptureOptions::default()
    };
    let mut machine = Machine::for_script(options.dev.iter().map(String::as_str));
    machine.distributions = tidegate_loader::distributions::installed();
    machine.now = STARTED;
    machine.gateway.set_dissector(options.dissect.into());
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    let turns = options.turns();
    let mut before = |turn: usize| {
        if turns.len() > 1 {
            eprintln!("tidegate run: {} {}", options.script.display(), turns[turn].join(" "));
        }
    };
    let shim = &mut machine.shim(&mut pool, &mut draws);
    let mut outcomes = run_in_turn(&options.script, &turns, &capture, shim, &mut before)?;
    outcomes.iter_mut().for_each(tidegate_loader::point_inside);
    Ok(Run { options, machine, outcomes })
}
