//! A trial as JSON, and back.

use crate::fixture::trial::trial;
use tidegate_analysis::trial::{from_json, to_json as json};
use tidegate_measure::trial::TrialDocument;

#[test]
fn json_round_trip() {
    let trial = trial();
    let written = json(&trial);
    assert_eq!(from_json(&written).expect("what was written is read"), trial);
    assert_eq!(from_json(&json(&TrialDocument::default())), Ok(TrialDocument::default()), "an empty one too");
    let flat = written.lines().find(|line| line.contains("\"tokens_us\": [")).expect("series");
    assert!(flat.trim_end().ends_with("],"), "series stand on one line");
}

/// Form 1 had `again` and `answers` for `command` and `replies`.
#[test]
fn old_trials_are_read() {
    let trial = trial();
    let old = json(&trial)
        .replace("\"tidegate_trial\": 2", "\"tidegate_trial\": 1")
        .replace("\"command\": ", "\"again\": ")
        .replace("\"replies\": ", "\"answers\": ");
    assert_eq!(from_json(&old).expect("an old trial is read"), trial);
}

#[test]
fn json_refusals_name_the_place() {
    let written = json(&trial());
    let cases = [
        ("", "line 1, column 0: no valid JSON (EOF while parsing a value)"),
        ("[]", "the document: an object expected, found a list of 0"),
        ("{}", "tidegate_trial: missing"),
        ("{\"tidegate_trial\": 7}", "tidegate_trial: form 7, where this version reads forms 1 to 2"),
        (
            &written.replacen("\"seed\": 1", "\"seed\": -1", 1),
            "seed: a whole number of at least 0 expected, found -1",
        ),
        (
            &written.replacen("\"step_ns\": 100000000", "\"step_ns\": 0", 1),
            "runs[0].step_ns: a step of no length",
        ),
        (
            &written.replacen("[3000000,31", "[true,31", 1),
            "runs[0].probes[0].replies[0][0]: a whole number of at least 0 expected, found true",
        ),
        (
            &written.replacen("\"rate_bits\": 1500000", "\"rate_bits\": \"x\"", 1),
            "tree[1].rate_bits: a whole number of at least 0 expected, found \"x\"",
        ),
        (&written.replacen("\"load\"", "\"lode\"", 1), "runs[0].load: missing"),
    ];
    for (text, expected) in cases {
        let output = from_json(text).expect_err(expected).to_string();
        assert_eq!(output, format!("{expected}; a trial is written by `tidegate try SCRIPT --json`"));
    }
}
