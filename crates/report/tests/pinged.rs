//! What pings showed, written and read back, and shown.

use tidegate_measure::pinged::{Asked, Fault, Pinged, Target, Way};
use tidegate_report::measuring::ping::{from_json, page, text, to_json};

const MS: u64 = 1_000_000;

fn pinged() -> Pinged {
    let asked = |n: u64| Asked {
        sent_ns: n * 200 * MS,
        took_ns: (!(n + 1).is_multiple_of(5)).then_some((20 + n) * MS),
        here_ns: n.is_multiple_of(2).then_some(n * MS / 10),
    };
    let voip = Target {
        id: "voip".into(),
        host: "example.org".into(),
        address: "192.0.2.1".into(),
        ds_field: 0xb8,
        size: 200,
        interval_ns: 200 * MS,
        asked: (0..10).map(asked).collect(),
        faults: vec![Fault { by: "192.0.2.254".into(), what: "host unreachable".into(), count: 2 }],
        ..Target::default()
    };
    let hop = Target {
        id: "hop <2>".into(),
        host: "192.0.2.1".into(),
        address: "192.0.2.1".into(),
        way: Way::Udp(33_434),
        hop_limit: Some(2),
        interval_ns: 1000 * MS,
        asked: vec![Asked { sent_ns: 5, ..Asked::default() }],
        duplicates: 1,
        errors_for_answers: 1,
        passed_over: 3,
        ..Target::default()
    };
    Pinged {
        version: "0.0.0".into(),
        again: "tidegate ping -t voip,example.org,EF,200".into(),
        began_ns: 1_700_000_000_000_000_000,
        partial: Some("stopped after 2.0 s".into()),
        targets: vec![voip, hop],
        notes: vec!["a note".into()],
    }
}

#[test]
fn what_is_written_is_read_back() {
    let pinged = pinged();
    let written = to_json(&pinged);
    assert_eq!(from_json(&written), Ok(pinged));
    let wrong = [
        ("\"here_ns\": [0,", "\"here_ns\": [", "targets[0].here_ns: 10 values expected, as many as answers"),
        (
            "[[0,20000000]",
            "[[9000000000000,20000000]",
            "targets[0].answers: requests are in the order in which they were sent",
        ),
        ("\"size\": 200", "\"size\": 70000", "targets[0].size: a number of at most 65535 expected, found 70000"),
        ("\"tidegate_ping\": 1", "\"tidegate_ping\": 2", "tidegate_ping: form 2, where this version reads form 1"),
    ];
    for (from, to, expected) in wrong {
        assert!(written.contains(from), "{from} in {written}");
        let error = from_json(&written.replacen(from, to, 1)).expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn the_table_and_what_is_said_besides() {
    let expected = "\
voip: example.org (192.0.2.1), echo requests of 200 B every 200 ms, DS field 0xb8
hop <2>: 192.0.2.1, whoever stands 2 hops away, by UDP to port 33434 of 0 B every 1.00 s
Partial: stopped after 2.0 s

target   sent  lost     loss       95 % of      min     mean      p50      p95      p99      max     mdev  jitter  here p95
───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
voip       10     2   20.0 %    5.7–51.0 %  20.0 ms  24.0 ms  23.0 ms  28.0 ms  28.0 ms  28.0 ms  2.74 ms  254 µs    800 µs
hop <2>     1     1  100.0 %  20.7–100.0 %        –        –        –        –        –        –        –       –         –
";
    let shown = text(&pinged());
    let (table, notes) = shown.split_at(shown.find("Note:").expect("notes"));
    assert_eq!(table, expected);
    for words in [
        "voip: 192.0.2.254 said “host unreachable” 2 times",
        "hop <2>: 1 answers came again",
        "was too late for 3 requests",
        "a note",
    ] {
        assert!(notes.contains(words), "{words}: {notes}");
    }
    assert!(!text(&Pinged::default()).is_empty());
}

#[test]
fn a_page_needs_nothing_else_and_escapes_names() {
    let page = page(&pinged(), true);
    assert!(page.contains("hop &lt;2&gt;") && !page.contains("hop <2>"));
    assert!(page.contains("Six panels") && page.contains("How often how long") && page.contains("Partial"));
    assert!(!page.contains("http:") && !page.contains("https:"), "nothing is fetched");
}
