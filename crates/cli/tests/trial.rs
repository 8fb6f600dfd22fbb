//! `tidegate try`, end to end: the examples, and scripts that are wrong.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const TIDEGATE: &str = env!("CARGO_BIN_EXE_tidegate");

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// True, with the reason printed, where no sandbox can be made.
fn skip() -> bool {
    match tidegate::capture::available(Path::new(TIDEGATE)) {
        Ok(()) => false,
        Err(error) => {
            eprintln!("SKIPPED: {error}");
            true
        }
    }
}

fn run(script: &Path, options: &[&str]) -> Output {
    Command::new(TIDEGATE).arg("try").arg(script).args(options).output().expect("tidegate runs")
}

fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("valid JSON")
}

/// `[without, with]` the policy, under the load: the ping's 95th percentile in ms and the goodput in kbit/s.
fn loaded(document: &serde_json::Value) -> [(f64, f64); 2] {
    [false, true].map(|policy| {
        let runs = document["runs"].as_array().expect("runs");
        let run = runs.iter().find(|run| run["load"] != "empty" && run["policy"] == policy).expect("a run");
        let figure = |value: &serde_json::Value| value.as_f64().expect("a figure");
        (figure(&run["ping"]["rtt"]["p95_ms"]), figure(&run["goodput_up_bits"]) / 1000.0)
    })
}

/// Kettlewell's measurement (2004): a bloated 128 kbit/s uplink, and his token bucket: 8.35 times shorter on average, no slower.
#[test]
fn the_modem_example_tells_kettlewells_story() {
    if skip() {
        return;
    }
    let options = ["--up", "128kbit", "--down", "2mbit", "--json"];
    let first = run(&example("modem.sh"), &options);
    let [(before, sent), (after, shaped)] = loaded(&json(&first));
    assert!((1350.0..1650.0).contains(&before) && after < 200.0, "{before} ms, {after} ms");
    assert!((shaped / sent - 1.0).abs() < 0.05, "{sent} kbit/s, {shaped} kbit/s");
    assert_eq!(first.stdout, run(&example("modem.sh"), &options).stdout, "the same seed gives the same bytes");
}

/// The web server's class is held to its 300 kbit/s of frames: 1448 bytes of payload in each 1514.
#[test]
fn the_web_limit_example_holds_the_server_to_its_rate() {
    if skip() {
        return;
    }
    let output = run(&example("web-limit.sh"), &["--up", "2mbit", "--down", "20mbit", "--json"]);
    let document = json(&output);
    let [(before, _), (after, goodput)] = loaded(&document);
    let limit = 300.0 * 1448.0 / 1514.0;
    assert!((goodput / limit - 1.0).abs() < 0.005, "{goodput} kbit/s of {limit}");
    assert!(before > 1000.0 && after < 50.0, "{before} ms, {after} ms");
    assert_eq!(document["load"], "server");
}

#[test]
fn the_table_ends_with_a_verdict_and_the_line_that_does_it_again() {
    if skip() {
        return;
    }
    let output = run(&example("modem.sh"), &["--up", "128kbit", "--down", "2mbit", "--duration", "10s", "--seed", "7"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = text.lines().last().unwrap_or_default();
    assert!(last.starts_with("Again: tidegate try ") && last.ends_with("--duration 10s --seed 7"), "{last}");
    assert!(text.contains("the policy cuts the ping's 95th percentile"), "{text}");
    assert!(output.stderr.is_empty(), "quiet in a pipe: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn wrong_scripts_are_told_where_why_and_what_to_do() {
    if skip() {
        return;
    }
    let root = "tc qdisc add dev eth0 root handle 1: htb default 10\n";
    let cases = [
        ("unknown-kind", "tc qdisc add dev eth0 root htbb\n".to_owned(), "unknown-kind.sh:2: tc:", "did you mean htb"),
        (
            "bad-unit",
            format!("{root}tc class add dev eth0 parent 1: classid 1:10 htb rate 5kbt\n"),
            "bad-unit.sh:3: tc: Illegal \"rate\"",
            "500kbit",
        ),
        (
            "nothing-above",
            "tc class add dev eth0 parent 1: classid 1:10 htb rate 5kbit\n".to_owned(),
            "nothing-above.sh:2:",
            "add it first",
        ),
        (
            "no-class",
            format!("{root}tc qdisc add dev eth0 parent 1:77 sfq\n"),
            "no-class.sh:3:",
            "There is no class 1:77",
        ),
        (
            "half-way",
            format!("set -e\n{root}false\ntc qdisc add dev eth0 parent 1:1 sfq\n"),
            "half-way.sh:3:",
            "ended with code 1",
        ),
        ("endless", format!("{root}sleep 1000\n"), "endless.sh:3:", "did not end within"),
        (
            "not-yet",
            "tc qdisc add dev eth0 root cake bandwidth 1mbit\n".to_owned(),
            "not-yet.sh:2: tc:",
            "not supported in this version",
        ),
        ("nothing-at-all", "echo hello\n".to_owned(), "nothing-at-all.sh", "nothing to try"),
    ];
    let dir = std::env::temp_dir().join(format!("tidegate-wrong-scripts-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let mut wrong = String::new();
    for (name, body, place, advice) in cases {
        let script = dir.join(format!("{name}.sh"));
        std::fs::write(&script, format!("#!/bin/sh\n{body}")).expect("a script");
        let output = run(&script, &["--up", "1mbit", "--down", "1mbit", "--timeout", "2s"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        if output.status.code() != Some(1)
            || !stderr.contains(place)
            || !stderr.contains(advice)
            || stderr.contains("panicked")
        {
            wrong += &format!("{name}: {:?}\n{stderr}\n", output.status.code());
        }
    }
    let _ = std::fs::remove_dir_all(&dir);
    assert!(wrong.is_empty(), "{wrong}");
}
