//! Reverting: to the state before the last policy, or before tidegate applied anything.

use crate::guardian::Guardian;
use crate::job;
use crate::notice::NoticeHandler;
use crate::state::{Does, State};
use crate::{status, user};
use tidegate_daemon::RuntimeDir;
use tidegate_daemon::{ErrorContext, Result, bail};

/// Goes back, watched by a guardian, which continues if this process dies on the way or does not succeed.
fn go(runtime: &RuntimeDir, name: &str, does: Does, report: NoticeHandler<'_>) -> Result<()> {
    let guardian = Guardian::start(name)?;
    let _alone = job::alone(runtime)?;
    let Some(state) = State::read(runtime, name)? else { return Ok(()) };
    let state = match (state.job(), does) {
        // What was interrupted is undone, or ended, which is what is wanted.
        (Some(_), Does::Revert | Does::Apply) => state,
        _ => job::begun(runtime, name, &state, does)?,
    };
    job::go_back(runtime, name, &state, report).with_context(|| {
        format!(
            "`{name}` is not as it was before; its guardian (process {}) goes on trying, and logs to {}",
            guardian.pid(),
            runtime.guard_log(name).display()
        )
    })
}

/// Restores the state before the policy of a device (the only one, if none is named) was applied; returns the
/// policy's name.
///
/// # Errors
/// tidegate applied nothing there, or several policies and no device is named; or not everything could be
/// brought back, then its guardian continues trying.
pub fn revert(dev: Option<&str>, report: NoticeHandler<'_>) -> Result<String> {
    let runtime = RuntimeDir::here()?;
    let chosen = status::chosen(&runtime, dev)?;
    let [(name, _)] = chosen.as_slice() else {
        let names: Vec<&str> = chosen.iter().map(|(name, _)| name.as_str()).collect();
        bail!(
            Busy,
            "tidegate applied policies to {}; say which is to go: tidegate revert DEV",
            names.join(", ")
        );
    };
    go(&runtime, name, Does::Revert, report)?;
    Ok(name.clone())
}

/// What [`down`] came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Down {
    /// The policies and daemons that are gone, by name.
    pub gone: Vec<String>,
    /// The processes of those that followed devices, which ended.
    pub followers: Vec<u32>,
    /// Devices that a process which continues following others leaves alone, with that process.
    pub left_alone: Vec<(String, u32)>,
    /// What could not be taken away, in words.
    pub failed: Vec<String>,
}

/// Removes all that tidegate applied or runs on a device, or on all, and restores the previous state.
///
/// # Errors
/// The state cannot be read. What could not be removed is in [`Down::failed`].
pub fn down(dev: Option<&str>, report: NoticeHandler<'_>) -> Result<Down> {
    let runtime = RuntimeDir::here()?;
    let mut gone = Vec::new();
    let mut failed = Vec::new();
    let mut left_alone = Vec::new();
    let chosen = State::all(&runtime)?.into_iter().filter(|(name, state)| {
        dev.is_none_or(|dev| dev == name || state.devices().iter().any(|known| known == dev))
    });
    for (name, _) in chosen {
        match go(&runtime, &name, Does::Down, report) {
            Ok(()) => gone.push(name),
            Err(error) => failed.push(format!("{error:#}")),
        }
    }
    // Those that start daemons as devices come and go would start the next one.
    let mut followers = Vec::new();
    for pid in runtime.followers().into_iter().filter(|_| dev.is_none()) {
        let is_its = |name: &String| follower_of(&runtime, name) == Some(pid);
        let names: Vec<String> = user::running(&runtime).into_iter().filter(is_its).collect();
        let ended = job::alone(&runtime).and_then(|_alone| {
            user::end_follower(&runtime, pid)?;
            // One that had to be killed with it has left its socket behind.
            names.iter().try_for_each(|name| user::end(&runtime, name))
        });
        match ended {
            Ok(()) => {
                gone.extend(names);
                followers.push(pid);
            }
            Err(error) => failed.push(format!("{error:#}")),
        }
    }
    // Daemons that were started by hand, and what those left that are dead.
    for name in user::running(&runtime).into_iter().filter(|name| dev.is_none_or(|dev| dev == name)) {
        if gone.contains(&name) {
            continue;
        }
        let follower = follower_of(&runtime, &name);
        match job::alone(&runtime).and_then(|_alone| user::end(&runtime, &name)) {
            Ok(()) => {
                left_alone.extend(follower.map(|pid| (name.clone(), pid)));
                gone.push(name);
            }
            Err(error) => failed.push(format!("{error:#}")),
        }
    }
    Ok(Down { gone, followers, left_alone, failed })
}

/// The process that would start the daemon of a device again.
fn follower_of(runtime: &RuntimeDir, name: &str) -> Option<u32> {
    RuntimeDir::holder(&runtime.lock(name)).and_then(|pid| user::follower(runtime, pid))
}
