//! What `tidegate compare` is told.

use std::path::PathBuf;

/// What `tidegate compare` is told.
#[derive(clap::Args)]
#[command(after_help = "\
The first result is what the others are held against. A change is marked * where it is beyond the spread of repeats (the ranges of
both do not meet), and ? where a result has one repeat only, so that its spread is not known. What is not alike - other links, other
commands, cases that only one has - is said first.

Exit codes: 0 compared, 2 a result cannot be read, or they have nothing in common.

Examples:
  tidegate sim modem.toml --repeats 5 -o before.json
  tidegate sim modem.toml --repeats 5 --seed 100 -o after.json
  tidegate compare before.json after.json
  tidegate compare before.json after.json --html compare.html")]
pub struct Options {
    /// Results, as `tidegate sim -o`, `lab -o` or `measure -o` wrote them, or files of flent's (.flent.gz); two or more.
    #[arg(required = true, num_args = 2.., value_name = "RESULT")]
    pub results: Vec<PathBuf>,
    /// Also write a page: one file, with charts laid over each other.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
}
