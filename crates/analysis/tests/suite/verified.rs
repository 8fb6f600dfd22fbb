//! A load with and without a policy, in turns: each row's figures and verdict.

use tidegate_analysis::verify::{ChangeVerdict, json, rows};
use tidegate_measure::experiment::{
    Experiment, LoadRecord, PolicyRecord, ProbeRecord, RunRecord, TransferRecord,
};

const MS: u64 = 1_000_000;

/// Rounds of a ping and an upload: milliseconds and bytes of each, before and after.
fn experiment(rounds: &[[(u64, u64); 2]]) -> Experiment {
    let run = |policy: &str, repeat: usize, (ms, bytes): (u64, u64)| RunRecord {
        policy: policy.into(),
        load: "up".into(),
        repeat: u32::try_from(repeat).expect("small"),
        window: (0, 1_000 * MS),
        step_ns: 100 * MS,
        probes: vec![ProbeRecord {
            id: "ping".into(),
            answers: vec![(0, Some(ms * MS))],
            ..ProbeRecord::default()
        }],
        transfers: vec![TransferRecord { id: "upload-1".into(), bytes, ..TransferRecord::default() }],
        ..RunRecord::default()
    };
    let runs = rounds
        .iter()
        .enumerate()
        .flat_map(|(n, [before, after])| [run("before", n, *before), run("after", n, *after)]);
    let policy = |name: &str| PolicyRecord { name: name.into(), ..PolicyRecord::default() };
    Experiment {
        policies: vec![policy("before"), policy("after")],
        loads: vec![LoadRecord { name: "up".into(), ..LoadRecord::default() }],
        runs: runs.collect(),
        ..Experiment::default()
    }
}

/// `figure: before → after, change: verdict`.
fn lines_of(experiment: &Experiment) -> Vec<String> {
    let row = |row: &tidegate_analysis::verify::VerifyRow| {
        let [before, after] = [row.paired.first, row.paired.second].map(|number| row.shown(number));
        format!("{}: {before} → {after}, {}: {}", row.figure, row.change(), row.verdict().word())
    };
    rows(experiment).iter().map(row).collect()
}

/// Student's t of two degrees of freedom is 4.303: differences of −80, −90 and −100 ms are −90 ± 24.8 ms, as
/// their standard deviation is 10 ms.
#[test]
fn three_rounds() {
    let of = experiment(&[
        [(100, 125_000), (20, 100_000)],
        [(110, 125_000), (20, 101_000)],
        [(120, 125_000), (20, 102_000)],
    ]);
    let expected = [
        "ping.median: 110 ms → 20.0 ms, −90.0 ms (−115 ms to −65.2 ms): better",
        "ping.p95: 110 ms → 20.0 ms, −90.0 ms (−115 ms to −65.2 ms): better",
        "ping.loss: 0.0 % → 0.0 %, 0.0 %: the same",
        // −25,000, −24,000 and −23,000 bytes a second: 0.192 ± 0.0199 Mbit/s less.
        "upload.rate: 1.00 Mbit/s → 808 kbit/s, −192 kbit/s (−212 kbit/s to −172 kbit/s): cost",
    ];
    assert_eq!(lines_of(&of), expected);
    let document = json(&of);
    assert_eq!(document.as_array().map(Vec::len), Some(4));
    let row = &document[0];
    let number = |name: &str| (row[name].as_f64().expect(name) * 1e6).round();
    assert_eq!(
        (&row["load"], &row["figure"], &row["unit"], &row["rounds"], &row["verdict"]),
        (&"up".into(), &"ping.median".into(), &"s".into(), &3.into(), &"better".into())
    );
    let found = ["without", "with", "difference", "low", "high"].map(number);
    assert_eq!(found, [110_000.0, 20_000.0, -90_000.0, -114_841.0, -65_159.0]);
}

#[test]
fn verdicts() {
    let verdicts_of = |rounds: &[[(u64, u64); 2]]| -> Vec<ChangeVerdict> {
        rows(&experiment(rounds)).iter().map(|row| row.verdict()).collect()
    };
    let [better, worse, costs, same, slight, unsure, untested] = [
        ChangeVerdict::Better,
        ChangeVerdict::Worse,
        ChangeVerdict::Costs,
        ChangeVerdict::Same,
        ChangeVerdict::Slight,
        ChangeVerdict::Unsure,
        ChangeVerdict::Untested,
    ];
    type Rounds = [[(u64, u64); 2]];
    let cases: [(&Rounds, [ChangeVerdict; 4]); 7] = [
        (&[[(10, 9), (20, 9)], [(10, 9), (20, 9)]], [worse, worse, same, same]),
        (&[[(10, 9), (10, 19)], [(10, 9), (10, 19)]], [same, same, same, better]),
        // Sure alone, at 3 %; of four figures one may be like that by chance.
        (&[[(10, 9), (20, 9)], [(10, 9), (21, 9)]], [unsure, unsure, same, same]),
        // 4 % of a time, half a percent of a rate.
        (&[[(100, 999), (104, 995)], [(100, 999), (104, 995)]], [slight, slight, same, slight]),
        (&[[(20, 19), (10, 9)], [(20, 19), (18, 17)]], [unsure, unsure, same, unsure]),
        (&[[(20, 19), (10, 9)], [(20, 19), (10, 9)]], [better, better, same, costs]),
        // One round shows nothing of how much rounds differ.
        (&[[(20, 19), (10, 9)]], [untested, untested, untested, untested]),
    ];
    for (rounds, expected) in cases {
        assert_eq!(verdicts_of(rounds), expected, "{rounds:?}");
    }
    let one = lines_of(&experiment(&[[(10, 125_000), (15, 250_000)]]));
    assert_eq!(one[0], "ping.median: 10.0 ms → 15.0 ms, +5.00 ms: one round");
    assert_eq!(one[3], "upload.rate: 1.00 Mbit/s → 2.00 Mbit/s, +1.00 Mbit/s: one round");
    let [_, second] = &lines_of(&experiment(&[[(10, 1), (20, 1)], [(10, 1), (21, 1)]]))[..2] else {
        panic!("two rows")
    };
    assert_eq!(second, "ping.p95: 10.0 ms → 20.5 ms, +10.5 ms (+4.15 ms to +16.9 ms): not significant");
}

/// A round that lacks a run or an answer does not count for what it lacks.
#[test]
fn rounds_that_lack_something() {
    let mut of = experiment(&[[(100, 9), (20, 9)], [(100, 9), (20, 9)], [(100, 9), (20, 9)]]);
    of.runs.remove(5);
    of.runs[0].probes[0].answers[0].1 = None;
    let rounds: Vec<(String, usize)> =
        rows(&of).into_iter().map(|row| (row.figure, row.paired.rounds)).collect();
    let expected = [("ping.median", 1), ("ping.p95", 1), ("ping.loss", 2), ("upload.rate", 2)];
    assert_eq!(rounds, expected.map(|(name, count)| (name.to_owned(), count)));
    of.policies.truncate(1);
    assert_eq!(rows(&of), [], "nothing to compare it with");
}

/// Where one-way delays are known, they are given with the round trip, and not as probes of their own.
#[test]
fn one_way_figures_are_with_their_probe() {
    let mut of = experiment(&[[(100, 9), (20, 9)], [(100, 9), (20, 9)]]);
    for run in &mut of.runs {
        let took = run.probes[0].answers[0].1.map(|took| took / 4);
        run.probes[0].there = vec![took];
        for way in ["up", "down", "other"] {
            let probe = ProbeRecord { id: format!("ping-{way}"), ..run.probes[0].clone() };
            run.probes.push(ProbeRecord { there: Vec::new(), ..probe });
        }
    }
    let names: Vec<String> =
        lines_of(&of).into_iter().filter(|row| row.contains(".p95") || row.contains("-p95")).collect();
    let expected = [
        "ping.p95: 100 ms → 20.0 ms, −80.0 ms: better",
        "ping.there-p95: 25.0 ms → 5.00 ms, −20.0 ms: better",
        "ping.back-p95: 75.0 ms → 15.0 ms, −60.0 ms: better",
        "ping-other.p95: 100 ms → 20.0 ms, −80.0 ms: better",
    ];
    assert_eq!(names, expected);
}
