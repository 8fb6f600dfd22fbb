//! Where snapshots come from: the daemons of this network namespace, and its kernel.

use crate::state::State;
use crate::status::{self, Health, PolicyHealth};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tidegate_daemon::Daemon;
use tidegate_daemon::RuntimeDir;
use tidegate_daemon::{ANSWER, Client};
use tidegate_daemon::{Error, ErrorContext, Result, bail, ensure, error};
use tidegate_daemon::{device_snapshot, names_from_json, names_on};
use tidegate_dataplane::engine::link_rate;
use tidegate_netlink::Kernel;

/// A source of snapshots.
pub enum SnapshotSource {
    /// A daemon, by its device.
    Daemon(String, Client),
    /// The kernel, of these devices.
    Kernel(Box<Kernel>, Vec<String>, Instant),
}

impl SnapshotSource {
    /// What is now, as `docs/live.md` describes it.
    ///
    /// # Errors
    /// The daemon or the kernel is gone, or does not answer.
    pub fn snapshot(&mut self) -> Result<Value> {
        match self {
            SnapshotSource::Daemon(dev, client) => {
                let request = json!({"ask": "snapshot"});
                // A daemon closes connections that are idle for a while. An unanswered request is sent once
                // more only.
                let dump = match client.request(&request) {
                    Err(error) if !timed_out(&error) => Client::within(dev, ANSWER).and_then(|again| {
                        *client = again;
                        client.request(&request)
                    }),
                    told => told,
                };
                dump.map_err(|error| why_not(dev, error))
            }
            SnapshotSource::Kernel(kernel, devices, began) => of_kernel(kernel, devices, *began),
        }
    }
}

/// Why the daemon of a device does not answer any more: it hangs, or is gone.
fn why_not(dev: &str, error: Error) -> Error {
    let Ok(runtime) = RuntimeDir::here() else { return error };
    if RuntimeDir::holder(&runtime.lock(dev)).is_some() {
        // The reason is found by another request.
        return match Daemon::of(&runtime, dev) {
            Daemon::Silent(silence) => error!(Daemon, "{dev}: {silence}"),
            _ => error.context(format!("the daemon of `{dev}` did not answer in time")),
        };
    }
    let text = status::last_line(&runtime, dev).map(|text| format!(" (it said: {text})")).unwrap_or_default();
    error.context(format!("the daemon of `{dev}` is gone{text}"))
}

fn timed_out(error: &Error) -> bool {
    error.io_kind() == Some(io::ErrorKind::TimedOut)
}

/// The sources for these devices; without names: for all that are shaped. A daemon that does not answer, by
/// `healths`, is not asked again.
///
/// # Errors
/// A device is not there, or not shaped, or its daemon does not answer.
pub fn sources(devices: &[String], healths: &[Health]) -> Result<Vec<SnapshotSource>> {
    let (named, mut found) = (!devices.is_empty(), Vec::new());
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for dev in daemons(devices)? {
        if let Some(silent) = silent(&dev, healths)? {
            ensure!(!named, Daemon, "{silent}");
            taken.insert(dev);
            continue;
        }
        let mut client = match Client::within(&dev, ANSWER) {
            Ok(client) => client,
            // A socket without a listener was left by a process that is gone.
            Err(_) if !named => continue,
            Err(error) => return Err(error),
        };
        let status = match client.request(&json!({"ask": "status"})) {
            Ok(status) => status,
            // A daemon that stops from now on does not hide the others.
            Err(_) if !named => continue,
            Err(error) => return Err(error),
        };
        let places =
            status["places"].as_array().into_iter().flatten().filter_map(|place| place["device"].as_str());
        taken.extend(places.map(str::to_owned));
        taken.insert(dev.clone());
        found.push(SnapshotSource::Daemon(dev, client));
    }
    let mut kernel = Kernel::open().context("the kernel cannot be queried (netlink)")?;
    let rest: Vec<String> = if named { devices.to_vec() } else { links() };
    let rest: Vec<String> = rest.into_iter().filter(|dev| !taken.contains(dev)).collect();
    let shaped: Vec<String> = rest.iter().filter(|dev| is_shaped(&mut kernel, dev)).cloned().collect();
    if let Some(plain) = rest.iter().find(|dev| named && !shaped.contains(dev)) {
        match kernel.qdiscs(plain) {
            Ok(_) => {
                bail!(
                    Device,
                    "nothing was configured on `{plain}`; `tidegate apply POLICY --dev {plain}` puts a \
                    policy there"
                )
            }
            Err(error) => bail!(Device, "{plain}: {error}"),
        }
    }
    if !shaped.is_empty() {
        found.push(SnapshotSource::Kernel(Box::new(kernel), shaped, Instant::now()));
    }
    Ok(found)
}

/// Why the daemon of a device is not asked: it did not answer just now.
fn silent(dev: &str, healths: &[Health]) -> Result<Option<String>> {
    // A daemon of several devices has the lock of each.
    let holder = RuntimeDir::holder(&RuntimeDir::here()?.lock(dev));
    let is_it =
        |health: &&Health| health.name == dev || health.silent_pid.is_some() && health.silent_pid == holder;
    let silent = healths.iter().filter(|health| health.condition == PolicyHealth::DaemonSilent).find(is_it);
    Ok(silent.and_then(Health::daemon_failure))
}

/// One name for each daemon that shapes one of these devices; of an empty list each daemon there is.
///
/// # Errors
/// There is no `/proc`, from which the network namespace is known.
pub fn daemons(devices: &[String]) -> Result<Vec<String>> {
    let room = RuntimeDir::here()?;
    let mut seen = BTreeSet::new();
    let mut names = room.devices("sock");
    names.retain(|name| devices.is_empty() || devices.contains(name));
    // A daemon of several devices has one socket, and links to it.
    names.retain(|name| {
        seen.insert(std::fs::canonicalize(room.socket(name)).unwrap_or_else(|_| room.socket(name)))
    });
    Ok(names)
}

/// The daemon that a device belongs to, by the name of its socket: an ifb that exists in a daemon alone has
/// none of its own. A device that no daemon has is returned as it is.
///
/// # Errors
/// Several daemons have a device of this name; there is no `/proc`.
pub fn daemon_with(dev: &str) -> Result<String> {
    if !daemons(&[dev.to_owned()])?.is_empty() {
        return Ok(dev.to_owned());
    }
    let all = daemons(&[])?;
    let has_it = |daemon: &String| {
        let mut client = Client::within(daemon, ANSWER).ok()?;
        let snapshot = client.request(&json!({"ask": "snapshot"})).ok()?;
        snapshot["devices"].as_array()?.iter().any(|device| device["name"] == dev).then(|| daemon.clone())
    };
    // One that hangs keeps the others from answering no longer than it would alone.
    let mut found: Vec<String> = tidegate_daemon::each(&all, has_it).into_iter().flatten().collect();
    ensure!(found.len() <= 1, Device, "several daemons have a device `{dev}`, those of {}", found.join(", "));
    Ok(found.pop().unwrap_or_else(|| dev.to_owned()))
}

/// The devices of this network namespace.
fn links() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

/// Whether something was configured there. Qdiscs that the kernel attaches on its own have no handle.
fn is_shaped(kernel: &mut Kernel, dev: &str) -> bool {
    kernel.qdiscs(dev).is_ok_and(|installed| {
        !installed.unread.is_empty() || installed.qdiscs.iter().any(|qdisc| !qdisc.handle.is_none())
    })
}

/// What the policy that is applied to a device calls its classes; `None`: none is, or it is being changed.
fn names(dev: &str) -> Option<Value> {
    let (_, state) = State::of_device(&RuntimeDir::here().ok()?, dev).ok()??;
    let names = names_from_json(&state.0["names"]);
    state.job().is_none().then(|| names_on(&names, dev))
}

fn of_kernel(kernel: &mut Kernel, devices: &[String], began: Instant) -> Result<Value> {
    let mut documents = Vec::new();
    for dev in devices {
        // A device that went away meanwhile is left out.
        let Ok(installed) = kernel.qdiscs(dev) else { continue };
        let rate = link_rate(&installed.qdiscs, &installed.classes);
        let mut document = device_snapshot(dev, rate, &installed.qdiscs, &installed.classes);
        document["names"] = names(dev).unwrap_or_else(|| json!({}));
        documents.push(document);
    }
    let at_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch_ns = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX).saturating_sub(at_ns);
    Ok(json!({"version": 1, "at_ns": at_ns, "epoch_ns": epoch_ns, "backend": "kernel", "devices": documents}))
}
