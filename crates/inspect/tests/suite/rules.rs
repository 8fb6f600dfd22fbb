//! What the checker says of small policies: one sentence, one condition.

use crate::common::reading;
use tidegate_inspect::{Finding, Witness, check};
use tidegate_packet::Handle;

/// Findings of some rules: line, level, rule, what is wrong, and the remedy.
fn found(policy: &str, rules: &[&str]) -> Vec<String> {
    let mut reading = reading(&["eth0", "ifb0"], policy);
    let told = |finding: &Finding| {
        let line = finding.place.as_ref().map_or(0, |place| place.line);
        let fix = finding.fix.as_ref().map_or(String::new(), |fix| format!(" | {}", fix.what));
        format!("{line} {} {}: {}{fix}", finding.level.name(), finding.rule.id(), finding.what)
    };
    let wanted = |finding: &&Finding| rules.contains(&finding.rule.id());
    check(&mut reading).iter().filter(wanted).map(told).collect()
}

#[test]
fn a_limit_below_a_frame_takes_no_long_packet() {
    let under_htb = "tc qdisc add dev eth0 root handle 1: htb default 10\n\
        tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\n\
        tc qdisc add dev eth0 parent 1:10 handle 10: ";
    let of = |queue: &str| found(&format!("{under_htb}{queue}\n"), &["R13"]);
    assert_eq!(of("bfifo limit 1500"), ["3 error R13: bfifo with limit 1500 takes no frame of 1514 bytes"]);
    assert_eq!(of("pfifo limit 0"), ["3 error R13: pfifo with limit 0 takes no packet"]);
    assert_eq!(of("bfifo limit 60000"), [""; 0]);
    // What only acknowledgements come to may be as short as they are.
    let policer = "tc qdisc add dev eth0 root handle 1: bfifo limit 1500\n";
    assert_eq!(found(policer, &["R13"]).len(), 1);
}

#[test]
fn a_queue_of_tbf_is_measured_wherever_it_hangs() {
    let of = |parent: &str, tbf: &str| {
        let root = if parent == "root" { String::new() } else { "tc qdisc add dev eth0 root handle 1: prio\n".into() };
        found(&format!("{root}tc qdisc add dev eth0 {parent} tbf rate 1mbit burst 10k {tbf}\n"), &["R13"])
    };
    let long = of("parent 1:3 handle 30:", "limit 600000");
    assert!(long[0].starts_with("2 warning R13: limit 600000 lets 4.7 s of packets wait"), "{long:?}");
    assert!(long[0].contains("parent 30:1 fq_codel"), "{long:?}");
    assert!(of("parent 1:3", "limit 20000").is_empty());
    // The word is the one that was written, and a number that the kernel chooses is none to count on.
    let unnamed = of("root", "latency 900ms");
    assert!(unnamed[0].starts_with("1 note R13: latency 900ms lets 899 ms of packets wait"), "{unnamed:?}");
    assert!(!unnamed[0].contains("8001:") && unnamed[0].contains("`handle 1:`"), "{unnamed:?}");
}

#[test]
fn a_bare_rtt_of_cake_is_microseconds() {
    let of = |rtt: &str| found(&format!("tc qdisc add dev eth0 root cake bandwidth 10mbit rtt {rtt}\n"), &["R17"]);
    assert_eq!(of("20"), ["1 warning R17: rtt 20 is 20 µs | write 20ms if milliseconds are meant"]);
    assert_eq!((of("20ms").len(), of("20000").len()), (0, 0));
}

#[test]
fn bands_of_a_qdisc_without_a_handle_are_named_by_their_place() {
    let map = "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1";
    let of = |handle: &str| found(&format!("tc qdisc add dev eth0 root {handle} prio priomap {map}\n"), &["R23"]);
    assert_eq!(of(""), ["1 note R23: no packet comes to :1, :3 of the prio at the root on eth0"]);
    assert_eq!(of("handle 7:"), ["1 note R23: no packet comes to 7:1, 7:3 on eth0"]);
}

#[test]
fn classes_of_a_short_policy_have_their_names() {
    let policy = "tc qdisc add dev eth0 root handle 1: prio\n\
        tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff flowid 1:1\n\
        tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip protocol 6 0xff flowid 1:2\n";
    let of = |names: &[(&str, u16, &str)]| {
        let mut reading = reading(&["eth0", "ifb0"], policy);
        let class =
            |(dev, minor, name): &(&str, u16, &str)| (((*dev).to_owned(), Handle::new(1, *minor)), (*name).to_owned());
        reading.names = names.iter().map(class).collect();
        let found = check(&mut reading);
        let dead = found.iter().find(|finding| finding.rule.id() == "R1").expect("is found");
        let Some(Witness::Packet { went, .. }) = &dead.witness else { panic!("a packet shows it") };
        format!("{}; {went}", dead.because)
    };
    assert_eq!(of(&[]), "what it asks for goes to 1:1, not to 1:2; 1:1");
    let named = [("eth0", 1, "web"), ("eth0", 2, "more")];
    assert_eq!(of(&named), "what it asks for goes to 1:1 (web), not to 1:2 (more); 1:1 (web)");
    // A number that means one thing here and another there has no name.
    let differ = [("eth0", 1, "web"), ("ifb0", 1, "calls")];
    assert_eq!(of(&differ), "what it asks for goes to 1:1, not to 1:2; 1:1");
}

/// Three classes, and filters on what is behind.
fn filters(lines: &[&str]) -> Vec<String> {
    let mut policy = "tc qdisc add dev eth0 root handle 1: prio\n".to_owned();
    for line in lines {
        policy.push_str(&format!("tc filter add dev eth0 parent 1: protocol ip {line}\n"));
    }
    found(&policy, &["R1"])
}

#[test]
fn a_dead_filter_is_removed_only_where_nothing_is_lost() {
    let (ssh, all) = ("u32 match ip protocol 6 0xff match ip dport 22 0xffff", "u32 match ip dst 0.0.0.0/0");
    let remedy = |lines: &[&str]| {
        let found = filters(lines);
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].split(" | ").nth(1).unwrap_or_default().to_owned()
    };
    // Its packets go where it leads all the same.
    let alike = [format!("prio 1 {all} flowid 1:1"), format!("prio 2 {ssh} flowid 1:1")];
    assert_eq!(remedy(&alike.each_ref().map(String::as_str)), "remove the line");
    // It was meant for some of them: it belongs before.
    let late = [format!("prio 2 {all} flowid 1:1"), format!("prio 3 {ssh} flowid 1:2")];
    assert_eq!(remedy(&late.each_ref().map(String::as_str)), "have it asked before them: prio 1");
    // The same is asked twice: which is meant is not known.
    let twice = [format!("prio 1 {ssh} flowid 1:1"), format!("prio 2 {ssh} flowid 1:2")];
    assert!(remedy(&twice.each_ref().map(String::as_str)).contains("keep those that are meant"));
}

#[test]
fn the_same_mark_once_more_is_not_another() {
    let rules = |marks: [u32; 3]| {
        let [first, second, third] = marks;
        let policy = format!(
            "tc qdisc add dev eth0 root handle 1: prio\n\
             tc filter add dev eth0 parent 1: protocol ip prio 1 handle 3 fw flowid 1:1\n\
             tc filter add dev eth0 parent 1: protocol ip prio 1 handle 2 fw flowid 1:2\n\
             iptables -t mangle -A POSTROUTING -p tcp --dport 443 -j MARK --set-mark {first}\n\
             iptables -t mangle -A POSTROUTING -p tcp --sport 443 -j MARK --set-mark {second}\n\
             iptables -t mangle -A POSTROUTING -p tcp -j MARK --set-mark {third}\n"
        );
        found(&policy, &["R8"])
    };
    let lost = rules([2, 2, 3]);
    assert_eq!(lost.len(), 2, "{lost:?}");
    assert!(lost[0].contains("mark 2 is gone again before any queue: line 6 writes another over it"), "{lost:?}");
    let kept = rules([2, 2, 2]);
    assert!(kept.iter().all(|finding| !finding.contains("mark 2")), "{kept:?}");
}

#[test]
fn marks_that_the_priomap_alone_sorts_are_led_by_a_filter() {
    let policy = "tc qdisc add dev eth0 root handle 1: prio\n\
        tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip tos 0x10 0xff match ip protocol 6 0xff match ip dport 22 0xffff flowid 1:1\n";
    let found = found(policy, &["R2"]);
    assert!(
        found[0]
            .ends_with("the priomap leads them there: a filter by their DSCP leads them to a class served before 1:2"),
        "{found:?}"
    );
}
