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
pub(crate) mod rates;

pub use options::Options;
pub(crate) use options::{buffer, stacked};
pub(crate) use rates::TrialLink;
pub(crate) use tidegate_scenario::shell::{exact_time, quoted, tc_rate};

use crate::exit::CliExit;
use crate::outputs::{self, Form, PAGES, ReportFile};
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tidegate_trial::Trial;

/// Plays `tidegate try`.
pub fn command(options: &Options) -> ExitCode {
    match attempt(options) {
        Ok(()) => CliExit::Yes.into(),
        Err(error) => {
            eprintln!("tidegate try: {error:#}");
            CliExit::of(&error).into()
        }
    }
}

fn attempt(options: &Options) -> anyhow::Result<()> {
    let link = rates::of(options).map_err(|missing| anyhow::anyhow!(missing))?;
    let policy = load::take_in(options).map_err(|error| named(error, &options.script))?;
    let reports = reports(options);
    crate::output::may_write(outputs::paths(&reports))?;
    let settings = options.settings(link);
    let mut trial = Trial::new(&settings, &policy);
    trial.explore();
    let bar = crate::sim::progress("simulating", trial.seconds());
    trial.simulate(&|| bar.inc(1));
    bar.finish_and_clear();
    let document = trial.document();
    let text = if options.json {
        tidegate_analysis::trial::to_json(&document)
    } else {
        tidegate_report::text(&document)
    };
    // Whatever happens to the report, the result is printed.
    crate::output::report(&text);
    for ReportFile { path, form } in &reports {
        let report = match form {
            Form::Svg if PAGES => tidegate_report::picture(&document, "voip-up", options.log)
                .context("there is nothing to draw")?,
            Form::Html if PAGES => tidegate_report::html(&document),
            _ => tidegate_analysis::trial::to_json(&document),
        };
        let written = crate::output::file(path, report);
        match options.output.is_empty() {
            false => written?,
            true => written
                .context("the report could not be written (-o FILE names another place, -o none none)")?,
        }
        if !options.json {
            println!("Report: {}", path.display());
        }
    }
    crate::output::text(trial.shown());
    Ok(())
}

/// An error about a file, with the file's name before it unless it begins with that.
pub(crate) fn named(error: anyhow::Error, file: &Path) -> anyhow::Error {
    let name = file.display().to_string();
    if error.to_string().starts_with(&name) { error } else { error.context(name) }
}

/// Where reports are written.
fn reports(options: &Options) -> Vec<ReportFile> {
    match options.reports() {
        Some(reports) => reports.cloned().collect(),
        None if options.json || !PAGES => Vec::new(),
        None => {
            let stem = match options.script.file_stem().unwrap_or_default().to_string_lossy() {
                stem if stem == "-" => "stdin".into(),
                stem => stem,
            };
            let path = PathBuf::from(format!("tidegate-{stem}.html"));
            vec![ReportFile { path, form: Form::Html }]
        }
    }
}
