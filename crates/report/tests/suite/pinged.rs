//! What pings showed, written and read back, and shown.

use tidegate_analysis::ping::{from_json, from_pingexp, to_json};
use tidegate_measure::pinged::{Asked, Fault, Pinged, Target, Way};
use tidegate_report::measuring::ping::{page, text};

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

/// What Python's pickle module wrote of one dictionary of ping-exp's form, by three of its protocols.
#[test]
fn files_of_ping_exp_are_read_by_any_protocol() {
    let files: [&[u8]; 3] = [
        include_bytes!("../pingexp/protocol0.data"),
        include_bytes!("../pingexp/protocol2.data"),
        include_bytes!("../pingexp/protocol4.data"),
    ];
    for octets in files {
        let pinged = from_pingexp(octets).expect("it is one");
        assert_eq!((pinged.began_ns, pinged.targets.len()), (1_300_000_000_250_000_000, 2));
        let [one, other] = &pinged.targets[..] else { panic!("two targets") };
        assert_eq!((one.id.as_str(), one.host.as_str(), one.ds_field, other.ds_field), ("dest1", "192.0.2.1", 16, 184));
        let asked: Vec<_> = one.asked.iter().map(|asked| (asked.sent_ns / MS, asked.took_ns)).collect();
        let expected = [(200, Some(12_500_000)), (400, Some(900_000)), (600, None), (800, Some(130_000_000))];
        assert_eq!(asked, expected);
        assert_eq!((one.figures().loss, other.figures().loss), (0.25, 1.0));
        assert!(text(&pinged).contains("dest2") && page(&pinged, false).contains("Six panels"));
    }
    let error = from_pingexp(b"no pickle at all").expect_err("it is none").to_string();
    assert!(error.contains("the pickle: octet") && error.contains("pingexp.py -w FILE"), "{error}");
    let other = from_pingexp(b"}.").expect_err("it holds nothing").to_string();
    assert!(other.starts_with("experiments: missing"), "{other}");
}
