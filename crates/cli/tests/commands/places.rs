//! The places of findings of `check`: at the words that people wrote, through functions, variables and files.

use crate::common;

use common::{Place, TIDEGATE};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// What `tidegate check` prints.
fn check(args: &[&str]) -> String {
    let output = Command::new(TIDEGATE).arg("check").args(args).output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn arguments_of_functions_and_variables_lead_to_where_they_are_given() {
    let place = Place::new("check-arguments");
    place.file("shaper.conf", "DEV=eth0\nUP=800kbps\n");
    let script = place.script(
        "shaper.sh",
        "#!/bin/sh
. \"$(dirname \"$0\")/shaper.conf\"
leaf() {
    local id=$1 limit=$2
    tc class add dev $DEV parent 1: classid 1:$id htb rate $UP
    tc qdisc add dev $DEV parent 1:$id pfifo limit $limit
}
tc qdisc add dev $DEV root handle 1: htb default 20
leaf 10 100
leaf 20 3
",
    );
    let script = script.to_str().expect("a name");
    let report: Value = serde_json::from_str(&check(&["--json", script])).expect("is JSON");
    let findings = report["findings"].as_array().expect("a list");
    let at = |place: &Value| {
        let file = Path::new(place["file"].as_str().unwrap_or_default()).file_name().unwrap_or_default();
        format!("{}:{}", file.to_string_lossy(), place["line"])
    };
    let all =
        |places: &Value| places.as_array().expect("a list").iter().map(at).collect::<Vec<_>>().join(" ");
    let lines_of = |rule: &str| -> Vec<String> {
        let of_rule = findings.iter().filter(|finding| finding["rule"] == rule);
        let output_of = |finding: &Value| {
            let edits = finding["fix"]["edits"].as_array().map_or(0, Vec::len);
            let (used, called) = (all(&finding["used_in"]), all(&finding["called_from"]));
            format!("{} used [{used}] called [{called}] {edits} edits", at(&finding["place"]))
        };
        of_rule.map(output_of).collect()
    };
    // One line sets it, two calls come to use it; `--fix` changes it where it is set.
    assert_eq!(lines_of("R17"), ["shaper.conf:2 used [shaper.sh:9 shaper.sh:10] called [] 1 edits"]);
    // A limit is its caller's word.
    assert_eq!(lines_of("R13"), ["shaper.sh:10 used [] called [] 0 edits"]);
    // The number of a class is only a part of a word.
    assert_eq!(lines_of("R23"), ["shaper.sh:9 used [] called [] 0 edits"]);
    let sarif: Value = serde_json::from_str(&check(&["--sarif", script])).expect("is JSON");
    let results = sarif["runs"][0]["results"].as_array().expect("a list");
    let units = results.iter().find(|one| one["ruleId"] == "R17").expect("is found");
    assert_eq!(units["relatedLocations"][0]["physicalLocation"]["region"]["startLine"], 9);
    assert_eq!(units["relatedLocations"][0]["message"]["text"], "used here");
    // A comment in the function silences it for all calls.
    let quiet = std::fs::read_to_string(script)
        .expect("the script")
        .replace("limit $limit", "limit $limit # tidegate: allow R13");
    let quiet = place.script("quiet.sh", quiet);
    let report: Value =
        serde_json::from_str(&check(&["--json", quiet.to_str().expect("a name")])).expect("is JSON");
    assert_eq!(report["suppressed"], 1);
}

/// Of calls that share a command, a refusal names the one whose words were refused.
#[test]
fn a_refusal_in_a_function_is_of_the_call_that_was_refused() {
    let place = Place::new("check-refused-call");
    let script = place.script(
        "calls.sh",
        "#!/bin/sh
add() {
    tc filter add dev eth0 parent 1: protocol $3 ${4:+prio $4} u32 match ip dport $1 0xffff flowid 1:$2
}
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 9mbit
add 22 10 ip 1
add 80 10 ip 2
add 443 10 ipv6 2
add 444 10 ip 9999999
add 445 10 ip
",
    );
    let report: Value =
        serde_json::from_str(&check(&["--json", script.to_str().expect("a name")])).expect("is JSON");
    let refused =
        report["findings"].as_array().expect("a list").iter().filter(|finding| finding["rule"] == "C1");
    let calls = |finding: &Value| -> Vec<u64> {
        let from = finding["called_from"].as_array().expect("a list").iter();
        let lines: Vec<u64> = from.filter_map(|place| place["line"].as_u64()).collect();
        if lines.is_empty() { finding["place"]["line"].as_u64().into_iter().collect() } else { lines }
    };
    assert_eq!(refused.map(calls).collect::<Vec<_>>(), [[9], [10]], "{report}");
}
