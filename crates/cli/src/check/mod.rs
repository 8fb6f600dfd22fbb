//! `tidegate check FILE…`: what is wrong with a policy, where, why, and what fixes it.
//!
//! ```text
//! files ─▶ loader ─▶ inspect::Reading ─▶ inspect::check ─▶ inspect::checked (comments, JSON, SARIF, fixes) ─▶ text, copies
//! ```

mod fix;
mod options;
mod text;

pub use options::{Bar, Options};

use crate::exit::CliExit;
use crate::outputs::{self, Form, ReportFile};
use crate::script_options::show_errors;
use std::process::ExitCode;
use tidegate_capture::Exit as Ended;
use tidegate_inspect::checked::{Checked, concerns, to_json, to_sarif};
use tidegate_inspect::{Finding, Level, Reading, Rule, SourceLocation};
use tidegate_loader::ReadOptions;

/// Plays `tidegate check`.
pub fn command(options: &Options) -> ExitCode {
    if options.rules {
        crate::output::text(&text::rules());
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
    crate::output::may_write(outputs::paths(&options.output))?;
    let fixed = options.fix.as_deref().map(|copy| fix::write(&checked, copy)).transpose()?;
    let failed = checked.findings.iter().any(|finding| options.fail_on.reached_by(finding.level));
    checked.findings.retain(|finding| options.show.reached_by(finding.level));
    let shown = |form: Form| match form {
        Form::Json => to_json(&checked),
        Form::Sarif => to_sarif(&checked),
        _ => text::report(&checked, fixed.as_ref()),
    };
    match (options.json, options.sarif) {
        (true, _) => crate::output::text(&shown(Form::Json)),
        (_, true) => crate::output::text(&shown(Form::Sarif)),
        _ => crate::output::report(&shown(Form::Text)),
    }
    for ReportFile { path, form } in &options.output {
        crate::output::file(path, shown(*form))?;
    }
    Ok(if failed { CliExit::No } else { CliExit::Yes })
}

fn check(options: &Options) -> anyhow::Result<Checked> {
    let how = ReadOptions {
        args: options.args.clone(),
        devices: options.dev.iter().cloned().collect(),
        sandbox: options.sandbox.into(),
        dissector: options.dissect.into(),
        ..ReadOptions::default()
    };
    let taken = tidegate_loader::read(&options.files, &how)?;
    show_errors(&taken.outcomes);
    if !taken.ended() {
        let troubles: Vec<String> = taken.troubles().map(ToString::to_string).collect();
        anyhow::bail!(
            "the script did not come to its end, so nothing can be said of it\n{}",
            troubles.join("\n")
        );
    }
    if let Some(dev) = &options.dev {
        taken.must_concern(dev)?;
    }
    let of_script = |outcome: &'_ tidegate_capture::ScriptRun| {
        [outcome.unfinished.clone(), outcome.missing_arguments.clone()]
    };
    for sentence in taken.outcomes.iter().flat_map(of_script).flatten() {
        eprintln!("tidegate check: {sentence}");
    }
    let mut reading = taken.reading();
    let mut findings = tidegate_inspect::check(&mut reading);
    if !findings.iter().any(|finding| finding.rule == Rule::Refused) {
        findings.extend(taken.outcomes.iter().filter_map(|outcome| ended_badly(&reading, outcome)));
    }
    if let Some(dev) = &options.dev {
        findings.retain(|finding| concerns(&reading, finding, dev));
    }
    if let Some(nothing) = taken.nothing_found() {
        let troubles: String = taken.troubles().map(|trouble| format!("\n{trouble}")).collect();
        anyhow::bail!("{nothing}{troubles}");
    }
    Ok(Checked::new(reading, findings))
}

/// A script that ended with an error of its own, although no command was refused.
fn ended_badly(reading: &Reading, outcome: &tidegate_capture::ScriptRun) -> Option<Finding> {
    let code = match outcome.exit {
        Ended::Code(0) => return None,
        Ended::Code(code) => format!("code {code}"),
        Ended::Signal(signal) => format!("signal {signal}"),
        _ => return None,
    };
    let reason = outcome.troubles.last().map_or_else(|| code.clone(), |trouble| trouble.reason.clone());
    let line = outcome.troubles.last().and_then(|trouble| trouble.place.as_ref());
    let place = line.and_then(|line| {
        let name = line.file.display().to_string();
        let file = reading.sources.iter().position(|source| source.name == name)?;
        Some(SourceLocation {
            file,
            line: line.line,
            columns: line.columns.as_ref().map_or((0, 0), |at| (at.start, at.end)),
        })
    });
    Some(Finding {
        rule: Rule::Refused,
        level: Level::Error,
        place,
        what: format!("the script ends with {code}"),
        because: reason,
        witness: Some(tidegate_inspect::Witness::Number(code)),
        fix: None,
    })
}
