//! The stored state of an applied policy: the policy, the previous state, and what was begun and has not
//! ended.
//!
//! It is kept in `/run`, as are the kernel's queues: after a restart of the machine neither is there.

use crate::before::Before;
use crate::record::{self, strings, write_whole};
use crate::time::since_1970;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;
use tidegate_daemon::RuntimeDir;
use tidegate_daemon::{ErrorContext, Result, bail, ensure};
use tidegate_sys::boot;

/// A policy of tidegate's, as it was applied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State(pub(crate) Value);

impl State {
    /// What is kept for a device; `None`: tidegate applied nothing there since the machine was started.
    ///
    /// # Errors
    /// The file cannot be read, or is not what tidegate wrote.
    pub(crate) fn read(runtime: &RuntimeDir, dev: &str) -> Result<Option<State>> {
        let path = runtime.state(dev);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| path.display().to_string())?,
        };
        let state = record::document(&text).map_err(Into::into).and_then(State::of).with_context(|| {
            format!(
                "{} is not what tidegate wrote; remove it if tidegate applied nothing to `{dev}`",
                path.display()
            )
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
    pub(crate) fn of_device(runtime: &RuntimeDir, dev: &str) -> Result<Option<(String, State)>> {
        for name in runtime.devices("json") {
            if let Some(state) = State::read(runtime, &name)?
                && (name == dev || state.devices().iter().any(|known| known == dev))
            {
                return Ok(Some((name, state)));
            }
        }
        Ok(None)
    }

    /// All of them, by the names they are kept under.
    pub(crate) fn all(runtime: &RuntimeDir) -> Result<Vec<(String, State)>> {
        let mut all = Vec::new();
        for name in runtime.devices("json") {
            all.extend(State::read(runtime, &name)?.map(|state| (name, state)));
        }
        Ok(all)
    }

    /// Writes it, whole or not at all; when this returns, a power failure does not undo it.
    ///
    /// # Errors
    /// The disk is full, or we may not.
    pub(crate) fn write(&self, runtime: &RuntimeDir, dev: &str) -> Result<()> {
        runtime
            .make()
            .context("the directory for what is applied cannot be made (TIDEGATE_RUN names another)")?;
        let path = runtime.state(dev);
        write_whole(&path, &format!("{:#}\n", self.0))
            .with_context(|| format!("{}: the state of the policy cannot be written", path.display()))
    }

    /// Removes the state file of a device.
    pub(crate) fn forget(runtime: &RuntimeDir, dev: &str) -> Result<()> {
        remove(&runtime.state(dev))
    }

    /// The devices that the policy is applied to.
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

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| path.display().to_string())
        }
        _ => Ok(()),
    }
}

/// What was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    /// A policy is applied; if that does not end, it is undone.
    Apply,
    /// Restores the state before the policy.
    Revert,
    /// Restores the state before tidegate applied anything.
    Down,
}

impl Does {
    /// As it is written, and shown.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Does::Apply => "apply",
            Does::Revert => "revert",
            Does::Down => "down",
        }
    }
}

/// A job of a process that may have died meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Job {
    pub(crate) does: Does,
    /// Tells it from every other.
    pub(crate) token: String,
    /// The state when it was gone back; `None`: nothing of tidegate's is left.
    pub(crate) then: Option<State>,
}

impl Job {
    /// A new one, of this process.
    pub(crate) fn new(does: Does, then: Option<State>) -> Job {
        Job { does, token: format!("{}-{}", std::process::id(), since_1970().as_nanos()), then }
    }

    /// Out of a state.
    ///
    /// # Errors
    /// It is not what tidegate wrote.
    pub(crate) fn of(kept: &Value) -> Result<Job> {
        let does = match kept["does"].as_str() {
            Some("apply") => Does::Apply,
            Some("revert") => Does::Revert,
            Some("down") => Does::Down,
            _ => bail!(State, "its job is none"),
        };
        let token = kept["token"].as_str().context("its job has no name")?.to_owned();
        let then = Some(&kept["then"]).filter(|then| !then.is_null()).map(|then| State(then.clone()));
        Ok(Job { does, token, then })
    }

    /// For a state.
    pub(crate) fn kept(&self) -> Value {
        json!({
            "does": self.does.name(), "token": self.token, "pid": std::process::id(), "since": since_1970().as_secs(),
            "then": self.then.as_ref().map(|then| then.0.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_read_as_it_was_written() {
        let then = State(json!({"backend": "user", "devices": ["eth0"]}));
        for (does, then) in [(Does::Apply, Some(then)), (Does::Revert, None), (Does::Down, None)] {
            let job = Job::new(does, then);
            assert_eq!(Job::of(&job.kept()).expect("it was written"), job);
        }
        assert!(Job::of(&json!({"does": "dance", "token": "1"})).is_err());
        assert!(Job::of(&json!({"does": "apply"})).is_err());
    }
}
