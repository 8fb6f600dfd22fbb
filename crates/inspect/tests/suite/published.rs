//! Wrong findings about published policies; each test names what Linux does with them.

use crate::common::{check_finding, findings_of, silent};
use crate::explain::explain;
use tidegate_inspect::Rule;

/// drr drops what no filter takes. ARP is lost only where no filter takes ARP.
#[test]
fn arp_is_reported_as_dropped_only_where_it_is() {
    let filters = "tc qdisc add dev eth0 root handle 1: drr\n\
                   tc class add dev eth0 parent 1: classid 1:1 drr\n\
                   tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src 10.0.0.1 flowid 1:1";
    let shown = "`arp 192.168.1.10 > 198.51.100.7 in lo out eth0`";
    let arp = ["1 error R11: ARP and what else no filter of 1: takes is dropped", &shown[1..shown.len() - 1]];
    check_finding(filters, &[Rule::Default], &arp);
    let with_arp = format!(
        "{filters}\ntc filter add dev eth0 parent 1: protocol arp prio 2 u32 match u8 0 0 flowid 1:1"
    );
    check_finding(
        &with_arp,
        &[Rule::Default],
        &["1 warning R11: what no filter of 1: takes is dropped", "such packets never leave"],
    );
    let with_ip = format!(
        "{with_arp}\ntc filter add dev eth0 parent 1: protocol ip prio 3 matchall flowid 1:1\n\
                           tc filter add dev eth0 parent 1: protocol ipv6 prio 4 matchall flowid 1:1"
    );
    check_finding(
        &with_ip,
        &[Rule::Default],
        &["1 note R11: what is neither IP nor ARP and no filter of 1: takes is dropped"],
    );
    let all = format!("{filters}\ntc filter add dev eth0 parent 1: protocol all prio 2 matchall flowid 1:1");
    silent(&all, &[Rule::Default]);
}

/// Likewise for HTB's direct queue.
#[test]
fn arp_is_reported_past_all_classes_only_where_it_is() {
    let ip = "tc qdisc add dev eth0 root handle 1: htb\n\
              tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
              tc filter add dev eth0 parent 1: protocol ip prio 1 matchall flowid 1:1\n\
              tc filter add dev eth0 parent 1: protocol ipv6 prio 2 matchall flowid 1:1";
    check_finding(
        ip,
        &[Rule::Default],
        &["1 note R11: ARP and what else is not IP goes past all classes of 1:", "arp "],
    );
    let arp = format!("{ip}\ntc filter add dev eth0 parent 1: protocol arp prio 3 matchall flowid 1:1");
    check_finding(
        &arp,
        &[Rule::Default],
        &["1 note R11: what is neither IP nor ARP goes past all classes of 1:"],
    );
}

/// Linux 6.1 evaluates all filters of an ingress qdisc, whatever class of it they name (asked with `parent
/// ffff:fff1` before `parent ffff:`: the first took the packet); a clsact refuses such parents.
#[test]
fn filters_of_an_ingress_are_one_list() {
    let first = "tc qdisc add dev eth0 ingress\n\
                 tc filter add dev eth0 protocol ip parent ffff:fff1 prio 1 u32 match ip src 10.0.0.1 \
                 action drop";
    silent(first, &[Rule::Unreachable]);
    let twice = format!(
        "{first}\ntc filter add dev eth0 protocol ip parent ffff: prio 2 u32 match ip src 10.0.0.1 action drop"
    );
    check_finding(&twice, &[Rule::Unreachable], &["3 warning R1: no packet reaches this filter"]);
    let leaving = "tc qdisc add dev eth0 ingress\n\
                   tc filter add dev eth0 protocol ip parent ffff:fff3 prio 1 u32 match ip src 10.0.0.1 \
                   action drop";
    assert_eq!(findings_of(leaving, &[Rule::Unreachable]), [""; 0]);
}

/// Only a part of the packets that a filter matches may come to its qdisc.
#[test]
fn a_filter_of_an_inner_qdisc_is_shadowed_among_what_comes_there() {
    let text = "tc qdisc add dev eth0 root handle 1: htb\n\
                tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
                tc qdisc add dev eth0 parent 1:1 handle 2: prio\n\
                tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src 10.0.0.0/16 classid \
                1:1\n\
                tc filter add dev eth0 parent 2: protocol ip prio 3 u32 match ip src 10.0.0.0/16 classid \
                2:2\n\
                tc filter add dev eth0 parent 2: protocol ip prio 7 u32 match ip src 0.0.0.0/0 action drop";
    let parts = [
        "6 warning R1: no packet reaches this filter",
        "before it takes all that it would match, of what comes to 2:",
    ];
    check_finding(text, &[Rule::Unreachable], &parts);
}

/// 200 classes beside one of a terabit: what a queue holds while the others are busy is not measured, and not
/// guessed.
#[test]
fn unmeasured_effects_are_not_reported() {
    let mut text = "tc qdisc add dev eth0 root handle 1: htb default 9999\n\
                    tc class add dev eth0 parent 1: classid 1:9999 htb rate 1000gbit prio 7\n"
        .to_owned();
    for number in 1..=200 {
        text += &format!("tc class add dev eth0 parent 1: classid 1:{number:x} htb rate 2560kbit prio 5\n");
        text += &format!(
            "tc filter add dev eth0 parent 1: protocol ip prio 5 handle {number} fw flowid 1:{number:x}\n\
             iptables -t mangle -A FORWARD -s 10.0.0.{number} -j MARK --set-mark {number}\n"
        );
    }
    let found = findings_of(&text, &[Rule::Limit]);
    assert!(!found.is_empty() && found.iter().all(|line| !line.contains("longer than")), "{found:#?}");
}

/// HTB and HFSC look for a filter's class among their own; a packet whose filter names a class of the qdisc
/// below goes to the default (asked of Linux 6.1: 1:1, then 2:2 by the map).
#[test]
fn a_filter_that_names_a_class_of_the_qdisc_below() {
    for (kind, curve) in [("htb", "htb rate 1mbit"), ("hfsc", "hfsc sc rate 1mbit")] {
        let text = format!(
            "tc qdisc add dev eth0 root handle 1: {kind} default 1\n\
             tc class add dev eth0 parent 1: classid 1:1 {curve}\n\
             tc qdisc add dev eth0 parent 1:1 handle 2: prio\n\
             tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 2:1"
        );
        let parts = [
            "4 error R6: the filter hangs on 1: and leads to 2:1, which is not a class of it",
            "the default class 1:1",
        ];
        check_finding(&text, &[Rule::Nowhere], &parts);
        let story = explain(&["eth0"], &text, "tcp 192.168.1.5:4000 > 10.0.0.5:22 len 60 out eth0");
        assert!(story.contains("2:1 is a class of another qdisc: the default class 1:1"), "{story}");
        assert!(story.contains("class 2:2"), "{story}");
    }
}

/// `police …` without `action` before it, and an `action` behind: Linux 6.1 keeps the policer alone (its
/// listing shows no mirred, and nothing came to the ifb).
#[test]
fn an_action_beside_a_policer_of_the_old_words_is_ignored() {
    let text = "tc qdisc add dev eth0 ingress\n\
                tc filter add dev eth0 parent ffff: protocol ip prio 2 u32 match ip protocol 17 0xff \
                police rate 5mbit burst 50k conform-exceed pipe action mirred egress redirect dev eth1";
    check_finding(
        text,
        &[Rule::Unreachable],
        &["2 warning R1: the filter's `action` is ignored", "one action, `police`"],
    );
    let story = explain(&["eth0", "eth1"], text, "udp 203.0.113.9:53 > 192.168.1.7:4000 len 400 in eth0");
    assert!(!story.contains("redirect"), "{story}");
    let both = text
        .replace(" police rate", " action police rate")
        .replace("conform-exceed pipe", "conform-exceed drop/pipe");
    silent(&both, &[Rule::Unreachable]);
    let story = explain(&["eth0", "eth1"], &both, "udp 203.0.113.9:53 > 192.168.1.7:4000 len 400 in eth0");
    assert!(story.contains("it is redirected to eth1"), "{story}");
}

/// A filter that leads to an inner class, and that others shadow, is the cause; the filters there are not
/// reported beside it.
#[test]
fn filters_of_a_class_whose_own_filter_is_shadowed_have_one_cause() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 9\n\
                tc class add dev eth0 parent 1: classid 1:1 htb rate 5mbit\n\
                tc class add dev eth0 parent 1: classid 1:3 htb rate 5mbit\n\
                tc class add dev eth0 parent 1:3 classid 1:31 htb rate 5mbit\n\
                tc class add dev eth0 parent 1: classid 1:9 htb rate 1mbit\n\
                tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.2.0.0/16 flowid 1:1\n\
                tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.2.3.0/24 flowid 1:3\n\
                tc filter add dev eth0 parent 1:3 protocol ip prio 1 u32 match u32 0 0 flowid 1:31";
    check_finding(text, &[Rule::Unreachable], &["7 warning R1: no packet reaches this filter"]);
}

/// A default class whose queue takes no packet, and an HTB without default below a netem, end no check.
#[test]
fn queues_that_take_nothing_and_delays_do_not_end_a_check() {
    for leaf in ["blackhole", "pfifo limit 0", "netem loss 100%"] {
        let text = format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10\n\
             tc class add dev eth0 parent 1: classid 1:10 htb rate 1kbit\n\
             tc class add dev eth0 parent 1: classid 1:11 htb rate 1gbit\n\
             tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:11\n\
             tc qdisc add dev eth0 parent 1:10 handle 12: {leaf}"
        );
        let _ = findings_of(&text, &[Rule::Default]);
    }
    let below = "tc qdisc add dev eth0 root handle 11: netem delay 5ms\n\
                 tc qdisc add dev eth0 parent 11:1 handle 12: htb default 40\n\
                 tc class add dev eth0 parent 12: classid 12:1 htb rate 1mbit";
    silent(below, &[Rule::Default]);
}

/// The direct queue of HTB is past all classes, whatever the default is.
#[test]
fn a_filter_to_htb_itself_is_reported() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 40\n\
                tc class add dev eth0 parent 1: classid 1:40 htb rate 1mbit\n\
                tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip sport 443 0xffff flowid 1:0";
    let story = explain(&["eth0"], text, "tcp 192.168.1.5:443 > 10.129.0.5:25 len 1400 out eth0");
    assert!(
        story.contains("that is HTB itself: past all classes") && !story.contains("default class"),
        "{story}"
    );
}

/// EF is 46, and 0xb8 in the byte of the DS field: a filter for 0x2e there takes no packet of EF.
#[test]
fn the_number_of_ef_compared_with_the_whole_byte() {
    let of = |tos: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 20\n\
             tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n\
             tc class add dev eth0 parent 1: classid 1:20 htb rate 1mbit\n\
             tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip tos {tos} flowid 1:10"
        )
    };
    for tos in ["0x2e 0xff", "46 0xfc"] {
        check_finding(
            &of(tos),
            &[Rule::Shapes],
            &["4 warning C3: 0x2e under the mask", "dscp EF out eth0: 1:20", "0xb8 and the mask 0xfc"],
        );
    }
    silent(&of("0xb8 0xfc"), &[Rule::Shapes]);
    silent(&of("0x10 0xfc"), &[Rule::Shapes]);
}

/// A device that no command names is no queue to give figures of.
#[test]
fn queues_of_unnamed_devices_have_no_finding() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 1\n\
                tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit";
    let story = explain(&["eth0"], text, "tcp 203.0.113.9:80 > 192.168.1.7:5000 len 1500 in eth0");
    assert!(
        story.contains("the policy does not name this device") && !story.contains("1000 packets"),
        "{story}"
    );
}

/// What a hundred published policies had wrong.
#[test]
fn what_published_policies_showed() {
    let found = |text: &str, rule: Rule| findings_of(text, &[rule]).join("\n");
    // A bucket's burst makes room at once: a queue that is kept full is behind it (Linux 6.1: 1526 ms).
    let bucket = "tc qdisc add dev eth0 root tbf rate 1mbit burst 150k latency 300ms";
    assert!(found(bucket, Rule::Limit).contains("latency 300ms lets 1.5 s of packets wait"));
    // Only short packets come to the class.
    let short = "tc qdisc add dev eth0 root handle 1: htb default 50\n\
                 tc class add dev eth0 parent 1: classid 1:11 htb rate 100kbit\n\
                 tc class add dev eth0 parent 1: classid 1:50 htb rate 2900kbit\n\
                 tc qdisc add dev eth0 parent 1:50 fq_codel\n\
                 tc filter add dev eth0 parent 1: protocol arp prio 9 u32 match u32 0 0 flowid 1:11";
    assert!(
        found(short, Rule::Limit).contains("1000 packets of 42 bytes taken"),
        "{}",
        found(short, Rule::Limit)
    );
    // A block on purpose.
    let block = "tc qdisc add dev eth0 ingress\n\
                 tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match ip dport 80 0xffff \
                 police mtu 1 drop";
    assert_eq!(found(block, Rule::Burst), "");
    // A leaf's filters are never evaluated: what they would do is not said.
    let leaf = "tc qdisc add dev eth0 root handle 1: htb default 11\n\
                tc class add dev eth0 parent 1: classid 1:11 htb rate 8mbit\n\
                tc qdisc add dev eth0 parent 1:11 handle 11: fq_codel\n\
                tc filter add dev eth0 parent 1:11 protocol ip handle 51 flow hash keys nfct-src divisor 254";
    assert_eq!(found(leaf, Rule::Collisions), "");
    // The same priority, written twice.
    let equal = "tc qdisc add dev eth0 root handle 1: htb default 10\n\
                 tc class add dev eth0 parent 1: classid 1:10 htb rate 2mbit prio 100\n\
                 tc class add dev eth0 parent 1: classid 1:11 htb rate 2mbit prio 100";
    assert!(found(equal, Rule::Priority).contains("nothing changes: the others of prio 7 have prio 100 too"));
    // PPP by another name has no ARP.
    let ppp = "tc qdisc add dev pppoe-dsl root handle 1: hfsc\n\
               tc class add dev pppoe-dsl parent 1: classid 1:1 hfsc sc rate 576kbit ul rate 576kbit";
    assert!(!found(ppp, Rule::Default).contains("ARP"));
    // Rules for IP mark no ARP.
    let arp = "tc qdisc add dev eth0 root handle 1: htb default 12\n\
               tc class add dev eth0 parent 1: classid 1:11 htb rate 10mbit\n\
               tc class add dev eth0 parent 1: classid 1:12 htb rate 10mbit\n\
               tc filter add dev eth0 parent 1: protocol arp prio 1 handle 1 fw classid 1:11";
    let marks = found(arp, Rule::Marks);
    assert!(marks.contains("see IP only") && !marks.contains("iptables -t mangle"), "{marks}");
    // More than the 4000 packets that are offered.
    let netem = "tc qdisc add dev eth0 root netem limit 1000000 delay 50ms rate 20mbit";
    assert!(found(netem, Rule::Limit).contains("lets more than 2.4 s of packets wait"));
}
