//! `tc class show`. With `-j` in the shape of newer tc (6.1 takes no notice of it here), and with `kind` as qdiscs have it.

use super::show::{Entry, handle_text};
use super::show_qdisc::drop_next;
use super::{ShowFlags, ShowWhat, cake, ets};
use crate::json::{self, Json};
use crate::units::{bytes_of, print_rate, print_size, print_time};
use std::collections::BTreeMap;
use tidegate_packet::{Handle, Rate};
use tidegate_policy::dump::{ClassDump, Xstats};
use tidegate_policy::{
    ClassParams, Classes, HfscClassParams, HtbClassParams, LinkLayer, RateSpec, ServiceCurve, Ticks,
};

/// The listing of classes, in the order given; what `what` does not ask for is left out. Without a device it is empty.
pub fn show_classes(dumps: &[ClassDump], what: &ShowWhat, flags: &ShowFlags) -> String {
    let Some(dev) = &what.dev else { return String::new() };
    let wanted = dumps.iter().filter(|dump| {
        dump.dev == *dev
            && what.classid.is_none_or(|id| id == dump.classid)
            && what.handle.is_none_or(|qdisc| qdisc == dump.classid.qdisc())
            && what.parent.is_none_or(|parent| parent != Handle::ROOT && parent.qdisc() == dump.classid.qdisc())
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
    // With `qdisc H:` tc prints the minor numbers only; the class of no number, which the kernel lets pass, prints as nothing.
    let short = |id: Handle| match what.handle {
        _ if id.is_none() => String::new(),
        Some(qdisc) if id.qdisc() == qdisc => Handle(id.0 & 0xffff).to_string(),
        _ => id.to_string(),
    };
    let mut entry = Entry::new();
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
    let mut entry = Entry::new();
    match &dump.params {
        ClassParams::None => {}
        ClassParams::Ets(params) => ets::show_class(params, &mut entry),
        ClassParams::Drr(params) => entry.size("quantum", params.quantum.unwrap_or(0), "quantum {} "),
        ClassParams::Hfsc(params) => hfsc(params, flags, &mut entry),
        ClassParams::Qfq(params) => {
            for (key, value) in [("weight", params.weight), ("maxpkt", params.maxpkt)] {
                let value = value.unwrap_or(0);
                entry.number(key, value, &format!("{key} {value} "));
            }
        }
        ClassParams::Htb(params) => htb(params, &dump.xstats, flags, &mut entry),
    }
    entry
}

/// Both curves in one word where they are the same.
fn hfsc(params: &HfscClassParams, flags: &ShowFlags, entry: &mut Entry) {
    let HfscClassParams { rt, ls, ul } = params;
    let curves = if rt.is_some() && rt == ls {
        [("sc", rt), ("ul", ul), ("", &None)]
    } else {
        [("rt", rt), ("ls", ls), ("ul", ul)]
    };
    for (name, curve) in curves {
        if let Some(curve) = curve {
            service_curve(name, curve, flags, entry);
        }
    }
}

fn service_curve(name: &'static str, curve: &ServiceCurve, flags: &ShowFlags, entry: &mut Entry) {
    let slope = |m: u32| print_rate(Rate(m.into()), flags.iec);
    let ServiceCurve { m1, d_us, m2 } = curve;
    entry.say(&format!("{name} m1 {} d {} m2 {} ", slope(*m1), print_time(*d_us), slope(*m2)));
    let members = vec![("m1", Json::number(m1)), ("d", Json::number(d_us)), ("m2", Json::number(m2))];
    entry.member(name, Json::Object(members));
}

fn htb(params: &HtbClassParams, xstats: &Xstats, flags: &ShowFlags, entry: &mut Entry) {
    let level = match xstats {
        Xstats::HtbClass { level, .. } => *level,
        _ => 0,
    };
    if level == 0 {
        entry.number("prio", params.prio, &format!("prio {} ", params.prio));
        if flags.details {
            // tc shows it as a signed number.
            let quantum = params.quantum as i32;
            entry.number("quantum", quantum, &format!("quantum {quantum} "));
        }
    }
    let rate = |key, spec: &RateSpec, entry: &mut Entry| {
        entry.number(key, spec.rate.0, &format!("{key} {} ", print_rate(spec.rate, flags.iec)));
    };
    rate("rate", &params.rate, entry);
    if params.rate.overhead > 0 {
        entry.number("overhead", params.rate.overhead, &format!("overhead {} ", params.rate.overhead));
    }
    rate("ceil", &params.ceil, entry);
    if params.rate.linklayer == LinkLayer::Atm || flags.details {
        entry.word("linklayer", params.rate.linklayer.name());
    }
    bucket("burst", &params.rate, params.buffer, flags, entry);
    bucket("cburst", &params.ceil, params.cbuffer, flags, entry);
    if flags.details {
        entry.number("level", level, &format!("level {level} "));
    }
    if flags.raw {
        entry.say(&format!("buffer [{:08x}] cbuffer [{:08x}] ", params.buffer.0, params.cbuffer.0));
        entry.member("buffer", Json::number(params.buffer.0));
        entry.member("cbuffer", Json::number(params.cbuffer.0));
    }
}

/// The rate's or the ceiling's bucket. Both have the same `mpu`, which JSON names once.
fn bucket(key: &'static str, spec: &RateSpec, ticks: Ticks, flags: &ShowFlags, entry: &mut Entry) {
    let bytes = bytes_of(spec.rate, ticks);
    if !flags.details {
        return entry.size(key, bytes, &format!("{key} {{}} "));
    }
    let mpu = print_size(spec.mpu.into());
    entry.size(key, bytes, &format!("{key} {{}}/1 mpu {mpu} "));
    if key == "burst" {
        entry.member("mpu", Json::number(spec.mpu));
    }
}

fn counters(dump: &ClassDump, flags: &ShowFlags) -> Entry {
    let mut entry = Entry::new();
    if let Some(stats) = &dump.stats {
        // Flows have no counters of their own for what was sent.
        entry.counters(stats, !matches!(dump.kind.classes(), Classes::Flows | Classes::Priorities));
    }
    // Before the line of a rate estimator tc always begins a new one.
    if flags.oneline && dump.stats.as_ref().is_none_or(|stats| stats.rate.is_none()) {
        entry.text = entry.text.replace('\n', "\\");
    }
    entry.say("\n");
    xstats(&dump.xstats, &mut entry);
    entry
}

fn xstats(xstats: &Xstats, entry: &mut Entry) {
    match xstats {
        Xstats::HtbClass { lends, borrows, giants, tokens, ctokens, .. } => {
            entry.number("lended", *lends, &format!(" lended: {lends}"));
            entry.number("borrowed", *borrows, &format!(" borrowed: {borrows}"));
            entry.number("giants", *giants, &format!(" giants: {giants}\n"));
            entry.number("tokens", *tokens, &format!(" tokens: {tokens}"));
            entry.number("ctokens", *ctokens, &format!(" ctokens: {ctokens}\n\n"));
        }
        Xstats::DrrClass { deficit } => entry.size("deficit", *deficit, " deficit {} \n"),
        Xstats::SfqClass { allot } => entry.number("allot", *allot, &format!("  allot {allot}\n")),
        Xstats::HfscClass { work, rtwork, period, level } => {
            entry.number("period", *period, &format!(" period {period} "));
            for (name, bytes) in [("work", work), ("rtwork", rtwork)] {
                if *bytes != 0 {
                    entry.number(name, *bytes, &format!("{name} {bytes} bytes "));
                }
            }
            entry.number("level", *level, &format!("level {level} \n\n"));
        }
        Xstats::CakeFlow(flow) => cake::show_flow(flow, entry),
        Xstats::FqCodelClass { deficit, codel } => {
            entry.number("deficit", *deficit, &format!("  deficit {deficit}"));
            entry.number("count", codel.count, &format!(" count {}", codel.count));
            entry.number("lastcount", codel.lastcount, &format!(" lastcount {}", codel.lastcount));
            entry.number("ldelay", codel.ldelay_us, &format!(" ldelay {}", print_time(codel.ldelay_us)));
            if codel.dropping {
                entry.say(&format!(" dropping drop_next {}", drop_next(codel.drop_next_us)));
                entry.member("dropping", Json::Bool(true));
                entry.member("drop_next", Json::number(codel.drop_next_us));
            }
            entry.say("\n");
        }
        _ => {}
    }
}

/// `-g`: a tree, children under their parents in the order of the listing; at the top the last listed comes first, as in tc.
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
            let mut entry = Entry::new();
            entry.counters(stats, true);
            let bar = if inner { "|" } else { " " };
            let pad = " ".repeat(format!("({})", dump.classid).len() - usize::from(!inner) + usize::from(!inner) - 1);
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
