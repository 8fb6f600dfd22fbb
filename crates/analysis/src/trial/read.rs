//! Reading: what is wrong is told with its place in the document.

use super::write::FORM;
use crate::json::{At, Read, ReadError, document};
use tidegate_measure::trial::{BufferSeries, ClassSeries, Flow, LinkFacts, Probe, Run, TreeNode, Trial};

const ORIGIN: &str = "a trial is written by `tidegate try SCRIPT --json`";

/// Reads what [`to_json`](super::to_json) wrote. Members it does not know are passed over.
///
/// # Errors
///
/// The text is no JSON, of another form, or a member is missing, of another type or out of its range; the error names the place.
pub fn from_json(text: &str) -> Result<Trial, ReadError> {
    document(text, ("tidegate_trial", FORM), ORIGIN, trial)
}

fn trial(at: &At<'_>) -> Read<Trial> {
    Ok(Trial {
        version: at.member("version", At::string)?,
        again: at.member("again", At::string)?,
        script: at.member("script", At::string)?,
        device: at.member("device", At::string)?,
        commands: at.member("commands", At::u64)?,
        seed: at.member("seed", At::u64)?,
        link: at.member("link", link)?,
        runs: at.member("runs", |list| list.list(run))?,
        tree: at.member("tree", |list| list.list(node))?,
        verdict: at.member("verdict", |list| list.list(At::string))?,
        notes: at.member("notes", |list| list.list(At::string))?,
    })
}

fn link(at: &At<'_>) -> Read<LinkFacts> {
    Ok(LinkFacts {
        up_bits: at.member("up_bits", At::u64)?,
        down_bits: at.member("down_bits", At::u64)?,
        rtt_ns: at.member("rtt_ns", At::u64)?,
        up_buffer_bytes: at.member("up_buffer_bytes", At::u64)?,
        down_buffer_bytes: at.member("down_buffer_bytes", At::u64)?,
    })
}

fn run(at: &At<'_>) -> Read<Run> {
    let step_ns = at.member("step_ns", At::u64)?;
    if step_ns == 0 {
        return Err(at.at("step_ns").wrong("a step of no length"));
    }
    Ok(Run {
        load: at.member("load", At::string)?,
        title: at.member("title", At::string)?,
        policy: at.member("policy", At::bool)?,
        witnesses: at.since("witnesses", At::bool)?,
        window: at.member("window", |pair| pair.pair(At::u64))?,
        step_ns,
        probes: at.member("probes", |list| list.list(probe))?,
        flows: at.member("flows", |list| list.list(flow))?,
        classes: at.member("classes", |list| list.list(class))?,
        buffers: at.member("buffers", |list| list.list(buffer))?,
        direct_packets: at.since("direct_packets", At::u64)?,
    })
}

fn probe(at: &At<'_>) -> Read<Probe> {
    Ok(Probe {
        id: at.member("id", At::string)?,
        title: at.member("title", At::string)?,
        unit: at.member("unit", At::string)?,
        class: at.member("class", |class| class.maybe(At::string))?,
        answers: at.member("answers", |list| list.list(|pair| pair.pair(|took| took.maybe(At::u64))))?,
    })
}

fn flow(at: &At<'_>) -> Read<Flow> {
    Ok(Flow {
        title: at.member("title", At::string)?,
        up: at.member("up", At::bool)?,
        class: at.member("class", |class| class.maybe(At::string))?,
        bytes: at.member("bytes", At::u64)?,
        retransmissions: at.member("retransmissions", At::u64)?,
        lost: at.member("lost", At::u64)?,
        series: at.member("series", |list| list.list(At::u64))?,
    })
}

pub(crate) fn class(at: &At<'_>) -> Read<ClassSeries> {
    Ok(ClassSeries {
        id: at.member("id", At::string)?,
        title: at.member("title", At::string)?,
        leaf: at.member("leaf", At::bool)?,
        sent: at.member("sent", |list| list.list(At::u64))?,
        packets: at.since("packets", |list| list.list(At::u32))?,
        backlog: at.member("backlog", |list| list.list(At::u64))?,
        qlen: at.member("qlen", |list| list.list(At::u32))?,
        dropped: at.member("dropped", |list| list.list(At::u32))?,
        tokens_us: at.member("tokens_us", |list| list.list(At::i64))?,
        ctokens_us: at.member("ctokens_us", |list| list.list(At::i64))?,
    })
}

fn buffer(at: &At<'_>) -> Read<BufferSeries> {
    Ok(BufferSeries {
        title: at.member("title", At::string)?,
        limit: at.member("limit", At::u64)?,
        backlog: at.member("backlog", |list| list.list(At::u64))?,
        dropped: at.member("dropped", At::u64)?,
    })
}

fn node(at: &At<'_>) -> Read<TreeNode> {
    Ok(TreeNode {
        device: at.member("device", At::string)?,
        id: at.member("id", At::string)?,
        parent: at.member("parent", At::string)?,
        is_class: at.member("is_class", At::bool)?,
        kind: at.member("kind", At::string)?,
        options: at.member("options", At::string)?,
        rate_bits: at.member("rate_bits", |bits| bits.maybe(At::u64))?,
        ceil_bits: at.member("ceil_bits", |bits| bits.maybe(At::u64))?,
        prio: at.member("prio", |prio| prio.maybe(At::u32))?,
        title: at.member("title", At::string)?,
        filters: at.member("filters", |list| list.list(At::string))?,
        unreachable: at.member("unreachable", |why| why.maybe(At::string))?,
    })
}
