//! `tidegate loss`: what is lost one way, and the other.
//!
//! ```text
//! with our server, with captures   tidegate_sessions::loss ──▶ measure::loss::LossDocument ──▶ text, JSON
//! as by hand                       blind: numbered packets, whoever captures them counts
//! ```

use super::far::{FarOptions, PARTIAL};
use super::{again, ds_field};
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

/// What is lost on the way to a host, and on the way back: how much, how sure that is, in what bursts.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
With `tidegate serve` at the far end:   tidegate loss HOST
With nothing of ours there, as by hand: tcpdump -w far.pcap udp port 8787    (there)
                                        tidegate loss HOST --blind           (here)
                                        tidegate loss --received far.pcap -c 100
With captures of both sides, of any traffic:
                                        tidegate loss --sent near.pcap --received far.pcap --filter-port 8787
What `tcpdump -nni` printed is read, too; it is only counted.

Exit codes: 0, 2 nothing was measured, 3 what is told is partial.")]
pub struct Options {
    /// Where `tidegate serve` runs, or with --blind where packets are sent.
    #[arg(required_unless_present = "received")]
    pub host: Option<String>,
    /// How it is reached.
    #[command(flatten)]
    pub far: FarOptions,
    /// From one packet to the next.
    #[arg(short, long, value_name = "TIME", default_value = "100ms", value_parser = duration)]
    pub interval: Duration,
    /// How many packets: 100 if nothing is said.
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub count: Option<u32>,
    /// Bytes of UDP payload of each.
    #[arg(short, long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(24..=1452))]
    pub size: u16,
    /// Their mark: EF, CS1, or the DS field as a number.
    #[arg(long, default_value = "0")]
    pub tos: String,
    /// Only send: somebody captures at the far end.
    #[arg(long, conflicts_with_all = ["received", "sent"])]
    pub blind: bool,
    /// A capture of what was sent.
    #[arg(long, value_name = "FILE", requires = "received", conflicts_with = "host")]
    pub sent: Option<PathBuf>,
    /// A capture of what came to the far side.
    #[arg(long, value_name = "FILE", alias = "far-capture", conflicts_with = "host")]
    pub received: Option<PathBuf>,
    /// Of captures only what goes to this port.
    #[arg(long, value_name = "PORT")]
    pub filter_port: Option<u16>,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Plays `tidegate loss`.
pub fn command(options: &Options) -> ExitCode {
    super::ended("loss", attempt(options))
}

fn attempt(options: &Options) -> anyhow::Result<u8> {
    let lost = match (&options.host, &options.received) {
        (_, Some(received)) => captured(options, received)?,
        (Some(host), None) if options.blind => return blind(options, host),
        (Some(host), None) => {
            let target = options.far.target(host)?;
            loss::measure(&target, &stream(options)?, tidegate_sys::interrupt::notice(), again())?
        }
        (None, None) => bail!("where is `tidegate serve`, or a capture?"),
    };
    let shown = if options.json { to_json(&lost) } else { text(&lost) };
    crate::output::text(&shown);
    Ok(if lost.partial.is_some() { PARTIAL } else { 0 })
}

/// The same packets both ways.
fn stream(options: &Options) -> anyhow::Result<Stream> {
    Ok(Stream::steady(PacketTrain {
        payload: options.size,
        gap_ns: options.interval.as_nanos() as u64,
        packets: options.count.unwrap_or(loss::USUAL_COUNT),
        dscp: ds_field(&options.tos)? >> 2,
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
fn blind(options: &Options, host: &str) -> anyhow::Result<u8> {
    let stream = stream(options)?;
    let target = options.far.target(host)?;
    let sent = tidegate_prober::send_blind(&target, &stream, tidegate_sys::interrupt::notice())?;
    let told = format!(
        "{sent} packets were sent to {host}, UDP port {}; in the capture of the far side they are counted \
        by\n  tidegate loss --received FILE -c {sent}\n",
        options.far.port
    );
    crate::output::text(&told);
    Ok(if sent < stream.packets() { PARTIAL } else { 0 })
}
