//! The figures of a run by name, as expectations, tables and comparisons ask for them: `ping.p95`,
//! `upload.rate`, `link dsl up.peak`, `class gateway:eth0 1:10.drops`.
//!
//! What precedes the last point is what is measured, what follows it the statistic. Spans are in
//! seconds, rates in bits per second, amounts of data in bytes; shares and counts have no unit.

use super::convergence::{convergence, last_to_join};
use super::parts::{LinkSeries, ProbeRecord, RunRecord, TransferRecord};
use crate::outcome::{self, DelayDirection};
use crate::trial::ClassSeries;
use crate::{Durations, Jitter, Pings, deviation, jain, share};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// A figure and its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quantity {
    /// The figure, in its unit.
    pub number: f64,
    /// `s`, `bit/s`, `bytes`, or nothing for a number or a share.
    pub unit: &'static str,
}

/// Why there is no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoSuchFigure {
    /// The run measures nothing that is called so.
    Unknown {
        /// What can be requested, in the order of the document. Any percentile `pN` can, too.
        known: Vec<String>,
    },
    /// It has a name and no value: nothing was answered, a transfer did not come to its end, or has no share.
    Nothing {
        /// Why, in words that follow the figure's name: `no reply came`.
        why: &'static str,
    },
}

type Found = Result<Quantity, NoSuchFigure>;

/// A statistic: nothing, if the thing has none of that name.
type Statistic = Option<Found>;

const NO_ANSWER: NoSuchFigure = NoSuchFigure::Nothing { why: "no reply came" };
const NOT_RECORDED: NoSuchFigure = NoSuchFigure::Nothing { why: "it was not recorded" };

const SPAN_STATISTICS: [&str; 10] =
    ["mean", "median", "min", "max", "p50", "p95", "p99", "mdev", "jitter", "jitter-mean"];
const COUNT_STATISTICS: [&str; 7] = ["loss", "loss-low", "loss-high", "lost", "sent", "count", "failed"];
/// Quality of Outcome for an application: of packets one way, and of round trips.
const OUTCOME_PREFIX: &str = "qoo-";
const PROBE_STATISTICS: [&str; 2] = ["rate", "packet-rate"];
const DIRECTION_STATISTICS: [&str; 8] = [
    "there-mean",
    "there-median",
    "there-p95",
    "there-loss",
    "back-mean",
    "back-median",
    "back-p95",
    "back-loss",
];
const TRANSFER_STATISTICS: [&str; 7] =
    ["rate", "share", "bytes", "time", "retransmissions", "lost", "fairness"];
/// Of transfers that have others in their group.
const SHARED_STATISTICS: [&str; 1] = ["convergence"];
const LINK_STATISTICS: [&str; 7] = ["rate", "sent", "utilisation", "peak", "delay", "delay-max", "drops"];
const CLASS_STATISTICS: [&str; 7] = ["rate", "sent", "packets", "peak", "queue", "drops", "loss"];

/// A figure of a run within a window.
///
/// `ID.STATISTIC` for a probe or a transfer (`upload` means all of `upload-1`, `upload-2`, …), `link NAME
/// up.STATISTIC` or `down`, `class DEVICE ID.STATISTIC`.
///
/// # Errors
///
/// Nothing is called so, or it has no value.
pub fn figure(run: &RunRecord, name: &str, window: (u64, u64)) -> Result<Quantity, NoSuchFigure> {
    // A point may be part of a statistic (`p99.9`) or of a name (a device `eth0.5`): the shortest statistic
    // that is known counts.
    let points = name.match_indices('.').rev().map(|(at, _)| (&name[..at], &name[at + 1..]));
    let mut found = points.filter_map(|(of, statistic)| request_statistic(run, of, statistic, window));
    found.next().unwrap_or_else(|| Err(NoSuchFigure::Unknown { known: figures(run) }))
}

/// The names of all figures of a run; percentiles are there as examples.
pub fn figures(run: &RunRecord) -> Vec<String> {
    let mut names = Vec::new();
    let mut add = |of: &str, statistics: &[&str]| {
        names.extend(statistics.iter().map(|statistic| format!("{of}.{statistic}")));
    };
    for probe in &run.probes {
        add(&probe.id, &SPAN_STATISTICS);
        add(&probe.id, &COUNT_STATISTICS);
        if DelayDirection::of_unit(&probe.unit).is_some() {
            let names = outcome::PROFILES.map(|one| format!("{OUTCOME_PREFIX}{}", one.name()));
            add(&probe.id, &names.each_ref().map(String::as_str));
        }
        if !probe.received.is_empty() || !probe.packets.is_empty() {
            add(&probe.id, &PROBE_STATISTICS);
        }
        if !probe.there.is_empty() {
            add(&probe.id, &DIRECTION_STATISTICS);
        }
    }
    let mut groups: Vec<&str> = Vec::new();
    for transfer in &run.transfers {
        let group = group_of(&transfer.id);
        let shared = members(run, group).count() > 1;
        if group != transfer.id && !groups.contains(&group) {
            groups.push(group);
            add(group, &TRANSFER_STATISTICS);
            add(group, if shared { &SHARED_STATISTICS } else { &[] });
        }
        add(&transfer.id, &TRANSFER_STATISTICS);
        add(&transfer.id, if shared { &SHARED_STATISTICS } else { &[] });
    }
    for link in &run.queues {
        add(&format!("link {} {}", link.link, direction(link.up)), &LINK_STATISTICS);
    }
    for class in &run.classes {
        add(&format!("class {}", class.id), &CLASS_STATISTICS);
    }
    names
}

fn request_statistic(run: &RunRecord, of: &str, statistic: &str, window: (u64, u64)) -> Statistic {
    if let Some(rest) = of.strip_prefix("link ") {
        let (name, way) = rest.rsplit_once(' ')?;
        let link = run.queues.iter().find(|link| link.link == name && direction(link.up) == way)?;
        return of_link(run, link, statistic, window);
    }
    if let Some(id) = of.strip_prefix("class ") {
        let class = run.classes.iter().find(|class| class.id == id)?;
        return of_class(run, class, statistic, window);
    }
    // Datagrams are both: a probe that knows each one's way, and a transfer that knows what arrived.
    let probe = run.probes.iter().find(|probe| probe.id == of);
    let found = probe.and_then(|probe| of_probe(run, probe, statistic, window));
    let transferred = of_group(run, of, statistic, window);
    if found.is_none() || (found == Some(Err(NOT_RECORDED)) && transferred.is_some()) {
        transferred
    } else {
        found
    }
}

/// A statistic of the transfer of this id, or of all those of this group.
fn of_group(run: &RunRecord, of: &str, statistic: &str, window: (u64, u64)) -> Statistic {
    let transfers: Vec<&TransferRecord> =
        run.transfers.iter().filter(|t| t.id == of || group_of(&t.id) == of).collect();
    if transfers.is_empty() { None } else { of_transfers(run, &transfers, statistic, window) }
}

fn direction(up: bool) -> &'static str {
    if up { "up" } else { "down" }
}

/// `upload` of `upload-2`; an id without a number is its own group.
pub fn group_of(id: &str) -> &str {
    match id.rsplit_once('-') {
        Some((group, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => group,
        _ => id,
    }
}

fn of_probe(run: &RunRecord, probe: &ProbeRecord, statistic: &str, window: (u64, u64)) -> Statistic {
    for (way, prefix) in ["there-", "back-"].into_iter().enumerate() {
        if let Some(statistic) = statistic.strip_prefix(prefix) {
            let Some(directions) = probe.directions(window) else { return Some(Err(NOT_RECORDED)) };
            return of_durations(&directions[way], statistic)
                .or_else(|| of_count(&directions[way], statistic));
        }
    }
    if let Some(name) = statistic.strip_prefix(OUTCOME_PREFIX) {
        return outcome_of(probe, name, window);
    }
    let recorded = |series: Option<f64>, unit| {
        let rate = series.map(|sum| plain(per_second(sum, window), unit));
        Some(rate.unwrap_or(Err(NOT_RECORDED)))
    };
    let pings = probe.figures(window);
    match statistic {
        "rate" => recorded(sum(run, &probe.received, window).map(|bytes| bytes * 8.0), "bit/s"),
        "packet-rate" => recorded(sum(run, &probe.packets, window), ""),
        "jitter" | "jitter-mean" => {
            let jitter = received_jitter(probe, window);
            let ns = if statistic == "jitter" { jitter.last() } else { jitter.mean() };
            Some(ns.map_or(Err(NO_ANSWER), |ns| plain(ns / 1e9, "s")))
        }
        "mdev" => {
            let answered: Vec<u64> = probe.within(window).filter_map(|(_, took)| took).collect();
            Some(seconds(deviation(&answered)))
        }
        _ => of_durations(&pings, statistic).or_else(|| of_count(&pings, statistic)),
    }
}

/// The score of a probe's packets for an application.
fn outcome_of(probe: &ProbeRecord, application: &str, window: (u64, u64)) -> Statistic {
    let application = outcome::application_named(application)?;
    DelayDirection::of_unit(&probe.unit)?;
    let score = outcome::score_of(application, &probe.unit, &probe.figures(window));
    let too_few = NoSuchFigure::Nothing { why: "fewer than 100 packets were sent" };
    Some(score.map_or(Err(too_few), |found| plain(found.score, "")))
}

/// RFC 1889's jitter is that of packets as they are received, which may be in another order than they were
/// sent.
fn received_jitter(probe: &ProbeRecord, window: (u64, u64)) -> Jitter {
    let mut received: Vec<(u64, u64)> =
        probe.within(window).filter_map(|(sent, took)| took.map(|took| (sent + took, took))).collect();
    received.sort_by_key(|(at, _)| *at);
    Jitter::of(received.into_iter().map(|(_, took)| took))
}

fn of_durations(pings: &Pings, statistic: &str) -> Statistic {
    let spans: &Durations = &pings.rtt;
    Some(seconds(match statistic {
        "mean" => spans.mean(),
        "median" => spans.percentile(50.0),
        "min" => spans.min(),
        "max" => spans.max(),
        _ => spans.percentile(percentile(statistic)?),
    }))
}

/// `p99.9`: which percentile that is.
fn percentile(statistic: &str) -> Option<f64> {
    let digits = statistic.strip_prefix('p')?;
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let p: f64 = if plain { digits.parse().ok()? } else { return None };
    (p <= 100.0).then_some(p)
}

fn of_count(pings: &Pings, statistic: &str) -> Statistic {
    let (answered, lost) = (pings.rtt.count() as f64, pings.lost as f64);
    Some(plain(
        match statistic {
            "loss" => pings.loss(),
            "loss-low" => pings.loss_interval().0,
            "loss-high" => pings.loss_interval().1,
            "lost" | "failed" => lost,
            "count" => answered,
            "sent" => answered + lost,
            _ => return None,
        },
        "",
    ))
}

fn of_transfers(
    run: &RunRecord,
    transfers: &[&TransferRecord],
    statistic: &str,
    window: (u64, u64),
) -> Statistic {
    let bytes_of = |transfer: &TransferRecord| match window == run.window {
        true => transfer.bytes as f64,
        false => sum(run, &transfer.series, window).unwrap_or(0.0),
    };
    let each: Vec<f64> = transfers.iter().map(|transfer| bytes_of(transfer)).collect();
    let bytes: f64 = each.iter().sum();
    Some(match statistic {
        "bytes" => plain(bytes, "bytes"),
        "rate" => plain(per_second(bytes * 8.0, window), "bit/s"),
        "share" => {
            let all: f64 = run.transfers.iter().map(bytes_of).sum();
            plain(if all == 0.0 { 0.0 } else { bytes / all }, "")
        }
        "fairness" => plain(jain(&each), ""),
        "retransmissions" => plain(transfers.iter().map(|t| t.retransmissions as f64).sum(), ""),
        "lost" => plain(transfers.iter().map(|t| t.lost as f64).sum(), ""),
        "time" => time(transfers),
        "convergence" => converged(run, transfers, window.1),
        _ => return None,
    })
}

/// The transfers of a group.
fn members<'r>(run: &'r RunRecord, group: &'r str) -> impl Iterator<Item = &'r TransferRecord> {
    run.transfers.iter().filter(move |transfer| group_of(&transfer.id) == group)
}

/// How long the last of these to join its group takes to have its share, also from before the window.
fn converged(run: &RunRecord, transfers: &[&TransferRecord], until: u64) -> Found {
    let Some(last) = last_to_join(transfers) else { return Err(NO_ANSWER) };
    let whole: Vec<&TransferRecord> = members(run, group_of(&last.id)).collect();
    match convergence(run.step_ns, (&whole, last), until) {
        Ok(ns) => seconds(Some(ns)),
        Err(why) => Err(NoSuchFigure::Nothing { why }),
    }
}

/// From the first beginning to the last end.
fn time(transfers: &[&TransferRecord]) -> Found {
    let began = transfers.iter().map(|transfer| transfer.began).min();
    let ended = transfers.iter().map(|transfer| transfer.finished).min().flatten();
    let last = transfers.iter().filter_map(|transfer| transfer.finished).max();
    match (began, ended.and(last)) {
        (Some(began), Some(ended)) => seconds(Some(ended.saturating_sub(began))),
        _ => Err(NoSuchFigure::Nothing { why: "it did not come to its end" }),
    }
}

fn of_link(run: &RunRecord, link: &LinkSeries, statistic: &str, window: (u64, u64)) -> Statistic {
    let sent = sum(run, &link.sent, window).unwrap_or(0.0);
    let capacity = sum(run, &link.capacity, window).filter(|bytes| *bytes > 0.0);
    let without_rate = NoSuchFigure::Nothing { why: "the link has no rate" };
    Some(match statistic {
        "sent" => plain(sent, "bytes"),
        "rate" => plain(per_second(sent * 8.0, window), "bit/s"),
        "utilisation" => capacity.map_or(Err(without_rate), |capacity| plain(sent / capacity, "")),
        "peak" => plain(peak(run, &link.backlog, window), "bytes"),
        "drops" => plain(sum(run, &link.dropped, window).unwrap_or(0.0), ""),
        "delay" | "delay-max" => {
            let delays = Durations::new(steps(run, &link.delays(run.step_ns), window).to_vec());
            let delay = if statistic == "delay" { delays.mean() } else { delays.max() };
            delay.map_or(Err(without_rate), |ns| plain(ns as f64 / 1e9, "s"))
        }
        _ => return None,
    })
}

fn of_class(run: &RunRecord, class: &ClassSeries, statistic: &str, window: (u64, u64)) -> Statistic {
    let sent = sum(run, &class.sent, window).unwrap_or(0.0);
    Some(match statistic {
        "sent" => plain(sent, "bytes"),
        "rate" => plain(per_second(sent * 8.0, window), "bit/s"),
        "packets" => sum(run, &class.packets, window).map_or(Err(NOT_RECORDED), |packets| plain(packets, "")),
        "drops" => plain(sum(run, &class.dropped, window).unwrap_or(0.0), ""),
        "loss" => {
            let dropped = sum(run, &class.dropped, window).unwrap_or(0.0);
            let sent = sum(run, &class.packets, window).unwrap_or(0.0);
            plain(if dropped > 0.0 { dropped / (dropped + sent) } else { 0.0 }, "")
        }
        "peak" => plain(peak(run, &class.backlog, window), "bytes"),
        "queue" => plain(peak(run, &class.qlen, window), ""),
        _ => return None,
    })
}

impl LinkSeries {
    /// How long the backlog at the end of each step takes to send at the rate of that step, in ns; steps in
    /// which the link could carry nothing have the value of the step before. Empty if the link has no rate.
    pub fn delays(&self, step_ns: u64) -> Vec<u64> {
        let mut last = 0;
        let delay = |(&waiting, &capacity): (&u64, &u64)| {
            if capacity > 0 {
                last = (u128::from(waiting) * u128::from(step_ns) / u128::from(capacity)) as u64;
            }
            last
        };
        self.backlog.iter().zip(&self.capacity).map(delay).collect()
    }
}

fn plain(number: f64, unit: &'static str) -> Found {
    Ok(Quantity { number, unit })
}

fn seconds(ns: Option<u64>) -> Found {
    ns.map_or(Err(NO_ANSWER), |ns| plain(ns as f64 / 1e9, "s"))
}

fn per_second(amount: f64, window: (u64, u64)) -> f64 {
    let ns = window.1.saturating_sub(window.0);
    if ns == 0 { 0.0 } else { amount * 1e9 / ns as f64 }
}

/// The steps of a series that a window touches.
fn steps<'s, T>(run: &RunRecord, series: &'s [T], window: (u64, u64)) -> &'s [T] {
    let step = run.step_ns.max(1);
    let end = (window.1.div_ceil(step) as usize).min(series.len());
    series.get((window.0 / step) as usize..end).unwrap_or_default()
}

/// What a series amounts to within a window; a step that is only partly in it counts in part. `None` of what
/// was not recorded.
fn sum<T: Copy + Into<u64>>(run: &RunRecord, series: &[T], window: (u64, u64)) -> Option<f64> {
    let step = run.step_ns.max(1);
    let part = |at: u64| {
        let (began, ended) = (at.saturating_mul(step), (at + 1).saturating_mul(step));
        share(ended.min(window.1).saturating_sub(began.max(window.0)), step)
    };
    let weighed =
        (window.0 / step..).zip(steps(run, series, window)).map(|(at, &n)| n.into() as f64 * part(at)).sum();
    (!series.is_empty()).then_some(weighed)
}

fn peak<T: Copy + Into<u64>>(run: &RunRecord, series: &[T], window: (u64, u64)) -> f64 {
    steps(run, series, window).iter().map(|&n| n.into()).max().unwrap_or(0) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    const MS: u64 = 1_000_000;

    /// Ten steps of a second, the window from the second to the ninth.
    fn run() -> RunRecord {
        let answers: Vec<(u64, Option<u64>)> =
            (0..100).map(|n| (n * 100 * MS, (n % 10 != 0).then_some((20 + n % 2) * MS))).collect();
        let there =
            answers.iter().map(|(sent, took)| took.map(|_| 5 * MS).or((sent % 2000 == 0).then_some(5 * MS)));
        let transfer = |id: &str, began, finished, bytes| TransferRecord {
            id: id.into(),
            began,
            finished,
            bytes,
            series: vec![bytes / 8; 10],
            retransmissions: 3,
            ..TransferRecord::default()
        };
        RunRecord {
            window: (1_000 * MS, 9_000 * MS),
            step_ns: 1_000 * MS,
            probes: vec![
                ProbeRecord { id: "ping".into(), there: there.collect(), answers, ..ProbeRecord::default() },
                ProbeRecord {
                    id: "call".into(),
                    unit: "one way".into(),
                    answers: (0..400).map(|n| (1_000 * MS + n * 20 * MS, Some(250 * MS))).collect(),
                    ..ProbeRecord::default()
                },
                ProbeRecord {
                    id: "dead".into(),
                    answers: vec![(2_000 * MS, None); 4],
                    ..ProbeRecord::default()
                },
                ProbeRecord {
                    id: "flood".into(),
                    received: vec![1000; 10],
                    packets: vec![0, 10, 10, 10, 10, 10, 10, 10, 10, 99],
                    ..ProbeRecord::default()
                },
            ],
            transfers: vec![
                transfer("upload-1", 500 * MS, Some(8_500 * MS), 3_000_000),
                transfer("upload-2", 700 * MS, Some(9_500 * MS), 1_000_000),
                transfer("download", 0, None, 4_000_000),
                transfer("dead", 0, None, 0),
            ],
            queues: vec![LinkSeries {
                link: "dsl".into(),
                up: true,
                sent: vec![50_000; 10],
                capacity: vec![100_000; 10],
                backlog: vec![0, 1000, 20_000, 0, 0, 0, 0, 0, 0, 99_000],
                dropped: vec![1; 10],
                ..LinkSeries::default()
            }],
            classes: vec![ClassSeries {
                id: "gateway:eth0.5 1:10".into(),
                sent: vec![125; 10],
                packets: vec![2; 10],
                backlog: vec![7; 10],
                qlen: vec![3; 10],
                dropped: vec![0, 0, 4, 0, 0, 0, 0, 0, 0, 1],
                ..ClassSeries::default()
            }],
            ..RunRecord::default()
        }
    }

    #[test]
    fn figures_by_name() {
        let run = run();
        let table = [
            ("ping.mean", 0.020_555_555, "s"),
            ("ping.median", 0.021, "s"),
            ("ping.p99.9", 0.021, "s"),
            ("ping.min", 0.020, "s"),
            ("ping.mdev", 0.000_496_903, "s"),
            ("ping.loss", 0.1, ""),
            ("ping.loss-low", 0.051_547_615, ""),
            ("ping.loss-high", 0.185_106_888, ""),
            ("ping.lost", 8.0, ""),
            ("ping.sent", 80.0, ""),
            ("ping.count", 72.0, ""),
            ("ping.there-mean", 0.005, "s"),
            ("ping.back-mean", 0.015_555_555, "s"),
            ("ping.there-loss", 0.0, ""),
            ("ping.back-loss", 0.1, ""),
            ("call.qoo-call", 50.0, ""),
            ("call.qoo-game", 0.0, ""),
            ("dead.loss", 1.0, ""),
            ("dead.failed", 4.0, ""),
            ("dead.rate", 0.0, "bit/s"),
            ("dead.share", 0.0, ""),
            ("flood.rate", 8000.0, "bit/s"),
            ("flood.packet-rate", 10.0, ""),
            ("upload.rate", 4e6, "bit/s"),
            ("upload.share", 0.5, ""),
            ("upload.fairness", 0.8, ""),
            ("upload.time", 9.0, "s"),
            ("upload.retransmissions", 6.0, ""),
            ("upload-2.bytes", 1e6, "bytes"),
            ("upload-1.time", 8.0, "s"),
            ("link dsl up.utilisation", 0.5, ""),
            ("link dsl up.peak", 20_000.0, "bytes"),
            ("link dsl up.delay", 0.026_25, "s"),
            ("link dsl up.delay-max", 0.2, "s"),
            ("link dsl up.drops", 8.0, ""),
            ("class gateway:eth0.5 1:10.rate", 1000.0, "bit/s"),
            ("class gateway:eth0.5 1:10.packets", 16.0, ""),
            ("class gateway:eth0.5 1:10.drops", 4.0, ""),
            ("class gateway:eth0.5 1:10.loss", 0.2, ""),
            ("class gateway:eth0.5 1:10.queue", 3.0, ""),
        ];
        for (name, number, unit) in table {
            let value = figure(&run, name, run.window).unwrap_or_else(|why| panic!("{name}: {why:?}"));
            assert!((value.number - number).abs() < 1e-7 && value.unit == unit, "{name}: {value:?}");
        }
    }

    #[test]
    fn another_window() {
        let run = run();
        let of = |name: &str, window| figure(&run, name, window).map(|value| value.number);
        assert_eq!(of("upload.rate", (2_500 * MS, 4_500 * MS)), Ok(4e6), "half steps count half");
        assert_eq!(of("link dsl up.peak", (9_000 * MS, 10_000 * MS)), Ok(99_000.0));
        assert_eq!(
            of("link dsl up.drops", (20_000 * MS, 30_000 * MS)),
            Ok(0.0),
            "after the end there is nothing"
        );
        assert_eq!(of("ping.sent", (0, 1_000 * MS)), Ok(10.0));
    }

    #[test]
    fn what_there_is_not() {
        let run = run();
        let why = |name: &str| figure(&run, name, run.window).expect_err(name);
        for name in ["dead.mean", "dead.p95", "dead.jitter", "dead.mdev"] {
            assert_eq!(why(name), NO_ANSWER, "{name}");
        }
        let lonely = NoSuchFigure::Nothing { why: "it joins no other transfer of its group" };
        assert_eq!((why("upload-1.convergence"), why("download.convergence")), (lonely.clone(), lonely));
        let unfair = NoSuchFigure::Nothing { why: "its rate does not stay near the equal share" };
        assert_eq!((why("upload.convergence"), why("upload-2.convergence")), (unfair.clone(), unfair));
        assert_eq!(why("download.time"), NoSuchFigure::Nothing { why: "it did not come to its end" });
        assert_eq!(why("ping.rate"), NOT_RECORDED);
        let few = figure(&run, "call.qoo-call", (1_000 * MS, 2_000 * MS));
        assert_eq!(few, Err(NoSuchFigure::Nothing { why: "fewer than 100 packets were sent" }));
        assert_eq!(why("dead.there-loss"), NOT_RECORDED);
        for name in [
            "",
            "ping",
            "pnig.mean",
            "ping.average",
            "ping.qoo-call",
            "call.qoo-chess",
            "ping.p101",
            "ping.p",
            "ping.p-1",
            "link dsl.peak",
            "a.b",
        ] {
            let NoSuchFigure::Unknown { known } = why(name) else { panic!("{name} is known") };
            assert!(
                known.contains(&"ping.p95".to_string()) && known.contains(&"upload.rate".into()),
                "{known:?}"
            );
        }
    }

    #[test]
    fn every_reported_name_is_known() {
        let run = run();
        for name in figures(&run) {
            let found = figure(&run, &name, run.window);
            assert!(!matches!(found, Err(NoSuchFigure::Unknown { .. })), "{name}");
        }
    }
}
