//! `tc class show`. With `-j` in the shape of newer tc (6.1 takes no notice of it here), and with `kind` as
//! qdiscs have it.

use super::command_line::{ShowFlags, ShowWhat};
use super::kind::syntax;
use super::show::{Entry, handle_text};
use crate::json::{self, Json};
use std::collections::BTreeMap;
use tidegate_packet::Handle;
use tidegate_policy::dump::ClassDump;
use tidegate_policy::{ClassLayout, ClassParams};

/// The listing of classes, in the order given; what `what` does not ask for is left out. Without a device it
/// is empty.
pub fn show_classes(dumps: &[ClassDump], what: &ShowWhat, flags: &ShowFlags) -> String {
    let Some(dev) = &what.dev else { return String::new() };
    let wanted = dumps.iter().filter(|dump| {
        dump.dev == *dev
            && what.classid.is_none_or(|id| id == dump.classid)
            && what.handle.is_none_or(|qdisc| qdisc == dump.classid.qdisc())
            && what
                .parent
                .is_none_or(|parent| parent != Handle::ROOT && parent.qdisc() == dump.classid.qdisc())
    });
    if flags.json {
        let items: Vec<Json> = wanted.map(|dump| Json::Object(entry(dump, what, flags).members)).collect();
        return json::list(&items, flags.pretty);
    }
    if flags.graph {
        return graph(&wanted.collect::<Vec<_>>(), flags);
    }
    let text: String = wanted.map(|dump| entry(dump, what, flags).text).collect();
    // Of `-o` the listing of classes takes notice in one place.
    if flags.oneline { text.replace(") \n backlog ", ") \\ backlog ") } else { text }
}

fn entry(dump: &ClassDump, what: &ShowWhat, flags: &ShowFlags) -> Entry {
    // With `qdisc H:` tc prints the minor numbers only; the class of no number, which the kernel lets pass,
    // prints as nothing.
    let short = |id: Handle| match what.handle {
        _ if id.is_none() => String::new(),
        Some(qdisc) if id.qdisc() == qdisc => Handle(id.0 & 0xffff).to_string(),
        _ => id.to_string(),
    };
    let mut entry = Entry::by(flags.tc);
    let kind = dump.kind.name();
    entry.say(&format!("class {kind} {} ", short(dump.classid)));
    entry.member("class", Json::text(kind));
    entry.member("kind", Json::text(kind));
    entry.member("handle", Json::text(short(dump.classid)));
    match dump.parent {
        Handle::ROOT => {
            entry.say("root ");
            entry.member("root", Json::Bool(true));
        }
        parent => entry.word("parent", &short(parent)),
    }
    if !dump.leaf.is_none() {
        entry.word("leaf", &handle_text(dump.leaf));
    }
    entry.append(options(dump, flags));
    entry.say("\n");
    if flags.stats {
        let counted = counters(dump, flags);
        entry.say(&counted.text);
        entry.member("stats", Json::Object(counted.members));
    }
    entry
}

fn options(dump: &ClassDump, flags: &ShowFlags) -> Entry {
    let mut entry = Entry::by(flags.tc);
    syntax(dump.kind).show_class(dump, flags, &mut entry);
    entry
}

fn counters(dump: &ClassDump, flags: &ShowFlags) -> Entry {
    let mut entry = Entry::by(flags.tc);
    if let Some(stats) = &dump.stats {
        // Flows have no counters of their own for what was sent.
        entry.counters(stats, !matches!(dump.kind.classes(), ClassLayout::Flows | ClassLayout::Priorities));
    }
    // Before the line of a rate estimator tc always begins a new one.
    if flags.oneline && dump.stats.as_ref().is_none_or(|stats| stats.rate.is_none()) {
        entry.text = entry.text.replace('\n', "\\");
    }
    entry.say("\n");
    syntax(dump.kind).show_class_stats(dump, flags, &mut entry);
    entry
}

/// `-g`: a tree, children under their parents in the order of the listing; at the top the last listed comes
/// first, as in tc.
fn graph(dumps: &[&ClassDump], flags: &ShowFlags) -> String {
    let ids: Vec<Handle> = dumps.iter().map(|dump| dump.classid).collect();
    let mut children: BTreeMap<u32, Vec<&ClassDump>> = BTreeMap::new();
    for dump in dumps.iter().filter(|dump| !matches!(dump.params, ClassParams::None)) {
        let above = if ids.contains(&dump.parent) { dump.parent } else { Handle::ROOT };
        children.entry(above.0).or_default().push(dump);
    }
    let Some(top) = children.get_mut(&Handle::ROOT.0) else { return String::new() };
    top.reverse();
    let last = top.last().map(|dump| dump.classid.0).is_some_and(|last| children.contains_key(&last));
    let mut out = String::new();
    branch(Handle::ROOT, "", 0, &children, flags, &mut out);
    // tc ends with the indentation it wrote last.
    out.push_str(if last { "     \n" } else { "\n" });
    out
}

/// HTB has eight levels, so the depth is bounded; a loop of parents cannot be reached from the root.
fn branch(
    above: Handle,
    indent: &str,
    depth: u32,
    children: &BTreeMap<u32, Vec<&ClassDump>>,
    flags: &ShowFlags,
    out: &mut String,
) {
    let Some(classes) = children.get(&above.0).filter(|_| depth < 64) else { return };
    for (index, dump) in classes.iter().enumerate() {
        let last = index + 1 == classes.len();
        let head = format!("+---({}) {} ", dump.classid, dump.kind.name());
        out.push_str(&format!("{indent}{head}{}\n", options(dump, flags).text));
        let below = format!("{indent}{}    ", if last { ' ' } else { '|' });
        let inner = children.contains_key(&dump.classid.0);
        if let (Some(stats), true) = (&dump.stats, flags.stats) {
            let mut entry = Entry::by(flags.tc);
            entry.counters(stats, true);
            let bar = if inner { "|" } else { " " };
            let pad = " "
                .repeat(format!("({})", dump.classid).len() - usize::from(!inner) + usize::from(!inner) - 1);
            for text in entry.text.lines() {
                out.push_str(&format!("{below}{bar}{pad}{text}\n"));
            }
            if inner || !last {
                out.push_str(&format!("{below}{bar}\n"));
            }
        }
        branch(dump.classid, &below, depth + 1, children, flags, out);
        if inner {
            out.push_str(&format!("{below}\n"));
        }
    }
}
