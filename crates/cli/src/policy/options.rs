//! The command line of `tidegate policy`.

use crate::script_options::ScriptOptions;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// The short policy: ten lines that become tc and nft.
#[derive(Args, Debug)]
#[command(disable_help_subcommand = true)]
pub struct Options {
    #[command(subcommand)]
    pub(super) what: What,
}

#[derive(Subcommand, Debug)]
pub(super) enum What {
    /// What may stand in a short policy; with a word, more of that.
    Help {
        /// A key, an application, a kind of link, a preset.
        word: Vec<String>,
    },
    /// The presets, applications and kinds of links.
    List,
    /// A short policy to begin with, from a preset.
    New {
        /// The preset.
        preset: String,
        /// The device towards the modem.
        #[arg(long, value_name = "NAME")]
        dev: String,
        /// The device towards the LAN.
        #[arg(long, value_name = "NAME")]
        lan: Option<String>,
        /// The link's rate away from you: 38mbit.
        #[arg(long, value_name = "RATE")]
        up: Option<String>,
        /// The link's download rate.
        #[arg(long, value_name = "RATE")]
        down: Option<String>,
        /// The kind of link: "vdsl2 pppoe".
        #[arg(long, value_name = "KIND")]
        link: Option<String>,
    },
    /// What a short policy comes to.
    Show {
        /// The file.
        file: PathBuf,
        /// As what.
        #[arg(long, value_enum, default_value_t)]
        print: Print,
        /// The same as --print json.
        #[arg(long)]
        json: bool,
    },
    /// A script, or anything else that holds a policy, as a short policy, as far as it fits.
    From {
        /// The files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// The sandbox that scripts run in.
        #[command(flatten)]
        sandbox: ScriptOptions,
        /// As one JSON document.
        #[arg(long)]
        json: bool,
    },
    /// The JSON schema of short policies, for editors.
    Schema,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Print {
    /// A shell script of tc, ip and nft.
    #[default]
    Tc,
    /// The policy with its preset filled in.
    Toml,
    /// The commands, each with the line it comes from.
    Json,
}
