//! An experiment on a terminal.

use crate::run::text::count;
use std::fmt::Write as _;
use tidegate_analysis::experiment::{ComparisonText, comparison_text, in_words};
use tidegate_measure::experiment::{Comparison, Experiment, ExperimentCase, RunRecord};
use tidegate_report::{Align, Table};
use tidegate_scenario::model::Scenario;

/// A table for each load, what was expected, what happened.
pub(super) fn experiment(of: &Experiment) -> String {
    let mut text = String::new();
    if !of.title.is_empty() {
        let _ = writeln!(text, "{}\n", of.title);
    }
    for load in &of.loads {
        let cases: Vec<ExperimentCase<'_>> =
            of.cases().into_iter().filter(|case| case.load.name == load.name).collect();
        if cases.is_empty() {
            continue;
        }
        let title = if load.title.is_empty() { &load.name } else { &load.title };
        let _ = writeln!(text, "{title}\n\n{}", table(&cases));
    }
    let repeats = of.cases().iter().map(|case| case.runs.len()).max().unwrap_or(0);
    if repeats > 1 {
        let _ = writeln!(text, "Each figure is the median of {repeats} repeats.\n");
    }
    text.push_str(&expectations(&of.comparisons));
    text.push_str(&events(&of.runs));
    for note in &of.notes {
        let _ = writeln!(text, "Note: {note}.");
    }
    if of.runs.iter().any(|run| run.cut) {
        text.push_str("It was interrupted: the last run is cut, later ones are missing.\n");
    }
    let _ = writeln!(text, "Again: {}", of.again);
    text
}

/// Policies down, the main figures across.
fn table(cases: &[ExperimentCase<'_>]) -> Table {
    let figures = main_figures(cases);
    let mut columns = vec![("policy".to_owned(), Align::Left)];
    columns.extend(figures.iter().map(|figure| (head(figure), Align::Right)));
    let mut table = Table::new(columns);
    for case in cases {
        let mut row = vec![case.policy.name.clone()];
        row.extend(figures.iter().map(|figure| match case.figure(figure) {
            Ok(spread) => in_words(figure, spread.median, spread.unit),
            Err(_) => "–".to_owned(),
        }));
        table.row(row);
    }
    table
}

/// `ping.p95` as `ping p95`.
fn head(figure: &str) -> String {
    figure.rsplit_once('.').map_or_else(|| figure.to_owned(), |(of, statistic)| format!("{of} {statistic}"))
}

/// With more probes than this a table has fewer columns for each, so that it stays a table.
const FEW_PROBES: usize = 3;

/// Of each probe the median, the 95th percentile and the loss; of each group of transfers the rate. Of many
/// probes the median, and the loss of those that lost anything.
fn main_figures(cases: &[ExperimentCase<'_>]) -> Vec<String> {
    let Some(run) = cases.first().and_then(|case| case.runs.first()) else { return Vec::new() };
    let mut figures = Vec::new();
    let few = run.probes.len() <= FEW_PROBES;
    for probe in &run.probes {
        figures.push(format!("{}.median", probe.id));
        let loss = format!("{}.loss", probe.id);
        let loses = cases.iter().any(|case| case.figure(&loss).is_ok_and(|spread| spread.most > 0.0));
        figures.extend(few.then(|| format!("{}.p95", probe.id)));
        figures.extend((few || loses).then_some(loss));
    }
    for transfer in &run.transfers {
        let group = match transfer.id.rsplit_once('-') {
            Some((group, number)) if number.bytes().all(|b| b.is_ascii_digit()) => group,
            _ => transfer.id.as_str(),
        };
        let name = format!("{group}.rate");
        if !figures.contains(&name) {
            figures.push(name);
        }
    }
    figures
}

/// `ok/FAILED/told  id  what  published  found  within`.
fn expectations(all: &[Comparison]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let columns = [
        ("", Align::Left),
        ("id", Align::Left),
        ("what", Align::Left),
        ("published", Align::Right),
        ("found", Align::Right),
        ("within", Align::Left),
    ];
    // Assertions of one's own have no published figures.
    let is_shown = |name: &str| name != "published" || all.iter().any(|one| one.published.is_some());
    let mut table = Table::new(columns.into_iter().filter(|(name, _)| is_shown(name))).with_two_keys();
    for one in all {
        let ComparisonText { published, found, bounds, verdict, .. } = comparison_text(one);
        let published = Some(published).filter(|_| is_shown("published"));
        let row = [Some(verdict.to_owned()), Some(one.id.clone()), Some(one.what.clone()), published];
        table.row(row.into_iter().flatten().chain([found, bounds]));
    }
    let failed = all.iter().filter(|one| one.gated && !one.held).count();
    let required = all.iter().filter(|one| one.gated).count();
    format!("{table}\n{} of {required} required figures hold.\n\n", required - failed)
}

/// The output of machines for commands and queries, run by run; the first repeat's only.
fn events(runs: &[RunRecord]) -> String {
    let mut text = String::new();
    for run in runs.iter().filter(|run| run.repeat == 0) {
        for event in run.events.iter().filter(|event| !event.output.is_empty()) {
            let at = event.at as f64 / 1e9;
            let _ = writeln!(
                text,
                "{}/{}, {at} s, {}$ {}\n{}",
                run.policy, run.load, event.on, event.what, event.output
            );
        }
    }
    text
}

/// What a file holds.
pub(super) fn listing(scenario: &Scenario) -> String {
    let mut text = String::new();
    if !scenario.title.is_empty() {
        let _ = writeln!(text, "{}", scenario.title);
    }
    let _ = writeln!(text, "policies:");
    for policy in &scenario.policies {
        let _ = writeln!(text, "  {:<20} {}", policy.name, policy.title);
    }
    let _ = writeln!(text, "loads:");
    for load in &scenario.loads {
        let ids: Vec<&str> = load.items.iter().map(|item| item.id.as_str()).collect();
        let _ = writeln!(text, "  {:<20} {} ({})", load.name, load.title, ids.join(", "));
    }
    let runs = scenario.cases.len() * scenario.repeats as usize;
    let end = scenario.end().as_secs_f64();
    let expect = count(scenario.expect.len(), "expectation");
    let (cases, runs) = (count(scenario.cases.len(), "case"), count(runs, "run"));
    let _ = writeln!(text, "{cases}, {runs} of {end} s, {expect}");
    text
}
