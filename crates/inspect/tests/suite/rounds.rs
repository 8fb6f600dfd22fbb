//! `explain` of packets that filters lead in circles, that answer translated ones, and that are too long.

use crate::explain::explain;

const TREE: &str = "\
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:10 htb rate 2mbit
tc class add dev eth0 parent 1: classid 1:30 htb rate 2mbit
tc qdisc add dev eth0 parent 1:10 handle 10: fq_codel
tc qdisc add dev eth0 parent 1:30 handle 30: fq_codel
";

fn tree(filters: &str, port: u16) -> String {
    let words = format!("udp 192.168.1.7:5000 > 203.0.113.9:{port}");
    explain(&["eth0"], &format!("{TREE}{filters}"), &words)
}

/// Linux 6.1 evaluates the filters 17 times, notes `reclassify loop` and drops the packet.
#[test]
fn a_packet_that_filters_lead_in_a_circle_is_dropped() {
    let again = "\
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff action reclassify
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dport 53 0xffff police rate 1mbit burst 10 \
flowid 1:10";
    let round = "evaluated again (reclassify), with the same result: the packet is dropped when filters have led \
                 it back 16 times\nends: dropped at eth0: a filter drops it (by 1:)\n";
    for port in [80, 53] {
        let story = tree(again, port);
        assert!(story.ends_with(round), "{story}");
    }
    let chains = "\
tc filter add dev eth0 parent 1: protocol ip prio 6 matchall action goto chain 5
tc filter add dev eth0 parent 1: protocol ip chain 5 prio 6 matchall action goto chain 0";
    assert!(
        tree(chains, 80).ends_with(
            " + pref 6 everything ⇒ goto chain 5 :6\n     \
             the filters of chain 5 are evaluated (goto)\n \
             + chain 5 pref 6 everything ⇒ goto chain 0 :7\n     \
             the filters of chain 0 are evaluated (goto)\n   \
             chain 0 again, and so on: the packet is dropped when filters have led it back 16 times\n\
             ends: dropped at eth0: a filter drops it (by 1:)\n"
        ),
        "{}",
        tree(chains, 80)
    );
}

/// What ended the search in the second round did not match in the first one.
#[test]
fn a_filter_that_matches_in_one_round_only_is_not_said_to_match_in_all() {
    let edits = "\
tc filter add dev eth0 parent 1: protocol ip prio 1 basic match meta(nf_mark eq 5) classid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 2 matchall action skbedit mark 5 reclassify";
    let story = tree(edits, 80);
    assert!(story.contains("evaluated 2 times, matched 1"), "{story}");
    assert!(!story.contains("+ pref 1") && story.contains("ends: eth0 1:10, fq_codel 10:"), "{story}");
}

/// In Linux the reply of a host behind DNAT comes with the host's own address, and only what is done after
/// routing changes it back.
#[test]
fn what_answers_a_translated_packet_comes_with_the_addresses_of_its_sender() {
    let policy = "\
iptables -t nat -A PREROUTING -i eth0 -p tcp --dport 8080 -j DNAT --to-destination 192.168.1.7:80
iptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE
tc qdisc add dev eth0 ingress
tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match ip dst 192.168.1.0/24 action drop";
    let reply = "tcp 203.0.113.9:443 > 192.168.1.7:4000 established reply in eth0 out eth1";
    let story = explain(&["eth0", "eth1"], policy, reply);
    let compared = "\
arrives at eth0, before any routing
 - pref 1 u32 dst 192.168.1.0/24 ⇒ drop :4
     destination 192.0.2.2 & 255.255.255.0 = 192.0.2.0, not 192.168.1.0
";
    assert!(story.starts_with(compared), "{story}");
}

#[test]
fn a_packet_beyond_the_mtu_is_no_frame() {
    let of = |length: u16| {
        explain(&["eth0"], TREE, &format!("udp 192.168.1.7:5 > 203.0.113.9:6 len {length}"))
            .contains(&format!("it has {length} bytes, more than the MTU of 1500"))
    };
    assert_eq!([1500, 1501, 9000].map(of), [false, true, true]);
}

/// Linux compares what a long packet has there; the front alone is kept here, and the rest counts as zeros.
#[test]
fn bytes_that_are_not_kept_are_not_said_to_be_missing() {
    let of = |length: u16, at: u16| {
        let filter = format!(
            "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match u32 0 0 at {at} flowid 1:10"
        );
        let words = format!("udp 192.168.1.7:5 > 203.0.113.9:6 len {length}");
        explain(&["eth0"], &format!("{TREE}{filter}"), &words)
    };
    let unknown = "of a packet 114 bytes are known here: what follows holds if those before byte 204 are 0";
    assert!(of(500, 200).contains(unknown), "{}", of(500, 200));
    assert!(of(500, 200).contains("ends: eth0 1:10"), "{}", of(500, 200));
    for (length, at) in [(60, 60), (203, 200)] {
        let ends = format!("the packet ends before byte {}", at + 4);
        assert!(of(length, at).contains(&ends), "{}", of(length, at));
    }
    assert!(of(500, 60).contains("ends: eth0 1:10"));
}
