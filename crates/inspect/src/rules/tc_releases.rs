//! R30: bursts and delays that another release of tc turns into other times.

use super::making::finding;
use crate::finding::{Finding, Level, Rule};
use crate::reading::{PolicyModel, Step};
use crate::words;
use tidegate_packet::Nanos;
use tidegate_policy::{ClassParams, Op, QdiscParams};
use tidegate_syntax::{Env, TcChange, TcChangeRow, TcVersion, tc};

/// A note for each kind of which a bucket or a delay gets another time.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let Some(until) = reading.tc_until else { return Vec::new() };
    let rows = [
        (TcChange::FineTicks, "a bucket of {} holds another time"),
        (TcChange::NetemTimes, "{} delays by another time"),
    ];
    let of_row = |(change, what): (TcChange, &str)| {
        let row = change.row();
        let noted = |kind: &&str| differing(reading, kind, &row, &what.replace("{}", kind), until);
        row.kinds.iter().filter_map(noted).collect::<Vec<_>>()
    };
    rows.into_iter().flat_map(of_row).collect()
}

/// The note for one kind, at the first of its commands that means another time.
fn differing(
    reading: &PolicyModel,
    kind: &str,
    row: &TcChangeRow,
    what: &str,
    until: TcVersion,
) -> Option<Finding> {
    let from = reading.tc();
    let changed: Vec<Changed<'_>> =
        makers(reading, kind).filter_map(|step| changed(step, from, until)).collect();
    let first = changed.first()?;
    let lines: Vec<String> = changed.iter().skip(1).filter_map(|other| reading.line(other.step)).collect();
    let others =
        if lines.is_empty() { String::new() } else { format!("; so it is in {}", words::named(&lines)) };
    Some(finding(
        Rule::Release,
        Level::Note,
        first.step.place.clone(),
        format!("{what} by tc {until} than by tc {from}"),
        format!("tc {from}: {}; tc {until}: {}{others}", row.before, row.after),
        format!("{} by tc {from}, {} by tc {until}", micros(first.times[0]), micros(first.times[1])),
    ))
}

/// A command whose bucket or delay gets another time by another release.
struct Changed<'r> {
    step: &'r Step,
    times: [Nanos; 2],
}

/// The commands that made what is there of a kind.
fn makers<'r>(reading: &'r PolicyModel, kind: &str) -> impl Iterator<Item = &'r Step> {
    let qdiscs = reading.qdiscs.iter().filter(move |qdisc| qdisc.kind.name() == kind);
    let of_qdiscs = qdiscs.filter_map(|qdisc| reading.maker_of_qdisc(qdisc));
    let classes = reading.classes.iter().filter(move |class| class.kind.name() == kind);
    let of_classes = classes.filter_map(|class| reading.maker_of_class(&class.dev, class.classid));
    of_qdiscs.chain(of_classes).filter_map(|op| reading.step_of(op))
}

fn changed(step: &Step, from: TcVersion, until: TcVersion) -> Option<Changed<'_>> {
    let [before, after] = [from, until].map(|release| times(step, release));
    let differ = before.into_iter().zip(after).find(|(before, after)| before != after);
    differ.map(|(before, after)| Changed { step, times: [before, after] })
}

/// The times of the buckets, or the delays, that a command makes by a release of tc.
fn times(step: &Step, release: TcVersion) -> Vec<Nanos> {
    let words: Vec<String> = step.words.iter().map(|word| word.text.clone()).collect();
    let parsed = tc::parse(&words, &Env { tc: release, ..Env::default() });
    match parsed.map(|read| read.command) {
        Ok(tc::TcCommand::Apply(Op::Qdisc(op))) => match op.params {
            Some(QdiscParams::Tbf(tbf)) => vec![tbf.buffer.duration(), tbf.peak_buffer.duration()],
            Some(QdiscParams::Netem(netem)) => {
                [netem.latency_ns, netem.jitter_ns].map(|ns| Nanos(ns.unsigned_abs())).to_vec()
            }
            _ => Vec::new(),
        },
        Ok(tc::TcCommand::Apply(Op::Class(op))) => match op.params {
            Some(ClassParams::Htb(htb)) => vec![htb.buffer.duration(), htb.cbuffer.duration()],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// A time to the nanosecond: `12.8 µs`.
fn micros(time: Nanos) -> String {
    format!("{} µs", time.0 as f64 / 1000.0)
}
