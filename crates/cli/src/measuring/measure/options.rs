//! What may be said to `tidegate measure`.

use crate::measuring::far::FarOptions;
use crate::measuring::{again, ds_field};
use crate::values::{duration, duration_or_seconds};
use anyhow::{Context, bail};
use std::path::PathBuf;
use std::time::Duration;
use tidegate_sessions::measure::Measurement;
use tidegate_sessions::measure::plan::{TESTS, Wishes, plan};
use tidegate_syntax::units;

/// Measure a path with a server of ours at its far end: delays, losses and rates, each way, idle and under
/// load.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Tests, by flent's names: rrul (four flows each way in four classes), rrul_be, tcp_up, tcp_down, tcp_4up, \
tcp_12down, tcp_nup and tcp_ndown (with --streams), bidirectional, voip, udp_flood, ping. Without a name: \
idle, uploads, downloads, both.

Exit codes: 0, 2 nothing was measured (the command line, this machine, the way to the server, its token), 3 \
what is told is partial.")]
pub struct Options {
    /// Where `tidegate serve` runs.
    pub host: String,
    /// The test.
    pub test: Option<String>,
    /// How it is reached.
    #[command(flatten)]
    pub far: FarOptions,
    /// How long each load lasts: 60, 60s. 10 s each without a test, 30 s with one.
    #[arg(short, long, value_name = "TIME", value_parser = duration_or_seconds)]
    pub length: Option<Duration>,
    /// How long the idle path is looked at before.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration_or_seconds)]
    pub idle: Duration,
    /// From one probe to the next.
    #[arg(short, long, value_name = "TIME", default_value = "50ms", value_parser = duration)]
    pub interval: Duration,
    /// Flows each way, of tests that do not say how many.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=128))]
    pub streams: u32,
    /// The flows' congestion control, both ways: cubic, bbr, whatever the sender has.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub control: String,
    /// Probes with these marks beside each other: BE,EF,CS1,AF41.
    #[arg(long, value_name = "MARKS", value_delimiter = ',')]
    pub dscp: Vec<String>,
    /// How much udp_flood sends.
    #[arg(long, default_value = "20mbit")]
    pub rate: String,
    /// Do all of it so often.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// What the path as it is now is called in results: `before`, `with-cake`.
    #[arg(long, default_value = "measured")]
    pub name: String,
    /// Write the result: .json, .html, .flent.gz, .svg (the name tells which). May be repeated.
    #[arg(short, long, value_name = "FILE")]
    pub output: Vec<PathBuf>,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
    /// Do not show how far it is.
    #[arg(short, long)]
    pub quiet: bool,
}

impl Options {
    /// A test, and all else as usual.
    pub(in crate::measuring) fn of(
        host: &str,
        test: &str,
        length: Duration,
        far: &FarOptions,
        quiet: bool,
    ) -> Options {
        Options {
            host: host.to_owned(),
            test: Some(test.to_owned()),
            far: far.clone(),
            length: Some(length),
            idle: Duration::from_secs(2),
            interval: Duration::from_millis(50),
            streams: 4,
            control: String::new(),
            dscp: Vec::new(),
            rate: "20mbit".to_owned(),
            repeat: 1,
            name: String::new(),
            output: Vec::new(),
            json: false,
            quiet,
        }
    }

    /// What is to be carried out.
    ///
    /// # Errors
    /// There is no such test, something makes no sense, or there is no token where one was said to be.
    pub(in crate::measuring) fn measurement(&self) -> anyhow::Result<Measurement> {
        let plan = plan(self.test.as_deref(), &self.wishes()?)?;
        Ok(Measurement {
            target: self.far.target(&self.host)?,
            test: self.test.clone(),
            plan,
            name: self.name.clone(),
            control: self.control.clone(),
            repeat: self.repeat,
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
        let mark = |name: &String| Ok((name.to_uppercase(), mark(name)?));
        let rate = units::parse_rate(&self.rate)
            .with_context(|| format!("--rate {}: not a rate; write 20mbit", self.rate))?;
        Ok(Wishes {
            length: self.length,
            idle: self.idle,
            every: self.interval,
            streams: self.streams,
            marks: self.dscp.iter().map(mark).collect::<anyhow::Result<_>>()?,
            flood: rate.0 as f64 * 8.0,
        })
    }
}

/// A code point: a name, or its number.
fn mark(name: &str) -> anyhow::Result<u8> {
    match name.to_uppercase().as_str() {
        "BE" => Ok(0),
        "BK" => Ok(8),
        _ => match name.parse::<u8>() {
            Ok(point) if point < 64 => Ok(point),
            Ok(_) => bail!("--dscp {name}: a code point is 0 to 63"),
            Err(_) => Ok(ds_field(name)? >> 2),
        },
    }
}
