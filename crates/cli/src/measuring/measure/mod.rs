//! `tidegate measure HOST [TEST]`: what a path does each way, idle and under load. What is measured is
//! `tidegate_sessions::measure`'s.

mod options;
mod output;
mod progress;

pub use options::Options;
pub(super) use output::{FORMS, write};

use crate::exit::CliExit;
use crate::outputs;
use std::any::Any;
use std::process::ExitCode;
use std::time::Duration;
use tidegate_sys::interrupt;

/// Plays `tidegate measure`.
pub fn command(options: &Options) -> ExitCode {
    super::ended("measure", attempt(options))
}

/// Shows how far a load is, on a terminal.
pub(super) fn progress() -> impl Fn(&str, Duration) -> Box<dyn Any> {
    |title, length| Box::new(progress::show(title, length))
}

fn attempt(options: &Options) -> anyhow::Result<CliExit> {
    crate::output::may_write(outputs::paths(&options.output))?;
    let measurement = options.measurement()?;
    let experiment = measurement.carry_out(interrupt::notice(), &progress())?;
    let text = if options.json {
        tidegate_analysis::experiment::to_json(&experiment)
    } else {
        tidegate_report::measuring::measure::text(&experiment)
    };
    crate::output::report(&text);
    output::write(&options.output, &experiment)?;
    Ok(if experiment.runs.iter().any(|run| run.cut) { CliExit::Partial } else { CliExit::Yes })
}
