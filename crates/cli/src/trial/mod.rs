//! `tidegate try SCRIPT`: a policy taken in from a script, and what it does to a simulated link.
//!
//! The script runs in a private namespace against the model machine; what it configured is then simulated without and with it, on an
//! idle link and under a load, behind a modem with a big dumb buffer.

mod options;
mod policy;
mod report;
mod scenario;

pub use options::Options;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use policy::Policy;
use scenario::{Load, Run};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

/// What a trial found.
struct Trial<'o> {
    options: &'o Options,
    policy: &'o Policy,
    load: Load,
    runs: Vec<Run>,
}

impl Trial<'_> {
    /// The run with this load and policy.
    fn run(&self, loaded: bool, with_policy: bool) -> Option<&Run> {
        self.runs.iter().find(|run| run.loaded == loaded && run.with_policy == with_policy)
    }
}

/// Plays `tidegate try`.
pub fn command(options: &Options) -> ExitCode {
    match attempt(options) {
        Ok(text) => {
            let mut out = std::io::stdout().lock();
            // Whoever reads may have had enough: a closed pipe is no error.
            let _ = out.write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("tidegate try: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn attempt(options: &Options) -> anyhow::Result<String> {
    let policy = policy::take_in(options).with_context(|| options.script.display().to_string())?;
    let load = Load::choose(options, &policy);
    let plan = [(false, false), (false, true), (true, false), (true, true)];
    let bar = progress(plan.iter().map(|(loaded, _)| scenario::seconds(options, *loaded)).sum());
    let runs = plan.iter().map(|(loaded, with)| scenario::run(options, &policy, load, *loaded, *with, &bar)).collect();
    bar.finish_and_clear();
    let trial = Trial { options, policy: &policy, load, runs };
    Ok(if options.json { report::json(&trial) } else { report::text(&trial) })
}

/// A bar on the terminal; nothing in a pipe.
fn progress(seconds: u64) -> ProgressBar {
    let target =
        if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(seconds), target);
    let style = ProgressStyle::with_template("simulating {bar:40} {pos}/{len} s of link time");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
