//! `tidegate doctor`: is it really shaping? What is looked at is `tidegate_sessions::doctor`'s.

use super::far::PARTIAL;
use crate::values;
use std::process::ExitCode;
use tidegate_analysis::doctor::to_json;
use tidegate_measure::doctor::Severity;
use tidegate_report::measuring::doctor::text;
use tidegate_sessions::doctor::{DoctorOptions, diagnose};
use tidegate_sys::interrupt;

/// Something is wrong.
const FOUND: u8 = 1;

/// What may be said.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Looks twice, and says what keeps this computer from shaping as it was told: how large, and what mends it. \
Look while the link is loaded: whether \
a shaper limits can only be seen then. Nothing is changed. Without root some of it cannot be looked at, \
which is said.

  tidegate doctor
  tidegate doctor --dev eth0 --seconds 20 --host example.org

Exit codes: 0 nothing worse than a note; 1 something is wrong; 2 wrong use, or nothing could be looked at; \
3 ended before its time.")]
pub struct Options {
    /// Look at this device only, and those that belong to it.
    #[arg(long, value_parser = crate::values::device, value_name = "DEV")]
    pub dev: Option<String>,
    /// From the first look to the second; a number alone is seconds.
    #[arg(long, value_name = "TIME", value_parser = values::seconds, default_value = "3s")]
    pub seconds: f64,
    /// Ask this host whether packets that may be marked (ECN) arrive as such; needs a way to it, and root to
    /// see who changes them.
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Plays `tidegate doctor`.
pub fn command(options: &Options) -> ExitCode {
    super::ended("doctor", attempt(options))
}

fn attempt(options: &Options) -> anyhow::Result<u8> {
    let (diagnosis, is_stopped) = diagnose(&DoctorOptions {
        dev: options.dev.as_deref(),
        seconds: options.seconds,
        host: options.host.as_deref(),
        again: super::again(),
        stop: interrupt::notice,
    })?;
    let worst = diagnosis.findings.iter().map(|finding| finding.severity).max();
    let shown = if options.json { to_json(&diagnosis) } else { text(&diagnosis) };
    crate::output::text(&shown);
    Ok(match worst {
        _ if is_stopped => PARTIAL,
        Some(Severity::Warning | Severity::Bad) => FOUND,
        _ => 0,
    })
}
