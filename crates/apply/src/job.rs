//! Jobs: what is written down before the first change, so that the next process can go back if it was interrupted.
//!
//! ```text
//! apply:         state + job ─▶ changes ─▶ state             interrupted: back to `before`, and `then` is the state
//! revert, down:  state + job ─▶ going back ─▶ then, or none  interrupted: the same again
//! ```
//! Going back compares what is there with what was there, so it can be interrupted anywhere and begun again.

use crate::kernel::{Arm, Before};
use crate::notice::Report;
use crate::state::State;
use crate::time::since_1970;
use crate::{kept, user};
use serde_json::{Value, json};
use std::time::Duration;
use tidegate_daemon::RuntimeDir;
use tidegate_daemon::{Context, Result, bail, error};
use tidegate_os::service::Alone;

/// How long a command waits for another one that is at work in the same namespace.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    /// A policy is applied; if that does not end, it is undone.
    Apply,
    /// Back to what was there before the policy.
    Revert,
    /// Back to what was there before tidegate applied anything.
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

/// The right to change something in this namespace, which one process has at a time.
///
/// # Errors
/// Another one has it, for longer than somebody may wait.
pub(crate) fn alone(room: &RuntimeDir) -> Result<Alone> {
    room.make().context("the directory for what is applied cannot be made (TIDEGATE_RUN names another)")?;
    let path = room.work();
    let taken = RuntimeDir::take_within(&path, PATIENCE).with_context(|| path.display().to_string())?;
    taken.ok_or_else(|| match RuntimeDir::holder(&path) {
        Some(pid) => error!(Busy, "another tidegate (process {pid}) is at work here; wait for it"),
        None => error!(Busy, "another tidegate was at work here; try again"),
    })
}

/// Goes back as a state's job says: an apply that did not end is undone, a revert that did not end is ended. Whoever calls this is [`alone`].
///
/// # Errors
/// Not everything is as it was; the job is still there, for the next one to try.
pub(crate) fn go_back(room: &RuntimeDir, name: &str, state: &State, report: Report<'_>) -> Result<()> {
    went_back(room, name, state, report).inspect_err(|error| {
        // For `status`, until it has succeeded. What cannot be written down is in the guardian's log all the same.
        let error = json!(format!("{error:#}"));
        if state.0["job"]["error"] != error && state.0["job"].is_object() {
            let mut state = state.clone();
            state.0["job"]["error"] = error;
            let _ = state.write(room, name);
        }
    })
}

fn went_back(room: &RuntimeDir, name: &str, state: &State, report: Report<'_>) -> Result<()> {
    let job = Job::of(state.job().context("nothing was begun")?)?;
    if state.backend() == "user" {
        let daemon = &state.0["before"]["daemon"];
        let before = Some(daemon).filter(|daemon| job.does != Does::Down && !daemon.is_null());
        user::go_back((room, name), &state.devices(), before, report)?;
    } else {
        let before = match job.does {
            Does::Down => &state.0["original"],
            Does::Apply | Does::Revert => &state.0["before"],
        };
        let before = Before::of(before)?;
        let mut arm = Arm::open()?;
        arm.undo(&before).context("not everything could be brought back")?;
        arm.look_back(&before).context("not everything is as it was")?;
    }
    match &job.then {
        Some(then) => then.write(room, name)?,
        None => State::forget(room, name)?,
    }
    match (job.does, &job.then) {
        // What comes back after a restart was not changed by a policy that was never applied for good.
        (Does::Apply, _) => Ok(()),
        (_, Some(then)) if then.0["by_hand"] == true => Ok(()),
        // Nobody has said that it may come back after a restart.
        (_, Some(then)) if then.left_to_confirm().is_some() => match state.left_to_confirm() {
            Some(_) => Ok(()),
            None => kept::forget(name),
        },
        (_, Some(then)) => kept::keep(name, then),
        (_, None) => kept::forget(name),
    }
}

/// Ends what an earlier process began and did not end: what that was. Whoever calls this is [`alone`].
///
/// # Errors
/// As for [`go_back`].
pub(crate) fn resume(room: &RuntimeDir, name: &str, report: Report<'_>) -> Result<Option<Does>> {
    let Some(state) = State::read(room, name)? else { return Ok(None) };
    let Some(job) = state.job() else { return Ok(None) };
    let does = Job::of(job)?.does;
    go_back(room, name, &state, report).with_context(|| {
        format!("`tidegate {}` was interrupted on `{name}`, and what it did could not be undone", does.name())
    })?;
    Ok(Some(does))
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
