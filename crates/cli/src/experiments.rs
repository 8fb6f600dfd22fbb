//! The commands for experiments with simulated and emulated networks, and for their results: what the feature
//! `experiments` adds to the program.

use crate::{bundle, compare, expect, gym, measuring, replay, sim, sweep, tune};
use clap::Subcommand;
use std::process::ExitCode;

/// A command that runs an experiment, or works on the results of some.
#[derive(Subcommand)]
pub(crate) enum Experiment {
    /// Run a scenario file in simulation, in virtual time
    Sim(Box<sim::Options>),
    /// Simulate a scenario over ranges of parameters, on all processors
    Sweep(Box<sweep::Options>),
    /// Merge and summarise the rows of sweeps
    Results(Box<sweep::results::Options>),
    /// Search for the best values of a scenario's parameters
    Tune(Box<tune::Options>),
    /// Try controllers of a shaper's rate on lines that vary
    Gym(Box<gym::Options>),
    /// Record a line's rate, delay and loss as traces for simulations
    Record(Box<measuring::record::Options>),
    /// Bundle a scenario with its results, for others to repeat
    Bundle(Box<bundle::Options>),
    /// Run a scenario file in real time, with the kernel's TCP
    Lab(Box<sim::lab::Options>),
    /// Run a program or a shell behind an emulated link
    Shell(Box<sim::lab::shell::Options>),
    /// Replay recorded packets through a policy, without new traffic
    Replay(Box<replay::Options>),
    /// Compare results, with significance
    Compare(compare::Options),
    /// Test a policy against assertions, in simulation
    Test(expect::Options),
}

impl Experiment {
    /// Carries it out.
    pub(crate) fn carry_out(self) -> ExitCode {
        match self {
            Experiment::Sim(options) => sim::command(&options),
            Experiment::Sweep(options) => sweep::command(&options),
            Experiment::Results(options) => sweep::results::command(&options),
            Experiment::Tune(options) => tune::command(&options),
            Experiment::Gym(options) => gym::command(&options),
            Experiment::Record(options) => measuring::record::command(&options),
            Experiment::Bundle(options) => bundle::command(&options),
            Experiment::Lab(options) => sim::lab::command(&options),
            Experiment::Shell(options) => sim::lab::shell::command(&options),
            Experiment::Replay(options) => replay::command(&options),
            Experiment::Compare(options) => compare::command(&options),
            Experiment::Test(options) => expect::command(&options),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_for_installing_names_what_a_build_without_the_feature_lacks() {
        let document = include_str!("../../../docs/install.md");
        let (_, list) = document.split_once("\n- `experiments`: ").expect("an item of its own");
        let (list, _) = list.split_once("; and ").expect("the commands");
        let named: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
        let with = Experiment::augment_subcommands(clap::Command::new("tidegate"));
        assert_eq!(named, with.get_subcommands().map(clap::Command::get_name).collect::<Vec<_>>());
    }
}
