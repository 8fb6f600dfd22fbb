//! `tidegate import`: whatever holds a policy, or the machine itself, as commands.
//!
//! The machine is asked by its own `tc`, whose listings any user may read; netfilter's rules only root may.

use crate::exit::CliExit;
use crate::run::text;
use crate::script_options::{ScriptOptions, must_have_ended, show_errors};
use clap::ValueEnum;
use std::path::PathBuf;
use std::process::ExitCode;
use tidegate_loader::{LoadedPolicy, ReadOptions};

/// Convert any supported policy format to tc commands
#[derive(clap::Args)]
#[command(after_help = "\
FILE is output of tc (text or -j; qdiscs, classes and filters in one file or several), a tc batch file, \
iptables-save, nft rules, /etc/config/sqm, SQM's iface.conf, FireQOS, a short policy, or a script. `-` is \
standard input.

Exit codes: 0 done; 1 a part of it was refused; 2 wrong usage or input; 4 not permitted.

Examples:
  tidegate import --live > policy.sh
  tidegate import --print batch /etc/config/sqm
  tidegate import gateway.sh -- start eth0")]
pub struct Options {
    /// The files that hold the policy
    #[arg(required_unless_present = "live", conflicts_with = "live", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Arguments for a script
    #[arg(last = true)]
    pub args: Vec<String>,
    /// Read what this machine has now; needs no privilege
    #[arg(long)]
    pub live: bool,
    /// With --live, read only this device; otherwise the device of listings that name none
    #[arg(long, value_parser = crate::values::device, value_name = "DEV")]
    pub dev: Option<String>,
    /// The form
    #[arg(long, value_enum, default_value_t = ImportFormat::Tc)]
    pub print: ImportFormat,
    /// Print JSON: the commands, and what was refused
    #[arg(long, conflicts_with = "print")]
    pub json: bool,
    /// The sandbox that scripts run in
    #[command(flatten)]
    pub sandbox: ScriptOptions,
}

/// The form of a policy that is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ImportFormat {
    /// Commands for a shell
    Tc,
    /// A file for `tc -batch`
    Batch,
    /// With --live: the listings of the kernel's state
    Listing,
}

/// Plays `tidegate import`.
pub fn command(options: &Options) -> ExitCode {
    match import(options) {
        Ok((text, whole)) => {
            crate::output::text(&text);
            if whole { CliExit::Yes.into() } else { CliExit::No.into() }
        }
        Err(error) => {
            eprintln!("tidegate import: {error:#}");
            CliExit::of(&error).into()
        }
    }
}

/// The text, and whether all of it was understood.
fn import(options: &Options) -> anyhow::Result<(String, bool)> {
    let how = ReadOptions {
        args: options.args.clone(),
        devices: options.dev.iter().cloned().collect(),
        sandbox: options.sandbox.into(),
        ..ReadOptions::default()
    };
    let taken = if options.live {
        let listings = tidegate_loader::live_listings(options.dev.as_deref())?;
        if options.print == ImportFormat::Listing {
            return Ok((listings, true));
        }
        tidegate_loader::read_text("this machine", &listings, &how)?
    } else {
        tidegate_loader::read(&options.files, &how)?
    };
    show_errors(&taken.outcomes);
    for warning in taken.warnings() {
        eprintln!("{warning}");
    }
    must_have_ended(&taken)?;
    if let Some(nothing) = taken.nothing_found().filter(|_| !options.live) {
        anyhow::bail!("{nothing}");
    }
    let whole = taken.troubles().all(|trouble| trouble.idle);
    let printed = if options.json { document(&taken) } else { printed(&taken, options.print) };
    Ok((printed, whole))
}

fn printed(taken: &LoadedPolicy, print: ImportFormat) -> String {
    match print {
        ImportFormat::Batch => text::batch(&taken.machine.carried),
        ImportFormat::Tc | ImportFormat::Listing => text::commands(&taken.machine.carried),
    }
}

/// The form of the document.
const FORM: u32 = 1;

/// The commands as JSON, and what was refused.
fn document(taken: &LoadedPolicy) -> String {
    let commands: Vec<String> = text::commands(&taken.machine.carried).lines().map(str::to_owned).collect();
    let refused: Vec<String> =
        taken.troubles().filter(|trouble| !trouble.idle).map(ToString::to_string).collect();
    let document = serde_json::json!({"tidegate_import": FORM, "commands": commands, "refused": refused});
    format!("{document:#}\n")
}
