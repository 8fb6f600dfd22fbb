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
use tidegate_text::shell_word;

/// What it cannot run, as `env(1)` has it.
const NOT_RUNNABLE: u8 = 126;
const NOT_FOUND: u8 = 127;
/// A scenario was asked for, and the script lays no cable.
const NO_TEST_BED: u8 = 2;

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
                Some(RunOutput::Scenario) => match scenario(options, &mut run) {
                    Ok(text) => text,
                    Err(why) => {
                        eprint!("{}", text::summary(&mut run));
                        eprintln!("tidegate run: {why}");
                        return ExitCode::from(NO_TEST_BED);
                    }
                },
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

/// The test-bed of a script, as a scenario's file.
fn scenario(options: &Options, run: &mut ScriptRuns) -> Result<String, String> {
    let script = run.script.display().to_string();
    let mut again =
        format!("tidegate run --print scenario{} {}", options.sandbox.words(), shell_word(&script));
    let args: Vec<String> = options.args.iter().map(|arg| shell_word(arg)).collect();
    if !args.is_empty() {
        again += &format!(" -- {}", args.join(" "));
    }
    let scenario = run.test_bed.to_scenario(&script, &again).ok_or_else(|| {
        format!(
            "{script}: it lays no cable (veth) between network namespaces, so it is no test-bed; `tidegate try {}` \
             plays its policy on a home's line",
            shell_word(&script)
        )
    })?;
    // Which namespace is looked at does not matter: all are in it.
    for outcome in &mut run.outcomes {
        let about = outcome.namespaces.take();
        outcome.notes.retain(|note| Some(note) != about.as_ref());
    }
    Ok(scenario)
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
