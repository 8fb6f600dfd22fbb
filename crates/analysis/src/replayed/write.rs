//! Writing it as JSON. Member names are those of the structs, units included; docs/replay.md describes them.

use crate::json::laid_out;
use serde_json::{Map, Value, json};
use tidegate_measure::replayed::{
    CaptureSummary, ClassOutcome, FlowOutcome, LADDER, OutcomeCounts, ReplayOutcome, Replayed,
};

/// The member that gives the form, and its number: it changes when a member changes its meaning or is
/// removed.
const FORM: (&str, u64) = ("tidegate_replayed", 2);

/// Policies compared on a capture, as JSON, ended by a newline.
pub fn to_json(replayed: &Replayed) -> String {
    laid_out(&json!({
        FORM.0: FORM.1,
        "version": replayed.version,
        "command": replayed.again,
        "arrivals": "as captured",
        "capture": capture(&replayed.capture),
        "line": { "rate_bits": replayed.line.rate, "buffer_bytes": replayed.line.buffer },
        "step_ns": replayed.step_ns,
        "notes": replayed.notes,
        "policies": replayed.policies.iter().map(outcome).collect::<Vec<_>>(),
    }))
}

fn counts(counts: &[(String, u64)]) -> Value {
    Value::Object(counts.iter().map(|(why, count)| (why.clone(), Value::from(*count))).collect::<Map<_, _>>())
}

fn capture(capture: &CaptureSummary) -> Value {
    json!({
        "file": capture.file,
        "format": capture.format,
        "began_ns": capture.began,
        "duration_ns": capture.duration,
        "packets": capture.packets,
        "rule": capture.rule,
        "out": { "packets": capture.out.0, "bytes": capture.out.1 },
        "in": { "packets": capture.inward.0, "bytes": capture.inward.1 },
        "left_out": counts(&capture.left_out),
        "split": { "packets": capture.split.0, "into": capture.split.1 },
        "broken": capture.broken,
    })
}

fn outcome(outcome: &ReplayOutcome) -> Value {
    json!({
        "name": outcome.name,
        "file": outcome.file,
        "device": outcome.device,
        "out": fates(&outcome.out),
        "in": fates(&outcome.inward),
        "classes": outcome.classes.iter().map(class).collect::<Vec<_>>(),
        "flows": outcome.flows.iter().map(flow).collect::<Vec<_>>(),
    })
}

fn fates(fates: &OutcomeCounts) -> Value {
    let waited = fates.waited.map(|summary| {
        json!({
            "mean_ns": summary.mean,
            "median_ns": summary.p50,
            "p95_ns": summary.p95,
            "p99_ns": summary.p99,
            "max_ns": summary.max,
        })
    });
    let ladder: Vec<Value> = LADDER.iter().zip(&fates.ladder).map(|(p, ns)| json!([p, ns])).collect();
    json!({
        "packets": fates.packets,
        "bytes": fates.bytes,
        "sent": fates.sent,
        "sent_bytes": fates.sent_bytes,
        "marked": fates.marked,
        "queued": fates.waiting,
        "dropped": counts(&fates.dropped),
        "queueing_delay": waited,
        "percentiles_ns": ladder,
    })
}

fn class(class: &ClassOutcome) -> Value {
    json!({
        "device": class.device,
        "id": class.id,
        "title": class.title,
        "queue": class.queue,
        "direction": if class.inward { "in" } else { "out" },
        "outcomes": fates(&class.outcomes),
        "packets": class.packets,
        "dropped": class.dropped,
        "median_ns": class.median,
        "longest_ns": class.longest,
    })
}

fn flow(flow: &FlowOutcome) -> Value {
    json!({ "name": flow.name, "class": flow.class, "outcomes": fates(&flow.outcomes) })
}
