//! R23: classes that no packet comes to, although no filter with another finding is the cause.

use super::context::{RuleContext, classid};
use crate::finding::{Finding, Level, Rule, Witness};
use crate::lost::Thing;
use crate::reach::Arrival;
use crate::reading::{PolicyModel, Step};
use crate::sets::bdd::TooLarge;
use crate::uses::asked_mark;
use crate::walk::ways;
use crate::words::named;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_gateway::DeviceKind;
use tidegate_packet::Handle;
use tidegate_policy::dump::{ActionDump, ClassDump, FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::netfilter::NetfilterTarget;
use tidegate_policy::{Act, ClassLayout, FilterParams, QdiscParams};
use tidegate_syntax::units::parse_classid;

/// Classes that a sentence names at most.
const MOST_CLASSES: usize = 12;

/// One note for each qdisc with such classes.
pub(super) fn check(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let reading = context.reading;
    let mut idle: BTreeMap<(&str, Handle), Vec<&ClassDump>> = BTreeMap::new();
    // Asked once for each qdisc and device: there may be thousands of classes and filters.
    let mut reached: BTreeMap<(&str, Handle), bool> = BTreeMap::new();
    let mut unreached = BTreeSet::new();
    let named = Named::of(context);
    let is_rule_lost = reading.is_rule_lost();
    for class in reading.classes.iter().filter(|class| reading.is_leaf(class)) {
        let (dev, qdisc) = (class.dev.as_str(), class.classid.qdisc());
        let sorted = matches!(class.kind.classes(), ClassLayout::Made | ClassLayout::Bands);
        let mut is_reached =
            || *reached.entry((dev, qdisc)).or_insert_with(|| is_reached(context, dev, qdisc));
        if !sorted || context.leaves_out(dev) || !is_reached() {
            continue;
        }
        // A filter that was refused (a program of eBPF, say) may have led there, and a class that was refused
        // may be above it.
        if reading.lost.has(&Thing::Filter(dev.to_owned())) || reading.lost.tree(dev) || is_rule_lost {
            continue;
        }
        if context.reached.class(reading, dev, class.classid) == Arrival::Unreachable {
            unreached.insert((dev.to_owned(), class.classid));
            // What a filter names has the filter's finding.
            if !named.has(reading, class) {
                idle.entry((dev, qdisc)).or_default().push(class);
            }
        }
    }
    // Listings are ordered by a hash of the number.
    idle.values_mut().for_each(|classes| classes.sort_by_key(|class| class.classid));
    context.idle.append(&mut unreached);
    Ok(idle
        .into_iter()
        .filter_map(|((dev, qdisc), classes)| finding(reading, dev, qdisc, &classes))
        .collect())
}

/// Does any packet come to a qdisc? Where none does, its classes are not to blame.
fn is_reached(context: &RuleContext<'_>, dev: &str, qdisc: Handle) -> bool {
    let seen = &context.reached.walked.seen;
    let own = |place: &(String, Handle)| place.0 == dev && place.1.qdisc() == qdisc;
    seen.classes.keys().any(|(place, _)| own(place)) || seen.direct.keys().any(|(place, _)| own(place))
}

/// Whether anything may lead to a class, as far as names show.
pub(super) fn is_mentioned(reading: &PolicyModel, class: &ClassDump) -> bool {
    let here = |dump: &&FilterDump| dump.dev == class.dev;
    let filters = reading.filters.iter().filter(here).any(|dump| match &dump.entry {
        FilterEntry::Heading => dump.kind == "fw" && !has_entries(reading, dump),
        FilterEntry::Filter { params: FilterParams::Flow(_), .. } => true,
        FilterEntry::Filter { .. } => classid(dump) == Some(class.classid),
        FilterEntry::U32Table { .. } => false,
    });
    let qdisc = reading.qdiscs.iter().find(|one| one.dev == class.dev && one.handle == class.classid.qdisc());
    filters || by_rule(reading, class.classid) || qdisc.is_some_and(|qdisc| is_default(qdisc, class.classid))
}

/// What names classes, whether packets come by it or not: that has its own finding.
struct Named<'r> {
    /// By rules of netfilter.
    by_rule: BTreeSet<Handle>,
    /// By filters, with the device.
    by_filter: BTreeSet<(&'r str, Handle)>,
    /// Devices with a filter that may name any class.
    any: BTreeSet<&'r str>,
}

impl<'r> Named<'r> {
    fn of(context: &RuleContext<'r>) -> Named<'r> {
        let reading = context.reading;
        let mut named = Named {
            by_rule: rules_classes(reading).collect(),
            by_filter: BTreeSet::new(),
            any: BTreeSet::new(),
        };
        for (at, dump) in reading.filters.iter().enumerate() {
            let contradicts = || {
                let seen = context.reached.walked.seen.filters.get(&at);
                asked_mark(&dump.entry).is_none() && seen.is_some_and(|seen| seen.eligible.is_empty())
            };
            match &dump.entry {
                // Without entries the mark is the class's name.
                FilterEntry::Heading if dump.kind == "fw" && !has_entries(reading, dump) => {
                    named.any.insert(&dump.dev);
                }
                FilterEntry::Filter { params: FilterParams::Flow(_), .. } => {
                    named.any.insert(&dump.dev);
                }
                FilterEntry::Filter { .. } => {
                    let class = classid(dump).filter(|_| !contradicts());
                    named.by_filter.extend(class.map(|class| (dump.dev.as_str(), class)));
                }
                FilterEntry::Heading | FilterEntry::U32Table { .. } => {}
            }
        }
        named
    }

    fn has(&self, reading: &PolicyModel, class: &ClassDump) -> bool {
        let dev = class.dev.as_str();
        let qdisc = reading.qdiscs.iter().find(|one| one.dev == dev && one.handle == class.classid.qdisc());
        qdisc.is_some_and(|qdisc| is_default(qdisc, class.classid))
            || self.by_rule.contains(&class.classid)
            || self.any.contains(dev)
            || self.by_filter.contains(&(dev, class.classid))
    }
}

/// Whether a class is a qdisc's default for packets without a match. Any program may choose among priorities.
fn is_default(qdisc: &QdiscDump, class: Handle) -> bool {
    let band = |map: &[u8]| map.iter().any(|band| u16::from(*band) + 1 == class.minor());
    match &qdisc.params {
        QdiscParams::Htb(htb) => qdisc.handle.class(htb.default as u16) == class,
        QdiscParams::Hfsc(hfsc) => qdisc.handle.class(hfsc.default) == class,
        QdiscParams::Prio(prio) => band(&prio.priomap),
        QdiscParams::Ets(ets) => band(&ets.priomap) || ets.priomap.is_empty(),
        _ => false,
    }
}

/// Does a rule of netfilter give packets a class as their priority?
fn by_rule(reading: &PolicyModel, class: Handle) -> bool {
    rules_classes(reading).any(|named| named == class)
}

/// The classes that rules of netfilter give packets as their priority.
fn rules_classes(reading: &PolicyModel) -> impl Iterator<Item = Handle> {
    ways::rules(reading).flat_map(|rule| rule.targets()).filter_map(|target| match target {
        NetfilterTarget::Classify(named) => Some(*named),
        _ => None,
    })
}

fn has_entries(reading: &PolicyModel, heading: &FilterDump) -> bool {
    let same = |other: &FilterDump| {
        (&other.dev, other.parent, other.pref) == (&heading.dev, heading.parent, heading.pref)
    };
    reading.filters.iter().any(|other| same(other) && matches!(other.entry, FilterEntry::Filter { .. }))
}

/// Do packets come to a device's classes with the priority that a program gave them? On an ifb those that
/// arrived elsewhere do not, nor do those to which an action gave another.
fn keeps_priorities(reading: &PolicyModel, dev: &str) -> bool {
    let writes = |dump: &ActionDump| match &dump.action.act {
        Act::Skbedit(edit) => edit.priority.is_some() || edit.inherit_dsfield,
        _ => false,
    };
    let any = reading.filters.iter().filter(|dump| dump.dev == dev).any(|dump| match &dump.entry {
        FilterEntry::Filter { actions, .. } => actions.iter().any(writes),
        _ => false,
    });
    let gateway = &reading.gateway;
    let is_ifb = gateway.device(dev).is_some_and(|id| gateway.spec(id).kind == DeviceKind::Ifb);
    !any && !is_ifb
}

fn finding(reading: &PolicyModel, dev: &str, qdisc: Handle, classes: &[&ClassDump]) -> Option<Finding> {
    let first = classes.first()?;
    let step = |class: &ClassDump| -> Option<&Step> {
        let maker = reading.maker_of_class(&class.dev, class.classid);
        reading.step_of(maker.or_else(|| {
            let owner = reading.qdiscs.iter().find(|one| one.dev == dev && one.handle == qdisc)?;
            reading.maker_of_qdisc(owner)
        })?)
    };
    let owner = reading.qdiscs.iter().find(|one| one.dev == dev && one.handle == qdisc);
    // A number that the kernel chose means nothing to the author of the policy.
    let unnamed = owner.filter(|owner| reading.is_unnamed(owner));
    let name = |class: &ClassDump| match unnamed {
        Some(_) => format!(":{:x}", class.classid.minor()),
        None => class.classid.to_string(),
    };
    let names: Vec<String> = classes.iter().take(MOST_CLASSES).map(|class| name(class)).collect();
    let of = unnamed.map_or_else(String::new, |owner| match owner.parent {
        Handle::ROOT => format!(" of the {} at the root", owner.kind.name()),
        parent => format!(" of the {} on {parent}", owner.kind.name()),
    });
    let more = classes.len().saturating_sub(MOST_CLASSES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let own = step(first)?;
    let mut lines: Vec<String> =
        classes.iter().skip(1).filter_map(|class| reading.line(step(class)?)).collect();
    lines.retain(|line| Some(line) != reading.line(own).as_ref());
    lines.dedup();
    let elsewhere = if lines.is_empty() { String::new() } else { format!(" ({})", named(&lines)) };
    let by_hand = own.after("classid").is_some_and(|word| parse_classid(&word.text) == Some(first.classid));
    let keyword = if by_hand { "classid" } else { first.kind.name() };
    let which = if classes.len() == 1 { "it" } else { "any of them" };
    Some(Finding {
        rule: Rule::Idle,
        level: Level::Note,
        place: super::making::at_word(own, keyword),
        what: format!("no packet comes to {}{more}{of} on {dev}", names.join(", ")),
        because: format!(
            "no filter, rule, map or default of these files leads to {}{elsewhere}; {} still may",
            if classes.len() == 1 { "it" } else { "them" },
            match keeps_priorities(reading, dev) {
                true => "a program that sets the priority of its sockets, or eBPF,",
                false => "eBPF",
            }
        ),
        witness: Some(Witness::Number(format!("of all packets that may come, none takes {which}"))),
        fix: None,
    })
}
