//! The command line of `tidegate quick`.

use crate::measuring::far::FarOptions;
use crate::outputs::{Form, ReportFile, output_file};
use crate::values::{rate, span};
use std::path::PathBuf;
use tidegate_packet::{Nanos, Rate};

/// Test a line for bufferbloat in 30 seconds, and suggest a policy
///
/// Measures latency idle and under load and the throughput each way, finds the bottleneck, grades the line
/// and writes a policy that fixes it.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
A HOST is a computer with `tidegate serve` (best: throughput and queueing delay each way), an \
http://HOST/FILE URL (the download is loaded by fetching it), or any host that replies to pings (both \
directions are loaded with echo requests; the upload also with datagrams that expire at the router behind \
the bottleneck, so that they load no other host). Use only hosts that you may load.

Exit codes: 0 the line is fine (A+, A, B); 1 it is not; 2 wrong usage or input; 3 partial result; 4 not \
permitted.

Examples:
  tidegate quick 192.0.2.1                       any host that replies to pings
  tidegate quick http://mirror.example/1GB.bin   loads the download over HTTP
  tidegate quick my-server --token token -o line.html --policy fix.toml")]
pub struct Options {
    /// Hosts to test against (see below); the first is pinged throughout
    #[arg(required = true, value_name = "HOST")]
    pub hosts: Vec<String>,
    /// How long it takes, about: 15s to 2min
    #[arg(short, long, alias = "time", value_name = "TIME", value_parser = span, default_value = "30s")]
    pub duration: Nanos,
    /// Never send more than this
    #[arg(long, alias = "most", value_name = "RATE", value_parser = rate, default_value = "300mbit")]
    pub max_rate: Rate,
    /// The device that the policy is for; default: the one with the route to the first host
    #[arg(long, value_parser = crate::values::device, value_name = "DEV")]
    pub dev: Option<String>,
    /// Write the result: .html or .json; may be repeated
    #[arg(short, long, value_name = "FILE", value_parser = output_file(&[Form::Html, Form::Json]))]
    pub output: Vec<ReportFile>,
    /// Write the policy that would fix the line
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// How the server is reached
    #[command(flatten)]
    pub far: FarOptions,
}
