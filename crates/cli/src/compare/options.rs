//! What `tidegate compare` is told.

use std::path::PathBuf;

/// What `tidegate compare` is told.
#[derive(clap::Args)]
#[command(after_help = "\
The first result is what the others are compared with. A change is marked * where it is significant: more \
than repeats vary by
chance (permutation test of each figure, corrected for their number: 1 in 20 of those so marked at most is \
expected to be chance), and ?
where a result has one repeat only, so that this is not known. It takes 5 repeats or more of each. \
Differences between the results - other links, other commands, cases that
only one has - is said first.

Exit codes: 0 compared, 2 a result cannot be read, or they have nothing in common.

Examples:
  tidegate sim modem.toml --repeats 8 -o before.json
  tidegate sim modem.toml --repeats 8 --seed 100 -o after.json
  tidegate compare before.json after.json
  tidegate compare before.json after.json --html compare.html")]
pub struct Options {
    /// Results, as `tidegate sim -o`, `lab -o` or `measure -o` wrote them, or files of flent's (.flent.gz);
    /// two or more.
    #[arg(required = true, num_args = 2.., value_name = "RESULT")]
    pub results: Vec<PathBuf>,
    /// Also write a page: one file, with charts laid over each other.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
}
