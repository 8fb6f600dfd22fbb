//! Policies compared on a capture, as one page.

use super::text::sentences;
use crate::chart::{
    Axis, ChartSeries, Drawing, Group, LOOKS, Look, Mark, SeriesStyle, TimeSeriesChart, cases, cases_spans,
    time_series,
};
use crate::html::document::document as page_document;
use crate::html::parts::{
    Data, Reading, THE_SAME, Tabled as _, chip, ending, figure, prose, span_title, spans,
};
use maud::{Markup, html};
use tidegate_analysis::replayed::tables::{self, name, of_way, wait};
use tidegate_measure::replayed::{ClassOutcome, LADDER, OutcomeCounts, ReplayOutcome, Replayed};

/// Waits of each step, and what they are called.
type Waits = (String, Vec<Option<u64>>);

/// Height of charts, pixels.
const HEIGHT: f64 = 240.0;
/// Classes of a policy that a chart distinguishes.
const MOST_CLASSES: usize = LOOKS;

/// The page: an HTML document that needs nothing else.
pub fn page(replayed: &Replayed) -> String {
    let file = &replayed.capture.file;
    let heading = file.rsplit('/').next().unwrap_or(file);
    let content = html! {
        header { (head(replayed, heading)) }
        main {
            (glance(replayed))
            (way(replayed, false, "What goes out"))
            @if tables::comes_in(replayed) { (way(replayed, true, "What comes in")) }
            @for outcome in &replayed.policies { (policy(replayed, outcome)) }
            (rest(replayed))
        }
    };
    page_document(heading, content)
}

fn head(replayed: &Replayed, heading: &str) -> Markup {
    html! {
        p.eyebrow { "tidegate · a capture, through policies" }
        h1.name { (heading) }
        @for sentence in sentences(&replayed.capture, &replayed.line) {
            p.about { (prose(&sentence)) }
        }
        ul.keys {
            @for (n, ReplayOutcome { name, file, device, .. }) in replayed.policies.iter().enumerate() {
                li {
                    (chip(Look(n).colour())) b { (name) } " "
                    @if file.is_empty() { "no policy" } @else { (file) }
                    ", " (device)
                }
            }
        }
    }
}

/// The lowest value of a scale: no delay at all is drawn there too.
fn lowest(waits: impl Iterator<Item = u64>, high: u64) -> u64 {
    waits.filter(|ns| *ns > 0).min().unwrap_or(1).max(high / 100_000).max(1)
}

/// Every policy, every class: how long packets waited.
fn glance(replayed: &Replayed) -> Markup {
    let all =
        || replayed.policies.iter().flat_map(|one| &one.classes).filter_map(|class| class.outcomes.waited);
    let high = all().map(|summary| summary.p99).max().unwrap_or(0);
    let low = lowest(all().flat_map(|summary| [summary.p50, summary.p95, summary.p99]), high);
    let mut groups = Vec::new();
    let mark = |look: usize, name: String, fates: &OutcomeCounts| {
        let summary = fates.waited?;
        let [p50, p95, p99] = [summary.p50, summary.p95, summary.p99].map(|ns| ns.max(low) as f64);
        Some(Mark {
            name,
            look: Look(look),
            bar: (p50, p95),
            dot: p50,
            whisker: (p50, p99),
            text: wait(summary.p95),
        })
    };
    for (n, one) in replayed.policies.iter().enumerate() {
        let classes = one.classes.iter().filter_map(|class| mark(n, name(class), &class.outcomes)).collect();
        groups.push(Group { title: one.name.clone(), cases: classes });
    }
    if high == 0 {
        return Markup::default();
    }
    let text = "Median, 95th and 99th percentile of the queueing delay of each class, policy by policy.";
    let drawing = cases("Queueing delay, class by class", text, cases_spans(low, high), &groups);
    let caption = html! {
        b { "Queueing delay" }
        ", class by class. Dot: median; end of the bar, with its figure: 95th percentile; end of the thin \
        line: 99th."
    };
    let mut data = tables::overview(replayed, false);
    data.rows
        .extend(tables::overview(replayed, true).rows.into_iter().filter(|_| tables::comes_in(replayed)));
    html! {
        section { h2 { "At a glance" } (figure(&[drawing], caption, Reading::None, &data)) }
    }
}

/// Policies laid over each other.
fn way(replayed: &Replayed, inward: bool, title: &str) -> Markup {
    if replayed.policies.iter().all(|one| of_way(one, inward).packets == 0) {
        return Markup::default();
    }
    let longest = |one: &ReplayOutcome| over_time(one.classes.iter().filter(|class| class.inward == inward));
    let lines: Vec<Waits> = replayed.policies.iter().map(|one| (one.name.clone(), longest(one))).collect();
    let charts = waits_over_time(
        replayed,
        &format!("{title}: the longest queueing delay of each step"),
        &lines,
        SeriesStyle::Lines,
    );
    html! {
        section {
            h2 { (title) }
            (tables::overview(replayed, inward).table())
            @if charts.is_empty() {
                p.small { "Nothing waited." }
            } @else {
                @let about = html! { b { "Over time" } ": the longest queueing delay of the packets that \
                arrived in each step." };
                (figure(&charts, about, Reading::Across, &steps_table(replayed, &lines)))
                (distributed(replayed, inward, title))
            }
        }
    }
}

/// The distribution of a way's waits, policies laid over each other.
fn distributed(replayed: &Replayed, inward: bool, title: &str) -> Markup {
    let charts =
        distribution(title, replayed.policies.iter().map(|one| (one.name.clone(), of_way(one, inward))));
    let about = html! {
        b { "Distribution" }
        ": the share of all arrivals with at most that delay; drops leave a gap at the top."
    };
    html! {
        @if !charts.is_empty() { (figure(&charts, about, Reading::None, &ladder_table(replayed, inward))) }
    }
}

/// The longest wait of several classes in each step.
fn over_time<'c>(classes: impl Iterator<Item = &'c ClassOutcome>) -> Vec<Option<u64>> {
    let mut all: Vec<Option<u64>> = Vec::new();
    for class in classes {
        all.resize(all.len().max(class.longest.len()), None);
        for (known, more) in all.iter_mut().zip(&class.longest) {
            *known = (*known).max(*more);
        }
    }
    all
}

/// Lines of waits over time; more of them than looks make more charts.
fn waits_over_time(replayed: &Replayed, title: &str, lines: &[Waits], drawn: SeriesStyle) -> Vec<Drawing> {
    let values = || lines.iter().flat_map(|(_, waits)| waits.iter().flatten().copied());
    let high = values().max().unwrap_or(0);
    if high == 0 {
        return Vec::new();
    }
    let low = lowest(values(), high);
    let steps = lines.iter().map(|(_, waits)| waits.len()).max().unwrap_or(1) as u64;
    let draw = |(first, part): (usize, &[Waits])| {
        let course = |(n, (name, waits)): (usize, &Waits)| ChartSeries {
            name: name.clone(),
            look: Look(first * LOOKS + n),
            points: points(waits, replayed.step_ns, low),
        };
        let what = TimeSeriesChart {
            series: part.iter().enumerate().map(course).collect(),
            drawn,
            ..TimeSeriesChart::default()
        };
        let sentences: Vec<String> = part
            .iter()
            .map(|(name, waits)| {
                format!("{name}: at most {}", wait(waits.iter().flatten().copied().max().unwrap_or(0)))
            })
            .collect();
        let axes = (Axis::time(steps * replayed.step_ns), Axis::fitting_spans(low, high, 5));
        time_series(title, &sentences.join("; "), axes, HEIGHT, &what)
    };
    lines.chunks(LOOKS).enumerate().map(draw).collect()
}

/// A step without packets leaves the line where it was; no delay is drawn at the lowest value that the scale
/// has.
fn points(waits: &[Option<u64>], step_ns: u64, low: u64) -> Vec<(f64, Option<f64>)> {
    let known = waits.iter().enumerate().filter_map(|(at, wait)| Some((at, (*wait)?)));
    known.map(|(at, wait)| ((at as u64 * step_ns + step_ns / 2) as f64, Some(wait.max(low) as f64))).collect()
}

/// Distributions, from the percentiles that are kept.
fn distribution<'f>(title: &str, all: impl Iterator<Item = (String, &'f OutcomeCounts)>) -> Vec<Drawing> {
    let all: Vec<(String, &OutcomeCounts)> = all.filter(|(_, fates)| !fates.ladder.is_empty()).collect();
    let values = || all.iter().flat_map(|(_, fates)| fates.ladder.iter().copied());
    let high = values().max().unwrap_or(0);
    if high == 0 {
        return Vec::new();
    }
    let low = lowest(values(), high);
    let draw = |(first, part): (usize, &[(String, &OutcomeCounts)])| {
        let course = |(n, (name, fates)): (usize, &(String, &OutcomeCounts))| {
            let came = fates.sent as f64 / fates.packets.max(1) as f64;
            let steps = LADDER.iter().zip(&fates.ladder);
            let mut points: Vec<(f64, Option<f64>)> =
                steps.map(|(p, ns)| ((*ns).max(low) as f64, Some(p / 100.0 * came))).collect();
            points.push((Axis::fitting_spans(low, high, 5).scale.ends().1, Some(came)));
            ChartSeries { name: name.clone(), look: Look(first * LOOKS + n), points }
        };
        let what = TimeSeriesChart {
            series: part.iter().enumerate().map(course).collect(),
            ..TimeSeriesChart::default()
        };
        let lines: Vec<String> = part
            .iter()
            .filter_map(|(name, fates)| Some(format!("{name}: median {}", wait(fates.waited?.p50))))
            .collect();
        let x = Axis { ticks: 5, ..Axis::fitting_spans(low, high, 5) };
        time_series(
            &format!("{title}: CDF of the queueing delay"),
            &lines.join("; "),
            (x, Axis::shares()),
            200.0,
            &what,
        )
    };
    all.chunks(LOOKS).enumerate().map(draw).collect()
}

/// The longest waits by spans of time.
fn steps_table(replayed: &Replayed, lines: &[Waits]) -> Data {
    let step = replayed.step_ns.max(1);
    let end = lines.iter().map(|(_, waits)| waits.len()).max().unwrap_or(0) as u64 * step;
    let row = |span: (u64, u64)| {
        let (from, to) = ((span.0 / step) as usize, span.1.div_ceil(step) as usize);
        let of = |(_, waits): &Waits| {
            let part = waits.get(from..to.min(waits.len())).unwrap_or_default();
            part.iter().flatten().max().map_or_else(|| "–".to_owned(), |ns| wait(*ns))
        };
        std::iter::once(span_title(span)).chain(lines.iter().map(of)).collect()
    };
    let head = std::iter::once("time".to_owned()).chain(lines.iter().map(|(name, _)| name.clone())).collect();
    Data {
        caption: "The longest queueing delays".to_owned(),
        head,
        rows: spans(end).into_iter().map(row).collect(),
    }
}

fn ladder_table(replayed: &Replayed, inward: bool) -> Data {
    let row = |(at, p): (usize, &f64)| {
        let of = |one: &ReplayOutcome| {
            of_way(one, inward).ladder.get(at).map_or_else(|| "–".to_owned(), |ns| wait(*ns))
        };
        std::iter::once(format!("{p} %")).chain(replayed.policies.iter().map(of)).collect()
    };
    let head = std::iter::once("share of those sent".to_owned())
        .chain(replayed.policies.iter().map(|one| one.name.clone()));
    Data {
        caption: "Percentiles".to_owned(),
        head: head.collect(),
        rows: LADDER.iter().enumerate().map(row).collect(),
    }
}

/// One policy, class by class.
fn policy(replayed: &Replayed, outcome: &ReplayOutcome) -> Markup {
    let waits = |class: &&ClassOutcome| class.outcomes.waited.is_some_and(|summary| summary.max > 0);
    let mut largest: Vec<&ClassOutcome> = outcome.classes.iter().filter(waits).collect();
    largest.sort_by_key(|class| std::cmp::Reverse(class.outcomes.packets));
    largest.truncate(MOST_CLASSES);
    let lines: Vec<Waits> = largest.iter().map(|class| (name(class), class.median.clone())).collect();
    let title = format!("{}: median queueing delay by class", outcome.name);
    let charts = waits_over_time(replayed, &title, &lines, SeriesStyle::Dots);
    html! {
        section {
            h2 { (outcome.name) ", class by class" }
            (tables::classes(replayed, outcome).table())
            @if !charts.is_empty() {
                @let about = html! {
                    b { "Over time" } ": the median queueing delay of the packets that arrived in each \
                    step, class by class."
                };
                (figure(&charts, about, Reading::Across, &steps_table(replayed, &lines)))
            }
        }
    }
}

fn rest(replayed: &Replayed) -> Markup {
    let tables = [tables::losses(replayed), tables::flows(replayed)];
    html! {
        @for data in tables.iter().filter(|data| !data.rows.is_empty()) {
            section { h2 { (data.caption) } (data.table()) }
        }
        (ending(&replayed.notes, THE_SAME, &replayed.again, &format!("tidegate {}", replayed.version)))
    }
}
