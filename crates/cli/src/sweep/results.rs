//! `tidegate results FILE…`: rows of sweeps merged, chosen and summarised.

use super::text;
use crate::exit::CliExit;
use crate::outputs::{self, Form, ReportFile, output_file};
use anyhow::Context;
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use tidegate_sweep::{SweepQuery, SweepTable, summary_json};

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
  tidegate results all.csv --figure upload.rate --versus policy=none")]
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
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub versus: Option<(String, String)>,
    /// Write all rows of all files (.csv), or the summary (.json); may be repeated
    #[arg(short, long, value_name = "RESULT", value_parser = output_file(&[Form::Csv, Form::Json]))]
    pub output: Vec<ReportFile>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
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

fn attempt(options: &Options) -> anyhow::Result<CliExit> {
    let mut table = SweepTable::default();
    for path in &options.files {
        let named = || path.display().to_string();
        let bytes = crate::input::result(path)?;
        let text = std::str::from_utf8(&bytes).with_context(named)?;
        table.take(text).with_context(named)?;
    }
    anyhow::ensure!(!table.runs.is_empty(), "these files have no rows");
    // Now that the inputs are known, none is replaced.
    crate::output::may_write(outputs::paths(&options.output))?;
    let query = SweepQuery {
        only: options.only.clone(),
        figures: options.figure.clone(),
        by: options.by.clone(),
        versus: options.versus.clone(),
    };
    let json = || -> anyhow::Result<String> { Ok(summary_json(&table, &table.summary(&query)?)) };
    if options.json {
        crate::output::text(&json()?);
    } else {
        let figures = text::usual_figures(&table, &options.figure);
        let summary = table.summary(&SweepQuery { figures, ..query.clone() })?;
        crate::output::report(&text::summary(&table, &summary, ""));
    }
    for ReportFile { path, form } in &options.output {
        crate::output::file(path, if *form == Form::Csv { table.csv() } else { json()? })?;
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
