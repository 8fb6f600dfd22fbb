//! What is to be applied, and how.

use std::path::PathBuf;
use tidegate_daemon::PacketIoBackend;
use tidegate_loader::SandboxOptions;

/// A policy that is to be applied to this computer's devices.
#[derive(Clone, Debug)]
pub struct ApplyOptions {
    /// The files that hold the policy: whatever `tidegate_loader::read` takes.
    pub files: Vec<PathBuf>,
    /// Arguments for a script.
    pub args: Vec<String>,
    /// The sandbox that scripts run in.
    pub sandbox: SandboxOptions,
    /// The device that it is applied to instead of the one that it names.
    pub dev: Option<String>,
    /// Whose qdiscs are to hold the packets.
    pub backend: BackendChoice,
    /// How packets come to tidegate's daemon, where that runs the policy.
    pub packet_io: PacketIoBackend,
    /// Use real-time scheduling (SCHED_FIFO) for the daemon.
    pub realtime: bool,
    /// Seconds until it is undone unless it is confirmed. `None`: 60 over SSH, otherwise it stays; `Some(0)`:
    /// it stays.
    pub confirm: Option<u64>,
    /// Find out what would be done, and do nothing.
    pub dry_run: bool,
    /// Apply it although something could not be brought back, or what keeps the network alive would be cut
    /// off.
    pub force: bool,
}

impl ApplyOptions {
    /// These files, with everything else as it is by default.
    pub fn of(files: Vec<PathBuf>) -> ApplyOptions {
        ApplyOptions {
            files,
            args: Vec::new(),
            sandbox: SandboxOptions::default(),
            dev: None,
            backend: BackendChoice::Auto,
            packet_io: PacketIoBackend::Auto,
            realtime: false,
            confirm: None,
            dry_run: false,
            force: false,
        }
    }
}

/// Whose qdiscs are to hold the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackendChoice {
    /// The kernel's, if it has all of them; otherwise tidegate's own.
    #[default]
    Auto,
    /// The kernel's.
    Kernel,
    /// tidegate's own, in a daemon.
    User,
}

impl BackendChoice {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            BackendChoice::Auto => "auto",
            BackendChoice::Kernel => "kernel",
            BackendChoice::User => "user",
        }
    }
}
