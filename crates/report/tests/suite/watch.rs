//! What is shown of devices whose policy is at work: from two snapshots to a screen, a line of JSON, Prometheus' figures.

use serde_json::{Value, json};
use tidegate_analysis::watch::{Policy, Snapshot, courses, exposition, line};
use tidegate_report::watch::screen;

fn class(handle: &str, parent: Option<&str>, [rate, ceil]: [u64; 2], [packets, borrowed]: [u64; 2]) -> Value {
    let mut class = json!({"class": "htb", "kind": "htb", "handle": handle, "rate": rate / 8, "ceil": ceil / 8,
        "stats": {"bytes": packets * 1000, "packets": packets, "drops": 0, "overlimits": 0, "requeues": 0, "backlog": 0, "qlen": 0,
            "lended": packets - borrowed, "borrowed": borrowed}});
    match parent {
        Some(parent) => class["parent"] = json!(parent),
        None => class["root"] = json!(true),
    }
    class
}

fn qdisc(kind: &str, handle: &str, parent: Option<&str>, packets: u64, [drops, qlen]: [u64; 2]) -> Value {
    let mut qdisc = json!({"kind": kind, "handle": handle, "options": {}, "bytes": packets * 1000, "packets": packets,
        "drops": drops, "overlimits": 7, "requeues": 0, "backlog": qlen * 1000, "qlen": qlen});
    match parent {
        Some(parent) => qdisc["parent"] = json!(parent),
        None => qdisc["root"] = json!(true),
    }
    qdisc
}

/// A link of 100 Mbit/s shaped to one: calls, and all else, which borrows, queues, loses and marks.
fn snapshot(at_s: u64, calls: u64, rest: u64) -> Value {
    let seen = |class: &str, marked: u64, sojourn: Value, oldest: Value| json!({"class": class, "marked": marked, "lost": 0, "sojourn_ns": sojourn, "oldest_ns": oldest});
    json!({"version": 1, "at_ns": at_s * 1_000_000_000, "backend": "user", "door": "capture",
    "counts": {"taken": calls + rest, "passed": calls + rest, "late": 2, "latest_ns": 12_300_000},
    "devices": [{"name": "eth0", "link_rate_bps": 100_000_000,
        "qdiscs": [
            qdisc("htb", "1:", None, calls + rest, [rest / 10, 5]),
            qdisc("fq_codel", "20:", Some("1:20"), rest, [rest / 10, 5]),
            qdisc("pfifo", "10:", Some("1:10"), calls, [0, 0]),
            qdisc("clsact", "ffff:", Some("ffff:fff1"), 0, [0, 0]),
        ],
        "classes": [
            class("1:20", Some("1:1"), [400_000, 1_000_000], [rest, rest / 2]),
            class("1:1", None, [1_000_000; 2], [calls + rest, 0]),
            class("1:10", Some("1:1"), [600_000, 1_000_000], [calls, 0]),
            json!({"class": "fq_codel", "kind": "fq_codel", "handle": "20:1f", "parent": "20:", "stats": {}}),
        ],
        "seen": [
            seen("1:10", 0, json!([[1_023, calls]]), Value::Null),
            seen("1:20", rest / 5, json!([[1_048_575, rest - rest / 50], [67_108_863, rest / 50]]), json!(2_500_000_000_u64)),
        ]}]})
}

fn read(value: &Value) -> Snapshot {
    Snapshot::read(&value.to_string()).expect("a snapshot")
}

#[test]
fn a_screen_of_eighty_columns() {
    let [before, now] = [(10, 100, 1000), (12, 200, 1100)].map(|(at, calls, rest)| read(&snapshot(at, calls, rest)));
    let shown: String = courses(&before, &now).iter().map(|course| screen(course, 80)).collect();
    let expected = "\
eth0  1.00 Mbit/s of 100 Mbit/s  user space (capture)  over 2.00 s  late 12.3ms!
class                  bit/s share backlog     p50     p99  oldest drop/s mark/s
htb 1:                  800k   80%   5.00k  1.02µs  1.05ms   2.50s    5.0     10
└ 1:1                   800k   80%   5.00k  1.02µs  1.05ms   2.50s    5.0     10
  ├ 1:10 pfifo 10:      400k   40%       0  1.02µs  1.02µs       –      0      0
  └ 1:20 fq_codel 20:   400k   40%   5.00k  1.05ms  67.1ms   2.50s    5.0     10
clsact ffff:               0    0%       0       –       –       –      0      0
";
    assert_eq!(shown, expected);
}

#[test]
fn what_has_no_room_goes_and_names_are_cut() {
    let [before, now] = [(10, 100, 1000), (12, 200, 1100)].map(|(at, calls, rest)| read(&snapshot(at, calls, rest)));
    let course = &courses(&before, &now)[0];
    for columns in [20, 40, 60, 80, 120, 200] {
        let shown = screen(course, columns);
        let widest = shown.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(columns), "{columns} columns:\n{shown}");
    }
    assert!(screen(course, 120).contains("packet/s"), "there is room for more");
}

/// A policy that was put there anew begins to count anew.
#[test]
fn counters_that_were_set_back_count_from_nothing() {
    let [before, now] = [(10, 100, 1000), (11, 50, 20)].map(|(at, calls, rest)| read(&snapshot(at, calls, rest)));
    let course = &courses(&before, &now)[0];
    let rates: Vec<_> = course.rows.iter().map(|row| (row.id.as_str(), row.figures.pps)).collect();
    assert_eq!(rates, [("htb 1:", 70.0), ("1:1", 70.0), ("1:10", 50.0), ("1:20", 20.0), ("clsact ffff:", 0.0)]);
}

#[test]
fn a_line_of_json_says_the_same() {
    let [before, now] = [(10, 100, 1000), (12, 200, 1100)].map(|(at, calls, rest)| read(&snapshot(at, calls, rest)));
    let line = line(&courses(&before, &now)[0]);
    let expected = json!({"class": "1:20", "qdisc": "fq_codel 20:", "bps": 400_000.0, "pps": 50.0, "share": 0.4,
        "backlog_bytes": 5000, "backlog_packets": 5, "sojourn_p50_ns": 1_048_575, "sojourn_p99_ns": 67_108_863,
        "oldest_ns": 2_500_000_000_u64, "drops_per_s": 5.0, "marks_per_s": 10.0, "borrowed": 0.5, "rate_bps": 400_000.0, "ceil_bps": 1_000_000.0});
    assert_eq!(line["classes"][3], expected);
    assert_eq!([&line["device"], &line["over_ns"]], [&json!("eth0"), &json!(2_000_000_000)]);
}

/// What the kernel tells has no times and no door; the tree is the same.
#[test]
fn what_is_not_told_is_nothing() {
    let plain = |at| {
        let mut document = snapshot(at, 100, 1000);
        for member in ["door", "counts"] {
            document.as_object_mut().expect("an object").remove(member);
        }
        document["devices"][0].as_object_mut().expect("an object").remove("seen");
        document["backend"] = json!("kernel");
        read(&document)
    };
    let shown = screen(&courses(&plain(10), &plain(11))[0], 80);
    assert!(shown.starts_with("eth0  1.00 Mbit/s of 100 Mbit/s  kernel  over 1.00 s\n"), "{shown}");
    assert_eq!(shown.lines().count(), 7, "{shown}");
    let told = Snapshot::read("{\"version\":1,\"at_ns\":0,\"backend\":\"kernel\",\"devices\":[]}");
    assert_eq!(told.map(|snapshot| snapshot.devices.len()), Ok(0));
    let wrong = Snapshot::read("{\"version\":2}").expect_err("another form").to_string();
    assert!(wrong.starts_with("version: form 2, where this version reads form 1"), "{wrong}");
}

/// Every figure of a name stands with the others, after its help and type; histograms go up to all there is.
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
    let text = exposition([&read(&snapshot(10, 100, 1000))], &[waiting], "net-1", "0.1.0");
    for wanted in [
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
        "tidegate_sojourn_seconds_bucket{netns=\"net-1\",device=\"eth0\",classid=\"1:20\",le=\"+Inf\"} 1000\n",
        "tidegate_sojourn_seconds_count{netns=\"net-1\",device=\"eth0\",classid=\"1:20\"} 1000\n",
        "tidegate_shaper_rate_bits_per_second{netns=\"net-1\",device=\"eth0\",dir=\"egress\"} 1000000\n",
        "tidegate_engine_packets_total{netns=\"net-1\",device=\"eth0\",fate=\"taken\"} 1100\n",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }
    let mut family = "";
    for line in text.lines() {
        match line.strip_prefix("# TYPE ") {
            Some(told) => family = told.split(' ').next().unwrap_or_default(),
            None if line.starts_with("# HELP ") => {}
            None => {
                let (name, value) = line.rsplit_once(' ').expect("a name and a value");
                assert!(name.starts_with(family) && value.parse::<f64>().is_ok(), "{line} is none of {family}");
            }
        }
    }
    let mut types: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let all = types.len();
    types.sort_unstable();
    types.dedup();
    assert_eq!(types.len(), all, "a name's figures stand together");
}
