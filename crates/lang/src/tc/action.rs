//! `action …` at the end of a filter: the words, and how they are listed.

use super::ShowFlags;
use super::build::later;
use super::show::Entry;
use super::words::{Words, begins};
use crate::json::Json;
use crate::{Env, Refusal};
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Act, Action, Control};

/// The most actions of a filter.
const MOST: usize = 32;

/// Actions that tc 6.1 knows and this version has not.
const LATER: [&str; 16] = [
    "police",
    "nat",
    "pedit",
    "csum",
    "skbmod",
    "skbedit",
    "tunnel_key",
    "sample",
    "ct",
    "ctinfo",
    "connmark",
    "mpls",
    "vlan",
    "bpf",
    "simple",
    "ife",
];

/// Reads the words after the first `action`: one action after the other, until they end or the filter's class is named.
pub(super) fn parse(words: &mut Words<'_>, env: &Env) -> Result<Vec<Action>, Refusal> {
    let mut actions = Vec::new();
    let first = words.need()?;
    actions.push(one(first, words, env)?);
    while let Some(word) = words.peek() {
        if begins(word, "flowid") || begins(word, "classid") {
            break;
        }
        words.skip();
        let word = if word == "action" { words.need()? } else { word };
        if actions.len() >= MOST {
            return Err(Refusal::new(1, "Illegal \"action\"")
                .at(words.last())
                .remedy(format!("A filter has at most {MOST} actions.")));
        }
        actions.push(one(word, words, env)?);
    }
    Ok(actions)
}

fn one(word: &str, words: &mut Words<'_>, env: &Env) -> Result<Action, Refusal> {
    let place = words.last();
    let act = match word {
        "mirred" => redirect(words, env)?,
        "gact" => {
            let word = words.need()?;
            Act::Gact(control(word).ok_or_else(|| unknown(word, words.last()))?)
        }
        _ if control(word).is_some() => Act::Gact(control(word).unwrap_or(Control::Pass)),
        "goto" | "jump" | "trap" => return Err(later("action", word, place)),
        _ if LATER.contains(&word) => return Err(later("action", word, place)),
        _ => return Err(unknown(word, place)),
    };
    match words.peek() {
        Some(option @ ("index" | "random" | "cookie" | "no_percpu" | "hw_stats")) => {
            words.skip();
            Err(later("action option", option, words.last()))
        }
        _ => Ok(Action { act, index: 0 }),
    }
}

/// A decision by its name.
fn control(word: &str) -> Option<Control> {
    Some(match word {
        "pass" | "ok" => Control::Pass,
        "drop" | "shot" => Control::Drop,
        "continue" => Control::Continue,
        "reclassify" => Control::Reclassify,
        "pipe" => Control::Pipe,
        _ => return None,
    })
}

fn unknown(word: &str, place: usize) -> Refusal {
    Refusal::new(1, format!("Bad action type {word}"))
        .at(place)
        .remedy("The actions are pass, drop, continue, reclassify, pipe and mirred egress redirect dev DEVICE.")
}

/// `egress redirect dev X`.
fn redirect(words: &mut Words<'_>, env: &Env) -> Result<Act, Refusal> {
    const FORM: &str = "Packets are led to another device so: action mirred egress redirect dev ifb0";
    let bad = |line: String, value: String, place: usize| {
        Refusal::new(1, line)
            .then(&format!("bad action parsing\nparse_action: bad value ({value}:mirred)!\nIllegal \"action\"\n"))
            .at(place)
            .remedy(FORM)
    };
    let direction = words.need()?;
    match direction {
        "egress" => {}
        "ingress" => return Err(later("action", "mirred ingress", words.last())),
        _ => {
            let left = words.left() + 2;
            return Err(bad(format!("mirred option not supported {direction}"), left.to_string(), words.last()));
        }
    }
    match words.need()? {
        "redirect" => {}
        "mirror" => return Err(later("action", "mirred egress mirror", words.last())),
        _ => return Err(Refusal::incomplete().at(words.last()).remedy(FORM)),
    }
    // The decision may stand before the device; what redirects steals the packet whatever is said.
    if words.peek().is_some_and(|word| control(word).is_some()) {
        words.skip();
    }
    if words.need()? != "dev" {
        return Err(Refusal::incomplete().at(words.last()).remedy(FORM));
    }
    let name = words.need()?;
    if !env.has(name) {
        let left = words.left() + 5;
        return Err(bad(format!("Cannot find device \"{name}\""), left.to_string(), words.last())
            .remedy("Packets can only be led to a device that is there; make it first: ip link add NAME type ifb."));
    }
    Ok(Act::Redirect { to: name.into(), device: Act::NOWHERE })
}

/// The lines of a filter's actions, and its member `actions`.
pub(super) fn show(actions: &[ActionDump], flags: &ShowFlags, entry: &mut Entry) {
    if actions.is_empty() {
        return;
    }
    let mut list = Vec::new();
    for (order, action) in (1..).zip(actions) {
        let mut one = Entry::new();
        one.say(&format!("\n\taction order {order}: "));
        one.member("order", Json::number(order));
        one.member("kind", Json::text(action.action.act.kind()));
        doing(action, &mut one);
        if flags.stats {
            used(action, &mut one);
            counts(action, &mut one);
        }
        one.say("\n");
        entry.say(&one.text);
        list.push(Json::Object(one.members));
    }
    entry.member("actions", Json::List(list));
}

/// What it does, and its number.
fn doing(dump: &ActionDump, entry: &mut Entry) {
    let type_of = |control: Control| Json::Object(vec![("type", Json::text(control.name()))]);
    let lead = match &dump.action.act {
        Act::Gact(control) => {
            entry.say(&format!("gact action {}\n\t random type none pass val 0\n\t ", control.name()));
            entry.member("control_action", type_of(*control));
            let random = vec![
                ("random_type", Json::text("none")),
                ("control_action", type_of(Control::Pass)),
                ("val", Json::number(0)),
            ];
            entry.member("prob", Json::Object(random));
            ""
        }
        Act::Redirect { to, .. } => {
            entry.say(&format!("mirred (Egress Redirect to device {to}) stolen"));
            entry.member("mirred_action", Json::text("redirect"));
            entry.member("direction", Json::text("egress"));
            entry.member("to_dev", Json::text(to.clone()));
            entry.member("control_action", type_of(Control::Stolen));
            "\n\t"
        }
    };
    entry.number("index", dump.action.index, &format!("{lead}index {}", dump.action.index));
    entry.number("ref", 1, " ref 1");
    entry.number("bind", 1, " bind 1");
}

/// Since when it is there and in use; what is less than a hundredth of a second is left out.
fn used(dump: &ActionDump, entry: &mut Entry) {
    const TICK: u64 = 10_000_000;
    let times = [
        ("installed", "installed", Some(dump.installed)),
        ("last_used", "used", Some(dump.used)),
        ("first_used", "firstused", dump.first_used),
    ];
    for (key, word, ns) in times {
        if let Some(ns) = ns.filter(|ns| *ns >= TICK) {
            let seconds = ns / 1_000_000_000;
            entry.number(key, seconds, &format!(" {word} {seconds} sec"));
        }
    }
}

fn counts(dump: &ActionDump, entry: &mut Entry) {
    let (bytes, packets, drops) = (dump.bytes, dump.packets, dump.drops);
    entry.say(&format!(
        "\n\tAction statistics:\n\tSent {bytes} bytes {packets} pkt (dropped {drops}, overlimits 0 requeues 0) \n\tbacklog 0b 0p requeues 0"
    ));
    let mut stats =
        vec![("bytes", Json::number(bytes)), ("packets", Json::number(packets)), ("drops", Json::number(drops))];
    stats.extend(["overlimits", "requeues", "backlog", "qlen"].map(|key| (key, Json::number(0))));
    entry.member("stats", Json::Object(stats));
}
