//! The command line of `tidegate lab`.

use clap::Parser;
use tidegate_lab::experiment;

/// Do an experiment that a scenario's file describes with real hosts: the kernel's TCP in namespaces, joined
/// by the scenario's links, by the real clock.
#[derive(Clone, Debug, Parser)]
#[group(skip)]
pub struct Options {
    /// The experiment, as `tidegate sim` knows it.
    #[command(flatten)]
    pub scenario: super::super::Options,
    /// Who is the machine with the policy: the model, or this computer's kernel with its own disciplines.
    #[arg(long, value_enum, default_value_t = Who::Model)]
    pub router: Who,
    /// Hosts send each segment by itself, as simulated ones do (GSO off).
    #[arg(long)]
    pub no_gso: bool,
    /// What the network gets of the machine.
    #[command(flatten)]
    pub effort: Effort,
}

impl Options {
    /// What `sim` is not told, as it was written, each word with a blank before it.
    pub(super) fn own_words(&self) -> String {
        let Effort { busy, realtime, pin } = self.effort;
        let switches = [
            (self.router == Who::Kernel, " --router kernel"),
            (self.no_gso, " --no-gso"),
            (busy, " --busy"),
            (realtime, " --realtime"),
        ];
        let said: String = switches.iter().filter(|(said, _)| *said).map(|(_, words)| *words).collect();
        said + &pin.map_or(String::new(), |cpu| format!(" --pin {cpu}"))
    }
}

/// Who a machine is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Who {
    /// tidegate's own disciplines, in user space.
    #[default]
    Model,
    /// The kernel's, in a namespace, programmed over netlink.
    Kernel,
}

/// What the network gets of the machine, so that nothing is late.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[group(skip)]
pub struct Effort {
    /// Never sleep between packets: exact to microseconds, and a processor is busy all the time.
    #[arg(long)]
    pub busy: bool,
    /// Go before all other programs (SCHED_FIFO), and so do pings and loads of the scenario's own: as root,
    /// or with `ulimit -r` of 50. Not with --busy: from who never sleeps the kernel then takes 50 ms of each
    /// second.
    #[arg(long, conflicts_with = "busy")]
    pub realtime: bool,
    /// Stay on this processor, counted from 0.
    #[arg(long, value_name = "CPU")]
    pub pin: Option<usize>,
}

impl From<Effort> for experiment::SchedulingOptions {
    fn from(Effort { busy, realtime, pin }: Effort) -> experiment::SchedulingOptions {
        experiment::SchedulingOptions { busy, realtime, pin }
    }
}
