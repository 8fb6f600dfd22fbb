//! `tidegate loss`: what is lost one way, and the other.
//!
//! ```text
//! with our server, with captures   tidegate_sessions::loss ──▶ measure::loss::LossDocument ──▶ text, JSON
//! as by hand                       blind: numbered packets, counted in a capture at the other end
//! ```

use super::far::FarOptions;
use super::{again, ds_field};
use crate::exit::CliExit;
use crate::outputs::{Form, ReportFile, output_file};
use crate::values::duration;
use anyhow::bail;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tidegate_analysis::loss::to_json;
use tidegate_measure::loss::LossDocument;
use tidegate_measure::stream::{PacketTrain, Stream};
use tidegate_report::measuring::loss::text;
use tidegate_sessions::loss::{self, Captures};

/// Measure packet loss in each direction separately
///
/// How much is lost on the way to a host and on the way back, with confidence intervals, and in what bursts.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 done, however much is lost; 2 wrong usage or input; 3 partial result; 4 not permitted.

Examples:
  with `tidegate serve` on the host:
    tidegate loss HOST
  without, capturing on the host (`tcpdump -w far.pcap udp port 8787` there):
    tidegate loss HOST --blind
    tidegate loss --received far.pcap -c 100
  with captures of both sides, of any traffic:
    tidegate loss --sent near.pcap --received far.pcap --filter-port 8787
What `tcpdump -nni` printed is read, too, and only counted.")]
pub struct Options {
    /// The host where `tidegate serve` runs, or with --blind the host to send to
    #[arg(required_unless_present = "received")]
    pub host: Option<String>,
    /// How the server is reached
    #[command(flatten)]
    pub far: FarOptions,
    /// Time from one packet to the next
    #[arg(short, long, value_name = "TIME", default_value = "100ms", value_parser = duration)]
    pub interval: Duration,
    /// Number of packets; default 100
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub count: Option<u32>,
    /// Bytes of UDP payload in each
    #[arg(
        short,
        long,
        value_name = "BYTES",
        default_value_t = 64,
        value_parser = clap::value_parser!(u16).range(24..=1452)
    )]
    pub size: u16,
    /// Their DSCP: EF, CS1, or the DS field as a number
    #[arg(long, default_value = "0")]
    pub tos: String,
    /// Only send; the packets are captured on the host
    #[arg(long, conflicts_with_all = ["received", "sent"])]
    pub blind: bool,
    /// A capture of what was sent
    #[arg(long, value_name = "FILE", requires = "received", conflicts_with = "host")]
    pub sent: Option<PathBuf>,
    /// A capture of what arrived at the other side
    #[arg(long, value_name = "FILE", alias = "far-capture", conflicts_with = "host")]
    pub received: Option<PathBuf>,
    /// Only packets to this port, in captures
    #[arg(long, value_name = "PORT")]
    pub filter_port: Option<u16>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Write the result: .json
    #[arg(short, long, value_name = "FILE", value_parser = output_file(&[Form::Json]), conflicts_with = "blind")]
    pub output: Option<ReportFile>,
}

/// Plays `tidegate loss`.
pub fn command(options: &Options) -> ExitCode {
    super::ended("loss", attempt(options))
}

fn attempt(options: &Options) -> anyhow::Result<CliExit> {
    crate::output::may_write(options.output.iter().map(|file| file.path.as_path()))?;
    let lost = match (&options.host, &options.received) {
        (_, Some(received)) => captured(options, received)?,
        (Some(host), None) if options.blind => return blind(options, host),
        (Some(host), None) => {
            let target = options.far.target(host)?;
            loss::measure(&target, &stream(options)?, tidegate_sys::interrupt::notice(), again())?
        }
        (None, None) => bail!("missing HOST, or a capture (--received FILE)"),
    };
    let shown = if options.json { to_json(&lost) } else { text(&lost) };
    crate::output::report(&shown);
    if let Some(file) = &options.output {
        crate::output::file(&file.path, to_json(&lost))?;
    }
    Ok(if lost.partial.is_some() { CliExit::Partial } else { CliExit::Yes })
}

/// The same packets in both directions.
fn stream(options: &Options) -> anyhow::Result<Stream> {
    Ok(Stream::steady(PacketTrain {
        payload: options.size,
        gap_ns: options.interval.as_nanos() as u64,
        packets: options.count.unwrap_or(loss::USUAL_COUNT),
        dscp: ds_field(&options.tos)? >> 2,
        ecn: 0,
        rest_ns: 0,
    }))
}

/// Looks for what was sent in what was received.
fn captured(options: &Options, received: &std::path::Path) -> anyhow::Result<LossDocument> {
    let captures = Captures {
        received,
        sent: options.sent.as_deref(),
        port: options.filter_port,
        count: options.count,
        again: again(),
    };
    Ok(loss::captured(&captures, &|words| eprintln!("tidegate loss: {words}"))?)
}

/// Sends numbered packets and expects nothing.
fn blind(options: &Options, host: &str) -> anyhow::Result<CliExit> {
    let stream = stream(options)?;
    let target = options.far.target(host)?;
    let sent = tidegate_prober::send_blind(&target, &stream, tidegate_sys::interrupt::notice())?;
    let sentence = format!(
        "{sent} packets were sent to {host}, UDP port {}; count them in a capture of the other side with\n  tidegate loss --received FILE -c {sent}\n",
        options.far.port
    );
    crate::output::report(&sentence);
    Ok(if sent < stream.packets() { CliExit::Partial } else { CliExit::Yes })
}
