//! The options of `tidegate replay --capture`.

use crate::outputs::{Form, ReportFile, output_file};
use crate::script_options::ScriptOptions;
use crate::trial::{buffer, stacked};
use crate::values::{rate, span};
use std::path::{Path, PathBuf};
use tidegate_packet::{Nanos, Rate};
use tidegate_replay::captured::{CaptureSettings, Prefix};
use tidegate_trial::ModemBuffer;

/// A capture, and the policies that it is replayed through.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "A capture through policies")]
#[group(skip)]
pub(crate) struct Options {
    /// A capture of tcpdump or Wireshark, pcap or pcapng: its packets arrive at a gateway with each policy
    /// (docs/replay.md)
    #[arg(long, value_name = "PCAP", conflicts_with = "dirs")]
    pub(super) capture: Option<PathBuf>,
    /// A policy: a file that `tidegate check` reads, with a script's arguments behind it ('gateway.sh eth0
    /// 1500'), or `none`; may be repeated
    #[arg(long, value_name = "FILE [ARGS]", requires = "capture")]
    pub(super) policy: Vec<PathBuf>,
    /// Arguments for the scripts of policies that are given without
    #[arg(last = true, requires = "policy")]
    pub(super) args: Vec<String>,
    /// The sandbox that scripts run in
    #[command(flatten)]
    pub(super) sandbox: ScriptOptions,
    /// The line's rate; without it, only the policies limit the rate
    #[arg(long, value_name = "RATE", value_parser = rate, requires = "capture")]
    pub(super) rate: Option<Rate>,
    /// The modem's buffer: bytes (24kB), or time at the line's rate; default: 250ms
    #[arg(long, value_name = "SIZE|TIME", value_parser = buffer, requires = "rate")]
    pub(super) buffer: Option<ModemBuffer>,
    /// No modem: the policy's device itself sends at the line's rate
    #[arg(long, requires = "rate", conflicts_with = "buffer")]
    pub(super) direct: bool,
    /// The device that leads to the line; default: the one that the policy shapes
    #[arg(long, value_parser = crate::values::device, value_name = "DEV", requires = "capture")]
    pub(super) dev: Option<String>,
    /// A device on top of another: `ppp0=eth1`
    #[arg(long, value_name = "UPPER=LOWER", value_parser = stacked, requires = "capture")]
    pub(super) over: Option<(String, String)>,
    /// The local network: its packets go out, packets to it come in; may be repeated; default: what the
    /// capture says, else private addresses, else the most frequent address
    #[arg(long, value_name = "PREFIX", requires = "capture")]
    pub(super) from: Vec<Prefix>,
    /// Addresses of the gateway itself (their packets pass OUTPUT, not FORWARD); may be repeated
    #[arg(long, value_name = "PREFIX", requires = "capture")]
    pub(super) local: Vec<Prefix>,
    /// The number of flows in the report, the largest first
    #[arg(long, value_name = "N", default_value_t = 10, requires = "capture")]
    pub(super) top: usize,
    /// Let TCP react: the simulator's TCP repeats each connection of the capture (modelled, not captured)
    #[arg(long, requires_all = ["capture", "rate"], conflicts_with_all = ["write", "direct"])]
    pub(super) closed: bool,
    /// The line's download rate, for --closed
    #[arg(long, value_name = "RATE", value_parser = rate, requires = "closed")]
    pub(super) down: Option<Rate>,
    /// Round-trip time of connections whose handshake was not captured, for --closed
    #[arg(long, value_name = "TIME", value_parser = span, requires = "closed")]
    pub(super) rtt: Option<Nanos>,
    /// Write each packet with class, queueing delay and outcome as pcapng, for Wireshark: of the last policy,
    /// or of --write-of
    #[arg(long, value_name = "PCAPNG", requires = "capture")]
    pub(super) write: Option<PathBuf>,
    /// The policy whose packets --write writes
    #[arg(long, value_name = "POLICY", requires = "write")]
    pub(super) write_of: Option<String>,
    /// Print JSON (docs/replay.md)
    #[arg(long, requires = "capture")]
    pub(super) json: bool,
    /// Write the result: .html or .json; may be repeated
    #[arg(
        short,
        long,
        value_name = "FILE",
        value_parser = output_file(&[Form::Html, Form::Json]),
        requires = "capture"
    )]
    pub(super) output: Vec<ReportFile>,
    /// Write a page, whatever the file is called
    #[arg(long, value_name = "FILE", requires = "capture", hide = true)]
    pub(super) html: Option<PathBuf>,
}

impl Options {
    /// Is there a capture?
    pub(crate) fn is_asked(&self) -> bool {
        self.capture.is_some()
    }

    /// Is there no other option of captures?
    pub(crate) fn is_silent(&self) -> bool {
        self.policy.is_empty()
            && self.rate.is_none()
            && self.dev.is_none()
            && self.over.is_none()
            && self.from.is_empty()
            && self.output.is_empty()
    }

    /// The files of results that have no extension of their own.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.write.as_deref().into_iter().chain(self.html.as_deref())
    }

    /// Writes the files of the result.
    ///
    /// # Errors
    /// One cannot be written.
    pub(super) fn write_files(
        &self,
        json: impl Fn() -> String,
        page: impl Fn() -> String,
    ) -> anyhow::Result<()> {
        for ReportFile { path, form } in &self.output {
            crate::output::file(path, if *form == Form::Html { page() } else { json() })?;
        }
        self.html.iter().try_for_each(|path| crate::output::file(path, page()))
    }

    /// The capture's file.
    pub(super) fn file(&self) -> &Path {
        self.capture.as_deref().unwrap_or(Path::new(""))
    }

    /// The settings of the replay itself.
    pub(super) fn settings(&self) -> CaptureSettings {
        CaptureSettings {
            file: self.file().display().to_string(),
            rate: self.rate,
            buffer: self.buffer,
            direct: self.direct,
            dev: self.dev.clone(),
            over: self.over.clone(),
            from: self.from.clone(),
            local: self.local.clone(),
            top: self.top,
            down: self.down,
            rtt: self.rtt,
        }
    }
}
