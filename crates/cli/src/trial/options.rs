//! What `tidegate try` is told.

use std::path::PathBuf;
use std::time::Duration;
use tidegate_lang::units;
use tidegate_packet::{Rate, Span};

/// What `tidegate try` is told.
#[derive(clap::Args)]
#[command(after_help = "\
Rates and sizes are written as tc's: 128kbit, 2mbit; 24k, 64kb. Times: 30ms, 2s.
Exit codes: 0 done; 1 the script failed, or a command in it; 2 wrong usage.

Example: tidegate try examples/modem.sh --up 128kbit --down 2mbit")]
pub struct Options {
    /// The script; it runs unmodified, in a private namespace, and changes nothing outside.
    pub script: PathBuf,
    /// Arguments for the script.
    pub args: Vec<String>,
    /// The link's rate away from you.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub up: Rate,
    /// The link's rate towards you.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub down: Rate,
    /// Round-trip time of the idle path, transmission times not counted.
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "30ms")]
    pub rtt: Span,
    /// The modem's buffer for the uplink: bytes (24k) or time at the uplink's rate (1500ms).
    #[arg(long, value_name = "SIZE|TIME", value_parser = buffer, default_value = "1500ms")]
    pub buffer: Buffer,
    /// How long the load lasts.
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "60s")]
    pub duration: Span,
    /// The device that leads to the modem. Default: the one the script shapes.
    #[arg(long, value_name = "NAME")]
    pub dev: Option<String>,
    /// What loads the link. Default: `server` when the script has rules for what the gateway itself sends, else `upload`.
    #[arg(long, value_name = "LOAD", value_enum)]
    pub load: Option<LoadKind>,
    /// Parallel TCP connections of the load.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub flows: u16,
    /// The same seed gives the same run, to the byte.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How long the script may run.
    #[arg(long, value_name = "TIME", value_parser = |t: &str| span(t).map(|s| Duration::from_nanos(s.0)), default_value = "30s")]
    pub timeout: Duration,
    /// Go on although a command of the script failed.
    #[arg(long)]
    pub keep_going: bool,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}

/// What loads the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LoadKind {
    /// A computer behind the gateway uploads over TCP.
    Upload,
    /// A web server on the gateway itself sends from port 80 over TCP.
    Server,
}

/// How much a modem holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// So many bytes.
    Bytes(u64),
    /// What the uplink sends in this time.
    Time(Span),
}

impl Buffer {
    /// In bytes, before a link of this rate; room for one full frame at least.
    pub fn bytes(self, rate: Rate) -> u64 {
        let bytes = match self {
            Buffer::Bytes(bytes) => bytes,
            Buffer::Time(span) => (u128::from(rate.0) * u128::from(span.0) / 1_000_000_000) as u64,
        };
        bytes.max(1514)
    }
}

fn rate(text: &str) -> Result<Rate, String> {
    match units::parse_rate(text) {
        Some(rate) if rate.0 >= 125 => Ok(rate),
        Some(_) => Err("a link needs at least 1kbit".into()),
        None => Err("not a rate; write 128kbit, 2mbit, 1gbit (bits per second) or 16kbps (bytes per second)".into()),
    }
}

fn span(text: &str) -> Result<Span, String> {
    let micros = units::parse_time(text).ok_or("not a time; write 30ms, 2s, 500us")?;
    match micros {
        0 => Err("must be longer than nothing".into()),
        us if us > 3_600_000_000 => Err("an hour at most".into()),
        us => Ok(Span::micros(u64::from(us))),
    }
}

fn buffer(text: &str) -> Result<Buffer, String> {
    // What ends in a unit of time is a time; a bare number is bytes.
    if text.ends_with('s') && !text.ends_with("bps") {
        return span(text).map(Buffer::Time);
    }
    units::parse_size(text)
        .map(|bytes| Buffer::Bytes(u64::from(bytes)))
        .ok_or_else(|| "neither a size (24k) nor a time (1500ms)".into())
}
