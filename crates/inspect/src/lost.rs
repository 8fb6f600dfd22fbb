//! What refused commands should have made: whatever else names it is missing the same thing, and is no
//! mistake of its own.

use crate::step::{Step, Word};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_packet::Handle;
use tidegate_policy::dump::ClassDump;
use tidegate_syntax::tc::{no_device_name, refusal_lines};
use tidegate_syntax::units::{parse_classid, parse_handle};

/// Something that a command makes, or needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Thing {
    /// A device.
    Device(String),
    /// A qdisc of a device, by its handle.
    Qdisc(String, Handle),
    /// A class of a device.
    Class(String, Handle),
    /// The qdisc that was to be attached to a class or root.
    Hung(String, Handle),
    /// Any filter of a device.
    Filter(String),
    /// A filter that leads to a class.
    Lead(String, Handle),
    /// A filter that matches a mark.
    Matched(String, u32),
    /// A rule that sets a mark.
    Mark(u32),
    /// A chain of netfilter.
    Chain(String),
}

/// A part of tidegate's message where a qdisc is missing that it could not make.
const NOT_MADE: &str = " has no qdisc ";
/// Messages of refusals because something is missing. All others are about the command itself.
const ABSENT: [&str; 12] = [
    "Cannot find device",
    NOT_MADE,
    "Failed to find",
    "Specified class not found",
    "Specified class doesn't exist",
    "No such file or directory",
    "Parent Qdisc",
    "Qdisc not classful",
    "No chain/target/match by that name",
    "does not exist",
    "Couldn't load target",
    "Invalid argument",
];
/// And when something is there already.
const PRESENT: [&str; 4] = ["Exclusivity flag", "File exists", "NLM_F_REPLACE", "already exists"];

/// Words with which commands of iptables and others clear the way; those of tc and ip have a verb.
const CLEARS: [&str; 5] = ["del", "delete", "-X", "-D", "-F"];

/// What tidegate itself lacks, of a message that says so; nft gives the place first.
pub(crate) fn lacks(message: &str) -> Option<&str> {
    message.strip_prefix("tidegate: ").or(message.split_once("Error: tidegate: ").map(|(_, own)| own))
}

/// What tidegate lacks to carry a command out, where that is why it was refused.
pub(crate) fn not_built(step: &Step) -> Option<String> {
    let text = step.refused.as_deref().filter(|_| !is_unnamed(step))?;
    let prefix = format!("{}: ", step.tool);
    let reason = refusal_lines(text).find_map(|line| {
        lacks(line.strip_prefix(&prefix).unwrap_or(line)).filter(|own| own.contains("not supported"))
    });
    // Behind what Linux says where it lacks the device for it.
    let kind = || {
        let own = |line: &str| Some(line.strip_prefix(&prefix)?.split_once(" is not built: ")?.0.to_owned());
        text.lines().find_map(own).map(|kind| format!("{kind} is not built"))
    };
    reason.map(|reason| reason.trim_end_matches('.').to_owned()).or_else(kind)
}

/// Whether the command clears the device first. A missing object is then no error.
pub(crate) fn clears(step: &Step) -> bool {
    // A link that is put down is about to go, or to be set up again.
    let puts_down =
        ["ip", "ifconfig"].contains(&step.tool.as_str()) && step.words.iter().any(|word| word.text == "down");
    // A module that is not loaded need not be removed.
    let unloads = || {
        let removes = step.tool == "rmmod"
            || step.tool == "modprobe" && step.words.iter().any(|word| word.text == "-r");
        removes && has_words(step, &["is not currently loaded"])
    };
    match of_tc(step) {
        Some((_, verb)) => !verb.is_empty() && "delete".starts_with(verb),
        None => puts_down || unloads() || step.words.iter().any(|word| CLEARS.contains(&word.text.as_str())),
    }
}

/// Was something to be deleted that is there and stays: because it is in use, or because the command names
/// another kind or handle?
pub(crate) fn stays(step: &Step) -> bool {
    let is_another = || step.refused.as_deref().is_some_and(|text| text.contains(ANOTHER_QDISC));
    clears(step) && (has_words(step, &IN_USE) || is_another())
}

/// A part of tidegate's message where a deletion names another kind or handle than the qdisc has.
const ANOTHER_QDISC: &str = "What is there is ";

/// What kernels say of what others need: since 7.2 of classes in words of their own (`HTB class in use`).
const IN_USE: [&str; 3] = ["Device or resource busy", " class in use", " class is in use"];

/// Can a deletion delete nothing, whatever is there? tc itself cannot read it, or it names no place. That its
/// failure is expected says nothing then: it is expected of a device without that object.
pub(crate) fn never_deletes(step: &Step) -> bool {
    if step.refused.is_none() || !clears(step) || is_unnamed(step) {
        return false;
    }
    let Some((object, _)) = of_tc(step) else { return false };
    let is_placed = || match object {
        object if "qdisc".starts_with(object) => PLACES.iter().any(|place| has_word(step, place)),
        object if "class".starts_with(object) => {
            handle(step, "classid").is_some_and(|class| class.minor() != 0)
        }
        _ => true,
    };
    let is_absent = has_words(step, &ABSENT);
    has_words(step, &[CANNOT_FLUSH])
        || !is_absent && of_kernel(&step.tool, reason(step)).is_none()
        || !is_placed()
}

/// What the kernel says of every deletion of filters that names no preference, and not all of them.
pub(crate) const CANNOT_FLUSH: &str = "Cannot flush filters";

/// The words that say which qdisc of a device is meant.
const PLACES: [&str; 6] = ["root", "parent", "handle", "ingress", "clsact", "help"];

/// The kernel's message, where the kernel refused what tc or ip requested. Their own refusals have the word
/// in quotes.
pub(crate) fn of_kernel<'r>(tool: &str, reason: &'r str) -> Option<&'r str> {
    let text = reason.strip_prefix("Error: ").filter(|text| !text.contains('"'));
    let answered = reason.strip_prefix("RTNETLINK answers: ");
    answered.or(text).filter(|_| ["tc", "ip"].contains(&tool))
}

/// Whether the refusal of a command is reported.
pub(crate) fn is_reported(step: &Step) -> bool {
    let is_mistake = || step.refused.is_some() && !step.may_fail && (!clears(step) || stays(step));
    !step.is_skipped && (is_mistake() || never_deletes(step))
}

/// Whether it was refused because what it makes exists already.
pub(crate) fn exists_already(step: &Step) -> bool {
    has_words(step, &PRESENT)
}

fn reason(step: &Step) -> &str {
    // Before it may stand what the kernel warned of.
    step.refused.as_deref().and_then(|text| refusal_lines(text).next()).unwrap_or_default()
}

fn has_words(step: &Step, words: &[&str]) -> bool {
    words.iter().any(|word| reason(step).contains(word))
}

fn has_word(step: &Step, wanted: &str) -> bool {
    step.words.iter().any(|word| word.text == wanted)
}

/// The words of tc's command behind its flags, where the step is one of tc's.
fn of_tc(step: &Step) -> Option<(&str, &str)> {
    let mut plain = step.words.iter().map(|word| word.text.as_str()).skip_while(|word| word.starts_with('-'));
    let (object, verb) = (plain.next()?, plain.next().unwrap_or("show"));
    // A misspelt object was to make what the one would that is meant.
    let is_unknown = || reason(step).starts_with("Object \"");
    let meant = || tidegate_syntax::nearest(object, ["qdisc", "class", "filter"]).filter(|_| is_unknown());
    (step.tool == "tc" && !object.is_empty()).then(|| (meant().unwrap_or(object), verb))
}

/// What a keyword names: a qdisc by its handle, or a class or another parent.
fn handle(step: &Step, keyword: &str) -> Option<Handle> {
    let text = &step.after(keyword)?.text;
    if keyword == "handle" { parse_handle(text) } else { parse_classid(text) }
}

/// The parent that a qdisc or filter is to be attached to.
fn place(step: &Step) -> Option<Handle> {
    let root = step.words.iter().any(|word| word.text == "root");
    handle(step, "parent").or(root.then_some(Handle::ROOT))
}

fn number(word: Option<&Word>) -> Option<u32> {
    let text = word?.text.split('/').next()?;
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// What a command is to make.
fn makes(step: &Step) -> Vec<Thing> {
    if let Some(chain) = ["-N", "--new-chain"].iter().find_map(|keyword| step.after(keyword)) {
        return vec![chain_of(step, &chain.text)];
    }
    if let Some(mark) = ["--set-mark", "--set-xmark"].iter().find_map(|keyword| number(step.after(keyword))) {
        return vec![Thing::Mark(mark)];
    }
    if step.tool == "ip" {
        return link(step).map(Thing::Device).into_iter().collect();
    }
    let Some((object, verb)) = of_tc(step) else { return Vec::new() };
    let Some(dev) = step.after("dev").map(|word| word.text.clone()) else { return Vec::new() };
    if verb.starts_with('s') || verb.starts_with('l') {
        return Vec::new();
    }
    let mut made = Vec::new();
    if "qdisc".starts_with(object) {
        made.extend(handle(step, "handle").map(|handle| Thing::Qdisc(dev.clone(), handle)));
        made.extend(place(step).map(|place| Thing::Hung(dev, place)));
    } else if "class".starts_with(object) {
        made.extend(handle(step, "classid").map(|class| Thing::Class(dev, class)));
    } else if "filter".starts_with(object) {
        let leads = ["flowid", "classid"].iter().find_map(|keyword| handle(step, keyword));
        made.extend(leads.map(|class| Thing::Lead(dev.clone(), class)));
        let by_mark = step.words.iter().any(|word| word.text == "fw");
        let requested = number(step.after("handle")).filter(|_| by_mark);
        made.extend(requested.map(|mark| Thing::Matched(dev.clone(), mark)));
        made.push(Thing::Filter(dev));
    }
    made
}

/// Chains that tables have, and targets that are no chains.
const BUILT_IN: [&str; 22] = [
    "PREROUTING",
    "INPUT",
    "FORWARD",
    "OUTPUT",
    "POSTROUTING",
    "ACCEPT",
    "DROP",
    "RETURN",
    "MARK",
    "CONNMARK",
    "CLASSIFY",
    "DSCP",
    "TOS",
    "LOG",
    "REJECT",
    "MASQUERADE",
    "SNAT",
    "DNAT",
    "REDIRECT",
    "TCPMSS",
    "IMQ",
    "NFQUEUE",
];

/// A chain of a rule's table.
fn chain_of(step: &Step, name: &str) -> Thing {
    let table =
        ["-t", "--table"].iter().find_map(|keyword| step.after(keyword)).map_or("filter", |word| &word.text);
    Thing::Chain(format!("{table} {name}"))
}

/// The device that `ip link add` is to make.
fn link(step: &Step) -> Option<String> {
    let adds = step.words.windows(2).any(|pair| pair[0].text == "link" && pair[1].text == "add");
    let behind = step.words.iter().position(|word| word.text == "add")?;
    let named = ["name", "dev"].iter().find_map(|keyword| step.after(keyword));
    adds.then(|| named.or(step.words.get(behind + 1)).map(|word| word.text.clone()))?
}

/// Is the name behind `dev` missing, as where a variable was empty?
pub(crate) fn is_unnamed(step: &Step) -> bool {
    ["tc", "ip"].contains(&step.tool.as_str())
        // `tc qdisc dev dev eth0` has the word in the place of its verb.
        && step.words.get(1).is_none_or(|word| word.text != "dev")
        && step.after("dev").is_some_and(|word| no_device_name(&word.text))
}

/// What a command needs, the most particular first.
fn needs(step: &Step) -> Vec<Thing> {
    if is_unnamed(step) {
        return vec![Thing::Device(String::new())];
    }
    if let Some((_, rest)) = reason(step).split_once("Cannot find device \"") {
        return rest.split('"').next().map(|name| Thing::Device(name.to_owned())).into_iter().collect();
    }
    let chains: Vec<&Word> = ["-A", "-I", "-j"].iter().filter_map(|keyword| step.after(keyword)).collect();
    if !chains.is_empty() {
        // The kernel has chains and targets of its own.
        let named = chains.iter().filter(|chain| !BUILT_IN.contains(&chain.text.as_str()));
        return named.map(|chain| chain_of(step, &chain.text)).collect();
    }
    let Some(dev) = step.after("dev").map(|word| word.text.clone()) else { return Vec::new() };
    let mut needed = Vec::new();
    let parent = place(step).or(handle(step, "classid")).filter(|parent| *parent != Handle::ROOT);
    if let Some(parent) = parent.filter(|_| of_tc(step).is_some()) {
        needed.extend((parent.minor() != 0).then(|| Thing::Class(dev.clone(), parent)));
        needed.push(Thing::Qdisc(dev.clone(), parent.qdisc()));
    }
    needed.push(Thing::Device(dev));
    needed
}

/// What is missing by a refusal's message, where that identifies one of the things that the command needs;
/// `made`: whether a command before it made a thing.
fn missed(step: &Step, needed: Vec<Thing>, made: impl Fn(&Thing) -> bool) -> Option<Thing> {
    // A class is refused so where its qdisc is not there, and by HFSC where its parent is not.
    let of_class = of_tc(step).is_some_and(|(object, _)| "class".starts_with(object));
    let of_class = of_class && has_words(step, &["No such file or directory"]);
    let is_it = |thing: &Thing| match thing {
        Thing::Device(name) => name.is_empty() || has_words(step, &["Cannot find device"]),
        Thing::Class(..) => has_words(step, &["Specified class not found", "Specified class doesn't exist"]),
        Thing::Qdisc(..) => {
            has_words(step, &["Failed to find", "Parent Qdisc", NOT_MADE]) || of_class && !made(thing)
        }
        Thing::Chain(_) => has_words(step, &["No chain/target/match by that name"]),
        _ => false,
    };
    needed.into_iter().find(is_it)
}

/// Is the message or the failure of a refused `tc … add` ignored, and nothing else makes what it should have
/// made? Its author may know that, as of a fallback that was not needed, or may not. A command that tc does
/// not know is ignored by mistake.
pub(crate) fn is_ignored_failure(step: &Step, makers: &Makers) -> bool {
    let is_unknown = has_words(step, &["Command \""]) && has_words(step, &["is unknown"]);
    if step.may_fail && step.tool == "tc" && is_unknown {
        return true;
    }
    let adds = of_tc(step).is_some_and(|(_, verb)| verb.len() > 1 && "add".starts_with(verb));
    let is_silent = step.refused.is_some() && step.may_fail && adds && !has_word(step, "help");
    let is_elsewhere = |thing: &Thing| !matches!(thing, Thing::Filter(_)) && makers.0.contains_key(thing);
    is_silent
        && !step.is_skipped
        && !has_words(step, &PRESENT)
        && !is_unnamed(step)
        && !makes(step).iter().any(is_elsewhere)
}

/// Which commands made each thing, by their numbers, ascending.
pub(crate) struct Makers(BTreeMap<Thing, Vec<usize>>);

impl Makers {
    pub(crate) fn of(steps: &[Step]) -> Makers {
        let mut makers: BTreeMap<Thing, Vec<usize>> = BTreeMap::new();
        for (at, step) in steps.iter().enumerate().filter(|(_, step)| step.refused.is_none()) {
            for thing in makes(step) {
                makers.entry(thing).or_default().push(at);
            }
        }
        Makers(makers)
    }

    /// The command after a refused one that makes what the refused one missed.
    pub(crate) fn later<'s>(&self, steps: &'s [Step], at: usize) -> Option<&'s Step> {
        let refused = steps.get(at)?;
        let before = |thing: &Thing| self.0.get(thing).is_some_and(|makers| makers[0] < at);
        let missing = missed(refused, needs(refused), before)?;
        let makers = self.0.get(&missing)?;
        steps.get(*makers.get(makers.partition_point(|maker| *maker <= at))?)
    }
}

/// What refused commands should have made, and which refusals follow from which.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lost {
    things: BTreeSet<Thing>,
    /// Refused commands by the one that they follow from, by their numbers among the steps.
    pub(crate) because: BTreeMap<usize, usize>,
    /// A script did not come to its other commands: anything may be missing.
    pub(crate) anything: bool,
}

impl Lost {
    pub(crate) fn of(steps: &[Step]) -> Lost {
        let mut lost = Lost::default();
        // The command that is to have made each thing, or that missed it first.
        let mut blamed: BTreeMap<Thing, usize> = BTreeMap::new();
        // The devices whose root is from before.
        let mut existing: BTreeMap<String, usize> = BTreeMap::new();
        // What was to be deleted and is still there.
        let mut in_use: BTreeMap<Thing, usize> = BTreeMap::new();
        let mut made: BTreeSet<Thing> = BTreeSet::new();
        // The first dsmark that was refused.
        let mut dsmark = None;
        for (at, step) in steps.iter().enumerate() {
            if step.refused.is_none() {
                for thing in makes(step) {
                    // From here on it is there.
                    blamed.remove(&thing);
                    made.insert(thing);
                }
                continue;
            }
            if step.is_skipped {
                lost.things.extend(makes(step));
                continue;
            }
            if clears(step) {
                let refused = if is_reported(step) { makes(step) } else { Vec::new() };
                in_use.extend(refused.into_iter().map(|thing| (thing, at)));
                continue;
            }
            let absent = has_words(step, &ABSENT) || is_unnamed(step);
            let needed = if absent { needs(step) } else { Vec::new() };
            let dev = step.after("dev").map(|word| word.text.clone());
            let present = has_words(step, &PRESENT).then_some(dev.as_ref()).flatten();
            let cause = needed.iter().find_map(|thing| blamed.get(thing).copied());
            let cause = cause.or_else(|| present.and_then(|dev| existing.get(dev).copied()));
            let kept = || makes(step).iter().find_map(|thing| in_use.get(thing).copied());
            let cause = cause.or_else(|| present.and_then(|_| kept()));
            // tcindex reads what dsmark writes: Linux removed both together.
            let cause = cause.or_else(|| dev.as_ref().filter(|_| has_word(step, "tcindex")).and(dsmark));
            if has_word(step, "dsmark") {
                dsmark.get_or_insert(cause.unwrap_or(at));
            }
            match cause {
                Some(cause) => drop(lost.because.insert(at, cause)),
                None if step.may_fail => {
                    // Whether its failure was expected or not, its target is unknown.
                    lost.things
                        .extend(makes(step).into_iter().filter(|thing| matches!(thing, Thing::Filter(_))));
                    continue;
                }
                None => {}
            }
            let to = cause.unwrap_or(at);
            if let Some(dev) = present.filter(|_| place(step) == Some(Handle::ROOT)) {
                existing.entry(dev.clone()).or_insert(to);
            }
            if present.is_none() {
                for thing in makes(step) {
                    blamed.entry(thing.clone()).or_insert(to);
                    lost.things.insert(thing);
                }
                // The class above it was to be none that keeps packets itself.
                if of_tc(step).is_some_and(|(object, _)| "class".starts_with(object))
                    && let (Some(dev), Some(parent)) = (dev.as_ref(), handle(step, "parent"))
                {
                    lost.things.insert(Thing::Hung(dev.clone(), parent));
                }
            }
            // No command was to make it: the next that names it misses the same.
            if let (None, Some(thing)) = (cause, missed(step, needed, |thing| made.contains(thing))) {
                blamed.entry(thing).or_insert(to);
            }
        }
        lost
    }

    pub(crate) fn has(&self, thing: &Thing) -> bool {
        self.anything || self.things.contains(thing)
    }

    /// Was something to hang on a class: its own queue, or a class below it?
    pub(crate) fn below(&self, class: &ClassDump) -> bool {
        self.has(&Thing::Hung(class.dev.clone(), class.classid))
    }

    /// Was a class to be there, or the qdisc that it would belong to?
    pub(crate) fn class(&self, dev: &str, class: Handle) -> bool {
        self.has(&Thing::Class(dev.to_owned(), class))
            || self.has(&Thing::Qdisc(dev.to_owned(), class.qdisc()))
    }

    /// Was there to be a filter that leads to a class?
    pub(crate) fn lead(&self, dev: &str, class: Handle) -> bool {
        self.has(&Thing::Lead(dev.to_owned(), class))
    }

    /// Was anything of a device's tree to be there?
    pub(crate) fn tree(&self, dev: &str) -> bool {
        let of_tree = |thing: &Thing| match thing {
            Thing::Qdisc(of, _) | Thing::Class(of, _) | Thing::Hung(of, _) | Thing::Device(of) => of == dev,
            _ => false,
        };
        self.anything || self.things.iter().any(of_tree)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(lines: &[(&str, &str)]) -> Vec<Step> {
        let word = |text: &str| Word { text: text.to_owned(), place: None, literal: true };
        let step = |(line, refused): &(&str, &str)| {
            let mut words = line.split(' ');
            Step {
                tool: words.next().expect("a tool").to_owned(),
                words: words.map(word).collect(),
                place: None,
                ops: 0..0,
                refused: (!refused.is_empty()).then(|| (*refused).to_owned()),
                may_fail: line.contains("2>/dev/null"),
                at_fault: None,
                is_skipped: false,
                frames: Vec::new(),
                called_from: None,
            }
        };
        lines.iter().map(step).collect()
    }

    fn because(lines: &[(&str, &str)]) -> Vec<(usize, usize)> {
        Lost::of(&steps(lines)).because.into_iter().collect()
    }

    /// What a batch did not come to is missing, and no mistake of its own.
    #[test]
    fn what_a_batch_did_not_come_to_is_lost() {
        let mut all = steps(&[
            ("tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbitt", "Illegal \"rate\""),
            ("tc class add dev eth0 parent 1: classid 1:20 htb rate 1mbit", " "),
        ]);
        all[1].is_skipped = true;
        let lost = Lost::of(&all);
        assert!(lost.has(&Thing::Class("eth0".into(), Handle::new(1, 0x20))));
        assert_eq!((is_reported(&all[0]), is_reported(&all[1]), lost.because.len()), (true, false, 0));
    }

    const NO_PARENT: &str = "Error: Failed to find qdisc with specified classid.";

    #[test]
    fn what_names_a_refused_thing_follows_from_it() {
        let lines = [
            ("tc qdisc add dev eth0 root handle 1: htbb", "Unknown qdisc \"htbb\""),
            ("tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit", NO_PARENT),
            ("tc class add dev eth0 parent 1:1 classid 1:10 htb rate 1mbit", NO_PARENT),
            ("tc filter add dev eth0 parent 1: u32", "Error: Parent Qdisc doesn't exists."),
            // A mistake of its own, and another device.
            ("tc class add dev eth0 parent 1:1 classid 1:20 htb rate x", "Illegal \"rate\""),
            ("tc class add dev eth1 parent 1: classid 1:1 htb rate 1mbit", NO_PARENT),
        ];
        assert_eq!(because(&lines), [(1, 0), (2, 0), (3, 0)]);
        let none = "tidegate: eth0 has no qdisc 1: here, because cbq is not supported\ntc: …";
        let lines = [
            (
                "tc qdisc add dev eth0 root handle 1: cbq avpkt 1000",
                "tidegate: qdisc \"cbq\" is not supported",
            ),
            ("tc qdisc add dev eth0 parent 1:3 handle 30: sfq", none),
            ("tc filter add dev eth0 parent 1: protocol ip u32 match u32 0 0 flowid 1:3", none),
        ];
        assert_eq!(because(&lines), [(1, 0), (2, 0)]);
    }

    #[test]
    fn a_class_that_was_refused_is_that_class_alone() {
        let lines = [
            ("tc class add dev eth0 parent 1: classid 1:10 htb rate x", "Illegal \"rate\""),
            ("tc qdisc add dev eth0 parent 1:10 sfq", "Error: Specified class not found."),
            ("tc qdisc add dev eth0 parent 1:20 sfq", "Error: Specified class not found."),
            ("tc qdisc add dev eth0 parent 1:20 handle 20: sfq", "Error: Specified class not found."),
        ];
        assert_eq!(because(&lines), [(1, 0), (3, 2)]);
        let lost = Lost::of(&steps(&lines));
        let class = |minor| lost.class("eth0", Handle::new(1, minor));
        assert_eq!((class(0x10), class(0x20)), (true, false));
    }

    #[test]
    fn what_is_made_too_late_is_found() {
        let redirect =
            "tc filter add dev eth0 parent ffff: u32 match u32 0 0 action mirred egress redirect dev ifb0";
        let lines = steps(&[
            (redirect, "Cannot find device \"ifb0\""),
            ("tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit", NO_PARENT),
            ("tc qdisc add dev eth0 parent 1:9 sfq", "Error: Specified class not found."),
            ("ip link add ifb1 type ifb", ""),
            ("ip link add ifb0 type ifb", ""),
            ("tc qdisc add dev eth1 root handle 1: htb", ""),
            ("tc qdisc add dev eth0 root handle 1: htb", "Error: Exclusivity flag on, cannot modify."),
        ]);
        let makers = Makers::of(&lines);
        let later =
            |at| makers.later(&lines, at).map(|step| step.words.last().map(|word| word.text.as_str()));
        assert_eq!(later(0), Some(Some("ifb")));
        assert_eq!(
            makers.later(&lines, 0).and_then(|step| step.after("add")).map(|word| word.text.as_str()),
            Some("ifb0")
        );
        // Another device's, and a command that was refused itself.
        assert_eq!((later(1), later(2), later(3), later(99)), (None, None, None, None));
    }

    #[test]
    fn a_thing_that_no_command_makes_is_reported_once() {
        let none = "Cannot find device \"parent\"";
        let lines = [
            ("tc qdisc add dev parent root htb", none),
            ("tc class add dev parent 1: classid 1:1 htb rate 1mbit", none),
            ("tc class add dev eth9 parent 1: classid 1:1 htb rate 1mbit", "Cannot find device \"eth9\""),
        ];
        assert_eq!(because(&lines), [(1, 0)]);
    }

    #[test]
    fn classes_and_filters_of_a_qdisc_that_nothing_makes_miss_the_same() {
        let (none, parent) =
            ("RTNETLINK answers: No such file or directory", "Error: Parent Qdisc doesn't exists.");
        let lines = [
            ("tc class add dev eth0 parent 1:1 classid 1:10 htb rate 1mbit", none),
            ("tc class add dev eth0 parent 1:1 classid 1:20 htb rate 1mbit", none),
            ("tc filter add dev eth0 parent 1:0 u32", parent),
            ("tc class add dev eth1 parent 1:1 classid 1:20 htb rate 1mbit", none),
        ];
        assert_eq!(because(&lines), [(1, 0), (2, 0)]);
        // Of HFSC the parent may be missing: each of its own.
        let hfsc = [
            ("tc qdisc add dev eth0 root handle 1: hfsc", ""),
            ("tc class add dev eth0 parent 1:1 classid 1:10 hfsc sc rate 1mbit", none),
            ("tc class add dev eth0 parent 1:2 classid 1:20 hfsc sc rate 1mbit", none),
        ];
        assert_eq!(because(&hfsc), []);
    }

    #[test]
    fn a_link_that_is_not_there_need_not_be_put_down() {
        let none = "Cannot find device \"ifb0\"";
        let lines = steps(&[("ip link set dev ifb0 down", none), ("ip link set dev ifb0 up", none)]);
        assert_eq!(lines.iter().map(is_reported).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn a_module_that_is_not_loaded_need_not_be_removed() {
        let none = "rmmod: ERROR: Module sch_ptb is not currently loaded";
        let lines = steps(&[("rmmod sch_ptb", none), ("rmmod", "rmmod: ERROR: missing module name.")]);
        assert_eq!(lines.iter().map(is_reported).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn a_deletion_that_deletes_nothing_ever_is_reported_though_it_may_fail() {
        let incomplete = "Command line is not complete. Try option \"help\"";
        let nothing = "Error: Cannot delete qdisc with handle of zero.";
        let rows = [
            ("tc qdisc del dev eth0 ingres 2>/dev/null", incomplete, true),
            ("tc qdisc dell dev eth0 root 2>/dev/null", "Command \"dell\" is unknown", false),
            ("tc class del dev eth0 clasid 1:10", "Error: Qdisc \"clasid\" is classless.", true),
            ("tc qdisc del dev eth0 rot", "Error: Failed to find qdisc with specified handle.", true),
            (
                "tc class del dev eth0 parent 1: 2>/dev/null",
                "RTNETLINK answers: No such file or directory",
                true,
            ),
            ("tc class del dev eth0 classid 1:9", "RTNETLINK answers: No such file or directory", false),
            ("tc qdisc del dev eth0 root 2>/dev/null", nothing, false),
            ("tc qdisc del root dev eth9 2>/dev/null", "Cannot find device \"eth9\"", false),
            ("tc filter del dev eth0 2>/dev/null", "Error: Parent Qdisc doesn't exists.", false),
            (
                "tc filter del dev eth0 parent 1: protocol ip u32 2>/dev/null",
                "Error: Cannot flush filters with protocol, handle or kind set.",
                true,
            ),
            ("tc qdisc del dev eth0 ingress 2>/dev/null", "Error: Invalid handle.", false),
        ];
        for (line, refused, is_so) in rows {
            assert_eq!(steps(&[(line, refused)]).iter().any(never_deletes), is_so, "{line}");
        }
    }

    #[test]
    fn failures_that_are_ignored_and_have_no_substitute_are_found() {
        let unknown = "Unknown qdisc \"fq_codell\", hence option \"limit\" is unparsable";
        let rows = [
            ("tc qdisc add dev eth0 parent 1:10 fq_codell 2>/dev/null", unknown, true),
            ("tc qdisc add dev eth0 parent 1:10 fq_codell", unknown, false),
            ("tc qdisc add dev eth0 parent 1:20 fq_codell 2>/dev/null", unknown, false),
            ("tc class change dev eth0 classid 1:30 2>/dev/null", NO_PARENT, false),
            ("tc qdisc dell dev eth0 root 2>/dev/null", "Command \"dell\" is unknown, try", true),
            ("tc qdisc dell dev eth0 root", "Command \"dell\" is unknown, try", false),
            ("tc class add dev eth0 classid 1:20 2>/dev/null", "RTNETLINK answers: File exists", false),
            ("tc filter add dev eth0 parent 1: u32 flowid 1:20 2>/dev/null", "Error: no", true),
        ];
        for (line, refused, is_so) in rows {
            let all = steps(&[
                (line, refused),
                ("tc qdisc add dev eth0 parent 1:20 fq_codel", ""),
                ("tc filter add dev eth0 parent 1: fw", ""),
            ]);
            assert_eq!(is_ignored_failure(&all[0], &Makers::of(&all)), is_so, "{line}");
        }
    }

    #[test]
    fn a_script_run_twice_has_one_mistake() {
        let there = "RTNETLINK answers: File exists";
        let lines = [
            ("tc qdisc add dev eth0 root handle 1: htb", "Error: Exclusivity flag on, cannot modify."),
            ("tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit", there),
            ("tc class add dev eth1 parent 1: classid 1:1 htb rate 1mbit", there),
            ("tc class add dev eth1 parent 1: classid 1:2 htb rate 1mbit", there),
        ];
        assert_eq!(because(&lines), [(1, 0)]);
    }

    #[test]
    fn an_undeleted_object_blocks_its_successor() {
        let busy = "RTNETLINK answers: Device or resource busy";
        let there = "RTNETLINK answers: File exists";
        let lines = [
            ("tc class del dev eth0 classid 1:20", busy),
            ("tc class add dev eth0 parent 1: classid 1:20 htb rate 1mbit", there),
            ("tc class add dev eth0 parent 1: classid 1:30 htb rate 1mbit", there),
            ("tc class del dev eth0 classid 1:30 2>/dev/null", busy),
            ("tc class add dev eth0 parent 1: classid 1:30 htb rate 1mbit", there),
        ];
        assert_eq!(because(&lines), [(1, 0)]);
        let reported: Vec<bool> = steps(&lines).iter().map(is_reported).collect();
        assert_eq!(reported, [true, true, true, false, true]);
    }

    #[test]
    fn what_may_fail_is_no_cause() {
        let lines = [
            ("tc qdisc add dev eth0 root handle 1: htb 2>/dev/null", "Error: no"),
            ("tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit", NO_PARENT),
        ];
        assert_eq!(because(&lines), []);
    }

    #[test]
    fn what_reads_dsmark_follows_from_it() {
        let lines = [
            (
                "tc qdisc add dev eth0 root handle 1: dsmark indices 64",
                "tidegate: qdisc \"dsmark\" is not supported",
            ),
            (
                "tc filter add dev eth0 parent 9: prio 1 tcindex mask 0xfc",
                "tidegate: filter \"tcindex\" is not supported",
            ),
            ("tc filter add dev eth0 parent 9: prio 1 bpf", "tidegate: filter \"bpf\" is not supported"),
        ];
        assert_eq!(because(&lines), [(1, 0)]);
        assert_eq!(because(&lines[1..]), []);
    }
}
