//! The options of a daemon.

use std::ffi::{OsStr, OsString};
use std::net::IpAddr;
use std::path::PathBuf;
use tidegate_loader::SandboxOptions;

/// How a daemon runs a policy.
#[derive(Clone, Debug)]
pub struct DaemonOptions {
    /// The files that hold the policy.
    pub files: Vec<PathBuf>,
    /// Arguments for a script.
    pub args: Vec<String>,
    /// The sandbox that scripts run in.
    pub sandbox: SandboxOptions,
    /// The device to run it on instead of the one that it names. With `*` or `?`: every device whose name
    /// fits, as they come and go.
    pub dev: Option<String>,
    /// A process: run it on the outer end of each veth device of that process's network namespace, until it
    /// ends.
    pub pid: Option<u32>,
    /// How packets come to the daemon.
    pub packet_io: PacketIoBackend,
    /// With [`PacketIoBackend::Tun`]: the network namespace of the other side, by a process (PID) or a file.
    pub inside: Option<String>,
    /// With [`PacketIoBackend::Tun`]: the addresses of both ends, this side's first.
    pub addresses: Vec<IpAddr>,
    /// The most packets held at once, over all queues; each takes some 300 bytes beside its own.
    pub memory: usize,
    /// Queue everything by the policy. Otherwise packets that keep the link up bypass the queues, up to 100
    /// packets a second of each kind.
    pub strict: bool,
    /// Use real-time scheduling (SCHED_FIFO).
    pub realtime: bool,
    /// The job of `tidegate apply` that this is part of: if that was undone meanwhile, nothing is run.
    pub started_for: Option<String>,
}

impl DaemonOptions {
    /// The default limit on packets held at once.
    pub const MEMORY: usize = 100_000;

    /// These files, with everything else as it is by default.
    pub fn of(files: Vec<PathBuf>) -> DaemonOptions {
        DaemonOptions {
            files,
            args: Vec::new(),
            sandbox: SandboxOptions::default(),
            dev: None,
            pid: None,
            packet_io: PacketIoBackend::Auto,
            inside: None,
            addresses: Vec::new(),
            memory: DaemonOptions::MEMORY,
            strict: false,
            realtime: false,
            started_for: None,
        }
    }

    /// As words of the command line of `tidegate daemon`, the files last, then a script's arguments behind
    /// `--`.
    ///
    /// ```
    /// use tidegate_daemon::DaemonOptions;
    ///
    /// let files = vec!["home.toml".into()];
    /// let options = DaemonOptions { dev: Some("wan0".into()), ..DaemonOptions::of(files) };
    /// let words: Vec<_> = options.words().into_iter().map(|word| word.into_string().unwrap()).collect();
    /// assert_eq!(words[..4], ["--dev", "wan0", "--packet-io", "auto"]);
    /// assert_eq!(words.last().map(String::as_str), Some("home.toml"));
    /// ```
    pub fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let mut say = |name: &str, value: &OsStr| words.extend([name.into(), value.to_owned()]);
        self.dev.iter().for_each(|dev| say("--dev", dev.as_ref()));
        say("--packet-io", self.packet_io.name().as_ref());
        self.inside.iter().for_each(|inside| say("--inside", inside.as_ref()));
        if !self.addresses.is_empty() {
            let all: Vec<String> = self.addresses.iter().map(IpAddr::to_string).collect();
            say("--addresses", all.join(",").as_ref());
        }
        say("--timeout", format!("{}us", self.sandbox.timeout.as_micros()).as_ref());
        say("--memory", self.memory.to_string().as_ref());
        self.started_for.iter().for_each(|job| say("--started-for", job.as_ref()));
        let switches =
            [(self.strict, "--strict"), (self.realtime, "--realtime"), (self.sandbox.private, "--private")];
        words.extend(switches.into_iter().filter(|(on, _)| *on).map(|(_, name)| name.into()));
        words.extend(self.files.iter().map(|file| file.into()));
        if !self.args.is_empty() {
            words.push("--".into());
            words.extend(self.args.iter().map(|arg| arg.into()));
        }
        words
    }
}

/// How packets come to a daemon: its packet I/O backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketIoBackend {
    /// Capture, or nfqueue where this kernel or the privileges do not allow that.
    #[default]
    Auto,
    /// Every packet of a device, whatever its protocol, by a program in tc's hook.
    Capture,
    /// What is IP, by netfilter's queues: only headers are copied, marks and connections stay the kernel's.
    Nfqueue,
    /// A pair of TUN devices, one here and one in another network namespace.
    Tun,
}

impl PacketIoBackend {
    /// The one of this name; `None`: there is none.
    pub fn named(name: &str) -> Option<PacketIoBackend> {
        [PacketIoBackend::Auto, PacketIoBackend::Capture, PacketIoBackend::Nfqueue, PacketIoBackend::Tun]
            .into_iter()
            .find(|kind| kind.name() == name)
    }

    /// Its name, as the command line and [`start`](crate::start()) have it.
    pub fn name(self) -> &'static str {
        match self {
            PacketIoBackend::Auto => "auto",
            PacketIoBackend::Capture => "capture",
            PacketIoBackend::Nfqueue => "nfqueue",
            PacketIoBackend::Tun => "tun",
        }
    }
}
