//! `tidegate calibrate`: the rates to write into a policy.

use super::far::FarOptions;
use super::overhead::{now_ns, ways};
use super::tell;
use crate::exit::CliExit;
use crate::outputs::{Form, ReportFile, output_file};
use anyhow::bail;
use std::process::ExitCode;
use tidegate_analysis::calibrate::to_json;
use tidegate_measure::calibrate::{CalibrationDocument, calibrate};
use tidegate_measure::capacity::PathDirection;
use tidegate_report::measuring::calibrate::text;
use tidegate_sessions::KeptPath;
use tidegate_syntax::quantity;
use tidegate_sys::interrupt;

/// Find the highest rate each way at which delay does not rise
///
/// These are the rates to write into a policy.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
The line is flooded, and then loaded at rates ever closer to its capacity: about 12 seconds for one direction and \
half a minute for both, longer below 1 Mbit/s.

Exit codes: 0 done; 1 no rate was found; 2 wrong usage or input; 3 partial result; 4 not permitted.

Examples:
  tidegate calibrate server.example.org --token token
  tidegate calibrate server.example.org --up --margin 10% -o rates.json")]
pub struct Options {
    /// The host where `tidegate serve` runs
    pub host: String,
    /// How the server is reached
    #[command(flatten)]
    pub far: FarOptions,
    /// Only the upload
    #[arg(long, conflicts_with = "down")]
    pub up: bool,
    /// Only the download
    #[arg(long)]
    pub down: bool,
    /// How far to stay below the rate found: 5% or 0.05
    #[arg(long, default_value = "5%", value_parser = share)]
    pub margin: f64,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Write the result: .json
    #[arg(short, long, value_name = "FILE", value_parser = output_file(&[Form::Json]))]
    pub output: Option<ReportFile>,
}

/// A share of less than one.
fn share(text: &str) -> Result<f64, String> {
    quantity::share(text)
        .filter(|share| (0.0..0.9).contains(share))
        .ok_or_else(|| "a share below 90%, such as 5% or 0.05".into())
}

/// Plays `tidegate calibrate`.
pub fn command(options: &Options) -> ExitCode {
    super::ended("calibrate", attempt(options))
}

fn attempt(options: &Options) -> anyhow::Result<CliExit> {
    if options.host.is_empty() {
        bail!("missing HOST: the host where `tidegate serve` runs");
    }
    crate::output::may_write(options.output.iter().map(|file| file.path.as_path()))?;
    let document = measure(options)?;
    let shown = if options.json { to_json(&document) } else { text(&document) };
    crate::output::report(&shown);
    if let Some(file) = &options.output {
        crate::output::file(&file.path, to_json(&document))?;
    }
    let found = &document.found;
    let has_rate =
        PathDirection::BOTH.iter().any(|way| found.of(*way).is_some_and(|one| one.bits_per_second > 0.0));
    Ok(match (&found.cut, has_rate) {
        (Some(_), _) => CliExit::Partial,
        (None, true) => CliExit::Yes,
        (None, false) => CliExit::No,
    })
}

fn measure(options: &Options) -> anyhow::Result<CalibrationDocument> {
    let (began_ns, is_quiet) = (now_ns(), options.json);
    let mut far = KeptPath::connect(&options.far.target(&options.host)?, interrupt::notice)?;
    tell(is_quiet, "flooding");
    let found = calibrate(&mut far, ways(options.up, options.down), options.margin, &mut |way, step| {
        let verdict = if step.sustained { "passed" } else { "failed" };
        tell(is_quiet, &format!("{}: {:.3} Mbit/s {verdict}", way.name(), step.bits_per_second / 1e6));
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
        caveats: far.caveats(),
    })
}
