//! Going back: to what was there before the last policy, or before tidegate applied anything.

use super::guard::Guardian;
use super::job::{self, Does, Job};
use super::options::Which;
use super::state::State;
use super::{status, user};
use crate::daemon::room::Room;
use anyhow::{Context, bail};
use serde_json::json;

/// Writes down that a policy is to go, before anything does.
///
/// # Errors
/// It cannot be written.
pub(super) fn begun(room: &Room, name: &str, state: &State, does: Does) -> anyhow::Result<State> {
    let previous = state.0.get("previous").filter(|previous| !previous.is_null() && does == Does::Revert);
    let mut state = state.clone();
    state.0["job"] = Job::new(does, previous.map(|previous| State(previous.clone()))).kept();
    state.write(room, name)?;
    Ok(state)
}

/// Goes back, watched by a guardian, which goes on if this process dies on the way or does not succeed.
fn go(room: &Room, name: &str, does: Does) -> anyhow::Result<()> {
    let guardian = Guardian::start(name)?;
    let _alone = job::alone(room)?;
    let Some(state) = State::read(room, name)? else { return Ok(()) };
    let state = match (state.job(), does) {
        // What was interrupted is undone, or ended, which is what is wanted.
        (Some(_), Does::Revert | Does::Apply) => state,
        _ => begun(room, name, &state, does)?,
    };
    job::go_back(room, name, &state).with_context(|| {
        format!(
            "`{name}` is not as it was before; its guardian (process {}) goes on trying, and logs to {}",
            guardian.pid(),
            room.guard_log(name).display()
        )
    })
}

/// Back to what was there before the policy was applied.
pub(super) fn revert(dev: Option<&str>, as_json: bool) -> anyhow::Result<bool> {
    let room = Room::here()?;
    let chosen = status::chosen(&room, dev)?;
    let [(name, _)] = chosen.as_slice() else {
        let names: Vec<&str> = chosen.iter().map(|(name, _)| name.as_str()).collect();
        bail!("tidegate applied policies to {}; say which is to go: tidegate revert DEV", names.join(", "));
    };
    go(&room, name, Does::Revert)?;
    told("reverted", std::slice::from_ref(name), as_json);
    Ok(true)
}

/// Takes away all that is ours.
pub(super) fn down(which: &Which) -> anyhow::Result<bool> {
    let room = Room::here()?;
    let mut gone = Vec::new();
    let mut failed = Vec::new();
    let mut followed = Vec::new();
    let chosen = State::all(&room)?
        .into_iter()
        .filter(|(name, state)| which.dev.as_ref().is_none_or(|dev| dev == name || state.devices().contains(dev)));
    for (name, _) in chosen {
        match go(&room, &name, Does::Down) {
            Ok(()) => gone.push(name),
            Err(error) => failed.push(format!("{error:#}")),
        }
    }
    // Those that start daemons as devices come and go would start the next one.
    let mut followers = Vec::new();
    for pid in room.followers().into_iter().filter(|_| which.dev.is_none()) {
        let is_its = |name: &String| follower_of(&room, name) == Some(pid);
        let names: Vec<String> = user::running(&room).into_iter().filter(is_its).collect();
        let ended = job::alone(&room).and_then(|_alone| {
            user::end_follower(&room, pid)?;
            // One that had to be killed with it has left its socket behind.
            names.iter().try_for_each(|name| user::end(&room, name))
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
    for name in user::running(&room).into_iter().filter(|name| which.dev.as_ref().is_none_or(|dev| dev == name)) {
        if gone.contains(&name) {
            continue;
        }
        let follower = follower_of(&room, &name);
        match job::alone(&room).and_then(|_alone| user::end(&room, &name)) {
            Ok(()) => {
                followed.extend(follower.map(|pid| (name.clone(), pid)));
                gone.push(name);
            }
            Err(error) => failed.push(format!("{error:#}")),
        }
    }
    if !failed.is_empty() {
        if which.json {
            println!("{:#}", json!({"down": gone, "failed": failed}));
        }
        bail!("{}", failed.join("\n"));
    }
    if gone.is_empty() && followers.is_empty() && !which.json {
        eprintln!("tidegate down: tidegate applied nothing {}", status::where_to(which.dev.as_deref()));
        return Ok(false);
    }
    if which.json {
        println!("{:#}", json!({"down": gone, "followers": followers}));
    } else {
        told_down(&gone, &followers, &followed);
    }
    Ok(!gone.is_empty() || !followers.is_empty())
}

/// The process that would start the daemon of a device again.
fn follower_of(room: &Room, name: &str) -> Option<u32> {
    Room::holder(&room.lock(name)).and_then(|pid| user::follower(room, pid))
}

/// `followers`: those that ended. `followed`: devices that one which goes on leaves alone.
fn told_down(gone: &[String], followers: &[u32], followed: &[(String, u32)]) {
    if !gone.is_empty() {
        println!("down: {}", gone.join(", "));
    }
    for pid in followers {
        println!("ended: the daemon that follows devices (pid {pid})");
    }
    for (name, pid) in followed {
        println!(
            "the daemon that follows devices (pid {pid}) leaves {name} alone until {name} comes again or that daemon is started again; \
             `tidegate down` ends it"
        );
    }
}

fn told(what: &str, names: &[String], as_json: bool) {
    if as_json {
        println!("{:#}", json!({what: names}));
    } else {
        println!("{what}: {}", names.join(", "));
    }
}
