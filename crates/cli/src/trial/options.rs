//! The command line of `tidegate try`.

use crate::kernel_options::KernelOptions;
use crate::outputs::{self, Form, ReportFile};
use crate::script_options::ScriptOptions;
use crate::values::{device, measured, rate, size, span};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use tidegate_loader::ReadOptions;
use tidegate_packet::{Nanos, Rate};
use tidegate_scenario::presets::{LINE_PRESETS, LinePreset};
use tidegate_trial::{ModemBuffer, OLD_NAMES, TrialLoad, TrialProbe};

/// Simulate one policy on a home link, and report what it changes
///
/// The script runs unmodified in a sandbox. The link behind a modem with a large buffer is then simulated
/// with and without the policy, idle and under load. For other networks and loads, see `tidegate sim`.
#[derive(clap::Args)]
#[command(
    override_usage = "tidegate try [OPTIONS] <SCRIPT> [-- <ARGS>...]",
    after_help = "\
Rates: 128kbit, 20Mbit/s. Sizes: 24kB, 64KiB. Times: 30ms, 2s. A short policy that has `up` and `down` needs \
no --up and --down.

Exit codes: 0 done; 2 wrong usage or input: the script failed, or a command in it whose failure \
the script does not ignore.

Examples:
  tidegate try examples/home-gateway.sh --up 1600kbit --down 20mbit
  tidegate try gateway.sh --up 2mbit --down 20mbit -o gateway.html -- start eth0
  tidegate try home.toml
  tidegate try gateway.sh --preset lte"
)]
pub struct Options {
    /// The policy: a script, or another file that `tidegate check` reads; it changes nothing outside the
    /// sandbox
    pub script: PathBuf,
    /// Arguments for the script
    #[arg(last = true)]
    pub args: Vec<String>,
    /// More files of the policy: the rules beside a tc batch
    #[arg(long, value_name = "FILE")]
    pub also: Vec<PathBuf>,
    /// The link's upload rate; default: that of a short policy
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub up: Option<Rate>,
    /// The link's download rate; default: that of a short policy
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub down: Option<Rate>,
    /// A line that varies, by name, in the place of --up and --down: see `tidegate sim` and docs/scenario.md
    #[arg(long, value_name = "NAME", value_parser = preset(), conflicts_with_all = ["up", "down", "trace"])]
    pub preset: Option<&'static LinePreset>,
    /// Recordings that the uplink and the downlink follow (one of them may be empty): mahimahi's, seconds and
    /// Mbit/s, or tables; what they do not record is as the other options have it. Parts, scaled and joined:
    /// `a.csv:skip=30s+b.csv:scale=0.5:loop=3` (docs/scenario.md)
    #[arg(long, value_name = "UP[,DOWN]")]
    pub trace: Vec<String>,
    /// Round-trip time of the idle path, transmission times not included
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "30ms")]
    pub rtt: Nanos,
    /// The modem's upload buffer: bytes (24kB), or time at the upload rate [default: 1500ms, or the
    /// preset's]
    #[arg(long, value_name = "SIZE|TIME", value_parser = buffer)]
    pub buffer: Option<ModemBuffer>,
    /// The provider's download buffer: bytes, or time at the download rate [default: 250ms, at least
    /// 64kB, or the preset's]
    #[arg(long, value_name = "SIZE|TIME", value_parser = buffer)]
    pub down_buffer: Option<ModemBuffer>,
    /// How long each load is measured
    #[arg(short, long, value_name = "TIME", value_parser = measured, default_value = "60s")]
    pub duration: Nanos,
    /// The device that leads to the modem; default: the one that the script shapes
    #[arg(long, value_parser = crate::values::device, value_name = "DEV")]
    pub dev: Option<String>,
    /// The device towards the LAN; default: another one that the script shapes
    #[arg(long, value_parser = crate::values::device, value_name = "DEV")]
    pub lan: Option<String>,
    /// A device on top of another: `ppp0=eth1`; the lower one leads to the modem
    #[arg(long, value_name = "UPPER=LOWER", value_parser = stacked)]
    pub over: Option<(String, String)>,
    /// The rate of the cable from the gateway to the modem [default: 100 Mbit/s, or the next of 1, 10, 100
    /// Gbit/s that is faster than the line]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub cable: Option<Rate>,
    /// Frames in the transmit ring of the device that leads to the modem; default: what the script sets with
    /// `ethtool -G`, else 1
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub ring: Option<u32>,
    /// The byte queue limit (BQL) of that device; default: none
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub bql: Option<u32>,
    /// The kernel that the policy is for
    #[command(flatten)]
    pub kernel: KernelOptions,
    /// What loads the link, one or several; default: idle,up,down,both
    #[arg(long, value_name = "LOAD", value_parser = load_name(), value_delimiter = ',')]
    pub load: Vec<TrialLoad>,
    /// Transfers of the load, each way; default: 2 up, 3 down; 12 for tcp_nup and tcp_ndown
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub flows: Option<u16>,
    /// Applications that run beside the load and are measured
    #[arg(
        long,
        value_name = "PROBE",
        value_parser = probe_name(),
        value_delimiter = ',',
        default_value = "ping,voip,dns,ssh,web"
    )]
    pub probes: Vec<TrialProbe>,
    /// Send everything over IPv6
    #[arg(long)]
    pub ipv6: bool,
    /// Seed of the random numbers; the same seed gives the same run, to the byte
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The sandbox that scripts run in
    #[command(flatten)]
    pub sandbox: ScriptOptions,
    /// Continue although a command of the script failed
    #[arg(long)]
    pub keep_going: bool,
    /// Write the report: .html, .svg (one picture: the call's packets over time) or .json; may be repeated;
    /// default: `tidegate-SCRIPT.html` in the current directory; `none`: no report
    #[arg(short, long, alias = "report", value_name = "FILE", value_parser = report)]
    pub output: Vec<ReportFile>,
    /// Draw that picture's times on a logarithmic scale
    #[arg(long, requires = "output")]
    pub log: bool,
    /// Run this command on the simulated machine after the last load with the policy, and print its output:
    /// `tc -s class show dev eth0`; may be repeated
    #[arg(long, value_name = "COMMAND", conflicts_with = "json")]
    pub show: Vec<String>,
    /// Print JSON, and write no report unless -o is given
    #[arg(long)]
    pub json: bool,
}

/// The name of `-o` that writes no report.
const NO_REPORT: &str = "none";

/// Reads the value of `-o`.
fn report(name: &str) -> Result<ReportFile, String> {
    let path = PathBuf::from(name);
    let forms = [Form::Html, Form::Svg, Form::Json];
    match Form::of(&path, &forms) {
        Some(form) => Ok(ReportFile { path, form }),
        None if name == NO_REPORT => Ok(ReportFile { path, form: Form::Text }),
        None => Err(format!("{}; `none` writes no report", outputs::unknown(&forms))),
    }
}

impl Options {
    /// The reports that the options choose: `None`, the default one.
    pub(crate) fn reports(&self) -> Option<impl Iterator<Item = &ReportFile>> {
        (!self.output.is_empty()).then(|| self.output.iter().filter(|file| file.form != Form::Text))
    }

    /// How the policy is loaded.
    pub(crate) fn how_to_read(&self) -> ReadOptions {
        ReadOptions {
            args: self.args.clone(),
            devices: self.dev.iter().cloned().collect(),
            sandbox: (&self.sandbox).into(),
            kernel: self.kernel.into(),
            tc: self.kernel.tc,
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
    let value = |id: &'static str, about: &'static str| {
        let old = OLD_NAMES.iter().filter(|(_, new)| *new == id).map(|(old, _)| *old);
        PossibleValue::new(id).aliases(old).help(about)
    };
    let values = table.iter().map(|(_, id, about)| value(id, about));
    PossibleValuesParser::new(values).try_map(move |name| named(&name).ok_or("no such name"))
}

fn preset() -> impl TypedValueParser<Value = &'static LinePreset> {
    let values = LINE_PRESETS.iter().map(|preset| PossibleValue::new(preset.name).help(preset.about));
    PossibleValuesParser::new(values).try_map(|name| LinePreset::named(&name).ok_or("no such preset"))
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
        _ => Err("write which device is stacked on which: ppp0=eth1".into()),
    }
}

/// A buffer: bytes, or a time at its link's rate.
pub(crate) fn buffer(text: &str) -> Result<ModemBuffer, String> {
    ModemBuffer::parse(text)
}
