//! From runs to the document that tables, pages and comparisons are made of.

use super::begin::Going;
use super::lay::START;
use super::run::{LinkCourse, Piece, Run};
use super::scenario::{Buffer, Cable, End, Item, Line, Role, Scenario, What};
use super::{judge, prepare::Prepared};
use crate::courses::Course;
use tidegate_measure::experiment as doc;
use tidegate_measure::trial::ClassSeries;
use tidegate_packet::{Handle, Span, Time};
use tidegate_sim::{CongestionControl, FlowSample, Journey};

/// Since packets began to flow.
fn since(at: Time) -> u64 {
    at.since(START).0
}

/// The document of what was run so far.
pub(super) fn experiment(
    scenario: &Scenario,
    prepared: &Prepared,
    again: String,
    runs: Vec<doc::Run>,
) -> doc::Experiment {
    let mut experiment = doc::Experiment {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        again,
        execution: "sim".to_owned(),
        scenario: scenario.path.display().to_string(),
        title: scenario.title.clone(),
        about: scenario.about.split_whitespace().collect::<Vec<_>>().join(" "),
        source: scenario.source.clone(),
        seed: scenario.seed,
        nodes: scenario.nodes.iter().map(node).collect(),
        links: scenario.cables.iter().map(|of| cable(scenario, of)).collect(),
        policies: policies(scenario, prepared),
        loads: scenario.loads.iter().map(load).collect(),
        runs,
        comparisons: Vec::new(),
        notes: notes(scenario, prepared),
    };
    experiment.comparisons = judge::comparisons(scenario, &experiment);
    experiment
}

fn notes(scenario: &Scenario, prepared: &Prepared) -> Vec<String> {
    let mut notes = prepared.notes.clone();
    notes.dedup();
    let all = scenario.policies.iter().flat_map(|policy| &policy.at).chain(&scenario.at);
    let late = all.filter(|at| at.time > scenario.end()).count();
    if late > 0 {
        notes.push(format!("{late} entries of the timeline come after the end of the run and did not happen"));
    }
    notes
}

fn node(of: &super::scenario::Node) -> doc::Node {
    let kind = match of.role {
        Role::Host => "host",
        Role::Machine => "machine",
        Role::Relay => "relay",
    };
    let devices = of.machine.devices.iter().map(|device| device.name.clone()).collect();
    doc::Node { name: of.name.clone(), kind: kind.to_owned(), devices }
}

/// `gateway:eth0`, `isp`.
fn end_name(scenario: &Scenario, end: &End) -> String {
    let node = &scenario.nodes[end.node];
    match end.device {
        Some(device) => format!("{}:{}", node.name, node.machine.devices[device].name),
        None => node.name.clone(),
    }
}

fn cable(scenario: &Scenario, of: &Cable) -> doc::Cable {
    let names: Vec<String> = of.ends.iter().map(|end| end_name(scenario, end)).collect();
    let (to, from) =
        names.split_last().map_or((String::new(), String::new()), |(to, from)| (to.clone(), from.join(", ")));
    let bits = |line: &Line| line.rate.or(line.trace.as_ref().map(|trace| trace.mean_rate()));
    doc::Cable {
        name: of.name.clone(),
        from,
        to,
        there: in_words(&of.up),
        back: in_words(&of.down),
        there_bits: bits(&of.up),
        back_bits: bits(&of.down),
    }
}

/// A direction in words: `768 kbit/s, 10 ms, buffer 17.3 kB`.
fn in_words(line: &Line) -> String {
    let mut words = Vec::new();
    words.extend(line.rate.map(|rate| tidegate_report::rate(rate as f64)));
    words.extend(
        line.trace
            .as_ref()
            .map(|trace| format!("recorded, {} on average", tidegate_report::rate(trace.mean_rate() as f64))),
    );
    words.extend(line.packet_rate.filter(|rate| *rate > 0).map(|rate| format!("{rate} packets/s at most")));
    words.extend(line.delay.filter(|delay| delay.0 > 0).map(|delay| tidegate_report::span(delay.0)));
    words.extend(line.buffer.map(|buffer| match buffer {
        Buffer::Bytes(bytes) => format!("buffer {}", tidegate_report::size(bytes)),
        Buffer::Packets(packets) => format!("buffer {packets} packets"),
        Buffer::Time(span) => format!("buffer {}", tidegate_report::span(span.0)),
    }));
    words.extend(line.ring.map(|ring| format!("ring {ring}")));
    words.extend(line.bql.map(|bytes| format!("BQL {bytes} B")));
    if line.impairment.is_some() {
        words.push("impaired".to_owned());
    }
    words.join(", ")
}

/// A change of a link in words.
pub(super) fn change_in_words(up: &Line, down: &Line) -> String {
    let (there, back) = (in_words(up), in_words(down));
    match (there.is_empty(), back.is_empty()) {
        _ if there == back => there,
        (false, true) => format!("up: {there}"),
        (true, false) => format!("down: {back}"),
        _ => format!("up: {there}; down: {back}"),
    }
}

fn policies(scenario: &Scenario, prepared: &Prepared) -> Vec<doc::Policy> {
    let told = |policy: usize| {
        let setups = prepared.setups[policy].iter().filter(|setup| !setup.told.is_empty());
        setups.map(|setup| (scenario.nodes[setup.node].name.clone(), setup.told.clone())).collect()
    };
    let all = scenario.policies.iter().enumerate();
    all.map(|(number, policy)| doc::Policy {
        name: policy.name.clone(),
        title: policy.title.clone(),
        commands: told(number),
    })
    .collect()
}

fn load(of: &super::scenario::Load) -> doc::Load {
    doc::Load { name: of.name.clone(), title: of.title.clone(), test: of.test.clone() }
}

/// The document of one run.
pub(super) fn run(run: Run<'_>, seed: u64) -> doc::Run {
    let scenario = run.scenario;
    let (from, to) = scenario.window();
    let to = run.cut.map_or(to, |cut| to.min(since(cut)));
    let mut of = doc::Run {
        policy: scenario.policies[run.case.policy].name.clone(),
        load: scenario.loads[run.case.load].name.clone(),
        repeat: run.case.repeat,
        seed,
        window: (from.min(to), to),
        step_ns: run.step.0,
        cut: run.cut.is_some(),
        probes: Vec::new(),
        transfers: Vec::new(),
        classes: Vec::new(),
        queues: Vec::new(),
        events: Vec::new(),
        work: work(&run),
    };
    for (at, piece) in run.pieces.iter().enumerate() {
        match piece.going {
            Going::Flow(_) | Going::Login(..) => of.transfers.push(transfer(&run, at, piece)),
            _ => of.probes.extend(probes(&run, piece)),
        }
    }
    of.queues = run.links.iter().map(|link| link_series(scenario, &run, link)).collect();
    of.events = run.events;
    of.classes = run.courses.into_vec().into_iter().map(class_series).collect();
    of
}

/// Packets over the slowest link that has a rate, and events.
fn work(run: &Run<'_>) -> (u64, u64) {
    let slowest =
        run.links.iter().filter(|link| link.has_rate()).min_by_key(|link| link.capacity.iter().max().copied());
    let net = &run.laid.world.net;
    let packets = slowest.map_or(0, |link| {
        run.laid.world.links(link.cable, link.up).into_iter().map(|id| net.link_stats(id).sent).sum()
    });
    (packets, net.events())
}

fn name(scenario: &Scenario, node: usize) -> String {
    scenario.nodes[node].name.clone()
}

fn control_name(control: CongestionControl) -> &'static str {
    match control {
        CongestionControl::Reno => "reno",
        CongestionControl::Cubic => "cubic",
        CongestionControl::CubicSlowStart => "cubic-without-hystart",
        CongestionControl::Bbr => "bbr",
        CongestionControl::Dctcp => "dctcp",
        CongestionControl::Prague => "prague",
    }
}

/// `upload`, or `upload-2` of several.
fn piece_id(item: &Item, piece: &Piece) -> String {
    match item.what {
        What::Tcp { count, .. } if count > 1 => format!("{}-{}", item.id, piece.number + 1),
        _ => item.id.clone(),
    }
}

fn transfer(run: &Run<'_>, at: usize, piece: &Piece) -> doc::Transfer {
    let scenario = run.scenario;
    let item = &scenario.loads[run.case.load].items[piece.item];
    let What::Tcp { tcp, record, count, bytes, .. } = &item.what else { return doc::Transfer::default() };
    let net = &run.laid.world.net;
    let flow = if let Going::Flow(flow) = piece.going { Some(flow) } else { None };
    let stats = flow.map(|flow| net.flow_stats(flow)).unwrap_or_default();
    let control = tcp.or(scenario.nodes[item.from].tcp).control();
    let began = item.start.0 + 10_000_000 * u64::from(piece.number);
    let samples = flow.filter(|_| *record).map_or(&[][..], |flow| net.flow_samples(flow));
    let established = stats.established.map_or(0, since);
    let (cwnd, srtt_us) = sampled(samples, established, run.progress[at].len(), run.step);
    doc::Transfer {
        id: piece_id(item, piece),
        title: if *count > 1 { format!("{} {}", item.title, piece.number + 1) } else { item.title.clone() },
        from: name(scenario, item.from),
        to: name(scenario, item.to),
        control: control_name(control).to_owned(),
        dscp: item.dsfield >> 2,
        began,
        // What has no end is only stopped.
        finished: bytes.and(stats.finished).map(since),
        bytes: run.edges[1][at].saturating_sub(run.edges[0][at]),
        retransmissions: stats.retransmissions,
        lost: stats.lost,
        series: run.progress[at].clone(),
        cwnd,
        srtt_us,
    }
}

/// Windows and round trips at the end of each step: the last sample before it; before the first one, nothing.
fn sampled(samples: &[FlowSample], established: u64, steps: usize, step: Span) -> (Vec<u32>, Vec<u64>) {
    if samples.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let mut next = 0;
    let mut last = (0, 0);
    let of_step = |n: usize| {
        let end = (n as u64 + 1) * step.0;
        while let Some(sample) = samples.get(next).filter(|sample| established + sample.at.0 <= end) {
            last = (sample.cwnd, sample.srtt.0 / 1000);
            next += 1;
        }
        last
    };
    (0..steps).map(of_step).unzip()
}

/// What is asked again and again; a page is three: until its document, its first paint, and all of it.
fn probes(run: &Run<'_>, piece: &Piece) -> Vec<doc::Probe> {
    let scenario = run.scenario;
    let item = &scenario.loads[run.case.load].items[piece.item];
    let base = |unit: &str, answers: Vec<(u64, Option<u64>)>| doc::Probe {
        id: piece_id(item, piece),
        title: item.title.clone(),
        unit: unit.to_owned(),
        from: name(scenario, item.from),
        to: name(scenario, item.to),
        dscp: item.dsfield >> 2,
        answers,
        ..doc::Probe::default()
    };
    let net = &run.laid.world.net;
    match piece.going {
        Going::Flow(_) | Going::Login(..) => Vec::new(),
        Going::Ping(ping) => {
            let answers = net.echoes(ping).iter().map(|echo| (since(echo.sent), echo.rtt.map(|rtt| rtt.0)));
            let there = net.echoes(ping).iter().map(|echo| echo.there.map(|there| there.0)).collect();
            vec![doc::Probe { there, ..base("round trip", answers.collect()) }]
        }
        Going::Source(source) => {
            let journeys = net.source_stats(source).journeys;
            let answers = journeys.iter().map(|journey| (since(journey.sent), journey.took.map(|took| took.0)));
            let mut probe = base("one way", answers.collect());
            let payload = if let What::Udp { payload, .. } = item.what { payload } else { 0 };
            (probe.received, probe.packets) = arrivals(&journeys, u64::from(payload), run);
            vec![probe]
        }
        Going::Errand(errand) => {
            let goes = net.completions(errand);
            let all = goes.iter().map(|go| (since(go.began), go.all.map(|all| all.0))).collect();
            let unit = match item.what {
                What::Web { .. } => "until complete",
                What::Ssh { .. } => "until the prompt",
                _ => "until the answer",
            };
            let mut found = vec![base(unit, all)];
            if let What::Web { .. } = item.what {
                let first = goes.iter().map(|go| (since(go.began), go.first.map(|first| first.0))).collect();
                let paint = goes.iter().map(|go| (since(go.began), go.paint.map(|paint| paint.0))).collect();
                for (part, unit, answers) in
                    [("document", "until the document", first), ("paint", "until the first paint", paint)]
                {
                    let probe = base(unit, answers);
                    let (id, title) = (format!("{}-{part}", probe.id), format!("{}, {part}", probe.title));
                    found.push(doc::Probe { id, title, ..probe });
                }
            }
            found
        }
    }
}

/// Payload bytes and packets that arrived in each step.
fn arrivals(journeys: &[Journey], payload: u64, run: &Run<'_>) -> (Vec<u64>, Vec<u32>) {
    let steps = run.links.first().map_or(0, |link| link.sent.len());
    let (mut bytes, mut packets) = (vec![0; steps], vec![0; steps]);
    for journey in journeys {
        let Some(took) = journey.took else { continue };
        let step = (since(journey.sent + took) / run.step.0) as usize;
        if let (Some(bytes), Some(packets)) = (bytes.get_mut(step), packets.get_mut(step)) {
            *bytes += payload;
            *packets += 1;
        }
    }
    (bytes, packets)
}

fn link_series(scenario: &Scenario, run: &Run<'_>, course: &LinkCourse) -> doc::LinkSeries {
    let cable = &scenario.cables[course.cable];
    let names: Vec<String> = cable.ends.iter().map(|end| end_name(scenario, end)).collect();
    let (hub, spokes) =
        names.split_last().map_or(("", String::new()), |(hub, spokes)| (hub.as_str(), spokes.join(", ")));
    let own = scenario.policies[run.case.policy].links.iter().find(|(of, ..)| *of == course.cable);
    let (usual, own) = match course.up {
        true => (&cable.up, own.map(|(_, up, _)| up)),
        false => (&cable.down, own.map(|(.., down)| down)),
    };
    let buffer = own.and_then(|own| own.buffer).or(usual.buffer);
    let from = if course.up { cable.ends.first() } else { cable.ends.last() };
    let governed = from.is_some_and(|end| end.device.is_some());
    let limit = match buffer {
        Some(Buffer::Bytes(bytes)) if !governed => Some(bytes),
        _ => None,
    };
    doc::LinkSeries {
        link: cable.name.clone(),
        up: course.up,
        title: if course.up { format!("{spokes} to {hub}") } else { format!("{hub} to {spokes}") },
        limit,
        sent: course.sent.clone(),
        capacity: if course.has_rate() { course.capacity.clone() } else { Vec::new() },
        backlog: course.backlog.clone(),
        dropped: course.dropped.clone(),
    }
}

/// `gateway:eth0 1:10`; of a root that the kernel made, `gateway:eth0 root`.
fn class_series(course: Course) -> ClassSeries {
    let place = if course.id == Handle::NONE { "root".to_owned() } else { course.id.to_string() };
    ClassSeries {
        id: format!("{} {place}", course.device),
        title: String::new(),
        leaf: course.leaf,
        sent: course.sent,
        packets: course.packets,
        backlog: course.backlog,
        qlen: course.qlen,
        dropped: course.dropped,
        tokens_us: course.tokens_us,
        ctokens_us: course.ctokens_us,
    }
}
