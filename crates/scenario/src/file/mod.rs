//! A scenario's file, parsed: every error is reported with its place.
//!
//! ```text
//! links, home ──▶ network (nodes, cables) ──▶ machines, hosts ──▶ policies, traffic, timeline ──▶ expectations
//! ```

mod beside;
mod commands;
mod expect;
mod home;
mod lines;
mod named;
mod network;
mod policies;
mod programs;
mod timeline;
mod traffic;
mod values;

use crate::files::Files;
use crate::model::{HostProgram, Scenario, ScenarioLoad, TrafficItem};
use crate::tables::{self, Diagnostic, Keys, TableValue, list, number, some_span, span, text, title};
use beside::Beside;
use named::named;
use network::Network;
use std::path::Path;
use tidegate_packet::Nanos;

pub use commands::{BadCommand, command_of, parse_command};

/// Bounds that catch typing errors (`duration = "60h"`).
const MAX_REPEATS: u64 = 10_000;

/// Parses the text of a scenario; `path` is its file, for files beside it and for messages.
///
/// # Errors
/// The place of what is wrong, why, and what to write instead.
pub fn parse(path: &Path, text_of: &str, files: &dyn Files) -> Result<Scenario, Diagnostic> {
    let filled = values::fill(text_of)?;
    read(path, &filled.text, files).map_err(|wrong| filled.original(wrong))
}

fn read(path: &Path, text_of: &str, files: &dyn Files) -> Result<Scenario, Diagnostic> {
    let parsed = tables::parse(text_of)?;
    let mut keys = Keys::new(parsed.get_ref(), 0..0);
    // Filled in already, and for `tidegate sweep`.
    for key in ["values", "sweep"] {
        keys.get(key);
    }
    let beside = Beside::new(path, files);
    let mut network = Network::default();
    if let Some(links) = keys.get("links") {
        network.links(links, &beside)?;
    }
    if let Some(home) = keys.get("home") {
        home::read(home, &mut network, &beside)?;
    }
    if network.cables.is_empty() {
        return Err(Diagnostic::new(0..0, "no links defined", "add `[links.NAME]`, or `[home]`"));
    }
    if let Some(machines) = keys.get("machines") {
        network.machines(machines)?;
    }
    if let Some(hosts) = keys.get("hosts") {
        network.hosts(hosts)?;
    }
    let items =
        keys.get("traffic").map(|all| traffic::items(all, &mut network)).transpose()?.unwrap_or_default();
    let programs =
        keys.get("programs").map(|all| programs::read(all, &mut network)).transpose()?.unwrap_or_default();
    let everywhere = Everywhere { items, programs };
    let mut loads = Vec::new();
    for (name, value) in named(keys.get("loads"))? {
        loads.push(load(name, value, &everywhere, &mut network)?);
    }
    if loads.is_empty() {
        let Everywhere { items, programs } = everywhere;
        let items = traffic::joined(&items, Vec::new())?;
        loads.push(ScenarioLoad { name: "load".into(), title: String::new(), test: None, items, programs });
    }
    network.settle();
    for item in loads.iter().flat_map(|load| &load.items) {
        network.reaches(item)?;
    }
    let mut policies = Vec::new();
    for (name, value) in named(keys.get("policies"))? {
        policies.push(policies::read(name, value, &network, &beside)?);
    }
    if policies.is_empty() {
        policies.push(policies::none());
    }
    let at = keys
        .get("at")
        .map(|all| timeline::read(all, &network, None, &beside))
        .transpose()?
        .unwrap_or_default();
    let cases = expect::cases(keys.get("case"), &policies, &loads)?;
    let expect = expect::read(keys.get("expect"), &policies, &loads, &cases)?;
    let words = |value: Option<String>| value.unwrap_or_default();
    let of = |value: TableValue<'_>| text(value).map(str::to_owned);
    let scenario = Scenario {
        path: path.to_owned(),
        text: text_of.to_owned(),
        title: words(keys.read("title", |value| title(value).map(str::to_owned))?),
        about: words(keys.read("about", of)?),
        source: keys.read("source", of)?,
        duration: keys.read("duration", some_span)?.unwrap_or(Nanos::secs(60)),
        warm_up: keys.read("warm-up", span)?.unwrap_or(Nanos::secs(5)),
        seed: keys.read("seed", |value| number(value, 0, u64::MAX))?.unwrap_or(1),
        repeats: keys.read("repeats", |value| number(value, 1, MAX_REPEATS))?.unwrap_or(1) as u32,
        step: keys.read("step", step)?.unwrap_or(Nanos::millis(100)),
        jitter: keys.read("jitter", span)?.unwrap_or(Nanos::micros(50)),
        nodes: network.nodes,
        cables: network.cables,
        policies,
        loads,
        at,
        cases,
        expect,
        kernel: None,
    };
    keys.finish()?;
    Ok(scenario)
}

/// The step of the series.
fn step(value: TableValue<'_>) -> Result<Nanos, Diagnostic> {
    match some_span(value)? {
        step if step < Nanos::millis(1) => Err(Diagnostic::new(
            value.span(),
            "steps are a millisecond at least",
            "100ms is what charts need",
        )),
        step => Ok(step),
    }
}

/// The traffic under every load.
struct Everywhere {
    items: Vec<TrafficItem>,
    programs: Vec<HostProgram>,
}

fn load(
    name: &str,
    value: TableValue<'_>,
    everywhere: &Everywhere,
    network: &mut Network,
) -> Result<ScenarioLoad, Diagnostic> {
    let mut keys = Keys::of(value)?;
    let title = keys.read("title", title)?.unwrap_or(name).to_owned();
    let mut test = None;
    let mut own = Vec::new();
    if let Some(all) = keys.get("traffic") {
        own = traffic::items(all, network)?;
        test = list(all)?
            .iter()
            .find_map(|one| one.get_ref().get("test")?.get_ref().as_str())
            .map(str::to_owned);
    }
    let mut programs = everywhere.programs.clone();
    if let Some(all) = keys.get("programs") {
        programs.extend(programs::read(all, network)?);
    }
    keys.finish()?;
    let items = traffic::joined(&everywhere.items, own)?;
    Ok(ScenarioLoad { name: name.to_owned(), title, test, items, programs })
}

#[cfg(test)]
mod tests;
