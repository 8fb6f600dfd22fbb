//! Charts of probes.

use super::show::{Happened, Looks as _, RunView, Under, charts_of, end_of};
use crate::chart::{
    Axis, Cell, ChartSeries, Drawing, Group, Look, Mark, PingRow, SeriesStyle, TimeSeriesChart, cases,
    cases_rates, cases_spans, pingexp, sheet, time_series,
};
use tidegate_analysis::experiment::{answers, called, probe};
use tidegate_measure::Durations;
use tidegate_measure::experiment::{Experiment, ProbeRecord};
use tidegate_measure::numbers::{format_duration, rate};

/// Height of a chart over time.
const HEIGHT: f64 = 260.0;

/// A probe's answers over time, each run in its look; more runs than looks make more charts.
pub(super) fn over_time(all: &[RunView<'_>], under: &str, id: &str, happened: &Happened<'_>) -> Vec<Drawing> {
    let shown: Vec<RunView<'_>> = all.iter().copied().filter(|one| probe(one, id).is_some()).collect();
    let probes = || shown.iter().filter_map(|one| probe(one, id));
    let answers = || probes().flat_map(|probe| &probe.answers).filter_map(|(_, took)| *took);
    let (low, high) = (answers().min().unwrap_or(0), answers().max().unwrap_or(0));
    let end = shown.iter().map(|one| end_of(one.run)).max().unwrap_or(1);
    let Some(name) = probes().next().map(called) else { return Vec::new() };
    let draw = |part: &[RunView<'_>]| {
        let course = |one: &RunView<'_>| {
            let answers = probe(one, id).into_iter().flat_map(|probe| &probe.answers);
            let points = answers.map(|(sent, took)| (*sent as f64, took.map(|took| took as f64))).collect();
            ChartSeries { name: one.label.to_owned(), look: one.look(), points }
        };
        let what = TimeSeriesChart {
            series: part.iter().map(course).collect(),
            drawn: SeriesStyle::Dots,
            measured: part.iter().map(|one| one.run.window.0).min().unwrap_or(0) as f64,
            ..TimeSeriesChart::default()
        };
        let time = Axis::time(end);
        let title = format!("{name} over time, {under}");
        let axes = (time.clone(), Axis::fitting_spans(low, high, 5));
        time_series(&title, &medians(part, id), axes, HEIGHT, &what).with_moments(&time, &happened.moments)
    };
    charts_of(&shown).map(draw).collect()
}

/// What the chart shows, in words.
fn medians(shown: &[RunView<'_>], id: &str) -> String {
    let found = shown.iter().filter_map(|one| {
        let figures = probe(one, id)?.figures(one.run.window);
        let median = figures
            .rtt
            .percentile(50.0)
            .map_or("no reply".to_owned(), |ns| format!("median {}", format_duration(ns)));
        Some(format!("{}: {median}, {} lost", one.title, figures.lost))
    });
    found.collect::<Vec<_>>().join("; ")
}

/// How the answers are distributed(CDF): the share of requests answered within a time.
pub(super) fn distribution(all: &[RunView<'_>], under: &str, id: &str) -> Vec<Drawing> {
    let shown: Vec<RunView<'_>> = all.iter().copied().filter(|one| probe(one, id).is_some()).collect();
    let figures = |one: &RunView<'_>| probe(one, id).map(|probe| probe.figures(one.run.window));
    let ends =
        shown.iter().filter_map(figures).filter_map(|pings| Some((pings.rtt.min()?, pings.rtt.max()?)));
    let Some((low, high)) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else { return Vec::new() };
    let Some(name) = shown.iter().find_map(|one| probe(one, id)).map(called) else { return Vec::new() };
    let draw = |part: &[RunView<'_>]| {
        let course = |one: &RunView<'_>| ChartSeries {
            name: one.label.to_owned(),
            look: one.look(),
            points: stairs(one, id, Axis::fitting_spans(low, high, 5).scale.ends().1),
        };
        let what =
            TimeSeriesChart { series: part.iter().map(course).collect(), ..TimeSeriesChart::default() };
        let title = format!("{name}: distribution, {under}");
        let x = Axis { ticks: 5, ..Axis::fitting_spans(low, high, 5) };
        time_series(&title, &medians(part, id), (x, Axis::shares()), 200.0, &what)
    };
    charts_of(&shown).map(draw).collect()
}

/// Each reply lifts the line; losses leave it below the top.
fn stairs(one: &RunView<'_>, id: &str, end: f64) -> Vec<(f64, Option<f64>)> {
    let Some(probe) = probe(one, id) else { return Vec::new() };
    let mut answered: Vec<u64> = probe.within(one.run.window).filter_map(|(_, took)| took).collect();
    let requested = probe.within(one.run.window).count().max(1) as f64;
    answered.sort_unstable();
    let corner = |(n, took): (usize, &u64)| {
        [(*took as f64, Some(n as f64 / requested)), (*took as f64, Some((n + 1) as f64 / requested))]
    };
    let top = Some(answered.len() as f64 / requested);
    answered.iter().enumerate().flat_map(corner).chain([(end, top)]).collect()
}

/// The probes of a run, as ping-exp draws them: those that wait for answers while measured.
pub(super) fn targets(shown: &RunView<'_>) -> Vec<PingRow> {
    let target = |probe: &ProbeRecord| PingRow {
        name: probe.id.clone(),
        answers: probe.within(shown.run.window).collect(),
    };
    shown.run.probes.iter().filter(|probe| !probe.answers.is_empty()).map(target).collect()
}

/// The figure of ping-exp for one case.
pub(super) fn six_panels(under: &Under<'_>, shown: &RunView<'_>) -> Option<Drawing> {
    let targets = targets(shown);
    let title = format!("{}: {}", shown.title, under.title());
    let found = targets.iter().map(|target| {
        let answered = target.answers.iter().filter(|(_, took)| took.is_some()).count();
        format!("{}: {answered} of {} replies", target.name, target.answers.len())
    });
    let lines: Vec<String> = found.collect();
    (!targets.is_empty()).then(|| pingexp(&title, &lines.join("; "), &targets, SeriesStyle::Dots))
}

/// All cases on one sheet: a row per policy, a column per load.
pub(super) fn all(experiment: &Experiment) -> Option<Drawing> {
    let loads = Under::all(experiment);
    let typical: Vec<Vec<RunView<'_>>> = loads.iter().map(Under::typical).collect();
    let cell = |policy: usize, load: &Vec<RunView<'_>>| Cell {
        targets: load.iter().find(|one| one.policy == policy).map(targets).unwrap_or_default(),
    };
    let ran = |n: usize| typical.iter().flatten().any(|one| one.policy == n);
    let policies = || experiment.policies.iter().enumerate().filter(|(n, _)| ran(*n));
    let cells: Vec<Vec<Cell>> =
        policies().map(|(n, _)| typical.iter().map(|load| cell(n, load)).collect()).collect();
    if cells.iter().flatten().all(|cell| cell.targets.is_empty()) {
        return None;
    }
    let rows: Vec<String> =
        policies().map(|(_, policy)| super::show::title(&policy.title, &policy.name).to_owned()).collect();
    let columns: Vec<String> = loads.iter().map(|under| under.title().to_owned()).collect();
    Some(sheet(&experiment.title, "Replies over time, for each policy and load.", &rows, &columns, &cells))
}

/// A probe in every case: the median, the 95th and the 99th percentile of all repeats together.
pub(super) fn summary(experiment: &Experiment, id: &str) -> Option<Drawing> {
    let mut name = None;
    let mut ends: Option<(u64, u64)> = None;
    let mut lines = Vec::new();
    let mut groups = Vec::new();
    for under in Under::all(experiment) {
        let mut marks = Vec::new();
        for (policy, case) in &under.cases {
            name = name
                .or_else(|| case.runs.iter().flat_map(|run| &run.probes).find(|p| p.id == id).map(called));
            let figures = Durations::new(answers(case, id));
            let title = super::show::title(&case.policy.title, &case.policy.name);
            let (Some(summary), Some(low)) = (figures.summary(), figures.min()) else { continue };
            ends = Some(ends.map_or((low, summary.p99), |(a, b)| (a.min(low), b.max(summary.p99))));
            lines.push(format!(
                "{}, {title}: median {}, 95 % within {}",
                under.title(),
                format_duration(summary.p50),
                format_duration(summary.p95)
            ));
            let [p50, p95, p99] = [summary.p50, summary.p95, summary.p99].map(|ns| ns as f64);
            marks.push(Mark {
                look: Look(*policy),
                bar: (p50, p95),
                dot: p50,
                whisker: (p50, p99),
                name: super::show::label(&case.policy.title, &case.policy.name).to_owned(),
                text: format_duration(summary.p95),
            });
        }
        groups.push(Group { title: under.title().to_owned(), cases: marks });
    }
    let ((low, high), name) = (ends?, name?);
    let title = format!("{name}: median, 95th and 99th percentile of every case");
    Some(cases(&title, &lines.join("; "), cases_spans(low, high), &groups))
}

/// What each group of transfers carried in every case: the median over repeats, and from the least to the
/// most.
pub(super) fn carried(experiment: &Experiment, group: &str) -> Option<Drawing> {
    let figure = format!("{group}.rate");
    let mut high: f64 = 0.0;
    let mut lines = Vec::new();
    let mut groups = Vec::new();
    for under in Under::all(experiment) {
        let mut marks = Vec::new();
        for (policy, case) in &under.cases {
            let Ok(found) = case.figure(&figure) else { continue };
            let title = super::show::title(&case.policy.title, &case.policy.name);
            high = high.max(found.most);
            lines.push(format!("{}, {title}: {}", under.title(), rate(found.median)));
            marks.push(Mark {
                look: Look(*policy),
                bar: (0.0, found.median),
                dot: found.median,
                whisker: (found.least, found.most),
                name: super::show::label(&case.policy.title, &case.policy.name).to_owned(),
                text: rate(found.median),
            });
        }
        if !marks.is_empty() {
            groups.push(Group { title: under.title().to_owned(), cases: marks });
        }
    }
    let title = format!("{group}: goodput in every case");
    (!groups.is_empty()).then(|| cases(&title, &lines.join("; "), cases_rates(high), &groups))
}
