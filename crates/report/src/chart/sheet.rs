//! Many small charts on one sheet: repeated pings, for each row and column of a table.

use super::axis::Axis;
use super::drawing::{Body, Drawing, cut, short, words};
use super::look::{LOOKS, Look};
use super::panel::Panel;
use super::pingexp::PingRow;
use std::fmt::Write as _;
use tidegate_measure::numbers::{format_duration, percent};
use tidegate_measure::{Pings, deviation};

/// A case on the sheet.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// The targets; empty: this case was not run.
    pub targets: Vec<PingRow>,
}

const LEFT: f64 = 16.0;
const WIDE: f64 = 210.0;
const HIGH: f64 = 110.0;
/// The distance between charts, for the axis's figures.
const BESIDE: f64 = 50.0;
/// From one row to the next, without a line for each target.
const BELOW: f64 = 74.0;
const HEAD: f64 = 86.0;
const LINE: f64 = 14.0;
const LOST: f64 = 5.0;

/// Rows and columns of charts on the same scales, so that all can be compared.
pub fn sheet(
    title: &str,
    description: &str,
    rows: &[String],
    columns: &[String],
    cells: &[Vec<Cell>],
) -> Drawing {
    let all = || cells.iter().flatten().flat_map(|cell| &cell.targets);
    let answers = || all().flat_map(|target| &target.answers);
    let longest = answers().filter_map(|(_, took)| *took).max().unwrap_or(0);
    let shortest = answers().filter_map(|(_, took)| *took).min().unwrap_or(0);
    let begin = answers().map(|(sent, _)| *sent).min().unwrap_or(0);
    let end = answers().map(|(sent, _)| *sent).max().unwrap_or(1);
    let names = names(all());
    let lines = names.len().min(LOOKS) as f64;
    let below = BELOW + LINE * lines;
    let mut out = String::new();
    words(&mut out, LEFT, 22.0, "large strong", title);
    legend(&mut out, &names);
    for (n, column) in columns.iter().enumerate() {
        words(&mut out, left(n) + WIDE / 2.0, HEAD - 14.0, "strong mid", &cut(column, 32));
    }
    for (row, (name, cells)) in rows.iter().zip(cells).enumerate() {
        let top = HEAD + 34.0 + (HIGH + below) * row as f64;
        words(&mut out, LEFT, top - 22.0, "strong", &cut(name, 60));
        for (column, cell) in cells.iter().enumerate() {
            let mut x = Axis::time(end.saturating_sub(begin).max(1));
            x.ticks = 4;
            let y = Axis::fitting_spans(shortest, longest, 4);
            let panel = Panel { left: left(column), top, width: WIDE, height: HIGH, x, y };
            one(&mut out, &panel, cell, &names, begin);
        }
    }
    let width = left(columns.len()) - 20.0;
    let height = HEAD + (HIGH + below) * rows.len() as f64 + 16.0;
    let body = Body::Fixed { width: width.max(400.0), height, content: out };
    Drawing { title: title.to_owned(), description: description.to_owned(), body }
}

fn left(column: usize) -> f64 {
    LEFT + 34.0 + (WIDE + BESIDE) * column as f64
}

/// The names of all targets, in order of appearance.
fn names<'t>(targets: impl Iterator<Item = &'t PingRow>) -> Vec<&'t str> {
    let mut names: Vec<&str> = Vec::new();
    for target in targets {
        if !names.contains(&target.name.as_str()) {
            names.push(&target.name);
        }
    }
    names
}

fn legend(out: &mut String, names: &[&str]) {
    let mut x = LEFT;
    for (n, name) in names.iter().take(LOOKS).enumerate() {
        let _ = write!(out, "<path class=\"mark {} spot\" d=\"M{} 40h.1\"/>", Look(n).line(), short(x + 4.0));
        words(out, x + 12.0, 44.0, "ink", &cut(name, 24));
        x += 30.0 + 7.0 * name.chars().count().min(24) as f64;
    }
    let mut text = "round trip over time; strokes at the top: lost".to_owned();
    if names.len() > LOOKS {
        let _ = write!(text, "; not drawn: {}", names[LOOKS..].join(", "));
    }
    words(out, x + 4.0, 44.0, "", &text);
}

fn one(out: &mut String, panel: &Panel, cell: &Cell, names: &[&str], begin: u64) {
    if cell.targets.is_empty() {
        panel.frame(out);
        words(out, panel.left + WIDE / 2.0, panel.top + HIGH / 2.0, "mid", "not run");
        return;
    }
    panel.axes(out, "", None);
    words(out, panel.left - 6.0, panel.top - 6.0, "small end", panel.y.unit);
    for target in &cell.targets {
        let Some(n) = names.iter().position(|name| *name == target.name).filter(|n| *n < LOOKS) else {
            continue;
        };
        let points =
            target.answers.iter().filter_map(|(sent, took)| Some(((sent - begin) as f64, (*took)? as f64)));
        panel.dots(out, Look(n), points);
        let lost =
            target.answers.iter().filter(|(_, took)| took.is_none()).map(|(sent, _)| (sent - begin) as f64);
        panel.strokes(out, Look(n), panel.top + 2.0 + (LOST + 1.0) * n as f64, LOST, lost);
        words(out, panel.left, panel.foot() + 30.0 + LINE * n as f64, "small", &summary(target));
    }
}

/// What a target's answers come to, in a line.
fn summary(target: &PingRow) -> String {
    let pings = Pings::new(target.answers.iter().map(|(_, took)| *took));
    let answered: Vec<u64> = target.answers.iter().filter_map(|(_, took)| *took).collect();
    let name = cut(&target.name, 14);
    match (pings.rtt.mean(), deviation(&answered)) {
        (Some(mean), Some(mdev)) => {
            format!(
                "{name}: {} ± {}, lost {}",
                format_duration(mean),
                format_duration(mdev),
                percent(pings.loss())
            )
        }
        _ => format!("{name}: no reply"),
    }
}
