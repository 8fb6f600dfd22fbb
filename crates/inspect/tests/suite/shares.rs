//! Findings about how classes and queues share, with remedies that hold.

use crate::common::reading;
use crate::rules::found;
use tidegate_inspect::{Finding, Level, Rule, check};
use tidegate_packet::LinuxVersion;

/// What is known to differ between releases is noted where it can show, and only when two are compared.
#[test]
fn what_changes_between_releases_is_noted_where_it_can_show() {
    let of = |policy: &str, until: Option<LinuxVersion>| -> Vec<String> {
        let mut reading = reading(&["eth0", "ifb0"], policy);
        reading.until = until;
        let is_of_releases = |finding: &&Finding| finding.rule == Rule::Release;
        let line = |finding: &Finding| finding.place.as_ref().map_or(0, |place| place.line);
        let told = |finding: &Finding| {
            assert_eq!((finding.level, finding.fix.as_ref()), (Level::Note, None));
            format!("{} {} ({})", line(finding), finding.what, finding.because)
        };
        check(&mut reading).iter().filter(is_of_releases).map(told).collect()
    };
    let newer = Some(LinuxVersion::V7_2);
    let count = |policy: &str| -> Vec<String> {
        let words = |line: &String| line.split(" (").next().unwrap_or_default().to_owned();
        of(&format!("tc qdisc add dev eth0 {policy}\n"), newer).iter().map(words).collect()
    };
    assert_eq!(of("tc qdisc add dev eth0 root fq_codel\n", None), [""; 0]);
    assert_eq!(count("root pfifo limit 100"), [""; 0]);
    assert_eq!(count("root netem delay 10ms"), [""; 0]);
    assert_eq!(
        count("root netem delay 10ms loss 1%"),
        ["1 netem differs between Linux 6.1 and 7.2 in one way"]
    );
    // As few packets may wait as 7.2 drops at once; below another qdisc nothing is seen of an order.
    assert_eq!(count("root codel limit 256"), ["1 codel differs between Linux 6.1 and 7.2 in one way"]);
    assert_eq!(count("root codel limit 257"), ["1 codel differs between Linux 6.1 and 7.2 in 2 ways"]);
    let below = "tc qdisc add dev eth0 root handle 1: prio\ntc qdisc add dev eth0 parent 1:1 codel limit 9\n";
    assert_eq!(of(below, newer), [""; 0]);
    assert_eq!(
        count("root codel limit 256 interval 60ms"),
        ["1 codel differs between Linux 6.1 and 7.2 in 2 ways"]
    );
    // Of two that 7.2 takes, 6.1 refuses the second.
    let two = "tc qdisc add dev eth0 root handle 1: netem delay 1ms duplicate 50%\n\
               tc qdisc add dev eth0 parent 1: handle 2: netem delay 1ms\n";
    let mut given = crate::common::given(&["eth0"], two);
    let refused = "Error: netem: cannot mix duplicating netems with other netems in tree.\n";
    given.steps[1].refused = Some(refused.to_owned());
    let mut reading = tidegate_inspect::PolicyModel::new(given);
    reading.until = newer;
    let found = check(&mut reading);
    let is_about =
        |finding: &&Finding| finding.what == "Linux 6.1 refuses this command, which Linux 7.2 takes";
    let found = found.iter().find(is_about).expect("it is noted");
    assert_eq!(found.place.as_ref().map(|place| place.line), Some(2));
    // What Linux 6.1 does not have does not change either.
    let lacks = "1 Linux 6.1 has no dualpi2 (it refuses the command: dualpi2 came with Linux 6.17)";
    assert_eq!(of("tc qdisc add dev eth0 root dualpi2\n", newer), [lacks]);
    assert_eq!(of("tc qdisc add dev eth0 root dualpi2\n", None), [lacks]);
    // What is alike is said once.
    let below =
        |parent, handle| format!("tc qdisc add dev eth0 parent 1:{parent} handle {handle}: fq_codel\n");
    let two = format!("tc qdisc add dev eth0 root handle 1: prio\n{}{}", below(1, 10), below(2, 20));
    let told = of(&two, newer);
    assert!(told.len() == 1 && told[0].contains("So it is of 10: of eth0, 20: of eth0"), "{told:?}");
    let told = of("tc qdisc add dev eth0 root netem loss 1%\n", newer);
    assert!(told[0].contains("7.2: they come from a generator of the qdisc's own"), "{told:?}");
}

/// Linux 6.1 and 7.2 were asked (fq-quantum-0, fq-initial-quantum-big).
#[test]
fn what_one_release_refuses_is_noted_once() {
    let of = |lines: &[(&str, Option<&str>)]| -> Vec<String> {
        let text: String = lines.iter().map(|(line, _)| format!("{line}\n")).collect();
        let mut given = crate::common::given(&["eth0"], &text);
        for (step, (_, refused)) in given.steps.iter_mut().zip(lines) {
            step.refused = refused.map(str::to_owned);
        }
        let mut reading = tidegate_inspect::PolicyModel::new(given);
        reading.until = Some(LinuxVersion::V7_2);
        let found = check(&mut reading);
        let own = found.iter().filter(|finding| finding.what.contains("refuses this command"));
        own.map(|finding| format!("{}: {}", finding.what, finding.because)).collect()
    };
    let why = "a script that goes on without it makes another policy there";
    assert_eq!(
        of(&[("tc qdisc add dev eth0 root handle 1: fq initial_quantum 2000000", None)]),
        [format!("Linux 7.2 refuses this command, which Linux 6.1 takes: {why}")]
    );
    let refused = Some("RTNETLINK answers: Invalid argument");
    assert_eq!(
        of(&[("tc qdisc add dev eth0 root handle 1: fq quantum 0", refused)]),
        [format!("Linux 6.1 refuses this command, which Linux 7.2 takes: {why}")]
    );
    // What both refuse, or take, is no difference; nor is what only the reader of this test does not know.
    assert_eq!(
        of(&[("tc qdisc del dev eth0 root", refused), ("tc qdisc add dev eth0 root fq", None)]),
        [""; 0]
    );
    assert_eq!(of(&[("tc qdisc add dev eth0 root handle 1: prio", refused)]), [""; 0]);
}

/// Linux 6.1 was asked: with `quantum 1514` at one of two classes the other got twelve times as much.
#[test]
fn what_changes_how_classes_share_is_advice() {
    let policy = "tc qdisc add dev eth0 root handle 1: htb default 20\n\
        tc class add dev eth0 parent 1: classid 1:1 htb rate 1gbit\n\
        tc class add dev eth0 parent 1:1 classid 1:10 htb rate 1mbit ceil 1gbit\n\
        tc class add dev eth0 parent 1:1 classid 1:20 htb rate 900mbit ceil 1gbit\n\
        tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:10\n";
    let mut reading = reading(&["eth0"], policy);
    let findings = check(&mut reading);
    let quantum: Vec<_> = findings.iter().filter(|finding| finding.rule == Rule::Quantum).collect();
    assert!(!quantum.is_empty());
    for finding in quantum {
        let fix = finding.fix.as_ref().expect("a remedy");
        assert!(fix.edits.is_empty() && fix.what.contains("in the same ratio: quantum 24224"), "{fix:?}");
    }
}

/// The least quantum becomes a frame, so none is below one.
#[test]
fn quanta_keep_their_ratio_and_hold_a_frame() {
    let of = |second: &str| {
        let policy = format!(
            "tc qdisc add dev eth0 root handle 1: htb default 12\n\
             tc class add dev eth0 parent 1: classid 1:11 htb rate 100kbit ceil 2mbit\n\
             tc class add dev eth0 parent 1: classid 1:12 htb {second}\n\
             tc filter add dev eth0 parent 1: protocol ip u32 match ip dport 22 0xffff flowid 1:11\n"
        );
        let told = found(&policy, &["R4"]);
        let remedy = |finding: &String| finding.split(": quantum ").nth(1).unwrap_or("another").to_owned();
        told.iter().map(remedy).collect::<Vec<_>>()
    };
    assert_eq!(of("rate 50kbit ceil 2mbit"), ["1893", "1514"]);
    assert_eq!(of("rate 50kbit ceil 2mbit quantum 1893"), ["1514"]);
    assert_eq!(of("rate 50kbit ceil 2mbit quantum 60000"), ["1514"]);
}

/// What a filter deals to queues that are not there is dropped, which more buckets make worse.
#[test]
fn filters_deal_into_as_many_queues_as_there_are() {
    let of = |queue: &str, divisor: u32, rules: &[&str]| {
        let policy = format!(
            "tc qdisc add dev eth0 root handle 1: tbf rate 9mbit burst 10k latency 50ms\n\
             tc qdisc add dev eth0 parent 1:1 handle 10: {queue}\n\
             tc filter add dev eth0 parent 10: protocol all handle 1 flow hash keys src divisor {divisor}\n"
        );
        found(&policy, rules)
    };
    assert_eq!(
        of("fq_codel flows 16", 1024, &["R11"]),
        [
            "3 error R11: fq_codel 10: drops what its filter deals to a queue that is not there | deal into as many as \
         there are: divisor 16"
        ]
    );
    assert_eq!(of("fq_codel flows 16", 16, &["R11"]), [""; 0]);
    assert_eq!(of("sfq", 1024, &["R11"]), [""; 0]);
    let remedy = |queue, divisor| {
        let told = of(queue, divisor, &["R18"]);
        told[0].split(" | ").nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(
        remedy("sfq", 1024),
        "more queues (divisor of sfq) and as many buckets (divisor) share less, a filter for each host shares nothing"
    );
    assert!(remedy("fq_codel", 16).starts_with("more buckets (divisor) share less"));
}

/// IPv6 misses nothing where IPv4 is led to the same class.
#[test]
fn ipv6_is_not_told_apart_where_ipv4_is_not() {
    let of = |class: &str| {
        let policy = format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10\n\
             tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\n\
             tc class add dev eth0 parent 1: classid 1:20 htb rate 5mbit\n\
             tc filter add dev eth0 parent 1: protocol ip prio 1 matchall flowid {class}\n"
        );
        found(&policy, &["R14"]).len()
    };
    assert_eq!([of("1:10"), of("1:20")], [0, 1]);
}

/// HTB within a tbf lets what goes past its classes leave as fast as the tbf does.
#[test]
fn what_goes_past_inner_classes_is_held_by_what_is_above() {
    let of = |parent: &str| {
        let policy = format!(
            "tc qdisc add dev eth0 root handle 1: tbf rate 10mbit burst 5k latency 50ms\n\
             tc qdisc add dev eth0 parent {parent} handle 2: htb\n\
             tc class add dev eth0 parent 2: classid 2:1 htb rate 6mbit\n\
             tc filter add dev eth0 parent 2: protocol ip u32 match ip dport 5001 0xffff flowid 2:1\n"
        );
        let mut reading = reading(&["eth0"], &policy);
        let findings = check(&mut reading);
        let default = findings.into_iter().find(|finding| finding.rule == Rule::Default);
        default.map(|finding| finding.because).unwrap_or_default()
    };
    for (parent, shown) in [("1:", "1:"), ("1:1", "1:1")] {
        assert_eq!(
            of(parent),
            format!("such packets leave before all others of 2:, as fast as {shown} lets them")
        );
    }
}

#[test]
fn a_rate_above_its_ceil_becomes_what_linux_makes_of_it() {
    for parent in ["1gbit", "100mbit"] {
        let policy = format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate {parent}\n\
             tc class add dev eth0 parent 1:1 classid 1:10 htb rate 1gbit ceil 100mbit\n"
        );
        let found = found(&policy, &["R3"]);
        let below = found.iter().find(|finding| finding.contains("less than its own rate"));
        let remedy = "| write what it comes to (or, by hand, raise the ceil: ceil 1gbit): rate 100mbit";
        assert!(below.is_some_and(|finding| finding.ends_with(remedy)), "{found:?}");
    }
}
