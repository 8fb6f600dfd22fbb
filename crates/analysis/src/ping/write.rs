//! Writing it as JSON. Member names are those of the structs, units included; docs/measure.md describes them.

use crate::json::laid_out;
use serde_json::{Value, json};
use tidegate_measure::pinged::{Fault, Pinged, Target, Way};

/// The member that tells the form, and its number: it changes when a member changes its meaning or goes away.
pub(super) const FORM: (&str, u64) = ("tidegate_ping", 1);

/// What pings showed as JSON, ended by a newline.
pub fn to_json(pinged: &Pinged) -> String {
    laid_out(&json!({
        FORM.0: FORM.1,
        "version": pinged.version,
        "again": pinged.again,
        "began_ns": pinged.began_ns,
        "partial": pinged.partial,
        "notes": pinged.notes,
        "targets": pinged.targets.iter().map(target).collect::<Vec<_>>(),
    }))
}

fn target(target: &Target) -> Value {
    let port = match target.way {
        Way::Icmp => None,
        Way::Udp(port) => Some(port),
    };
    let answers: Vec<Value> = target.asked.iter().map(|asked| json!([asked.sent_ns, asked.took_ns])).collect();
    let is_here = target.asked.iter().any(|asked| asked.here_ns.is_some());
    let here = is_here.then(|| target.asked.iter().map(|asked| asked.here_ns).collect::<Vec<_>>());
    json!({
        "id": target.id,
        "host": target.host,
        "address": target.address,
        "udp_port": port,
        "ds_field": target.ds_field,
        "size": target.size,
        "hop_limit": target.hop_limit,
        "interval_ns": target.interval_ns,
        "duplicates": target.duplicates,
        "errors_for_answers": target.errors_for_answers,
        "passed_over": target.passed_over,
        "faults": target.faults.iter().map(fault).collect::<Vec<_>>(),
        "doubts": target.doubts(),
        "summary": summary(target),
        "answers": answers,
        "here_ns": here,
    })
}

fn fault(fault: &Fault) -> Value {
    json!({ "by": fault.by, "what": fault.what, "count": fault.count })
}

/// For whoever reads without reckoning; it is not read back.
fn summary(target: &Target) -> Value {
    let figures = target.figures();
    let rtt = figures.rtt;
    json!({
        "sent": figures.sent,
        "lost": figures.lost,
        "loss": figures.loss,
        "loss_interval": [figures.loss_interval.0, figures.loss_interval.1],
        "min_ns": figures.min,
        "mean_ns": rtt.map(|of| of.mean),
        "p50_ns": rtt.map(|of| of.p50),
        "p95_ns": rtt.map(|of| of.p95),
        "p99_ns": rtt.map(|of| of.p99),
        "max_ns": rtt.map(|of| of.max),
        "mdev_ns": figures.mdev,
        "jitter_ns": figures.jitter,
        "here_p50_ns": figures.here.map(|here| here.0),
        "here_p95_ns": figures.here.map(|here| here.1),
    })
}
