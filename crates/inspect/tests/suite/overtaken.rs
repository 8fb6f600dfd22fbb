//! What may go before a packet, and whether the order of classes matters: Linux 6.1 was asked in each case.

use crate::common::{findings_of, given};
use crate::explain::explain;
use crate::waits::at_worst;
use tidegate_inspect::{PolicyModel, Rule, check};

/// With two classes of 1 Mbit/s below a bucket of 1 Mbit/s the last of 100 packets left after 2.38 s, not
/// 1.2 s.
#[test]
fn classes_that_share_a_bucket_are_not_promised_their_rates() {
    let below = |above: &str, rate: u32| {
        format!(
            "{above}\
             tc class add dev eth0 parent 2: classid 2:1 htb rate 1mbit\n\
             tc class add dev eth0 parent 2: classid 2:2 htb rate {rate}kbit\n\
             tc qdisc add dev eth0 parent 2:1 pfifo limit 100\n"
        )
    };
    let bucket = |rate: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: tbf rate {rate} burst 5k latency 50ms\n\
             tc qdisc add dev eth0 parent 1:1 handle 2: htb default 1\n"
        )
    };
    let class = "tc qdisc add dev eth0 root handle 1: htb default 1\n\
        tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
        tc qdisc add dev eth0 parent 1:1 handle 2: htb default 1\n";
    for above in [bucket("1mbit"), class.to_owned()] {
        let told = at_worst(&below(&above, 1000));
        assert!(told.contains("1.2 s at the 1 Mbit/s it may have when no other class sends"), "{told}");
        assert!(told.contains("the classes of 2: are guaranteed more together than is sent above"), "{told}");
    }
    let fits = at_worst(&below(&bucket("2mbit"), 1000));
    assert!(fits.contains("1.2 s at the 1 Mbit/s it may have when no other class sends"), "{fits}");
    // Linux 6.1 was asked: with 200 kB saved by the other class a packet waits 3.5 s, not 0.25.
    assert!(fits.contains("2: stands below another shaper") && !fits.contains("more together"), "{fits}");
    assert!(fits.contains("one is held by the qdisc above"), "{fits}");
}

/// A packet behind 63 others in skbprio waits for all of higher priority besides; in hhf for heavy hitters
/// that come later; in fq for the turns of other flows.
#[test]
fn queues_in_which_others_go_ahead_say_so() {
    let of = |queue: &str| {
        at_worst(&format!(
            "tc qdisc add dev eth0 root handle 1: htb default 1\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
             tc qdisc add dev eth0 parent 1:1 handle 2: {queue}\n"
        ))
    };
    assert!(of("skbprio").contains("packets of higher priority are served first: it waits while they come"));
    let hhf = of("hhf");
    assert!(hhf.contains("is not worked out here") && !hhf.contains(" s at the "), "{hhf}");
    let fq = of("fq maxrate 2mbit flow_limit 50");
    assert!(fq.contains("606 ms at the 1 Mbit/s it has, while no other flow has packets here"), "{fq}");
}

#[test]
fn a_netem_holds_back_by_its_rate_and_its_slots() {
    let of = |netem: &str| at_worst(&format!("tc qdisc add dev eth0 root netem {netem}\n"));
    assert!(of("slot 50ms 50ms limit 50").starts_with("netem holds it back until a slot has room for it\n"));
    assert!(
        of("delay 30ms slot 50ms")
            .starts_with("netem holds it back for 30.0 ms, and until a slot has room for it\n")
    );
    assert!(of("rate 1mbit").starts_with("netem holds it back until its rate of 1 Mbit/s lets it go\n"));
    assert!(of("loss 1%").starts_with("netem holds it back for 0.0 ms; a chance of 1 %"));
}

/// A packet of priority 7 behind 64 of priority 0 in skbprio left after 9.9 ms.
#[test]
fn what_fills_a_queue_with_priorities_delays_its_own_only() {
    let of = |queue: &str| {
        findings_of(
            &format!(
                "tc qdisc add dev eth0 root handle 1: htb default 1\n\
                 tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
                 tc qdisc add dev eth0 parent 1:1 handle 2: {queue}\n"
            ),
            &[Rule::Limit, Rule::NoAqm],
        )
        .join("\n")
    };
    let skbprio = of("skbprio limit 64");
    assert!(skbprio.contains("delays all others of its priority"), "{skbprio}");
    assert!(!skbprio.contains("all others in it") && !skbprio.contains("for what shares it"), "{skbprio}");
    let bands = of("pfifo_fast");
    assert!(bands.contains("the pfifo_fast of class 1:1 has no limit set"), "{bands}");
    assert!(bands.contains("delays all others in its band"), "{bands}");
    assert!(of("pfifo limit 1000").contains("delays all others in it"));
}

/// Classes that borrow nothing, or that have room enough together, are served as if they were alone.
#[test]
fn the_order_of_classes_that_do_not_compete_is_no_order() {
    let policy = |parent: &str, ceil: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 30\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate {parent}\n\
             tc class add dev eth0 parent 1:1 classid 1:10 htb rate 1mbit ceil {ceil} prio 2\n\
             tc class add dev eth0 parent 1:1 classid 1:30 htb rate 1mbit ceil {ceil} prio 1\n\
             tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip tos 0xb8 0xfc flowid 1:10\n"
        )
    };
    let of = |parent: &str, ceil: &str| findings_of(&policy(parent, ceil), &[Rule::Intent]).len();
    assert_eq!((of("10mbit", "10mbit"), of("10mbit", "1mbit"), of("100mbit", "20mbit")), (1, 0, 0));
}

/// NQB before unmarked packets: the ceils add up to less than the parent has.
#[test]
fn nqb_has_no_priority_where_nobody_competes() {
    let policy = |ceil: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 30\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate 95mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit ceil {ceil} prio 1\n\
             tc class add dev eth0 parent 1:1 classid 1:30 htb rate 2mbit ceil {ceil} prio 3\n\
             tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip tos 0xb4 0xfc flowid 1:10\n"
        )
    };
    assert_eq!(findings_of(&policy("95mbit"), &[Rule::Nqb]).len(), 1);
    assert_eq!(findings_of(&policy("20mbit"), &[Rule::Nqb]), [""; 0]);
}

/// The packet to 192.168.8.177 left after 100 ms, all others at once: the class counts.
#[test]
fn where_a_netem_delays_a_class_packets_do_wait() {
    let policy = "tc qdisc add dev eth0 root handle 1: prio\n\
        tc qdisc add dev eth0 parent 1:3 handle 30: netem delay 100ms\n";
    assert_eq!(findings_of(policy, &[Rule::Unlimited]), [""; 0]);
    assert_eq!(findings_of(&policy.replace("delay 100ms", "loss 1%"), &[Rule::Unlimited]).len(), 1);
}

/// HFSC takes the first packet of a class out of what is below it: where it was is told all the same.
#[test]
fn a_packet_below_hfsc_is_followed_to_its_queue() {
    let htb = "tc qdisc add dev eth0 root handle 1: hfsc default 10\n\
        tc class add dev eth0 parent 1: classid 1:10 hfsc sc rate 100mbit\n\
        tc qdisc add dev eth0 parent 1:10 handle 2: htb default 1\n\
        tc class add dev eth0 parent 2: classid 2:1 htb rate 10mbit\n";
    let words = "icmp 10.0.0.1 > 10.9.0.2 out eth0";
    let told = explain(&["eth0"], htb, words);
    assert!(told.contains("ends: eth0 1:10 2:1, pfifo by default"), "{told}");
    assert!(told.contains("1.2 s at the 10 Mbit/s it has"), "{told}");
    let bucket = "tc qdisc add dev eth0 root handle 1: hfsc default 10\n\
        tc class add dev eth0 parent 1: classid 1:10 hfsc sc rate 100mbit\n\
        tc qdisc add dev eth0 parent 1:10 handle 2: tbf rate 1mbit burst 5k latency 50ms\n\
        tc qdisc add dev eth0 parent 2:1 handle 3: htb default 1\n\
        tc class add dev eth0 parent 3: classid 3:1 htb rate 10mbit\n";
    let told = explain(&["eth0"], bucket, words);
    assert!(told.contains("ends: eth0 1:10 2:1 3:1") && told.contains("12.1 s at the 1 Mbit/s"), "{told}");
    // A rule's packet goes where the filters below lead it.
    let filters = "tc filter add dev eth0 parent 2: protocol ip prio 1 u32 match ip protocol 6 0xff flowid 2:1\n\
        tc filter add dev eth0 parent 2: protocol ip prio 2 u32 match ip protocol 6 0xff match ip dport 80 0xffff \
        flowid 2:2\n";
    let more = "tc class add dev eth0 parent 2: classid 2:2 htb rate 10mbit\n";
    let found = findings_of(&format!("{htb}{more}{filters}"), &[Rule::Unreachable]);
    assert!(found.len() == 1 && found[0].contains("goes to 2:1"), "{found:?}");
}

/// By another key the packet takes another class: of six keys one led it to 1:20, the others to 1:21.
#[test]
fn a_class_that_a_random_key_chose_is_said_to_be_one() {
    let tree = "tc qdisc add dev eth0 root handle 1: htb\n\
        tc class add dev eth0 parent 1: classid 1:20 htb rate 10mbit\n\
        tc class add dev eth0 parent 1: classid 1:21 htb rate 10mbit\n";
    let flow = "tc filter add dev eth0 parent 1: protocol ip prio 1 handle 1 flow";
    let words = "tcp 10.0.0.1:5 > 10.9.0.1:2 out eth0";
    let hash = format!("{tree}{flow} hash keys src,dst divisor 2 baseclass 1:20\n");
    assert!(explain(&["eth0"], &hash, words).contains("with another key it may go elsewhere"));
    let map = format!("{tree}{flow} map key proto-dst and 1 baseclass 1:20\n");
    let ping = explain(&["eth0"], &map, "icmp 10.0.0.2 > 203.0.113.9 out eth0");
    assert!(ping.contains("it has no proto-dst, and Linux takes an address in its memory"), "{ping}");
    let plain = explain(&["eth0"], &map, words);
    assert!(!plain.contains("elsewhere") && !plain.contains("in its memory"), "{plain}");
}

#[test]
fn filters_of_flow_with_the_same_key_are_at_their_own_lines() {
    let policy = "tc qdisc add dev eth0 root handle 1: htb default 10\n\
        tc class add dev eth0 parent 1: classid 1:10 htb rate 10mbit\n\
        tc class add dev eth0 parent 1: classid 1:11 htb rate 10mbit\n\
        tc class add dev eth0 parent 1: classid 1:12 htb rate 10mbit\n\
        tc filter add dev eth0 parent 1: protocol ip prio 1 handle 4 flow map key mark and 0x1 baseclass 1:11\n\
        tc filter add dev eth0 parent 1: protocol ip prio 1 handle 6 flow map key mark and 0x1 baseclass 1:12\n";
    let told = explain(&["eth0"], policy, "udp 10.0.0.1:1 > 10.9.0.1:2 out eth0");
    assert!(told.contains("flow mark :5"), "{told}");
    let found = findings_of(policy, &[Rule::Unreachable]);
    assert!(found.iter().all(|line| line.starts_with("6 ") && line.contains("line 5")), "{found:?}");
}

/// 8 + 4 + 4 + 1 Mbit/s left of this tree: leaves have their rates whatever the class above them has.
#[test]
fn leaves_below_a_low_ceil_keep_their_rates() {
    let policy = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
        tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit ceil 20mbit\n\
        tc class add dev eth0 parent 1:1 classid 1:10 htb rate 8mbit ceil 30mbit\n\
        tc class add dev eth0 parent 1:1 classid 1:20 htb rate 8mbit ceil 5mbit\n\
        tc class add dev eth0 parent 1:20 classid 1:21 htb rate 4mbit\n\
        tc class add dev eth0 parent 1:20 classid 1:22 htb rate 4mbit\n\
        tc class add dev eth0 parent 1:1 classid 1:30 htb rate 1mbit\n";
    let found = findings_of(policy, &[Rule::Rates]).join("\n");
    assert!(found.contains("the 3 children of 1:1 are promised 17 Mbit/s together"), "{found}");
}

/// A program's choice does not survive an action that writes the priority, and none is on packets that
/// arrived.
#[test]
fn programs_choose_classes_only_where_their_priorities_last() {
    let of = |device: &str, more: &str| {
        let text = format!(
            "tc qdisc add dev {device} root handle 1: prio bands 4 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
             tc filter add dev {device} parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.0/8 flowid 1:4\n{more}"
        );
        let mut policy = PolicyModel::new(given(&[device], &text));
        let found = check(&mut policy);
        found.into_iter().find(|finding| finding.rule == Rule::Idle).map(|finding| finding.because)
    };
    let plain = of("eth0", "").expect("R23");
    assert!(plain.contains("a program that sets the priority of its sockets, or eBPF, still may"), "{plain}");
    let written = "tc qdisc add dev eth0 clsact\n\
        tc filter add dev eth0 egress matchall action skbedit priority 1:4\n";
    let written = of("eth0", written).expect("R23");
    assert!(written.ends_with("; eBPF still may"), "{written}");
}

/// Linux was asked (6.1 and 7.2): beside a bucket of 100 kbit/s a class of drr waited 3.6 s, not 176 ms; of
/// hfsc 1.3 s, not 117 ms.
#[test]
fn a_class_beside_one_that_holds_back_waits_with_it() {
    let tree = |kind: &str, class: &str, child: &str| {
        at_worst(&format!(
            "tc qdisc add dev eth0 root handle 1: tbf rate 4mbit burst 2000 limit 100000\n\
             tc qdisc add dev eth0 parent 1:1 handle 2: {kind}\n\
             tc class add dev eth0 parent 2: classid 2:1 {class}\n\
             tc class add dev eth0 parent 2: classid 2:2 {class}\n\
             tc qdisc add dev eth0 parent 2:1 handle 11: {child}\n\
             tc qdisc add dev eth0 parent 2:2 handle 12: pfifo limit 30\n\
             tc filter add dev eth0 parent 2: protocol all prio 2 matchall flowid 2:2\n"
        ))
    };
    for (kind, class) in
        [("drr", "drr quantum 1514"), ("qfq", "qfq weight 1"), ("hfsc", "hfsc sc rate 1mbit")]
    {
        let held = tree(kind, class, "tbf rate 100kbit burst 2000 limit 10000");
        assert!(
            held.contains("while another class of 2: holds packets back, 2: sends none of the others"),
            "{held}"
        );
        assert!(!held.contains("guaranteed") && !held.contains(" it has"), "{held}");
        let free = tree(kind, class, "pfifo limit 30");
        assert!(!free.contains("holds packets back"), "{free}");
    }
}

/// Shapers that count packets differently, and upper limits that begin low: no figure holds.
#[test]
fn where_shapers_count_differently_no_time_is_given() {
    let buckets = |overhead: &str| {
        at_worst(&format!(
            "tc qdisc add dev eth0 root handle 1: tbf rate 1200kbit burst 9000 limit 100000 {overhead}\n\
             tc qdisc add dev eth0 parent 1:1 handle 2: tbf rate 1mbit burst 9000 limit 100000\n\
             tc qdisc add dev eth0 parent 2:1 handle 3: pfifo limit 30\n"
        ))
    };
    assert!(buckets("").contains("363 ms at the 1 Mbit/s it has"), "{}", buckets(""));
    let uneven = buckets("overhead 1514");
    assert!(uneven.contains("count packets differently") && !uneven.contains(" ms at "), "{uneven}");
    let limit = |ul: &str| {
        at_worst(&format!(
            "tc qdisc add dev eth0 root handle 1: hfsc default 1\n\
             tc class add dev eth0 parent 1: classid 1:1 hfsc ls rate 5mbit ul {ul}\n\
             tc qdisc add dev eth0 parent 1:1 handle 2: pfifo limit 30\n"
        ))
    };
    assert!(limit("rate 1mbit").contains("363 ms at the 1 Mbit/s"), "{}", limit("rate 1mbit"));
    assert!(!limit("m1 100kbit d 1s m2 1mbit").contains(" ms at "));
    let netem = at_worst("tc qdisc add dev eth0 root handle 1: netem rate 1mbit 500 limit 30\n");
    assert!(netem.contains("that is not worked out here") && !netem.contains(" ms at "), "{netem}");
}

/// The pfifo drops nothing: the bucket's burst, or the netem's limit, does.
#[test]
fn a_queue_is_not_blamed_for_what_is_above_it() {
    let limits = |policy: &str| findings_of(policy, &[Rule::Limit]);
    let bucket = "tc qdisc add dev eth0 root handle 1: tbf rate 5mbit burst 1200 limit 100000\n\
        tc qdisc add dev eth0 parent 1:1 handle 2: pfifo limit 100\n";
    assert!(limits(bucket).iter().all(|line| !line.contains("pfifo with limit 100")), "{:?}", limits(bucket));
    let netem = "tc qdisc add dev eth0 root handle 1: netem delay 10ms limit 3\n\
        tc qdisc add dev eth0 parent 1:1 handle 17: pfifo limit 100\n";
    assert!(limits(netem).iter().all(|line| !line.contains("pfifo with limit")), "{:?}", limits(netem));
    let slow = "tc qdisc add dev eth0 root handle 1: netem rate 1mbit limit 1000\n\
        tc qdisc add dev eth0 parent 1:1 handle 2: tbf rate 2mbit burst 5000 limit 100000\n";
    assert!(limits(slow).iter().all(|line| !line.contains("limit 100000")), "{:?}", limits(slow));
    // Alone it is to blame.
    assert_eq!(limits("tc qdisc add dev eth0 root handle 1: pfifo limit 3\n").len(), 1);
}
