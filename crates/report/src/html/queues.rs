//! Queues without a policy: the modem and the provider.

use super::head::key;
use super::parts::{Data, Reading, capital, end_of, figure, span_title, spans, steps_of};
use crate::chart::{Axis, ChartLine, lines};
use maud::{Markup, html};
use tidegate_analysis::trial::Pair;
use tidegate_measure::numbers::size;
use tidegate_measure::trial::{BufferSeries, TrialRun};

/// A chart for each buffer, without and with.
pub(super) fn section(pair: &Pair<'_>) -> Markup {
    let mut titles: Vec<&str> = Vec::new();
    for buffer in pair.each().flat_map(|(_, run)| &run.buffers) {
        if !titles.contains(&buffer.title.as_str()) {
            titles.push(&buffer.title);
        }
    }
    html! {
        @if !titles.is_empty() {
            h3 { "Queues without a policy" }
            p.small {
                "A full buffer here delays all packets behind it. A good policy keeps the modem's empty."
            }
            div.pair.even { @for title in &titles { (one(pair, title)) } }
        }
    }
}

fn one(pair: &Pair<'_>, title: &str) -> Markup {
    let sides: Vec<(&'static str, &TrialRun, &BufferSeries)> = pair
        .each()
        .filter_map(|(word, run)| Some((word, run, run.buffers.iter().find(|buffer| buffer.title == title)?)))
        .collect();
    let end = sides.iter().map(|(_, run, _)| end_of(run)).max().unwrap_or(1);
    let began = sides.iter().map(|(_, run, _)| run.window.0).max().unwrap_or(0);
    let limit = sides.iter().map(|(_, _, buffer)| buffer.limit).max().unwrap_or(0);
    let drawn: Vec<ChartLine> = sides.iter().map(|(word, run, buffer)| line(word, run, buffer)).collect();
    let name = format!("The {title}'s buffer");
    let dropped = sides.iter().map(|(word, _, buffer)| format!("{} {word}", buffer.dropped));
    let description =
        format!("It holds {}. Packets dropped: {}.", size(limit), dropped.collect::<Vec<_>>().join(", "));
    let drawing =
        lines(&name, &description, (Axis::time(end), Axis::sizes(limit, 4)), 150.0, began as f64, &drawn);
    let caption = html! { b { (name) } ", " (key()) ". " (description) };
    let mut head = vec!["time".to_owned()];
    head.extend(sides.iter().map(|(word, ..)| format!("{word}: largest backlog")));
    let row = |of: (u64, u64)| {
        let mut row = vec![span_title(of)];
        row.extend(
            sides.iter().map(|(_, run, b)| size(*steps_of(run, &b.backlog, of).iter().max().unwrap_or(&0))),
        );
        row
    };
    let data = Data { caption: capital(&name), head, rows: spans(end).into_iter().map(row).collect() };
    figure(&[drawing], caption, Reading::Across, &data)
}

fn line(word: &'static str, run: &TrialRun, buffer: &BufferSeries) -> ChartLine {
    let at = |n: usize| (n as u64 + 1) * run.step_ns;
    ChartLine {
        name: word.to_owned(),
        class: word,
        fill: Some(if word == "with" { "fill-with" } else { "fill-without" }),
        points: buffer
            .backlog
            .iter()
            .enumerate()
            .map(|(n, &bytes)| (at(n) as f64, Some(bytes as f64)))
            .collect(),
    }
}
