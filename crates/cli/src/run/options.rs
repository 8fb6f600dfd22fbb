//! The command line of `tidegate run`.

use crate::kernel_options::KernelOptions;
use crate::script_options::ScriptOptions;
use std::path::PathBuf;

/// Run a script in a sandbox, and print what it configures
///
/// The script runs unmodified, in namespaces of its own, against a model of the machine. No traffic is
/// simulated: see `tidegate try` and `tidegate sim`.
#[derive(clap::Args)]
#[command(
    override_usage = "tidegate run [OPTIONS] <SCRIPT> [-- <ARGS>...]",
    after_help = "\
tc, ip, iptables, ifconfig, ethtool, modprobe, sysctl and sudo are answered by the model. Files that the \
script writes are discarded.

Exit codes: the script's own; of several runs the first that is not 0; 124 timeout; 125 no sandbox, or the \
script started too many processes; 126 the file is not a script; 127 no such file; 128 + N ended by signal \
N; 2 wrong usage.

Examples:
  tidegate run examples/home-gateway.sh --print tree
  tidegate run examples/home-gateway.sh --then show --then stop -- start
  tidegate run examples/three-bands.sh --print batch > bands.batch
  tidegate run examples/test-bed.sh --print scenario > bed.toml"
)]
pub struct Options {
    /// The script
    pub script: PathBuf,
    /// Arguments for the script
    #[arg(last = true)]
    pub args: Vec<String>,
    /// Run it again, on the same machine, with these arguments (several in quotes: --then 'start eth1')
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    pub then: Vec<String>,
    /// What to print of the machine at the end; the script's output then goes to standard error
    #[arg(long, value_name = "FORM", value_enum)]
    pub print: Option<RunOutput>,
    /// The same as --print json
    #[arg(long, conflicts_with = "print")]
    pub json: bool,
    /// A device that exists beside those that the script names; may be repeated
    #[arg(long, value_name = "DEV", value_parser = crate::values::device)]
    pub dev: Vec<String>,
    /// The kernel that the policy is for
    #[command(flatten)]
    pub kernel: KernelOptions,
    /// The sandbox that scripts run in
    #[command(flatten)]
    pub sandbox: ScriptOptions,
}

/// What is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum RunOutput {
    /// The commands that were carried out, one a line, without loops, functions, batches and -restore files
    Tc,
    /// A file for `tc -batch`, with commands of other tools as comments
    Batch,
    /// The machine as JSON, with every call, its line and its result
    Json,
    /// Each device's qdiscs and classes as a tree, with the filters that lead there
    Tree,
    /// The network namespaces and cables of a test-bed with what is configured in each, for `tidegate sim`
    Scenario,
}

impl Options {
    /// What to print of the machine.
    pub(super) fn print(&self) -> Option<RunOutput> {
        if self.json { Some(RunOutput::Json) } else { self.print }
    }

    /// The arguments of each run.
    pub(super) fn turns(&self) -> Vec<Vec<String>> {
        let mut turns = vec![self.args.clone()];
        turns.extend(self.then.iter().map(|args| crate::words::split(args)));
        turns
    }
}
