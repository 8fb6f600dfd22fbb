//! `tidegate quick`: half a minute, one page: idle and loaded latency, rates, where the queue stands, and the policy
//! that would fix it.
//!
//! ```text
//! reflectors ─▶ Watch (hops, pings to all of them) ── Stage: idle, loads one after the other ──▶ measure::quick::Quick
//!                                                                              └─▶ remedy (sim) ──▶ text, JSON, page
//! ```

mod loads;
mod options;
mod remedy;
mod watch;

pub use options::Options;

use crate::measuring::far::PARTIAL;
use crate::measuring::{again, routes};
use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use loads::Stage;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegate_field::load::Page;
use tidegate_field::{Family, Far, Target};
use tidegate_measure::quick::{Grade, Phase, Quick};
use tidegate_probe::Way;
use tidegate_report::measuring::quick as report;
use watch::Watch;

/// The line is bad.
const BAD: u8 = 1;
/// How long it may take, ns.
const TIMES: std::ops::RangeInclusive<u64> = 15_000_000_000..=120_000_000_000;
/// Of the time, what is idle, and what finding the way and pauses take.
const IDLE: f64 = 0.16;
const BESIDES: f64 = 0.2;

/// Plays `tidegate quick`.
pub fn command(options: &Options) -> ExitCode {
    super::ended("quick", attempt(options).map(|quick| code(&quick)))
}

fn code(quick: &Quick) -> u8 {
    match quick.grade() {
        _ if quick.partial.is_some() => PARTIAL,
        None => PARTIAL,
        Some(grade) if grade > Grade::B => BAD,
        Some(_) => 0,
    }
}

/// Who answers, and how.
enum Reflector {
    /// A server of ours.
    Server(Box<Far>),
    /// A page to download.
    Page(Page),
    /// A host that answers pings.
    Host,
}

fn attempt(options: &Options) -> anyhow::Result<Quick> {
    if !TIMES.contains(&options.time.0) {
        bail!("--time: from 15s to 2min");
    }
    let family = options.far.family.family();
    let mut notes = Vec::new();
    let reflectors = reflectors(options, &mut notes)?;
    let first = options.reflectors.first().context("nobody was named")?;
    let host = match reflectors.first() {
        Some(Reflector::Page(page)) => page.host.as_str(),
        _ => first.as_str(),
    };
    let stop = tidegate_os::interrupt::notice();
    let bar = bar(options);
    bar.set_message("who stands on the way");
    let watch = Watch::begin(host, loads::address(host, family)?)?;
    let stage = Stage {
        watch: &watch,
        stop,
        most: options.most.0 as f64 * 8.0,
        tell: &|doing| bar.set_message(doing.to_owned()),
    };
    let mut quick = Quick { version: env!("CARGO_PKG_VERSION").into(), again: again(), notes, ..Quick::default() };
    measure(&stage, &reflectors, (family, options.time.0), &mut quick)?;
    bar.set_message("what would fix it");
    let device = options.dev.clone().or_else(|| routes::device(&routes::all(), watch.far));
    quick.remedy = remedy::of(&mut quick, device.as_deref().unwrap_or("eth0"));
    note(&mut quick, &watch, stop);
    bar.finish_and_clear();
    give(options, &quick)?;
    Ok(quick)
}

/// Who the named ones are.
fn reflectors(options: &Options, notes: &mut Vec<String>) -> anyhow::Result<Vec<Reflector>> {
    let mut all = Vec::new();
    for name in &options.reflectors {
        if let Some(page) = Page::parse(name)? {
            all.push(Reflector::Page(page));
            continue;
        }
        let target: Target = options.far.target(name)?;
        match Far::connect(&target) {
            Ok(far) => all.push(Reflector::Server(Box::new(far))),
            Err(error) if target.token.is_some() => return Err(error).context(format!("{name}, as a server of ours")),
            Err(_) => all.push(Reflector::Host),
        }
    }
    if all.iter().all(|one| matches!(one, Reflector::Host)) {
        notes.push(
            "neither a host with `tidegate serve` nor a page was named: echo requests fill both ways at once, and the \
             slower way decides their rate"
                .into(),
        );
    }
    Ok(all)
}

/// Idle, then one load after the other.
fn measure(
    stage: &Stage<'_>,
    reflectors: &[Reflector],
    (family, time): (Family, u64),
    quick: &mut Quick,
) -> anyhow::Result<()> {
    let part = |share: f64| (time as f64 * share) as u64;
    let server = reflectors.iter().find_map(|one| if let Reflector::Server(far) = one { Some(far) } else { None });
    let page = reflectors.iter().find_map(|one| if let Reflector::Page(page) = one { Some(page) } else { None });
    let loaded = 1.0 - IDLE - BESIDES;
    quick.phases.push(stage.idle(part(IDLE)));
    quick.places = stage.watch.places();
    if quick.farthest().is_none() {
        let who = quick.places.last().map_or("nobody", |place| &place.name);
        quick.partial = Some(format!(
            "{who} answered no pings (it may be down, out of reach, or throw them away), so nothing was loaded"
        ));
        return Ok(());
    }
    // What did not come about, or was stopped, is told and is no phase.
    let done = |quick: &mut Quick, (phase, trouble): (Phase, Option<String>)| {
        let is_whole = trouble.is_none() && !stage.is_stopped();
        quick.notes.extend(trouble.map(|what| format!("{}: {what}", phase.load.word())));
        if is_whole {
            quick.phases.push(phase);
        }
        quick.places = stage.watch.places();
        stage.pause();
        is_whole
    };
    if let Some(far) = server {
        for way in [Way::Up, Way::Down] {
            done(quick, stage.transfers(far, way, part(loaded / 2.0)));
        }
        return Ok(());
    }
    let each = loaded / if page.is_some() { 3.0 } else { 2.0 };
    if let Some(page) = page {
        done(quick, stage.downloads(page, family, part(each))?);
    }
    if !done(quick, stage.echoes(part(each))?) {
        return Ok(());
    }
    let both = quick.phases.len() - 1;
    let rate = quick.phases[both].up_bits.unwrap_or(stage.most);
    match loads::behind_queue(quick, both) {
        Some(behind) => {
            let idle = quick.phases[0].window;
            // What echoes carried is the slower way's: if that is the way down, the way up may be faster.
            let most = stage.most.min(rate * 16.0);
            done(quick, stage.outward(behind, idle, most, part(each))?);
        }
        None if quick.behind_most(both).is_some() => quick.notes.push(
            "the way up was not loaded by itself: how far away the router behind the queue stands is not known".into(),
        ),
        None => {}
    }
    Ok(())
}

/// What the reader should know.
fn note(quick: &mut Quick, watch: &Watch, stop: &AtomicBool) {
    let (trouble, began_ns) = watch.state();
    quick.began_ns = began_ns;
    quick.places = watch.places();
    quick.partial = quick.partial.take().or(trouble);
    if stop.load(Ordering::Relaxed) {
        quick.partial = Some("it was interrupted".into());
    }
    if quick.remedy.is_some() {
        quick.notes.push(
            "the policy belongs on the machine that leads to the modem: `tidegate try` shows more of it, `tidegate apply --confirm 60` puts it \
             there, `tidegate calibrate` and `tidegate overhead` make its rates exact"
                .into(),
        );
    }
}

fn give(options: &Options, quick: &Quick) -> anyhow::Result<()> {
    let json = || format!("{:#}\n", report::json(quick));
    if let Some(path) = &options.output {
        let text = match path.extension().and_then(|ending| ending.to_str()) {
            Some("html") => report::page(quick),
            Some("json") => json(),
            _ => bail!("-o {}: the name must end in .html or .json", path.display()),
        };
        crate::output::file(path, &text)?;
    }
    match (&options.policy, &quick.remedy) {
        (Some(path), Some(remedy)) => crate::output::file(path, &remedy.policy)?,
        (Some(path), None) => {
            eprintln!("tidegate quick: {} was not written: nothing needs to be fixed", path.display())
        }
        (None, _) => {}
    }
    let text = if options.json { json() } else { report::text(quick) };
    crate::output::text(&text);
    Ok(())
}

/// Shows how long it has gone on, where somebody looks.
fn bar(options: &Options) -> ProgressBar {
    let target =
        if crate::output::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(options.time.0 / 1_000_000_000), target);
    if let Ok(style) = ProgressStyle::with_template("{elapsed} of about {len} s  {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}
