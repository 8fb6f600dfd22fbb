//! The rules of the checker: one file per family.

mod absent;
mod actions;
mod arrivals;
mod bits;
mod bursts;
mod capped;
mod checksums;
mod classified;
mod collisions;
mod context;
mod defaults;
mod devices;
mod ecn;
mod hashed;
mod hosts;
mod idle;
mod inner;
mod intent;
mod l4s;
mod leaf;
mod making;
mod marks;
mod measured;
mod netem;
mod nqb;
mod other_release;
mod overwritten;
mod parts;
mod policed;
mod policers;
mod protocols;
mod quantum;
mod queues;
mod rates;
mod reach;
mod refused;
mod releases;
mod removal;
mod replaced;
mod rewritten;
mod sizes;
mod states;
mod tables;
mod tc_releases;
mod tiny;
mod today;
mod units;
mod void;

use crate::finding::{Finding, Level, Rule, Witness};
pub use releases::{not_known, not_known_of};
pub use units::assumed_speeds;

use crate::reading::{PolicyModel, SourceLocation};
use std::collections::BTreeMap;

/// The most findings of one rule; after fixing these, the next are shown.
const MAX_FINDINGS: usize = 200;

/// Everything found wrong, in the order of the files; within a line the worst first.
pub fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let families: &[fn(&mut PolicyModel) -> Vec<Finding>] = &[
        absent::check,
        arrivals::check,
        checksums::check,
        refused::check,
        units::check,
        devices::check,
        hashed::check,
        hosts::check,
        inner::by_action,
        quantum::check,
        netem::check,
        other_release::check,
        policers::check,
        queues::check,
        rates::check,
        releases::check,
        tc_releases::check,
        replaced::check,
        states::check,
        tables::check,
        void::check,
    ];
    // The other rules say less about classes that no packet comes to, which this one finds.
    let by_packets = classified::check(reading);
    let mut found: Vec<Finding> = families.iter().flat_map(|family| family(reading)).collect();
    found.iter_mut().for_each(|finding| if_unreached(finding, &by_packets));
    found.extend(by_packets);
    let mut found = deduplicate(found, &|word| reading.gateway.device(word).is_some());
    found.iter_mut().for_each(|finding| name_classes(reading, finding));
    let line = |finding: &Finding| finding.place.as_ref().map(|place| (place.file, place.line));
    found.sort_by(|a, b| line(a).cmp(&line(b)).then(b.level.cmp(&a.level)));
    found
}

/// A filter's target is not reached through it, where another finding reports that no packet reaches the
/// filter.
fn if_unreached(finding: &mut Finding, others: &[Finding]) {
    let here = |other: &&Finding| other.place.is_some() && lines(other) == lines(finding);
    let dead = |other: &Finding| other.rule == Rule::Unreachable && other.what.starts_with(UNREACHED);
    if finding.rule == Rule::Nowhere && others.iter().filter(here).any(dead) {
        finding.because.push_str(" (no packet reaches it yet)");
    }
}

/// The lines of a finding.
fn lines(finding: &Finding) -> Option<(usize, usize)> {
    finding.place.as_ref().map(|place| (place.file, place.line))
}

/// How findings about filters begin that get no packets.
const UNREACHED: &str = "no packet reaches this filter";

/// Writes the names that a policy gives its classes behind their numbers.
fn name_classes(reading: &PolicyModel, finding: &mut Finding) {
    let texts = [&mut finding.what, &mut finding.because].into_iter();
    let shown = finding.witness.iter_mut().map(|witness| match witness {
        Witness::Packet { went, .. } => went,
        Witness::Number(number) => number,
    });
    // A command is for tc, which knows numbers only.
    let fix = finding.fix.iter_mut().map(|fix| &mut fix.what).filter(|what| !what.contains("tc "));
    for text in texts.chain(shown).chain(fix) {
        *text = reading.with_class_names(text);
    }
}

/// A sentence without numbers, units, devices and class numbers.
fn sense(text: &str, is_device: &dyn Fn(&str) -> bool) -> String {
    let is_name = |word: &str| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        bare.contains(|c: char| c.is_ascii_digit()) || UNITS.contains(&bare) || is_device(bare)
    };
    text.split_whitespace().filter(|word| !is_name(word)).collect::<Vec<_>>().join(" ")
}

/// Units that are apart from their number in a sentence, and would make the same sentence another.
const UNITS: [&str; 11] =
    ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "bytes", "kB", "MB", "ms", "µs", "s"];

/// Reports what a loop or a function does many times once for its line, and a rule's findings up to a bound.
/// What else is wrong at the same place is a finding of its own.
fn deduplicate(found: Vec<Finding>, is_device: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let mut kept: Vec<(Finding, usize, bool)> = Vec::new();
    let mut known: BTreeMap<(Rule, Level, Option<SourceLocation>, String), usize> = BTreeMap::new();
    let mut of_rule: BTreeMap<Rule, usize> = BTreeMap::new();
    for finding in found {
        // Without a place the words decide whether it is the same; with one, all but names and numbers.
        let words = match finding.place {
            None => finding.what.clone(),
            Some(_) => sense(&finding.what, is_device),
        };
        let key = (finding.rule, finding.level, finding.place.clone(), words);
        if let Some(at) = known.get(&key) {
            let (first, more, differ) = &mut kept[*at];
            *more += usize::from(first.what != finding.what);
            *differ |= first.fix != finding.fix;
            continue;
        }
        let count = of_rule.entry(finding.rule).or_default();
        *count += 1;
        if *count <= MAX_FINDINGS {
            known.insert(key, kept.len());
            kept.push((finding, 0, false));
        }
    }
    let with_count = |(mut finding, more, differ): (Finding, usize, bool)| {
        if more > 0 {
            finding.because.push_str(&format!(" (and {more} more by the same line)"));
        }
        // What fits one of them does not fit the others.
        if let Some(fix) = finding.fix.as_mut().filter(|fix| differ && !fix.edits.is_empty()) {
            fix.edits.clear();
            fix.what.push_str(" for this one (by hand: the others by this line need other values)");
        }
        finding
    };
    kept.into_iter().map(with_count).collect()
}
