//! A trial as JSON.

use crate::json::laid_out;
use serde_json::{Value, json};
use tidegate_measure::trial::{BufferSeries, ClassSeries, Flow, Probe, Run, TreeNode, Trial};

/// The form's number: it changes when a member changes its meaning or goes away.
pub(super) const FORM: u64 = 1;

/// A trial as JSON, ended by a newline.
pub fn to_json(trial: &Trial) -> String {
    let document = json!({
        "tidegate_trial": FORM,
        "version": trial.version,
        "again": trial.again,
        "script": trial.script,
        "device": trial.device,
        "commands": trial.commands,
        "seed": trial.seed,
        "verdict": trial.verdict,
        "notes": trial.notes,
        "link": {
            "up_bits": trial.link.up_bits,
            "down_bits": trial.link.down_bits,
            "rtt_ns": trial.link.rtt_ns,
            "up_buffer_bytes": trial.link.up_buffer_bytes,
            "down_buffer_bytes": trial.link.down_buffer_bytes,
        },
        "tree": trial.tree.iter().map(node).collect::<Vec<_>>(),
        "runs": trial.runs.iter().map(run).collect::<Vec<_>>(),
    });
    laid_out(&document)
}

fn run(run: &Run) -> Value {
    json!({
        "load": run.load,
        "title": run.title,
        "policy": run.policy,
        "witnesses": run.witnesses,
        "window": [run.window.0, run.window.1],
        "step_ns": run.step_ns,
        "probes": run.probes.iter().map(probe).collect::<Vec<_>>(),
        "flows": run.flows.iter().map(flow).collect::<Vec<_>>(),
        "classes": run.classes.iter().map(class).collect::<Vec<_>>(),
        "buffers": run.buffers.iter().map(buffer).collect::<Vec<_>>(),
        "direct_packets": run.direct_packets,
    })
}

fn probe(probe: &Probe) -> Value {
    json!({
        "id": probe.id,
        "title": probe.title,
        "unit": probe.unit,
        "class": probe.class,
        "answers": probe.answers,
    })
}

fn flow(flow: &Flow) -> Value {
    json!({
        "title": flow.title,
        "up": flow.up,
        "class": flow.class,
        "bytes": flow.bytes,
        "retransmissions": flow.retransmissions,
        "lost": flow.lost,
        "series": flow.series,
    })
}

pub(crate) fn class(class: &ClassSeries) -> Value {
    json!({
        "id": class.id,
        "title": class.title,
        "leaf": class.leaf,
        "sent": class.sent,
        "packets": class.packets,
        "backlog": class.backlog,
        "qlen": class.qlen,
        "dropped": class.dropped,
        "tokens_us": class.tokens_us,
        "ctokens_us": class.ctokens_us,
    })
}

fn buffer(buffer: &BufferSeries) -> Value {
    json!({ "title": buffer.title, "limit": buffer.limit, "backlog": buffer.backlog, "dropped": buffer.dropped })
}

fn node(node: &TreeNode) -> Value {
    json!({
        "device": node.device,
        "id": node.id,
        "parent": node.parent,
        "is_class": node.is_class,
        "kind": node.kind,
        "options": node.options,
        "rate_bits": node.rate_bits,
        "ceil_bits": node.ceil_bits,
        "prio": node.prio,
        "title": node.title,
        "filters": node.filters,
        "unreachable": node.unreachable,
    })
}
