//! `tidegate calibrate`: the rates to write into a policy.

use super::far::{FarOptions, PARTIAL};
use super::overhead::{now_ns, ways};
use super::tell;
use anyhow::bail;
use std::path::PathBuf;
use std::process::ExitCode;
use tidegate_analysis::calibrate::to_json;
use tidegate_measure::calibrate::{CalibrationDocument, calibrate};
use tidegate_measure::capacity::PathDirection;
use tidegate_report::measuring::calibrate::text;
use tidegate_sessions::KeptPath;
use tidegate_sys::interrupt;

/// No rate stood.
const NONE: u8 = 1;

/// The highest rate each way at which delay does not rise, and what to write into a policy.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
The line is flooded, and then sent to at rates ever closer to what it carries: about half a minute each \
way, more below 1 Mbit/s.

Exit codes: 0 done, 1 nothing arrived or no rate stood, 2 wrong use, or no way there, 3 it broke off: partial.

Example: tidegate calibrate server.example.org --token token --margin 5%")]
pub struct Options {
    /// The host where `tidegate serve` runs.
    pub host: String,
    /// How it is reached.
    #[command(flatten)]
    pub far: FarOptions,
    /// Only away from here.
    #[arg(long, conflicts_with = "down")]
    pub up: bool,
    /// Only to here.
    #[arg(long)]
    pub down: bool,
    /// What to stay below it: a share, 5% or 0.05.
    #[arg(long, default_value = "5%", value_parser = share)]
    pub margin: f64,
    /// The result as JSON.
    #[arg(long)]
    pub json: bool,
    /// The result as JSON into a file.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// No progress on the terminal.
    #[arg(short, long)]
    pub quiet: bool,
}

/// A share of less than one.
fn share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    number
        .ok()
        .filter(|share| (0.0..0.9).contains(share))
        .ok_or_else(|| "a share below 90%, such as 5% or 0.05".into())
}

/// Plays `tidegate calibrate`.
pub fn command(options: &Options) -> ExitCode {
    super::ended("calibrate", attempt(options))
}

fn attempt(options: &Options) -> anyhow::Result<u8> {
    if options.host.is_empty() {
        bail!("a host where `tidegate serve` runs");
    }
    let document = measure(options)?;
    if let Some(file) = &options.output {
        crate::output::file(file, to_json(&document))?;
    }
    let shown = if options.json { to_json(&document) } else { text(&document) };
    crate::output::text(&shown);
    let found = &document.found;
    let has_rate =
        PathDirection::BOTH.iter().any(|way| found.of(*way).is_some_and(|one| one.bits_per_second > 0.0));
    Ok(match (&found.cut, has_rate) {
        (Some(_), _) => PARTIAL,
        (None, true) => 0,
        (None, false) => NONE,
    })
}

fn measure(options: &Options) -> anyhow::Result<CalibrationDocument> {
    let (began_ns, is_quiet) = (now_ns(), options.quiet || options.json);
    let mut far = KeptPath::connect(&options.far.target(&options.host)?, interrupt::notice)?;
    tell(is_quiet, "flooding");
    let found = calibrate(&mut far, ways(options.up, options.down), options.margin, &mut |way, step| {
        let stood = if step.stands { "stood" } else { "too much" };
        tell(is_quiet, &format!("{}: {:.3} Mbit/s {stood}", way.name(), step.bits_per_second / 1e6));
    })?;
    tell(is_quiet, "");
    let mut found = if far.is_ipv6() { found.over_ipv6() } else { found };
    // It may have broken off before the search began.
    found.cut = found.cut.or_else(|| far.cut());
    Ok(CalibrationDocument {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        again: super::again(),
        began_ns,
        host: options.host.clone(),
        found,
        margin: options.margin,
        doubts: far.doubts(),
    })
}
