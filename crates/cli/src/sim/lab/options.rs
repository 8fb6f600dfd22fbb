//! The command line of `tidegate lab`.

use clap::Parser;
use tidegate_lab::experiment;

/// Run a scenario file in real time, with the kernel's TCP
///
/// Each host is a network namespace, and the links between them are emulated. `tidegate sim` runs the same
/// file in virtual time.
#[derive(Clone, Debug, Parser)]
#[group(skip)]
#[command(after_help = "\
Needs root, or unprivileged user namespaces.

Exit codes: 0 done; 1 an assertion of the file fails; 2 wrong usage or input; 3 partial result (interrupted); \
4 not permitted.

Examples:
  tidegate lab examples/scenarios/upload.toml
  tidegate lab modem.toml --router kernel --repeats 5 -o lab.json")]
pub struct Options {
    /// The scenario, as for `tidegate sim`
    #[command(flatten)]
    pub scenario: super::super::Options,
    /// What runs the router with the policy: tidegate's model, or this computer's kernel
    #[arg(long, value_enum, default_value_t = Who::Model)]
    pub router: Who,
    /// Turn off segmentation offload (GSO) on hosts, so that they send single segments as simulated ones do
    #[arg(long)]
    pub no_gso: bool,
    /// Priority of the emulation
    #[command(flatten)]
    pub effort: Effort,
}

impl Options {
    /// The options that `sim` does not have, as they were written, each word with a blank before it.
    pub(super) fn own_words(&self) -> String {
        let Effort { busy, realtime, pin } = self.effort;
        let switches = [
            (self.router == Who::Kernel, " --router kernel"),
            (self.no_gso, " --no-gso"),
            (busy, " --busy"),
            (realtime, " --realtime"),
        ];
        let text: String = switches.iter().filter(|(given, _)| *given).map(|(_, words)| *words).collect();
        text + &pin.map_or(String::new(), |cpu| format!(" --pin {cpu}"))
    }
}

/// What runs a router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Who {
    /// tidegate's qdiscs, in user space
    #[default]
    Model,
    /// The kernel's qdiscs, in a namespace, configured over netlink
    Kernel,
}

/// How the emulation is scheduled, so that packets are not late.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[group(skip)]
pub struct Effort {
    /// Never sleep between packets: exact to microseconds, at the price of a busy processor
    #[arg(long)]
    pub busy: bool,
    /// Use real-time scheduling (SCHED_FIFO), also for the scenario's pings and loads; needs root or `ulimit
    /// -r 50`; not with --busy, because the kernel takes 50 ms of each second from a real-time process that
    /// never sleeps
    #[arg(long, conflicts_with = "busy")]
    pub realtime: bool,
    /// Run on this processor only, counted from 0
    #[arg(long, value_name = "CPU")]
    pub pin: Option<usize>,
}

impl From<Effort> for experiment::SchedulingOptions {
    fn from(Effort { busy, realtime, pin }: Effort) -> experiment::SchedulingOptions {
        experiment::SchedulingOptions { busy, realtime, pin }
    }
}
