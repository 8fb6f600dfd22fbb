//! `tidegate try SCRIPT`: a policy taken in from a script, and what it does to a simulated link.
//!
//! The script runs in a private namespace against the model machine; what it configured is then simulated
//! without and with it, on an idle link and under several loads, behind a modem with a big dumb buffer.
//! People's traffic goes on beside every load, and classes that none of it reaches get a conversation made
//! from the policy's own rules.
//!
//! ```text
//! policy (script → operations) ─┬─ reach: which class each conversation takes
//!                               └─ loads × without/with ──▶ scenario ──▶ document ──▶ report
//! ```

mod again;
pub(crate) mod load;
mod options;

pub use options::Options;
pub(crate) use options::{buffer, rate, span, stacked};
pub(crate) use tidegate_scenario::shell::{quoted, tc_rate, tc_time};

use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tidegate_trial::Trial;

/// Plays `tidegate try`.
pub fn command(options: &Options) -> ExitCode {
    match attempt(options) {
        Ok(text) => {
            crate::output::text(&text);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("tidegate try: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn attempt(options: &Options) -> anyhow::Result<String> {
    let policy = load::take_in(options).map_err(|error| named(error, &options.script))?;
    crate::output::may_write(report_path(options).as_deref())?;
    let settings = options.settings();
    let mut trial = Trial::new(&settings, &policy);
    trial.explore();
    let bar = crate::sim::progress("simulating", trial.seconds());
    trial.simulate(&|| bar.inc(1));
    bar.finish_and_clear();
    let document = trial.document();
    let mut text = if options.json {
        tidegate_analysis::trial::to_json(&document)
    } else {
        tidegate_report::text(&document)
    };
    if let Some(path) = report_path(options) {
        let report = match path.extension() {
            Some(svg) if svg == "svg" => tidegate_report::picture(&document, "voip-up", options.log)
                .context("there is nothing to draw")?,
            _ => tidegate_report::html(&document),
        };
        let written = crate::output::file(&path, report);
        match &options.report {
            Some(_) => written?,
            None => written
                .context("the report could not be written (--report FILE puts it elsewhere, none nowhere)")?,
        }
        if !options.json {
            text.push_str(&format!("Report: {}\n", path.display()));
        }
    }
    text.push_str(trial.shown());
    Ok(text)
}

/// An error about a file, with the file's name before it unless it begins with that.
pub(crate) fn named(error: anyhow::Error, file: &Path) -> anyhow::Error {
    let name = file.display().to_string();
    if error.to_string().starts_with(&name) { error } else { error.context(name) }
}

/// Where the report goes, if anywhere.
fn report_path(options: &Options) -> Option<PathBuf> {
    match &options.report {
        Some(path) if path.as_os_str() == "none" => None,
        Some(path) => Some(path.clone()),
        None if options.json => None,
        None => {
            let stem = options.script.file_stem().unwrap_or_default().to_string_lossy();
            Some(PathBuf::from(format!("tidegate-{stem}.html")))
        }
    }
}
