//! The tables of policies compared on a capture: the same for a terminal and for the page.

use crate::data::{Data, capital};
use tidegate_measure::numbers::{format_duration, percent, rate, significant, size};
use tidegate_measure::replayed::{ClassOutcome, OutcomeCounts, ReplayOutcome, Replayed};

/// Characters of what a class is for.
const TITLE: usize = 44;

/// Is there anything on its way in?
pub fn comes_in(replayed: &Replayed) -> bool {
    replayed.policies.iter().any(|one| one.inward.packets > 0)
}

/// Whether any incoming packet is queued, dropped or marked.
pub fn inward_matters(replayed: &Replayed) -> bool {
    let matters = |fates: &OutcomeCounts| {
        fates.sent < fates.packets || fates.marked > 0 || fates.waited.is_some_and(|summary| summary.max > 0)
    };
    replayed.policies.iter().any(|one| matters(&one.inward))
}

/// A table of all policies: what goes out, and what comes in.
pub fn overview(replayed: &Replayed, inward: bool) -> Data {
    let mut head =
        ["policy", "sent", "lost", "marked", "median", "p95", "p99", "longest"].map(str::to_owned).to_vec();
    let first = replayed.policies.first().filter(|_| replayed.policies.len() > 1);
    head.extend(first.map(|first| format!("p95 to {}", first.name)));
    let row = |one: &ReplayOutcome| {
        let fates = of_way(one, inward);
        let mut row = vec![one.name.clone(), fates.sent.to_string(), lost(fates), count(fates.marked)];
        row.extend(waits(fates));
        row.extend(first.map(|first| times(of_way(first, inward), fates)));
        row
    };
    let way = if inward { "incoming" } else { "outgoing" };
    Data { caption: capital(way), head, rows: replayed.policies.iter().map(row).collect() }
}

/// The outcome of outgoing or incoming packets.
pub fn of_way(outcome: &ReplayOutcome, inward: bool) -> &OutcomeCounts {
    if inward { &outcome.inward } else { &outcome.out }
}

/// How many times as long the 95th percentile is: `× 0.12`.
fn times(first: &OutcomeCounts, other: &OutcomeCounts) -> String {
    match (first.waited, other.waited) {
        (Some(a), Some(b)) if a.p95 > 0 && a != b => {
            format!("× {}", significant(b.p95 as f64 / a.p95 as f64, 3))
        }
        _ => "–".to_owned(),
    }
}

/// Dropped packets, and their share.
fn lost(fates: &OutcomeCounts) -> String {
    match fates.lost() {
        0 => "–".to_owned(),
        lost => format!("{lost} ({})", percent(lost as f64 / fates.packets.max(1) as f64)),
    }
}

fn count(count: u64) -> String {
    if count == 0 { "–".to_owned() } else { count.to_string() }
}

fn waits(fates: &OutcomeCounts) -> [String; 4] {
    match fates.waited {
        None => std::array::from_fn(|_| "–".to_owned()),
        Some(summary) => [summary.p50, summary.p95, summary.p99, summary.max].map(wait),
    }
}

/// A delay; zero is written as none.
pub fn wait(ns: u64) -> String {
    if ns == 0 { "0".to_owned() } else { format_duration(ns) }
}

/// A policy's classes.
pub fn classes(replayed: &Replayed, outcome: &ReplayOutcome) -> Data {
    let head = [
        "class", "queue", "packets", "share", "rate", "lost", "marked", "median", "p95", "p99", "longest",
        "for",
    ];
    let all: u64 = outcome.out.bytes + outcome.inward.bytes;
    let row = |class: &ClassOutcome| {
        let fates = &class.outcomes;
        let mut row = vec![
            name(class),
            class.queue.clone(),
            fates.packets.to_string(),
            percent(fates.bytes as f64 / all.max(1) as f64),
            rate(fates.rate(replayed.capture.duration)),
            lost(fates),
            count(fates.marked),
        ];
        row.extend(waits(fates));
        row.push(cut(&class.title));
        row
    };
    without_empty(Data {
        caption: format!("Classes of {}", outcome.name),
        head: head.map(str::to_owned).to_vec(),
        rows: outcome.classes.iter().map(row).collect(),
    })
}

/// Columns without a value are left out.
fn without_empty(data: Data) -> Data {
    let matches = |at: usize| {
        data.rows.iter().any(|row| row.get(at).is_some_and(|cell| !cell.is_empty() && cell != "–"))
    };
    let kept: Vec<usize> = (0..data.head.len()).filter(|at| matches(*at) || *at < 3).collect();
    let pick = |row: &Vec<String>| kept.iter().filter_map(|at| row.get(*at).cloned()).collect::<Vec<_>>();
    Data { caption: data.caption.clone(), head: pick(&data.head), rows: data.rows.iter().map(pick).collect() }
}

/// `eth0 1:20`.
pub fn name(class: &ClassOutcome) -> String {
    format!("{} {}{}", class.device, class.id, if class.inward { " (in)" } else { "" })
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(TITLE) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
    }
}

/// Dropped packets, and why, policy by policy.
pub fn losses(replayed: &Replayed) -> Data {
    let mut rows = Vec::new();
    for one in &replayed.policies {
        for class in &one.classes {
            for (why, count) in &class.outcomes.dropped {
                rows.push(vec![one.name.clone(), name(class), why.clone(), count.to_string()]);
            }
        }
        let waiting = one.out.waiting + one.inward.waiting;
        if waiting > 0 {
            rows.push(vec![
                one.name.clone(),
                String::new(),
                "still waits in the end".to_owned(),
                waiting.to_string(),
            ]);
        }
    }
    Data {
        caption: "Lost, and why".to_owned(),
        head: ["policy", "class", "why", "packets"].map(str::to_owned).to_vec(),
        rows,
    }
}

/// The largest flows under each policy: the 95th percentile of their waits, and their losses.
pub fn flows(replayed: &Replayed) -> Data {
    let mut head = vec!["flow".to_owned(), "packets".to_owned(), "bytes".to_owned()];
    head.extend(replayed.policies.iter().map(|one| format!("{} p95", one.name)));
    head.extend(replayed.policies.iter().map(|one| format!("{} lost", one.name)));
    let first = replayed.policies.first().map(|one| one.flows.as_slice()).unwrap_or_default();
    let rows = first.iter().enumerate().map(|(at, flow)| {
        let of = || replayed.policies.iter().filter_map(|one| one.flows.get(at));
        let mut row = vec![flow.name.clone(), flow.outcomes.packets.to_string(), size(flow.outcomes.bytes)];
        row.extend(
            of().map(|flow| flow.outcomes.waited.map_or_else(|| "–".to_owned(), |summary| wait(summary.p95))),
        );
        row.extend(of().map(|flow| lost(&flow.outcomes)));
        row
    });
    Data { caption: "The largest flows".to_owned(), head, rows: rows.collect() }
}
