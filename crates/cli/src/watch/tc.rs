//! `tidegate tc`: tc's words for the disciplines of a running daemon, answered in tc's words.

use super::failed;
use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use tidegate_apply::{daemon_with, daemons};
use tidegate_daemon::Client;
use tidegate_daemon::Daemon;
use tidegate_daemon::RuntimeDir;

use std::process::ExitCode;
use tidegate_syntax::Env;
use tidegate_syntax::tc::{self, TcCommand, TcCommandLine};

/// Query or change a running daemon with tc syntax
#[derive(clap::Args)]
#[command(
    disable_help_flag = true,
    after_help = "\
Takes listings (`-s -j qdisc show dev eth0`) and changes (`qdisc change …`, `class add …`, `-batch FILE`) \
alike. A change affects the running tree, and its packets stay queued. Without `dev`, a listing is that of \
every daemon, and a change needs a single one.

Exit codes: those of tc; 2 also if no daemon answers; 4 not permitted.

Examples:
  tidegate tc -s qdisc show dev eth0
  tidegate tc class change dev eth0 classid 1:10 htb rate 5mbit"
)]
pub struct Options {
    /// Print help
    #[arg(long, action = clap::ArgAction::HelpLong)]
    help: Option<bool>,
    /// What would follow `tc`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

/// Runs the command.
pub fn command(options: &Options) -> ExitCode {
    match ask(&options.words) {
        Ok(code) => ExitCode::from(code),
        Err(error) => failed("tc", &error),
    }
}

fn ask(words: &[String]) -> anyhow::Result<u8> {
    let parsed = tc::parse(words, &Env::default());
    let input = match &parsed {
        Ok(TcCommandLine { command: TcCommand::Batch { file, .. }, .. }) => Some(batch(file)?),
        _ => None,
    };
    let devices =
        addressed_daemons(words, parsed.is_ok_and(|parsed| matches!(parsed.command, TcCommand::Show(_))))?;
    let room = RuntimeDir::here()?;
    let mut silent = Vec::new();
    let mut code = 0;
    // Whether a daemon answers at all is known soon; a long batch may take its time.
    for (dev, daemon) in devices.iter().zip(tidegate_daemon::each(&devices, |dev| Daemon::of(&room, dev))) {
        if let Daemon::Silent(silence) = daemon {
            silent.push(format!("{dev}: {silence}"));
            continue;
        }
        let answer = Client::open(dev)?.request(&json!({"ask": "tc", "words": words, "input": input}))?;
        code = code.max(print_reply(&answer)?);
    }
    ensure!(silent.is_empty(), "{}", silent.join("\n"));
    Ok(code)
}

/// The daemons that these words are for.
fn addressed_daemons(words: &[String], shows: bool) -> anyhow::Result<Vec<String>> {
    let named = words.iter().position(|word| word == "dev").and_then(|at| words.get(at + 1));
    let all = daemons(&[])?;
    match (named, all.as_slice()) {
        // A device of the daemon's without a socket of its own (an ifb) is found if there is one daemon only.
        (Some(dev), [only]) => {
            Ok(vec![if daemons(std::slice::from_ref(dev))?.is_empty() { only.clone() } else { dev.clone() }])
        }
        (Some(dev), _) => Ok(vec![daemon_with(dev)?]),
        (None, []) => {
            bail!("no tidegate daemon runs here; for the kernel's qdiscs use tc")
        }
        (None, [_]) => Ok(all),
        (None, _) if shows => Ok(all),
        (None, several) => bail!("which of them: {}? Say `dev`", several.join(", ")),
    }
}

/// The text of a batch.
fn batch(file: &str) -> anyhow::Result<String> {
    crate::input::policy(file.as_ref()).with_context(|| format!("cannot read {file}"))
}

/// Prints tc's output; returns its exit code.
fn print_reply(answer: &Value) -> anyhow::Result<u8> {
    let text = |member: &str| answer[member].as_str().unwrap_or_default();
    eprint!("{}", text("stderr"));
    crate::output::text(text("stdout"));
    Ok(answer["code"].as_u64().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
