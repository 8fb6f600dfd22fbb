//! The command line of `tidegate gym`.

use crate::outputs::{Form, ReportFile, output_file};
use clap::Parser;
use std::path::PathBuf;
use tidegate_gym::{ControllerChoice, GymLoad, ShaperKind};
use tidegate_packet::Rate;
use tidegate_syntax::units::parse_rate;

/// Try controllers of a shaper's rate on lines that vary
///
/// Runs each controller in a closed loop in virtual time: it sees probes, counters and passing connections,
/// and changes the rates of CAKE, HTB or TBF. Scores are a call's delay and the use of the line, compared
/// with fixed rates and with a yardstick that knows the line.
#[derive(Clone, Debug, Parser)]
#[command(after_help = "\
Controllers: tidegate (its own), tidegate:AIM (0.1 to 4; below 1 less delay, above 1 more use of the line), \
cake-autorate and sqm-autorate (their algorithms, from their documentation), pid (of the delay), program:PATH (in \
any language, in a sandbox), fixed:SHARE (of the line's mean rate, 0.01 to 100), known (the yardstick). The \
baselines known, fixed:0.5, fixed:0.75 and fixed:1 are always there. docs/gym.md has the scores, the cases and how the controllers were written.

Exit codes: 0 done; 1 a controller failed in a case; 2 wrong usage or input; 3 partial result (interrupted).

Examples:
  tidegate gym
  tidegate gym tidegate cake-autorate --traces lte,starlink --loads up,down --lines 10
  tidegate gym tidegate tidegate:0.5 program:./mine.py --traces starlink
  tidegate gym tidegate --traces drive.csv -o drive.html
  tidegate gym --failures -o failures.html
  tidegate gym --failures --detail jitter -o jitter.svg")]
pub struct Options {
    /// Controllers to compare; default: tidegate, cake-autorate and sqm-autorate
    #[arg(value_name = "CONTROLLER", value_parser = ControllerChoice::named)]
    pub controllers: Vec<ControllerChoice>,
    /// The lines: presets (lte, 5g-driving, starlink, cable-evening, dsl-retrain), recordings, parts of them
    /// scaled and joined (`a.csv:skip=30s+b.csv:scale=0.5`), pairs (`a-up.csv`, `a-down.csv`), directories of
    /// them; default: all presets
    #[arg(long, value_name = "PRESET|FILE|DIR", conflicts_with = "failures")]
    pub traces: Vec<String>,
    /// The loads (up, down, both, bursts, bbr, idle); default: all but idle
    #[arg(long, value_name = "LOAD", value_delimiter = ',', value_parser = load, conflicts_with = "failures")]
    pub loads: Vec<GymLoad>,
    /// How many lines of each preset: generated with --seed, the next seed, and so on
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub lines: u16,
    /// Play the named failures (blind probes, dead targets, silence, and so on) instead of lines and loads
    #[arg(long)]
    pub failures: bool,
    /// The qdisc that holds the rate: cake, htb or tbf
    #[arg(long, value_name = "KIND", default_value = "cake", value_parser = shaper)]
    pub shaper: ShaperKind,
    /// Slow lines down to this mean rate of their faster direction, for speed; 0: leave them as they are
    #[arg(long, value_name = "RATE", default_value = "8mbit", value_parser = mean)]
    pub mean: Rate,
    /// How much of each run is measured, after 5s of warm-up; a number alone is seconds
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = seconds)]
    pub duration: u16,
    /// A configuration of cake-autorate: read as data, never run
    #[arg(long, value_name = "FILE")]
    pub cake_config: Option<PathBuf>,
    /// The seed of all random draws: the same gives the same result, to the byte
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How many runs at once; default: one for each processor
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Write the result (.json), a page with the front and some cases in detail (.html), or a picture of the
    /// case that --detail names, with the first controller (.svg, .png); may be repeated
    #[arg(
        short, long, value_name = "RESULT",
        value_parser = output_file(&[Form::Json, Form::Html, Form::Svg, Form::Png])
    )]
    pub output: Vec<ReportFile>,
    /// Show a case in detail on the page: LINE/LOAD, or the name of a failure; may be repeated; default:
    /// those in which the first controller is latest
    #[arg(long, value_name = "CASE")]
    pub detail: Vec<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Print a row for each case
    #[arg(long)]
    pub cases: bool,
}

fn load(text: &str) -> Result<GymLoad, String> {
    named(text, GymLoad::NAMED.map(|(name, load, _)| (name, load)), "load")
}

fn shaper(text: &str) -> Result<ShaperKind, String> {
    named(text, ShaperKind::NAMED, "shaper")
}

fn named<T: Copy, const N: usize>(text: &str, all: [(&str, T); N], what: &str) -> Result<T, String> {
    let found = all.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        format!("unknown {what} {text:?}; there are {}", names.join(", "))
    })
}

/// The whole seconds of a run.
fn seconds(text: &str) -> Result<u16, String> {
    let time = crate::values::interval(text)?;
    let seconds = u16::try_from(time.as_secs()).ok().filter(|_| time.subsec_nanos() == 0);
    seconds.filter(|seconds| (1..=600).contains(seconds)).ok_or("whole seconds, from 1s to 600s".to_owned())
}

/// A rate as tc writes it; 0 is none.
fn mean(text: &str) -> Result<Rate, String> {
    if text == "0" {
        return Ok(Rate(0));
    }
    let rate = parse_rate(text).ok_or_else(|| format!("`{text}` is no rate: write 8mbit"))?;
    if rate.as_bits() < 100_000 {
        return Err("below 100kbit a run says little".into());
    }
    Ok(rate)
}
