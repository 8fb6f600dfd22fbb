//! Half a minute of a line: idle and loaded latency, rates, where the queue is.
//!
//! ```text
//! reflectors ─▶ Watch (hops, pings to all of them) ── Stage: idle, loads one after the other ──▶ measure::quick::Quick
//!                                                                                       └─▶ remedy (the simulator)
//! ```

mod loads;
mod next;
mod remedy;
mod watch;

use crate::error::{Context, Error, Result, invalid};
use crate::routes;
use loads::Stage;
use std::sync::atomic::{AtomicBool, Ordering};
use tidegate_measure::quick::{LoadDirection, LoadPhase, Quick};
use tidegate_probe_wire::FlowDirection;
use tidegate_prober::load::Page;
use tidegate_prober::{AddressFamily, ServerSession, ServerTarget};
use tidegate_scenario::run::ExperimentWatch;
use watch::{Remote, Watch};

/// How long it may take, ns.
const TIMES: std::ops::RangeInclusive<u64> = 15_000_000_000..=120_000_000_000;
/// Of the time, what is idle, and what finding the way and pauses take.
const IDLE: f64 = 0.16;
const BESIDES: f64 = 0.2;
/// The least idle time where hops are asked once a second, ns.
const SLOW_IDLE: u64 = 6_500_000_000;

/// A server, by its kind.
enum Reflector {
    /// A server of tidegate's.
    Server(Box<ServerSession>),
    /// A page to download.
    Page(Page),
    /// A host that answers pings.
    Host,
}

impl Reflector {
    fn server(&self) -> Option<&ServerSession> {
        if let Reflector::Server(session) = self { Some(session) } else { None }
    }

    fn page(&self) -> Option<&Page> {
        if let Reflector::Page(page) = self { Some(page) } else { None }
    }
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
    /// A load that others carry (a page's server, a host that answers echo requests) ends after so many
    /// bytes.
    pub max_data: u64,
    /// Load the line by echo requests, which the first host answers: its owner must agree.
    pub echo_load: bool,
    /// The options that reach the server, as on a command line, for the commands that are proposed.
    pub far_options: &'q str,
    /// Where the caller saves the policy, if it does.
    pub saved: Option<&'q str>,
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
    let reflectors = reflectors(options)?;
    let first = options.reflectors.first().ok_or_else(|| Error::Invalid("missing HOST".to_owned()))?;
    let host = match reflectors.first() {
        Some(Reflector::Page(page)) => page.host.as_str(),
        _ => first.as_str(),
    };
    let port =
        reflectors.iter().filter_map(Reflector::page).find(|page| page.host == host).map(|page| page.port);
    let stop = (options.stop)();
    (options.tell)("finding the hops on the path");
    let server = reflectors.first().and_then(Reflector::server);
    let remote = Remote { name: host, address: loads::address(host, options.family)?, server, port };
    let watch = Watch::begin(&remote)?;
    let most_bytes = options.max_data;
    let stage = Stage { watch: &watch, stop, most: options.most_bps, most_bytes, tell: options.tell };
    let version = env!("CARGO_PKG_VERSION").into();
    let notes = watch.method.clone().into_iter().collect();
    let mut quick = Quick { version, again: options.again.clone(), notes, ..Quick::default() };
    carry_out(&stage, &reflectors, options, &mut quick)?;
    (options.tell)("what would fix it");
    let routes = routes::all();
    let device = options.dev.map(str::to_owned).or_else(|| routes::device(&routes, watch.far));
    quick.may_be_router = device.as_deref().is_some_and(|device| routes::may_be_router(&routes, device));
    let simulation =
        ExperimentWatch { stop, begin: options.simulating, seconds: options.simulated, observer: &|| None };
    let dev = device.as_deref().unwrap_or("eth0");
    quick.remedy = remedy::of(&mut quick, (dev, options.saved), &simulation);
    note(&mut quick, &watch, stop);
    let asked = next::NextContext {
        host,
        far: options.far_options,
        has_server: reflectors.iter().any(|one| one.server().is_some()),
        has_page: reflectors.iter().any(|one| one.page().is_some()),
        has_echo: watch.has_echo,
        may_echo: watch.may_echo,
        echo_load: options.echo_load,
        max_data: options.max_data,
        is_root: tidegate_sys::process::effective_uid() == 0,
        dev,
    };
    quick.next = next::steps(&quick, &asked);
    Ok(quick)
}

/// The servers that were named.
fn reflectors(options: &QuickOptions<'_>) -> Result<Vec<Reflector>> {
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
    Ok(all)
}

/// Idle, then one load after the other.
fn carry_out(
    stage: &Stage<'_>,
    reflectors: &[Reflector],
    options: &QuickOptions<'_>,
    quick: &mut Quick,
) -> Result<()> {
    let part = |share: f64| (options.time_ns as f64 * share) as u64;
    let server = reflectors.iter().find_map(Reflector::server);
    let page = reflectors.iter().find_map(Reflector::page);
    let loaded = 1.0 - IDLE - BESIDES;
    let least = if stage.watch.is_slow { SLOW_IDLE } else { 0 };
    quick.phases.push(stage.idle(part(IDLE).max(least)));
    quick.places = stage.watch.places();
    let idle = quick.phases[0].window;
    if quick.farthest().is_none() {
        let who = quick.places.last().map_or("no host", |place| &place.name);
        quick.partial = Some(format!("nothing came back from {who}: it may be down or out of reach"));
        return Ok(());
    }
    if let Some(server) = server {
        for way in [FlowDirection::Up, FlowDirection::Down] {
            done(stage, quick, stage.transfers(server, (way, idle), part(loaded / 2.0)));
        }
        return Ok(());
    }
    let each = loaded / if page.is_some() && options.echo_load { 3.0 } else { 2.0 };
    if let Some(page) = page {
        done(stage, quick, stage.downloads(page, (options.family, idle), part(each))?);
    }
    if options.echo_load && stage.watch.has_echo {
        if !done(stage, quick, stage.echoes(part(each))?) {
            return Ok(());
        }
    } else if options.echo_load {
        quick.notes.push("--echo-load: echo requests cannot be sent, so they loaded nothing".into());
    }
    if page.is_none() && !options.echo_load {
        quick.notes.push(
            "nothing was loaded, because a load is work for the host that is named, and its owner was not \
                said \
            to agree: see below"
                .into(),
        );
        return Ok(());
    }
    upload(stage, part(each), quick)
}

/// A load that failed, or was stopped, is reported and is no phase; whether it is one.
fn done(stage: &Stage<'_>, quick: &mut Quick, (phase, trouble): (LoadPhase, Option<String>)) -> bool {
    let is_whole = trouble.is_none() && !stage.is_stopped();
    quick.notes.extend(trouble.map(|what| format!("{}: {what}", phase.load.word())));
    if is_whole {
        quick.phases.push(phase);
    }
    quick.places = stage.watch.places();
    stage.pause();
    is_whole
}

/// The upload by datagrams that end at the first router behind the queue, where a load showed which that is.
fn upload(stage: &Stage<'_>, length: u64, quick: &mut Quick) -> Result<()> {
    if !stage.watch.has_echo {
        quick.notes.push(
            "the upload was not loaded: without echo requests its queue cannot be watched closely enough"
                .into(),
        );
        return Ok(());
    }
    let loaded = 1..quick.phases.len();
    let Some(phase) = loaded.clone().find(|phase| quick.behind_most(*phase).is_some()) else {
        return Ok(());
    };
    let Some(behind) = loaded.clone().find_map(|phase| loads::behind_queue(quick, phase)) else {
        quick.notes.push(
            "the upload was not loaded alone: the distance of the router behind the queue is unknown".into(),
        );
        return Ok(());
    };
    let idle = quick.phases[0].window;
    // What echoes carried is the slower direction's: if that is the download, the upload may be faster.
    let most = match quick.phases[phase].up_bits {
        Some(bits) => stage.most.min(bits * 16.0),
        None => stage.most,
    };
    done(stage, quick, stage.outward(behind, idle, most, length)?);
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
    if quick.phases.iter().any(|phase| phase.load == LoadDirection::Both) {
        quick.notes.push(
            "echo requests fill both directions with the same packets: the slower one decides their rate, \
                and \
            which one that is does not show"
                .into(),
        );
    }
}
