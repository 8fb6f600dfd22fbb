//! What the kernel leaves unsaid when it refuses: why, and what to do instead.

use tidegate_packet::Handle;
use tidegate_policy::{ClassOp, Errno, FilterOp, Kind, Op, QdiscOp, TcError, Verb};

/// A sentence or two for the writer of the script; `None` where the kernel's words say all.
pub(super) fn explain(op: &Op, error: &TcError) -> Option<String> {
    match op {
        Op::Qdisc(op) => qdisc(op, error),
        Op::Class(op) => class(op, error),
        Op::Filter(op) => filter(op, error),
        _ => None,
    }
}

fn says(error: &TcError, words: &str) -> bool {
    error.message.as_deref().is_some_and(|message| message.contains(words))
}

fn no_qdisc(dev: &str, handle: Handle) -> String {
    let handle = handle.qdisc();
    format!("There is no qdisc {handle} on {dev}; add it first: tc qdisc add dev {dev} root handle {handle} KIND.")
}

fn qdisc(op: &QdiscOp, error: &TcError) -> Option<String> {
    let dev = &op.dev;
    if says(error, "kind is unknown") {
        let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        let asked = op.kind.as_deref().unwrap_or_default();
        let begins = || known.iter().copied().find(|name| !asked.is_empty() && name.starts_with(asked));
        let near = tidegate_lang::nearest(asked, known.iter().copied()).or_else(begins);
        let near = near.map_or(String::new(), |name| format!(" did you mean {name}?"));
        return Some(format!("There is no kind \"{asked}\" here;{near} known are {}.", known.join(", ")));
    }
    if says(error, "Failed to find") {
        return Some(no_qdisc(dev, op.parent));
    }
    if says(error, "Specified class not found") {
        return Some(format!(
            "There is no class {} on {dev}; make it first, or correct the number (class numbers are hexadecimal).",
            op.parent
        ));
    }
    if says(error, "Exclusivity flag") || says(error, "NLM_F_REPLACE needed") {
        return Some(format!(
            "Something stands there already; delete it first (tc qdisc del dev {dev} …) or write replace instead of add."
        ));
    }
    if says(error, "Cannot move an existing qdisc") {
        return Some(format!(
            "The handle {} is another qdisc's on {dev}; give this one a handle of its own.",
            op.handle
        ));
    }
    if says(error, "Invalid qdisc name") {
        return Some(
            "A qdisc of another kind stands there; replace instead of change puts this one in its place.".into(),
        );
    }
    if says(error, "handle of zero") {
        return Some("Nothing is configured there, so there is nothing to delete; where that is no mistake, add 2>/dev/null or || true.".into());
    }
    if says(error, "Change operation") {
        return Some("This kind cannot be changed while it runs; delete it and add it again.".into());
    }
    if error.errno == Errno::Inval && op.verb != Verb::Delete && error.message.is_none() {
        return Some(format!("{} does not take these values together; see its options' ranges.", op.kind.as_deref()?));
    }
    None
}

fn class(op: &ClassOp, error: &TcError) -> Option<String> {
    let (dev, id) = (&op.dev, op.classid);
    match error.errno {
        Errno::NoEnt if op.verb == Verb::Add || op.verb == Verb::Replace => {
            Some(no_qdisc(dev, if id.major() == 0 { op.parent } else { id }))
        }
        Errno::NoEnt => Some(format!("There is no class {id} on {dev}.")),
        Errno::Exist => {
            Some(format!("There is a class {id} on {dev} already; write change or replace, or choose another number."))
        }
        Errno::Busy => Some(format!("Class {id} has children, or a filter leads to it; delete those first.")),
        Errno::Inval if op.parent != Handle::ROOT && !op.parent.is_none() && id.qdisc() != op.parent.qdisc() => {
            Some(format!("A class and its parent belong to one qdisc: {id} cannot hang on {}.", op.parent))
        }
        Errno::Inval => Some("The qdisc takes no class with these values.".into()),
        Errno::OpNotSupp => {
            Some("The classes of this qdisc come and go with it; they are not made or deleted by hand.".into())
        }
        _ => None,
    }
}

fn filter(op: &FilterOp, error: &TcError) -> Option<String> {
    let dev = &op.dev;
    if says(error, "Parent Qdisc") {
        let parent =
            if op.parent.is_none() { "a root qdisc".to_owned() } else { format!("a qdisc {}", op.parent.qdisc()) };
        return Some(format!("{dev} has not {parent} for the filter to hang on; add that first."));
    }
    if says(error, "Specified class doesn't exist") {
        return Some(format!("There is no class {} on {dev} for the filter to hang on.", op.parent));
    }
    if says(error, "kind does not match") {
        return Some(format!("Preference {} is taken by filters of another kind; choose another prio.", op.pref));
    }
    if says(error, "priority/protocol not found") && op.verb != Verb::Delete {
        return Some(format!("Preference {} is taken by filters for another protocol; choose another prio.", op.pref));
    }
    if says(error, "already exists") {
        return Some("There is such a filter already; write replace, or another handle.".into());
    }
    None
}
