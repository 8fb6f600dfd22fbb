//! `tidegate gym`: the same result on any number of processors, pages with reasons, words for wrong input.

use crate::common;

use common::{Place, TIDEGATE, skip};
use std::fs;
use std::process::{Command, Output};

fn tidegate(place: &Place, words: &[&str]) -> Output {
    Command::new(TIDEGATE).args(words).current_dir(&place.0).output().expect("tidegate runs")
}

/// A short visit: one line, one load, slowed down.
const SHORT: [&str; 10] =
    ["--lines", "1", "--loads", "up", "--mean", "500kbit", "--duration", "1", "--traces", "lte"];

#[test]
fn the_result_is_the_same_on_one_processor_and_on_three() {
    if skip() {
        return;
    }
    let place = Place::new("gym");
    let with = |jobs: &str| {
        let output = tidegate(&place, &[&["gym", "--json", "--jobs", jobs], &SHORT[..]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let one = with("1");
    assert_eq!(one, with("3"));
    let document: serde_json::Value = serde_json::from_str(&one).expect("JSON");
    let names: Vec<&str> =
        document["controllers"].as_array().expect("names").iter().filter_map(|name| name.as_str()).collect();
    let expected =
        ["tidegate", "cake-autorate", "sqm-autorate", "known", "fixed:0.5", "fixed:0.75", "fixed:1"];
    assert_eq!(names, expected);
    assert_eq!(document["rows"][0]["scores"].as_array().map(Vec::len), Some(7));
}

#[test]
fn a_page_shows_every_decision_with_its_reason() {
    if skip() {
        return;
    }
    let place = Place::new("gym-page");
    let output =
        tidegate(&place, &[&["gym", "tidegate", "-o", "gym.html", "-o", "gym.json"], &SHORT[..]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = fs::read_to_string(place.0.join("gym.html")).expect("a page");
    let document: serde_json::Value =
        serde_json::from_slice(&fs::read(place.0.join("gym.json")).expect("a document")).expect("JSON");
    let record = &document["details"][0]["records"][0]["record"];
    let decisions = record["decisions"].as_array().expect("decisions");
    assert!(decisions.len() > 5 && page.contains("Case: lte-1/up"));
    for decision in decisions {
        assert!(page.contains(decision["words"].as_str().expect("words")), "{decision}");
    }
    // The same command gives the same bytes, the page too.
    let again = tidegate(&place, &[&["gym", "tidegate", "-o", "again.html"], &SHORT[..]].concat());
    assert!(again.status.success());
    assert_eq!(fs::read_to_string(place.0.join("again.html")).expect("a page"), page);
}

#[test]
fn recordings_of_a_directory_are_lines_and_a_configuration_is_data() {
    if skip() {
        return;
    }
    let place = Place::new("gym-files");
    fs::create_dir(place.0.join("lines")).expect("a directory");
    fs::write(place.0.join("lines/slow.csv"), "time,rate_kbit\n0,600\n5,300\n").expect("a recording");
    fs::write(place.0.join("lines/fast.txt"), "0 1\n5 2\n10 1\n").expect("a recording");
    fs::write(place.0.join("config.sh"), "min_dl_shaper_rate_kbps=50\ntouch canary\n").expect("a file");
    fs::write(place.0.join("wrong.csv"), "time,rate_kbit\n0,x\n").expect("a recording");
    let words = ["gym", "fixed:0.8", "--loads", "down", "--duration", "1", "--mean", "0", "--cases"];
    let output = tidegate(&place, &[&words[..], &["--traces", "lines"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("fast/down") && text.contains("slow/down"), "{text}");
    for (words, expected) in [
        (vec!["gym", "--cake-config", "config.sh"], "line 2: `touch canary` is no setting"),
        (vec!["gym", "tidegate", "--cake-config", "lines/slow.csv"], "is no setting"),
        (vec!["gym", "--traces", "wrong.csv"], "wrong.csv: line 2"),
        (vec!["gym", "--traces", "nosuch"], "no such preset; presets are lte, 5g-driving"),
        (vec!["gym", "nosuch"], "unknown controller \"nosuch\"; there are tidegate, cake-autorate"),
        (vec!["gym", "--loads", "much"], "unknown load \"much\"; there are up, down, both"),
        (
            vec!["gym", "--detail", "nosuch"],
            "--detail nosuch: there is no such case; cases are called lte-1/up",
        ),
    ] {
        let output = tidegate(&place, &words);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), text.contains(expected)), (Some(2), true), "{words:?}: {text}");
    }
    assert!(!place.0.join("canary").exists());
}
