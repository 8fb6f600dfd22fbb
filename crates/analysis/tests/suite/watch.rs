//! Two snapshots of a device at work: what happened in between, as JSON, as Prometheus' figures.

use crate::fixture::watch::{read, snapshot};
use serde_json::{Value, json};
use tidegate_analysis::watch::{
    ControlMode, Figures, LastDecision, Policy, QueueRow, ShaperControl, device_intervals, exposition, line,
};

/// A policy that was put there again begins to count again.
#[test]
fn counters_that_were_set_back_count_from_nothing() {
    let [before, now] =
        [(10, 100, 1000), (11, 50, 20)].map(|(at, calls, rest)| read(&snapshot(at, calls, rest)));
    let course = &device_intervals(&before, &now)[0];
    let rates: Vec<_> = course.rows.iter().map(|row| (row.id.as_str(), row.figures.pps)).collect();
    assert_eq!(
        rates,
        [("htb 1:", 70.0), ("1:1", 70.0), ("1:10", 50.0), ("1:20", 20.0), ("clsact ffff:", 0.0)]
    );
}

#[test]
fn a_line_of_json_has_the_same_figures() {
    let [before, now] =
        [(10, 100, 1000), (12, 200, 1100)].map(|(at, calls, rest)| read(&snapshot(at, calls, rest)));
    let line = line(&device_intervals(&before, &now)[0]);
    let expected = json!({
        "class": "1:20", "name": null, "qdisc": "fq_codel 20:", "bps": 400_000.0, "pps": 50.0, "share": 0.4,
        "backlog_bytes": 5000, "backlog_packets": 5, "sojourn_p50_ns": 1_048_575, "sojourn_p99_ns": 67_108_863,
        "oldest_ns": 2_500_000_000_u64, "drops_per_s": 5.0, "marks_per_s": 10.0, "borrowed": 0.5,
        "rate_bps": 400_000.0, "ceil_bps": 1_000_000.0,
    });
    assert_eq!(line["classes"][3], expected);
    // What arrives is not shaped by what is at the root.
    let ingress = &line["classes"][4];
    assert_eq!((&ingress["class"], &ingress["share"]), (&json!("clsact ffff:"), &Value::Null));
    assert_eq!([&line["device"], &line["over_ns"]], [&json!("eth0"), &json!(2_000_000_000)]);
}

/// What a policy calls a class is any text.
#[test]
fn classes_have_their_names() {
    let hostile = "a \"b\" \\ \n c";
    let named = |at| {
        let mut snapshot = snapshot(at, 100, 1000);
        snapshot["devices"][0]["names"] = json!({"1:20": hostile, "1:99": "not there"});
        read(&snapshot)
    };
    let interval = &device_intervals(&named(10), &named(12))[0];
    let names: Vec<_> = interval.rows.iter().map(|row| (row.id.as_str(), row.name.as_deref())).collect();
    let expected =
        [("htb 1:", None), ("1:1", None), ("1:10", None), ("1:20", Some(hostile)), ("clsact ffff:", None)];
    assert_eq!(names, expected);
    assert_eq!(line(interval)["classes"][3]["name"], hostile);
    let text = exposition([&named(10)], (&[], &[]), "net-1", "0.1.0");
    let label = "classid=\"1:20\",class_name=\"a \\\"b\\\" \\\\ \\n c\"";
    let all = |name: &str| text.lines().filter(|line| line.starts_with(name)).collect::<Vec<_>>();
    for name in ["tidegate_class_bytes_total{", "tidegate_sojourn_seconds_bucket{", "tidegate_marks_total{"] {
        let (named, others): (Vec<_>, Vec<_>) =
            all(name).into_iter().partition(|line| line.contains("classid=\"1:20\""));
        assert!(!named.is_empty() && named.iter().all(|line| line.contains(label)), "{named:?}");
        assert!(others.iter().all(|line| !line.contains("class_name")), "{others:?}");
    }
}

/// Every sample of a name is with the others, after its help and type; histograms go up to +Inf.
#[test]
fn prometheus_reads_it() {
    let waiting = Policy {
        device: "eth0".into(),
        backend: "user".into(),
        up: true,
        trouble: false,
        drift: true,
        revert_s: Some(12.5),
        restarts: Some(3),
    };
    let control = ShaperControl {
        device: "eth0".into(),
        direction: "upload".into(),
        controller: "tidegate".into(),
        mode: ControlMode::Idle,
        rate: 3_000_000,
        least: 600_000,
        base: 3_000_000,
        most: 6_000_000,
        decisions: [("load-high".to_owned(), 7), ("draining".to_owned(), 2)].into(),
        last: Some(LastDecision { reason: "draining".into(), words: "…".into(), delay_ms: Some(34.0) }),
    };
    let text = exposition([&read(&snapshot(10, 100, 1000))], (&[waiting], &[control]), "net-1", "0.1.0");
    for wanted in [
        "tidegate_autorate_rate_bits_per_second{netns=\"net-1\",device=\"eth0\",direction=\"upload\",\
        controller=\"tidegate\"} 3000000\n",
        "controller=\"tidegate\",limit=\"lowest\"} 600000\n",
        "controller=\"tidegate\",mode=\"controls\"} 0\n",
        "controller=\"tidegate\",mode=\"idle\"} 1\n",
        "controller=\"tidegate\",reason=\"load-high\"} 7\n",
        "controller=\"tidegate\"} 0.034\n",
        "tidegate_up{netns=\"net-1\",device=\"eth0\",backend=\"user\"} 1\n",
        "tidegate_trouble{netns=\"net-1\",device=\"eth0\",backend=\"user\"} 0\n",
        "tidegate_drift{netns=\"net-1\",device=\"eth0\",backend=\"user\"} 1\n",
        "tidegate_revert_seconds{netns=\"net-1\",device=\"eth0\",backend=\"user\"} 12.5\n",
        "tidegate_restarts_total{netns=\"net-1\",device=\"eth0\",backend=\"user\"} 3\n",
        "tidegate_oldest_packet_seconds{netns=\"net-1\",device=\"eth0\",classid=\"1:20\"} 2.5\n",
        "tidegate_engine_lateness_seconds{netns=\"net-1\",device=\"eth0\"} 0.0123\n",
        "tidegate_engine_late_total{netns=\"net-1\",device=\"eth0\"} 2\n",
        "node_qdisc_bytes_total{device=\"eth0\",kind=\"htb\"} 1100000\n",
        "node_qdisc_current_queue_length{device=\"eth0\",kind=\"htb\"} 5\n",
        "node_qdisc_backlog{device=\"eth0\",kind=\"htb\"} 5000\n",
        "tidegate_qdisc_drops_total{netns=\"net-1\",device=\"eth0\",handle=\"20:\",parent=\"1:20\",kind=\"fq_codel\"} 100\n",
        "tidegate_class_packets_total{netns=\"net-1\",device=\"eth0\",handle=\"1:\",parent=\"1:1\",kind=\"htb\",classid=\"1:20\"} 1000\n",
        "tidegate_class_borrowed_total{netns=\"net-1\",device=\"eth0\",handle=\"1:\",parent=\"1:1\",kind=\"htb\",classid=\"1:20\"} 500\n",
        "tidegate_sojourn_seconds_bucket{netns=\"net-1\",device=\"eth0\",classid=\"1:20\",le=\"0.001048576\"} 980\n",
        "tidegate_sojourn_seconds_bucket{netns=\"net-1\",device=\"eth0\",classid=\"1:20\",le=\"+Inf\"} \
        1000\n",
        "tidegate_sojourn_seconds_count{netns=\"net-1\",device=\"eth0\",classid=\"1:20\"} 1000\n",
        "tidegate_shaper_rate_bits_per_second{netns=\"net-1\",device=\"eth0\",dir=\"egress\"} 1000000\n",
        "tidegate_engine_packets_total{netns=\"net-1\",device=\"eth0\",outcome=\"received\"} 1100\n",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }
    let mut family = "";
    for line in text.lines() {
        match line.strip_prefix("# TYPE ") {
            Some(output) => family = output.split(' ').next().unwrap_or_default(),
            None if line.starts_with("# HELP ") => {}
            None => {
                let (name, value) = line.rsplit_once(' ').expect("a name and a value");
                assert!(
                    name.starts_with(family) && value.parse::<f64>().is_ok(),
                    "{line} is none of {family}"
                );
            }
        }
    }
    let mut types: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let all = types.len();
    types.sort_unstable();
    types.dedup();
    assert_eq!(types.len(), all, "a name's figures stand together");
}

/// A tree that two snapshots show, one second apart: its rows, indented, with what happened there.
fn rows(before: &Value, now: &Value) -> Vec<String> {
    let course = &device_intervals(&read(before), &read(now))[0];
    let row = |row: &QueueRow| {
        let Figures { bps, pps, backlog, qlen, drops, marks, borrowed, share, .. } = row.figures;
        let leaf = row.leaf.as_deref().map_or(String::new(), |leaf| format!(" {leaf}"));
        let some =
            |name: &str, value: Option<f64>| value.map_or(String::new(), |value| format!(" {name} {value}"));
        format!(
            "{}{}{leaf}: {bps} bit/s, {pps} packets, {backlog} bytes in {qlen} wait, {drops} lost{}{}{}",
            row.branch,
            row.id,
            some("marks", marks),
            some("borrowed", borrowed),
            some("share", share),
        )
    };
    course.rows.iter().map(row).collect()
}

fn document(at_s: u64, device: &Value) -> Value {
    json!({"version": 1, "at_ns": at_s * 1_000_000_000, "epoch_ns": 5, "backend": "kernel", "devices": [device]})
}

fn with(mut document: Value, member: &str, value: Value) -> Value {
    document[member] = value;
    document
}

/// prio counts nothing in its classes: the qdisc in each counts. A band's drops and backlog are its qdisc's,
/// and those of an inner class are the sum of those below.
#[test]
fn classes_that_count_nothing() {
    let qdisc = |kind: &str, handle: &str, parent: Option<&str>, count: u64| {
        let counts = json!({"kind": kind, "handle": handle, "bytes": count * 100, "packets": count, "drops": count / 10,
            "backlog": 300, "qlen": 3});
        parent.map_or(counts.clone(), |parent| with(counts, "parent", json!(parent)))
    };
    let class = |kind: &str, handle: &str, parent: Option<&str>, packets: Option<u64>| {
        let counts = json!({"class": kind, "kind": kind, "handle": handle});
        let counts = parent.map_or(counts.clone(), |parent| with(counts, "parent", json!(parent)));
        packets.map_or(counts.clone(), |n| {
            with(counts, "stats", json!({"bytes": n * 100, "packets": n, "drops": 9}))
        })
    };
    let of = |count: u64| {
        document(
            count / 100,
            &json!({
                "name": "eth0",
                "qdiscs": [
                    qdisc("prio", "1:", None, count),
                    with(qdisc("red", "10:", Some("1:1"), count / 2), "marked", json!(count / 20)),
                    qdisc("hfsc", "20:", Some("1:2"), count / 4),
                    qdisc("pfifo", "30:", Some("20:2"), count / 5),
                ],
                "classes": [
                    class("prio", "1:2", None, None),
                    class("prio", "1:1", None, None),
                    class("hfsc", "20:", None, Some(count)),
                    class("hfsc", "20:1", None, Some(count / 4)),
                    class("hfsc", "20:2", Some("20:1"), Some(count / 4)),
                ],
            }),
        )
    };
    let expected = [
        "prio 1:: 80000 bit/s, 100 packets, 300 bytes in 3 wait, 10 lost marks 5",
        "├ 1:1 red 10:: 40000 bit/s, 50 packets, 300 bytes in 3 wait, 5 lost marks 5",
        "└ 1:2 hfsc 20:: 20000 bit/s, 25 packets, 300 bytes in 3 wait, 3 lost",
        "  └ 20:1: 20000 bit/s, 25 packets, 300 bytes in 3 wait, 2 lost",
        "    └ 20:2 pfifo 30:: 20000 bit/s, 25 packets, 300 bytes in 3 wait, 2 lost",
    ];
    assert_eq!(rows(&of(100), &of(200)), expected);
    let course = &device_intervals(&read(&of(100)), &read(&of(200)))[0];
    assert_eq!((course.at_ns, course.over_ns, course.late_ns), (2_000_000_005, 1_000_000_000, None));
    let gone = with(of(200), "devices", json!([{"name": "eth1"}]));
    assert_eq!(device_intervals(&read(&of(100)), &read(&gone)), [], "a device that is in one of them only");
}

/// What half of the packets, and 99 of 100, did not wait longer than: the end of the bucket in which that
/// many are complete, of those that left between the two snapshots.
#[test]
fn waits_by_buckets() {
    let of = |at: u64, buckets: Value| {
        let root = json!({"kind": "fifo", "handle": "1:", "packets": at, "bytes": at});
        let seen = json!({"class": "root", "marked": at, "sojourn_ns": buckets, "oldest_ns": 77});
        document(at, &json!({"name": "eth0", "link_rate_bps": 1000, "qdiscs": [root], "seen": [seen]}))
    };
    let waits = |before: Value, now: Value| {
        let figures = device_intervals(&read(&of(1, before)), &read(&of(2, now)))[0].rows[0].figures;
        assert_eq!((figures.oldest_ns, figures.marks, figures.share), (Some(77), Some(1.0), Some(0.008)));
        (figures.p50_ns, figures.p99_ns)
    };
    let cases = [
        (json!([]), json!([]), (None, None)),
        (json!([]), json!([[10, 1]]), (Some(10), Some(10))),
        (json!([]), json!([[10, 1], [20, 1]]), (Some(10), Some(20))),
        (json!([]), json!([[10, 99], [20, 1]]), (Some(10), Some(10))),
        (json!([]), json!([[10, 98], [20, 2]]), (Some(10), Some(20))),
        (json!([[10, 98], [20, 2]]), json!([[10, 98], [20, 3]]), (Some(20), Some(20))),
        (json!([[10, 5]]), json!([[10, 5]]), (None, None)),
        (json!([[10, 50]]), json!([[10, 3], [30, 1]]), (Some(10), Some(30))),
    ];
    for (before, now, expected) in cases {
        assert_eq!(waits(before.clone(), now.clone()), expected, "{before} {now}");
    }
}

/// The most that a device sends: its root's rate, or the ceilings of its top classes, if each has one.
#[test]
fn what_is_let_through() {
    let class = |handle: &str, parent: Option<&str>, ceil: Option<u64>| {
        let class = json!({"class": "htb", "kind": "htb", "handle": handle, "ceil": ceil});
        parent.map_or(class.clone(), |parent| with(class, "parent", json!(parent)))
    };
    let shaped = |root: Value, classes: Value| {
        let of = document(1, &json!({"name": "eth0", "qdiscs": [root], "classes": classes}));
        device_intervals(&read(&of), &read(&of))[0].shaped_bps
    };
    let htb = || json!({"kind": "htb", "handle": "1:"});
    let cases = [
        (htb(), json!([]), None),
        (htb(), json!([class("1:1", None, Some(125))]), Some(1000.0)),
        (htb(), json!([class("1:1", None, Some(125)), class("1:2", None, Some(250))]), Some(3000.0)),
        (htb(), json!([class("1:1", None, Some(125)), class("1:2", Some("1:1"), Some(250))]), Some(1000.0)),
        (htb(), json!([class("1:1", None, Some(125)), class("1:2", None, None)]), None),
        (htb(), json!([class("2:1", None, Some(125))]), None),
        (json!({"kind": "tbf", "handle": "1:", "options": {"rate": 125}}), json!([]), Some(1000.0)),
    ];
    for (root, classes, expected) in cases {
        assert_eq!(shaped(root.clone(), classes.clone()), expected, "{root} {classes}");
    }
}

/// cake's tins, and what Prometheus must not mistake: quotes and backslashes in labels (its text format
/// 0.0.4).
#[test]
fn prometheus_reads_tins_and_odd_names() {
    let tin = json!({"sent_bytes": 1000, "sent_packets": 10, "drops": 2, "ecn_mark": 3, "ack_drops": 4,
        "backlog_bytes": 50, "avg_delay_us": 2500});
    let cake = json!({"kind": "cake", "handle": "8001:", "packets": 10, "bytes": 1000, "tins": [tin, {}], "ecn_mark": 3,
        "options": {"bandwidth": 125}});
    let seen = |class: &str| json!({"class": class, "dropped": 6, "sojourn_ns": [[8_191, 2], [16_383, 1]]});
    let device = json!({"name": "ifb4\"eth\\0", "qdiscs": [cake], "seen": [seen("none"), seen("root")]});
    let text = exposition([&read(&document(1, &device))], (&[], &[]), "", "0.1.0");
    let has = |wanted: &str| assert!(text.lines().any(|line| line == wanted), "{wanted} is not in\n{text}");
    let labels = r#"netns="",device="ifb4\"eth\\0""#;
    for (what, value) in [("bytes", 1000), ("packets", 10), ("drops", 2), ("marks", 3), ("ack_drops", 4)] {
        has(&format!("tidegate_cake_tin_{what}_total{{{labels},handle=\"8001:\",tin=\"0\"}} {value}"));
        has(&format!("tidegate_cake_tin_{what}_total{{{labels},handle=\"8001:\",tin=\"1\"}} 0"));
    }
    has(&format!("tidegate_cake_tin_backlog{{{labels},handle=\"8001:\",tin=\"0\"}} 50"));
    has(&format!("tidegate_cake_tin_delay_seconds{{{labels},handle=\"8001:\",tin=\"0\"}} 0.0025"));
    has(&format!("tidegate_qdisc_marks_total{{{labels},handle=\"8001:\",parent=\"root\",kind=\"cake\"}} 3"));
    has(&format!("tidegate_dropped_total{{{labels},classid=\"root\"}} 6"));
    has(&format!("tidegate_sojourn_seconds_bucket{{{labels},classid=\"root\",le=\"0.000008192\"}} 2"));
    has(&format!("tidegate_sojourn_seconds_bucket{{{labels},classid=\"root\",le=\"0.000016384\"}} 3"));
    // By the buckets' ends: 2 × 8,191 ns and 16,383 ns.
    has(&format!("tidegate_sojourn_seconds_sum{{{labels},classid=\"root\"}} 0.000032765"));
    assert!(!text.contains("classid=\"none\""), "what had come before anybody looked");
    has(&format!("tidegate_shaper_rate_bits_per_second{{{labels},dir=\"ingress\"}} 1000"));
    has("tidegate_build_info{version=\"0.1.0\"} 1");
}
