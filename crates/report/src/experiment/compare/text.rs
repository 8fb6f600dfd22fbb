//! The terminal's view of a comparison.

use crate::table::{Align, Table};
use std::fmt::Write as _;
use tidegate_analysis::experiment::{Comparing, by, title};
use tidegate_measure::experiment::Experiment;

/// Plain text: what is compared, what cannot be compared, a table per load.
pub fn comparison_text(comparing: &Comparing<'_>) -> String {
    let mut out = String::new();
    let described = |e: &Experiment| format!("{} ({}, seed {})", title(&e.title, &e.scenario), by(e), e.seed);
    if let (true, [first, ..]) = (comparing.is_of_policies(), comparing.sides) {
        let _ = writeln!(out, "{}: policies compared with {}", described(&first.experiment), first.label);
    } else {
        for side in comparing.sides {
            let _ = writeln!(out, "{}: {}", side.label, described(&side.experiment));
        }
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
    let of_policies = comparing.is_of_policies();
    let keys = if of_policies { &["figure"][..] } else { &["policy", "figure"] };
    let mut columns: Vec<(String, Align)> = keys.iter().map(|key| ((*key).to_owned(), Align::Left)).collect();
    for (n, side) in comparing.sides.iter().enumerate() {
        columns.push((side.label.clone(), Align::Right));
        if n > 0 {
            columns.push(("change".to_owned(), Align::Left));
        }
    }
    let mut table = Table::new(columns);
    if !of_policies {
        table = table.with_two_keys();
    }
    let mut last = None;
    for row in comparing.rows.iter().filter(|row| row.load == load) {
        if last.is_some_and(|policy| policy != &row.policy) {
            table.rule();
        }
        let mut cells =
            if of_policies { vec![row.figure.clone()] } else { vec![row.policy.clone(), row.figure.clone()] };
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
