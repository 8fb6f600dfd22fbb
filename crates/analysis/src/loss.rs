//! Losses ([`tidegate_measure::loss::LossDocument`]) as a document.

use serde_json::{Value, json};
use tidegate_measure::loss::{DirectionLoss, LossDocument};

/// As JSON, ended by a newline: docs/measure.md lists the members.
pub fn to_json(of: &LossDocument) -> String {
    let way = |way: &DirectionLoss| -> Value {
        let losses = &way.losses;
        let (low, high) = losses.interval();
        json!({
            "direction": way.name,
            "sent": losses.sent,
            "lost": losses.lost,
            "share": losses.share(),
            "share_within_95": [low, high],
            "bursts": way.order.map(|_| &losses.runs),
            "gaps": way.order.map(|_| &losses.gaps),
            "gilbert": losses.gilbert().map(|(turns_bad, turns_good)| json!({ "turns_bad": turns_bad, "turns_good": turns_good })),
            "reordered": way.order.map(|order| order.reordered),
            "reordering_extent": way.order.map(|order| order.extent),
            "duplicates": way.duplicates,
            "caveats": way.caveats(),
        })
    };
    let value = json!({
        "tidegate_loss": 2,
        "version": of.version,
        "command": of.again,
        "partial": of.partial,
        "notes": of.notes,
        "directions": of.ways.iter().map(way).collect::<Vec<Value>>(),
    });
    format!("{value:#}\n")
}
