//! The figures behind charts over time, as tables: a row for each span of time.

use super::show::{RunView, end_of, probe};
use crate::data::{Data, span_title, spans};
use tidegate_measure::experiment::{RunRecord, group_of};
use tidegate_measure::numbers::{milliseconds, rate, size};
use tidegate_measure::{Pings, bits_per_second};

/// Columns of a table at most.
const MOST_COLUMNS: usize = 12;

/// A row for each span of time until the last run ends.
fn table(caption: &str, names: Vec<String>, end: u64, cells: impl Fn((u64, u64)) -> Vec<String>) -> Data {
    let head = std::iter::once("time".to_owned()).chain(names).take(MOST_COLUMNS + 1).collect();
    let row =
        |of: (u64, u64)| std::iter::once(span_title(of)).chain(cells(of)).take(MOST_COLUMNS + 1).collect();
    Data { caption: caption.to_owned(), head, rows: spans(end).into_iter().map(row).collect() }
}

fn last_end(shown: &[RunView<'_>]) -> u64 {
    shown.iter().map(|one| end_of(one.run)).max().unwrap_or(1)
}

fn titles(shown: &[&RunView<'_>]) -> Vec<String> {
    shown.iter().map(|one| one.title.to_owned()).collect()
}

/// The steps of a span of time.
fn steps<'s, T>(run: &RunRecord, series: &'s [T], (from, to): (u64, u64)) -> &'s [T] {
    let step = run.step_ns.max(1);
    crate::trial::part(series, (from / step) as usize..to.div_ceil(step) as usize)
}

fn summary(pings: &Pings) -> String {
    let median = pings.rtt.percentile(50.0).map(milliseconds);
    match (median, pings.lost) {
        (None, 0) => String::new(),
        (None, lost) => format!("{lost} lost"),
        (Some(median), 0) => median,
        (Some(median), lost) => format!("{median}, {lost} lost"),
    }
}

/// The median round-trip time, and the number of losses.
pub fn answers(shown: &[RunView<'_>], id: &str) -> Data {
    let views: Vec<&RunView<'_>> = shown.iter().filter(|one| probe(one, id).is_some()).collect();
    let cells =
        |of| views.iter().filter_map(|one| probe(one, id)).map(|probe| summary(&probe.figures(of))).collect();
    table("Median reply time and loss", titles(&views), last_end(shown), cells)
}

/// Some percentiles, from the top down.
pub fn percentiles(shown: &[RunView<'_>], id: &str) -> Data {
    let views: Vec<&RunView<'_>> = shown.iter().filter(|one| probe(one, id).is_some()).collect();
    let all: Vec<Pings> =
        views.iter().filter_map(|one| Some(probe(one, id)?.figures(one.run.window))).collect();
    let row = |p: u32| {
        let cell = |pings: &Pings| pings.rtt.percentile(f64::from(p)).map_or("–".to_owned(), milliseconds);
        std::iter::once(format!("{p} %")).chain(all.iter().map(cell)).take(MOST_COLUMNS + 1).collect()
    };
    Data {
        caption: "Percentiles of the reply times".to_owned(),
        head: std::iter::once("percentile".to_owned()).chain(titles(&views)).take(MOST_COLUMNS + 1).collect(),
        rows: [100, 99, 95, 90, 75, 50, 25, 10].into_iter().map(row).collect(),
    }
}

/// What each transfer of a group carried.
pub fn transfers(one: &RunView<'_>, group: &str) -> Data {
    let own: Vec<_> = one.run.transfers.iter().filter(|transfer| group_of(&transfer.id) == group).collect();
    let names = own.iter().map(|transfer| transfer.id.clone()).collect();
    table("Payload per second", names, end_of(one.run), |of| {
        own.iter().map(|transfer| per_second(one.run, &transfer.series, of)).collect()
    })
}

/// What all transfers of a group carried together.
pub fn carried(shown: &[RunView<'_>], group: &str) -> Data {
    let own = |one: &RunView<'_>| -> Vec<u64> {
        let transfers = one.run.transfers.iter().filter(|transfer| group_of(&transfer.id) == group);
        transfers.fold(Vec::new(), |mut sum, transfer| {
            sum.resize(sum.len().max(transfer.series.len()), 0);
            sum.iter_mut().zip(&transfer.series).for_each(|(sum, bytes)| *sum += bytes);
            sum
        })
    };
    let series: Vec<Vec<u64>> = shown.iter().map(own).collect();
    let names = shown.iter().map(|one| one.title.to_owned()).collect();
    table("Payload per second", names, last_end(shown), |of| {
        shown.iter().zip(&series).map(|(one, series)| per_second(one.run, series, of)).collect()
    })
}

fn per_second(run: &RunRecord, series: &[u64], of: (u64, u64)) -> String {
    let steps = steps(run, series, of);
    rate(bits_per_second(steps.iter().sum(), steps.len() as u64 * run.step_ns))
}

fn most(run: &RunRecord, series: &[u64], of: (u64, u64)) -> String {
    size(steps(run, series, of).iter().copied().max().unwrap_or(0))
}

/// The most that waited before a link.
pub fn waiting(shown: &[RunView<'_>], link: &str, up: bool) -> Data {
    let queue = |one: &RunView<'_>| {
        let queues = one.run.queues.iter();
        queues.clone().find(|queue| queue.link == link && queue.up == up).map(|queue| queue.backlog.clone())
    };
    let known: Vec<&RunView<'_>> = shown.iter().filter(|one| queue(one).is_some()).collect();
    let series: Vec<(&RunRecord, Vec<u64>)> =
        known.iter().filter_map(|one| Some((one.run, queue(one)?))).collect();
    table("Most bytes waiting", titles(&known), last_end(shown), |of| {
        series.iter().map(|(run, backlog)| most(run, backlog, of)).collect()
    })
}

/// What the classes of a device sent, or the most that waited in them.
pub fn classes(one: &RunView<'_>, device: &str, what: &str) -> Data {
    let own: Vec<_> = one
        .run
        .classes
        .iter()
        .filter(|class| class.leaf && class.id.rsplit_once(' ').is_some_and(|(on, _)| on == device))
        .filter(|class| class.sent.iter().chain(&class.backlog).any(|&bytes| bytes > 0))
        .collect();
    let names = own.iter().map(|class| class.id.rsplit(' ').next().unwrap_or_default().to_owned()).collect();
    let caption = if what == "sent" { "Sent per second" } else { "Most bytes waiting" };
    table(caption, names, end_of(one.run), |of| {
        let cell = |class: &&tidegate_measure::trial::ClassSeries| match what {
            "sent" => per_second(one.run, &class.sent, of),
            _ => most(one.run, &class.backlog, of),
        };
        own.iter().map(cell).collect()
    })
}

/// The largest windows, in segments.
pub fn windows(one: &RunView<'_>) -> Data {
    let own: Vec<_> = one.run.transfers.iter().filter(|transfer| !transfer.cwnd.is_empty()).collect();
    let names = own.iter().map(|transfer| transfer.id.clone()).collect();
    table("Largest window in segments", names, end_of(one.run), |of| {
        own.iter().map(|t| steps(one.run, &t.cwnd, of).iter().max().unwrap_or(&0).to_string()).collect()
    })
}
