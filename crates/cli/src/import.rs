//! `tidegate import`: whatever holds a policy, or the machine itself, as commands.
//!
//! The machine's own `tc` is called, whose listings any user may read; netfilter's rules only root may.

use crate::exit::CliExit;
use crate::run::text;
use crate::script_options::{ScriptOptions, must_have_ended, show_errors};
use anyhow::Context as _;
use clap::ValueEnum;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use tidegate_daemon::{RuntimeDir, running_policy};
use tidegate_loader::{LoadedPolicy, ReadOptions};
use tidegate_shims::Carried;
use tidegate_syntax::networkd::{self, NetworkdFiles};

/// Convert any supported policy format to tc commands
#[derive(clap::Args)]
#[command(override_usage = "\
tidegate import [OPTIONS] <FILE>... [-- <ARGS>...]
       tidegate import [OPTIONS] --live")]
#[command(after_help = "\
FILE is output of tc (text or -j; qdiscs, classes and filters in one file or several), a tc batch file, \
iptables-save, nft rules, /etc/config/sqm, SQM's iface.conf, FireQOS, a .network file of systemd-networkd, an \
experiment of Chaos Mesh, a Kubernetes manifest with bandwidth limits, a short policy, or a script. `-` is standard \
input.

Exit codes: 0 done; 1 a part of it was refused; 2 wrong usage or input; 4 not permitted.

Examples:
  tidegate import --live > policy.sh
  tidegate import --print batch /etc/config/sqm
  tidegate import --print networkd gateway.sh > 50-wan.network
  tidegate import gateway.sh -- start eth0")]
pub struct Options {
    /// The files that hold the policy
    #[arg(required_unless_present = "live", conflicts_with = "live", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Arguments for a script
    #[arg(last = true, conflicts_with = "live")]
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
    /// A .network file of systemd-networkd for each device
    Networkd,
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
        sandbox: (&options.sandbox).into(),
        ..ReadOptions::default()
    };
    let policies = if options.live {
        let listings = tidegate_loader::live_listings(options.dev.as_deref())?;
        if options.print == ImportFormat::Listing {
            return Ok((listings, true));
        }
        let mut policies = by_daemons(options.dev.as_deref(), &how)?;
        // A computer without any device has an empty listing.
        if !listings.trim().is_empty() {
            policies.insert(0, tidegate_loader::read_text("this machine", &listings, &how)?);
        }
        policies
    } else {
        vec![tidegate_loader::read(&options.files, &how)?]
    };
    for policy in &policies {
        show_errors(&policy.outcomes);
        for warning in policy.warnings() {
            eprintln!("{warning}");
        }
        must_have_ended(policy)?;
        if let Some(nothing) = policy.nothing_found().filter(|_| !options.live) {
            anyhow::bail!("{nothing}");
        }
    }
    if options.live && policies.iter().all(|policy| policy.machine.carried.is_empty()) {
        let here = options.dev.as_ref().map_or_else(|| "this computer".to_owned(), |dev| format!("`{dev}`"));
        eprintln!("tidegate import: {here} has no traffic control beyond the kernel's defaults");
    }
    let whole = policies.iter().flat_map(LoadedPolicy::troubles).all(tidegate_capture::Trouble::is_idle);
    let carried: Vec<&Carried> = policies.iter().flat_map(|policy| &policy.machine.carried).collect();
    let printed = match options.print {
        _ if options.json => document(&policies),
        ImportFormat::Batch => text::batch(carried),
        ImportFormat::Networkd => {
            let NetworkdFiles { files, left_out } = networkd::write(&calls_of_tc(&carried));
            let left_out: Vec<String> = left_out.into_iter().chain(of_other_tools(&carried)).collect();
            left_out
                .iter()
                .for_each(|what| eprintln!("tidegate import: left out: {}", tidegate_text::line(what)));
            if files.len() > 1 {
                eprintln!(
                    "tidegate import: these are {} files, one for each device: save each under the name that it \
                     begins with",
                    files.len()
                );
            }
            return Ok((network_files(&files), whole && left_out.is_empty()));
        }
        ImportFormat::Tc | ImportFormat::Listing => text::commands(carried),
    };
    Ok((printed, whole))
}

/// The arguments of the calls of tc.
fn calls_of_tc(carried: &[&Carried]) -> Vec<Vec<String>> {
    let of_tc = |one: &&Carried| {
        one.words.split_first().filter(|(tool, _)| *tool == "tc").map(|(_, rest)| rest.to_vec())
    };
    carried.iter().filter_map(of_tc).collect()
}

/// What other tools did, which systemd-networkd leaves to others: a sentence for each tool.
fn of_other_tools(carried: &[&Carried]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let tools = carried.iter().filter_map(|one| one.words.first()).filter(|tool| *tool != "tc");
    tools.for_each(|tool| *counts.entry(tool).or_insert(0) += 1);
    let sentence = |(tool, count): (&str, usize)| {
        format!("{count} {} of {tool}", if count == 1 { "command" } else { "commands" })
    };
    counts.into_iter().map(sentence).collect()
}

/// The files one after another, each with its name.
fn network_files(files: &[(String, String)]) -> String {
    let file =
        |(device, text): &(String, String)| format!("# /etc/systemd/network/50-{device}.network\n{text}");
    files.iter().map(file).collect::<Vec<_>>().join("\n")
}

/// What tidegate's daemons run here, on `dev` or on all devices.
fn by_daemons(dev: Option<&str>, how: &ReadOptions) -> anyhow::Result<Vec<LoadedPolicy>> {
    let runtime = RuntimeDir::here()?;
    let names = runtime.devices("sock").into_iter().filter(|name| dev.is_none_or(|dev| dev == *name));
    let mut policies = Vec::new();
    for name in names {
        let Some(running) = running_policy(&runtime, &name)? else { continue };
        let commands: Vec<Vec<String>> = serde_json::from_value(running["commands"].clone())
            .with_context(|| format!("what the daemon of `{name}` runs"))?;
        if let Some(dev) = running["dev"].as_str() {
            eprintln!("tidegate import: the daemon of `{name}` runs the policy on `{dev}` (--dev)");
        }
        policies.push(tidegate_loader::read_commands(&format!("the daemon of {name}"), &commands, how)?);
    }
    Ok(policies)
}

/// The form of the document.
const FORM: u32 = 1;

/// The commands as JSON, and what was refused.
fn document(policies: &[LoadedPolicy]) -> String {
    let carried: Vec<&Carried> = policies.iter().flat_map(|policy| &policy.machine.carried).collect();
    let commands: Vec<String> = text::commands(carried).lines().map(str::to_owned).collect();
    let troubles = policies.iter().flat_map(LoadedPolicy::troubles);
    let refused: Vec<String> =
        troubles.filter(|trouble| !trouble.is_idle()).map(ToString::to_string).collect();
    let document = serde_json::json!({"tidegate_import": FORM, "commands": commands, "refused": refused});
    format!("{document:#}\n")
}
