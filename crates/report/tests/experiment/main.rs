//! An experiment's results: charts, pages, files.

#[path = "../common/browser.rs"]
mod browser;
mod compared;
#[path = "../../../analysis/tests/fixture/mod.rs"]
mod fixture;
mod hostile;
#[path = "../common/inert.rs"]
mod inert;
mod pictures;
mod seen;

use fixture::experiment::experiment;
use tidegate_analysis::experiment::to_json;
use tidegate_report::chart::{Theme, file};
use tidegate_report::experiment::charts;

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
