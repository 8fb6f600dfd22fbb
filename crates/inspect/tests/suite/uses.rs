//! Which filters get packets, and which rules of netfilter bring packets to a filter or a class.

use crate::common;

use common::reading;
use tidegate_inspect::{MarkingRule, PolicyModel, Uses};
use tidegate_packet::Handle;
use tidegate_policy::dump::{FilterDump, FilterEntry};

const TREE: &str = "\
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 9mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 3mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 3mbit
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 3mbit
";

/// The filters of a device, each by its preference, with what is known of it: `1 idle`, `2 PREROUTING
/// POSTROUTING`.
fn known(reading: &PolicyModel, uses: &Uses, dev: &str) -> Vec<String> {
    let filters = reading.filters.iter().filter(|dump| dump.dev == dev);
    let one = |dump: &FilterDump| {
        let idle = if uses.is_taken(dump) {
            " taken"
        } else if uses.is_idle(dump) {
            " idle"
        } else {
            ""
        };
        let chain = |rule: &MarkingRule| format!(" {} {:?}", rule.chain, rule.family);
        let rules: String = uses.markers(dump).iter().map(chain).collect();
        format!("{}{idle}{rules}", dump.pref)
    };
    filters.filter(|dump| matches!(dump.entry, FilterEntry::Filter { .. })).map(one).collect()
}

fn of(devices: &[&str], rest: &str, dev: &str) -> Vec<String> {
    let reading = reading(devices, &format!("{TREE}{rest}"));
    known(&reading, &Uses::of(&reading), dev)
}

const TO_IFB: &str = "\
tc qdisc add dev eth0 handle ffff: ingress
tc qdisc add dev ifb0 root handle 1: htb default 20
tc class add dev ifb0 parent 1: classid 1:10 htb rate 20mbit
tc class add dev ifb0 parent 1: classid 1:20 htb rate 20mbit
tc filter add dev ifb0 parent 1: protocol ip prio 1 handle 3 fw flowid 1:10
iptables -t mangle -A PREROUTING -p tcp -j MARK --set-mark 3
";

#[test]
fn what_is_redirected_at_an_ingress_has_no_mark_of_netfilter() {
    let by = |filter: &str| of(&["eth0", "eth1", "ifb0"], &format!("{TO_IFB}{filter}"), "ifb0");
    let redirect = "action mirred egress redirect dev ifb0";
    let arriving =
        format!("tc filter add dev eth0 parent ffff: protocol all prio 10 u32 match u32 0 0 {redirect}");
    assert_eq!(by(&arriving), ["1 idle"]);
    // What leaves and is redirected was in the chains before.
    let leaving =
        format!("tc filter add dev eth0 parent 1: protocol all prio 10 u32 match u32 0 0 {redirect}");
    assert_eq!(by(&leaving), ["1 PREROUTING Ipv4"]);
    // connmark gives back what rules wrote on the connection: that is left open.
    let restored = format!("{arriving} action connmark")
        .replace(redirect, "action connmark action mirred egress redirect dev ifb0");
    assert_eq!(by(restored.trim_end_matches(" action connmark")), ["1 PREROUTING Ipv4"]);
}

#[test]
fn the_device_knows_whether_all_comes_from_an_ingress() {
    let arriving = "tc filter add dev eth0 parent ffff: protocol all prio 10 matchall action mirred egress \
    redirect dev ifb0";
    let leaving = "tc filter add dev eth0 parent 1: protocol all prio 10 matchall action mirred egress \
    redirect dev ifb0";
    let unmarked = |rest: &str| {
        let reading = reading(&["eth0", "ifb0"], &format!("{TREE}{TO_IFB}{rest}"));
        Uses::of(&reading).comes_unmarked("ifb0")
    };
    assert!(unmarked(arriving));
    assert!(!unmarked(leaving));
    assert!(!unmarked(&format!("{arriving}\n{leaving}")));
}

#[test]
fn rules_of_one_protocol_bring_nothing_to_filters_of_the_other() {
    let rest = "\
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 3 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ipv6 prio 2 handle 3 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ipv6 prio 3 handle 4 fw flowid 1:20
tc filter add dev eth0 parent 1: protocol all prio 4 handle 3 fw flowid 1:10
iptables -t mangle -A PREROUTING -p tcp -j MARK --set-mark 3
ip6tables -t mangle -A POSTROUTING -p udp -j MARK --set-mark 3
iptables -t mangle -A FORWARD -p icmp -j MARK --set-mark 4
iptables -t mangle -A POSTROUTING -o eth9 -j MARK --set-mark 3
";
    let wanted = ["1 PREROUTING Ipv4", "2 POSTROUTING Ipv6", "3 idle", "4 taken"];
    assert_eq!(of(&["eth0", "eth9"], rest, "eth0"), wanted);
}

#[test]
fn marks_are_met_bit_by_bit_and_what_is_written_over_is_gone() {
    let rest = "\
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 0x11/0xff fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 2 handle 7 fw flowid 1:20
iptables -t mangle -A PREROUTING -p tcp -j MARK --set-xmark 0x10/0xf0
iptables -t mangle -A FORWARD -p tcp -j MARK --set-xmark 0x1/0x0f
iptables -t mangle -A INPUT -j MARK --set-mark 7
iptables -t mangle -A PREROUTING -p udp -j MARK --set-mark 7
iptables -t mangle -A POSTROUTING -p udp -j MARK --set-mark 8
";
    assert_eq!(of(&["eth0"], rest, "eth0"), ["1 PREROUTING Ipv4 FORWARD Ipv4", "2 idle"]);
}

#[test]
fn filters_behind_one_that_takes_all_get_nothing() {
    let rest = "\
tc filter add dev eth0 parent 1: protocol all prio 1 u32 match u32 0 0 flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dport 22 0xffff flowid 1:20
tc filter add dev eth0 parent 1:20 protocol ip prio 3 u32 match ip dport 25 0xffff flowid 1:20
";
    assert_eq!(of(&["eth0"], rest, "eth0"), ["1", "2 taken", "3 idle"]);
    let reading = reading(&["eth0"], &format!("{TREE}{rest}"));
    let uses = Uses::of(&reading);
    assert!(uses.is_idle_default("eth0", Handle::new(1, 0x30)));
    let plain = common::reading(&["eth0"], TREE);
    assert!(!Uses::of(&plain).is_idle_default("eth0", Handle::new(1, 0x30)));
}

#[test]
fn connections_carry_marks_from_packet_to_packet() {
    let rest = "\
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 3 fw flowid 1:10
iptables -t mangle -A PREROUTING -i eth0 -p tcp --syn -j CONNMARK --set-mark 3
";
    // Marks of connections that nothing gives back are on no packet.
    assert_eq!(of(&["eth0"], rest, "eth0"), ["1 idle"]);
    let restored = format!("{rest}iptables -t mangle -A POSTROUTING -j CONNMARK --restore-mark\n");
    assert_eq!(of(&["eth0"], &restored, "eth0"), ["1 PREROUTING Ipv4"]);
}

#[test]
fn classes_are_named_by_rules_only_where_packets_come_with_the_name() {
    let classified = |rest: &str, dev: &str| {
        let reading = reading(&["eth0", "ifb0"], &format!("{TREE}{TO_IFB}{rest}"));
        let uses = Uses::of(&reading);
        uses.classifiers(dev, Handle::new(1, 0x10)).iter().map(|rule| rule.chain.clone()).collect::<Vec<_>>()
    };
    let rest = "\
tc filter add dev eth0 parent ffff: protocol all prio 10 matchall action mirred egress redirect dev ifb0
iptables -t mangle -A PREROUTING -p udp -j CLASSIFY --set-class 1:10
iptables -t mangle -A POSTROUTING -o eth0 -p tcp -j CLASSIFY --set-class 1:10
ip6tables -t mangle -A FORWARD -p udp -j CLASSIFY --set-class 1:20
";
    assert_eq!(classified(rest, "eth0"), ["POSTROUTING"]);
    assert_eq!(classified(rest, "ifb0"), Vec::<String>::new());
}

/// A rule marks packets that leave by the LAN; their replies have the mark from the connection, and do not
/// meet the rule's conditions.
#[test]
fn a_mark_that_comes_by_the_connection_is_known_as_such() {
    let policy = "\
iptables -t mangle -A PREROUTING -j CONNMARK --restore-mark
iptables -t mangle -A FORWARD -o eth0 -p tcp --dport 22 -m mark --mark 0 -j MARK --set-mark 5
iptables -t mangle -A POSTROUTING -j CONNMARK --save-mark
tc qdisc add dev eth0 root handle 1: htb
tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 5 fw flowid 1:10
tc qdisc add dev br0 root handle 1: htb
tc class add dev br0 parent 1: classid 1:10 htb rate 1mbit
tc filter add dev br0 parent 1: protocol ip prio 1 handle 5 fw flowid 1:10";
    let reading = crate::common::reading(&["eth0", "br0"], policy);
    let uses = tidegate_inspect::Uses::of(&reading);
    let filters = reading
        .filters
        .iter()
        .filter(|dump| matches!(dump.entry, tidegate_policy::dump::FilterEntry::Filter { .. }));
    let by_connection = |dev: &str| {
        let dump = filters.clone().find(|dump| dump.dev == dev).expect("it is there");
        uses.markers(dump).iter().map(|marker| marker.by_connection).collect::<Vec<_>>()
    };
    assert_eq!((by_connection("eth0"), by_connection("br0")), (vec![false], vec![true]));
}
