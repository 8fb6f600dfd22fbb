//! The command line of `tidegate bundle`.

use crate::script_options::ScriptOptions;
use crate::sweep::DesignOptions;
use crate::sweep::results::{pair, wanted, width};
use clap::Parser;
use std::path::PathBuf;

/// Bundle a scenario with its results, for others to repeat
///
/// The directory has all files that the runs read, the results, seeds and commands, SHA-256 sums, and a
/// script that does everything again and compares the results to the byte: an artefact for a paper's
/// reviewers.
#[derive(Clone, Debug, Parser)]
#[command(after_help = "\
A scenario with a table [sweep], or --set, gives the rows of a sweep; one without gives the rows of its single case, its \
document and its page. A bundle that is interrupted goes on with the same command. docs/bundle.md describes the files.

Exit codes: 0 done, or the bundle is as it was made; 1 files changed, or results differ; 2 wrong usage or input; \
3 partial result (interrupted).

Examples:
  tidegate bundle modem.toml --repeats 5 --author 'Doe, Jane' -o paper
  tidegate bundle grid.toml --plot rtt,ping.p95 --plot ping.p95,upload.rate -o paper
  tidegate bundle --check paper")]
pub struct Options {
    /// The scenario (TOML; docs/scenario.md), or the name of one of RFC 7928's (docs/rfc7928.md)
    #[arg(required_unless_present = "check")]
    pub file: Option<PathBuf>,
    /// What is varied, and which cases are run
    #[command(flatten)]
    pub design: DesignOptions,
    /// Draw FIGURE, PARAMETER,FIGURE or FIGURE,FIGURE, as `tidegate results` does, as PDF and SVG; may be
    /// repeated
    #[arg(long, value_name = "WHAT", value_parser = |text: &str| wanted(text).map(|_| text.to_owned()))]
    pub plot: Vec<String>,
    /// Of the drawings: a curve for each combination of these
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "plot")]
    pub by: Vec<String>,
    /// Of the drawings: only runs with this value; may be repeated
    #[arg(long = "where", value_name = "NAME=VALUE", requires = "plot",
        value_parser = |text: &str| pair(text).map(|_| text.to_owned()))]
    pub only_drawn: Vec<String>,
    /// How wide the drawings are, from 80mm to 1000mm: 88mm (a column of a paper), 3.5in
    #[arg(long, value_name = "WIDTH", default_value = "88mm", requires = "plot",
        value_parser = |text: &str| width(text).map(|_| text.to_owned()))]
    pub width: String,
    /// The title in CITATION.cff; without it that of the scenario
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// An author in CITATION.cff: 'Family, Given', or the name of an organisation; may be repeated
    #[arg(long, value_name = "NAME")]
    pub author: Vec<String>,
    /// How many runs at once; default: one for each processor
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// The sandbox that scripts run in
    #[command(flatten)]
    pub sandbox: ScriptOptions,
    /// The directory: a new one, or an empty one
    #[arg(short, long, value_name = "DIR", required_unless_present = "check", value_parser = directory)]
    pub output: Option<PathBuf>,
    /// Check a bundle instead: compare its files with their sums, do everything again in a temporary
    /// directory, and compare the results
    #[arg(long, value_name = "DIR", conflicts_with_all = ["file", "output"])]
    pub check: Option<PathBuf>,
    /// Only compare the files with their sums
    #[arg(long, requires = "check")]
    pub sums: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn directory(text: &str) -> Result<PathBuf, String> {
    match crate::output::is_stdout(text.as_ref()) {
        true => Err("several files are written; name a directory".to_owned()),
        false => Ok(text.into()),
    }
}
