//! R6 of classes that packets are given by name: with classes below them, or that are not there.

use super::context::{RuleContext, classid, witness};
use super::making::{at_word, finding};
use crate::finding::{Finding, Fix, Level, Rule};
use crate::reading::{CLSACT_EGRESS, PolicyModel};
use crate::sets::bdd::TooLarge;
use crate::walk::outcome::redirects;
use crate::walk::ways::Way;
use crate::walk::{Parts, RuleKey, RuleSeen};
use tidegate_packet::Handle;
use tidegate_policy::dump::{FilterEntry, QdiscDump};
use tidegate_policy::netfilter::NetfilterTarget;
use tidegate_policy::{Act, Kind};

/// Rules that give packets a class with classes below it, where no filter there leads further.
pub(super) fn check(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let known: Vec<(RuleKey, RuleSeen)> =
        context.reached.walked.rules.iter().map(|(key, seen)| (key.clone(), seen.clone())).collect();
    let mut found = Vec::new();
    for (key, seen) in &known {
        let Some(NetfilterTarget::Classify(class)) = context.rule(key).and_then(|rule| rule.targets().last())
        else {
            continue;
        };
        found.extend(to_inner(context, key, seen, *class)?);
    }
    Ok(found)
}

/// Filters that lead to a class with classes below it, where no filter there leads further: HTB and HFSC
/// continue as if it had not matched (asked of Linux 6.1).
pub(super) fn by_filter(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let reading = context.reading;
    let mut found = Vec::new();
    for (at, dump) in reading.filters.iter().enumerate() {
        let Some(class) = classid(dump).filter(|_| !context.leaves_out(&dump.dev)) else { continue };
        let inner = reading.class(&dump.dev, class).filter(|inner| !reading.is_leaf(inner));
        let own = dump.parent.qdisc() == class.qdisc() && dump.parent != class;
        let Some(kind) = inner.map(|inner| inner.kind).filter(|_| own) else { continue };
        let requested = reading.filters.iter().any(|other| other.dev == dump.dev && other.parent == class);
        if requested || !matches!(kind, Kind::Htb | Kind::Hfsc) || reading.lost.lead(&dump.dev, class) {
            continue;
        }
        let seen = context.reached.walked.seen.filters.get(&at).cloned().unwrap_or_default();
        let Some(candidate) = context.reached.pick(reading, &seen.matched)? else { continue };
        let before = context.hits(dump);
        let way = context.send(&candidate);
        let counted = before.is_none() || context.hits(dump) > before;
        let (Some(step), true) = (context.step_of_filter(at), counted) else { continue };
        let went = context.went(&way, &dump.dev);
        let (level, fate) = match way.dropped {
            Some(_) => (Level::Error, "and drops them, because there is no default class"),
            None => (Level::Warning, "and goes on to its default"),
        };
        let keyword = if step.after("flowid").is_some() { "flowid" } else { "classid" };
        found.push(Finding {
            rule: Rule::Nowhere,
            level,
            place: at_word(step, keyword),
            what: format!("the filter leads to class {class}, which has child classes"),
            because: format!(
                "packets queue in leaf classes only: {} consults the filters of {class}, which do not \
                exist, {fate}",
                kind.name()
            ),
            witness: witness(&candidate, &went),
            fix: Some(Fix {
                what: format!("name a class without child classes, or add filters to {class}"),
                edits: Vec::new(),
            }),
        });
    }
    Ok(found)
}

fn to_inner(
    context: &mut RuleContext<'_>,
    key: &RuleKey,
    seen: &RuleSeen,
    class: Handle,
) -> Result<Option<Finding>, TooLarge> {
    let reading = context.reading;
    // By the ways that lead to a device with such a root.
    let inner = |dev: &str| {
        let root = reading.root(dev).filter(|root| root.handle == class.qdisc())?;
        let dump = reading.class(dev, class).filter(|dump| class.minor() != 0 && !reading.is_leaf(dump))?;
        let requested =
            reading.filters.iter().any(|filter| filter.dev == dev && filter.parent == dump.classid);
        matches!(root.kind, Kind::Htb | Kind::Hfsc).then_some(root).filter(|_| !requested)
    };
    let ways = &context.reached.walked.ways;
    let coming = ways.iter().position(|way| *way == Way::ComesIn).map_or(Parts::default(), |way| {
        Parts(seen.matched.0.iter().filter(|(of, _)| *of == way).copied().collect())
    });
    let mut parts = Parts::default();
    let mut kind = None;
    for (way, passing) in context.reached.walked.arrived.clone() {
        let dev = match context.reached.walked.ways[way].clone() {
            Way::Forwarded(dev) | Way::Local(dev) if !context.leaves_out(&dev) => dev,
            _ => continue,
        };
        let Some(root) = inner(&dev) else { continue };
        let walked = &mut context.reached.walked;
        let early = coming.0.first().map_or(crate::sets::bdd::Set::NONE, |(_, set)| *set);
        let early =
            if matches!(walked.ways[way], Way::Forwarded(_)) { early } else { crate::sets::bdd::Set::NONE };
        let set = walked.space.store.or(seen.matched.by(way), early)?;
        let set = walked.space.store.and(set, passing.set)?;
        let states = &walked.states;
        let has = |n: u32| states.get(n).priority.class() == class;
        let set = walked.space.store.select(passing.states, set, &mut |n| has(n))?;
        parts.add(&mut walked.space, way, set)?;
        kind = kind.or((!set.is_empty()).then_some(root.kind));
    }
    let Some(kind) = kind else { return Ok(None) };
    let Some(candidate) = context.reached.pick(reading, &parts)? else { return Ok(None) };
    let way = context.send(&candidate);
    let Some(step) = context.step_of_rule(key).filter(|_| Handle(way.priority) == class) else {
        return Ok(None);
    };
    let Some(device) = candidate.packet.to.clone().filter(|_| way.dropped.is_none()) else { return Ok(None) };
    let went = context.went(&way, &device);
    let because = match kind {
        Kind::Htb => {
            format!(
                "packets wait in classes without classes below them: htb evaluates the filters on {class}, of \
                which there are none, and goes on to its default"
            )
        }
        _ => "packets wait in classes without classes below them: hfsc sorts these as if no rule had given \
            them a class"
            .to_owned(),
    };
    Ok(Some(Finding {
        rule: Rule::Nowhere,
        level: Level::Warning,
        place: at_word(step, "--set-class"),
        what: format!("the rule gives packets class {class}, which has classes below it"),
        because,
        witness: witness(&candidate, &went),
        fix: None,
    }))
}

/// Filters whose action gives packets a class as their priority that no qdisc of that number has.
pub(super) fn by_action(reading: &mut PolicyModel) -> Vec<Finding> {
    let reading = &*reading;
    let mut found = Vec::new();
    for dump in &reading.filters {
        let FilterEntry::Filter { actions, .. } = &dump.entry else { continue };
        let led = redirects(dump).next();
        // In a tree the class is chosen already, and routing writes another priority over that of what
        // arrives.
        let dev = match led {
            Some(to) => to,
            None if dump.parent == CLSACT_EGRESS => dump.dev.as_str(),
            None => continue,
        };
        let priority = actions.iter().rev().find_map(|action| match &action.action.act {
            Act::Skbedit(edit) => edit.priority,
            _ => None,
        });
        let Some(class) = priority.map(Handle).filter(|class| class.major() != 0 && class.minor() != 0)
        else {
            continue;
        };
        let Some(root) = reading.root(dev).filter(|root| root.handle == class.qdisc()) else { continue };
        let lost = reading.lost.class(dev, class) || reading.lost.tree(dev);
        if lost || !root.kind.classes_are_made() || reading.class(dev, class).is_some() {
            continue;
        }
        let Some(step) = reading.maker_of_filter(dump).and_then(|at| reading.step_of(at)) else { continue };
        found.push(finding(
            Rule::Nowhere,
            Level::Warning,
            at_word(step, "priority"),
            format!("the action gives packets class {class}, and there is no such class on {dev}"),
            format!(
                "{} sorts them as if nothing had given them a class: {}",
                root.kind.name(),
                otherwise(root)
            ),
            format!("qdisc {} of {dev} is {}", root.handle, root.kind.name()),
        ));
    }
    found
}

/// Where a qdisc puts packets whose priority names no class of it.
pub(super) fn otherwise(owner: &QdiscDump) -> &'static str {
    match owner.kind {
        Kind::Htb | Kind::Hfsc => "by its filters, else to the default",
        _ => "by its filters, else it drops them",
    }
}
