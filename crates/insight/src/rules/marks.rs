//! R8 and R9: marks that are read and never set, set and never read, replaced, or lost with the first packet of a connection.

use super::reach::{Asking, named, same_chain, witness};
use crate::bdd::{Set, TooLarge};
use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::reach::Arrival;
use crate::reading::Step;
use crate::walk::{RuleKey, RuleSeen};
use crate::walk_tree::Parts;
use crate::walk_ways::{Way, conditions, reads_connmarks, rules, undecided};
use std::collections::BTreeSet;
use tidegate_packet::header::ethertype;
use tidegate_policy::FilterParams;
use tidegate_policy::dump::FilterEntry;
use tidegate_policy::netfilter::{Condition, Connmark, Connstate, Target};

/// The flow key that reads the mark, by its number.
const MARK_KEY: u32 = 7;
/// Marks that a sentence names at most.
const MOST_MARKS: usize = 8;

/// What is wrong with marks.
pub(super) fn check(asking: &mut Asking<'_>) -> Result<Vec<Finding>, TooLarge> {
    let mut found = never_set(asking)?;
    found.extend(never_read(asking)?);
    found.extend(replaced(asking)?);
    found.extend(connections(asking)?);
    Ok(found)
}

fn numbers(marks: &BTreeSet<u32>) -> String {
    let words: Vec<String> = marks.iter().take(MOST_MARKS).map(ToString::to_string).collect();
    let more = if marks.len() > MOST_MARKS { " and others" } else { "" };
    format!("{}{more}", words.join(", "))
}

/// Marks that packets of a set carry.
fn marks_of(asking: &mut Asking<'_>, parts: &Parts, within: Set) -> Result<BTreeSet<u32>, TooLarge> {
    let walked = &mut asking.reached.walked;
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
fn never_set(asking: &mut Asking<'_>) -> Result<Vec<Finding>, TooLarge> {
    let reading = asking.reading;
    let mut found = Vec::new();
    for (at, dump) in reading.filters.iter().enumerate() {
        let FilterEntry::Filter { handle, params: FilterParams::Fw(_), .. } = &dump.entry else { continue };
        let place = (dump.dev.clone(), dump.parent);
        let coming = asking.reached.list(&place);
        let seen = asking.reached.walked.seen.filters.get(&at).cloned().unwrap_or_default();
        if coming.is_empty() || !seen.asked.is_empty() || undecided(reading, &dump.dev) {
            continue;
        }
        let Some(step) = asking.step_of_filter(at) else { continue };
        let protocol = asking.reached.walked.space.protocol(dump.protocol)?;
        let here = marks_of(asking, &coming, protocol)?;
        let anywhere = marks_of(asking, &coming, Set::ALL)?;
        let nothing = anywhere.iter().all(|mark| *mark == 0);
        let other_family = anywhere.contains(handle) && dump.protocol == ethertype::IPV6;
        if sets(asking, *handle).is_some() && !other_family {
            // Some rule does, and comes to nothing: that is told of the rule.
            continue;
        }
        let because = match (nothing, other_family) {
            (true, _) => "nothing in these files sets any mark; something else must".to_owned(),
            (_, true) => "the rules that set it are for IPv4: ip6tables has its own".to_owned(),
            _ => format!("packets carry {} here", numbers(&here)),
        };
        found.push(Finding {
            rule: Rule::Marks,
            level: if nothing { Level::Note } else { Level::Warning },
            place: super::at_word(step, "handle"),
            what: format!("no packet carries mark {handle}: the filter never matches"),
            because,
            witness: Some(Witness::Number(format!("marks on {}: {}", dump.dev, numbers(&here)))),
            fix: None,
        });
    }
    Ok(found)
}

/// Marks that packets carry into a tree where nobody asks for them, though a class there gets none.
fn never_read(asking: &mut Asking<'_>) -> Result<Vec<Finding>, TooLarge> {
    let reading = asking.reading;
    let mut found = Vec::new();
    for (way, passing) in asking.reached.walked.arrived.clone() {
        let Way::Forwarded(device) = asking.reached.walked.ways[way].clone() else { continue };
        let Some(read) = marks_read(asking, &device) else { continue };
        let walked = &mut asking.reached.walked;
        let states = &walked.states;
        let carried = walked.space.store.split(passing.states, passing.set, &|n| states.get(n).mark)?;
        for (mark, set) in carried {
            let is_read = read.iter().any(|(value, mask)| mark & mask == *value);
            let asked = conditions(reading)
                .any(|what| matches!(what, Condition::Mark(value, mask) if *value != 0 && mark & mask == *value));
            if mark == 0 || is_read || asked {
                continue;
            }
            let Some(step) = sets(asking, mark) else { continue };
            let Some(candidate) = asking.reached.pick_by(reading, way, set)? else { continue };
            let sent = asking.send(&candidate);
            if sent.mark != mark {
                continue;
            }
            let went = asking.went(&sent, &device);
            // A mark for what goes to the default anyway is no mistake.
            let Some(idle) = idle_class(asking, &device) else { continue };
            found.push(Finding {
                rule: Rule::Marks,
                level: Level::Warning,
                place: step.place.clone(),
                what: format!("nothing reads mark {mark} on {device}"),
                because: format!("its packets wait in {went}, while nothing leads to class {idle}"),
                witness: witness(&candidate, &format!("{went}, with mark {mark}")),
                fix: Some(Fix {
                    what: format!("lead it there: tc filter add dev {device} … handle {mark} fw flowid {idle}"),
                    edits: Vec::new(),
                }),
            });
        }
    }
    Ok(found)
}

/// The marks that filters on a device ask for, each with its mask; `None`: none do, or all are read.
fn marks_read(asking: &Asking<'_>, device: &str) -> Option<Vec<(u32, u32)>> {
    let mut read = Vec::new();
    for dump in asking.reading.filters.iter().filter(|dump| dump.dev == device) {
        match &dump.entry {
            // Without entries the mark is the class's name.
            FilterEntry::Heading if dump.kind == "fw" => {
                let entries = asking.reading.filters.iter().any(|other| {
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
            FilterEntry::Filter { params: FilterParams::Flow(flow), .. } if flow.keys.has(MARK_KEY) => return None,
            _ => {}
        }
    }
    (!read.is_empty()).then_some(read)
}

/// The command that sets a mark, on packets or on connections.
fn sets<'a>(asking: &Asking<'a>, mark: u32) -> Option<&'a Step> {
    let known: Vec<RuleKey> = asking.reached.walked.rules.keys().cloned().collect();
    let key = known.into_iter().find(|key| {
        let targets = asking.rule(key).into_iter().flat_map(|rule| rule.targets());
        targets.into_iter().any(|target| match target {
            Target::Mark { value, .. } | Target::Connmark(Connmark::Set { value, .. }) => *value == mark,
            _ => false,
        })
    })?;
    asking.step_of_rule(&key)
}

/// A leaf class that nothing comes to.
fn idle_class(asking: &mut Asking<'_>, device: &str) -> Option<String> {
    let classes = asking.reached.walked.classes.get(device)?.clone();
    let leaves = classes.into_iter().filter(|(_, leaf)| *leaf).map(|(class, _)| class);
    let reading = asking.reading;
    let mut idle = leaves.filter(|class| {
        let counts =
            reading.classes.iter().any(|dump| dump.classid == *class && dump.kind == tidegate_policy::Kind::Htb);
        counts && asking.reached.class(reading, device, *class) == Arrival::Nobody
    });
    idle.next().map(|class| class.to_string())
}

/// Rules that set a mark which later rules replace on every packet.
fn replaced(asking: &mut Asking<'_>) -> Result<Vec<Finding>, TooLarge> {
    let known: Vec<(RuleKey, RuleSeen)> =
        asking.reached.walked.rules.iter().map(|(key, seen)| (key.clone(), seen.clone())).collect();
    let mut found = Vec::new();
    for (key, seen) in &known {
        let Some(Target::Mark { value, mask }) = asking.rule(key).and_then(|rule| rule.targets().last()) else {
            continue;
        };
        let (value, mask) = (*value, *mask);
        if value & mask == 0 || seen.matched.is_empty() {
            continue;
        }
        let (arrive, keep) = arriving(asking, &seen.matched, value & mask, mask)?;
        if arrive.is_empty() || keep {
            continue;
        }
        found.extend(overwritten(asking, (key, seen), &arrive, &known, value)?);
    }
    Ok(found)
}

/// Packets that a rule matched and that come to a device's tree; and whether any still carries its mark there.
fn arriving(asking: &mut Asking<'_>, matched: &Parts, value: u32, mask: u32) -> Result<(Parts, bool), TooLarge> {
    let restores = reads_connmarks(asking.reading);
    let walked = &mut asking.reached.walked;
    let (mut arrive, mut keep) = (Parts::default(), false);
    for (way, passing) in walked.arrived.clone() {
        let mut set = matched.by(way);
        if matches!(walked.ways[way], Way::Forwarded(_)) {
            // Before routing a packet is on no device's way yet.
            let early =
                walked.ways.iter().position(|way| *way == Way::ComesIn).map_or(Set::NONE, |way| matched.by(way));
            set = walked.space.store.or(set, early)?;
        }
        let mut set = walked.space.store.and(set, passing.set)?;
        if restores {
            // What belongs to no connection has nothing restored, and is next to nothing.
            set = walked.space.store.and(set, walked.space.connected())?;
        }
        let states = &walked.states;
        let kept = walked.space.store.select(passing.states, set, &mut |n| states.get(n).mark & mask == value)?;
        keep |= !kept.is_empty();
        arrive.add(&mut walked.space, way, set)?;
    }
    Ok((arrive, keep))
}

fn overwritten(
    asking: &mut Asking<'_>,
    (key, seen): (&RuleKey, &RuleSeen),
    arrive: &Parts,
    known: &[(RuleKey, RuleSeen)],
    value: u32,
) -> Result<Option<Finding>, TooLarge> {
    let Some(step) = asking.step_of_rule(key) else { return Ok(None) };
    let (mut lines, mut restored) = (Vec::new(), false);
    for (other, taken) in
        known.iter().filter(|(other, _)| other != key && (!same_chain(other, key) || other.at > key.at))
    {
        let writes = asking.rule(other).into_iter().flat_map(|rule| rule.targets()).find_map(|target| match target {
            Target::Mark { .. } => Some(false),
            Target::Connmark(Connmark::Restore { .. }) => Some(true),
            _ => None,
        });
        let Some(restores) = writes else { continue };
        let mut shared = false;
        for (way, set) in &taken.matched.0 {
            shared |= !asking.reached.walked.space.store.and(*set, seen.matched.by(*way))?.is_empty();
            shared |= !asking.reached.walked.space.store.and(*set, arrive.by(*way))?.is_empty();
        }
        if shared {
            restored |= restores;
            lines.extend(asking.step_of_rule(other).map(|step| asking.line(step)));
        }
    }
    let Some(candidate) = asking.reached.pick(asking.reading, arrive)? else { return Ok(None) };
    let way = asking.send(&candidate);
    asking.confirmed(way.mark != value, &candidate, "without its mark");
    if way.mark == value || lines.is_empty() {
        return Ok(None);
    }
    lines.dedup();
    Ok(Some(Finding {
        rule: if restored { Rule::Connmark } else { Rule::Marks },
        level: Level::Warning,
        place: super::at_word(step, "--set-mark"),
        what: format!(
            "mark {value} is gone again before any queue: {} write{} another over it",
            named(&lines),
            if lines.len() == 1 { "s" } else { "" }
        ),
        because: match restored {
            true => "the mark of the connection is restored over it: of marks, the last written counts".to_owned(),
            false => {
                "every packet that this rule matches goes on to them: a rule that sets a mark does not end the chain"
                    .to_owned()
            }
        },
        witness: witness(&candidate, &format!("mark {}", way.mark)),
        fix: Some(Fix { what: "put it behind them, or have them ask `-m mark --mark 0`".into(), edits: Vec::new() }),
    }))
}

/// Marks of connections that are set and never looked at, or looked at and never set.
fn connections(asking: &mut Asking<'_>) -> Result<Vec<Finding>, TooLarge> {
    let known: Vec<(RuleKey, RuleSeen)> =
        asking.reached.walked.rules.iter().map(|(key, seen)| (key.clone(), seen.clone())).collect();
    let writes = |target: &Target| matches!(target, Target::Connmark(Connmark::Set { .. } | Connmark::Save { .. }));
    let written = rules(asking.reading).any(|rule| rule.targets().any(writes));
    let mut found = Vec::new();
    for (key, seen) in &known {
        let targets = asking.rule(key).into_iter().flat_map(|rule| rule.targets());
        for target in targets {
            match target {
                Target::Connmark(Connmark::Set { value, .. }) if !reads_connmarks(asking.reading) => {
                    found.extend(not_restored(asking, key, seen, *value)?);
                }
                Target::Connmark(Connmark::Restore { .. }) if !written => found.extend(nothing_kept(asking, key)),
                _ => {}
            }
        }
    }
    Ok(found)
}

fn not_restored(
    asking: &mut Asking<'_>,
    key: &RuleKey,
    seen: &RuleSeen,
    mark: u32,
) -> Result<Option<Finding>, TooLarge> {
    let Some(step) = asking.step_of_rule(key) else { return Ok(None) };
    let Some(mut candidate) = asking.reached.pick(asking.reading, &seen.matched)? else { return Ok(None) };
    candidate.packet.state = Some(Connstate::Established);
    let way = asking.send(&candidate);
    if way.mark == mark {
        return Ok(None);
    }
    Ok(Some(Finding {
        rule: Rule::Connmark,
        level: Level::Warning,
        place: super::at_word(step, "--set-mark"),
        what: format!("connections get mark {mark}, and no rule restores it to their packets"),
        because: "filters see the mark of the packet, which stays as it was".into(),
        witness: witness(&candidate, &format!("mark {}", way.mark)),
        fix: Some(Fix {
            what: format!("add `-A {} -j CONNMARK --restore-mark` behind it", key.chain),
            edits: Vec::new(),
        }),
    }))
}

fn nothing_kept(asking: &Asking<'_>, key: &RuleKey) -> Option<Finding> {
    let step = asking.step_of_rule(key)?;
    Some(Finding {
        rule: Rule::Connmark,
        level: Level::Note,
        place: super::at_word(step, "-j"),
        what: "the mark of the connection is restored, and no rule sets any".into(),
        because: "unless something else does, it is always 0 and takes away the mark a packet has".into(),
        witness: None,
        fix: None,
    })
}
