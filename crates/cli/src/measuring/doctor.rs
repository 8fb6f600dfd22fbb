//! `tidegate doctor`: is it really shaping? What is looked at is `tidegate_sessions::doctor`'s.

use crate::exit::CliExit;
use crate::outputs::{Form, ReportFile, output_file};
use crate::values;
use std::process::ExitCode;
use std::time::Duration;
use tidegate_analysis::doctor::to_json;
use tidegate_measure::doctor::Severity;
use tidegate_report::measuring::doctor::text;
use tidegate_sessions::doctor::{DoctorOptions, diagnose};
use tidegate_sys::interrupt;

/// Find out why this computer does not shape as configured
///
/// Reads counters twice and reports what keeps the policies from working: how large the effect is, and how to
/// fix it. Changes nothing.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Run it while the link is loaded: only then can it see whether a shaper limits. Without root some checks are \
skipped, and the report says which.

Exit codes: 0 nothing worse than a note; 1 something is wrong; 2 wrong usage or input; 3 partial result; 4 \
not permitted.

Examples:
  tidegate doctor
  tidegate doctor --dev eth0 --duration 20s --host example.org")]
pub struct Options {
    /// Only this device, and those that belong to it
    #[arg(long, value_parser = crate::values::device, value_name = "DEV")]
    pub dev: Option<String>,
    /// Time from the first reading to the second
    #[arg(short, long, alias = "seconds", value_name = "TIME", value_parser = values::duration, default_value = "3s")]
    pub duration: Duration,
    /// Check whether ECN-capable packets arrive unchanged at this host; showing where they change
    /// needs root
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Write the result: .json
    #[arg(short, long, value_name = "FILE", value_parser = output_file(&[Form::Json]))]
    pub output: Option<ReportFile>,
}

/// Plays `tidegate doctor`.
pub fn command(options: &Options) -> ExitCode {
    super::ended("doctor", attempt(options))
}

fn attempt(options: &Options) -> anyhow::Result<CliExit> {
    crate::output::may_write(options.output.iter().map(|file| file.path.as_path()))?;
    let (diagnosis, is_stopped) = diagnose(&DoctorOptions {
        dev: options.dev.as_deref(),
        seconds: options.duration.as_secs_f64(),
        host: options.host.as_deref(),
        again: super::again(),
        stop: interrupt::notice,
    })?;
    let worst = diagnosis.findings.iter().map(|finding| finding.severity).max();
    let shown = if options.json { to_json(&diagnosis) } else { text(&diagnosis) };
    crate::output::report(&shown);
    if let Some(file) = &options.output {
        crate::output::file(&file.path, to_json(&diagnosis))?;
    }
    Ok(match worst {
        _ if is_stopped => CliExit::Partial,
        Some(Severity::Warning | Severity::Bad) => CliExit::No,
        _ => CliExit::Yes,
    })
}
