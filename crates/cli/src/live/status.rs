//! What tidegate applied, and whether it is still there: the state beside the kernel and the daemon.

use super::guard;
use super::job::since_1970;
use super::kernel::{Arm, Drift};
use super::options::Which;
use super::state::{State, strings};
use super::{undone, user};
use crate::daemon::client::Client;
use crate::daemon::presence::{self, Daemon};
use crate::daemon::room::Room;
use crate::daemon::words::apply_command;
use anyhow::ensure;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use tidegate_os::news;

/// A packet later than this makes a warning: behind it the engine gives up on making up for what it missed.
pub(crate) const LATE_NS: u64 = tidegate_live::engine::CREDIT.0;
/// How long a daemon may take to compare what it runs with what it was given.
const COMPARE: Duration = Duration::from_secs(10);
/// Nothing of tidegate's is there.
const NOTHING: u8 = 1;

/// How a policy is. The exit code of `status` is that of the worst one; what is further down is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Condition {
    /// As it was applied.
    Installed,
    /// As it was applied, and undone unless somebody confirms it.
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
    /// Something else is wrong: packets do not come to the daemon, or nobody watches over a policy that waits.
    Trouble,
}

impl Condition {
    /// As it is shown.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Condition::Installed => "installed",
            Condition::Waiting => "waiting for confirmation",
            Condition::InProgress => "in progress",
            Condition::Drifted => "drifted",
            Condition::DeviceGone => "device gone",
            Condition::DaemonDead => "daemon dead",
            Condition::DaemonSilent => "daemon not answering",
            Condition::Trouble => "in trouble",
        }
    }

    /// Is the policy at work, for all that is known? Not: is everything as it should be, which a job that was
    /// interrupted leaves open.
    pub(crate) fn is_up(self) -> bool {
        self < Condition::Drifted
    }

    /// Is everything as it should be?
    pub(crate) fn is_well(self) -> bool {
        matches!(self, Condition::Installed | Condition::Waiting)
    }

    /// The exit code. (2 is wrong usage.)
    pub(crate) fn code(self) -> u8 {
        match self {
            Condition::Installed => 0,
            Condition::Waiting => 3,
            Condition::InProgress => 4,
            Condition::Drifted => 5,
            Condition::DeviceGone => 6,
            Condition::DaemonDead => 7,
            Condition::DaemonSilent => 8,
            Condition::Trouble => 9,
        }
    }
}

/// A policy as it is now.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    /// The name that it is kept under: a device's.
    pub(crate) name: String,
    /// How it is.
    pub(crate) condition: Condition,
    /// Its devices.
    pub(crate) devices: Vec<String>,
    /// `kernel` or `user`.
    pub(crate) backend: String,
    /// Milliseconds until it is undone unless it is confirmed.
    pub(crate) revert_in: Option<Duration>,
    /// What differs from what was applied, for people.
    pub(crate) drift: Vec<String>,
    /// What went wrong last.
    pub(crate) last_error: Option<String>,
    /// How often its daemon was started since the machine was.
    pub(crate) starts: Option<u64>,
    /// What the daemon says of itself.
    daemon: Value,
    /// The process of a daemon that does not answer, where that is known.
    pub(crate) silent_pid: Option<u32>,
    /// The process that goes back unless the policy is confirmed.
    guardian: Option<u32>,
    /// An earlier policy that was undone though nobody asked for it then.
    undone: Option<Value>,
    state: Value,
}

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
    ensure!(!chosen.is_empty(), "tidegate applied nothing {}", where_to(dev));
    Ok(chosen)
}

/// Where nothing was applied.
pub(super) fn where_to(dev: Option<&str>) -> String {
    dev.map_or("here".into(), |dev| format!("to `{dev}`"))
}

/// What is to be looked at: a policy by its state, or a daemon that was started by hand.
enum Target {
    Applied(String, State),
    ByHand(String),
}

/// All policies of this network namespace, or those of a device, and daemons that were started by hand. All are
/// looked at together, so those that do not answer take [`ANSWER`](crate::daemon::client::ANSWER) once, not once
/// each.
///
/// # Errors
/// A state cannot be read.
pub(crate) fn healths(dev: Option<&str>) -> anyhow::Result<Vec<Health>> {
    let room = Room::here()?;
    let fits =
        |name: &str, devices: &[String]| dev.is_none_or(|dev| dev == name || devices.iter().any(|known| known == dev));
    let applied = State::all(&room)?.into_iter().filter(|(name, state)| fits(name, &state.devices()));
    let mut targets: Vec<Target> = applied.map(|(name, state)| Target::Applied(name, state)).collect();
    let known = |name: &String| {
        targets.iter().any(|target| matches!(target, Target::Applied(_, state) if state.devices().contains(name)))
    };
    // A second name of the same socket is no second daemon.
    let is_another = |name: &String| std::fs::symlink_metadata(room.socket(name)).is_ok_and(|at| at.is_symlink());
    let by_hand: Vec<String> =
        user::running(&room).into_iter().filter(|name| fits(name, &[]) && !known(name) && !is_another(name)).collect();
    targets.extend(by_hand.into_iter().map(Target::ByHand));
    Ok(presence::each(&targets, |target| match target {
        Target::Applied(name, state) => Health::of(&room, name.clone(), state),
        Target::ByHand(name) => Health::by_hand(&room, name.clone()),
    }))
}

impl Health {
    /// One of which nothing is known yet.
    fn new(name: String, devices: Vec<String>, backend: &str) -> Health {
        Health {
            name,
            condition: Condition::Installed,
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

    fn of(room: &Room, name: String, state: &State) -> Health {
        let mut health = Health {
            revert_in: state.left_to_confirm(),
            undone: undone::of(room, &name),
            state: state.0.clone(),
            ..Health::new(name, state.devices(), state.backend())
        };
        if let Some(job) = state.job() {
            health.worse(Condition::InProgress);
            // What earlier jobs could not do is no error of this one.
            health.last_error = job["error"].as_str().map(str::to_owned);
            return health;
        }
        if state.backend() == "user" {
            health.look_at_daemon(room);
        } else {
            health.look_at_kernel(state);
        }
        if state.left_to_confirm().is_some() {
            health.worse(Condition::Waiting);
            let guardian = state.0["guardian"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0);
            health.guardian = guard::of(room, &health.name, guardian);
            if health.guardian.is_none() {
                health.worse(Condition::Trouble);
                health.last_error = Some(format!(
                    "its guardian (process {guardian}) is gone, so it will not be undone by itself: `tidegate confirm {0}` or `tidegate revert {0}`",
                    health.name
                ));
            }
        }
        health
    }

    /// A daemon that nobody applied.
    fn by_hand(room: &Room, name: String) -> Health {
        let undone = undone::of(room, &name);
        let mut health = Health { undone, ..Health::new(name.clone(), vec![name], "user") };
        health.look_at_daemon(room);
        health
    }

    fn worse(&mut self, condition: Condition) {
        self.condition = self.condition.max(condition);
    }

    fn look_at_kernel(&mut self, state: &State) {
        match Arm::open().and_then(|mut arm| arm.drift(&self.name, state)) {
            Ok(Drift { gone, lines }) => {
                self.drift = lines;
                if !self.drift.is_empty() {
                    self.worse(Condition::Drifted);
                }
                self.gone(&gone);
            }
            Err(error) => {
                self.last_error = Some(format!("{error:#}"));
                self.worse(Condition::Trouble);
            }
        }
    }

    fn gone(&mut self, gone: &[String]) {
        if !gone.is_empty() {
            self.last_error = Some(format!("there is no device {}", gone.join(", ")));
            self.worse(Condition::DeviceGone);
        }
    }

    fn look_at_daemon(&mut self, room: &Room) {
        self.starts = room.count_of_starts(&self.name);
        match Daemon::of(room, &self.name) {
            Daemon::Dead => {
                self.last_error = last_line(room, &self.name);
                self.worse(Condition::DaemonDead);
            }
            Daemon::Silent(silence) => {
                self.last_error = Some(silence.to_string());
                self.silent_pid = silence.pid;
                self.worse(Condition::DaemonSilent);
            }
            Daemon::Answers(status) => {
                self.daemon = status;
                self.look_at_answer();
            }
        }
    }

    fn look_at_answer(&mut self) {
        if let Some(trouble) = self.daemon["trouble"].as_str() {
            self.last_error = Some(trouble.to_owned());
            let places = self.daemon["places"].as_array().into_iter().flatten();
            let mut names: Vec<String> =
                places.filter_map(|place| place["device"].as_str()).map(str::to_owned).collect();
            names.dedup();
            let links = news::links().unwrap_or_default();
            names.retain(|name| links.iter().all(|link| link.name != *name));
            if names.is_empty() {
                self.worse(Condition::Trouble);
            } else {
                self.worse(Condition::DeviceGone);
            }
        }
        let told = Client::within(&self.name, COMPARE).and_then(|mut client| client.ask(&json!({"ask": "drift"})));
        match told {
            Ok(told) => self.drift = strings(&told["drift"]),
            // Whether it runs what it was given is not known, which is not the same as that it does.
            Err(error) => {
                self.last_error = Some(format!("what it runs cannot be compared: {error:#}"));
                self.worse(Condition::Trouble);
            }
        }
        if !self.drift.is_empty() {
            self.worse(Condition::Drifted);
        }
    }

    /// Is it on one of these devices? (None are named: yes.)
    pub(crate) fn is_on(&self, devices: &[String]) -> bool {
        devices.is_empty() || self.devices.iter().any(|dev| devices.contains(dev))
    }

    /// Why its daemon is of no use now; `None`: it has none, or it answers.
    pub(crate) fn daemon_failure(&self) -> Option<String> {
        let why = self.last_error.as_deref();
        match self.condition {
            Condition::DaemonDead => {
                let said = why.map(|said| format!(" (it said last: {said})")).unwrap_or_default();
                Some(format!("the daemon of `{}` died{said}; packets pass unqueued", self.name))
            }
            Condition::DaemonSilent => Some(format!("{}: {}", self.name, why.unwrap_or("the daemon does not answer"))),
            _ => None,
        }
    }

    /// How late the engine was at most, ns.
    pub(crate) fn lateness(&self) -> Option<u64> {
        self.daemon["counts"]["latest_ns"].as_u64()
    }

    /// The document of `--json`.
    fn told(&self) -> Value {
        let mut told = json!({
            "name": self.name, "condition": self.condition.name(), "code": self.condition.code(), "backend": self.backend,
            "packet_io": self.daemon["door"], "devices": self.devices, "drift": self.drift, "last_error": self.last_error,
            "lateness_ns": self.lateness(), "starts": self.starts, "undone": self.undone,
            "start_again": start_again(&self.state).filter(|_| self.condition == Condition::DaemonDead),
        });
        for part in ["why", "policy", "applied_at"] {
            told[part] = self.state[part].clone();
        }
        if told["policy"].is_null() {
            told["policy"] = self.daemon["policy"].clone();
        }
        told["confirm"] = match self.revert_in {
            Some(left) => json!({
                "seconds": self.state["confirm"]["seconds"], "left_s": left.as_secs_f64(), "guardian": self.guardian,
            }),
            None => Value::Null,
        };
        let job = &self.state["job"];
        if !job.is_null() {
            let alive = user::is_alive(job["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0));
            told["job"] = json!({
                "does": job["does"], "pid": job["pid"], "since": job["since"], "alive": alive, "error": job["error"],
            });
        }
        told["daemon"] = self.daemon.clone();
        told
    }
}

/// The command that starts the daemon of a policy again; `None`: it was not applied, or one of its files is gone.
fn start_again(state: &Value) -> Option<String> {
    let files = strings(&state["policy"]);
    if files.is_empty() || files.iter().any(|file| !std::path::Path::new(file).exists()) {
        return None;
    }
    Some(apply_command(&files, state))
}

/// Plays `tidegate status`.
pub(super) fn command(which: &Which) -> anyhow::Result<ExitCode> {
    let dev = which.dev.as_deref();
    let all = healths(dev)?;
    let mut told: Vec<Value> = all.iter().map(Health::told).collect();
    // Where nothing is applied now because what was has been undone.
    let undone = undone::all(&Room::here()?).into_iter().filter(|(name, undone)| {
        let is_asked = dev.is_none_or(|dev| dev == name || strings(&undone["devices"]).iter().any(|of| of == dev));
        is_asked && all.iter().all(|one| one.name != *name)
    });
    told.extend(
        undone.map(|(name, undone)| json!({"name": name, "condition": "undone", "code": NOTHING, "undone": undone})),
    );
    if which.json {
        println!("{:#}", Value::from(told));
    } else if told.is_empty() {
        println!("tidegate applied nothing {}", where_to(dev));
    } else {
        told.iter().for_each(|one| print!("{}", text(one)));
    }
    let worst = all.iter().map(|one| one.condition).max();
    Ok(worst.map_or(NOTHING, Condition::code).into())
}

fn text(one: &Value) -> String {
    let name = one["name"].as_str().unwrap_or_default();
    if one["condition"] == "undone" {
        return format!("{name}: nothing is applied\n{}", undone::text(&one["undone"]));
    }
    let mut out = format!("{name}: {}", one["condition"].as_str().unwrap_or_default());
    if let Some(at) = one["applied_at"].as_u64() {
        let ago = since_1970().as_secs().saturating_sub(at);
        out += &format!(", applied {} ({} ago)", utc(at), long(ago));
    }
    let devices = strings(&one["devices"]);
    if devices != [name] {
        out += &format!(", on {}", devices.join(", "));
    }
    let policy = match strings(&one["policy"]) {
        files if files.is_empty() => "not known".to_owned(),
        files => files.join(" "),
    };
    out += &format!("\n  policy: {policy}\n");
    let by = match one["backend"].as_str() {
        Some("user") => format!("user space, packets by {}", one["packet_io"].as_str().unwrap_or("nothing")),
        _ => "the kernel".to_owned(),
    };
    out += &format!("  back end: {by}{}\n", one["why"].as_str().map(|why| format!(" ({why})")).unwrap_or_default());
    out += &about_job(name, one);
    if let Some(left) = one["confirm"]["left_s"].as_f64() {
        out += &format!("  undone in {left:.0} s unless you say: tidegate confirm {name}\n");
    }
    out += &about_daemon(name, one);
    for line in strings(&one["drift"]).iter().flat_map(|lines| lines.lines()) {
        out += &format!("    {line}\n");
    }
    // That of a daemon that does not answer is said by what is said of it.
    if let Some(error) = one["last_error"].as_str().filter(|_| one["condition"] != "daemon not answering") {
        out += &format!("  last error: {error}\n");
    }
    out + &undone::text(&one["undone"])
}

fn about_job(name: &str, one: &Value) -> String {
    let job = &one["job"];
    let Some(does) = job["does"].as_str() else { return String::new() };
    if job["alive"] == true {
        return format!("  `tidegate {does}` (process {}) is at work\n", job["pid"]);
    }
    format!(
        "  `tidegate {does}` (process {}) was interrupted; `tidegate revert {name}` or `tidegate down {name}` puts it in order\n",
        job["pid"]
    )
}

fn about_daemon(name: &str, one: &Value) -> String {
    let mut out = String::new();
    match one["condition"].as_str() {
        Some("daemon dead") => {
            let again = match one["start_again"].as_str() {
                Some(command) => format!("to start it again: {command}"),
                None if one["applied_at"].is_null() => {
                    format!("start it as it was started by hand, or `tidegate down {name}` forgets it")
                }
                None => format!("a file of its policy is gone; `tidegate down {name}` forgets it"),
            };
            out += &format!("  its process is gone; packets pass unqueued; {again}\n");
        }
        Some("daemon not answering") => {
            let silence = one["last_error"].as_str().unwrap_or("the daemon does not answer");
            out += &format!("  {silence}; `tidegate down {name}` ends it\n");
        }
        _ => {}
    }
    let daemon = &one["daemon"];
    if let Some(pid) = daemon["pid"].as_u64() {
        let ran = daemon["running_ns"].as_u64().unwrap_or(0) / 1_000_000_000;
        let starts = daemon["starts"].as_u64().unwrap_or(1);
        out += &format!("  process {pid}, for {}, started {} since boot\n", long(ran), times(starts));
    }
    if let Some(late) = one["lateness_ns"].as_u64().filter(|late| *late > LATE_NS) {
        let late = late as f64 / 1e6;
        let often = times(daemon["counts"]["late"].as_u64().unwrap_or(0));
        let remedy = if daemon["realtime"] == true { "the processor is too busy" } else { "--realtime helps" };
        out += &format!(
            "  warning: it was up to {late:.1} ms late, {often} by more than {} ms; {remedy}\n",
            LATE_NS / 1_000_000
        );
    }
    out
}

/// The last line of a daemon's log.
pub(crate) fn last_line(room: &Room, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(room.log(name)).ok()?;
    let line = text.lines().rfind(|line| !line.trim().is_empty())?;
    Some(line.trim().trim_start_matches("tidegate daemon: ").to_owned())
}

/// How often, in words.
fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// A length of time in the words of people.
pub(super) fn long(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        7200..=172_799 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A moment, in seconds since 1970: `2026-11-22 23:15:02 UTC`.
pub(super) fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March have their leap day at the end (the usual conversion of days to a civil date, in eras of 400 years).
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        for (seconds, date) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_700_000_000, "2023-11-14 22:13:20 UTC"),
            (4_107_542_399, "2100-02-28 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(seconds), date);
        }
    }

    #[test]
    fn what_is_up_and_well_follows_from_the_condition() {
        use Condition::*;
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
    fn numbers_of_times_are_words() {
        assert_eq!([0, 1, 2].map(times), ["0 times", "once", "2 times"]);
    }

    #[test]
    fn a_daemon_whose_files_are_gone_is_not_started_again_by_them() {
        let known = |file: &str| start_again(&json!({"policy": [file], "args": [], "dev": null, "door": "auto"}));
        assert_eq!(known("/dev/null").as_deref(), Some("tidegate apply --backend user /dev/null"));
        assert_eq!(known("/nowhere/at/all.sh"), None);
        assert_eq!(start_again(&Value::Null), None);
    }

    #[test]
    fn every_condition_has_a_code_of_its_own() {
        use Condition::*;
        let all = [Installed, Waiting, InProgress, Drifted, DeviceGone, DaemonDead, DaemonSilent, Trouble];
        let mut codes: Vec<u8> = all.iter().map(|one| one.code()).chain([NOTHING, 2]).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), all.len() + 2);
        assert!(all.is_sorted_by_key(|one| one.code()), "worse ones have larger codes");
    }
}
