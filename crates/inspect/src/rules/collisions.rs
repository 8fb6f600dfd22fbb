//! R18: hosts or flows that share a class by chance.

use super::context::RuleContext;
use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::sets::bdd::TooLarge;
use crate::tree::numbered_queues;
use tidegate_policy::dump::{FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::{ClassLayout, FilterParams, FlowKeySet, FlowMode, FlowParams, Kind, QdiscParams};

/// Buckets beyond which no home has so many hosts that it matters.
const MANY: u32 = 1024;
/// The keys of a flow filter that distinguish hosts and nothing else: `src`, `dst`, `nfct-src`, `nfct-dst`.
const HOST_KEYS: u32 = 1 | 1 << 1 | 1 << 9 | 1 << 10;

/// A note for each hash into few buckets.
pub(super) fn check(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let reading = context.reading;
    // A leaf's filters are never evaluated, which R10 says.
    let is_leaf = |dump: &FilterDump| {
        let class = reading.class(&dump.dev, dump.parent);
        class.is_some_and(|class| matches!(class.kind, Kind::Htb | Kind::Hfsc) && reading.is_leaf(class))
    };
    let filters = reading.filters.iter().enumerate().filter(|(_, dump)| !is_leaf(dump));
    let hashes = filters.filter_map(|(at, dump)| match &dump.entry {
        FilterEntry::Filter { params: FilterParams::Flow(flow), .. } if is_small_hash(flow) => {
            Some((at, flow))
        }
        _ => None,
    });
    let mut findings: Vec<Finding> = hashes.map(|(at, flow)| collisions(context, at, flow)).collect();
    if context.reading.is_compiled() {
        // Directions and classes of a short policy have the same hash by one word of it.
        let mut said: Vec<String> = Vec::new();
        findings.retain(|finding| {
            let is_new = !said.contains(&finding.because);
            said.push(finding.because.clone());
            is_new
        });
    }
    Ok(findings)
}

fn is_small_hash(flow: &FlowParams) -> bool {
    flow.mode.unwrap_or_default() == FlowMode::Hash && (2..=MANY).contains(&flow.divisor)
}

fn collisions(context: &RuleContext<'_>, at: usize, flow: &FlowParams) -> Finding {
    let who = if flow.keys.0 & !HOST_KEYS == 0 { "hosts" } else { "flows" };
    let (even, nearly) = (least(flow.divisor, 0.5), least(flow.divisor, 0.95));
    let percent = |count: u32| (shared(flow.divisor, count) * 100.0).round() as u32;
    let reshuffled = match flow.perturb {
        0 => "and stay together".to_owned(),
        seconds => format!("until the hash changes, every {seconds} s, when all are distributed again"),
    };
    let keys: Vec<&str> =
        (0..).zip(FlowKeySet::NAMES).filter(|(bit, _)| flow.keys.has(*bit)).map(|(_, name)| name).collect();
    // A short policy has no keys.
    let by = if context.reading.is_compiled() { String::new() } else { format!(" (by {})", keys.join(", ")) };
    let step = context.step_of_filter(at);
    let missing = missing(context, at, flow);
    if let (true, Some(base)) = (missing > 0, flow.baseclass) {
        let dump = &context.reading.filters[at];
        let what =
            format!("{missing} of the {} classes that a hash deals {who} into are not there", flow.divisor);
        let owner =
            context.reading.qdiscs.iter().find(|q| q.dev == dump.dev && q.handle == dump.parent.qdisc());
        // HTB and HFSC have a default for such packets; without it HTB lets them pass by, and the others drop
        // them.
        let has = |minor: u16| {
            let class = |owner: &QdiscDump| context.reading.class(&dump.dev, owner.handle.class(minor));
            minor != 0 && owner.and_then(class).is_some()
        };
        let (level, fate) = match owner.map(|owner| &owner.params) {
            Some(QdiscParams::Htb(htb)) if has(htb.default as u16) => {
                (Level::Warning, "goes to the default class")
            }
            Some(QdiscParams::Htb(_)) => (Level::Warning, "goes past all classes"),
            Some(QdiscParams::Hfsc(hfsc)) if has(hfsc.default) => {
                (Level::Warning, "goes to the default class")
            }
            _ => (Level::Error, "is dropped"),
        };
        let because = format!("it counts from {base}; what is dealt to a class that is not there {fate}");
        let witness = format!("classes of {} from {base} on: {}", dump.dev, flow.divisor - missing);
        let place = step.and_then(|step| super::making::at_word(step, "divisor"));
        return super::making::finding(Rule::Collisions, level, place, what, because, witness);
    }
    Finding {
        rule: Rule::Collisions,
        level: Level::Note,
        place: step.and_then(|step| super::making::at_word(step, "divisor")),
        what: format!("{who}{by} are dealt into {} {} by a hash", flow.divisor, places(context, at)),
        because: format!(
            "two of {even} share one with a chance of {} %, two of {nearly} with {} %, {reshuffled}",
            percent(even),
            percent(nearly)
        ),
        witness: Some(Witness::Number(format!(
            "1 - {0}! / ({0} - {even})! / {0}^{even} = {1} %",
            flow.divisor,
            percent(even)
        ))),
        // A short policy has no divisor.
        fix: (!context.reading.is_compiled()).then(|| {
            // What a filter deals to a place that is not there is dropped.
            let more = match (queues_of(context, at), places(context, at)) {
                (Some((_, queues)), _) if flow.divisor < queues => {
                    "more buckets (divisor) share less".to_owned()
                }
                (Some((word, _)), _) => {
                    format!("more queues ({word}) and as many buckets (divisor) share less")
                }
                (None, places) => format!("more {places} and as many buckets (divisor) share less"),
            };
            let alone = if who == "hosts" { ", a filter for each host shares nothing" } else { "" };
            Fix { what: more + alone, edits: Vec::new() }
        }),
    }
}

/// How many queues a filter's qdisc has of itself that filters may name, and the word that sets it.
fn queues_of(context: &RuleContext<'_>, at: usize) -> Option<(&'static str, u32)> {
    let dump = &context.reading.filters[at];
    let owner = context.reading.qdiscs.iter().find(|q| q.dev == dump.dev && q.handle == dump.parent.qdisc());
    owner.and_then(|owner| numbered_queues(&owner.params))
}

/// What a filter's qdisc has for its numbers: queues of its own, or classes.
fn places(context: &RuleContext<'_>, at: usize) -> &'static str {
    let dump = &context.reading.filters[at];
    let mut owners =
        context.reading.qdiscs.iter().filter(|q| q.dev == dump.dev && q.handle == dump.parent.qdisc());
    match owners.next().map(|owner| owner.kind.classes()) {
        Some(ClassLayout::Made) => "classes",
        Some(ClassLayout::Bands) => "bands",
        _ => "queues",
    }
}

/// How many of the classes that a hash may name its qdisc does not have. Only qdiscs whose classes are made
/// by hand are checked.
fn missing(context: &RuleContext<'_>, at: usize, flow: &FlowParams) -> u32 {
    let reading = context.reading;
    let dump = &reading.filters[at];
    let owner = reading.qdiscs.iter().find(|q| q.dev == dump.dev && q.handle == dump.parent.qdisc());
    let Some(base) = flow.baseclass.filter(|_| owner.is_some_and(|owner| owner.kind.classes_are_made()))
    else {
        return 0;
    };
    let named = (0..flow.divisor).map(|bucket| tidegate_packet::Handle(base.0.wrapping_add(bucket)));
    named.filter(|class| reading.class(&dump.dev, *class).is_none()).count() as u32
}

/// The chance that two of so many share one of so many buckets.
fn shared(buckets: u32, count: u32) -> f64 {
    1.0 - (0..count).map(|taken| 1.0 - f64::from(taken) / f64::from(buckets)).product::<f64>()
}

/// How few of them share a bucket with at least this chance.
fn least(buckets: u32, chance: f64) -> u32 {
    (1..=buckets + 1).find(|count| shared(buckets, *count) >= chance).unwrap_or(buckets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_buckets() {
        // 1 - 16·15·14·13·12 / 16^5 = 0.5001…
        assert_eq!((least(16, 0.5), (shared(16, 5) * 1000.0) as u32), (5, 500));
        assert!(shared(16, 10) > 0.97 && shared(16, 17) > 0.999_999);
        // The birthdays themselves.
        assert_eq!(least(365, 0.5), 23);
    }
}
