//! On a terminal.

use super::words::{remarks, sentence};
use crate::html::parts::Data;
use crate::table::{Align, Table, clean};
use std::fmt::Write as _;
use tidegate_measure::numbers::{format_duration, percent};
use tidegate_measure::pinged::{PingTarget, Pinged};

/// The terminal's view: plain text, no colour.
pub fn text(pinged: &Pinged) -> String {
    let mut out = String::new();
    for target in &pinged.targets {
        let _ = writeln!(out, "{}", clean(sentence(target)));
    }
    if let Some(why) = &pinged.partial {
        let _ = writeln!(out, "Partial: {}", clean(why.clone()));
    }
    let data = table(pinged);
    let columns = data.head.iter().enumerate();
    let mut shown =
        Table::new(columns.map(|(n, name)| (name.clone(), if n == 0 { Align::Left } else { Align::Right })));
    for row in data.rows {
        shown.row(row);
    }
    let _ = write!(out, "\n{shown}");
    for remark in remarks(pinged) {
        let _ = writeln!(out, "Note: {}", clean(remark));
    }
    out
}

/// The figures of every target.
pub(super) fn table(pinged: &Pinged) -> Data {
    let is_here = pinged.targets.iter().any(|target| target.figures().here.is_some());
    let mut head: Vec<String> = [
        "target", "sent", "lost", "loss", "95 % CI", "min", "mean", "p50", "p95", "p99", "max", "mdev",
        "jitter",
    ]
    .map(str::to_owned)
    .to_vec();
    if is_here {
        head.push("here p95".to_owned());
    }
    let rows = pinged.targets.iter().map(|target| row(target, is_here)).collect();
    Data { caption: "Round trips".to_owned(), head, rows }
}

fn row(target: &PingTarget, is_here: bool) -> Vec<String> {
    let figures = target.figures();
    let written = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), format_duration);
    let (low, high) = figures.loss_interval;
    let mut row = vec![
        target.id.clone(),
        figures.sent.to_string(),
        figures.lost.to_string(),
        percent(figures.loss),
        format!("{:.1}–{:.1} %", low * 100.0, high * 100.0),
        written(figures.min),
    ];
    let rtt = figures.rtt;
    row.extend([rtt.map(|of| of.mean), rtt.map(|of| of.p50), rtt.map(|of| of.p95)].map(written));
    row.extend([rtt.map(|of| of.p99), rtt.map(|of| of.max), figures.mdev, figures.jitter].map(written));
    if is_here {
        row.push(written(figures.here.map(|(_, p95)| p95)));
    }
    row
}
