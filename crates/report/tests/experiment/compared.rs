//! Results beside each other.

use crate::fixture::experiment::experiment;
use tidegate_analysis::experiment::{Comparing, Side};
use tidegate_measure::experiment::Experiment;
use tidegate_report::experiment::{comparison_page, comparison_text};

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
    // The sentences are tested where they are made (crates/analysis/tests/suite/compared.rs).
    assert!(comparing.apart.len() >= 8, "{:?}", comparing.apart);
    let text = comparison_text(&comparing);
    for sentence in &comparing.apart {
        assert!(text.contains(sentence.as_str()), "{text}");
    }
    assert!(text.contains("? one repeat only") && !text.contains("tbf  "), "{text}");
    let page = comparison_page(&comparing);
    assert!(
        page.contains("The policy tbf is in before only.") && page.contains("A 4M/768k line &lt;and&gt;")
    );
}

#[test]
fn as_text() {
    let sides = sides(|other| {
        other.runs.retain(|run| run.load == "upload");
        for run in &mut other.runs {
            run.probes.truncate(1);
            run.probes[0].answers.iter_mut().for_each(|(_, took)| *took = took.map(|took| took * 9 / 10));
        }
    });
    let text = comparison_text(&Comparing::new(&sides));
    let expected = include_str!("../data/compared.txt");
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        let place = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/compared.txt");
        std::fs::write(place, &text).expect("the snapshot is written");
    } else {
        assert_eq!(text, expected, "\n{text}");
    }
}

#[test]
fn no_difference_is_reported_as_none() {
    let sides = sides(|_| {});
    let text = comparison_text(&Comparing::new(&sides));
    assert!(text.contains("No change is significant (exact permutation test of the "), "{text}");
}
