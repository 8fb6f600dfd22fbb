//! R24: devices that exist only when a command makes them, and that nothing in these files makes.

use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::reading::{PolicyModel, Step};
use crate::walk::outcome::redirects;
use crate::words::named;
use tidegate_policy::{LinkDriver, LinkOp, Op};

/// One note for all of them, at the script's first line.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let reading = &*reading;
    let makes_links = reading.ops.iter().any(|op| matches!(op, Op::Link(LinkOp::Add { .. })));
    let missing: Vec<String> = reading
        .there_before()
        .filter(|name| must_be_made(name, makes_links) && is_used(reading, name))
        .map(str::to_owned)
        .collect();
    missing.first().and_then(|first| finding(reading, first, &missing)).into_iter().collect()
}

/// Is a device of that name there only if a command makes it? Interfaces for redirects, cables and dummies
/// are; VLANs and bridges may be the system's own, unless the script makes its links itself.
fn must_be_made(name: &str, makes_links: bool) -> bool {
    let numbered = |stem: &str| {
        let digits = name.strip_prefix(stem).unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    match LinkDriver::of_name(name) {
        LinkDriver::Ifb => true,
        LinkDriver::Vlan { .. } => makes_links,
        // Only patched kernels have it.
        _ if numbered("imq") => true,
        _ => numbered("veth") || numbered("dummy") || makes_links && numbered("br"),
    }
}

/// Does the policy need it? A command that only clears it away does not.
fn is_used(reading: &PolicyModel, name: &str) -> bool {
    let makes = |step: &Step| {
        let words: Vec<&str> = step.words.iter().map(|word| word.text.as_str()).collect();
        if loads_ifb(step) {
            let asked = words.iter().find_map(|word| word.strip_prefix("numifbs=")?.parse().ok());
            let number = name.strip_prefix("ifb").and_then(|number| number.parse::<u32>().ok());
            return number.is_some_and(|number| number < asked.unwrap_or(2));
        }
        // Links whose creation was refused are reported; so is a module for them.
        words.contains(&name) && words.windows(2).any(|pair| pair == ["link", "add"])
    };
    let leads = reading.filters.iter().any(|dump| redirects(dump).any(|to| to == name));
    let exists = reading.qdiscs.iter().any(|qdisc| qdisc.dev == name && !qdisc.handle.is_none());
    (leads || exists) && !reading.steps.iter().any(makes)
}

/// Is it a command that loads the module of the ifbs, which makes them?
fn loads_ifb(step: &Step) -> bool {
    let loads = matches!(step.tool.as_str(), "modprobe" | "insmod") && step.refused.is_none();
    // `insmod /lib/modules/…/ifb.ko` names a file.
    let module = |text: &str| text.rsplit('/').next().map(|file| file.split('.').next() == Some("ifb"));
    loads
        && !step.words.iter().any(|word| word.text == "-r" || word.text == "--remove")
        && step.words.iter().any(|word| module(&word.text) == Some(true))
}

fn finding(reading: &PolicyModel, first: &str, missing: &[String]) -> Option<Finding> {
    let names = |step: &&Step| step.words.iter().any(|word| word.text == first);
    let step = reading.steps.iter().filter(|step| !crate::lost::clears(step)).find(names)?;
    let word = step.words.iter().find(|word| word.text == first);
    let kind = match LinkDriver::of_name(first) {
        LinkDriver::Ifb => "ifb",
        LinkDriver::Vlan { .. } => "vlan",
        LinkDriver::Bridge => "bridge",
        LinkDriver::Dummy => "dummy",
        _ if first.starts_with("imq") => "imq",
        _ => "veth",
    };
    let loaded = if kind == "ifb" { " (`modprobe ifb` creates ifb0 and ifb1 by default)" } else { "" };
    Some(Finding {
        rule: Rule::Absent,
        level: Level::Note,
        place: word.and_then(|word| word.place.clone()).or_else(|| step.place.clone()),
        what: format!("nothing in these files makes {}", named(missing)),
        because: format!(
            "unless something else has made it before, every command about it fails (Cannot find \
            device \"{first}\")"
        ),
        witness: Some(Witness::Number(format!("no command of this policy makes {first}{loaded}"))),
        fix: Some(Fix {
            what: match kind {
                "imq" => "no Linux has IMQ unpatched: use an ifb, and redirect to it with tc".to_owned(),
                kind => make(first, kind),
            },
            edits: Vec::new(),
        }),
    })
}

/// The commands that make a device.
fn make(name: &str, kind: &str) -> String {
    match name.rsplit_once('.').filter(|_| kind == "vlan") {
        Some((lower, id)) => format!("make it first: ip link add link {lower} name {name} type vlan id {id}"),
        None => format!("make it first: ip link add {name} type {kind} && ip link set {name} up"),
    }
}
