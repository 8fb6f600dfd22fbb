//! The boxes as JSON.

use super::lead::Lead;
use super::model::{Box, Device, Model};
use serde_json::{Value, json};

/// The form of the document.
const FORM: u32 = 1;

/// All devices, their qdiscs and classes, and the redirects between them; `measured`: what a simulation
/// measured of a box.
pub(super) fn document(
    name: &str,
    model: &Model,
    measured: &dyn Fn(&Device, &Box) -> Option<String>,
) -> String {
    let rate = |rate: Option<tidegate_packet::Rate>| rate.map(|rate| rate.as_bits());
    let one = |device: &Device, one: &Box| -> Value {
        let filters: Vec<&String> = one.leads.iter().flat_map(Lead::lines).collect();
        json!({
            "id": one.id.to_string(), "parent": one.parent, "kind": if one.is_class { "class" } else { "qdisc" },
            "name": one.title, "words": one.words.trim(), "leaf": one.leaf, "rate": rate(one.rate),
            "ceil": rate(one.ceil), "prio": one.prio, "filters": filters, "measured": measured(device, one),
        })
    };
    let devices = model.devices.iter().map(|device| {
        let boxes: Vec<Value> = device.boxes.iter().map(|each| one(device, each)).collect();
        json!({"name": device.name, "note": device.note, "nodes": boxes})
    });
    let redirects = model.redirects.iter();
    let redirects = redirects.map(|one| json!({"from": one.from, "to": one.to, "filter": one.what}));
    let document = json!({
        "tidegate_graph": FORM,
        "policy": name,
        "devices": devices.collect::<Vec<_>>(),
        "redirects": redirects.collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}
