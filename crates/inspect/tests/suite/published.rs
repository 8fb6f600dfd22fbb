//! What was said wrongly of policies that strangers published; each test names what Linux does with them.

use crate::common::{said, says, silent};
use crate::explain::explain;
use tidegate_inspect::Rule;

/// drr drops what no filter takes. ARP is lost only where no filter takes ARP.
#[test]
fn arp_is_said_to_be_dropped_only_where_it_is() {
    let filters = "tc qdisc add dev eth0 root handle 1: drr\n\
                   tc class add dev eth0 parent 1: classid 1:1 drr\n\
                   tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src 10.0.0.1 flowid 1:1";
    let shown = "`arp 192.168.1.10 > 198.51.100.7 in lo out eth0`";
    let arp = ["1 error R11: ARP and what else no filter of 1: takes is dropped", &shown[1..shown.len() - 1]];
    says(filters, &[Rule::Default], &arp);
    let with_arp =
        format!("{filters}\ntc filter add dev eth0 parent 1: protocol arp prio 2 u32 match u8 0 0 flowid 1:1");
    says(
        &with_arp,
        &[Rule::Default],
        &["1 warning R11: what no filter of 1: takes is dropped", "such packets never leave"],
    );
    let with_ip = format!(
        "{with_arp}\ntc filter add dev eth0 parent 1: protocol ip prio 3 matchall flowid 1:1\n\
                           tc filter add dev eth0 parent 1: protocol ipv6 prio 4 matchall flowid 1:1"
    );
    says(&with_ip, &[Rule::Default], &["1 note R11: what is neither IP nor ARP and no filter of 1: takes is dropped"]);
    let all = format!("{filters}\ntc filter add dev eth0 parent 1: protocol all prio 2 matchall flowid 1:1");
    silent(&all, &[Rule::Default]);
}

/// The same of HTB's direct queue.
#[test]
fn arp_is_said_to_go_past_all_classes_only_where_it_does() {
    let ip = "tc qdisc add dev eth0 root handle 1: htb\n\
              tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
              tc filter add dev eth0 parent 1: protocol ip prio 1 matchall flowid 1:1\n\
              tc filter add dev eth0 parent 1: protocol ipv6 prio 2 matchall flowid 1:1";
    says(ip, &[Rule::Default], &["1 note R11: ARP and what else is not IP goes past all classes of 1:", "arp "]);
    let arp = format!("{ip}\ntc filter add dev eth0 parent 1: protocol arp prio 3 matchall flowid 1:1");
    says(&arp, &[Rule::Default], &["1 note R11: what is neither IP nor ARP goes past all classes of 1:"]);
}

/// Linux 6.1 asks all filters of an ingress qdisc, whatever class of it they name (asked with `parent ffff:fff1` before
/// `parent ffff:`: the first took the packet); a clsact refuses such parents.
#[test]
fn filters_of_an_ingress_are_one_list() {
    let first = "tc qdisc add dev eth0 ingress\n\
                 tc filter add dev eth0 protocol ip parent ffff:fff1 prio 1 u32 match ip src 10.0.0.1 action drop";
    silent(first, &[Rule::Unreachable]);
    let twice = format!(
        "{first}\ntc filter add dev eth0 protocol ip parent ffff: prio 2 u32 match ip src 10.0.0.1 action drop"
    );
    says(&twice, &[Rule::Unreachable], &["3 warning R1: no packet reaches this filter"]);
    let leaving = "tc qdisc add dev eth0 ingress\n\
                   tc filter add dev eth0 protocol ip parent ffff:fff3 prio 1 u32 match ip src 10.0.0.1 action drop";
    assert_eq!(said(leaving, &[Rule::Unreachable]), [""; 0]);
}

/// Of what a filter asks for, only a part may come to the qdisc it hangs on.
#[test]
fn a_filter_of_an_inner_qdisc_is_shadowed_among_what_comes_there() {
    let text = "tc qdisc add dev eth0 root handle 1: htb\n\
                tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
                tc qdisc add dev eth0 parent 1:1 handle 2: prio\n\
                tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src 10.0.0.0/16 classid 1:1\n\
                tc filter add dev eth0 parent 2: protocol ip prio 3 u32 match ip src 10.0.0.0/16 classid 2:2\n\
                tc filter add dev eth0 parent 2: protocol ip prio 7 u32 match ip src 0.0.0.0/0 action drop";
    let parts = ["6 warning R1: no packet reaches this filter", "before it takes all it asks for, of what comes to 2:"];
    says(text, &[Rule::Unreachable], &parts);
}

/// 200 classes beside one of a terabit: what a queue holds while the others are busy is not measured, and not guessed.
#[test]
fn what_was_not_measured_is_not_said() {
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
    let found = said(&text, &[Rule::Limit]);
    assert!(!found.is_empty() && found.iter().all(|line| !line.contains("longer than")), "{found:#?}");
}

/// HTB and HFSC look for a filter's class among their own; a packet led to a class of the qdisc below goes to the default
/// (asked of Linux 6.1: 1:1, then 2:2 by the map).
#[test]
fn a_filter_that_names_a_class_of_the_qdisc_below() {
    for (kind, curve) in [("htb", "htb rate 1mbit"), ("hfsc", "hfsc sc rate 1mbit")] {
        let text = format!(
            "tc qdisc add dev eth0 root handle 1: {kind} default 1\n\
             tc class add dev eth0 parent 1: classid 1:1 {curve}\n\
             tc qdisc add dev eth0 parent 1:1 handle 2: prio\n\
             tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 2:1"
        );
        let parts =
            ["4 error R6: the filter hangs on 1: and leads to 2:1, which is no class of it", "the default class 1:1"];
        says(&text, &[Rule::Nowhere], &parts);
        let story = explain(&["eth0"], &text, "tcp 192.168.1.5:4000 > 10.0.0.5:22 len 60 out eth0");
        assert!(story.contains("2:1 is a class of another qdisc: the default class 1:1"), "{story}");
        assert!(story.contains("class 2:2"), "{story}");
    }
}
