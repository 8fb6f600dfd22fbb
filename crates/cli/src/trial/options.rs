//! What `tidegate try` is told.

use crate::dissect::Dissect;
use crate::script_options::ScriptOptions;
use crate::values::{device, duration};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use std::time::Duration;
use tidegate_loader::ReadOptions;
use tidegate_packet::{Nanos, Rate};
use tidegate_syntax::units;
use tidegate_trial::{ModemBuffer, TrialLoad, TrialProbe};

/// The longest time that a link or a trial has.
const HOUR: Duration = Duration::from_secs(3600);

/// What `tidegate try` is told.
#[derive(clap::Args)]
#[command(after_help = "\
Rates and sizes are written as tc's: 128kbit, 2mbit; 24k, 64kb. Times: 30ms, 2s.
Exit codes: 0 done; 1 the script failed, or a command in it; 2 wrong usage.

Example: tidegate try examples/home-gateway.sh --up 1600kbit --down 20mbit")]
pub struct Options {
    /// The script; it runs unmodified, in a private namespace, and changes nothing outside.
    pub script: PathBuf,
    /// Arguments for the script.
    pub args: Vec<String>,
    /// The link's rate away from you.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub up: Rate,
    /// The link's download rate.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub down: Rate,
    /// Round-trip time of the idle path, transmission times not counted.
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "30ms")]
    pub rtt: Nanos,
    /// The modem's buffer for the uplink: bytes (24k) or time at the uplink's rate (1500ms).
    #[arg(long, value_name = "SIZE|TIME", value_parser = buffer, default_value = "1500ms")]
    pub buffer: ModemBuffer,
    /// How long each load is measured.
    #[arg(long, value_name = "TIME", value_parser = measured, default_value = "60s")]
    pub duration: Nanos,
    /// The device that leads to the modem. Default: the one the script shapes.
    #[arg(long, value_parser = crate::values::device, value_name = "NAME")]
    pub dev: Option<String>,
    /// Where a device stands on another: `ppp0=eth1`. The lower one leads to the modem.
    #[arg(long, value_name = "UPPER=LOWER", value_parser = stacked)]
    pub over: Option<(String, String)>,
    /// The cable from the gateway to the modem.
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "100mbit")]
    pub cable: Rate,
    /// Frames that the device before the modem takes ahead of what it sends. Default: what the script says
    /// with `ethtool -G`, else 1.
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub ring: Option<u32>,
    /// The byte queue limit (BQL) of that device; none unless given.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub bql: Option<u32>,
    /// How far the machine's kernel looks into packets for the keys of their flows.
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    pub(crate) dissect: Dissect,
    /// What loads the link, one or several. Default: empty,up,down,both.
    #[arg(long, value_name = "LOAD", value_parser = load_name(), value_delimiter = ',')]
    pub load: Vec<TrialLoad>,
    /// Transfers of the load, each way. Default: 2 up, 3 down; 12 for tcp_nup and tcp_ndown.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub flows: Option<u16>,
    /// What people do and wait for meanwhile.
    #[arg(long, value_name = "PROBE", value_parser = probe_name(), value_delimiter = ',', default_value = "ping,voip,dns,ssh,web")]
    pub probes: Vec<TrialProbe>,
    /// Everything goes over IPv6.
    #[arg(long)]
    pub ipv6: bool,
    /// The same seed gives the same run, to the byte.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The sandbox that scripts run in.
    #[command(flatten)]
    pub sandbox: ScriptOptions,
    /// Go on although a command of the script failed.
    #[arg(long)]
    pub keep_going: bool,
    /// Where the report goes. Default: `tidegate-SCRIPT.html` in the current directory; `none`: nowhere. A
    /// name that ends in .svg gets one picture: the call's packets over time.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// That picture's times on a logarithmic scale.
    #[arg(long, requires = "report")]
    pub log: bool,
    /// What the machine is asked after the last load with the policy, as on its shell: `tc -s class show dev
    /// eth0`, `iptables -t mangle -L -v`. May be repeated.
    #[arg(long, value_name = "COMMAND", conflicts_with = "json")]
    pub show: Vec<String>,
    /// Print the result as JSON, and write no report unless told where.
    #[arg(long)]
    pub json: bool,
}

impl Options {
    /// How the policy is taken in.
    pub(crate) fn how_to_read(&self) -> ReadOptions {
        ReadOptions {
            args: self.args.clone(),
            devices: self.dev.iter().cloned().collect(),
            sandbox: self.sandbox.into(),
            dissector: self.dissect.into(),
            seed: self.seed,
            ..ReadOptions::default()
        }
    }
}

/// The names of a table, each with what it is.
fn named<T: Copy + Send + Sync + 'static>(
    table: &[(T, &'static str, &'static str)],
    named: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    let values = table.iter().map(|(_, id, about)| PossibleValue::new(*id).help(*about));
    PossibleValuesParser::new(values).try_map(move |name| named(&name).ok_or("no such name"))
}

fn load_name() -> impl TypedValueParser<Value = TrialLoad> {
    named(TrialLoad::TABLE, TrialLoad::named)
}

fn probe_name() -> impl TypedValueParser<Value = TrialProbe> {
    named(TrialProbe::TABLE, TrialProbe::named)
}

pub(crate) fn stacked(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((upper, lower)) if !upper.is_empty() && !lower.is_empty() && upper != lower => {
            Ok((device(upper)?, device(lower)?))
        }
        _ => Err("write which device stands on which: ppp0=eth1".into()),
    }
}

pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    match units::parse_rate(text) {
        Some(rate) if rate.0 >= 125 => Ok(rate),
        Some(_) if is_finite(text) => Err("a link needs at least 1kbit".into()),
        _ => {
            Err("not a rate; write 128kbit, 2mbit, 1gbit (bits per second) or 16kbps (bytes per second)"
                .into())
        }
    }
}

/// Does a rate begin with a number that a link may have? (`strtod`, which tc reads numbers with, takes `inf`
/// and `1e308`.)
fn is_finite(rate: &str) -> bool {
    let number = rate.trim().trim_end_matches(|letter: char| letter.is_ascii_alphabetic() || letter == '%');
    number.parse::<f64>().is_ok_and(|number| number < 1e18)
}

pub(crate) fn span(text: &str) -> Result<Nanos, String> {
    match duration(text)? {
        long if long > HOUR => Err("an hour at most".into()),
        short => Ok(Nanos(u64::try_from(short.as_nanos()).unwrap_or(u64::MAX))),
    }
}

/// How long is measured: in less than a second hardly anything is answered.
fn measured(text: &str) -> Result<Nanos, String> {
    let short = "shorter than a second, in which nothing can be measured";
    span(text).and_then(|span| if span < Nanos::secs(1) { Err(short.into()) } else { Ok(span) })
}

fn size(text: &str) -> Result<u32, String> {
    units::parse_size(text)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "not a size; write 3000, 3k, 30kb".into())
}

pub(crate) fn buffer(text: &str) -> Result<ModemBuffer, String> {
    // A bare number is bytes, and `2m` megabytes, as tc has it: minutes are `min` here.
    if let Some(bytes) = units::parse_size(text) {
        return Ok(ModemBuffer::Bytes(u64::from(bytes)));
    }
    span(text).map(ModemBuffer::Time).map_err(|_| "neither a size (24k) nor a time (1500ms)".into())
}
