//! A recording of a line ([`tidegate_measure::record::RecordingDocument`]) as a document.

use crate::json::laid_out;
use serde_json::{Value, json};
use tidegate_measure::record::{DirectionRecording, RecordedSecond, RecordingDocument};

/// The form's number: it changes when a member changes its meaning or goes away.
const FORM: u64 = 1;

/// As JSON: times in ns, rates in bits per second.
pub fn to_json(document: &RecordingDocument) -> String {
    let recorded = &document.recorded;
    let value = json!({
        "tidegate_record": FORM, "version": document.version, "command": document.again, "began_ns": document.began_ns,
        "host": document.host, "partial": recorded.cut, "length_ns": document.length_ns, "budget": document.budget,
        "bytes": recorded.bytes, "round_trip_ns": recorded.round_trip_ns,
        "up": recorded.up.as_ref().map(direction), "down": recorded.down.as_ref().map(direction),
        "caveats": recorded.caveats.iter().chain(&document.caveats).collect::<Vec<_>>(),
    });
    laid_out(&value)
}

fn direction(one: &DirectionRecording) -> Value {
    json!({
        "packet": one.packet, "train": [one.train.0, one.train.1],
        "interval_ns": [one.interval_ns.0, one.interval_ns.1], "notes": one.notes, "caveats": one.caveats,
        "seconds": one.seconds.iter().map(second).collect::<Vec<_>>(),
    })
}

fn second(one: &RecordedSecond) -> Value {
    json!({
        "bits_per_second": one.bits_per_second, "is_at_least": one.is_at_least, "varies": one.varies,
        "unseen": one.unseen, "stalled": one.stalled, "trains": one.trains, "delay_ns": one.delay_ns,
        "sent": one.sent, "lost": one.lost,
    })
}
