//! R1: filters and rules that no packet reaches, because those before them take all they ask for.

use super::context::{RuleContext, classid, not_decided, same_chain, witness};
use super::making::edit;
use super::removal;
use crate::finding::{Finding, Fix, Level, Rule};
use crate::reading::Step;
use crate::sets::bdd::TooLarge;
use crate::walk::list::FIRST_ROOT;
use crate::walk::tree::FilterSeen;
use crate::walk::ways::{self, translates};
use crate::walk::{Parts, RuleKey, RuleSeen};
use crate::words::named;
use tidegate_packet::Handle;
use tidegate_policy::Act;
use tidegate_policy::dump::{FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::netfilter::{Family, NetfilterTarget};

/// Filters, and rules, that no packet reaches and whose culprits are looked for: each is compared with all
/// before it.
const MOST_DEAD: usize = 200;

/// Filters that get none of the packets they ask for.
pub(super) fn filters(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let (mut found, mut dead) = (Vec::new(), 0);
    let lists: Vec<(String, Vec<usize>)> = context
        .reached
        .walked
        .lists
        .iter()
        .map(|(place, list)| {
            (place.0.clone(), list.prefs.iter().flat_map(|pref| pref.filters.clone()).collect())
        })
        .collect();
    for (device, filters) in lists {
        if context.leaves_out(&device) {
            continue;
        }
        for (at, earlier) in filters.iter().zip(0..).map(|(at, n)| (*at, &filters[..n])) {
            let Some(seen) = context.reached.walked.seen.filters.get(&at).cloned() else { continue };
            if seen.matched.is_empty() && !seen.eligible.is_empty() {
                dead += 1;
                if dead <= MOST_DEAD {
                    found.extend(dead_filter(context, at, &seen, earlier)?);
                }
            }
        }
    }
    found.extend(not_looked_into(dead, "filters"));
    Ok(found)
}

/// What a filter's actions do, in order.
fn acts(dump: &FilterDump) -> impl Iterator<Item = &Act> {
    let actions = match &dump.entry {
        FilterEntry::Filter { actions, .. } => actions.as_slice(),
        _ => &[],
    };
    actions.iter().map(|action| &action.action.act)
}

/// The note where there are more than are checked.
fn not_looked_into(dead: usize, what: &str) -> Option<Finding> {
    let more = dead.checked_sub(MOST_DEAD).filter(|more| *more > 0)?;
    Some(Finding {
        what: format!("{more} {what} seem to get no packets, and were not looked into"),
        ..not_decided(format!("{MOST_DEAD} others are looked into, which is the most of one check"))
    })
}

fn dead_filter(
    context: &mut RuleContext<'_>,
    at: usize,
    seen: &FilterSeen,
    earlier: &[usize],
) -> Result<Option<Finding>, TooLarge> {
    let reading = context.reading;
    let dump = &reading.filters[at];
    let mut takers = Vec::new();
    let (mut all_keep_some, mut any_keeps_some) = (true, false);
    // Filters whose sets are wider than in truth are named only where the others do not take all.
    let exact: Vec<usize> = earlier.iter().copied().filter(|before| is_exact(context, *before)).collect();
    let earlier = if exact.len() < earlier.len() && left_by(context, &exact, &seen.eligible)?.is_empty() {
        &exact[..]
    } else {
        earlier
    };
    for before in earlier {
        let Some(other) = context.reached.walked.seen.filters.get(before).cloned() else { continue };
        let (shared, kept) = overlap(context, &other.matched, &seen.eligible)?;
        if shared {
            takers.push(*before);
            all_keep_some &= kept;
            any_keeps_some |= kept;
        }
    }
    // Rules that mark every packet leave the filters by header behind them idle on purpose: those are for
    // when the rules are not there.
    let by_mark = takers.iter().any(|taker| reading.filters[*taker].kind == "fw");
    if by_mark && dump.kind != "fw" {
        return Ok(None);
    }
    let Some(step) = context.step_of_filter(at) else { return Ok(None) };
    let mut lines: Vec<String> = Vec::new();
    for taker in &takers {
        let Some(line) = context.step_of_filter(*taker).map(|step| context.line(step)) else { continue };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let own = classid(dump);
    let place_of_takers = takers.iter().all(|taker| classid(&reading.filters[*taker]) == own);
    // What polices or changes packets does so for those that come to it alone.
    let acts_alike = takers.iter().all(|taker| acts(&reading.filters[*taker]).eq(acts(dump)));
    // Redirects to one device are the same, whichever filter does it.
    let redirects = acts(dump).next().is_some() && acts(dump).all(|act| act.redirects_to().is_some());
    let same = (own.is_some() || redirects) && place_of_takers && acts_alike;
    // A packet that goes elsewhere than this one leads shows it, if there is one.
    let alike: Vec<usize> =
        takers.iter().copied().filter(|taker| classid(&reading.filters[*taker]) == own).collect();
    let led_elsewhere = left_by(context, &alike, &seen.eligible)?;
    let shown = if led_elsewhere.is_empty() { &seen.eligible } else { &led_elsewhere };
    let Some(candidate) = context.reached.pick(reading, shown)? else { return Ok(None) };
    let before = context.hits(dump);
    let taken = |context: &mut RuleContext<'_>| {
        takers.iter().map(|taker| context.hits(&reading.filters[*taker])).sum::<Option<u64>>()
    };
    let taken_before = taken(context);
    let way = context.send(&candidate);
    let untouched = context.hits(dump) == before;
    // Behind translated addresses sets are wider than the truth, and the packet may be none of those.
    let is_theirs = match taken_before.zip(taken(context)) {
        Some((before, after)) => after > before,
        None => !ways::rules(reading).any(translates),
    };
    let went = context.went(&way, &dump.dev);
    let elsewhere = own.is_none_or(|own| went != own.to_string());
    let hashed = takers.iter().any(|taker| reading.filters[*taker].kind == "flow");
    debug_assert!(
        untouched,
        "the engine has filter {at} match {}, which others are said to take",
        candidate.packet
    );
    let loses_actions = place_of_takers && !acts_alike && acts(dump).next().is_some();
    if !untouched || !same && !elsewhere && !hashed && !loses_actions {
        return Ok(None);
    }
    let mut places = takers.iter().map(|taker| classid(&reading.filters[*taker]));
    let all_differ = own.is_none() || places.clone().all(|place| place != own);
    let first = places.next();
    let is_one_place = places.all(|place| Some(place) == first);
    let has_actions = acts(dump).next().is_some();
    let to = match own {
        // Hooks have no classes.
        _ if loses_actions || has_actions && (own.is_none() || dump.parent.major() == u16::MAX) => {
            "its actions".to_owned()
        }
        Some(own) => own.to_string(),
        None => "where it leads".to_owned(),
    };
    // What these ask for is wider here than in truth: the packet may be none of theirs.
    let is_known = is_theirs && is_exact(context, at);
    let (level, because) = if same {
        // The class that both name need not be there.
        let there = if elsewhere || own.is_none() { &went } else { &to };
        (Level::Note, format!("the packets it matches go to {there} all the same"))
    } else if hashed {
        (Level::Warning, format!("what it matches goes where a filter by flow leads, not to {to}"))
    } else if is_one_place && (is_known || is_theirs && takers.len() == 1) && way.dropped.is_some() {
        (Level::Warning, format!("what it matches goes to {went}"))
    } else if is_one_place && (is_known || is_theirs && takers.len() == 1) {
        (Level::Warning, format!("what it matches goes to {went}, not to {to}"))
    } else {
        let those = if takers.len() == 1 { "that one leads" } else { "those lead" };
        let not = if all_differ { format!(", not to {to}") } else { String::new() };
        (Level::Warning, format!("what it matches goes where {those}{not}"))
    };
    // Others may go elsewhere before they come to a qdisc further down.
    let list = dump.parent.qdisc();
    let is_below =
        |qdisc: &&QdiscDump| qdisc.dev == dump.dev && qdisc.handle == list && qdisc.parent.minor() != 0;
    let below = reading
        .qdiscs
        .iter()
        .find(is_below)
        .filter(|qdisc| qdisc.parent != Handle::ROOT && !qdisc.kind.is_hook());
    let coming = below.map_or_else(String::new, |qdisc| format!(", of what comes to {}", qdisc.handle));
    let first = takers.iter().map(|taker| reading.filters[*taker].pref).min();
    let by_hand = |what: &str| Some(Fix { what: what.into(), edits: Vec::new() });
    let rest = context.rest_of_line(step, &dump.dev, at);
    let because = match rest {
        true => format!("{because}; the rest of this line does get packets"),
        false => because,
    };
    let fix = match (same, all_keep_some, first) {
        _ if rest => by_hand("keep the rest of the line, and leave out what the other takes"),
        (false, true, Some(first)) => move_before(context, at, step, first),
        (true, ..) => removal::remove(context, step),
        _ if hashed => removal::remove(context, step),
        // Which of them is meant only its author knows.
        // How much of that is what this one asks for is not known.
        _ if !is_exact(context, at) => by_hand("put it before what takes its packets"),
        _ if any_keeps_some => {
            by_hand("some of them match nothing else: put it before the others, or remove it")
        }
        _ => by_hand("they match no more than it does: keep those that are meant, and remove the others"),
    };
    Ok(Some(Finding {
        rule: Rule::Unreachable,
        level,
        place: step.place.clone(),
        what: format!(
            "no packet reaches {}{}{}: {} before it take{} all that it would match{coming}",
            if rest { "a part of this line" } else { "this filter" },
            context.on(&dump.dev),
            context.which(step),
            named(&lines),
            plural(&lines)
        ),
        because,
        witness: if is_known { witness(&candidate, &went) } else { None },
        fix,
    }))
}

fn plural(lines: &[String]) -> &'static str {
    if lines.len() == 1 { "s" } else { "" }
}

/// Have two sets packets in common, by any way? And has the first some that the second has not?
fn overlap(context: &mut RuleContext<'_>, taken: &Parts, matched: &Parts) -> Result<(bool, bool), TooLarge> {
    let (mut shared, mut kept) = (false, false);
    for (way, set) in &taken.0 {
        let store = &mut context.reached.walked.space.store;
        shared |= !store.and(*set, matched.by(*way))?.is_empty();
        kept |= !store.minus(*set, matched.by(*way))?.is_empty();
    }
    Ok((shared, kept))
}

/// Is the set of packets that a filter asks for known exactly?
fn is_exact(context: &RuleContext<'_>, at: usize) -> bool {
    context.reached.walked.seen.filters.get(&at).is_none_or(|seen| !seen.open)
}

/// The packets of a set that none of some filters takes.
fn left_by(context: &mut RuleContext<'_>, filters: &[usize], wanted: &Parts) -> Result<Parts, TooLarge> {
    let walked = &mut context.reached.walked;
    let mut all = Parts::default();
    for (way, set) in &wanted.0 {
        let mut left = *set;
        for at in filters {
            let Some(seen) = walked.seen.filters.get(at) else { continue };
            left = walked.space.store.minus(left, seen.matched.by(*way))?;
        }
        all.add(&mut walked.space, *way, left)?;
    }
    Ok(all)
}

/// Adds what two sets have in common.
fn in_common(
    context: &mut RuleContext<'_>,
    taken: &Parts,
    matched: &Parts,
    into: &mut Parts,
) -> Result<(), TooLarge> {
    for (way, set) in &taken.0 {
        let space = &mut context.reached.walked.space;
        let both = space.store.and(*set, matched.by(*way))?;
        into.add(space, *way, both)?;
    }
    Ok(())
}

/// A filter is evaluated earlier with a lower preference; one that no other filter of the list has.
fn move_before(context: &RuleContext<'_>, at: usize, step: &Step, first: u16) -> Option<Fix> {
    let reading = context.reading;
    let dump = &reading.filters[at];
    let by_hand = || Some(Fix { what: "put it before what takes its packets".into(), edits: Vec::new() });
    // In a table of u32's, preferences order nothing.
    let in_table = matches!(dump.entry, FilterEntry::Filter { handle, .. } if handle >> 20 < FIRST_ROOT);
    if dump.kind == "u32" && in_table {
        return by_hand();
    }
    let Some(lower) = first.checked_sub(1).filter(|pref| *pref > 0) else { return by_hand() };
    let taken = reading.filters.iter().any(|other| {
        other.dev == dump.dev
            && other.parent == dump.parent
            && other.pref == lower
            && (other.kind != dump.kind || other.protocol != dump.protocol)
    });
    let keyword = ["prio", "pref", "priority"].into_iter().find(|keyword| step.after(keyword).is_some());
    match keyword {
        Some(keyword)
            if !taken && context.is_alone(step) && step.after(keyword).is_some_and(|word| word.literal) =>
        {
            edit(step, keyword, &lower.to_string(), "have it evaluated before them")
        }
        _ => by_hand(),
    }
}

/// Rules of netfilter that none of the packets in their chain reaches which they ask for.
pub(super) fn rules(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let known: Vec<(RuleKey, RuleSeen)> =
        context.reached.walked.rules.iter().map(|(key, seen)| (key.clone(), seen.clone())).collect();
    let (mut found, mut dead) = (Vec::new(), 0);
    for (key, seen) in &known {
        if marks_packets(key) && !seen.eligible.is_empty() && seen.met.is_empty() {
            dead += 1;
            if dead > MOST_DEAD {
                continue;
            }
            let earlier = known.iter().filter(|(other, _)| same_chain(other, key) && other.at < key.at);
            let earlier: Vec<&(RuleKey, RuleSeen)> = earlier.collect();
            found.extend(dead_rule(context, key, seen, &earlier)?);
        }
    }
    found.extend(not_looked_into(dead, "rules"));
    Ok(found)
}

/// The firewall's own rules are not a matter of traffic control.
fn marks_packets(key: &RuleKey) -> bool {
    key.family == Family::Inet || !matches!(key.table.as_str(), "filter" | "nat" | "security")
}

fn dead_rule(
    context: &mut RuleContext<'_>,
    key: &RuleKey,
    seen: &RuleSeen,
    earlier: &[&(RuleKey, RuleSeen)],
) -> Result<Option<Finding>, TooLarge> {
    let Some(step) = context.step_of_rule(key) else { return Ok(None) };
    let mut lines: Vec<String> = Vec::new();
    let mut taken_here = Parts::default();
    for (other, taken) in earlier {
        if !overlap(context, &taken.left, &seen.eligible)?.0 {
            continue;
        }
        let returns =
            context.rule(other).is_some_and(|rule| matches!(rule.target, Some(NetfilterTarget::Return)));
        // The author of a short policy knows the classes, not the ends of its chains.
        if returns && context.reading.is_compiled() {
            continue;
        }
        if let Some(line) =
            context.step_of_rule(other).map(|step| context.line(step)).filter(|line| !lines.contains(line))
        {
            lines.push(line);
        }
        if !returns {
            in_common(context, &taken.left, &seen.eligible, &mut taken_here)?;
        }
    }
    // Rather a packet that another rule takes than one that the chain is not for.
    let shown = if taken_here.is_empty() { &seen.eligible } else { &taken_here };
    let Some(candidate) = context.reached.pick(context.reading, shown)? else { return Ok(None) };
    let counted = packets_of(context, key);
    let way = context.send(&candidate);
    debug_assert_eq!(packets_of(context, key), counted, "the engine has {key:?} match {}", candidate.packet);
    if packets_of(context, key) != counted {
        return Ok(None);
    }
    let class = way.leaf_class().map_or_else(|| "no class".to_owned(), |class| class.to_string());
    let went = format!("{class}, with mark {}", way.mark);
    let rest = context.rest_of_rules(step, key);
    // A rule that a line makes has the place that the line gives it.
    let what = match step.words.iter().any(|word| word.literal) {
        _ if rest => "keep the rest of the line, and leave out what the others take",
        true => "put it before them, or remove it",
        false => "leave it out: others take all of it before",
    };
    let wanted = match context.rule(key).and_then(|rule| rule.target.as_ref()) {
        Some(NetfilterTarget::Mark { value, .. }) => format!("it never gets mark {value} here"),
        Some(NetfilterTarget::Classify(class)) => format!("it leads nothing to {class}"),
        _ => "what it says never happens".to_owned(),
    };
    Ok(Some(Finding {
        rule: Rule::Unreachable,
        level: Level::Warning,
        place: step.place.clone(),
        what: format!(
            "no packet reaches {}{}: {} before it take{} all that it would match",
            if rest { "a part of this line" } else { "this rule" },
            context.which(step),
            named(&lines),
            plural(&lines)
        ),
        because: if rest { format!("{wanted}; the rest of this line does get packets") } else { wanted },
        witness: witness(&candidate, &went),
        fix: Some(Fix { what: what.into(), edits: Vec::new() }),
    }))
}

/// How many packets the engine had a rule match.
fn packets_of(context: &mut RuleContext<'_>, key: &RuleKey) -> Option<u64> {
    let tables = context.prober.gateway().all_tables();
    let table = tables.iter().find(|t| t.family() == key.family && t.name() == key.table)?;
    let chain = table.chains().iter().find(|chain| chain.name == key.chain)?;
    chain.rules.get(key.at).map(|counted| counted.packets)
}
