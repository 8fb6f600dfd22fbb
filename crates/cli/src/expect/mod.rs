//! `tidegate test FILE…`: what is expected of a policy, held against the simulated link and the engine.
//!
//! ```text
//! FILE (TOML) ─▶ Suite ─┬─ figures: each load simulated once, as `try` does ─▶ measure::TrialDocument ─┐
//!                       └─ packets: Explainer ─▶ Story ────────────────────────────────────────┴─▶ verdicts ─▶ text, TAP, JUnit, JSON
//! ```

pub(crate) mod file;
mod options;
mod output;

pub use options::Options;

use crate::trial;
use anyhow::{Context, bail};
use file::Loaded;
use std::process::ExitCode;
use tidegate_trial::expect::judge;

/// An expectation does not hold.
const FAILED: u8 = 1;
/// A file could not be read.
const UNREAD: u8 = 2;

/// Plays `tidegate test`.
pub fn command(options: &Options) -> ExitCode {
    match attempt(options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => FAILED.into(),
        Err(error) => {
            eprintln!("tidegate test: {error:#}");
            UNREAD.into()
        }
    }
}

/// Does everything hold?
fn attempt(options: &Options) -> anyhow::Result<bool> {
    let mut suites = options.files.iter().map(|path| file::read(path)).collect::<anyhow::Result<Vec<_>>>()?;
    for suite in &mut suites {
        suite.trial.sandbox = options.sandbox;
        suite.suite.settings = suite.trial.settings();
    }
    if let Some(only) = options.only
        && suites.iter().all(|suite| only == 0 || only > suite.suite.cases.len())
    {
        bail!("there is no expectation {only}; --only counts from 1");
    }
    crate::output::may_write(options.junit.as_deref())?;
    let mut all = Vec::new();
    for Loaded { suite, trial } in &suites {
        let policy = || trial::load::take_in(trial).map_err(|error| trial::named(error, &trial.script));
        let reading = || {
            Ok(tidegate_loader::read(std::slice::from_ref(&trial.script), &trial.how_to_read())?.reading())
        };
        all.push(
            judge(suite, options.only, policy, reading).with_context(|| suite.path.display().to_string())?,
        );
    }
    let text = if options.json {
        output::document(&all)
    } else if options.tap {
        output::tap(&all)
    } else {
        output::text(&all, options.show)
    };
    crate::output::text(&text);
    if let Some(path) = &options.junit {
        crate::output::file(path, output::junit(&all))?;
    }
    Ok(output::count(&all).1 == 0)
}
