//! Findings about newcomers' policies that were once wrong: each with what Linux does.

use crate::common::{check_finding, findings_of, reading, silent};
use tidegate_inspect::{Rule, check};

/// The result of a filter is not always known: packets beside those that it matches are still found.
#[test]
fn past_all_classes_beside_filters_that_are_not_followed() {
    for filter in [
        "u32 match ip protocol 6 0xff police rate 1mbit burst 10k drop flowid 1:12",
        "flower ip_proto tcp classid 1:12",
        "basic match cmp(u8 at 9 layer 1 eq 6) flowid 1:12",
    ] {
        let text = format!(
            "tc qdisc add dev eth0 root handle 1: htb\n\
             tc class add dev eth0 parent 1: classid 1:12 htb rate 2mbit\n\
             tc filter add dev eth0 parent 1: protocol ip prio 1 {filter}"
        );
        check_finding(
            &text,
            &[Rule::Default],
            &["1 warning R11: 1: has no default class", "udp ", "no class at all"],
        );
    }
    let all = "tc qdisc add dev eth0 root handle 1: drr\n\
               tc class add dev eth0 parent 1: classid 1:1 drr\n\
               tc filter add dev eth0 parent 1: protocol all prio 1 basic match meta(pkt_len gt 0) flowid 1:1";
    silent(all, &[Rule::Default]);
}

/// A tree within a class: what its filters do not take leaves as fast as that class may.
#[test]
fn past_the_classes_of_a_tree_within_a_class() {
    let outer = "tc qdisc add dev eth0 root handle 1: htb default 2\n\
                 tc class add dev eth0 parent 1: classid 1:2 htb rate 14640kbit\n\
                 tc qdisc add dev eth0 parent 1:2 handle 2: htb";
    silent(outer, &[Rule::Default]);
    let inner = format!(
        "{outer}\ntc class add dev eth0 parent 2: classid 2:2 htb rate 1mbit\n\
         tc filter add dev eth0 parent 2: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 2:2"
    );
    let parts = ["3 warning R11: 2: has no default class", "as fast as 1:2 lets them", "no class of 2:"];
    check_finding(&inner, &[Rule::Default], &parts);
}

/// HTB's own handle is its direct queue; the default class has no part in it. HFSC drops such packets.
#[test]
fn a_filter_that_leads_to_the_qdisc_itself() {
    let of = |kind: &str, class: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: {kind} default 2\n\
             tc class add dev eth0 parent 1: classid 1:2 {kind} {class}\n\
             tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dport 81 0xffff flowid 1:"
        )
    };
    let both = [Rule::Default, Rule::Nowhere];
    check_finding(
        &of("htb", "rate 1mbit"),
        &both,
        &["3 warning R6: the filter leads to 1: itself", "past every class"],
    );
    check_finding(
        &of("hfsc", "ls m2 1mbit"),
        &both,
        &["3 error R6: the filter leads to 1: itself", "hfsc drops its packets"],
    );
}

/// prio and ETS look at the minor number only; HFSC goes on to its default class, and without classes it
/// sends all.
#[test]
fn where_packets_go_that_are_led_to_no_class() {
    let rules = [Rule::Nowhere, Rule::Default, Rule::LeafFilter];
    let of = |tree: &str, class: &str| {
        format!(
            "{tree}\ntc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff \
            flowid {class}"
        )
    };
    for kind in ["prio", "ets bands 3"] {
        let tree = format!("tc qdisc add dev eth0 root handle 1: {kind}");
        check_finding(
            &of(&tree, "30:1"),
            &rules,
            &["2 warning R6", "the number behind the colon only: its packets take 1:1"],
        );
        check_finding(&of(&tree, "1:9"), &rules, &["2 error R6", "the band of priority 0"]);
    }
    let hfsc = "tc qdisc add dev eth0 root handle 1: hfsc default 2\n\
                tc class add dev eth0 parent 1: classid 1:2 hfsc ls m2 1mbit ul m2 1mbit";
    check_finding(&of(hfsc, "1:22"), &rules, &["3 error R6", "its packets take the default class 1:2"]);
    let empty = "tc qdisc add dev eth0 root handle 1: hfsc";
    silent(&of(empty, "1:11"), &rules);
}

/// The witness of a packet that the machine itself sends names that.
#[test]
fn a_packet_of_the_machine_itself() {
    let text = "tc qdisc add dev eth0 root handle 1: htb\n\
                tc class add dev eth0 parent 1: classid 1:10 htb rate 4mbit\n\
                iptables -t mangle -A FORWARD -o eth0 -j CLASSIFY --set-class 1:10\n\
                ip6tables -t mangle -A FORWARD -o eth0 -j CLASSIFY --set-class 1:10";
    check_finding(text, &[Rule::Default], &["in lo out eth0: no class at all"]);
}

/// A rule sets the mark, where no packet comes to it.
#[test]
fn a_mark_that_is_set_in_a_chain_that_nothing_jumps_to() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\n\
                tc class add dev eth0 parent 1: classid 1:30 htb rate 5mbit\n\
                tc filter add dev eth0 parent 1: protocol ip prio 1 handle 1 fw flowid 1:10\n\
                iptables -t mangle -N Q\n\
                iptables -t mangle -A Q -p tcp --dport 22 -j MARK --set-mark 1";
    let parts = [
        "4 warning R8: no packet carries mark 1",
        "(line 6) is in chain Q, which none of its packets reaches",
    ];
    check_finding(text, &[Rule::Marks], &parts);
    let other = text.replace("--set-mark 1", "--set-mark 2");
    check_finding(&other, &[Rule::Marks], &["4 note R8", "packets carry no mark here"]);
}

/// A rule for another device's packets sets the mark.
#[test]
fn a_mark_that_is_set_on_other_packets() {
    let of = |device: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 20\n\
             tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\n\
             tc class add dev eth0 parent 1: classid 1:20 htb rate 5mbit\n\
             tc filter add dev eth0 parent 1: protocol ip prio 1 handle 1 fw flowid 1:10\n\
             iptables -t mangle -A POSTROUTING -o {device} -p udp --dport 5060 -j MARK --set-mark 1"
        )
    };
    let parts = [
        "4 warning R8: no packet that comes to this filter of eth0 carries mark 1",
        "line 5 sets it, and takes no packet that comes to this filter",
    ];
    check_finding(&of("eth1"), &[Rule::Marks], &parts);
    silent(&of("eth0"), &[Rule::Marks]);
}

#[test]
fn a_mark_that_the_mask_of_its_filter_takes_away() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 40\n\
                tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n\
                tc class add dev eth0 parent 1: classid 1:40 htb rate 1mbit\n\
                tc filter add dev eth0 parent 1: prio 1 handle 0x10/0x0f fw flowid 1:10\n\
                iptables -t mangle -A PREROUTING -p udp --dport 5060 -j MARK --set-mark 0x10";
    let found = findings_of(text, &[Rule::Marks]);
    assert!(
        found[0].starts_with("4 warning R8: no mark is 0x10 under the mask 0xf: the filter never matches"),
        "{found:?}"
    );
}

/// On an installed fq_codel `replace` is a change, and keeps the parameters that it does not give.
#[test]
fn a_remedy_names_what_it_changes() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 12\n\
                tc class add dev eth0 parent 1: classid 1:12 htb rate 10mbit\n\
                tc qdisc add dev eth0 parent 1:12 handle 12: fq_codel target 5us interval 100us";
    let found = findings_of(text, &[Rule::Limit]);
    assert!(!found.is_empty());
    for one in &found {
        let remedy = one.rsplit("; ").next().unwrap_or_default();
        assert!(remedy.is_empty() || remedy.ends_with("fq_codel target 5ms interval 100ms"), "{one}");
    }
}

/// The limit has room: what stops packets is another word, or another queue.
#[test]
fn a_limit_is_not_blamed_for_others() {
    for line in [
        "tc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 10k limit 300000 peakrate 2mbit mtu 1500",
        "tc qdisc add dev eth0 root handle 1: fq maxrate 10mbit flow_limit 2 limit 1000",
        "tc qdisc add dev eth0 root handle 1: sfq limit 1000 depth 5",
    ] {
        let found = findings_of(line, &[Rule::Limit]);
        assert!(!found.iter().any(|one| one.contains("with limit")), "{found:?}");
    }
    let small = "tc qdisc add dev eth0 root handle 1: pfifo limit 3";
    check_finding(small, &[Rule::Limit], &["pfifo with limit 3 may drop packets of a single burst"]);
}

/// Two policers of one preference have lines of their own; a packet of the matched port shows the drop.
#[test]
fn policers_have_their_own_lines() {
    let police = "police rate 917kbit burst 1k conform-exceed drop/ok";
    let line = format!("tc filter add dev eth0 parent ffff: protocol all prio 1 u32 match u32 0 0 {police}");
    let other = line.replace("917kbit", "817kbit");
    let text = format!("tc qdisc add dev eth0 handle ffff: ingress\n{line}\n{other}");
    let lines: Vec<String> =
        findings_of(&text, &[Rule::Burst]).iter().map(|one| one.chars().take(1).collect()).collect();
    assert_eq!(lines, ["2", "3"]);
    let port = "tc qdisc add dev eth0 handle ffff: ingress\n\
                tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match ip sport 80 0xffff police \
                rate 1mbit burst 1k drop";
    check_finding(port, &[Rule::Burst], &["2 error R12", "tcp 198.51.100.7:80 > "]);
}

/// A burst and an mtu that stop the same frames have one remedy.
#[test]
fn a_policer_of_two_mistakes_has_one_remedy() {
    let text = "tc qdisc add dev eth0 handle ffff: ingress\n\
                tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match u32 0 0 police rate 8mbit \
                burst 1k mtu 1000 drop";
    check_finding(text, &[Rule::Burst], &["burst 50000; and: mtu 2048"]);
}

/// basic's conditions are not followed: no packet is shown for a filter that gets none.
#[test]
fn a_filter_of_which_no_packet_is_shown() {
    let text = "tc qdisc add dev eth0 root handle 1: drr\n\
                tc class add dev eth0 parent 1: classid 1:5 drr\n\
                tc class add dev eth0 parent 1: classid 1:11 drr\n\
                tc filter add dev eth0 parent 1: protocol all prio 1 matchall classid 1:5\n\
                tc filter add dev eth0 parent 1: protocol ip prio 2 ";
    let of = |filter: &str| format!("{text}{filter} classid 1:11");
    let parts = ["5 warning R1", "what it matches goes to 1:5, not to 1:11; ; "];
    check_finding(&of("basic match cmp(u16 at 2 layer transport gt 1000)"), &[Rule::Unreachable], &parts);
    let parts = ["5 warning R1", "not to 1:11; udp 192.168.1.10 > 198.51.100.7:"];
    check_finding(&of("flower ip_proto udp dst_port 1000-2000"), &[Rule::Unreachable], &parts);
}

/// Rules that name classes: one that is not there, and one that a later rule replaces.
#[test]
fn classes_that_rules_give_in_vain() {
    let tree = "tc qdisc add dev eth0 root handle 1: htb default 20\n\
                tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\n\
                tc class add dev eth0 parent 1: classid 1:20 htb rate 5mbit";
    let rule = |what: &str, class: &str| {
        format!("iptables -t mangle -A POSTROUTING -o eth0 {what} -j CLASSIFY --set-class {class}")
    };
    let missing = format!("{tree}\n{}", rule("-p udp", "1:12"));
    check_finding(
        &missing,
        &[Rule::Nowhere],
        &["4 warning R6: the rule gives packets class 1:12, and there is no such class on eth0"],
    );
    let twice = format!("{tree}\n{}\n{}", rule("-p tcp --dport 22", "1:10"), rule("-p tcp", "1:20"));
    let parts = [
        "4 warning R8: class 1:10 is gone again before any queue: line 5 writes another",
        ":22 ",
        "class 1:20",
    ];
    check_finding(&twice, &[Rule::Marks], &parts);
    let right = format!("{tree}\n{}\n{}", rule("-p tcp", "1:20"), rule("-p tcp --dport 22", "1:10"));
    silent(&right, &[Rule::Marks, Rule::Nowhere]);
}

/// Linux 6.1 was asked: filled beside a busy 1:21, 1:22 carries 8.99 Mbit/s, and no packet of it is queued
/// for more than 136 ms; 1:21 gets 1 Mbit/s.
#[test]
fn hfsc_shares_by_weight_while_others_are_busy() {
    let text = "tc qdisc add dev eth0 root handle 1: hfsc default 22\n\
                tc class add dev eth0 parent 1: classid 1:1 hfsc ls m2 10mbit ul m2 10mbit\n\
                tc class add dev eth0 parent 1:1 classid 1:21 hfsc ls m2 1mbit\n\
                tc class add dev eth0 parent 1:1 classid 1:22 hfsc ls m2 9mbit\n\
                tc qdisc add dev eth0 parent 1:21 pfifo limit 100\n\
                tc qdisc add dev eth0 parent 1:22 pfifo limit 100\n\
                tc filter add dev eth0 parent 1: protocol all prio 1 u32 match ip dport 5060 0xffff flowid 1:21";
    check_finding(text, &[Rule::Limit], &["5 ", "limit 100 lets 1.2 s of packets wait in class 1:21"]);
}

/// A bucket's limit is that of its own queue.
#[test]
fn a_bucket_whose_queue_is_another() {
    let text = "tc qdisc add dev eth0 root handle 1: tbf rate 800kbit burst 5k limit 3000\n\
                tc qdisc add dev eth0 parent 1:1 codel";
    let found = findings_of(text, &[Rule::Limit]);
    assert!(!found.iter().any(|one| one.contains("tbf with limit")), "{found:?}");
}

/// Classes behind a netem that ends tc's listing.
#[test]
fn classes_that_the_listing_leaves_out() {
    let text = "tc qdisc add dev eth0 root handle 1: prio\n\
                tc qdisc add dev eth0 parent 1:1 handle 1e: htb default 3\n\
                tc class add dev eth0 parent 1e: classid 1e:3 htb rate 10mbit\n\
                tc qdisc add dev eth0 parent 1:2 handle 32: netem loss 1%\n\
                tc filter add dev eth0 parent 1e: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1e:3";
    silent(text, &[Rule::Nowhere, Rule::Default]);
}

/// Where a class is to be made, the number is free and in the base that tc reads.
#[test]
fn a_parent_to_borrow_from() {
    let text = "tc qdisc add dev eth0 root handle 501: htb default 1\n\
                tc class add dev eth0 parent 501: classid 501:1 htb rate 6mbit ceil 12mbit\n\
                tc class add dev eth0 parent 501: classid 501:2 htb rate 4mbit";
    check_finding(text, &[Rule::Rates], &["(classid 501:3)"]);
}

/// Linux 6.1 was asked: 4.00 Mbit/s leave the first, whose packets are delayed by netem for 100 ms first.
#[test]
fn a_rate_is_measured_once_the_delay_below_has_filled() {
    let tree = |netem: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate 2mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:10 htb rate 4mbit\n\
             tc qdisc add dev eth0 parent 1:10 handle 10: netem {netem}"
        )
    };
    for netem in ["delay 100ms", "delay 100ms 20ms", "delay 80ms 10ms loss 2%"] {
        let found = findings_of(&tree(netem), &[Rule::Rates]);
        assert!(found.iter().any(|one| one.contains("kept full, it sends 4 Mbit/s")), "{netem}: {found:?}");
    }
    // What leaves by slots hangs on how long the queue is.
    let slots = findings_of(&tree("slot 20ms 30ms"), &[Rule::Rates]);
    assert!(!slots.iter().any(|one| one.contains("kept full")), "{slots:?}");
    // So many packets fit, and no more get through in each tenth of a second.
    let conditions = findings_of(&tree("delay 100ms limit 10"), &[Rule::Rates]);
    assert!(!conditions.iter().any(|one| one.contains("4 Mbit/s leave")), "{conditions:?}");
    // Packets of both classes wait in the netem above them.
    let above = "tc qdisc add dev eth0 root handle 1: netem delay 100ms\n\
                 tc qdisc add dev eth0 parent 1:1 handle 2: htb default 10\n\
                 tc class add dev eth0 parent 2: classid 2:1 htb rate 2mbit\n\
                 tc class add dev eth0 parent 2:1 classid 2:10 htb rate 2mbit\n\
                 tc class add dev eth0 parent 2:1 classid 2:20 htb rate 2mbit\n\
                 tc filter add dev eth0 parent 2: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 2:20";
    check_finding(above, &[Rule::Rates], &["with every leaf below it kept full, 4 Mbit/s leave"]);
}

/// Linux 6.1 was asked: 14 Mbit/s leave the first, whatever netem drops, and 27 the second.
#[test]
fn classes_are_kept_full_whatever_is_lost() {
    let htb = "tc qdisc add dev eth0 root handle 1: htb default 10\n\
               tc class add dev eth0 parent 1: classid 1:1 htb rate 4mbit\n\
               tc class add dev eth0 parent 1:1 classid 1:10 htb rate 4mbit\n\
               tc class add dev eth0 parent 1:1 classid 1:20 htb rate 2mbit ceil 20mbit\n\
               tc class add dev eth0 parent 1:1 classid 1:30 htb rate 8mbit ceil 20mbit\n\
               tc qdisc add dev eth0 parent 1:10 netem loss 2%\n\
               tc qdisc add dev eth0 parent 1:30 netem loss 20%\n\
               tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 20 0xffff flowid 1:20\n\
               tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 30 0xffff flowid 1:30";
    let found = findings_of(htb, &[Rule::Rates]);
    assert!(found[0].contains("with every leaf below it kept full, 14 Mbit/s leave"), "{found:?}");
    let hfsc = "tc qdisc add dev eth0 root handle 1: hfsc default 20\n\
                tc class add dev eth0 parent 1: classid 1:1 hfsc ls m2 8mbit ul m2 1mbit\n\
                tc class add dev eth0 parent 1:1 classid 1:20 hfsc sc m2 5mbit ul m2 4mbit\n\
                tc class add dev eth0 parent 1:1 classid 1:30 hfsc rt m2 20mbit ls m2 4mbit\n\
                tc class add dev eth0 parent 1:1 classid 1:40 hfsc rt m2 2mbit ls m2 8mbit\n\
                tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 30 0xffff flowid \
                1:30\n\
                tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 40 0xffff flowid 1:40";
    let found = findings_of(hfsc, &[Rule::Rates]);
    assert!(
        found.iter().any(|one| one.contains("with every leaf below it kept full, 27 Mbit/s leave")),
        "{found:?}"
    );
    assert!(found.iter().any(|one| one.contains("class 1:20 has a real-time guarantee")
        && one.contains("with the others idle, it sends 5 Mbit/s")));
}

/// What a leaf may borrow is what all above it may.
#[test]
fn a_netem_below_is_reckoned_at_the_rate_that_can_be_reached() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 10\n\
                tc class add dev eth0 parent 1: classid 1:1 htb rate 6mbit\n\
                tc class add dev eth0 parent 1:1 classid 1:10 htb rate 4mbit ceil 8mbit\n\
                tc qdisc add dev eth0 parent 1:10 handle 10: netem delay 100ms";
    check_finding(text, &[Rule::Limit], &["at 6 Mbit/s they wait inside netem"]);
}

/// Linux 6.1 was asked: with `mtu 1500` all 20 frames of 1,514 bytes are dropped and all of 600 leave; with
/// 1540 all leave.
#[test]
fn a_peak_rate_with_a_bucket_below_a_full_frame() {
    let of = |mtu: &str| {
        format!("tc qdisc add dev eth0 root tbf rate 5mbit burst 10k latency 50ms peakrate 10mbit mtu {mtu}")
    };
    let parts = ["1 error R12: mtu holds 1500 bytes", "never fit the bucket of the peak rate"];
    check_finding(&of("1500"), &[Rule::Burst], &parts);
    let lines = findings_of(&of("1500"), &[Rule::Burst]);
    assert!(lines[0].ends_with("room for a frame at least: mtu 1540"), "{lines:?}");
    silent(&of("1540"), &[Rule::Burst]);
    // Both parameters prevent it: the remedy is both.
    let both = of("1000").replace("burst 10k", "burst 1k");
    let lines = findings_of(&both, &[Rule::Burst]);
    assert!(lines[0].contains("mtu 1540") && lines[0].contains("burst 1540"), "{lines:?}");
}

/// Linux 6.1 was asked: prio puts packets of `flowid 2:0` and `1:0` into the band of priority 0, drr drops
/// those of 2:0, and HTB and HFSC give them to the default class.
#[test]
fn a_class_without_a_minor_number_is_none() {
    let filter = "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff flowid";
    let of = |tree: &str, class: &str| format!("{tree}\n{filter} {class}");
    let prio = "tc qdisc add dev eth0 root handle 1: prio";
    check_finding(
        &of(prio, "2:0"),
        &[Rule::Nowhere],
        &["2 error R6", "its packets take 1:2, the band of priority 0"],
    );
    check_finding(
        &of(prio, "1:0"),
        &[Rule::Nowhere],
        &["2 error R6", "its packets take 1:2, the band of priority 0"],
    );
    let drr = "tc qdisc add dev eth0 root handle 1: drr\n\
               tc class add dev eth0 parent 1: classid 1:1 drr";
    check_finding(&of(drr, "2:0"), &[Rule::Nowhere], &["3 error R6", "drr drops its packets"]);
    let htb = "tc qdisc add dev eth0 root handle 1: htb default 7\n\
               tc class add dev eth0 parent 1: classid 1:7 htb rate 5mbit";
    check_finding(
        &of(htb, "2:0"),
        &[Rule::Nowhere],
        &["3 error R6", "its packets take the default class 1:7"],
    );
    let hfsc = "tc qdisc add dev eth0 root handle 1: hfsc default 7\n\
                tc class add dev eth0 parent 1: classid 1:7 hfsc sc m2 5mbit";
    check_finding(
        &of(hfsc, "2:0"),
        &[Rule::Nowhere],
        &["3 error R6", "its packets take the default class 1:7"],
    );
}

/// Linux 6.1 was asked: `police index 7` that no one made is a policer of rate 0 and mtu 4096Mb, and all 40
/// packets pass.
#[test]
fn the_index_of_a_policer_that_does_not_exist() {
    let filter =
        "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:1";
    let of = |police: &str| format!("tc qdisc add dev eth0 root handle 1: prio\n{filter} {police}");
    let unmade = [
        "2 error R6: there is no policer 7 before this one, which polices nothing",
        "every packet conforms to it",
    ];
    check_finding(&of("action police index 7"), &[Rule::Nowhere], &unmade);
    check_finding(&of("police index 7 drop"), &[Rule::Nowhere], &unmade);
    silent(&of("action police rate 1mbit burst 20k index 7"), &[Rule::Nowhere]);
    silent(&of("action police mtu 1000 index 7 drop"), &[Rule::Nowhere]);
    let made = format!(
        "{}\n{}",
        of("action police rate 1mbit burst 20k index 7"),
        filter.replace("80", "81").replace("prio 1", "prio 2") + " action police index 7"
    );
    silent(&made, &[Rule::Nowhere]);
    // Linux 6.1 was asked: the first one's policer stays as it is, and 40 packets of each filter pass.
    let late = format!(
        "{}\n{}",
        of("action police index 7"),
        filter.replace("80", "81").replace("prio 1", "prio 2")
            + " action police rate 1mbit burst 20k index 7"
    );
    let lines = findings_of(&late, &[Rule::Nowhere]);
    assert!(
        lines.len() == 2 && lines[1].contains("3 error R6: policer 7 is there already, without a rate"),
        "{lines:?}"
    );
    // The first gets number 1, and the second's words are not taken: its burst is not what is too small.
    let by_chance = format!(
        "{}\n{}",
        of("action police rate 10kbit burst 500 conform-exceed drop"),
        filter.replace("80", "81").replace("prio 1", "prio 2")
            + " action police rate 1mbit burst 30k index 1 conform-exceed drop"
    );
    let lines = findings_of(&by_chance, &[Rule::Nowhere, Rule::Burst]);
    let expected =
        ["3 error R6: policer 1 is there already: what is said", "2 error R12: a policer with burst 500"];
    assert!(
        lines.len() == 2 && expected.iter().all(|one| lines.iter().any(|line| line.starts_with(one))),
        "{lines:?}"
    );
}

/// A class whose own ceil limits it below its parent's exceeds nothing; a thing that was not measured is not
/// claimed.
#[test]
fn a_rate_above_the_parents_counts_up_to_the_ceil() {
    let of = |class: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate 2mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:10 htb rate 8mbit {class}\n\
             tc qdisc add dev eth0 parent 1:10 tbf rate 4mbit burst 1k latency 50ms"
        )
    };
    assert!(
        !findings_of(&of("ceil 1mbit"), &[Rule::Rates])
            .iter()
            .any(|one| one.contains("more than its parent"))
    );
    let lines = findings_of(&of(""), &[Rule::Rates]);
    assert!(
        lines.iter().any(|one| one.contains("the shaping is exceeded when it sends that much")),
        "{lines:?}"
    );
}

/// The line that is named is one that packets come to.
#[test]
fn an_unread_mark_is_reported_where_it_is_set() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\n\
                tc class add dev eth0 parent 1: classid 1:30 htb rate 5mbit\n\
                tc filter add dev eth0 parent 1: protocol ip prio 1 handle 2 fw flowid 1:30\n\
                iptables -t mangle -A POSTROUTING -m mark --mark 9 -j CONNMARK --set-mark 3\n\
                iptables -t mangle -A PREROUTING -p udp -j CONNMARK --set-mark 3\n\
                iptables -t mangle -A PREROUTING -j CONNMARK --restore-mark";
    let lines = findings_of(text, &[Rule::Marks]);
    assert!(lines.iter().any(|one| one.starts_with("6 warning R8: nothing reads mark 3")), "{lines:?}");
}

/// Where several classes are empty none of them is proposed; a filter that reads the same digits in
/// hexadecimal is the likely cause.
#[test]
fn an_unread_mark_is_led_to_no_class_by_guess() {
    let of = |handle: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 30\n\
             tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\n\
             tc class add dev eth0 parent 1: classid 1:20 htb rate 5mbit\n\
             tc class add dev eth0 parent 1: classid 1:30 htb rate 5mbit\n\
             tc filter add dev eth0 parent 1: protocol ip prio 1 handle {handle} fw flowid 1:20\n\
             iptables -t mangle -A POSTROUTING -o eth0 -p udp -j MARK --set-mark 20"
        )
    };
    let unread = |handle: &str| {
        let found = findings_of(&of(handle), &[Rule::Marks]).into_iter();
        found.filter(|one| one.contains("nothing reads mark 20")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(unread("20"), "");
    let hex = unread("0x20");
    assert!(hex.contains("a filter reads mark 32 (0x20)") && !hex.contains("flowid"), "{hex}");
    let twin = findings_of(&of("20").replace("--set-mark 20", "--set-mark 0x20"), &[Rule::Marks]).join("\n");
    assert!(twin.contains("nothing reads mark 32") && twin.contains("32 is 0x20, 20 is 0x14"), "{twin}");
    let other = unread("7");
    assert!(other.contains("no packet comes to the classes 1:10, 1:20"), "{other}");
    assert!(other.contains("flowid CLASS") && !other.contains("flowid 1:"), "{other}");
}

/// Linux 6.1 was asked with 100 bytes: cake sends 3.79 Mbit/s with its own overhead alone, 3.75 with the
/// table's alone, and 3.56 with both.
#[test]
fn framing_that_cake_counts_once_more() {
    let of = |stab: &str, own: &str| format!("tc qdisc add dev eth0 root {stab} cake bandwidth 4mbit {own}");
    let parts =
        ["1 warning R16", "by a size table (stab) and by cake", "3.56 Mbit/s leave, and 3.79 Mbit/s without"];
    check_finding(&of("stab overhead 100", "overhead 100"), &[Rule::Overhead], &parts);
    silent(&of("stab overhead 100", ""), &[Rule::Overhead]);
    silent(&of("", "overhead 100"), &[Rule::Overhead]);
}

/// Linux 6.1 was asked: the source of forwarded packets is the device's before the filter sees it.
#[test]
fn addresses_that_nat_hides_from_filters() {
    let tree = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\n\
                tc class add dev eth0 parent 1: classid 1:30 htb rate 5mbit";
    let nat = |what: &str| format!("iptables -t nat -A POSTROUTING {what} -j MASQUERADE");
    let source =
        "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src 192.168.1.0/24 flowid 1:10";
    let of = |nat: &str, filter: &str| format!("{tree}\n{nat}\n{filter}");
    let parts = [
        "5 warning R27: what comes from 192.168.1.0/24 has another source address",
        "line 4 replaces it in POSTROUTING",
        "iptables -t mangle -A POSTROUTING -o eth0 -s 192.168.1.0/24 -j CLASSIFY --set-class 1:10",
    ];
    for all in ["-o eth0", "-s 192.168.0.0/16 -o eth0", ""] {
        check_finding(&of(&nat(all), source), &[Rule::Rewritten], &parts);
    }
    // Not all of them, or others, or none.
    for some in ["-o eth1", "-s 192.168.1.128/25 -o eth0", "-o eth0 -p tcp", "-s 10.0.0.0/8 -o eth0"] {
        silent(&of(&nat(some), source), &[Rule::Rewritten]);
    }
    let spared = format!("iptables -t nat -A POSTROUTING -d 10.0.0.0/8 -j ACCEPT\n{}", nat("-o eth0"));
    silent(&of(&spared, source), &[Rule::Rewritten]);
    silent(
        &of(&nat("-o eth0"), &source.replace("src 192.168.1.0/24", "dst 192.168.1.0/24")),
        &[Rule::Rewritten],
    );
    // With that rule's remedy the class gets the rate: there is no finding left.
    let mended = of(
        &nat("-o eth0"),
        "iptables -t mangle -A POSTROUTING -o eth0 -s 192.168.1.0/24 -j CLASSIFY --set-class 1:10",
    );
    silent(&mended, &[Rule::Rewritten, Rule::Idle]);
    // Snat to an address of that network: the filter does match.
    let within = "iptables -t nat -A POSTROUTING -o eth0 -j SNAT --to-source 192.168.1.2";
    silent(&of(within, source), &[Rule::Rewritten]);
    let arrives = "tc qdisc add dev eth0 handle ffff: ingress\n\
                   tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match ip dst 192.168.1.5 \
                   police rate 1mbit burst 20k drop flowid :1";
    let parts = [
        "6 warning R27: what arrives at eth0 for 192.168.1.5 has the address of eth0",
        "line 4 hides 192.168.1.5",
    ];
    check_finding(&of(&nat("-o eth0"), arrives), &[Rule::Rewritten], &parts);
    silent(&of(&nat("-o eth1"), arrives), &[Rule::Rewritten]);
    silent(&of(&nat("-o eth0"), &arrives.replace("192.168.1.5", "198.51.100.5")), &[Rule::Rewritten]);
}

/// A DSCP that is set behind the rule that matches it.
#[test]
fn a_dscp_that_is_set_too_late() {
    let tree = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\n\
                tc class add dev eth0 parent 1: classid 1:30 htb rate 5mbit\n\
                tc filter add dev eth0 parent 1: protocol ip prio 1 handle 1 fw flowid 1:10";
    let reads = |chain: &str| format!("iptables -t mangle -A {chain} -m dscp --dscp 46 -j MARK --set-mark 1");
    let sets =
        |chain: &str| format!("iptables -t mangle -A {chain} -p udp --dport 5060 -j DSCP --set-dscp 46");
    let of = |lines: &[String]| format!("{tree}\n{}", lines.join("\n"));
    let parts = ["5 warning R27: what line 6 gives this DSCP gets no mark 1 here", ":5060 "];
    check_finding(&of(&[reads("PREROUTING"), sets("POSTROUTING")]), &[Rule::Rewritten], &parts);
    check_finding(&of(&[reads("POSTROUTING"), sets("POSTROUTING")]), &[Rule::Rewritten], &parts);
    silent(&of(&[sets("POSTROUTING"), reads("POSTROUTING")]), &[Rule::Rewritten]);
    silent(&of(&[reads("POSTROUTING"), sets("PREROUTING")]), &[Rule::Rewritten]);
    // They get the mark by another rule.
    let other = "iptables -t mangle -A POSTROUTING -p udp --dport 5060 -j MARK --set-mark 1".to_owned();
    silent(&of(&[reads("PREROUTING"), sets("POSTROUTING"), other]), &[Rule::Rewritten]);
}

/// Linux 6.1 was asked: a second of 1 Mbit/s, after a first tenth at 5.
#[test]
fn a_curve_that_begins_above_the_upper_limit() {
    let of = |rt: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: hfsc default 10\n\
             tc class add dev eth0 parent 1: classid 1:10 hfsc rt {rt} ls m2 1mbit ul m2 2mbit"
        )
    };
    let parts = [
        "2 note R3: class 1:10 begins with 5 Mbit/s in real time, above its upper limit of 2 Mbit/s",
        "for 100 ms",
    ];
    check_finding(&of("m1 5mbit d 100ms m2 1mbit"), &[Rule::Rates], &parts);
    silent(&of("m1 2mbit d 100ms m2 1mbit"), &[Rule::Rates]);
    silent(&of("m2 1mbit"), &[Rule::Rates]);
}

/// A mark of connections that the next rule of the same hook writes over comes to no packet.
#[test]
fn a_mark_of_connections_that_never_stays() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\n\
                tc class add dev eth0 parent 1: classid 1:30 htb rate 5mbit\n\
                tc filter add dev eth0 parent 1: protocol ip prio 1 handle 5 fw flowid 1:10\n\
                iptables -t mangle -A POSTROUTING -j CONNMARK --set-mark 3\n\
                iptables -t mangle -A POSTROUTING -j CONNMARK --set-mark 4\n\
                iptables -t mangle -A POSTROUTING -j CONNMARK --restore-mark";
    let found = findings_of(text, &[Rule::Marks]);
    assert!(found.iter().any(|one| one.contains("marks of IPv4 packets on eth0: 0, 4;")), "{found:?}");
}

/// What holds a class back is not its tiny bucket where a queue below does.
#[test]
fn a_tiny_bucket_is_not_blamed_for_a_slow_queue_below() {
    let of = |below: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10\n\
             tc class add dev eth0 parent 1: classid 1:10 htb rate 4mbit burst 100 cburst 100{below}"
        )
    };
    check_finding(
        &of(""),
        &[Rule::Burst],
        &["2 note R12", "the rate is kept, with one timer for each packet"],
    );
    silent(&of("\ntc qdisc add dev eth0 parent 1:10 tbf rate 1mbit burst 5k latency 50ms"), &[Rule::Burst]);
}

/// `mtu` without `peakrate` means nothing: Linux takes it, and so does the check, which once ended there.
#[test]
fn a_bucket_with_an_mtu_and_no_peak_rate() {
    silent("tc qdisc add dev eth0 root tbf rate 256kbit burst 1540 latency 50ms mtu 1500", &[Rule::Burst]);
}

/// What children are promised beyond their parents may be beyond what a class further up may send (Linux:
/// 15.06 Mbit/s of 10).
#[test]
fn promises_that_go_past_a_class_further_up() {
    let of = |rate: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 22\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:2 htb rate {rate} ceil 10mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:3 htb rate 4mbit ceil 10mbit\n\
             tc class add dev eth0 parent 1:2 classid 1:22 htb rate {rate} ceil 10mbit\n\
             tc class add dev eth0 parent 1:3 classid 1:31 htb rate 5mbit ceil 10mbit\n\
             tc class add dev eth0 parent 1:3 classid 1:32 htb rate 4mbit ceil 10mbit\n\
             tc filter add dev eth0 parent 1: prio 1 u32 match ip dport 1 0xffff flowid 1:31\n\
             tc filter add dev eth0 parent 1: prio 1 u32 match ip dport 2 0xffff flowid 1:32"
        )
    };
    let beyond =
        ["4 warning R3: the 2 children of 1:3", "when all below 1:1 are busy", "instead of 10 Mbit/s"];
    check_finding(&of("6mbit"), &[Rule::Rates], &beyond);
    check_finding(
        &of("1mbit"),
        &[Rule::Rates],
        &["4 note R3: the 2 children of 1:3", "takes it from its own parent"],
    );
}

/// What leaves by way of another device may be held to a rate there.
#[test]
fn a_rate_on_the_device_that_packets_are_led_to() {
    let of = |filter: &str| format!("tc qdisc add dev eth1 root handle 1: prio\n{filter}");
    check_finding(&of(""), &[Rule::Unlimited], &["nothing holds what eth1 sends to a rate"]);
    let away = "tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match u32 0 0 flowid 1:1 \
                action mirred egress redirect dev eth0";
    silent(&of(away), &[Rule::Unlimited]);
    let policed = "tc qdisc add dev eth1 clsact\n\
                   tc filter add dev eth1 egress matchall action police rate 5mbit burst 64k drop";
    silent(&of(policed), &[Rule::Unlimited]);
    // What arrives is another matter.
    let arriving = policed.replace("egress", "ingress");
    check_finding(&of(&arriving), &[Rule::Unlimited], &["nothing holds what eth1 sends to a rate"]);
}

/// What INPUT marks is for the machine itself: no rule of FORWARD sees it, and no queue.
#[test]
fn marks_of_what_the_machine_receives_are_not_written_over_by_what_it_forwards() {
    let text = "tc qdisc add dev eth0 root handle 1: prio\n\
                tc filter add dev eth0 parent 1: protocol ip prio 1 handle 5 fw flowid 1:1\n\
                iptables -t mangle -A INPUT -i eth0 -p tcp --dport 22 -j MARK --set-mark 7\n\
                iptables -t mangle -A FORWARD -o eth0 -p tcp -j MARK --set-mark 5";
    let found = findings_of(text, &[Rule::Marks]);
    assert!(!found.iter().any(|one| one.contains("gone again")), "{found:?}");
}

/// Times are those of what a size table makes of a frame (Linux: 45.2 ms for each of 1,492 bytes).
#[test]
fn a_frame_under_a_size_table_takes_longer() {
    let text = "tc qdisc add dev eth0 root handle 1: stab overhead 40 linklayer atm mtu 2047 tsize 512 htb \
    default 10\n\
                tc class add dev eth0 parent 1: classid 1:10 htb rate 300kbit\n\
                tc qdisc add dev eth0 parent 1:10 fq_codel";
    check_finding(text, &[Rule::Limit], &["counted as ", " by stab, at 300 kbit/s"]);
}

/// Asked of Linux 6.1: each qdisc looks for a class among its own, prio by the number behind the colon.
#[test]
fn classes_of_inner_qdiscs_are_reached_in_steps() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 12\n\
                tc class add dev eth0 parent 1: classid 1:12 htb rate 10mbit\n\
                tc qdisc add dev eth0 parent 1:12 handle 20: prio\n\
                tc filter add dev eth0 parent 1: prio 1 u32 match ip dport 22 0xffff flowid 20:1\n\
                tc filter add dev eth0 parent 20: prio 1 u32 match ip dport 22 0xffff flowid 1:12";
    let found = findings_of(text, &[Rule::Nowhere]);
    let steps = "lead the packets to 1:12 here, and to 20:1 by a filter of 20:";
    assert!(found[0].starts_with("4 error R6") && found[0].contains(steps), "{found:?}");
    assert!(found[1].contains("its packets take 20:2, the band of priority 0"), "{found:?}");
    assert!(!found.iter().any(|one| one.contains("hexadecimal")), "{found:?}");
}

/// What only leads packets away sorts none; from an ifb they come back.
#[test]
fn packets_of_ipv6_that_no_filter_leads_away() {
    let text = "tc qdisc add dev eth0 root handle 1: prio\n\
                tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match u32 0 0 action mirred egress redirect \
                dev ifb0\n\
                tc qdisc add dev ifb0 root handle 1: tbf rate 10mbit burst 20k latency 50ms";
    let found = check(&mut reading(&["eth0", "ifb0"], text));
    let found = found.iter().find(|one| one.rule == Rule::OtherProtocols).expect("R14");
    assert_eq!(found.what, "IPv6 is not led away from eth0: all of it waits in 1:2");
    assert!(found.because.contains("IPv6 escapes what holds IPv4"), "{}", found.because);
}
