//! One line of JSON for each interval, for programs that read along.

use super::interval::{DeviceInterval, QueueRow};
use serde_json::{Value, json};

/// The form of the line: it changes when a member changes its meaning or goes away.
const FORM: u64 = 2;

/// An interval as JSON. Rates are bits per second, times nanoseconds, sizes bytes; unknown values are null.
pub fn line(course: &DeviceInterval) -> Value {
    json!({
        "tidegate_top": FORM,
        "at_ns": course.at_ns,
        "over_ns": course.over_ns,
        "device": course.device,
        "backend": course.backend,
        "packet_io": course.packet_io,
        "link_bps": course.link_bps,
        "shaped_bps": course.shaped_bps,
        "late_ns": course.late_ns,
        "autorate": course.control,
        "classes": course.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

fn row(row: &QueueRow) -> Value {
    let figures = &row.figures;
    json!({
        "class": row.id,
        "name": row.name,
        "qdisc": row.leaf,
        "bps": figures.bps,
        "pps": figures.pps,
        "share": figures.share,
        "backlog_bytes": figures.backlog,
        "backlog_packets": figures.qlen,
        "sojourn_p50_ns": figures.p50_ns,
        "sojourn_p99_ns": figures.p99_ns,
        "oldest_ns": figures.oldest_ns,
        "drops_per_s": figures.drops,
        "marks_per_s": figures.marks,
        "borrowed": figures.borrowed,
        "rate_bps": figures.rate_bps,
        "ceil_bps": figures.ceil_bps,
    })
}
