//! R30: what changes for a qdisc between two releases of Linux, of what is known to differ.

use super::making::finding;
use crate::finding::{Finding, Level, Rule};
use crate::reading::PolicyModel;
use crate::words;
use std::collections::BTreeSet;
use tidegate_gateway::Gateway;
use tidegate_packet::{Handle, LinuxChange, LinuxChangeRow, LinuxVersion, Time};
use tidegate_policy::dump::QdiscDump;
use tidegate_policy::{NetemLoss, NetemParams, NetemProbability, QdiscParams};

/// The longest interval at which CoDel's law may ask for two drops at one time, µs: the law divides it by the
/// root of a count of 32 bits, and the kernel counts 1024 ns as one.
const LONGEST_TICKED_US: u64 = 65_536 * 1024 / 1000;
/// Packets that CoDel drops for one that leaves, at most, where that is bounded.
const BOUND: u32 = 256;
/// The least quantum of fq, where there is one.
const FQ_QUANTUM: u32 = 256;

/// Kinds that came after the first recorded release, and with which (public histories).
const CAME_LATER: [(&str, (u8, u8)); 1] = [("dualpi2", (6, 17))];

/// A note for each command that makes such a qdisc.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let from = reading.kernel().linux;
    let mut found = absent(reading, from);
    if let Some(until) = reading.until {
        found.extend(between(reading, from, until));
    }
    found
}

/// Qdiscs that a release does not have; each kind once.
fn absent(reading: &PolicyModel, linux: LinuxVersion) -> Vec<Finding> {
    let noted = |(kind, came): (&'static str, (u8, u8))| {
        let makers = reading.qdiscs.iter().filter(|qdisc| qdisc.kind.name() == kind);
        let mut steps = makers.filter_map(|qdisc| reading.step_of(reading.maker_of_qdisc(qdisc)?));
        Some(finding(
            Rule::Release,
            Level::Note,
            steps.next()?.place.clone(),
            format!("Linux {linux} has no {kind}"),
            format!("it refuses the command: {kind} came with Linux {}.{}", came.0, came.1),
            format!("the {kind} of Linux {LAST}"),
        ))
    };
    missing(linux).filter_map(noted).collect()
}

/// The kinds that a release does not have, with the release that they came with.
fn missing(linux: LinuxVersion) -> impl Iterator<Item = (&'static str, (u8, u8))> {
    CAME_LATER.into_iter().filter(move |(_, came)| linux.numbers() < *came)
}

/// What changes between two releases.
fn between(reading: &PolicyModel, from: LinuxVersion, until: LinuxVersion) -> Vec<Finding> {
    // When it changed between the recorded releases is not known.
    let is_known = !from.is_between() && !until.is_between();
    let (differs, since) = match is_known {
        true => ("differs", String::new()),
        false => ("may differ", format!("in which release between Linux {FIRST} and {LAST} is not known; ")),
    };
    let noted = |(qdiscs, rows): (Vec<&QdiscDump>, Vec<LinuxChangeRow>)| {
        let step = qdiscs.iter().find_map(|qdisc| reading.step_of(reading.maker_of_qdisc(qdisc)?));
        let kind = qdiscs.first().map_or("", |qdisc| qdisc.kind.name());
        let told: Vec<String> = rows.iter().map(told).collect();
        let count = match rows.len() {
            1 => "in one way".to_owned(),
            more => format!("in {more} ways"),
        };
        let all = match qdiscs.len() {
            0 | 1 => String::new(),
            _ => format!(". So it is of {}", named(&qdiscs)),
        };
        finding(
            Rule::Release,
            Level::Note,
            step.and_then(|step| step.place.clone()),
            format!("{kind} {differs} between Linux {from} and {until} {count}"),
            since.clone() + &told.join(". ") + &all,
            format!("{} of {} known differences", rows.len(), LinuxChange::TABLE.len()),
        )
    };
    alike(changes(from, &reading.qdiscs)).into_iter().map(noted).collect()
}

/// What changed, in a sentence.
fn told(row: &LinuxChangeRow) -> String {
    format!("{FIRST}: {}; {LAST}: {}", row.before, row.after)
}

/// Qdiscs for which the same changes, in the order of the first of each.
fn alike<'q>(
    changes: impl Iterator<Item = (&'q QdiscDump, Vec<LinuxChangeRow>)>,
) -> Vec<(Vec<&'q QdiscDump>, Vec<LinuxChangeRow>)> {
    let mut groups: Vec<(Vec<&QdiscDump>, Vec<LinuxChangeRow>)> = Vec::new();
    for (qdisc, rows) in changes {
        let is_alike = |(others, theirs): &&mut (Vec<&QdiscDump>, Vec<LinuxChangeRow>)| {
            *theirs == rows && others.iter().all(|other| other.kind == qdisc.kind)
        };
        match groups.iter_mut().find(is_alike) {
            Some((others, _)) => others.push(qdisc),
            None => groups.push((vec![qdisc], rows)),
        }
    }
    groups
}

/// `10: of eth0, 20: of eth0 and 30: of eth0`, a few of them.
fn named(qdiscs: &[&QdiscDump]) -> String {
    let name = |qdisc: &&QdiscDump| format!("{} of {}", qdisc.handle, qdisc.dev);
    words::named(&qdiscs.iter().map(name).collect::<Vec<_>>())
}

const FIRST: LinuxVersion = LinuxVersion::RECORDED[0];
const LAST: LinuxVersion = LinuxVersion::RECORDED[1];

/// That what these qdiscs do on this release is not known, where it lies between those whose behaviour is
/// known and these differ.
pub fn not_known(linux: LinuxVersion, qdiscs: &[QdiscDump]) -> Option<String> {
    let is_there = |kind: &str| qdiscs.iter().any(|qdisc| qdisc.kind.name() == kind);
    let absent = missing(linux).filter(|(kind, _)| is_there(kind)).map(|(kind, (major, minor))| {
        format!(
            "{kind}: Linux {linux} has none (it came with {major}.{minor}); shown is the {kind} of Linux {LAST}"
        )
    });
    let sentences: Vec<String> = absent.chain(not_settled(linux, qdiscs)).collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

/// As [`not_known`], of the qdiscs of all devices.
pub fn not_known_of(gateway: &mut Gateway, now: Time) -> Option<String> {
    let devices: Vec<_> = gateway.devices().collect();
    let qdiscs: Vec<_> = devices.into_iter().flat_map(|device| gateway.qdiscs(now, device)).collect();
    not_known(gateway.kernel().linux, &qdiscs)
}

fn not_settled(linux: LinuxVersion, qdiscs: &[QdiscDump]) -> Option<String> {
    if !linux.is_between() {
        return None;
    }
    let kinds: BTreeSet<&str> = changes(linux, qdiscs).map(|(qdisc, _)| qdisc.kind.name()).collect();
    // The first release has nothing to compare with.
    let is_later = |kind: &&str| CAME_LATER.iter().any(|(later, _)| later == kind);
    let (later, kinds): (Vec<&str>, Vec<&str>) = kinds.into_iter().partition(is_later);
    let later = later.into_iter().map(|kind| {
        format!("{kind}: it is recorded of Linux {LAST} alone; what {linux} does otherwise is not known")
    });
    let kinds = kinds.join(", ");
    let others = (!kinds.is_empty()).then(|| {
        format!(
            "{kinds}: of what changed between Linux {FIRST} and {LAST} it is not known whether {linux} has it; \
             shown is what {FIRST} does (`tidegate check --linux 6.1..7.2` lists what changed)"
        )
    });
    let sentences: Vec<String> = others.into_iter().chain(later).collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

/// The qdiscs for which something changed between the recorded releases, with what did; of those that there
/// are in release `from`.
fn changes(
    from: LinuxVersion,
    qdiscs: &[QdiscDump],
) -> impl Iterator<Item = (&QdiscDump, Vec<LinuxChangeRow>)> {
    let is_there = move |qdisc: &&QdiscDump| missing(from).all(|(kind, _)| kind != qdisc.kind.name());
    let rows = move |qdisc: &QdiscDump| -> Vec<LinuxChangeRow> {
        LinuxChange::TABLE
            .into_iter()
            .filter(|row| row.kinds.is_empty() || row.kinds.contains(&qdisc.kind.name()))
            .filter(|row| concerns(row.change, qdisc))
            .collect()
    };
    qdiscs.iter().filter(is_there).map(move |qdisc| (qdisc, rows(qdisc))).filter(|(_, rows)| !rows.is_empty())
}

/// Can the change show in a qdisc with these parameters?
fn concerns(change: LinuxChange, qdisc: &QdiscDump) -> bool {
    match (change, &qdisc.params) {
        // Nothing waits while a policy is put up, words are no packets, rules of netfilter are no qdiscs, and
        // what one release refuses is found by carrying it out on both.
        (
            LinuxChange::BacklogKept
            | LinuxChange::ClassInUse
            | LinuxChange::FqLatency
            | LinuxChange::HookChildren
            | LinuxChange::LaterFragments
            | LinuxChange::NetemCopies
            | LinuxChange::NetemMarks
            | LinuxChange::PfifoFastPurge
            | LinuxChange::WarningsReach,
            _,
        ) => false,
        (LinuxChange::CakeAutorate, QdiscParams::Cake(params)) => params.autorate == Some(true),
        (LinuxChange::CodelBounded, QdiscParams::Codel(params)) => params.limit.is_none_or(|n| n > BOUND),
        (LinuxChange::CodelBounded, QdiscParams::FqCodel(params)) => params.limit.is_none_or(|n| n > BOUND),
        (LinuxChange::CodelTick, QdiscParams::Codel(params)) => is_ticked(params.interval_us),
        (LinuxChange::CodelTick, QdiscParams::FqCodel(params)) => is_ticked(params.interval_us),
        (LinuxChange::DropsListed, _) => qdisc.parent == Handle::ROOT,
        (LinuxChange::FqFastPath, QdiscParams::Fq(params)) => params.max_rate.is_none_or(|n| n == u32::MAX),
        (LinuxChange::FqQuantum, QdiscParams::Fq(params)) => params.quantum.is_some_and(|n| n < FQ_QUANTUM),
        (LinuxChange::NetemGenerator, QdiscParams::Netem(params)) => is_random(params),
        _ => true,
    }
}

fn is_ticked(interval_us: Option<u32>) -> bool {
    interval_us.is_some_and(|interval| u64::from(interval) < LONGEST_TICKED_US)
}

/// Does anything of it depend on chance?
fn is_random(params: &NetemParams) -> bool {
    let certain = NetemProbability::default();
    let lossless = matches!(&params.loss, NetemLoss::Random(loss) if *loss == certain);
    params.jitter_ns != 0
        || !lossless
        || params.duplicate != certain
        || params.reorder.is_some()
        || params.corrupt.is_some()
        || params.slot.is_some()
}
