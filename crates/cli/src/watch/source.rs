//! Where snapshots come from: the daemons of this network namespace, and its kernel.

use crate::daemon::answers::device_told;
use crate::daemon::client::Client;
use crate::daemon::room::Room;
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tidegate_live::Kernel;
use tidegate_live::engine::link_rate;
use tidegate_report::watch::Snapshot;

/// Somebody who tells snapshots.
pub(crate) enum Source {
    /// A daemon.
    Daemon(Client),
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
            Source::Daemon(client) => client.ask(&json!({"ask": "snapshot"}))?,
            Source::Kernel(kernel, devices, began) => of_kernel(kernel, devices, *began)?,
        };
        Ok(Snapshot::read(&told.to_string())?)
    }
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
        let mut client = match Client::open(&dev) {
            Ok(client) => client,
            // A socket that nobody listens at was left by one who is gone.
            Err(_) if !named => continue,
            Err(error) => return Err(error),
        };
        let status = client.ask(&json!({"ask": "status"}))?;
        let places = status["places"].as_array().into_iter().flatten().filter_map(|place| place["device"].as_str());
        taken.extend(places.map(str::to_owned));
        taken.insert(dev.clone());
        found.push(Source::Daemon(client));
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
