//! The command lines of `tidegate apply`, `status`, `confirm`, `revert` and `down`.

use crate::daemon::PacketIoKind;
use crate::script_options::ScriptOptions;
use crate::values::whole_seconds;
use clap::ValueEnum;
use std::path::PathBuf;
use tidegate_apply::ApplyOptions;

/// Apply a policy to this computer's devices, all or nothing
///
/// Only what differs from the current configuration is changed, so queues that stay keep their packets. If
/// anything is refused, all of it is undone.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
If this process dies before the policy is complete, or the SSH session ends with it, a guardian process \
undoes what was done.

Exit codes: 0 applied, or applied already; 1 refused: nothing was changed, or all was undone (with --dry-run: \
this kernel would refuse it); 2 wrong usage or input; 4 not permitted.

Examples:
  tidegate apply gateway.sh --dry-run             show what would be done
  tidegate apply gateway.sh --confirm 60s         undo it after a minute unless `tidegate confirm` is run
  tidegate apply gateway.sh -- start eth0")]
pub struct Apply {
    /// The files that hold the policy: a script, or another file that `tidegate check` reads
    #[arg(required_unless_present = "at_boot", value_name = "FILE")]
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
    /// Apply it to this device instead of the one that it names
    #[arg(long, value_parser = crate::values::device, value_name = "DEV")]
    pub dev: Option<String>,
    /// Which queueing disciplines (qdiscs) run it: the kernel's, tidegate's in user space, or the kernel's
    /// wherever it has them
    #[arg(long, value_enum, default_value_t)]
    pub backend: Backend,
    /// Packet I/O backend of user space (`tun` is for `tidegate daemon`)
    #[arg(long = "packet-io", value_name = "BACKEND", value_enum, default_value_t)]
    pub packet_io: PacketIoKind,
    /// Use real-time scheduling (SCHED_FIFO) in user space: packets leave on time while other programs work
    #[arg(long)]
    pub realtime: bool,
    /// Undo it after this time unless `tidegate confirm` is run; 60s is the default over SSH; 0: never
    #[arg(long, value_name = "TIME", value_parser = whole_seconds)]
    pub confirm: Option<u64>,
    /// Apply again every policy that was applied and confirmed before the machine restarted; with `--dev`,
    /// those of a device that came back
    #[arg(long, conflicts_with_all = ["files", "args", "arg", "confirm", "dry_run", "json"])]
    pub at_boot: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Apply it although the previous configuration cannot be restored completely, or traffic that keeps the
    /// network alive could be dropped
    #[arg(long)]
    pub force: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl Apply {
    /// The arguments for a script, however they were written.
    fn args(&self) -> Vec<String> {
        if self.args.is_empty() { self.arg.clone() } else { self.args.clone() }
    }
}

/// Which queueing disciplines run a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// The kernel's, if it has all of them, else tidegate's
    #[default]
    Auto,
    /// The kernel's
    Kernel,
    /// Tidegate's, in a process in user space
    User,
}

impl From<Backend> for tidegate_apply::BackendChoice {
    fn from(backend: Backend) -> tidegate_apply::BackendChoice {
        match backend {
            Backend::Auto => tidegate_apply::BackendChoice::Auto,
            Backend::Kernel => tidegate_apply::BackendChoice::Kernel,
            Backend::User => tidegate_apply::BackendChoice::User,
        }
    }
}

impl From<&Apply> for ApplyOptions {
    fn from(options: &Apply) -> ApplyOptions {
        ApplyOptions {
            files: options.files.clone(),
            args: options.args(),
            sandbox: (&options.sandbox).into(),
            dev: options.dev.clone(),
            backend: options.backend.into(),
            packet_io: options.packet_io.into(),
            realtime: options.realtime,
            confirm: options.confirm,
            dry_run: options.dry_run,
            force: options.force,
        }
    }
}

/// The options of `tidegate status`, `confirm` and `down`.
#[derive(clap::Args, Clone, Debug)]
pub struct DeviceOptions {
    /// The device; default: all that tidegate applied a policy to
    pub dev: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The options of `tidegate revert`.
#[derive(clap::Args, Clone, Debug)]
pub struct Revert {
    /// The device; default: the only one that tidegate applied a policy to
    pub dev: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Watch over a change of what was applied under this name: undo it if the process that made it dies, or
    /// if it is not confirmed. Other commands start such a guardian
    #[arg(long, hide = true)]
    pub guard: bool,
}
