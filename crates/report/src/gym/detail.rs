//! A case in detail: for each controller what the line could carry, the rate that was set, what was carried,
//! the delay, and every decision with its reason.

use crate::chart::{Axis, ChartLine, Drawing, column, lines};
use crate::html::parts::{Data, Reading, Tabled as _, capital, figure, prose};
use crate::{percent, rate};
use maud::{Markup, html};
use std::collections::BTreeMap;
use tidegate_gym::{CaseDetail, DetailRecord, GymDocument, GymRecord};

const NANOS: f64 = 1e9;
/// Pixels of a chart's height.
const RATES: f64 = 130.0;
const DELAYS: f64 = 90.0;
/// A delay that is drawn at the top, as what is lost is, ms.
const LATEST: f64 = 2000.0;
const DIRECTIONS: [&str; 2] = ["upload", "download"];

/// A panel for each case, and the links that become tabs.
pub(super) fn sections(gym: &GymDocument) -> Markup {
    let name = |detail: &CaseDetail| gym.rows.get(detail.row).map_or("", |row| row.case.as_str());
    html! {
        @if gym.details.len() > 1 {
            nav.tabs data-tabs aria-label="Case" {
                @for (n, detail) in gym.details.iter().enumerate() {
                    a href={ "#case-" (n) } data-first[n == 0] { (name(detail)) }
                }
            }
        }
        @for (n, detail) in gym.details.iter().enumerate() {
            section.panel id={ "case-" (n) } {
                h2 { "Case: " (name(detail)) }
                p { (prose(&capital(&detail.about))) "." }
                @for one in &detail.records { (controller(gym, detail, one)) }
            }
        }
    }
}

fn controller(gym: &GymDocument, detail: &CaseDetail, one: &DetailRecord) -> Markup {
    let name = &gym.controllers[one.controller];
    let score = gym.rows.get(detail.row).and_then(|row| row.scores.get(one.controller)?.as_ref());
    let record = &one.record;
    html! {
        h3 { (name) }
        @if let Some(score) = score {
            p.what {
                (prose(&format!(
                    "Call: median {:.0} ms, p95 {:.0} ms, p99 {:.0} ms, {} lost; line used: {}; {} changes",
                    score.call_p50_ms, score.call_p95_ms, score.call_p99_ms, percent(score.call_lost),
                    percent(score.utilisation), score.changes
                )))
            }
        }
        @for (direction, word) in DIRECTIONS.iter().enumerate() {
            @if record.carried[direction].iter().any(|carried| *carried > 0.0) {
                (figure(
                    &[rates(record, direction, name), delays(record, direction, name)],
                    html! {
                        b { (capital(word)) }
                        ": what the line could carry (filled), the rate that was set (line), what was carried \
                         (dashed); below it the longest delay of the call"
                    },
                    Reading::Across,
                    &series(record, direction),
                ))
            }
        }
        (reasons(record))
    }
}

/// Pixels of a picture's width, and of its two charts' heights.
const PICTURE: (f64, f64, f64) = (720.0, 110.0, 70.0);

/// A case as one picture, in the direction in which its call is later: what the line could carry, the rate
/// that a controller set, what was carried, and the longest delay of the call.
#[must_use]
pub fn case_drawing(case: &str, controller: &str, record: &GymRecord) -> Drawing {
    let [up, down] = [0, 1].map(|direction| late(record, direction));
    let direction = usize::from(down >= up);
    let (width, of_rates, of_delays) = PICTURE;
    let name = format!("{case}, {controller}");
    let title = format!("{name}: {}", DIRECTIONS[direction]);
    let about = "The line's capacity (filled), the rate that was set (line), what was carried (dashed); below, the \
                 longest delay of the call";
    let drawn = [
        rates_drawing(record, direction, &name, of_rates),
        delays_drawing(record, direction, &name, of_delays),
    ];
    column(&title, about, width, &drawn)
}

/// The 95th percentile of the call's longest delays once they count.
fn late(record: &GymRecord, direction: usize) -> f64 {
    let from = (record.warm_up / record.step) as usize;
    let mut all: Vec<f64> = record.call_ms[direction].iter().skip(from).copied().collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() * 95 / 100).copied().unwrap_or(0.0)
}

fn end(record: &GymRecord) -> f64 {
    record.rate[0].len() as f64 * record.step * NANOS
}

fn rates(record: &GymRecord, direction: usize, name: &str) -> Drawing {
    rates_drawing(record, direction, name, RATES)
}

fn rates_drawing(record: &GymRecord, direction: usize, name: &str, height: f64) -> Drawing {
    let high = [&record.capacity, &record.rate, &record.carried]
        .iter()
        .flat_map(|all| &all[direction])
        .copied()
        .fold(1.0, f64::max);
    let line = |name: &str, class: &'static str, fill: Option<&'static str>, values: &[f64]| ChartLine {
        name: name.to_owned(),
        class,
        fill,
        points: points(record, values.iter().map(|value| Some(*value))),
    };
    let all = [
        line("capacity", "without", Some("mark fill-without"), &record.capacity[direction]),
        line("carried", "s2 thin dashed", None, &record.carried[direction]),
        line("rate set", "with", None, &record.rate[direction]),
    ];
    let title = format!("{}: rates of the {}", name, DIRECTIONS[direction]);
    let axes = (Axis::time(end(record) as u64), Axis::rates(high, 4));
    lines(&title, &title, axes, height, record.warm_up * NANOS, &all)
}

fn delays(record: &GymRecord, direction: usize, name: &str) -> Drawing {
    delays_drawing(record, direction, name, DELAYS)
}

fn delays_drawing(record: &GymRecord, direction: usize, name: &str, height: f64) -> Drawing {
    let values = &record.call_ms[direction];
    let high = values.iter().copied().filter(|ms| *ms < LATEST).fold(50.0, f64::max);
    let all = [ChartLine {
        name: "call".to_owned(),
        class: "s4",
        fill: None,
        points: points(record, values.iter().map(|ms| (*ms < LATEST).then_some(ms * 1e6))),
    }];
    let title = format!("{}: delay of the call, {}", name, DIRECTIONS[direction]);
    let axes = (Axis::time(end(record) as u64), Axis::spans((high * 1e6) as u64, 3));
    lines(&title, &title, axes, height, record.warm_up * NANOS, &all)
}

fn points(record: &GymRecord, values: impl Iterator<Item = Option<f64>>) -> Vec<(f64, Option<f64>)> {
    values.enumerate().map(|(n, value)| (n as f64 * record.step * NANOS, value)).collect()
}

fn series(record: &GymRecord, direction: usize) -> Data {
    let head = ["seconds", "capacity, Mbit/s", "rate set, Mbit/s", "carried, Mbit/s", "call, ms"];
    let mbit = |value: f64| format!("{:.3}", value / 1e6);
    let of = |all: &[Vec<f64>; 2], n: usize| all[direction].get(n).copied().unwrap_or(0.0);
    Data {
        caption: DIRECTIONS[direction].to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows: (0..record.rate[direction].len())
            .map(|n| {
                vec![
                    format!("{:.1}", n as f64 * record.step),
                    mbit(of(&record.capacity, n)),
                    mbit(of(&record.rate, n)),
                    mbit(of(&record.carried, n)),
                    format!("{:.1}", of(&record.call_ms, n)),
                ]
            })
            .collect(),
    }
}

/// How often each reason was given, and every decision.
fn reasons(record: &GymRecord) -> Markup {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for decision in &record.decisions {
        *counts.entry(decision.words).or_default() += 1;
    }
    let data = Data {
        caption: "Every decision".to_owned(),
        head: ["seconds", "direction", "rate", "delay, ms", "reason"].map(str::to_owned).to_vec(),
        rows: record
            .decisions
            .iter()
            .map(|one| {
                vec![
                    format!("{:.2}", one.at),
                    one.direction.to_owned(),
                    rate(one.rate as f64),
                    one.delay_ms.map_or_else(String::new, |ms| format!("{ms:.0}")),
                    one.words.to_owned(),
                ]
            })
            .collect(),
    };
    html! {
        p.small {
            "Reasons: "
            @for (n, (words, count)) in counts.iter().enumerate() {
                @if n > 0 { "; " }
                (words) " (" (count) ")"
            }
        }
        details { summary { (record.decisions.len()) " decisions" } (data.table()) }
    }
}
