//! Leaf classes whose packets have all passed a policer: their queues cannot fill further than the buckets
//! let them.

use super::context::{RuleContext, classid};
use crate::reading::Policed;
use crate::sets::bdd::TooLarge;
use crate::walk::Parts;
use crate::walk::tree::By;
use std::collections::BTreeMap;
use tidegate_packet::Handle;
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::{Act, Control, Police};

/// The leaf classes to which no packet comes but by a filter that drops what exceeds its policer.
pub(super) fn find(context: &mut RuleContext<'_>) -> Result<BTreeMap<(String, Handle), Policed>, TooLarge> {
    let mut by_class: BTreeMap<(String, Handle), (Policed, Parts)> = BTreeMap::new();
    let reading = context.reading;
    for (at, dump) in reading.filters.iter().enumerate() {
        let (Some(class), Some(police)) = (classid(dump), policer(dump)) else { continue };
        let Some(seen) = context.reached.walked.seen.filters.get(&at).cloned() else { continue };
        if context.leaves_out(&dump.dev) {
            continue;
        }
        let Some(rate) = police.rate else { continue };
        let waiting = u128::from(rate.rate.0) * u128::from(police.burst.duration().0) / 1_000_000_000;
        let (known, passed) = by_class.entry((dump.dev.clone(), class)).or_default();
        known.rate.0 += rate.rate.0;
        known.burst += waiting as u64;
        for (way, set) in &seen.matched.0 {
            passed.add(&mut context.reached.walked.space, *way, *set)?;
        }
    }
    let mut found = BTreeMap::new();
    for (place, (policed, passed)) in by_class {
        if is_all(context, &place, &passed)? {
            found.insert(place, policed);
        }
    }
    Ok(found)
}

/// Are these all packets that come to a class?
fn is_all(context: &mut RuleContext<'_>, place: &(String, Handle), passed: &Parts) -> Result<bool, TooLarge> {
    let walked = &mut context.reached.walked;
    if walked.seen.classes.contains_key(&(place.clone(), By::Hash)) {
        return Ok(false);
    }
    for by in [By::Word, By::Default] {
        let Some(coming) = walked.seen.classes.get(&(place.clone(), by)).cloned() else { continue };
        for (way, set) in coming.0 {
            if !walked.space.store.minus(set, passed.by(way))?.is_empty() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The policer of a filter that drops what exceeds it, before any other action ends the packet.
fn policer(dump: &FilterDump) -> Option<&Police> {
    let FilterEntry::Filter { actions, .. } = &dump.entry else { return None };
    match &actions.first()?.action.act {
        Act::Police(police) if police.exceed == Control::Drop && police.conform.is_none() => Some(police),
        _ => None,
    }
}
