//! An experiment as JSON, and back.

use crate::fixture::experiment::experiment;
use tidegate_analysis::experiment::{from_json, to_json};
use tidegate_measure::experiment::Experiment;

#[test]
fn json_round_trip() {
    let experiment = experiment();
    let written = to_json(&experiment);
    assert!(from_json(&written).expect("what was written is read") == experiment, "something was lost");
    assert_eq!(from_json(&to_json(&Experiment::default())), Ok(Experiment::default()), "an empty one too");
}

/// Form 1 had `again` and `answers` for `command` and `replies`.
#[test]
fn old_results_are_read() {
    let experiment = experiment();
    let old = to_json(&experiment)
        .replace("\"tidegate_experiment\": 2", "\"tidegate_experiment\": 1")
        .replace("\"command\": ", "\"again\": ")
        .replace("\"replies\": ", "\"answers\": ");
    assert!(from_json(&old).expect("an old result is read") == experiment, "something was lost");
}

#[test]
fn json_refusals_name_the_place() {
    let written = to_json(&experiment());
    let cases = [
        ("{}", "tidegate_experiment: missing"),
        (
            "{\"tidegate_experiment\": 3}",
            "tidegate_experiment: form 3, where this version reads forms 1 to 2",
        ),
        (
            &written.replacen("\"step_ns\": 100000000", "\"step_ns\": 0", 1),
            "runs[0].step_ns: a step of no length",
        ),
        (
            &written.replacen("\"dscp\": 0", "\"dscp\": 300", 1),
            "runs[0].probes[0].dscp: a number of at most 255 expected, found 300",
        ),
        (
            &written.replacen("[0.15,0.22]", "[0.15]", 1),
            "comparisons[0].within: a pair expected, found a list of 1",
        ),
        (
            &written.replacen("\"gated\": true", "\"gated\": 1", 1),
            "comparisons[1].gated: true or false expected, found 1",
        ),
    ];
    for (text, expected) in cases {
        let output = from_json(text).expect_err(expected).to_string();
        assert_eq!(output, format!("{expected}; a result is written by `tidegate sim FILE -o RESULT.json`"));
    }
}
