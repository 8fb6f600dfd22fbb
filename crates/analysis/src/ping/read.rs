//! Reading it back: what is wrong is told with its place in the document.

use super::write::FORM;
use crate::json::{At, Read, ReadError, document};
use tidegate_measure::pinged::{Asked, Fault, Pinged, Target, Way};

const ORIGIN: &str = "such a file is written by `tidegate ping -w FILE`";

/// Reads what [`to_json`](super::to_json) wrote. Members it does not know are passed over.
///
/// # Errors
/// The text is no JSON, of another form, or a member is missing, of another type or out of its range; the error names the place.
pub fn from_json(text: &str) -> Result<Pinged, ReadError> {
    document(text, FORM, ORIGIN, pinged)
}

fn pinged(at: &At<'_>) -> Read<Pinged> {
    Ok(Pinged {
        version: at.member("version", At::string)?,
        again: at.member("again", At::string)?,
        began_ns: at.member("began_ns", At::u64)?,
        partial: at.member("partial", |why| why.maybe(At::string))?,
        notes: at.member("notes", |list| list.list(At::string))?,
        targets: at.member("targets", |list| list.list(target))?,
    })
}

fn target(at: &At<'_>) -> Read<Target> {
    let port = at.member("udp_port", |port| port.maybe(u16_of))?;
    Ok(Target {
        id: at.member("id", At::string)?,
        host: at.member("host", At::string)?,
        address: at.member("address", At::string)?,
        way: port.map_or(Way::Icmp, Way::Udp),
        ds_field: at.member("ds_field", At::u8)?,
        size: at.member("size", u16_of)?,
        hop_limit: at.member("hop_limit", |hops| hops.maybe(At::u8))?,
        interval_ns: at.member("interval_ns", At::u64)?,
        asked: asked(at)?,
        duplicates: at.member("duplicates", At::u64)?,
        errors_for_answers: at.member("errors_for_answers", At::u64)?,
        passed_over: at.member("passed_over", At::u64)?,
        faults: at.member("faults", |list| list.list(fault))?,
    })
}

/// The requests: when each was sent and how long it took, and how long it waited here in a list of its own.
fn asked(at: &At<'_>) -> Read<Vec<Asked>> {
    let answers = at.member("answers", |list| list.list(|pair| pair.pair(|took| took.maybe(At::u64))))?;
    let here = at.member("here_ns", |here| here.maybe(|list| list.list(|ns| ns.maybe(At::u64))))?;
    let here = here.unwrap_or_else(|| vec![None; answers.len()]);
    if here.len() != answers.len() {
        return Err(at.at("here_ns").wrong(format!("{} values expected, as many as answers", answers.len())));
    }
    // Charts go from the first to the last.
    if !answers.is_sorted_by_key(|(sent, _)| *sent) {
        return Err(at.at("answers").wrong("requests are in the order in which they were sent"));
    }
    let asked = |((sent_ns, took_ns), here_ns): ((u64, Option<u64>), Option<u64>)| Asked { sent_ns, took_ns, here_ns };
    Ok(answers.into_iter().zip(here).map(asked).collect())
}

fn fault(at: &At<'_>) -> Read<Fault> {
    Ok(Fault {
        by: at.member("by", At::string)?,
        what: at.member("what", At::string)?,
        count: at.member("count", At::u64)?,
    })
}

fn u16_of(at: &At<'_>) -> Read<u16> {
    at.u64()?.try_into().map_err(|_| at.expected("a number of at most 65535"))
}
