//! What of ours stands where.

use super::options::Which;
use super::state::{State, strings};
use super::user;
use crate::daemon::room::Room;
use anyhow::ensure;
use serde_json::{Value, json};

/// What was applied to a device, or to all.
///
/// # Errors
/// Nothing of ours stands there.
pub(super) fn chosen(room: &Room, dev: Option<&str>) -> anyhow::Result<Vec<(String, State)>> {
    let all = State::all(room)?;
    let chosen: Vec<(String, State)> = all
        .into_iter()
        .filter(|(name, state)| dev.is_none_or(|dev| dev == name || state.devices().iter().any(|known| known == dev)))
        .collect();
    ensure!(
        !chosen.is_empty(),
        "nothing of ours stands {}",
        dev.map_or("anywhere".into(), |dev| format!("on `{dev}`"))
    );
    Ok(chosen)
}

/// Plays `tidegate status`.
pub(super) fn command(which: &Which) -> anyhow::Result<bool> {
    let room = Room::here()?;
    let fits =
        |name: &str, devices: &[String]| which.dev.as_ref().is_none_or(|dev| dev == name || devices.contains(dev));
    let mut all: Vec<Value> = Vec::new();
    for (name, state) in State::all(&room)?.into_iter().filter(|(name, state)| fits(name, &state.devices())) {
        let mut told = json!({"name": name});
        for part in ["backend", "why", "devices", "policy", "applied_at", "confirm"] {
            told[part] = state.0[part].clone();
        }
        if state.backend() == "user" {
            told["daemon"] = user::status(&name).unwrap_or(Value::Null);
        }
        all.push(told);
    }
    let known: Vec<String> = all.iter().flat_map(|one| strings(&one["devices"])).collect();
    for name in room.devices("sock").into_iter().filter(|name| fits(name, &[]) && !known.contains(name)) {
        if let Some(daemon) = user::status(&name) {
            all.push(json!({"name": name, "backend": "user", "devices": [name], "daemon": daemon}));
        }
    }
    if which.json {
        println!("{:#}", Value::from(all.clone()));
    } else if all.is_empty() {
        println!("nothing of ours stands {}", which.dev.as_deref().unwrap_or("anywhere"));
    } else {
        all.iter().for_each(|one| print!("{}", text(one)));
    }
    Ok(!all.is_empty())
}

fn text(one: &Value) -> String {
    let name = one["name"].as_str().unwrap_or_default();
    let mut out = format!("{name}: {}", strings(&one["policy"]).join(" "));
    let devices = strings(&one["devices"]);
    if devices != [name] {
        out += &format!(" (on {})", devices.join(", "));
    }
    out.push('\n');
    if let Some(why) = one["why"].as_str() {
        out += &format!("  {why}\n");
    }
    if one["backend"] == "user" {
        match one["daemon"]["pid"].as_u64() {
            Some(pid) => out += &format!("  process {pid}\n"),
            None => out += "  its process is gone; packets pass by; `tidegate apply` starts it again\n",
        }
    }
    if let Some(seconds) = one["confirm"]["seconds"].as_u64() {
        out += &format!("  waits to be confirmed (`tidegate confirm {name}`), within {seconds} s of its application\n");
    }
    out
}
