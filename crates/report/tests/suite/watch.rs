//! What is shown of devices whose policy is at work: from two snapshots to a screen, a line of JSON,
//! Prometheus' figures.

use crate::fixture::watch::{read, snapshot};
use serde_json::json;
use tidegate_analysis::watch::{ControlMode, LastDecision, ShaperControl, Snapshot, device_intervals, line};
use tidegate_report::watch::screen;

#[test]
fn a_screen_of_eighty_columns() {
    let [before, now] =
        [(10, 100, 1000), (12, 200, 1100)].map(|(at, calls, rest)| read(&snapshot(at, calls, rest)));
    let shown: String = device_intervals(&before, &now).iter().map(|course| screen(course, 80)).collect();
    let expected = "\
eth0  1.00 Mbit/s of 100 Mbit/s  user space (capture)  over 2.00 s  late 12.3ms!
class                  bit/s share backlog     p50     p99  oldest drop/s mark/s
htb 1:                  800k   80%   5.00k  1.02µs  1.05ms   2.50s    5.0     10
└ 1:1                   800k   80%   5.00k  1.02µs  1.05ms   2.50s    5.0     10
  ├ 1:10 pfifo 10:      400k   40%       0  1.02µs  1.02µs       –      0      0
  └ 1:20 fq_codel 20:   400k   40%   5.00k  1.05ms  67.1ms   2.50s    5.0     10
clsact ffff:               0     –       0       –       –       –      0      0
";
    assert_eq!(shown, expected);
}

#[test]
fn what_has_no_room_goes_and_names_are_cut() {
    let [before, now] =
        [(10, 100, 1000), (12, 200, 1100)].map(|(at, calls, rest)| read(&snapshot(at, calls, rest)));
    let course = &device_intervals(&before, &now)[0];
    for columns in [20, 40, 60, 80, 120, 200] {
        let shown = screen(course, columns);
        let widest = shown.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(columns), "{columns} columns:\n{shown}");
    }
    assert!(screen(course, 120).contains("packet/s"), "there is room for more");
}

/// The kernel's figures have no times and no packet I/O backend; the tree is the same.
#[test]
fn missing_figures_are_none() {
    let plain = |at| {
        let mut document = snapshot(at, 100, 1000);
        for member in ["packet_io", "counts"] {
            document.as_object_mut().expect("an object").remove(member);
        }
        document["devices"][0].as_object_mut().expect("an object").remove("seen");
        document["backend"] = json!("kernel");
        read(&document)
    };
    let shown = screen(&device_intervals(&plain(10), &plain(11))[0], 80);
    assert!(shown.starts_with("eth0  1.00 Mbit/s of 100 Mbit/s  kernel  over 1.00 s\n"), "{shown}");
    assert_eq!(shown.lines().count(), 7, "{shown}");
    let result = Snapshot::read("{\"version\":1,\"at_ns\":0,\"backend\":\"kernel\",\"devices\":[]}");
    assert_eq!(result.map(|snapshot| snapshot.devices.len()), Ok(0));
    let wrong = Snapshot::read("{\"version\":2}").expect_err("another form").to_string();
    assert!(wrong.starts_with("version: form 2, where this version reads form 1"), "{wrong}");
}

/// What a controller of the rate does is below the device, in each of its modes; in JSON it is whole.
#[test]
fn a_controller_has_a_line_of_its_own() {
    let (before, now) = (read(&snapshot(10, 100, 1000)), read(&snapshot(11, 200, 2000)));
    let last =
        LastDecision { reason: "delay-high".into(), words: "delay is high".into(), delay_ms: Some(34.0) };
    let control = ShaperControl {
        device: "eth0".into(),
        direction: "upload".into(),
        controller: "tidegate".into(),
        rate: 3_000_000,
        least: 600_000,
        base: 2_000_000,
        most: 6_000_000,
        decisions: [("delay-high".to_owned(), 11), ("begin".to_owned(), 1)].into(),
        last: Some(last),
        ..ShaperControl::default()
    };
    let mut interval = device_intervals(&before, &now).remove(0);
    let mut shown = |mode, last: bool| {
        let mut control = ShaperControl { mode, ..control.clone() };
        if !last {
            (control.last, control.decisions) = (None, [("begin".to_owned(), 1)].into());
        }
        interval.control = Some(control);
        let text = screen(&interval, 200);
        text.lines().skip(1).take_while(|line| line.starts_with("  ")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(
        shown(ControlMode::Controls, true),
        "  autorate (tidegate): upload 3.00 Mbit/s of 600 kbit/s to 6.00 Mbit/s\n  12 decisions, last: delay is \
         high (34.0 ms)"
    );
    assert_eq!(shown(ControlMode::Idle, false), "  autorate (tidegate): upload 2.00 Mbit/s: no load");
    assert_eq!(
        shown(ControlMode::Blind, false),
        "  autorate (tidegate): upload 3.00 Mbit/s: no target replies"
    );
    assert_eq!(
        shown(ControlMode::Gone, false),
        "  autorate (tidegate): upload: a shaper is gone, and looked for"
    );
    let json = line(&interval);
    assert_eq!((&json["autorate"]["mode"], &json["autorate"]["rate"]), (&"gone".into(), &3_000_000.into()));
    interval.control = None;
    assert!(!screen(&interval, 200).contains("autorate") && line(&interval)["autorate"].is_null());
}
