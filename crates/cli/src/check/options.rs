//! The command line of `tidegate check`.

use crate::kernel_options::ComparedKernels;
use crate::outputs::{Form, ReportFile, output_file};
use crate::script_options::ScriptOptions;
use std::path::PathBuf;
use tidegate_inspect::Level;

/// Find mistakes in a policy: where, what happens, how to fix it
#[derive(clap::Args)]
#[command(after_help = "\
FILE is a shell script, a tc batch file, iptables-save, nft rules, a short policy, /etc/config/sqm, SQM's \
iface.conf, FireQOS, a .network file of systemd-networkd, an experiment of Chaos Mesh, a Kubernetes manifest with \
bandwidth limits, or a listing of tc (with -j or without). Several files configure one machine, in their order. `-` is \
standard input, except for scripts.
A comment `tidegate: allow R4` (or the rule's name, or several) on a line or the line before it suppresses a \
finding there; `tidegate: allow-file R4` anywhere suppresses the rule.

Exit codes: 0 no finding of the level --fail-on; 1 there is one; 2 wrong usage or input: a file cannot be \
read or configures no traffic control, or a script was stopped before its end.

Examples:
  tidegate check examples/home-gateway.sh
  tidegate check gateway.sh --fix fixed.sh -- start eth0
  tidegate check --rules")]
pub struct Options {
    /// The files that hold the policy
    #[arg(required_unless_present = "rules", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Arguments for a script
    #[arg(last = true, conflicts_with = "rules")]
    pub args: Vec<String>,
    /// Show only findings about this device
    #[arg(long, value_parser = crate::values::device, value_name = "DEV")]
    pub dev: Option<String>,
    /// The lowest level of finding that makes the exit code 1
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = Bar::Warning)]
    pub fail_on: Bar,
    /// The lowest level of finding that is shown
    #[arg(long, alias = "show", value_enum, value_name = "LEVEL", default_value_t = Bar::Note)]
    pub min_level: Bar,
    /// Write a copy with the fixes that are known: to a file, or for several files to a directory
    #[arg(long, value_name = "COPY")]
    pub fix: Option<PathBuf>,
    /// Print the findings as JSON
    #[arg(long, conflicts_with = "sarif")]
    pub json: bool,
    /// Print the findings as SARIF 2.1.0, for code hosts and editors
    #[arg(long)]
    pub sarif: bool,
    /// Write the findings: .json, .sarif or .txt; may be repeated
    #[arg(short, long, value_name = "REPORT", value_parser = output_file(&[Form::Json, Form::Sarif, Form::Text]))]
    pub output: Vec<ReportFile>,
    /// List the rules, and check nothing
    #[arg(long)]
    pub rules: bool,
    /// The sandbox that scripts run in
    #[command(flatten)]
    pub sandbox: ScriptOptions,
    /// The kernel that the policy is for
    #[command(flatten)]
    pub kernel: ComparedKernels,
}

/// A bar for findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Bar {
    /// Notes, warnings and errors
    Note,
    /// Warnings and errors
    Warning,
    /// Errors
    Error,
    /// Nothing
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
