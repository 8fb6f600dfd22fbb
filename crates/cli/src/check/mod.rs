//! `tidegate check FILE…`: what is wrong with a policy, where, why, and what fixes it.
//!
//! ```text
//! files ─▶ loader ─▶ inspect::PolicyModel ─▶ inspect::check ─▶ inspect::checked (comments, JSON, SARIF, fixes) ─▶ text, copies
//! ```

mod fix;
mod options;
mod text;

pub use options::{Bar, Options};

use crate::exit::CliExit;
use crate::outputs::{self, Form, ReportFile};
use crate::script_options::show_errors;
use std::process::ExitCode;
use tidegate_inspect::Rule;
use tidegate_inspect::checked::{Checked, to_json, to_sarif};
use tidegate_loader::checked::CheckError;
use tidegate_loader::{InputFormat, ReadOptions};

/// Plays `tidegate check`.
pub fn command(options: &Options) -> ExitCode {
    if options.rules {
        crate::output::report(&text::rules());
        return CliExit::Yes.into();
    }
    match attempt(options) {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("tidegate check: {error:#}");
            CliExit::of(&error).into()
        }
    }
}

/// Checks, prints the findings and writes their files.
fn attempt(options: &Options) -> anyhow::Result<CliExit> {
    let mut checked = check(options)?;
    // Copies of several files go into a directory.
    let copy = options.fix.as_deref().filter(|_| checked.reading.sources.len() == 1);
    crate::output::may_write(outputs::paths(&options.output).chain(copy))?;
    let fixed = options.fix.as_deref().map(|copy| fix::write(&checked, copy)).transpose()?;
    let failed = checked.findings.iter().any(|finding| options.fail_on.reached_by(finding.level));
    let all = checked.findings.len();
    checked.findings.retain(|finding| options.min_level.reached_by(finding.level));
    let hidden = all - checked.findings.len();
    let shown = |form: Form| match form {
        Form::Json => to_json(&checked),
        Form::Sarif => to_sarif(&checked),
        _ => text::report(&checked, hidden, fixed.as_ref()),
    };
    match (options.json, options.sarif) {
        (true, _) => crate::output::text(&shown(Form::Json)),
        (_, true) => crate::output::text(&shown(Form::Sarif)),
        _ => crate::output::report(&shown(Form::Text)),
    }
    for ReportFile { path, form } in &options.output {
        crate::output::file(path, shown(*form))?;
    }
    if let Some(until) = options.kernel.until()
        && !checked.findings.iter().any(|finding| finding.rule == Rule::Release)
    {
        let from = options.kernel.kernel().linux;
        let apart = match checked.findings.iter().any(|finding| finding.rule == Rule::Refused) {
            true => "; what was refused is not compared",
            false => "",
        };
        eprintln!(
            "tidegate check: of what is known to differ between Linux {from} and {until} nothing concerns \
             what these qdiscs do with packets{apart}"
        );
    }
    Ok(if failed { CliExit::No } else { CliExit::Yes })
}

fn check(options: &Options) -> anyhow::Result<Checked> {
    let how = ReadOptions {
        args: options.args.clone(),
        devices: options.dev.iter().cloned().collect(),
        sandbox: (&options.sandbox).into(),
        kernel: options.kernel.kernel(),
        tc: options.kernel.tc(),
        until: options.kernel.until(),
        tc_until: options.kernel.tc_until(),
        batches_go_on: true,
        ..ReadOptions::default()
    };
    let taken = tidegate_loader::read(&options.files, &how)?;
    anyhow::ensure!(
        options.fix.is_none() || !taken.formats.contains(&InputFormat::TcJson),
        "--fix: JSON of tc has no commands that could be corrected; convert it first \
         (`tidegate import --print batch FILE`), and check that"
    );
    show_errors(&taken.outcomes);
    let checked = taken.checked(options.dev.as_deref());
    if matches!(checked, Ok(_) | Err(CheckError::NothingFound { .. })) {
        for sentence in taken.caveats() {
            eprintln!("tidegate check: {sentence}");
        }
    }
    Ok(checked?)
}
