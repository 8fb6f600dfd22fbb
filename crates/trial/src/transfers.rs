//! What transfers carry with the policy, in sentences: its price, or that it stops them.

use crate::figures::loads;
use tidegate_measure::numbers::rate;
use tidegate_measure::trial::{TrialDocument, TrialRun};

/// So many times less than without the policy is almost nothing.
const NOTHING: f64 = 100.0;
/// What is less than this share of what it was is worth a word.
pub(super) const NOTICED_LESS: f64 = 0.95;

/// What all transfers of one direction carry together, bit/s.
fn carries(run: &TrialRun, up: bool) -> f64 {
    run.flows.iter().filter(|flow| flow.up == up).map(|flow| flow.rate(run.window)).sum()
}

/// What transfers in one direction alone carry, bit/s.
struct Carried<'t> {
    run: &'t TrialRun,
    word: &'static str,
    without: f64,
    with: f64,
}

/// What transfers carry, each way, under the first load that transfers in that direction only.
fn alone(trial: &TrialDocument) -> Vec<Carried<'_>> {
    let each = [(true, "up"), (false, "down")].into_iter().filter_map(|(up, word)| {
        let (run, with) = loads(trial).find(|(without, _)| without.flows.iter().all(|flow| flow.up == up))?;
        Some(Carried { run, word, without: carries(run, up), with: carries(with, up) })
    });
    each.filter(|one| one.without > 0.0).collect()
}

/// `carries`, of one transfer, or `carry`.
fn verb(run: &TrialRun) -> &'static str {
    if run.flows.len() == 1 { "carries" } else { "carry" }
}

/// Transfers that the policy stops, each way: what it does for the ping it does by that.
pub(super) fn stopped(trial: &TrialDocument) -> Vec<String> {
    let found = alone(trial).into_iter().filter(|one| one.with < one.without / NOTHING);
    let sentence = |Carried { run, without, with, .. }: Carried<'_>| {
        let (with, without) = (rate(with), rate(without));
        format!("With the policy {} {} almost nothing: {with} instead of {without}.", run.title, verb(run))
    };
    found.map(sentence).collect()
}

/// What the transfers pay, each way, under the first load that transfers in that direction only; "alone"
/// where the sentences before are about another load. Stopped transfers have another sentence.
pub(super) fn cost(trial: &TrialDocument, hardest: Option<&str>) -> Vec<String> {
    let sentence = |Carried { run, word, without, with }: Carried<'_>| {
        let how = match (with - without) / without * 100.0 {
            change if change < -0.5 => format!("{:.0} % less", -change),
            change if change > 0.5 => format!("{change:.0} % more"),
            _ => "as much".to_owned(),
        };
        // Where nothing changes, one figure is enough.
        let figures = match how.as_str() {
            "as much" => format!(" as without the policy: {}", rate(with)),
            _ => format!(": {} instead of {}", rate(with), rate(without)),
        };
        let alone = if hardest == Some(run.load.as_str()) { "" } else { "Alone, " };
        let (title, verb) = (&run.title, verb(run));
        format!("{alone}{title} {verb} {how} {word}{figures}.")
    };
    let paid = alone(trial).into_iter().filter(|one| one.with >= one.without / NOTHING);
    paid.map(sentence).chain(together(trial)).collect()
}

/// What transfers carry under the first load that transfers both ways, where one way carries less.
fn together(trial: &TrialDocument) -> Option<String> {
    let is_both_ways = |run: &TrialRun| [true, false].iter().all(|up| run.flows.iter().any(|f| f.up == *up));
    let (without, with) = loads(trial).find(|(without, _)| is_both_ways(without))?;
    let [(up_was, up), (down_was, down)] = [true, false].map(|up| (carries(without, up), carries(with, up)));
    (up < up_was * NOTICED_LESS || down < down_was * NOTICED_LESS).then(|| {
        let [up, up_was, down, down_was] = [up, up_was, down, down_was].map(rate);
        let title = &with.title;
        format!(
            "Under {title}, transfers carry {up} instead of {up_was} up, {down} instead of {down_was} down."
        )
    })
}
