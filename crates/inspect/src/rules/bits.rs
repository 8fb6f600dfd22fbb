//! R8 for single bits: a rule that writes some bits of a mark, and a filter that matches all of it; and rules
//! that match a mark which no packet has.

use super::context::{RuleContext, witness};
use super::making::at_word;
use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::sets::bdd::{Set, TooLarge};
use crate::walk::ways::{Way, reads_connmarks};
use crate::walk::{Parts, RuleKey, RuleSeen};
use std::collections::BTreeSet;
use tidegate_policy::FilterParams;
use tidegate_policy::dump::FilterEntry;
use tidegate_policy::netfilter::{Condition, NetfilterTarget};

/// What is wrong with bits of marks.
pub(super) fn check(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let known: Vec<(RuleKey, RuleSeen)> =
        context.reached.walked.rules.iter().map(|(key, seen)| (key.clone(), seen.clone())).collect();
    let mut found = Vec::new();
    for at in 0..context.reading.filters.len() {
        let dump = &context.reading.filters[at];
        let FilterEntry::Filter { handle, params: FilterParams::Fw(fw), .. } = &dump.entry else { continue };
        let exact = fw.mask.is_none_or(|mask| mask == u32::MAX);
        if !exact || *handle == 0 || dump.chain != 0 || context.leaves_out(&dump.dev) {
            continue;
        }
        for (key, seen) in &known {
            if let Some(finding) = added(context, (at, *handle), key, seen)? {
                found.push(finding);
                break;
            }
        }
    }
    if !reads_connmarks(context.reading) && !context.reading.is_rule_lost() {
        for (key, seen) in &known {
            found.extend(never_there(context, key, seen));
        }
    }
    Ok(found)
}

/// The marks that filters of a filter's list ask for, each with its mask.
fn read_beside(context: &RuleContext<'_>, at: usize) -> Vec<(u32, u32)> {
    let dump = &context.reading.filters[at];
    let beside =
        context.reading.filters.iter().filter(|other| other.dev == dump.dev && other.parent == dump.parent);
    let selected = beside.filter_map(|other| match &other.entry {
        FilterEntry::Filter { handle, params: FilterParams::Fw(fw), .. } => {
            Some(vec![(*handle, fw.mask.unwrap_or(u32::MAX))])
        }
        FilterEntry::Filter { params: FilterParams::U32(u32), .. } => Some(u32.mark.into_iter().collect()),
        _ => None,
    });
    selected.flatten().collect()
}

/// Packets to whose mark a rule added the bits that a filter matches, and which have others beside.
fn added(
    context: &mut RuleContext<'_>,
    (at, handle): (usize, u32),
    key: &RuleKey,
    seen: &RuleSeen,
) -> Result<Option<Finding>, TooLarge> {
    let reading = context.reading;
    let dump = &reading.filters[at];
    let Some(NetfilterTarget::Mark { value, mask }) =
        context.rule(key).and_then(|rule| rule.targets().last())
    else {
        return Ok(None);
    };
    let (value, mask) = (*value, *mask);
    if mask == u32::MAX || value != handle || value & mask != value {
        return Ok(None);
    }
    let read = read_beside(context, at);
    let walked = &mut context.reached.walked;
    let early = walked.ways.iter().position(|way| *way == Way::ComesIn);
    let list = walked.seen.lists.get(&(dump.dev.clone(), dump.parent)).cloned().unwrap_or_default();
    let protocol = walked.space.protocol(dump.protocol)?;
    let mut parts = Parts::default();
    let mut marks = BTreeSet::new();
    for (way, passing) in walked.arrived.clone() {
        if !matches!(&walked.ways[way], Way::Forwarded(dev) | Way::Local(dev) if *dev == dump.dev) {
            continue;
        }
        let before = early.filter(|_| matches!(walked.ways[way], Way::Forwarded(_)));
        let before = before.map_or(Set::NONE, |early| seen.matched.by(early));
        let mut set = walked.space.store.or(seen.matched.by(way), before)?;
        for within in [passing.set, list.by(way), protocol] {
            set = walked.space.store.and(set, within)?;
        }
        let states = &walked.states;
        let others = |mark: u32| mark & mask == value && mark != handle;
        let unread = |mark: u32| !read.iter().any(|(value, mask)| mark & mask == *value);
        let set = walked.space.store.select(passing.states, set, &mut |n| {
            let mark = states.get(n).mark;
            others(mark) && unread(mark)
        })?;
        marks.extend(walked.space.store.split(passing.states, set, &|n| states.get(n).mark)?.into_keys());
        parts.add(&mut walked.space, way, set)?;
    }
    let Some(class) = super::context::classid(dump).filter(|_| !parts.is_empty()) else { return Ok(None) };
    let Some(candidate) = context.reached.pick(reading, &parts)? else { return Ok(None) };
    let way = context.send(&candidate);
    let there = context.prober.device(&dump.dev).and_then(|id| way.stop_at(id));
    let (Some(step), Some(by)) = (context.step_of_filter(at), context.step_of_rule(key)) else {
        return Ok(None);
    };
    if way.dropped.is_some()
        || !marks.contains(&way.mark)
        || there.is_none_or(|stop| stop.classes.contains(&class))
    {
        return Ok(None);
    }
    let went = context.went(&way, &dump.dev);
    let (line, mark) = (context.line(by), way.mark);
    Ok(Some(Finding {
        rule: Rule::Marks,
        level: Level::Warning,
        place: at_word(step, "handle"),
        what: format!("the filter matches the whole mark {handle:#x}, of which {line} writes only some bits"),
        because: format!(
            "it leaves the other bits as they are: packets that have any come here with another mark \
            ({mark:#x}), which no other filter matches"
        ),
        witness: witness(&candidate, &format!("{went}, with mark {mark:#x}")),
        fix: Some(Fix {
            what: format!("match those bits alone: handle {handle:#x}/{mask:#x} fw"),
            edits: Vec::new(),
        }),
    }))
}

/// A rule that is to mark packets which have a certain mark, that none has when the rule is evaluated.
fn never_there(context: &RuleContext<'_>, key: &RuleKey, seen: &RuleSeen) -> Option<Finding> {
    let rule = context.rule(key)?;
    let writes = rule.targets().any(|target| {
        matches!(
            target,
            NetfilterTarget::Mark { .. }
                | NetfilterTarget::Classify(_)
                | NetfilterTarget::Connmark(_)
                | NetfilterTarget::Dscp(_)
        )
    });
    let late = |what: &Condition| {
        matches!(
            what,
            Condition::Connmark(..)
                | Condition::Connstate(_)
                | Condition::State(_)
                | Condition::Connbytes(_)
                | Condition::Dscp(_)
                | Condition::Tos(..)
                | Condition::Any(_)
        )
    };
    let mut marks = rule.matches.iter().filter_map(|one| match one.what {
        Condition::Mark(value, mask) if !one.not && value != 0 => Some((value, mask)),
        _ => None,
    });
    let (value, mask) = marks.next().filter(|_| marks.next().is_none())?;
    let other = rule.matches.iter().any(|one| late(&one.what));
    if !writes || other || seen.met.is_empty() || !seen.matched.is_empty() {
        return None;
    }
    let step = context.step_of_rule(key)?;
    let condition =
        if mask == u32::MAX { format!("{value:#x}") } else { format!("{value:#x} under the mask {mask:#x}") };
    Some(Finding {
        rule: Rule::Marks,
        level: Level::Note,
        place: at_word(step, "--mark"),
        what: format!("no packet comes to this rule with mark {condition}: it never matches"),
        because:
            "no rule of these files gives it to packets that come here; a program that marks its sockets, \
            or another firewall, still may"
                .to_owned(),
        witness: Some(Witness::Number(
            "of all packets that the rule's other words fit, none has that mark".to_owned(),
        )),
        fix: None,
    })
}
