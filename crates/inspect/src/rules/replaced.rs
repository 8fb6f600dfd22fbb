//! R26: classes that a later command removes, because it replaces the qdisc they belong to, and root qdiscs
//! that it replaces itself. `add` does that, too.

use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::reading::{CARRIED_OUT_AT, PolicyModel, Step};
use crate::words::count;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_gateway::{Gateway, GatewayContext};
use tidegate_packet::{Handle, Pool, Seeded};
use tidegate_policy::{Kind, Op, Verb};

/// The command that last made a class: the number of its operation, by device and class.
type Makers = BTreeMap<(String, Handle), usize>;

/// Carries the policy out once more and compares the classes before and after what may replace a qdisc.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let reading = &*reading;
    if !reading.ops.iter().any(|op| replaced(op).is_some()) {
        return Vec::new();
    }
    let mut gateway = reading.machine_before();
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    let mut makers = Makers::new();
    let mut roots: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for (at, op) in reading.ops.iter().enumerate() {
        let before = replaced(op).map(|dev| (classes(&mut gateway, dev), root(&mut gateway, dev)));
        // Each was carried out once, so it will be again.
        let _ =
            gateway.apply(GatewayContext { now: CARRIED_OUT_AT, pool: &mut pool, random: &mut draws }, op);
        match op {
            Op::Class(class) if class.verb != Verb::Delete => {
                makers.insert((class.dev.clone(), class.classid), at);
            }
            _ => {}
        }
        if let (Some(dev), Some((before, root_before))) = (replaced(op), before) {
            let after = classes(&mut gateway, dev);
            let lost = removed(reading, at, dev, &makers, [&before, &after]);
            let is_other = root_before != root(&mut gateway, dev);
            let lost_root = root_before.filter(|_| is_other && lost.is_none());
            let lost_root = lost_root.and_then(|root| root_removed(reading, at, root, *roots.get(dev)?));
            found.extend(lost.or(lost_root));
        }
        match op {
            Op::Qdisc(op) if op.parent == Handle::ROOT && op.verb != Verb::Delete => {
                roots.insert(op.dev.clone(), at);
            }
            _ => {}
        }
    }
    found
}

/// The device of a command that may replace a qdisc: `qdisc replace`, and `qdisc add` of a root without a
/// handle, which Linux accepts where there is one (6.1 was asked).
fn replaced(op: &Op) -> Option<&str> {
    match op {
        Op::Qdisc(op) if op.verb == Verb::Replace => Some(&op.dev),
        Op::Qdisc(op) if op.verb == Verb::Add && op.parent == Handle::ROOT => Some(&op.dev),
        _ => None,
    }
}

fn classes(gateway: &mut Gateway, dev: &str) -> BTreeSet<Handle> {
    let device = gateway.device(dev);
    let dumps = device.map(|device| gateway.classes(CARRIED_OUT_AT, device)).unwrap_or_default();
    dumps.into_iter().map(|class| class.classid).collect()
}

/// The kind and handle of a device's root qdisc; `None` where it has none but the default one.
fn root(gateway: &mut Gateway, dev: &str) -> Option<(Kind, Handle)> {
    let device = gateway.device(dev)?;
    let all = gateway.qdiscs(CARRIED_OUT_AT, device);
    let root = all.iter().find(|qdisc| qdisc.parent == Handle::ROOT && qdisc.handle != Handle::NONE)?;
    Some((root.kind, root.handle))
}

/// The finding about a command that takes the place of a root qdisc which an earlier command made: in the
/// same file, where that qdisc limited or delayed packets itself; in another one, whatever it was.
fn root_removed(
    reading: &PolicyModel,
    at: usize,
    (kind, handle): (Kind, Handle),
    maker: usize,
) -> Option<Finding> {
    let step = reading.step_of(at).filter(|step| !step.may_fail)?;
    let maker = reading.step_of(maker)?;
    let file = |step: &Step| step.place.as_ref().map(|place| place.file);
    let elsewhere = file(maker) != file(step);
    if !elsewhere && !matches!(kind, Kind::Tbf | Kind::Cake | Kind::Netem) {
        return None;
    }
    let dev = replaced(&reading.ops[at])?;
    let because = if elsewhere {
        "all files that are checked together are one policy, carried out in the order in which they are named: \
        check alternatives one by one"
    } else {
        "a device has one root qdisc, and what the first was to do is not done any more"
    };
    // The first may have another qdisc in it.
    let taken = reading.ops[..at].iter().any(|op| {
        let Op::Qdisc(op) = op else { return false };
        op.verb != Verb::Delete && op.dev == dev && op.parent == handle.class(1)
    });
    let into = match kind {
        _ if taken => String::new(),
        // Its only class; handles from 8001: on are the kernel's choice.
        Kind::Tbf | Kind::Netem if handle < Handle::new(0x8000, 0) => {
            format!(", or put the second into the first: parent {}", handle.class(1))
        }
        Kind::Tbf | Kind::Netem => {
            ", or put the second into the first: handle 1: there, parent 1:1 here".to_owned()
        }
        _ => String::new(),
    };
    Some(Finding {
        rule: Rule::Replaced,
        level: Level::Note,
        place: step.place.clone(),
        what: format!(
            "this takes the place of the {} at the root of {dev} that {} made",
            kind.name(),
            reading.line(maker)?
        ),
        because: because.into(),
        witness: None,
        fix: (!elsewhere).then(|| Fix { what: format!("keep one of the two{into}"), edits: Vec::new() }),
    })
}

/// The finding about a command that removes classes which commands of its own file made, and which no later
/// command makes again.
fn removed(
    reading: &PolicyModel,
    at: usize,
    dev: &str,
    makers: &Makers,
    [before, after]: [&BTreeSet<Handle>; 2],
) -> Option<Finding> {
    // Where its author counts on it that the command may fail, the classes are there for that case.
    let step = reading.step_of(at).filter(|step| !step.may_fail)?;
    let file = |step: &Step| step.place.as_ref().map(|place| place.file);
    let in_the_end =
        |class: &Handle| reading.classes.iter().any(|dump| dump.dev == dev && dump.classid == *class);
    let maker = |class: &Handle| {
        let maker = makers.get(&(dev.to_owned(), *class)).and_then(|at| reading.step_of(*at))?;
        (file(maker) == file(step)).then_some((*class, maker))
    };
    // What a refused command was to make again is no reason to speak of this one.
    let lost = |class: &Handle| in_the_end(class) || reading.lost.class(dev, *class);
    let gone: Vec<(Handle, &Step)> =
        before.difference(after).filter(|class| !lost(class)).filter_map(maker).collect();
    let (first, maker) = gone.first()?;
    let (qdisc, number) = (first.qdisc(), count(gone.len(), "class", "classes"));
    let verb = match &reading.ops[at] {
        Op::Qdisc(op) if op.verb == Verb::Add => "add",
        _ => "replace",
    };
    let made = reading.line(maker).map_or(String::new(), |line| format!(" ({first} by {line})"));
    Some(Finding {
        rule: Rule::Replaced,
        level: Level::Warning,
        place: step.place.clone(),
        what: format!("`qdisc {verb}` removes {number} of {qdisc} that earlier commands made{made}"),
        because: "the kernel removes a qdisc's classes and filters with the qdisc, and no later command \
        makes these classes again"
            .into(),
        witness: Some(Witness::Number(format!(
            "{dev} has {} before this command and {} after it",
            count(before.len(), "class", "classes"),
            count(after.len(), "class", "classes"),
        ))),
        fix: Some(Fix {
            what: format!("keep one of the two: remove this command, or those about {qdisc} before it"),
            edits: Vec::new(),
        }),
    })
}
