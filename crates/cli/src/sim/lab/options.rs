//! The command line of `tidegate lab`.

use clap::Parser;

/// Do an experiment that a scenario's file describes with real hosts: the kernel's TCP in namespaces, joined by the scenario's links, by
/// the real clock.
#[derive(Clone, Debug, Parser)]
#[group(skip)]
pub struct Options {
    /// The experiment, as `tidegate sim` knows it.
    #[command(flatten)]
    pub scenario: super::super::Options,
    /// Never sleep between packets: exact to microseconds, and a processor is busy all the time.
    #[arg(long)]
    pub busy: bool,
}
