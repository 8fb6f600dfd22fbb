//! What was found of this computer ([`tidegate_measure::doctor::Diagnosis`]) as a document.

use crate::json::laid_out;
use serde_json::{Value, json};
use tidegate_measure::doctor::{
    DeviceFacts, Diagnosis, DoctorFinding, EcnResult, Facts, FlowTableFacts, Inwards, ShaperClass,
    ShaperFacts,
};

/// The member that gives the form, and its number: it changes when a member changes its meaning or is
/// removed.
const FORM: (&str, u64) = ("tidegate_doctor", 2);

/// What was found as JSON, ended by a newline, with the facts it follows from.
pub fn to_json(diagnosis: &Diagnosis) -> String {
    laid_out(&json!({
        FORM.0: FORM.1,
        "version": diagnosis.version,
        "command": diagnosis.again,
        "findings": diagnosis.findings.iter().map(finding).collect::<Vec<_>>(),
        "caveats": diagnosis.caveats,
        "examined": diagnosis.looked_at,
        "facts": facts(&diagnosis.facts),
    }))
}

fn finding(finding: &DoctorFinding) -> Value {
    json!({
        "id": finding.id,
        "severity": finding.severity.name(),
        "device": finding.device,
        "what": finding.what,
        "remedy": finding.remedy,
        "commands": finding.commands,
    })
}

fn facts(facts: &Facts) -> Value {
    let processors = facts
        .processors
        .iter()
        .map(|one| json!({ "number": one.number, "softirq": one.softirq, "busy": one.busy }));
    json!({
        "seconds_ns": facts.seconds_ns,
        "default_routes": facts.default_routes,
        "devices": facts.devices.iter().map(device).collect::<Vec<_>>(),
        "processors": processors.collect::<Vec<_>>(),
        "softnet": { "processed": facts.softnet.processed, "dropped": facts.softnet.dropped, "squeezed": facts.softnet.squeezed },
        "flow_tables": facts.flow_tables.iter().map(flow_table).collect::<Vec<_>>(),
        "ecn": facts.ecn.as_ref().map(ecn),
    })
}

fn device(device: &DeviceFacts) -> Value {
    let inwards = match &device.inwards {
        Inwards::Plain => json!(null),
        Inwards::Led(to) => json!({ "redirected_to": to }),
        Inwards::Handled => json!("handled"),
    };
    json!({
        "name": device.name,
        "is_hardware": device.is_hardware,
        "below": device.below,
        "master": device.master,
        "is_ppp": device.is_ppp,
        "mtu": device.mtu,
        "txqueuelen": device.txqueuelen,
        "speed_bps": device.speed_bps,
        "sent_bytes": device.sent,
        "received_bytes": device.received,
        "features": device.features,
        "byte_limits": device.byte_limits,
        "ingress": inwards,
        "shaper": device.shaper.as_ref().map(shaper),
    })
}

fn shaper(shaper: &ShaperFacts) -> Value {
    json!({
        "backend": shaper.backend,
        "kind": shaper.kind,
        "rate_bps": shaper.rate_bps,
        "beneath_bps": shaper.beneath_bps,
        "sent_bytes": shaper.sent,
        "sent_packets": shaper.packets,
        "overlimits": shaper.overlimits,
        "backlog_bytes": shaper.backlog,
        "drops": shaper.drops,
        "packets_ever": shaper.packets_ever,
        "overlimits_ever": shaper.overlimits_ever,
        "splits": shaper.splits,
        "classes": shaper.classes.iter().map(class).collect::<Vec<_>>(),
    })
}

fn class(class: &ShaperClass) -> Value {
    json!({
        "id": class.id,
        "is_leaf": class.is_leaf,
        "packets_ever": class.packets_ever,
    })
}

fn flow_table(table: &FlowTableFacts) -> Value {
    json!({ "name": table.name, "devices": table.devices, "is_hardware": table.is_hardware })
}

fn ecn(ecn: &EcnResult) -> Value {
    let quoted = ecn.quoted.iter().map(|(by, field)| json!([by, field]));
    json!({ "host": ecn.host, "sent": ecn.sent, "replied": ecn.answered, "quoted": quoted.collect::<Vec<_>>() })
}
