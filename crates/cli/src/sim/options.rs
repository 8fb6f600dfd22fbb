//! The command line of `tidegate sim`.

use crate::script_options::ScriptOptions;
use crate::values::duration;
use clap::Parser;
use std::path::PathBuf;
use tidegate_packet::Nanos;

/// Do an experiment that a scenario's file describes: policies compared under loads, between hosts and
/// machines in virtual time.
#[derive(Clone, Debug, Parser)]
pub struct Options {
    /// The scenario (TOML; docs/scenario.md).
    pub file: PathBuf,
    /// Only these policies.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub policy: Vec<String>,
    /// Only these loads.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub load: Vec<String>,
    /// The seed of the first repeat; the same seed gives the same result, to the byte.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How often each case is run, each time with the next seed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeats: Option<u32>,
    /// How long is measured.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub duration: Option<Nanos>,
    /// The sandbox that scripts run in.
    #[command(flatten)]
    pub sandbox: ScriptOptions,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
    /// Write the result there, as JSON, for `tidegate compare`.
    #[arg(short, long, value_name = "RESULT.json")]
    pub output: Option<PathBuf>,
    /// Write a page there, one file that needs no network.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write each chart into this directory as SVG.
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// And as PNG.
    #[arg(long, value_name = "DIR")]
    pub png: Option<PathBuf>,
    /// Write each run into this directory as flent reads it.
    #[arg(long, value_name = "DIR")]
    pub flent: Option<PathBuf>,
    /// Write what each link could carry into this directory, as mahimahi reads it.
    #[arg(long, value_name = "DIR")]
    pub mahimahi: Option<PathBuf>,
    /// Write the packets of one run with their class, wait and fate as pcapng, for Wireshark: those of all
    /// machines' devices, or of one.
    #[arg(long, value_name = "FILE[:MACHINE/DEVICE]")]
    pub pcapng: Option<String>,
    /// What every machine is told or asked at a moment of each run: `--at 60s -- tc -s class show dev eth0`.
    /// May be repeated before the `--`; the command is the same.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub at: Vec<Nanos>,
    /// Only read the file, and try the policies.
    #[arg(long)]
    pub check: bool,
    /// Tell what the file holds: policies, loads, cases.
    #[arg(long)]
    pub list: bool,
    /// The command for `--at`.
    #[arg(last = true, value_name = "COMMAND", requires = "at")]
    pub command: Vec<String>,
}

fn span(text: &str) -> Result<Nanos, String> {
    duration(text).map(|time| Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
}
