//! docs/scores.md: its requirements are those that scores are computed with.

use std::fmt::Write as _;
use tidegate_measure::outcome::{DelayRequirement, NamedApplication, PROFILES};

/// The rows of the page's table for an application.
fn rows(application: &NamedApplication) -> String {
    let pair = |needed: &DelayRequirement| {
        format!("{} ms, {} ms", needed.optimal_ns / 1_000_000, needed.unacceptable_ns / 1_000_000)
    };
    let per_cent = |share: f64| format!("{} %", (share * 1000.0).round() / 10.0);
    let of = application.one_way;
    let mut text = String::new();
    for (n, (one, both)) in of.delays.iter().zip(application.round_trip.delays).enumerate() {
        let (name, lost) = match n {
            0 => {
                let lost = format!("{}, {}", per_cent(of.optimal_loss), per_cent(of.unacceptable_loss));
                (format!("`{}` ", of.name), format!("{lost} "))
            }
            _ => (String::new(), String::new()),
        };
        let _ = writeln!(text, "| {name}| {} | {} | {} | {lost}|", one.percentile, pair(one), pair(both));
    }
    text
}

#[test]
fn the_requirements_of_the_page() {
    let page = include_str!("../../../../docs/scores.md");
    let table: String = PROFILES.iter().map(rows).collect();
    assert!(page.contains(&table), "docs/scores.md needs these rows:\n{table}");
}
