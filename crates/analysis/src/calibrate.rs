//! What a calibration found ([`tidegate_measure::calibrate::Document`]) as a document.

use crate::json::laid_out;
use serde_json::{Value, json};
use tidegate_measure::calibrate::{Calibration, CalibrationDocument};
use tidegate_measure::capacity::PathDirection;

/// The form's number: it changes when a member changes its meaning or goes away.
const FORM: u64 = 2;

/// As JSON: times in ns, rates in bits per second.
pub fn to_json(document: &CalibrationDocument) -> String {
    let found = &document.found;
    let one = |way: PathDirection| found.of(way).map(|one| write(one, document.margin));
    let value = json!({
        "tidegate_calibrate": FORM, "version": document.version, "command": document.again, "began_ns": document.began_ns,
        "host": document.host, "partial": found.cut, "margin": document.margin, "up": one(PathDirection::Up), "down": one(PathDirection::Down),
        "together_rise_ns": found.together.map(|(up, down)| [up, down]),
        "caveats": found.caveats.iter().chain(&document.caveats).collect::<Vec<_>>(),
    });
    laid_out(&value)
}

fn write(one: &Calibration, margin: f64) -> Value {
    let capacity = &one.capacity;
    let steps: Vec<Value> = one
        .steps
        .iter()
        .map(|step| {
            json!({
                "bits_per_second": step.bits_per_second, "held": step.sustained, "loss": step.loss,
                "delay_ns": step.delay_ns, "slope": step.slope, "carried": step.carried,
            })
        })
        .collect();
    json!({
        "bits_per_second": one.bits_per_second, "between": [one.between.0, one.between.1], "packet": one.packet,
        "as_tc_counts": one.as_tc_counts(), "to_write": one.to_write(margin),
        "flood": {
            "bits_per_second": capacity.bits_per_second,
            "burst_bytes": if capacity.has_burst() { Some(capacity.burst_bytes) } else { None },
            "peak_bits_per_second": capacity.peak_bits_per_second.filter(|_| capacity.has_burst()),
            "is_policed": capacity.service.is_policed, "calm_sent": capacity.calm.0, "calm_lost": capacity.calm.1,
        },
        "steps": steps, "notes": one.notes, "caveats": one.caveats,
    })
}
