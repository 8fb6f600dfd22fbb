//! The page: everything in one file, nothing from the network, readable without scripts.

use super::detail;
use crate::chart::{Axis, Drawing, Look, PlotCurve, Scale, curves};
use crate::html::document::document;
use crate::html::parts::{Data, Reading, THE_SAME, Tabled as _, ending, figure, prose};
use crate::percent;
use maud::{Markup, html};
use tidegate_gym::{ControllerSummary, GymDocument};

/// Pixels of the front's height.
const HEIGHT: f64 = 260.0;
const MS: f64 = 1e6;

/// The page of a visit to the gym: an HTML document that needs nothing else.
#[must_use]
pub fn page(gym: &GymDocument) -> String {
    let content = html! {
        header {
            p.eyebrow { "tidegate · gym, simulated" }
            h1.name { "Controllers of a shaper's rate, on lines that vary" }
            p.what {
                (gym.rows.len()) " cases, each with " (gym.controllers.len()) " controllers: "
                (format!("{:.0}", gym.seconds[1])) " s after " (format!("{:.0}", gym.seconds[0]))
                " s of warm-up, with " (gym.shaper)
            }
        }
        main {
            (front(gym))
            (comparison(gym))
            (detail::sections(gym))
            (all(gym))
            @if !gym.failures.is_empty() { (failures(gym)) }
            (ending(&[], THE_SAME, &gym.command, &format!("Made by tidegate {}", gym.version)))
        }
    };
    document("Controllers of a shaper's rate, on lines that vary", content)
}

/// Delay against utilisation, over all cases.
fn front(gym: &GymDocument) -> Markup {
    let Some(drawing) = drawing(gym) else { return Markup::default() };
    let table = Data {
        caption: "Medians over the cases, and the mean use of the line".to_owned(),
        head: [
            "controller",
            "median delay, ms",
            "p95, ms",
            "p99, ms",
            "p95, bad cases, ms",
            "line used",
            "regret, ms",
            "unused",
            "of fixed",
            "front",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: gym
            .comparison
            .controllers
            .iter()
            .map(|one| cells(one, |ms| format!("{ms:.1}"), ["yes", "no"]))
            .collect(),
    };
    html! {
        section {
            h2 { "Delay and use of the line" }
            (figure(
                &[drawing],
                html! {
                    b { "The front" }
                    ": each controller over all cases; no other is both less late and uses more than those on \
                     the front. Lower is less delay, further to the right is more of the line used; known is the \
                     yardstick that knows the line, which no controller can."
                },
                Reading::None,
                &table,
            ))
            (table.table())
            p.small {
                (prose("Delays are one way, of a call's packets, in the direction where they are worse; a lost \
                    packet counts as 2 s. Regret is the difference to the yardstick. The last ratio compares with \
                    the best of the fixed rates that use as much of the line."))
            }
        }
    }
}

/// A controller's name and scores, for a row of a table: how milliseconds are written, and whether it is on
/// the front.
pub fn cells(one: &ControllerSummary, ms: fn(f64) -> String, [yes, no]: [&str; 2]) -> Vec<String> {
    let none = || "–".to_owned();
    if one.cases == 0 {
        return std::iter::once(one.name.clone()).chain((0..9).map(|_| none())).collect();
    }
    vec![
        one.name.clone(),
        ms(one.call_ms[0]),
        ms(one.call_ms[1]),
        ms(one.call_ms[2]),
        ms(one.call_p95_bad_ms),
        percent(one.utilisation),
        one.regret_ms.map_or_else(none, ms),
        one.regret_utilisation.map_or_else(none, percent),
        one.over_fixed.map_or_else(none, |ratio| format!("{ratio:.2}")),
        if one.on_front { yes } else { no }.to_owned(),
    ]
}

fn drawing(gym: &GymDocument) -> Option<Drawing> {
    let shown: Vec<&ControllerSummary> =
        gym.comparison.controllers.iter().filter(|one| one.cases > 0 && one.call_ms[1] > 0.0).collect();
    let place = |one: &ControllerSummary| (one.utilisation, one.call_ms[1] * MS);
    let mut series: Vec<PlotCurve> = Vec::new();
    let mut add = |name: &str, of: &[&ControllerSummary], dots: bool, line: bool| {
        let places: Vec<(f64, f64)> = of.iter().map(|one| place(one)).collect();
        series.push(PlotCurve {
            name: name.to_owned(),
            look: Look(series.len()),
            line: if line { places.clone() } else { Vec::new() },
            dots: if dots { places } else { Vec::new() },
            labels: of.iter().map(|one| short(&one.name).to_owned()).collect(),
            bars: Vec::new(),
            outline: Vec::new(),
        });
    };
    // Fixed rates are one thing with several values, and so are the aims of tidegate's own.
    let of = |is: fn(&str) -> bool| sorted(shown.iter().copied().filter(|one| is(&one.name)).collect());
    let is_own = |name: &str| name == "tidegate" || name.starts_with("tidegate:");
    let is_single = |name: &str| !name.starts_with("tidegate") && !name.starts_with("fixed:");
    for (name, many, several) in [
        ("tidegate", "tidegate: its aims", of(is_own)),
        ("a fixed rate", "fixed rates", of(|name| name.starts_with("fixed:"))),
    ] {
        if !several.is_empty() {
            add(if several.len() > 1 { many } else { name }, &several, true, true);
        }
    }
    for one in of(is_single) {
        add(&one.name, &[one], true, false);
    }
    let front = sorted(shown.iter().copied().filter(|one| one.on_front).collect());
    if front.len() > 1 {
        add("the front", &front, false, true);
    }
    let values = || series.iter().flat_map(|one| &one.dots).map(|dot| dot.1);
    let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    if series.is_empty() {
        return None;
    }
    let across = Axis { scale: Scale::exact(0.0, 1.0), ..Axis::shares() };
    let up = Axis::log_spans((low * 0.8) as u64, (high * 1.25) as u64);
    let title = "Delay against use of the line";
    Some(curves(title, title, (across, up), ("line used", "p95 of a call, one way"), HEIGHT, &series))
}

/// A dot's name: of several values of one thing the value, for the thing stands below.
fn short(name: &str) -> &str {
    match name.split_once(':') {
        Some(("tidegate" | "fixed", value)) => value,
        _ => name,
    }
}

/// By how much of the line they use.
fn sorted(mut of: Vec<&ControllerSummary>) -> Vec<&ControllerSummary> {
    of.sort_by(|one, other| one.utilisation.total_cmp(&other.utilisation));
    of
}

/// Who is better than whom.
fn comparison(gym: &GymDocument) -> Markup {
    let own = gym.controllers.len() - gym.baselines;
    let head = std::iter::once("better than".to_owned());
    let data = Data {
        caption:
            "In how many of the cases the controller above a column has a lower p95, and uses as much of \
                  the line, than the one before the row"
                .to_owned(),
        head: head.chain(gym.controllers[..own].iter().cloned()).collect(),
        rows: gym
            .controllers
            .iter()
            .enumerate()
            .map(|(other, name)| {
                let shares = gym.comparison.better[..own].iter().map(|shares| shares[other]);
                let shares = shares.map(|share| share.map_or_else(|| "–".to_owned(), percent));
                std::iter::once(name.clone()).chain(shares).collect()
            })
            .collect(),
    };
    let comparison = &gym.comparison;
    let aims = [
        (
            "At one of its aims tidegate has a lower p95, and uses as much of the line, than ",
            &comparison.at_an_aim,
        ),
        (
            "Interpolated between its aims to equal use, tidegate has a lower p95 than ",
            &comparison.at_equal_use,
        ),
    ];
    let aims = aims.map(|(words, shares)| {
        let shares = gym.controllers.iter().zip(shares);
        let shares = shares.filter_map(|(name, share)| Some(format!("{name} in {}", percent((*share)?))));
        (words, shares.collect::<Vec<String>>())
    });
    html! {
        section {
            h2 { "One against another" }
            (data.folding())
            @for (words, shares) in aims {
                @if !shares.is_empty() {
                    p { (words) (shares.join(", ")) " of the cases." }
                }
            }
        }
    }
}

/// Every score.
fn all(gym: &GymDocument) -> Markup {
    let data = Data {
        caption: "p95 of the call one way, and how much of the line was used".to_owned(),
        head: std::iter::once("case".to_owned()).chain(gym.controllers.iter().cloned()).collect(),
        rows: gym
            .rows
            .iter()
            .map(|row| {
                let scores = row.scores.iter().map(|score| match score {
                    Some(score) => format!("{:.0} ms, {}", score.call_p95_ms, percent(score.utilisation)),
                    None => "failed".to_owned(),
                });
                std::iter::once(row.case.clone()).chain(scores).collect()
            })
            .collect(),
    };
    html! {
        section {
            h2 { "Every case" }
            details { summary { (gym.rows.len()) " cases" } (data.table()) }
        }
    }
}

fn failures(gym: &GymDocument) -> Markup {
    html! {
        section {
            h2 { "Without a score" }
            ul {
                @for failure in gym.failures.iter().take(100) {
                    li { (failure.controller) " in " (failure.case) ": " (failure.why) }
                }
            }
        }
    }
}
