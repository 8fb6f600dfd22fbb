//! `tidegate autorate`: a controller of a shaper's rate, live. What it does is
//! `tidegate_sessions::autorate`'s.

mod log;
mod options;

pub use options::Options;

use crate::exit::CliExit;
use anyhow::Context;
use log::{LineLog, Tried, line};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tidegate_control::RateDirection;
use tidegate_gym::ControllerChoice;
use tidegate_measure::numbers::rate;
use tidegate_prober::probe_targets::{ProbeTargets, TargetEvent};
use tidegate_prober::{AddressFamily, ProbeClock, addresses};
use tidegate_sessions::autorate::{
    AutorateEvent, AutorateOptions, AutoratePlan, LeftBehind, PutBack, guard, obstacles, plan, restore, run,
};
use tidegate_sys::{interrupt, service};

/// How long the targets are tried by --dry-run.
const TRIED: Duration = Duration::from_secs(2);

/// Plays `tidegate autorate`.
pub fn command(options: &Options) -> ExitCode {
    match attempt(options) {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("tidegate autorate: {error:#}");
            exit_of(&error).into()
        }
    }
}

/// A permission that is missing has a code of its own.
fn exit_of(error: &anyhow::Error) -> CliExit {
    let is_denied = |cause: &(dyn std::error::Error + 'static)| {
        let of_prober =
            |error: &tidegate_prober::Error| matches!(error, tidegate_prober::Error::NotAllowed { .. });
        cause.downcast_ref::<tidegate_prober::Error>().is_some_and(of_prober)
            || cause.downcast_ref::<tidegate_sessions::Error>().is_some_and(|error| {
                error.io().is_some_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
                    || error.field().is_some_and(of_prober)
            })
    };
    if error.chain().any(is_denied) {
        eprintln!("  this needs root (CAP_NET_ADMIN and CAP_NET_RAW)");
        return CliExit::NotPermitted;
    }
    CliExit::of_device(error)
}

fn attempt(options: &Options) -> anyhow::Result<CliExit> {
    if options.guard {
        guard(&options.devices(), &mut crate::output::stdout())?;
        return Ok(CliExit::Yes);
    }
    if options.restore {
        return restored(options);
    }
    let wanted = wanted(options)?;
    if options.dry_run {
        let left = obstacles(&wanted)?;
        let (plan, why_not) = plan(&wanted)?;
        return dry((&plan, why_not.as_deref()), &left, &wanted, options);
    }
    let mut log = options.log.as_deref().map(LineLog::open).transpose()?;
    let mut failed = false;
    let stop = interrupt::event_fd()?;
    // The end of a terminal is the end of this, too, and the rates are put back; under nohup it is not.
    interrupt::also_on_hangup()?;
    let mut tell = |event: AutorateEvent| -> std::io::Result<()> {
        if let AutorateEvent::Ended(all) = &event {
            failed = all.iter().any(|(_, done)| done.is_err());
        }
        if let AutorateEvent::Begun(_) = &event {
            // A service manager that is not there, or does not listen, is none of our work.
            let _ = service::notify("READY=1");
        }
        let as_line = line(&event);
        if let Some(log) = &mut log {
            log.add(&as_line)?;
        }
        if options.json {
            return crate::output::next(&as_line);
        }
        let is_wanted = match &event {
            AutorateEvent::Decision { .. } => options.decisions,
            // With --quiet what goes its usual course is not said.
            AutorateEvent::Begun(_)
            | AutorateEvent::Idle
            | AutorateEvent::Active
            | AutorateEvent::Seen
            | AutorateEvent::Limits(_)
            | AutorateEvent::Back(_) => !crate::output::is_quiet(),
            AutorateEvent::Ended(all) => failed || all.is_empty() || !crate::output::is_quiet(),
            AutorateEvent::Blind
            | AutorateEvent::Gone(_)
            | AutorateEvent::Earlier(_)
            | AutorateEvent::NotRemembered(_) => true,
        };
        if !is_wanted {
            return Ok(());
        }
        crate::output::next(&format!("{}\n", words(&event, &wanted)))
    };
    run(&wanted, &stop, &mut tell)?;
    Ok(if failed { CliExit::No } else { CliExit::Yes })
}

fn restored(options: &Options) -> anyhow::Result<CliExit> {
    let all = restore(&options.devices())?;
    if options.json {
        crate::output::text(&line(&AutorateEvent::Ended(all.clone())));
    } else if all.is_empty() {
        println!("nothing to put back on {}", options.devices().join(" and "));
    } else {
        println!("{}", put_back(&all));
    }
    Ok(if all.iter().any(|(_, done)| done.is_err()) { CliExit::No } else { CliExit::Yes })
}

fn wanted(options: &Options) -> anyhow::Result<AutorateOptions> {
    options.check().map_err(anyhow::Error::msg)?;
    let mut controller = options.controller.clone();
    if let Some(path) = &options.cake_config {
        anyhow::ensure!(
            controller == ControllerChoice::CakeAutorate(None),
            "--cake-config is for --controller cake-autorate"
        );
        let text = crate::input::policy(path).with_context(|| path.display().to_string())?;
        controller = ControllerChoice::CakeAutorate(Some(text));
    }
    let rates =
        |given, name| options::Rates::of(given, options.down.is_some(), name).map_err(anyhow::Error::msg);
    let mut targets: Vec<IpAddr> = Vec::new();
    for host in &options.target {
        // Of several addresses one will do.
        let found = addresses(host, AddressFamily::Any)?;
        targets.extend(found.first().filter(|address| !targets.contains(address)));
    }
    Ok(AutorateOptions {
        up: options.dev.clone(),
        down: options.down.clone(),
        controller,
        least: rates(options.min, "min")?,
        base: rates(options.base, "base")?,
        most: rates(options.max, "max")?,
        interval: options.interval(targets.len()),
        targets,
        idle: Some(options.idle).filter(|idle| !idle.is_zero()),
        duration: options.duration,
    })
}

/// What is controlled, in words.
fn shown(plan: &AutoratePlan, options: &AutorateOptions) -> String {
    let mut text = String::new();
    for direction in RateDirection::BOTH {
        let word = direction.word();
        let Some(shaper) = &plan.shapers[direction] else {
            text += &format!("{word}: left alone (--down DEV names the device that shapes it)\n");
            continue;
        };
        let [least, base, most] = [plan.limits.least, plan.limits.base, plan.limits.most]
            .map(|rates| rate(rates[direction] as f64));
        text += &format!(
            "{word}: {} on {}, {} now; from {least} to {most}, {base} without load{}\n",
            shaper.words(),
            shaper.dev(),
            rate(shaper.found() as f64),
            origin(direction, plan, options),
        );
    }
    let hosts = match options.targets.len() {
        0 => "no targets are probed".to_owned(),
        count => {
            let ms = options.interval.as_secs_f64() * 1e3;
            let each = if count == 1 { " is" } else { "s are each" };
            format!("{count} target{each} probed every {ms} ms while there is load")
        }
    };
    text + &format!("controller: {}; {hosts}\n", options.controller)
}

/// Which limits are not given, and so assumed, or found by observation.
fn origin(direction: RateDirection, plan: &AutoratePlan, options: &AutorateOptions) -> String {
    // A configuration has limits of its own.
    if let ControllerChoice::CakeAutorate(Some(_)) = &options.controller {
        return " (those of the configuration, else assumed)".to_owned();
    }
    let (limits, assumed) = (plan.limits, plan.assumed);
    let all = [
        ("lowest", options.least, limits.least, assumed.least),
        ("base", options.base, limits.base, assumed.base),
        ("highest", options.most, limits.most, assumed.most),
    ];
    let missing = all.iter().filter(|(_, given, ..)| given[direction].is_none());
    let (found, assumed): (Vec<_>, Vec<_>) =
        missing.partition(|(_, _, now, assumed)| now[direction] != assumed[direction]);
    let names = |of: &[&(&str, _, _, _)]| of.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ");
    let minutes = plan.learned[direction].seconds / 60;
    let time = if minutes < 120 { format!("{minutes} min") } else { format!("{} h", minutes / 60) };
    let parts = [
        (!assumed.is_empty()).then(|| format!("assumed: {}", names(&assumed))),
        (!found.is_empty()).then(|| format!("found in {time}: {}", names(&found))),
    ];
    match parts.into_iter().flatten().collect::<Vec<_>>().join("; ") {
        none if none.is_empty() => none,
        some => format!(" ({some})"),
    }
}

fn dry(
    (plan, why_not): (&AutoratePlan, Option<&str>),
    left: &[(String, LeftBehind)],
    options: &AutorateOptions,
    given: &Options,
) -> anyhow::Result<CliExit> {
    let replies = tried(options)?;
    if given.json {
        crate::output::text(&log::plan_line((plan, why_not), left, options, &replies));
    } else {
        let mut text = String::new();
        for (dev, left) in left {
            text += &match left {
                LeftBehind::Rate(bits) => format!(
                    "{dev}: a killed `tidegate autorate` left it with another rate; a run puts back {} first, and \
                     begins with that (or: tidegate autorate {dev} --restore)\n",
                    rate(*bits as f64)
                ),
                LeftBehind::OfOther => format!(
                    "{dev}: another user's `tidegate autorate` controls it, or was killed and left something to \
                     put back: only that user, such as root, may know which\n"
                ),
            };
        }
        text += &why_not.map_or_else(String::new, |why| format!("{why}\n"));
        text += &shown(plan, options);
        for (address, (count, best, one_way)) in options.targets.iter().zip(&replies) {
            text += &match best {
                None => format!(
                    "{address}: no reply to {count} probes; is it reachable, and does it answer pings?\n"
                ),
                Some(best) => {
                    let ways = if *one_way { "delays of each direction" } else { "round trips only" };
                    format!("{address}: replies within {:.1} ms at best; {ways}\n", best.as_secs_f64() * 1e3)
                }
            };
        }
        text += "nothing was changed (--dry-run)\n";
        crate::output::report(&text);
    }
    Ok(CliExit::Yes)
}

fn tried(options: &AutorateOptions) -> anyhow::Result<Vec<Tried>> {
    let mut results: Vec<Tried> = vec![(0, None, false); options.targets.len()];
    if options.targets.is_empty() {
        return Ok(results);
    }
    let stop = interrupt::event_fd()?;
    let mut targets = ProbeTargets::open(&options.targets)?;
    let mut clock = ProbeClock::begin();
    let begun = Instant::now();
    let mut due = begun;
    while begun.elapsed() < TRIED {
        if Instant::now() >= due {
            due += options.interval;
            for (at, result) in results.iter_mut().enumerate() {
                targets.send(at, &clock);
                result.0 += 1;
            }
        }
        if targets.wait(&[stop.as_fd()], due.saturating_duration_since(Instant::now()))?[0] {
            break;
        }
        let mut events = Vec::new();
        targets.collect(&mut clock, &mut events);
        for event in events {
            if let TargetEvent::Reply { target, sent_ns, at_ns, one_way_ns } = event {
                let (_, best, one_way) = &mut results[usize::from(target)];
                let took = Duration::from_nanos(at_ns - sent_ns);
                *best = Some(best.map_or(took, |best: Duration| best.min(took)));
                *one_way |= one_way_ns.is_some();
            }
        }
    }
    Ok(results)
}

fn put_back(all: &[PutBack]) -> String {
    let one = |(dev, done): &PutBack| match done {
        Ok(bits) => format!("{dev} has {} again", rate(*bits as f64)),
        Err(why) => format!("{dev} was NOT put back: {why}"),
    };
    all.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// An event for people.
fn words(event: &AutorateEvent, options: &AutorateOptions) -> String {
    match event {
        AutorateEvent::Decision { direction, dev, rate: bits, reason, delay_ms } => {
            let delay = delay_ms.map_or_else(String::new, |ms| format!(" ({ms:.1} ms)"));
            format!("{}: {} on {dev}: {}{delay}", direction.word(), rate(*bits as f64), reason.words())
        }
        AutorateEvent::Begun(plan) => {
            format!("{}running; Ctrl-C ends it and puts the rates back", shown(plan, options))
        }
        AutorateEvent::Idle => "no load: probing pauses, at the base rates".to_owned(),
        AutorateEvent::Active => "load again: it begins again at the base rates".to_owned(),
        AutorateEvent::Blind => {
            "no target has replied for 10 s: the rates that were found hold until one does".to_owned()
        }
        AutorateEvent::Seen => "a target replies again: it begins again at the base rates".to_owned(),
        AutorateEvent::Gone(why) => {
            format!(
                "{why}; the other rates that it set are put back, and the shaper is looked for every second"
            )
        }
        AutorateEvent::Back(rates) => {
            let all: Vec<String> = RateDirection::BOTH
                .into_iter()
                .filter_map(|direction| Some((direction, rates[direction]?)))
                .map(|(direction, bits)| format!("{} {}", direction.word(), rate(bits as f64)))
                .collect();
            format!("found ({}); these rates are put back at the end; it begins again", all.join(", "))
        }
        AutorateEvent::Limits(plan) => {
            let one = |direction: RateDirection| {
                plan.shapers[direction].as_ref()?;
                let [least, most] =
                    [plan.limits.least, plan.limits.most].map(|of| rate(of[direction] as f64));
                Some(format!(
                    "{} from {least} to {most}{}",
                    direction.word(),
                    origin(direction, plan, options)
                ))
            };
            let all: Vec<String> = RateDirection::BOTH.into_iter().filter_map(one).collect();
            format!("other limits by what the line carried: {}", all.join("; "))
        }
        AutorateEvent::NotRemembered(why) => why.clone(),
        AutorateEvent::Ended(all) => put_back(all),
        AutorateEvent::Earlier(all) => {
            format!("an earlier `tidegate autorate {}` was killed: {}", options.up, put_back(all))
        }
    }
}
