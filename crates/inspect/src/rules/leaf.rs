//! R10, and R1 of whole lists: filters on a class that has no classes below it, where HTB and HFSC stop and
//! never ask them, and filters on a class or qdisc that nothing comes to.

use super::context::{RuleContext, witness};
use super::making::edit;
use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::reach::Candidate;
use crate::reading::CLSACT_EGRESS;
use crate::sets::bdd::{Set, TooLarge};
use crate::sets::field::View;
use crate::sets::set::{Origin, Rewrite};
use crate::walk::Parts;
use crate::walk::tree::{By, Place};
use crate::words::{count, named};
use tidegate_packet::Handle;
use tidegate_policy::dump::{FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::{FilterParams, Filters, Kind};

/// Filters on leaf classes and where no packet comes.
pub(super) fn check(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let lists: Vec<(Place, Vec<usize>)> = context
        .reached
        .walked
        .lists
        .iter()
        .map(|(place, list)| {
            (place.clone(), list.prefs.iter().flat_map(|pref| pref.filters.clone()).collect())
        })
        .collect();
    let (mut found, mut leaves) = (Vec::new(), Vec::new());
    for (place, filters) in lists {
        // Filters of clsact's egress see all outgoing packets, before any class.
        if filters.is_empty() || place.1 == CLSACT_EGRESS || context.leaves_out(&place.0) {
            continue;
        }
        if is_leaf(context, &place) {
            leaves.extend(on_leaf(context, &place, &filters)?.map(|finding| (place, finding)));
        } else if context.reached.list(&place).is_empty() {
            found.extend(on_unreached(context, &place, &filters)?);
        }
    }
    found.extend(together(leaves));
    Ok(found)
}

/// One finding for the classes of a device whose filters belong in the same place: the first class's.
fn together(leaves: Vec<(Place, Finding)>) -> Vec<Finding> {
    let mut groups: Vec<(Place, Finding, Vec<String>)> = Vec::new();
    for ((device, class), finding) in leaves {
        let remedy = |finding: &Finding| finding.fix.as_ref().map(|fix| fix.what.clone());
        let group = groups
            .iter_mut()
            .find(|(place, first, _)| place.0 == device && remedy(first) == remedy(&finding));
        match group {
            Some((_, first, others)) => {
                others.push(class.to_string());
                let edits = finding.fix.into_iter().flat_map(|fix| fix.edits);
                first.fix.iter_mut().for_each(|fix| fix.edits.extend(edits.clone()));
            }
            None => groups.push(((device, class), finding, Vec::new())),
        }
    }
    let one = |(_, mut finding, others): (Place, Finding, Vec<String>)| {
        if !others.is_empty() {
            finding.because += &format!("; likewise on {}", named(&others));
        }
        finding
    };
    groups.into_iter().map(one).collect()
}

/// A leaf of a kind that may have filters.
fn is_leaf(context: &RuleContext<'_>, (device, class): &Place) -> bool {
    let leaf = context.reached.walked.classes.get(device).and_then(|classes| classes.get(class));
    let kind = context.reading.classes.iter().find(|dump| dump.dev == *device && dump.classid == *class);
    // HFSC lists itself as a class: filters on that are those of the qdisc.
    class.minor() != 0
        && leaf == Some(&true)
        && kind.is_some_and(|dump| dump.kind.filters() == Filters::OfClassesToo)
}

fn on_leaf(
    context: &mut RuleContext<'_>,
    place: &Place,
    filters: &[usize],
) -> Result<Option<Finding>, TooLarge> {
    let reading = context.reading;
    let Some(step) = filters.first().and_then(|at| context.step_of_filter(*at)) else { return Ok(None) };
    let below = reading.qdiscs.iter().find(|qdisc| qdisc.dev == place.0 && qdisc.parent == place.1);
    let below = below.map(|qdisc| qdisc.handle).filter(|handle| !handle.is_none());
    let mut coming = Parts::default();
    for by in [By::Word, By::Default, By::Hash] {
        let parts =
            context.reached.walked.seen.classes.get(&(place.clone(), by)).cloned().unwrap_or_default();
        all_of(context, &mut coming, parts)?;
    }
    let shown = match unasked(context, place, &coming, filters)? {
        Some((candidate, went)) => witness(&candidate, &went),
        None => Some(Witness::Number(format!("{} has no classes below it", place.1))),
    };
    Ok(Some(Finding {
        rule: Rule::LeafFilter,
        level: Level::Warning,
        place: super::making::at_word(step, "parent"),
        what: format!(
            "class {}{} is a leaf: {} on it {} never evaluated",
            place.1,
            context.on(&place.0),
            count(filters.len(), "filter", "filters"),
            if filters.len() == 1 { "is" } else { "are" }
        ),
        because: match below {
            Some(below) => format!("a packet goes straight on to the qdisc {below} that hangs there"),
            None => "a packet is already where it ends".to_owned(),
        },
        witness: shown,
        fix: Some(right_place(context, place, filters, below)),
    }))
}

/// Filters where no packet comes: on an inner class that no filter leads to, or on a qdisc in a class that
/// nothing takes.
fn on_unreached(
    context: &mut RuleContext<'_>,
    place: &Place,
    filters: &[usize],
) -> Result<Option<Finding>, TooLarge> {
    let Some(step) = filters.first().and_then(|at| context.step_of_filter(*at)) else { return Ok(None) };
    let is_below =
        |qdisc: &QdiscDump| qdisc.dev == place.0 && qdisc.handle == place.1 && qdisc.parent.minor() != 0;
    if place.1.minor() == 0
        && !context.reading.qdiscs.iter().any(|qdisc| is_below(qdisc) && qdisc.parent != Handle::ROOT)
    {
        // A device without any redirect to it: that has its own finding.
        return Ok(None);
    }
    let lost = &context.reading.lost;
    let above = context.reading.qdiscs.iter().find(|qdisc| is_below(qdisc)).map(|qdisc| qdisc.parent);
    if lost.lead(&place.0, place.1) || above.is_some_and(|above| lost.lead(&place.0, above)) {
        return Ok(None);
    }
    let seen = &context.reached.walked.seen;
    let own = |other: &Place| other.0 == place.0 && other.1.qdisc() == place.1.qdisc();
    let classes = seen.classes.iter().filter(|((other, _), _)| own(other)).map(|(_, parts)| parts);
    let direct = seen.direct.iter().filter(|((other, _), _)| own(other)).map(|(_, parts)| parts);
    let around: Vec<Parts> = classes.chain(direct).cloned().collect();
    let mut coming = Parts::default();
    for parts in around {
        all_of(context, &mut coming, parts)?;
    }
    let root = place.1.qdisc();
    let shown = unasked(context, place, &coming, filters)?;
    let inner = place.1.minor() != 0;
    // A filter that leads there and gets no packet has its own finding.
    let to = if inner { Some(place.1) } else { above };
    let leads = |dump: &FilterDump| dump.dev == place.0 && super::context::classid(dump) == to;
    if to.is_some() && context.reading.filters.iter().any(leads) {
        return Ok(None);
    }
    Ok(Some(Finding {
        rule: Rule::Unreachable,
        // Filters in a class that is not used yet do no harm.
        level: if inner && shown.is_some() { Level::Warning } else { Level::Note },
        place: super::making::at_word(step, "parent"),
        what: format!(
            "no packet comes to {}{}, where {} hang{}",
            place.1,
            context.on(&place.0),
            count(filters.len(), "filter", "filters"),
            if filters.len() == 1 { "s" } else { "" }
        ),
        because: match inner {
            true => {
                format!("the filters of {root} are evaluated first, and none of them leads to {}", place.1)
            }
            false => "nothing leads to the class that it hangs on".to_owned(),
        },
        witness: shown.and_then(|(candidate, went)| witness(&candidate, &went)),
        fix: inner.then(|| Fix {
            what: format!("hang them on the qdisc: parent {root}"),
            ..moved(context, filters, root)
        }),
    }))
}

/// Adds some parts to others.
fn all_of(context: &mut RuleContext<'_>, whole: &mut Parts, parts: Parts) -> Result<(), TooLarge> {
    parts.0.into_iter().try_for_each(|(way, set)| whole.add(&mut context.reached.walked.space, way, set))
}

/// Where filters on a leaf belong: on the qdisc below, where they lead to its classes, else on that of the
/// leaf.
fn right_place(context: &RuleContext<'_>, place: &Place, filters: &[usize], below: Option<Handle>) -> Fix {
    let reading = context.reading;
    let kind_of = |handle: Handle| {
        let qdisc = reading.qdiscs.iter().find(|qdisc| qdisc.dev == place.0 && qdisc.handle == handle);
        qdisc.map(|qdisc| qdisc.kind)
    };
    // Asked of Linux 6.1: what none of their own filters takes, these drop.
    if let Some(below) = below
        && let Some(kind @ (Kind::FqCodel | Kind::Sfq | Kind::Sfb)) = kind_of(below)
    {
        let what = format!(
            "leave them out: {} {below} chooses queues without filters, and with some of its own it drops what none of \
            them takes",
            kind.name()
        );
        return Fix { what, edits: Vec::new() };
    }
    let leads = |to: Handle| {
        filters
            .iter()
            .all(|at| super::context::classid(&reading.filters[*at]).is_some_and(|id| id.qdisc() == to))
    };
    match below.filter(|below| leads(*below)) {
        Some(below) => moved(context, filters, below),
        None => {
            Fix { what: format!("hang them on the qdisc: parent {}", place.1.qdisc()), edits: Vec::new() }
        }
    }
}

/// All of them are attached to the qdisc below the class instead.
fn moved(context: &RuleContext<'_>, filters: &[usize], below: Handle) -> Fix {
    let steps = filters.iter().filter_map(|at| context.step_of_filter(*at));
    let fixes = steps.filter_map(|step| edit(step, "parent", &below.to_string(), ""));
    let mut edits: Vec<_> = fixes.flat_map(|fix| fix.edits).collect();
    edits.dedup();
    Fix { what: format!("hang them on the qdisc below: parent {below}"), edits }
}

/// A packet that arrives and meets one filter's conditions, without running the engine.
fn unasked(
    context: &mut RuleContext<'_>,
    place: &Place,
    coming: &Parts,
    filters: &[usize],
) -> Result<Option<(Candidate, String)>, TooLarge> {
    for at in filters {
        let dump = &context.reading.filters[*at];
        let FilterEntry::Filter { params: FilterParams::U32(u32), .. } = &dump.entry else { continue };
        let space = &mut context.reached.walked.space;
        let matched =
            space.u32(dump.protocol, &u32.keys, View::PLAIN, Rewrite::NONE, Origin::NETWORK)?.matched;
        let mut both = Parts::default();
        for (way, set) in &coming.0 {
            let shared: Set = space.store.and(*set, matched)?;
            both.add(space, *way, shared)?;
        }
        let Some(candidate) = context.reached.pick(context.reading, &both)? else { continue };
        let before = context.hits(dump);
        let way = context.send(&candidate);
        if context.hits(dump) == before {
            let went = context.went(&way, &place.0);
            return Ok(Some((candidate, went)));
        }
    }
    Ok(None)
}
