//! Reading an experiment from JSON: what is wrong is told with its place in the document.

use super::write::FORM;
use crate::json::{At, Read, ReadError, document};
use crate::trial::read_class;
use tidegate_measure::experiment::{
    Arrivals, Cable, Comparison, Event, Experiment, Lateness, LinkSeries, Load, Node, Policy, Probe, Run, Transfer,
};

const ORIGIN: &str = "a result is written by `tidegate sim FILE -o RESULT.json`";

/// Reads what [`to_json`](super::to_json) wrote. Members it does not know are passed over.
///
/// # Errors
///
/// The text is no JSON, of another form, or a member is missing, of another type or out of its range; the error names the place.
pub fn from_json(text: &str) -> Result<Experiment, ReadError> {
    document(text, FORM, ORIGIN, experiment)
}

fn experiment(at: &At<'_>) -> Read<Experiment> {
    Ok(Experiment {
        version: at.member("version", At::string)?,
        again: at.member("again", At::string)?,
        execution: at.member("execution", At::string)?,
        scenario: at.member("scenario", At::string)?,
        title: at.member("title", At::string)?,
        about: at.member("about", At::string)?,
        source: at.member("source", |source| source.maybe(At::string))?,
        began_ns: at.since("began_ns", |at| at.maybe(At::u64))?,
        seed: at.member("seed", At::u64)?,
        nodes: at.member("nodes", |list| list.list(node))?,
        links: at.member("links", |list| list.list(cable))?,
        policies: at.member("policies", |list| list.list(policy))?,
        loads: at.member("loads", |list| list.list(load))?,
        runs: at.member("runs", |list| list.list(run))?,
        comparisons: at.member("comparisons", |list| list.list(comparison))?,
        notes: at.member("notes", |list| list.list(At::string))?,
    })
}

fn node(at: &At<'_>) -> Read<Node> {
    Ok(Node {
        name: at.member("name", At::string)?,
        kind: at.member("kind", At::string)?,
        devices: at.member("devices", |list| list.list(At::string))?,
    })
}

fn cable(at: &At<'_>) -> Read<Cable> {
    Ok(Cable {
        name: at.member("name", At::string)?,
        from: at.member("from", At::string)?,
        to: at.member("to", At::string)?,
        there: at.member("there", At::string)?,
        back: at.member("back", At::string)?,
        there_bits: at.member("there_bits", |bits| bits.maybe(At::u64))?,
        back_bits: at.member("back_bits", |bits| bits.maybe(At::u64))?,
    })
}

fn policy(at: &At<'_>) -> Read<Policy> {
    let commands =
        |at: &At<'_>| Ok((at.member("machine", At::string)?, at.member("lines", |list| list.list(At::string))?));
    Ok(Policy {
        name: at.member("name", At::string)?,
        title: at.member("title", At::string)?,
        commands: at.member("commands", |list| list.list(commands))?,
    })
}

fn load(at: &At<'_>) -> Read<Load> {
    Ok(Load {
        name: at.member("name", At::string)?,
        title: at.member("title", At::string)?,
        test: at.member("test", |test| test.maybe(At::string))?,
    })
}

fn run(at: &At<'_>) -> Read<Run> {
    let step_ns = at.member("step_ns", At::u64)?;
    if step_ns == 0 {
        return Err(at.at("step_ns").wrong("a step of no length"));
    }
    Ok(Run {
        policy: at.member("policy", At::string)?,
        load: at.member("load", At::string)?,
        repeat: at.member("repeat", At::u32)?,
        seed: at.member("seed", At::u64)?,
        window: at.member("window", |pair| pair.pair(At::u64))?,
        step_ns,
        cut: at.member("cut", At::bool)?,
        work: at.member("work", |pair| pair.pair(At::u64))?,
        lateness: at.at("lateness").maybe(lateness)?,
        probes: at.member("probes", |list| list.list(probe))?,
        transfers: at.member("transfers", |list| list.list(transfer))?,
        classes: at.member("classes", |list| list.list(read_class))?,
        queues: at.member("queues", |list| list.list(queue))?,
        events: at.member("events", |list| list.list(event))?,
    })
}

fn lateness(at: &At<'_>) -> Read<Lateness> {
    Ok(Lateness {
        packets: at.member("packets", At::u64)?,
        median: at.member("median", At::u64)?,
        p99: at.member("p99", At::u64)?,
        most: at.member("most", At::u64)?,
    })
}

fn probe(at: &At<'_>) -> Read<Probe> {
    Ok(Probe {
        id: at.member("id", At::string)?,
        title: at.member("title", At::string)?,
        unit: at.member("unit", At::string)?,
        from: at.member("from", At::string)?,
        to: at.member("to", At::string)?,
        dscp: at.member("dscp", At::u8)?,
        answers: at.member("answers", |list| list.list(|pair| pair.pair(|took| took.maybe(At::u64))))?,
        there: at.member("there", |list| list.list(|took| took.maybe(At::u64)))?,
        received: at.member("received", |list| list.list(At::u64))?,
        packets: at.member("packets", |list| list.list(At::u32))?,
        arrivals: at.since("arrivals", |at| at.maybe(arrivals))?,
    })
}

fn arrivals(at: &At<'_>) -> Read<Arrivals> {
    Ok(Arrivals {
        reordered: at.member("reordered", At::u64)?,
        extent: at.member("extent", At::u32)?,
        copies: at.member("copies", At::u64)?,
        ds_fields: at.member("ds_fields", |list| list.list(|pair| pair.pair(At::u64)))?,
    })
}

fn transfer(at: &At<'_>) -> Read<Transfer> {
    Ok(Transfer {
        id: at.member("id", At::string)?,
        title: at.member("title", At::string)?,
        from: at.member("from", At::string)?,
        to: at.member("to", At::string)?,
        control: at.member("control", At::string)?,
        dscp: at.member("dscp", At::u8)?,
        began: at.member("began", At::u64)?,
        finished: at.member("finished", |at| at.maybe(At::u64))?,
        bytes: at.member("bytes", At::u64)?,
        retransmissions: at.member("retransmissions", At::u64)?,
        lost: at.member("lost", At::u64)?,
        series: at.member("series", |list| list.list(At::u64))?,
        cwnd: at.member("cwnd", |list| list.list(At::u32))?,
        srtt_us: at.member("srtt_us", |list| list.list(At::u64))?,
        delivery_bits: at.since("delivery_bits", |list| list.list(At::u64))?,
    })
}

fn queue(at: &At<'_>) -> Read<LinkSeries> {
    Ok(LinkSeries {
        link: at.member("link", At::string)?,
        up: at.member("up", At::bool)?,
        title: at.member("title", At::string)?,
        limit: at.member("limit", |limit| limit.maybe(At::u64))?,
        sent: at.member("sent", |list| list.list(At::u64))?,
        capacity: at.member("capacity", |list| list.list(At::u64))?,
        backlog: at.member("backlog", |list| list.list(At::u64))?,
        dropped: at.member("dropped", |list| list.list(At::u32))?,
    })
}

fn event(at: &At<'_>) -> Read<Event> {
    Ok(Event {
        at: at.member("at", At::u64)?,
        on: at.member("on", At::string)?,
        what: at.member("what", At::string)?,
        output: at.member("output", At::string)?,
    })
}

fn comparison(at: &At<'_>) -> Read<Comparison> {
    let within = at.member("within", |pair| pair.two(|bound| bound.maybe(At::f64)))?;
    Ok(Comparison {
        id: at.member("id", At::string)?,
        what: at.member("what", At::string)?,
        figure: at.member("figure", At::string)?,
        unit: at.member("unit", At::string)?,
        published: at.member("published", |number| number.maybe(At::f64))?,
        found: at.member("found", |number| number.maybe(At::f64))?,
        spread: at.member("spread", |pair| pair.maybe(|pair| pair.two(At::f64)))?,
        within: (within.0.unwrap_or(f64::NEG_INFINITY), within.1.unwrap_or(f64::INFINITY)),
        held: at.member("held", At::bool)?,
        gated: at.member("gated", At::bool)?,
        why: at.member("why", |why| why.maybe(At::string))?,
    })
}
