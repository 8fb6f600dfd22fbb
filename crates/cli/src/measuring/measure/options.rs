//! The command line of `tidegate measure`.

use super::output::FORMS;
use crate::measuring::far::FarOptions;
use crate::measuring::{again, ds_field};
use crate::outputs::{ReportFile, output_file};
use crate::values::{duration, rate};
use anyhow::bail;
use std::time::Duration;
use tidegate_packet::Rate;
use tidegate_sessions::measure::Measurement;
use tidegate_sessions::measure::plan::{NamedMark, TESTS, Wishes, plan};

/// Measure delay, loss and throughput to a tidegate server
///
/// Each way, idle and under load.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Tests have flent's names: rrul (four flows each way in four classes), rrul_be, tcp_up, tcp_down, tcp_4up, \
tcp_12down, tcp_nup and tcp_ndown (with --streams), bidirectional, voip, udp_flood, ping. Without a name: \
idle, uploads, downloads, both.

Exit codes: 0 done; 2 wrong usage or input, or nothing was measured; 3 partial result; 4 not permitted.

Examples:
  tidegate measure server.example.org --token token
  tidegate measure server.example.org rrul --duration 60s -o rrul.html -o rrul.json")]
pub struct Options {
    /// The host where `tidegate serve` runs
    pub host: String,
    /// The test (see below); default: idle, uploads, downloads, both
    pub test: Option<String>,
    /// How the server is reached
    #[command(flatten)]
    pub far: FarOptions,
    /// How long each load lasts; default: 10s without a test, 30s with one
    #[arg(short, long, alias = "length", short_alias = 'l', value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// How long the idle path is measured first
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub idle: Duration,
    /// Time from one probe to the next
    #[arg(short, long, value_name = "TIME", default_value = "50ms", value_parser = duration)]
    pub interval: Duration,
    /// Flows each way, in tests whose name does not give the number
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=128))]
    pub streams: u32,
    /// Congestion control of the flows, both ways: cubic, bbr, or another that the sender has
    #[arg(long, default_value = "", hide_default_value = true)]
    pub control: String,
    /// Send probes with these DSCPs side by side: BE,EF,CS1,NQB; L4S is BE with ECT(1)
    #[arg(long, value_name = "DSCPS", value_delimiter = ',')]
    pub dscp: Vec<String>,
    /// The rate of udp_flood
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "20mbit")]
    pub rate: Rate,
    /// How many times everything is measured
    #[arg(
        long,
        alias = "repeat",
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    pub repeats: u32,
    /// A name for the path as it is now, for results: `before`, `with-cake`
    #[arg(long, default_value = "measured")]
    pub name: String,
    /// Write the result: .json, .html, .flent.gz or .svg; may be repeated
    #[arg(short, long, value_name = "FILE", value_parser = output_file(FORMS))]
    pub output: Vec<ReportFile>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

impl Options {
    /// A test, and all else as usual.
    pub(in crate::measuring) fn of(host: &str, test: &str, length: Duration, far: &FarOptions) -> Options {
        Options {
            host: host.to_owned(),
            test: Some(test.to_owned()),
            far: far.clone(),
            duration: Some(length),
            idle: Duration::from_secs(2),
            interval: Duration::from_millis(50),
            streams: 4,
            control: String::new(),
            dscp: Vec::new(),
            rate: Rate::bits(20_000_000),
            repeats: 1,
            name: String::new(),
            output: Vec::new(),
            json: false,
        }
    }

    /// What is to be carried out.
    ///
    /// # Errors
    /// There is no such test, an option makes no sense, or the token that an option names does not exist.
    pub(in crate::measuring) fn measurement(&self) -> anyhow::Result<Measurement> {
        let plan = plan(self.test.as_deref(), &self.wishes()?)?;
        Ok(Measurement {
            target: self.far.target(&self.host)?,
            test: self.test.clone(),
            plan,
            name: self.name.clone(),
            control: self.control.clone(),
            repeat: self.repeats,
            again: again(),
        })
    }

    /// What the test may make use of.
    ///
    /// # Errors
    /// Something makes no sense.
    fn wishes(&self) -> anyhow::Result<Wishes> {
        if self.interval < Duration::from_millis(1) {
            bail!("--interval: at least 1ms; what loads the path is a test's business ({TESTS})");
        }
        Ok(Wishes {
            length: self.duration,
            idle: self.idle,
            every: self.interval,
            streams: self.streams,
            marks: self.dscp.iter().map(String::as_str).map(mark).collect::<anyhow::Result<_>>()?,
            flood: self.rate.0 as f64 * 8.0,
        })
    }
}

/// A code point: a name, or its number; or `L4S`, best effort with ECT(1) in the ECN field.
fn mark(name: &str) -> anyhow::Result<NamedMark> {
    let name = name.to_uppercase();
    let (dscp, ecn) = match name.as_str() {
        "BE" => (0, 0),
        "BK" => (8, 0),
        "L4S" => (0, 1),
        _ => match name.parse::<u8>() {
            Ok(point) if point < 64 => (point, 0),
            Ok(_) => bail!("--dscp {name}: a code point is 0 to 63"),
            Err(_) => (ds_field(&name)? >> 2, 0),
        },
    };
    Ok(NamedMark { name, dscp, ecn })
}
