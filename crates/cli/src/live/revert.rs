//! Going back: to what stood before the last policy, or before anything of ours.

use super::kernel::{Arm, Before};
use super::options::Which;
use super::state::State;
use super::{status, user};
use crate::daemon::room::Room;
use anyhow::{Context, bail};
use serde_json::json;
use tidegate_os::service::Alone;

/// Back to what stood before the policy was applied.
pub(super) fn revert(dev: Option<&str>, as_json: bool) -> anyhow::Result<bool> {
    let room = Room::here()?;
    let chosen = status::chosen(&room, dev)?;
    let [(name, state)] = chosen.as_slice() else {
        let names: Vec<&str> = chosen.iter().map(|(name, _)| name.as_str()).collect();
        bail!("policies of ours stand on {}; say which is to go: tidegate revert DEV", names.join(", "));
    };
    let previous = state.0.get("previous").filter(|previous| !previous.is_null());
    if state.backend() == "user" {
        match previous {
            Some(previous) => user::back(name, previous)?,
            None => user::stop(name)?,
        }
    } else {
        let _alone = alone(&room, name)?;
        back(&Before::of(&state.0["before"])?)?;
    }
    match previous {
        Some(previous) => State(previous.clone()).write(&room, name)?,
        None => State::forget(&room, name)?,
    }
    told("reverted", std::slice::from_ref(name), as_json);
    Ok(true)
}

/// Takes away all that is ours.
pub(super) fn down(which: &Which) -> anyhow::Result<bool> {
    let room = Room::here()?;
    let mut gone = Vec::new();
    let chosen = State::all(&room)?
        .into_iter()
        .filter(|(name, state)| which.dev.as_ref().is_none_or(|dev| dev == name || state.devices().contains(dev)));
    for (name, state) in chosen {
        if state.backend() == "user" {
            // It may have ended by itself.
            if user::status(&name).is_some() {
                user::stop(&name)?;
            }
        } else {
            let _alone = alone(&room, &name)?;
            back(&Before::of(&state.0["original"])?)?;
        }
        State::forget(&room, &name)?;
        gone.push(name);
    }
    // Daemons that were started by hand.
    for name in room.devices("sock").into_iter().filter(|name| which.dev.as_ref().is_none_or(|dev| dev == name)) {
        if !gone.contains(&name) && user::status(&name).is_some() {
            user::stop(&name)?;
            gone.push(name);
        }
    }
    if gone.is_empty() && !which.json {
        eprintln!("tidegate down: nothing of ours stands {}", which.dev.as_deref().unwrap_or("anywhere"));
        return Ok(false);
    }
    told("down", &gone, which.json);
    Ok(!gone.is_empty())
}

fn alone(room: &Room, name: &str) -> anyhow::Result<Alone> {
    let path = room.lock(name);
    let taken = Alone::take(&path).with_context(|| path.display().to_string())?;
    taken.with_context(|| format!("another tidegate is at work on `{name}`; wait for it"))
}

fn back(before: &Before) -> anyhow::Result<()> {
    Arm::open()?.undo(before).context("not everything could be brought back")
}

fn told(what: &str, names: &[String], as_json: bool) {
    if as_json {
        println!("{:#}", json!({what: names}));
    } else {
        println!("{what}: {}", names.join(", "));
    }
}
