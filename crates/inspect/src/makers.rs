//! Which operation made a filter, found by what it holds: thousands of filters are not compared each with
//! each.

use crate::index::{Index, Key};
use std::collections::BTreeMap;
use tidegate_packet::Handle;
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::{FilterOp, FilterParams, Op};

/// A filter's list: device and block, and parent.
type List = (usize, u32, Handle);
/// Where an operation puts a filter and what that holds: the list, preference, protocol, chain, content.
type Made = (Key, u16, u16, u32, usize);

/// The operations on filters and the filters that are there, by content.
#[derive(Debug, Default)]
pub(crate) struct FilterMakers {
    /// The contents that occur, numbered.
    contents: BTreeMap<String, usize>,
    /// Operations, in order.
    made: BTreeMap<Made, Vec<usize>>,
    /// Handles of equal filters of one preference, ascending.
    twins: BTreeMap<(List, u16, u32, u16, usize), Vec<u32>>,
    /// Preferences of equal filters of one list, ascending.
    prefs: BTreeMap<(List, u16, u32, usize), Vec<u16>>,
}

impl FilterMakers {
    pub(crate) fn new(ops: &[Op], filters: &[FilterDump], index: &Index) -> FilterMakers {
        let mut makers = FilterMakers::default();
        for (place, list) in index.filter_lists() {
            for at in list {
                let Op::Filter(FilterOp { pref, protocol, chain, params: Some(given), handle, .. }) =
                    &ops[*at]
                else {
                    continue;
                };
                let content = makers.number(&content(given, *handle));
                let key = (place, *pref, *protocol, listed_chain(given, *chain), content);
                makers.made.entry(key).or_default().push(*at);
            }
        }
        for dump in filters {
            let FilterEntry::Filter { handle, params, .. } = &dump.entry else { continue };
            let Some(list) = list_of(dump, index) else { continue };
            let number = makers.number(&content(params, *handle));
            let equal = makers.prefs.entry((list, dump.protocol, dump.chain, number));
            equal.or_default().push(dump.pref);
            if has_twins(params) {
                let equal = makers.twins.entry((list, dump.protocol, dump.chain, dump.pref, number));
                equal.or_default().push(*handle);
            }
        }
        makers.twins.values_mut().for_each(|handles| handles.sort_unstable());
        makers.prefs.values_mut().for_each(|prefs| prefs.sort_unstable());
        makers
    }

    fn number(&mut self, content: &str) -> usize {
        let next = self.contents.len();
        match self.contents.get(content) {
            Some(number) => *number,
            None => *self.contents.entry(content.to_owned()).or_insert(next),
        }
    }

    /// The operation that made a filter: of several equal ones the last; where there are as many filters,
    /// each has its own.
    pub(crate) fn of(&self, dump: &FilterDump, index: &Index) -> Option<usize> {
        let FilterEntry::Filter { handle, params, .. } = &dump.entry else { return None };
        let content = *self.contents.get(&content(params, *handle))?;
        let list = list_of(dump, index);
        let chain = listed_chain(params, dump.chain);
        let makers = |pref: u16| {
            let made = move |(place, protocol)| self.made.get(&(place, pref, protocol, chain, content));
            index.filter_places(dump).map(move |place| {
                let of = |protocol| made((place, protocol)).map_or(&[][..], Vec::as_slice);
                (of(0), if dump.protocol == 0 { &[][..] } else { of(dump.protocol) })
            })
        };
        // A command without a preference makes a list of its own, before all that are there.
        let is_named = makers(dump.pref).any(|(any, own)| !any.is_empty() || !own.is_empty());
        // Equal filters behind this one: the makers are in the same order.
        let behind = if is_named {
            let twins =
                list.and_then(|list| self.twins.get(&(list, dump.protocol, dump.chain, dump.pref, content)));
            twins.map_or(0, |twins| twins.len() - twins.partition_point(|number| number <= handle))
        } else {
            let equal = list.and_then(|list| self.prefs.get(&(list, dump.protocol, dump.chain, content)));
            equal.map_or(0, |prefs| prefs.partition_point(|pref| *pref < dump.pref))
        };
        let wanted = if is_named { dump.pref } else { 0 };
        let (mut left, mut found) = (behind, None);
        for (any, own) in makers(wanted) {
            let len = any.len() + own.len();
            if left < len {
                return from_end(any, own, left);
            }
            // Where there are fewer makers, the first one.
            found = from_end(any, own, len.wrapping_sub(1)).or(found);
            left -= len;
        }
        found
    }
}

/// The list that a filter is in; `None`: of a device that no operation named.
fn list_of(dump: &FilterDump, index: &Index) -> Option<List> {
    Some((index.known(&dump.dev)?, dump.block, dump.parent))
}

/// The chain that a filter is listed in: u32 lists its tables by preference, those of other chains included.
fn listed_chain(params: &FilterParams, chain: u32) -> u32 {
    if matches!(params, FilterParams::U32(_)) { 0 } else { chain }
}

/// Whether several filters of one preference may have the same conditions.
fn has_twins(params: &FilterParams) -> bool {
    matches!(params, FilterParams::U32(_) | FilterParams::Basic(_))
}

/// An item of two ascending lists together, counted from the end.
fn from_end(first: &[usize], second: &[usize], number: usize) -> Option<usize> {
    let (mut first, mut second) = (first.iter().rev(), second.iter().rev());
    match (first.len(), second.len()) {
        (_, 0) => return first.nth(number).copied(),
        (0, _) => return second.nth(number).copied(),
        _ => {}
    }
    let (mut a, mut b) = (first.next(), second.next());
    for _ in 0..number {
        if a > b { a = first.next() } else { b = second.next() }
    }
    a.max(b).copied()
}

/// What makes a filter the one that a command asked for, in text: equal texts, equal filters.
fn content(params: &FilterParams, handle: u32) -> String {
    use FilterParams::{Basic, Cgroup, Flow, Flower, Fw, Matchall, Route, U32};
    // By the kind, so that the compiler checks that every kind is handled.
    match params {
        Fw(fw) => format!("fw {handle} {:?}", fw.classid),
        U32(u32) => format!("u32 {:?} {:?} {:?}", u32.keys, u32.mark, u32.classid),
        Flow(flow) => format!("flow {handle} {:?}", flow.keys),
        Matchall(_) => "matchall".into(),
        Route(route) => format!("route {:?}", (route.from, route.to, route.order, route.classid)),
        Cgroup(cgroup) => format!("cgroup {handle} {cgroup:?}"),
        Basic(basic) => format!("basic {:?} {:?}", basic.classid, basic.terms),
        Flower(flower) => format!("flower {:?} {:?} {:?}", flower.classid, flower.keys, flower.indev),
    }
}
