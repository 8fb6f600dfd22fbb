//! R8 and R9: marks that are read and never set, set and never read, replaced, or lost with the first packet
//! of a connection.

use super::context::{RuleContext, witness};
use super::overwritten;
use crate::explain::ethertype_name;
use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::lost::Thing;
use crate::reach::Arrival;
use crate::reading::{PolicyModel, Step};
use crate::sets::bdd::{Set, TooLarge};
use crate::uses::asked_mark;
use crate::walk::outcome::rewrites_marks;
use crate::walk::ways::{Way, conditions, reads_connmarks, rules, translates};
use crate::walk::{Parts, RuleKey, RuleSeen};
use crate::words::named;
use std::collections::BTreeSet;
use tidegate_packet::Handle;
use tidegate_packet::header::{ethertype, proto, tcp_flags};
use tidegate_policy::dump::FilterEntry;
use tidegate_policy::netfilter::{Condition, ConnmarkTarget, Connstate, NetfilterRule, NetfilterTarget};
use tidegate_policy::{FilterOp, FilterParams};

/// The flow key that reads the mark, by its number.
const MARK_KEY: u32 = 7;
/// Marks that a sentence names at most.
const MOST_MARKS: usize = 8;

/// What is wrong with the marks that rules set and filters read.
pub(super) fn check(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    if rewrites_marks(context.reading) {
        return Ok(Vec::new());
    }
    let mut found = never_read(context)?;
    // A number written in two bases is one mistake: the rule whose packets show it is enough.
    let is_known = |other: &Finding| found.iter().any(|known| other.fix.is_some() && known.fix == other.fix);
    let unset: Vec<Finding> = unset(context)?.into_iter().filter(|other| !is_known(other)).collect();
    found.extend(unset);
    found.extend(overwritten::check(context)?);
    found.extend(overwritten::classes(context)?);
    found.extend(connections(context)?);
    Ok(found)
}

fn numbers(marks: &BTreeSet<u32>) -> String {
    let words: Vec<String> = marks.iter().take(MOST_MARKS).map(ToString::to_string).collect();
    let more = if marks.len() > MOST_MARKS { " and others" } else { "" };
    format!("{}{more}", words.join(", "))
}

/// Marks that packets of a set carry.
fn marks_of(context: &mut RuleContext<'_>, parts: &Parts, within: Set) -> Result<BTreeSet<u32>, TooLarge> {
    let walked = &mut context.reached.walked;
    let mut marks = BTreeSet::new();
    for (way, set) in &parts.0 {
        for (_, passing) in walked.arrived.clone().into_iter().filter(|(known, _)| known == way) {
            let set = walked.space.store.and(*set, within)?;
            let states = &walked.states;
            marks.extend(walked.space.store.split(passing.states, set, &|n| states.get(n).mark)?.into_keys());
        }
    }
    Ok(marks)
}

/// Filters that ask for a mark which no packet of their list carries.
pub(super) fn unset(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let reading = context.reading;
    let mut found = Vec::new();
    // What is said of marks is what rules made of them.
    if rewrites_marks(reading) {
        return Ok(found);
    }
    for (at, dump) in reading.filters.iter().enumerate() {
        let Some((handle, mask)) = asked_mark(&dump.entry) else { continue };
        let keyword = if dump.kind == "fw" { "handle" } else { "mark" };
        let place = (dump.dev.clone(), dump.parent);
        let coming = context.reached.list(&place);
        let seen = context.reached.walked.seen.filters.get(&at).cloned().unwrap_or_default();
        if coming.is_empty() || !seen.eligible.is_empty() || context.leaves_out(&dump.dev) {
            continue;
        }
        let Some(step) = context.step_of_filter(at) else { continue };
        if handle & !mask != 0 {
            found.push(beyond_mask(step, keyword, (handle, mask)));
            continue;
        }
        let protocol = context.reached.walked.space.protocol(dump.protocol)?;
        let here = marks_of(context, &coming, protocol)?;
        let anywhere = marks_of(context, &coming, Set::ALL)?;
        // A u32 filter may ask for more than the mark.
        if dump.kind != "fw" && here.iter().any(|mark| mark & mask == handle) {
            continue;
        }
        let nothing = anywhere.iter().all(|mark| *mark == 0);
        let other_family = anywhere.contains(&handle) && dump.protocol == ethertype::IPV6;
        // What arrives meets the filters there before any rule.
        let early =
            coming.0.iter().all(|(way, _)| matches!(context.reached.walked.ways[*way], Way::Arrives(_)));
        let is_set = sets(context, handle).is_some();
        if reading.lost.has(&Thing::Mark(handle)) || reading.is_rule_lost() {
            continue;
        }
        if is_set && !other_family && !early {
            // Some rule does. Where that has no effect the rule has a finding, but where it passes this list,
            // it is reported here.
            found.extend(match sorted_before(context, at, handle, step)? {
                None => set_on_others(context, at, handle, (step, &coming))?,
                sorted => sorted,
            });
            continue;
        }
        let unreached = set_elsewhere(context, handle);
        let twin = in_other_base(anywhere.iter().copied(), handle);
        let because = match (nothing, other_family) {
            _ if early && is_set && reading.arrives(dump) => {
                "what arrives meets this filter before any rule could mark it".to_owned()
            }
            _ if early && is_set => {
                format!(
                    "what comes to {} is led there as it arrives, before any rule could mark it",
                    dump.dev
                )
            }
            _ if unreached.is_some() => unreached.clone().unwrap_or_default(),
            _ if !is_ip(dump.protocol) => {
                "netfilter's rules, which could mark packets, see IP only, and the filter's protocol is another"
                    .to_owned()
            }
            (true, _) if rules(reading).any(|rule| rule.targets().any(may_mark)) => {
                "packets carry no mark here".to_owned()
            }
            (true, _) => "nothing in these files sets any mark; something else must".to_owned(),
            (_, true) if by_nft(reading) => "the rules that set it are in tables for IPv4".to_owned(),
            (_, true) => "the rules that set it are for IPv4: ip6tables has its own".to_owned(),
            _ if twin.is_some() => {
                let twin = twin.unwrap_or_default();
                format!("packets carry {twin} (0x{twin:x}) here; the filter's {handle} is 0x{handle:x}")
            }
            _ => format!("packets carry {} here", numbers(&here)),
        };
        found.push(Finding {
            rule: Rule::Marks,
            level: if nothing && !is_set && unreached.is_none() { Level::Note } else { Level::Warning },
            place: super::making::at_word(step, keyword),
            what: format!("no packet carries mark {handle}: the filter never matches"),
            because,
            witness: Some(Witness::Number(match here.is_empty() {
                true if early && reading.arrives(dump) => {
                    format!("what arrives at {} carries mark 0", dump.dev)
                }
                true if early => format!("what is redirected to {} carries mark 0", dump.dev),
                true if dump.protocol != FilterOp::ALL => {
                    format!("no packet of the filter's protocol comes to {}", dump.dev)
                }
                true => format!("no packet comes to {}", dump.dev),
                false => format!("marks{} on {}: {}", of_protocol(dump.protocol), dump.dev, numbers(&here)),
            })),
            fix: (!early && unreached.is_none() && is_ip(dump.protocol)).then(|| {
                match twin.filter(|_| !other_family) {
                    Some(twin) => same_number(twin, handle),
                    None => by_hand(reading, handle, nothing, other_family),
                }
            }),
        });
    }
    Ok(found)
}

/// Are the policy's rules written with nft, and none with iptables?
fn by_nft(reading: &PolicyModel) -> bool {
    let tables = || reading.gateway.all_tables().iter().filter(|table| table.is_touched());
    let made = |free: bool| tables().any(|table| table.is_free() == free);
    made(true) && !made(false)
}

/// May netfilter's rules for IP have seen a packet of this protocol?
fn is_ip(protocol: u16) -> bool {
    [FilterOp::ALL, ethertype::IPV4, ethertype::IPV6].contains(&protocol)
}

/// Whose marks were looked at.
fn of_protocol(protocol: u16) -> String {
    match protocol {
        FilterOp::ALL => String::new(),
        other => format!(" of {} packets", ethertype_name(other)),
    }
}

/// How packets get a mark that none has.
fn by_hand(reading: &PolicyModel, mark: u32, nothing: bool, other_family: bool) -> Fix {
    let rule = match (by_nft(reading), other_family) {
        (true, _) => format!("nft add rule … meta mark set {mark}"),
        (false, true) => format!("ip6tables -t mangle … -j MARK --set-mark {mark}"),
        (false, false) => format!("iptables -t mangle … -j MARK --set-mark {mark}"),
    };
    let what = if other_family {
        format!("set it for IPv6, too: {rule}")
    } else if nothing {
        format!("set it with a rule: {rule}")
    } else {
        format!("set it with a rule ({rule}), or match a mark that packets carry")
    };
    Fix { what, edits: Vec::new() }
}

/// A mark that rules give to none of the packets that come to a filter: they are for other devices.
fn set_on_others(
    context: &mut RuleContext<'_>,
    at: usize,
    mark: u32,
    (step, coming): (&Step, &Parts),
) -> Result<Option<Finding>, TooLarge> {
    let dev = &context.reading.filters[at].dev;
    let known: Vec<(RuleKey, RuleSeen)> =
        context.reached.walked.rules.iter().map(|(key, seen)| (key.clone(), seen.clone())).collect();
    let early = context.reached.walked.ways.iter().position(|way| *way == Way::ComesIn);
    let mut lines = Vec::new();
    for (key, seen) in &known {
        let Some(rule) = context.rule(key) else { continue };
        let gives = |target: &NetfilterTarget| match target {
            NetfilterTarget::Mark { value, .. } => *value == mark,
            // Any mark may be a connection's, but for what the rule asks of it.
            NetfilterTarget::Connmark(ConnmarkTarget::Restore { .. }) => {
                connmarks(rule).all(|(value, mask)| mark & mask == value)
            }
            _ => false,
        };
        if !rule.targets().any(gives) {
            continue;
        }
        for (way, set) in &coming.0 {
            let before = early.map_or(Set::NONE, |early| seen.matched.by(early));
            let store = &mut context.reached.walked.space.store;
            let both = store.or(seen.matched.by(*way), before)?;
            if !store.and(both, *set)?.is_empty() {
                return Ok(None);
            }
        }
        lines.extend(context.step_of_rule(key).map(|step| context.line(step)));
    }
    lines.dedup();
    // Rules of INPUT see what is for the machine itself.
    let walked = &context.reached.walked;
    let received = |seen: &RuleSeen| seen.matched.0.iter().all(|(way, _)| walked.ways[*way] == Way::Received);
    let setters = known.iter().filter(|(key, _)| {
        let mut targets = context.rule(key).into_iter().flat_map(|rule| rule.targets());
        targets.any(|target| matches!(target, NetfilterTarget::Mark { value, .. } if *value == mark))
    });
    let mut setters = setters.filter(|(_, seen)| !seen.matched.is_empty()).peekable();
    let inside = setters.peek().is_some() && setters.all(|(_, seen)| received(seen));
    let own = if inside {
        ": what they mark is for this machine itself (INPUT), and leaves by no device"
    } else {
        ""
    };
    let own = if lines.len() == 1 { own.replace("they mark", "it marks") } else { own.to_owned() };
    Ok((!lines.is_empty()).then(|| Finding {
        rule: Rule::Marks,
        level: Level::Warning,
        place: super::making::at_word(step, "handle"),
        what: format!("no packet that comes to this filter of {dev} carries mark {mark}: it never matches"),
        because: format!(
            "{} set{} it, and take{} no packet that comes to this filter{own}",
            named(&lines),
            if lines.len() == 1 { "s" } else { "" },
            if lines.len() == 1 { "s" } else { "" }
        ),
        witness: Some(Witness::Number(format!(
            "of all packets that come to the filter, none has mark {mark}"
        ))),
        fix: None,
    }))
}

/// A mark with bits that the filter's own mask takes away.
fn beyond_mask(step: &Step, keyword: &str, (mark, mask): (u32, u32)) -> Finding {
    Finding {
        rule: Rule::Marks,
        level: Level::Warning,
        place: super::making::at_word(step, keyword),
        what: format!("no mark is {mark:#x} under the mask {mask:#x}: the filter never matches"),
        because: "compared is what the mask leaves of a packet's mark with the whole number".into(),
        witness: Some(Witness::Number(format!("{mark:#x} under {mask:#x} is {:#x}", mark & mask))),
        fix: None,
    }
}

/// The rule that sets a mark where none of the packets comes, in words.
fn set_elsewhere(context: &RuleContext<'_>, mark: u32) -> Option<String> {
    let tables = context.reading.gateway.all_tables().iter();
    let keys = tables.flat_map(|table| {
        table.chains().iter().flat_map(move |chain| {
            (0..chain.rules.len()).map(move |at| RuleKey {
                family: table.family(),
                table: table.name().to_owned(),
                chain: chain.name.clone(),
                at,
            })
        })
    });
    let sets_it = |key: &RuleKey| {
        let targets = context.rule(key).into_iter().flat_map(|rule| rule.targets());
        targets
            .into_iter()
            .any(|target| matches!(target, NetfilterTarget::Mark { value, .. } if *value == mark))
    };
    let mut unseen = keys.filter(|key| !context.reached.walked.rules.contains_key(key));
    let key = unseen.find(sets_it)?;
    let line = context.step_of_rule(&key).map_or(String::new(), |step| format!(" ({})", context.line(step)));
    Some(format!("the rule that sets it{line} is in chain {}, which none of its packets reaches", key.chain))
}

/// May a target give packets a mark?
fn may_mark(target: &NetfilterTarget) -> bool {
    matches!(target, NetfilterTarget::Mark { .. } | NetfilterTarget::Connmark(ConnmarkTarget::Restore { .. }))
}

/// A filter for a mark whose packets all have a class by their priority: a qdisc then evaluates no filter.
fn sorted_before(
    context: &mut RuleContext<'_>,
    at: usize,
    mark: u32,
    step: &Step,
) -> Result<Option<Finding>, TooLarge> {
    let dump = &context.reading.filters[at];
    let qdisc = dump.parent;
    if qdisc.minor() != 0 || context.reading.root(&dump.dev).is_none_or(|root| root.handle != qdisc) {
        return Ok(None);
    }
    let walked = &mut context.reached.walked;
    let protocol = walked.space.protocol(dump.protocol)?;
    let (mut marked, mut all) = (Parts::default(), true);
    for (way, passing) in walked.arrived.clone() {
        if !matches!(&walked.ways[way], Way::Forwarded(dev) | Way::Local(dev) if *dev == dump.dev) {
            continue;
        }
        let set = walked.space.store.and(passing.set, protocol)?;
        let states = &walked.states;
        let carries = walked.space.store.select(passing.states, set, &mut |n| states.get(n).mark == mark)?;
        let by_priority = |n: u32| states.get(n).priority.class().qdisc() == qdisc;
        let sorted = walked.space.store.select(passing.states, carries, &mut |n| by_priority(n))?;
        all &= walked.space.store.minus(carries, sorted)?.is_empty();
        marked.add(&mut walked.space, way, carries)?;
    }
    if !all || marked.is_empty() {
        return Ok(None);
    }
    let Some(candidate) = context.reached.pick(context.reading, &marked)? else { return Ok(None) };
    let way = context.send(&candidate);
    let went = context.went(&way, &dump.dev);
    let shown = way.mark == mark && Handle(way.priority).qdisc() == qdisc;
    context.confirmed(shown, &candidate, "with that mark and a priority");
    Ok(shown.then(|| Finding {
        rule: Rule::Unreachable,
        level: Level::Warning,
        place: super::making::at_word(step, "handle"),
        what: format!(
            "no packet with mark {mark} comes to this filter: a rule gives each a class by its priority"
        ),
        because: format!("{qdisc} evaluates no filter for a packet whose priority names one of its classes"),
        witness: witness(&candidate, &went),
        fix: Some(Fix {
            what: "keep one of the two: the mark and its filter, or CLASSIFY (nft: meta priority)".into(),
            edits: Vec::new(),
        }),
    }))
}

/// Marks that packets carry into a tree where no filter matches them, though a class there gets no packets.
fn never_read(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let reading = context.reading;
    let mut found = Vec::new();
    for (way, passing) in context.reached.walked.arrived.clone() {
        let Way::Forwarded(device) = context.reached.walked.ways[way].clone() else { continue };
        let Some(read) = marks_read(context, &device) else { continue };
        let walked = &mut context.reached.walked;
        let states = &walked.states;
        let carried = walked.space.store.split(passing.states, passing.set, &|n| states.get(n).mark)?;
        for (mark, set) in carried {
            let is_read = read.iter().any(|(value, mask)| mark & mask == *value);
            let requested = conditions(reading).any(
                |what| matches!(what, Condition::Mark(value, mask) if *value != 0 && mark & mask == *value),
            );
            if mark == 0 || is_read || requested || reading.lost.has(&Thing::Matched(device.clone(), mark)) {
                continue;
            }
            let Some(step) = sets(context, mark) else { continue };
            let Some(candidate) = context.reached.pick_by(reading, way, set)? else { continue };
            let sent = context.send(&candidate);
            if sent.mark != mark {
                continue;
            }
            let went = context.went(&sent, &device);
            // A mark for what goes to the default anyway is no mistake.
            let idle = idle_classes(context, &device);
            let twin = in_other_base(read.iter().map(|(value, _)| *value), mark);
            let (no_packet, fix) = match (idle.as_slice(), twin) {
                ([], _) => continue,
                (_, Some(value)) => {
                    (format!("a filter reads mark {value} (0x{value:x})"), same_number(mark, value).what)
                }
                ([class], None) => (
                    format!("no packet comes to class {class}"),
                    format!("send them there: {}", beside(context, &device, mark, class)),
                ),
                // Which of several classes it is meant for is not known.
                (several, None) => (
                    format!("no packet comes to the classes {}", several.join(", ")),
                    format!(
                        "send them to the class that is meant: {}",
                        beside(context, &device, mark, "CLASS")
                    ),
                ),
            };
            found.push(Finding {
                rule: Rule::Marks,
                level: Level::Warning,
                place: step.place.clone(),
                what: format!("nothing reads mark {mark} on {device}"),
                because: format!("its packets wait in {went}, while {no_packet}"),
                witness: witness(&candidate, &format!("{went}, with mark {mark}")),
                fix: Some(Fix { what: fix, edits: Vec::new() }),
            });
        }
    }
    Ok(found)
}

/// The command for one more fw filter on a device, before those that are there; where there is no room before
/// them, without its preference.
fn beside(context: &RuleContext<'_>, device: &str, mark: u32, class: &str) -> String {
    let filters = || context.reading.filters.iter().filter(|dump| dump.dev == device);
    let Some(parent) = filters().find(|dump| dump.kind == "fw").map(|dump| dump.parent) else {
        return format!("tc filter add dev {device} … handle {mark} fw flowid {class}");
    };
    let first = filters().filter(|dump| dump.parent == parent && dump.chain == 0).map(|dump| dump.pref).min();
    let (how, place) = match first {
        Some(first) if first > 1 => (format!("protocol all prio {}", first - 1), ""),
        _ => ("…".to_owned(), ", before the filters that take them now"),
    };
    format!("tc filter add dev {device} parent {parent} {how} handle {mark} fw flowid {class}{place}")
}

/// The marks that filters on a device match, each with its mask; `None`: none do, or all are read.
fn marks_read(context: &RuleContext<'_>, device: &str) -> Option<Vec<(u32, u32)>> {
    let mut read = Vec::new();
    for dump in context.reading.filters.iter().filter(|dump| dump.dev == device) {
        match &dump.entry {
            // Without entries the mark is the class's name.
            FilterEntry::Heading if dump.kind == "fw" => {
                let entries = context.reading.filters.iter().any(|other| {
                    (&other.dev, other.parent, other.pref) == (&dump.dev, dump.parent, dump.pref)
                        && matches!(other.entry, FilterEntry::Filter { .. })
                });
                if !entries {
                    return None;
                }
            }
            FilterEntry::Filter { handle, params: FilterParams::Fw(fw), .. } => {
                read.push((*handle, fw.mask.unwrap_or(u32::MAX)));
            }
            FilterEntry::Filter { params: FilterParams::U32(u32), .. } => read.extend(u32.mark),
            FilterEntry::Filter { params: FilterParams::Flow(flow), .. } if flow.keys.has(MARK_KEY) => {
                return None;
            }
            _ => {}
        }
    }
    (!read.is_empty()).then_some(read)
}

/// The command that sets a mark, on packets or on connections.
fn sets<'a>(context: &RuleContext<'a>, mark: u32) -> Option<&'a Step> {
    let gives = |key: &RuleKey| {
        let targets = context.rule(key).into_iter().flat_map(|rule| rule.targets());
        targets.into_iter().any(|target| match target {
            NetfilterTarget::Mark { value, .. }
            | NetfilterTarget::Connmark(ConnmarkTarget::Set { value, .. }) => *value == mark,
            _ => false,
        })
    };
    let known: Vec<(&RuleKey, &RuleSeen)> =
        context.reached.walked.rules.iter().filter(|(key, _)| gives(key)).collect();
    // Rather one that any packet comes to.
    let key =
        known.iter().find(|(_, seen)| !seen.matched.is_empty()).or(known.first()).map(|(key, _)| *key)?;
    context.step_of_rule(key)
}

/// The mark whose digits are those of `mark` in the other base: 32 (0x20) for 20, and 20 for 32.
fn in_other_base(mut others: impl Iterator<Item = u32>, mark: u32) -> Option<u32> {
    let is_twin =
        |value: u32| format!("{value:x}") == mark.to_string() || format!("{mark:x}") == value.to_string();
    others.find(|value| *value != mark && is_twin(*value))
}

/// The fix of a mark that is written in one base and matched in the other.
fn same_number(written: u32, matched: u32) -> Fix {
    Fix {
        what: format!(
            "write the same number in both places, with 0x or without: {written} is 0x{written:x}, {matched} is \
            0x{matched:x}"
        ),
        edits: Vec::new(),
    }
}

/// The leaf classes that no packet comes to.
fn idle_classes(context: &mut RuleContext<'_>, device: &str) -> Vec<String> {
    let Some(classes) = context.reached.walked.classes.get(device).cloned() else { return Vec::new() };
    let leaves = classes.into_iter().filter(|(_, leaf)| *leaf).map(|(class, _)| class);
    let reading = context.reading;
    let idle = leaves.filter(|class| {
        let counts = reading
            .classes
            .iter()
            .any(|dump| dump.classid == *class && dump.kind == tidegate_policy::Kind::Htb);
        counts && context.reached.class(reading, device, *class) == Arrival::Unreachable
    });
    idle.map(|class| class.to_string()).collect()
}

/// Marks of connections that are set and never looked at, or looked at and never set.
fn connections(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let known: Vec<(RuleKey, RuleSeen)> =
        context.reached.walked.rules.iter().map(|(key, seen)| (key.clone(), seen.clone())).collect();
    let writes = |target: &NetfilterTarget| {
        matches!(target, NetfilterTarget::Connmark(ConnmarkTarget::Set { .. } | ConnmarkTarget::Save { .. }))
    };
    let written = rules(context.reading).any(|rule| rule.targets().any(writes));
    let mut found = Vec::new();
    for (key, seen) in &known {
        let targets = context.rule(key).into_iter().flat_map(|rule| rule.targets());
        for target in targets {
            match target {
                NetfilterTarget::Connmark(ConnmarkTarget::Set { value, .. })
                    if !reads_connmarks(context.reading) =>
                {
                    found.extend(not_restored(context, key, seen, Some(*value))?);
                }
                NetfilterTarget::Connmark(ConnmarkTarget::Save { .. })
                    if !reads_connmarks(context.reading) =>
                {
                    found.extend(not_restored(context, key, seen, None)?);
                }
                NetfilterTarget::Connmark(ConnmarkTarget::Restore { .. }) if !written => {
                    found.extend(nothing_kept(context, key))
                }
                _ => {}
            }
        }
    }
    Ok(found)
}

/// Of the packets that a rule matches, those that leave with a mark.
fn with_marks(context: &mut RuleContext<'_>, seen: &RuleSeen) -> Result<Parts, TooLarge> {
    let walked = &mut context.reached.walked;
    let early = walked.ways.iter().position(|way| *way == Way::ComesIn);
    let mut marked = Parts::default();
    for (way, passing) in walked.arrived.clone() {
        let before = early.filter(|_| matches!(walked.ways[way], Way::Forwarded(_)));
        let before = before.map_or(Set::NONE, |early| seen.matched.by(early));
        let matched = walked.space.store.or(seen.matched.by(way), before)?;
        let set = walked.space.store.and(matched, passing.set)?;
        let states = &walked.states;
        let set = walked.space.store.select(passing.states, set, &mut |n| states.get(n).mark != 0)?;
        marked.add(&mut walked.space, way, set)?;
    }
    Ok(marked)
}

/// A mark that a connection gets, and its packets never; `None`: that of a packet, which is saved.
fn not_restored(
    context: &mut RuleContext<'_>,
    key: &RuleKey,
    seen: &RuleSeen,
    mark: Option<u32>,
) -> Result<Option<Finding>, TooLarge> {
    let Some(step) = context.step_of_rule(key) else { return Ok(None) };
    let concerned = if mark.is_some() { seen.matched.clone() } else { with_marks(context, seen)? };
    let Some(mut candidate) = context.reached.pick(context.reading, &concerned)? else { return Ok(None) };
    // What is saved is what the first packet has.
    let saved = match mark {
        Some(mark) => mark,
        None => {
            candidate.packet.state = Some(Connstate::New);
            context.send(&candidate).mark
        }
    };
    candidate.packet.state = Some(Connstate::Established);
    if candidate.packet.protocol == proto::TCP {
        candidate.packet.tcp_flags = tcp_flags::ACK;
    }
    let way = context.send(&candidate);
    if way.mark == saved {
        return Ok(None);
    }
    Ok(Some(Finding {
        rule: Rule::Connmark,
        level: Level::Warning,
        place: super::making::at_word(step, if mark.is_some() { "--set-mark" } else { "--save-mark" }),
        what: format!("connections get mark {saved}, and no rule restores it to their packets"),
        because: "filters see the mark of the packet, which stays as it was".into(),
        // Which packet it is before its addresses are translated is not known.
        witness: match rules(context.reading).any(translates) {
            true => None,
            false => witness(&candidate, &format!("its queue with mark {}", way.mark)),
        },
        fix: Some(Fix { what: restore(context, step, key, mark.is_none()), edits: Vec::new() }),
    }))
}

/// How a connection's mark comes back to its packets.
fn restore(context: &RuleContext<'_>, step: &Step, key: &RuleKey, first: bool) -> String {
    let option = if first { "-I" } else { "-A" };
    // The other bits of a packet's mark are not the connection's.
    let masks =
        context.rule(key).into_iter().flat_map(|rule| rule.targets()).find_map(|target| match target {
            NetfilterTarget::Connmark(ConnmarkTarget::Save { nfmask, ctmask }) => Some((*nfmask, *ctmask)),
            NetfilterTarget::Connmark(ConnmarkTarget::Set { mask, .. }) => Some((*mask, *mask)),
            _ => None,
        });
    let masks = masks.filter(|masks| *masks != (u32::MAX, u32::MAX));
    let masked =
        masks.map_or(String::new(), |(packet, kept)| format!(" --nfmask {packet:#x} --ctmask {kept:#x}"));
    // Behind other rules it must leave the marks of packets whose connection has none.
    let kept = masks.map_or(String::new(), |(_, kept)| format!("/{kept:#x}"));
    let only = if first { String::new() } else { format!(" -m connmark ! --mark 0{kept}") };
    let rule = match step.tool.as_str() {
        "nft" => match masks {
            None if first => "`meta mark set ct mark`".to_owned(),
            None => "`ct mark != 0 meta mark set ct mark`".to_owned(),
            Some((packet, kept)) => {
                format!(
                    "meta mark set to the bits {kept:#x} of ct mark, and its own bits outside {packet:#x}"
                )
            }
        },
        "iptables-restore" | "ip6tables-restore" => {
            format!("`{option} {}{only} -j CONNMARK --restore-mark{masked}`", key.chain)
        }
        tool => {
            format!(
                "`{tool} -t {} {option} {}{only} -j CONNMARK --restore-mark{masked}`",
                key.table, key.chain
            )
        }
    };
    let place = if first { "before the rules that give marks" } else { "behind this rule" };
    format!("restore it {place}: {rule}")
}

/// The marks of connections that a rule asks for, each under its mask.
fn connmarks(rule: &NetfilterRule) -> impl Iterator<Item = (u32, u32)> {
    rule.matches.iter().filter(|one| !one.not).filter_map(|one| match one.what {
        Condition::Connmark(value, mask) => Some((value, mask)),
        _ => None,
    })
}

fn nothing_kept(context: &RuleContext<'_>, key: &RuleKey) -> Option<Finding> {
    let step = context.step_of_rule(key)?;
    let conditional = context.rule(key).is_some_and(|rule| connmarks(rule).any(|(value, _)| value != 0));
    let then = if conditional { "this rule matches nothing" } else { "takes away the mark a packet has" };
    Some(Finding {
        rule: Rule::Connmark,
        level: Level::Note,
        place: super::making::at_word(step, "-j"),
        what: "the mark of the connection is restored, and no rule sets any".into(),
        because: format!("unless something else does, it is always 0 and {then}"),
        witness: None,
        fix: None,
    })
}
