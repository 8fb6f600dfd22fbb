//! Runs as files that flent opens (`.flent.gz`, version 4): each run is one of flent's tests, its series have
//! the names that flent's plots ask for. Rates are in Mbit/s, delays in ms.

use super::names::{file_name, joined};
use super::show::title;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::io::{self, Write as _};
use tidegate_measure::experiment::{Experiment, LoadRecord, ProbeRecord, RunRecord, TransferRecord};
use tidegate_measure::{Jitter, jain};

/// The form of the files.
const VERSION: u64 = 4;
/// Between values, in ns: what flent's own tests use.
const STEP: u64 = 200_000_000;
/// When every run began, in seconds of Unix time: virtual time has no date, and the same run gives the same
/// file.
const BEGAN: u64 = 946_684_800;
const BEGAN_TEXT: &str = "2000-01-01T00:00:00.000000Z";

/// The files of an experiment, one per run: name and content.
///
/// # Errors
///
/// There is no memory to compress into.
pub fn flent_files(experiment: &Experiment) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for run in &experiment.runs {
        let name = file_name(&format!("{}-{}-{}", run.load, run.policy, run.repeat));
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(document(experiment, run).to_string().as_bytes())?;
        files.push((format!("{name}.flent.gz"), packed.finish()?));
    }
    Ok(files)
}

/// A series: its name, its values at each step, and each value that was measured with its time.
struct Series {
    name: String,
    unit: &'static str,
    values: Vec<Option<f64>>,
    raw: Vec<Value>,
    facts: Map<String, Value>,
}

fn document(experiment: &Experiment, run: &RunRecord) -> Value {
    let load = experiment.loads.iter().find(|load| load.name == run.load);
    let sides = Sides::new(experiment, run);
    let test = test(load, run, &sides);
    let mut series = transfers(run, &sides, &test);
    series.extend(probes(run, &test));
    let mut results = Map::new();
    let mut raw = Map::new();
    let mut facts = Map::new();
    // The runs of an experiment begin after each other; a plot of one counts from its own beginning.
    let moved = experiment.began_ns.map_or(0.0, |ns| ns as f64 / 1e9 - BEGAN as f64);
    for mut one in series {
        for sample in &mut one.raw {
            sample["t"] = json!(sample["t"].as_f64().unwrap_or_default() + moved);
        }
        let mut about = one.facts;
        about.insert("UNITS".into(), one.unit.into());
        facts.insert(one.name.clone(), about.into());
        raw.insert(one.name.clone(), one.raw.into());
        results.insert(one.name, json!(one.values));
    }
    let xs: Vec<f64> = (0..steps(run)).map(|n| (n * STEP) as f64 / 1e9).collect();
    json!({
        "version": VERSION,
        "x_values": xs,
        "results": results,
        "raw_values": raw,
        "metadata": metadata(experiment, run, &sides, &test, facts),
    })
}

fn metadata(
    experiment: &Experiment,
    run: &RunRecord,
    sides: &Sides<'_>,
    test: &str,
    facts: Map<String, Value>,
) -> Value {
    let policy = experiment.policies.iter().find(|policy| policy.name == run.policy);
    let policy = policy.map_or(run.policy.as_str(), |policy| title(&policy.title, &policy.name));
    let load = experiment.loads.iter().find(|load| load.name == run.load);
    let load = load.map_or(run.load.as_str(), |load| title(&load.title, &load.name));
    let seconds = run.window.1.saturating_sub(run.window.0) as f64 / 1e9;
    let date = experiment.began_ns.map_or_else(|| BEGAN_TEXT.to_owned(), |ns| date(ns / 1_000_000_000));
    let streams =
        |up: bool| run.transfers.iter().filter(|transfer| sides.is_up(transfer) == up).count().to_string();
    json!({
        "NAME": test,
        "TITLE": format!("{policy}, {load}, seed {}", run.seed),
        "NOTE": format!("{} ({}). Again: {}", experiment.title, experiment.execution, experiment.again),
        "HOST": sides.far,
        "HOSTS": [sides.far],
        "LOCAL_HOST": sides.near,
        "LENGTH": seconds.round() as u64,
        "TOTAL_LENGTH": seconds.round() as u64,
        "STEP_SIZE": STEP as f64 / 1e9,
        "TIME": date,
        "T0": date,
        "DATA_FILENAME": Value::Null,
        "FLENT_VERSION": "2.1.1",
        "IP_VERSION": 4,
        "TEST_PARAMETERS": { "upload_streams": streams(true), "download_streams": streams(false) },
        "SERIES_META": facts,
        "TIDEGATE_VERSION": experiment.version,
    })
}

/// The nodes on the users' side of the slowest link, and those beyond it.
struct Sides<'e> {
    near: &'e str,
    far: &'e str,
    users: BTreeSet<&'e str>,
}

impl<'e> Sides<'e> {
    fn new(experiment: &'e Experiment, run: &'e RunRecord) -> Sides<'e> {
        let ends = run.probes.first().map(|probe| (probe.from.as_str(), probe.to.as_str()));
        let sent = run.transfers.first().map(|transfer| (transfer.from.as_str(), transfer.to.as_str()));
        let (near, far) = ends.or(sent).unwrap_or(("localhost", "localhost"));
        let slowest = |link: &&tidegate_measure::experiment::LinkRecord| {
            link.there_bits.into_iter().chain(link.back_bits).min()
        };
        let narrow = experiment.links.iter().filter(|link| slowest(link).is_some()).min_by_key(slowest);
        let mut users = BTreeSet::from([near]);
        loop {
            let known = users.len();
            for link in experiment
                .links
                .iter()
                .filter(|link| narrow.is_none_or(|narrow| !std::ptr::eq(narrow, *link)))
            {
                for (from, to) in joined(link) {
                    if users.contains(from) || users.contains(to) {
                        users.extend([from, to]);
                    }
                }
            }
            if users.len() == known {
                break;
            }
        }
        Sides { near, far, users }
    }

    fn is_up(&self, transfer: &TransferRecord) -> bool {
        // Where the slowest link is not between them, packets from the requester are up.
        match (self.users.contains(transfer.from.as_str()), self.users.contains(transfer.to.as_str())) {
            (true, false) => true,
            (false, true) => false,
            _ => transfer.to == self.far || transfer.from == self.near,
        }
    }
}

/// The test of flent's that a run is, or is most like.
fn test(load: Option<&LoadRecord>, run: &RunRecord, sides: &Sides<'_>) -> String {
    if let Some(test) = load.and_then(|load| load.test.as_deref()) {
        return if test == "web" { "http" } else { test }.to_owned();
    }
    let ups = run.transfers.iter().filter(|transfer| sides.is_up(transfer)).count();
    let called = |stem: &str| run.probes.iter().any(|probe| probe.id.starts_with(stem));
    let like = match (ups, run.transfers.len() - ups) {
        (0, 0) if called("voip") => "voip",
        (0, 0) if called("web") => "http",
        (0, 0) => "ping",
        (_, 0) => "tcp_nup",
        (0, _) => "tcp_ndown",
        _ => "rrul_be",
    };
    like.to_owned()
}

fn steps(run: &RunRecord) -> u64 {
    run.window.1.saturating_sub(run.window.0) / STEP + 1
}

/// Unix time of a moment of a run; measuring begins at [`BEGAN`].
fn unix(run: &RunRecord, at: u64) -> f64 {
    BEGAN as f64 + at.saturating_sub(run.window.0) as f64 / 1e9
}

/// Seconds since 1970 as flent writes dates. (Days to a date: Hinnant, "chrono-compatible low-level date
/// algorithms".)
fn date(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    // Counted from March, so that the day that comes and goes is the last one.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, year) =
        if month < 10 { (month + 3, year + era * 400) } else { (month - 9, year + era * 400 + 1) };
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.000000Z")
}

/// Classes of traffic that rrul's series are named after.
fn mark(dscp: u8, place: usize) -> &'static str {
    match dscp {
        8 => "BK",
        40 => "CS5",
        46 => "EF",
        _ => ["BE", "BK", "CS5", "EF"].get(place).copied().unwrap_or("BE"),
    }
}

fn transfers(run: &RunRecord, sides: &Sides<'_>, test: &str) -> Vec<Series> {
    let mut all = Vec::new();
    let mut totals: Vec<Vec<Option<f64>>> = Vec::new();
    // What floods is no TCP, whatever else it is.
    let (floods, flows): (Vec<&TransferRecord>, Vec<&TransferRecord>) =
        run.transfers.iter().partition(|transfer| transfer.id.starts_with("flood"));
    all.extend(floods.into_iter().map(|flood| transfer(run, flood, "UDP upload".to_owned())));
    for (up, stem) in [(true, "TCP upload"), (false, "TCP download")] {
        let own: Vec<&TransferRecord> =
            flows.iter().copied().filter(|transfer| sides.is_up(transfer) == up).collect();
        let named = |n: usize, transfer: &TransferRecord| match test {
            "rrul" => format!("{stem} {}", mark(transfer.dscp, n)),
            "rrul_be" if n == 0 => format!("{stem} BE"),
            "rrul_be" => format!("{stem} BE{}", n + 1),
            "tcp_nup" | "tcp_ndown" => format!("{stem}::{}", n + 1),
            _ if own.len() == 1 => stem.to_owned(),
            _ => format!("{stem}::{}", n + 1),
        };
        let series: Vec<Series> =
            own.iter().enumerate().map(|(n, t)| transfer(run, t, named(n, t))).collect();
        if !series.is_empty() {
            let values: Vec<&Vec<Option<f64>>> = series.iter().map(|one| &one.values).collect();
            let count = values.len() as f64;
            let sum = together(&values, |all| all.iter().sum());
            let average = together(&values, |all| all.iter().sum::<f64>() / count);
            let fairness = together(&values, jain);
            totals.push(sum.clone());
            let added = [("sum", "Mbits/s", sum), ("avg", "Mbits/s", average), ("fairness", "", fairness)];
            let added =
                added.into_iter().map(|(what, unit, values)| made(format!("{stem} {what}"), unit, values));
            all.extend(series);
            all.extend(added);
        }
    }
    if !totals.is_empty() {
        let values: Vec<&Vec<Option<f64>>> = totals.iter().collect();
        all.push(made("TCP totals".to_owned(), "Mbits/s", together(&values, |all| all.iter().sum())));
    }
    all
}

/// A series that is worked out from others.
fn made(name: String, unit: &'static str, values: Vec<Option<f64>>) -> Series {
    Series { name, unit, values, raw: Vec::new(), facts: Map::new() }
}

/// Step by step, a figure of those that have a value.
fn together(series: &[&Vec<Option<f64>>], of: impl Fn(&[f64]) -> f64) -> Vec<Option<f64>> {
    let longest = series.iter().map(|values| values.len()).max().unwrap_or(0);
    let at = |n: usize| {
        let known: Vec<f64> = series.iter().filter_map(|values| values.get(n).copied().flatten()).collect();
        (!known.is_empty()).then(|| of(&known))
    };
    (0..longest).map(at).collect()
}

fn transfer(run: &RunRecord, transfer: &TransferRecord, name: String) -> Series {
    let step = run.step_ns.max(1);
    // Payload between two moments; a step that is only partly between them counts in part.
    let carried = |from: u64, to: u64| {
        let steps = from / step..to.div_ceil(step);
        let part = |n: u64| {
            let bytes = transfer.series.get(n as usize).copied().unwrap_or(0);
            let inside = ((n + 1) * step).min(to).saturating_sub((n * step).max(from));
            bytes as f64 * inside as f64 / step as f64
        };
        steps.map(part).sum::<f64>()
    };
    let ended = transfer.series.len() as u64 * step;
    let value = |n: u64| {
        let from = run.window.0 + n * STEP;
        let to = (from + STEP).min(run.window.1.min(ended));
        let running =
            from < to && transfer.finished.is_none_or(|finished| finished > from) && transfer.began < to;
        running.then(|| carried(from, to) * 8.0 / ((to - from) as f64 / 1e9) / 1e6)
    };
    let raw = transfer.series.iter().enumerate().filter_map(|(n, bytes)| {
        let at = (n as u64 + 1) * step;
        let measured = at > run.window.0 && at <= run.window.1;
        let mut sample =
            json!({ "t": unix(run, at), "val": *bytes as f64 * 8e3 / step as f64, "dur": step as f64 / 1e9 });
        if let Some(cwnd) = transfer.cwnd.get(n) {
            sample["tcp_cwnd"] = json!(cwnd);
        }
        if let Some(srtt) = transfer.srtt_us.get(n) {
            sample["tcp_rtt"] = json!(*srtt as f64 / 1e3);
        }
        if let Some(bits) = transfer.delivery_bits.get(n) {
            sample["tcp_delivery_rate"] = json!(*bits as f64 / 1e6);
        }
        measured.then_some(sample)
    });
    let mean = transfer.rate(run.window) / 1e6;
    let facts =
        [("MEAN_VALUE", json!(mean)), ("CONG_CONTROL", json!(transfer.control)), ("ID", json!(transfer.id))];
    Series {
        name,
        unit: "Mbits/s",
        values: (0..steps(run)).map(value).collect(),
        raw: raw.collect(),
        facts: facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    }
}

fn probes(run: &RunRecord, test: &str) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    let mut pings: Vec<Vec<Option<f64>>> = Vec::new();
    for probe in &run.probes {
        if probe.id.starts_with("voip") {
            let direction = all.iter().any(|series| series.name == "VoIP::delay");
            all.extend(voip(
                run,
                probe,
                if direction { format!("VoIP {}", probe.id) } else { "VoIP".to_owned() },
            ));
            continue;
        }
        let series = answers(run, probe, probe_name(probe, test, &all));
        if ["Ping (ms) ICMP", "Ping (ms) UDP"].iter().any(|known| series.name.starts_with(known)) {
            pings.push(series.values.clone());
        }
        all.push(series);
    }
    if !pings.is_empty() {
        let values: Vec<&Vec<Option<f64>>> = pings.iter().collect();
        let mean = together(&values, |all| all.iter().sum::<f64>() / all.len() as f64);
        all.push(made("Ping (ms) avg".to_owned(), "ms", mean));
    }
    all
}

/// What flent calls a probe: the first ping is the one its plots show.
fn probe_name(probe: &ProbeRecord, test: &str, all: &[Series]) -> String {
    let taken = |name: &str| all.iter().any(|series| series.name == name);
    if probe.unit == "one way" {
        return format!("{} OWD", title(&probe.title, &probe.id));
    }
    if probe.id.starts_with("web") && !taken("HTTP latency") {
        return "HTTP latency".to_owned();
    }
    let mut wanted = vec!["Ping (ms) ICMP".to_owned()];
    if probe.id.contains("udp") {
        let class = match test {
            "rrul" => format!("Ping (ms) UDP {}", mark(probe.dscp, 0)),
            _ => "Ping (ms) UDP".to_owned(),
        };
        wanted.insert(0, class);
    }
    let own = format!("Ping (ms) {}", title(&probe.title, &probe.id));
    wanted.into_iter().find(|name| !taken(name)).unwrap_or(own)
}

/// The mean of a probe's requests in each step.
fn averaged(run: &RunRecord, probe: &ProbeRecord) -> Vec<Option<f64>> {
    let mean = |n: u64| {
        let from = run.window.0 + n * STEP;
        probe.figures((from, from + STEP)).rtt.mean().map(|ns| ns as f64 / 1e6)
    };
    (0..steps(run)).map(mean).collect()
}

fn answers(run: &RunRecord, probe: &ProbeRecord, name: String) -> Series {
    let figures = probe.figures(run.window);
    let raw = probe.within(run.window).enumerate().filter_map(|(n, (sent, took))| {
        let took = took?;
        Some(json!({ "seq": n + 1, "t": unix(run, sent + took), "val": took as f64 / 1e6 }))
    });
    let ms = |ns: Option<u64>| json!(ns.map(|ns| ns as f64 / 1e6));
    let facts = [
        ("MEAN_VALUE", ms(figures.rtt.mean())),
        ("MIN_VALUE", ms(figures.rtt.min())),
        ("MAX_VALUE", ms(figures.rtt.max())),
        ("PACKET_LOSS_RATE", json!(figures.loss())),
    ];
    Series {
        name,
        unit: "ms",
        values: averaged(run, probe),
        raw: raw.collect(),
        facts: facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    }
}

/// A call: its delay, jitter and losses.
fn voip(run: &RunRecord, probe: &ProbeRecord, stem: String) -> Vec<Series> {
    let delay = answers(run, probe, format!("{stem}::delay"));
    let at = |n: u64| (run.window.0 + n * STEP, run.window.0 + (n + 1) * STEP);
    let jitter = |n: u64| {
        let until = probe.within((run.window.0, at(n).1)).filter_map(|(_, took)| took);
        Jitter::of(until).last().map(|ns| ns / 1e6)
    };
    let loss = |n: u64| {
        let figures = probe.figures(at(n));
        (figures.rtt.count() + figures.lost > 0).then(|| figures.loss())
    };
    let jitter = made(format!("{stem}::jitter"), "ms", (0..steps(run)).map(jitter).collect());
    let loss = made(format!("{stem}::loss"), "", (0..steps(run)).map(loss).collect());
    vec![delay, jitter, loss]
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_with_and_without_a_leap_day() {
        let cases = [
            (0, "1970-01-01T00:00:00.000000Z"),
            (946_684_800, super::BEGAN_TEXT),
            (951_782_399, "2000-02-28T23:59:59.000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000Z"),
            (1_795_392_000, "2026-11-23T00:00:00.000000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000Z"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(date(seconds), expected);
        }
    }
}
