//! Charts of transfers, queues and windows over time.

use super::show::{Happened, Looks as _, RunView, Under, charts_of, distinct, end_of, title};
use crate::chart::{
    Axis, Band, COLOURS, ChartSeries, Drawing, LOOKS, Look, OTHERS, Reference, SeriesStyle, TimeSeriesChart,
    stack, time_series,
};
use crate::html::parts::capital;
use tidegate_measure::bits_per_second;
use tidegate_measure::experiment::{LinkSeries, RunRecord, TransferRecord, group_of};
use tidegate_measure::numbers::{rate, size};
use tidegate_measure::trial::ClassSeries;

/// The most values that a time series is averaged to.
const MOST_VALUES: usize = 150;
const HEIGHT: f64 = 170.0;

/// Values averaged over groups of steps, and the length of a group in ns.
fn averaged(run: &RunRecord, series: &[u64]) -> (Vec<f64>, u64) {
    let group = series.len().div_ceil(MOST_VALUES).max(1);
    let mean = |steps: &[u64]| steps.iter().sum::<u64>() as f64 / steps.len().max(1) as f64;
    (series.chunks(group).map(mean).collect(), group as u64 * run.step_ns)
}

/// What the transfers of a group carried over time with one policy, stacked.
pub(super) fn transfers(
    under: &Under<'_>,
    one: &RunView<'_>,
    group: &str,
    happened: &Happened<'_>,
) -> Option<Drawing> {
    let run = one.run;
    let own: Vec<&TransferRecord> =
        run.transfers.iter().filter(|transfer| group_of(&transfer.id) == group).collect();
    let mut step = run.step_ns;
    let mut bands: Vec<Band> = Vec::new();
    for (n, transfer) in own.iter().enumerate() {
        let (values, wide) = averaged(run, &transfer.series);
        step = wide;
        let values = values.into_iter().map(|bytes| bytes * 8e9 / run.step_ns as f64);
        match bands.get_mut(COLOURS) {
            // What has no colour of its own is one band.
            Some(others) if n >= COLOURS => {
                values.enumerate().for_each(|(at, value)| add(&mut others.values, at, value));
                others.name = format!("{} more", n + 1 - COLOURS);
            }
            _ => bands.push(Band {
                name: short_name(&transfer.id),
                colour: (n + 1).min(OTHERS),
                values: values.collect(),
            }),
        }
    }
    let found = own.iter().map(|t| format!("{} {}", title(&t.title, &t.id), rate(t.rate(run.window))));
    let description = format!("On average: {}.", found.collect::<Vec<_>>().join(", "));
    let name = format!("{group}: goodput with {}, {}", one.title, under.title());
    let time = Axis::time(end_of(run));
    let axes = (time.clone(), Axis::rates(rate_scale(under, group), 4));
    let drawing = stack(&name, &description, axes, run.window.0 as f64, step as f64, &bands, &[]);
    (!own.is_empty()).then(|| drawing.with_moments(&time, &happened.moments))
}

/// `no. 2` of `upload-2`: the chart names the group.
fn short_name(id: &str) -> String {
    id.strip_prefix(group_of(id))
        .and_then(|rest| rest.strip_prefix('-'))
        .map_or_else(|| id.chars().take(7).collect(), |number| format!("no. {number}"))
}

fn add(values: &mut Vec<f64>, at: usize, value: f64) {
    if values.len() <= at {
        values.resize(at + 1, 0.0);
    }
    values[at] += value;
}

/// The most that a group carried with any policy: all charts of it have one scale.
fn rate_scale(under: &Under<'_>, group: &str) -> f64 {
    under.typical().iter().flat_map(|one| total(one.run, group).0).fold(0.0, f64::max)
}

fn link<'e>(one: &RunView<'e>, name: &str, up: bool) -> Option<&'e LinkSeries> {
    one.run.queues.iter().find(|queue| queue.link == name && queue.up == up)
}

/// Bytes from which on one speaks of a queue: more than one packet on its way.
const A_QUEUE: u64 = 2_000;

/// The directions of links that ever had a queue.
pub(super) fn links<'e>(shown: &[RunView<'e>]) -> Vec<(&'e str, bool)> {
    let mut found: Vec<(&'e str, bool)> = Vec::new();
    for one in shown {
        for queue in one.run.queues.iter().filter(|queue| queue.backlog.iter().any(|&bytes| bytes > A_QUEUE))
        {
            if !found.contains(&(&queue.link, queue.up)) {
                found.push((&queue.link, queue.up));
            }
        }
    }
    found
}

/// What all transfers of a group carried together, each run in its look.
pub(super) fn carried(
    all: &[RunView<'_>],
    under: &str,
    group: &str,
    happened: &Happened<'_>,
) -> Vec<Drawing> {
    let has = |one: &&RunView<'_>| one.run.transfers.iter().any(|transfer| group_of(&transfer.id) == group);
    let shown: Vec<RunView<'_>> = all.iter().filter(has).copied().collect();
    let high = shown.iter().flat_map(|one| total(one.run, group).0).fold(0.0, f64::max);
    let end = shown.iter().map(|one| end_of(one.run)).max().unwrap_or(1);
    let draw = |part: &[RunView<'_>]| {
        let course = |one: &RunView<'_>| {
            let (values, step) = total(one.run, group);
            let point = |(n, value): (usize, f64)| ((n as u64 * step) as f64, Some(value));
            let points = values.into_iter().enumerate().map(point).collect();
            ChartSeries { name: one.label.to_owned(), look: one.look(), points }
        };
        let what = TimeSeriesChart {
            series: part.iter().map(course).collect(),
            drawn: SeriesStyle::Stairs,
            measured: part.iter().map(|one| one.run.window.0).min().unwrap_or(0) as f64,
            ..TimeSeriesChart::default()
        };
        let found = part.iter().map(|one| {
            let values = total(one.run, group).0;
            let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
            format!("{}: {} on average", one.title, rate(mean))
        });
        let description = found.collect::<Vec<_>>().join("; ");
        let time = Axis::time(end);
        let heading = format!("{group}: goodput, {under}");
        time_series(&heading, &description, (time.clone(), Axis::rates(high, 4)), HEIGHT, &what)
            .with_moments(&time, &happened.moments)
    };
    charts_of(&shown).map(draw).collect()
}

/// What a group of transfers carried together, averaged, in bits per second, and how long each value holds.
fn total(run: &RunRecord, group: &str) -> (Vec<f64>, u64) {
    let mut sum = Vec::new();
    let mut step = run.step_ns;
    for transfer in run.transfers.iter().filter(|transfer| group_of(&transfer.id) == group) {
        let (values, wide) = averaged(run, &transfer.series);
        step = wide;
        values
            .into_iter()
            .enumerate()
            .for_each(|(at, value)| add(&mut sum, at, value * 8e9 / run.step_ns as f64));
    }
    (sum, step)
}

/// Bytes that wait before a link, each policy in its look.
pub(super) fn before_link(
    all: &[RunView<'_>],
    under: &str,
    (name, up): (&str, bool),
    happened: &Happened<'_>,
) -> Vec<Drawing> {
    let shown: Vec<RunView<'_>> = all.iter().copied().filter(|one| link(one, name, up).is_some()).collect();
    let queues = || shown.iter().filter_map(|one| link(one, name, up));
    let high = queues().flat_map(|queue| &queue.backlog).copied().max().unwrap_or(0);
    let Some(first) = queues().next() else { return Vec::new() };
    // A limit far above would flatten the rest.
    let limit = first.limit.filter(|limit| *limit < 2 * high);
    let references: Vec<Reference> = limit
        .map(|limit| Reference { name: format!("holds {}", size(limit)), value: limit as f64 })
        .into_iter()
        .collect();
    let end = shown.iter().map(|one| end_of(one.run)).max().unwrap_or(1);
    let text_of = |part: &[RunView<'_>]| {
        let most = |one: &RunView<'_>| {
            let peak = link(one, name, up).and_then(|queue| queue.backlog.iter().copied().max());
            format!("{}: at most {}", one.title, size(peak.unwrap_or(0)))
        };
        part.iter().map(most).collect::<Vec<_>>().join("; ")
    };
    let draw = |part: &[RunView<'_>]| {
        let course = |one: &RunView<'_>| ChartSeries {
            name: one.label.to_owned(),
            look: one.look(),
            points: link(one, name, up).map(|queue| points(one.run, &queue.backlog)).unwrap_or_default(),
        };
        let what = TimeSeriesChart {
            series: part.iter().map(course).collect(),
            drawn: SeriesStyle::Lines,
            references: references.clone(),
            measured: part.iter().map(|one| one.run.window.0).min().unwrap_or(0) as f64,
        };
        let way = title(&first.title, if up { "up" } else { "down" });
        let heading = format!("Backlog before {name}, {way}, {under}");
        let time = Axis::time(end);
        let axes = (time.clone(), Axis::sizes(high.max(limit.unwrap_or(0)), 4));
        time_series(&heading, &text_of(part), axes, HEIGHT, &what).with_moments(&time, &happened.moments)
    };
    charts_of(&shown).map(draw).collect()
}

/// A series of values at the end of each step, as points.
fn points<T: Copy + Into<u64>>(run: &RunRecord, series: &[T]) -> Vec<(f64, Option<f64>)> {
    let point = |(n, &value): (usize, &T)| (((n + 1) as u64 * run.step_ns) as f64, Some(value.into() as f64));
    series.iter().enumerate().map(point).collect()
}

/// The devices whose classes are worth a chart: several sent something, or something waited.
pub(super) fn devices(run: &RunRecord) -> Vec<&str> {
    let leaves = || run.classes.iter().filter(|class| class.leaf);
    let busy = |on: &str| {
        let own = || leaves().filter(|class| device(&class.id) == on);
        let sent = own().filter(|class| class.sent.iter().any(|&bytes| bytes > 0)).count();
        sent > 1 || own().any(|class| class.backlog.iter().any(|&bytes| bytes > A_QUEUE))
    };
    distinct(leaves().map(|class| device(&class.id))).into_iter().filter(|on| busy(on)).collect()
}

/// `gateway:eth0` of `gateway:eth0 1:10`.
fn device(id: &str) -> &str {
    id.rsplit_once(' ').map_or("", |(device, _)| device)
}

/// Points of a time series: time and value.
type Points = Vec<(f64, Option<f64>)>;

/// What of classes is drawn.
pub(super) struct View {
    /// `sent`, `waiting`.
    pub(super) word: &'static str,
    drawn: SeriesStyle,
    points: fn(&RunRecord, &ClassSeries) -> Points,
    axis: fn(f64) -> Axis,
    written: fn(f64) -> String,
}

/// What classes sent, and what waited in them.
pub(super) const VIEWS: [&View; 2] = [
    &View {
        word: "sent",
        drawn: SeriesStyle::Stairs,
        points: sent,
        axis: |high| Axis::rates(high, 4),
        written: rate,
    },
    &View {
        word: "waiting",
        drawn: SeriesStyle::Lines,
        points: |run, class| points(run, &class.backlog),
        axis: |high| Axis::sizes(high as u64, 4),
        written: |bytes| size(bytes as u64),
    },
];

fn sent(run: &RunRecord, class: &ClassSeries) -> Points {
    let (values, step) = averaged(run, &class.sent);
    let point =
        |(n, bytes): (usize, f64)| ((n as u64 * step) as f64, Some(bits_per_second(1, run.step_ns) * bytes));
    values.into_iter().enumerate().map(point).collect()
}

/// The classes of a device, each in its look, and how many are left out: those that had most stay. `None`
/// where there was nothing.
pub(super) fn in_classes(
    under: &Under<'_>,
    one: &RunView<'_>,
    on: &str,
    view: &View,
    happened: &Happened<'_>,
) -> Option<(Drawing, usize)> {
    let (all, hidden) = busiest(one.run, on, view);
    let high = all.iter().map(|(_, _, peak)| *peak).fold(0.0, f64::max);
    let found = all.iter().map(|(class, _, peak)| format!("{}: at most {}", class.id, (view.written)(*peak)));
    let description = found.collect::<Vec<_>>().join("; ");
    let name = |class: &ClassSeries| class.id.rsplit(' ').next().unwrap_or_default().to_owned();
    let lines = all.into_iter().enumerate();
    let lines = lines.map(|(n, (class, points, _))| ChartSeries { name: name(class), look: Look(n), points });
    let drawn = TimeSeriesChart {
        series: lines.collect(),
        drawn: view.drawn,
        references: Vec::new(),
        measured: one.run.window.0 as f64,
    };
    if drawn.series.is_empty() {
        return None;
    }
    let heading =
        format!("{} by the classes of {on} with {}, {}", capital(view.word), one.title, under.title());
    let time = Axis::time(end_of(one.run));
    let drawing = time_series(&heading, &description, (time.clone(), (view.axis)(high)), HEIGHT, &drawn);
    Some((drawing.with_moments(&time, &happened.moments), hidden))
}

/// The leaf classes of a device with their points and the highest of these, in their order, and how many more
/// had something.
fn busiest<'e>(run: &'e RunRecord, on: &str, view: &View) -> (Vec<(&'e ClassSeries, Points, f64)>, usize) {
    let peak = |points: &Points| points.iter().filter_map(|(_, value)| *value).fold(0.0, f64::max);
    let leaves = run.classes.iter().filter(|class| class.leaf && device(&class.id) == on);
    let with = leaves.map(|class| (class, (view.points)(run, class)));
    let mut all: Vec<_> = with
        .map(|(class, points)| (class, peak(&points), points))
        .filter(|(_, peak, _)| *peak > 0.0)
        .collect();
    let mut peaks: Vec<f64> = all.iter().map(|(_, peak, _)| *peak).collect();
    peaks.sort_by(|a, b| b.total_cmp(a));
    let hidden = all.len().saturating_sub(LOOKS);
    if hidden > 0 {
        all.retain(|(_, peak, _)| *peak >= peaks[LOOKS - 1]);
        all.truncate(LOOKS);
    }
    (all.into_iter().map(|(class, peak, points)| (class, points, peak)).collect(), hidden)
}

/// Congestion windows with a policy, where they were recorded, and how many more transfers there are than are
/// drawn.
pub(super) fn windows(
    under: &Under<'_>,
    one: &RunView<'_>,
    happened: &Happened<'_>,
) -> Option<(Drawing, usize)> {
    let recorded: Vec<&TransferRecord> =
        one.run.transfers.iter().filter(|transfer| !transfer.cwnd.is_empty()).collect();
    let shown = &recorded[..recorded.len().min(LOOKS)];
    let high = shown.iter().flat_map(|transfer| &transfer.cwnd).copied().max()?;
    let course = |(n, transfer): (usize, &&TransferRecord)| ChartSeries {
        name: transfer.id.clone(),
        look: Look(n),
        points: points(one.run, &transfer.cwnd),
    };
    let what = TimeSeriesChart {
        series: shown.iter().enumerate().map(course).collect(),
        measured: one.run.window.0 as f64,
        ..TimeSeriesChart::default()
    };
    let most = |transfer: &&TransferRecord| {
        format!("{}: at most {}", transfer.id, transfer.cwnd.iter().max().unwrap_or(&0))
    };
    let description = shown.iter().map(most).collect::<Vec<_>>().join("; ");
    let heading = format!("Congestion windows with {}, {}", one.title, under.title());
    let time = Axis::time(end_of(one.run));
    let axes = (time.clone(), Axis::count(u64::from(high), "segments", 4));
    let drawing =
        time_series(&heading, &description, axes, HEIGHT, &what).with_moments(&time, &happened.moments);
    Some((drawing, recorded.len() - shown.len()))
}
