//! What may be said to `tidegate quick`.

use crate::measuring::far::FarOptions;
use crate::trial::{rate, span};
use std::path::PathBuf;
use tidegate_packet::{Nanos, Rate};

/// What `tidegate quick` is told.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
A REFLECTOR is whoever answers: a host with `tidegate serve` (the best: rates and queues of each way), \
http://HOST/FILE (the way down is loaded with downloads of it), or
any host that answers pings (both ways are loaded with echo requests; the way up with datagrams that end at \
the router behind the queue, so that nobody further off gets
them). Ask only those for whom it is fine.

Exit codes: 0 the line is fine (A+, A, B); 1 it is not; 2 wrong use, or this computer; 3 only a part was \
measured.

Examples:
  tidegate quick 192.0.2.1                       any host that answers pings
  tidegate quick http://mirror.example/1GB.bin   downloads too
  tidegate quick my-server --token token -o line.html --policy fix.toml")]
pub struct Options {
    /// Who answers; the first is who is asked all the time.
    #[arg(required = true, value_name = "REFLECTOR")]
    pub reflectors: Vec<String>,
    /// How long it may take, about: 15s to 2min.
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "30s")]
    pub time: Nanos,
    /// Never send more than this.
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "300mbit")]
    pub most: Rate,
    /// The device that the policy is for. Default: the one that leads to the reflector.
    #[arg(long, value_parser = crate::values::device, value_name = "DEV")]
    pub dev: Option<String>,
    /// Write the page, or the document, into this file: .html or .json.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write the policy that would fix it into this file.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Print the document as JSON.
    #[arg(long)]
    pub json: bool,
    /// How a server of ours is reached.
    #[command(flatten)]
    pub far: FarOptions,
}
