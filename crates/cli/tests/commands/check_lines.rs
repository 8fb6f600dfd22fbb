//! `tidegate check`: the line of a script for a finding, through here-documents, pipes, loops, functions and
//! `eval`.

use crate::check::{found, of_script, table, tidegate};
use crate::common;

use common::{Place, skip};
use serde_json::Value;

/// The commands of a batch that a script writes itself are in its lines, literally.
#[test]
fn commands_of_a_batch_inside_a_script_have_their_lines() {
    if skip() {
        return;
    }
    let root = "qdisc add dev eth0 root handle 1: htb default 20";
    let class = "class add dev eth0 parent 1: classid 1:20 htb rate 700kbit ceil 300kbit";
    let here = of_script(
        "here",
        &format!("IF=eth0\ntc -b - <<EOF\nqdisc add dev $IF root handle 1: htb\n# a remark\n{class}\nEOF\n"),
    );
    assert!(table(&here).contains("6 error R3 300kbit\n"), "{}", table(&here));
    let piped = of_script("piped", &format!("printf '%s\\n' '{root}' '{class}' | tc -b -\n"));
    assert!(table(&piped).contains("2 error R3 300kbit\n"), "{}", table(&piped));
    // Variables of the shell may replace some of its words, and the line that is refused is found by its
    // number.
    let filled = of_script(
        "filled",
        "IF=eth0\ntc -b - <<EOF\nqdisc add dev $IF root handle 1: htb default 20\n\
         class add dev ${IF} parent 1: classid 1:20 htb rate 5mbit ceil 3mbit\n\
         class add dev $IF parent 1: classid 1:30 htb rate 5mbitt\nEOF\n",
    );
    assert!(table(&filled).contains("5 error R3 3mbit\n"), "{}", table(&filled));
    assert!(table(&filled).contains("6 error C1 rate\n"), "{}", table(&filled));
    // What a line before was warned of is not why a later one is refused.
    let wrong = of_script(
        "warned",
        &format!("tc -b - <<EOF\n{root}\n{class}\nqdisc add dev eth0 parent 1:20 nosuch\nEOF\n"),
    );
    let refused = wrong.iter().find(|one| one["rule"] == "C1").expect("is found");
    assert_eq!(refused["what"], "the kernel refuses this: Specified qdisc kind is unknown", "{refused}");
    // The output of a loop is nowhere literal: its line is known, and nothing in it is changed.
    let looped = of_script(
        "looped",
        &format!(
            "for r in 300kbit; do echo '{root}'; echo \"{}\"; done | tc -b -\n",
            class.replace("300kbit", "$r")
        ),
    );
    let found = looped.iter().find(|one| one["rule"] == "R3").expect("is found");
    assert_eq!(
        (&found["place"]["line"], found["fix"]["edits"].as_array().map_or(0, Vec::len)),
        (&2.into(), 0),
        "{found}"
    );
}

/// The commands of a batch that a script's tc reads from a file are in that file, and nothing in it is
/// changed. What is called within `$(…)` has its line.
#[test]
fn commands_of_a_batch_file_and_of_substitutions_have_their_lines() {
    if skip() {
        return;
    }
    let place = Place::new("batch-file");
    let batch = "class add dev eth0 parent 1: classid 1:20 htb rate 700kbit ceil 300kbit\n\
                 class add dev eth0 parent 1: classid 1:30 htb rate 5mbitt\n";
    place.file("own.tc", batch);
    let made = "cd \"${0%/*}\"\ntc qdisc add dev eth0 root handle 1: htb default 20\ntc -b own.tc\n\
                x=$(tc class add dev eth0 parent 1: classid 1:40 htb rate 6mbitt)\n\
                if ! y=\"`tc class add dev eth0 parent 1: classid 1:50 htb rate 7mbitt`\"; then :; fi\n\
                tc class add dev eth0 parent 1: classid 1:60 htb rate 1mbit\n";
    let found = found(&place.file("x.sh", made));
    let at = |rule: &str| {
        let of_rule = found.iter().filter(|one| one["rule"] == rule);
        let place = |one: &Value| {
            let edits = one["fix"]["edits"].as_array().map_or(0, Vec::len);
            let file = one["place"]["file"].as_str().unwrap_or_default();
            format!("{}:{} {edits}", file.rsplit('/').next().unwrap_or_default(), one["place"]["line"])
        };
        of_rule.map(place).collect::<Vec<_>>()
    };
    assert_eq!(at("R3"), ["own.tc:1 0"], "{found:?}");
    assert_eq!(at("C1"), ["x.sh:4 0", "x.sh:5 0", "own.tc:2 0"], "{found:?}");
}

/// A finding of a call through functions is at its caller, with the way to the tool; text that `eval` reads
/// belongs to its line.
#[test]
fn calls_through_functions_and_eval_have_their_lines() {
    if skip() {
        return;
    }
    let text = "TC=tc
t() { $TC \"$@\"; }
leaf() {
  t qdisc add dev eth0 \"$@\"
}
t qdisc add dev eth0 root handle 1: htb default 20
t class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
t class add dev eth0 parent 1:1 classid 1:20 htb rate 7mbit ceil 3mbit
eval \"$TC class add dev eth0 parent 1:1 classid 1:10 htb rate 700kbit ceil 200kbit\"
leaf parent 1:20 pfifo limit 1000
";
    let findings = of_script("frames", text);
    let one = |rule: &str, line: u64| {
        let it = findings.iter().find(|one| one["rule"] == rule && one["place"]["line"] == line);
        it.unwrap_or_else(|| panic!("{rule} at {line}: {}", table(&findings)))
    };
    let way = |finding: &Value| -> String {
        let frames = finding["frames"].as_array().expect("a list").iter();
        frames
            .map(|frame| format!("{}:{} ", frame["function"].as_str().unwrap_or_default(), frame["line"]))
            .collect()
    };
    let edits = |finding: &Value| finding["fix"]["edits"].as_array().map_or(0, Vec::len);
    assert_eq!((way(one("R3", 9)).as_str(), edits(one("R3", 9))), ("t:3 ", 1));
    assert_eq!((way(one("R13", 11)).as_str(), edits(one("R13", 11))), ("leaf:5 t:3 ", 1));
    // Which word of the text `eval` is given must change, and whether it may, is not known.
    let eval = one("R3", 10);
    assert_eq!((way(eval).as_str(), edits(eval)), ("", 0));
    assert!(eval["fix"]["what"].as_str().is_some_and(|what| what.contains("(by hand: `700kbit`")), "{eval}");
    let place = Place::new("check-frames-text");
    let script = place.script("policy.sh", format!("#!/bin/sh\n{text}"));
    let script = script.to_str().expect("a name");
    let (_, stdout, _) = tidegate(&[script]);
    assert!(stdout.contains("= by way of ") && stdout.contains("policy.sh:5 (leaf), "), "{stdout}");
    // SARIF's stacks begin at the innermost call.
    let sarif: Value = serde_json::from_str(&tidegate(&["--sarif", script]).1).expect("is JSON");
    let results = sarif["runs"][0]["results"].as_array().expect("a list");
    let long =
        results.iter().find(|one| one["ruleId"] == "R13" && !one["stacks"].is_null()).expect("is found");
    let frames = long["stacks"][0]["frames"].as_array().expect("a list").iter().map(|frame| {
        let at = &frame["location"];
        let line = &at["physicalLocation"]["region"]["startLine"];
        format!("{}:{line} ", at["logicalLocations"][0]["name"].as_str().unwrap_or_default())
    });
    assert_eq!(frames.collect::<String>(), "t:3 leaf:5 ");
}

/// The loopback's frames are longer than quanta that are called large: no bound contradicts another.
#[test]
fn a_remedy_for_a_quantum_can_be_carried_out() {
    if skip() {
        return;
    }
    let findings = of_script(
        "quantum",
        "tc qdisc add dev lo root handle 1: htb default 11\n\
         tc class add dev lo parent 1: classid 1:10 htb rate 240kbit\n\
         tc class add dev lo parent 1: classid 1:11 htb rate 240kbit\n",
    );
    let remedies: Vec<&str> = findings
        .iter()
        .filter(|one| one["rule"] == "R4")
        .filter_map(|one| one["fix"]["what"].as_str())
        .collect();
    assert!(
        !remedies.is_empty() && remedies.iter().all(|remedy| remedy.ends_with("none below 65550")),
        "{remedies:?}"
    );
}
