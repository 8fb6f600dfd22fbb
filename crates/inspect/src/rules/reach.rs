//! R1: filters and rules that no packet reaches, because those before them take all they ask for.

use super::{capped, collisions, defaults, edit, idle, intent, leaf, marks, parts, protocols, rewritten, today};
use crate::finding::{Edit, Finding, Fix, Level, Rule, Witness};
use crate::packet::{Packet, has_ports};
use crate::probe::{Course, Prober, Way};
use crate::reach::{Candidate, Reached};
use crate::reading::{Place, Reading, Step};
use crate::sets::bdd::TooLarge;
use crate::walk::tree::{FilterSeen, Parts};
use crate::walk::ways::{asks_connections, undecided};
use crate::walk::{RuleKey, RuleSeen};
use crate::words::{self, named};
use std::collections::BTreeSet;
use tidegate_gateway::Route;
use tidegate_packet::Handle;
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::netfilter::{Family, Target};
use tidegate_policy::{Classes, FilterParams, Op};

/// Rules of netfilter that are looked into; what has more is a list of addresses, not a policy.
const MOST_RULES: usize = 4000;
/// Filters, and rules, that no packet reaches and whose culprits are looked for: each is compared with all before it.
const MOST_DEAD: usize = 200;
/// Packets that are tried for one sentence, where sets are wider than the truth.
const MOST_TRIED: usize = 12;

/// What the rules about classification work with.
pub(super) struct Asking<'a> {
    pub(super) reading: &'a Reading,
    pub(super) reached: Reached,
    pub(super) prober: Prober,
    /// Nothing hangs on connections, so that a packet alone decides where it goes.
    plain: bool,
    /// The one device that is asked about; `None`: all.
    pub(super) only: Option<String>,
    /// Leaf classes that no packet comes to.
    pub(super) idle: BTreeSet<(String, Handle)>,
}

/// Rules of one kind; what cannot be decided is no finding.
pub(super) type Checks = fn(&mut Asking<'_>) -> Result<Vec<Finding>, TooLarge>;

/// Those that ask the engine and the words alone.
const WITHOUT_SETS: [Checks; 4] = [intent::check, protocols::check, collisions::check, today::check];
/// Those that ask what comes to the filters and classes of a device.
const BY_DEVICE: [Checks; 7] =
    [filters, marks::unset, leaf::check, defaults::check, capped::check, idle::check, rewritten::addresses];
/// All of them, with those that ask what comes to netfilter's rules, whatever device it leaves by.
const ALL: [Checks; 14] = [
    filters,
    rules,
    intent::check,
    protocols::check,
    marks::unset,
    marks::check,
    leaf::check,
    defaults::check,
    capped::check,
    idle::check,
    collisions::check,
    today::check,
    rewritten::addresses,
    rewritten::late,
];

/// What is found about which packets go where. Of a policy too large to decide, whatever part can be decided.
pub(super) fn check(reading: &mut Reading) -> Vec<Finding> {
    let chains = reading.gateway.all_tables().iter().flat_map(|table| table.chains());
    let count: usize = chains.map(|chain| chain.rules.len()).sum();
    let asked = questions(reading, count);
    let reached = if count <= MOST_RULES { Reached::of(reading) } else { None };
    let whole = reached.is_some();
    let Some(reached) = reached.or_else(|| Reached::nothing(reading)) else {
        return vec![not_decided(format!("the sets of packets that {asked} ask for are too intricate"))];
    };
    let plain = !asks_connections(reading);
    let whole_policy = &*reading;
    let mut asking = Asking {
        prober: Prober::new(whole_policy),
        reading: whole_policy,
        reached,
        plain,
        only: None,
        idle: BTreeSet::new(),
    };
    let found = asking.all(whole, count, &asked);
    reading.idle = asking.idle;
    found
}

impl Asking<'_> {
    /// What all rules find; of a policy that is not decided as a whole, those that need no whole.
    fn all(&mut self, whole: bool, count: usize, asked: &str) -> Vec<Finding> {
        if whole {
            let (mut found, silent) = self.ask(&ALL);
            if silent > 0 {
                let of = ALL.len();
                found.push(not_decided(format!(
                    "{silent} of {of} kinds of questions about {asked} are too intricate; the others were answered"
                )));
            }
            return found;
        }
        let (mut found, _) = self.ask(&WITHOUT_SETS);
        if count > MOST_RULES {
            found.push(not_decided(format!(
                "there are {count} rules, more than {MOST_RULES}; what does not hang on it was answered"
            )));
            return found;
        }
        found.extend(parts::check(self, &BY_DEVICE, asked));
        found
    }
}

/// What questions are about, in words: so many filters and rules.
fn questions(reading: &Reading, rules: usize) -> String {
    let is_filter = |dump: &&FilterDump| matches!(dump.entry, FilterEntry::Filter { .. });
    let filters = reading.filters.iter().filter(is_filter).count();
    match (filters, rules) {
        (_, 0) => format!("{filters} filters"),
        (0, _) => format!("{rules} rules"),
        _ => format!("{filters} filters and {rules} rules"),
    }
}

pub(super) fn not_decided(because: String) -> Finding {
    Finding {
        rule: Rule::Undecided,
        level: Level::Note,
        place: None,
        what: "which packets go where was not decided".into(),
        because,
        witness: None,
        fix: None,
    }
}

impl<'a> Asking<'a> {
    /// What some kinds of rules find, and how many of them could not decide.
    pub(super) fn ask(&mut self, families: &[Checks]) -> (Vec<Finding>, usize) {
        // A family that cannot be decided says nothing; the others do.
        let came: Vec<Result<Vec<Finding>, TooLarge>> = families.iter().map(|family| family(self)).collect();
        let silent = came.iter().filter(|came| came.is_err()).count();
        (came.into_iter().flatten().flatten().collect(), silent)
    }

    /// Is nothing known of what comes to a device's filters and classes? A device that is down drops all, and that is told.
    pub(super) fn leaves_out(&self, device: &str) -> bool {
        let is_down = self.reading.down.iter().any(|down| down == device);
        is_down || self.only.as_ref().is_some_and(|only| only != device) || undecided(self.reading, device)
    }

    /// Sends a candidate through the engine.
    pub(super) fn send(&mut self, candidate: &Candidate) -> Way {
        self.prober.travel(&candidate.packet, candidate.course)
    }

    /// A packet by a device, routed or the machine's own, as the engine has it.
    pub(super) fn send_by(&mut self, packet: &Packet, device: &str, route: Route) -> Option<Way> {
        let device = self.prober.device(device)?;
        Some(self.prober.travel(packet, Course::Leaves(device, route)))
    }

    /// The engine has the last word. Where it contradicts a set one of the two is wrong; but where connections matter, the packets before
    /// may not have made this one's what the set wants, and where a filter's answer is not known, sets are wider than the truth.
    pub(super) fn confirmed(&self, agreed: bool, candidate: &Candidate, wanted: &str) {
        let exact = self.plain && self.reached.walked.seen.guessed.is_empty();
        debug_assert!(agreed || !exact, "the engine does not have {} {wanted}", candidate.packet);
    }

    /// A packet of some sets of which the engine says the same. Where sets are wider than the truth, others are tried: of
    /// another port, of another protocol.
    pub(super) fn agreed(
        &mut self,
        parts: &Parts,
        wanted: &str,
        mut is_so: impl FnMut(&Way) -> bool,
    ) -> Result<Option<(Candidate, Way)>, TooLarge> {
        let (mut left, mut tried) = (parts.clone(), BTreeSet::new());
        for _ in 0..MOST_TRIED {
            let Some(candidate) = self.reached.pick(self.reading, &left)? else { return Ok(None) };
            let way = self.send(&candidate);
            let agreed = is_so(&way);
            // One that was lost before shows nothing.
            self.confirmed(agreed || way.dropped.is_some(), &candidate, wanted);
            if agreed {
                return Ok(Some((candidate, way)));
            }
            let packet = &candidate.packet;
            let known = !tried.insert((packet.ethertype, packet.protocol));
            let port = (!known && has_ports(packet.protocol)).then_some(packet.ports.1);
            left = self.reached.without(&left, packet, port)?;
        }
        Ok(None)
    }

    /// How often the engine had a filter match.
    pub(super) fn hits(&mut self, dump: &FilterDump) -> Option<u64> {
        hits_in(&self.list(dump), dump)
    }

    /// The list that a filter stands in, with what the engine counted.
    pub(super) fn list(&mut self, dump: &FilterDump) -> Vec<FilterDump> {
        let Some(device) = self.prober.device(&dump.dev) else { return Vec::new() };
        let now = self.prober.now();
        self.prober.gateway().filters(now, device, dump.parent).unwrap_or_default()
    }

    /// The command that made a filter.
    pub(super) fn step_of_filter(&self, at: usize) -> Option<&'a Step> {
        let reading = self.reading;
        reading.step_of(reading.maker_of_filter(&reading.filters[at])?)
    }

    /// The command that made a rule.
    pub(super) fn step_of_rule(&self, key: &RuleKey) -> Option<&'a Step> {
        let reading = self.reading;
        let rule = self.rule(key)?;
        let made = reading.ops.iter().rposition(|op| match op {
            Op::Netfilter(op) => op.family == key.family && op.table == key.table && op.command.rule() == Some(rule),
            _ => false,
        });
        reading.step_of(made?)
    }

    pub(super) fn rule(&self, key: &RuleKey) -> Option<&'a tidegate_policy::netfilter::Rule> {
        crate::reach::rule_of(self.reading, key)
    }

    /// A place in words: `line 7`, with the file where there are several.
    pub(super) fn line(&self, step: &Step) -> String {
        match self.reading.line(step) {
            Some(line) => format!("{line}{}", self.which(step)),
            None => format!("`{}`", step.text()),
        }
    }

    /// Where a line does several things, which of them: what a command asks for.
    pub(super) fn which(&self, step: &Step) -> String {
        // No one wrote the commands of a short policy.
        if self.is_alone(step) || self.reading.is_compiled() {
            return String::new();
        }
        let from = step.words.iter().position(|word| matches!(word.text.as_str(), "match" | "handle" | "-A" | "-I"));
        let words = step.words.get(from.unwrap_or(0)..).unwrap_or(&[]).iter().map(|word| word.text.as_str());
        format!(" (`{}`)", words.collect::<Vec<_>>().join(" "))
    }

    /// ` on eth0`, where the reader's own words do not say which device is meant: who wrote a short policy wrote no commands.
    pub(super) fn on(&self, device: &str) -> String {
        if self.reading.is_compiled() { format!(" on {device}") } else { String::new() }
    }

    /// Does another filter that a line of a short policy came to on a device get packets?
    fn rest_of_line(&self, step: &Step, device: &str, at: usize) -> bool {
        let gets = |other: &usize| {
            self.reached.walked.seen.filters.get(other).is_some_and(|seen| !seen.matched.is_empty())
                && self.reading.filters[*other].dev == device
                && self.step_of_filter(*other).is_some_and(|other| other.place == step.place)
        };
        self.reading.is_compiled()
            && step.place.is_some()
            && (0..self.reading.filters.len()).any(|other| other != at && gets(&other))
    }

    /// The same of rules.
    fn rest_of_rules(&self, step: &Step, key: &RuleKey) -> bool {
        let mut others = self.reached.walked.rules.iter().filter(|(other, seen)| *other != key && !seen.met.is_empty());
        self.reading.is_compiled()
            && step.place.is_some()
            && others.any(|(other, _)| self.step_of_rule(other).is_some_and(|other| other.place == step.place))
    }

    /// Does a line do nothing but this one command? Then it may be changed for its sake.
    pub(super) fn is_alone(&self, step: &Step) -> bool {
        let same = |other: &&Step| {
            let line = |step: &Step| step.place.as_ref().map(|place| (place.file, place.line));
            line(other).is_some() && line(other) == line(step)
        };
        step.place.is_some() && self.reading.steps.iter().filter(same).count() == 1
    }

    /// Where a packet waits in the tree of a device, in words.
    pub(super) fn went(&mut self, way: &Way, device: &str) -> String {
        if let Some(loss) = way.dropped {
            return format!("no class: {}", words::dropped(loss.why));
        }
        let stop = self.prober.device(device).and_then(|id| way.stop_at(id)).or(way.stops.last());
        // The one class of a bucket is no name that anybody gave.
        let reading = self.reading;
        let is_named = |class: &&Handle| {
            let kind = reading.class(device, **class).map(|dump| dump.kind.classes());
            !matches!(kind, Some(Classes::One))
        };
        match stop.and_then(|stop| stop.classes.iter().rev().find(is_named)) {
            Some(class) => class.to_string(),
            None => "no class at all".to_owned(),
        }
    }
}

/// How often a filter of a list matched.
pub(super) fn hits_in(list: &[FilterDump], dump: &FilterDump) -> Option<u64> {
    let FilterEntry::Filter { handle, params: FilterParams::U32(wanted), .. } = &dump.entry else { return None };
    list.iter().find_map(|found| match &found.entry {
        FilterEntry::Filter { handle: one, params: FilterParams::U32(params), hits: Some(hits), .. }
            if one == handle && params.table == wanted.table && found.pref == dump.pref =>
        {
            Some(hits.matched)
        }
        _ => None,
    })
}

/// A witness that the engine has confirmed.
pub(super) fn witness(candidate: &Candidate, went: &str) -> Option<Witness> {
    Some(Witness::Packet { packet: candidate.packet.to_string(), went: went.to_owned() })
}

/// The class that a filter leads to.
pub(super) fn classid(dump: &FilterDump) -> Option<Handle> {
    let FilterEntry::Filter { params, .. } = &dump.entry else { return None };
    params.classid()
}

/// Filters that get none of the packets they ask for.
fn filters(asking: &mut Asking<'_>) -> Result<Vec<Finding>, TooLarge> {
    let (mut found, mut dead) = (Vec::new(), 0);
    let lists: Vec<(String, Vec<usize>)> = asking
        .reached
        .walked
        .lists
        .iter()
        .map(|(place, list)| (place.0.clone(), list.prefs.iter().flat_map(|pref| pref.filters.clone()).collect()))
        .collect();
    for (device, filters) in lists {
        if asking.leaves_out(&device) {
            continue;
        }
        for (at, earlier) in filters.iter().zip(0..).map(|(at, n)| (*at, &filters[..n])) {
            let Some(seen) = asking.reached.walked.seen.filters.get(&at).cloned() else { continue };
            if seen.matched.is_empty() && !seen.asked.is_empty() {
                dead += 1;
                if dead <= MOST_DEAD {
                    found.extend(dead_filter(asking, at, &seen, earlier)?);
                }
            }
        }
    }
    found.extend(not_looked_into(dead, "filters"));
    Ok(found)
}

/// What is said where there are more than are looked into.
fn not_looked_into(dead: usize, what: &str) -> Option<Finding> {
    let more = dead.checked_sub(MOST_DEAD).filter(|more| *more > 0)?;
    Some(Finding {
        what: format!("{more} {what} seem to get no packets, and were not looked into"),
        ..not_decided(format!("{MOST_DEAD} others are looked into, which is the most of one check"))
    })
}

fn dead_filter(
    asking: &mut Asking<'_>,
    at: usize,
    seen: &FilterSeen,
    earlier: &[usize],
) -> Result<Option<Finding>, TooLarge> {
    let reading = asking.reading;
    let dump = &reading.filters[at];
    let mut takers = Vec::new();
    let (mut all_keep_some, mut any_keeps_some) = (true, false);
    for before in earlier {
        let Some(other) = asking.reached.walked.seen.filters.get(before).cloned() else { continue };
        let (shared, kept) = overlap(asking, &other.matched, &seen.asked)?;
        if shared {
            takers.push(*before);
            all_keep_some &= kept;
            any_keeps_some |= kept;
        }
    }
    // Rules that mark every packet leave the filters by header behind them idle on purpose: those are for when the rules are not there.
    let by_mark = takers.iter().any(|taker| reading.filters[*taker].kind == "fw");
    if by_mark && dump.kind != "fw" {
        return Ok(None);
    }
    let Some(step) = asking.step_of_filter(at) else { return Ok(None) };
    let mut lines: Vec<String> = Vec::new();
    for taker in &takers {
        let Some(line) = asking.step_of_filter(*taker).map(|step| asking.line(step)) else { continue };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let own = classid(dump);
    let same = own.is_some() && takers.iter().all(|taker| classid(&reading.filters[*taker]) == own);
    let Some(candidate) = asking.reached.pick(reading, &seen.asked)? else { return Ok(None) };
    let before = asking.hits(dump);
    let way = asking.send(&candidate);
    let untouched = asking.hits(dump) == before;
    let went = asking.went(&way, &dump.dev);
    let elsewhere = own.is_none_or(|own| went != own.to_string());
    let hashed = takers.iter().any(|taker| reading.filters[*taker].kind == "flow");
    debug_assert!(untouched, "the engine has filter {at} match {}, which others are said to take", candidate.packet);
    if !untouched || !same && !elsewhere && !hashed {
        return Ok(None);
    }
    let to = own.map_or_else(|| "where it leads".to_owned(), |own| own.to_string());
    // What these ask for is wider here than in truth: the packet may be none of theirs.
    let is_exact = !matches!(dump.kind, "basic" | "flower");
    let (level, because) = if same {
        (Level::Note, format!("the packets it asks for go to {to} all the same"))
    } else if hashed {
        (Level::Warning, format!("what it asks for goes where a hash says, not to {to}"))
    } else if is_exact || takers.len() == 1 {
        (Level::Warning, format!("what it asks for goes to {went}, not to {to}"))
    } else {
        (Level::Warning, format!("what it asks for goes where those lead, not to {to}"))
    };
    let first = takers.iter().map(|taker| reading.filters[*taker].pref).min();
    let by_hand = |what: &str| Some(Fix { what: what.into(), edits: Vec::new() });
    let rest = asking.rest_of_line(step, &dump.dev, at);
    let because = match rest {
        true => format!("{because}; the rest of this line does get packets"),
        false => because,
    };
    let fix = match (same, all_keep_some, first) {
        _ if rest => by_hand("keep the rest of the line, and leave out what the other takes"),
        (false, true, Some(first)) => move_before(asking, at, step, first),
        (true, ..) => remove(asking, step),
        _ if hashed => remove(asking, step),
        // Which of them is meant only its author knows.
        _ if any_keeps_some => by_hand("some of them ask for nothing else: put it before the others, or remove it"),
        _ => by_hand("they ask for no more than it does: keep those that are meant, and remove the others"),
    };
    Ok(Some(Finding {
        rule: Rule::Unreachable,
        level,
        place: step.place.clone(),
        what: format!(
            "no packet reaches {}{}{}: {} before it take{} all it asks for",
            if rest { "a part of this line" } else { "this filter" },
            asking.on(&dump.dev),
            asking.which(step),
            named(&lines),
            plural(&lines)
        ),
        because,
        witness: if is_exact { witness(&candidate, &went) } else { None },
        fix,
    }))
}

fn plural(lines: &[String]) -> &'static str {
    if lines.len() == 1 { "s" } else { "" }
}

/// Have two sets packets in common, by any way? And has the first some that the second has not?
fn overlap(asking: &mut Asking<'_>, taken: &Parts, asked: &Parts) -> Result<(bool, bool), TooLarge> {
    let (mut shared, mut kept) = (false, false);
    for (way, set) in &taken.0 {
        let store = &mut asking.reached.walked.space.store;
        shared |= !store.and(*set, asked.by(*way))?.is_empty();
        kept |= !store.minus(*set, asked.by(*way))?.is_empty();
    }
    Ok((shared, kept))
}

/// Adds what two sets have in common.
fn in_common(asking: &mut Asking<'_>, taken: &Parts, asked: &Parts, into: &mut Parts) -> Result<(), TooLarge> {
    for (way, set) in &taken.0 {
        let space = &mut asking.reached.walked.space;
        let both = space.store.and(*set, asked.by(*way))?;
        into.add(space, *way, both)?;
    }
    Ok(())
}

/// A filter is asked earlier with a lower preference; one that no other filter of the list has.
fn move_before(asking: &Asking<'_>, at: usize, step: &Step, first: u16) -> Option<Fix> {
    let reading = asking.reading;
    let dump = &reading.filters[at];
    let by_hand = || Some(Fix { what: "put it before what takes its packets".into(), edits: Vec::new() });
    let Some(lower) = first.checked_sub(1).filter(|pref| *pref > 0) else { return by_hand() };
    let taken = reading.filters.iter().any(|other| {
        other.dev == dump.dev
            && other.parent == dump.parent
            && other.pref == lower
            && (other.kind != dump.kind || other.protocol != dump.protocol)
    });
    let keyword = ["prio", "pref", "priority"].into_iter().find(|keyword| step.after(keyword).is_some());
    match keyword {
        Some(keyword) if !taken && asking.is_alone(step) && step.after(keyword).is_some_and(|word| word.literal) => {
            edit(step, keyword, &lower.to_string(), "have it asked before them")
        }
        _ => by_hand(),
    }
}

/// The line is taken out, where it does nothing else and its words stand there letter by letter.
pub(super) fn remove(asking: &Asking<'_>, step: &Step) -> Option<Fix> {
    let written = step.words.iter().any(|word| word.literal);
    let place = step.place.clone().filter(|_| written && asking.is_alone(step));
    let whole = |place: Place| Edit { place: Place { columns: (0, 0), ..place }, text: String::new() };
    let edits: Vec<Edit> = place.map(whole).into_iter().collect();
    let what = match (edits.is_empty(), written) {
        (false, _) => "remove the line".to_owned(),
        (true, true) => "remove it (by hand: its line does more than this)".to_owned(),
        (true, false) => {
            "remove it (by hand: its words come from variables, substitutions, or a line that is used more than once)"
                .to_owned()
        }
    };
    Some(Fix { what, edits })
}

/// Rules of netfilter that none of the packets in their chain reaches which they ask for.
fn rules(asking: &mut Asking<'_>) -> Result<Vec<Finding>, TooLarge> {
    let known: Vec<(RuleKey, RuleSeen)> =
        asking.reached.walked.rules.iter().map(|(key, seen)| (key.clone(), seen.clone())).collect();
    let (mut found, mut dead) = (Vec::new(), 0);
    for (key, seen) in &known {
        if marks_packets(key) && !seen.asked.is_empty() && seen.met.is_empty() {
            dead += 1;
            if dead > MOST_DEAD {
                continue;
            }
            let earlier = known.iter().filter(|(other, _)| same_chain(other, key) && other.at < key.at);
            let earlier: Vec<&(RuleKey, RuleSeen)> = earlier.collect();
            found.extend(dead_rule(asking, key, seen, &earlier)?);
        }
    }
    found.extend(not_looked_into(dead, "rules"));
    Ok(found)
}

/// The firewall's own rules are not a matter of traffic control.
fn marks_packets(key: &RuleKey) -> bool {
    key.family == Family::Inet || !matches!(key.table.as_str(), "filter" | "nat" | "security")
}

pub(super) fn same_chain(one: &RuleKey, other: &RuleKey) -> bool {
    (one.family, &one.table, &one.chain) == (other.family, &other.table, &other.chain)
}

fn dead_rule(
    asking: &mut Asking<'_>,
    key: &RuleKey,
    seen: &RuleSeen,
    earlier: &[&(RuleKey, RuleSeen)],
) -> Result<Option<Finding>, TooLarge> {
    let Some(step) = asking.step_of_rule(key) else { return Ok(None) };
    let mut lines: Vec<String> = Vec::new();
    let mut taken_here = Parts::default();
    for (other, taken) in earlier {
        if !overlap(asking, &taken.left, &seen.asked)?.0 {
            continue;
        }
        let returns = asking.rule(other).is_some_and(|rule| matches!(rule.target, Some(Target::Return)));
        // Of a short policy's chains, who wrote it knows the classes, not the ends.
        if returns && asking.reading.is_compiled() {
            continue;
        }
        if let Some(line) =
            asking.step_of_rule(other).map(|step| asking.line(step)).filter(|line| !lines.contains(line))
        {
            lines.push(line);
        }
        if !returns {
            in_common(asking, &taken.left, &seen.asked, &mut taken_here)?;
        }
    }
    // Rather a packet that another rule takes than one that the chain is not for.
    let shown = if taken_here.is_empty() { &seen.asked } else { &taken_here };
    let Some(candidate) = asking.reached.pick(asking.reading, shown)? else { return Ok(None) };
    let counted = packets_of(asking, key);
    let way = asking.send(&candidate);
    debug_assert_eq!(packets_of(asking, key), counted, "the engine has {key:?} match {}", candidate.packet);
    if packets_of(asking, key) != counted {
        return Ok(None);
    }
    let class = way.leaf_class().map_or_else(|| "no class".to_owned(), |class| class.to_string());
    let went = format!("{class}, with mark {}", way.mark);
    let rest = asking.rest_of_rules(step, key);
    // A rule that a line makes has the place that the line gives it.
    let what = match step.words.iter().any(|word| word.literal) {
        _ if rest => "keep the rest of the line, and leave out what the others take",
        true => "put it before them, or remove it",
        false => "leave it out: others take all of it before",
    };
    let wanted = match asking.rule(key).and_then(|rule| rule.target.as_ref()) {
        Some(Target::Mark { value, .. }) => format!("it never gets mark {value} here"),
        Some(Target::Classify(class)) => format!("it leads nothing to {class}"),
        _ => "what it says never happens".to_owned(),
    };
    Ok(Some(Finding {
        rule: Rule::Unreachable,
        level: Level::Warning,
        place: step.place.clone(),
        what: format!(
            "no packet reaches {}{}: {} before it take{} all it asks for",
            if rest { "a part of this line" } else { "this rule" },
            asking.which(step),
            named(&lines),
            plural(&lines)
        ),
        because: if rest { format!("{wanted}; the rest of this line does get packets") } else { wanted },
        witness: witness(&candidate, &went),
        fix: Some(Fix { what: what.into(), edits: Vec::new() }),
    }))
}

/// How many packets the engine had a rule match.
fn packets_of(asking: &mut Asking<'_>, key: &RuleKey) -> Option<u64> {
    let tables = asking.prober.gateway().all_tables();
    let table = tables.iter().find(|t| t.family() == key.family && t.name() == key.table)?;
    let chain = table.chains().iter().find(|chain| chain.name == key.chain)?;
    chain.rules.get(key.at).map(|counted| counted.packets)
}
