//! The terminal's view of a comparison.

use crate::table::{Align, Table};
use std::fmt::Write as _;
use tidegate_analysis::experiment::{Comparing, by};

/// Plain text: the results compared, what cannot be compared, a table per case.
pub fn comparison_text(comparing: &Comparing<'_>) -> String {
    let mut out = String::new();
    for side in comparing.sides {
        let experiment = &side.experiment;
        let _ = writeln!(
            out,
            "{}: {} ({}, seed {})",
            side.label,
            experiment.title,
            by(experiment),
            experiment.seed
        );
    }
    if !comparing.apart.is_empty() {
        let _ = writeln!(out, "\nDifferences between the results:");
        comparing.apart.iter().for_each(|sentence| {
            let _ = writeln!(out, "- {sentence}");
        });
    }
    let mut loads: Vec<&str> = Vec::new();
    for (_, load) in comparing.cases() {
        if !loads.contains(&load) {
            loads.push(load);
            let _ = writeln!(out, "\nLoad {load}\n\n{}", table(comparing, load));
        }
    }
    for sentence in comparing.legend() {
        let _ = writeln!(out, "{sentence}");
    }
    out
}

fn table(comparing: &Comparing<'_>, load: &str) -> Table {
    let mut columns = vec![("policy".to_owned(), Align::Left), ("figure".to_owned(), Align::Left)];
    for (n, side) in comparing.sides.iter().enumerate() {
        columns.push((side.label.clone(), Align::Right));
        if n > 0 {
            columns.push(("change".to_owned(), Align::Left));
        }
    }
    let mut table = Table::new(columns).with_two_keys();
    let mut last = None;
    for row in comparing.rows.iter().filter(|row| row.load == load) {
        if last.is_some_and(|policy| policy != &row.policy) {
            table.rule();
        }
        let mut cells = vec![row.policy.clone(), row.figure.clone()];
        for side in 0..comparing.sides.len() {
            cells.push(row.median(side));
            if side > 0 {
                cells.push(row.change(side).map_or_else(String::new, |change| change.shown()));
            }
        }
        table.row(cells);
        last = Some(&row.policy);
    }
    table
}
