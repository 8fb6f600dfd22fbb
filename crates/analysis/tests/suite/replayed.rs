//! A capture under two policies: tables and the document.

use serde_json::{Value, json};
use tidegate_analysis::data::Data;
use tidegate_analysis::replayed::tables::{classes, comes_in, flows, inward_matters, losses, overview, wait};
use tidegate_analysis::replayed::to_json;
use tidegate_measure::replayed::{
    CaptureSummary, ClassOutcome, FlowOutcome, OutcomeCounts, ReplayLine, ReplayOutcome, Replayed,
};

const MS: u64 = 1_000_000;

fn fates(packets: u64, drops: &[(&str, u64)], waits: &[u64]) -> OutcomeCounts {
    let dropped: Vec<(String, u64)> = drops.iter().map(|(why, count)| ((*why).to_owned(), *count)).collect();
    let sent = packets - dropped.iter().map(|(_, count)| count).sum::<u64>();
    OutcomeCounts {
        packets,
        bytes: packets * 1000,
        sent,
        sent_bytes: sent * 1000,
        dropped,
        ..OutcomeCounts::default()
    }
    .with_waits(waits.iter().map(|ms| ms * MS).collect())
}

fn outcome(name: &str, p95: u64) -> ReplayOutcome {
    let class = |id: &str, title: &str, fates: OutcomeCounts| ClassOutcome {
        device: "eth0".into(),
        id: id.into(),
        title: title.into(),
        queue: "pfifo".into(),
        outcomes: fates,
        packets: vec![1, 2],
        ..ClassOutcome::default()
    };
    let dropped = [("tail", 10)];
    ReplayOutcome {
        name: name.into(),
        file: format!("{name}.tc"),
        device: "eth0".into(),
        out: OutcomeCounts { marked: 3, waiting: 2, ..fates(100, &dropped, &[p95; 10]) },
        inward: fates(10, &[], &[0; 10]),
        classes: vec![
            class("1:10", "calls", fates(20, &[], &[0])),
            class(
                "1:20",
                "all that nobody asks for by name, and what else there is",
                fates(80, &dropped, &[p95]),
            ),
        ],
        flows: vec![FlowOutcome {
            name: "a > b".into(),
            class: "1:20".into(),
            outcomes: fates(50, &[("tail", 5)], &[p95]),
        }],
    }
}

fn replayed() -> Replayed {
    Replayed {
        version: "0.1.0".into(),
        again: "tidegate replay".into(),
        capture: CaptureSummary {
            file: "a.pcap".into(),
            duration: 1_000 * MS,
            packets: 110,
            ..CaptureSummary::default()
        },
        line: ReplayLine { rate: Some(1_000_000), buffer: None },
        step_ns: 100 * MS,
        policies: vec![outcome("none", 200), outcome("fair", 50)],
        notes: Vec::new(),
    }
}

fn lines(data: &Data) -> Vec<String> {
    let rows = data.rows.iter().map(|row| row.join(" | "));
    std::iter::once(format!("{}: {}", data.caption, data.head.join(" | "))).chain(rows).collect()
}

#[test]
fn tables() {
    let of = replayed();
    let cases = [
        (
            overview(&of, false),
            vec![
                "Outgoing: policy | sent | lost | marked | median | p95 | p99 | longest | p95 to none",
                "none | 90 | 10 (10.0 %) | 3 | 200 ms | 200 ms | 200 ms | 200 ms | –",
                "fair | 90 | 10 (10.0 %) | 3 | 50.0 ms | 50.0 ms | 50.0 ms | 50.0 ms | × 0.25",
            ],
        ),
        (
            overview(&of, true),
            vec![
                "Incoming: policy | sent | lost | marked | median | p95 | p99 | longest | p95 to none",
                "none | 10 | – | – | 0 | 0 | 0 | 0 | –",
                "fair | 10 | – | – | 0 | 0 | 0 | 0 | –",
            ],
        ),
        (
            // Nothing was marked: there is no such column. Of 110,000 bytes 20,000 and 80,000.
            classes(&of, &of.policies[1]),
            vec![
                "Classes of fair: class | queue | packets | share | rate | lost | median | p95 | p99 | \
                longest | for",
                "eth0 1:10 | pfifo | 20 | 18.2 % | 160 kbit/s | – | 0 | 0 | 0 | 0 | calls",
                "eth0 1:20 | pfifo | 80 | 72.7 % | 560 kbit/s | 10 (12.5 %) | 50.0 ms | 50.0 ms | 50.0 ms | \
                50.0 ms | all that nobody asks for by name, and what e…",
            ],
        ),
        (
            losses(&of),
            vec![
                "Lost, and why: policy | class | why | packets",
                "none | eth0 1:20 | tail | 10",
                "none |  | still waits in the end | 2",
                "fair | eth0 1:20 | tail | 10",
                "fair |  | still waits in the end | 2",
            ],
        ),
        (
            flows(&of),
            vec![
                "The largest flows: flow | packets | bytes | none p95 | fair p95 | none lost | fair lost",
                "a > b | 50 | 50.0 kB | 200 ms | 50.0 ms | 5 (10.0 %) | 5 (10.0 %)",
            ],
        ),
    ];
    for (data, expected) in cases {
        assert_eq!(lines(&data), expected);
    }
    let one = Replayed { policies: vec![outcome("none", 200)], ..replayed() };
    assert_eq!(overview(&one, false).head.len(), 8, "one policy is compared with nothing");
    assert_eq!([wait(0), wait(1_500)], ["0", "1.50 µs"]);
}

/// What comes in is shown where it is more than passed through.
#[test]
fn what_comes_in() {
    let with = |inward: OutcomeCounts| {
        let mut of = replayed();
        of.policies.truncate(1);
        of.policies[0].inward = inward;
        (comes_in(&of), inward_matters(&of))
    };
    let cases = [
        (OutcomeCounts::default(), (false, false)),
        (fates(10, &[], &[]), (true, false)),
        (fates(10, &[], &[0]), (true, false)),
        (fates(10, &[], &[0, 1]), (true, true)),
        (fates(10, &[("police", 1)], &[0]), (true, true)),
        (OutcomeCounts { marked: 1, ..fates(10, &[], &[0]) }, (true, true)),
    ];
    for (inward, expected) in cases {
        assert_eq!(with(inward.clone()), expected, "{inward:?}");
    }
}

#[test]
fn the_document() {
    let text = to_json(&replayed());
    let of: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!([&of["tidegate_replayed"], &of["line"]["rate_bits"]], [&json!(2), &json!(1_000_000)]);
    assert_eq!((&of["capture"]["packets"], of["policies"].as_array().map(Vec::len)), (&json!(110), Some(2)));
    let out = &of["policies"][1]["out"];
    assert_eq!(out["queueing_delay"]["p95_ns"], json!(50 * MS));
    assert_eq!(
        (&out["dropped"], &out["marked"], &out["queued"]),
        (&json!({"tail": 10}), &json!(3), &json!(2))
    );
    assert_eq!(
        (&out["percentiles_ns"][0], &out["percentiles_ns"][20]),
        (&json!([0.0, 50 * MS]), &json!([100.0, 50 * MS]))
    );
    let class = &of["policies"][0]["classes"][1];
    assert_eq!(
        (&class["id"], &class["direction"], &class["packets"]),
        (&json!("1:20"), &json!("out"), &json!([1, 2]))
    );
    let flow = &of["policies"][0]["flows"][0];
    assert_eq!((&flow["name"], &flow["outcomes"]["sent"]), (&json!("a > b"), &json!(45)));
    assert!(text.contains("\n      \"out\": {\n        \"packets\": 100,\n"), "objects are indented: {text}");
    assert!(text.ends_with("}\n"));
}
