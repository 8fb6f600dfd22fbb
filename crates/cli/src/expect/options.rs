//! The command line of `tidegate test`.

use crate::outputs::{Form, ReportFile, output_file};
use crate::script_options::ScriptOptions;
use std::path::PathBuf;

/// Test a policy against assertions, in simulation
#[derive(clap::Args)]
#[command(after_help = "\
A test file is TOML: the policy, the link, and the assertions.

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

Other keys: preset, rtt, buffer, down-buffer, duration (20s), dev, lan, over, cable, ring, bql, probes, ipv6, \
seed, as the options of tidegate try.

Exit codes: 0 all hold; 1 one does not; 2 wrong usage or input.

Examples:
  tidegate test examples/home-gateway.test.toml
  tidegate test tests/*.toml -o results.xml
  tidegate test gateway.toml -- start eth1")]
pub struct Options {
    /// Test files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Arguments for the policies' scripts, instead of `args` in the test files
    #[arg(last = true)]
    pub args: Vec<String>,
    /// Only the assertion of this number, counted from 1 in its file
    #[arg(long, value_name = "N")]
    pub only: Option<usize>,
    /// Also print what was measured under each load
    #[arg(long, alias = "show", conflicts_with_all = ["tap", "json"])]
    pub figures: bool,
    /// Write the results: .xml (JUnit, for CI), .tap, .json or .txt; may be repeated
    #[arg(
        short,
        long,
        value_name = "REPORT",
        value_parser = output_file(&[Form::JUnit, Form::Tap, Form::Json, Form::Text])
    )]
    pub output: Vec<ReportFile>,
    /// Write JUnit XML, whatever the file is called
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// The sandbox that scripts run in
    #[command(flatten)]
    pub sandbox: ScriptOptions,
    /// Print TAP, version 13
    #[arg(long, conflicts_with = "json")]
    pub tap: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
