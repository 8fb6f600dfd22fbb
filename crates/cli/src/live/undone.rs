//! What was undone though nobody asked for it at that moment: `status` says so until the next `tidegate apply`, for
//! the user who looks later.

use super::job::since_1970;
use super::state::{State, strings};
use super::status::{long, utc};
use crate::daemon::room::Room;
use serde_json::{Value, json};
use std::fs;
use tidegate_os::{boot, output_file};

/// Notes that a policy was undone, and why. That it cannot be noted undoes nothing and is no error.
pub(super) fn note(room: &Room, name: &str, state: &State, why: &str) {
    let undone = json!({
        "at": since_1970().as_secs(), "why": why, "policy": state.0["policy"], "devices": state.0["devices"],
        "applied_at": state.0["applied_at"], "boot": boot::id().ok(),
    });
    let _ = output_file::write(&room.undone(name), format!("{undone:#}\n").as_bytes());
}

/// What was undone last under a name, since the machine was started.
pub(super) fn of(room: &Room, name: &str) -> Option<Value> {
    let undone: Value = serde_json::from_slice(&fs::read(room.undone(name)).ok()?).ok()?;
    let is_of_now = boot::id().is_ok_and(|now| undone["boot"] == *now);
    (is_of_now && undone["why"].is_string()).then_some(undone)
}

/// All of it, by name.
pub(super) fn all(room: &Room) -> Vec<(String, Value)> {
    let names = room.devices("undone").into_iter();
    names.filter_map(|name| of(room, &name).map(|undone| (name, undone))).collect()
}

/// Another policy was applied: what became of the last one is of the past.
pub(super) fn forget(room: &Room, name: &str) {
    let _ = fs::remove_file(room.undone(name));
}

/// The line of `status`; nothing where nothing was undone.
pub(super) fn text(undone: &Value) -> String {
    let Some(at) = undone["at"].as_u64() else { return String::new() };
    let ago = since_1970().as_secs().saturating_sub(at);
    format!(
        "  undone {} ({} ago): {}; {}\n",
        utc(at),
        long(ago),
        strings(&undone["policy"]).join(" "),
        undone["why"].as_str().unwrap_or_default()
    )
}
