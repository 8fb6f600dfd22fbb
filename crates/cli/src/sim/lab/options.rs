//! The command line of `tidegate lab`.

use anyhow::Context;
use clap::Parser;
use tidegate_os::turn::Turn;

/// Do an experiment that a scenario's file describes with real hosts: the kernel's TCP in namespaces, joined by the scenario's links, by
/// the real clock.
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

/// Of the real-time priorities the middle, as the kernel's own threads have.
const PRIORITY: i32 = 50;

/// What the network gets of the machine, so that nothing is late.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[group(skip)]
pub struct Effort {
    /// Never sleep between packets: exact to microseconds, and a processor is busy all the time.
    #[arg(long)]
    pub busy: bool,
    /// Go before all other programs (SCHED_FIFO), and so do pings and loads of the scenario's own: as root, or with `ulimit -r` of 50. Not
    /// with --busy: from who never sleeps the kernel then takes 50 ms of each second.
    #[arg(long, conflicts_with = "busy")]
    pub realtime: bool,
    /// Stay on this processor, counted from 0.
    #[arg(long, value_name = "CPU")]
    pub pin: Option<usize>,
}

impl Effort {
    /// Gives the calling thread what was asked for.
    pub(super) fn begin(self) -> anyhow::Result<Turn> {
        let mut turn = Turn::usual();
        if let Some(cpu) = self.pin {
            turn.stay_on(cpu).with_context(|| format!("--pin {cpu}: this machine has no such processor for us"))?;
        }
        if self.realtime {
            let remedy = "--realtime: we may not go before others; run it as root, or raise `ulimit -r` to 50";
            turn.before_others(PRIORITY).context(remedy)?;
        }
        Ok(turn)
    }
}
