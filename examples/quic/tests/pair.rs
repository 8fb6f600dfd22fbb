//! What Linux's queues do to a call over QUIC beside two uploads, with quinn's CUBIC.

use std::time::Duration;
use tidegate_quic_example::{DELAY, Report, run};

/// How long the call's datagrams wait in the queue, but for the fastest of a hundred.
fn waits(report: &Report) -> Duration {
    report.percentile(0.99).saturating_sub(DELAY)
}

fn of(commands: &str) -> Report {
    let report = run(commands, 10).expect(commands);
    println!("{commands}\n{report}\n");
    let queue = report.queue;
    assert_eq!(queue.offered, queue.sent + queue.dropped + u64::from(queue.waiting));
    assert!(report.call.len() > 400, "{report}");
    report
}

fn total(report: &Report) -> f64 {
    report.uploads.iter().sum()
}

#[test]
fn a_fifo_makes_the_call_wait() {
    let report = of("qdisc add dev eth0 root pfifo limit 200");
    assert!(waits(&report) > Duration::from_millis(80) && total(&report) > 8.5, "{report}");
}

#[test]
fn fq_codel_and_cake_keep_it_out_of_the_queue() {
    for commands in ["qdisc add dev eth0 root fq_codel", "qdisc add dev eth0 root cake"] {
        let report = of(commands);
        // A packet of the uploads takes 1.2 ms.
        assert!(waits(&report) < Duration::from_millis(6), "{report}");
        assert!(total(&report) > 8.5, "{report}");
        // The flows share evenly, and are marked: quinn's packets are ECN-capable.
        assert!((report.uploads[0] / report.uploads[1] - 1.0).abs() < 0.1, "{report}");
        assert!(report.queue.marked > 0, "{report}");
    }
}

#[test]
fn dualpi2_holds_its_target_for_all() {
    let report = of("qdisc add dev eth0 root dualpi2");
    // One queue for classic traffic, held at 15 ms.
    let median = report.percentile(0.5).saturating_sub(DELAY);
    assert!(median > Duration::from_millis(8) && median < Duration::from_millis(22), "{report}");
    assert!(total(&report) > 8.0 && report.queue.marked > 0, "{report}");
}

#[test]
fn a_run_can_be_repeated() {
    let run = || run("qdisc add dev eth0 root fq_codel", 3).expect("a queue");
    assert_eq!(run(), run());
}

#[test]
fn a_wrong_command_says_so() {
    let error = run("qdisc add dev eth0 root fq_kodel", 1).expect_err("there is no such qdisc").to_string();
    assert!(
        error.starts_with("line 1: `qdisc add dev eth0 root fq_kodel`: Error: Specified qdisc kind"),
        "{error}"
    );
}
