//! Findings about rates and queues, each with its condition.

use crate::common::{check_finding, findings_of, silent};
use tidegate_inspect::Rule;

/// Only one direction passes a bucket.
#[test]
fn a_bucket_without_room_stalls_what_passes_it() {
    let of =
        |dev: &str| format!("tc qdisc add dev {dev} root handle 1: tbf rate 8mbit burst 1400 latency 50ms");
    for dev in ["eth0", "eth1"] {
        let parts =
            ["error R12", "dropped, every one: transfers whose data passes", &format!("passes {dev} stall")];
        check_finding(&of(dev), &[Rule::Burst], &parts);
    }
    let limit = "tc qdisc add dev eth0 root handle 1: tbf rate 8mbit burst 10k limit 1000";
    check_finding(
        limit,
        &[Rule::Limit],
        &["error R13", "dropped, every one: transfers whose data comes here stall"],
    );
}

/// A class that no packet comes to sends nothing, whatever it is promised.
#[test]
fn idle_classes_are_not_busy() {
    let tree = |filters: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 30\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:10 htb rate 4mbit ceil 10mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:20 htb rate 6mbit ceil 10mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:30 htb rate 8mbit ceil 10mbit\n\
             {filters}"
        )
    };
    let filter = |port: u16, class: &str| {
        format!(
            "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport {port} 0xffff flowid \
            {class}\n"
        )
    };
    let both = tree(&(filter(80, "1:10") + &filter(81, "1:20")));
    check_finding(
        &both,
        &[Rule::Rates],
        &["2 warning R3", "promised 18 Mbit/s", "when all are busy 18 Mbit/s leave"],
    );
    let one = tree(&filter(80, "1:10"));
    let parts = [
        "2 warning R3",
        "promised 18 Mbit/s",
        "when all that get packets are busy 12 Mbit/s leave instead of 10 Mbit/s",
        "with every leaf that gets packets below it kept full, 12 Mbit/s leave",
    ];
    check_finding(&one, &[Rule::Rates], &parts);
    // Beside the default class nothing gets any.
    let none = findings_of(&tree(""), &[Rule::Rates]);
    assert_eq!(none.len(), 1, "{none:?}");
    assert!(
        none[0].contains("2 note R3") && none[0].contains("no packet reaches some of them yet"),
        "{none:?}"
    );
    assert!(!none[0].contains("busy"), "{none:?}");
    // And where the leaves of a class below are all idle, so is that.
    let nested = tree(&filter(80, "1:10"))
        + "tc class add dev eth0 parent 1:20 classid 1:21 htb rate 6mbit ceil 10mbit";
    check_finding(&nested, &[Rule::Rates], &["when all that get packets are busy 12 Mbit/s leave"]);
}

/// The topmost class has no one to take from.
#[test]
fn the_topmost_class_takes_nothing_from_a_parent() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 20\n\
                tc class add dev eth0 parent 1: classid 1:1 htb rate 6mbit ceil 10mbit\n\
                tc class add dev eth0 parent 1:1 classid 1:10 htb rate 4mbit\n\
                tc class add dev eth0 parent 1:1 classid 1:20 htb rate 4mbit\n\
                tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:10";
    check_finding(
        text,
        &[Rule::Rates],
        &["2 note R3", "the parent sends more than its rate, which its ceil allows"],
    );
}

/// HFSC's real time counts where packets come.
#[test]
fn real_time_of_idle_classes_is_not_sent() {
    let tree = |port: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: hfsc default 20\n\
             tc class add dev eth0 parent 1: classid 1:1 hfsc ls m2 8mbit ul m2 8mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:10 hfsc rt m2 6mbit ls m2 6mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:20 hfsc rt m2 6mbit ls m2 2mbit\n{port}"
        )
    };
    silent(&tree(""), &[Rule::Rates]);
    let port = "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:10";
    check_finding(&tree(port), &[Rule::Rates], &["when all below it are busy they send 12 Mbit/s"]);
}

/// The delay of a netem is no queue. With 30 packets at 8 Mbit/s the bucket holds 45 ms of them, whatever
/// netem adds.
#[test]
fn the_delay_of_a_netem_above_is_no_queue() {
    let tree = |delay: &str, limit: &str| {
        // A queue may be hung on the qdisc itself.
        format!(
            "tc qdisc add dev eth0 root handle 1: netem delay {delay}\n\
             tc qdisc add dev eth0 parent 1: handle 2: tbf rate 8mbit burst 5k limit {limit}"
        )
    };
    silent(&tree("500ms", "45k"), &[Rule::NoAqm]);
    silent(&tree("500ms 50ms", "45k"), &[Rule::NoAqm]);
    check_finding(
        &tree("500ms", "200k"),
        &[Rule::NoAqm],
        &["filled, its queue takes 1", "netem's delay aside"],
    );
    let class = "tc qdisc add dev eth0 root handle 1: htb default 10\n\
                 tc class add dev eth0 parent 1: classid 1:10 htb rate 8mbit\n\
                 tc qdisc add dev eth0 parent 1:10 handle 10: netem delay 400ms\n\
                 tc qdisc add dev eth0 parent 10:1 handle 20: pfifo limit 20";
    silent(class, &[Rule::NoAqm]);
}

/// sfq has queues for the numbers of a filter of its own, and no classes.
#[test]
fn a_hash_deals_into_what_its_qdisc_has() {
    let sfq = "tc qdisc add dev eth0 root handle 1: sfq\n\
               tc filter add dev eth0 parent 1: protocol all prio 1 handle 1 flow hash keys src divisor 1024";
    check_finding(sfq, &[Rule::Collisions], &["hosts (by src) are dealt into 1024 queues by a hash"]);
}

/// Behind translated addresses the sets of packets are wider than the truth: only a packet that the engine
/// has go to the earlier filter shows anything.
#[test]
fn a_packet_of_no_filter_is_no_evidence_of_one() {
    let filter = |prio: u16, class: &str| {
        format!(
            "tc filter add dev eth0 parent 10: protocol ip prio {prio} u32 match ip protocol 17 0xff match ip \
            dport 53 0xffff flowid {class}\n"
        )
    };
    let tree =
        format!("tc qdisc add dev eth0 root handle 10: prio\n{}{}", filter(1, "10:1"), filter(2, "10:3"));
    let parts = ["what it matches goes to 10:1", ":53 out eth0: 10:1"];
    check_finding(&tree, &[Rule::Unreachable], &parts);
    let translated = tree + "iptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE\n";
    check_finding(
        &translated,
        &[Rule::Unreachable],
        &["what it matches goes where that one leads, not to 10:3"],
    );
    let found = findings_of(&translated, &[Rule::Unreachable]);
    assert!(!found.iter().any(|finding| finding.contains("443")), "{found:?}");
}
