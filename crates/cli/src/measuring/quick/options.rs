//! The command line of `tidegate quick`.

use crate::measuring::far::FarOptions;
use crate::outputs::{Form, ReportFile, output_file};
use crate::values::{rate, size, span};
use std::path::PathBuf;
use tidegate_packet::{Nanos, Rate};

/// Test a line for bufferbloat in 30 seconds, and suggest a policy
///
/// Measures latency idle and under load and the throughput each way, finds the bottleneck, grades the line
/// and writes a policy that fixes it.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
A HOST is best a computer of yours where `timeout 10m tidegate serve --open` runs: both directions are \
loaded \
and measured. Hosts of others are not loaded unless you say so: an http://HOST/FILE URL loads the download \
by \
fetching it, --echo-load the line by echo requests; both are bounded by --max-data and --duration. The \
upload \
is then also loaded with datagrams that expire at the router behind the bottleneck, so that they load no \
other host. Where echo requests are not permitted, round trips are those of UDP packets that the server \
sends back, or of TCP connections.

Exit codes: 0 the line is fine (A+, A, B); 1 it is not; 2 wrong usage or input; 3 partial result, such as \
the idle line only; 4 not permitted. They do not depend on --save-policy: where it writes no file, a \
message on standard error says why.

Examples:
  tidegate quick my-server --token token -o line.html --save-policy fix.toml
  tidegate quick 192.0.2.1                       the idle line only, and what measures more
  tidegate quick http://mirror.example/1GB.bin   loads the download over HTTP
  tidegate quick 192.0.2.1 --echo-load           loads a host that replies to pings and is yours")]
pub struct Options {
    /// Hosts to test against (see below); the first is pinged throughout
    #[arg(required = true, value_name = "HOST")]
    pub hosts: Vec<String>,
    /// How long it takes, about: 15s to 2min
    #[arg(short, long, alias = "time", value_name = "TIME", value_parser = span, default_value = "30s")]
    pub duration: Nanos,
    /// Load the line with echo requests that the first HOST replies to, as many as the line carries: only
    /// where its owner agrees
    #[arg(long)]
    pub echo_load: bool,
    /// End each load of a host of others (a URL, --echo-load) after this much
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "250MB")]
    pub max_data: u32,
    /// Never send more than this
    #[arg(long, alias = "most", value_name = "RATE", value_parser = rate, default_value = "300mbit")]
    pub max_rate: Rate,
    /// The device that the policy is for; default: the one with the route to the first host
    #[arg(long, value_parser = crate::values::device, value_name = "DEV")]
    pub dev: Option<String>,
    /// Write the result: .html or .json; may be repeated
    #[arg(short, long, value_name = "FILE", value_parser = output_file(&[Form::Html, Form::Json]))]
    pub output: Vec<ReportFile>,
    /// Write the policy that would fix the line, if both rates were measured
    #[arg(long, alias = "policy", value_name = "FILE")]
    pub save_policy: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// How the server is reached
    #[command(flatten)]
    pub far: FarOptions,
}
