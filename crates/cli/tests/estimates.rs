//! `tidegate overhead`, `calibrate` and `record`: the right result for each line is in docs/measure-grid.md,
//! exactly and in virtual time; here real hosts measure through a simulated link by the real clock, so bounds
//! are wide.

mod common;

use common::{Place, TIDEGATE, skip};
use serde_json::Value;
use std::fmt::Write as _;
use std::process::{Command, Output};

fn tidegate(words: &[&str]) -> Output {
    Command::new(TIDEGATE).args(words).env_remove("TIDEGATE_TOKEN").output().expect("tidegate runs")
}

fn output_of(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn json(output: &Output) -> Value {
    let (out, err) = output_of(output);
    assert!(out.starts_with('{'), "{out}{err}");
    common::schemas::document(&output.stdout)
}

fn shell<'w>(link: &[&'w str], far: &'w str, words: &[&'w str]) -> Output {
    let mut all = vec!["shell"];
    all.extend(link);
    all.extend(["--far", far, "--", TIDEGATE]);
    all.extend(words);
    tidegate(&all)
}

/// Siemon's line: 6.5 Mbit/s, PPPoE over PTM with 53 bytes counted as bytes, 4,750 packets a second; sizes
/// are payloads.
fn siemon() -> String {
    let mut text = "# iperf -l, packets per second at the other end\n".to_owned();
    for size in (0..=300).step_by(10).chain([400, 500, 1000, 1400]) {
        let rate = (6_500_000.0 / 8.0 / f64::from(size + 28 + 53)).min(4750.0);
        writeln!(text, "{size}\t{rate:.1}").expect("a string");
    }
    text
}

#[test]
fn a_sweep_measured_elsewhere() {
    let place = Place::new("overhead-from");
    let file = place.file("sweep.txt", siemon());
    let file = file.to_string_lossy();
    let run = tidegate(&["overhead", "--from", &file, "--payload"]);
    let (out, err) = output_of(&run);
    assert_eq!(run.status.code(), Some(0), "{err}");
    let wanted = [
        "up: 53 bytes over IP (53 to 53 with 95 % confidence), byte by byte",
        "at most 4750 packets per second",
        "  cake                   overhead 53 noatm\n",
        "  tc on eth0             overhead 39 linklayer ethernet\n",
        "  tc on ppp0, a tunnel   overhead 53 linklayer ethernet\n",
    ];
    for words in wanted {
        assert!(out.contains(words), "{words}: {out}");
    }
    let document = json(&tidegate(&["overhead", "--from", &file, "--payload", "--json"]));
    let line = &document["up"]["line"];
    assert_eq!(
        (&document["tidegate_overhead"], &line["overhead"], &line["coding"]),
        (&2.into(), &53.into(), &"bytes".into())
    );
    assert_eq!(
        (document["down"].is_null(), line["packets_per_second"].as_f64().map(f64::round)),
        (true, Some(4750.0))
    );
}

#[test]
fn an_invalid_sweep_is_reported_with_its_place() {
    let place = Place::new("overhead-wrong");
    let file = place.file("sweep.txt", "100 4489\n200 many\n");
    let run = tidegate(&["overhead", "--from", &file.to_string_lossy()]);
    let (_, err) = output_of(&run);
    assert_eq!(run.status.code(), Some(2), "{err}");
    assert!(err.contains("sweep.txt:2: `200 many`: a size in bytes and packets per second"), "{err}");
    let few = place.file("few.txt", "100 4489\n200 3200\n");
    let run = tidegate(&["overhead", "--from", &few.to_string_lossy()]);
    let (out, err) = output_of(&run);
    assert_eq!(run.status.code(), Some(1), "{err}");
    assert!(out.contains("caveat: too little was measured for a result"), "{out}");
}

#[test]
fn no_reply() {
    for command in ["overhead", "calibrate", "record"] {
        let run = tidegate(&[command, "nobody.invalid"]);
        let (out, err) = output_of(&run);
        assert_eq!((run.status.code(), out.as_str()), (Some(2), ""), "{err}");
        assert!(err.starts_with(&format!("tidegate {command}: ")) && err.contains("nobody.invalid"), "{err}");
    }
}

/// The rate as tc counts it is the shell's; a machine that is late makes it less, never much more.
#[test]
fn a_real_host_calibrates_a_link() {
    if skip() {
        return;
    }
    let far = format!("{TIDEGATE} serve --open --quiet");
    let run = shell(
        &["--up", "4mbit", "--down", "20mbit", "--buffer", "100kB"],
        &far,
        &["calibrate", "server", "--up", "--json"],
    );
    let document = json(&run);
    assert_eq!(run.status.code(), Some(0), "{document}");
    let up = &document["up"];
    let rate = up["as_tc_counts"].as_f64().unwrap_or(0.0);
    assert!((2.0e6..4.4e6).contains(&rate), "{document}");
    assert!(up["to_write"].as_f64().unwrap_or(0.0) < rate, "{document}");
    assert!(up["steps"].as_array().is_some_and(|steps| steps.len() >= 2), "{document}");
}

/// What the line adds, through real sockets; the server goes away in the middle of the other direction, and
/// what was found is partial.
#[test]
fn a_real_host_sweeps_a_link_until_the_server_is_gone() {
    if skip() {
        return;
    }
    let link = ["--up", "4mbit", "--down", "20mbit", "--up-line", "framing = \"pppoe-atm-llc\""];
    let far = format!("{TIDEGATE} serve --open --quiet");
    let document = json(&shell(&link, &far, &["overhead", "server", "--up", "--json"]));
    let line = &document["up"]["line"];
    let (rate, overhead) =
        (line["bits_per_second"].as_f64().unwrap_or(0.0), line["overhead"].as_u64().unwrap_or(0));
    assert!((3.0e6..4.6e6).contains(&rate), "{document}");
    let is_unreliable = document["up"]["caveats"].as_array().is_some_and(|caveats| !caveats.is_empty());
    assert!(is_unreliable || (30..=50).contains(&overhead), "{document}");

    let far = format!("timeout 7 {TIDEGATE} serve --open --quiet");
    let run = shell(&link, &far, &["overhead", "server", "--up", "--json"]);
    let document = json(&run);
    assert_eq!(run.status.code(), Some(3), "{document}");
    assert!(document["partial"].as_str().is_some_and(|why| !why.is_empty()), "{document}");
}

/// The seconds of a direction: rates in Mbit/s.
fn rates(way: &Value) -> Vec<f64> {
    let seconds = way["seconds"].as_array().cloned().unwrap_or_default();
    seconds.iter().filter_map(|second| second["bits_per_second"].as_f64()).map(|rate| rate / 1e6).collect()
}

/// A line of known rates, delay and loss is recorded, and the traces are read by what reads traces. The
/// test's machine may be busy, so the rates are compared by their median.
#[test]
fn a_real_host_records_a_link() {
    if skip() {
        return;
    }
    let place = Place::new("record");
    let (trace, result) = (place.0.join("my line.csv"), place.0.join("line.json"));
    let far = format!("{TIDEGATE} serve --open --quiet");
    let link = ["--up", "2mbit", "--down", "10mbit", "--buffer", "100kB", "--up-line", "loss = \"5%\""];
    let words = ["record", "server", "-d", "8s", "--budget", "20MB", "-o"];
    let words: Vec<&str> = words
        .into_iter()
        .chain([trace.to_str().expect("UTF-8"), "-o", result.to_str().expect("UTF-8")])
        .collect();
    let run = shell(&link, &far, &words);
    let (out, err) = output_of(&run);
    assert_eq!(run.status.code(), Some(0), "{out}{err}");
    assert!(
        err.contains("Recording for 8.00 s, with at most 20.0 MB in both directions together (--budget)"),
        "{err}"
    );
    assert!(out.contains("Again: tidegate record server -d 8s --budget 20MB -o "), "{out}");
    assert!(out.contains("my line-down.csv'"), "what can be pasted is quoted: {out}");
    let document = common::schemas::document(&std::fs::read(&result).expect("a result"));
    for (way, rate) in [("up", 2.0), ("down", 10.0)] {
        let mut found = rates(&document[way]);
        assert!(found.len() >= 6, "{document}");
        found.sort_by(f64::total_cmp);
        let median = found[found.len() / 2];
        assert!((0.7 * rate..1.15 * rate).contains(&median), "{way}: {found:?}");
    }
    assert!(document["bytes"].as_u64().is_some_and(|bytes| bytes <= 20_000_000), "{document}");
    let lost =
        document["up"]["seconds"].as_array().expect("seconds").iter().filter_map(|one| one["lost"].as_u64());
    assert!((1..80).contains(&lost.sum::<u64>()), "{document}");
    let pair = ["up", "down"].map(|way| place.0.join(format!("my line-{way}.csv")));
    let both = pair.each_ref().map(|path| path.to_str().expect("UTF-8")).join(",");
    let policy = place.file("none.batch", "qdisc add dev eth0 root fq_codel\n");
    let policy = policy.to_str().expect("UTF-8");
    let run = Command::new(TIDEGATE)
        .args(["try", policy, "--trace", &both, "-d", "5s"])
        .current_dir(&place.0)
        .output()
        .expect("tidegate runs");
    assert_eq!(run.status.code(), Some(0), "{:?}", output_of(&run));
    let run = tidegate(&[
        "gym",
        "fixed:0.5",
        "--traces",
        pair[1].to_str().expect("UTF-8"),
        "--duration",
        "5",
        "--loads",
        "down",
    ]);
    assert_eq!(run.status.code(), Some(0), "{:?}", output_of(&run));
    let run = tidegate(&["shell", "--trace", &both, "--", "true"]);
    assert_eq!(run.status.code(), Some(0), "{:?}", output_of(&run));
}

/// Ctrl-C, or a server that is gone: what was recorded until then is written.
#[test]
fn what_was_recorded_before_the_server_went_away_is_kept() {
    if skip() {
        return;
    }
    let place = Place::new("record-gone");
    let trace = place.0.join("cut.csv");
    let far = format!("timeout 17 {TIDEGATE} serve --open --quiet");
    let words = ["record", "server", "-d", "60s", "-o", trace.to_str().expect("UTF-8")];
    let run = shell(&["--up", "2mbit", "--down", "4mbit"], &far, &words);
    let (out, err) = output_of(&run);
    assert_eq!(run.status.code(), Some(3), "{out}{err}");
    assert!(out.starts_with("Only a part was recorded: the server is gone"), "{out}{err}");
    let rows = std::fs::read_to_string(place.0.join("cut-up.csv")).expect("a trace");
    assert!(rows.lines().count() > 8, "{rows}");
}

/// The server reports every ten seconds; one that is asked to stop reports at once.
#[test]
fn a_recording_that_is_stopped_before_the_first_report_has_both_ways() {
    if skip() {
        return;
    }
    let place = Place::new("record-stopped");
    let trace = place.0.join("cut.csv");
    let far = format!("{TIDEGATE} serve --open --quiet");
    // Otherwise `timeout` sends the signal to the process and to its group, and the second ends it at once.
    let stop = ["timeout", "--foreground", "-s", "INT", "9"];
    let words = [&["shell", "--up", "2mbit", "--down", "4mbit", "--far", &far, "--"][..], &stop].concat();
    let record = [TIDEGATE, "record", "server", "-d", "60s", "-o", trace.to_str().expect("UTF-8")];
    let run = tidegate(&[&words[..], &record].concat());
    let (out, err) = output_of(&run);
    assert!(out.starts_with("Only a part was recorded: it was stopped.\n"), "{out}{err}");
    for way in ["up", "down"] {
        let rows = std::fs::read_to_string(place.0.join(format!("cut-{way}.csv"))).expect("a trace");
        assert!(rows.lines().count() > 2, "{way}: {rows}{out}{err}");
    }
}

#[test]
fn a_recording_refuses_what_it_cannot_do() {
    let place = Place::new("record-refuses");
    place.file("recorded-up.csv", "mine\n");
    std::os::unix::fs::symlink("nowhere", place.0.join("recorded-down.csv")).expect("a link");
    let rows: [(&[&str], &str); 9] = [
        // Before anything is measured.
        (&["record", "host.invalid", "-o", "/proc/x.csv"], "cannot write /proc/x-up.csv"),
        (
            &["record", "host.invalid", "-o", ".csv"],
            "cannot write .csv: it is only an extension; name a file",
        ),
        (&["record", "host.invalid", "-o", "new.csv/"], "cannot write new.csv/: it is a directory"),
        (&["record", "host.invalid", "-d", "1s"], "2s to 50min"),
        (&["record", "host.invalid", "-d", "51min"], "2s to 50min"),
        (&["record", "host.invalid", "--budget", "10kB"], "1MB to 2GB"),
        (&["record", "host.invalid", "--budget", "lots"], "`lots` is not a size"),
        (&["record", ""], "missing HOST"),
        (&["record", "host.invalid"], "recorded-up.csv exists already: name another file with -o NAME.csv"),
    ];
    for (words, expected) in rows {
        let run = Command::new(TIDEGATE).args(words).current_dir(&place.0).output().expect("tidegate runs");
        let (_, err) = output_of(&run);
        assert_eq!(run.status.code(), Some(2), "{words:?} {err}");
        assert!(err.contains(expected), "{words:?} {err}");
    }
    std::fs::remove_file(place.0.join("recorded-up.csv")).expect("a file");
    let run = Command::new(TIDEGATE).args(["record", "host.invalid"]).current_dir(&place.0).output();
    let (_, err) = output_of(&run.expect("tidegate runs"));
    assert!(err.contains("recorded-down.csv exists already"), "a link that leads nowhere: {err}");
}
