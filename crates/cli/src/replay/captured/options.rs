//! What `tidegate replay --capture` is told.

use crate::script_options::ScriptOptions;
use crate::trial::{buffer, rate, span, stacked};
use std::path::{Path, PathBuf};
use tidegate_packet::{Nanos, Rate};
use tidegate_replay::captured::{CaptureSettings, Prefix};
use tidegate_trial::ModemBuffer;

/// A capture, and policies to hold it against.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "A capture through policies")]
#[group(skip)]
pub(crate) struct Options {
    /// A capture of tcpdump or Wireshark, pcap or pcapng: its packets arrive at a gateway with each policy
    /// (docs/replay.md).
    #[arg(long, value_name = "FILE", conflicts_with = "dirs")]
    pub(super) capture: Option<PathBuf>,
    /// A policy: a script, a short policy, or whatever `tidegate check` reads; `none` for none. With words
    /// after it, those are a script's arguments: 'gateway.sh eth0 1500'. May be repeated.
    #[arg(long, value_name = "FILE", requires = "capture")]
    pub(super) policy: Vec<PathBuf>,
    /// The sandbox that scripts run in.
    #[command(flatten)]
    pub(super) sandbox: ScriptOptions,
    /// The line's rate. Without it the policies alone set the pace.
    #[arg(long, value_name = "RATE", value_parser = rate, requires = "capture")]
    pub(super) rate: Option<Rate>,
    /// What the modem before the line holds: bytes (24k) or time at the line's rate. Default: 250ms.
    #[arg(long, value_name = "SIZE|TIME", value_parser = buffer, requires = "rate")]
    pub(super) buffer: Option<ModemBuffer>,
    /// There is no modem: the policy's device itself sends at the line's rate.
    #[arg(long, requires = "rate", conflicts_with = "buffer")]
    pub(super) direct: bool,
    /// The device that leads to the line. Default: the one the policy shapes.
    #[arg(long, value_parser = crate::values::device, value_name = "NAME", requires = "capture")]
    pub(super) dev: Option<String>,
    /// Where a device stands on another: `ppp0=eth1`.
    #[arg(long, value_name = "UPPER=LOWER", value_parser = stacked, requires = "capture")]
    pub(super) over: Option<(String, String)>,
    /// What this network sends goes out, what is sent to it comes in. May be repeated. Default: what the
    /// capture says, else private addresses, else the address met most.
    #[arg(long, value_name = "PREFIX", requires = "capture")]
    pub(super) from: Vec<Prefix>,
    /// What these addresses send is the gateway's own (it passes OUTPUT, not FORWARD). May be repeated.
    #[arg(long, value_name = "PREFIX", requires = "capture")]
    pub(super) local: Vec<Prefix>,
    /// Flows that are told of, the largest first.
    #[arg(long, value_name = "N", default_value_t = 10, requires = "capture")]
    pub(super) top: usize,
    /// Let TCP react: each connection of the capture is made again with the simulator's TCP (modelled, not
    /// captured).
    #[arg(long, requires_all = ["capture", "rate"], conflicts_with_all = ["write", "direct"])]
    pub(super) closed: bool,
    /// How fast the line is towards here, for what comes in.
    #[arg(long, value_name = "RATE", value_parser = rate, requires = "closed")]
    pub(super) down: Option<Rate>,
    /// The round trip of connections whose handshake was not captured.
    #[arg(long, value_name = "TIME", value_parser = span, requires = "closed")]
    pub(super) rtt: Option<Nanos>,
    /// Write each packet with its class, queue, wait and fate as pcapng, for Wireshark: of the last policy,
    /// or of --write-of.
    #[arg(long, value_name = "FILE.pcapng", requires = "capture")]
    pub(super) write: Option<PathBuf>,
    /// The policy whose packets are written.
    #[arg(long, value_name = "POLICY", requires = "write")]
    pub(super) write_of: Option<String>,
    /// Print the result as JSON (docs/replay.md).
    #[arg(long, requires = "capture")]
    pub(super) json: bool,
    /// Write a page there, one file that needs no network.
    #[arg(long, value_name = "FILE", requires = "capture")]
    pub(super) html: Option<PathBuf>,
}

impl Options {
    /// Is there a capture?
    pub(crate) fn is_asked(&self) -> bool {
        self.capture.is_some()
    }

    /// Is nothing said but that there is none?
    pub(crate) fn is_silent(&self) -> bool {
        self.policy.is_empty()
            && self.rate.is_none()
            && self.dev.is_none()
            && self.over.is_none()
            && self.from.is_empty()
    }

    /// The capture's file.
    pub(super) fn file(&self) -> &Path {
        self.capture.as_deref().unwrap_or(Path::new(""))
    }

    /// What the replay itself is told.
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
