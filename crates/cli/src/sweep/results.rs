//! `tidegate results FILE…`: rows of sweeps merged, chosen and summarised.

use super::text;
use crate::exit::CliExit;
use crate::outputs::{self, Form, ReportFile, output_file};
use anyhow::Context;
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use tidegate_report::chart::{Drawing, Theme, file, pdf, png};
use tidegate_report::sweep_drawing;
use tidegate_sweep::{IntervalMethod, PlotWanted, SweepQuery, SweepTable, summary_json};

/// Merge and summarise the rows of sweeps
///
/// Files of the shards of one sweep become one table: a run that is in two of them counts once, two different
/// values for one figure are an error, and missing runs are counted.
#[derive(Clone, Debug, Parser)]
#[command(after_help = "\
Exit codes: 0 done; 2 wrong usage or input: not the rows of one sweep; 3 runs of the sweep are missing.

Examples:
  tidegate results part*.csv -o all.csv
  tidegate results all.csv --figure ping.p95 --where up=10mbit --by rtt,policy
  tidegate results all.csv --figure upload.rate --versus policy=none
  tidegate results all.csv --harm load=call --figure voip-up.p99
  tidegate results all.csv --plot rtt,ping.p95 -o delay.pdf")]
pub struct Options {
    /// Rows that `tidegate sweep` wrote (CSV)
    #[arg(required = true, num_args = 1.., value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Only these figures, such as ping.p95; without it the 95th percentiles and rates
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub figure: Vec<String>,
    /// Only runs with this value: of a parameter (its path or last key), policy, load, case or repeat; may be
    /// repeated
    #[arg(long = "where", value_name = "NAME=VALUE", value_parser = pair)]
    pub only: Vec<(String, String)>,
    /// A row for each combination of these; without it of all that differ, except repeats
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub by: Vec<String>,
    /// Compare with the runs that have this value: --versus policy=none
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, conflicts_with = "plot")]
    pub versus: Option<(String, String)>,
    /// Say how much worse a workload does than in the runs with this value, in which it is alone (harm):
    /// --harm load=call
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, conflicts_with_all = ["versus", "plot"])]
    pub harm: Option<(String, String)>,
    /// How intervals are found: by Student's t, or by drawing samples again from the sample (of 8 runs at
    /// least)
    #[arg(long, value_name = "METHOD", value_enum, default_value_t = Intervals::Student)]
    pub intervals: Intervals,
    /// Draw FIGURE (its distribution), PARAMETER,FIGURE (one over the other, with intervals) or
    /// FIGURE,FIGURE (one against the other, with ellipses), into the .svg, .pdf or .png of -o
    #[arg(long, value_name = "WHAT", value_parser = wanted)]
    pub plot: Option<PlotWanted>,
    /// How wide the drawing is, from 80mm to 1000mm: 88mm (a column of a paper), 3.5in
    #[arg(long, value_name = "WIDTH", value_parser = width, default_value = "88mm", requires = "plot")]
    pub width: Pixels,
    /// Write all rows of all files (.csv), the summary (.json), or the drawing (.svg, .pdf, .png); may be
    /// repeated
    #[arg(short, long, value_name = "RESULT", value_parser = output_file(FORMS))]
    pub output: Vec<ReportFile>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// How intervals are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Intervals {
    /// Student's t
    Student,
    /// The bootstrap
    Bootstrap,
}

impl From<Intervals> for IntervalMethod {
    fn from(intervals: Intervals) -> IntervalMethod {
        match intervals {
            Intervals::Student => IntervalMethod::Student,
            Intervals::Bootstrap => IntervalMethod::Bootstrap,
        }
    }
}

/// What `results` writes.
const FORMS: &[Form] = &[Form::Csv, Form::Json, Form::Svg, Form::Pdf, Form::Png];
/// Pixels of a PNG for each of a drawing: 288 a inch.
pub(crate) const SCALE: f32 = 3.0;

/// Pixels of 1/96 inch.
#[derive(Clone, Copy, Debug)]
pub struct Pixels(pub(crate) f64);

/// `88mm`, `3.5in`.
pub(crate) fn width(text: &str) -> Result<Pixels, String> {
    let of = |unit: &str, inch: f64| Some(text.strip_suffix(unit)?.trim().parse::<f64>().ok()? / inch * 96.0);
    let known = of("mm", 25.4).or_else(|| of("cm", 2.54)).or_else(|| of("in", 1.0));
    let known = known.filter(|pixels| (300.0..=4000.0).contains(pixels));
    known.map(Pixels).ok_or_else(|| "write a width from 80mm to 1000mm, such as 88mm or 3.5in".to_owned())
}

/// `ping.p95`, `home.rtt,ping.p95`.
pub(crate) fn wanted(text: &str) -> Result<PlotWanted, String> {
    let names: Vec<&str> = text.split(',').map(str::trim).collect();
    match names.as_slice() {
        [figure] if !figure.is_empty() => Ok(PlotWanted::Distribution((*figure).to_owned())),
        [across, figure] if !across.is_empty() && !figure.is_empty() => {
            Ok(PlotWanted::Over((*across).to_owned(), (*figure).to_owned()))
        }
        _ => Err("write FIGURE, PARAMETER,FIGURE or FIGURE,FIGURE".to_owned()),
    }
}

pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
    pair.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .ok_or_else(|| "write NAME=VALUE: policy=none".to_owned())
}

/// Plays `tidegate results`.
pub fn command(options: &Options) -> ExitCode {
    match attempt(options) {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("tidegate results: {error:#}");
            CliExit::of(&error).into()
        }
    }
}

/// The drawing, with a word on what it leaves out.
fn drawn(table: &SweepTable, query: &SweepQuery, wanted: &PlotWanted) -> anyhow::Result<Drawing> {
    let plot = table.plot(query, wanted)?;
    if plot.without > 0 {
        eprintln!("tidegate results: {} runs have no value for what is drawn", plot.without);
    }
    Ok(sweep_drawing(&plot)?)
}

fn attempt(options: &Options) -> anyhow::Result<CliExit> {
    let mut table = SweepTable::default();
    for path in &options.files {
        let named = || path.display().to_string();
        let bytes = crate::input::result(path)?;
        let text = std::str::from_utf8(&bytes).with_context(named)?;
        table.take(text).with_context(named)?;
    }
    anyhow::ensure!(!table.runs.is_empty(), "these files have no rows");
    let is_picture = |file: &&ReportFile| matches!(file.form, Form::Svg | Form::Pdf | Form::Png);
    let pictures = options.output.iter().filter(is_picture).count();
    anyhow::ensure!(
        options.plot.is_some() == (pictures > 0),
        "a drawing needs both what to draw and where: --plot ping.p95 -o p95.svg"
    );
    // Now that the inputs are known, none is replaced.
    crate::output::may_write(outputs::paths(&options.output))?;
    let query = SweepQuery {
        only: options.only.clone(),
        figures: options.figure.clone(),
        by: options.by.clone(),
        versus: options.versus.clone(),
        harm: options.harm.clone(),
        intervals: options.intervals.into(),
    };
    let drawing = options.plot.as_ref().map(|plot| drawn(&table, &query, plot)).transpose()?;
    let json = || -> anyhow::Result<String> { Ok(summary_json(&table, &table.summary(&query)?)) };
    if options.json {
        crate::output::text(&json()?);
    } else {
        let figures = text::usual_figures(&table, &options.figure);
        let summary = table.summary(&SweepQuery { figures, ..query.clone() })?;
        crate::output::report(&text::summary(&table, &summary, ""));
        if options.harm.is_some() && summary.rows.iter().all(|row| row.harm.is_none()) {
            eprintln!(
                "tidegate results: no row has a harm: no run has its figures alone with the same seed, or they are \
                neither better nor worse by their size (rates, delays and losses are)"
            );
        }
    }
    for ReportFile { path, form } in &options.output {
        let content = match (form, &drawing) {
            (Form::Csv, _) => table.csv().into_bytes(),
            (Form::Svg, Some(drawing)) => file(drawing, options.width.0, Theme::Light).into_bytes(),
            (Form::Pdf, Some(drawing)) => pdf(drawing, options.width.0, Theme::Light)?,
            (Form::Png, Some(drawing)) => png(drawing, options.width.0, SCALE, Theme::Light)?,
            _ => json()?.into_bytes(),
        };
        crate::output::file(path, content)?;
    }
    match table.missing() {
        0 => Ok(CliExit::Yes),
        missing => {
            let first = (0..).find(|run| !table.runs.contains_key(run)).unwrap_or_default();
            eprintln!(
                "tidegate results: {missing} of {} runs are missing, the first is number {first}; `tidegate sweep` \
                with --shard makes them",
                table.head.runs
            );
            Ok(CliExit::Partial)
        }
    }
}
