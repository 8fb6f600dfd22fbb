//! What pings showed as JSON, and back. Member names are those of the structs, units included;
//! docs/measure.md describes them.

use crate::json::{DocumentError, document, required, text};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use tidegate_measure::pinged::{Fault, PingMethod, PingRequest, PingTarget, Pinged};

/// The member that gives the form, and its number: it changes when a member changes its meaning or is
/// removed.
const FORM: (&str, u64) = ("tidegate_ping", 2);
const ORIGIN: &str = "such a file is written by `tidegate ping -w FILE`";

/// The document's members.
#[derive(Serialize, Deserialize)]
struct Document {
    version: String,
    #[serde(rename = "command", alias = "again")]
    again: String,
    began_ns: u64,
    #[serde(deserialize_with = "required")]
    partial: Option<String>,
    notes: Vec<String>,
    targets: Vec<OneTarget>,
}

/// A target.
#[derive(Serialize, Deserialize)]
struct OneTarget {
    id: String,
    host: String,
    address: String,
    #[serde(deserialize_with = "required")]
    udp_port: Option<u16>,
    ds_field: u8,
    size: u16,
    #[serde(deserialize_with = "required")]
    hop_limit: Option<u8>,
    interval_ns: u64,
    duplicates: u64,
    #[serde(rename = "error_replies", alias = "errors_for_answers")]
    errors_for_answers: u64,
    passed_over: u64,
    faults: Vec<OneFault>,
    /// For people, as is the summary; neither is read back.
    #[serde(skip_deserializing)]
    caveats: Vec<String>,
    #[serde(skip_deserializing)]
    summary: Value,
    /// When each request was sent and how long its answer took.
    #[serde(rename = "replies", alias = "answers", deserialize_with = "in_order")]
    answers: Vec<(u64, Option<u64>)>,
    /// How long each waited here.
    #[serde(deserialize_with = "required")]
    here_ns: Option<Vec<Option<u64>>>,
}

/// An error that came instead of a reply.
#[derive(Serialize, Deserialize)]
struct OneFault {
    by: String,
    what: String,
    count: u64,
}

/// Charts go from the first to the last.
fn in_order<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(u64, Option<u64>)>, D::Error> {
    let answers = Vec::<(u64, Option<u64>)>::deserialize(from)?;
    match answers.is_sorted_by_key(|(sent, _)| *sent) {
        true => Ok(answers),
        false => Err(serde::de::Error::custom("requests are in the order in which they were sent")),
    }
}

/// What pings showed as JSON, ended by a newline.
pub fn to_json(pinged: &Pinged) -> String {
    let document = Document {
        version: pinged.version.clone(),
        again: pinged.again.clone(),
        began_ns: pinged.began_ns,
        partial: pinged.partial.clone(),
        notes: pinged.notes.clone(),
        targets: pinged.targets.iter().map(written).collect(),
    };
    text(FORM, &document, |_| ())
}

/// Reads what [`to_json`] wrote. Members it does not know are passed over.
///
/// # Errors
/// The text is no JSON, of another form, or a member is missing, of another type or out of its range; the
/// error names the place.
pub fn from_json(text: &str) -> Result<Pinged, DocumentError> {
    let read: Document = document(text, FORM, ORIGIN)?;
    let targets = read.targets.into_iter().enumerate().map(|(number, one)| target(number, one));
    Ok(Pinged {
        version: read.version,
        again: read.again,
        began_ns: read.began_ns,
        partial: read.partial,
        notes: read.notes,
        targets: targets.collect::<Result<_, _>>()?,
    })
}

fn written(target: &PingTarget) -> OneTarget {
    let is_here = target.requests.iter().any(|request| request.here_ns.is_some());
    let fault =
        |fault: &Fault| OneFault { by: fault.by.clone(), what: fault.what.clone(), count: fault.count };
    OneTarget {
        id: target.id.clone(),
        host: target.host.clone(),
        address: target.address.clone(),
        udp_port: match target.way {
            PingMethod::Icmp => None,
            PingMethod::Udp(port) => Some(port),
        },
        ds_field: target.ds_field,
        size: target.size,
        hop_limit: target.hop_limit,
        interval_ns: target.interval_ns,
        duplicates: target.duplicates,
        errors_for_answers: target.errors_for_answers,
        passed_over: target.passed_over,
        faults: target.faults.iter().map(fault).collect(),
        caveats: target.caveats(),
        summary: summary(target),
        answers: target.requests.iter().map(|request| (request.sent_ns, request.took_ns)).collect(),
        here_ns: is_here.then(|| target.requests.iter().map(|request| request.here_ns).collect()),
    }
}

fn target(number: usize, read: OneTarget) -> Result<PingTarget, DocumentError> {
    let here = read.here_ns.unwrap_or_else(|| vec![None; read.answers.len()]);
    if here.len() != read.answers.len() {
        let what = format!("{} values expected, as many as replies", read.answers.len());
        return Err(DocumentError { place: format!("targets[{number}].here_ns"), what, origin: ORIGIN });
    }
    let request_of = |((sent_ns, took_ns), here_ns): ((u64, Option<u64>), Option<u64>)| PingRequest {
        sent_ns,
        took_ns,
        here_ns,
    };
    let fault = |fault: OneFault| Fault { by: fault.by, what: fault.what, count: fault.count };
    Ok(PingTarget {
        id: read.id,
        host: read.host,
        address: read.address,
        way: read.udp_port.map_or(PingMethod::Icmp, PingMethod::Udp),
        ds_field: read.ds_field,
        size: read.size,
        hop_limit: read.hop_limit,
        interval_ns: read.interval_ns,
        requests: read.answers.into_iter().zip(here).map(request_of).collect(),
        duplicates: read.duplicates,
        errors_for_answers: read.errors_for_answers,
        passed_over: read.passed_over,
        faults: read.faults.into_iter().map(fault).collect(),
    })
}

/// For people; it is not read back.
fn summary(target: &PingTarget) -> Value {
    let figures = target.figures();
    let rtt = figures.rtt;
    json!({
        "sent": figures.sent,
        "lost": figures.lost,
        "loss": figures.loss,
        "loss_interval": [figures.loss_interval.0, figures.loss_interval.1],
        "min_ns": figures.min,
        "mean_ns": rtt.map(|of| of.mean),
        "p50_ns": rtt.map(|of| of.p50),
        "p95_ns": rtt.map(|of| of.p95),
        "p99_ns": rtt.map(|of| of.p99),
        "max_ns": rtt.map(|of| of.max),
        "mdev_ns": figures.mdev,
        "jitter_ns": figures.jitter,
        "here_p50_ns": figures.here.map(|here| here.0),
        "here_p95_ns": figures.here.map(|here| here.1),
    })
}
