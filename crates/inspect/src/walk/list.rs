//! All packets at once through the filters of one qdisc or class: which each of them matches, gets, and where
//! they go.

use crate::sets::bdd::{Map, Set, TooLarge};
use crate::sets::field::View;
use crate::sets::set::{Space, U32Sets};
use crate::walk::state::States;
use std::collections::BTreeMap;
use tidegate_packet::Handle;
use tidegate_policy::dump::{ActionDump, FilterDump, FilterEntry};
use tidegate_policy::{Act, Control, FilterParams, FlowMode, FlowParams, U32Params};

/// What happens to a packet that a filter matched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// It takes this class.
    Class(Handle),
    /// It takes one of so many classes from this one on, by a hash or a field.
    Spread(Handle, u32),
    /// It is dropped.
    Drop,
    /// It leaves by another device.
    Redirect(String),
}

/// Filters of one preference.
#[derive(Debug)]
pub(crate) struct Pref {
    pub(crate) protocol: u16,
    kind: &'static str,
    /// Their numbers in the reading.
    pub(crate) filters: Vec<usize>,
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
}

/// Where the packets went that were sent through a list.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) filters: Vec<(usize, Met)>,
    pub(crate) verdicts: Vec<(Verdict, Set)>,
    /// What no filter matched.
    pub(crate) rest: Option<Set>,
    /// A filter matched some whose verdict is not known: sets are wider than the truth from there on.
    pub(crate) guessed: bool,
}

impl List {
    /// The list of those of the filters whose parent is `parent`, by their numbers.
    pub(crate) fn of(filters: &[FilterDump], of_list: impl Iterator<Item = usize>) -> List {
        let mut prefs: Vec<Pref> = Vec::new();
        for at in of_list {
            let dump = &filters[at];
            if dump.chain != 0 {
                continue;
            }
            match &dump.entry {
                FilterEntry::Heading => {
                    prefs.push(Pref { protocol: dump.protocol, kind: dump.kind, filters: Vec::new() });
                }
                FilterEntry::U32Table { .. } => {}
                FilterEntry::Filter { .. } => {
                    prefs.last_mut().into_iter().for_each(|pref| pref.filters.push(at))
                }
            }
        }
        List { prefs }
    }
}

/// Packets before a list.
#[derive(Clone, Copy)]
pub(crate) struct Before {
    pub(crate) set: Set,
    pub(crate) states: Map,
    pub(crate) view: View,
    /// They came back from where actions had redirected them: actions are skipped.
    pub(crate) passed_over: bool,
}

/// A walk through a list.
pub(crate) struct Lists<'a> {
    pub(crate) space: &'a mut Space,
    pub(crate) states: &'a States,
    pub(crate) filters: &'a [FilterDump],
    /// Sets by the bits of their marks under a mask, as far as they were needed.
    pub(crate) marked: BTreeMap<(Set, u32), BTreeMap<u32, Set>>,
}

/// The verdicts of one filter for the packets it matched.
enum FilterVerdicts {
    No,
    Goes(Verdict),
    /// One of these, or the search continues: which, only the engine knows.
    Open(Vec<Verdict>),
}

impl Lists<'_> {
    /// Sends packets through the filters of a qdisc with this handle.
    pub(crate) fn ask(&mut self, list: &List, qdisc: Handle, before: Before) -> Result<Listed, TooLarge> {
        let mut listed = Listed::default();
        let mut live = before.set;
        for pref in &list.prefs {
            let protocol = self.space.protocol(pref.protocol)?;
            let among = Before { set: self.space.store.and(before.set, protocol)?, ..before };
            live = match pref.kind {
                "fw" => self.fw(pref, qdisc, among, live, &mut listed)?,
                "u32" => self.u32(pref, among, live, &mut listed)?,
                _ => self.others(pref, among, live, &mut listed)?,
            };
        }
        listed.rest = Some(live);
        Ok(listed)
    }

    /// fw: by the mark; without entries the mark is the class's name.
    fn fw(
        &mut self,
        pref: &Pref,
        qdisc: Handle,
        among: Before,
        live: Set,
        listed: &mut Listed,
    ) -> Result<Set, TooLarge> {
        let mask = pref.filters.first().and_then(|at| match entry(&self.filters[*at])?.1 {
            FilterParams::Fw(fw) => fw.mask,
            _ => None,
        });
        let mask = mask.unwrap_or(u32::MAX);
        if !self.marked.contains_key(&(among.set, mask)) {
            let states = self.states;
            let parts = self.space.store.split(among.states, among.set, &|n| states.get(n).mark & mask)?;
            self.marked.insert((among.set, mask), parts);
        }
        let mut live = live;
        if pref.filters.is_empty() {
            for (mark, set) in self.marked.get(&(among.set, mask)).cloned().unwrap_or_default() {
                let class = Handle(mark);
                if mark != 0 && (class.major() == 0 || class.qdisc() == qdisc) {
                    let got = self.space.store.and(set, live)?;
                    live = self.space.store.minus(live, got)?;
                    listed.verdicts.push((Verdict::Class(class), got));
                }
            }
            return Ok(live);
        }
        for at in &pref.filters {
            let Some((mark, FilterParams::Fw(fw), actions)) = entry(&self.filters[*at]) else { continue };
            let given = filter_verdicts(
                actions,
                Verdict::Class(fw.classid.unwrap_or(Handle::NONE)),
                among.passed_over,
            )?;
            let part = self.marked.get(&(among.set, mask)).and_then(|parts| parts.get(&mark));
            let part = part.copied().unwrap_or(Set::NONE);
            let matched = self.space.store.and(part, live)?;
            live = self.take(*at, Met { eligible: part, matched }, given, live, listed)?;
        }
        Ok(live)
    }

    /// u32: one node after the other, until one decides or reads beyond the packet.
    fn u32(&mut self, pref: &Pref, among: Before, live: Set, listed: &mut Listed) -> Result<Set, TooLarge> {
        let (mut live, mut passed_by) = (live, Set::NONE);
        for at in &pref.filters {
            let Some((handle, FilterParams::U32(u32), actions)) = entry(&self.filters[*at]) else { continue };
            // Tables that refer to each other are more than this walk follows.
            if u32.link.is_some() || handle >> 20 < FIRST_ROOT {
                return Err(TooLarge);
            }
            let U32Sets { matched: part, ended } = self.u32_sets(u32, pref.protocol, among)?;
            let mut matched = self.space.store.and(part, live)?;
            if !passed_by.is_empty() {
                matched = self.space.store.minus(matched, passed_by)?;
            }
            passed_by = self.space.store.or(passed_by, ended)?;
            let given = match u32.classid {
                // A node that neither names a class nor does anything only counts.
                None if actions.is_empty() => FilterVerdicts::No,
                class => filter_verdicts(
                    actions,
                    Verdict::Class(class.unwrap_or(Handle::NONE)),
                    among.passed_over,
                )?,
            };
            live = self.take(*at, Met { eligible: part, matched }, given, live, listed)?;
        }
        Ok(live)
    }

    /// The packets before the list that a u32 filter matches, and those that end the search at it.
    fn u32_sets(&mut self, u32: &U32Params, protocol: u16, among: Before) -> Result<U32Sets, TooLarge> {
        let mut set = among.set;
        if let Some((value, mask)) = u32.mark {
            let states = self.states;
            set = self.space.store.select(among.states, set, &mut |n| states.get(n).mark & mask == value)?;
        }
        let mut sets = U32Sets { matched: Set::NONE, ended: Set::NONE };
        for (rewrite, part) in self.space.by_rewrite(self.states, set, among.states)? {
            let keys = self.space.u32(protocol, &u32.keys, among.view, rewrite)?;
            for (whole, keys) in [(&mut sets.matched, keys.matched), (&mut sets.ended, keys.ended)] {
                let matched = self.space.store.and(part, keys)?;
                *whole = self.space.store.or(*whole, matched)?;
            }
        }
        Ok(sets)
    }

    /// flow and matchall: every packet; all others: any.
    fn others(
        &mut self,
        pref: &Pref,
        among: Before,
        live: Set,
        listed: &mut Listed,
    ) -> Result<Set, TooLarge> {
        let mut live = live;
        for at in &pref.filters {
            let Some((_, params, actions)) = entry(&self.filters[*at]) else { continue };
            let class = Verdict::Class(params.classid().unwrap_or(Handle::NONE));
            let verdict = if let FilterParams::Flow(flow) = params { spread(flow) } else { class };
            let matched = self.space.store.and(among.set, live)?;
            let mut given = filter_verdicts(actions, verdict, among.passed_over)?;
            // What these match is left open.
            if !matches!(params, FilterParams::Flow(_) | FilterParams::Matchall(_))
                && let FilterVerdicts::Goes(verdict) = given
            {
                given = FilterVerdicts::Open(vec![verdict]);
            }
            live = self.take(*at, Met { eligible: among.set, matched }, given, live, listed)?;
        }
        Ok(live)
    }

    /// Notes what a filter got; what it decides about is no longer there for others.
    fn take(
        &mut self,
        at: usize,
        met: Met,
        given: FilterVerdicts,
        live: Set,
        listed: &mut Listed,
    ) -> Result<Set, TooLarge> {
        listed.filters.push((at, met));
        match given {
            FilterVerdicts::Goes(verdict) if !met.matched.is_empty() => {
                listed.verdicts.push((verdict, met.matched));
                self.space.store.minus(live, met.matched)
            }
            FilterVerdicts::Open(verdicts) if !met.matched.is_empty() => {
                listed.verdicts.extend(verdicts.into_iter().map(|verdict| (verdict, met.matched)));
                listed.guessed = true;
                Ok(live)
            }
            _ => Ok(live),
        }
    }
}

/// The first number of a table that is a preference's own.
pub(crate) const FIRST_ROOT: u32 = 0x800;

/// A filter's handle, parameters and actions; `None`: it is a heading.
fn entry(dump: &FilterDump) -> Option<(u32, &FilterParams, &[ActionDump])> {
    match &dump.entry {
        FilterEntry::Filter { handle, params, actions, .. } => Some((*handle, params, actions)),
        _ => None,
    }
}

/// What actions make of a filter's verdict. One that changes what later filters see is more than this walk
/// follows.
fn filter_verdicts(
    actions: &[ActionDump],
    verdict: Verdict,
    passed_over: bool,
) -> Result<FilterVerdicts, TooLarge> {
    if passed_over {
        return Ok(FilterVerdicts::Goes(verdict));
    }
    let mut verdicts = Vec::new();
    for dump in actions {
        let controls = match &dump.action.act {
            // It is among those that arrive there.
            Act::Mirred(mirred) if !mirred.copy && mirred.arrives => {
                verdicts.push(Verdict::Drop);
                return Ok(among(verdicts));
            }
            Act::Mirred(mirred) if !mirred.copy => {
                verdicts.push(Verdict::Redirect(mirred.to.clone()));
                return Ok(among(verdicts));
            }
            Act::Skbedit(_) | Act::Connmark(_) | Act::Ctinfo(_) | Act::Ct(_) => return Err(TooLarge),
            Act::Nat(_) | Act::Pedit(_) | Act::Skbmod(_) | Act::Vlan(_) | Act::Mpls(_) => {
                return Err(TooLarge);
            }
            other => other.controls(),
        };
        let mut ends = true;
        for control in &controls {
            match control {
                // A packet that restarts classification ends here again, until the kernel gives up. A policer
                // may decide otherwise the second time.
                Control::Drop | Control::Reclassify => verdicts.push(Verdict::Drop),
                Control::Stolen | Control::Trap | Control::Number(Control::QUEUED) => {
                    verdicts.push(Verdict::Drop)
                }
                Control::Pass => verdicts.push(verdict.clone()),
                Control::Continue | Control::Number(_) if controls.len() == 1 && verdicts.is_empty() => {
                    return Ok(FilterVerdicts::No);
                }
                Control::Continue | Control::Number(_) => verdicts.push(Verdict::Class(Handle::NONE)),
                Control::Pipe => ends = false,
                Control::Jump(_) | Control::Goto(_) => return Err(TooLarge),
            }
        }
        if ends {
            return Ok(match &controls[..] {
                [Control::Continue | Control::Number(_), ..]
                | [_, Control::Continue | Control::Number(_)] => FilterVerdicts::Open(verdicts),
                _ => among(verdicts),
            });
        }
    }
    verdicts.push(verdict);
    Ok(among(verdicts))
}

/// One of several verdicts.
fn among(mut verdicts: Vec<Verdict>) -> FilterVerdicts {
    match (verdicts.pop(), verdicts.is_empty()) {
        (Some(alone), true) => FilterVerdicts::Goes(alone),
        (Some(last), false) => {
            verdicts.push(last);
            FilterVerdicts::Open(verdicts)
        }
        (None, _) => FilterVerdicts::No,
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
/// evaluated.
pub(crate) fn lists(filters: &[FilterDump]) -> BTreeMap<(String, Handle), List> {
    let mut members: BTreeMap<(String, Handle), Vec<usize>> = BTreeMap::new();
    for (at, dump) in filters.iter().enumerate() {
        members.entry((dump.dev.clone(), dump.parent)).or_default().push(at);
    }
    members.into_iter().map(|(list, of)| (list, List::of(filters, of.into_iter()))).collect()
}
