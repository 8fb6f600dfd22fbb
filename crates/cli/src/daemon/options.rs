//! What may be said to `tidegate daemon`.

use crate::script_options::ScriptOptions;
use std::net::IpAddr;
use std::path::PathBuf;
use tidegate_daemon::{DaemonOptions, PacketIoBackend};

/// What may be said.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Packets of the policy's devices pass through this process until it is ended (Ctrl-C, `tidegate down`), and \
then past it. `tidegate apply --backend user` starts one in
the background; a service manager starts it in the foreground and is told when it is ready (sd_notify).

Exit codes: 0 ended when asked, 2 the policy, a device or the privileges are not as needed.")]
pub struct Options {
    /// The files that hold the policy.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Arguments for a script.
    #[arg(long = "arg", value_name = "WORD", allow_hyphen_values = true)]
    pub args: Vec<String>,
    /// The sandbox that scripts run in.
    #[command(flatten)]
    pub sandbox: ScriptOptions,
    /// Run it on this device instead of the one that it names. With `*` or `?`: on every device whose name
    /// fits, as they come and go.
    #[arg(long, value_parser = crate::values::device, value_name = "DEV")]
    pub dev: Option<String>,
    /// Run it on the outer end of each veth device of this process's network namespace: a container's, until
    /// it ends.
    #[arg(long, value_name = "PID", conflicts_with = "dev")]
    pub pid: Option<u32>,
    /// By which door packets come.
    #[arg(long, value_enum, default_value_t)]
    pub door: DoorKind,
    /// With `--door tun`: the network namespace of the other side, by a process (PID) or a file.
    #[arg(long, value_name = "PID|FILE")]
    pub inside: Option<String>,
    /// With `--door tun`: the addresses of both ends, this side's first.
    #[arg(long, value_name = "HERE,THERE", value_delimiter = ',')]
    pub addresses: Vec<IpAddr>,
    /// The most packets held at once, over all queues (each takes some 300 bytes beside its own).
    #[arg(long, value_name = "PACKETS", default_value_t = DaemonOptions::MEMORY)]
    pub memory: usize,
    /// Queue everything as the policy says. Otherwise what holds the link up passes by the queues, up to 100
    /// packets a second of each kind: ARP, neighbour and router discovery, DHCP, 802.1X, PPP's control, and
    /// the SSH session from which this was started.
    #[arg(long)]
    pub strict: bool,
    /// Go before other programs (SCHED_FIFO): packets leave on time while others work.
    #[arg(long)]
    pub realtime: bool,
    /// The job of `tidegate apply` that this is part of: when that was undone meanwhile, nothing is run.
    #[arg(long, hide = true, value_name = "JOB")]
    pub started_for: Option<String>,
}

impl From<&Options> for DaemonOptions {
    fn from(options: &Options) -> DaemonOptions {
        DaemonOptions {
            files: options.files.clone(),
            args: options.args.clone(),
            sandbox: options.sandbox.into(),
            dev: options.dev.clone(),
            pid: options.pid,
            packet_io: options.door.into(),
            inside: options.inside.clone(),
            addresses: options.addresses.clone(),
            memory: options.memory,
            strict: options.strict,
            realtime: options.realtime,
            started_for: options.started_for.clone(),
        }
    }
}

/// A door.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum DoorKind {
    /// Capture, or nfqueue where this kernel or our privileges do not allow that.
    #[default]
    Auto,
    /// Every packet of a device, whatever its protocol, by a program in tc's hook.
    Capture,
    /// What is IP, by netfilter's queues: headers only are copied, marks and connections stay the kernel's.
    Nfqueue,
    /// A pair of TUN devices of its own, one here and one inside a container: nothing of anybody else's is
    /// touched.
    Tun,
}

impl From<DoorKind> for PacketIoBackend {
    fn from(door: DoorKind) -> PacketIoBackend {
        match door {
            DoorKind::Auto => PacketIoBackend::Auto,
            DoorKind::Capture => PacketIoBackend::Capture,
            DoorKind::Nfqueue => PacketIoBackend::Nfqueue,
            DoorKind::Tun => PacketIoBackend::Tun,
        }
    }
}
