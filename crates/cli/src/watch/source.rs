//! Where snapshots come from: the daemons of this network namespace, and its kernel.

use crate::daemon::answers::device_told;
use crate::daemon::client::Client;
use crate::daemon::room::Room;
use crate::live::status::{self, Condition, Health};
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tidegate_live::Kernel;
use tidegate_live::engine::link_rate;
use tidegate_report::watch::Snapshot;

/// How long a daemon may take for its first answer.
const HELLO: Duration = Duration::from_secs(5);

/// Somebody who tells snapshots.
pub(crate) enum Source {
    /// A daemon, by its device.
    Daemon(String, Client),
    /// The kernel, of these devices.
    Kernel(Box<Kernel>, Vec<String>, Instant),
}

impl Source {
    /// What is now, as `docs/live.md` describes it.
    ///
    /// # Errors
    /// Whoever is asked is gone, or says what is no snapshot.
    pub(crate) fn snapshot(&mut self) -> anyhow::Result<Snapshot> {
        let told = match self {
            Source::Daemon(dev, client) => {
                let request = json!({"ask": "snapshot"});
                // A daemon lets go whoever says nothing for a while.
                let told = match client.ask(&request) {
                    Ok(told) => Ok(told),
                    Err(_) => Client::open(dev).and_then(|again| {
                        *client = again;
                        client.ask(&request)
                    }),
                };
                told.with_context(|| died(dev))?
            }
            Source::Kernel(kernel, devices, began) => of_kernel(kernel, devices, *began)?,
        };
        Ok(Snapshot::read(&told.to_string())?)
    }
}

/// Why the daemon of a device says nothing any more.
fn died(dev: &str) -> String {
    let said = Room::here().ok().and_then(|room| status::last_line(&room, dev));
    format!("the daemon of `{dev}` is gone{}", said.map(|said| format!(" (it said: {said})")).unwrap_or_default())
}

/// The daemons of these devices that should run and do not, or do not answer: why.
///
/// # Errors
/// The states of policies cannot be read.
pub(crate) fn dead(devices: &[String]) -> anyhow::Result<Vec<String>> {
    let of = |health: &Health| devices.is_empty() || health.devices.iter().any(|dev| devices.contains(dev));
    let why = |health: Health| {
        let last = health.last_error.map(|error| format!(" ({error})")).unwrap_or_default();
        match health.condition {
            Condition::DaemonDead => Some(format!("the daemon of `{}` died{last}; packets pass unqueued", health.name)),
            Condition::DaemonSilent => Some(format!("the daemon of `{}` does not answer{last}", health.name)),
            _ => None,
        }
    };
    Ok(status::healths(None)?.into_iter().filter(of).filter_map(why).collect())
}

/// Whoever shapes these devices; nothing named: all that are shaped.
///
/// # Errors
/// A device is not there, or not shaped.
pub(crate) fn sources(devices: &[String]) -> anyhow::Result<Vec<Source>> {
    let (named, mut found) = (!devices.is_empty(), Vec::new());
    let daemons = daemons(devices)?;
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for dev in daemons {
        let mut client = match Client::within(&dev, HELLO) {
            Ok(client) => client,
            // A socket that nobody listens at was left by one who is gone.
            Err(_) if !named => continue,
            Err(error) => return Err(error),
        };
        let status = match client.ask(&json!({"ask": "status"})) {
            Ok(status) => status,
            // One that hangs is told of by `dead`, and keeps nobody from seeing the others.
            Err(_) if !named => continue,
            Err(error) => return Err(error),
        };
        let places = status["places"].as_array().into_iter().flatten().filter_map(|place| place["device"].as_str());
        taken.extend(places.map(str::to_owned));
        taken.insert(dev.clone());
        found.push(Source::Daemon(dev, client));
    }
    let mut kernel = Kernel::open().context("the kernel cannot be asked (netlink)")?;
    let rest: Vec<String> = if named { devices.to_vec() } else { links() };
    let rest: Vec<String> = rest.into_iter().filter(|dev| !taken.contains(dev)).collect();
    let shaped: Vec<String> = rest.iter().filter(|dev| is_shaped(&mut kernel, dev)).cloned().collect();
    if let Some(plain) = rest.iter().find(|dev| named && !shaped.contains(dev)) {
        match kernel.standing(plain) {
            Ok(_) => bail!("nothing was configured on `{plain}`; `tidegate apply` puts a policy there"),
            Err(error) => bail!("{plain}: {error}"),
        }
    }
    if !shaped.is_empty() {
        found.push(Source::Kernel(Box::new(kernel), shaped, Instant::now()));
    }
    Ok(found)
}

/// One name for each daemon that shapes one of these devices, or any.
pub(crate) fn daemons(devices: &[String]) -> anyhow::Result<Vec<String>> {
    let room = Room::here()?;
    let mut seen = BTreeSet::new();
    let mut names = room.devices("sock");
    names.retain(|name| devices.is_empty() || devices.contains(name));
    // A daemon of several devices has one socket, and links to it.
    names.retain(|name| seen.insert(std::fs::canonicalize(room.socket(name)).unwrap_or_else(|_| room.socket(name))));
    Ok(names)
}

/// The devices of this network namespace.
fn links() -> Vec<String> {
    let told = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    told.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

/// Did anybody configure something there? What the kernel puts there by itself has no handle.
fn is_shaped(kernel: &mut Kernel, dev: &str) -> bool {
    kernel.standing(dev).is_ok_and(|standing| {
        !standing.unread.is_empty() || standing.qdiscs.iter().any(|qdisc| !qdisc.handle.is_none())
    })
}

fn of_kernel(kernel: &mut Kernel, devices: &[String], began: Instant) -> anyhow::Result<Value> {
    let mut told = Vec::new();
    for dev in devices {
        // A device that went away meanwhile is left out.
        let Ok(standing) = kernel.standing(dev) else { continue };
        let rate = link_rate(&standing.qdiscs, &standing.classes);
        told.push(device_told(dev, rate, &standing.qdiscs, &standing.classes));
    }
    let at_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch_ns = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX).saturating_sub(at_ns);
    Ok(json!({"version": 1, "at_ns": at_ns, "epoch_ns": epoch_ns, "backend": "kernel", "devices": told}))
}
