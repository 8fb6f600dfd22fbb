//! `tidegate doctor`: is it really shaping? Two looks at this computer, and what follows.
//!
//! ```text
//! /sys, /proc, ethtool, nft (system.rs) ─┐
//! trees of devices, twice (trees.rs)     ├─▶ measure::doctor::Facts ─▶ judge ─▶ Diagnosis ─▶ report
//! ECN on the way to a host (ecn.rs)      ┘
//! ```

mod ecn;
mod system;
mod trees;

use super::far::PARTIAL;
use super::routes;
use crate::values;
use tidegate_apply::status;

use anyhow::{Context, ensure};
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use system::Counters;
use tidegate_measure::doctor::{Device, Diagnosis, Facts, FlowTable, Severity, judge};
use tidegate_netlink::{Kernel, Netfilter};
use tidegate_os::{interrupt, poll};
use tidegate_report::measuring::doctor::{text, to_json};

/// Something is wrong.
const FOUND: u8 = 1;

/// What may be said.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Looks twice, and says what keeps this computer from shaping as it was told: how large, and what mends it. Look while the link is loaded: whether \
a shaper limits can only be seen then. Nothing is changed. Without root some of it cannot be looked at, which is said.

  tidegate doctor
  tidegate doctor --dev eth0 --seconds 20 --host example.org

Exit codes: 0 nothing worse than a note; 1 something is wrong; 2 wrong use, or nothing could be looked at; 3 ended before its time.")]
pub struct Options {
    /// Look at this device only, and those that belong to it.
    #[arg(long, value_name = "DEV")]
    pub dev: Option<String>,
    /// From the first look to the second; a number alone is seconds.
    #[arg(long, value_name = "TIME", value_parser = values::seconds, default_value = "3s")]
    pub seconds: f64,
    /// Ask this host whether packets that may be marked (ECN) arrive as such; needs a way to it, and root to see who changes them.
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Plays `tidegate doctor`.
pub fn command(options: &Options) -> ExitCode {
    super::ended("doctor", attempt(options))
}

fn attempt(options: &Options) -> anyhow::Result<u8> {
    ensure!((0.1..=3600.0).contains(&options.seconds), "--seconds is from 0.1 to 3600");
    let (facts, is_stopped) = gather(options)?;
    let (findings, mut doubts) = judge(&facts);
    if is_stopped {
        doubts
            .push(format!("stopped after {}: counters are of that time only", tidegate_report::span(facts.seconds_ns)));
    }
    let worst = findings.iter().map(|finding| finding.severity).max();
    let diagnosis = Diagnosis {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        again: crate::measuring::again(),
        looked_at: looked_at(&facts),
        findings,
        doubts,
        facts,
    };
    let shown = if options.json { to_json(&diagnosis) } else { text(&diagnosis) };
    crate::output::text(&shown);
    Ok(match worst {
        _ if is_stopped => PARTIAL,
        Some(Severity::Warning | Severity::Bad) => FOUND,
        _ => 0,
    })
}

/// The facts, and whether somebody did not want to wait for all of them.
fn gather(options: &Options) -> anyhow::Result<(Facts, bool)> {
    let mut facts =
        Facts { devices: system::devices(), default_routes: routes::defaults(&routes::all()), ..Facts::default() };
    if let Some(dev) = &options.dev {
        ensure!(facts.device(dev).is_some(), "there is no device `{dev}`; `ip link` lists them");
    }
    let mut kernel = Kernel::open().context("the kernel cannot be asked (netlink)")?;
    let mut told = tidegate_apply::sources(&[], &status::healths(None).unwrap_or_default())?;
    let stop = interrupt::notice();
    let (counters, trees, began) = (Counters::now(), trees::look(&mut told)?, Instant::now());
    facts.ecn = options.host.as_deref().map(|host| ecn::ask(host, &mut facts.unknown)).transpose()?;
    wait(began + Duration::from_secs_f64(options.seconds), stop)?;
    let (now, later) = (Counters::now(), trees::look(&mut told)?);
    facts.seconds_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    for device in &mut facts.devices {
        let [after, before] = [&now, &counters].map(|one| one.bytes.get(&device.name).copied().unwrap_or_default());
        device.sent = after.sent.saturating_sub(before.sent);
        device.received = after.received.saturating_sub(before.received);
        trees::note_shaper(device, &trees, &later, &mut kernel);
        trees::note_inwards(device, &mut kernel);
    }
    facts.processors = now.processors_since(&counters);
    facts.softnet = now.softnet_since(&counters);
    facts.flow_tables = flow_tables(&mut facts.unknown);
    if let Some(dev) = &options.dev {
        keep(&mut facts, dev);
    }
    trees::note_meaning(&mut facts, &mut kernel);
    Ok((facts, stop.load(Ordering::Relaxed)))
}

/// Waits until it is time, or nobody wants to wait.
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

/// Ways past the chains. Kernels without nft have none; who may not ask is told so.
fn flow_tables(unknown: &mut Vec<String>) -> Vec<FlowTable> {
    let told = Netfilter::open().and_then(|mut netfilter| netfilter.flow_tables());
    let table = |table: tidegate_netlink::FlowTable| FlowTable {
        name: table.name,
        devices: table.devices,
        is_hardware: table.is_hardware,
    };
    match told {
        Ok(tables) => tables.into_iter().map(table).collect(),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            unknown.push(
                "whether nft's flow tables lead packets past the policy was not looked at: that needs root".to_owned(),
            );
            Vec::new()
        }
        Err(_) => Vec::new(),
    }
}

/// Leaves a device and those that belong to it: beneath it, on it, led to, and where default routes lead.
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
        "default route: {out}; {} processors; {} packets received",
        facts.processors.len(),
        facts.softnet.processed
    ));
    all.push(
        "offloads and hardware filters, driver queues (BQL), flow tables of nft, which device carries, who limits, double shaping, \
         classes without packets, what comes in, what keeps the network alive, and what `tidegate check` asks"
            .to_owned(),
    );
    all
}

/// A device that is shaped or led somewhere.
fn of_device(device: &Device) -> Option<String> {
    let shaper = device.shaper.as_ref()?;
    let rate = shaper.rate_bps.map_or_else(|| "no rate".to_owned(), |rate| tidegate_report::rate(rate as f64));
    Some(format!(
        "{}: {} ({}), {rate}, {} classes, {} packets so far",
        device.name,
        shaper.kind,
        if shaper.backend == "kernel" { "the kernel's" } else { "tidegate's own" },
        shaper.classes.len(),
        shaper.packets_ever
    ))
}
