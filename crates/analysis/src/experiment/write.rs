//! Writing an experiment as JSON. Member names are those of the structs, units included; docs/results.md describes them.

use crate::json::laid_out;
use crate::trial::write_class;
use serde_json::{Value, json};
use tidegate_measure::experiment::{
    Arrivals, Cable, Comparison, Event, Experiment, Lateness, LinkSeries, Load, Node, Policy, Probe, Run, Transfer,
};

/// The member that tells the form, and its number: it changes when a member changes its meaning or goes away.
pub(super) const FORM: (&str, u64) = ("tidegate_experiment", 1);

/// An experiment as JSON, ended by a newline.
pub fn to_json(experiment: &Experiment) -> String {
    let mut runs = all(&experiment.runs, run);
    if experiment.execution == "field" {
        for (value, run) in runs.iter_mut().zip(&experiment.runs) {
            value["round_trips_per_minute"] = json!(run.responsiveness());
        }
    }
    let mut value = json!({
        FORM.0: FORM.1,
        "version": experiment.version,
        "again": experiment.again,
        "execution": experiment.execution,
        "scenario": experiment.scenario,
        "title": experiment.title,
        "about": experiment.about,
        "source": experiment.source,
        "seed": experiment.seed,
        "notes": experiment.notes,
        "comparisons": all(&experiment.comparisons, comparison),
        "nodes": all(&experiment.nodes, node),
        "links": all(&experiment.links, cable),
        "policies": all(&experiment.policies, policy),
        "loads": all(&experiment.loads, load),
        "runs": runs,
    });
    if let Some(began_ns) = experiment.began_ns {
        value["began_ns"] = json!(began_ns);
    }
    laid_out(&value)
}

fn all<T>(things: &[T], write: impl Fn(&T) -> Value) -> Vec<Value> {
    things.iter().map(write).collect()
}

fn node(node: &Node) -> Value {
    json!({ "name": node.name, "kind": node.kind, "devices": node.devices })
}

fn cable(cable: &Cable) -> Value {
    json!({
        "name": cable.name,
        "from": cable.from,
        "to": cable.to,
        "there": cable.there,
        "back": cable.back,
        "there_bits": cable.there_bits,
        "back_bits": cable.back_bits,
    })
}

fn policy(policy: &Policy) -> Value {
    let commands = all(&policy.commands, |(machine, lines)| json!({ "machine": machine, "lines": lines }));
    json!({ "name": policy.name, "title": policy.title, "commands": commands })
}

fn load(load: &Load) -> Value {
    json!({ "name": load.name, "title": load.title, "test": load.test })
}

fn run(run: &Run) -> Value {
    let mut value = json!({
        "policy": run.policy,
        "load": run.load,
        "repeat": run.repeat,
        "seed": run.seed,
        "window": [run.window.0, run.window.1],
        "step_ns": run.step_ns,
        "cut": run.cut,
        "work": [run.work.0, run.work.1],
        "probes": all(&run.probes, probe),
        "transfers": all(&run.transfers, transfer),
        "classes": all(&run.classes, write_class),
        "queues": all(&run.queues, queue),
        "events": all(&run.events, event),
    });
    if let Some(Lateness { packets, median, p99, most }) = run.lateness {
        value["lateness"] = json!({ "packets": packets, "median": median, "p99": p99, "most": most });
    }
    value
}

fn probe(probe: &Probe) -> Value {
    let mut value = json!({
        "id": probe.id,
        "title": probe.title,
        "unit": probe.unit,
        "from": probe.from,
        "to": probe.to,
        "dscp": probe.dscp,
        "answers": probe.answers,
        "there": probe.there,
        "received": probe.received,
        "packets": probe.packets,
    });
    if let Some(Arrivals { reordered, extent, copies, ds_fields }) = &probe.arrivals {
        value["arrivals"] =
            json!({ "reordered": reordered, "extent": extent, "copies": copies, "ds_fields": ds_fields });
    }
    value
}

fn transfer(transfer: &Transfer) -> Value {
    let mut value = json!({
        "id": transfer.id,
        "title": transfer.title,
        "from": transfer.from,
        "to": transfer.to,
        "control": transfer.control,
        "dscp": transfer.dscp,
        "began": transfer.began,
        "finished": transfer.finished,
        "bytes": transfer.bytes,
        "retransmissions": transfer.retransmissions,
        "lost": transfer.lost,
        "series": transfer.series,
        "cwnd": transfer.cwnd,
        "srtt_us": transfer.srtt_us,
    });
    if !transfer.delivery_bits.is_empty() {
        value["delivery_bits"] = json!(transfer.delivery_bits);
    }
    value
}

fn queue(queue: &LinkSeries) -> Value {
    json!({
        "link": queue.link,
        "up": queue.up,
        "title": queue.title,
        "limit": queue.limit,
        "sent": queue.sent,
        "capacity": queue.capacity,
        "backlog": queue.backlog,
        "dropped": queue.dropped,
    })
}

fn event(event: &Event) -> Value {
    json!({ "at": event.at, "on": event.on, "what": event.what, "output": event.output })
}

fn comparison(comparison: &Comparison) -> Value {
    // JSON has no infinity: no bound is null.
    let bound = |bound: f64| bound.is_finite().then_some(bound);
    json!({
        "id": comparison.id,
        "what": comparison.what,
        "figure": comparison.figure,
        "unit": comparison.unit,
        "published": comparison.published,
        "found": comparison.found,
        "spread": comparison.spread.map(|(least, most)| [least, most]),
        "within": [bound(comparison.within.0), bound(comparison.within.1)],
        "held": comparison.held,
        "gated": comparison.gated,
        "why": comparison.why,
    })
}
