//! Policies that were undone automatically: `status` reports it until the next `tidegate apply`, for a user
//! who looks later.

use crate::state::State;
use crate::time::since_1970;
use serde_json::{Value, json};
use std::fs;
use tidegate_daemon::RuntimeDir;
use tidegate_sys::{boot, output_file};

/// Notes that a policy was undone, and why. That it cannot be noted undoes nothing and is no error.
pub(crate) fn note(runtime: &RuntimeDir, name: &str, state: &State, why: &str) {
    let undone = json!({
        "at": since_1970().as_secs(), "why": why, "policy": state.0["policy"], "devices": state.0["devices"],
        "applied_at": state.0["applied_at"], "boot": boot::id().ok(),
    });
    let _ = output_file::write(&runtime.undone(name), format!("{undone:#}\n").as_bytes());
}

/// What was undone last under a name, since the machine was started.
pub(crate) fn of(runtime: &RuntimeDir, name: &str) -> Option<Value> {
    let undone: Value = serde_json::from_slice(&fs::read(runtime.undone(name)).ok()?).ok()?;
    let is_of_now = boot::id().is_ok_and(|now| undone["boot"] == *now);
    (is_of_now && undone["why"].is_string()).then_some(undone)
}

/// All of it, by name.
pub(crate) fn all(runtime: &RuntimeDir) -> Vec<(String, Value)> {
    let names = runtime.devices("undone").into_iter();
    names.filter_map(|name| of(runtime, &name).map(|undone| (name, undone))).collect()
}

/// Another policy was applied: the outcome of the last one is of the past.
pub(crate) fn forget(runtime: &RuntimeDir, name: &str) {
    let _ = fs::remove_file(runtime.undone(name));
}
