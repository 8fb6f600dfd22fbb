//! What is installed on devices: shapers and their classes, redirects, and the findings about the policy.

use crate::error::{Error, Result};
use serde_json::Value;
use std::fmt::Write as _;
use tidegate_analysis::watch::{self, Snapshot};
use tidegate_apply::SnapshotSource;
use tidegate_daemon::{RuntimeDir, SPLIT_BELOW, running_policy, ssh};
use tidegate_dataplane::engine::link_rate;
use tidegate_inspect::{CLSACT_INGRESS, Finding, Level, check};
use tidegate_loader::{LoadedPolicy, ReadOptions, read_commands};
use tidegate_measure::doctor::{DeviceFacts, Facts, Inwards, ShaperClass, ShaperFacts};
use tidegate_netlink::Kernel;
use tidegate_packet::{Handle, Rate};
use tidegate_plan::essential;
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_syntax::tc::{self, Object, ShowFlags, ShowWhat};

/// Kinds that hold nothing: what comes in passes them.
const INWARDS: [&str; 2] = ["ingress", "clsact"];
/// The parent of filters on incoming packets.
const INGRESS: Handle = Handle::new(0xffff, 0);
/// Findings of the checker that are repeated here.
const MOST_CHECKED: usize = 5;

/// What everyone has counted now.
///
/// # Errors
/// The daemon or the kernel is gone.
pub(super) fn look(sources: &mut [SnapshotSource]) -> Result<Vec<Snapshot>> {
    let snapshot = |source: &mut SnapshotSource| {
        let document = source.snapshot()?;
        Snapshot::read(&document.to_string()).map_err(|error| Error::Invalid(error.to_string()))
    };
    sources.iter_mut().map(snapshot).collect()
}

/// Notes what shapes what leaves by a device.
pub(super) fn note_shaper(
    device: &mut DeviceFacts,
    before: &[Snapshot],
    after: &[Snapshot],
    kernel: &mut Kernel,
) {
    let of = |all: &[Snapshot]| {
        all.iter().find_map(|snapshot| {
            let found = snapshot.devices.iter().find(|known| known.name == device.name)?;
            Some((snapshot.backend.clone(), found.clone()))
        })
    };
    let Some(((backend, now), then)) = of(after).zip(of(before).map(|(_, then)| then)) else { return };
    device.shaper = shaper(&backend, &now, &then);
    if backend != "kernel" && now.qdiscs.iter().any(|qdisc| INWARDS.contains(&qdisc.kind.as_str())) {
        device.inwards = Inwards::Handled;
    }
    if let Some(shaper) = device.shaper.as_mut().filter(|shaper| shaper.backend != "kernel")
        && let Ok(installed) = kernel.qdiscs(&device.name)
    {
        shaper.beneath_bps = link_rate(&installed.qdiscs, &installed.classes).map(Rate::as_bits);
    }
}

fn root(device: &watch::DeviceSnapshot) -> Option<&watch::QdiscSnapshot> {
    device.qdiscs.iter().find(|qdisc| qdisc.parent.is_none() && !INWARDS.contains(&qdisc.kind.as_str()))
}

fn shaper(backend: &str, now: &watch::DeviceSnapshot, then: &watch::DeviceSnapshot) -> Option<ShaperFacts> {
    let (root, before) = (root(now)?, root(then)?);
    let (counts, earlier) = (root.counts, before.counts);
    // A daemon splits what senders joined, where the rate is low enough for that to matter.
    let is_slow = now.link_bps.is_some_and(|rate| rate < SPLIT_BELOW.as_bits() as f64);
    Some(ShaperFacts {
        backend: backend.to_owned(),
        kind: root.kind.clone(),
        rate_bps: now.link_bps.filter(|rate| *rate > 0.0).map(|rate| rate as u64),
        beneath_bps: None,
        sent: counts.bytes.saturating_sub(earlier.bytes),
        packets: counts.packets.saturating_sub(earlier.packets),
        overlimits: counts.overlimits.saturating_sub(earlier.overlimits),
        backlog: counts.backlog.max(earlier.backlog),
        drops: counts.drops.saturating_sub(earlier.drops),
        packets_ever: counts.packets,
        overlimits_ever: counts.overlimits,
        splits: root.kind == "cake" || backend != "kernel" && is_slow,
        classes: now.classes.iter().map(|class| class_of(now, class)).collect(),
    })
}

fn class_of(device: &watch::DeviceSnapshot, class: &watch::ClassSnapshot) -> ShaperClass {
    let is_above = |other: &watch::ClassSnapshot| other.parent.as_deref() == Some(class.handle.as_str());
    ShaperClass {
        id: class.handle.clone(),
        is_leaf: !device.classes.iter().any(is_above),
        packets_ever: class.counts.map(|counts| counts.packets),
    }
}

/// Notes where a device's incoming packets go.
pub(super) fn note_inwards(device: &mut DeviceFacts, kernel: &mut Kernel) {
    let Ok((installed, _)) = kernel.installed(&device.name) else { return };
    let inwards = |filter: &&FilterDump| [INGRESS, CLSACT_INGRESS].contains(&filter.parent);
    let filters: Vec<&FilterDump> = installed.filters.iter().filter(inwards).collect();
    let led = filters.iter().find_map(|filter| match &filter.entry {
        FilterEntry::Filter { actions, .. } => {
            actions.iter().find_map(|action| action.action.act.redirects_to())
        }
        _ => None,
    });
    match led {
        Some(to) => device.inwards = Inwards::Led(to.to_owned()),
        None if filters.is_empty() => {}
        None => device.inwards = Inwards::Handled,
    }
}

/// Asks what the policies of these devices mean: what they starve, and what the checker finds.
pub(super) fn note_meaning(facts: &mut Facts, kernel: &mut Kernel) {
    let (by_kernel, by_daemon): (Vec<&DeviceFacts>, Vec<&DeviceFacts>) =
        facts.devices.iter().filter(|device| device.shaper.is_some()).partition(|device| is_kernels(device));
    let listing: String = by_kernel.iter().filter_map(|device| listing(kernel, &device.name)).collect();
    let mut policies = Vec::new();
    if !listing.is_empty() {
        let read = tidegate_loader::read_text("this machine", &listing, &ReadOptions::default());
        policies.push(read.map_err(|error| format!("its listing is not understood ({error})")));
    }
    // A daemon may have several devices, and is known by the name of one of them.
    policies.extend(by_daemon.iter().filter_map(|device| policy_of_daemon(&device.name)));
    let mut found: Vec<Finding> = Vec::new();
    for policy in policies {
        match policy {
            Ok(policy) => {
                let mut reading = policy.reading();
                facts.starved.extend(essential::dangers(&reading, ssh::session().map(ssh::Ssh::ends)));
                found.extend(check(&mut reading).into_iter().filter(|one| one.level >= Level::Warning));
            }
            Err(why) => facts.unknown.push(format!("what the policy does with packets is not known: {why}")),
        }
    }
    let named = |finding: &Finding| (finding.rule.id().to_owned(), finding.what.clone());
    facts.checked = (found.iter().take(MOST_CHECKED).map(named).collect(), found.len());
}

/// The policy that a daemon of this name runs, or why it is not known; `None`: there is no such daemon.
fn policy_of_daemon(name: &str) -> Option<Result<LoadedPolicy, String>> {
    let running = running_policy(&RuntimeDir::here().ok()?, name).transpose()?;
    let read = |running: Value| {
        let commands: Vec<Vec<String>> =
            serde_json::from_value(running["commands"].clone()).map_err(|error| error.to_string())?;
        read_commands(&format!("the daemon of {name}"), &commands, &ReadOptions::default())
            .map_err(|error| error.to_string())
    };
    Some(running.map_err(|error| format!("{error:#}")).and_then(read))
}

/// Does the kernel shape there?
fn is_kernels(device: &DeviceFacts) -> bool {
    device.shaper.as_ref().is_some_and(|shaper| shaper.backend == "kernel")
}

/// What is installed on a device, as tc lists it.
fn listing(kernel: &mut Kernel, name: &str) -> Option<String> {
    let (installed, unread) = kernel.installed(name).ok()?;
    if !unread.is_empty() {
        return None;
    }
    let on = |object| ShowWhat::on(object, name);
    let flags = ShowFlags { details: true, ..ShowFlags::default() };
    let mut text =
        format!("# dev {name}\n{}", tc::show_qdiscs(&installed.qdiscs, &on(Object::Qdisc), &flags));
    let _ =
        write!(text, "# dev {name}\n{}", tc::show_classes(&installed.classes, &on(Object::Class), &flags));
    let mut parents: Vec<Handle> = installed.filters.iter().map(|filter| filter.parent).collect();
    parents.dedup();
    for parent in parents {
        let filters: Vec<FilterDump> =
            installed.filters.iter().filter(|filter| filter.parent == parent).cloned().collect();
        let shown = tc::show_filters(&filters, &on(Object::Filter), &flags);
        let _ = write!(text, "# dev {name} parent {parent}\n{shown}");
    }
    Some(text)
}
