//! What a trial found, for people and as JSON.

use super::Trial;
use super::options::Buffer;
use super::scenario::{Load, Run};
use serde_json::{Value, json};
use std::fmt::Write as _;
use tidegate_measure::Summary;
use tidegate_packet::{Handle, Span};
use tidegate_policy::dump::QueueStats;
use tidegate_report::{Align, Table, milliseconds, percent, rate, size};

/// The tables, the verdict, the line that does it again.
pub(super) fn text(trial: &Trial<'_>) -> String {
    let mut out = String::new();
    let options = trial.options;
    let (up, down) = (options.up.as_bits() as f64, options.down.as_bits() as f64);
    let buffer = options.buffer.bytes(options.up);
    let _ = writeln!(
        out,
        "{} on {}: {} up, {} down, {} round trip; the modem buffers {} ({} of uplink).\n",
        options.script.display(),
        trial.policy.wan,
        rate(up),
        rate(down),
        milliseconds(options.rtt.0),
        size(buffer),
        milliseconds(buffer * 1_000_000_000 / options.up.0),
    );
    let _ = writeln!(out, "{}", pings(trial));
    if let Some(run) = trial.run(true, true) {
        let _ = writeln!(out, "{} with the policy, at the end of the {}:\n", trial.policy.wan, load_name(trial.load));
        let _ = writeln!(out, "{}", queues(run));
    }
    for note in &trial.policy.notes {
        let _ = writeln!(out, "Note: {note}");
    }
    let _ = writeln!(out, "{}\n\nAgain: {}", verdict(trial), again(trial));
    out
}

fn load_name(load: Load) -> String {
    match load {
        Load::Upload => "upload".into(),
        Load::Server(port) => format!("server's sending (port {port})"),
    }
}

fn load_word(trial: &Trial<'_>, run: &Run) -> &'static str {
    match (run.loaded, trial.load) {
        (false, _) => "empty",
        (true, Load::Upload) => "upload",
        (true, Load::Server(_)) => "server",
    }
}

fn pings(trial: &Trial<'_>) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new([
        ("load", Left),
        ("policy", Left),
        ("ping mean", Right),
        ("p50", Right),
        ("p95", Right),
        ("p99", Right),
        ("max", Right),
        ("lost", Right),
        ("goodput up", Right),
        ("modem dropped", Right),
    ]);
    for run in &trial.runs {
        if run.loaded && !run.with_policy {
            table.rule();
        }
        let figures = run.pings.rtt.summary().map_or_else(
            || vec!["none came back".to_owned(), String::new(), String::new(), String::new(), String::new()],
            |Summary { mean, p50, p95, p99, max, .. }| [mean, p50, p95, p99, max].map(milliseconds).to_vec(),
        );
        let mut row =
            vec![load_word(trial, run).to_owned(), if run.with_policy { "with" } else { "without" }.to_owned()];
        row.extend(figures);
        row.push(percent(run.pings.loss()));
        row.push(run.goodput.map_or_else(String::new, rate));
        row.push(run.modem.dropped.to_string());
        table.row(row);
    }
    table
}

fn queues(run: &Run) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new([
        ("class or qdisc", Left),
        ("on", Left),
        ("sent", Right),
        ("packets", Right),
        ("dropped", Right),
        ("queued", Right),
        ("packets", Right),
    ]);
    let mut row = |name: String, on: Handle, stats: &QueueStats| {
        table.row([
            name,
            on.to_string(),
            size(stats.bytes),
            stats.packets.to_string(),
            stats.drops.to_string(),
            size(u64::from(stats.backlog)),
            stats.qlen.to_string(),
        ]);
    };
    for qdisc in &run.qdiscs {
        row(format!("qdisc {} {}", qdisc.kind.name(), qdisc.handle), qdisc.parent, &qdisc.stats);
    }
    for class in &run.classes {
        if let Some(stats) = &class.stats {
            row(format!("class {} {}", class.kind.name(), class.classid), class.parent, stats);
        }
    }
    table
}

/// One sentence: what the policy does to the ping under load, and what it costs.
fn verdict(trial: &Trial<'_>) -> String {
    let (Some(without), Some(with)) = (trial.run(true, false), trial.run(true, true)) else { return String::new() };
    let load = match trial.load {
        Load::Upload => "an upload".to_owned(),
        Load::Server(port) => format!("the server on port {port}"),
    };
    let (Some(before), Some(after)) = (without.pings.rtt.percentile(95.0), with.pings.rtt.percentile(95.0)) else {
        return format!("Under {load} no ping came back; the policy leaves nothing for others.");
    };
    let idle = trial.run(false, false).and_then(|run| run.pings.rtt.percentile(95.0)).unwrap_or(0);
    let cost = match (without.goodput, with.goodput) {
        (Some(a), Some(b)) if a > 0.0 => {
            let change = (b - a) / a * 100.0;
            match change {
                c if c < -0.5 => format!(", for {:.0} % less sent ({} instead of {})", -c, rate(b), rate(a)),
                c if c > 0.5 => format!(", and {c:.0} % more is sent ({} instead of {})", rate(b), rate(a)),
                _ => format!(", and as much is sent ({})", rate(b)),
            }
        }
        _ => String::new(),
    };
    let lost = with.pings.loss();
    let but = if lost > 0.02 && lost > without.pings.loss() + 0.01 {
        format!("; but {} of pings are lost", percent(lost))
    } else {
        String::new()
    };
    let ratio = before as f64 / after.max(1) as f64;
    let (from, to) = (milliseconds(before), milliseconds(after));
    if ratio >= 1.2 {
        format!(
            "Under {load} the policy cuts the ping's 95th percentile from {from} to {to}, {ratio:.1} times{cost}{but}."
        )
    } else if ratio <= 0.83 {
        format!(
            "Under {load} the policy makes the ping worse: its 95th percentile is {to} instead of {from}{cost}{but}."
        )
    } else if before as f64 > 2.0 * idle as f64 {
        format!(
            "Under {load} the policy does not help: the ping's 95th percentile is {to} with it, {from} without, {} on the idle \
             link{cost}{but}.",
            milliseconds(idle)
        )
    } else {
        format!(
            "{}{} does not disturb the ping, with the policy ({to}) or without ({from}){cost}{but}.",
            load[..1].to_uppercase(),
            &load[1..]
        )
    }
}

/// The command that gives the same figures.
fn again(trial: &Trial<'_>) -> String {
    let o = trial.options;
    let mut line = format!("tidegate try {}", o.script.display());
    for arg in &o.args {
        let _ = write!(line, " {arg}");
    }
    let _ = write!(line, " --up {} --down {}", tc_rate(o.up.as_bits()), tc_rate(o.down.as_bits()));
    let mut add = |flag: &str, value: String, default: bool| {
        if !default {
            let _ = write!(line, " --{flag} {value}");
        }
    };
    add("rtt", tc_time(o.rtt), o.rtt == Span::millis(30));
    let buffer = match o.buffer {
        Buffer::Bytes(bytes) => bytes.to_string(),
        Buffer::Time(span) => tc_time(span),
    };
    add("buffer", buffer, o.buffer == Buffer::Time(Span::millis(1500)));
    add("duration", tc_time(o.duration), o.duration == Span::secs(60));
    add("dev", o.dev.clone().unwrap_or_default(), o.dev.is_none());
    add("load", load_kind(trial.load).to_owned(), o.load.is_none());
    add("flows", o.flows.to_string(), o.flows == 1);
    let _ = write!(line, " --seed {}", o.seed);
    line
}

fn load_kind(load: Load) -> &'static str {
    match load {
        Load::Upload => "upload",
        Load::Server(_) => "server",
    }
}

fn tc_rate(bits: u64) -> String {
    match bits {
        b if b.is_multiple_of(1_000_000) => format!("{}mbit", b / 1_000_000),
        b if b.is_multiple_of(1000) => format!("{}kbit", b / 1000),
        b => format!("{b}bit"),
    }
}

fn tc_time(span: Span) -> String {
    match span.0 / 1000 {
        us if us.is_multiple_of(1_000_000) => format!("{}s", us / 1_000_000),
        us if us.is_multiple_of(1000) => format!("{}ms", us / 1000),
        us => format!("{us}us"),
    }
}

/// The same as one JSON document: rates in bits per second, times in milliseconds, sizes in bytes.
pub(super) fn json(trial: &Trial<'_>) -> String {
    let o = trial.options;
    let document = json!({
        "tidegate": env!("CARGO_PKG_VERSION"),
        "again": again(trial),
        "script": o.script.display().to_string(),
        "device": trial.policy.wan,
        "commands": trial.policy.commands,
        "seed": o.seed,
        "link": {
            "up_bits": o.up.as_bits(),
            "down_bits": o.down.as_bits(),
            "rtt_ms": ms(o.rtt.0),
            "modem_buffer_bytes": o.buffer.bytes(o.up),
        },
        "load": load_kind(trial.load),
        "flows": o.flows,
        "duration_s": o.duration.as_secs_f64(),
        "runs": trial.runs.iter().map(|run| run_json(trial, run)).collect::<Vec<_>>(),
        "verdict": verdict(trial),
        "notes": trial.policy.notes,
    });
    format!("{document:#}\n")
}

fn ms(ns: u64) -> f64 {
    (ns as f64 / 1e3).round() / 1e3
}

fn run_json(trial: &Trial<'_>, run: &Run) -> Value {
    let rtt = run.pings.rtt.summary().map(|s| {
        json!({ "mean_ms": ms(s.mean), "p50_ms": ms(s.p50), "p95_ms": ms(s.p95), "p99_ms": ms(s.p99), "max_ms": ms(s.max) })
    });
    let flows = run.flows.iter().map(|f| {
        json!({ "acked_bytes": f.acked, "retransmissions": f.retransmissions, "lost": f.lost, "timeouts": f.timeouts })
    });
    json!({
        "load": load_word(trial, run),
        "policy": run.with_policy,
        "ping": { "sent": run.pings.rtt.count() + run.pings.lost, "lost": run.pings.lost, "loss": run.pings.loss(), "rtt": rtt },
        "goodput_up_bits": run.goodput.map(f64::round),
        "flows": flows.collect::<Vec<_>>(),
        "modem": {
            "sent": run.modem.sent,
            "sent_bytes": run.modem.sent_bytes,
            "dropped": run.modem.dropped,
            "peak_bytes": run.modem.peak_bytes,
        },
        "events": run.packets,
        "qdiscs": run.qdiscs.iter().map(|q| queue_json(q.kind.name(), q.handle, q.parent, Some(&q.stats))).collect::<Vec<_>>(),
        "classes": run.classes.iter().map(|c| queue_json(c.kind.name(), c.classid, c.parent, c.stats.as_ref())).collect::<Vec<_>>(),
    })
}

fn queue_json(kind: &str, id: Handle, parent: Handle, stats: Option<&QueueStats>) -> Value {
    let mut value = json!({ "kind": kind, "id": id.to_string(), "parent": parent.to_string() });
    if let (Some(members), Some(s)) = (value.as_object_mut(), stats) {
        members.insert("bytes".into(), s.bytes.into());
        members.insert("packets".into(), s.packets.into());
        members.insert("drops".into(), s.drops.into());
        members.insert("overlimits".into(), s.overlimits.into());
        members.insert("backlog_bytes".into(), s.backlog.into());
        members.insert("qlen".into(), s.qlen.into());
    }
    value
}
