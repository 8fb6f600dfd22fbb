//! Undone unless confirmed: a process of our own that outlives the terminal, and waits.

use super::options::{Revert, Which};
use super::state::State;
use super::{revert, status};
use crate::daemon::room::Room;
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tidegate_os::service;

/// How often it is looked whether a confirmation came.
const LOOK: Duration = Duration::from_millis(100);

/// What a state says of a policy that waits.
pub(super) fn awaited(seconds: u64) -> Value {
    let begun = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    // The name tells one application from the next.
    json!({"seconds": seconds, "name": format!("{}-{}", std::process::id(), begun.as_nanos())})
}

/// Starts the one who waits, if the state says that somebody shall.
///
/// # Errors
/// No process can be started.
pub(super) fn start(state: &Value, dev: &str) -> anyhow::Result<()> {
    let (Some(seconds), Some(name)) = (state["confirm"]["seconds"].as_u64(), state["confirm"]["name"].as_str()) else {
        return Ok(());
    };
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["revert", dev, "--unless-confirmed", &seconds.to_string(), name]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    service::detached(&mut command).spawn().context("who undoes it unless it is confirmed cannot be started")?;
    Ok(())
}

/// Waits, and reverts unless a confirmation comes.
pub(super) fn watch(options: &Revert, words: &[String]) -> anyhow::Result<bool> {
    let (Some(dev), [seconds, name]) = (&options.dev, words) else { bail!("this is for `tidegate apply --confirm`") };
    let (room, patience) = (Room::here()?, Duration::from_secs(seconds.parse()?));
    let begun = Instant::now();
    let waits = || -> anyhow::Result<bool> {
        Ok(State::read(&room, dev)?.is_some_and(|state| state.awaited() == Some(name.as_str())))
    };
    while begun.elapsed() < patience {
        if !waits()? {
            return Ok(true);
        }
        std::thread::sleep(LOOK.min(patience.saturating_sub(begun.elapsed())));
    }
    // The answer may have come at the last moment.
    if waits()? { revert::revert(Some(dev), false) } else { Ok(true) }
}

/// Plays `tidegate confirm`.
pub(super) fn confirm(which: &Which) -> anyhow::Result<bool> {
    let room = Room::here()?;
    let mut confirmed = Vec::new();
    for (name, state) in status::chosen(&room, which.dev.as_deref())? {
        if state.awaited().is_some() {
            let mut state = state;
            state.0["confirm"] = Value::Null;
            state.write(&room, &name)?;
            confirmed.push(name);
        }
    }
    if which.json {
        println!("{:#}", json!({"confirmed": confirmed}));
    } else if confirmed.is_empty() {
        eprintln!("tidegate confirm: nothing waits to be confirmed");
    } else {
        println!("confirmed: {}", confirmed.join(", "));
    }
    Ok(!confirmed.is_empty())
}
