//! `tidegate compare`: results of real simulations beside each other, and files that are no results.

use crate::common;

use common::{Place, TIDEGATE, skip};
use std::path::Path;
use std::process::{Command, Output};

fn run(place: &Place, words: &[&str]) -> Output {
    Command::new(TIDEGATE).args(words).current_dir(&place.0).output().expect("tidegate runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The example of docs/results.md, carried out with these options into this file.
fn result(place: &Place, file: &str, options: &[&str]) {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/uplink.toml");
    let example = example.to_str().expect("a path");
    let output = run(place, &[&["sim", example, "-o", file], options].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn results_beside_each_other() {
    if skip() {
        return;
    }
    let place = Place::new("compare");
    result(&place, "a.json", &["--repeats", "2"]);
    result(&place, "again.json", &["--repeats", "2"]);
    result(&place, "short.json", &["--duration", "4s", "--policy", "none,fair"]);

    let same = run(&place, &["compare", "a.json", "again.json"]);
    let printed = text(&same.stdout);
    assert_eq!(
        (
            same.status.code(),
            printed.contains(
                "Differences between the \
    results"
            )
        ),
        (Some(0), false),
        "{printed}"
    );
    let changes = printed.lines().filter(|line| line.contains("ping.") || line.contains("upload."));
    let changed: Vec<&str> = changes.filter(|line| !line.ends_with("the same")).collect();
    assert_eq!(changed, Vec::<&str>::new(), "one seed, one result");

    let other = run(&place, &["compare", "a.json", "short.json", "--html", "page.html", "--json"]);
    assert_eq!(other.status.code(), Some(0), "{}", text(&other.stderr));
    let json: serde_json::Value = serde_json::from_slice(&other.stdout).expect("JSON");
    let apart: Vec<&str> = json["differences"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(serde_json::Value::as_str)
        .collect();
    let expected = [
        "The policy bucket is in a only.",
        "They were measured for different times: 10.0 s in a and 4.00 s in short.",
        "short has one repeat of each case, so how much figures vary is not known.",
    ];
    assert_eq!(apart, expected);
    let page = std::fs::read_to_string(place.0.join("page.html")).expect("the page");
    assert!(page.contains("results compared") && page.contains(expected[0]), "the page says it, too");
}

/// One result: its policies beside each other, against the first or the one that is named.
#[test]
fn the_policies_of_a_result() {
    if skip() {
        return;
    }
    let place = Place::new("compare-policies");
    result(&place, "a.json", &["--repeats", "4", "--policy", "none,bucket,fair"]);
    result(&place, "one.json", &["--policy", "none"]);
    let heads = |words: &[&str]| {
        let output = run(&place, words);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let printed = text(&output.stdout);
        let head = printed.lines().find(|line| line.starts_with("figure ")).unwrap_or_default();
        head.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(heads(&["compare", "a.json"]), ["figure", "none", "bucket", "change", "fair", "change"]);
    assert_eq!(
        heads(&["compare", "a.json", "--base", "fair", "-o", "p.html"]),
        ["figure", "fair", "none", "change", "bucket", "change"]
    );
    let page = std::fs::read_to_string(place.0.join("p.html")).expect("the page");
    assert!(page.contains("policies compared"), "the page has the policies, too");
    for (words, error) in [
        (&["compare", "one.json"][..], "one has one policy only"),
        (
            &["compare", "a.json", "--base", "x"],
            "nothing compared here is named `x`; the names are `none`, `bucket`, `fair`",
        ),
        (&["compare", "a.json", "-o", "no/p.html"], "there is no directory no"),
    ] {
        let output = run(&place, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(text(&output.stderr).contains(error), "{}", text(&output.stderr));
    }
}

#[test]
fn what_is_no_result() {
    if skip() {
        return;
    }
    let place = Place::new("compare-wrong");
    result(&place, "a.json", &["--policy", "none"]);
    result(&place, "b.json", &["--policy", "fair"]);
    place.file("no.json", "{ \"tidegate_trial\": 1 }");
    place.file("cut.json", "{ \"tidegate_experiment\": 1, ");
    let cases: [(&[&str], &str); 5] = [
        (
            &["a.json", "gone.json"],
            "tidegate compare: cannot read gone.json: there is no such file; check the path",
        ),
        (
            &["a.json", "no.json"],
            "no.json: tidegate_experiment: missing; this is a result of another command (tidegate_trial); a result is \
            written by `tidegate sim FILE -o \
            RESULT.json`",
        ),
        (&["a.json", "cut.json"], "cut.json: line 1, column 28: no valid JSON"),
        (
            &["a.json", "b.json"],
            "these results have no figure in common. The policy none is in a only. The policy fair is in b only.",
        ),
        (&["a.json"], "a has one policy only"),
    ];
    for (files, expected) in cases {
        let output = run(&place, &[&["compare"], files].concat());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
}
