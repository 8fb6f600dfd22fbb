//! What may be said to `tidegate apply`, `status`, `confirm`, `revert` and `down`.

use crate::daemon::DoorKind;
use crate::script_options::ScriptOptions;
use crate::values::whole_seconds;
use clap::ValueEnum;
use std::path::PathBuf;
use tidegate_apply::ApplyOptions;

/// What `tidegate apply` is told.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
What stands is compared with what is wanted; only what differs is changed, and queues that need not change \
keep their packets. Whatever is refused on the way, all of it
is undone. Exit codes: 0 it stands (or stood already); 1 nothing was changed, or all was undone; 2 the \
policy cannot be read, or wrong usage.

Examples:
  tidegate apply gateway.sh --dry-run        what would be done
  tidegate apply gateway.sh --confirm 60     and undone after a minute, unless `tidegate confirm` comes

If this process dies before the policy is there as a whole, or the SSH session does with it, a guardian \
undoes what was done. With --dry-run, 1: this kernel would refuse it.")]
pub struct Apply {
    /// The files that hold the policy: a script, tc -batch, iptables-save, nft rules, a short policy,
    /// /etc/config/sqm.
    #[arg(required_unless_present = "at_boot")]
    pub files: Vec<PathBuf>,
    /// Arguments for a script.
    #[arg(long = "arg", value_name = "WORD", allow_hyphen_values = true)]
    pub args: Vec<String>,
    /// The sandbox that scripts run in.
    #[command(flatten)]
    pub sandbox: ScriptOptions,
    /// Apply it to this device instead of the one that it names.
    #[arg(long, value_parser = crate::values::device, value_name = "DEV")]
    pub dev: Option<String>,
    /// Whose disciplines: the kernel's, our own, or the kernel's wherever it has them.
    #[arg(long, value_enum, default_value_t)]
    pub backend: Backend,
    /// By which door packets come to our own disciplines (`tun` is for `tidegate daemon`).
    #[arg(long, value_enum, default_value_t)]
    pub door: DoorKind,
    /// Use real-time scheduling (SCHED_FIFO) for the daemon of our own disciplines: packets leave on time
    /// while other programs work.
    #[arg(long)]
    pub realtime: bool,
    /// Undo it after this time (a number alone is seconds), unless `tidegate confirm` comes first. Over SSH
    /// 60 is the default; 0: do not.
    #[arg(long, value_name = "TIME", value_parser = whole_seconds)]
    pub confirm: Option<u64>,
    /// Apply every policy that was applied for good (not: one that waited to be confirmed) before the machine
    /// was restarted.
    #[arg(long, conflicts_with_all = ["files", "args", "dev", "confirm", "dry_run", "json"])]
    pub at_boot: bool,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Apply it although something could not be brought back, or what keeps the network alive would be lost.
    #[arg(long)]
    pub force: bool,
    /// Print what was done as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Whose disciplines are to hold the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// The kernel's, if it has all of them; else our own.
    #[default]
    Auto,
    /// The kernel's.
    Kernel,
    /// Our own, in a process of ours.
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
            args: options.args.clone(),
            sandbox: options.sandbox.into(),
            dev: options.dev.clone(),
            backend: options.backend.into(),
            packet_io: options.door.into(),
            realtime: options.realtime,
            confirm: options.confirm,
            dry_run: options.dry_run,
            force: options.force,
        }
    }
}

/// What `tidegate status`, `confirm` and `down` are told.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Exit codes: 0 done; 1 nothing of ours stands there, or it could not be done.")]
pub struct Which {
    /// The device (all that a policy of ours stands on, if none is named).
    pub dev: Option<String>,
    /// Print it as JSON.
    #[arg(long)]
    pub json: bool,
}

/// What `tidegate revert` is told.
#[derive(clap::Args, Clone, Debug)]
#[command(
    after_help = "Exit codes: 0 done; 1 nothing of ours stands there, or it could not be brought back."
)]
pub struct Revert {
    /// The device (the only one that a policy of ours stands on, if none is named).
    pub dev: Option<String>,
    /// Print it as JSON.
    #[arg(long)]
    pub json: bool,
    /// Watch over a change of what was applied under this name: undo it if whoever made it dies, or if it is
    /// not confirmed. Other commands start such a one.
    #[arg(long, hide = true)]
    pub guard: bool,
}
