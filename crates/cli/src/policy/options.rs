//! The command line of `tidegate policy`.

#[cfg(feature = "workstation")]
use crate::script_options::ScriptOptions;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Write, show and convert short policies: ten lines instead of tc
#[derive(Args, Debug)]
#[command(
    disable_help_subcommand = true,
    after_help = "\
Exit codes: 0 done; 1 something does not fit into a short policy; 2 wrong usage or input: the policy has an \
error.

Examples:
  tidegate policy new home --dev eth0 --up 38mbit --down 95mbit > home.toml
  tidegate policy show home.toml
  tidegate policy wizard
  tidegate policy from gateway.sh -- start eth0
  tidegate policy help latency"
)]
pub struct Options {
    #[command(subcommand)]
    pub(super) what: What,
}

#[derive(Subcommand, Debug)]
pub(super) enum What {
    /// Explain the keys of a short policy, or one of them
    Help {
        /// A key, an application, a kind of link, a preset
        word: Vec<String>,
    },
    /// List presets, applications and kinds of links
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a short policy to begin with, from a preset
    New {
        /// The preset
        preset: String,
        /// The device that leads to the modem
        #[arg(long, value_name = "NAME")]
        dev: String,
        /// The device that leads to the LAN
        #[arg(long, value_name = "NAME")]
        lan: Option<String>,
        /// The link's upload rate: 38mbit
        #[arg(long, value_name = "RATE")]
        up: Option<String>,
        /// The link's download rate
        #[arg(long, value_name = "RATE")]
        down: Option<String>,
        /// The kind of link: "vdsl2 pppoe"
        #[arg(long, value_name = "KIND")]
        link: Option<String>,
        /// The queues: classes, cake or fq_codel; default: cake, or fq_codel where the kernel has no cake
        #[arg(long, value_name = "KIND")]
        kind: Option<String>,
    },
    /// Ask five questions on a terminal, show the effect, write the policy, and apply it if wanted
    Wizard {
        /// The file to write
        #[arg(default_value = "home.toml")]
        file: PathBuf,
    },
    /// Print the commands that a short policy becomes
    Show {
        /// The short policy
        file: PathBuf,
        /// The form
        #[arg(long, value_enum, default_value_t)]
        print: Print,
        /// The same as --print json
        #[arg(long)]
        json: bool,
    },
    #[cfg(feature = "workstation")]
    /// Convert a script, or any other supported format, to a short policy, as far as it fits
    From {
        /// The files that hold the policy
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Arguments for a script
        #[arg(last = true)]
        args: Vec<String>,
        /// The sandbox that scripts run in
        #[command(flatten)]
        sandbox: ScriptOptions,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON schema of short policies, for editors
    Schema,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Print {
    /// A shell script of tc, ip and nft
    #[default]
    Tc,
    /// The policy with its preset filled in
    Toml,
    /// The commands, each with the line it comes from
    Json,
}
