//! What is derived of a trial: pairs of runs, the load that hurts, what classes did while measured.

use tidegate_analysis::data::{Data, capital, end_of, span_title, spans, steps_of};
use tidegate_analysis::trial::{
    ClassFigures, classes_at_work, every_class, goodput, hardest, label, main_probe, node, pairs, part,
    window_steps,
};
use tidegate_measure::trial::{
    BufferSeries, ClassSeries, TreeNode, TrialDocument, TrialFlow, TrialProbe, TrialRun,
};

const MS: u64 = 1_000_000;
const STEP: u64 = 100 * MS;

fn run(load: &str, policy: bool, probes: &[(&str, Option<u64>)], flows: usize) -> TrialRun {
    let probe = |(id, ms): &(&str, Option<u64>)| TrialProbe {
        id: (*id).into(),
        answers: vec![(500 * MS, ms.map(|ms| ms * MS))],
        ..TrialProbe::default()
    };
    let flow = |n: usize| TrialFlow { up: n.is_multiple_of(2), bytes: 125_000, ..TrialFlow::default() };
    TrialRun {
        load: load.into(),
        title: format!("{load}!"),
        policy,
        window: (200 * MS, 1_200 * MS),
        step_ns: STEP,
        probes: probes.iter().map(probe).collect(),
        flows: (0..flows).map(flow).collect(),
        ..TrialRun::default()
    }
}

#[test]
fn pairs_of_runs() {
    let trial = TrialDocument {
        runs: vec![
            run("up", false, &[("dns", Some(1)), ("ping", Some(200))], 3),
            run("up", true, &[("ping", Some(20)), ("call", None)], 3),
            run("down", true, &[("dns", Some(5))], 2),
            TrialRun { witnesses: true, ..run("all", true, &[], 1) },
        ],
        ..TrialDocument::default()
    };
    let pairs = pairs(&trial);
    let loads: Vec<(&str, &str, usize)> =
        pairs.iter().map(|pair| (pair.load(), pair.title(), pair.each().count())).collect();
    assert_eq!(loads, [("up", "up!", 2), ("down", "down!", 1)], "what shows every class is none of them");
    let words: Vec<&str> = pairs[0].each().map(|(word, _)| word).collect();
    assert_eq!(words, ["without", "with"]);
    assert_eq!(pairs[1].each().map(|(word, _)| word).collect::<Vec<_>>(), ["with"]);
    assert_eq!(pairs[0].probe_ids(), ["dns", "ping", "call"]);
    assert_eq!(
        [main_probe(&pairs[0]), main_probe(&pairs[1])],
        [Some("ping"), Some("dns")],
        "the ping, or the first"
    );
    let ping = pairs[0].probe("ping");
    assert_eq!(ping.both(|figures| figures.rtt.max()), [Some(200 * MS), Some(20 * MS)]);
    assert_eq!(pairs[0].probe("dns").both(|figures| figures.rtt.max()), [Some(MS), None]);
    assert_eq!(pairs[0].probe("dns").any().map(|probe| probe.id.as_str()), Some("dns"));
    assert!(pairs[0].probe("web").any().is_none());
    // Two of the three flows go up: 125,000 bytes in a second each.
    let up = pairs[0].any().expect("a run");
    assert_eq!([goodput(up, true), goodput(up, false)], [Some(2e6), Some(1e6)]);
    assert_eq!(goodput(&run("x", true, &[], 0), true), None);
    assert_eq!(every_class(&trial).map(|run| run.load.as_str()), Some("all"));
    assert_eq!(classes_at_work(&trial, &pairs).map(|run| run.load.as_str()), Some("all"));
}

/// Where the ping's 95th percentile is longest; a ping that is lost is the longest of all; without flows
/// nothing hurts.
#[test]
fn the_load_that_hurts_most() {
    let of = |loads: &[(&str, Option<u64>, usize)]| {
        let both = |(load, ms, flows): &(&str, Option<u64>, usize)| {
            [false, true].map(|policy| run(load, policy, &[("ping", ms.filter(|_| !policy))], *flows))
        };
        let trial = TrialDocument { runs: loads.iter().flat_map(both).collect(), ..TrialDocument::default() };
        let at_work = classes_at_work(&trial, &pairs(&trial)).map(|run| (run.load.clone(), run.policy));
        let hardest = hardest(&pairs(&trial)).map(|pair| pair.load().to_owned());
        assert_eq!(
            at_work,
            hardest.clone().map(|load| (load, true)),
            "classes are seen at work there, with the policy"
        );
        hardest
    };
    // Each load's ping in ms without the policy, and how many flows it has.
    type Loads = [(&'static str, Option<u64>, usize)];
    let cases: [(&Loads, Option<&str>); 4] = [
        (&[("a", Some(9), 1), ("b", Some(30), 1), ("c", Some(10), 1)], Some("b")),
        (&[("a", Some(9), 1), ("b", None, 1), ("c", Some(10), 1)], Some("b")),
        (&[("a", Some(9), 0), ("b", Some(8), 1)], Some("b")),
        (&[], None),
    ];
    for (loads, expected) in cases {
        assert_eq!(of(loads).as_deref(), expected, "{loads:?}");
    }
}

/// Of steps 2 to 11, which the window covers.
#[test]
fn a_class_while_measured() {
    let run = run("up", true, &[], 0);
    assert_eq!(window_steps(&run), 2..12);
    assert_eq!(
        window_steps(&TrialRun { window: (250 * MS, 1_150 * MS), ..run.clone() }),
        2..12,
        "steps begun count"
    );
    let class = ClassSeries {
        sent: vec![1_000; 20],
        dropped: vec![2; 20],
        qlen: (0..20).collect(),
        backlog: (0..20).map(|n| n * 100).collect(),
        ..ClassSeries::default()
    };
    let figures = ClassFigures::new(&run, &class);
    let expected =
        ClassFigures { sent: 10_000, rate: 80_000.0, dropped: 20, peak_packets: 11, peak_bytes: 1_100 };
    assert_eq!(figures, expected);
    assert_eq!(ClassFigures::new(&run, &ClassSeries::default()), ClassFigures::default());
    let parts = [2..4, 3..9, 7..9, 5..5].map(|range| part(&[0, 1, 2, 3, 4], range).to_vec());
    assert_eq!(parts, [vec![2, 3], vec![3, 4], vec![], vec![]]);
}

#[test]
fn names_of_classes() {
    let tree =
        |device: &str, id: &str| TreeNode { device: device.into(), id: id.into(), ..TreeNode::default() };
    let trial = TrialDocument {
        device: "eth0".into(),
        tree: vec![tree("eth0", "1:10"), tree("ifb0", "1:10"), tree("ifb0", "2:1")],
        ..TrialDocument::default()
    };
    let labels: Vec<String> = trial.tree.iter().map(|node| label(&trial, node)).collect();
    assert_eq!(labels, ["1:10", "ifb0 1:10", "ifb0 2:1"]);
    for (label, of) in labels.iter().zip(&trial.tree) {
        assert_eq!(node(&trial, label), Some(of), "and back");
    }
    assert_eq!([node(&trial, "2:1"), node(&trial, "ifb02:1")], [None, None]);
}

/// Rows of a table over time: at most seventy, of lengths that people count in.
#[test]
fn spans_of_time() {
    const S: u64 = 1_000_000_000;
    let of = |end: u64| {
        let spans = spans(end);
        let last = spans.last().copied().unwrap_or_default();
        (spans.len(), spans.first().map_or(0, |first| first.1), last)
    };
    let cases = [
        (0, (0, 0, (0, 0))),
        (S / 2, (1, S / 2, (0, S / 2))),
        (70 * S, (70, S, (69 * S, 70 * S))),
        (71 * S, (36, 2 * S, (70 * S, 71 * S))),
        (3600 * S, (60, 60 * S, (3540 * S, 3600 * S))),
        (42_000 * S, (70, 600 * S, (41_400 * S, 42_000 * S))),
        // Longer than seventy times ten minutes: seventy parts.
        (70_000 * S, (70, 1_000 * S, (69_000 * S, 70_000 * S))),
    ];
    for (end, expected) in cases {
        assert_eq!(of(end), expected, "{end} ns");
    }
    let titles = [(0, S), (12 * S, 13 * S), (S / 2, 3 * S / 2)].map(span_title);
    assert_eq!(titles, ["0–1 s", "12–13 s", "0.5–1.5 s"]);
    assert_eq!([capital("ping"), capital("ärger"), capital("")], ["Ping", "Ärger", ""]);
    assert_eq!(Data::default().rows.len(), 0);
}

/// A run ends with the last thing that is known of it.
#[test]
fn ends_of_runs() {
    let run = run("up", true, &[("ping", Some(1))], 0);
    let with = |change: &dyn Fn(&mut TrialRun)| {
        let mut run = run.clone();
        change(&mut run);
        end_of(&run) / MS
    };
    let buffer = |steps| BufferSeries { backlog: vec![0; steps], ..BufferSeries::default() };
    let class = |steps| ClassSeries { sent: vec![0; steps], ..ClassSeries::default() };
    let cases = [
        (with(&|_| ()), 1_200),
        (with(&|run| run.buffers = vec![buffer(3), buffer(13)]), 1_300),
        (with(&|run| run.classes = vec![class(14), class(2)]), 1_400),
        (with(&|run| run.probes[0].answers[0].0 = 5_000 * MS), 5_000),
    ];
    for (n, (end, expected)) in cases.into_iter().enumerate() {
        assert_eq!(end, expected, "case {n}");
    }
    assert_eq!(end_of(&TrialRun::default()), 1);
    let series: Vec<u64> = (0..20).collect();
    assert_eq!(steps_of(&run, &series, (250 * MS, 510 * MS)), [2, 3, 4, 5], "every step that is touched");
}
