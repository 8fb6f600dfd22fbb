//! Two readings of this computer: its configuration and counters; what follows is computed by
//! `tidegate_measure::doctor`.
//!
//! ```text
//! /sys, /proc, ethtool, nft (system.rs) ─┐
//! trees of devices, twice (trees.rs)     ├─▶ measure::doctor::Facts
//! ECN on the way to a host (ecn.rs)      ┘
//! ```

mod ecn;
mod system;
mod trees;

use crate::error::{Context, Result, invalid};
use crate::routes;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use system::Counters;
use tidegate_apply::status;
use tidegate_measure::doctor::{BrokenPolicy, DeviceFacts, Diagnosis, Facts, FlowTableFacts, evaluate};
use tidegate_netlink::{Kernel, Netfilter};
use tidegate_sys::poll;

/// What is looked at.
pub struct DoctorOptions<'d> {
    /// This device only, and those that belong to it.
    pub dev: Option<&'d str>,
    /// From the first look to the second, seconds: 0.1 to 3600.
    pub seconds: f64,
    /// A host on the way to which the ECN field is looked at.
    pub host: Option<&'d str>,
    /// The command line that looks again, for the document.
    pub again: String,
    /// The flag that ends the wait for the second reading when it is set; called before the first reading.
    pub stop: fn() -> &'static AtomicBool,
}

/// Reads this computer's state and evaluates it; and whether the second reading came early, because the user
/// stopped the wait.
///
/// # Errors
/// There is no such device, or the kernel or the host cannot be asked.
pub fn diagnose(options: &DoctorOptions<'_>) -> Result<(Diagnosis, bool)> {
    if !(0.1..=3600.0).contains(&options.seconds) {
        return invalid("--duration is from 100ms to 1h");
    }
    let (facts, is_stopped) = gather(options)?;
    let (findings, mut caveats) = evaluate(&facts);
    if is_stopped {
        caveats.push(format!(
            "stopped after {}: counters are of that time only",
            tidegate_measure::numbers::format_duration(facts.seconds_ns)
        ));
    }
    let diagnosis = Diagnosis {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        again: options.again.clone(),
        looked_at: looked_at(&facts),
        findings,
        caveats,
        facts,
    };
    Ok((diagnosis, is_stopped))
}

/// The facts, and whether the user stopped the wait for all of them.
fn gather(options: &DoctorOptions<'_>) -> Result<(Facts, bool)> {
    let mut facts = Facts {
        devices: system::devices(),
        default_routes: routes::defaults(&routes::all()),
        ..Facts::default()
    };
    if let Some(dev) = options.dev.filter(|dev| facts.device(dev).is_none()) {
        return invalid(format!("there is no device `{dev}`; `ip link` lists them"));
    }
    let mut kernel = Kernel::open().context("the kernel cannot be queried (netlink)")?;
    let healths = match status::healths(None) {
        Ok(healths) => healths,
        Err(error) => {
            let unknown = format!("what tidegate applied is not known, and nothing is said of it: {error:#}");
            facts.unknown.push(unknown);
            Vec::new()
        }
    };
    // What does not answer has no counters, and is no device without a policy either.
    let broken = healths.iter().filter(|health| !health.condition.is_up()).map(|health| BrokenPolicy {
        name: health.name.clone(),
        devices: health.devices.iter().chain([&health.name]).cloned().collect(),
        condition: health.condition.name().to_owned(),
        why: health.last_error.clone(),
    });
    facts.broken = broken.collect();
    let mut sources = tidegate_apply::sources(&[], &healths)?;
    let stop = (options.stop)();
    let (counters, trees, began) = (Counters::now(), trees::look(&mut sources)?, Instant::now());
    facts.ecn = options.host.map(|host| ecn::ask(host, &mut facts.unknown)).transpose()?;
    wait(began + Duration::from_secs_f64(options.seconds), stop)?;
    let (now, later) = (Counters::now(), trees::look(&mut sources)?);
    facts.seconds_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    for device in &mut facts.devices {
        let [after, before] =
            [&now, &counters].map(|one| one.bytes.get(&device.name).copied().unwrap_or_default());
        device.sent = after.sent.saturating_sub(before.sent);
        device.received = after.received.saturating_sub(before.received);
        trees::note_shaper(device, &trees, &later, &mut kernel);
        trees::note_inwards(device, &mut kernel);
    }
    facts.processors = now.processors_since(&counters);
    facts.softnet = now.softnet_since(&counters);
    facts.flow_tables = flow_tables(&mut facts.unknown);
    if let Some(dev) = options.dev {
        keep(&mut facts, dev);
    }
    trees::note_meaning(&mut facts, &mut kernel);
    Ok((facts, stop.load(Ordering::Relaxed)))
}

/// Waits until it is time, or the user stops the wait.
fn wait(until: Instant, stop: &AtomicBool) -> std::io::Result<()> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        // Ctrl-C ends it.
        poll::readable(&[], left)?;
    }
}

/// Flow tables, which bypass the chains. Kernels without nft have none; without the permission that is
/// reported as unknown.
fn flow_tables(unknown: &mut Vec<String>) -> Vec<FlowTableFacts> {
    let result = Netfilter::open().and_then(|mut netfilter| netfilter.flow_tables());
    let table = |table: tidegate_netlink::FlowTable| FlowTableFacts {
        name: table.name,
        devices: table.devices,
        is_hardware: table.is_hardware,
    };
    match result {
        Ok(tables) => tables.into_iter().map(table).collect(),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            unknown.push(
                "whether nft's flow tables lead packets past the policy was not looked at: that needs root"
                    .to_owned(),
            );
            Vec::new()
        }
        Err(_) => Vec::new(),
    }
}

/// Keeps a device and those that belong to it: below it, on top of it, redirected to, and those of default
/// routes.
fn keep(facts: &mut Facts, dev: &str) {
    let mut kept: BTreeSet<String> = BTreeSet::from([dev.to_owned()]);
    let out: Vec<String> = facts.outwards().iter().map(|device| device.name.clone()).collect();
    for device in &facts.devices {
        let belongs = device.below.iter().any(|below| below == dev);
        let has = device.name == dev;
        if belongs {
            kept.insert(device.name.clone());
        }
        if has {
            kept.extend(device.below.iter().cloned());
            if let tidegate_measure::doctor::Inwards::Led(to) = &device.inwards {
                kept.insert(to.clone());
            }
        }
    }
    // Where packets really leave is compared with it.
    kept.extend(out);
    facts.devices.retain(|device| kept.contains(&device.name));
}

/// What was looked at, in words.
fn looked_at(facts: &Facts) -> Vec<String> {
    let mut all: Vec<String> = facts.devices.iter().filter_map(of_device).collect();
    let out = facts.default_routes.first().map_or("none", String::as_str);
    all.push(format!(
        "default route: {out}; {} processors, which received {} packets during the measurement, in all namespaces",
        facts.processors.len(),
        facts.softnet.processed
    ));
    all.push(
        "offloads and hardware filters, driver queues (BQL), flow tables of nft, which device carries the traffic, what \
        limits the rate, double shaping, classes without packets, downloads, packets that keep the network \
        alive, and the rules of `tidegate check`"
            .to_owned(),
    );
    all
}

/// A device that is shaped or redirected.
fn of_device(device: &DeviceFacts) -> Option<String> {
    let shaper = device.shaper.as_ref()?;
    let rate = shaper
        .rate_bps
        .map_or_else(|| "no rate".to_owned(), |rate| tidegate_measure::numbers::rate(rate as f64));
    Some(format!(
        "{}: {} ({}), {rate}, {} classes, {} packets so far",
        device.name,
        shaper.kind,
        if shaper.backend == "kernel" { "the kernel's" } else { "tidegate's own" },
        shaper.classes.len(),
        shaper.packets_ever
    ))
}
