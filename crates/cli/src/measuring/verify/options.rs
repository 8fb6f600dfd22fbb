//! The command line of `tidegate verify`.

use crate::live::Backend;
use crate::measuring::far::FarOptions;
use crate::measuring::measure::FORMS;
use crate::outputs::{ReportFile, output_file};
use crate::values::duration;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_sessions::verify::VerifyOptions;

/// Measure with and without a policy, in turns, and compare
///
/// The same load is measured without, with, with, without the policy, and so on.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
The policy is applied and reverted as by `tidegate apply` and `tidegate revert`. At the end the previous \
configuration is restored, also after Ctrl-C, an error, or kill -9.

Exit codes: 0 no delay or loss got worse as far as these rounds can show; 1 one did; 2 wrong usage or input; 3 \
partial result; 4 not permitted.

Examples:
  tidegate verify my-server --token token --policy fix.toml
  tidegate verify my-server --policy gateway.sh --repeats 6 -- start eth0
  tidegate verify my-server --with 'ssh router sqm start' --without 'ssh router sqm stop'")]
pub struct Options {
    /// The host where `tidegate serve` runs
    pub host: String,
    /// The policy to verify: the files that `tidegate apply` takes
    #[arg(long, value_name = "FILE", required_unless_present = "with")]
    pub policy: Vec<PathBuf>,
    /// Arguments for the policy's script
    #[arg(last = true, conflicts_with = "with")]
    pub args: Vec<String>,
    /// Apply it to this device instead of the one that it names
    #[arg(long, value_parser = crate::values::device, value_name = "DEV")]
    pub dev: Option<String>,
    /// Which queueing disciplines (qdiscs) run it: the kernel's, tidegate's in user space, or the kernel's
    /// wherever it has them
    #[arg(long, value_enum, default_value_t)]
    pub backend: Backend,
    /// Instead of --policy: a command that applies it, wherever that is
    #[arg(long, value_name = "COMMAND", requires = "without", conflicts_with = "policy")]
    pub with: Option<String>,
    /// And a command that removes it, which is run at the end, too
    #[arg(long, value_name = "COMMAND", requires = "with")]
    pub without: Option<String>,
    /// What is measured each time, by flent's names (see `tidegate measure --help`)
    #[arg(long, default_value = "rrul_be")]
    pub test: String,
    /// How long each measurement lasts
    #[arg(
        short,
        long,
        alias = "length",
        short_alias = 'l',
        value_name = "TIME",
        value_parser = duration,
        default_value = "10s"
    )]
    pub duration: Duration,
    /// Rounds with and without the policy; from 2 on there are confidence intervals
    #[arg(
        long = "repeats",
        alias = "rounds",
        value_name = "N",
        default_value_t = 4,
        value_parser = clap::value_parser!(u32).range(1..=100)
    )]
    pub rounds: u32,
    /// How long the line settles after each change
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    pub settle: Duration,
    /// How the server is reached
    #[command(flatten)]
    pub far: FarOptions,
    /// Write all runs: .json (for `tidegate compare`), .html, .flent.gz or .svg; may be repeated
    #[arg(short, long, value_name = "FILE", value_parser = output_file(FORMS))]
    pub output: Vec<ReportFile>,
    /// Print the differences as JSON
    #[arg(long)]
    pub json: bool,
}

impl From<&Options> for VerifyOptions {
    fn from(options: &Options) -> VerifyOptions {
        VerifyOptions {
            policy: options.policy.clone(),
            args: options.args.clone(),
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
