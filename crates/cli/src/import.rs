//! `tidegate import`: whatever holds a policy, or the machine itself, as commands.
//!
//! The machine is asked by its own `tc`, whose listings any user may read; netfilter's rules only root may.

use crate::run::text;
use crate::script_options::ScriptOptions;
use clap::ValueEnum;
use std::path::PathBuf;
use std::process::ExitCode;
use tidegate_loader::{LoadedPolicy, ReadOptions};

/// What `tidegate import` is told.
#[derive(clap::Args)]
#[command(after_help = "\
Files: tc's listings (as text or -j; qdiscs, classes and filters in one file or several), tc batch files, \
iptables-save, nft rules,
/etc/config/sqm, SQM's iface.conf, FireQOS, short policies, scripts. `-` is standard input.
Exit codes: 0 done; 1 something in it was refused; 2 it cannot be read, or wrong usage.

Examples: tidegate import --live > policy.sh
          tidegate import --print batch /etc/config/sqm")]
pub struct Options {
    /// The files.
    #[arg(required_unless_present = "live", conflicts_with = "live")]
    pub files: Vec<PathBuf>,
    /// What this machine has now; needs no privilege.
    #[arg(long)]
    pub live: bool,
    /// The device: with --live the only one that is asked; else that of listings which name none.
    #[arg(long, value_parser = crate::values::device)]
    pub dev: Option<String>,
    /// In which words.
    #[arg(long, value_enum, default_value_t = Print::Tc)]
    pub print: Print,
    /// The sandbox that scripts run in.
    #[command(flatten)]
    pub sandbox: ScriptOptions,
}

/// In which words a policy is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Print {
    /// Commands for a shell.
    Tc,
    /// A file for `tc -batch`.
    Batch,
    /// What the machine told, before it is understood: with --live only.
    Listing,
}

/// Plays `tidegate import`.
pub fn command(options: &Options) -> ExitCode {
    match import(options) {
        Ok((text, whole)) => {
            crate::output::text(&text);
            if whole { ExitCode::SUCCESS } else { ExitCode::from(1) }
        }
        Err(error) => {
            eprintln!("tidegate import: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The text, and whether all of it was understood.
fn import(options: &Options) -> anyhow::Result<(String, bool)> {
    let how = ReadOptions {
        devices: options.dev.iter().cloned().collect(),
        sandbox: options.sandbox.into(),
        ..ReadOptions::default()
    };
    let taken = if options.live {
        let listings = tidegate_loader::live_listings(options.dev.as_deref())?;
        if options.print == Print::Listing {
            return Ok((listings, true));
        }
        tidegate_loader::read_text("this machine", &listings, &how)?
    } else {
        tidegate_loader::read(&options.files, &how)?
    };
    for warning in taken.warnings() {
        eprintln!("{warning}");
    }
    let whole = taken.troubles().all(|trouble| trouble.idle);
    Ok((printed(&taken, options.print), whole))
}

fn printed(taken: &LoadedPolicy, print: Print) -> String {
    match print {
        Print::Batch => text::batch(&taken.machine.carried),
        Print::Tc | Print::Listing => text::commands(&taken.machine.carried),
    }
}
