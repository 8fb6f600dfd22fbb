//! What `tidegate measure` found, on a terminal: from the document alone.

use crate::table::{Align, Table};
use std::fmt::Write as _;
use tidegate_analysis::outcome::{QOO, score};
use tidegate_measure::Durations;
use tidegate_measure::experiment::{
    ArrivalStats, Experiment, LoadRecord, ProbeRecord, RunRecord, TransferRecord, group_of,
};
use tidegate_measure::numbers::{format_duration, percent, rate};
use tidegate_measure::outcome::PROFILES;

/// The text of a missing figure.
const NOTHING: &str = "–";

/// Delays and losses each way, rates, marks that changed, and what to know about all of it.
pub fn text(of: &Experiment) -> String {
    let mut text = format!("{}\n\n", of.title);
    let _ = writeln!(text, "{}", delays(of));
    let _ = writeln!(text, "{}", ways(of));
    let outcomes = outcomes(of);
    if !outcomes.is_empty() {
        let _ = writeln!(text, "{QOO}:\n\n{outcomes}");
    }
    let carried = carried(of);
    if !carried.is_empty() {
        let _ = writeln!(text, "{carried}");
    }
    for line in marks(of) {
        let _ = writeln!(text, "{line}.");
    }
    for note in &of.notes {
        let _ = writeln!(text, "Note: {note}.");
    }
    let _ = writeln!(text, "Again: {}", of.again);
    text
}

/// The runs with their loads, load by load.
fn runs(of: &Experiment) -> impl Iterator<Item = (&LoadRecord, &RunRecord)> {
    of.loads
        .iter()
        .flat_map(|load| of.runs.iter().filter(|run| run.load == load.name).map(move |run| (load, run)))
}

/// What a load is called, with its repeat where there are several.
fn called(of: &Experiment, load: &LoadRecord, run: &RunRecord) -> String {
    let several = of.runs.iter().any(|run| run.repeat > 0);
    let cut = if run.cut { ", partial" } else { "" };
    if several { format!("{} #{}{cut}", load.title, run.repeat + 1) } else { format!("{}{cut}", load.title) }
}

/// Round trips.
fn delays(of: &Experiment) -> Table {
    let columns = ["round trip, median", "95 %", "99 %", "max", "lost", "RPM"];
    let mut table = Table::new(heads(["load", "probe"], &columns)).with_two_keys();
    for (load, run) in runs(of) {
        let mut first = true;
        for probe in run.probes.iter().filter(|probe| probe.unit == "round trip") {
            let figures = probe.figures(run.window);
            let at = |p: f64| figures.rtt.percentile(p).map_or(NOTHING.to_owned(), format_duration);
            // A figure of the whole run, so it is printed once.
            let minute =
                run.responsiveness().filter(|_| first).map_or(String::new(), |rpm| format!("{rpm:.0}"));
            let name = if first { called(of, load, run) } else { String::new() };
            first = false;
            let loss = percent(figures.loss());
            table.row([name, probe.title.clone(), at(50.0), at(95.0), at(99.0), at(100.0), loss, minute]);
        }
    }
    table
}

/// Quality of Outcome of each load's round trips.
fn outcomes(of: &Experiment) -> Table {
    let names = PROFILES.each_ref().map(|application| application.name());
    let columns: Vec<&str> = names.into_iter().chain(["packets"]).collect();
    let mut table = Table::new(heads(["load", "probe"], &columns)).with_two_keys();
    for (load, run) in runs(of) {
        let mut name = called(of, load, run);
        for probe in run.probes.iter().filter(|probe| probe.unit == "round trip") {
            let packets = probe.figures(run.window);
            let scores = names.map(|name| score(name, &probe.unit, &packets));
            if scores.iter().all(Option::is_none) {
                continue;
            }
            let cells = scores.map(|score| score.map_or(NOTHING.to_owned(), |score| score.to_string()));
            let row = [std::mem::take(&mut name), probe.title.clone()].into_iter().chain(cells);
            table.row(row.chain([packets.sent().to_string()]));
        }
    }
    table
}

/// Each way: delays, jitter, losses with what they may be, order, duplicates.
fn ways(of: &Experiment) -> Table {
    let columns = ["median", "95 %", "jitter", "lost", "95 % interval", "reordered", "duplicates"];
    let mut table = Table::new(heads(["load", "one way"], &columns)).with_two_keys();
    for (load, run) in runs(of) {
        let mut name = called(of, load, run);
        for probe in run.probes.iter().filter(|probe| probe.unit == "one way") {
            let figures = probe.figures(run.window);
            let at = |p: f64| figures.rtt.percentile(p).map_or(NOTHING.to_owned(), format_duration);
            let (low, high) = figures.loss_interval();
            let arrivals = probe.arrivals.clone().unwrap_or_default();
            table.row([
                std::mem::take(&mut name),
                probe.title.clone(),
                at(50.0),
                at(95.0),
                jitter(probe, run.window),
                percent(figures.loss()),
                format!("{} – {}", percent(low), percent(high)),
                arrivals.reordered.to_string(),
                arrivals.duplicates.to_string(),
            ]);
        }
    }
    table
}

/// RFC 3550's, in the order of arrival, the mean over the window.
fn jitter(probe: &ProbeRecord, window: (u64, u64)) -> String {
    let mut arrived: Vec<(u64, u64)> =
        probe.within(window).filter_map(|(sent, took)| took.map(|took| (sent + took, took))).collect();
    arrived.sort_unstable();
    let jitter = tidegate_measure::Jitter::of(arrived.into_iter().map(|(_, took)| took));
    jitter.mean().map_or(NOTHING.to_owned(), |ns| format_duration(ns as u64))
}

/// What flows carried, with TCP's own figures.
fn carried(of: &Experiment) -> Table {
    let columns = ["goodput", "fairness", "retransmits", "TCP's round trip", "window", "delivery rate"];
    let mut table = Table::new(heads(["load", "flows"], &columns)).with_two_keys();
    for (load, run) in runs(of) {
        let mut name = called(of, load, run);
        let mut groups: Vec<&str> = run.transfers.iter().map(|transfer| group_of(&transfer.id)).collect();
        groups.dedup();
        for group in groups {
            let own: Vec<&TransferRecord> =
                run.transfers.iter().filter(|t| group_of(&t.id) == group).collect();
            let each: Vec<f64> = own.iter().map(|transfer| transfer.rate(run.window)).collect();
            let typical = |of: &dyn Fn(&TransferRecord) -> Vec<u64>| {
                Durations::new(
                    own.iter().flat_map(|transfer| measured(run, &of(transfer))).filter(|n| *n > 0).collect(),
                )
                .percentile(50.0)
            };
            let srtt = typical(&|transfer| transfer.srtt_us.clone());
            let window = typical(&|transfer| transfer.cwnd.iter().map(|n| u64::from(*n)).collect());
            let delivery = typical(&|transfer| transfer.delivery_bits.clone());
            table.row([
                std::mem::take(&mut name),
                format!("{} {group}{}", own.len(), if own.len() == 1 { "" } else { "s" }),
                rate(each.iter().sum()),
                format!("{:.2}", tidegate_measure::jain(&each)),
                own.iter().map(|transfer| transfer.retransmissions).sum::<u64>().to_string(),
                srtt.map_or(NOTHING.to_owned(), |us| format_duration(us * 1000)),
                window.map_or(NOTHING.to_owned(), |segments| format!("{segments} segments")),
                delivery.map_or(NOTHING.to_owned(), |bits| rate(bits as f64)),
            ]);
        }
    }
    table
}

/// What of a series lies within a run's window.
fn measured(run: &RunRecord, series: &[u64]) -> Vec<u64> {
    let step = run.step_ns.max(1);
    let (from, to) = ((run.window.0 / step) as usize, (run.window.1 / step) as usize);
    series.get(from..to.min(series.len())).unwrap_or_default().to_vec()
}

/// Marks that did not arrive as they were sent, and those that did.
fn marks(of: &Experiment) -> Vec<String> {
    let mut lines = Vec::new();
    // Packets by probe, and how many of them arrived as they were sent.
    let mut kept: Vec<(&str, [u64; 2])> = Vec::new();
    for (load, run) in runs(of) {
        for probe in &run.probes {
            let Some(arrivals) = &probe.arrivals else { continue };
            let all: u64 = arrivals.ds_fields.iter().map(|(_, count)| count).sum();
            let place = format!("{}, {}", called(of, load, run), probe.title);
            for (ds, count) in arrivals.ds_fields.iter().filter(|(ds, _)| ds >> 2 != u64::from(probe.dscp)) {
                let (sent, arrived) = (probe.dscp, ds >> 2);
                lines.push(format!(
                    "{place}: {count} of {all} packets sent with code point {sent} arrived with {arrived}"
                ));
            }
            lines.extend(ecn_changed(probe, arrivals, all).map(|changes| format!("{place}: {changes}")));
            let sent = u64::from(probe.dscp << 2 | probe.ecn);
            if sent != 0 && all > 0 {
                let same: u64 =
                    arrivals.ds_fields.iter().filter(|(ds, _)| *ds == sent).map(|(_, count)| count).sum();
                match kept.iter_mut().find(|(title, _)| *title == probe.title) {
                    Some((_, counts)) => *counts = [counts[0] + same, counts[1] + all],
                    None => kept.push((&probe.title, [same, all])),
                }
            }
        }
    }
    let whole = kept.iter().filter(|(_, [same, all])| same == all);
    let whole: Vec<String> = whole.map(|(title, [_, all])| format!("{title} ({all} packets)")).collect();
    if !whole.is_empty() {
        lines.push(format!("Marks that arrived unchanged: {}", whole.join(", ")));
    }
    lines
}

/// What became of ECT(1), where packets were sent with it and arrived otherwise.
fn ecn_changed(probe: &ProbeRecord, arrivals: &ArrivalStats, all: u64) -> Option<String> {
    if probe.ecn == 0 {
        return None;
    }
    let with = |ecn: u64| -> u64 {
        arrivals.ds_fields.iter().filter(|(ds, _)| ds & 3 == ecn).map(|(_, count)| count).sum()
    };
    let changes =
        [(3, "with CE: a queue marked them"), (2, "with ECT(0)"), (0, "without ECN: it was cleared")];
    let changes: Vec<String> = changes
        .into_iter()
        .map(|(ecn, words)| (with(ecn), words))
        .filter(|(count, _)| *count > 0)
        .map(|(count, words)| format!("{count} {words}"))
        .collect();
    (!changes.is_empty()).then(|| format!("of {all} packets sent with ECT(1) arrived {}", changes.join(", ")))
}

fn heads(names: [&str; 2], figures: &[&str]) -> Vec<(String, Align)> {
    let names = names.into_iter().map(|name| (name.to_owned(), Align::Left));
    names.chain(figures.iter().map(|name| ((*name).to_owned(), Align::Right))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn probe(title: &str, unit: &str, took: &[Option<u64>]) -> ProbeRecord {
        let answers =
            took.iter().enumerate().map(|(n, took)| (n as u64 * MS, took.map(|ms| ms * MS))).collect();
        ProbeRecord { title: title.into(), unit: unit.into(), answers, ..ProbeRecord::default() }
    }

    #[test]
    fn a_measurement_on_a_terminal() {
        let arrivals =
            ArrivalStats { reordered: 1, extent: 1, duplicates: 2, ds_fields: vec![(0xb8, 2), (0, 1)] };
        let up = ProbeRecord {
            dscp: 46,
            arrivals: Some(arrivals),
            ..probe("UDP EF up", "one way", &[Some(5), Some(9), None])
        };
        let upload = TransferRecord {
            id: "upload-1".into(),
            bytes: 1250,
            retransmissions: 3,
            srtt_us: vec![20_000],
            cwnd: vec![12],
            delivery_bits: vec![5_000_000],
            ..TransferRecord::default()
        };
        let run = RunRecord {
            load: "up".into(),
            window: (0, 10 * MS),
            step_ns: 10 * MS,
            probes: vec![probe("UDP EF", "round trip", &[Some(10), Some(20), None]), up],
            transfers: vec![upload],
            ..RunRecord::default()
        };
        let of = Experiment {
            title: "server, one upload".into(),
            again: "tidegate measure server tcp_up".into(),
            loads: vec![LoadRecord { name: "up".into(), title: "one upload".into(), test: None }],
            runs: vec![run],
            notes: vec!["a note".into()],
            ..Experiment::default()
        };
        let expected = "\
server, one upload

load        probe   round trip, median     95 %     99 %      max    lost   RPM
───────────────────────────────────────────────────────────────────────────────
one upload  UDP EF             10.0 ms  20.0 ms  20.0 ms  20.0 ms  33.3 %  3500

load        one way     median     95 %  jitter    lost   95 % interval  reordered  duplicates
──────────────────────────────────────────────────────────────────────────────────────────────
one upload  UDP EF up  5.00 ms  9.00 ms  250 µs  33.3 %  6.1 % – 79.2 %          1           2

load        flows         goodput  fairness  retransmits  TCP's round trip       window  delivery rate
──────────────────────────────────────────────────────────────────────────────────────────────────────
one upload  1 upload  1.00 Mbit/s      1.00            3           20.0 ms  12 segments    5.00 Mbit/s

one upload, UDP EF up: 1 of 3 packets sent with code point 46 arrived with 0.
Note: a note.
Again: tidegate measure server tcp_up
";
        assert_eq!(text(&of), expected);
        // Marks that arrive, that a queue writes, and that somebody clears.
        let mut marked = of.clone();
        let arrived = |ds_fields: &[(u64, u64)]| {
            Some(ArrivalStats { ds_fields: ds_fields.to_vec(), ..ArrivalStats::default() })
        };
        let sent = |title: &str, dscp, ecn, ds_fields: &[(u64, u64)]| ProbeRecord {
            title: title.into(),
            unit: "one way".into(),
            dscp,
            ecn,
            arrivals: arrived(ds_fields),
            ..ProbeRecord::default()
        };
        marked.runs[0].probes = vec![
            sent("UDP NQB up", 45, 0, &[(0xb4, 5)]),
            sent("UDP NQB down", 45, 0, &[(0xb4, 4), (0, 1)]),
            sent("UDP L4S up", 0, 1, &[(1, 7)]),
            sent("UDP L4S down", 0, 1, &[(1, 4), (3, 2), (0, 1)]),
            sent("UDP up", 0, 0, &[(0, 5)]),
        ];
        let lines = [
            "one upload, UDP NQB down: 1 of 5 packets sent with code point 45 arrived with 0",
            "one upload, UDP L4S down: of 7 packets sent with ECT(1) arrived 2 with CE: a queue marked them, 1 \
             without ECN: it was cleared",
            "Marks that arrived unchanged: UDP NQB up (5 packets), UDP L4S up (7 packets)",
        ];
        assert_eq!(marks(&marked), lines);
        // Enough packets have scores: all took 300 ms.
        let mut enough = of;
        let run = &mut enough.runs[0];
        run.window = (0, 200 * MS);
        run.probes = vec![probe("UDP", "round trip", &[Some(300); 200])];
        let shown = text(&enough);
        let table = "\
load        probe  call  meeting  game  browsing  packets
─────────────────────────────────────────────────────────
one upload  UDP      83       57     0        44      200
";
        assert!(shown.contains(&format!("{QOO}:\n\n{table}")), "{shown}");
    }
}
