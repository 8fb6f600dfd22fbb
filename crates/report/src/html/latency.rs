//! How long answers take: over time, and how often how long.

use super::head::key;
use super::parts::{Data, Reading, capital, end_of, figure, span_title, spans, tied};
use crate::chart::{Axis, ChartLine, Drawing, Sample, cdf, lines};
use crate::text::unanswered;
use maud::{Markup, html};
use tidegate_analysis::trial::{FigurePair, Pair, main_probe, pairs};
use tidegate_measure::Durations;
use tidegate_measure::numbers::{format_duration, milliseconds, percent};
use tidegate_measure::trial::{TrialDocument, TrialProbe, TrialRun};

/// The probes of a load, each with its charts; the links become a choice.
pub(super) fn section(pair: &Pair<'_>, load: usize) -> Markup {
    let ids = pair.probe_ids();
    if ids.is_empty() {
        return Markup::default();
    }
    let first = main_probe(pair).unwrap_or_default();
    let selected = ids.iter().enumerate().map(|(n, id)| (n, *id, pair.probe(id)));
    let all: Vec<(usize, &str, FigurePair<'_>, &TrialProbe)> =
        selected.filter_map(|(n, id, figures)| figures.any().map(|probe| (n, id, figures, probe))).collect();
    html! {
        h3 { "Response times" }
        nav.picks data-tabs aria-label="Request" {
            @for (n, id, _, probe) in &all {
                a href={ "#load-" (load) "-" (n) } data-key=(id) data-first[*id == first] { (capital(&probe.title)) }
            }
        }
        @for (n, _, figures, probe) in &all {
            div.probe id={ "load-" (load) "-" (n) } { (probe_block(figures, probe)) }
        }
    }
}

fn probe_block(figures: &FigurePair<'_>, probe: &TrialProbe) -> Markup {
    html! {
        p.said { b { (capital(&probe.title)) } ", " (probe.unit) ": " (sentence(figures)) }
        div.pair { (over_time(figures, probe)) (distribution(figures, probe)) }
    }
}

/// Its figures in words.
fn sentence(pair: &FigurePair<'_>) -> Markup {
    let side = |(run, probe): (&TrialRun, &TrialProbe)| {
        let figures = probe.figures(run.window);
        let Some(summary) = figures.rtt.summary() else { return unanswered(&figures).to_owned() };
        let lost =
            if figures.lost > 0 { format!(", {} lost", percent(figures.loss())) } else { String::new() };
        format!(
            "median {}, 95 % within {}, longest {}{lost}",
            format_duration(summary.p50),
            format_duration(summary.p95),
            format_duration(summary.max)
        )
    };
    let sides = [("without", pair.without), ("with", pair.with)];
    let sentences = sides.iter().filter_map(|(word, of)| Some((*word, side((*of)?))));
    tied(html! {
        @for (n, (word, figure)) in sentences.enumerate() {
            @if n > 0 { "; " }
            span.key.(word) { (word) " the policy" } " " (figure)
        }
        "."
    })
}

fn sides<'t>(figures: &FigurePair<'t>) -> impl Iterator<Item = (&'static str, &'t TrialRun, &'t TrialProbe)> {
    let sides = [("without", figures.without), ("with", figures.with)];
    sides.into_iter().filter_map(|(word, side)| side.map(|(run, probe)| (word, run, probe)))
}

fn over_time(figures: &FigurePair<'_>, probe: &TrialProbe) -> Markup {
    let end = sides(figures).map(|(_, run, _)| end_of(run)).max().unwrap_or(1);
    let drawing = time_drawing(figures, probe, end, false);
    let lost = sides(figures).any(|(_, _, probe)| probe.answers.iter().any(|(_, took)| took.is_none()));
    let caption = html! {
        b { "Over time" } ", " (key()) ". Lower is better."
        @if lost { " " span.key.lost { "Red strokes" } " at the top: no reply." }
    };
    figure(&[drawing], caption, Reading::Across, &time_table(figures, probe, end))
}

fn time_drawing(figures: &FigurePair<'_>, probe: &TrialProbe, end: u64, log: bool) -> Drawing {
    let began = sides(figures).map(|(_, run, _)| run.window.0).max().unwrap_or(0);
    let waits =
        || sides(figures).flat_map(|(_, _, probe)| probe.answers.iter().filter_map(|(_, took)| *took));
    let (shortest, longest) = (waits().min().unwrap_or(1_000_000), waits().max().unwrap_or(1_000_000));
    let drawn: Vec<ChartLine> = sides(figures)
        .map(|(word, _, probe)| ChartLine {
            name: word.to_owned(),
            class: word,
            fill: None,
            points: probe
                .answers
                .iter()
                .map(|(sent, took)| (*sent as f64, took.map(|ns| ns as f64)))
                .collect(),
        })
        .collect();
    let title = format!("{} over time", capital(&probe.title));
    let description = format!("{}, from the beginning to {} of the run.", probe.unit, format_duration(end));
    let waits = if log { Axis::log_spans(shortest, longest) } else { Axis::spans(longest, 5) };
    let axes = (Axis::time(end), waits);
    lines(&title, &description, axes, 240.0, began as f64, &drawn)
}

/// The round-trip times of the probe `id` (or else the main one) over time, without and with the policy,
/// under the first load that fills the link; as an SVG file of its own, with a linear or logarithmic scale.
/// `None`: there is no such probe.
pub fn picture(trial: &TrialDocument, id: &str, log: bool) -> Option<String> {
    let pairs = pairs(trial);
    let pair =
        pairs.iter().find(|pair| pair.any().is_some_and(|run| !run.flows.is_empty())).or(pairs.first())?;
    let id = pair.probe_ids().into_iter().find(|known| *known == id).or(main_probe(pair))?;
    let figures = pair.probe(id);
    let end = sides(&figures).map(|(_, run, _)| end_of(run)).max()?;
    Some(time_drawing(&figures, figures.any()?, end, log).alone(760.0))
}

/// Median, longest and losses per span of time.
fn time_table(pair: &FigurePair<'_>, probe: &TrialProbe, end: u64) -> Data {
    // Where nothing was lost, the caption of the chart says nothing of it either.
    let has_lost = sides(pair).any(|(_, _, probe)| probe.answers.iter().any(|(_, took)| took.is_none()));
    let mut head = vec!["time".to_owned()];
    for (word, ..) in sides(pair) {
        head.extend([format!("{word}: median"), format!("{word}: max")]);
        head.extend(has_lost.then(|| format!("{word}: lost")));
    }
    let row = |span: (u64, u64)| {
        let mut row = vec![span_title(span)];
        for (_, _, probe) in sides(pair) {
            let figures = probe.figures(span);
            let ms = |value: Option<u64>| value.map_or_else(|| "–".to_owned(), milliseconds);
            row.extend([ms(figures.rtt.percentile(50.0)), ms(figures.rtt.max())]);
            row.extend(has_lost.then(|| figures.lost.to_string()));
        }
        row
    };
    Data {
        caption: format!("{} over time", capital(&probe.title)),
        head,
        rows: spans(end).into_iter().map(row).collect(),
    }
}

/// Shares that the table of a distribution lists, in percent.
const SHARES: [f64; 13] = [1.0, 5.0, 10.0, 25.0, 40.0, 50.0, 60.0, 75.0, 90.0, 95.0, 98.0, 99.0, 100.0];

fn distribution(figures: &FigurePair<'_>, probe: &TrialProbe) -> Markup {
    let samples: Vec<Sample> = sides(figures)
        .map(|(word, run, probe)| {
            let within = probe.answers.iter().filter(|(sent, _)| (run.window.0..run.window.1).contains(sent));
            let mut sorted: Vec<u64> = within.clone().filter_map(|(_, took)| *took).collect();
            sorted.sort_unstable();
            Sample { name: word.to_owned(), class: word, of: within.count(), sorted }
        })
        .collect();
    let ends = |of: fn(&Sample) -> Option<&u64>| samples.iter().filter_map(of).copied();
    let low = ends(|sample| sample.sorted.first()).min().unwrap_or(1_000_000);
    let high = ends(|sample| sample.sorted.last()).max().unwrap_or(10_000_000);
    let title = format!("{}: CDF", capital(&probe.title));
    let description = "The share of replies within a time, on a logarithmic scale.";
    let drawing = cdf(&title, description, Axis::log_spans(low, high), 240.0, &samples);
    let mut head = vec!["came within".to_owned()];
    head.extend(samples.iter().map(|sample| sample.name.clone()));
    let row = |share: f64| {
        let mut row = vec![format!("{share} %")];
        row.extend(samples.iter().map(|sample| came_within(sample, share)));
        row
    };
    let data =
        Data { caption: title.clone(), head, rows: SHARES.iter().rev().map(|share| row(*share)).collect() };
    let caption = html! {
        b { "Distribution (CDF)" } ": the share of replies within a time. Further left is better."
    };
    figure(&[drawing], caption, Reading::Upwards, &data)
}

/// The time within which a share of all requests, lost ones included, got a reply.
fn came_within(sample: &Sample, share: f64) -> String {
    let lost = sample.of - sample.sorted.len();
    let with_lost = sample.sorted.iter().copied().chain(std::iter::repeat_n(u64::MAX, lost));
    match Durations::new(with_lost.collect()).percentile(share) {
        None | Some(u64::MAX) => "never".to_owned(),
        Some(ns) => milliseconds(ns),
    }
}
