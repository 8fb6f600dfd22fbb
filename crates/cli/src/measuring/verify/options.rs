//! What may be said to `tidegate verify`.

use crate::live::Backend;
use crate::measuring::far::FarOptions;
use crate::values::duration;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_sessions::verify::VerifyOptions;

/// What `tidegate verify` is told.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
The policy is put on and taken away with `tidegate apply` and `revert`, in turns (without, with, with, \
without, …), and the same load is measured each time. At the end it
stands as it stood before, also after Ctrl-C, an error, or kill -9.

Exit codes: 0 nothing got worse as far as these rounds can tell; 1 something did; 2 wrong use, this \
computer, or the server; 3 only a part was measured.

Examples:
  tidegate verify my-server --token token --policy fix.toml
  tidegate verify my-server --token token --with 'ssh router sqm start' --without 'ssh router sqm stop' \
  --rounds 6")]
pub struct Options {
    /// Where `tidegate serve` runs.
    pub host: String,
    /// The policy in question: the files that `tidegate apply` takes.
    #[arg(long, value_name = "FILE", required_unless_present = "with")]
    pub policy: Vec<PathBuf>,
    /// The device it is for, instead of the one that it names.
    #[arg(long, value_parser = crate::values::device, value_name = "DEV")]
    pub dev: Option<String>,
    /// Whose disciplines: the kernel's, our own, or the kernel's wherever it has them.
    #[arg(long, value_enum, default_value_t)]
    pub backend: Backend,
    /// Or a command that puts it on, wherever that is.
    #[arg(long, value_name = "COMMAND", requires = "without", conflicts_with = "policy")]
    pub with: Option<String>,
    /// And one that takes it away; it is what is done at the end.
    #[arg(long, value_name = "COMMAND", requires = "with")]
    pub without: Option<String>,
    /// What is measured each time, by flent's names (see `tidegate measure --help`).
    #[arg(long, default_value = "rrul_be")]
    pub test: String,
    /// How long each time.
    #[arg(short, long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    pub length: Duration,
    /// How often each of the two: from 2 on there are intervals.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// How long it may settle after each change.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    pub settle: Duration,
    /// How the server is reached.
    #[command(flatten)]
    pub far: FarOptions,
    /// Write all runs: .json (for `tidegate compare`) or .html. May be repeated.
    #[arg(short, long, value_name = "FILE")]
    pub output: Vec<PathBuf>,
    /// Print the differences as JSON.
    #[arg(long)]
    pub json: bool,
    /// Do not show how far it is.
    #[arg(short, long)]
    pub quiet: bool,
}

impl From<&Options> for VerifyOptions {
    fn from(options: &Options) -> VerifyOptions {
        VerifyOptions {
            policy: options.policy.clone(),
            dev: options.dev.clone(),
            backend: options.backend.into(),
            with: options.with.clone(),
            without: options.without.clone(),
            test: options.test.clone(),
            rounds: options.rounds,
            settle: options.settle,
        }
    }
}
