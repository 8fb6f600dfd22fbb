//! All packets at once through the filters of one qdisc or class: which each of them matches, gets, and where
//! they go.

use crate::sets::bdd::{Map, Set, TooLarge};
use crate::sets::field::View;
use crate::sets::flower::Sure;
use crate::sets::set::Space;
use crate::walk::outcome::{Outcome, Verdict, Write};
use crate::walk::state::{Passing, States};
use crate::walk::u32::U32Tables;
use std::collections::BTreeMap;
use tidegate_packet::Handle;
use tidegate_policy::dump::{ActionDump, FilterDump, FilterEntry};
use tidegate_policy::{FilterParams, FlowMode, FlowParams, FlowerField, FlowerParams};

/// Filters of one preference.
#[derive(Debug)]
pub(crate) struct Pref {
    pub(crate) protocol: u16,
    kind: &'static str,
    /// Their numbers in the reading, in the order in which they are evaluated.
    pub(crate) filters: Vec<usize>,
    /// The table of u32 in which the search begins.
    pub(super) table: u32,
    /// Of flower: which of two filters that compare different fields is evaluated first is not known.
    pub(super) unordered: bool,
}

/// The filters of one qdisc or class.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) prefs: Vec<Pref>,
}

/// What is known of a filter after packets were sent through its list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Met {
    /// Packets that came to its list and meet its conditions.
    pub(crate) eligible: Set,
    /// Those that it got.
    pub(crate) matched: Set,
    /// Both may be fewer: whether it matches is not known of some.
    pub(crate) open: bool,
}

/// Where the packets went that were sent through a list.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) filters: Vec<(usize, Met)>,
    pub(crate) verdicts: Vec<(Verdict, Set)>,
    /// What no filter matched.
    pub(crate) rest: Set,
    /// What is on the packets now.
    pub(crate) states: Map,
    /// A filter matched some whose verdict is not known: sets are wider than the truth from there on.
    pub(crate) guessed: bool,
    /// Packets that are in several of the sets above.
    pub(crate) unsure: Set,
}

impl List {
    /// The list of some filters, by their numbers.
    fn of(filters: &[FilterDump], of_list: &[usize], tables: &U32Tables, ordered: bool) -> List {
        let mut prefs: Vec<Pref> = Vec::new();
        for at in of_list {
            let dump = &filters[*at];
            if dump.chain != 0 {
                continue;
            }
            match &dump.entry {
                FilterEntry::Heading => prefs.push(Pref {
                    protocol: dump.protocol,
                    kind: dump.kind,
                    filters: Vec::new(),
                    table: 0,
                    unordered: false,
                }),
                // Its own is the first that a preference has, and listed last.
                FilterEntry::U32Table { table, .. } => {
                    prefs.last_mut().into_iter().for_each(|pref| pref.table = *table)
                }
                FilterEntry::Filter { .. } => {
                    prefs.last_mut().into_iter().for_each(|pref| pref.filters.push(*at))
                }
            }
        }
        for pref in &mut prefs {
            match (pref.kind, of_list.first()) {
                ("u32", Some(any)) => {
                    let dump = &filters[*any];
                    let mut order = tables.order(filters, &dump.dev, dump.parent, pref.table);
                    pref.filters.retain(|at| !order.contains(at));
                    order.append(&mut pref.filters);
                    pref.filters = order;
                }
                ("flower", _) => {
                    let compared = |at: &usize| flower(&filters[*at]).map(compared_fields);
                    let mut groups: Vec<_> = pref.filters.iter().map(compared).collect();
                    let grouped = |at: &usize| groups.iter().position(|group| *group == compared(at));
                    let mut order = pref.filters.clone();
                    order.sort_by_key(grouped);
                    groups.dedup();
                    pref.unordered = groups.len() > 1 && !ordered;
                    pref.filters = order;
                }
                _ => {}
            }
        }
        List { prefs }
    }
}

fn flower(dump: &FilterDump) -> Option<&FlowerParams> {
    match entry(dump)?.1 {
        FilterParams::Flower(flower) => Some(flower),
        _ => None,
    }
}

/// What a filter compares, whatever it compares it with: filters of one preference are evaluated in groups.
/// The second: the device that packets came in by, too.
fn compared_fields(flower: &FlowerParams) -> (Vec<(FlowerField, Option<u128>)>, bool) {
    let compared = flower.keys.iter().map(|key| (key.field, (!key.range).then_some(key.mask)));
    (compared.collect(), flower.indev.is_some())
}

/// How packets come to a list of filters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coming {
    /// What is on them.
    pub(crate) states: Map,
    /// What translation has changed of them.
    pub(crate) view: View,
    /// They came back from where actions had redirected them: actions are skipped.
    pub(crate) passed_over: bool,
    /// Those that have a connection which actions find.
    pub(crate) connections: Set,
    /// Those that may be elsewhere.
    pub(crate) unsure: Set,
}

impl Coming {
    /// Packets that come to their first list. `connections`: those that have one which actions find.
    pub(crate) fn from(passing: Passing, view: View, connections: Set) -> Coming {
        Coming { states: passing.states, view, passed_over: false, connections, unsure: Set::NONE }
    }
}

/// A walk through a list.
pub(crate) struct Lists<'a> {
    pub(crate) space: &'a mut Space,
    pub(crate) states: &'a mut States,
    pub(crate) filters: &'a [FilterDump],
    pub(crate) tables: &'a U32Tables,
    /// Sets by the bits of their marks under a mask, as far as they were needed.
    pub(crate) marked: BTreeMap<(Map, Set, u32), BTreeMap<u32, Set>>,
}

/// Packets in a list.
pub(super) struct Course {
    /// Those that are still in it.
    pub(super) live: Set,
    /// How they come to the next filter.
    pub(super) coming: Coming,
    /// What was written on those that are no longer in it.
    written: Vec<(Set, Vec<Write>)>,
    listed: Listed,
}

impl Lists<'_> {
    /// Sends packets through the filters of a qdisc with this handle.
    pub(crate) fn ask(
        &mut self,
        dev: &str,
        list: &List,
        qdisc: Handle,
        set: Set,
        coming: Coming,
    ) -> Result<Listed, TooLarge> {
        let mut course = Course {
            live: set,
            coming,
            written: Vec::new(),
            listed: Listed {
                filters: Vec::new(),
                verdicts: Vec::new(),
                rest: Set::NONE,
                states: coming.states,
                guessed: false,
                unsure: coming.unsure,
            },
        };
        for pref in &list.prefs {
            let protocol = self.space.protocol(pref.protocol)?;
            let among = self.space.store.and(set, protocol)?;
            match pref.kind {
                "fw" => self.fw(pref, qdisc, among, &mut course)?,
                "u32" => self.u32(dev, pref, qdisc, among, &mut course)?,
                "flower" => self.flower(pref, among, &mut course)?,
                _ => self.others(pref, among, &mut course)?,
            }
        }
        let Course { live, mut coming, written, mut listed } = course;
        for (set, writes) in written {
            coming.states = self.write(&writes, set, coming)?;
        }
        (listed.rest, listed.states) = (live, coming.states);
        Ok(listed)
    }

    /// fw: by the mark; without entries the mark is the class's name.
    fn fw(&mut self, pref: &Pref, qdisc: Handle, among: Set, course: &mut Course) -> Result<(), TooLarge> {
        let mask = pref.filters.first().and_then(|at| match entry(&self.filters[*at])?.1 {
            FilterParams::Fw(fw) => fw.mask,
            _ => None,
        });
        let mask = mask.unwrap_or(u32::MAX);
        let place = (course.coming.states, among, mask);
        if !self.marked.contains_key(&place) {
            let states = &*self.states;
            let parts =
                self.space.store.split(course.coming.states, among, &|n| states.get(n).mark & mask)?;
            self.marked.insert(place, parts);
        }
        if pref.filters.is_empty() {
            for (mark, set) in self.marked.get(&place).cloned().unwrap_or_default() {
                let class = Handle(mark);
                if mark != 0 && (class.major() == 0 || class.qdisc() == qdisc) {
                    let got = self.space.store.and(set, course.live)?;
                    course.live = self.space.store.minus(course.live, got)?;
                    course.listed.verdicts.push((Verdict::Class(class), got));
                }
            }
            return Ok(());
        }
        for at in &pref.filters {
            let Some((mark, FilterParams::Fw(fw), actions)) = entry(&self.filters[*at]) else { continue };
            let outcome = Outcome::of(
                actions,
                Verdict::Class(fw.classid.unwrap_or(Handle::NONE)),
                course.coming.passed_over,
            )?;
            let part = self.marked.get(&place).and_then(|parts| parts.get(&mark));
            let part = part.copied().unwrap_or(Set::NONE);
            let sets = match fw.indev {
                // Which packets came in by a device is not followed.
                Some(_) => Sure { sure: Set::NONE, maybe: part },
                None => Sure { sure: part, maybe: Set::NONE },
            };
            self.meet(*at, sets, outcome, course)?;
        }
        Ok(())
    }

    /// flower: the first that matches decides, and ends the search in its preference whatever it decides.
    fn flower(&mut self, pref: &Pref, among: Set, course: &mut Course) -> Result<(), TooLarge> {
        let mut ended = Set::NONE;
        for at in &pref.filters {
            let Some((_, FilterParams::Flower(flower), actions)) = entry(&self.filters[*at]) else {
                continue;
            };
            if flower.skip_sw {
                continue;
            }
            let class = Verdict::Class(flower.classid.unwrap_or(Handle::NONE));
            let outcome = Outcome::of(actions, class, course.coming.passed_over)?;
            let Sure { mut sure, mut maybe } = self.flower_sets(flower, among, course.coming)?;
            if flower.indev.is_some() || pref.unordered {
                maybe = self.space.store.or(sure, maybe)?;
                sure = Set::NONE;
            }
            let first = Sure {
                sure: self.space.store.minus(sure, ended)?,
                maybe: self.space.store.minus(maybe, ended)?,
            };
            self.meet_of(*at, Sure { sure, maybe }, first, outcome, course)?;
            ended = self.space.store.or(ended, sure)?;
        }
        Ok(())
    }

    fn flower_sets(&mut self, flower: &FlowerParams, among: Set, coming: Coming) -> Result<Sure, TooLarge> {
        let mut sets = Sure { sure: Set::NONE, maybe: Set::NONE };
        for (rewrite, part) in self.space.by_rewrite(self.states, among, coming.states)? {
            let keys = self.space.flower(&flower.keys, coming.view, rewrite)?;
            for (whole, keys) in [(&mut sets.sure, keys.sure), (&mut sets.maybe, keys.maybe)] {
                let matched = self.space.store.and(part, keys)?;
                *whole = self.space.store.or(*whole, matched)?;
            }
        }
        Ok(sets)
    }

    /// flow and matchall: every packet; all others: any.
    fn others(&mut self, pref: &Pref, among: Set, course: &mut Course) -> Result<(), TooLarge> {
        for at in &pref.filters {
            let Some((_, params, actions)) = entry(&self.filters[*at]) else { continue };
            let class = Verdict::Class(params.classid().unwrap_or(Handle::NONE));
            let verdict = if let FilterParams::Flow(flow) = params { spread(flow) } else { class };
            let outcome = Outcome::of(actions, verdict, course.coming.passed_over)?;
            let known = matches!(params, FilterParams::Flow(_) | FilterParams::Matchall(_));
            let sets = match known {
                true => Sure { sure: among, maybe: Set::NONE },
                false => Sure { sure: Set::NONE, maybe: among },
            };
            self.meet(*at, sets, outcome, course)?;
        }
        Ok(())
    }

    /// Notes what a filter got; what it decides about is no longer there for others.
    pub(super) fn meet(
        &mut self,
        at: usize,
        sets: Sure,
        outcome: Outcome,
        course: &mut Course,
    ) -> Result<(), TooLarge> {
        self.meet_of(at, sets, sets, outcome, course)
    }

    /// The same where only some of the packets that meet its conditions come to it.
    pub(super) fn meet_of(
        &mut self,
        at: usize,
        eligible: Sure,
        coming: Sure,
        outcome: Outcome,
        course: &mut Course,
    ) -> Result<(), TooLarge> {
        let sure = self.space.store.and(coming.sure, course.live)?;
        let maybe = self.space.store.and(coming.maybe, course.live)?;
        let met = Met {
            eligible: self.space.store.or(eligible.sure, eligible.maybe)?,
            matched: self.space.store.or(sure, maybe)?,
            open: !eligible.maybe.is_empty(),
        };
        course.listed.filters.push((at, met));
        let doubtful = outcome.in_doubt();
        self.take(sure, outcome, course)?;
        self.take(maybe, doubtful, course)
    }

    /// Packets go where an outcome has them go.
    pub(super) fn take(
        &mut self,
        matched: Set,
        outcome: Outcome,
        course: &mut Course,
    ) -> Result<(), TooLarge> {
        if matched.is_empty() {
            return Ok(());
        }
        let (open, survivors) = (outcome.is_open(), outcome.survivors());
        let Outcome { verdicts, passes, writes, doubtful } = outcome;
        if !writes.is_empty() {
            // It would be written on those that are elsewhere in truth.
            if doubtful || !self.space.store.and(matched, course.listed.unsure)?.is_empty() {
                return Err(TooLarge);
            }
            if passes {
                course.coming.states = self.write(&writes, matched, course.coming)?;
            } else {
                course.written.push((matched, writes));
            }
        }
        course.listed.verdicts.extend(verdicts.into_iter().map(|verdict| (verdict, matched)));
        course.listed.guessed |= open;
        if survivors > 1 {
            course.listed.unsure = self.space.store.or(course.listed.unsure, matched)?;
        }
        if !passes {
            course.live = self.space.store.minus(course.live, matched)?;
        }
        Ok(())
    }

    /// What is on packets after some of them are written on.
    fn write(&mut self, writes: &[Write], matched: Set, coming: Coming) -> Result<Map, TooLarge> {
        let connected = self.space.store.and(matched, coming.connections)?;
        let mut map = coming.states;
        for write in writes {
            let within = if write.asks_connection() { connected } else { matched };
            let all = &mut *self.states;
            map = self.space.store.alter(map, within, &mut |n| {
                let state = all.get(n);
                all.number(write.on(state))
            })?;
        }
        Ok(map)
    }
}

/// The first number of a table that is a preference's own, unless others were given numbers there.
pub(crate) const FIRST_ROOT: u32 = 0x800;

/// A filter's handle, parameters and actions; `None`: it is a heading.
pub(super) fn entry(dump: &FilterDump) -> Option<(u32, &FilterParams, &[ActionDump])> {
    match &dump.entry {
        FilterEntry::Filter { handle, params, actions, .. } => Some((*handle, params, actions)),
        _ => None,
    }
}

/// The classes that a flow filter may name.
fn spread(flow: &FlowParams) -> Verdict {
    const ALL: u32 = 1 << 16;
    let base = flow.baseclass.unwrap_or(Handle::NONE);
    match (flow.divisor, flow.mode) {
        (1.., _) => Verdict::Spread(base, flow.divisor.min(ALL)),
        (0, Some(FlowMode::Map)) => {
            let most = (flow.mask | flow.xor).checked_shr(flow.rshift).unwrap_or(0);
            let first = base.class(base.0.wrapping_add(flow.addend) as u16);
            Verdict::Spread(first, most.saturating_add(1).min(ALL))
        }
        (0, _) => Verdict::Spread(base, ALL),
    }
}

/// The filters of each list, `(device, parent)`, by their numbers and in the order in which they are
/// evaluated. `ordered`: nothing was taken away or changed on the way to these filters.
pub(crate) fn lists(
    filters: &[FilterDump],
    tables: &U32Tables,
    ordered: bool,
) -> BTreeMap<(String, Handle), List> {
    let mut members: BTreeMap<(String, Handle), Vec<usize>> = BTreeMap::new();
    for (at, dump) in filters.iter().enumerate() {
        members.entry((dump.dev.clone(), dump.parent)).or_default().push(at);
    }
    members.into_iter().map(|(list, of)| (list, List::of(filters, &of, tables, ordered))).collect()
}
