//! From the runs to the document that tables and pages are made of.

use crate::home::{Run, START};
use crate::loads::Item;
use crate::reach::{self, DeviceClass};
use crate::state::Trial;
use crate::{drops, notes, words};
use tidegate_measure::trial as doc;
use tidegate_packet::{Handle, Rate, Time};
use tidegate_policy::dump::{ClassDump, QdiscDump, Xstats};
use tidegate_policy::{ClassParams, QdiscParams, ServiceCurve};
use tidegate_scenario::series::{ClassReadings, counts, is_leaf};
use tidegate_sim::TrafficResult;
use tidegate_syntax::tc::{self, Object, ShowFlags, ShowWhat};

/// The whole document, but for its verdict.
pub(crate) fn document(trial: &Trial<'_>) -> doc::TrialDocument {
    let o = trial.options;
    let tree = tree(trial);
    let runs: Vec<doc::TrialRun> = trial.runs.iter().map(|run| one_run(trial, run, &tree)).collect();
    let link = doc::LinkFacts {
        up_bits: o.up.as_bits(),
        down_bits: o.down.as_bits(),
        rtt_ns: o.rtt.0,
        up_buffer_bytes: o.buffers()[0],
        down_buffer_bytes: o.buffers()[1],
        varies: o.line.as_ref().map(|line| line.name.clone()),
    };
    let of_figures = [notes::incomplete(&runs), notes::busy_idle(&runs, &link), notes::varying(&link)];
    let of_policy = [trial.moved_note(), trial.served_note(), trial.netem_note()];
    let found = of_policy.into_iter().chain(of_figures).flatten();
    let notes = trial.notes.iter().cloned().chain(trial.empty_notes()).chain(found).collect();
    doc::TrialDocument {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        again: o.again.clone(),
        script: o.script.clone(),
        device: trial.policy.wan.clone(),
        commands: trial.policy.commands as u64,
        seed: o.seed,
        link,
        runs,
        tree,
        verdict: Vec::new(),
        notes,
    }
}

/// Since the packets began to flow.
fn since(at: Time) -> u64 {
    at.since(START).0
}

fn one_run(trial: &Trial<'_>, run: &Run, tree: &[doc::TreeNode]) -> doc::TrialRun {
    let load = &trial.loads[run.load];
    let outcomes = run.items.iter().zip(&run.result.outcomes).zip(&run.progress);
    let mut probes = Vec::new();
    let mut flows = Vec::new();
    for ((item, outcome), progress) in outcomes {
        match (item.transfer(), outcome) {
            (Some(up), outcome) => flows.push(flow(trial, run, item, up, outcome, progress)),
            (None, outcome) => probes.push(probe(trial, item, outcome)),
        }
    }
    let limits = trial.options.buffers();
    let links = [&run.result.modem, &run.result.provider];
    // In the tree's order: each entry before those below it.
    let mut courses: Vec<&ClassReadings> = run.courses.iter().collect();
    courses.sort_by_key(|course| {
        let is = |node: &doc::TreeNode| node.device == course.device && node.id == course.id.to_string();
        tree.iter().position(is)
    });
    let buffers = ["modem", "provider"].iter().zip(limits).zip(links).zip(&run.buffers);
    doc::TrialRun {
        load: load.id.clone(),
        title: load.title.clone(),
        policy: run.with_policy,
        witnesses: run.witnesses,
        window: (since(run.result.window.0), since(run.result.window.1)),
        step_ns: run.step.0,
        probes,
        flows,
        classes: courses.into_iter().map(|course| series(trial, run, course)).collect(),
        buffers: buffers
            .map(|(((title, limit), link), backlog)| doc::BufferSeries {
                title: (*title).to_owned(),
                limit,
                backlog: backlog.clone(),
                dropped: link.dropped,
            })
            .collect(),
        direct_packets: direct_packets(trial, run),
        filter_drops: drops::outside_classes(run),
        capacity: trial.options.line.as_ref().map(|line| {
            let [up, down] = line.capacity(run.step, run.buffers[0].len() as u64);
            let [mut carried_up, mut carried_down] = run.carried.clone();
            carried_up.truncate(up.len());
            carried_down.truncate(down.len());
            doc::LineCapacity { up, down, carried_up, carried_down }
        }),
    }
}

/// What HTB at the root of the device before the modem has sent past its classes.
fn direct_packets(trial: &Trial<'_>, run: &Run) -> u64 {
    let roots = run.trees.qdiscs.iter().filter(|q| q.dev == trial.policy.wan && q.parent == Handle::ROOT);
    let direct = roots.map(|root| match root.xstats {
        Xstats::Htb { direct_packets } => u64::from(direct_packets),
        _ => 0,
    });
    direct.sum()
}

fn probe(trial: &Trial<'_>, item: &Item, outcome: &TrafficResult) -> doc::TrialProbe {
    let answers = match outcome {
        TrafficResult::Ping(echoes) => {
            echoes.iter().map(|e| (since(e.sent), e.rtt.map(|rtt| rtt.0))).collect()
        }
        TrafficResult::Datagrams(journeys) => {
            journeys.iter().map(|j| (since(j.sent), j.took.map(|took| took.0))).collect()
        }
        TrafficResult::Transaction(goes) => {
            goes.iter().map(|go| (since(go.began), go.all.map(|all| all.0))).collect()
        }
        TrafficResult::Bulk(_) => Vec::new(),
    };
    doc::TrialProbe {
        id: item.id.clone(),
        title: item.title.clone(),
        unit: item.unit.to_owned(),
        class: trial.class_of(item),
        answers,
    }
}

fn flow(
    trial: &Trial<'_>,
    run: &Run,
    item: &Item,
    up: bool,
    outcome: &TrafficResult,
    progress: &[u64],
) -> doc::TrialFlow {
    let mut flow = doc::TrialFlow {
        title: item.title.clone(),
        up,
        class: trial.class_of(item),
        ..doc::TrialFlow::default()
    };
    match outcome {
        TrafficResult::Bulk(result) => {
            flow.bytes = result.acked;
            flow.retransmissions = result.total.retransmissions;
            flow.lost = result.total.lost;
            flow.series = progress.to_vec();
        }
        TrafficResult::Datagrams(journeys) => {
            let payload = match &item.traffic {
                tidegate_sim::HomeTraffic::Datagrams(datagrams) => u64::from(datagrams.payload),
                _ => 0,
            };
            flow.series = vec![0; progress.len()];
            for journey in journeys {
                let Some(took) = journey.took else {
                    flow.lost += 1;
                    continue;
                };
                let arrived = journey.sent + took;
                if (run.result.window.0..run.result.window.1).contains(&arrived) {
                    flow.bytes += payload;
                }
                if let Some(step) = flow.series.get_mut((since(arrived) / run.step.0) as usize) {
                    *step += payload;
                }
            }
        }
        TrafficResult::Ping(_) | TrafficResult::Transaction(_) => {}
    }
    flow
}

fn series(trial: &Trial<'_>, run: &Run, course: &ClassReadings) -> doc::ClassSeries {
    let place = DeviceClass { device: course.device.clone(), class: course.id };
    let leaf =
        match run.trees.classes.iter().find(|class| class.classid == course.id && class.dev == course.device)
        {
            Some(class) => is_leaf(class, &run.trees.classes),
            None => true,
        };
    doc::ClassSeries {
        id: place.label(trial.policy),
        title: trial.title_of(&place),
        leaf,
        sent: course.sent.clone(),
        packets: course.packets.clone(),
        backlog: course.backlog.clone(),
        qlen: course.qlen.clone(),
        dropped: course.dropped.clone(),
        tokens_us: course.tokens_us.clone(),
        ctokens_us: course.ctokens_us.clone(),
    }
}

/// The policy's trees, parents before children.
fn tree(trial: &Trial<'_>) -> Vec<doc::TreeNode> {
    let Some(run) = trial.runs.iter().find(|run| run.with_policy) else { return Vec::new() };
    let mut nodes = Vec::new();
    for root in run.trees.qdiscs.iter().filter(|q| q.parent == Handle::ROOT && !q.handle.is_none()) {
        qdisc(trial, run, root, String::new(), &mut nodes);
    }
    nodes
}

fn by_id<'d>(classes: impl Iterator<Item = &'d ClassDump>) -> Vec<&'d ClassDump> {
    let mut classes: Vec<&ClassDump> = classes.collect();
    classes.sort_by_key(|class| class.classid);
    classes
}

/// The depth of the trees that are reported.
const MAX_DEPTH: usize = 16;

fn qdisc(trial: &Trial<'_>, run: &Run, of: &QdiscDump, parent: String, nodes: &mut Vec<doc::TreeNode>) {
    let place = DeviceClass { device: of.dev.clone(), class: of.handle };
    nodes.push(doc::TreeNode {
        device: of.dev.clone(),
        id: of.handle.to_string(),
        parent,
        kind: of.kind.name().to_owned(),
        options: qdisc_options(of),
        rate_bits: qdisc_rate(of),
        title: trial.title_of(&place),
        ..doc::TreeNode::default()
    });
    let major = of.handle.major();
    let tops = run.trees.classes.iter().filter(|class| {
        class.dev == of.dev
            && counts(class)
            && class.classid.major() == major
            && (class.parent == Handle::ROOT || class.parent == of.handle)
    });
    let tops = by_id(tops);
    for class in &tops {
        subtree(trial, run, class, of.handle.to_string(), nodes, MAX_DEPTH);
    }
    if tops.is_empty() && nodes.len() < MOST_NODES {
        // Kinds with one class that has no counters of its own, as tbf: a child of the class is attached to
        // the qdisc.
        let inside =
            |q: &&QdiscDump| q.dev == of.dev && q.parent != Handle::ROOT && q.parent.major() == major;
        for inner in
            run.trees.qdiscs.iter().filter(inside).filter(|q| !q.handle.is_none() && q.handle != of.handle)
        {
            qdisc(trial, run, inner, of.handle.to_string(), nodes);
        }
    }
}

/// The most qdiscs and classes that are reported.
const MOST_NODES: usize = 100_000;

fn subtree(
    trial: &Trial<'_>,
    run: &Run,
    class: &ClassDump,
    parent: String,
    nodes: &mut Vec<doc::TreeNode>,
    depth: usize,
) {
    let place = DeviceClass { device: class.dev.clone(), class: class.classid };
    let (rate_bits, ceil_bits, prio) = class_figures(class);
    let id = class.classid.to_string();
    nodes.push(doc::TreeNode {
        device: class.dev.clone(),
        id: id.clone(),
        parent,
        is_class: true,
        kind: class.kind.name().to_owned(),
        options: class_options(class),
        rate_bits,
        ceil_bits,
        prio,
        title: trial.title_of(&place),
        filters: filters_to(trial, run, class),
        unreachable: trial.unreached.get(&place).cloned(),
    });
    if depth == 0 {
        return;
    }
    let children = run.trees.classes.iter();
    let children = children.filter(|c| c.dev == class.dev && c.parent == class.classid && counts(c));
    for below in by_id(children) {
        subtree(trial, run, below, id.clone(), nodes, depth - 1);
    }
    for leaf in run
        .trees
        .qdiscs
        .iter()
        .filter(|q| q.dev == class.dev && q.parent == class.classid && !q.handle.is_none())
    {
        qdisc(trial, run, leaf, id.clone(), nodes);
    }
}

/// The parameters as tc lists them, without the words before them.
/// The rate that a qdisc itself holds, in bit/s.
pub(crate) fn qdisc_rate(of: &QdiscDump) -> Option<u64> {
    match &of.params {
        QdiscParams::Tbf(tbf) => Some(tbf.rate.rate.as_bits()),
        QdiscParams::Netem(netem) => netem.rate.as_ref().map(|rate| rate.rate * 8).filter(|bits| *bits > 0),
        QdiscParams::Cake(cake) => cake.bandwidth.filter(|rate| rate.0 > 0).map(|rate| rate.as_bits()),
        _ => None,
    }
}

/// Rate and ceil in bit/s, and the priority, of a class that has them.
pub(crate) fn class_figures(class: &ClassDump) -> (Option<u64>, Option<u64>, Option<u32>) {
    let bits = |rate: Rate| (rate.0 > 0).then(|| rate.as_bits());
    match &class.params {
        ClassParams::Htb(htb) => (bits(htb.rate.rate), bits(htb.ceil.rate), Some(htb.prio)),
        ClassParams::Hfsc(hfsc) => {
            let steady = |curve: Option<ServiceCurve>| bits(Rate(u64::from(curve?.m2)));
            (steady(hfsc.rt), steady(hfsc.ul), None)
        }
        _ => (None, None, None),
    }
}

/// The options of a qdisc as tc lists them.
pub(crate) fn qdisc_options(of: &QdiscDump) -> String {
    let line = tc::show_qdiscs(std::slice::from_ref(of), &ShowWhat::of(Object::Qdisc), &ShowFlags::default());
    after_words(&line, &["root", "parent", "refcnt"])
}

fn class_options(of: &ClassDump) -> String {
    let line =
        tc::show_classes(std::slice::from_ref(of), &ShowWhat::of(Object::Class), &ShowFlags::default());
    after_words(&line, &["root", "parent", "leaf"])
}

/// The words of the first line after the last of these keywords and its value (`root` has none).
fn after_words(line: &str, keywords: &[&str]) -> String {
    let words: Vec<&str> = line.lines().next().unwrap_or_default().split_whitespace().collect();
    let from = words.iter().rposition(|word| keywords.contains(word));
    let from = from.map_or(0, |at| at + if words[at] == "root" { 1 } else { 2 });
    words.get(from..).unwrap_or_default().join(" ")
}

/// The filters that lead to a class, in words.
fn filters_to(trial: &Trial<'_>, run: &Run, class: &ClassDump) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for dump in run.trees.filters.iter().filter(|dump| dump.dev == class.dev) {
        if reach::classid(dump) == Some(class.classid) {
            let idle = if trial.policy.uses().is_idle(dump) { " (no packet comes to it)" } else { "" };
            let words = words::filter(dump, trial.policy.what_brings(dump));
            lines.extend(words.map(|words| words + idle));
        }
    }
    let is_default = trial.policy.default_class(&class.dev) == Some(class.classid);
    if is_default && !trial.policy.uses().is_idle_default(&class.dev, class.classid) {
        lines.push("whatever no filter takes".to_owned());
    }
    lines
}
