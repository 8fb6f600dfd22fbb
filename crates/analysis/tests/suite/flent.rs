//! Files of flent's, written and read.

use crate::fixture::experiment::experiment;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use tidegate_analysis::experiment::{flent_files, from_flent};

fn unpacked(bytes: &[u8]) -> Value {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text).expect("gzip");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn what_flent_reads_is_read_back() {
    let of = experiment();
    let files = flent_files(&of).expect("files");
    for (run, (name, packed)) in of.runs.iter().zip(&files) {
        let back = from_flent(packed).expect(name);
        let found = &back.runs[0];
        assert_eq!(found.transfers.len(), run.transfers.len(), "{name}");
        // Payload of each step is rounded to whole bytes; a window may begin within a step.
        for (transfer, back) in
            run.transfers.iter().filter(|one| one.id.starts_with("upload")).zip(&found.transfers)
        {
            let share = back.bytes as f64 / transfer.bytes.max(1) as f64;
            assert!((share - 1.0).abs() < 0.02, "{name}: {} {share}", transfer.id);
        }
        let (probe, back) = (&run.probes[0], &found.probes[0]);
        let (figures, back) = (probe.figures(run.window), back.figures(found.window));
        // What was lost after the last answer has no number to show it.
        assert!(figures.lost.abs_diff(back.lost) <= 1, "{name}: {} {}", figures.lost, back.lost);
        let medians =
            [figures.rtt.percentile(50.0), back.rtt.percentile(50.0)].map(Option::unwrap_or_default);
        assert!(medians[0].abs_diff(medians[1]) < 1_000_000, "{name}: {medians:?}");
    }
    let wrong = from_flent(b"no file of flent's").expect_err("it is none");
    assert!(wrong.to_string().contains("flent"), "{wrong}");
}

#[test]
fn flent_files_have_what_flent_needs() {
    let files = flent_files(&experiment()).expect("files");
    assert_eq!(files.len(), 27, "one per run");
    let of = |name: &str| unpacked(&files.iter().find(|(known, _)| known == name).expect(name).1);
    let both = of("both-none-0.flent.gz");
    let metadata = &both["metadata"];
    assert_eq!(
        [
            &both["version"],
            &metadata["NAME"],
            &metadata["LOCAL_HOST"],
            &metadata["HOST"],
            &metadata["LENGTH"]
        ],
        [&Value::from(4), &"rrul_be".into(), &"a".into(), &"dest1".into(), &30.into()]
    );
    let steps = both["x_values"].as_array().expect("a list").len();
    let names: Vec<&String> = both["results"].as_object().expect("an object").keys().collect();
    let expected = [
        "TCP upload BE",
        "TCP upload BE2",
        "TCP download BE3",
        "TCP totals",
        "Ping (ms) ICMP",
        "Ping (ms) avg",
    ];
    for name in expected {
        assert!(names.iter().any(|known| *known == name), "{name}: {names:?}");
        assert_eq!(both["results"][name].as_array().expect(name).len(), steps, "{name}");
    }
    let mean = |values: &Value| {
        let known: Vec<f64> = values.as_array().expect("a list").iter().filter_map(Value::as_f64).collect();
        known.iter().sum::<f64>() / known.len() as f64
    };
    let carried = experiment()
        .runs
        .iter()
        .find(|run| run.policy == "none" && run.load == "both")
        .map(|run| run.transfers.iter().map(|transfer| transfer.rate(run.window) / 1e6).sum::<f64>());
    let found = mean(&both["results"]["TCP totals"]);
    assert!(carried.is_some_and(|carried| (found - carried).abs() < 0.005 * carried), "{found} {carried:?}");
    assert_eq!(of("upload-tbf-2.flent.gz")["metadata"]["NAME"], "tcp_nup");
    assert_eq!(of("empty-fair-0.flent.gz")["metadata"]["NAME"], "ping");
    let sample = &both["raw_values"]["TCP upload BE"][0];
    assert!(sample["tcp_cwnd"].is_number() && sample["tcp_rtt"].is_number(), "{sample}");
}

fn packed(document: &Value) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(document.to_string().as_bytes()).expect("packed");
    packed.finish().expect("packed")
}

/// A file as flent 2 writes it: series of results, each answer of pings, what is worked out beside them.
fn rrul() -> Value {
    json!({
        "version": 4,
        "x_values": [0.0, 0.5, 1.0],
        "results": {
            "Ping (ms) ICMP": [10.0, null, 12.0],
            "Ping (ms) UDP EF": [20.0, 21.0, null],
            "Ping (ms) avg": [15.0, 21.0, 12.0],
            "a to b OWD": [5.0, null, null],
            "TCP upload BE": [8.0, 4.0, null],
            "TCP upload avg": [8.0, 4.0, null],
            "TCP download BE": [16.0, -1.0, 8.0],
            "TCP download sum": [16.0, 0.0, 8.0],
            "TCP totals": [24.0, 4.0, 8.0],
        },
        "raw_values": {"Ping (ms) UDP EF": [
            {"seq": 3, "t": 1000.02, "val": 20.0},
            {"seq": 4, "t": 1000.221, "val": 21.0},
            {"seq": 7, "t": 1000.83, "val": 30.0},
        ]},
        "metadata": {"NAME": "rrul", "TITLE": "before", "LOCAL_HOST": "here", "HOST": "there", "STEP_SIZE": 0.5,
            "FLENT_VERSION": "2.1.1"},
    })
}

#[test]
fn a_file_that_flent_wrote() {
    const MS: u64 = 1_000_000;
    let of = from_flent(&packed(&rrul())).expect("it is one");
    assert_eq!(
        (of.title.as_str(), of.version.as_str(), of.execution.as_str()),
        ("rrul: before", "2.1.1", "flent")
    );
    let nodes: Vec<&str> = of.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(
        (nodes, of.links[0].to.as_str(), of.loads[0].test.as_deref()),
        (vec!["here", "there"], "there", Some("rrul"))
    );
    let run = &of.runs[0];
    assert_eq!((run.window, run.step_ns), ((0, 1_500 * MS), 500 * MS), "to the end of the last step");
    let probes: Vec<(&str, &str, &str)> =
        run.probes.iter().map(|p| (p.id.as_str(), p.title.as_str(), p.unit.as_str())).collect();
    let expected =
        [("icmp", "ICMP", "round trip"), ("udp-ef", "UDP EF", "round trip"), ("a-to-b", "a to b", "one way")];
    assert_eq!(probes, expected);
    // Values per step where there is nothing better; else each answer, and what is missing by its number.
    assert_eq!(run.probes[0].answers, [(0, Some(10 * MS)), (1_000 * MS, Some(12 * MS))]);
    let each = [(0, Some(20)), (200, Some(21)), (800, None), (800, None), (800, Some(30))];
    let found: Vec<(u64, Option<u64>)> = run.probes[1]
        .answers
        .iter()
        .map(|(sent, took)| (sent.div_ceil(MS), took.map(|took| took / MS)))
        .collect();
    assert_eq!(found, each);
    // Mbit/s over half a second, in bytes.
    let flows: Vec<(&str, &str, &[u64], u64)> = run
        .transfers
        .iter()
        .map(|t| (t.id.as_str(), t.from.as_str(), t.series.as_slice(), t.bytes))
        .collect();
    let expected: [(&str, &str, &[u64], u64); 2] = [
        ("upload-1", "here", &[500_000, 250_000, 0], 750_000),
        ("download-1", "there", &[1_000_000, 0, 500_000], 1_500_000),
    ];
    assert_eq!(flows, expected);
}

#[test]
fn files_of_flents_that_say_less_or_nonsense() {
    let with = |path: &str, value: Value| {
        let mut document = rrul();
        *document.pointer_mut(path).expect(path) = value;
        from_flent(&packed(&document))
    };
    let run = |path: &str, value: Value| with(path, value).expect(path).runs.remove(0);
    assert_eq!(with("/metadata/TITLE", json!("")).expect("it is one").title, "rrul");
    assert_eq!(run("/metadata/STEP_SIZE", json!(0)).step_ns, 200_000_000, "flent's own step");
    assert_eq!(run("/metadata/STEP_SIZE", json!(null)).step_ns, 200_000_000);
    assert_eq!(run("/raw_values", json!({})).probes[1].answers.len(), 2);
    assert_eq!(run("/raw_values/Ping (ms) UDP EF", json!([])).probes[1].answers.len(), 2);
    let seq = |number: u64| run("/raw_values/Ping (ms) UDP EF/2/seq", json!(number)).probes[1].answers.len();
    assert_eq!(
        [seq(5), seq(6), seq(4), seq(100_004), seq(200_000)],
        [3, 4, 3, 100_002, 100_003],
        "a bound on what is lost"
    );
    let wrong = [
        ("/version", json!(3), "version: version 3"),
        ("/metadata/NAME", json!(1), "metadata.NAME: "),
        ("/results/TCP upload BE", json!(["x"]), "results.TCP upload BE[0]: "),
        ("/raw_values/Ping (ms) UDP EF/0/t", json!(null), "raw_values.Ping (ms) UDP EF[0].t: "),
    ];
    for (path, value, expected) in wrong {
        let error = with(path, value).expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let answers: Vec<Value> = (0..12).map(|n| json!({"seq": n * 100_001, "t": n, "val": 1.0})).collect();
    let error = with("/raw_values/Ping (ms) UDP EF", json!(answers)).expect_err("too many").to_string();
    assert!(
        error.starts_with("raw_values.Ping (ms) UDP EF: more than 1000000 answers are missing"),
        "{error}"
    );
}
