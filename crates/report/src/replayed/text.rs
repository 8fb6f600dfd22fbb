//! Policies compared on a capture, on a terminal.

use crate::html::parts::Data;
use crate::table::{Align, Table, clean};
use std::fmt::Write as _;
use tidegate_analysis::replayed::tables;
use tidegate_measure::numbers::{format_duration, rate, size};
use tidegate_measure::replayed::{CaptureSummary, ReplayLine, Replayed};

/// The terminal's view: plain text, no colour.
pub fn text(replayed: &Replayed) -> String {
    let mut out = head(replayed);
    out.push_str(&section(&tables::overview(replayed, false), 1));
    if tables::inward_matters(replayed) {
        out.push_str(&section(&tables::overview(replayed, true), 1));
    } else if tables::comes_in(replayed) {
        out.push_str("Incoming packets are not queued, and none is dropped.\n\n");
    }
    for outcome in &replayed.policies {
        out.push_str(&section(&tables::classes(replayed, outcome), 2));
    }
    let losses = tables::losses(replayed);
    if !losses.rows.is_empty() {
        out.push_str(&section(&losses, 3));
    }
    if replayed.policies.first().is_some_and(|one| !one.flows.is_empty()) {
        out.push_str(&section(&tables::flows(replayed), 1));
    }
    for note in &replayed.notes {
        let _ = writeln!(out, "Note: {}", clean(note.clone()));
    }
    let _ = writeln!(out, "Again: {}", clean(replayed.again.clone()));
    out
}

fn head(replayed: &Replayed) -> String {
    let mut out = String::new();
    for sentence in sentences(&replayed.capture, &replayed.line) {
        let _ = writeln!(out, "{}", clean(sentence));
    }
    out.push('\n');
    out
}

/// What was captured and what is done with it, in sentences.
pub(super) fn sentences(capture: &CaptureSummary, line: &ReplayLine) -> Vec<String> {
    let CaptureSummary { file, packets, duration, out, inward, rule, split, .. } = capture;
    let mut all = vec![
        format!(
            "{file}: {packets} packets in {}; {rule}: {} ({}) out, {} ({}) in.",
            format_duration(*duration),
            out.0,
            size(out.1),
            inward.0,
            size(inward.1)
        ),
        match (line.rate, line.buffer) {
            (None, _) => "No line behind the gateway: the policies alone set the pace.".to_owned(),
            (Some(bits), None) => format!("The device itself sends at {}.", rate(bits as f64)),
            (Some(bits), Some(bytes)) => {
                format!("A modem that holds {} before a line of {}.", size(bytes), rate(bits as f64))
            }
        },
        "Arrivals as captured: senders do not slow down, whatever is lost or late.".to_owned(),
    ];
    all.extend(capture.left_out.iter().map(|(why, count)| format!("Left out: {count} packets {why}.")));
    if split.0 > 0 {
        all.push(format!(
            "{} packets longer than a frame were split into {}, as the card does.",
            split.0, split.1
        ));
    }
    all.extend(capture.broken.iter().map(|broken| format!("The file is damaged: {broken}.")));
    all
}

/// A table under its caption; the first columns are words.
fn section(data: &Data, words: usize) -> String {
    let columns = data.head.iter().enumerate().map(|(at, name)| {
        let is_words = at < words || name == "for";
        (name.clone(), if is_words { Align::Left } else { Align::Right })
    });
    let mut table = Table::new(columns);
    for row in &data.rows {
        table.row(row.clone());
    }
    format!("{}\n\n{table}\n", data.caption)
}
