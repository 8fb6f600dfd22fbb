//! The command line of `tidegate sim`.

use crate::outputs::{Form, ReportFile, output_file};
use crate::script_options::ScriptOptions;
use crate::values::run_time;
use clap::Parser;
use std::path::PathBuf;
use tidegate_packet::Nanos;
use tidegate_scenario::CaseChoice;
use tidegate_scenario::settings::Setting;

/// Which cases of a scenario are run, how often and how long: what replaces values of the file.
#[derive(Clone, Debug, clap::Args)]
pub struct CaseOptions {
    /// Only these policies
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub policy: Vec<String>,
    /// Only these loads
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub load: Vec<String>,
    /// Seed of the first repeat; the same seed gives the same result, to the byte
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How many times each case is run, each time with the next seed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeats: Option<u32>,
    /// How long each run is measured
    #[arg(short, long, value_name = "TIME", value_parser = run_time)]
    pub duration: Option<Nanos>,
}

impl CaseOptions {
    /// The same, for the libraries.
    pub(crate) fn choice(&self) -> CaseChoice {
        CaseChoice {
            policies: self.policy.clone(),
            loads: self.load.clone(),
            seed: self.seed,
            repeats: self.repeats,
            duration: self.duration,
        }
    }
}

/// Run a scenario file in simulation, in virtual time
///
/// Compares policies under loads, between hosts and routers that the file describes. `tidegate try` needs no
/// file; `tidegate lab` runs the same file in real time.
#[derive(Clone, Debug, Parser)]
#[command(after_help = "\
Exit codes: 0 done; 1 an assertion of the file fails; 2 wrong usage or input; 3 partial result (interrupted).

Examples:
  tidegate sim examples/scenarios/upload.toml
  tidegate sim modem.toml --repeats 8 -o before.json -o before.html
  tidegate sim rfc7928/bursts --set policies.mine.left='tc qdisc add dev eth0 root handle 1: codel'
  tidegate sim modem.toml --load upload --at 60s -- tc -s class show dev eth0")]
pub struct Options {
    /// The scenario (TOML; docs/scenario.md), or the name of one of RFC 7928's (docs/rfc7928.md)
    pub file: PathBuf,
    /// Set a value of the scenario, or a named one; may be repeated
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<Setting>,
    /// Which cases are run
    #[command(flatten)]
    pub cases: CaseOptions,
    /// The sandbox that scripts run in
    #[command(flatten)]
    pub sandbox: ScriptOptions,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write the result: .json (for `tidegate compare`) or .html; may be repeated
    #[arg(short, long, value_name = "RESULT", value_parser = output_file(&[Form::Json, Form::Html]))]
    pub output: Vec<ReportFile>,
    /// Write a page, whatever the file is called
    #[arg(long, value_name = "PAGE", hide = true)]
    pub html: Option<PathBuf>,
    /// Write each chart into this directory as SVG
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Write each chart into this directory as PNG
    #[arg(long, value_name = "DIR")]
    pub png: Option<PathBuf>,
    /// Write each run into this directory as flent reads it
    #[arg(long, value_name = "DIR")]
    pub flent: Option<PathBuf>,
    /// Write what each link could carry into this directory, as mahimahi reads it
    #[arg(long, value_name = "DIR")]
    pub mahimahi: Option<PathBuf>,
    /// Write the packets of one run with class, queueing delay and outcome as pcapng, for Wireshark: of all
    /// devices of routers, or of one
    #[arg(long, value_name = "PCAPNG[:MACHINE/DEVICE]")]
    pub pcapng: Option<String>,
    /// Run the command behind `--` on every router at this time of each run: `--at 60s -- tc -s class show
    /// dev eth0`; may be repeated
    #[arg(long, value_name = "TIME", value_parser = run_time)]
    pub at: Vec<Nanos>,
    /// Only read the file, and try the policies
    #[arg(long)]
    pub check: bool,
    /// List the policies, loads and cases of the file
    #[arg(long)]
    pub list: bool,
    /// The command for --at
    #[arg(last = true, value_name = "COMMAND", requires = "at")]
    pub command: Vec<String>,
}
