//! What a line that varies could carry, beneath what it carried.

use super::classes::throughput;
use super::parts::{Data, Reading, figure, span_title, spans, steps_of};
use crate::chart::{Axis, Drawing, Steps, steps};
use maud::{Markup, html};
use tidegate_analysis::trial::Pair;
use tidegate_measure::bits_per_second;
use tidegate_measure::numbers::rate;
use tidegate_measure::trial::TrialRun;

/// A figure for each direction that varies and in which transfers send.
pub(super) fn section(pair: &Pair<'_>) -> Markup {
    let figures: Vec<Markup> = [true, false].into_iter().filter_map(|up| direction(pair, up)).collect();
    html! {
        @if !figures.is_empty() {
            h3 { "What the line could carry, and what it carried" }
            @for figure in &figures { (figure) }
        }
    }
}

fn direction(pair: &Pair<'_>, up: bool) -> Option<Markup> {
    let runs: Vec<(&str, &TrialRun)> = [("Without the policy", pair.without), ("With the policy", pair.with)]
        .into_iter()
        .filter_map(|(word, run)| Some((word, run?)))
        .collect();
    let both = |run: &TrialRun| {
        let line = run.capacity.as_ref()?;
        let (carried, could) =
            if up { (&line.carried_up, &line.up) } else { (&line.carried_down, &line.down) };
        (!could.is_empty()).then(|| [carried.clone(), could.clone()])
    };
    let has_transfers = |run: &TrialRun| run.flows.iter().any(|flow| flow.up == up);
    let series: Vec<(&str, &TrialRun, [Vec<u64>; 2])> = runs
        .iter()
        .filter(|(_, run)| has_transfers(run))
        .filter_map(|(word, run)| Some((*word, *run, both(run)?)))
        .collect();
    let (_, first, _) = series.first()?;
    let high =
        series.iter().flat_map(|(_, run, both)| both.iter().flat_map(|bytes| throughput(run, bytes).0));
    let high = high.fold(0.0, f64::max);
    let end = super::parts::end_of(first);
    let way = if up { "up" } else { "down" };
    let drawings: Vec<Drawing> = series
        .iter()
        .enumerate()
        .map(|(n, (word, run, both))| {
            let courses = both.iter().map(|bytes| throughput(run, bytes).0).collect();
            let what = Steps {
                heading: format!("{word}: carried {way}, and dashed what the line could carry,"),
                colour: n + 1,
                courses,
                bare: n + 1 < series.len(),
                ..Steps::default()
            };
            let step = throughput(run, &both[1]).1;
            let title = format!("{word}: carried {way}, and what the line could carry");
            let axes = (Axis::time(end), Axis::rates(high, 3));
            steps(&title, &shares(run, both), axes, 92.0, run.window.0 as f64, step as f64, &what)
        })
        .collect();
    let mut head = vec!["time".to_owned()];
    head.extend(series.iter().flat_map(|(word, ..)| [format!("{word}: carried"), "could carry".to_owned()]));
    let row = |of: (u64, u64)| {
        let mut row = vec![span_title(of)];
        for (_, run, both) in &series {
            row.extend(both.iter().map(|bytes| {
                let steps = steps_of(run, bytes, of);
                rate(bits_per_second(steps.iter().sum(), steps.len() as u64 * run.step_ns))
            }));
        }
        row
    };
    let caption = format!("Carried {way}, and what the line could carry");
    let table = Data { caption: caption.clone(), head, rows: spans(end).into_iter().map(row).collect() };
    let words = html! {
        b { (caption) } ". "
        @for (word, run, both) in &series { (word) ": " (shares(run, both)) " " }
    };
    Some(figure(&drawings, words, Reading::Across, &table))
}

/// How much of what the line could carry it did carry while measured.
fn shares(run: &TrialRun, [carried, could]: &[Vec<u64>; 2]) -> String {
    let from = (run.window.0 / run.step_ns.max(1)) as usize;
    let sum = |bytes: &[u64]| bytes.iter().skip(from).sum::<u64>();
    let (carried, could) = (sum(carried), sum(could));
    match could {
        0 => "the line could carry nothing while it was measured.".to_owned(),
        could => format!(
            "{:.0} % of what the line could carry while it was measured.",
            carried as f64 / could as f64 * 100.0
        ),
    }
}
