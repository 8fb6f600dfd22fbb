//! From runs to the document that tables, pages and comparisons are made of.

use crate::expectations;
use crate::lay::START;
use crate::model::{
    BufferSize, LinkDirection, LinkEnd, NodeRole, Scenario, ScenarioLink, TrafficItem, TrafficKind,
};
use crate::prepare::Prepared;
use crate::run::{LinkReadings, ScenarioRun, TrafficDriver};
use crate::series::ClassReadings;
use tidegate_measure::experiment as doc;
use tidegate_measure::trial::ClassSeries;
use tidegate_packet::{Handle, Time};
use tidegate_sim::CongestionControl;

/// Since packets began to flow.
pub fn since(at: Time) -> u64 {
    at.since(START).0
}

/// The document of what was run so far.
pub fn experiment(
    scenario: &Scenario,
    prepared: &Prepared,
    execution: &str,
    again: String,
    runs: Vec<doc::RunRecord>,
) -> doc::Experiment {
    let mut experiment = doc::Experiment {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        again,
        execution: execution.to_owned(),
        scenario: scenario.path.display().to_string(),
        title: scenario.title.clone(),
        about: scenario.about.split_whitespace().collect::<Vec<_>>().join(" "),
        source: scenario.source.clone(),
        began_ns: None,
        seed: scenario.seed,
        nodes: scenario.nodes.iter().map(node).collect(),
        links: scenario.cables.iter().map(|of| cable(scenario, of)).collect(),
        policies: policies(scenario, prepared),
        loads: scenario.loads.iter().map(load).collect(),
        runs,
        comparisons: Vec::new(),
        notes: notes(scenario, prepared),
    };
    experiment.notes.extend(unreliable(&experiment));
    experiment.comparisons = expectations::comparisons(scenario, &experiment);
    experiment
}

fn notes(scenario: &Scenario, prepared: &Prepared) -> Vec<String> {
    let mut notes = prepared.notes.clone();
    notes.dedup();
    let all = scenario.policies.iter().flat_map(|policy| &policy.at).chain(&scenario.at);
    let late = all.filter(|at| at.time > scenario.end()).count();
    if late > 0 {
        notes
            .push(format!("{late} entries of the timeline come after the end of the run and did not happen"));
    }
    notes
}

/// How late the machine was, and of which runs the delays cannot be believed.
fn unreliable(of: &doc::Experiment) -> Vec<String> {
    let late = |run: &doc::RunRecord| run.lateness;
    let Some(worst) = of.runs.iter().filter_map(late).max_by_key(|late| late.p99) else { return Vec::new() };
    let span = tidegate_measure::numbers::format_duration;
    let mut notes = vec![format!(
        "in the worst run this machine sent packets {} late in the median, {} at the 99th percentile, \
        {} at most",
        span(worst.median),
        span(worst.p99),
        span(worst.most)
    )];
    for run in of.runs.iter().filter(|run| late(run).is_some_and(|late| !late.is_believed())) {
        notes.push(format!(
            "{}/{} #{} is unreliable: the machine was too busy; --realtime or --busy may \
            help, or a machine with less to do",
            run.policy,
            run.load,
            run.repeat + 1
        ));
    }
    notes
}

fn node(of: &crate::model::ScenarioNode) -> doc::NodeRecord {
    let kind = match of.role {
        NodeRole::Host => "host",
        NodeRole::Machine => "machine",
        NodeRole::Relay => "relay",
    };
    let devices = of.machine.devices.iter().map(|device| device.name.clone()).collect();
    doc::NodeRecord { name: of.name.clone(), kind: kind.to_owned(), devices }
}

/// `gateway:eth0`, `isp`.
fn end_name(scenario: &Scenario, end: &LinkEnd) -> String {
    let node = &scenario.nodes[end.node];
    match end.device {
        Some(device) => format!("{}:{}", node.name, node.machine.devices[device].name),
        None => node.name.clone(),
    }
}

fn cable(scenario: &Scenario, of: &ScenarioLink) -> doc::LinkRecord {
    let names: Vec<String> = of.ends.iter().map(|end| end_name(scenario, end)).collect();
    let (to, from) =
        names.split_last().map_or((String::new(), String::new()), |(to, from)| (to.clone(), from.join(", ")));
    doc::LinkRecord {
        name: of.name.clone(),
        from,
        to,
        there: in_words(&of.up),
        back: in_words(&of.down),
        there_bits: of.up.mean_rate(),
        back_bits: of.down.mean_rate(),
    }
}

/// A direction in words: `768 kbit/s, 10 ms, buffer 17.3 kB`.
fn in_words(line: &LinkDirection) -> String {
    let mut words = Vec::new();
    words.extend(line.rate.map(|rate| tidegate_measure::numbers::rate(rate as f64)));
    let recorded = line.trace.as_ref();
    words.extend(
        recorded
            .and_then(|trace| trace.mean_rate())
            .map(|rate| format!("recorded, {} on average", tidegate_measure::numbers::rate(rate as f64))),
    );
    words.extend(recorded.and_then(|trace| trace.mean_delay()).map(|delay| {
        format!("recorded delays, {} on average", tidegate_measure::numbers::format_duration(delay.0))
    }));
    words.extend(line.packet_rate.filter(|rate| *rate > 0).map(|rate| format!("{rate} packets/s at most")));
    words.extend(
        line.delay
            .filter(|delay| delay.0 > 0)
            .map(|delay| tidegate_measure::numbers::format_duration(delay.0)),
    );
    words.extend(line.buffer.map(|buffer| match buffer {
        BufferSize::Bytes(bytes) => format!("buffer {}", tidegate_measure::numbers::size(bytes)),
        BufferSize::Packets(packets) => format!("buffer {packets} packets"),
        BufferSize::Time(span) => format!("buffer {}", tidegate_measure::numbers::format_duration(span.0)),
    }));
    words.extend(line.ring.map(|ring| format!("ring {ring}")));
    words.extend(line.bql.map(|bytes| format!("BQL {bytes} B")));
    if line.impairment.is_some() {
        words.push("impaired".to_owned());
    }
    words.join(", ")
}

/// A change of a link in words.
pub fn change_in_words(up: &LinkDirection, down: &LinkDirection) -> String {
    let (there, back) = (in_words(up), in_words(down));
    match (there.is_empty(), back.is_empty()) {
        _ if there == back => there,
        (false, true) => format!("up: {there}"),
        (true, false) => format!("down: {back}"),
        _ => format!("up: {there}; down: {back}"),
    }
}

fn policies(scenario: &Scenario, prepared: &Prepared) -> Vec<doc::PolicyRecord> {
    let machines = |policy: usize| {
        let setups = prepared.setups[policy].iter().filter(|setup| !setup.shown.is_empty());
        setups.map(|setup| (scenario.nodes[setup.node].name.clone(), setup.shown.clone())).collect()
    };
    let all = scenario.policies.iter().enumerate();
    all.map(|(number, policy)| doc::PolicyRecord {
        name: policy.name.clone(),
        title: policy.title.clone(),
        commands: machines(number),
    })
    .collect()
}

fn load(of: &crate::model::ScenarioLoad) -> doc::LoadRecord {
    doc::LoadRecord { name: of.name.clone(), title: of.title.clone(), test: of.test.clone() }
}

/// The document of one run.
pub fn run<T: TrafficDriver>(mut run: ScenarioRun<'_, T>, seed: u64) -> doc::RunRecord {
    let (transfers, probes) = T::records(&mut run);
    let scenario = run.scenario;
    let (from, to) = scenario.window();
    let to = run.cut.map_or(to, |cut| to.min(since(cut)));
    let mut of = doc::RunRecord {
        policy: scenario.policies[run.case.policy].name.clone(),
        load: scenario.loads[run.case.load].name.clone(),
        repeat: run.case.repeat,
        seed,
        window: (from.min(to), to),
        step_ns: run.step.0,
        cut: run.cut.is_some(),
        probes,
        transfers,
        classes: Vec::new(),
        queues: Vec::new(),
        events: Vec::new(),
        work: work(&run),
        lateness: run.traffic.lateness(),
    };
    of.queues = run.links.iter().map(|link| link_series(scenario, &run, link)).collect();
    of.events = run.events;
    of.classes = run.courses.into_vec().into_iter().map(class_series).collect();
    of
}

/// Packets over the slowest link that has a rate, and events.
fn work<T>(run: &ScenarioRun<'_, T>) -> (u64, u64) {
    let slowest = run
        .links
        .iter()
        .filter(|link| link.has_rate())
        .min_by_key(|link| link.capacity.iter().max().copied());
    let net = &run.laid.world.net;
    let packets = slowest.map_or(0, |link| {
        run.laid.world.links(link.cable, link.up).into_iter().map(|id| net.link_stats(id).sent).sum()
    });
    (packets, net.events())
}

/// The name of a node.
pub fn name(scenario: &Scenario, node: usize) -> String {
    scenario.nodes[node].name.clone()
}

/// A congestion control by the name that scenarios and documents give it.
pub fn control_name(control: CongestionControl) -> &'static str {
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
pub fn piece_id(item: &TrafficItem, number: u32) -> String {
    match item.what {
        TrafficKind::Tcp { count, .. } if count > 1 => format!("{}-{}", item.id, number + 1),
        _ => item.id.clone(),
    }
}

/// When each was sent and how long its answer took.
type Answers = Vec<(u64, Option<u64>)>;

/// A probe as a load names it, and what it found.
pub fn probe(
    scenario: &Scenario,
    item: &TrafficItem,
    number: u32,
    unit: &str,
    answers: Answers,
) -> doc::ProbeRecord {
    doc::ProbeRecord {
        id: piece_id(item, number),
        title: item.title.clone(),
        unit: unit.to_owned(),
        from: name(scenario, item.from),
        to: name(scenario, item.to),
        dscp: item.dsfield >> 2,
        answers,
        ..doc::ProbeRecord::default()
    }
}

/// The probes of a transaction, from its durations until everything, the first reply and the first paint:
/// three for a page, else one.
pub fn transaction_probes(
    item: &TrafficItem,
    base: &dyn Fn(&str, Answers) -> doc::ProbeRecord,
    [all, first, paint]: [Answers; 3],
) -> Vec<doc::ProbeRecord> {
    let unit = match item.what {
        TrafficKind::Web { .. } => "until complete",
        TrafficKind::Ssh { .. } => "until the prompt",
        _ => "until the reply",
    };
    let mut found = vec![base(unit, all)];
    if let TrafficKind::Web { .. } = item.what {
        for (part, unit, answers) in
            [("document", "until the document", first), ("paint", "until the first paint", paint)]
        {
            let probe = base(unit, answers);
            let (id, title) = (format!("{}-{part}", probe.id), format!("{}, {part}", probe.title));
            found.push(doc::ProbeRecord { id, title, ..probe });
        }
    }
    found
}

/// Payload bytes and packets that arrived in each step of a run, from when each arrived.
pub fn per_step<T>(
    arrived: impl Iterator<Item = u64>,
    payload: u64,
    run: &ScenarioRun<'_, T>,
) -> (Vec<u64>, Vec<u32>) {
    let steps = run.links.first().map_or(0, |link| link.sent.len());
    let (mut bytes, mut packets) = (vec![0; steps], vec![0; steps]);
    for at in arrived {
        let step = (at / run.step.0) as usize;
        if let (Some(bytes), Some(packets)) = (bytes.get_mut(step), packets.get_mut(step)) {
            *bytes += payload;
            *packets += 1;
        }
    }
    (bytes, packets)
}

fn link_series<T>(scenario: &Scenario, run: &ScenarioRun<'_, T>, course: &LinkReadings) -> doc::LinkSeries {
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
        Some(BufferSize::Bytes(bytes)) if !governed => Some(bytes),
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
fn class_series(course: ClassReadings) -> ClassSeries {
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
