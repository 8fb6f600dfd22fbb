//! The command line of `tidegate compare`.

use crate::outputs::{Form, ReportFile, output_file};
use std::path::PathBuf;

/// Compare results, or the policies of one, with significance
#[derive(clap::Args)]
#[command(after_help = "\
Of one result its policies are compared with each other, of several the same cases: each with the first, \
or with the one that --base names. * marks a significant change: larger than repeats vary by \
chance (a permutation test for each figure, corrected for their number, so that about 1 in 20 of the marked \
changes may be chance). ? marks a change that cannot be tested because a result has only one repeat. Use 5 \
repeats or more. Differences between the experiments - other links, other commands, cases that only one has - \
are listed first.

Exit codes: 0 done; 2 wrong usage or input: a result cannot be read, or they have no figure in common.

Examples:
  tidegate sim modem.toml --repeats 8 -o before.json
  tidegate compare before.json
  tidegate sim modem.toml --repeats 8 --seed 100 -o after.json
  tidegate compare before.json after.json
  tidegate compare before.json after.json -o compare.html")]
pub struct Options {
    /// Results of `tidegate sim`, `lab` or `measure` (JSON), or flent's files (.flent.gz); one compares its
    /// policies
    #[arg(required = true, num_args = 1.., value_name = "RESULT")]
    pub results: Vec<PathBuf>,
    /// The result or policy to compare the others with, by its name in the table [default: the first]
    #[arg(long, value_name = "NAME")]
    pub base: Option<String>,
    /// Write the comparison: .html (one file, with overlaid charts) or .json; may be repeated
    #[arg(short, long, value_name = "FILE", value_parser = output_file(&[Form::Html, Form::Json]))]
    pub output: Vec<ReportFile>,
    /// Write a page, whatever the file is called
    #[arg(long, value_name = "FILE", hide = true)]
    pub html: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
}
