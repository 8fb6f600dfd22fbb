//! What is kept of an applied policy: what it is, what was there before, and what was begun and has not ended.
//!
//! It is kept in `/run`, as are the kernel's queues: after a restart of the machine neither is there.

use crate::job::Job;
use crate::kernel::Before;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;
use tidegate_daemon::RuntimeDir;
use tidegate_daemon::{Context, Result, bail, ensure};
use tidegate_netlink::RawDump;
use tidegate_os::{boot, output_file};

/// A policy of ours, as it was applied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State(pub(crate) Value);

/// A message of netlink: its type, its flags, and what follows its head.
pub(crate) type Raw = (u16, u16, Vec<u8>);

impl State {
    /// What is kept for a device; `None`: tidegate applied nothing there since the machine was started.
    ///
    /// # Errors
    /// The file cannot be read, or is not what tidegate wrote.
    pub(crate) fn read(room: &RuntimeDir, dev: &str) -> Result<Option<State>> {
        let path = room.state(dev);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| path.display().to_string())?,
        };
        let state = serde_json::from_str(&text).map_err(Into::into).and_then(State::of).with_context(|| {
            format!("{} is not what tidegate wrote; remove it if tidegate applied nothing to `{dev}`", path.display())
        })?;
        // Queues and daemons of an earlier run of the machine went with it.
        let earlier = state.0["boot"].as_str().is_some_and(|run| boot::id().is_ok_and(|now| now != run));
        Ok((!earlier).then_some(state))
    }

    /// A state, if it has all that it takes to go back.
    fn of(value: Value) -> Result<State> {
        let state = State(value);
        match state.0["backend"].as_str() {
            Some("kernel") => {
                Before::of(&state.0["before"]).context("`before`")?;
                Before::of(&state.0["original"]).context("`original`")?;
            }
            Some("user") => ensure!(!state.devices().is_empty(), State, "it names no devices"),
            _ => bail!(State, "it does not say which back end was used"),
        }
        if let Some(job) = state.job() {
            Job::of(job)?;
        }
        Ok(state)
    }

    /// The one that a device is part of, whatever device it is kept under.
    pub(crate) fn of_device(room: &RuntimeDir, dev: &str) -> Result<Option<(String, State)>> {
        for name in room.devices("json") {
            if let Some(state) = State::read(room, &name)?
                && (name == dev || state.devices().iter().any(|known| known == dev))
            {
                return Ok(Some((name, state)));
            }
        }
        Ok(None)
    }

    /// All of them, by the names they are kept under.
    pub(crate) fn all(room: &RuntimeDir) -> Result<Vec<(String, State)>> {
        let mut all = Vec::new();
        for name in room.devices("json") {
            all.extend(State::read(room, &name)?.map(|state| (name, state)));
        }
        Ok(all)
    }

    /// Writes it, whole or not at all; when this returns, a power failure does not undo it.
    ///
    /// # Errors
    /// The disk is full, or we may not.
    pub(crate) fn write(&self, room: &RuntimeDir, dev: &str) -> Result<()> {
        room.make().context("the directory for what is applied cannot be made (TIDEGATE_RUN names another)")?;
        let path = room.state(dev);
        write_whole(&path, &format!("{:#}\n", self.0))
            .with_context(|| format!("{}: the state of the policy cannot be written", path.display()))
    }

    /// Forgets it.
    pub(crate) fn forget(room: &RuntimeDir, dev: &str) -> Result<()> {
        remove(&room.state(dev))
    }

    /// The devices that the policy stands on.
    pub(crate) fn devices(&self) -> Vec<String> {
        strings(&self.0["devices"])
    }

    /// `kernel` or `user`.
    pub(crate) fn backend(&self) -> &str {
        self.0["backend"].as_str().unwrap_or("kernel")
    }

    /// What was begun and has not ended.
    pub(crate) fn job(&self) -> Option<&Value> {
        self.0.get("job").filter(|job| !job.is_null())
    }

    /// How long it still waits to be confirmed; `None`: it does not wait.
    pub(crate) fn left_to_confirm(&self) -> Option<Duration> {
        let until = self.0["confirm"]["until_uptime_ms"].as_u64()?;
        Some(Duration::from_millis(until).saturating_sub(boot::uptime()))
    }
}

/// Writes a file so that after a crash at any moment either the old or the new content is there, whole. Only one
/// process at a time may do so.
pub(crate) fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    output_file::remove_unfinished(path);
    output_file::write(path, text.as_bytes())
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).with_context(|| path.display().to_string()),
        _ => Ok(()),
    }
}

/// The texts of a list.
pub fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn octets(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// What a kernel told of a device, kept.
pub(crate) fn kept(told: &RawDump) -> Value {
    let list = |all: &[Vec<u8>]| all.iter().map(|octets| hex(octets)).collect::<Vec<_>>();
    json!({
        "number": told.number,
        "qdiscs": list(&told.qdiscs),
        "classes": list(&told.classes),
        "filters": list(&told.filters),
    })
}

/// The same, back again.
///
/// # Errors
/// It was not kept by us.
pub(crate) fn told(kept: &Value) -> Result<RawDump> {
    let list = |name: &str| -> Option<Vec<Vec<u8>>> {
        kept[name].as_array()?.iter().map(|text| octets(text.as_str()?)).collect()
    };
    let number = kept["number"].as_u64().and_then(|number| u32::try_from(number).ok());
    match (number, list("qdiscs"), list("classes"), list("filters")) {
        (Some(number), Some(qdiscs), Some(classes), Some(filters)) => Ok(RawDump { number, qdiscs, classes, filters }),
        _ => bail!(State, "what stood there before was not kept as it should be"),
    }
}

/// Messages, kept.
pub(crate) fn kept_raw(all: &[Raw]) -> Value {
    Value::from(all.iter().map(|(kind, flags, body)| json!([kind, flags, hex(body)])).collect::<Vec<_>>())
}

/// The same, back again; what was not kept by us is left out.
pub(crate) fn raw(kept: &Value) -> Vec<Raw> {
    let one = |one: &Value| {
        let number = |at: usize| one[at].as_u64().and_then(|number| u16::try_from(number).ok());
        Some((number(0)?, number(1)?, octets(one[2].as_str()?)?))
    };
    kept.as_array().into_iter().flatten().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_comes_back() {
        let before =
            RawDump { number: 7, qdiscs: vec![vec![0, 255, 16]], classes: vec![], filters: vec![vec![1], vec![]] };
        assert_eq!(told(&kept(&before)).expect("it was kept"), before);
        assert!(told(&json!({"number": 7, "qdiscs": ["0"]})).is_err());
        let messages = vec![(1, 2, vec![3, 4]), (5, 6, vec![])];
        assert_eq!(raw(&kept_raw(&messages)), messages);
    }
}
