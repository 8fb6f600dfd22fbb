//! `tidegate test FILE…`: expectations of a policy, tested on the simulated link and the engine.
//!
//! ```text
//! FILE (TOML) ─▶ Suite ─┬─ figures: each load simulated once, as `try` does ─▶ measure::TrialDocument ─┐
//!                       └─ packets: Explainer ─▶ Story ────────────────────────────────────────┴─▶ verdicts ─▶ text, TAP, JUnit, JSON
//! ```

pub(crate) mod file;
mod options;
mod output;

pub use options::Options;

use crate::exit::CliExit;
use crate::outputs::{self, Form, ReportFile};
use crate::trial::{self, TrialLink};
use anyhow::{Context, bail};
use file::Loaded;
use std::process::ExitCode;
use tidegate_trial::expect::evaluate;

/// Plays `tidegate test`.
pub fn command(options: &Options) -> ExitCode {
    match attempt(options) {
        Ok(true) => CliExit::Yes.into(),
        Ok(false) => CliExit::No.into(),
        Err(error) => {
            eprintln!("tidegate test: {error:#}");
            CliExit::of(&error).into()
        }
    }
}

/// Does everything hold?
fn attempt(options: &Options) -> anyhow::Result<bool> {
    let mut suites = Vec::new();
    for path in &options.files {
        suites.push(file::read(path).map_err(|error| match suites.is_empty() || path.exists() {
            true => error,
            false => error.context("arguments for the policies' scripts come after `--`"),
        })?);
    }
    for suite in &mut suites {
        suite.trial.sandbox = options.sandbox.clone();
        if !options.args.is_empty() {
            suite.trial.args.clone_from(&options.args);
        }
        suite.suite.settings = suite.trial.settings(TrialLink::of(&suite.suite.settings));
    }
    if let Some(only) = options.only
        && suites.iter().all(|suite| only == 0 || only > suite.suite.cases.len())
    {
        bail!("there is no expectation {only}; --only counts from 1");
    }
    crate::output::may_write(outputs::paths(&options.output).chain(options.junit.as_deref()))?;
    let mut all = Vec::new();
    for Loaded { suite, trial } in &suites {
        let policy = || trial::load::take_in(trial).map_err(|error| trial::named(error, &trial.script));
        let reading = || {
            Ok(tidegate_loader::read(std::slice::from_ref(&trial.script), &trial.how_to_read())?.reading())
        };
        all.push(
            evaluate(suite, options.only, policy, reading)
                .with_context(|| suite.path.display().to_string())?,
        );
    }
    let shown = |form: Form| match form {
        Form::Json => output::document(&all),
        Form::Tap => output::tap(&all),
        Form::JUnit => output::junit(&all),
        _ => output::text(&all, options.figures),
    };
    match (options.json, options.tap) {
        (true, _) => crate::output::text(&shown(Form::Json)),
        (_, true) => crate::output::text(&shown(Form::Tap)),
        _ => crate::output::report(&shown(Form::Text)),
    }
    for ReportFile { path, form } in &options.output {
        crate::output::file(path, shown(*form))?;
    }
    if let Some(path) = &options.junit {
        crate::output::file(path, shown(Form::JUnit))?;
    }
    Ok(output::count(&all).1 == 0)
}
