//! What the gym says on a terminal.

use std::fmt::Write as _;
use tidegate_gym::GymDocument;
use tidegate_report::gym::cells;
use tidegate_report::{Align, Table, percent};

/// The most failures, and the most cases, that are printed.
const MOST: usize = 400;

/// The scores and the comparison; `cases`: each case too.
pub(super) fn report(document: &GymDocument, cases: bool) -> String {
    let mut out = String::new();
    if cases {
        out.push_str(&rows(document));
        out.push('\n');
    }
    out.push_str(&summary(document));
    out.push('\n');
    out.push_str(&better(document));
    for failure in document.failures.iter().take(MOST) {
        let _ = writeln!(out, "{} failed in {}: {}", failure.controller, failure.case, failure.why);
    }
    let [warm_up, measured] = document.seconds;
    let runs = document.rows.len() * document.controllers.len();
    let cases = match document.rows.len() {
        1 => "1 case".to_owned(),
        count => format!("{count} cases"),
    };
    let _ = writeln!(
        out,
        "\n{cases}, {runs} runs of {warm_up:.0} s of warm-up and {measured:.0} s measured, with {}",
        document.shaper
    );
    let _ = writeln!(
        out,
        "Delays are one way, of a call's packets in the worse direction; a lost one counts as 2 s."
    );
    let _ = writeln!(out, "\nAgain: {}", document.command);
    out
}

fn summary(document: &GymDocument) -> String {
    let columns = [
        ("controller", Align::Left),
        ("median", Align::Right),
        ("p95", Align::Right),
        ("p99", Align::Right),
        ("p95, bad cases", Align::Right),
        ("line used", Align::Right),
        ("regret", Align::Right),
        ("unused", Align::Right),
        ("of fixed", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(columns);
    let own = document.controllers.len() - document.baselines;
    for (at, one) in document.comparison.controllers.iter().enumerate() {
        if at == own {
            table.rule();
        }
        table.row(cells(one, |ms| format!("{ms:.0} ms"), ["front", ""]));
    }
    table.to_string()
}

/// Who is better than whom, how often.
fn better(document: &GymDocument) -> String {
    let own = document.controllers.len() - document.baselines;
    let mut out = String::new();
    for one in 0..own {
        let others = (0..document.controllers.len()).filter_map(|other| {
            let name = &document.controllers[other];
            let share = document.comparison.better[one][other].filter(|_| name != "known")?;
            Some(format!("{name} in {}", percent(share)))
        });
        let others: Vec<String> = others.collect();
        if others.is_empty() {
            continue;
        }
        let _ = writeln!(
            out,
            "{} has a lower p95, and uses as much of the line, than {} of the cases",
            document.controllers[one],
            others.join(", ")
        );
    }
    let comparison = &document.comparison;
    for (words, shares) in [
        (
            "At one of its aims tidegate has a lower p95, and uses as much of the line, than",
            &comparison.at_an_aim,
        ),
        (
            "Interpolated between its aims to equal use, tidegate has a lower p95 than",
            &comparison.at_equal_use,
        ),
    ] {
        let shares = document.controllers.iter().zip(shares).filter_map(|(name, share)| {
            Some(format!("{name} in {}", percent((*share).filter(|_| name != "known")?)))
        });
        let shares: Vec<String> = shares.collect();
        if !shares.is_empty() {
            let _ = writeln!(out, "{words} {} of the cases", shares.join(", "));
        }
    }
    out
}

fn rows(document: &GymDocument) -> String {
    let names = document.controllers.iter().map(|name| (name.clone(), Align::Right));
    let mut table = Table::new(std::iter::once(("case".to_owned(), Align::Left)).chain(names));
    for row in document.rows.iter().take(MOST) {
        let cells = row.scores.iter().map(|score| match score {
            Some(score) => format!("{:.0} ms, {}", score.call_p95_ms, percent(score.utilisation)),
            None => "failed".to_owned(),
        });
        table.row(std::iter::once(row.case.clone()).chain(cells));
    }
    let mut out = table.to_string();
    if let Some(more) = document.rows.len().checked_sub(MOST).filter(|more| *more > 0) {
        let _ = writeln!(out, "… and {more} more cases: -o FILE.json has all");
    }
    out
}
