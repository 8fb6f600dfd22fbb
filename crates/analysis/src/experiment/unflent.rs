//! A file of flent's (`.flent.gz`, version 4) as an experiment of one run, so that old baselines can be
//! compared with new results.
//!
//! Pings become probes (`Ping (ms) UDP EF`: `udp-ef`), from each answer where the file has them, else from
//! the values per step; what was lost shows in the numbers of the answers. TCP series become transfers
//! (`upload-1`), in the order of their names.

use crate::json::{At, DocumentError, Read, plain_document};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read as _;
use tidegate_measure::experiment::{
    Experiment, LinkRecord, LoadRecord, NodeRecord, PolicyRecord, ProbeRecord, RunRecord, TransferRecord,
};

const ORIGIN: &str = "files of flent's (.flent.gz) are read in version 4";
/// The policy's name for a run of flent's, which has none.
const POLICY: &str = "measured";
/// Bytes of the longest file, unpacked: some fifty times an ordinary one. Gzip makes a thousand bytes of one.
const MAX_UNPACKED: u64 = 64 << 20;
/// The most losses that are assumed between two replies, and in a whole series.
const MOST_LOST: u64 = 100_000;
const MOST_LOST_OF_ALL: u64 = 1_000_000;

/// Reads a file of flent's.
///
/// # Errors
///
/// It is none.
pub fn from_flent(packed: &[u8]) -> Result<Experiment, DocumentError> {
    plain_document(&unpacked(packed, MAX_UNPACKED)?, ORIGIN, experiment)
}

/// The text of a packed file that unpacks to `most` bytes at most.
fn unpacked(packed: &[u8], most: u64) -> Read<String> {
    let wrong = |what: String| DocumentError { place: "the packed file".into(), what, origin: ORIGIN };
    let mut text = String::new();
    let read = GzDecoder::new(packed).take(most + 1).read_to_string(&mut text);
    if text.len() as u64 > most || read.as_ref().is_ok_and(|length| *length as u64 > most) {
        let what = format!(
            "unpacks to more than {} MiB, which no result of flent's has; if it is one, `zcat FILE | wc -c` \
            shows how long it is",
            most >> 20
        );
        return Err(wrong(what));
    }
    read.map_err(|error| wrong(error.to_string()))?;
    Ok(text)
}

fn experiment(at: &At<'_>) -> Read<Experiment> {
    let version = at.member("version", At::u64)?;
    if version != 4 {
        return Err(at.at("version").wrong(format!("version {version}")));
    }
    let about = at.at("metadata");
    let word = |name: &str| about.since(name, |at| at.maybe(At::string)).map(Option::unwrap_or_default);
    let (test, title) = (about.member("NAME", At::string)?, word("TITLE")?);
    let (here, there) = (word("LOCAL_HOST")?, word("HOST")?);
    let run = run(at, &test, (&here, &there))?;
    let node =
        |name: &String| NodeRecord { name: name.clone(), kind: "host".to_owned(), devices: Vec::new() };
    Ok(Experiment {
        version: word("FLENT_VERSION")?,
        execution: "flent".to_owned(),
        scenario: test.clone(),
        title: if title.is_empty() { test.clone() } else { format!("{test}: {title}") },
        nodes: [&here, &there].map(node).into(),
        links: vec![LinkRecord { name: "path".to_owned(), from: here, to: there, ..LinkRecord::default() }],
        policies: vec![PolicyRecord { name: POLICY.to_owned(), title: title.clone(), commands: Vec::new() }],
        loads: vec![LoadRecord { name: test.clone(), title: test.clone(), test: Some(test) }],
        runs: vec![run],
        ..Experiment::default()
    })
}

fn run(at: &At<'_>, test: &str, (here, there): (&str, &str)) -> Read<RunRecord> {
    let seconds = at.member("x_values", |list| list.list(At::f64))?;
    let step_ns = at.at("metadata").since("STEP_SIZE", |at| at.maybe(At::f64))?.map_or(0, ns);
    let step_ns = if step_ns == 0 { 200_000_000 } else { step_ns };
    let mut run = RunRecord {
        policy: POLICY.to_owned(),
        load: test.to_owned(),
        window: (0, seconds.last().map_or(0, |last| ns(*last) + step_ns)),
        step_ns,
        ..RunRecord::default()
    };
    let results = at.at("results");
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for name in results.object()?.keys() {
        let values = || results.member(name, |list| list.list(|value| value.maybe(At::f64)));
        if let Some((id, title, unit)) = probe_of(name) {
            let each: Answers = values()?
                .iter()
                .zip(&seconds)
                .filter_map(|(value, x)| Some((ns(*x), Some(ns((*value)? / 1e3)))))
                .collect();
            let answers = answers(&at.at("raw_values"), name)?.unwrap_or(each);
            let ends = [here.to_owned(), there.to_owned()];
            let [from, to] = ends;
            run.probes.push(ProbeRecord {
                id,
                title,
                unit: unit.to_owned(),
                from,
                to,
                answers,
                ..ProbeRecord::default()
            });
        } else if let Some(group) = group_of(name) {
            let number = counts.entry(group).or_default();
            *number += 1;
            // A rate in Mbit/s that held for a step.
            let bytes = |value: &Option<f64>| (value.unwrap_or(0.0).max(0.0) * step_ns as f64 / 8e3) as u64;
            let series: Vec<u64> = values()?.iter().map(bytes).collect();
            let (from, to) = if group == "upload" { (here, there) } else { (there, here) };
            run.transfers.push(TransferRecord {
                id: format!("{group}-{number}"),
                title: name.clone(),
                from: from.to_owned(),
                to: to.to_owned(),
                bytes: series.iter().sum(),
                series,
                ..TransferRecord::default()
            });
        }
    }
    Ok(run)
}

/// The probe of a series: id, title, unit.
fn probe_of(name: &str) -> Option<(String, String, &'static str)> {
    let (title, unit) = match (name.strip_prefix("Ping (ms) "), name.strip_suffix(" OWD")) {
        (Some("avg"), _) => return None,
        (Some(title), _) => (title, "round trip"),
        (_, Some(title)) => (title, "one way"),
        _ => return None,
    };
    Some((title.to_lowercase().replace([' ', ':'], "-"), title.to_owned(), unit))
}

/// The group of transfers that a series belongs to; sums and means are none of them.
fn group_of(name: &str) -> Option<&'static str> {
    let worked_out = [" avg", " sum", " fairness"].iter().any(|end| name.ends_with(end));
    match name {
        _ if worked_out => None,
        _ if name.starts_with("TCP upload") => Some("upload"),
        _ if name.starts_with("TCP download") => Some("download"),
        _ => None,
    }
}

/// When each request was sent, and its round-trip time.
type Answers = Vec<(u64, Option<u64>)>;

/// Each reply of a series, if the file has them: when it was requested, counted from the first, and the
/// round-trip time.
fn answers(raw: &At<'_>, name: &str) -> Read<Option<Answers>> {
    let Ok(all) = raw.object() else { return Ok(None) };
    if all.get(name).and_then(Value::as_array).is_none_or(Vec::is_empty) {
        return Ok(None);
    }
    let sample = |at: &At<'_>| {
        let took = at.member("val", At::f64)? / 1e3;
        Ok((at.member("t", At::f64)? - took, took, at.since("seq", |at| at.maybe(At::u64))?))
    };
    let samples = raw.member(name, |list| list.list(sample))?;
    let first = samples.iter().map(|(sent, ..)| *sent).fold(f64::INFINITY, f64::min);
    let mut answers = Vec::new();
    let mut next: Option<u64> = None;
    let mut lost = 0;
    for (sent, took, number) in samples {
        let at = ns(sent - first);
        let missing = number.zip(next).map_or(0, |(number, next)| number.saturating_sub(next).min(MOST_LOST));
        lost += missing;
        if lost > MOST_LOST_OF_ALL {
            return Err(raw
                .at(name)
                .wrong(format!("more than {MOST_LOST_OF_ALL} answers are missing by their numbers")));
        }
        answers.extend((0..missing).map(|_| (at, None)));
        answers.push((at, Some(ns(took))));
        next = number.map(|number| number.saturating_add(1));
    }
    Ok(Some(answers))
}

fn ns(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1e9).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;

    #[test]
    fn a_small_file_that_becomes_a_large_one_is_refused() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&[b' '; 5000]).expect("packed");
        let packed = packed.finish().expect("packed");
        assert_eq!(unpacked(&packed, 5000).map(|text| text.len()), Ok(5000));
        let error = unpacked(&packed, 4999).expect_err("too long");
        assert!(error.what.starts_with("unpacks to more than"), "{error}");
        assert!(unpacked(&packed[..packed.len() - 9], 5000).is_err(), "cut short");
    }
}
