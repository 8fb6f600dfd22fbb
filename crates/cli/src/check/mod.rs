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
use tidegate_capture::troubles::SHELL;
use tidegate_capture::{Exit as Ended, Trouble};
use tidegate_inspect::checked::{Checked, concerns, to_json, to_sarif};
use tidegate_inspect::{Finding, Level, PolicyModel, Rule, SourceLocation};
use tidegate_loader::ReadOptions;

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
    let is_cause = |finding: &Finding| finding.rule == Rule::Refused && finding.level != Level::Note;
    if !findings.iter().any(is_cause) {
        findings.extend(taken.outcomes.iter().filter_map(|outcome| ended_badly(&reading, outcome)));
    }
    findings.extend(taken.outcomes.iter().flat_map(|outcome| not_run(&reading, outcome)));
    if let Some(dev) = &options.dev {
        findings.retain(|finding| concerns(&reading, finding, dev));
    }
    if let Some(nothing) = taken.nothing_found() {
        let troubles: String = taken.troubles().map(|trouble| format!("\n{trouble}")).collect();
        anyhow::bail!("{nothing}{troubles}");
    }
    Ok(Checked::new(reading, findings))
}

/// Lines that the shell could not run, of a script that came to its end: what they would do is unknown.
fn not_run<'r>(
    reading: &'r PolicyModel,
    outcome: &'r tidegate_capture::ScriptRun,
) -> impl Iterator<Item = Finding> + use<'r> {
    let of_shell = outcome.troubles.iter().filter(|trouble| trouble.who == SHELL);
    of_shell.take_while(|_| matches!(outcome.exit, Ended::Code(0))).map(|trouble| Finding {
        rule: Rule::Refused,
        // Where the policy is to run there may be such a tool.
        level: Level::Note,
        place: place(reading, trouble),
        what: trouble.reason.clone(),
        because: format!(
            "so the shell does not run this line, and what it would do is not known here; {}",
            trouble.remedy.as_deref().unwrap_or("fix that line")
        ),
        witness: None,
        fix: None,
    })
}

/// Where the files that were read have the line of a trouble.
fn place(reading: &PolicyModel, trouble: &Trouble) -> Option<SourceLocation> {
    let line = trouble.place.as_ref()?;
    let name = line.file.display().to_string();
    Some(SourceLocation {
        file: reading.sources.iter().position(|source| source.name == name)?,
        line: line.line,
        columns: line.columns.as_ref().map_or((0, 0), |at| (at.start, at.end)),
    })
}

/// A script that ended with an error of its own, although no command was refused.
fn ended_badly(reading: &PolicyModel, outcome: &tidegate_capture::ScriptRun) -> Option<Finding> {
    let code = match outcome.exit {
        Ended::Code(0) => return None,
        Ended::Code(code) => format!("code {code}"),
        Ended::Signal(signal) => format!("signal {signal}"),
        _ => return None,
    };
    let reason = outcome.troubles.last().map_or_else(|| code.clone(), |trouble| trouble.reason.clone());
    let place = outcome.troubles.last().and_then(|trouble| place(reading, trouble));
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
