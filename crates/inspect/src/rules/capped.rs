//! R22: a default class that is capped far below what others of its device may send.

use super::context::{RuleContext, witness};
use super::making::{at_word, finding};
use crate::drive::Bench;
use crate::finding::{Finding, Level, Rule};
use crate::reach::Candidate;
use crate::sets::bdd::TooLarge;
use crate::walk::tree::By;
use crate::words;
use tidegate_packet::{Handle, Rate};
use tidegate_policy::dump::QdiscDump;
use tidegate_policy::{ClassParams, QdiscParams};

/// So many times less than the fastest class is far below it,
const FAR: u64 = 10;
/// and so many times less is a warning.
const VERY_FAR: u64 = 100;
/// Trees are less deep than this.
const DEEPEST: usize = 64;

/// A finding for each root whose default class is limited so.
pub(super) fn check(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let reading = context.reading;
    let roots = reading.qdiscs.iter().filter(|qdisc| qdisc.parent == Handle::ROOT && !qdisc.handle.is_none());
    let mut found = Vec::new();
    for root in roots {
        if !context.leaves_out(&root.dev) {
            found.extend(capped(context, root)?);
        }
    }
    Ok(found)
}

fn capped(context: &mut RuleContext<'_>, root: &QdiscDump) -> Result<Option<Finding>, TooLarge> {
    let reading = context.reading;
    let default = match &root.params {
        QdiscParams::Htb(htb) => root.handle.class(htb.default as u16),
        QdiscParams::Hfsc(hfsc) => root.handle.class(hfsc.default),
        _ => return Ok(None),
    };
    let own = |class: &Handle| class.qdisc() == root.handle;
    let leaves: Vec<_> =
        reading.leaves().filter(|leaf| leaf.class.dev == root.dev && own(&leaf.class.classid)).collect();
    let Some(capped) = leaves.iter().find(|leaf| leaf.class.classid == default) else { return Ok(None) };
    let most = |class: Handle, ceil: Rate| ceil.min(above(reading, &root.dev, class));
    let waiting = most(default, capped.ceil);
    let Some(fastest) = leaves.iter().max_by_key(|leaf| most(leaf.class.classid, leaf.ceil)) else {
        return Ok(None);
    };
    let free = most(fastest.class.classid, fastest.ceil);
    if waiting.0.saturating_mul(FAR) >= free.0 {
        return Ok(None);
    }
    let Some(candidate) = comes_there(context, root, default)? else { return Ok(None) };
    let way = context.send(&candidate);
    // Its own queue may have classes below it, as red has.
    let stop = context.prober.device(&root.dev).and_then(|id| way.stop_at(id));
    let there = stop.is_some_and(|stop| stop.classes.contains(&default));
    context.confirmed(there || way.dropped.is_some(), &candidate, "in the default class");
    let maker = reading.maker_of_class(&root.dev, default).and_then(|op| reading.step_of(op));
    let Some(step) = maker.filter(|_| there) else { return Ok(None) };
    let frame = reading.frame(&root.dev);
    let mut bench = Bench::new(reading);
    let mut sends = |class: Handle| bench.rate(&root.dev, class, frame);
    let (Some(slow), Some(fast)) = (sends(default), sends(fastest.class.classid)) else { return Ok(None) };
    if slow.0.saturating_mul(FAR) >= fast.0 {
        return Ok(None);
    }
    let level = if slow.0.saturating_mul(VERY_FAR) < fast.0 { Level::Warning } else { Level::Note };
    let mut capped = finding(
        Rule::Capped,
        level,
        at_word(step, if step.after("ceil").is_some() { "ceil" } else { "rate" }),
        format!(
            "what no filter takes gets {} at most, {} times less than {}",
            // A bucket lets more through than a rate of a few bytes per second.
            words::rate(waiting.max(slow)),
            free.0 / waiting.max(slow).0.max(1),
            fastest.class.classid
        ),
        format!(
            "the default class {default} may not borrow more, even while the link is idle: with the other \
            classes empty it sends {}, and {} alone sends {}",
            words::rate(slow),
            fastest.class.classid,
            words::rate(fast)
        ),
        String::new(),
    );
    capped.witness = witness(&candidate, &default.to_string());
    Ok(Some(capped))
}

/// The least ceil or upper limit of the classes above one.
pub(super) fn above(reading: &crate::reading::PolicyModel, dev: &str, class: Handle) -> Rate {
    let mut least = Rate(u64::MAX);
    let mut at = reading.class(dev, class);
    for _ in 0..DEEPEST {
        let Some(class) = at else { break };
        match &class.params {
            ClassParams::Htb(htb) => least = least.min(htb.ceil.rate),
            ClassParams::Hfsc(hfsc) => {
                let limit = hfsc.ul.map(|curve| Rate(u64::from(curve.m2))).filter(|limit| limit.0 > 0);
                least = limit.map_or(least, |limit| least.min(limit));
            }
            _ => {}
        }
        at = reading.class(dev, class.parent);
    }
    least
}

/// A packet of IP that comes to the default class because nothing classifies it.
fn comes_there(
    context: &mut RuleContext<'_>,
    root: &QdiscDump,
    default: Handle,
) -> Result<Option<Candidate>, TooLarge> {
    let place = (root.dev.clone(), default);
    let Some(parts) = context.reached.walked.seen.classes.get(&(place, By::Default)).cloned() else {
        return Ok(None);
    };
    let mut ip = crate::walk::Parts::default();
    let space = &mut context.reached.walked.space;
    for (way, set) in &parts.0 {
        let plain = space.store.minus(*set, space.other)?;
        ip.add(space, *way, plain)?;
    }
    context.reached.pick(context.reading, &ip)
}
