//! What stands beside a class and must not be taken for it: filters before its tree, the delay of a netem,
//! rules that let packets out earlier.

use crate::common::{check_finding, given, reading, silent};
use std::net::IpAddr;
use tidegate_inspect::{Explainer, Packet, PolicyModel, Rule, check};
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::{LinkOp, Op};

const PAIR: &str = "tc qdisc add dev eth0 root handle 1: htb default 2\n\
                    tc class add dev eth0 parent 1: classid 1:1 htb rate 8mbit\n\
                    tc class add dev eth0 parent 1: classid 1:2 htb rate 2mbit\n\
                    tc qdisc add dev eth0 parent 1:2 fq_codel target 10ms interval 105ms\n";

/// A thousand frames of a class of 8 Mbit/s last 1.5 s, wherever filters of clsact lead packets.
#[test]
fn a_class_is_measured_past_the_filters_of_clsact() {
    let hook = "tc qdisc add dev eth0 clsact\n\
                tc filter add dev eth0 egress protocol all prio 3 matchall action ";
    let written = format!("{PAIR}{hook}skbedit priority 1:2");
    check_finding(&written, &[Rule::Limit], &["class 1:1 has no limit set: 1.5 s"]);
    // A policer there may let less come.
    silent(&format!("{PAIR}{hook}police rate 1mbit burst 10k conform-exceed drop"), &[Rule::Limit]);
}

/// What leaves an ifb goes on to the device that it was redirected from.
#[test]
fn an_ifb_before_a_device_is_not_the_bottleneck() {
    let behind = "tc qdisc add dev eth0 root handle 2: htb default 1\n\
                  tc class add dev eth0 parent 2: classid 2:1 htb rate 2mbit\n\
                  tc qdisc add dev eth0 parent 2:1 fq_codel target 10ms interval 105ms\n\
                  tc qdisc add dev eth0 clsact\n\
                  tc qdisc add dev ifb0 root handle 1: htb default 1\n\
                  tc class add dev ifb0 parent 1: classid 1:1 htb rate 8mbit\n\
                  tc qdisc add dev ifb0 parent 1:1 pfifo limit 2000\n";
    let redirect =
        "tc filter add dev eth0 HOOK protocol all prio 1 matchall action mirred egress redirect dev ifb0";
    let found = |hook: &str| -> Vec<String> {
        let text = format!("{behind}{}", redirect.replace("HOOK", hook));
        let found = check(&mut reading(&["eth0", "ifb0"], &text)).into_iter();
        found.filter(|finding| finding.rule == Rule::Limit).map(|finding| finding.what).collect()
    };
    assert_eq!(found("egress"), [""; 0]);
    assert_eq!(found("ingress"), ["limit 2000 lets 3.0 s of packets wait in class 1:1"]);
}

/// 1000 frames at 1 Mbit/s leave within 12.1 s, and the last one two seconds later.
#[test]
fn the_delay_of_a_netem_is_subtracted_once() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 1\n\
                tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
                tc qdisc add dev eth0 parent 1:1 netem delay 2s limit 1000";
    let parts = ["lets 12.1 s of packets wait", "beside its delay of 2.0 s", "the last left after 14.1 s"];
    check_finding(text, &[Rule::Limit], &parts);
}

#[test]
fn a_rule_behind_one_that_lets_other_devices_out_is_for_one() {
    let marks = "iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 22 -j MARK --set-mark 1\n\
                 iptables -t mangle -A POSTROUTING -p udp --dport 53 -j MARK --set-mark 1";
    check_finding(marks, &[Rule::Flush], &["the rule marks packets of every device"]);
    for target in ["RETURN", "ACCEPT"] {
        silent(&format!("iptables -t mangle -A POSTROUTING ! -o eth0 -j {target}\n{marks}"), &[Rule::Flush]);
    }
    // A translation in another table marks nothing.
    silent(
        "iptables -t nat -A PREROUTING -i eth0 -p tcp --dport 80 -j DNAT --to-destination 10.0.0.2\n\
         iptables -t mangle -A PREROUTING -p udp --dport 53 -j MARK --set-mark 1",
        &[Rule::Flush],
    );
}

/// basic's conditions are not followed: nothing is said of how much another filter matches beside it.
#[test]
fn a_filter_that_is_not_followed_is_to_be_put_first() {
    let text = format!(
        "{PAIR}tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match u32 0 0 flowid 1:2\n\
         tc filter add dev eth0 parent 1: protocol ip prio 2 basic match cmp(u8 at 9 layer network eq 17) \
         flowid 1:1"
    );
    check_finding(&text, &[Rule::Unreachable], &["put it before what takes its packets"]);
}

/// Where addresses are translated, no packet is shown for a rule on them.
#[test]
fn no_packet_is_shown_where_addresses_are_translated() {
    let rules = "tc qdisc add dev eth0 root handle 1: htb default 2\n\
                 tc class add dev eth0 parent 1: classid 1:2 htb rate 2mbit\n\
                 tc filter add dev eth0 parent 1: prio 1 handle 2 fw flowid 1:2\n\
                 iptables -t mangle -A FORWARD -d 192.168.1.5 -j CONNMARK --set-mark 2";
    check_finding(rules, &[Rule::Connmark], &["192.168.1.5:443 established", "with mark 0"]);
    let masqueraded = format!("{rules}\niptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE");
    check_finding(
        &masqueraded,
        &[Rule::Connmark],
        &["connections get mark 2", "stays as it was; ; restore it"],
    );
}

/// A port forward: what is sent to the machine's own address leaves by the class of the host behind it.
#[test]
fn a_packet_for_the_machine_is_followed_to_the_host_behind_it() {
    let tree = "tc qdisc add dev eth1 root handle 1: htb default 2\n\
                tc class add dev eth1 parent 1: classid 1:1 htb rate 5mbit\n\
                tc class add dev eth1 parent 1: classid 1:2 htb rate 5mbit\n\
                tc filter add dev eth1 parent 1: protocol ip u32 match ip dst 192.168.1.9 flowid 1:1\n\
                iptables -t nat -A PREROUTING -i eth0 -p tcp --dport 2222 -j DNAT \
                --to-destination 192.168.1.9:22";
    let mut input = given(&["eth0", "eth1"], tree);
    let (address, prefix) = (IpAddr::from([192, 0, 2, 2]), 24);
    input.ops.push(Op::Link(LinkOp::Address { name: "eth0".into(), add: true, address, prefix }));
    let policy = PolicyModel::new(input);
    let mut explainer = Explainer::new(&policy);
    let mut end = |words: &str| {
        let packet = Packet::parse(words).expect(words);
        let course = explainer.course(&packet).expect(words);
        explainer.explain(&packet, course).end.text
    };
    let forwarded = end("tcp 203.0.113.9:20000 > 192.0.2.2:2222 syn in eth0");
    assert!(forwarded.starts_with("eth1 1:1"), "{forwarded}");
    let own = end("tcp 203.0.113.9:20000 > 192.0.2.2:22 syn in eth0");
    assert!(own.starts_with("goes on to this machine itself: 192.0.2.2 is an address of eth0"), "{own}");
}

/// Asked of Linux 6.1: "Cannot allocate memory" for 1 to 255 bytes, and the filter is not there.
#[test]
fn a_policer_for_very_short_packets_is_refused() {
    let filters = |mtu: u32| {
        let text = format!(
            "tc qdisc add dev eth0 root handle 1: prio\n\
             tc filter add dev eth0 parent 1: protocol ip u32 match u32 0 0 police rate 8kbit burst 1000 \
             mtu {mtu} drop flowid 1:1"
        );
        let policy = reading(&["eth0"], &text);
        let is_filter = |dump: &&FilterDump| matches!(dump.entry, FilterEntry::Filter { .. });
        policy.filters.iter().filter(is_filter).count()
    };
    assert_eq!([0, 1, 100, 255, 256, 300].map(filters), [1, 0, 0, 0, 1, 1]);
}

/// A filter behind several that take its packets gets none, although some of them lead where it does: the
/// packet that shows it is one that goes elsewhere.
#[test]
fn a_filter_behind_others_of_which_one_leads_where_it_does_is_found() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n\
                tc class add dev eth0 parent 1: classid 1:20 htb rate 1mbit\n\
                tc class add dev eth0 parent 1: classid 1:30 htb rate 1mbit\n\
                tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff flowid 1:10\n\
                tc filter add dev eth0 parent 1: protocol ip prio 3 u32 match u32 0 0 flowid 1:20\n\
                tc filter add dev eth0 parent 1: protocol all prio 4 matchall flowid 1:30\n\
                tc filter add dev eth0 parent 1: protocol all prio 5 u32 match u8 0x40 0xf0 at 0 flowid 1:10";
    check_finding(text, &[Rule::Unreachable], &["line 5, line 6", "what it matches goes where those lead"]);
}
