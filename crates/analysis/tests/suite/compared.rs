//! Results beside each other.

use crate::fixture::experiment::experiment;
use tidegate_analysis::experiment::{Comparing, Side, comparison_json};
use tidegate_measure::experiment::{Experiment, Lateness};

/// The fixture's three repeats three times: fewer than five show nothing significant.
fn repeated() -> Experiment {
    let mut all = experiment();
    let again = |times: u32| {
        all.runs.iter().cloned().map(move |mut run| {
            run.repeat += 3 * times;
            run
        })
    };
    let more: Vec<_> = again(1).chain(again(2)).collect();
    all.runs.extend(more);
    all
}

fn sides(change: impl FnOnce(&mut Experiment)) -> [Side; 2] {
    let mut other = repeated();
    change(&mut other);
    [("before", repeated()), ("after", other)]
        .map(|(label, experiment)| Side { label: label.into(), experiment })
}

/// A row's changes: `figure of policy/load: change`.
fn changes(sides: &[Side]) -> Vec<String> {
    let comparing = Comparing::new(sides);
    let shown = |row: &tidegate_analysis::experiment::ComparisonRow| {
        let change = row.change(1)?;
        let percent = change.percent.map(|percent| (percent * 10.0).round() / 10.0);
        Some(format!("{} of {}/{}: {percent:?} {:?}", row.figure, row.policy, row.load, change.significant))
    };
    comparing.rows.iter().filter_map(shown).collect()
}

#[test]
fn the_policies_of_one_result_are_compared_with_each_other() {
    let experiment = repeated();
    let sides = Side::policies(&experiment);
    let names: Vec<&str> = sides.iter().map(|side| side.label.as_str()).collect();
    let expected: Vec<&str> = experiment.policies.iter().map(|policy| policy.name.as_str()).collect();
    assert_eq!(names, expected);
    let comparing = Comparing::new(&sides);
    assert!(comparing.is_of_policies() && !comparing.rows.is_empty());
    assert_eq!(comparing.apart, Vec::<String>::new(), "that their commands differ is what is compared");
    for row in &comparing.rows {
        for (n, policy) in expected.iter().enumerate() {
            let values = experiment.case(policy, &row.load).and_then(|case| case.values(&row.figure).ok());
            let count = values.map_or(0, |(values, _)| values.len());
            assert_eq!(row.found[n].map_or(0, |found| found.count), count, "{}: {policy}", row.figure);
        }
    }
    assert!(!Comparing::new(&[Side { label: "a".into(), experiment }]).is_of_policies());
}

#[test]
fn the_same_result_differs_in_nothing() {
    let sides = sides(|_| {});
    let found = changes(&sides);
    assert_eq!(found.len(), 81, "{found:#?}");
    assert!(found.iter().all(|change| change.ends_with(": Some(0.0) Some(false)")), "{found:#?}");
    let comparing = Comparing::new(&sides);
    assert_eq!(comparing.apart.len(), 0);
}

#[test]
fn slower_than_chance_explains() {
    let sides = sides(|other| {
        for run in other.runs.iter_mut().filter(|run| run.policy == "fair" && run.load == "upload") {
            run.probes[0].answers.iter_mut().for_each(|(_, took)| *took = took.map(|took| took * 2));
            let lost = 40 + run.repeat as usize % 3;
            run.probes[1].answers.iter_mut().take(lost).for_each(|(_, took)| *took = None);
            run.transfers.iter_mut().for_each(|transfer| transfer.bytes += 40 * u64::from(run.repeat));
        }
    });
    let found = changes(&sides);
    let of = |figure: &str| {
        found
            .iter()
            .find_map(|change| change.strip_prefix(&format!("{figure} of fair/upload: ")))
            .expect(figure)
    };
    assert_eq!(of("dest1.median"), "Some(100.0) Some(true)");
    assert_eq!(of("dest2.loss"), "Some(10.7) Some(true)", "in points");
    assert_eq!(of("upload.rate"), "Some(0.0) Some(false)", "within the spread");
    assert!(
        found
            .iter()
            .filter(|change| !change.contains("fair/upload"))
            .all(|change| change.contains("Some(0.0)"))
    );
}

#[test]
fn differences_in_kind_are_reported() {
    let sides = sides(|other| {
        other.title = "Another line".into();
        other.policies.retain(|policy| policy.name != "tbf");
        other.policies[1].commands[0].1.push("tc qdisc add dev eth0 root pfifo".into());
        other.loads.retain(|load| load.name != "both");
        other.links[3].there = "1 Mbit/s".into();
        other.runs.retain(|run| run.repeat == 0 && run.policy != "tbf" && run.load != "both");
        other.runs.iter_mut().for_each(|run| run.window.1 = 15_000_000_000);
        other.runs[0].cut = true;
    });
    let comparing = Comparing::new(&sides);
    let expected = [
        "These are different scenarios: before is “A 4M/768k line <and> two targets” and after is “Another \
        line”.",
        "The policy tbf is in before only.",
        "The load both is in before only.",
        "The link dsl differs: in before 768 kbit/s, 8 ms, buffer 64 kB and back 4 Mbit/s, 8 ms, buffer \
        64 kB and in after 1 Mbit/s and back 4 Mbit/s, 8 ms, buffer 64 kB.",
        "The policy fair has other commands in after than in before.",
        "They were measured for different times: 30.0 s in before and 10.0 s in after.",
        "after has one repeat of each case, so how much figures vary is not known.",
        "In after 1 of 4 runs were stopped before their end.",
    ];
    assert_eq!(comparing.apart, expected);
    let json: serde_json::Value = serde_json::from_str(&comparison_json(&comparing)).expect("JSON");
    assert_eq!(json["differences"].as_array().map(Vec::len), Some(expected.len()));
    assert_eq!(json["rows"][0]["change"][0]["significant"], serde_json::Value::Null);
}

#[test]
fn of_three_results_those_are_named_whose_commands_differ() {
    let labelled = |label: &str, change: &dyn Fn(&mut Experiment)| {
        let mut experiment = repeated();
        change(&mut experiment);
        Side { label: label.to_owned(), experiment }
    };
    let other = |experiment: &mut Experiment| {
        let fair = experiment.policies.iter_mut().find(|policy| policy.name == "fair").expect("fair");
        fair.commands[0].1.push("tc qdisc add dev eth0 root pfifo".into());
    };
    let late = |experiment: &mut Experiment| {
        let late = Lateness { p99: Lateness::BELIEVED + 1, ..Lateness::default() };
        experiment.runs[0].lateness = Some(late);
    };
    let sides = [labelled("a", &|_| {}), labelled("b", &other), labelled("c", &late)];
    let found = Comparing::new(&sides).apart;
    assert_eq!(
        found.first().map(String::as_str),
        Some("The policy fair has other commands in b than in a and c.")
    );
    let busy = format!(
        "The machine was too busy in 1 of {} runs of c: what was measured is unreliable.",
        sides[2].experiment.runs.len()
    );
    assert_eq!(found.last(), Some(&busy));
}
