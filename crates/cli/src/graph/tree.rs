//! Each device's qdiscs, classes and filters, sorted by what hangs on what and what leads where.

use super::lead::Lead;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_gateway::{DeviceId, DeviceSpec, Gateway};
use tidegate_inspect::bytes::{condition_words, keys_words};
use tidegate_inspect::{CLSACT_EGRESS, CLSACT_INGRESS, MarkingRule, Uses, numbered_queues};
use tidegate_packet::{Handle, Pool, Rate, Seeded, Time};
use tidegate_policy::dump::{ClassDump, FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::netfilter::{Condition, ConnmarkTarget, Family, NetfilterRule, NetfilterTarget};
use tidegate_policy::{
    Act, ClassLayout, ClassParams, Control, FilterParams, Gact, Kind, Police, QdiscParams, ServiceCurve,
    Skbedit,
};
use tidegate_shims::Machine;
use tidegate_syntax::iptables::print_rule;
use tidegate_syntax::nft;
use tidegate_syntax::tc::{self, Object, ShowFlags, ShowWhat};
use tidegate_syntax::units::{print_rate, print_time};

/// The queues of a tin of cake.
const CAKE_QUEUES: u16 = 1024;
/// Behind what leads to a class, and leads nothing there.
const NO_PACKET: &str = "[no packet comes to it]";

/// One device's tree, in parts.
pub(super) struct Tree {
    qdiscs: Vec<QdiscDump>,
    /// Classes by what they hang on.
    classes: BTreeMap<u32, Vec<ClassDump>>,
    /// What leads to a class, by its id; what leads to none, by the parent.
    filters: BTreeMap<u32, Vec<Lead>>,
    /// The options of a qdisc of each kind by default.
    plain: BTreeMap<&'static str, Vec<String>>,
    /// Devices that filters lead to, and what they lead there.
    pub(super) redirects: Vec<(String, String)>,
}

fn is_top(qdisc: &QdiscDump) -> bool {
    qdisc.parent == Handle::ROOT || qdisc.parent == Handle::INGRESS
}

/// A rule of netfilter that leads packets to a class, with its conditions and its place; `dump`: by its mark,
/// to this filter.
fn marker_text(marker: &MarkingRule, dump: Option<&FilterDump>) -> String {
    let rule = NetfilterRule { matches: marker.rule.matches.clone(), ..NetfilterRule::default() };
    let written = marker.rule.targets().filter_map(|target| match target {
        NetfilterTarget::Mark { value, .. } if dump.is_some() => Some((format!("mark {value}"), "")),
        NetfilterTarget::Connmark(ConnmarkTarget::Set { value, .. }) if dump.is_some() => {
            Some((format!("mark {value}"), ", whole connections"))
        }
        NetfilterTarget::Classify(_) if dump.is_none() => Some(("classified by a rule".to_owned(), "")),
        _ => None,
    });
    let (head, whose) = written.last().unwrap_or_default();
    let whose = if marker.by_connection { ", on other packets of the connection" } else { whose };
    let is_bare = rule.matches.iter().all(|m| matches!(m.what, Condition::Comment(_)));
    let condition = match marker.is_nft {
        _ if is_bare => String::new(),
        true => nft::print_rule(&rule, marker.family, None),
        false => print_rule(&rule, marker.family == Family::Ipv6),
    };
    // A comment may have any letters.
    let condition = tidegate_text::line(condition.trim()).to_string();
    let condition = if condition.is_empty() { "everything" } else { &condition };
    let tool = if !marker.is_nft && marker.family == Family::Ipv6 { "ip6tables " } else { "" };
    format!("{head}: {condition}  ({tool}{} {}{whose})", marker.table, marker.chain)
}

/// The filters that packets are shown at every qdisc and class of a device.
fn all_filters(gateway: &mut Gateway, now: Time, id: DeviceId) -> Vec<FilterDump> {
    let mut parents: Vec<Handle> = gateway.qdiscs(now, id).iter().flat_map(QdiscDump::filter_lists).collect();
    parents.extend(gateway.classes(now, id).iter().map(|class| class.classid));
    parents.sort();
    parents.dedup();
    parents.into_iter().flat_map(|parent| gateway.own_filters(now, id, parent).unwrap_or_default()).collect()
}

fn read(gateway: &mut Gateway, now: Time, id: DeviceId, uses: &Uses) -> Tree {
    let mut classes: BTreeMap<u32, Vec<ClassDump>> = BTreeMap::new();
    for class in gateway.classes(now, id) {
        // HFSC lists its root as a class that has the qdisc's own number.
        if class.kind.classes_are_flows() || class.kind == Kind::Hfsc && class.classid.minor() == 0 {
            continue;
        }
        let above = if class.parent == Handle::ROOT { class.classid.qdisc() } else { class.parent };
        classes.entry(above.0).or_default().push(class);
    }
    for list in classes.values_mut() {
        list.sort_by_key(|class| class.classid);
    }
    let there: BTreeSet<Handle> = classes.values().flatten().map(|class| class.classid).collect();
    let qdiscs = gateway.qdiscs(now, id);
    let by_handle: BTreeMap<Handle, &QdiscDump> = qdiscs.iter().map(|qdisc| (qdisc.handle, qdisc)).collect();
    let mut filters: BTreeMap<u32, Vec<Lead>> = BTreeMap::new();
    let mut redirects = Vec::new();
    let device = gateway.name(id).to_owned();
    let all = all_filters(gateway, now, id);
    for bare in bare_marks(&all) {
        filters.entry(bare.parent.0).or_default().push(Lead::from(bare_mark_text(bare)));
    }
    for dump in all {
        let Some((target, text)) = lead(&dump) else { continue };
        redirects.extend(led_to(&dump).map(|to| (to, text.clone())));
        let text = match uses.is_idle(&dump) {
            true => format!("{text}  {NO_PACKET}"),
            // Filters before it take a part of the packets that it matches.
            false if uses.is_partial(&dump) => text.replacen("everything  (", "everything else  (", 1),
            false => text,
        };
        let markers = uses.markers(&dump).iter().map(|marker| marker_text(marker, Some(&dump)));
        let markers = if target.is_some() { markers.collect() } else { Vec::new() };
        let (place, text) = match (dump.parent, target) {
            // These have no classes, whatever a filter names.
            (CLSACT_INGRESS, _) => (dump.parent.qdisc(), format!("ingress: {text}")),
            (CLSACT_EGRESS, _) => (dump.parent.qdisc(), format!("egress: {text}")),
            (parent, _) if parent.major() == u16::MAX => (parent, text),
            // What it matches goes to the filters behind it, whatever class it names.
            (parent, _) if goes_on(&dump) => (parent, text),
            (parent, Some(class)) => {
                led(parent, class, by_handle.get(&parent.qdisc()).copied(), &there, text)
            }
            (parent, None) => (parent, text),
        };
        filters.entry(place.0).or_default().push(Lead { text, markers });
    }
    for class in &there {
        for rule in uses.classifiers(&device, *class) {
            filters.entry(class.0).or_default().push(Lead::from(marker_text(rule, None)));
        }
    }
    for qdisc in &qdiscs {
        let default = match &qdisc.params {
            QdiscParams::Htb(htb) => u16::try_from(htb.default).unwrap_or(0),
            QdiscParams::Hfsc(hfsc) => hfsc.default,
            _ => 0,
        };
        if default > 0 {
            let class = Handle::new(qdisc.handle.major(), default);
            let idle =
                if uses.is_idle_default(&device, class) { format!("  {NO_PACKET}") } else { String::new() };
            filters
                .entry(class.0)
                .or_default()
                .push(Lead::from(format!("all that no filter leads elsewhere{idle}")));
        }
        for (band, priorities) in by_priority(&qdisc.params) {
            let class = Handle::new(qdisc.handle.major(), u16::from(band) + 1);
            // Filters take all packets, or no packet has such a priority by its header.
            if uses.is_idle_default(&device, class) {
                continue;
            }
            filters.entry(class.0).or_default().push(Lead::from(format!("the rest of {priorities}")));
        }
    }
    let plain = qdiscs.iter().map(|qdisc| (qdisc.kind.name(), plain(gateway.spec(id), qdisc.kind))).collect();
    Tree { qdiscs, classes, filters, plain, redirects }
}

/// The bands that packets which no filter leads elsewhere come to by their priority, from 0, each with those
/// in words: `priorities 0-5, 7`.
fn by_priority(params: &QdiscParams) -> BTreeMap<u8, String> {
    let map: &[u8] = match params {
        QdiscParams::Prio(prio) => &prio.priomap,
        QdiscParams::Ets(ets) => &ets.priomap,
        _ => &[],
    };
    let mut bands: BTreeMap<u8, Vec<(usize, usize)>> = BTreeMap::new();
    for (priority, band) in map.iter().enumerate() {
        let ranges = bands.entry(*band).or_default();
        match ranges.last_mut().filter(|(_, last)| last + 1 == priority) {
            Some((_, last)) => *last = priority,
            None => ranges.push((priority, priority)),
        }
    }
    let text = |ranges: Vec<(usize, usize)>| {
        let one = |(first, last)| if first == last { format!("{first}") } else { format!("{first}-{last}") };
        let is_one = matches!(ranges[..], [(first, last)] if first == last);
        let words: Vec<String> = ranges.into_iter().map(one).collect();
        format!("priorit{} {}", if is_one { "y" } else { "ies" }, words.join(", "))
    };
    bands.into_iter().map(|(band, ranges)| (band, text(ranges))).collect()
}

/// Does a filter leave the decision to those behind it?
fn goes_on(dump: &FilterDump) -> bool {
    let FilterEntry::Filter { actions, .. } = &dump.entry else { return false };
    let is_continue = |act: &Act| matches!(act, Act::Gact(Gact { control: Control::Continue, random: None }));
    actions.iter().any(|dump| is_continue(&dump.action.act))
}

/// Where a filter's class is drawn, and what is said of it: qdiscs know their own classes only (Linux 6.1).
fn led(
    parent: Handle,
    class: Handle,
    owner: Option<&QdiscDump>,
    there: &BTreeSet<Handle>,
    text: String,
) -> (Handle, String) {
    let qdisc = parent.qdisc();
    let own = Handle::new(qdisc.major(), class.minor());
    // Queues that a qdisc makes for flows are no classes that are listed.
    if let Some((kind, (_, queues))) =
        owner.and_then(|owner| Some((owner.kind, numbered_queues(&owner.params)?)))
    {
        let queue = class.minor();
        let text = match (1..=queues).contains(&u32::from(queue)) {
            true if class.qdisc() == qdisc => format!("{text} to queue {queue}"),
            true => format!("{text} names {class}, queue {queue}: only the number behind the colon counts"),
            false => format!(
                "{text} to queue {queue}, which is not there: dropped ({} has 1 to {queues})",
                kind.name()
            ),
        };
        return (parent, text);
    }
    let lacks_direct =
        |owner: &QdiscDump| matches!(&owner.params, QdiscParams::Htb(htb) if htb.direct_qlen == Some(0));
    let kind = owner.map(|owner| owner.kind);
    let by_minor = matches!(kind, Some(Kind::Prio | Kind::Ets));
    match kind {
        _ if class.qdisc() == qdisc && there.contains(&class) => (class, text),
        _ if by_minor && there.contains(&own) => {
            (own, format!("{text} names {class}: only the number behind the colon counts"))
        }
        Some(kind) if kind.classes_are_flows() && class.qdisc() == qdisc => {
            (parent, format!("{text} to queue {}", class.minor()))
        }
        // CAKE takes the numbers of any class: of a queue, and before the colon of a host (tc-cake(8)).
        Some(Kind::Cake) if (1..=CAKE_QUEUES).contains(&class.minor()) => {
            (parent, format!("{text} to queue {}", class.minor()))
        }
        Some(Kind::Cake) if class.minor() == 0 => (parent, format!("{text} as of host {}", class.major())),
        Some(Kind::Htb) if class == qdisc && owner.is_some_and(lacks_direct) => {
            (parent, format!("{text} to no class: dropped (direct_qlen 0)"))
        }
        Some(Kind::Htb) if class == qdisc => (parent, format!("{text} past all classes")),
        _ if class == qdisc => (parent, format!("{text} to {class} itself, which is no class")),
        _ if there.contains(&class) => (parent, format!("{text} to {class}, which is no class of {qdisc}")),
        // What leads to a class that is not there leads nowhere.
        _ => (parent, format!("{text} to {class}, which is not there")),
    }
}

/// The filters by mark alone (`tc filter add … fw`): a heading without a filter.
fn bare_marks(all: &[FilterDump]) -> impl Iterator<Item = &FilterDump> {
    let place = |dump: &FilterDump| (dump.parent, dump.pref, dump.chain);
    let is_heading = |dump: &&FilterDump| dump.kind == "fw" && dump.entry == FilterEntry::Heading;
    let is_filled = move |heading: &&FilterDump| {
        let mut others = all.iter().filter(|dump| dump.entry != FilterEntry::Heading);
        others.any(|dump| place(dump) == place(heading))
    };
    all.iter().filter(is_heading).filter(move |heading| !is_filled(heading))
}

fn bare_mark_text(dump: &FilterDump) -> String {
    let what = ShowWhat::on(Object::Filter, &dump.dev);
    let shown = tc::show_filters(std::slice::from_ref(dump), &what, &ShowFlags::default());
    let protocol = protocol_of(&shown);
    format!("fw: the mark is the class's number  ({protocol}, prio {})", dump.pref)
}

/// The protocol in tc's listing of a filter.
fn protocol_of(shown: &str) -> &str {
    shown.split_once("protocol ").and_then(|(_, rest)| rest.split(' ').next()).unwrap_or("all")
}

/// The options of a qdisc that was made with its kind's name alone, on a device like this; none where tc
/// wants more.
fn plain(spec: DeviceSpec, kind: Kind) -> Vec<String> {
    let mut machine = Machine::new(["scratch"], spec);
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    let words = ["qdisc", "add", "dev", "scratch", "root", "handle", "1:", kind.name()].map(String::from);
    machine.shim(&mut pool, &mut draws).tc(&words, None);
    let found = machine
        .gateway
        .device("scratch")
        .map(|id| machine.gateway.qdiscs(machine.now, id))
        .unwrap_or_default();
    found.iter().find(|qdisc| qdisc.kind == kind).map_or(Vec::new(), options)
}

impl Tree {
    /// What is installed on a device, with the filters that lead there.
    pub(super) fn of(gateway: &mut Gateway, now: Time, id: DeviceId, uses: &Uses) -> Tree {
        read(gateway, now, id, uses)
    }

    /// The qdiscs that hang on no class.
    pub(super) fn tops(&self) -> impl Iterator<Item = &QdiscDump> {
        self.qdiscs.iter().filter(|qdisc| is_top(qdisc) && !qdisc.handle.is_none())
    }

    /// The qdisc that was hung on a class. Kinds with one class take the qdisc's own number for it.
    pub(super) fn qdisc_on(&self, class: Handle) -> Option<&QdiscDump> {
        let on =
            |parent: Handle| self.qdiscs.iter().find(|one| one.parent == parent && !one.handle.is_none());
        // A class of that number may be there, too.
        let is_only =
            class.minor() == 1 && !self.classes.values().flatten().any(|one| one.classid == class.qdisc());
        // A kind with one class takes a qdisc for it by whatever number of its own.
        let has_one = |handle: Handle| {
            let owner = self.qdiscs.iter().find(|one| one.handle == handle);
            owner.is_some_and(|owner| matches!(owner.kind.classes(), ClassLayout::One))
        };
        let within = |above: Handle| {
            self.qdiscs.iter().find(|one| one.parent.qdisc() == above && !one.handle.is_none())
        };
        on(class)
            .or_else(|| on(class.qdisc()).filter(|_| is_only))
            .or_else(|| within(class.qdisc()).filter(|_| has_one(class.qdisc())))
    }

    /// Has a qdisc or class any classes?
    pub(super) fn has_classes(&self, above: Handle) -> bool {
        self.classes.contains_key(&above.0)
    }

    /// What leads to a class, or hangs on a qdisc and leads to no class.
    pub(super) fn leads(&self, at: Handle) -> &[Lead] {
        self.filters.get(&at.0).map(Vec::as_slice).unwrap_or_default()
    }

    /// The classes under a qdisc or class. One without options, and without a qdisc in it, is the kind's own
    /// affair.
    pub(super) fn classes(&self, above: Handle) -> impl Iterator<Item = &ClassDump> {
        let bare = |class: &&ClassDump| {
            class.params == ClassParams::None
                && class.leaf.is_none()
                && !self.filters.contains_key(&class.classid.0)
        };
        self.classes.get(&above.0).into_iter().flatten().filter(move |class| !bare(class))
    }

    /// `htb 1: default 0x20`: the options that differ from the defaults.
    pub(super) fn qdisc_text(&self, qdisc: &QdiscDump) -> String {
        let plain = self.plain.get(qdisc.kind.name()).map(Vec::as_slice).unwrap_or_default();
        let given = options(qdisc).into_iter().filter(|item| !plain.contains(item));
        let head = format!("{} {:x}:", qdisc.kind.name(), qdisc.handle.major());
        std::iter::once(head).chain(given).collect::<Vec<_>>().join(" ")
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
            // Numbers of classes are hexadecimal: they may begin with a letter.
            Some(item)
                if word.starts_with(|letter: char| letter.is_ascii_digit())
                    || ["parent", "default"].contains(&item.as_str()) =>
            {
                item.push(' ');
                item.push_str(word);
            }
            _ => items.push(word.to_owned()),
        }
    }
    // The place is seen, and what was counted is no option.
    // (An ingress has its parent's number and dashes there.)
    items.retain(|item| {
        item.starts_with(|letter: char| letter.is_ascii_lowercase()) && !item.starts_with("ffff:")
    });
    let known = ["dev", "root", "parent", "refcnt", "direct_packets_stat", "ingress_block"];
    items.retain(|item| !known.contains(&item.split(' ').next().unwrap_or("")));
    if let QdiscParams::Hfsc(hfsc) = &qdisc.params {
        // tc lists the same number of HFSC without the prefix that it gives HTB's.
        items.retain(|item| !item.starts_with("default "));
        items.push(format!("default {:#x}", hfsc.default));
    }
    items
}

/// The options of a class.
pub(super) fn class_text(class: &ClassDump) -> String {
    match &class.params {
        ClassParams::Htb(htb) => {
            let prio = if htb.prio > 0 { format!("prio {}  ", htb.prio) } else { String::new() };
            format!(
                " {prio}rate {}  ceil {}",
                print_rate(htb.rate.rate, false),
                print_rate(htb.ceil.rate, false)
            )
        }
        ClassParams::Hfsc(hfsc) => {
            let curves = [("rt", hfsc.rt), ("ls", hfsc.ls), ("ul", hfsc.ul)];
            let given = curves.into_iter().filter_map(|(name, curve)| Some((name, curve?)));
            let given = given.filter(|(_, curve)| curve.m1 > 0 || curve.m2 > 0);
            given.map(|(name, curve)| format!(" {name} {}", curve_text(curve))).collect::<Vec<_>>().join(" ")
        }
        ClassParams::Qfq(qfq) => {
            let options = [("weight", qfq.weight), ("maxpkt", qfq.maxpkt)];
            let given = options.into_iter().filter_map(|(name, value)| Some(format!(" {name} {}", value?)));
            given.collect::<Vec<_>>().join(" ")
        }
        ClassParams::Drr(drr) => drr.quantum.map_or(String::new(), |bytes| format!(" quantum {bytes}")),
        _ => String::new(),
    }
}

/// A service curve: `4Mbit`, or `5Mbit for 10ms, then 2Mbit`.
fn curve_text(curve: ServiceCurve) -> String {
    let rate = |bytes: u32| print_rate(Rate(u64::from(bytes)), false);
    if curve.d_us == 0 || curve.m1 == curve.m2 {
        rate(curve.m2)
    } else {
        format!("{} for {}, then {}", rate(curve.m1), print_time(curve.d_us), rate(curve.m2))
    }
}

/// The first number of a table of u32 that is a preference's own.
const FIRST_ROOT: u32 = 0x800;

/// Where a filter leads and what it looks at; `None` for headings and tables.
fn lead(dump: &FilterDump) -> Option<(Option<Handle>, String)> {
    let FilterEntry::Filter { handle, params, actions, .. } = &dump.entry else { return None };
    let what = ShowWhat::on(Object::Filter, &dump.dev);
    let shown = tc::show_filters(std::slice::from_ref(dump), &what, &ShowFlags::default());
    let protocol = protocol_of(&shown);
    let rest = shown.split_once(&format!(" chain {} ", dump.chain)).map_or("", |(_, rest)| rest);
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (target, text) = match params {
        FilterParams::Fw(fw) => {
            let mask =
                fw.mask.filter(|mask| *mask != u32::MAX).map_or(String::new(), |mask| format!("/{mask:#x}"));
            (fw.classid, format!("fw mark {handle}{mask}"))
        }
        FilterParams::U32(u32) => {
            let keys = keys_words(&u32.keys, dump.protocol);
            let mark = u32.mark.map_or(String::new(), |(value, mask)| format!(" mark {value:#x}/{mask:#x}"));
            let link = u32.link.map_or(String::new(), |table| match u32.hash {
                Some((mask, at)) => format!(" → table {table:x}:, by the word at {at} & {mask:#010x}"),
                None => format!(" → table {table:x}:"),
            });
            let bucket = match (u32.table >> 20, u32.table >> 12 & 0xff) {
                (table @ 1..FIRST_ROOT, bucket) => format!("in bucket {table:x}:{bucket:x}: "),
                _ => String::new(),
            };
            (u32.classid, format!("{bucket}u32 {}{mark}{link}", keys.join(" ")))
        }
        FilterParams::Flow(flow) => (None, {
            let text = flat(rest);
            let text =
                text.split_once(' ').and_then(|(_, rest)| rest.split_once(' ')).map_or("", |(_, rest)| rest);
            let text = text.split(" baseclass ").next().unwrap_or(text);
            let last = |first: Handle| Handle(first.0.saturating_add(flow.divisor.saturating_sub(1)));
            match flow.baseclass {
                Some(first) if flow.divisor > 1 => format!("flow {text} to {first} … {}", last(first)),
                Some(first) => format!("flow {text} to {first}"),
                None => format!("flow {text}"),
            }
        }),
        FilterParams::Matchall(all) => (all.classid, "everything".to_owned()),
        FilterParams::Basic(basic) => (basic.classid, format!("basic{}", condition_words(params))),
        FilterParams::Flower(flower) => (flower.classid, format!("flower{}", condition_words(params))),
        FilterParams::Route(route) => (route.classid, "route".to_owned()),
        FilterParams::Cgroup(_) => (None, format!("cgroup{}", condition_words(params))),
    };
    let chain = if dump.chain == 0 { String::new() } else { format!(", chain {}", dump.chain) };
    let mut text = format!("{text}  ({protocol}, prio {}{chain})", dump.pref);
    for dump in actions {
        text.push_str(&match &dump.action.act {
            Act::Mirred(mirred) if mirred.copy => format!(" ⇒ a copy to {}", mirred.target()),
            Act::Mirred(mirred) => format!(" ⇒ to {}", mirred.target()),
            Act::Gact(gact) => format!(" ⇒ {}", gact.control),
            Act::Police(police) => format!(" ⇒ {}", police_text(police)),
            Act::Skbedit(edit) => format!(" ⇒ {}", edit_text(edit)),
            other => format!(" ⇒ {}", other.kind()),
        });
    }
    Some((target.filter(|class| !class.is_none()), text))
}

/// `mark 0x5`, `priority 1:10`: what is written on a packet.
fn edit_text(edit: &Skbedit) -> String {
    let mask = |mask: Option<u32>| mask.map_or(String::new(), |mask| format!("/{mask:#x}"));
    let mark = edit.mark.map(|(value, of)| format!("mark {value:#x}{}", mask(of)));
    let priority = edit.priority.map(|priority| match Handle(priority).major() {
        0 => format!("priority {priority}"),
        _ => format!("priority {}", Handle(priority)),
    });
    let lines: Vec<String> = mark.into_iter().chain(priority).collect();
    if lines.is_empty() { "skbedit".to_owned() } else { lines.join(", ") }
}

/// `police to 8Mbit, else drop`.
fn police_text(police: &Police) -> String {
    let rate = match (&police.rate, &police.average) {
        (Some(spec), _) => format!(" to {}", print_rate(spec.rate, false)),
        (None, Some(average)) => format!(" to {} on average", print_rate(*average, false)),
        (None, None) if police.packets > 0 => format!(" to {} packets/s", police.packets),
        (None, None) => String::new(),
    };
    format!("police{rate}, else {}", police.exceed)
}

/// The device that a filter leads to.
fn led_to(dump: &FilterDump) -> Option<String> {
    let FilterEntry::Filter { actions, .. } = &dump.entry else { return None };
    actions.iter().find_map(|dump| dump.action.act.redirects_to()).map(str::to_owned)
}
