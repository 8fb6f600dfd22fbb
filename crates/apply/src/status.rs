//! What tidegate applied, and whether it is still there: the state beside the kernel and the daemon.

use crate::guardian;
use crate::kernel::{Arm, Drift};
use crate::record::strings;
use crate::state::State;
use crate::{undone, user};
use serde_json::{Value, json};
use std::time::Duration;
use tidegate_daemon::Client;
use tidegate_daemon::Daemon;
use tidegate_daemon::RuntimeDir;
use tidegate_daemon::apply_command;
use tidegate_daemon::{Result, ensure};
use tidegate_daemon::{names_from_json, names_to_json};
use tidegate_sys::{link_monitor, process};

/// A packet later than this makes a warning: behind it the engine gives up on making up for what it missed.
pub const LATE_NS: u64 = tidegate_dataplane::engine::CREDIT.0;
/// How long a daemon may take to compare what it runs with what it was given.
const COMPARE: Duration = Duration::from_secs(10);
/// The exit code of `tidegate status` where tidegate applied nothing.
pub const NOTHING: u8 = 1;

/// How a policy is. The exit code of `status` is that of the worst one; what is further down is worse.
///
/// ```
/// use tidegate_apply::status::PolicyHealth;
///
/// let health = [PolicyHealth::Waiting, PolicyHealth::Drifted, PolicyHealth::Installed];
/// let worst = health.into_iter().max().unwrap();
/// assert_eq!((worst.name(), worst.code(), worst.is_up()), ("drifted", 5, false));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum PolicyHealth {
    /// As it was applied.
    Installed,
    /// As it was applied, and undone unless it is confirmed.
    Waiting,
    /// Something was begun and has not ended.
    InProgress,
    /// Not as it was applied.
    Drifted,
    /// Its device is not there.
    DeviceGone,
    /// Its daemon does not run: packets pass unqueued.
    DaemonDead,
    /// Its daemon runs and does not answer.
    DaemonSilent,
    /// Another problem: packets do not come to the daemon, or no guardian watches a policy that waits.
    Trouble,
}

impl PolicyHealth {
    /// As it is shown.
    pub fn name(self) -> &'static str {
        match self {
            PolicyHealth::Installed => "installed",
            PolicyHealth::Waiting => "waiting for confirmation",
            PolicyHealth::InProgress => "in progress",
            PolicyHealth::Drifted => "drifted",
            PolicyHealth::DeviceGone => "device gone",
            PolicyHealth::DaemonDead => "daemon dead",
            PolicyHealth::DaemonSilent => "daemon not answering",
            PolicyHealth::Trouble => "in trouble",
        }
    }

    /// Is the policy at work, for all that is known? Not: is everything as it should be, which a job that was
    /// interrupted leaves open.
    pub fn is_up(self) -> bool {
        self < PolicyHealth::Drifted
    }

    /// Is everything as it should be?
    pub fn is_well(self) -> bool {
        matches!(self, PolicyHealth::Installed | PolicyHealth::Waiting)
    }

    /// Its number in documents; a worse one is larger. (2 is not used.)
    pub fn code(self) -> u8 {
        match self {
            PolicyHealth::Installed => 0,
            PolicyHealth::Waiting => 3,
            PolicyHealth::InProgress => 4,
            PolicyHealth::Drifted => 5,
            PolicyHealth::DeviceGone => 6,
            PolicyHealth::DaemonDead => 7,
            PolicyHealth::DaemonSilent => 8,
            PolicyHealth::Trouble => 9,
        }
    }
}

/// A policy as it is now.
#[derive(Clone, Debug)]
pub struct Health {
    /// The name that it is kept under: a device's.
    pub name: String,
    /// How it is.
    pub condition: PolicyHealth,
    /// The policy's devices.
    pub devices: Vec<String>,
    /// `kernel` or `user`.
    pub backend: String,
    /// Milliseconds until it is undone unless it is confirmed.
    pub revert_in: Option<Duration>,
    /// What differs from what was applied, for people.
    pub drift: Vec<String>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// How often its daemon was started since the machine was.
    pub starts: Option<u64>,
    /// The daemon's own status.
    daemon: Value,
    /// The process of a daemon that does not answer, where that is known.
    pub silent_pid: Option<u32>,
    /// The process that goes back unless the policy is confirmed.
    guardian: Option<u32>,
    /// An earlier policy that was undone automatically.
    undone: Option<Value>,
    state: Value,
}

/// What was applied to a device, or to all.
///
/// # Errors
/// Nothing of tidegate's is there.
pub(crate) fn chosen(runtime: &RuntimeDir, dev: Option<&str>) -> Result<Vec<(String, State)>> {
    let all = State::all(runtime)?;
    let chosen: Vec<(String, State)> = all
        .into_iter()
        .filter(|(name, state)| {
            dev.is_none_or(|dev| dev == name || state.devices().iter().any(|known| known == dev))
        })
        .collect();
    ensure!(!chosen.is_empty(), NotApplied, "tidegate applied nothing {}", where_to(dev));
    Ok(chosen)
}

/// Where nothing was applied.
pub fn where_to(dev: Option<&str>) -> String {
    dev.map_or("here".into(), |dev| format!("to `{dev}`"))
}

/// What is to be looked at: a policy by its state, or a daemon that was started by hand.
enum Target {
    Applied(String, State),
    ByHand(String),
}

/// All policies of this network namespace, or those of a device, and daemons that were started by hand. All
/// are looked at together, so those that do not answer take [`tidegate_daemon::ANSWER`] once, not once each.
///
/// # Errors
/// A state cannot be read.
pub fn healths(dev: Option<&str>) -> Result<Vec<Health>> {
    let runtime = RuntimeDir::here()?;
    let fits = |name: &str, devices: &[String]| {
        dev.is_none_or(|dev| dev == name || devices.iter().any(|known| known == dev))
    };
    let applied = State::all(&runtime)?.into_iter().filter(|(name, state)| fits(name, &state.devices()));
    let mut targets: Vec<Target> = applied.map(|(name, state)| Target::Applied(name, state)).collect();
    let known = |name: &String| {
        targets
            .iter()
            .any(|target| matches!(target, Target::Applied(_, state) if state.devices().contains(name)))
    };
    // A second name of the same socket is no second daemon.
    let is_another =
        |name: &String| std::fs::symlink_metadata(runtime.socket(name)).is_ok_and(|at| at.is_symlink());
    let by_hand: Vec<String> = user::running(&runtime)
        .into_iter()
        .filter(|name| fits(name, &[]) && !known(name) && !is_another(name))
        .collect();
    targets.extend(by_hand.into_iter().map(Target::ByHand));
    Ok(tidegate_daemon::each(&targets, |target| match target {
        Target::Applied(name, state) => Health::of(&runtime, name.clone(), state),
        Target::ByHand(name) => Health::by_hand(&runtime, name.clone()),
    }))
}

impl Health {
    /// One of which nothing is known yet.
    fn new(name: String, devices: Vec<String>, backend: &str) -> Health {
        Health {
            name,
            condition: PolicyHealth::Installed,
            devices,
            backend: backend.to_owned(),
            revert_in: None,
            drift: Vec::new(),
            last_error: None,
            starts: None,
            daemon: Value::Null,
            silent_pid: None,
            guardian: None,
            undone: None,
            state: Value::Null,
        }
    }

    fn of(runtime: &RuntimeDir, name: String, state: &State) -> Health {
        let mut health = Health {
            revert_in: state.left_to_confirm(),
            undone: undone::of(runtime, &name),
            state: state.0.clone(),
            ..Health::new(name, state.devices(), state.backend())
        };
        if let Some(job) = state.job() {
            health.worse(PolicyHealth::InProgress);
            // What earlier jobs could not do is no error of this one.
            health.last_error = job["error"].as_str().map(str::to_owned);
            return health;
        }
        if state.backend() == "user" {
            health.look_at_daemon(runtime);
        } else {
            health.look_at_kernel(state);
        }
        if state.left_to_confirm().is_some() {
            health.worse(PolicyHealth::Waiting);
            let guardian = state.0["guardian"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0);
            health.guardian = guardian::of(runtime, &health.name, guardian);
            if health.guardian.is_none() {
                health.worse(PolicyHealth::Trouble);
                health.last_error = Some(format!(
                    "its guardian (process {guardian}) is gone, so it will not be undone automatically: \
                    `tidegate confirm {0}` or `tidegate revert {0}`",
                    health.name
                ));
            }
        }
        health
    }

    /// A daemon that was not started by an apply.
    fn by_hand(room: &RuntimeDir, name: String) -> Health {
        let undone = undone::of(room, &name);
        let mut health = Health { undone, ..Health::new(name.clone(), vec![name], "user") };
        health.look_at_daemon(room);
        health
    }

    fn worse(&mut self, condition: PolicyHealth) {
        self.condition = self.condition.max(condition);
    }

    fn look_at_kernel(&mut self, state: &State) {
        match Arm::open().and_then(|mut arm| arm.drift(&self.name, state)) {
            Ok(Drift { gone, lines }) => {
                self.drift = lines;
                if !self.drift.is_empty() {
                    self.worse(PolicyHealth::Drifted);
                }
                self.gone(&gone);
            }
            Err(error) => {
                self.last_error = Some(format!("{error:#}"));
                self.worse(PolicyHealth::Trouble);
            }
        }
    }

    fn gone(&mut self, gone: &[String]) {
        if !gone.is_empty() {
            self.last_error = Some(format!("there is no device {}", gone.join(", ")));
            self.worse(PolicyHealth::DeviceGone);
        }
    }

    fn look_at_daemon(&mut self, room: &RuntimeDir) {
        self.starts = room.count_of_starts(&self.name);
        match Daemon::of(room, &self.name) {
            Daemon::Dead => {
                self.last_error = last_line(room, &self.name);
                self.worse(PolicyHealth::DaemonDead);
            }
            Daemon::Silent(silence) => {
                self.last_error = Some(silence.to_string());
                self.silent_pid = silence.pid;
                self.worse(PolicyHealth::DaemonSilent);
            }
            Daemon::Answers(status) => {
                self.daemon = status;
                self.read_reply();
            }
        }
    }

    fn read_reply(&mut self) {
        if let Some(error) = self.daemon["last_error"].as_str() {
            self.last_error = Some(error.to_owned());
            let places = self.daemon["places"].as_array().into_iter().flatten();
            let mut names: Vec<String> =
                places.filter_map(|place| place["device"].as_str()).map(str::to_owned).collect();
            names.dedup();
            let links = link_monitor::links().unwrap_or_default();
            names.retain(|name| links.iter().all(|link| link.name != *name));
            if names.is_empty() {
                self.worse(PolicyHealth::Trouble);
            } else {
                self.worse(PolicyHealth::DeviceGone);
            }
        }
        let result = Client::within(&self.name, COMPARE)
            .and_then(|mut client| client.request(&json!({"ask": "drift"})));
        match result {
            Ok(document) => self.drift = strings(&document["drift"]),
            // Whether it runs what it was given is not known, which is not the same as that it does.
            Err(error) => {
                self.last_error = Some(format!("what it runs cannot be compared: {error:#}"));
                self.worse(PolicyHealth::Trouble);
            }
        }
        if !self.drift.is_empty() {
            self.worse(PolicyHealth::Drifted);
        }
    }

    /// Is it on one of these devices? (None are named: yes.)
    pub fn is_on(&self, devices: &[String]) -> bool {
        devices.is_empty() || self.devices.iter().any(|dev| devices.contains(dev))
    }

    /// Why its daemon is of no use now; `None`: it has none, or it answers.
    pub fn daemon_failure(&self) -> Option<String> {
        let why = self.last_error.as_deref();
        match self.condition {
            PolicyHealth::DaemonDead => {
                let text = why.map(|text| format!(" (it said last: {text})")).unwrap_or_default();
                Some(format!("the daemon of `{}` died{text}; packets pass unqueued", self.name))
            }
            PolicyHealth::DaemonSilent => {
                Some(format!("{}: {}", self.name, why.unwrap_or("the daemon does not answer")))
            }
            _ => None,
        }
    }

    /// How late the engine was at most, ns.
    pub fn lateness(&self) -> Option<u64> {
        self.daemon["counts"]["latest_ns"].as_u64()
    }

    /// The document of `--json`.
    pub fn document(&self) -> Value {
        let mut json = json!({
            "name": self.name, "condition": self.condition.name(), "code": self.condition.code(), "backend": self.backend,
            "packet_io": self.daemon["packet_io"], "devices": self.devices, "drift": self.drift, "last_error": self.last_error,
            "lateness_ns": self.lateness(), "starts": self.starts, "undone": self.undone,
            "start_again": restart_hint(&self.state).filter(|_| self.condition == PolicyHealth::DaemonDead),
        });
        for part in ["why", "policy", "applied_at"] {
            json[part] = self.state[part].clone();
        }
        if json["policy"].is_null() {
            json["policy"] = self.daemon["policy"].clone();
        }
        let names = if self.state["names"].is_null() { &self.daemon["names"] } else { &self.state["names"] };
        json["names"] = names_to_json(&names_from_json(names));
        json["confirm"] = match self.revert_in {
            Some(left) => json!({
                "seconds": self.state["confirm"]["seconds"], "left_s": left.as_secs_f64(), "guardian": self.guardian,
            }),
            None => Value::Null,
        };
        let job = &self.state["job"];
        if !job.is_null() {
            let alive =
                process::is_running(job["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0));
            json["job"] = json!({
                "does": job["does"], "pid": job["pid"], "since": job["since"], "alive": alive, "error": job["error"],
            });
        }
        json["daemon"] = self.daemon.clone();
        json
    }
}

/// The command that starts the daemon of a policy again; `None`: it was not applied, or one of its files is
/// gone.
fn restart_hint(state: &Value) -> Option<String> {
    let files = strings(&state["policy"]);
    if files.is_empty() || files.iter().any(|file| !std::path::Path::new(file).exists()) {
        return None;
    }
    Some(apply_command(&files, state))
}

/// The last line of a daemon's log.
pub fn last_line(room: &RuntimeDir, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(room.log(name)).ok()?;
    let line = text.lines().rfind(|line| !line.trim().is_empty())?;
    Some(line.trim().trim_start_matches("tidegate daemon: ").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_up_and_well_follows_from_the_condition() {
        use PolicyHealth::*;
        for (condition, up, well) in [
            (Installed, true, true),
            (Waiting, true, true),
            (InProgress, true, false),
            (Drifted, false, false),
            (DeviceGone, false, false),
            (DaemonDead, false, false),
            (DaemonSilent, false, false),
            (Trouble, false, false),
        ] {
            assert_eq!((condition.is_up(), condition.is_well()), (up, well), "{condition:?}");
        }
    }

    #[test]
    fn a_daemon_whose_files_are_gone_is_not_started_again_by_them() {
        let known = |file: &str| {
            restart_hint(&json!({"policy": [file], "args": [], "dev": null, "packet_io": "auto"}))
        };
        assert_eq!(known("/dev/null").as_deref(), Some("tidegate apply --backend user /dev/null"));
        assert_eq!(known("/nowhere/at/all.sh"), None);
        assert_eq!(restart_hint(&Value::Null), None);
    }

    #[test]
    fn every_condition_has_a_code_of_its_own() {
        use PolicyHealth::*;
        let all = [Installed, Waiting, InProgress, Drifted, DeviceGone, DaemonDead, DaemonSilent, Trouble];
        let mut codes: Vec<u8> = all.iter().map(|one| one.code()).chain([NOTHING, 2]).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), all.len() + 2);
        assert!(all.is_sorted_by_key(|one| one.code()), "worse ones have larger codes");
    }
}
