//! Data files of ping-exp (Dan Siemon, 2009): the result of each ping.

use super::pickle::{Pickle, Value};
use crate::json::DocumentError;
use tidegate_measure::pinged::{PingRequest, PingTarget, Pinged};

const ORIGIN: &str = "such a file is written by `pingexp.py -w FILE`";
/// ping-exp's default interval.
const USUAL_INTERVAL: f64 = 0.2;
/// Bytes of data of ping's requests.
const USUAL_SIZE: u16 = 56;
const MS: f64 = 1e6;
const SECOND: f64 = 1e9;
/// The largest number of a request, and the longest answer and interval in ns, that are believed.
const MOST: f64 = 1e15;
/// The year 2286.
const MOST_SECONDS: f64 = 1e10;

/// Reads a data file of ping-exp's. It has no times of sending: they are taken to be the interval's
/// multiples, as ping-exp draws them.
///
/// # Errors
/// It is no pickle, or holds something else.
pub fn from_pingexp(bytes: &[u8]) -> Result<Pinged, DocumentError> {
    let wrong = |place: &str, what: String| DocumentError { place: place.to_owned(), what, origin: ORIGIN };
    let pickle = Pickle::read(bytes).map_err(|what| wrong("the pickle", what))?;
    let root = pickle.root();
    let experiments =
        pickle.member(root, "experiments").ok_or_else(|| wrong("experiments", "missing".to_owned()))?;
    let number = |name: &str| pickle.member(root, name).and_then(Pickle::number);
    let interval = number("ping_interval").filter(|seconds| *seconds > 0.0).unwrap_or(USUAL_INTERVAL);
    let targets =
        pickle.members(experiments).into_iter().map(|(id, one)| target(&pickle, id, one, interval * SECOND));
    let targets: Vec<PingTarget> = targets.collect();
    if targets.is_empty() {
        return Err(wrong("experiments", "there are none".to_owned()));
    }
    Ok(Pinged {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        again: "pingexp.py".to_owned(),
        began_ns: number("start-time")
            .filter(|seconds| (0.0..MOST_SECONDS).contains(seconds))
            .map_or(0, nanoseconds),
        partial: None,
        targets,
        notes: vec![
            "from a file of ping-exp's: when requests were sent is reckoned from their numbers".to_owned(),
        ],
    })
}

/// ns of seconds since 1970, of which a number with a point has more digits than it can be multiplied with.
fn nanoseconds(seconds: f64) -> u64 {
    seconds.trunc() as u64 * 1_000_000_000 + (seconds.fract() * SECOND) as u64
}

fn target(pickle: &Pickle, id: &str, one: &Value, interval_ns: f64) -> PingTarget {
    let text = |name: &str| match pickle.member(one, name) {
        Some(Value::Text(text)) => text.clone(),
        _ => String::new(),
    };
    let listed = |name: &str| pickle.member(one, name).map(|list| pickle.list(list)).unwrap_or_default();
    let believed = |number: f64| (0.0..MOST).contains(&number);
    let sent =
        |sequence: f64| Some((sequence * interval_ns) as u64).filter(|_| believed(sequence * interval_ns));
    let mut requests: Vec<PingRequest> = Vec::new();
    for response in listed("responses") {
        let figures: Vec<Option<f64>> = pickle.list(response).into_iter().map(Pickle::number).collect();
        if let [Some(sequence), _, Some(ms)] = figures[..]
            && let Some(sent_ns) = sent(sequence).filter(|_| believed(ms * MS))
        {
            requests.push(PingRequest { sent_ns, took_ns: Some((ms * MS).round() as u64), here_ns: None });
        }
    }
    let losses = listed("losses").into_iter().filter_map(Pickle::number).filter_map(sent);
    requests.extend(losses.map(|sent_ns| PingRequest { sent_ns, ..PingRequest::default() }));
    requests.sort_by_key(|request| request.sent_ns);
    let ds_field =
        pickle.member(one, "qos").and_then(Pickle::number).filter(|field| (0.0..256.0).contains(field));
    PingTarget {
        id: id.to_owned(),
        host: text("host"),
        address: text("host"),
        ds_field: ds_field.map_or(0, |field| field as u8),
        size: USUAL_SIZE,
        interval_ns: interval_ns as u64,
        requests,
        ..PingTarget::default()
    }
}
