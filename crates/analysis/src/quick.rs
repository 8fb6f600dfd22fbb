//! Half a minute of a line ([`tidegate_measure::quick::Quick`]) as a document.

use crate::outcome::scores;
use serde_json::{Value, json};
use tidegate_measure::quick::{CapacityEstimate, Grade, Quick};

/// All of it as JSON; times in ns, rates in bits per second.
pub fn json(quick: &Quick) -> Value {
    let figures = |place: usize| -> Vec<Value> {
        let of = |phase: usize| {
            let pings = quick.pings(place, phase);
            let mut figures = json!({
                "load": quick.phases[phase].load.word(), "sent": pings.lost + pings.rtt.count(), "lost": pings.lost,
                "min_ns": pings.rtt.min(), "median_ns": pings.rtt.percentile(50.0), "p95_ns": pings.rtt.percentile(95.0),
                "max_ns": pings.rtt.max(),
            });
            if let Some(scores) = scores("round trip", &pings) {
                figures["qoo"] = scores;
            }
            figures
        };
        (0..quick.phases.len()).map(of).collect()
    };
    let places: Vec<Value> = quick
        .places
        .iter()
        .enumerate()
        .map(|(n, place)| {
            let documents: Vec<Value> =
                place.requests.iter().map(|request| json!([request.sent_ns, request.took_ns])).collect();
            json!({"name": place.name, "distance": place.distance, "figures": figures(n), "requests": documents})
        })
        .collect();
    let name = |place: usize| &quick.places[place].name;
    let phases: Vec<Value> = quick.phases.iter().enumerate().map(|(n, phase)| {
        json!({
            "load": phase.load.word(), "window_ns": [phase.window.0, phase.window.1], "by": phase.by, "up_bits_per_second": phase.up_bits,
            "down_bits_per_second": phase.down_bits, "queue_before": quick.queue(n).map(|queue| name(queue.before)),
            "queue_after": quick.queue(n).and_then(|queue| queue.after).map(name),
        })
    }).collect();
    let both = |pair: (u64, u64)| json!({"median_ns": pair.0, "p95_ns": pair.1});
    let remedy = quick.remedy.as_ref().map(|remedy| {
        let predicted: Vec<Value> = remedy
            .predicted
            .iter()
            .map(|one| json!({"load": one.load.word(), "without": both(one.without), "with": both(one.with)}))
            .collect();
        json!({"policy": remedy.policy, "missing": remedy.missing, "saved": remedy.saved, "predicted": predicted})
    });
    let next: Vec<Value> =
        quick.next.iter().map(|step| json!({"what": step.what, "commands": step.commands})).collect();
    let (up, down) = quick.rates();
    json!({
        "tidegate_quick": 2, "version": quick.version, "command": quick.again, "began_ns": quick.began_ns, "partial": quick.partial,
        "grade": quick.grade().map(Grade::letter), "round_trips_per_minute": quick.round_trips_per_minute(),
        "up_bits_per_second": up.map(CapacityEstimate::bits), "down_bits_per_second": down.map(CapacityEstimate::bits),
        "up_is_full": up.map(|rate| rate.full().is_some()), "down_is_full": down.map(|rate| rate.full().is_some()),
        "hops": places, "phases": phases, "remedy": remedy, "next": next,
        "notes": quick.notes,
    })
}
