//! Each device's qdiscs and classes, drawn as a tree, with the filters that lead to each class.

use super::json::{CLSACT_EGRESS, CLSACT_INGRESS, all_filters};
use crate::faces::Machine;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_gateway::{DeviceId, DeviceSpec};
use tidegate_lang::tc::{self, Object, ShowFlags, ShowWhat};
use tidegate_lang::units::print_rate;
use tidegate_packet::{Handle, Pool, Seeded};
use tidegate_policy::dump::{ClassDump, FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::{Act, ClassParams, FilterParams, Kind, QdiscParams, U32Key};

/// How deep the drawing goes: deeper than any tree that a packet can pass.
const MAX_DEPTH: usize = 64;

/// One device's tree, in parts.
struct Tree {
    qdiscs: Vec<QdiscDump>,
    /// Classes by what they hang on.
    classes: BTreeMap<u32, Vec<ClassDump>>,
    /// What leads to a class, by its id; what leads to none, by the parent.
    filters: BTreeMap<u32, Vec<String>>,
    /// How a qdisc of each kind looks when nothing is said of it.
    plain: BTreeMap<&'static str, Vec<String>>,
}

/// The trees of all devices on which something is configured.
pub(super) fn draw(machine: &mut Machine) -> String {
    let mut out = String::new();
    for id in machine.gateway.devices() {
        let spec = machine.gateway.spec(id);
        let tree = read(machine, id);
        let tops: Vec<&QdiscDump> = tree.qdiscs.iter().filter(|q| is_top(q) && !q.handle.is_none()).collect();
        if tops.is_empty() {
            continue;
        }
        let name = machine.gateway.name(id);
        out.push_str(&format!("{name}  mtu {}, txqueuelen {}\n", spec.mtu, spec.tx_queue_len));
        for (number, qdisc) in tops.iter().enumerate() {
            tree.qdisc(qdisc, "", number + 1 == tops.len(), 0, &mut out);
        }
    }
    if out.is_empty() {
        out.push_str("no device has a qdisc that was configured\n");
    }
    out
}

fn is_top(qdisc: &QdiscDump) -> bool {
    qdisc.parent == Handle::ROOT || qdisc.parent == Handle::INGRESS
}

fn read(machine: &mut Machine, id: DeviceId) -> Tree {
    let now = machine.now;
    let mut classes: BTreeMap<u32, Vec<ClassDump>> = BTreeMap::new();
    for class in machine.gateway.classes(now, id) {
        // Flows come and go with packets: they are no part of what was configured.
        if matches!(class.kind, Kind::Sfq | Kind::FqCodel) {
            continue;
        }
        let above = if class.parent == Handle::ROOT { class.classid.qdisc() } else { class.parent };
        classes.entry(above.0).or_default().push(class);
    }
    for list in classes.values_mut() {
        list.sort_by_key(|class| class.classid);
    }
    let there: BTreeSet<Handle> = classes.values().flatten().map(|class| class.classid).collect();
    let mut filters: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for dump in all_filters(machine, id) {
        let Some((target, text)) = lead(&dump) else { continue };
        let (place, text) = match (dump.parent, target) {
            // These have no classes, whatever a filter says.
            (CLSACT_INGRESS, _) => (dump.parent.qdisc(), format!("ingress: {text}")),
            (CLSACT_EGRESS, _) => (dump.parent.qdisc(), format!("egress: {text}")),
            (parent, _) if parent.major() == u16::MAX => (parent, text),
            (_, Some(class)) if there.contains(&class) => (class, text),
            // What leads to a class that is not there leads nowhere.
            (parent, Some(class)) => (parent, format!("{text} to {class}, which is not there")),
            (parent, None) => (parent, text),
        };
        filters.entry(place.0).or_default().push(text);
    }
    let qdiscs = machine.gateway.qdiscs(now, id);
    for qdisc in &qdiscs {
        if let QdiscParams::Htb(htb) = &qdisc.params
            && let Some(minor) = u16::try_from(htb.default).ok().filter(|minor| *minor > 0)
        {
            let class = Handle::new(qdisc.handle.major(), minor);
            filters.entry(class.0).or_default().push("all that no filter leads elsewhere".to_owned());
        }
    }
    let plain = qdiscs.iter().map(|qdisc| (qdisc.kind.name(), plain(machine.gateway.spec(id), qdisc.kind))).collect();
    Tree { qdiscs, classes, filters, plain }
}

/// The options of a qdisc that was made with its kind's name alone, on a device like this; none where tc wants more.
fn plain(spec: DeviceSpec, kind: Kind) -> Vec<String> {
    let mut machine = Machine::new(["scratch"], spec);
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    let words = ["qdisc", "add", "dev", "scratch", "root", "handle", "1:", kind.name()].map(String::from);
    machine.face(&mut pool, &mut draws).tc(&words, None);
    let found = machine.gateway.device("scratch").map(|id| machine.gateway.qdiscs(machine.now, id)).unwrap_or_default();
    found.iter().find(|qdisc| qdisc.kind == kind).map_or(Vec::new(), options)
}

impl Tree {
    /// `htb 1: default 0x20`: what differs from a qdisc of which nothing was said.
    fn qdisc_text(&self, qdisc: &QdiscDump) -> String {
        let plain = self.plain.get(qdisc.kind.name()).map(Vec::as_slice).unwrap_or_default();
        let said = options(qdisc).into_iter().filter(|item| !plain.contains(item));
        let head = format!("{} {:x}:", qdisc.kind.name(), qdisc.handle.major());
        std::iter::once(head).chain(said).collect::<Vec<_>>().join(" ")
    }

    fn qdisc(&self, qdisc: &QdiscDump, indent: &str, last: bool, depth: usize, out: &mut String) {
        let (branch, below) = branches(indent, last);
        out.push_str(&format!("{branch}{}\n", self.qdisc_text(qdisc)));
        if depth < MAX_DEPTH {
            self.under(qdisc.handle, &below, depth + 1, out);
        }
    }

    /// The filters that hang there and lead to no class, then the classes.
    fn under(&self, above: Handle, indent: &str, depth: usize, out: &mut String) {
        let classes = self.classes.get(&above.0).map(Vec::as_slice).unwrap_or_default();
        let is_qdisc = above.minor() == 0;
        let notes = self.filters.get(&above.0).filter(|_| is_qdisc).map(Vec::as_slice).unwrap_or_default();
        for (number, note) in notes.iter().enumerate() {
            let (branch, _) = branches(indent, number + 1 == notes.len() && classes.is_empty());
            out.push_str(&format!("{branch}◂ {note}\n"));
        }
        // A class that nothing can be said of, and that holds nothing, is the kind's own affair.
        let bare = |class: &ClassDump| {
            class.params == ClassParams::None && class.leaf.is_none() && !self.filters.contains_key(&class.classid.0)
        };
        let classes: Vec<&ClassDump> = classes.iter().filter(|class| !bare(class)).collect();
        for (number, class) in classes.iter().enumerate() {
            self.class(class, indent, number + 1 == classes.len(), depth, out);
        }
    }

    fn class(&self, class: &ClassDump, indent: &str, last: bool, depth: usize, out: &mut String) {
        let (branch, below) = branches(indent, last);
        let leaf = self.qdiscs.iter().find(|qdisc| qdisc.parent == class.classid && !qdisc.handle.is_none());
        let has_classes = self.classes.contains_key(&class.classid.0);
        let deep = leaf.is_some_and(|leaf| self.classes.contains_key(&leaf.handle.0));
        let mut line = format!("{branch}{} {}", class.classid, class_text(class));
        // A leaf qdisc without classes of its own stands on the same line.
        if let Some(leaf) = leaf.filter(|_| !deep) {
            line = format!("{}  → {}", line.trim_end(), self.qdisc_text(leaf));
        }
        out.push_str(line.trim_end());
        out.push('\n');
        let leads = self.filters.get(&class.classid.0).map(Vec::as_slice).unwrap_or_default();
        let bar = if has_classes || deep { "│  " } else { "   " };
        for lead in leads {
            out.push_str(&format!("{below}{bar}◂ {lead}\n"));
        }
        if depth >= MAX_DEPTH {
            return;
        }
        if let Some(leaf) = leaf.filter(|_| deep) {
            self.qdisc(leaf, &below, !has_classes, depth + 1, out);
        }
        if has_classes {
            self.under(class.classid, &below, depth + 1, out);
        }
    }
}

/// What stands before an entry, and before what hangs on it.
fn branches(indent: &str, last: bool) -> (String, String) {
    match last {
        true => (format!("{indent}└─ "), format!("{indent}   ")),
        false => (format!("{indent}├─ "), format!("{indent}│  ")),
    }
}

/// The options of a qdisc in tc's words, each with its values.
fn options(qdisc: &QdiscDump) -> Vec<String> {
    let text = tc::show_qdiscs(
        std::slice::from_ref(qdisc),
        &ShowWhat { invisible: true, ..ShowWhat::on(Object::Qdisc, &qdisc.dev) },
        &ShowFlags::default(),
    );
    let mut items: Vec<String> = Vec::new();
    // `qdisc htb 1: root refcnt 2 r2q 10 …`: kind and handle first.
    for word in text.split_whitespace().skip(3) {
        match items.last_mut() {
            Some(item) if word.starts_with(|letter: char| letter.is_ascii_digit()) => {
                item.push(' ');
                item.push_str(word);
            }
            _ => items.push(word.to_owned()),
        }
    }
    // The place is seen, and what was counted is no option.
    // (An ingress has its parent's number and dashes there.)
    items.retain(|item| item.starts_with(|letter: char| letter.is_ascii_lowercase()) && !item.starts_with("ffff:"));
    let known = ["dev", "root", "parent", "refcnt", "direct_packets_stat", "ingress_block"];
    items.retain(|item| !known.contains(&item.split(' ').next().unwrap_or("")));
    items
}

fn class_text(class: &ClassDump) -> String {
    match &class.params {
        ClassParams::Htb(htb) => {
            let prio = if htb.prio > 0 { format!("prio {}  ", htb.prio) } else { String::new() };
            format!(" {prio}rate {}  ceil {}", print_rate(htb.rate.rate, false), print_rate(htb.ceil.rate, false))
        }
        ClassParams::Drr(drr) => drr.quantum.map_or(String::new(), |bytes| format!(" quantum {bytes}")),
        _ => String::new(),
    }
}

/// Where a filter leads and what it looks at; `None` for headings and tables.
fn lead(dump: &FilterDump) -> Option<(Option<Handle>, String)> {
    let FilterEntry::Filter { handle, params, actions, .. } = &dump.entry else { return None };
    let what = ShowWhat::on(Object::Filter, &dump.dev);
    let shown = tc::show_filters(std::slice::from_ref(dump), &what, &ShowFlags::default());
    let protocol = shown.split_once("protocol ").and_then(|(_, rest)| rest.split(' ').next()).unwrap_or("all");
    let rest = shown.split_once(&format!(" chain {} ", dump.chain)).map_or("", |(_, rest)| rest);
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (target, text) = match params {
        FilterParams::Fw(fw) => {
            let mask = fw.mask.filter(|mask| *mask != u32::MAX).map_or(String::new(), |mask| format!("/{mask:#x}"));
            (fw.classid, format!("fw mark {handle}{mask}"))
        }
        FilterParams::U32(u32) => {
            let keys: Vec<String> = u32.keys.iter().map(|key| key_text(key, dump.protocol)).collect();
            let mark = u32.mark.map_or(String::new(), |(value, mask)| format!(" mark {value:#x}/{mask:#x}"));
            (u32.classid, format!("u32 {}{mark}", keys.join(" ")))
        }
        FilterParams::Flow(flow) => (None, {
            let text = flat(rest);
            let text = text.split_once(' ').and_then(|(_, rest)| rest.split_once(' ')).map_or("", |(_, rest)| rest);
            let text = text.split(" baseclass ").next().unwrap_or(text);
            let last = |first: Handle| Handle(first.0.saturating_add(flow.divisor.saturating_sub(1)));
            match flow.baseclass {
                Some(first) if flow.divisor > 1 => format!("flow {text} to {first} … {}", last(first)),
                Some(first) => format!("flow {text} to {first}"),
                None => format!("flow {text}"),
            }
        }),
        FilterParams::Matchall(all) => (all.classid, "everything".to_owned()),
    };
    let mut text = format!("{text}  ({protocol}, prio {})", dump.pref);
    for dump in actions {
        text.push_str(&match &dump.action.act {
            Act::Redirect { to, .. } => format!(" ⇒ to {to}"),
            Act::Gact(control) => format!(" ⇒ {}", control.name()),
        });
    }
    Some((target.filter(|class| !class.is_none()), text))
}

/// A comparison by the name of the field, where it is one of IPv4's.
fn key_text(key: &U32Key, protocol: u16) -> String {
    let address = |mask: u32| {
        let octets = std::net::Ipv4Addr::from(key.value);
        if mask.leading_ones() + mask.trailing_zeros() >= 32 {
            Some(format!("{octets}/{}", mask.leading_ones()))
        } else {
            None
        }
    };
    let ipv4 = protocol == 0x0800 && key.offset_mask == 0;
    let named = match (key.offset, key.mask) {
        (_, 0) => Some("everything".to_owned()),
        _ if !ipv4 => None,
        (0, mask) if mask & 0xff00_ffff == 0 => Some(format!("tos {:#04x}/{:#04x}", key.value >> 16, mask >> 16)),
        (8, 0x00ff_0000) => Some(format!("protocol {}", key.value >> 16)),
        (12, mask) => address(mask).map(|address| format!("src {address}")),
        (16, mask) => address(mask).map(|address| format!("dst {address}")),
        (20, 0xffff_0000) => Some(format!("sport {}", key.value >> 16)),
        (20, 0x0000_ffff) => Some(format!("dport {}", key.value)),
        _ => None,
    };
    let next = if key.offset_mask != 0 { "nexthdr+" } else { "" };
    named.unwrap_or_else(|| format!("{:08x}/{:08x} at {next}{}", key.value, key.mask, key.offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_names() {
        let key = |value, mask, offset| key_text(&U32Key { value, mask, offset, offset_mask: 0 }, 0x0800);
        let table = [
            (key(0x0010_0000, 0x00ff_0000, 0), "tos 0x10/0xff"),
            (key(0x0006_0000, 0x00ff_0000, 8), "protocol 6"),
            (key(0x0a00_0000, 0xff00_0000, 12), "src 10.0.0.0/8"),
            (key(0, 0, 0), "everything"),
            (key(0x0016_0000, 0xffff_0000, 20), "sport 22"),
            (key(0x5, 0xf0f, 4), "00000005/00000f0f at 4"),
        ];
        for (shown, wanted) in table {
            assert_eq!(shown, wanted);
        }
    }
}
