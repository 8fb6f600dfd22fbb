//! One experiment: what its keys say, and the commands that it comes to.

use super::netem;
use super::targets::{self, Address};
use crate::foreign::{ForeignCommand, ForeignPolicy};
use crate::kubernetes::Findings;
use crate::nft::Span;
use crate::yaml::{YamlEntry, YamlNode};

/// The keys of an experiment. `scheduler` is of Chaos Mesh 1.
const KEYS: [&str; 17] = [
    "action",
    "mode",
    "value",
    "selector",
    "duration",
    "delay",
    "loss",
    "duplicate",
    "corrupt",
    "bandwidth",
    "rate",
    "direction",
    "target",
    "targetDevice",
    "externalTargets",
    "device",
    "remoteCluster",
];
const OF_CHAOS_MESH_1: &str = "scheduler";
const ACTIONS: [&str; 7] = ["netem", "delay", "loss", "duplicate", "corrupt", "partition", "bandwidth"];
const MODES: [&str; 5] = ["one", "all", "fixed", "fixed-percent", "random-max-percent"];
const SELECTOR: [&str; 9] = [
    "namespaces",
    "labelSelectors",
    "expressionSelectors",
    "annotationSelectors",
    "fieldSelectors",
    "podPhaseSelectors",
    "nodeSelectors",
    "nodes",
    "pods",
];
/// The device of a pod that Chaos Mesh takes where none is named.
const DEFAULT_DEVICE: &str = "eth0";
/// The longest name of a device, in bytes.
const LONGEST_NAME: usize = 15;
/// The keys that give netem its options.
const OF_NETEM: [&str; 5] = ["delay", "loss", "duplicate", "corrupt", "rate"];

/// What an experiment puts on a device of its pods.
pub(super) struct Experiment {
    /// Where it begins: at its action.
    span: Span,
    device: (String, Span),
    /// The qdisc and its options.
    qdisc: String,
    /// Where packets must go that get it; `None`: all get it.
    towards: Option<Vec<Address>>,
}

impl Experiment {
    /// `None`: it puts no qdisc on, or there is something wrong with it.
    pub(super) fn read(entry: &YamlEntry, found: &mut Findings) -> Option<Experiment> {
        let spec = &entry.node;
        let before = found.problems.len();
        keys(entry, found);
        found.must_have(entry, "action");
        let action = found.choice(spec, "action", &ACTIONS);
        let direction =
            found.choice(spec, "direction", &["to", "from", "both"]).map_or("to", |(word, _)| word);
        pods(entry, direction, found);
        if let Some((duration, span)) = found.text(spec, "duration") {
            found.note(
                span,
                format!("it is taken off after {duration}"),
                "what follows holds while it is on",
            );
        }
        if let Some(cluster) = spec.entry("remoteCluster") {
            found.note(cluster.span, "it is put on in another cluster", "what follows holds for pods there");
        }
        let (action, span) = action?;
        if action == "partition" {
            let what =
                "action: partition cuts connections off with iptables, and puts no qdisc on: it is left out";
            found.skip(span, what, "read are netem, delay, loss, duplicate, corrupt and bandwidth");
            return None;
        }
        let towards = targets::read(spec, direction, found);
        let device = device(spec, direction, found);
        let qdisc = qdisc(entry, (action, span), found)?;
        let is_well = found.problems.len() == before;
        is_well.then_some(Experiment { span, device: device?, qdisc, towards })
    }

    /// Adds the commands, as the daemon gives them. `at`: which of the file's experiments it is, and its
    /// name.
    pub(super) fn carry_out(self, at: (usize, &str), policy: &mut ForeignPolicy, found: &mut Findings) {
        let Experiment { span, device: (own, device_span), qdisc, towards } = self;
        let device = apart(&own, at, &policy.devices);
        if device != own {
            let what =
                format!("`{device}` stands for {own} of the pods of {}, which are other pods here", at.1);
            let remedy = "Chaos Mesh chains experiments that are put on one pod: give such a file its own";
            found.note(device_span, what, remedy);
        }
        let mut say =
            |tool, words: String| policy.commands.push(ForeignCommand::new(tool, &words, span.line));
        let Some(addresses) = towards else {
            say("tc", format!("qdisc add dev {device} root handle 1: {qdisc}"));
            policy.devices.push(device);
            return;
        };
        if at.0 == 0 {
            say("iptables", "-w -N CHAOS-OUTPUT".to_owned());
            say("iptables", "-w -A OUTPUT -j CHAOS-OUTPUT".to_owned());
        }
        let priomap = "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1";
        say("tc", format!("qdisc add dev {device} root handle 1: prio bands 4 priomap {priomap}"));
        for band in 1..=3 {
            say("tc", format!("qdisc add dev {device} parent 1:{band} handle {}: sfq", band + 1));
        }
        say("tc", format!("qdisc add dev {device} parent 1:4 handle 5: {qdisc}"));
        let chain = format!("TC-TABLES-{}", at.0);
        say("iptables", format!("-w -N {chain}"));
        for address in &addresses {
            let to = address.words();
            say("iptables", format!("-w -A {chain} -o {device} {to} -j CLASSIFY --set-class 1:4"));
        }
        say("iptables", format!("-w -A CHAOS-OUTPUT -j {chain}"));
        policy.devices.push(device);
    }
}

/// A name that no other experiment's device has: pods have an eth0 each.
fn apart(own: &str, (at, _): (usize, &str), taken: &[String]) -> String {
    let is_free = |name: &str| !taken.iter().any(|other| other == name);
    if is_free(own) {
        return own.to_owned();
    }
    // An experiment has a number of its own, so that one of these is free.
    let number = format!("-{}", at + 1);
    let names = (0..=own.len()).rev().filter_map(|end| Some(format!("{}{number}", own.get(..end)?)));
    let mut fit = names.filter(|name| name.len() <= LONGEST_NAME && is_free(name));
    fit.next().unwrap_or_else(|| format!("pod{number}"))
}

/// The keys of an experiment, one of Chaos Mesh 1 among them.
fn keys(entry: &YamlEntry, found: &mut Findings) {
    if let Some(old) = entry.node.entry(OF_CHAOS_MESH_1) {
        let what = "`scheduler` is of Chaos Mesh 1, which puts the experiment on again and again: 2 takes a Schedule";
        found.note(old.span, what, "what follows holds while it is on");
    }
    let known: Vec<&str> =
        KEYS.into_iter().chain(entry.node.entry(OF_CHAOS_MESH_1).map(|_| OF_CHAOS_MESH_1)).collect();
    found.keys(entry, &known);
}

/// Which pods it is put on.
fn pods(entry: &YamlEntry, direction: &str, found: &mut Findings) {
    let mut chosen = Vec::new();
    let target = entry.node.entry("target");
    for (table, keys) in [(Some(entry), None), (target, Some(["selector", "mode", "value"]))] {
        let Some(table) = table else { continue };
        if let Some(keys) = keys {
            found.keys(table, &keys);
        }
        match table.node.entry("selector") {
            Some(selector) => found.keys(selector, &SELECTOR),
            None => {
                found.must_have(table, "selector");
            }
        }
        found.must_have(table, "mode");
        let mode = found.choice(&table.node, "mode", &MODES);
        let value = found.text(&table.node, "value");
        let most = match mode {
            Some(("fixed", _)) => u32::MAX,
            Some(("fixed-percent" | "random-max-percent", _)) => 100,
            _ => 0,
        };
        let number = value.and_then(|(text, _)| text.parse::<u32>().ok());
        let number = number.filter(|number| (1..=most).contains(number));
        if let (Some((mode, span)), None) = (mode.filter(|_| most > 0), number) {
            let what = format!("mode: {mode} without a `value` that fits");
            found.wrong(span, what, format!("write value: \"2\", a whole number in quotes, at most {most}"));
        }
        chosen.push((mode, number.unwrap_or_default()));
    }
    let of_target = direction == "from";
    let Some(&(Some((mode, span)), number)) = chosen.get(usize::from(of_target)) else { return };
    let which = match mode {
        "one" => "one pod, chosen at random, of those that".to_owned(),
        "all" => "every pod that".to_owned(),
        "fixed" => format!("{number} pods, chosen at random, of those that"),
        "fixed-percent" => format!("{number} % of the pods, chosen at random, that"),
        _ => format!("at most {number} % of the pods, how many and which by chance, that"),
    };
    let whose = if of_target { "target's" } else { "its" };
    let what = format!("it is put on {which} {whose} selector fits");
    found.note(span, what, "one machine stands for each of them");
    if direction == "both" {
        let what =
            "direction: both puts the same on the pods of target, for what they send to those of selector";
        found.note(span, what, "shown are the pods of selector");
    }
}

/// The device of the pod.
fn device(spec: &YamlNode, direction: &str, found: &mut Findings) -> Option<(String, Span)> {
    let key = if direction == "from" { "targetDevice" } else { "device" };
    let Some((name, span)) = found.text(spec, key) else {
        let action = spec.entry("action").map_or(spec.span, |entry| entry.span);
        return spec.get(key).is_none().then(|| (DEFAULT_DEVICE.to_owned(), action));
    };
    // `ip link` prints the other end of a veth behind an @, which Chaos Mesh cuts off.
    let name = if key == "device" { name.split('@').next().unwrap_or(name) } else { name };
    let name = if name.is_empty() { DEFAULT_DEVICE } else { name };
    let is_name = |letter: char| letter.is_ascii_graphic() && letter != '/';
    if name.len() > LONGEST_NAME || !name.chars().all(is_name) {
        let what =
            format!("{name} is no name of a device: it has at most {LONGEST_NAME} bytes, no / and no blank");
        found.wrong(span, what, "correct it (`ip link` in the pod lists them)");
        return None;
    }
    Some((name.to_owned(), span))
}

/// The qdisc with its options; what is given and has no effect is told.
fn qdisc(entry: &YamlEntry, (action, span): (&str, Span), found: &mut Findings) -> Option<String> {
    let spec = &entry.node;
    let is_netem = action != "bandwidth";
    let unused: &[&str] = if is_netem { &["bandwidth"] } else { &OF_NETEM };
    for other in unused.iter().filter_map(|key| spec.entry(key)) {
        let what = format!("action: {action} leaves `{}` out", other.key);
        found.note(other.span, what, "write an experiment of its own for it");
    }
    if !is_netem {
        return netem::bandwidth(entry, found);
    }
    for other in OF_NETEM.iter().filter_map(|key| spec.entry(key)) {
        if action != "netem" && other.key != action {
            let what = format!("`{}` is put on, too, although the action is {action}", other.key);
            found.note(other.span, what, "Chaos Mesh takes all of them; action: netem says so");
        }
    }
    netem::netem(spec, span, found)
}
