//! Queues that are not there, or that hold nothing: what is said of packets that come to them.

use crate::common::{findings_of, given};
use tidegate_inspect::{Explainer, Packet, PolicyModel, Rule, check};

/// A policy on a device without a transmit queue.
fn without_queue(text: &str) -> PolicyModel {
    let mut given = given(&["eth0"], text);
    given.devices[0].1.tx_queue_len = 0;
    PolicyModel::new(given)
}

/// Level, subject and consequence of the findings of a rule.
fn told(policy: &mut PolicyModel, rule: Rule) -> Vec<String> {
    let found = check(policy);
    let own = found.iter().filter(|finding| finding.rule == rule);
    own.map(|finding| format!("{:?}: {}: {}", finding.level, finding.what, finding.because)).collect()
}

fn explained(policy: &PolicyModel, packet: &str) -> String {
    let mut explainer = Explainer::new(policy);
    let packet = Packet::parse(packet).expect("a packet");
    let course = explainer.course(&packet).expect("a course");
    let story = explainer.explain(&packet, course);
    let lines = story.scenes.iter().flat_map(|scene| &scene.lines).map(|line| line.what.clone());
    lines.chain([story.end.text]).collect::<Vec<_>>().join("\n")
}

const PACKET: &str = "tcp 192.168.1.2:80 > 8.8.8.8:22 out eth0";

/// Asked of the kernel (answers-limits/queue-in-script-0-*): what is added without a limit is as long as the
/// device's queue, too.
#[test]
fn a_fifo_without_a_limit_is_as_long_as_the_devices_queue() {
    for kind in ["pfifo", "bfifo", "pfifo_head_drop"] {
        let text = format!(
            "tc qdisc add dev eth0 root handle 1: prio\ntc qdisc add dev eth0 parent 1:2 handle 20: {kind}\n\
             tc qdisc add dev eth0 parent 1:1 sfq\ntc qdisc add dev eth0 parent 1:3 sfq\n"
        );
        let own = "Error: the FIFO of class 1:2 takes no packet: eth0 has a transmit queue of 0 (txqueuelen)";
        let found = told(&mut without_queue(&text), Rule::Limit);
        assert!(found.len() == 1 && found[0].starts_with(own), "{kind}: {found:?}");
    }
}

/// Linux 6.1 was asked: HTB's direct queue is as long as the device's, and of length 0 it drops.
#[test]
fn what_goes_past_all_classes_needs_a_direct_queue() {
    let classes = "tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n\
        tc qdisc add dev eth0 parent 1:10 handle 10: sfq\n";
    let to_itself = format!(
        "tc qdisc add dev eth0 root handle 1: htb\n{classes}\
         tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:0\n"
    );
    let dropped = "its packets are dropped: they belong to no class, and the direct queue of 1: holds none (direct_qlen 0)";
    let mut policy = without_queue(&to_itself);
    let found = told(&mut policy, Rule::Nowhere);
    assert!(found.len() == 1 && found[0].starts_with("Error") && found[0].ends_with(dropped), "{found:?}");
    let default = told(&mut policy, Rule::Default);
    assert!(
        default.len() == 1 && default[0].ends_with("holds none (direct_qlen 0): they are dropped, every one"),
        "{default:?}"
    );
    let story = explained(&policy, PACKET);
    assert!(story.contains("by the direct queue, which holds none (direct_qlen 0)"), "{story}");
    assert!(story.contains("dropped at eth0"), "{story}");
    // With a queue they do go past.
    let found = findings_of(&to_itself, &[Rule::Nowhere]);
    assert!(found.len() == 1 && found[0].contains("go past every class, unshaped"), "{found:?}");
}

/// The class that a packet takes is told although what is attached to it drops it.
#[test]
fn the_path_to_a_queue_that_holds_nothing_is_told() {
    let story = explained(&without_queue("tc qdisc add dev eth0 root handle 1: prio\n"), PACKET);
    assert!(story.contains("priority 0 is band 1 by the map: 1:2") && story.contains("class 1:2"), "{story}");
    assert!(!story.contains("no class takes it"), "{story}");
    let htb = "tc qdisc add dev eth0 root handle 1: htb default 20\n\
        tc class add dev eth0 parent 1: classid 1:1 htb rate 9mbit\n\
        tc class add dev eth0 parent 1:1 classid 1:10 htb rate 1mbit\n\
        tc class add dev eth0 parent 1:1 classid 1:20 htb rate 1mbit\n";
    let story = explained(&without_queue(htb), PACKET);
    assert!(story.contains("no filter decides: the default class 1:20"), "{story}");
    assert!(story.contains("class 1:1: rate 9Mbit") && story.contains("class 1:20: rate 1Mbit"), "{story}");
}

/// Linux 6.1 was asked: sfq and fq_codel look at the number behind the colon only, and drop what their
/// filters lead to a queue that is not there, or to none.
#[test]
fn filters_of_sfq_name_its_queues() {
    for (kind, more) in [("sfq", "1024"), ("fq_codel", "1024"), ("sfq divisor 16", "16")] {
        let of = |flowid: &str| {
            let text = format!(
                "tc qdisc add dev eth0 root handle 10: {kind}\n\
                 tc filter add dev eth0 parent 10: protocol all prio 1 matchall flowid {flowid}\n"
            );
            findings_of(&text, &[Rule::Nowhere, Rule::Default])
        };
        for fine in ["10:5", "1:5", "10:10"] {
            assert_eq!(of(fine), [""; 0], "{kind} {fine}");
        }
        let beyond = of("10:801");
        let queues = format!("has queues 1 to {more}");
        assert!(beyond.len() == 1 && beyond[0].contains("leads to queue 2049 of"), "{beyond:?}");
        assert!(beyond[0].contains("its packets are dropped") && beyond[0].contains(&queues), "{beyond:?}");
        assert_eq!(of("10:0").len(), 1);
    }
}
