//! R11 and R14: what no filter takes. It may go past all classes, be dropped, or all of a protocol may wait
//! in the default class.

use super::context::{RuleContext, witness};
use super::devices::lacks_direct_queue;
use super::making::{at_word, edit};
use crate::finding::{self, Finding, Fix, Level, Witness};
use crate::lost::Thing;
use crate::packet::Packet;
use crate::probe::ProbeResult;
use crate::reach::Candidate;
use crate::reading::{PolicyModel, Step};
use crate::sets::bdd::TooLarge;
use crate::sets::field::Field;
use crate::walk::Parts;
use crate::walk::outcome::redirects;
use crate::walk::tree::{By, Place};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_gateway::{DropReason, EgressPath};
use tidegate_packet::Handle;
use tidegate_packet::header::ethertype;
use tidegate_policy::dump::{FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::netfilter::{Condition, Family, NetfilterRule, NetfilterTarget};
use tidegate_policy::{FilterOp, FilterParams, FlowerField, Kind, QdiscParams};

/// Packets without a class, and protocols without a filter.
pub(super) fn check(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let mut found = Vec::new();
    // What a filter leads to no class is a matter of that filter.
    let by_default = |ends: &BTreeMap<(Place, By), Parts>| {
        let ends = ends.iter().filter(|((_, by), _)| *by == By::Default);
        ends.map(|((place, _), parts)| (place.clone(), parts.clone())).collect::<Vec<_>>()
    };
    let seen = &context.reached.walked.seen;
    let (direct, dropped) = (by_default(&seen.direct), by_default(&seen.unclassified));
    for (place, parts) in
        direct.into_iter().filter(|(place, _)| !context.leaves_out(&place.0)).collect::<Vec<_>>()
    {
        found.extend(past_all(context, &place, &parts)?);
    }
    for (place, parts) in
        dropped.into_iter().filter(|(place, _)| !context.leaves_out(&place.0)).collect::<Vec<_>>()
    {
        found.extend(without_class(context, &place, &parts)?);
    }
    let roots =
        context.reading.qdiscs.iter().filter(|qdisc| qdisc.parent == Handle::ROOT && !qdisc.handle.is_none());
    for root in roots.filter(|root| !context.leaves_out(&root.dev)).collect::<Vec<_>>() {
        found.extend(in_default(context, root)?);
    }
    Ok(found)
}

/// Those of some packets that are IP, and those that are not.
fn by_kind(context: &mut RuleContext<'_>, parts: &Parts) -> Result<(Parts, Parts), TooLarge> {
    let (mut ip, mut other) = (Parts::default(), Parts::default());
    let space = &mut context.reached.walked.space;
    for (way, set) in &parts.0 {
        let strange = space.store.and(*set, space.other)?;
        other.add(space, *way, strange)?;
        let plain = space.store.minus(*set, space.other)?;
        ip.add(space, *way, plain)?;
    }
    Ok((ip, other))
}

fn qdisc_of<'a>(context: &RuleContext<'a>, place: &Place) -> Option<(&'a QdiscDump, &'a Step)> {
    let reading = context.reading;
    let qdisc = reading.qdiscs.iter().find(|qdisc| qdisc.dev == place.0 && qdisc.handle == place.1)?;
    Some((qdisc, reading.step_of(reading.maker_of_qdisc(qdisc)?)?))
}

/// Those of some parts that are ARP.
fn arp_of(context: &mut RuleContext<'_>, parts: &Parts) -> Result<Parts, TooLarge> {
    let mut arp = Parts::default();
    let space = &mut context.reached.walked.space;
    let is_arp = space.is(Field::Ethertype, u128::from(ethertype::ARP))?;
    for (way, set) in &parts.0 {
        let both = space.store.and(*set, is_arp)?;
        arp.add(space, *way, both)?;
    }
    Ok(arp)
}

/// HTB's direct queue: packets that none of its classes limits.
fn past_all(
    context: &mut RuleContext<'_>,
    place: &Place,
    parts: &Parts,
) -> Result<Option<Finding>, TooLarge> {
    let Some((qdisc, step)) = qdisc_of(context, place) else { return Ok(None) };
    let QdiscParams::Htb(htb) = &qdisc.params else { return Ok(None) };
    let has_classes =
        context.reading.classes.iter().any(|class| class.dev == place.0 && class.classid.qdisc() == place.1);
    let (ip, other) = by_kind(context, parts)?;
    let arp = arp_of(context, &other)?;
    let shown = [&ip, &arp, &other].into_iter().find(|parts| !parts.is_empty()).unwrap_or(&other);
    let named = place.1.class(htb.default as u16);
    let device = context.prober.device(&place.0);
    let inner = qdisc.parent != Handle::ROOT;
    let nested = inner && qdisc.parent.minor() != 0;
    // A class that was refused may be all that is missing; within a class, that holds the packets.
    let is_left = !has_classes && (nested || context.reading.lost.tree(&place.0));
    if is_left || refused_already(context, place, named) {
        return Ok(None);
    }
    // A netem delays the packet: the engine does not show at once what happens to it further down.
    let above = |other: &QdiscDump| {
        other.dev == place.0 && other.handle == qdisc.parent.qdisc() && other.kind == Kind::Netem
    };
    if nested && context.reading.qdiscs.iter().any(above) {
        return Ok(None);
    }
    let past = |way: &ProbeResult| {
        device.and_then(|id| way.stop_at(id)).is_some_and(|stop| {
            let own = stop.classes.iter().any(|class| class.qdisc() == place.1);
            !own && (!nested || stop.classes.contains(&qdisc.parent))
        })
    };
    // Else a packet that a policer or a full queue drops shows nothing.
    let is_void = lacks_direct_queue(htb);
    let refused = |way: &ProbeResult| {
        way.dropped.is_some_and(|loss| loss.at == place.1 && loss.why == DropReason::Full)
    };
    let is_so = |way: &ProbeResult| if is_void { refused(way) } else { past(way) };
    let Some((candidate, _)) = context.agreed(shown, "past all classes", is_so)? else {
        return Ok(None);
    };
    let (level, what) = match (ip.is_empty(), htb.default) {
        _ if !has_classes => (Level::Warning, format!("htb {} has no class: it shapes nothing", place.1)),
        (true, _) if arp.is_empty() => {
            (Level::Note, format!("what is neither IP nor ARP goes past all classes of {}", place.1))
        }
        (true, _) => {
            (Level::Note, format!("ARP and what else is not IP goes past all classes of {}", place.1))
        }
        (false, _) => past_default(context, place, htb.default),
    };
    Ok(Some(Finding {
        rule: finding::Rule::Default,
        level: if is_void { Level::Error } else { level },
        place: if has_classes { at_word(step, "default") } else { step.place.clone() },
        what,
        because: match (inner, has_classes) {
            _ if is_void => {
                format!(
                    "the direct queue of {} holds none (direct_qlen 0): they are dropped, every one",
                    place.1
                )
            }
            (false, false) => {
                "packets leave in their order at the speed of the device, and fill the queue behind it".into()
            }
            (true, false) => format!("packets leave in their order, as fast as {} lets them", qdisc.parent),
            (true, true) => {
                format!(
                    "such packets leave before all others of {}, as fast as {} lets them",
                    place.1, qdisc.parent
                )
            }
            (false, true) => PAST_ALL.into(),
        },
        witness: witness(
            &candidate,
            &if inner { format!("no class of {}", place.1) } else { "no class at all".into() },
        ),
        fix: if ip.is_empty() || !has_classes { None } else { default_fix(context, place, step) },
    }))
}

/// What it does to packets to go past all classes of a root.
const PAST_ALL: &str =
    "such packets leave at the speed of the device, before all others, and fill the queue behind it";

/// How wrong it is that IP goes past all classes of HTB, in words.
fn past_default(context: &RuleContext<'_>, place: &Place, default: u32) -> (Level, String) {
    match default {
        0 => (
            Level::Warning,
            format!("{} has no default class: what no filter takes goes past all classes", place.1),
        ),
        _ => (Level::Error, missing_default(context, &place.0, place.1.class(default as u16))),
    }
}

/// Packets of some protocols and ports, which filters for customers' addresses leave to the default.
const PLAIN: [&str; 3] = [
    "tcp 192.168.1.10:40000 > 198.51.100.7:443",
    "udp 192.168.1.10:40000 > 198.51.100.7:443",
    "tcp [2001:db8:1::a]:40000 > [2001:db8:2::7]:443",
];

/// R11 of a device of which it is not decided where packets go: one packet that the engine sends past all
/// classes shows it, too.
pub(super) fn by_engine(context: &mut RuleContext<'_>, device: &str) -> Option<Finding> {
    let reading = context.reading;
    let qdisc = reading.qdiscs.iter().find(|qdisc| {
        qdisc.dev == device && qdisc.parent == Handle::ROOT && matches!(qdisc.params, QdiscParams::Htb(_))
    })?;
    let QdiscParams::Htb(htb) = &qdisc.params else { return None };
    let step = reading.step_of(reading.maker_of_qdisc(qdisc)?)?;
    let place: Place = (device.to_owned(), qdisc.handle);
    let has_classes =
        reading.classes.iter().any(|class| class.dev == device && class.classid.qdisc() == qdisc.handle);
    if !has_classes || refused_already(context, &place, qdisc.handle.class(htb.default as u16)) {
        return None;
    }
    let id = context.prober.device(device)?;
    let packet = PLAIN.into_iter().find_map(|words| {
        let packet = Packet { to: Some(device.to_owned()), ..Packet::parse(words).ok()? };
        let way = context.send_by(&packet, device, EgressPath::Forwarded(None))?;
        let past = way.stop_at(id).is_some_and(|stop| stop.classes.is_empty());
        (past && way.dropped.is_none()).then_some(packet)
    })?;
    let (level, what) = past_default(context, &place, htb.default);
    Some(Finding {
        rule: finding::Rule::Default,
        level,
        place: at_word(step, "default"),
        what,
        because: PAST_ALL.into(),
        witness: Some(Witness::Packet { packet: packet.to_string(), went: "no class at all".into() }),
        fix: default_fix(context, &place, step),
    })
}

/// Why no packet waits in a class that a default names.
fn missing_default(context: &RuleContext<'_>, dev: &str, default: Handle) -> String {
    match context.reading.class(dev, default) {
        Some(_) => format!("the default class {default} has classes below it"),
        None => format!("the default class {default} is not there"),
    }
}

/// Whether a default class was refused, or a filter that may have led on. Then that is reported.
fn refused_already(context: &RuleContext<'_>, place: &Place, default: Handle) -> bool {
    let lost = &context.reading.lost;
    default.minor() != 0 && lost.class(&place.0, default) || lost.has(&Thing::Filter(place.0.clone()))
}

/// The default becomes the leaf that is served last.
fn default_fix(context: &RuleContext<'_>, place: &Place, step: &Step) -> Option<Fix> {
    let classes = context.reached.walked.classes.get(&place.0)?;
    let reading = context.reading;
    // Loss and delay on purpose are meant for the packets sent there.
    let impairs = |class: Handle| {
        let child = reading.class(&place.0, class).and_then(|class| reading.child(class));
        child.is_some_and(|child| child.kind == Kind::Netem)
    };
    let leaves =
        classes.iter().filter(|(class, leaf)| **leaf && class.qdisc() == place.1).map(|(class, _)| class);
    let leaves: Vec<_> = leaves.filter(|class| !impairs(**class)).collect();
    let alone = leaves.len() == 1;
    let last = leaves
        .into_iter()
        .max_by_key(|class| super::intent::rank(context.reading, &place.0, **class).unwrap_or(0))?;
    let minor = format!("{:x}", last.minor());
    // What one host was given is not for all others to share; nor, where no default was wanted, what the only
    // class limits.
    let limits_a_part = || alone && step.after("default").is_none() && is_led_to(reading, &place.0, *last);
    if is_of_hosts(reading, &place.0, *last) || limits_a_part() {
        let what = "make a class for what no filter takes, and name it as the default".to_owned();
        return Some(Fix { what, edits: Vec::new() });
    }
    if step.after("default").is_some() {
        return edit(step, "default", &minor, "name a class that is there");
    }
    super::making::addition(step, &format!("default {minor}"), "name a default class")
}

/// Does a filter or rule lead to a class?
fn is_led_to(reading: &PolicyModel, dev: &str, class: Handle) -> bool {
    let leads = |dump: &FilterDump| match &dump.entry {
        FilterEntry::Filter { params, .. } => params.classid() == Some(class),
        _ => false,
    };
    let rules = || reading.class(dev, class).is_some_and(|dump| !reading.rules_to(dump).is_empty());
    reading.filters.iter().filter(|dump| dump.dev == dev).any(leads) || rules()
}

/// Does a filter or rule lead to a class by the address of a host or network?
fn is_of_hosts(reading: &PolicyModel, dev: &str, class: Handle) -> bool {
    let by_address = |params: &FilterParams, protocol: u16| match params {
        FilterParams::U32(u32) => u32.keys.iter().any(|key| {
            let is_address = if protocol == ethertype::IPV6 { 8..=36 } else { 12..=16 };
            key.offset_mask == 0 && is_address.contains(&key.offset) && key.mask != 0
        }),
        FilterParams::Flower(flower) => {
            flower.keys.iter().any(|key| matches!(key.field, FlowerField::SrcIp | FlowerField::DstIp))
        }
        _ => false,
    };
    let filters = reading.filters.iter().filter(|dump| dump.dev == dev).any(|dump| match &dump.entry {
        FilterEntry::Filter { params, .. } => {
            params.classid() == Some(class) && by_address(params, dump.protocol)
        }
        _ => false,
    });
    let dump = reading.class(dev, class);
    let matches = |rule: &&NetfilterRule| {
        rule.matches.iter().any(|one| matches!(one.what, Condition::Source(..) | Condition::Destination(..)))
    };
    filters || dump.is_some_and(|dump| reading.rules_to(dump).iter().any(matches))
}

/// The class that a qdisc's default names, of those that have one.
fn default_of(qdisc: &QdiscDump) -> Handle {
    match &qdisc.params {
        QdiscParams::Hfsc(hfsc) => qdisc.handle.class(hfsc.default),
        QdiscParams::Htb(htb) => qdisc.handle.class(htb.default as u16),
        _ => qdisc.handle,
    }
}

/// HFSC, DRR and QFQ drop what nothing classifies.
fn without_class(
    context: &mut RuleContext<'_>,
    place: &Place,
    parts: &Parts,
) -> Result<Option<Finding>, TooLarge> {
    let Some((qdisc, step)) = qdisc_of(context, place) else { return Ok(None) };
    let (ip, other) = by_kind(context, parts)?;
    let arp = arp_of(context, &other)?;
    // Without ARP no host on an Ethernet is found: that is worse than a protocol that is not carried.
    let (shown, level, whose) = match (arp.is_empty(), ip.is_empty()) {
        (false, _) => (&arp, Level::Error, "ARP and what else"),
        (true, false) => (&ip, Level::Warning, "what"),
        (true, true) => (&other, Level::Note, "what is neither IP nor ARP and"),
    };
    if refused_already(context, place, default_of(qdisc)) {
        return Ok(None);
    }
    let dropped = |way: &ProbeResult| way.dropped.is_some_and(|loss| loss.why == DropReason::Unclassified);
    let Some((candidate, _)) = context.agreed(shown, "dropped", dropped)? else { return Ok(None) };
    let kind = qdisc.kind.name();
    let default = default_of(qdisc);
    let why = match default.minor() {
        0 => format!("{kind} has no default class here"),
        _ => missing_default(context, &place.0, default),
    };
    Ok(Some(Finding {
        rule: finding::Rule::Default,
        level,
        place: at_word(step, kind),
        what: format!("{whose} no filter of {} takes is dropped: {why}", place.1),
        because: match level {
            Level::Error => {
                "without ARP no neighbour on an Ethernet is found, and nothing can be sent there".into()
            }
            _ => "such packets never leave".into(),
        },
        witness: witness(&candidate, "no class: it is dropped"),
        fix: Some(Fix {
            what: format!("end the filters of {} with one for `protocol all`", place.1),
            edits: Vec::new(),
        }),
    }))
}

/// IPv6 that no filter classifies where they do so for IPv4.
fn in_default(context: &mut RuleContext<'_>, root: &QdiscDump) -> Result<Option<Finding>, TooLarge> {
    let (mut told_v4, mut told_v6, mut rest) = (BTreeSet::new(), false, Parts::default());
    let classes: Vec<((Place, By), Parts)> =
        context.reached.walked.seen.classes.iter().map(|(key, parts)| (key.clone(), parts.clone())).collect();
    let mut defaults = BTreeSet::new();
    for (((device, class), by), parts) in classes {
        if device != root.dev || class.qdisc() != root.handle {
            continue;
        }
        let space = &mut context.reached.walked.space;
        for (way, set) in parts.0 {
            let v4 = space.store.and(set, space.v4)?;
            let v6 = space.store.and(set, space.v6)?;
            if by == By::Default {
                rest.add(space, way, v6)?;
                defaults.insert(class);
            } else {
                told_v4.extend((!v4.is_empty()).then_some(class));
                told_v6 |= !v6.is_empty();
            }
        }
    }
    // prio's map has several, by the DS field.
    if context.reading.lost.has(&Thing::Filter(root.dev.clone())) {
        return Ok(None);
    }
    let (false, 1, Some(default)) = (told_v6, defaults.len(), defaults.first().copied()) else {
        return Ok(None);
    };
    let for_v4 = ForV4::of(context, root);
    // What is led to the default class, too, needs no filter; what is led to another device does.
    if told_v4.iter().all(|class| *class == default) && (told_v4.is_empty() || !for_v4.away) {
        return Ok(None);
    }
    let Some(step) = context.reading.maker_of_qdisc(root).and_then(|op| context.reading.step_of(op)) else {
        return Ok(None);
    };
    let Some(candidate) = context.reached.pick(context.reading, &rest)? else { return Ok(None) };
    let went = confirmed(context, &candidate, &root.dev, default);
    let (what, so) = match for_v4.away {
        true => ("led away from", "IPv6 escapes what holds IPv4"),
        false => ("classified on", "calls and bulk over IPv6 are treated alike"),
    };
    Ok(went.map(|went| Finding {
        rule: finding::Rule::OtherProtocols,
        level: Level::Note,
        place: at_word(step, "default"),
        what: format!("IPv6 is not {what} {}: all of it waits in {default}", root.dev),
        because: format!("{}, so {so}", for_v4.because()),
        witness: witness(&candidate, &went),
        fix: Some(Fix { what: for_v4.remedy(), edits: Vec::new() }),
    }))
}

/// What classifies packets on a device, for IPv4 alone.
struct ForV4 {
    /// Filters, none of which matches IPv6.
    filters: bool,
    /// Rules of iptables, and none for IPv6.
    rules: bool,
    /// There are no rules, and each filter redirects to another device.
    away: bool,
}

impl ForV4 {
    fn of(context: &RuleContext<'_>, root: &QdiscDump) -> ForV4 {
        let reading = context.reading;
        let is_there = |dump: &&FilterDump| {
            dump.dev == root.dev
                && dump.parent.qdisc() == root.handle
                && matches!(dump.entry, FilterEntry::Filter { .. })
        };
        let redirects = |dump: &FilterDump| redirects(dump).next().is_some();
        let filters = || reading.filters.iter().filter(|dump| !reading.arrives(dump)).filter(is_there);
        let all_redirect = filters().all(redirects);
        let mut filters = filters().peekable();
        let is_filtered = filters.peek().is_some();
        let for_v6 = filters.any(|dump| matches!(dump.protocol, FilterOp::ALL | ethertype::IPV6));
        let sorts = |target: &NetfilterTarget| {
            matches!(
                target,
                NetfilterTarget::Mark { .. } | NetfilterTarget::Connmark(_) | NetfilterTarget::Classify(_)
            )
        };
        let has_rules = |wanted: fn(Family) -> bool| {
            let mut tables = reading.gateway.all_tables().iter().filter(|table| wanted(table.family()));
            tables.any(|table| {
                table.chains().iter().flat_map(|chain| &chain.rules).any(|one| one.rule.targets().any(sorts))
            })
        };
        // What is redirected as it arrives has been in no chain.
        let rules = !crate::uses::unmarked(reading).contains(&root.dev);
        let rules = rules
            && has_rules(|family| family == Family::Ipv4)
            && !has_rules(|family| family != Family::Ipv4);
        let away = is_filtered && all_redirect && !rules;
        ForV4 { filters: is_filtered && !for_v6, rules, away }
    }

    fn because(&self) -> &'static str {
        match (self.filters, self.rules) {
            (true, true) => "filters and rules match IPv4 only",
            (true, false) => "the filters match IPv4 only",
            (false, true) => "the rules match IPv4 only",
            (false, false) => "no filter and no rule leads any of it elsewhere",
        }
    }

    fn remedy(&self) -> String {
        let filters = "write the filters for `protocol ipv6` too, at priorities of their own";
        match (self.filters, self.rules) {
            (true, true) => format!("{filters}, and the rules for IPv6 (ip6tables, or nft's inet)"),
            (true, false) => filters.to_owned(),
            (false, true) => "write the rules for IPv6 too (ip6tables, or nft's inet)".to_owned(),
            (false, false) => "lead IPv6 to classes by its own filters or rules".to_owned(),
        }
    }
}

fn confirmed(
    context: &mut RuleContext<'_>,
    candidate: &Candidate,
    device: &str,
    class: Handle,
) -> Option<String> {
    let way = context.send(candidate);
    let id = context.prober.device(device)?;
    let there = way.stop_at(id)?.classes.contains(&class);
    // The queue of the default class may take no packet at all.
    context.confirmed(there || way.dropped.is_some(), candidate, "in the default class");
    there.then(|| class.to_string())
}
