//! Commands, and what happens at its time.

use super::beside::Beside;
use super::commands::command;
use super::lines;
use super::network::{Network, strings};
use crate::model::{LinkDirection, MachineCommand, TimelineEntry, TimelineEvent};
use crate::tables::{Diagnostic, Keys, TableValue, list, some_span, span, text};
use tidegate_packet::Nanos;
use tidegate_sim::Trace;
use toml::de::DeValue;

/// The most events of a timeline that repeats some.
const MAX_ENTRIES: usize = 10_000;

/// `[[at]]`; `usual` is the machine that is meant where none is named and there are several.
pub(crate) fn read(
    value: TableValue<'_>,
    network: &Network,
    usual: Option<usize>,
    beside: &Beside<'_>,
) -> Result<Vec<TimelineEntry>, Diagnostic> {
    let mut all = Vec::new();
    for entry in list(value)? {
        let mut keys = Keys::of(entry)?;
        let before = all.len();
        let time = span(keys.need("time", "missing time: `time = \"30s\"`, from the beginning of the run")?)?;
        let link = keys.get("link");
        if link.is_none() {
            all.extend(machine_command(&mut keys, time, (network, usual), beside)?);
        } else if let Some(link) = link {
            let cable = network.known_link(text(link)?, link.span())?;
            let (up, down) = lines::both(&mut keys, beside)?;
            let usual = &network.cables[cable];
            fixed(&up, &usual.up, link)?;
            fixed(&down, &usual.down, link)?;
            all.push(TimelineEntry {
                time,
                what: TimelineEvent::Link { cable, lines: Box::new([up, down]) },
            });
        }
        repeat(&mut keys, &mut all, before)?;
        keys.finish()?;
    }
    all.sort_by_key(|at| at.time);
    Ok(all)
}

/// `every = "200ms"`, `until = "60s"`: the entries from `first` on again after each such time.
fn repeat(keys: &mut Keys<'_>, all: &mut Vec<TimelineEntry>, first: usize) -> Result<(), Diagnostic> {
    let place = keys.get("every").map(|every| every.span());
    let (Some(every), Some(place)) = (keys.read("every", some_span)?, place) else {
        return match keys.get("until") {
            None => Ok(()),
            Some(until) => {
                let how = "write how often it happens: `every = \"2s\"`";
                Err(Diagnostic::new(until.span(), "only what repeats has an end", how))
            }
        };
    };
    let until = span(keys.need("until", "missing end: `until = \"60s\"`, from the beginning of the run")?)?;
    let once = all[first..].to_vec();
    let shifts = (1..).map(|times: u64| every.0.saturating_mul(times));
    for shift in shifts {
        let again = once.iter().filter_map(|entry| {
            let time = Nanos(entry.time.0.saturating_add(shift));
            (time < until).then(|| TimelineEntry { time, ..entry.clone() })
        });
        let before = all.len();
        all.extend(again);
        if all.len() > MAX_ENTRIES {
            let why = format!("these are more than {MAX_ENTRIES} events");
            return Err(Diagnostic::new(place, why, "lengthen `every`, or end it earlier"));
        }
        if all.len() == before {
            break;
        }
    }
    Ok(())
}

/// A command for a machine.
fn machine_command(
    keys: &mut Keys<'_>,
    time: Nanos,
    (network, usual): (&Network, Option<usize>),
    beside: &Beside<'_>,
) -> Result<Vec<TimelineEntry>, Diagnostic> {
    let machine = match keys.get("on") {
        Some(on) => network.known_machine(text(on)?, on.span())?,
        None => match usual {
            Some(machine) => machine,
            None => network.only_machine(keys.place())?,
        },
    };
    let pace = keys.read("pace", span)?.unwrap_or_default();
    if let Some(script) = keys.get("script") {
        let path = beside.join(text(script)?);
        if !beside.exists(&path) {
            let why = format!("there is no file {}", path.display());
            return Err(Diagnostic::new(script.span(), why, "name a script beside this file"));
        }
        let args = keys.read("args", strings)?.unwrap_or_default();
        return Ok(vec![TimelineEntry {
            time,
            what: TimelineEvent::Script { machine, path, args, pace, at: script.span() },
        }]);
    }
    let how = "missing command: `run = \"tc qdisc del dev eth0 root\"`, or `script = \"FILE\"`; a link \
    changes with `link = \"NAME\"`";
    let commands = commands(keys.need("run", how)?)?;
    let found = (0..).zip(commands).map(|(number, command)| TimelineEntry {
        time: time + Nanos(pace.0 * number),
        what: TimelineEvent::Command { machine, command },
    });
    Ok(found.collect())
}

/// What a link keeps.
fn fixed(line: &LinkDirection, usual: &LinkDirection, link: TableValue<'_>) -> Result<(), Diagnostic> {
    let recorded = usual.trace.as_ref();
    for (what, is_changed, is_recorded) in [
        ("rate", line.rate.is_some(), recorded.is_some_and(Trace::has_rates)),
        ("delay", line.delay.is_some(), recorded.is_some_and(Trace::has_delays)),
    ] {
        if is_changed && is_recorded {
            let why = format!("a recording says the {what} of this link");
            return Err(Diagnostic::new(link.span(), why, "leave it out, or write it into the recording"));
        }
    }
    if line.framing.is_some() || line.trace.is_some() || line.jitter.is_some() {
        let what = "a link's framing, jitter and trace stay as they are";
        return Err(Diagnostic::new(
            link.span(),
            what,
            "rate, delay, buffer, packet-rate, ring, bql, loss may change",
        ));
    }
    Ok(())
}

/// A command, or several.
fn commands(value: TableValue<'_>) -> Result<Vec<MachineCommand>, Diagnostic> {
    match value.get_ref() {
        DeValue::Array(lines) => lines.iter().map(|line| command(text(line)?, line.span())).collect(),
        _ => Ok(vec![command(text(value)?, value.span())?]),
    }
}
