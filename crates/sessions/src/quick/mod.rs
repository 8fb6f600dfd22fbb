//! Half a minute of a line: idle and loaded latency, rates, where the queue is.
//!
//! ```text
//! reflectors ─▶ Watch (hops, pings to all of them) ── Stage: idle, loads one after the other ──▶ measure::quick::Quick
//!                                                                                       └─▶ remedy (the simulator)
//! ```

mod loads;
mod remedy;
mod watch;

use crate::error::{Context, Error, Result, invalid};
use crate::routes;
use loads::Stage;
use std::sync::atomic::{AtomicBool, Ordering};
use tidegate_measure::quick::{LoadPhase, Quick};
use tidegate_probe_wire::FlowDirection;
use tidegate_prober::load::Page;
use tidegate_prober::{AddressFamily, ServerSession, ServerTarget};
use tidegate_scenario::run::ExperimentWatch;
use watch::Watch;

/// How long it may take, ns.
const TIMES: std::ops::RangeInclusive<u64> = 15_000_000_000..=120_000_000_000;
/// Of the time, what is idle, and what finding the way and pauses take.
const IDLE: f64 = 0.16;
const BESIDES: f64 = 0.2;

/// A server, by its kind.
enum Reflector {
    /// A server of tidegate's.
    Server(Box<ServerSession>),
    /// A page to download.
    Page(Page),
    /// A host that answers pings.
    Host,
}

/// The options of `quick`.
pub struct QuickOptions<'q> {
    /// Hosts with `tidegate serve`, pages (`http://HOST/FILE`), or hosts that answer pings; the first is
    /// pinged throughout.
    pub reflectors: &'q [String],
    /// How a reflector of a name is reached, if it has `tidegate serve`.
    pub target: &'q dyn Fn(&str) -> Result<ServerTarget>,
    /// Which of a host's addresses are taken.
    pub family: AddressFamily,
    /// How long it may take, about, ns: 15 s to 2 minutes.
    pub time_ns: u64,
    /// Never send more than this, bits per second.
    pub most_bps: f64,
    /// The device that leads to the line; `None`: the one that the routes name.
    pub dev: Option<&'q str>,
    /// The command line that measures again, for the document.
    pub again: String,
    /// Gets progress messages now and then.
    pub tell: &'q (dyn Fn(&str) + Sync),
    /// The flag that ends it early when it is set; called once the servers are known.
    pub stop: fn() -> &'static AtomicBool,
    /// Hears before the simulator tries the policy that would fix the line how many runs that takes, and how
    /// many seconds of link time.
    pub simulating: &'q (dyn Fn(usize, u64) + Sync),
    /// Hears how many more of these seconds are done.
    pub simulated: &'q (dyn Fn(u64) + Sync),
}

/// Measures a line, and looks for what would fix it.
///
/// # Errors
/// A name has no address, this user may not ask, or a server refuses.
pub fn measure(options: &QuickOptions<'_>) -> Result<Quick> {
    if !TIMES.contains(&options.time_ns) {
        return invalid("--duration: from 15s to 2min");
    }
    let mut notes = Vec::new();
    let reflectors = reflectors(options, &mut notes)?;
    let first = options.reflectors.first().ok_or_else(|| Error::Invalid("missing HOST".to_owned()))?;
    let host = match reflectors.first() {
        Some(Reflector::Page(page)) => page.host.as_str(),
        _ => first.as_str(),
    };
    let stop = (options.stop)();
    (options.tell)("finding the hops on the path");
    let watch = Watch::begin(host, loads::address(host, options.family)?)?;
    let stage = Stage { watch: &watch, stop, most: options.most_bps, tell: options.tell };
    let version = env!("CARGO_PKG_VERSION").into();
    let mut quick = Quick { version, again: options.again.clone(), notes, ..Quick::default() };
    carry_out(&stage, &reflectors, (options.family, options.time_ns), &mut quick)?;
    (options.tell)("what would fix it");
    let device = options.dev.map(str::to_owned).or_else(|| routes::device(&routes::all(), watch.far));
    let simulation =
        ExperimentWatch { stop, begin: options.simulating, seconds: options.simulated, observer: &|| None };
    quick.remedy = remedy::of(&mut quick, device.as_deref().unwrap_or("eth0"), &simulation);
    note(&mut quick, &watch, stop);
    Ok(quick)
}

/// The servers that were named.
fn reflectors(options: &QuickOptions<'_>, notes: &mut Vec<String>) -> Result<Vec<Reflector>> {
    let mut all = Vec::new();
    for name in options.reflectors {
        if let Some(page) = Page::parse(name)? {
            all.push(Reflector::Page(page));
            continue;
        }
        let target: ServerTarget = (options.target)(name)?;
        match ServerSession::connect(&target) {
            Ok(far) => all.push(Reflector::Server(Box::new(far))),
            Err(error) if target.token.is_some() => {
                return Err(error).context(format!("{name}, as a tidegate server"));
            }
            Err(_) => all.push(Reflector::Host),
        }
    }
    if all.iter().all(|one| matches!(one, Reflector::Host)) {
        notes.push(
            "neither a host with `tidegate serve` nor a page was named: echo requests fill both ways at \
            once, and the slower way decides their rate"
                .into(),
        );
    }
    Ok(all)
}

/// Idle, then one load after the other.
fn carry_out(
    stage: &Stage<'_>,
    reflectors: &[Reflector],
    (family, time): (AddressFamily, u64),
    quick: &mut Quick,
) -> Result<()> {
    let part = |share: f64| (time as f64 * share) as u64;
    let server =
        reflectors.iter().find_map(|one| if let Reflector::Server(far) = one { Some(far) } else { None });
    let page =
        reflectors.iter().find_map(|one| if let Reflector::Page(page) = one { Some(page) } else { None });
    let loaded = 1.0 - IDLE - BESIDES;
    quick.phases.push(stage.idle(part(IDLE)));
    quick.places = stage.watch.places();
    if quick.farthest().is_none() {
        let who = quick.places.last().map_or("no host", |place| &place.name);
        quick.partial = Some(format!(
            "{who} answered no pings (it may be down, out of reach, or throw them away), so nothing was \
            loaded"
        ));
        return Ok(());
    }
    // A load that failed, or was stopped, is reported and is no phase.
    let done = |quick: &mut Quick, (phase, trouble): (LoadPhase, Option<String>)| {
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
        for way in [FlowDirection::Up, FlowDirection::Down] {
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
            "the upload was not loaded alone: the distance of the router behind the queue is unknown".into(),
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
            "the policy belongs on the machine that leads to the modem: `tidegate apply --confirm 60s` puts it \
            there, `tidegate calibrate` and `tidegate overhead` make its rates exact"
                .into(),
        );
    }
}
