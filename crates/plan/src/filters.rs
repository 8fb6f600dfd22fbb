//! Filters: lists by preference. What is alike stays; where something goes or comes at the end, the others
//! stay too.

use super::remake::Incomplete;
use super::settled;
use super::steps::{ChangePlan, Item, SHARED, Same, Sign};
use std::collections::BTreeMap;
use tidegate_packet::Handle;
use tidegate_policy::dump::{FilterDump, FilterEntry, Installed};
use tidegate_policy::{Action, FilterOp, FilterParams, Op, U32Params, Verb};

/// The place of a filter list: its parent, chain and preference.
type FilterListKey = (Handle, u32, u16);

/// The lists of filters, by place.
fn lists(
    filters: &[FilterDump],
    named: impl Fn(Handle) -> Option<Handle>,
) -> BTreeMap<FilterListKey, Vec<&FilterDump>> {
    let mut all: BTreeMap<FilterListKey, Vec<&FilterDump>> = BTreeMap::new();
    for filter in filters.iter().filter(|filter| counts(filter)) {
        if let Some(parent) = named(filter.parent) {
            all.entry((parent, filter.chain, filter.pref)).or_default().push(filter);
        }
    }
    all
}

/// Headings and root tables come on their own.
fn counts(filter: &FilterDump) -> bool {
    match &filter.entry {
        FilterEntry::Heading => false,
        FilterEntry::U32Table { table, .. } => *table < 0x800,
        FilterEntry::Filter { .. } => true,
    }
}

/// Lists of u32 of one qdisc and its classes may use each other's tables, but the kernel reports a table
/// wherever it likes: such lists cannot be made again.
pub(crate) fn shared(installed: &Installed) -> Result<(), Incomplete> {
    let mut tables: BTreeMap<(u16, u32), FilterListKey> = BTreeMap::new();
    let place = |filter: &FilterDump| (filter.parent, filter.chain, filter.pref);
    let broken = |filter: &FilterDump| {
        Err(Incomplete { dev: filter.dev.clone(), kind: "u32", handle: filter.parent, missing: SHARED })
    };
    for filter in &installed.filters {
        if let FilterEntry::U32Table { table, .. } = filter.entry
            && tables
                .insert((filter.parent.major(), table), place(filter))
                .is_some_and(|other| other != place(filter))
        {
            return broken(filter);
        }
    }
    for filter in &installed.filters {
        let FilterEntry::Filter { handle, params: FilterParams::U32(params), .. } = &filter.entry else {
            continue;
        };
        let key = |table: u32| (filter.parent.major(), table);
        let own = tables.get(&key(handle >> 20)) == Some(&place(filter));
        if !own || params.link.is_some_and(|link| link != 0 && !tables.contains_key(&key(link))) {
            return broken(filter);
        }
    }
    Ok(())
}

/// The lists of filters on both sides, and the plan they are part of.
pub(crate) struct Lists<'l> {
    pub(crate) live: &'l Installed,
    pub(crate) wanted: &'l Installed,
    pub(crate) same: &'l Same,
    pub(crate) plan: &'l mut ChangePlan,
}

/// Plans all lists: new ones and those that change first, then those that go.
pub(crate) fn plan(planner: &mut Lists<'_>) -> Result<(), Incomplete> {
    let live = lists(&planner.live.filters, |parent| planner.same.wanted(parent));
    let wanted = lists(&planner.wanted.filters, Some);
    // Filters may lead to tables of any preference.
    for (place, wanted) in &wanted {
        let known = live.get(place).map(Vec::as_slice).unwrap_or_default();
        if without(known, wanted).is_none() || known.is_empty() {
            remove_all(planner, *place, known);
            wanted.iter().filter(is_table).for_each(|table| make(planner, table));
        }
    }
    for (place, wanted) in &wanted {
        let known = live.get(place).map(Vec::as_slice).unwrap_or_default();
        list(planner, known, wanted);
    }
    for (place, gone) in live.iter().filter(|(place, _)| !wanted.contains_key(place)) {
        remove_all(planner, *place, gone);
    }
    Ok(())
}

/// A list; `live` is empty where there is none.
fn list(planner: &mut Lists<'_>, live: &[&FilterDump], wanted: &[&FilterDump]) {
    let (gone, kept) = match without(live, wanted) {
        Some(way) if !live.is_empty() => way,
        _ => {
            wanted.iter().filter(|filter| !is_table(filter)).for_each(|filter| make(planner, filter));
            return;
        }
    };
    planner.plan.kept += kept;
    // What comes does so before anything goes: nothing is let past meanwhile.
    wanted[kept..].iter().for_each(|filter| make(planner, filter));
    for filter in gone {
        let op = named(filter);
        planner.plan.step(Sign::Remove, Item::Filter(filter.clone()), vec![Op::Filter(op)]);
    }
}

/// What goes so that the rest is how the wanted begins; `None`: no such way. Beside it how many stay.
fn without<'f>(live: &[&'f FilterDump], wanted: &[&FilterDump]) -> Option<(Vec<&'f FilterDump>, usize)> {
    let (mut gone, mut kept) = (Vec::new(), 0);
    for filter in live {
        match wanted.get(kept) {
            Some(other) if alike(filter, other) => kept += 1,
            _ => gone.push(*filter),
        }
    }
    let movable = live.iter().chain(wanted).all(|filter| !is_table(&filter));
    let same_kind = live
        .first()
        .zip(wanted.first())
        .is_none_or(|(live, wanted)| live.kind == wanted.kind && live.protocol == wanted.protocol);
    // With tables of their own, filters lead to one another; and a list whose all members go is another list.
    (gone.is_empty() && kept == wanted.len() || movable && same_kind && (kept > 0 || live.is_empty()))
        .then_some((gone, kept))
}

fn is_table(filter: &&&FilterDump) -> bool {
    matches!(filter.entry, FilterEntry::U32Table { .. })
}

fn alike(live: &FilterDump, wanted: &FilterDump) -> bool {
    if (live.protocol, live.kind) != (wanted.protocol, wanted.kind) {
        return false;
    }
    match (&live.entry, &wanted.entry) {
        (
            FilterEntry::Filter { handle, params, actions, .. },
            FilterEntry::Filter { handle: other, params: wanted, actions: acts, .. },
        ) => {
            (!has_own_handle(live.kind) || handle == other)
                && settled::filter(params) == settled::filter(wanted)
                && actions.len() == acts.len()
                && actions
                    .iter()
                    .zip(acts)
                    .all(|(a, b)| settled::action(&a.action) == settled::action(&b.action))
        }
        (
            FilterEntry::U32Table { table, divisor },
            FilterEntry::U32Table { table: other, divisor: wanted },
        ) => table == other && divisor == wanted,
        _ => false,
    }
}

/// Of fw the handle is the mark, and flow is never given one; others have numbers that the machine gives.
fn has_own_handle(kind: &str) -> bool {
    matches!(kind, "fw" | "flow")
}

fn remove_all(planner: &mut Lists<'_>, (_, chain, pref): FilterListKey, live: &[&FilterDump]) {
    for (at, filter) in live.iter().enumerate() {
        let op = FilterOp { chain, pref, ..bare(filter, Verb::Delete) };
        // One command takes the whole list.
        let ops = if at == 0 { vec![Op::Filter(op)] } else { Vec::new() };
        planner.plan.step(Sign::Remove, Item::Filter((*filter).clone()), ops);
    }
}

fn bare(filter: &FilterDump, verb: Verb) -> FilterOp {
    FilterOp {
        verb,
        dev: filter.dev.clone(),
        block: filter.block,
        parent: filter.parent,
        pref: filter.pref,
        protocol: filter.protocol,
        chain: filter.chain,
        handle: 0,
        kind: None,
        params: None,
        actions: Vec::new(),
    }
}

/// The operation that takes one filter of a list.
fn named(filter: &FilterDump) -> FilterOp {
    let FilterEntry::Filter { handle, .. } = filter.entry else { return bare(filter, Verb::Delete) };
    FilterOp { handle, kind: Some(filter.kind.to_owned()), ..bare(filter, Verb::Delete) }
}

fn make(planner: &mut Lists<'_>, filter: &FilterDump) {
    let parent = planner.same.live(filter.parent);
    let op = FilterOp { parent, kind: Some(filter.kind.to_owned()), ..bare(filter, Verb::Add) };
    let op = match &filter.entry {
        FilterEntry::Heading => return,
        FilterEntry::U32Table { table, divisor } => {
            let params = U32Params { divisor: Some(*divisor), ..U32Params::default() };
            FilterOp { handle: table << 20, params: Some(FilterParams::U32(params)), ..op }
        }
        FilterEntry::Filter { handle, params, actions, .. } => {
            let actions: Vec<Action> =
                actions.iter().map(|dump| Action { index: 0, ..dump.action.clone() }).collect();
            let handle = if has_own_handle(filter.kind) { *handle } else { 0 };
            FilterOp { handle, params: Some(as_command(params, planner.same)), actions, ..op }
        }
    };
    planner.plan.step(Sign::Make, Item::Filter(filter.clone()), vec![Op::Filter(op)]);
}

/// The parameters as a command gives them.
fn as_command(params: &FilterParams, same: &Same) -> FilterParams {
    let mut params = settled::filter(params);
    match &mut params {
        FilterParams::Flow(flow) => {
            flow.given.bits = flow.mask != u32::MAX || flow.xor != 0;
            flow.given.rshift = flow.rshift != 0;
            flow.given.addend = flow.addend != 0;
            flow.given.divisor = flow.divisor != 0;
            flow.given.perturb = flow.perturb != 0;
            flow.baseclass = flow.baseclass.map(|class| same.live(class));
        }
        FilterParams::Fw(params) => params.classid = params.classid.map(|class| same.live(class)),
        FilterParams::U32(params) => params.classid = params.classid.map(|class| same.live(class)),
        FilterParams::Matchall(params) => params.classid = params.classid.map(|class| same.live(class)),
        FilterParams::Basic(params) => params.classid = params.classid.map(|class| same.live(class)),
        FilterParams::Flower(params) => params.classid = params.classid.map(|class| same.live(class)),
        FilterParams::Route(params) => params.classid = params.classid.map(|class| same.live(class)),
        FilterParams::Cgroup(_) => {}
    }
    params
}
