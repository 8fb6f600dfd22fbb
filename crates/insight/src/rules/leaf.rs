//! R10: filters on a class that has no classes below it. HTB and HFSC stop there and never ask them.

use super::edit;
use super::reach::{Asking, witness};
use crate::bdd::{Set, TooLarge};
use crate::field::View;
use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::reach::Candidate;
use crate::set::Rewrite;
use crate::walk_tree::{By, Parts, Place};
use crate::words::count;
use tidegate_packet::Handle;
use tidegate_policy::dump::FilterEntry;
use tidegate_policy::{FilterParams, Kind};

/// Filters on leaf classes, one finding for each class.
pub(super) fn check(asking: &mut Asking<'_>) -> Result<Vec<Finding>, TooLarge> {
    let lists: Vec<(Place, Vec<usize>)> = asking
        .reached
        .walked
        .lists
        .iter()
        .map(|(place, list)| (place.clone(), list.prefs.iter().flat_map(|pref| pref.filters.clone()).collect()))
        .collect();
    let mut found = Vec::new();
    for (place, filters) in lists {
        if is_leaf(asking, &place) && !filters.is_empty() {
            found.extend(on_leaf(asking, &place, &filters)?);
        }
    }
    Ok(found)
}

/// A leaf of a kind that lets filters hang there.
fn is_leaf(asking: &Asking<'_>, (device, class): &Place) -> bool {
    let leaf = asking.reached.walked.classes.get(device).and_then(|classes| classes.get(class));
    let kind = asking.reading.classes.iter().find(|dump| dump.dev == *device && dump.classid == *class);
    leaf == Some(&true) && kind.is_some_and(|dump| matches!(dump.kind, Kind::Htb | Kind::Hfsc))
}

fn on_leaf(asking: &mut Asking<'_>, place: &Place, filters: &[usize]) -> Result<Option<Finding>, TooLarge> {
    let reading = asking.reading;
    let Some(step) = filters.first().and_then(|at| asking.step_of_filter(*at)) else { return Ok(None) };
    let below = reading.qdiscs.iter().find(|qdisc| qdisc.dev == place.0 && qdisc.parent == place.1);
    let below = below.map(|qdisc| qdisc.handle).filter(|handle| !handle.is_none());
    let shown = match unasked(asking, place, filters)? {
        Some((candidate, went)) => witness(&candidate, &went),
        None => Some(Witness::Number(format!("{} has no classes below it", place.1))),
    };
    Ok(Some(Finding {
        rule: Rule::LeafFilter,
        level: Level::Warning,
        place: super::at_word(step, "parent"),
        what: format!(
            "class {} is a leaf: {} on it {} never asked",
            place.1,
            count(filters.len(), "filter", "filters"),
            if filters.len() == 1 { "is" } else { "are" }
        ),
        because: match below {
            Some(below) => format!("a packet goes straight on to the qdisc {below} that hangs there"),
            None => "a packet is already where it ends".to_owned(),
        },
        witness: shown,
        fix: below.map(|below| moved(asking, filters, below)),
    }))
}

/// All of them hang on the qdisc below the class instead.
fn moved(asking: &Asking<'_>, filters: &[usize], below: Handle) -> Fix {
    let steps = filters.iter().filter_map(|at| asking.step_of_filter(*at));
    let fixes = steps.filter_map(|step| edit(step, "parent", &below.to_string(), ""));
    let mut edits: Vec<_> = fixes.flat_map(|fix| fix.edits).collect();
    edits.dedup();
    Fix { what: format!("hang them on the qdisc below: parent {below}"), edits }
}

/// A packet that comes to the class and is as one of its filters asks, which the engine does not ask.
fn unasked(asking: &mut Asking<'_>, place: &Place, filters: &[usize]) -> Result<Option<(Candidate, String)>, TooLarge> {
    let mut coming = Parts::default();
    for by in [By::Word, By::Default, By::Hash] {
        let parts = asking.reached.walked.seen.classes.get(&(place.clone(), by)).cloned().unwrap_or_default();
        for (way, set) in parts.0 {
            coming.add(&mut asking.reached.walked.space, way, set)?;
        }
    }
    for at in filters {
        let dump = &asking.reading.filters[*at];
        let FilterEntry::Filter { params: FilterParams::U32(u32), .. } = &dump.entry else { continue };
        let space = &mut asking.reached.walked.space;
        let asked = space.u32(dump.protocol, &u32.keys, View::PLAIN, Rewrite::NONE)?.matched;
        let mut both = Parts::default();
        for (way, set) in &coming.0 {
            let shared: Set = space.store.and(*set, asked)?;
            both.add(space, *way, shared)?;
        }
        let Some(candidate) = asking.reached.pick(asking.reading, &both)? else { continue };
        let before = asking.hits(dump);
        let way = asking.send(&candidate);
        if asking.hits(dump) == before {
            let went = asking.went(&way, &place.0);
            return Ok(Some((candidate, went)));
        }
    }
    Ok(None)
}
