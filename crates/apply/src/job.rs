//! Jobs: what is written down before the first change, so that the next process can go back if it was
//! interrupted.
//!
//! ```text
//! apply:         state + job ─▶ changes ─▶ state             interrupted: back to `before`, and `then` is the state
//! revert, down:  state + job ─▶ going back ─▶ then, or none  interrupted: the same again
//! ```
//! A revert compares the present state with the previous one, so it can be interrupted anywhere and begun
//! again.

use crate::before::Before;
use crate::kernel::Arm;
use crate::notice::NoticeHandler;
use crate::state::{Does, Job, State};
use crate::{kept, user};
use serde_json::json;
use std::time::Duration;
use tidegate_daemon::RuntimeDir;
use tidegate_daemon::{ErrorContext, Result, error};
use tidegate_sys::service::Alone;

/// How long a command waits for another one that is at work in the same namespace.
const PATIENCE: Duration = Duration::from_secs(10);

/// The right to change something in this namespace, which one process has at a time.
///
/// # Errors
/// Another process has it, for longer than the wait.
pub(crate) fn alone(runtime: &RuntimeDir) -> Result<Alone> {
    runtime
        .make()
        .context("the directory for what is applied cannot be made (TIDEGATE_RUN names another)")?;
    let path = runtime.work();
    let taken = RuntimeDir::take_within(&path, PATIENCE).with_context(|| path.display().to_string())?;
    taken.ok_or_else(|| match RuntimeDir::holder(&path) {
        Some(pid) => error!(Busy, "another tidegate (process {pid}) is at work here; wait for it"),
        None => error!(Busy, "another tidegate was at work here; try again"),
    })
}

/// Reverts as a state's job requires: an apply that did not end is undone, a revert that did not end is
/// finished. The caller must hold [`alone`].
///
/// # Errors
/// Not everything is as it was; the job is still there, for the next one to try.
pub(crate) fn go_back(
    runtime: &RuntimeDir,
    name: &str,
    state: &State,
    report: NoticeHandler<'_>,
) -> Result<()> {
    went_back(runtime, name, state, report).inspect_err(|error| {
        // For `status`, until it has succeeded. What cannot be written down is in the guardian's log all the
        // same.
        let error = json!(format!("{error:#}"));
        if state.0["job"]["error"] != error && state.0["job"].is_object() {
            let mut state = state.clone();
            state.0["job"]["error"] = error;
            let _ = state.write(runtime, name);
        }
    })
}

/// The name of a job that is being undone: once and for all.
fn renamed_token(token: &str) -> String {
    const UNDONE: &str = "-undone";
    format!("{}{UNDONE}", token.strip_suffix(UNDONE).unwrap_or(token))
}

fn went_back(runtime: &RuntimeDir, name: &str, state: &State, report: NoticeHandler<'_>) -> Result<()> {
    let job = Job::of(state.job().context("nothing was begun")?)?;
    if state.backend() == "user" {
        // A daemon that is still starting for this job looks for its token when it has the lock: from now on
        // it finds another, and gives up. One that looked before has the lock, and is ended.
        let mut renamed = state.clone();
        renamed.0["job"]["token"] = json!(renamed_token(&job.token));
        renamed.write(runtime, name)?;
        let daemon = &state.0["before"]["daemon"];
        let before = Some(daemon).filter(|daemon| job.does != Does::Down && !daemon.is_null());
        user::go_back((runtime, name), &state.devices(), before, report)?;
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
        Some(then) => then.write(runtime, name)?,
        None => State::forget(runtime, name)?,
    }
    match (job.does, &job.then) {
        // What comes back after a restart was not changed by a policy that was never applied for good.
        (Does::Apply, _) => Ok(()),
        (_, Some(then)) if then.0["by_hand"] == true => Ok(()),
        // Nothing allows it to come back after a restart.
        (_, Some(then)) if then.left_to_confirm().is_some() => match state.left_to_confirm() {
            Some(_) => Ok(()),
            None => kept::forget(name),
        },
        (_, Some(then)) => kept::keep(name, then),
        (_, None) => kept::forget(name),
    }
}

/// Finishes what an earlier process began and did not finish; returns what that was. The caller must hold
/// [`alone`].
///
/// # Errors
/// As for [`go_back`].
pub(crate) fn resume(runtime: &RuntimeDir, name: &str, report: NoticeHandler<'_>) -> Result<Option<Does>> {
    let Some(state) = State::read(runtime, name)? else { return Ok(None) };
    let Some(job) = state.job() else { return Ok(None) };
    let does = Job::of(job)?.does;
    go_back(runtime, name, &state, report).with_context(|| {
        format!("`tidegate {}` was interrupted on `{name}`, and what it did could not be undone", does.name())
    })?;
    Ok(Some(does))
}

/// Writes down that a policy is to go, before anything does.
///
/// # Errors
/// It cannot be written.
pub(crate) fn begun(runtime: &RuntimeDir, name: &str, state: &State, does: Does) -> Result<State> {
    let previous = state.0.get("previous").filter(|previous| !previous.is_null() && does == Does::Revert);
    let mut state = state.clone();
    state.0["job"] = Job::new(does, previous.map(|previous| State(previous.clone()))).kept();
    state.write(runtime, name)?;
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::renamed_token;

    #[test]
    fn a_job_that_is_undone_has_another_name_however_often_it_is_tried() {
        let once = renamed_token("17-1");
        assert_ne!(once, "17-1");
        assert_eq!(renamed_token(&once), once);
    }
}
