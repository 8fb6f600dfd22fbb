//! What a sweep says on a terminal.

use std::fmt::Write as _;
use tidegate_analysis::experiment::written;
use tidegate_measure::numbers::USUAL;
use tidegate_report::{Align, Table};
use tidegate_sweep::{FEWEST, IntervalMethod, SummaryRow, SweepCase, SweepSummary, SweepTable, figure_names};

/// The most rows that are printed; of more, the first.
const MOST: usize = 200;

/// Every case with its values.
pub(super) fn cases(cases: &[SweepCase]) -> String {
    let axes = cases.first().map_or(&[][..], |case| &case.settings).iter().map(|one| one.path.clone());
    let mut table =
        Table::new(std::iter::once("case".to_owned()).chain(axes).map(|name| (name, Align::Right)));
    for case in cases.iter().take(MOST) {
        table.row(
            std::iter::once(case.number.to_string()).chain(case.settings.iter().map(|one| one.value.clone())),
        );
    }
    let mut out = table.to_string();
    if let Some(more) = cases.len().checked_sub(MOST).filter(|more| *more > 0) {
        let _ = writeln!(out, "… and {more} more cases");
    }
    out
}

/// The figures that are printed if none is asked for: of probes the 95th percentile, of transfers the rate.
pub(super) fn usual_figures(table: &SweepTable, asked: &[String]) -> Vec<String> {
    if !asked.is_empty() {
        return asked.to_vec();
    }
    let is_usual = |name: &&str| {
        !name.starts_with("link ")
            && !name.starts_with("class ")
            && (name.ends_with(".p95") || name.ends_with(".rate"))
    };
    figure_names(table.runs.values()).into_iter().filter(is_usual).map(str::to_owned).collect()
}

/// The rows of a summary, and what the intervals are.
pub(super) fn summary(table: &SweepTable, summary: &SweepSummary, again: &str) -> String {
    if table.runs.is_empty() {
        return format!("No run falls into this part: the sweep has {} in all\n", table.head.runs);
    }
    let with_difference = summary.rows.iter().any(|row| row.difference.is_some());
    let with_harm = summary.rows.iter().any(|row| row.harm.is_some());
    let several = summary.rows.iter().any(|row| row.runs > 1);
    let mut columns: Vec<(String, Align)> =
        summary.columns.iter().map(|name| (name.clone(), Align::Right)).collect();
    columns.push(("figure".into(), Align::Left));
    columns.push((if several { "mean" } else { "value" }.into(), Align::Right));
    if several {
        columns.extend([("95 % interval".into(), Align::Left), ("runs".into(), Align::Right)]);
    }
    if with_difference {
        columns.extend([("difference".into(), Align::Right), ("95 % interval".into(), Align::Left)]);
        columns.push(("p".into(), Align::Right));
    }
    if with_harm {
        columns.extend([("harm".into(), Align::Right), ("95 % interval".into(), Align::Left)]);
    }
    let mut shown = Table::new(columns);
    for row in summary.rows.iter().take(MOST) {
        shown.row(cells(row, several, (with_difference, with_harm)));
    }
    let mut out = shown.to_string();
    if let Some(more) = summary.rows.len().checked_sub(MOST).filter(|more| *more > 0) {
        let _ = writeln!(out, "… and {more} more rows: --figure and `tidegate results` choose");
    }
    let _ = writeln!(out, "\n{} of {} runs", table.runs.len(), table.head.runs);
    let without: usize = summary.rows.iter().map(|row| row.without).sum();
    if without > 0 {
        let _ = writeln!(
            out,
            "{without} figures of runs have no value (no reply came, or a transfer did not end, joins no other or does \
            not converge), and are in no mean"
        );
    }
    let of_rows = summary.rows.iter().filter(|row| row.interval.is_some()).count();
    let differences = summary.rows.iter().filter_map(|row| row.difference?.paired.interval).count();
    let harms = summary.rows.iter().filter_map(|row| row.harm?.interval).count();
    let intervals = of_rows + differences + harms;
    if intervals > 0 {
        let _ = writeln!(
            out,
            "Intervals: where the mean over ever more repeats lies, by {}, with 95 % confidence{}",
            match summary.intervals {
                IntervalMethod::Student => "Student's t".to_owned(),
                IntervalMethod::Bootstrap =>
                    "the means of samples drawn again from the runs (bootstrap)".to_owned(),
            },
            if intervals > 1 { format!(" in each of the {intervals}") } else { String::new() }
        );
    }
    if summary.rows.iter().any(|row| row.runs > 1 && row.interval.is_none()) {
        let _ = writeln!(
            out,
            "Rows without an interval: several cases together, which are no sample of one thing, the same value in \
            every run, or values too large to compute with{}",
            match summary.intervals {
                IntervalMethod::Student => String::new(),
                IntervalMethod::Bootstrap => format!(", or fewer than {FEWEST} runs"),
            }
        );
    }
    if with_difference {
        let p_values = summary.rows.iter().filter_map(|row| row.difference?.p_value).count();
        let tested = match p_values {
            0 => "",
            _ => "; p by Student's t of the pairs, corrected for the number of rows (Holm)",
        };
        let _ = writeln!(out, "Differences: of runs with the same seed{tested}");
    }
    if with_harm {
        let _ = writeln!(
            out,
            "Harm: how much worse than alone, of runs with the same seed: the share of a rate that is lost, or of a \
            delay or loss that was added; below 0 it is better than alone (Ware and others, HotNets 2019)"
        );
    }
    if !again.is_empty() {
        let _ = writeln!(out, "\nAgain: {again}");
    }
    out
}

fn cells(row: &SummaryRow, several: bool, (with_difference, with_harm): (bool, bool)) -> Vec<String> {
    let written = |number: f64| written(&row.figure, number, &row.unit, USUAL);
    let interval = |found: Option<(f64, f64)>| found.map_or(String::new(), |ends| range(row, ends));
    let mut cells = row.keys.clone();
    cells.extend([row.figure.clone(), row.mean.map_or_else(|| "–".to_owned(), written)]);
    if several {
        cells.extend([interval(row.interval), row.runs.to_string()]);
    }
    if with_difference {
        match &row.difference {
            Some(difference) => cells.extend([
                written(difference.paired.difference),
                interval(difference.paired.interval),
                difference.p_value.map_or(String::new(), p_value),
            ]),
            None => cells.extend([String::new(), String::new(), String::new()]),
        }
    }
    if with_harm {
        let interval = |(low, high): (f64, f64)| format!("{} to {}", harm(low), harm(high));
        cells.push(row.harm.map_or(String::new(), |found| harm(found.mean)));
        cells.push(row.harm.and_then(|found| found.interval).map_or(String::new(), interval));
    }
    cells
}

/// From where to where, with as many digits as show a difference.
fn range(row: &SummaryRow, (low, high): (f64, f64)) -> String {
    /// More are noise.
    const MOST_DIGITS: usize = 6;
    let ends = |digits| [low, high].map(|end| written(&row.figure, end, &row.unit, digits));
    let differ = (USUAL..MOST_DIGITS).map(ends).find(|[low, high]| low != high);
    let [low, high] = differ.unwrap_or_else(|| ends(USUAL));
    format!("{low} to {high}")
}

/// A harm, to three digits behind the point.
fn harm(harm: f64) -> String {
    let shown = format!("{:.3}", harm.abs());
    if harm < 0.0 && shown != "0.000" { format!("−{shown}") } else { shown }
}

/// To three digits.
fn p_value(p: f64) -> String {
    if p < 0.001 { "<0.001".into() } else { format!("{p:.3}") }
}
