//! The command line of `tidegate daemon`.

use crate::script_options::ScriptOptions;
use std::net::IpAddr;
use std::path::PathBuf;
use tidegate_daemon::{DaemonOptions, PacketIoBackend};

/// Run a policy in user space on real devices, in the foreground
///
/// Packets of the policy's devices pass through this process until it ends (Ctrl-C, `tidegate down`), and
/// then past it. `tidegate apply --backend user` starts one in the background.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
A service manager starts it in the foreground and is notified when it is ready (sd_notify).

Exit codes: 0 ended on request; 2 wrong usage or input, or a device is missing; 4 not permitted.

Examples:
  tidegate daemon home.toml
  tidegate daemon gateway.sh --dev 'ppp*' -- start")]
pub struct Options {
    /// The files that hold the policy
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Arguments for a script
    #[arg(last = true)]
    pub args: Vec<String>,
    /// An argument for a script, as earlier versions took it
    #[arg(
        long = "arg",
        value_name = "WORD",
        allow_hyphen_values = true,
        hide = true,
        conflicts_with = "args"
    )]
    pub arg: Vec<String>,
    /// The sandbox that scripts run in
    #[command(flatten)]
    pub sandbox: ScriptOptions,
    /// Run it on this device instead of the one that it names; with `*` or `?`: on every device with a
    /// matching name, as they come and go
    #[arg(long, value_parser = crate::values::device, value_name = "DEV")]
    pub dev: Option<String>,
    /// Run it on the outer end of each veth device of this process's network namespace: a container's, until
    /// it ends
    #[arg(long, value_name = "PID", conflicts_with = "dev")]
    pub pid: Option<u32>,
    /// Packet I/O backend
    #[arg(long = "packet-io", value_name = "BACKEND", value_enum, default_value_t)]
    pub packet_io: PacketIoKind,
    /// With `--packet-io tun`: the network namespace of the other side, by a process (PID) or a file
    #[arg(long, value_name = "PID|FILE")]
    pub inside: Option<String>,
    /// With `--packet-io tun`: the addresses of both ends, this side's first
    #[arg(long, value_name = "HERE,THERE", value_delimiter = ',')]
    pub addresses: Vec<IpAddr>,
    /// The most packets in all queues together (each needs about 300 bytes in addition to its data)
    #[arg(long, value_name = "PACKETS", default_value_t = DaemonOptions::MEMORY)]
    pub memory: usize,
    /// Queue everything as the policy says; by default, traffic that keeps the link alive bypasses the
    /// queues, up to 100 packets a second of each kind: ARP, neighbour and router discovery, DHCP, 802.1X,
    /// PPP control, and the SSH session that started this
    #[arg(long)]
    pub strict: bool,
    /// Use real-time scheduling (SCHED_FIFO): packets leave on time while other programs work
    #[arg(long)]
    pub realtime: bool,
    /// The job of `tidegate apply` that this is part of; if it was undone meanwhile, nothing is run
    #[arg(long, hide = true, value_name = "JOB")]
    pub started_for: Option<String>,
}

impl From<&Options> for DaemonOptions {
    fn from(options: &Options) -> DaemonOptions {
        DaemonOptions {
            files: options.files.clone(),
            args: if options.args.is_empty() { options.arg.clone() } else { options.args.clone() },
            sandbox: (&options.sandbox).into(),
            dev: options.dev.clone(),
            pid: options.pid,
            packet_io: options.packet_io.into(),
            inside: options.inside.clone(),
            addresses: options.addresses.clone(),
            memory: options.memory,
            strict: options.strict,
            realtime: options.realtime,
            started_for: options.started_for.clone(),
        }
    }
}

/// A packet I/O backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum PacketIoKind {
    /// Capture, or nfqueue where this kernel or the privileges do not allow that
    #[default]
    Auto,
    /// Every packet of a device, whatever its protocol, by a BPF program in tc's hook
    Capture,
    /// IP packets, by netfilter's queues: only headers are copied, marks and connections stay in the kernel
    Nfqueue,
    /// A pair of TUN devices, one here and one in a container; no other device is touched
    Tun,
}

impl From<PacketIoKind> for PacketIoBackend {
    fn from(kind: PacketIoKind) -> PacketIoBackend {
        match kind {
            PacketIoKind::Auto => PacketIoBackend::Auto,
            PacketIoKind::Capture => PacketIoBackend::Capture,
            PacketIoKind::Nfqueue => PacketIoBackend::Nfqueue,
            PacketIoKind::Tun => PacketIoBackend::Tun,
        }
    }
}
