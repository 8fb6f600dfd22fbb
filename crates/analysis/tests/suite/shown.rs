//! How figures and comparisons are written: signs, units, the run that represents several repeats, and
//! remarks on results that differ in kind.

use tidegate_analysis::experiment::{
    Change, Comparing, RunView, Side, Under, answers, called, label, spread, written,
};
use tidegate_measure::experiment::{
    Experiment, LoadRecord, PolicyRecord, ProbeRecord, RunRecord, Spread, TransferRecord,
};

const MS: u64 = 1_000_000;

fn run(policy: &str, load: &str, repeat: u32, ms: Option<u64>) -> RunRecord {
    let probe =
        ProbeRecord { id: "ping".into(), answers: vec![(0, ms.map(|ms| ms * MS))], ..ProbeRecord::default() };
    RunRecord {
        policy: policy.into(),
        load: load.into(),
        repeat,
        window: (0, 1_000 * MS),
        step_ns: 100 * MS,
        probes: vec![probe],
        transfers: vec![TransferRecord {
            id: "upload-1".into(),
            bytes: 125_000,
            ..TransferRecord::default()
        }],
        ..RunRecord::default()
    }
}

fn experiment(runs: Vec<RunRecord>) -> Experiment {
    let names = |of: &dyn Fn(&RunRecord) -> String| {
        let mut names: Vec<String> = runs.iter().map(of).collect();
        names.dedup();
        names
    };
    let policies = names(&|run| run.policy.clone());
    let mut loads = names(&|run| run.load.clone());
    loads.sort();
    loads.dedup();
    Experiment {
        policies: policies.into_iter().map(|name| PolicyRecord { name, ..PolicyRecord::default() }).collect(),
        loads: loads.into_iter().map(|name| LoadRecord { name, ..LoadRecord::default() }).collect(),
        runs,
        ..Experiment::default()
    }
}

fn repeats(all: &[u64]) -> Experiment {
    experiment((0..).zip(all).map(|(n, ms)| run("p", "l", n, Some(*ms))).collect())
}

fn sides<const N: usize>(all: [Experiment; N]) -> [Side; N] {
    let mut labels = ["before", "after", "later"].into_iter();
    all.map(|experiment| Side { label: labels.next().unwrap_or("?").into(), experiment })
}

#[test]
fn changes_are_shown_with_their_sign_and_what_is_known_of_them() {
    let change = |percent, points, significant| Change { percent, points, significant }.shown();
    let table = [
        (change(Some(3.56), false, Some(false)), "+3.6 %"),
        (change(Some(-1.24), true, Some(true)), "−1.2 points *"),
        (change(Some(0.04), false, Some(false)), "±0.0 %"),
        (change(Some(-0.05), false, None), "−0.1 % ?"),
        (change(Some(0.05), false, None), "+0.1 % ?"),
        (change(Some(0.0), false, Some(true)), "the same"),
        (change(None, false, Some(true)), "from nothing *"),
    ];
    for (shown, expected) in table {
        assert_eq!(shown, expected);
    }
}

/// Of five values beside five others that all lie above, 2 of 252 ways are as far apart; of three beside
/// three, 2 of 20, which is more than 1 in 20 whatever they are.
#[test]
fn the_legend_states_what_is_known() {
    let legend =
        |before: &[u64], after: &[u64]| Comparing::new(&sides([repeats(before), repeats(after)])).legend();
    let (low, high) = ([10, 11, 12, 13, 14], [20, 21, 22, 23, 24]);
    let test = "exact permutation test of the 3 figures that vary, Benjamini and Hochberg's correction";
    let significant =
        format!("* significant: of changes so marked 1 in 20 at most is expected to be chance ({test})");
    assert_eq!(legend(&low, &high), [significant]);
    assert_eq!(
        legend(&low, &[10, 11, 12, 13, 15]),
        [format!("No change is significant ({test}, error rate 1 in 20)")]
    );
    let few = "With so few repeats no change can be distinguished from chance: use 5 or more of each result \
        (--repeats)";
    assert_eq!(legend(&low[..3], &high[..3]), [few]);
    assert_eq!(legend(&low[..1], &high[..1]), ["? one repeat only: how much it varies is not known"]);
    let both = sides([repeats(&low), repeats(&high)]);
    let comparing = Comparing::new(&both);
    assert_eq!(comparing.cases(), [("p", "l")]);
    let median = &comparing.rows[0];
    assert_eq!(
        (median.figure.as_str(), median.shown(0), median.median(1)),
        ("ping.median", "12.0 ms (10.0 ms – 14.0 ms)".into(), "22.0 ms".into())
    );
    assert_eq!((median.shown(9), median.median(9)), ("–".into(), "–".into()));
    let one = sides([repeats(&low[..1]), repeats(&high)]);
    let change = Comparing::new(&one).rows[0].change(1).expect("both have it");
    assert_eq!(
        (change.percent.map(f64::round), change.significant),
        (Some(120.0), None),
        "of one repeat nothing is known"
    );
}

#[test]
fn cases_and_names_that_only_some_results_have() {
    let all = |cases: &[(&str, &str)]| {
        experiment(cases.iter().flat_map(|(p, l)| (0..2).map(|n| run(p, l, n, Some(5)))).collect())
    };
    let apart = |one: Experiment, other: Experiment| Comparing::new(&sides([one, other])).apart;
    let whole = [("p", "a"), ("p", "b"), ("q", "a"), ("q", "b")];
    assert_eq!(apart(all(&whole), all(&whole)), [""; 0]);
    assert_eq!(apart(all(&whole), all(&whole[..3])), ["The case q/b is in before only."]);
    assert_eq!(apart(all(&whole), all(&whole[..2])), ["The policy q is in before only."]);
    let many = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("p{n}")).collect();
        let mut experiment = all(&[("x", "a")]);
        for name in &names {
            let runs = (0..2).map(|n| run(name, "a", n, Some(5)));
            experiment.policies.push(PolicyRecord { name: name.clone(), ..PolicyRecord::default() });
            experiment.runs.extend(runs);
        }
        apart(experiment, all(&[("x", "a")]))
    };
    assert_eq!(many(2), ["The policies p0 and p1 are in before only."]);
    assert_eq!(many(8), ["The policies p0, p1, p2, p3, p4, p5, p6 and p7 are in before only."]);
    assert_eq!(many(10), ["The policies p0, p1, p2, p3, p4, p5, p6, p7 and 2 more are in before only."]);
}

/// The repeat in the middle represents a case; of an even number the lower one; lost requests count as the
/// longest.
#[test]
fn one_repeat_represents_a_case() {
    let typical = |all: &[Option<u64>]| {
        let of = experiment((0..).zip(all).map(|(n, ms)| run("p", "l", n, *ms)).collect());
        let shown: Vec<RunView<'_>> = Under::all(&of)[0].typical();
        shown[0].run.repeat
    };
    assert_eq!(typical(&[Some(30), Some(10), Some(20)]), 2);
    assert_eq!(typical(&[Some(30), Some(10), Some(20), Some(40)]), 2);
    assert_eq!(typical(&[None, Some(10), Some(20)]), 2);
    assert_eq!(typical(&[Some(5)]), 0);
    let of = repeats(&[30, 10]);
    let under = &Under::all(&of)[0];
    assert_eq!((under.probes(), under.groups(), under.title()), (vec!["ping"], vec!["upload"], "l"));
    assert_eq!(answers(&under.cases[0].1, "ping"), [30 * MS, 10 * MS]);
    assert_eq!(answers(&under.cases[0].1, "other"), [0; 0]);
}

#[test]
fn figures_in_words() {
    let table = [
        (written("ping.p95", -0.0125, "s", 3), "−12.5 ms"),
        (written("ping.p95", 0.0125, "s", 3), "12.5 ms"),
        (written("ping.p95", 0.0, "s", 3), written("ping.p95", 1e-12, "s", 3).as_str()),
        (written("up.rate", 1e6, "bit/s", 3), "1.00 Mbit/s"),
        (written("dsl.peak", 1500.0, "bytes", 3), "1.50 kB"),
        (written("ping.loss", 0.1, "", 3), "10.0 %"),
        (written("up.lost", 17.0, "", 3), "17"),
    ]
    .map(|(shown, expected)| (shown, expected.to_owned()));
    for (shown, expected) in table {
        assert_eq!(shown, expected);
    }
    let of = |all: &[f64]| spread("ping.mean", &Spread::new(all.to_vec(), "s").expect("values"));
    assert_eq!(
        [of(&[0.01]), of(&[0.01, 0.01]), of(&[0.01, 0.02, 0.03])],
        ["10.0 ms", "10.0 ms", "20.0 ms (10.0 ms – 30.0 ms)"]
    );
    // Fourteen letters have room beside a line.
    assert_eq!(label("fourteen chars", "f"), "fourteen chars");
    assert_eq!(label("fifteen letters", "f"), "f");
    assert_eq!(label("fifteen letters", "fifteen_letters"), "fifteen letters", "the name is no shorter");
    assert_eq!([label("", "name"), label("", "a name of many letters")], ["name", "a name of many letters"]);
    let probe = |title: &str, unit: &str| {
        called(&ProbeRecord {
            id: "p".into(),
            title: title.into(),
            unit: unit.into(),
            ..ProbeRecord::default()
        })
    };
    assert_eq!([probe("ping to b", "round trip"), probe("", "")], ["ping to b, round trip", "p"]);
}

/// What was found of a computer: every member of its document, as docs/doctor.md names them.
#[test]
fn what_doctor_found() {
    use tidegate_measure::doctor::{
        DeviceFacts, Diagnosis, EcnResult, Facts, FlowTableFacts, Inwards, ShaperClass, ShaperFacts,
    };
    let class = ShaperClass { id: "1:10".into(), is_leaf: true, packets_ever: Some(9) };
    let shaper =
        ShaperFacts { kind: "htb".into(), rate_bps: Some(5), classes: vec![class], ..ShaperFacts::default() };
    let device = DeviceFacts {
        name: "eth0".into(),
        mtu: 1500,
        shaper: Some(shaper),
        inwards: Inwards::Led("ifb0".into()),
        ..DeviceFacts::default()
    };
    let facts = Facts {
        devices: vec![device],
        flow_tables: vec![FlowTableFacts {
            name: "ft".into(),
            devices: vec!["eth0".into()],
            is_hardware: true,
        }],
        ecn: Some(EcnResult { host: "b".into(), sent: 1, answered: Some(2), quoted: vec![("c".into(), 3)] }),
        ..Facts::default()
    };
    let diagnosis = Diagnosis { version: "0.1.0".into(), facts, ..Diagnosis::default() };
    let text = tidegate_analysis::doctor::to_json(&diagnosis);
    let of: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let at = |pointer: &str| of.pointer(pointer).map(ToString::to_string);
    let table = [
        ("/tidegate_doctor", "2"),
        ("/facts/devices/0/name", "\"eth0\""),
        ("/facts/devices/0/mtu", "1500"),
        ("/facts/devices/0/ingress/redirected_to", "\"ifb0\""),
        ("/facts/devices/0/shaper/kind", "\"htb\""),
        ("/facts/devices/0/shaper/rate_bps", "5"),
        ("/facts/devices/0/shaper/classes/0/id", "\"1:10\""),
        ("/facts/devices/0/shaper/classes/0/packets_ever", "9"),
        ("/facts/flow_tables/0/is_hardware", "true"),
        ("/facts/ecn/quoted/0/1", "3"),
    ];
    for (pointer, expected) in table {
        assert_eq!(at(pointer).as_deref(), Some(expected), "{pointer}");
    }
}
