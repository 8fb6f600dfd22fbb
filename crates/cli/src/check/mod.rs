//! `tidegate check FILE…`: what is wrong with a policy, where, why, and what fixes it.
//!
//! ```text
//! files ─▶ loader ─▶ inspect::Reading ─▶ inspect::check ─▶ inspect::checked (comments, JSON, SARIF, fixes) ─▶ text, copies
//! ```

mod fix;
mod options;
mod text;

pub use options::{Bar, Options};

use std::process::ExitCode;
use tidegate_capture::Exit;
use tidegate_inspect::checked::{Checked, concerns, to_json, to_sarif};
use tidegate_inspect::{Finding, Level, Place, Reading, Rule};
use tidegate_loader::ReadOptions;

/// A file could not be read, or the script did not come to its end.
const UNREAD: u8 = 2;
/// Something was found.
const FOUND: u8 = 1;

/// Plays `tidegate check`.
pub fn command(options: &Options) -> ExitCode {
    if options.rules {
        crate::output::text(&text::rules());
        return ExitCode::SUCCESS;
    }
    let mut checked = match check(options) {
        Ok(checked) => checked,
        Err(error) => {
            eprintln!("tidegate check: {error:#}");
            return UNREAD.into();
        }
    };
    let mut fixed = None;
    if let Some(copy) = &options.fix {
        match fix::write(&checked, copy) {
            Ok(done) => fixed = Some(done),
            Err(error) => {
                eprintln!("tidegate check: {error:#}");
                return UNREAD.into();
            }
        }
    }
    let failed = checked.findings.iter().any(|finding| options.fail_on.reached_by(finding.level));
    checked.findings.retain(|finding| options.show.reached_by(finding.level));
    crate::output::text(&if options.json {
        to_json(&checked)
    } else if options.sarif {
        to_sarif(&checked)
    } else {
        text::report(&checked, fixed.as_ref())
    });
    if failed { FOUND.into() } else { ExitCode::SUCCESS }
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
    let of_script = |outcome: &'_ tidegate_capture::Outcome| {
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
fn ended_badly(reading: &Reading, outcome: &tidegate_capture::Outcome) -> Option<Finding> {
    let code = match outcome.exit {
        Exit::Code(0) => return None,
        Exit::Code(code) => format!("code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        _ => return None,
    };
    let reason = outcome.troubles.last().map_or_else(|| code.clone(), |trouble| trouble.reason.clone());
    let line = outcome.troubles.last().and_then(|trouble| trouble.place.as_ref());
    let place = line.and_then(|line| {
        let name = line.file.display().to_string();
        let file = reading.sources.iter().position(|source| source.name == name)?;
        Some(Place {
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
