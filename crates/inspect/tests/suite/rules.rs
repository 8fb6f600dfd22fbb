//! Findings about small policies: one sentence, one condition.

use crate::common::{given, reading};
use tidegate_inspect::checked::CommandPath;
use tidegate_inspect::{Finding, Level, PolicyInput, PolicyModel, Rule, SourceLocation, Witness, check};
use tidegate_packet::Handle;

/// Findings of some rules: line, level, rule, what is wrong, and the remedy.
pub(crate) fn found(policy: &str, rules: &[&str]) -> Vec<String> {
    let mut reading = reading(&["eth0", "ifb0"], policy);
    let output_of = |finding: &Finding| {
        let line = finding.place.as_ref().map_or(0, |place| place.line);
        let fix = finding.fix.as_ref().map_or(String::new(), |fix| format!(" | {}", fix.what));
        format!("{line} {} {}: {}{fix}", finding.level.name(), finding.rule.id(), finding.what)
    };
    let wanted = |finding: &&Finding| rules.contains(&finding.rule.id());
    check(&mut reading).iter().filter(wanted).map(output_of).collect()
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
        let root = if parent == "root" {
            String::new()
        } else {
            "tc qdisc add dev eth0 root handle 1: prio\n".into()
        };
        found(&format!("{root}tc qdisc add dev eth0 {parent} tbf rate 1mbit burst 10k {tbf}\n"), &["R13"])
    };
    let long = of("parent 1:3 handle 30:", "limit 600000");
    assert!(long[0].starts_with("2 warning R13: limit 600000 lets 4.8 s of packets wait"), "{long:?}");
    assert!(long[0].contains("parent 30:1 fq_codel"), "{long:?}");
    assert!(of("parent 1:3", "limit 20000").is_empty());
    // The word is the one that was written, and a number that the kernel chooses is none to count on.
    let unnamed = of("root", "latency 900ms");
    assert!(unnamed[0].starts_with("1 note R13: latency 900ms lets 972 ms of packets wait"), "{unnamed:?}");
    assert!(!unnamed[0].contains("8001:") && unnamed[0].contains("parent 99:1 fq_codel"), "{unnamed:?}");
}

#[test]
fn a_bare_rtt_of_cake_is_microseconds() {
    let of =
        |rtt: &str| found(&format!("tc qdisc add dev eth0 root cake bandwidth 10mbit rtt {rtt}\n"), &["R17"]);
    assert_eq!(of("20"), ["1 warning R17: rtt 20 is 20 µs | write 20ms if milliseconds are meant"]);
    assert_eq!((of("20ms").len(), of("20000").len()), (0, 0));
}

#[test]
fn bands_of_a_qdisc_without_a_handle_are_named_by_their_place() {
    let map = "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1";
    let of =
        |handle: &str| found(&format!("tc qdisc add dev eth0 root {handle} prio priomap {map}\n"), &["R23"]);
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
        let class = |(dev, minor, name): &(&str, u16, &str)| {
            (((*dev).to_owned(), Handle::new(1, *minor)), (*name).to_owned())
        };
        reading.names = names.iter().map(class).collect();
        reading.compiled = !names.is_empty();
        let found = check(&mut reading);
        let dead = found.iter().find(|finding| finding.rule.id() == "R1").expect("is found");
        let Some(Witness::Packet { went, .. }) = &dead.witness else { panic!("a packet shows it") };
        format!("{}; {went}", dead.because)
    };
    assert_eq!(of(&[]), "what it matches goes to 1:1, not to 1:2; 1:1");
    let named = [("eth0", 1, "web"), ("eth0", 2, "more")];
    assert_eq!(of(&named), "what it matches goes to 1:1 (web), not to 1:2 (more); 1:1 (web)");
    // A number that means one thing here and another there has no name.
    let differ = [("eth0", 1, "web"), ("ifb0", 1, "calls")];
    assert_eq!(of(&differ), "what it matches goes to 1:1, not to 1:2; 1:1");
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
    assert_eq!(remedy(&late.each_ref().map(String::as_str)), "have it evaluated before them: prio 1");
    // Two filters with equal conditions: which is meant is not known.
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
    assert!(
        lost[0].contains("mark 2 is gone again before any queue: line 6 writes another over it"),
        "{lost:?}"
    );
    let kept = rules([2, 2, 2]);
    assert!(kept.iter().all(|finding| !finding.contains("mark 2")), "{kept:?}");
}

#[test]
fn marks_that_the_priomap_alone_sorts_are_led_by_a_filter() {
    let policy = "tc qdisc add dev eth0 root handle 1: prio\n\
        tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip tos 0x10 0xff match ip protocol 6 \
        0xff match ip dport 22 0xffff flowid 1:1\n";
    let found = found(policy, &["R2"]);
    assert!(
        found[0].ends_with(
            "the priomap leads them there: a filter by their DSCP leads them to a class served before 1:2"
        ),
        "{found:?}"
    );
}

#[test]
fn a_policer_whose_burst_is_below_a_frame_drops_them_all() {
    let of = |what: &str| {
        let policy = format!(
            "tc qdisc add dev eth0 handle ffff: ingress\n\
             tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match ip src 0.0.0.0/0 police rate \
             10mbit {what} flowid :1\n"
        );
        found(&policy, &["R12"])
    };
    // What arrives has lost its Ethernet header: 1,000 bytes and 14.
    let small = of("burst 1000 drop");
    assert!(
        small[0].starts_with(
            "2 error R12: a policer with burst 1000 lets no frame of more than 1014 bytes conform"
        ),
        "{small:?}"
    );
    assert!(small[0].ends_with("10 frames, and 50 ms at its rate: burst 62500"), "{small:?}");
    let long = of("burst 100k mtu 1000 drop");
    assert!(
        long[0].contains("error R12: a policer with mtu 1000 lets no frame of more than 1000 bytes"),
        "{long:?}"
    );
    // What exceeds goes on all the same.
    assert!(of("burst 1000 continue")[0].contains("warning R12"));
    // Of ten at once some do not: that is worth knowing, and no more.
    for burst in ["burst 10k drop", "burst 1500 drop"] {
        assert!(of(burst)[0].starts_with("2 note R12"), "{:?}", of(burst));
    }
    assert_eq!(of("burst 20k drop"), [""; 0]);
    // There the bucket of the peak rate is the limit, which no burst changes.
    assert_eq!(of("burst 10k peakrate 20mbit mtu 2k drop"), [""; 0]);
}

/// How much a delay that varies holds is not computed: there is no fix.
#[test]
fn a_limit_beside_jitter_has_no_remedy() {
    let of = |jitter: &str| {
        let tree = format!("tc qdisc add dev eth0 root netem delay 200ms {jitter} rate 1mbit limit 10\n");
        let mut reading = reading(&["eth0"], &tree);
        let findings = check(&mut reading);
        findings
            .into_iter()
            .find(|finding| finding.rule == Rule::Limit)
            .is_some_and(|limit| limit.fix.is_some())
    };
    assert!(of("") && !of("150ms"));
}

#[test]
fn bare_times_are_microseconds_everywhere() {
    let netem = |delay: &str| found(&format!("tc qdisc add dev eth0 root netem delay {delay}\n"), &["R17"]);
    assert_eq!(netem("100"), ["1 warning R17: delay 100 is 100 µs | write 100ms if milliseconds are meant"]);
    assert_eq!(netem("100ms 10").len(), 1);
    assert!(netem("100ms 10")[0].contains("delay's jitter 10 is 10 µs"));
    assert_eq!((netem("100ms 10ms"), netem("100ms 10ms 25%")), (vec![], vec![]));
    let hfsc = |dmax: &str| {
        let policy = format!(
            "tc qdisc add dev eth0 root handle 1: hfsc default 10\n\
             tc class add dev eth0 parent 1: classid 1:10 hfsc sc umax 1500b dmax {dmax} rate 1mbit\n"
        );
        found(&policy, &["R17"])
    };
    assert!(hfsc("30")[0].contains("dmax 30 is 30 µs"));
    assert!(hfsc("30ms").is_empty());
}

#[test]
fn rates_of_policers_have_units_too() {
    let of = |match_and_police: &str| {
        let line =
            format!("tc filter add dev eth0 egress protocol ip prio 1 {match_and_police} burst 200k drop\n");
        found(&format!("tc qdisc add dev eth0 clsact\n{line}"), &["R17"])
    };
    for words in [
        "u32 match u32 0 0 police rate 20mbps",
        "flower dst_ip 10.0.0.0/8 action police rate 20mbps",
        "matchall action police peakrate 20mbps mtu 2k rate 1mbit",
    ] {
        let lines = of(words);
        assert!(lines.len() == 1 && lines[0].contains("rate 20mbps is 160 Mbit/s"), "{words}: {lines:?}");
        assert_eq!(of(&words.replace("mbps", "mbit")), [""; 0]);
    }
}

#[test]
fn a_target_is_below_its_interval() {
    let of = |words: &str| {
        let policy = format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10\n\
             tc class add dev eth0 parent 1: classid 1:10 htb rate 100mbit\n\
             tc qdisc add dev eth0 parent 1:10 fq_codel {words}\n"
        );
        found(&policy, &["R13"])
    };
    assert_eq!(
        of("target 50ms interval 20ms"),
        ["3 warning R13: a target of 50 ms is not below the interval of 20 ms"]
    );
    assert!(of("target 5ms interval 100ms").is_empty());
}

#[test]
fn an_upper_limit_above_its_parents_never_counts() {
    let of = |ul: &str| {
        let policy = format!(
            "tc qdisc add dev eth0 root handle 1: hfsc default 10\n\
             tc class add dev eth0 parent 1: classid 1:1 hfsc ls rate 10mbit ul rate 10mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:10 hfsc ls rate 5mbit ul rate {ul}\n"
        );
        found(&policy, &["R3"])
    };
    assert_eq!(
        of("20mbit"),
        ["3 note R3: the upper limit of class 1:10 is 20 Mbit/s, that of its parent 1:1 only 10 Mbit/s"]
    );
    assert!(of("10mbit").is_empty());
}

#[test]
fn the_class_of_one_host_becomes_no_default() {
    let of = |default: &str, filter: &str| {
        let policy = format!(
            "tc qdisc add dev eth0 root handle 1: htb{default}\n\
             tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n\
             tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip {filter} flowid 1:10\n"
        );
        found(&policy, &["R11"])
    };
    assert!(of(" default 99", "dst 192.168.1.7/32")[0].contains("| make a class for what no filter takes"));
    assert!(of(" default 99", "dport 22 0xffff")[0].ends_with("default 10"));
    // Who wants no default limits a part, and leaves the rest alone.
    assert!(of("", "dport 22 0xffff")[0].contains("| make a class for what no filter takes"));
}

#[test]
fn a_filter_whose_packets_have_a_class_by_priority_is_not_evaluated() {
    let of = |rule: &str| {
        let policy = format!(
            "tc qdisc add dev eth0 root handle 1: prio\n\
             tc filter add dev eth0 parent 1: protocol ip prio 1 handle 5 fw flowid 1:1\n\
             iptables -t mangle -A POSTROUTING -p tcp --dport 22 -j MARK --set-mark 5\n\
             iptables -t mangle -A POSTROUTING {rule} -j CLASSIFY --set-class 1:3\n"
        );
        found(&policy, &["R1"])
    };
    let dead = of("-p tcp");
    assert!(dead[0].starts_with("2 warning R1: no packet with mark 5 comes to this filter"), "{dead:?}");
    assert_eq!(of("-p udp"), [""; 0]);
}

#[test]
fn a_hash_into_classes_that_are_missing_tells_what_becomes_of_packets() {
    let of = |root: &str, class: &str| {
        let policy = format!(
            "tc qdisc add dev eth0 root handle 1: {root}\n\
             tc class add dev eth0 parent 1: classid 1:1 {class}\n\
             tc filter add dev eth0 parent 1: protocol all prio 1 handle 1 flow hash keys dst divisor 4 \
             baseclass 1:1\n"
        );
        let mut reading = reading(&["eth0"], &policy);
        let found = check(&mut reading);
        let one = found.iter().find(|finding| finding.rule.id() == "R18").expect("is found");
        format!("{}: {}", one.level.name(), one.because.rsplit(' ').next().unwrap_or_default())
    };
    assert_eq!(of("drr", "drr"), "error: dropped");
    assert_eq!(of("htb default 1", "htb rate 1mbit"), "warning: class");
    assert_eq!(of("htb", "htb rate 1mbit"), "warning: classes");
    assert_eq!(of("hfsc", "hfsc sc rate 1mbit"), "error: dropped");
}

#[test]
fn a_class_without_packets_is_reported_so() {
    let of = |filter: &str| {
        let policy = format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:10 htb rate 8mbit ceil 10mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:20 htb rate 8mbit ceil 10mbit\n\
             tc qdisc add dev eth0 parent 1:20 pfifo limit 1000\n{filter}"
        );
        let mut reading = reading(&["eth0"], &policy);
        let found = check(&mut reading);
        let about = found.iter().filter(|finding| ["R3", "R13"].contains(&finding.rule.id()));
        let idle = |finding: &Finding| finding.because.contains("no packet");
        about.map(|finding| (finding.rule.id(), idle(finding))).collect::<Vec<_>>()
    };
    let used =
        "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:20\n";
    assert_eq!(of(used), [("R3", false), ("R13", false), ("R13", false)]);
    assert_eq!(of(""), [("R3", true), ("R13", false), ("R13", true)]);
}

#[test]
fn a_word_with_several_values_leads_to_the_calls_that_gave_the_one_in_question() {
    let policy = "tc qdisc add dev eth0 root handle 1: htb default 1\n\
        tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit prio 9\n\
        tc class add dev eth0 parent 1: classid 1:2 htb rate 1mbit prio 3\n\
        tc class add dev eth0 parent 1: classid 1:3 htb rate 1mbit prio 9\n";
    let mut reading = reading(&["eth0"], policy);
    // As if line 9, in a function, had made them all, each for another call.
    let inside = |columns| SourceLocation { file: 0, line: 9, columns };
    for step in &mut reading.steps[1..] {
        step.called_from = step.place.replace(inside((0, 0)));
        let last = step.words.last_mut().expect("there are words");
        (last.place, last.literal) = (Some(inside((40, 42))), false);
    }
    let found = check(&mut reading);
    let priority = found.iter().find(|finding| finding.rule.id() == "R5").expect("is found");
    let path = CommandPath::of(&reading, priority);
    assert_eq!(path.called_from.iter().map(|place| place.line).collect::<Vec<_>>(), [2, 4]);
}

/// A class right under the root that is to borrow from no one: reported where the ceil is missed by more than
/// two per cent.
#[test]
fn a_ceil_without_a_lender_is_reported_from_two_per_cent_on() {
    let of = |rate: &str| {
        let class = format!("tc class add dev eth0 parent 1: classid 1:10 htb rate {rate} ceil 1mbit\n");
        found(&format!("tc qdisc add dev eth0 root handle 1: htb default 10\n{class}"), &["R3"])
    };
    let missed =
        "2 warning R3: class 1:10 never reaches its ceil of 1 Mbit/s: it has no parent to borrow from";
    assert_eq!(["500kbit", "950kbit", "970kbit"].map(of), [[missed]; 3]);
    assert_eq!(["985kbit", "1mbit"].map(of), [[""; 0]; 2]);
}

/// A bucket of less than half a frame is a note where the rate is kept. That no one lends, or that the class
/// above may send less, is not its fault.
#[test]
fn a_tiny_bucket_is_a_note_where_the_rate_is_kept() {
    let of = |rate: &str| {
        let class = format!(
            "tc class add dev eth0 parent 1: classid 1:10 htb rate {rate} ceil 1mbit burst 100 cburst 2k\n"
        );
        let found = found(&format!("tc qdisc add dev eth0 root handle 1: htb default 10\n{class}"), &["R12"]);
        found.first().and_then(|text| text.split(' ').nth(1).map(str::to_owned))
    };
    let levels = ["500kbit", "970kbit", "985kbit", "1mbit"].map(of);
    assert!(levels.iter().all(|level| level.as_deref() == Some("note")), "{levels:?}");
    let below = "tc qdisc add dev eth0 root handle 1: htb default 10\n\
        tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
        tc class add dev eth0 parent 1:1 classid 1:10 htb rate 500kbit ceil 10mbit burst 100 cburst 2k\n";
    let lines = because(below, "R12");
    assert!(lines[0].starts_with("note") && lines[0].contains("the rate is kept"), "{lines:?}");
}

/// HTB with two classes, and a command after it.
fn then(command: &str) -> Vec<String> {
    let policy = format!(
        "tc qdisc add dev eth0 root handle 1: htb default 10\n\
         tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n\
         tc class add dev eth0 parent 1: classid 1:20 htb rate 1mbit\n\
         {command}\n"
    );
    found(&policy, &["R26"])
}

#[test]
fn classes_removed_by_a_replace_are_reported() {
    let output = "4 warning R26: `qdisc replace` removes 2 classes of 1: that earlier commands made (1:10 by \
    line 2) | keep one of the two: remove this command, or those about 1: before it";
    assert_eq!(then("tc qdisc replace dev eth0 root fq_codel"), [output]);
    // So does `add`, which Linux 6.1 accepts for a root without a handle.
    let added = output.replace("qdisc replace", "qdisc add");
    assert_eq!(then("tc qdisc add dev eth0 root tbf rate 9mbit burst 10k latency 30ms"), [added.as_str()]);
    // A qdisc of the same kind with another handle is another qdisc, even if it gets classes of its own.
    let other = "tc qdisc replace dev eth0 root handle 2: htb default 10\n\
                 tc class add dev eth0 parent 2: classid 2:10 htb rate 1mbit";
    assert_eq!(then(other), [output]);
}

#[test]
fn a_second_root_in_the_place_of_a_shaper_is_reported() {
    let found = |first: &str, second: &str| found(&format!("{first}\n{second}\n"), &["R26"]);
    let tbf = "tc qdisc add dev eth0 root handle 1: tbf rate 5mbit burst 10k latency 50ms";
    let output = "2 note R26: this takes the place of the tbf at the root of eth0 that line 1 made | keep one of \
    the two, or put the second into the first: parent 1:1";
    let second = "tc qdisc replace dev eth0 root fq_codel";
    assert_eq!(found(tbf, second), [output]);
    assert_eq!(found(tbf, &second.replace("replace", "add")), [output]);
    let unnamed = output.replace("parent 1:1", "handle 1: there, parent 1:1 here");
    assert_eq!(found(&tbf.replace("handle 1: ", ""), second), [unnamed]);
    let full = format!("{tbf}\ntc qdisc add dev eth0 parent 1:1 handle 10: netem delay 10ms");
    assert_eq!(
        found(&full, second),
        [output.replace("2 note", "3 note").replace(", or put the second into the first: parent 1:1", "")]
    );
    let cake = found("tc qdisc add dev eth0 root cake bandwidth 5mbit", second);
    assert_eq!(
        cake,
        ["2 note R26: this takes the place of the cake at the root of eth0 that line 1 made | keep one \
    of the two"]
    );
    // What had no rate is a default that something better replaces; a change keeps the qdisc.
    assert!(found("tc qdisc replace dev eth0 root pfifo_fast", second).is_empty());
    assert!(found(tbf, &tbf.replace("add", "replace").replace("5mbit", "6mbit")).is_empty());
    assert!(found(tbf, "tc qdisc del dev eth0 root\ntc qdisc add dev eth0 root fq_codel").is_empty());
}

#[test]
fn files_that_are_checked_together_are_one_policy() {
    let policy = "tc qdisc add dev eth0 root fq_codel\ntc qdisc replace dev eth0 root sfq\n";
    assert!(found(policy, &["R26"]).is_empty());
    let mut given = given(&["eth0"], policy);
    given.steps[1].place.as_mut().expect("a place").file = 1;
    let found = check(&mut PolicyModel::new(given));
    let of = found.iter().find(|finding| finding.rule.id() == "R26").expect("a finding");
    assert!(of.because.contains("check alternatives one by one"), "{of:?}");
}

#[test]
fn a_replace_that_keeps_or_restores_the_classes_is_no_finding() {
    // The same qdisc again is changed, not replaced.
    assert_eq!(then("tc qdisc replace dev eth0 root handle 1: htb default 10"), [""; 0]);
    assert_eq!(then("tc qdisc replace dev eth0 parent 1:10 fq_codel"), [""; 0]);
    assert_eq!(then("tc qdisc replace dev ifb0 root fq_codel"), [""; 0]);
    // An explicit delete is no mistake.
    assert_eq!(then("tc qdisc del dev eth0 root\ntc qdisc add dev eth0 root fq_codel"), [""; 0]);
    // All classes are made again.
    let again = "tc qdisc replace dev eth0 root handle 2: htb\n\
                 tc qdisc replace dev eth0 root handle 1: htb default 10\n\
                 tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n\
                 tc class add dev eth0 parent 1: classid 1:20 htb rate 1mbit";
    assert_eq!(then(again), [""; 0]);
}

/// Whether R26 is reported for HTB with a class and a `qdisc replace` in line 3, once something is otherwise.
fn reports_replace(then: &str, otherwise: impl Fn(&mut PolicyInput)) -> bool {
    let policy = format!(
        "tc qdisc add dev eth0 root handle 1: htb default 10\n\
         tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n\
         tc qdisc replace dev eth0 root handle 2: htb\n{then}"
    );
    let mut given = given(&["eth0"], &policy);
    otherwise(&mut given);
    let found = check(&mut PolicyModel::new(given));
    found.iter().any(|finding| finding.rule.id() == "R26" && finding.level == Level::Warning)
}

#[test]
fn a_replace_that_may_fail_or_is_in_another_file_is_no_warning() {
    assert!(reports_replace("", |_| ()));
    assert!(!reports_replace("", |given| given.steps[2].may_fail = true));
    let in_file = |given: &mut PolicyInput, file| given.steps[2].place.as_mut().expect("a place").file = file;
    assert!(reports_replace("", |given| in_file(given, 0)));
    assert!(!reports_replace("", |given| in_file(given, 1)));
}

#[test]
fn classes_that_a_refused_command_would_restore_are_no_finding() {
    let again = "tc qdisc replace dev eth0 root handle 1: htb\n\
                 tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n";
    assert!(!reports_replace(again, |_| ()));
    // The command is gone: no one makes the class again.
    let without = |given: &mut PolicyInput| {
        given.ops.pop();
        given.steps.pop();
    };
    assert!(reports_replace(again, without));
    // It is there and was refused: that is what is wrong.
    let refused = |given: &mut PolicyInput| {
        given.ops.pop();
        let step = given.steps.last_mut().expect("a step");
        (step.ops, step.refused) =
            (given.ops.len()..given.ops.len(), Some("RTNETLINK answers: Invalid argument".into()));
    };
    assert!(!reports_replace(again, refused));
}

/// Reasons and what was seen, of a rule's findings.
fn because(policy: &str, rule: &str) -> Vec<String> {
    let mut reading = reading(&["eth0", "ifb0"], policy);
    let findings = check(&mut reading);
    let of_rule = findings.iter().filter(|finding| finding.rule.id() == rule);
    of_rule
        .map(|finding| {
            let shown = format!("{:?}", finding.witness);
            format!("{} {}: {} [{shown}]", finding.level.name(), finding.what, finding.because)
        })
        .collect()
}

/// Linux 6.1 was asked: 5.02 Mbit/s leave in the first, as what leaves send within their rates passes any
/// ceil above.
#[test]
fn a_ceil_below_the_rate_of_an_inner_class_limits_borrowing() {
    let policy = |rates: [&str; 2]| {
        let [one, two] = rates;
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 12\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate 5mbit ceil 4mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:11 htb rate {one} ceil 5mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:12 htb rate {two} ceil 5mbit\n\
             tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:11\n"
        )
    };
    let of = |rates: [&str; 2]| {
        because(&policy(rates), "R3").into_iter().find(|one| one.contains("1:1 may")).expect("R3")
    };
    let passed = of(["3mbit", "2mbit"]);
    assert!(passed.contains("when all below it are busy 5 Mbit/s leave through it"), "{passed}");
    assert!(passed.starts_with("warning") && !passed.contains("never gets more"), "{passed}");
    let rates = of(["1mbit", "1mbit"]);
    assert!(rates.contains("it never gets more than 4 Mbit/s of its guaranteed 5 Mbit/s"), "{rates}");
    assert!(rates.contains("with every leaf below it kept full, 4 Mbit/s leave"), "{rates}");
    // Packets cannot be sent by number to the classes of a qdisc that is not the root: nothing is measured.
    let below = policy(["3mbit", "2mbit"]).replace("root handle 1:", "parent 9:1 handle 1:");
    let below = format!("tc qdisc add dev eth0 root handle 9: prio\n{below}");
    let lines = because(&below, "R3");
    assert!(
        lines.iter().any(|one| one.contains("1:1 may"))
            && !lines.iter().any(|one| one.contains("leave through"))
    );
    assert!(
        !lines.iter().any(|one| one.contains("kept full") || one.contains("never gets more")),
        "{lines:?}"
    );
}

/// Linux 6.1 was asked: with and without `quantum 1514` 2,364,868 bytes leave in 189 ms in the first, as the
/// other class waits for its own rate.
#[test]
fn a_quantum_is_blamed_only_where_a_smaller_one_would_help() {
    let policy = |other: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 20\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:10 htb rate 20mbit ceil 100mbit quantum 200000\n\
             tc class add dev eth0 parent 1:1 classid 1:20 htb {other} quantum 1514\n"
        )
    };
    assert_eq!(found(&policy("rate 64kbit ceil 64kbit"), &["R4"]), [""; 0]);
    let lines = because(&policy("rate 64kbit ceil 100mbit"), "R4");
    assert!(lines[0].starts_with("warning class 1:10 may send 200000 bytes in its turn"), "{lines:?}");
    assert!(lines[0].contains("with a quantum of 1514 it sends"), "{lines:?}");
}

/// An ifb that no command makes may be up or down; one that a command made and set up gives packets back.
#[test]
fn a_detour_by_an_ifb_that_nothing_makes_is_left_open() {
    let policy = "tc qdisc add dev eth0 handle ffff: ingress\n\
        tc filter add dev eth0 parent ffff: protocol all matchall action mirred egress redirect dev ifb0\n";
    let lines = because(policy, "R20");
    assert!(
        lines[0].contains("where ifb0 is up, it comes back as it was") && lines[0].contains("is dropped"),
        "{lines:?}"
    );
}

/// A queue on WireGuard's device is as long as that device's transmit queue: 1000 packets, not ppp's three.
#[test]
fn a_fifo_on_wireguard_is_as_long_as_its_transmit_queue() {
    let policy = "tc qdisc add dev wg0 root handle 1: htb default 10\n\
        tc class add dev wg0 parent 1: classid 1:10 htb rate 1mbit\n";
    let mut reading = reading(&["wg0"], policy);
    let found = check(&mut reading);
    let limit = found.iter().find(|finding| finding.rule.id() == "R13").expect("a long queue");
    assert!(limit.what.contains("11.4 s of packets may wait"), "{}", limit.what);
}

/// The engine lets nothing through any of these but the last of each.
#[test]
fn queues_that_take_no_packet_are_reported() {
    let memory = |limit: &str| {
        found(
            &format!(
                "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                 tc class add dev eth0 parent 1: classid 1:30 htb rate 3mbit\n\
                 tc qdisc add dev eth0 parent 1:30 fq_codel memory_limit {limit}\n"
            ),
            &["R13"],
        )
    };
    assert_eq!(memory("32"), ["3 error R13: fq_codel with memory_limit 32 takes no packet"]);
    assert_eq!(memory("2000"), ["3 error R13: fq_codel with memory_limit 2000 takes no frame of 1514 bytes"]);
    assert_eq!(memory("4mb"), [""; 0]);
    let cake =
        |limit: &str| found(&format!("tc qdisc add dev eth0 root cake bandwidth 10mbit {limit}\n"), &["R13"]);
    assert_eq!(cake("memlimit 1k"), ["1 error R13: cake with memlimit 1k takes no frame of 1514 bytes"]);
    assert_eq!(cake("memlimit 4mb"), [""; 0]);
    let bucket = |burst: &str| {
        let root = "tc qdisc add dev eth0 root handle 1: prio\n";
        found(
            &format!(
                "{root}tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 512kbit {burst} latency 50ms\n"
            ),
            &["R12"],
        )
    };
    let lines = bucket("burst 1k");
    assert!(
        lines[0].starts_with("2 error R12: burst holds 1024 bytes, less than a frame of eth0 (1514)"),
        "{lines:?}"
    );
    assert_eq!(bucket("burst 2k"), [""; 0]);
}

/// Linux 6.1 was asked: of two frames of 1514 bytes both are dropped, which count 1749 bytes each.
#[test]
fn a_bucket_holds_frames_as_they_are_counted() {
    let root = |stab: &str, burst: &str| {
        let tbf = format!("tbf rate 2mbit burst {burst} latency 50ms");
        found(&format!("tc qdisc add dev eth0 root {stab} {tbf}\n"), &["R12"])
    };
    let atm = "stab overhead 40 linklayer atm";
    let lines = root(atm, "1600");
    assert!(
        lines.len() == 1 && lines[0].contains("frame of eth0 (1514, which stab counts as 1749)"),
        "{lines:?}"
    );
    assert_eq!([root("", "1600"), root(atm, "1800")], [vec![], Vec::<String>::new()]);
    let below = "tc qdisc add dev eth0 root handle 1: stab overhead 40 linklayer atm prio\n\
                 tc qdisc add dev eth0 parent 1:1 tbf rate 2mbit burst 1600 latency 50ms\n";
    assert_eq!(found(below, &["R12"]).len(), 1);
}

#[test]
fn bands_in_a_bucket_are_queues_at_its_rate() {
    let policy = |bands: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: tbf rate 450kbit burst 2k latency 30ms\n\
             tc qdisc add dev eth0 parent 1: handle 2: prio bands 3\n{bands}"
        )
    };
    let fair = policy("tc qdisc add dev eth0 parent 2:1 handle 10: sfq perturb 20\n");
    let lines = found(&fair, &["R13"]);
    assert!(
        lines
            .iter()
            .any(|one| one.starts_with("3 note R13: sfq without a limit lets 127 packets wait, 3.4 s")),
        "{lines:?}"
    );
    assert!(lines.iter().any(|one| one.contains("the FIFO of class 2:2 has no limit set")), "{lines:?}");
    let short = |n: u8| format!("tc qdisc add dev eth0 parent 2:{n} fq_codel target 41ms interval 140ms\n");
    assert_eq!(found(&policy(&[short(1), short(2), short(3)].concat()), &["R13", "R19"]), [""; 0]);
}

/// netem's loss does not suppress the finding about its queue.
#[test]
fn a_netem_that_loses_is_measured() {
    let of = |loss: &str| {
        found(&format!("tc qdisc add dev eth0 root netem rate 800kbit delay 10ms {loss}\n"), &["R13"])
    };
    let lines = of("loss 5%");
    assert!(lines[0].starts_with("1 warning R13: netem's usual limit of 1000 packets lets 15"), "{lines:?}");
    assert_eq!(of("loss 5%").len(), of("").len());
    assert_eq!(of("loss 100%"), [""; 0]);
}

#[test]
fn a_match_behind_ip_needs_a_link_with_an_offset() {
    let policy = |filter: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 30\n\
             tc class add dev eth0 parent 1: classid 1:10 htb rate 4mbit\n\
             tc class add dev eth0 parent 1: classid 1:30 htb rate 4mbit\n{filter}"
        )
    };
    let bare =
        "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match tcp dst 25 0xffff flowid 1:10\n";
    let lines = because(&policy(bare), "R7");
    assert!(lines[0].contains("`match tcp dst` counts from the packet's first byte"), "{lines:?}");
    assert!(lines[0].contains("bytes 2 to 3 of the packet"), "{lines:?}");
    let flags = "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match u8 0x10 0xff at nexthdr+13 \
        flowid 1:10\n";
    let lines = because(&policy(flags), "R7");
    assert!(lines[0].contains("a match at nexthdr+13 counts"), "{lines:?}");
    assert!(lines[0].contains("byte 13 of the packet"), "{lines:?}");
    let linked = "tc filter add dev eth0 parent 1: prio 1 handle 2: protocol ip u32 divisor 1\n\
        tc filter add dev eth0 parent 1: protocol ip prio 1 u32 ht 2:: match tcp dst 25 0xffff flowid 1:10\n\
        tc filter add dev eth0 parent 1: protocol ip prio 1 u32 ht 800:: match ip protocol 6 0xff offset at \
        0 mask 0x0f00 shift 6 link 2:\n";
    assert_eq!(because(&policy(linked), "R7"), [""; 0]);
}

/// Linux 6.1 was asked: without a look-up `ct_state +trk` matches nothing and `-trk` everything.
#[test]
fn states_are_read_where_something_looks_connections_up() {
    let policy = |state: &str, more: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 30\n\
             tc class add dev eth0 parent 1: classid 1:10 htb rate 4mbit\n\
             tc class add dev eth0 parent 1: classid 1:30 htb rate 4mbit\n\
             tc filter add dev eth0 parent 1: protocol ip prio 1 flower ct_state {state} flowid 1:10\n{more}"
        )
    };
    let lines = because(&policy("+trk+est", ""), "R9");
    assert!(lines[0].starts_with("warning nothing here looks connections up: the filter for +trk+est never"));
    assert_eq!(because(&policy("-trk", ""), "R9"), [""; 0]);
    for more in [
        "iptables -A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n",
        "iptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE\n",
        "tc qdisc add dev eth0 clsact\ntc filter add dev eth0 ingress protocol ip prio 1 matchall action ct pipe\n",
    ] {
        assert_eq!(because(&policy("+trk+est", more), "R9"), [""; 0], "{more}");
    }
    let twice = "tc filter add dev eth0 parent 1: protocol ip prio 2 flower ct_state +trk+new flowid 1:10\n";
    let lines = because(&policy("+trk+est", twice), "R9");
    assert!(lines.len() == 1 && lines[0].contains("1 other filter by ct_state likewise"), "{lines:?}");
}

/// With a filter of their own sfq and fq_codel drop what it does not take.
#[test]
fn a_filter_on_a_hashing_qdisc_drops_the_rest() {
    for kind in ["sfq", "fq_codel"] {
        let policy = |more: &str| {
            format!(
                "tc qdisc add dev eth0 root handle 1: {kind}\n\
                 tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff flowid \
                 1:5\n{more}"
            )
        };
        let lines = because(&policy(""), "R11");
        assert!(
            lines[0].starts_with(&format!("error what no filter of {kind} 1: takes is dropped")),
            "{lines:?}"
        );
        let all = "tc filter add dev eth0 parent 1: protocol all prio 9 handle 1 flow hash keys src,dst \
        divisor 64\n";
        assert_eq!(because(&policy(all), "R11"), [""; 0]);
    }
}

#[test]
fn a_target_is_shown_as_written_and_one_queue_has_no_others() {
    let of = |target: &str| {
        let policy = "tc qdisc add dev eth0 root handle 1: htb default 10\n\
            tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n";
        found(&format!("{policy}tc qdisc add dev eth0 parent 1:10 fq_codel target {target}\n"), &["R13"])
    };
    assert!(of("5us")[0].contains("a target of 5 µs (kept as 4 µs) is less than"), "{:?}", of("5us"));
    // R17 asks what unit is meant.
    assert_eq!(of("5"), [""; 0]);
    assert!(of("5ms")[0].contains("a target of 5.0 ms is less than"), "{:?}", of("5ms"));
    let bucket = because("tc qdisc add dev eth0 root tbf rate 10mbit burst 20k latency 200ms\n", "R19");
    assert!(bucket[0].contains("of delay") && !bucket[0].contains("other classes"), "{bucket:?}");
}

/// A shaper on eth0 with two classes, of which the second is the default, and this queue on it.
fn with_queue(queue: &str) -> String {
    format!(
        "tc qdisc add dev eth0 root handle 1: htb default 20\n\
        tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit prio 0\n\
        tc class add dev eth0 parent 1: classid 1:20 htb rate 5mbit prio 1\n\
        tc qdisc add dev eth0 parent 1:20 handle 20: {queue}\n"
    )
}

/// Of a policy whose class was refused it is not known.
#[test]
fn an_htb_without_a_class_shapes_nothing() {
    let root = "tc qdisc add dev eth0 root handle 1: htb default 10\n";
    assert_eq!(found(root, &["R11"]), ["1 warning R11: htb 1: has no class: it shapes nothing"]);
    let mut given =
        given(&["eth0"], &format!("{root}tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n"));
    let class = &mut given.steps[1];
    (class.refused, class.ops) = (Some("Illegal \"rate\"".to_owned()), 1..1);
    given.ops.pop();
    assert!(check(&mut PolicyModel::new(given)).iter().all(|one| one.rule != Rule::Default));
}

#[test]
fn one_queue_that_marks_l4s_as_classic_ecn() {
    let of = |queue: &str| found(&with_queue(queue), &["R29"]);
    let remedy = "nothing, if no sender here uses L4S; else a qdisc that queues flows apart (fq_codel, cake), or \
        one that knows L4S (dualpi2)";
    for (kind, queue) in [
        ("codel", "codel ecn"),
        ("pie", "pie ecn"),
        ("red", "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 bandwidth 5mbit ecn"),
        ("choke", "choke limit 400 min 30 max 90 avpkt 1000 burst 55 bandwidth 5mbit ecn"),
        ("fq_codel", "fq_codel flows 1"),
        ("cake", "cake bandwidth 4mbit flowblind"),
    ] {
        let wanted = format!(
            "4 note R29: {kind} 20: marks packets of L4S senders (ECT(1)) as those of classic ECN, in one queue \
            | {remedy}"
        );
        assert_eq!(of(queue), [wanted], "{queue}");
    }
    // Without marks; flows apart; L4S known.
    for queue in ["codel", "pie", "fq_codel", "fq_codel ecn", "cake bandwidth 4mbit", "dualpi2", "pfifo"] {
        assert_eq!(of(queue), [""; 0], "{queue}");
    }
    // Nothing limits what leaves: the queue never fills here.
    assert_eq!(found("tc qdisc add dev eth0 root codel ecn\n", &["R29"]), [""; 0]);
    // A shaper of its own above.
    let tbf = "tc qdisc add dev eth0 root handle 1: tbf rate 5mbit burst 10k latency 50ms\n\
        tc qdisc add dev eth0 parent 1:1 handle 10: codel ecn\n";
    assert_eq!(found(tbf, &["R29"]).len(), 1);
    // No packet of L4S comes to a class of ICMP.
    let icmp = "tc filter add dev eth0 parent 1: protocol ip u32 match ip protocol 1 0xff flowid 1:10\n\
        tc qdisc add dev eth0 parent 1:10 handle 10: codel ecn\n";
    assert_eq!(found(&format!("{}{icmp}", with_queue("fq_codel")), &["R29"]), [""; 0]);
}

#[test]
fn nqb_before_what_is_unmarked() {
    let tree = "tc qdisc add dev eth0 root handle 1: htb default 20\n\
        tc class add dev eth0 parent 1: classid 1:1 htb rate 5mbit\n\
        tc class add dev eth0 parent 1:1 classid 1:10 htb rate 1mbit ceil 5mbit prio 0\n\
        tc class add dev eth0 parent 1:1 classid 1:20 htb rate 1mbit ceil 5mbit prio 1\n\
        tc qdisc add dev eth0 parent 1:20 handle 20: fq_codel\n";
    let of = |filter: &str| found(&format!("{tree}{filter}"), &["R28"]);
    let by_dscp = |match_: &str, class: &str| {
        format!("tc filter add dev eth0 parent 1: protocol ip u32 match ip dsfield {match_} flowid {class}\n")
    };
    let wanted = "6 note R28: packets marked NQB (DSCP 45) are served in 1:10, before the unmarked ones of 1:20 | \
        lead DSCP 45 to 1:20, or to a short queue of its own that is served as 1:20 is; or keep it, if all who write \
        this mark are to have priority";
    // Itself, and a range of code points that it is in.
    assert_eq!(of(&by_dscp("0xb4 0xfc", "1:10")), [wanted]);
    assert_eq!(of(&by_dscp("0xa0 0xe0", "1:10")), [wanted]);
    // EF alone, and NQB to the class of everyone.
    assert_eq!(of(&by_dscp("0xb8 0xfc", "1:10")), [""; 0]);
    assert_eq!(of(&by_dscp("0xb4 0xfc", "1:20")), [""; 0]);
    // A class of its own that is served as the default is.
    let equal = "tc class add dev eth0 parent 1: classid 1:30 htb rate 5mbit prio 1\n";
    assert_eq!(of(&format!("{equal}{}", by_dscp("0xb4 0xfc", "1:30"))), [""; 0]);
    // The bits of the old TOS field have it first in prio's map.
    let prio = found("tc qdisc add dev eth0 root handle 1: prio\n", &["R28"]);
    assert!(
        prio[0].starts_with("1 note R28: packets marked NQB (DSCP 45) are served in 1:1, before"),
        "{prio:?}"
    );
    // What two devices do alike is said once; in other classes it is another finding.
    let on_ifb = |handle: u8| {
        let [eth0, ifb0] = [("eth0", 1), ("ifb0", handle)]
            .map(|(dev, handle)| format!("tc qdisc add dev {dev} root handle {handle}: prio\n"));
        found(&format!("{eth0}{ifb0}"), &["R28"]).len()
    };
    assert_eq!((on_ifb(1), on_ifb(2)), (1, 2));
    // cake of Linux 6.1 treats it as unmarked.
    assert_eq!(found("tc qdisc add dev eth0 root cake bandwidth 9mbit diffserv8\n", &["R28"]), [""; 0]);
}
