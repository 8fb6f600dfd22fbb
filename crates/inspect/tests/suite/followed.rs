//! What `explain` follows from filter to filter beside marks and priorities: tags of VLANs, transmit queues,
//! inner classes, redirects. Linux 6.1 was asked.

use crate::explain::explain;

#[test]
fn filters_see_the_tag_that_one_before_them_put_on() {
    let policy = "\
tc qdisc add dev eth0 clsact
tc filter add dev eth0 egress protocol ip pref 1 flower ip_proto udp action vlan push id 35 priority 5
tc qdisc add dev eth0 root handle 1: prio bands 4 priomap 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3
tc filter add dev eth0 parent 1: protocol 802.1q pref 1 flower vlan_id 35 vlan_prio 5 classid 1:1
tc filter add dev eth0 parent 1: protocol ip pref 2 matchall classid 1:2";
    let tagged = explain(&["eth0"], policy, "udp 10.0.0.1:1 > 10.9.0.1:5060");
    assert!(tagged.contains("a tag of VLAN 35 is put on, it passes"), "{tagged}");
    assert!(tagged.contains("`vlan_id 35` holds") && tagged.contains("ends: eth0 1:1"), "{tagged}");
    let plain = explain(&["eth0"], policy, "tcp 10.0.0.1:1 > 10.9.0.1:5060");
    assert!(
        plain.contains("it matches 802.1Q, the packet is IPv4") && plain.contains("ends: eth0 1:2"),
        "{plain}"
    );
    let off = policy.replace("push id 35 priority 5", "push id 35 priority 5 pipe action vlan pop");
    let off = explain(&["eth0"], &off, "udp 10.0.0.1:1 > 10.9.0.1:5060");
    assert!(
        off.contains("its outermost tag of a VLAN is taken off") && off.contains("ends: eth0 1:2"),
        "{off}"
    );
}

#[test]
fn an_inner_class_named_by_a_priority_is_where_htb_begins() {
    let policy = "\
iptables -t mangle -A POSTROUTING -o eth0 -p udp -j CLASSIFY --set-class 1:1
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 5mbit
tc filter add dev eth0 parent 1:1 protocol ip prio 1 u32 match ip dport 53 0xffff flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff flowid 1:10";
    let of = |port: u16| explain(&["eth0"], policy, &format!("udp 10.0.0.1:1 > 10.9.0.1:{port}"));
    let inner = "its priority 1:1 names an inner class: the filters of that class alone are evaluated";
    assert!(of(53).contains(inner) && of(53).contains("ends: eth0 1:1 1:10"), "{}", of(53));
    assert!(of(54).contains("no filter decides: the default class 1:20"), "{}", of(54));
}

/// The class took the packet, and what is attached to it did not.
#[test]
fn a_queue_that_drops_is_no_reason_for_the_default_class() {
    for root in ["htb default 20", "drr", "hfsc default 20"] {
        let kind = root.split(' ').next().unwrap_or_default();
        let class = match kind {
            "htb" => "htb rate 2mbit",
            "drr" => "drr",
            _ => "hfsc ls m2 2mbit",
        };
        let policy = format!(
            "tc qdisc add dev eth0 root handle 1: {root}\n\
             tc class add dev eth0 parent 1: classid 1:10 {class}\n\
             tc class add dev eth0 parent 1: classid 1:20 {class}\n\
             tc qdisc add dev eth0 parent 1:10 handle 10: blackhole\n\
             tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip dport 25 0xffff flowid 1:10"
        );
        let story = explain(&["eth0"], &policy, "udp 10.0.0.1:1 > 10.9.0.1:25");
        assert!(story.contains("qdisc blackhole 10:"), "{story}");
        assert!(!story.contains("takes no packets") && !story.contains("default class"), "{story}");
    }
}

#[test]
fn a_packet_is_followed_back_to_the_device_where_it_came_in() {
    let policy = "\
tc qdisc add dev eth1 ingress
tc filter add dev eth1 parent ffff: protocol all prio 2 matchall action mirred egress redirect dev eth0
tc qdisc add dev eth0 root handle 1: htb default 1
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.0/8 action mirred egress redirect dev eth1";
    let story = explain(&["eth0", "eth1"], policy, "udp 192.168.1.4:1 > 10.4.4.4:3 in eth1");
    assert!(story.contains("it is redirected to eth1") && story.contains("ends: eth1, "), "{story}");
}

#[test]
fn queues_say_what_chose_them() {
    let tree = |filter: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 10: fq_codel\n\
             {filter}tc filter add dev eth0 parent 10: protocol all prio 1 matchall flowid 10:5"
        )
    };
    let words = "tcp 10.0.0.1:1 > 10.9.0.1:80";
    let chosen = explain(&["eth0"], &tree(""), words);
    assert!(chosen.contains("flow 10:5 of it by its own filters"), "{chosen}");
    let drawn = explain(&["eth0"], "tc qdisc add dev eth0 root handle 10: fq_codel", words);
    assert!(drawn.contains("of it by the key drawn here"), "{drawn}");
    let dual = "tc qdisc add dev eth0 root handle 2: dualpi2";
    let low = explain(&["eth0"], dual, "udp 10.0.0.1:1 > 10.9.0.1:53 ecn ect1");
    assert!(
        low.contains("the low-latency queue, which goes first and marks what waits longer than 1 ms"),
        "{low}"
    );
    let classic = explain(&["eth0"], dual, "udp 10.0.0.1:1 > 10.9.0.1:53");
    assert!(classic.contains("held near 15 ms"), "{classic}");
}

#[test]
fn nqb_and_l4s_are_named_where_they_wait() {
    let of = |qdisc: &str, marks: &str| {
        let words = format!("udp 10.0.0.1:1 > 10.9.0.1:53 {marks}");
        explain(&["eth0"], &format!("tc qdisc add dev eth0 root handle 2: {qdisc}"), &words)
    };
    let nqb = of("fq_codel", "dscp 45");
    let words = "udp 10.0.0.1:1 > 10.9.0.1:53 dscp NQB";
    let numbered = tidegate_inspect::Packet::parse(&words.replace("NQB", "45")).expect("a packet");
    assert_eq!(numbered.to_string(), words);
    assert!(
        nqb.contains("DSCP 45 is NQB: it asks for a short queue, not for priority (RFC 9956)\n"),
        "{nqb}"
    );
    let l4s = "ECT(1) is the mark of L4S senders (RFC 9331)";
    let one = of("codel ecn", "ecn ect1");
    let alike = "; codel 2: marks it as it marks ECT(0), in one queue with other conversations\n";
    assert!(one.contains(&format!("{l4s}{alike}")), "{one}");
    let selected = of("fq_codel ce_threshold 1ms ce_threshold_selector 0x01/0x03", "ecn ect1");
    let early = "; fq_codel 2: marks it once it has waited 999us (ce_threshold)\n";
    assert!(selected.contains(&format!("{l4s}{early}")), "{selected}");
    for (qdisc, marks) in [("fq_codel", "ecn ect1"), ("codel", "ecn ect1"), ("dualpi2", "ecn ect1")] {
        assert!(of(qdisc, marks).contains(&format!("{l4s}\n")), "{qdisc}");
    }
    for marks in ["dscp EF", "ecn ect0", "ecn ce"] {
        let other = of("codel ecn", marks);
        assert!(!other.contains("NQB") && !other.contains("L4S"), "{other}");
    }
}

/// What is not routed can only pass a bridge.
#[test]
fn arp_crosses_a_bridge() {
    let policy = "\
tc qdisc add dev eth1 root handle 1: htb default 2
tc class add dev eth1 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth1 parent 1: classid 1:2 htb rate 10mbit
tc filter add dev eth1 parent 1: protocol arp prio 2 matchall flowid 1:1";
    let story = explain(&["eth0", "eth1"], policy, "arp 192.168.1.2 > 192.168.1.1 in eth0 out eth1");
    assert!(
        story.contains("this is the way through a bridge") && story.contains("ends: eth1 1:1"),
        "{story}"
    );
}

/// The connection's mark as it was before the packet came, also where only actions on arrival read it.
#[test]
fn marks_of_connections_are_known_on_arrival() {
    let policy = "\
iptables -t mangle -A PREROUTING -i eth0 -j CONNMARK --set-mark 3
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all prio 1 matchall action connmark continue
tc filter add dev eth0 parent ffff: protocol all prio 2 handle 3 fw action drop";
    for words in [
        "udp 8.8.8.8:443 > 192.168.1.5:5 in eth0 out eth1 established",
        "udp 8.8.8.8:443 > 192.0.2.2:5 in eth0 established",
    ] {
        let story = explain(&["eth0", "eth1"], policy, words);
        assert!(story.contains("its mark becomes its connection's, 0x3"), "{story}");
        assert!(story.contains("ends: dropped at eth0: a filter drops it"), "{story}");
    }
}

#[test]
fn defaults_of_hfsc_are_named_where_their_queue_drops() {
    let policy = "\
tc qdisc add dev eth0 root handle 1: hfsc default 1
tc class add dev eth0 parent 1: classid 1:1 hfsc ls m2 8mbit ul m2 8mbit
tc qdisc add dev eth0 parent 1:1 handle 11: sfq
tc filter add dev eth0 parent 11: protocol ip prio 1 handle 11 flow hash keys dst divisor 512";
    let story = explain(&["eth0"], policy, "icmp6 2001:db8::5 > 2001:db8:1::6");
    assert!(story.contains("no filter decides: the default class 1:1"), "{story}");
}
