//! What was said wrongly of other people's policies.

use crate::common::{check_finding, findings_of, given, reading, silent};
use crate::explain::explain;
use crate::rules::found;
use crate::waits::at_worst;
use tidegate_inspect::{Explainer, Packet, PolicyInput, PolicyModel, Rule, Step, Word, check};
use tidegate_packet::{KernelModel, LinuxVersion};

/// A table whose offsets begin at the packet's end is not looked into: Linux goes on behind the filter.
const FAR: &str = "tc qdisc add dev eth0 root handle 1: hfsc\n\
    tc class add dev eth0 parent 1: classid 1:1 hfsc sc rate 10mbit ul rate 10mbit\n\
    tc class add dev eth0 parent 1:1 classid 1:11 hfsc sc rate 2mbit\n\
    tc class add dev eth0 parent 1:1 classid 1:12 hfsc sc rate 2mbit\n\
    tc filter add dev eth0 parent 1:0 prio 1 handle 101: u32 divisor 1\n\
    tc filter add dev eth0 parent 1:0 prio 1 u32 match ip protocol 6 0xff link 101: \
    offset at 0 mask 0x0f00 shift 6 plus 0 eat\n\
    tc filter add dev eth0 parent 1:0 prio 1 u32 ht 101:0: match tcp dst 53 0xffff flowid 1:11\n\
    tc filter add dev eth0 parent 1:0 prio 1 u32 match u32 0 0 flowid 1:12\n";

#[test]
fn a_table_beyond_the_packet_counts_as_empty() {
    // The sets that rules are about agree with the engine, or this panics.
    assert!(!check(&mut reading(&["eth0"], FAR)).is_empty());
    let of = |len: u32| {
        explain(
            &["eth0"],
            FAR,
            &format!("tcp 2006:db8:1::a > [2001:db8:2::7]:443 tos 0xf0 len {len} out eth0"),
        )
    };
    let at_its_end = of(60);
    assert!(
        at_its_end.contains("ends before byte 61, where bucket 101:0: begins to read: it counts as empty")
            && at_its_end.contains("ends: eth0 1:1 1:12")
            && !at_its_end.contains("search ended"),
        "{at_its_end}"
    );
    let within = of(61);
    assert!(within.contains("ends the search") && within.contains("ends: dropped at eth0"), "{within}");
}

/// Linux 6.1 was asked: of frames of 1000 and 1010 bytes the first leaves.
#[test]
fn a_bucket_of_tbf_holds_what_tc_says() {
    let lines =
        found("tc qdisc add dev eth0 root handle 1: tbf limit 100000 burst 1000 rate 3Gbit\n", &["R12"]);
    assert!(lines.len() == 1 && lines[0].contains("burst holds 1000 bytes"), "{lines:?}");
}

/// A filter that leads packets to a port into a class.
fn to_port(port: u32, minor: u32) -> String {
    format!(
        "tc filter add dev eth0 parent 1: protocol ip prio {port} u32 match ip dport {port} 0xffff flowid 1:{minor}\n"
    )
}

/// Linux 6.1 was asked: 720 kbit/s leave of this tree, whose slow classes send in the same instants.
#[test]
fn a_rate_is_measured_over_many_turns_of_slow_classes() {
    let mut policy = String::from(
        "tc qdisc add dev eth0 root handle 1: htb default 30 r2q 1\n\
         tc class add dev eth0 parent 1: classid 1:1 htb rate 680kbit ceil 680kbit\n",
    );
    for minor in 1..=12 {
        policy +=
            &format!("tc class add dev eth0 parent 1:1 classid 1:{minor}0 htb rate 60kbit ceil 680kbit\n");
        policy += &to_port(minor, minor * 10);
    }
    let findings = findings_of(&policy, &[Rule::Rates]);
    let told = findings.iter().find(|line| line.contains("leave instead of")).expect("R3");
    assert!(told.contains("are busy 720 kbit/s leave instead of 680 kbit/s"), "{told}");
}

/// Linux 6.1 was asked: in the first seconds 23.5 Mbit/s leave, from then on 20.1 Mbit/s.
#[test]
fn a_rate_is_measured_when_deep_buckets_are_empty() {
    let policy = "tc qdisc add dev eth0 root handle 1: htb default 40\n\
        tc class add dev eth0 parent 1: classid 1:1 htb rate 20mbit\n\
        tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit ceil 20mbit burst 2mb cburst 1mb\n\
        tc class add dev eth0 parent 1:1 classid 1:20 htb rate 5mbit ceil 20mbit\n\
        tc class add dev eth0 parent 1:1 classid 1:30 htb rate 5mbit ceil 20mbit\n\
        tc class add dev eth0 parent 1:1 classid 1:40 htb rate 5100kbit ceil 20mbit\n";
    let filters: String = [10, 20, 30].into_iter().map(|minor| to_port(minor, minor)).collect();
    let lines = findings_of(&format!("{policy}{filters}"), &[Rule::Rates]);
    assert!(!lines.is_empty() && lines.iter().all(|line| !line.contains("leave instead of")), "{lines:?}");
    let one = "tc qdisc add dev eth0 root handle 1: htb default 10\n\
        tc class add dev eth0 parent 1: classid 1:1 htb rate 6mbit\n\
        tc class add dev eth0 parent 1:1 classid 1:10 htb rate 8mbit ceil 8mbit burst 1mb\n";
    let lines = findings_of(one, &[Rule::Rates]);
    assert!(lines.iter().any(|line| line.contains("8 Mbit/s")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("13.") || line.contains("14.")), "{lines:?}");
}

/// Linux 6.1 was asked: the policer on the ifb drops 133 of 200 packets.
#[test]
fn a_redirect_to_an_ifb_with_a_policer_is_a_policy() {
    let policy = |filter: &str| {
        format!(
            "tc qdisc add dev ifb0 clsact\n{filter}\
             tc qdisc add dev eth0 clsact\n\
             tc filter add dev eth0 egress protocol all matchall action mirred egress redirect dev ifb0\n"
        )
    };
    let police =
        "tc filter add dev ifb0 egress protocol all matchall action police rate 10mbit burst 100k drop\n";
    assert_eq!(found(&policy(police), &["R20"]), [""; 0]);
    let lines = found(&policy(""), &["R20"]);
    assert!(lines.len() == 1 && lines[0].contains("which has no policy"), "{lines:?}");
}

/// Two things that are wrong with one line are two findings.
#[test]
fn what_else_is_wrong_with_a_line_is_said() {
    let policy = "tc qdisc add dev eth0 root handle 1: htb default 11\n\
        tc class add dev eth0 parent 1: classid 1:1 htb rate 100kbit\n\
        tc class add dev eth0 parent 1:1 classid 1:11 htb rate 60kbit ceil 100kbit quantum 1514\n\
        tc qdisc add dev eth0 parent 1:11 handle 20: pfifo limit 5\n";
    let lines = findings_of(policy, &[Rule::Limit]);
    assert!(
        lines.len() == 2 && lines.iter().all(|line| !line.contains("more by the same line")),
        "{lines:?}"
    );
}

/// CoDel in a bucket has the same target as in a class.
#[test]
fn a_target_is_looked_at_in_a_bucket_too() {
    let class = "tc qdisc add dev eth0 root handle 1: htb default 1\n\
        tc class add dev eth0 parent 1: classid 1:1 htb rate 400kbit\n\
        tc qdisc add dev eth0 parent 1:1 fq_codel\n";
    let bucket = "tc qdisc add dev eth0 root handle 1: tbf rate 400kbit burst 1600 latency 50ms\n\
        tc qdisc add dev eth0 parent 1:1 fq_codel\n";
    for policy in [class, bucket] {
        let lines = findings_of(policy, &[Rule::Limit]);
        assert!(lines.iter().any(|line| line.contains("less than a frame takes at 400 kbit/s")), "{lines:?}");
    }
    silent(&bucket.replace("400kbit", "20mbit"), &[Rule::Limit]);
}

/// A filter that names the qdisc itself is evaluated once, as Linux 6.1 counted it.
#[test]
fn a_filter_that_names_its_qdisc_is_asked_once() {
    let of = |root: &str| {
        let policy = format!(
            "{root}tc filter add dev eth0 parent 1: protocol ip prio 10 u32 match u32 0 0 flowid 1:\n"
        );
        explain(&["eth0"], &policy, "tcp 198.51.100.7:443 > 172.19.128.5:40000 len 1500 out eth0")
    };
    let bands = of("tc qdisc add dev eth0 root handle 1: prio\n");
    assert_eq!(bands.matches("u32 everything").count(), 1, "{bands}");
    assert!(bands.contains("that is the qdisc itself, and no class: the band of priority 0, 1:2"), "{bands}");
    let curves = of("tc qdisc add dev eth0 root handle 1: hfsc default 10\n\
         tc class add dev eth0 parent 1: classid 1:10 hfsc sc rate 1mbit\n");
    assert!(
        curves.matches("u32 everything").count() == 1
            && curves.contains("that is the qdisc itself, and no class: no class takes it")
            && curves.contains("dropped at eth0"),
        "{curves}"
    );
}

#[test]
fn a_script_that_flushes_nftables_is_told() {
    let of = |line: &str, scripts: bool| {
        let mut input = given(&["eth0"], "tc qdisc add dev eth0 root fq_codel\n");
        let words = line.split(' ').map(|text| Word::unplaced(text.into())).collect();
        input.steps.push(Step { tool: "nft".into(), words, ops: 1..1, ..input.steps[0].clone() });
        let mut policy = PolicyModel::new(PolicyInput { scripts, ..input });
        check(&mut policy).iter().filter(|finding| finding.rule == Rule::Flush).count()
    };
    assert_eq!([of("flush ruleset", true), of("flush table inet qos", true)], [1, 0]);
    // A file of nft's own defines the whole firewall.
    assert_eq!(of("flush ruleset", false), 0);
}

#[test]
fn the_ingress_of_a_device_that_is_down_takes_nothing() {
    let text = "tc qdisc add dev eth0 clsact\n\
        tc filter add dev eth0 egress protocol ip prio 1 matchall action mirred ingress redirect dev ifb0\n";
    let of = |down: &[&str]| {
        let down = down.iter().map(|name| (*name).to_owned()).collect();
        let mut policy = PolicyModel::new(PolicyInput { down, ..given(&["eth0", "ifb0"], text) });
        let redirects = check(&mut policy).iter().filter(|finding| finding.rule == Rule::Redirect).count();
        let packet = Packet::parse("tcp 192.168.1.2:80 > 8.8.8.8:999 out eth0").expect("a packet");
        let mut explainer = Explainer::new(&policy);
        let course = explainer.course(&packet).expect("a course");
        (redirects, explainer.explain(&packet, course).end.text)
    };
    assert_eq!(of(&["ifb0"]), (1, "dropped at ifb0: it is down".to_owned()));
    assert_eq!(of(&[]), (0, "goes on to routing, as if it had arrived by ifb0".to_owned()));
}

/// Within another qdisc nothing leaves faster than that lets it.
#[test]
fn what_goes_past_an_inner_htb_is_shaped_by_what_is_above() {
    let inner = "tc qdisc add dev eth0 root handle 1: htb default 1\n\
        tc class add dev eth0 parent 1: classid 1:1 htb rate 5mbit\n\
        tc qdisc add dev eth0 parent 1:1 handle 2: htb default 9\n\
        tc class add dev eth0 parent 2: classid 2:1 htb rate 2mbit\n\
        tc filter add dev eth0 parent 2: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 2:7\n";
    let lines = findings_of(inner, &[Rule::Nowhere]);
    assert!(
        lines.len() == 1 && lines[0].contains("past every class of 2:, as fast as 1:1 lets them"),
        "{lines:?}"
    );
    let told = explain(&["eth0"], inner, "tcp 192.168.1.2:80 > 8.8.8.8:22 out eth0");
    assert!(told.contains("past all classes of 2:, by its direct queue, as fast as 1:1 lets it"), "{told}");
    assert!(!told.contains("unshaped"), "{told}");
}

#[test]
fn a_device_in_software_keeps_no_packet_waiting() {
    let of = |dev: &str| {
        let text = format!("tc qdisc add dev {dev} root handle 1: prio\n");
        let mut policy = reading(&["eth0", "br0", "ifb0"], &text);
        let found = check(&mut policy).into_iter().find(|finding| finding.rule == Rule::Unlimited);
        found.expect("C2").because
    };
    assert!(of("br0").starts_with("a device that is made in software sends at once"));
    assert!(of("ifb0").starts_with("an ifb sends at once"));
    assert!(of("eth0").starts_with("packets wait here only while the device itself is busy"));
}

/// A program's own TOS byte gives its packets a priority, which the packet does not show.
#[test]
fn the_priority_of_the_machines_own_packets_is_said_to_be_assumed() {
    let of = |words: &str| explain(&["eth0"], "tc qdisc add dev eth0 root handle 1: prio\n", words);
    let told = of("tcp 10.0.0.1:80 > 8.8.8.8:999 tos 0x10 in lo out eth0");
    assert!(
        told.contains("priority 0 is assumed; Linux gives packets priority 6 whose program sets"),
        "{told}"
    );
    assert!(!of("tcp 10.0.0.1:80 > 8.8.8.8:999 in lo out eth0").contains("is assumed"));
    assert!(!of("tcp 10.0.0.1:80 > 8.8.8.8:999 tos 0x10 out eth0").contains("is assumed"));
}

/// In fq of 7.2 a flow of one band waits for the turns of others; in 6.1 priority 7 waits for none.
#[test]
fn of_fq_only_what_holds_is_said() {
    let of = |linux: LinuxVersion, priority: u32| {
        let kernel = KernelModel { linux, ..KernelModel::default() };
        let input = PolicyInput { kernel, ..given(&["eth0"], "tc qdisc add dev eth0 root handle 1: fq\n") };
        let policy = PolicyModel::new(input);
        let words = format!("tcp 10.0.0.1:80 > 8.8.8.8:999 priority {priority} in lo out eth0");
        let mut explainer = Explainer::new(&policy);
        let packet = Packet::parse(&words).expect("a packet");
        let course = explainer.course(&packet).expect("a course");
        explainer.explain(&packet, course).end.waits.join("\n")
    };
    assert!(of(LinuxVersion::V6_1, 0).contains("flows take turns of"));
    assert!(of(LinuxVersion::V6_1, 7).starts_with("packets of priority 7 go ahead of all flows"));
    let newer = of(LinuxVersion::V7_2, 0);
    assert!(newer.contains("is not worked out here") && !newer.contains("flows take turns of"), "{newer}");
}

/// Linux 6.1 was asked with 12,000 frames: the last leaves after 1.5 s, and netem refuses none.
#[test]
fn a_limit_that_was_not_reached_lets_more_wait() {
    for loss in ["", " loss 1%"] {
        let text = format!("tc qdisc add dev eth0 root netem delay 25ms rate 100mbit limit 1200000{loss}\n");
        let lines = findings_of(&text, &[Rule::Limit]);
        assert!(lines.len() == 1 && lines[0].contains("lets more than "), "{lines:?}");
    }
}

/// HTB sends packets with its own handle for a class past all of its classes.
#[test]
fn a_rule_that_names_the_htb_itself_is_found() {
    let of = |class: &str| {
        let text = format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10\n\
             tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n\
             iptables -t mangle -A POSTROUTING -p udp -j CLASSIFY --set-class {class}\n"
        );
        findings_of(&text, &[Rule::Nowhere])
    };
    let lines = of("1:0");
    assert!(lines.len() == 1 && lines[0].contains("which is the htb of eth0 itself"), "{lines:?}");
    assert!(lines[0].contains("its packets go past every class, unshaped"), "{lines:?}");
    assert!(of("1:10").is_empty());
}

/// A rule for one device is none for another that no file names.
#[test]
fn a_rule_for_one_device_takes_nothing_of_others() {
    let of = |first: &str| {
        format!(
            "tc qdisc add dev eth0 root fq_codel\n\
             {first}\n\
             iptables -t mangle -A POSTROUTING -p tcp --dport 22 -j MARK --set-mark 1"
        )
    };
    silent(&of("iptables -t mangle -A POSTROUTING -o tun0 -j RETURN"), &[Rule::Unreachable]);
    let all = of("iptables -t mangle -A POSTROUTING -j RETURN");
    check_finding(&all, &[Rule::Unreachable], &["no packet reaches this rule"]);
}

/// Actions behind one that lets packets pass are not carried out: a redirect there redirects nothing.
#[test]
fn actions_that_no_packet_comes_to_do_nothing() {
    let of = |actions: &str| {
        format!(
            "tc qdisc add dev eth0 clsact\n\
             tc filter add dev eth0 ingress protocol ip prio 1 matchall {actions}"
        )
    };
    let rules = [Rule::Redirect, Rule::OtherProtocols];
    let redirect = "action mirred egress redirect dev eth1";
    assert!(!findings_of(&of(redirect), &rules).is_empty(), "of a redirect alone there is something to say");
    for first in
        ["action nat ingress 1.2.3.4 10.0.0.1", "action pedit ex munge ip ttl set 9", "action csum ip4h"]
    {
        silent(&of(&format!("{first} {redirect}")), &rules);
    }
    // The remedy goes on to what follows.
    let pedit = of(&format!("action pedit ex munge udp dport set 80 pipe {redirect}"));
    check_finding(&pedit, &[Rule::Checksums], &["write behind it: action csum udp pipe"]);
}

/// No packet of 269 bytes comes to a class of packets of 128 at most.
#[test]
fn a_class_of_short_packets_is_filled_with_the_longest_of_them() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 20\n\
                tc class add dev eth0 parent 1: classid 1:10 htb rate 100kbit\n\
                tc class add dev eth0 parent 1: classid 1:20 htb rate 900kbit\n\
                tc qdisc add dev eth0 parent 1:20 fq_codel\n\
                iptables -t mangle -A POSTROUTING -o eth0 -p tcp -m length --length :128 -j CLASSIFY \
                --set-class 1:10";
    let found = findings_of(text, &[Rule::Limit]).concat();
    assert!(found.contains("1000 packets of 142 bytes taken, the last left after 11.4 s"), "{found}");
    let bucket = "tc qdisc add dev eth0 root handle 1: prio\n\
                  tc qdisc add dev eth0 parent 1:1 tbf rate 64kbit burst 300 limit 3000\n\
                  tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff match u16 0 \
                  0xff00 at 2 flowid 1:1\n\
                  tc filter add dev eth0 parent 1: protocol all prio 3 u32 match u32 0 0 flowid 1:2";
    silent(bucket, &[Rule::Burst]);
}

/// Priorities are compared within one HTB.
#[test]
fn priorities_of_another_htb_are_no_others() {
    let text = "tc qdisc add dev eth0 root handle 1: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n\
                tc qdisc add dev eth0 parent 1:1 handle 10: htb default 99\n\
                tc class add dev eth0 parent 10: classid 10:99 htb rate 5mbit prio 9\n\
                tc qdisc add dev eth0 parent 1:2 handle 20: htb default 99\n\
                tc class add dev eth0 parent 20: classid 20:99 htb rate 5mbit prio 9";
    let found = findings_of(text, &[Rule::Priority]);
    assert!(found.iter().all(|one| one.contains("as long as no other class has prio 7")), "{found:#?}");
    assert_eq!(found.len(), 2);
}

/// tc makes one key of matches of the same four bytes: what each reads is told of its own.
#[test]
fn a_match_of_another_family_reads_its_own_bytes() {
    let of = |matches: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: prio\n\
             tc filter add dev eth0 parent 1: protocol ip prio 1 u32 {matches} flowid 1:1"
        )
    };
    let both = of("match u16 0x0000 0xff00 at 4 match ip6 protocol 17 0xff");
    check_finding(&both, &[Rule::Protocol], &["it reads byte 6 of the packet", "`protocol ipv6`"]);
    check_finding(
        &of("match ip6 priority 0x10 0xff"),
        &[Rule::Protocol],
        &["it reads bytes 0 and 1 of the packet"],
    );
}

/// Answered conversations of UDP may take another class than their first packets.
#[test]
fn udp_that_is_answered_may_go_elsewhere() {
    let of = |first: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 30\n\
             tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit prio 0\n\
             tc class add dev eth0 parent 1: classid 1:30 htb rate 1mbit prio 1\n\
             {first}\
             iptables -t mangle -A FORWARD -o eth0 -p udp -j MARK --set-mark 3\n\
             tc filter add dev eth0 parent 1: protocol ip handle 3 fw flowid 1:10"
        )
    };
    check_finding(&of(""), &[Rule::Intent], &["all of UDP goes to 1:10", "leave QUIC out: ! --dport 443"]);
    let answered = "iptables -t mangle -A FORWARD -o eth0 -m state --state ESTABLISHED -j ACCEPT\n";
    silent(&of(answered), &[Rule::Intent]);
}

/// Linux 6.1 was asked: a tbf takes one packet out of an sfq to see what comes, and that flow may have one
/// more; a codel whose limit is reached before its target is held by the limit.
#[test]
fn a_packet_that_is_taken_out_is_counted() {
    let of = |queue: &str| {
        at_worst(&format!(
            "tc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 5k limit 1mb\n\
             tc qdisc add dev eth0 parent 1:1 handle 2: {queue}\n"
        ))
    };
    let sfq = of("sfq limit 50 depth 2");
    assert!(sfq.contains("one is held by the qdisc above") && sfq.contains("36 ms"), "{sfq}");
    assert!(!of("sfq limit 50").contains("is held by"), "its limit counts that packet");
    let codel = of("codel limit 10 target 500ms interval 600ms");
    assert!(!codel.contains("is held near") && codel.contains("121 ms"), "{codel}");
}

/// `parent 1` names a class of no qdisc, and the class under the root is what its author means.
#[test]
fn a_number_without_its_colon_is_no_parent() {
    let of = |parent: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 11\n\
             tc class add dev eth0 parent {parent} classid 1:5 htb rate 1mbit\n\
             tc class add dev eth0 parent 1:5 classid 1:11 htb rate 1mbit"
        )
    };
    check_finding(
        &of("1"),
        &[Rule::Nowhere],
        &["note", ":1 is a class without a qdisc", "the qdisc itself is 1:"],
    );
    silent(&of("1:"), &[Rule::Nowhere]);
    // What is made only now is no parent that one could take.
    let found = findings_of(&of("1:7"), &[Rule::Nowhere]);
    assert!(found.len() == 1 && !found[0].contains("parents there are"), "{found:#?}");
}
