//! Findings of `check` about queues that cannot fill, classes that starve, and default values.

use crate::common::{check_finding, findings_of, silent};
use tidegate_inspect::Rule;

/// A bucket with three bands; what comes to the first has passed a policer.
fn bands(police: &str) -> String {
    format!(
        "tc qdisc add dev eth0 root handle 1: tbf rate 2mbit burst 5k latency 50ms\n\
         tc qdisc add dev eth0 parent 1:1 handle 2: prio\n\
         tc qdisc add dev eth0 parent 2:1 handle 10: pfifo limit 1000\n\
         tc qdisc add dev eth0 parent 2:2 handle 20: fq_codel target 10ms\n\
         tc qdisc add dev eth0 parent 2:3 handle 30: fq_codel target 10ms\n\
         tc filter add dev eth0 parent 2: protocol ip prio 1 u32 match ip dport 5060 0xffff {police} flowid \
         2:1\n\
         tc filter add dev eth0 parent 2: protocol all prio 2 u32 match u32 0 0 flowid 2:2"
    )
}

/// 10 kB at 200 kbit/s never become 1,000 packets in a band that 2 Mbit/s serve first.
#[test]
fn a_queue_behind_a_policer_does_not_fill() {
    silent(&bands("police rate 200kbit burst 10k drop"), &[Rule::Limit]);
    let fills = ["3 warning R13", "limit 1000 lets 6.1 s of packets wait in class 2:1"];
    check_finding(&bands(""), &[Rule::Limit], &fills);
    // It lets more through than leaves, lets all through, or others come there as well.
    check_finding(&bands("police rate 3mbit burst 10k drop"), &[Rule::Limit], &fills);
    check_finding(&bands("police rate 200kbit burst 10k pass"), &[Rule::Limit], &fills);
    let others = bands("police rate 200kbit burst 10k drop").replace("protocol all", "protocol ipv6");
    check_finding(&others, &[Rule::Limit], &fills);
}

/// Real time of 14 Mbit/s under a limit of 10 leaves nothing to a class that only shares.
#[test]
fn a_class_that_starves_waits_longer_while_others_are_busy() {
    let policy = "tc qdisc add dev eth0 root handle 1: hfsc default 20\n\
                  tc class add dev eth0 parent 1: classid 1:1 hfsc sc rate 10mbit ul rate 10mbit\n\
                  tc class add dev eth0 parent 1:1 classid 1:10 hfsc rt m2 9mbit\n\
                  tc class add dev eth0 parent 1:1 classid 1:20 hfsc ls m2 1kbit\n\
                  tc class add dev eth0 parent 1:1 classid 1:30 hfsc rt m2 5mbit\n\
                  tc qdisc add dev eth0 parent 1:10 fq_codel\n\
                  tc qdisc add dev eth0 parent 1:30 fq_codel";
    let starves =
        ["4 warning R13", "1.2 s while the other classes are idle", "1000 packets still wait after 51."];
    check_finding(policy, &[Rule::Limit], &starves);
}

/// Acknowledgements are short, whether a rule or a filter finds them.
#[test]
fn a_class_of_acknowledgements_by_header_is_filled_with_these() {
    let policy = |acks: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 20\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit ceil 1mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:10 htb rate 200kbit ceil 1mbit prio 0\n\
             tc class add dev eth0 parent 1:1 classid 1:20 htb rate 800kbit ceil 1mbit prio 1\n\
             tc qdisc add dev eth0 parent 1:20 pfifo limit 10\n\
             tc qdisc add dev eth0 parent 1:10 pfifo limit 200\n\
             tc filter add dev eth0 parent 1: protocol ip prio 10 u32 match ip protocol 6 0xff {acks} \
             flowid 1:10"
        )
    };
    let acks = "match u8 0x05 0x0f at 0 match u16 0x0000 0xffc0 at 2 match u8 0x10 0xff at 33";
    let rules = [Rule::Limit, Rule::NoAqm];
    let found = findings_of(&policy(acks), &rules);
    assert!(found.iter().all(|one| !one.contains("5.9 s") && !one.contains("R19 ")), "{found:#?}");
    assert!(found.iter().any(|one| one.contains("200 packets of 77 bytes")), "{found:#?}");
    check_finding(
        &policy("match ip dport 22 0xffff"),
        &rules,
        &["limit 200 lets 12.1 s of packets wait in class 1:10"],
    );
}

/// A qdisc that lets nothing go keeps what was offered to it: the others are measured all the same.
#[test]
fn a_plug_beside_a_class_silences_nothing() {
    for [first, second] in [[1, 2], [2, 1]] {
        let policy = format!(
            "tc qdisc add dev eth0 root handle 1: htb default {second}0\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate 2mbit ceil 2mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:{first}0 htb rate 1mbit ceil 2mbit burst 10\n\
             tc class add dev eth0 parent 1:1 classid 1:{second}0 htb rate 500kbit ceil 2mbit burst 10\n\
             tc qdisc add dev eth0 parent 1:{first}0 handle {first}0: plug limit 100000\n\
             tc qdisc add dev eth0 parent 1:{second}0 handle {second}0: pfifo limit 900"
        );
        let found = findings_of(&policy, &[Rule::Limit, Rule::Burst]);
        let burst = format!("burst of class 1:{second}0 holds 10 bytes");
        assert!(found.iter().any(|one| one.contains(&burst)), "{found:#?}");
        assert!(found.iter().any(|one| one.contains("limit 900 lets")), "{found:#?}");
    }
}

/// Linux 6.1 puts such packets into the default class, past all classes of an HTB without one; a class with
/// filters of its own evaluates them.
#[test]
fn a_filter_leads_to_a_class_that_has_classes() {
    let tree = |root: &str, class: &str, more: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: {root}\n\
             tc class add dev eth0 parent 1: classid 1:1 {class} rate 10mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:2 {class} rate 5mbit\n\
             tc class add dev eth0 parent 1:2 classid 1:20 {class} rate 5mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:30 {class} rate 5mbit\n\
             tc filter add dev eth0 parent 1: protocol ip u32 match ip dport 53 0xffff flowid 1:2\n{more}"
        )
    };
    let inner = "the filter leads to class 1:2, which has child classes";
    for (root, class) in [("htb default 30", "htb"), ("hfsc default 30", "hfsc sc")] {
        check_finding(
            &tree(root, class, ""),
            &[Rule::Nowhere],
            &["6 warning R6", inner, "to its default", ": 1:30"],
        );
        let on = "tc filter add dev eth0 parent 1:2 protocol all matchall flowid 1:20";
        silent(&tree(root, class, on), &[Rule::Nowhere]);
    }
    let direct = ["6 warning R6", inner, "no class at all"];
    check_finding(&tree("htb", "htb", ""), &[Rule::Nowhere], &direct);
    let lost = ["6 error R6", inner, "drops them, because there is no default class"];
    check_finding(&tree("hfsc", "hfsc sc", ""), &[Rule::Nowhere], &lost);
}

/// A redirect behind one that leads to the same device changes nothing.
#[test]
fn two_redirects_to_one_device() {
    let finding = |first: &str| {
        let text = format!(
            "tc qdisc add dev ifb0 root handle 1: fq_codel\n\
             tc qdisc add dev ifb1 root handle 1: fq_codel\n\
             tc qdisc add dev eth0 handle ffff: ingress\n\
             tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match u32 0 0 action mirred egress redirect \
             dev {first}\n\
             tc filter add dev eth0 parent ffff: protocol ip prio 5 u32 match ip protocol 17 0xff action mirred \
             egress redirect dev ifb0"
        );
        let mut reading = crate::common::reading(&["eth0", "ifb0", "ifb1"], &text);
        let found = tidegate_inspect::check(&mut reading);
        let own =
            found.into_iter().find(|finding| finding.rule == Rule::Unreachable).expect("is unreachable");
        format!("{:?}: {}", own.level, own.because)
    };
    assert_eq!(finding("ifb0"), "Note: the packets it matches go to ifb0 all the same");
    assert_eq!(finding("ifb1"), "Warning: what it matches goes to ifb1, not to its actions");
}

/// `conform-exceed pipe` is about what exceeds.
#[test]
fn only_what_is_too_fast_goes_on() {
    let policy = |police: &str| {
        format!(
            "tc qdisc add dev ifb0 root handle 1: fq_codel\n\
             tc qdisc add dev eth0 handle ffff: ingress\n\
             tc filter add dev eth0 parent ffff: protocol all matchall action police rate 4mbit burst 20k \
             {police} \
             action mirred egress redirect dev ifb0"
        )
    };
    let report = |text: &str, parts: &[&str]| {
        let mut reading = crate::common::reading(&["eth0", "ifb0"], text);
        let found = tidegate_inspect::check(&mut reading);
        let mut own = found.iter().filter(|finding| finding.rule == Rule::Unreachable);
        match (own.next(), parts) {
            (None, []) => {}
            (Some(first), [what, ..]) => assert!(first.what.contains(what), "{}", first.what),
            (first, _) => panic!("{text}: {first:?}"),
        }
    };
    report(
        &policy("conform-exceed pipe"),
        &["only packets above the rate reach the action `mirred egress redirect dev ifb0`"],
    );
    report(&policy("conform-exceed pipe/pipe"), &[]);
    report(&policy("conform-exceed drop/pipe"), &[]);
    report(
        &policy("conform-exceed drop"),
        &["no packet comes to the action `mirred egress redirect dev ifb0`"],
    );
}

#[test]
fn a_burst_of_seconds_is_no_burst() {
    let tbf = |burst: &str| {
        format!("tc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst {burst} latency 50ms")
    };
    let parts = ["1 warning R12", "burst 500kb lets 510 kB leave at once", "4.1 s"];
    let long = findings_of(&tbf("500kb"), &[Rule::Burst]);
    assert!(long.len() == 1 && long[0].starts_with(parts[0]), "{long:#?}");
    silent(&tbf("100kb"), &[Rule::Burst]);
    let htb = |bursts: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10\n\
             tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit {bursts}"
        )
    };
    let both = findings_of(&htb("burst 500kb cburst 500kb"), &[Rule::Burst]);
    assert!(both.len() == 1 && both[0].contains("leave at once after a pause"), "{both:#?}");
    silent("tc qdisc add dev eth0 root handle 1: tbf rate 8kbit burst 3028 latency 9s", &[Rule::Burst]);
    // One small bucket holds the other back.
    silent(&htb("burst 500kb cburst 15k"), &[Rule::Burst]);
}

/// fq_codel makes room by dropping half of its backlog; fq has a limit for each flow.
#[test]
fn short_limits_of_queues_that_keep_themselves_short() {
    let root = |kind: &str| format!("tc qdisc add dev eth0 root handle 1: {kind}");
    for short in ["fq_codel limit 5", "fq limit 5", "fq flow_limit 5", "codel limit 5", "pie limit 5"] {
        let (kind, words) = short.split_once(' ').expect("two words");
        let what = format!("1 warning R13: {kind} with {words} may drop packets of a single burst");
        check_finding(&root(short), &[Rule::Limit], &[&what]);
    }
    // A bucket's queue is as short however it is said; a time is what was asked for.
    for (limit, level) in [("latency 10ms", "note"), ("limit 2368", "warning"), ("lat 10ms", "note")] {
        let what = format!("1 {level} R13: tbf with {limit} may drop packets of a single burst");
        let policy = root(&format!("tbf rate 256kbit buffer 2kb {limit}"));
        check_finding(&policy, &[Rule::Limit], &[&what, "1 were taken"]);
    }
    for enough in
        ["fq_codel limit 100", "fq limit 100", "fq flow_limit 20", "tbf rate 10mbit burst 20k latency 30ms"]
    {
        silent(&root(enough), &[Rule::Limit]);
    }
}

/// ppp has a transmit queue of three packets, and so have the FIFOs of classes there.
#[test]
fn leaf_queues_are_as_long_as_the_devices() {
    let policy = |dev: &str, more: &str| {
        format!(
            "tc qdisc add dev {dev} root handle 1: htb default 20\n\
             tc class add dev {dev} parent 1: classid 1:10 htb rate 1mbit\n\
             tc class add dev {dev} parent 1: classid 1:20 htb rate 1mbit\n{more}"
        )
    };
    let output_of = |dev: &str, more: &str| {
        let mut reading = crate::common::reading(&[dev], &policy(dev, more));
        let found = tidegate_inspect::check(&mut reading);
        let own = |finding: &&tidegate_inspect::Finding| finding.what.contains("txqueuelen");
        found.iter().find(own).map(|finding| finding.what.clone())
    };
    let both =
        "the FIFOs of class 1:10 and 1 more hold 3 packets: ppp0 has a transmit queue of 3 (txqueuelen)";
    assert_eq!(output_of("ppp0", "").as_deref(), Some(both));
    let one = "tc qdisc add dev ppp0 parent 1:10 fq_codel\n";
    let other = "the FIFO of class 1:20 holds 3 packets: ppp0 has a transmit queue of 3 (txqueuelen)";
    assert_eq!(output_of("ppp0", one).as_deref(), Some(other));
    let none = "tc qdisc add dev ppp0 parent 1:10 fq_codel\ntc qdisc add dev ppp0 parent 1:20 pfifo limit 50";
    assert_eq!(output_of("ppp0", none), None);
    assert_eq!(output_of("eth0", ""), None);
}

/// Asked of the kernel (answers-limits/queue-in-script-0-*): where the transmit queue has length 0, FIFOs
/// without a limit of their own take nothing.
#[test]
fn without_a_transmit_queue_nothing_is_taken() {
    let told = |root: &str| -> Vec<String> {
        let mut given =
            crate::common::given(&["eth0"], &format!("tc qdisc add dev eth0 root handle 1: {root}\n"));
        given.devices[0].1.tx_queue_len = 0;
        let found = tidegate_inspect::check(&mut tidegate_inspect::PolicyModel::new(given));
        let of_limits = found.iter().filter(|finding| finding.rule == Rule::Limit);
        of_limits
            .map(|finding| format!("{:?}: {}: {}", finding.level, finding.what, finding.because))
            .collect()
    };
    let why = "eth0 has a transmit queue of 0 (txqueuelen): whatever comes to it is dropped";
    for root in ["pfifo", "bfifo", "pfifo_head_drop"] {
        assert_eq!(told(root), [format!("Error: the FIFO at the root takes no packet: {why}")]);
    }
    assert_eq!(told("prio"), [format!("Error: the FIFOs of class 1:1 and 2 more take no packet: {why}")]);
    assert_eq!(told("fq_codel"), [""; 0]);
}

#[test]
fn keys_of_flower_without_their_protocol() {
    let policy = |protocol: &str, keys: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: prio\n\
             tc filter add dev eth0 parent 1: protocol {protocol} pref 7 flower {keys} classid 1:1\n"
        )
    };
    let rows = [
        ("all", "ip_tos 0xb8/fc", "`ip_tos` has no effect: it needs protocol ip or ipv6"),
        ("all", "ip_ttl 1", "`ip_ttl` has no effect: it needs protocol ip or ipv6"),
        ("ip", "tcp_flags 2/2", "`tcp_flags` has no effect: it needs ip_proto tcp"),
        ("ip", "ip_proto udp tcp_flags 2/2", "`tcp_flags` has no effect: it needs ip_proto tcp"),
    ];
    for (protocol, keys, what) in rows {
        check_finding(&policy(protocol, keys), &[Rule::Void], &["2 warning R25", what, "preference 7"]);
    }
    let nothing = ["2 error R25", "with this `src_ip` the filter matches no packet", "preference 7"];
    check_finding(&policy("ip", "src_ip 0.0.0.0/0 ip_proto tcp"), &[Rule::Void], &nothing);
    for (protocol, keys) in [
        ("ip", "tcp_flags 2/2 ip_proto tcp"),
        ("ip", "src_ip 0.0.0.0/0 dst_ip 10.0.0.0/8"),
        ("ip", "ip_tos 0xb8/fc"),
        ("ipv6", "ip_ttl 1"),
        ("ip", "ip_proto tcp tcp_flags 2/2"),
        ("ip", "ip_tos 4/0"),
    ] {
        silent(&policy(protocol, keys), &[Rule::Void]);
    }
}

#[test]
fn a_delay_that_varies_by_more_than_itself() {
    let netem = |delay: &str| format!("tc qdisc add dev eth0 root handle 1: netem delay {delay}");
    let parts = ["1 note R25", "the delay of 10 ms has a jitter of 20 ms, more than itself", "leave at once"];
    check_finding(&netem("10ms 20ms"), &[Rule::Void], &parts);
    for fine in ["20ms 10ms", "10ms 10ms", "10ms"] {
        silent(&netem(fine), &[Rule::Void]);
    }
}

/// An echo is a plain message of ICMP.
#[test]
fn a_witness_of_icmp_is_plain() {
    let policy = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                  tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit\n\
                  tc class add dev eth0 parent 1:1 classid 1:2 htb rate 5mbit\n\
                  tc class add dev eth0 parent 1:2 classid 1:20 htb rate 5mbit\n\
                  tc class add dev eth0 parent 1:1 classid 1:30 htb rate 5mbit\n\
                  tc filter add dev eth0 parent 1: protocol ip u32 match ip protocol 1 0xff flowid 1:2";
    let plain = "icmp 192.168.1.10 > 198.51.100.7 len 500 out eth0: 1:30";
    check_finding(policy, &[Rule::Nowhere], &["6 warning R6", plain]);
}

/// What a class of several bands sends depends on the band, where one of them is slow: nothing is said of the
/// others' load then.
#[test]
fn how_long_a_queue_waits_for_a_class_with_a_slow_band_is_not_measured() {
    let policy = |slow: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 20\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate 2mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:10 htb rate 1mbit ceil 2mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:20 htb rate 1mbit ceil 2mbit\n\
             tc qdisc add dev eth0 parent 1:10 handle 10: prio\n\
             tc qdisc add dev eth0 parent 10:2 {slow}\n\
             tc qdisc add dev eth0 parent 1:20 pfifo limit 1000"
        )
    };
    // In Linux 6.1 the last leaves after 6.4 s where all of 1:10 goes to 10:2, after 12.1 s where none does.
    let alone = ["7 warning R13", "all others in it: 6.1 s while the other classes are idle; "];
    check_finding(&policy("tbf rate 100kbit burst 2k limit 100k"), &[Rule::Limit], &alone);
    let busy = ["7 warning R13", "12.1 s while the other classes are busy, 6.1 s when they are idle"];
    check_finding(&policy("fq_codel"), &[Rule::Limit], &busy);
}
