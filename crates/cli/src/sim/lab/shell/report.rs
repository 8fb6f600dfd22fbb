//! What was asked of the line and what was measured of it, as a document and in words.

use super::expect::ExpectationOutcome;
use super::measured::{LineAsked, LineMeasured, WayAsked, WayMeasured, per_second, share};
use serde_json::{Value, json};
use std::fmt::Write as _;
use tidegate_measure::wilson;

/// The document's form.
const FORM: u64 = 1;

/// The document: what was asked, what was measured, and what of it was expected.
pub(super) fn document(
    asked: &LineAsked,
    measured: &LineMeasured,
    program: (&[String], u8),
    expected: &[(String, ExpectationOutcome)],
) -> String {
    let seconds = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e9);
    let way = |asked: &WayAsked, way: &WayMeasured| -> Value {
        let busy = (way.busy_seconds > 0.0).then(|| {
            let (rate, capacity) = (
                per_second(way.busy_carried, way.busy_seconds),
                per_second(way.busy_could, way.busy_seconds),
            );
            json!({
                "seconds": way.busy_seconds,
                "asked": capacity,
                "rate": rate,
                "gap": if capacity > 0.0 { Value::from(rate / capacity - 1.0) } else { Value::Null },
            })
        });
        let (low, high) = wilson(way.lost, way.sent);
        json!({
            "asked": way.capacity(),
            "varies": asked.varies,
            "rate": way.rate(),
            "busy": busy,
            "packets": way.sent,
            "dropped": way.dropped,
            "lost": way.lost,
            "loss": way.loss(),
            "loss_asked": asked.loss,
            "loss_low": (way.sent > 0).then_some(low),
            "loss_high": (way.sent > 0).then_some(high),
        })
    };
    let expected: Vec<Value> = expected
        .iter()
        .map(|(text, outcome)| {
            json!({
                "text": text,
                "holds": outcome.holds,
                "measured": outcome.measured,
                "limit": outcome.limit,
                "unit": outcome.unit,
            })
        })
        .collect();
    let rtt = &measured.rtt;
    let document = json!({
        "tidegate_shell": FORM,
        "version": env!("CARGO_PKG_VERSION"),
        "preset": asked.preset,
        "traces": asked.traces,
        "policy": asked.policy,
        "seed": asked.seed,
        "program": {"words": program.0, "exit": program.1, "seconds": measured.seconds},
        "up": way(&asked.up, &measured.up),
        "down": way(&asked.down, &measured.down),
        "rtt": {
            "asked": seconds(asked.rtt),
            "gap": seconds(rtt.min()).zip(seconds(asked.rtt)).map(|(least, asked)| least - asked),
            "replies": rtt.count(),
            "sent": measured.rtt_sent,
            "lost": measured.rtt_lost,
            "min": seconds(rtt.min()),
            "mean": seconds(rtt.mean()),
            "median": seconds(rtt.percentile(50.0)),
            "p95": seconds(rtt.percentile(95.0)),
            "p99": seconds(rtt.percentile(99.0)),
            "max": seconds(rtt.max()),
        },
        "late": {"median": measured.late[0] as f64 / 1e9, "p99": measured.late[1] as f64 / 1e9},
        "expected": expected,
    });
    format!("{}\n", tidegate_text::json(&format!("{document:#}")))
}

/// The same for people.
pub(super) fn words(asked: &LineAsked, measured: &LineMeasured) -> String {
    let time = |ns: u64| tidegate_report::format_duration(ns);
    let mut out = String::new();
    for (name, asked, way) in [("up", &asked.up, &measured.up), ("down", &asked.down, &measured.down)] {
        let varies = if asked.varies { " in the mean" } else { "" };
        let capacity = tidegate_report::rate(way.capacity());
        let _ =
            write!(out, "{name}: asked {capacity}{varies}; carried {}", tidegate_report::rate(way.rate()));
        let rate = per_second(way.busy_carried, way.busy_seconds);
        let could = per_second(way.busy_could, way.busy_seconds);
        if could > 0.0 {
            let _ = write!(
                out,
                ", and {} of {} ({}) in the {:.1} s in which packets waited at each tenth",
                tidegate_report::rate(rate),
                tidegate_report::rate(could),
                signed(rate / could - 1.0),
                way.busy_seconds
            );
        }
        let _ = write!(out, "; {} of {} packets lost", way.lost, way.sent);
        match asked.loss {
            Some(loss) => {
                let _ = write!(out, " (asked {})", share(loss));
            }
            None => out.push_str(" (the asked share changes)"),
        }
        let _ = writeln!(out, ", {} dropped at its buffer", way.dropped);
    }
    let rtt = &measured.rtt;
    match rtt.min().zip(rtt.percentile(50.0)).zip(rtt.percentile(95.0)) {
        Some(((least, median), p95)) => {
            let _ = write!(out, "rtt: ");
            match asked.rtt {
                Some(asked) => {
                    let gap = least.abs_diff(asked);
                    let which = if least >= asked { "more" } else { "less" };
                    let _ =
                        write!(out, "asked {}; least {} ({} {which})", time(asked), time(least), time(gap));
                }
                None => {
                    let _ = write!(out, "asked is one that changes; least {}", time(least));
                }
            }
            let _ = writeln!(
                out,
                ", median {}, p95 {} of {} replies; {} of {} pings lost",
                time(median),
                time(p95),
                rtt.count(),
                measured.rtt_lost,
                measured.rtt_sent
            );
        }
        None => {
            let _ = writeln!(out, "rtt: no ping was answered");
        }
    }
    out
}

/// `-1.2 %`.
fn signed(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}
