//! What becomes of an experiment: JSON and back.

#[path = "../common/browser.rs"]
mod browser;
mod compared;
mod fixture;
mod hostile;
#[path = "../common/inert.rs"]
mod inert;
#[path = "../common/noise.rs"]
mod noise;
mod pictures;
mod seen;

use fixture::experiment;
use tidegate_analysis::experiment::{from_json, to_json};
use tidegate_measure::experiment::Experiment;
use tidegate_report::chart::{Theme, file};
use tidegate_report::experiment::charts;

#[test]
fn json_round_trip() {
    let experiment = experiment();
    let written = to_json(&experiment);
    assert!(from_json(&written).expect("what was written is read") == experiment, "something was lost");
    assert_eq!(from_json(&to_json(&Experiment::default())), Ok(Experiment::default()), "an empty one too");
}

#[test]
fn json_refusals_name_the_place() {
    let written = to_json(&experiment());
    let cases = [
        ("{}", "tidegate_experiment: missing"),
        ("{\"tidegate_experiment\": 2}", "tidegate_experiment: form 2, where this version reads form 1"),
        (&written.replacen("\"step_ns\": 100000000", "\"step_ns\": 0", 1), "runs[0].step_ns: a step of no length"),
        (
            &written.replacen("\"dscp\": 0", "\"dscp\": 300", 1),
            "runs[0].probes[0].dscp: a number of at most 255 expected, found 300",
        ),
        (&written.replacen("[0.15,0.22]", "[0.15]", 1), "comparisons[0].within: a pair expected, found a list of 1"),
        (
            &written.replacen("\"gated\": true", "\"gated\": 1", 1),
            "comparisons[1].gated: true or false expected, found 1",
        ),
    ];
    for (text, expected) in cases {
        let told = from_json(text).expect_err(expected).to_string();
        assert_eq!(told, format!("{expected}; a result is written by `tidegate sim FILE -o RESULT.json`"));
    }
}

#[test]
fn charts_have_names_and_marks() {
    let room = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("experiment");
    std::fs::create_dir_all(&room).expect("target/tmp is writable");
    let charts = charts(&experiment());
    let names: Vec<&str> = charts.iter().map(|(name, _)| name.as_str()).collect();
    for expected in [
        "topology",
        "summary-dest1",
        "summary-upload",
        "sheet",
        "upload-dest2-time",
        "upload-dest2-distribution",
        "both-waiting-dsl-down",
        "both-none-download",
        "upload-fair-waiting-gateway-ppp0",
        "upload-none-windows",
        "both-tbf-pingexp",
    ] {
        assert!(names.contains(&expected), "{expected}: {names:?}");
    }
    for (name, drawing) in &charts {
        let drawn = file(drawing, 760.0, Theme::Light);
        for wrong in ["NaN", "inf", "calc(", "var(", "%\""] {
            assert!(!drawn.contains(wrong), "{name}: {wrong}");
        }
        assert!(drawn.contains("class=\"mark"), "{name} has no marks");
        std::fs::write(room.join(format!("{name}.svg")), drawn).expect("target/tmp is writable");
    }
    std::fs::write(room.join("experiment.json"), to_json(&experiment())).expect("target/tmp is writable");
}
