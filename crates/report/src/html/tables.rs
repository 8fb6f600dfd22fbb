//! All figures as tables.

use super::parts::{Data, Tabled as _, capital};
use maud::{Markup, html};
use tidegate_analysis::outcome::{QOO, score};
use tidegate_analysis::trial::{ClassFigures, Pair, every_class, node};
use tidegate_measure::numbers::{milliseconds, percent, rate, size};
use tidegate_measure::outcome::PROFILES;
use tidegate_measure::share;
use tidegate_measure::trial::{TrialDocument, TrialRun};

/// The tables of every load.
pub(super) fn section(trial: &TrialDocument, pairs: &[Pair<'_>]) -> Markup {
    let tables = [answers(pairs), outcomes(pairs), transfers(pairs), buffers(pairs), classes(trial, pairs)];
    html! {
        section {
            h2 { "All figures" }
            @for table in tables.iter().filter(|table| !table.rows.is_empty()) {
                details.figures open { summary { (table.caption) } (table.table()) }
            }
        }
    }
}

fn head(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|column| (*column).to_owned()).collect()
}

/// A row's beginning: load and policy.
fn lead(run: &TrialRun, word: &str) -> Vec<String> {
    vec![run.title.clone(), word.to_owned()]
}

fn rows(pairs: &[Pair<'_>], of: impl Fn(&TrialRun) -> Vec<Vec<String>>) -> Vec<Vec<String>> {
    let sides = pairs.iter().flat_map(|pair| pair.each().collect::<Vec<_>>());
    let mut rows = Vec::new();
    for (word, run) in sides {
        for cells in of(run) {
            let mut row = lead(run, word);
            row.extend(cells);
            rows.push(row);
        }
    }
    rows
}

/// The class that something takes with the policy; without it there is none.
fn class_of(run: &TrialRun, class: &Option<String>) -> String {
    class.clone().filter(|_| run.policy).unwrap_or_default()
}

fn answers(pairs: &[Pair<'_>]) -> Data {
    let of = |run: &TrialRun| {
        let row = |probe: &tidegate_measure::trial::TrialProbe| {
            let figures = probe.figures(run.window);
            let mut row =
                vec![format!("{}, {}", capital(&probe.title), probe.unit), class_of(run, &probe.class)];
            match figures.rtt.summary() {
                Some(s) => row.extend([s.mean, s.p50, s.p95, s.p99, s.max].map(milliseconds)),
                None => row.extend(std::iter::repeat_n("–".to_owned(), 5)),
            }
            let lost = if figures.sent() > 0 { percent(figures.loss()) } else { "–".to_owned() };
            row.extend([lost, figures.sent().to_string()]);
            row
        };
        run.probes.iter().map(row).collect()
    };
    Data {
        caption: "Replies during the measurement".to_owned(),
        head: head(&[
            "load", "policy", "probe", "class", "mean", "median", "95 %", "99 %", "max", "lost", "sent",
        ]),
        rows: rows(pairs, of),
    }
}

/// Quality of Outcome of the probes whose answers are the delays of packets.
fn outcomes(pairs: &[Pair<'_>]) -> Data {
    let of = |run: &TrialRun| {
        let row = |probe: &tidegate_measure::trial::TrialProbe| {
            let packets = probe.figures(run.window);
            let scores: Vec<Option<u8>> =
                PROFILES.iter().map(|one| score(one.name(), &probe.unit, &packets)).collect();
            scores.iter().any(Option::is_some).then(|| {
                let cells =
                    scores.iter().map(|score| score.map_or("–".to_owned(), |score| score.to_string()));
                let name = format!("{}, {}", capital(&probe.title), probe.unit);
                std::iter::once(name).chain(cells).collect()
            })
        };
        run.probes.iter().filter_map(row).collect()
    };
    let names = PROFILES.iter().map(|application| application.name());
    Data {
        caption: QOO.to_owned(),
        head: head(&["load", "policy", "probe"].into_iter().chain(names).collect::<Vec<_>>()),
        rows: rows(pairs, of),
    }
}

fn transfers(pairs: &[Pair<'_>]) -> Data {
    let of = |run: &TrialRun| {
        let row = |flow: &tidegate_measure::trial::TrialFlow| {
            vec![
                capital(&flow.title),
                class_of(run, &flow.class),
                rate(flow.rate(run.window)),
                size(flow.bytes),
                flow.retransmissions.to_string(),
                flow.lost.to_string(),
            ]
        };
        run.flows.iter().map(row).collect()
    };
    Data {
        caption: "Transfers, payload during the measurement".to_owned(),
        head: head(&[
            "load",
            "policy",
            "transfer",
            "class",
            "goodput",
            "payload",
            "retransmits",
            "lost packets",
        ]),
        rows: rows(pairs, of),
    }
}

fn buffers(pairs: &[Pair<'_>]) -> Data {
    let of = |run: &TrialRun| {
        let row = |buffer: &tidegate_measure::trial::BufferSeries| {
            let steps =
                tidegate_analysis::trial::part(&buffer.backlog, tidegate_analysis::trial::window_steps(run));
            let mean = steps.iter().sum::<u64>() / steps.len().max(1) as u64;
            vec![
                capital(&buffer.title),
                size(buffer.limit),
                size(mean),
                size(steps.iter().copied().max().unwrap_or(0)),
                buffer.dropped.to_string(),
            ]
        };
        run.buffers.iter().map(row).collect()
    };
    Data {
        caption: "Buffers of modem and provider".to_owned(),
        head: head(&["load", "policy", "buffer", "holds", "mean", "fullest", "dropped packets"]),
        rows: rows(pairs, of),
    }
}

/// Columns of a class, behind those of the load and the policy.
const CLASS_COLUMNS: usize = 7;

fn classes(trial: &TrialDocument, pairs: &[Pair<'_>]) -> Data {
    let of = |run: &TrialRun| {
        let leaves = run.classes.iter().filter(|class| class.leaf);
        let all: u64 = leaves.map(|class| ClassFigures::new(run, class).sent).sum();
        let row = |class: &tidegate_measure::trial::ClassSeries| {
            let figures = ClassFigures::new(run, class);
            let node = node(trial, &class.id);
            let bits = |bits: Option<u64>| bits.map_or_else(String::new, |bits| rate(bits as f64));
            vec![
                class.id.clone(),
                class.title.clone(),
                bits(node.and_then(|node| node.rate_bits)),
                bits(node.and_then(|node| node.ceil_bits)),
                if class.leaf {
                    format!("{} ({})", rate(figures.rate), percent(share(figures.sent, all)))
                } else {
                    rate(figures.rate)
                },
                figures.dropped.to_string(),
                format!("{} ({})", figures.peak_packets, size(figures.peak_bytes)),
            ]
        };
        let idle = |class: &&tidegate_measure::trial::ClassSeries| super::classes::silent(class);
        let mut rows: Vec<Vec<String>> = run.classes.iter().filter(|class| !idle(class)).map(row).collect();
        let count = run.classes.iter().filter(idle).count();
        if count > 0 {
            let mut more = vec!["…".to_owned(), format!("{count} more that carried nothing")];
            more.resize(CLASS_COLUMNS, String::new());
            rows.push(more);
        }
        rows
    };
    let every = every_class(trial).map(|run| Pair { without: None, with: Some(run) });
    let shown: Vec<Pair<'_>> = pairs.iter().copied().chain(every).collect();
    Data {
        caption: "Classes during the measurement".to_owned(),
        head: head(&[
            "load",
            "policy",
            "class",
            "for",
            "rate",
            "ceil",
            "sent (share)",
            "dropped",
            "longest queue seen",
        ]),
        rows: rows(&shown, of),
    }
}
