//! What `tidegate test` is told.

use crate::script_options::ScriptOptions;
use std::path::PathBuf;

/// What `tidegate test` is told.
#[derive(clap::Args)]
#[command(after_help = "\
A file is TOML: the policy, the link, and what is expected.

  policy = \"home-gateway.sh\"     # beside this file; args = [\"start\"]
  up = \"1600kbit\"
  down = \"20mbit\"
  expect = [
    \"ping: p95 < 50 ms while 2 uploads and 3 downloads\",
    \"voip: loss < 1 % while 4 uploads\",
    \"upload: rate >= 0.85 link while 1 upload\",
    \"host b: share >= 45 % while 4 uploads of host a and 1 upload of host b\",
    \"packet 'udp 192.168.1.7 > 1.1.1.1:53': class 1:10\",
  ]

Other keys: rtt, buffer, duration (20s), dev, over, cable, ring, bql, probes, ipv6, seed, as the options of \
tidegate try.
Exit codes: 0 all hold; 1 one does not; 2 a file cannot be read.")]
pub struct Options {
    /// Files of expectations.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Only the expectation of this number, counted from 1 within its file.
    #[arg(long, value_name = "N")]
    pub only: Option<usize>,
    /// Print what was measured under each load, too.
    #[arg(long, conflicts_with_all = ["tap", "json"])]
    pub show: bool,
    /// Write the outcome as JUnit's XML, for CI.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// The sandbox that scripts run in.
    #[command(flatten)]
    pub sandbox: ScriptOptions,
    /// Print TAP, version 13.
    #[arg(long, conflicts_with = "json")]
    pub tap: bool,
    /// Print the outcome as JSON.
    #[arg(long)]
    pub json: bool,
}
