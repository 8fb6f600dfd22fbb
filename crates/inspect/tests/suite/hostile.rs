//! Policies made to provoke false findings: what was false, with what Linux 6.1 does.

use super::waits::at_worst;
use crate::common::{check_finding, findings_of, reading};
use tidegate_inspect::{Rule, pairs};
use tidegate_packet::Handle;

/// A filter that gets no packets leads none to the default class.
#[test]
fn what_reaches_no_filter_goes_nowhere_by_it() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 99\n\
                tc class add dev eth0 parent 1: classid 1:99 htb rate 1mbit\n\
                tc class add dev eth0 parent 1: classid 1:10 htb rate 9mbit\n\
                tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.0/8 flowid 1:10\n\
                tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dst 10.1.0.0/16 flowid 1:11";
    check_finding(
        text,
        &[Rule::Nowhere],
        &["its packets take the default class 1:99 (no packet reaches it yet)"],
    );
    let alone = text.replace("10.1.0.0/16", "172.16.0.0/12");
    let found = findings_of(&alone, &[Rule::Nowhere]);
    assert!(found[0].contains("default class 1:99; classes of"), "{found:?}");
}

/// The class borrows nothing: it waits as long whatever the others do, and only the measurement would be
/// longer.
#[test]
fn a_wait_too_long_to_measure_is_no_less() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 99\n\
                tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit\n\
                tc class add dev eth0 parent 1:1 classid 1:99 htb rate 100kbit\n\
                tc class add dev eth0 parent 1:1 classid 1:10 htb rate 9mbit ceil 10mbit\n\
                tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.0/8 flowid 1:10";
    let found = findings_of(text, &[Rule::Limit]);
    assert!(
        found[0]
            .contains("121.1 s while the other classes are idle, and 121.1 s at the 100 kbit/s that it is"),
        "{found:?}"
    );
}

/// What a tree within a netem does with a packet shows when its delay is over: it was reported in the direct
/// queue.
#[test]
fn a_tree_within_a_netem_is_not_reckoned() {
    let text = "tc qdisc add dev eth0 root handle 1: netem delay 30ms limit 20\n\
                tc qdisc add dev eth0 parent 1:1 handle 2: htb default 10\n\
                tc class add dev eth0 parent 2: classid 2:10 htb rate 3mbit\n\
                tc qdisc add dev eth0 parent 2:10 pfifo limit 1000";
    let output = "netem holds it back for 30.0 ms\n\
                then it goes into htb 2:, which hangs in netem\n\
                netem 1: takes no more than 20 packets, those that wait below it included\n";
    assert_eq!(at_worst(text), output);
    let bucket = "tc qdisc add dev eth0 root handle 1: netem delay 30ms limit 20\n\
                  tc qdisc add dev eth0 parent 1:1 handle 2: tbf rate 1mbit burst 5k limit 15000\n\
                  tc qdisc add dev eth0 parent 2:1 handle 3: fq_codel";
    assert!(at_worst(bucket).contains("then it goes into tbf 2:"), "{}", at_worst(bucket));
}

/// A target below a millisecond is not none.
#[test]
fn short_targets_have_figures() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 10\n\
                tc class add dev eth0 parent 1: classid 1:10 htb rate 10mbit\n\
                tc qdisc add dev eth0 parent 1:10 fq_codel target 100us";
    assert!(
        at_worst(text).contains("that takes 1.2 ms here, more than its target of 99 µs"),
        "{}",
        at_worst(text)
    );
}

/// NAT leaves no host of 192.168.0.0/24 in the class: the sets do not know, the engine does.
#[test]
fn packets_of_a_class_are_those_that_come_to_it() {
    let tree = "tc qdisc add dev eth0 root handle 1: htb default 20\n\
                tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n\
                tc class add dev eth0 parent 1: classid 1:20 htb rate 1mbit\n";
    let translated = format!(
        "{tree}tc filter add dev eth0 parent 1: protocol ip u32 match ip src 192.168.1.0/24 flowid 1:10\n\
         iptables -t nat -A POSTROUTING -o eth0 -s 192.168.1.0/24 -j SNAT --to-source 203.0.113.5"
    );
    let by_rule = format!(
        "{tree}iptables -t mangle -A POSTROUTING -o eth0 -s 192.168.1.0/24 -j CLASSIFY --set-class 1:10"
    );
    let (first, second) = (reading(&["eth0"], &translated), reading(&["eth0"], &by_rule));
    let found = pairs(&first, &second, &[("eth0".into(), "eth0".into())]).expect("decided");
    let (ten, twenty) = (Handle::new(1, 0x10), Handle::new(1, 0x20));
    let shown = |from: Handle, to: Handle| found.iter().any(|pair| (pair.from.1, pair.to.1) == (from, to));
    assert!(!shown(ten, twenty) && shown(twenty, ten), "{found:#?}");
}
