//! `tidegate run SCRIPT`: a script run against the model machine, and what it came to.
//!
//! The script runs unmodified in a sandbox, once for each list of arguments, on one machine. Its output
//! passes through; the resulting machine is printed as commands, as a batch file, as JSON or as a tree.

mod done;
mod options;
pub(crate) mod text;

pub use options::{Options, RunOutput};

use crate::graph;
use crate::input::MAX_POLICY;
use done::{NO_SANDBOX, code};
use std::process::ExitCode;
use tidegate_capture::{CaptureError, Output};
use tidegate_loader::LoadError;
use tidegate_loader::runs::{RunOptions, ScriptRuns};
use tidegate_sys::input_file;

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
                Some(RunOutput::Json) => run.to_json(),
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
            if let Some(caveat) = run.not_known_of_kernel() {
                eprintln!("tidegate run: {caveat}");
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
fn nothing_found(run: &ScriptRuns) -> Option<String> {
    let name = run.script.to_string_lossy();
    let bytes = input_file::read(&run.script, MAX_POLICY).unwrap_or_default();
    let lines: Vec<String> = String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect();
    let nothing = tidegate_loader::nothing_found(&run.outcomes, [(&*name, &lines[..])])?;
    Some(run.only_defaults.clone().unwrap_or(nothing))
}

fn run(options: &Options) -> Result<ScriptRuns, LoadError> {
    let how = RunOptions {
        turns: options.turns(),
        devices: options.dev.clone(),
        sandbox: (&options.sandbox).into(),
        kernel: options.kernel.into(),
        tc: options.kernel.tc,
        output: if options.print().is_none() { Output::PassThrough } else { Output::ToErrors },
        print: crate::output::pass_on,
    };
    let mut before = |turn: usize| {
        if how.turns.len() > 1 {
            eprintln!("tidegate run: {} {}", options.script.display(), how.turns[turn].join(" "));
        }
    };
    ScriptRuns::of(&options.script, &how, &mut before)
}
