//! Remedies that must help, and reasons that must be the true ones; most were asked of Linux 6.1.

use crate::common::{check_finding, findings_of, reading, silent};
use tidegate_inspect::{Rule, check};

const HTB: &str = "tc qdisc add dev eth0 root handle 1: htb default 2\n\
                   tc class add dev eth0 parent 1: classid 1:1 htb rate 4mbit\n\
                   tc class add dev eth0 parent 1: classid 1:2 htb rate 4mbit\n";

/// A limit in packets that full frames fill in time, acknowledgements fill at once: it is advice, no edit.
#[test]
fn a_long_netem_gets_no_limit() {
    let of = |netem: &str| {
        let tree = format!("tc qdisc add dev eth0 root netem rate 1800kbit {netem}\n");
        let found = check(&mut reading(&["eth0"], &tree));
        found
            .into_iter()
            .find(|one| one.rule == Rule::Limit)
            .and_then(|one| one.fix)
            .expect("R13 with advice")
    };
    for netem in ["delay 50ms", "delay 50ms 5ms", ""] {
        let fix = of(netem);
        assert!(fix.edits.is_empty() && fix.what.contains("fq_codel"), "{netem}: {fix:?}");
    }
    // One that is full before the delay is over may be longer.
    assert!(
        of("delay 300ms limit 10").what.contains("of full frames: limit "),
        "{:?}",
        of("delay 300ms limit 10")
    );
}

/// fq_codel and sfq drop what none of their own filters takes.
#[test]
fn filters_on_a_leaf_do_not_move_into_a_fair_queue() {
    for kind in ["fq_codel", "sfq"] {
        let text = format!(
            "{HTB}tc qdisc add dev eth0 parent 1:1 handle 10: {kind}\n\
             tc filter add dev eth0 parent 1: protocol all prio 1 matchall flowid 1:1\n\
             tc filter add dev eth0 parent 1:1 protocol ip prio 1 u32 match ip protocol 6 0xff flowid 10:1"
        );
        check_finding(&text, &[Rule::LeafFilter], &["leave them out", "drops what none of them takes"]);
        // Where no filter is evaluated, none leads anywhere.
        silent(&text, &[Rule::Nowhere]);
    }
}

/// Each class with its filters on itself: one mistake.
#[test]
fn filters_on_several_leaves_are_one_finding() {
    let of = |class: &str| {
        format!(
            "tc filter add dev eth0 parent {class} protocol ip prio 1 u32 match ip dport 22 0xffff flowid {class}\n"
        )
    };
    let text = format!("{HTB}{}{}", of("1:1"), of("1:2"));
    let found = findings_of(&text, &[Rule::LeafFilter]);
    let [one] = found.as_slice() else { panic!("{found:?}") };
    for part in ["class 1:1 is a leaf: 1 filter on it is never evaluated", "likewise on 1:2", "parent 1:"] {
        assert!(one.contains(part), "{part}: {one}");
    }
}

#[test]
fn a_csum_that_leaves_something_out_is_replaced() {
    let of = |csum: &str| {
        format!(
            "tc qdisc add dev eth0 clsact\n\
             tc filter add dev eth0 ingress protocol ip pref 2 flower ip_proto tcp action pedit ex munge ip dst \
             set 10.0.0.5 pipe {csum}"
        )
    };
    let parts = ["the csum behind it leaves that out", "action csum iph and tcp and udp, in the place of"];
    check_finding(&of("action csum ip4h"), &[Rule::Checksums], &parts);
    silent(&of("action csum ip4h and tcp and udp"), &[Rule::Checksums]);
}

/// All filters of a preference are for one protocol, and `ip6` has not all fields of `ip`.
#[test]
fn remedies_for_ipv6_are_commands_that_tc_takes() {
    let of = |filters: &str| format!("tc qdisc add dev eth0 handle ffff: ingress\n{filters}");
    let filter = "tc filter add dev eth0 parent ffff: protocol ip prio";
    let all = format!("{filter} 1 u32 match ip src 0.0.0.0/0 police rate 1mbit burst 50k drop");
    let beside = format!("{filter} 1 u32 match ip protocol 1 0xff action pass\n{all}");
    check_finding(&of(&all), &[Rule::OtherProtocols], &["take all: `protocol all`"]);
    check_finding(&of(&beside), &[Rule::OtherProtocols], &["at another prio, with `match u32 0 0`"]);
    let fields = format!(
        "{filter} 1 u32 match ip df match ip tos 0 0xff match ip protocol 17 0xff police rate 1mbit burst 50k drop"
    );
    let parts = ["(`priority` for `tos`; it has no `df`)"];
    let found = findings_of(&of(&fields), &[Rule::OtherProtocols]);
    assert!(found.is_empty() || found[0].contains(parts[0]), "{found:?}");
}

/// NAT sorts nothing.
#[test]
fn only_rules_that_sort_are_missing_for_ipv6() {
    let nat = format!(
        "{HTB}iptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE\n\
         tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff flowid 1:1"
    );
    let found = findings_of(&nat, &[Rule::OtherProtocols]);
    assert!(found[0].contains("the filters match IPv4 only") && !found[0].contains("ip6tables"), "{found:?}");
}

#[test]
fn filters_that_take_none_of_the_packets_are_not_blamed() {
    let text = format!(
        "{HTB}tc filter add dev eth0 parent 1: protocol ip prio 1 flower ip_proto udp dst_port 53 classid 1:1\n\
         tc filter add dev eth0 parent 1: protocol ip prio 8 u32 match ip protocol 6 0xff flowid 1:1\n\
         tc filter add dev eth0 parent 1: protocol ip prio 9 u32 match ip protocol 6 0xff match ip dport 443 0xffff \
         flowid 1:2"
    );
    check_finding(&text, &[Rule::Unreachable], &["line 5 before it takes all"]);
}

#[test]
fn a_rule_that_asks_for_a_mark_restores_no_other() {
    let restore =
        "iptables -t mangle -A POSTROUTING -o eth0 -m connmark --mark 7 -j CONNMARK --restore-mark\n";
    let found = findings_of(&format!("{restore}{HTB}"), &[Rule::Connmark]);
    assert!(found[0].contains("it is always 0 and this rule matches nothing"), "{found:?}");
    let text = format!(
        "{restore}iptables -t mangle -A POSTROUTING -o eth1 -p udp -j MARK --set-mark 2\n\
         iptables -t mangle -A POSTROUTING -o eth1 -p tcp -j CONNMARK --set-mark 7\n\
         {HTB}tc filter add dev eth0 parent 1: protocol ip prio 1 handle 2 fw flowid 1:1"
    );
    let found = findings_of(&text, &[Rule::Marks]);
    assert!(!found.iter().any(|one| one.contains("restore-mark")), "{found:?}");
}

/// The priority of an inner class has no effect.
#[test]
fn a_priority_beyond_the_last_matters_at_leaves() {
    let of = |inner: &str, leaf: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 1\n\
             tc class add dev eth0 parent 1: classid 1:9 htb rate 10mbit prio {inner}\n\
             tc class add dev eth0 parent 1:9 classid 1:1 htb rate 5mbit ceil 10mbit prio {leaf}\n\
             tc class add dev eth0 parent 1:9 classid 1:2 htb rate 5mbit ceil 10mbit prio 7"
        )
    };
    silent(&of("9", "7"), &[Rule::Priority]);
    check_finding(&of("1", "9"), &[Rule::Priority], &["it is served in turn with 1:2, not after"]);
}

/// A VLAN's tag is beside the packet's bytes: the port is where it is without one.
#[test]
fn matches_behind_a_tag_read_the_packet() {
    let text = "tc qdisc add dev eth0 root handle 1: prio\n\
                tc filter add dev eth0 parent 1: protocol 802.1q prio 1 u32 match ip dport 5060 0xffff flowid 1:1";
    let found = findings_of(text, &[Rule::Protocol]);
    assert!(!found.iter().any(|one| one.contains("the header is another one")), "{found:?}");
}

#[test]
fn rates_of_a_few_bytes_are_measured_and_get_no_target() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 1\n\
                tc class add dev eth0 parent 1: classid 1:1 htb rate 8bit\n\
                tc class add dev eth0 parent 1: classid 1:3 htb rate 10mbit";
    let found = findings_of(text, &[Rule::Limit, Rule::Capped]);
    assert!(!found.iter().any(|one| one.contains("gets 8 bit/s") || one.contains("target")), "{found:?}");
}

/// Asked of Linux 6.1: 1.01 Mbit/s leave.
#[test]
fn a_root_class_reaches_its_rate_only() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 20\n\
                tc class add dev eth0 parent 1: classid 1:2 htb rate 1mbit ceil 2mbit\n\
                tc class add dev eth0 parent 1:2 classid 1:20 htb rate 512kbit ceil 3mbit\n\
                tc class add dev eth0 parent 1:2 classid 1:30 htb rate 256kbit ceil 2mbit";
    let found = findings_of(text, &[Rule::Rates]);
    let wanted = "class 1:20 may send 3 Mbit/s, but its parent 1:2 only 1 Mbit/s; the parent has no class to \
                  borrow from";
    assert!(found.iter().any(|one| one.contains(wanted) && !one.contains("ceil 2mbit")), "{found:?}");
}

/// fq paces each flow, and a plug lets nothing go.
#[test]
fn what_paces_or_stops_holds_a_rate() {
    for inner in ["fq maxrate 2mbit", "plug limit 10000"] {
        let text = format!(
            "tc qdisc add dev eth0 root handle 1: prio\ntc qdisc add dev eth0 parent 1:2 handle 20: {inner}"
        );
        silent(&text, &[Rule::Unlimited]);
    }
}

/// Bits that are not saved are not the connection's to restore.
#[test]
fn marks_are_restored_under_the_masks_of_what_saves_them() {
    let text = format!(
        "iptables -t mangle -A FORWARD -o eth0 -m conntrack --ctstate NEW -j MARK --set-xmark 0x200/0xff00\n\
         iptables -t mangle -A FORWARD -o eth0 -j CONNMARK --save-mark --nfmask 0xff00 --ctmask 0xff00\n\
         {HTB}tc filter add dev eth0 parent 1: prio 2 handle 0x200/0xff00 fw flowid 1:1"
    );
    let found = findings_of(&text, &[Rule::Connmark]);
    assert!(found[0].contains("--restore-mark --nfmask 0xff00 --ctmask 0xff00`"), "{found:?}");
}

/// The flows of sfq share its limit.
#[test]
fn flows_of_sfq_get_a_depth() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 2\n\
                tc class add dev eth0 parent 1: classid 1:2 htb rate 2mbit\n\
                tc qdisc add dev eth0 parent 1:2 handle 2: sfq limit 225 divisor 256";
    check_finding(text, &[Rule::Limit], &["a shorter queue for each flow: depth "]);
}

/// A rule that writes other bits leaves the mark.
#[test]
fn only_rules_that_write_its_bits_take_a_mark_away() {
    let text = format!(
        "iptables -t mangle -A PREROUTING -i eth1 -j MARK --set-xmark 0x10000/0x10000\n\
         iptables -t mangle -A FORWARD -j CONNMARK --restore-mark\n\
         iptables -t mangle -A FORWARD -o eth0 -p udp --dport 3478 -j MARK --set-xmark 0x100/0xff00\n\
         {HTB}tc filter add dev eth0 parent 1: prio 1 handle 0x10000/0x10000 fw flowid 1:1"
    );
    let found = findings_of(&text, &[Rule::Marks, Rule::Connmark]);
    let gone = found.iter().find(|one| one.contains("is gone again")).expect("R9");
    assert!(gone.contains("line 2 writes another over it") && !gone.contains("line 3"), "{found:?}");
}

/// A tbf has one class and takes no filters (asked: `Class doesn't support blocks`), so none is asked for.
#[test]
fn no_filter_is_asked_for_within_a_tbf() {
    let inner = |kind: &str| {
        let text = format!(
            "tc qdisc add dev eth0 root handle 1: prio\ntc qdisc add dev eth0 parent 1:1 handle 10: {kind}\n\
             tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip tos 0x10 0xff flowid 10:1\n"
        );
        let found = check(&mut reading(&["eth0"], &text));
        found.into_iter().find(|one| one.rule == Rule::Nowhere).and_then(|one| one.fix).expect("R6").what
    };
    let tbf = inner("tbf rate 200kbit burst 1600 latency 30ms");
    assert!(tbf.ends_with("lead the packets to 1:1 here; 10: puts all of them into 10:1"), "{tbf}");
    let prio = inner("prio");
    assert!(prio.ends_with(", and to 10:1 by a filter of 10:"), "{prio}");
}

/// Delays of a class that only a filter without packets names are those of no packet yet.
#[test]
fn a_class_behind_a_filter_that_never_matches_is_idle() {
    let text = "tc qdisc add dev ifb0 root handle 3: htb default 30\n\
                tc class add dev ifb0 parent 3: classid 3:3 htb rate 1800kbit\n\
                tc class add dev ifb0 parent 3:3 classid 3:30 htb rate 400kbit ceil 1800kbit\n\
                tc class add dev ifb0 parent 3:3 classid 3:33 htb rate 1400kbit ceil 1800kbit\n\
                tc filter add dev ifb0 parent 3:0 protocol ip handle 3 fw flowid 3:33\n\
                tc qdisc add dev eth0 ingress\n\
                tc filter add dev eth0 parent ffff: protocol all u32 match u32 0 0 action mirred egress \
                redirect dev ifb0\n";
    let found = check(&mut reading(&["eth0", "ifb0"], text));
    let limits: Vec<_> = found.iter().filter(|one| one.rule == Rule::Limit).collect();
    let idle: Vec<_> =
        limits.iter().map(|one| one.because.ends_with("(no packet comes to 3:33 yet)")).collect();
    assert_eq!(idle, [false, true], "{found:?}");
    let no_aqm = found.iter().find(|one| one.rule == Rule::NoAqm).expect("R19");
    assert!(no_aqm.because.contains("class 3:30"), "{no_aqm:?}");
}
