//! What `tidegate check` is told.

use crate::dissect::Dissect;
use crate::script_options::ScriptOptions;
use std::path::PathBuf;
use tidegate_inspect::Level;

/// What `tidegate check` is told.
#[derive(clap::Args)]
#[command(after_help = "\
Files may be shell scripts, tc batch files, iptables-save, nft rules, short policies, /etc/config/sqm, \
SQM's iface.conf,
FireQOS, tc -j; several are taken for one machine, in their order. `-` is standard input.
A comment `tidegate: allow R4` (or the rule's name, or several) on a line, or on the line before it, \
silences a finding there;
`tidegate: allow-file R4` anywhere silences the rule.
Exit codes: 0 nothing as bad as --fail-on; 1 something is; 2 a file cannot be read or has no traffic \
control in it, or wrong usage.

Example: tidegate check examples/home-gateway.sh")]
pub struct Options {
    /// The files that hold the policy.
    #[arg(required_unless_present = "rules")]
    pub files: Vec<PathBuf>,
    /// Arguments for a script.
    #[arg(last = true)]
    pub args: Vec<String>,
    /// The device whose findings are shown. Default: all.
    #[arg(long, value_parser = crate::values::device)]
    pub dev: Option<String>,
    /// What makes the exit code 1.
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = Bar::Warning)]
    pub fail_on: Bar,
    /// What is shown.
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = Bar::Note)]
    pub show: Bar,
    /// Writes a fixed copy (of what can be fixed): a file, or for several files a directory.
    #[arg(long, value_name = "COPY")]
    pub fix: Option<PathBuf>,
    /// Print the findings as JSON.
    #[arg(long, conflicts_with = "sarif")]
    pub json: bool,
    /// Print the findings as SARIF 2.1.0, for code hosts and editors.
    #[arg(long)]
    pub sarif: bool,
    /// List the rules, and check nothing.
    #[arg(long)]
    pub rules: bool,
    /// The sandbox that scripts run in.
    #[command(flatten)]
    pub sandbox: ScriptOptions,
    /// How far the machine looks into packets.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) dissect: Dissect,
}

/// A bar for findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Bar {
    /// Notes, and what is worse.
    Note,
    /// Warnings and errors.
    Warning,
    /// Errors.
    Error,
    /// Nothing.
    Never,
}

impl Bar {
    /// Does a finding of this level reach it?
    pub(super) fn reached_by(self, level: Level) -> bool {
        match self {
            Bar::Note => true,
            Bar::Warning => level >= Level::Warning,
            Bar::Error => level >= Level::Error,
            Bar::Never => false,
        }
    }
}
