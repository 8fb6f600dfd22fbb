//! What a line adds to packets ([`tidegate_measure::overhead::OverheadDocument`]) as a document.

use crate::json::laid_out;
use serde_json::{Value, json};
use tidegate_measure::capacity::PathDirection;
use tidegate_measure::overhead::{Coding, LineEstimate, OverheadDocument, Sweep, Words};

/// The form's number: it changes when a member changes its meaning or goes away.
const FORM: u64 = 2;

/// As JSON: times in ns, rates in bits per second, sizes in bytes of IP packets.
pub fn to_json(document: &OverheadDocument) -> String {
    let sweep = |way: PathDirection| document.swept.of(way).map(write_sweep);
    let value = json!({
        "tidegate_overhead": FORM, "version": document.version, "command": document.again, "began_ns": document.began_ns,
        "host": document.host, "partial": document.swept.cut, "up": sweep(PathDirection::Up), "down": sweep(PathDirection::Down),
        "caveats": document.caveats,
    });
    laid_out(&value)
}

fn write_sweep(sweep: &Sweep) -> Value {
    let sizes: Vec<Value> =
        sweep.sizes.iter().map(|size| json!({"ip": size.ip, "ns": size.ns, "error": size.error})).collect();
    let left_out: Vec<Value> = sweep.left_out.iter().map(|(ip, why)| json!({"ip": ip, "why": why})).collect();
    json!({"line": sweep.line.as_ref().map(write_line), "caveats": sweep.caveats, "sizes": sizes, "left_out": left_out})
}

fn write_line(line: &LineEstimate) -> Value {
    let words = Words::of(line);
    let step = match line.coding {
        Coding::Steps(step) => Some(step),
        _ => None,
    };
    json!({
        "overhead": line.overhead, "overhead_between": [line.between.0, line.between.1],
        "coding": line.coding.name(), "step": step,
        "bits_per_second": line.bits_per_second, "bits_per_second_between": [line.rate_between.0, line.rate_between.1],
        "smallest_unit": line.floor.filter(|floor| floor.is_unit).map(|floor| floor.bytes),
        "packets_per_second": line.packets_per_second(),
        "alternative": line.rival.map(|(coding, overhead)| json!({"coding": coding.name(), "overhead": overhead})),
        "error": line.error,
        "words": {
            "cake": words.cake, "tc": words.tc, "tc_without_header": words.tc_without_header,
            "known_as": words.known_as, "left_out": words.left_out,
        },
    })
}
