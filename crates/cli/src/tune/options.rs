//! The command line of `tidegate tune`.

use crate::outputs::{Form, ReportFile, output_file};
use crate::script_options::ScriptOptions;
use crate::sim::CaseOptions;
use crate::sweep::results::{Pixels, width};
use clap::Parser;
use std::path::PathBuf;
use tidegate_sweep::{FEWEST_TRIED, TuneBound, TuneGoal};

/// Search for the best values of a scenario's parameters
///
/// Tries values at random, then goes downhill from the best (Nelder and Mead), all with the same seeds; then
/// simulates the best again with other seeds and with the scenario's other loads, and says what remains.
#[derive(Clone, Debug, Parser)]
#[command(after_help = "\
An objective is a figure (voip.p99, p99 voip): delays, durations and losses are made small, rates large; `min FIGURE` \
and `max FIGURE` say so. A bound is FIGURE >= VALUE or <=; N % of a figure with a unit is of what it is with the \
scenario's own values. docs/tune.md has the rest.

Exit codes: 0 better values were found, and are better with other seeds; 1 none that keep the bounds, or none better \
than the scenario's own; 2 wrong usage or input; 3 partial result (interrupted).

Examples:
  tidegate tune modem.toml --set target=1..50ms:log --objective 'p99 ping' --subject 'upload >= 90%'
  tidegate tune modem.toml --set rate=5..20mbit --objective ping.p95 --subject 'upload.rate >= 8mbit' -o front.svg")]
pub struct Options {
    /// The scenario (TOML; docs/scenario.md), or the name of one of RFC 7928's (docs/rfc7928.md)
    pub file: PathBuf,
    /// A parameter and its range: the name of a value of the table [values], or a path; may be repeated
    #[arg(long, value_name = "PATH=LOW..HIGH", required = true)]
    pub set: Vec<String>,
    /// The figure to make small or large: voip.p99, 'p99 voip', 'max upload.rate'
    #[arg(long, value_name = "FIGURE", value_parser = TuneGoal::parse)]
    pub objective: TuneGoal,
    /// A bound: 'upload >= 90%', 'ping.p95 <= 30ms'; may be repeated
    #[arg(long, value_name = "BOUND", value_parser = TuneBound::parse)]
    pub subject: Vec<TuneBound>,
    /// How many points are tried at most, from 4 to 10000
    #[arg(long, value_name = "N", default_value_t = 60,
        value_parser = clap::value_parser!(u32).range(FEWEST_TRIED as i64..=10_000))]
    pub tries: u32,
    /// The policy and the load, where the scenario has several; seeds and repeats of each point
    #[command(flatten)]
    pub cases: CaseOptions,
    /// How many runs at once; default: one for each processor
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// The sandbox that scripts run in
    #[command(flatten)]
    pub sandbox: ScriptOptions,
    /// How wide the drawing is, from 80mm to 1000mm: 88mm (a column of a paper), 3.5in
    #[arg(long, value_name = "WIDTH", value_parser = width, default_value = "88mm")]
    pub width: Pixels,
    /// Write the result (.json), or draw the objective against the first bounded figure, with the front
    /// (.svg, .pdf, .png); may be repeated
    #[arg(short, long, value_name = "RESULT", value_parser = output_file(FORMS))]
    pub output: Vec<ReportFile>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What `tune` writes.
const FORMS: &[Form] = &[Form::Json, Form::Svg, Form::Pdf, Form::Png];
