//! `tc class show`: text only, as in tc 6.1 (which takes no notice of `-j` here).

use super::show::{Entry, handle_text};
use super::show_qdisc::drop_next;
use super::{ShowFlags, ShowWhat};
use crate::units::{bytes_of, print_rate, print_size, print_time};
use std::collections::BTreeMap;
use tidegate_packet::Handle;
use tidegate_policy::dump::{ClassDump, Xstats};
use tidegate_policy::{ClassParams, HtbClassParams, Kind, LinkLayer};

/// The listing of classes, in the order given; what `what` does not ask for is left out. Without a device it is empty.
pub fn show_classes(dumps: &[ClassDump], what: &ShowWhat, flags: &ShowFlags) -> String {
    let Some(dev) = &what.dev else { return String::new() };
    let wanted = dumps.iter().filter(|dump| {
        dump.dev == *dev
            && what.classid.is_none_or(|id| id == dump.classid)
            && what.handle.is_none_or(|qdisc| qdisc == dump.classid.qdisc())
            && what.parent.is_none_or(|parent| parent != Handle::ROOT && parent.qdisc() == dump.classid.qdisc())
    });
    if flags.graph {
        return graph(&wanted.collect::<Vec<_>>(), flags);
    }
    let mut out = String::new();
    for dump in wanted {
        out.push_str(&line(dump, what, flags));
        if flags.stats {
            out.push_str(&counters(dump, flags));
        }
    }
    out
}

fn line(dump: &ClassDump, what: &ShowWhat, flags: &ShowFlags) -> String {
    // With `qdisc H:` tc prints the minor numbers only.
    let short = |id: Handle| match what.handle {
        Some(qdisc) if id.qdisc() == qdisc => Handle(id.0 & 0xffff).to_string(),
        _ => id.to_string(),
    };
    let mut out = format!("class {} {} ", dump.kind.name(), short(dump.classid));
    match dump.parent {
        Handle::ROOT => out.push_str("root "),
        parent => out.push_str(&format!("parent {} ", short(parent))),
    }
    if !dump.leaf.is_none() {
        out.push_str(&format!("leaf {} ", handle_text(dump.leaf)));
    }
    out.push_str(&options(dump, flags));
    out.push('\n');
    out
}

fn options(dump: &ClassDump, flags: &ShowFlags) -> String {
    match &dump.params {
        ClassParams::None => String::new(),
        ClassParams::Drr(params) => format!("quantum {} ", print_size(params.quantum.unwrap_or(0))),
        ClassParams::Hfsc(_) | ClassParams::Qfq(_) => String::new(),
        ClassParams::Htb(params) => htb(params, &dump.xstats, flags),
    }
}

fn htb(params: &HtbClassParams, xstats: &Xstats, flags: &ShowFlags) -> String {
    let level = match xstats {
        Xstats::HtbClass { level, .. } => *level,
        _ => 0,
    };
    let mut out = String::new();
    if level == 0 {
        out.push_str(&format!("prio {} ", params.prio));
        if flags.details {
            out.push_str(&format!("quantum {} ", params.quantum));
        }
    }
    out.push_str(&format!("rate {} ", print_rate(params.rate.rate, flags.iec)));
    if params.rate.overhead > 0 {
        out.push_str(&format!("overhead {} ", params.rate.overhead));
    }
    out.push_str(&format!("ceil {} ", print_rate(params.ceil.rate, flags.iec)));
    if params.rate.linklayer == LinkLayer::Atm || flags.details {
        out.push_str(&format!("linklayer {} ", params.rate.linklayer.name()));
    }
    for (name, spec, ticks) in [("burst", &params.rate, params.buffer), ("cburst", &params.ceil, params.cbuffer)] {
        let bytes = print_size(bytes_of(spec.rate, ticks));
        if flags.details {
            out.push_str(&format!("{name} {bytes}/1 mpu {} ", print_size(spec.mpu.into())));
        } else {
            out.push_str(&format!("{name} {bytes} "));
        }
    }
    if flags.details {
        out.push_str(&format!("level {level} "));
    }
    if flags.raw {
        out.push_str(&format!("buffer [{:08x}] cbuffer [{:08x}] ", params.buffer.0, params.cbuffer.0));
    }
    out
}

fn counters(dump: &ClassDump, flags: &ShowFlags) -> String {
    let mut entry = Entry::new();
    if let Some(stats) = &dump.stats {
        // Flows have no counters of their own for what was sent.
        entry.counters(stats, !matches!(dump.kind, Kind::Sfq | Kind::FqCodel));
    }
    let mut out = if flags.oneline { entry.text.replace('\n', "\\") } else { entry.text };
    out.push('\n');
    match &dump.xstats {
        Xstats::HtbClass { lends, borrows, giants, tokens, ctokens, .. } => {
            out.push_str(&format!(" lended: {lends} borrowed: {borrows} giants: {giants}\n"));
            out.push_str(&format!(" tokens: {tokens} ctokens: {ctokens}\n\n"));
        }
        Xstats::DrrClass { deficit } => out.push_str(&format!(" deficit {} \n", print_size(*deficit))),
        Xstats::SfqClass { allot } => out.push_str(&format!("  allot {allot}\n")),
        Xstats::FqCodelClass { deficit, codel } => {
            out.push_str(&format!("  deficit {deficit} count {} lastcount {}", codel.count, codel.lastcount));
            out.push_str(&format!(" ldelay {}", print_time(codel.ldelay_us)));
            if codel.dropping {
                out.push_str(&format!(" dropping drop_next {}", drop_next(codel.drop_next_us)));
            }
            out.push('\n');
        }
        _ => {}
    }
    out
}

/// `-g`: a tree, children under their parents; the last listed comes first, as in tc.
fn graph(dumps: &[&ClassDump], flags: &ShowFlags) -> String {
    let ids: Vec<Handle> = dumps.iter().map(|dump| dump.classid).collect();
    let mut children: BTreeMap<u32, Vec<&ClassDump>> = BTreeMap::new();
    for dump in dumps.iter().rev().filter(|dump| !matches!(dump.params, ClassParams::None)) {
        let above = if ids.contains(&dump.parent) { dump.parent } else { Handle::ROOT };
        children.entry(above.0).or_default().push(dump);
    }
    let mut out = String::new();
    branch(Handle::ROOT, "", 0, &children, flags, &mut out);
    out.push('\n');
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
        out.push_str(&format!("{indent}{head}{}\n", options(dump, flags)));
        let below = format!("{indent}{}    ", if last { ' ' } else { '|' });
        let inner = children.contains_key(&dump.classid.0);
        if let (Some(stats), true) = (&dump.stats, flags.stats) {
            let mut entry = Entry::new();
            entry.counters(stats, true);
            let bar = if inner { "|" } else { " " };
            let pad = " ".repeat(format!("({})", dump.classid).len() - usize::from(!inner) + usize::from(!inner) - 1);
            for text in entry.text.lines() {
                out.push_str(&format!("{below}{bar}{pad}{text}\n"));
            }
        }
        branch(dump.classid, &below, depth + 1, children, flags, out);
    }
}
