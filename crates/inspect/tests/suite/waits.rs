//! The queueing delays in explanations.

use super::explain::explain;

/// What a packet waits for at worst, of a policy at the root of eth0.
pub(crate) fn waits(policy: &str) -> String {
    let text = explain(&["eth0"], policy, "tcp 192.168.1.10 > 198.51.100.7:443");
    text.lines().filter(|line| line.starts_with("  ")).map(|line| format!("{}\n", line.trim())).collect()
}

/// Without the path.
pub(crate) fn at_worst(policy: &str) -> String {
    let text = explain(&["eth0"], policy, "tcp 192.168.1.10 > 198.51.100.7:443");
    let (_, end) = text.split_once("ends: ").expect("an end");
    end.lines().skip(1).map(|line| format!("{}\n", line.trim())).collect()
}

#[test]
fn the_queue_inside_netem_is_explained() {
    let delay = "netem holds it back for 20.0 ms\n";
    let story = |netem: &str, rest: &str| {
        let text = waits(&format!("tc qdisc add dev eth0 root handle 1: netem {netem}\n{rest}"));
        let from = text.find("netem holds").expect("it does");
        text[from..].to_owned()
    };
    assert_eq!(story("delay 20ms", ""), delay);
    assert_eq!(
        story("delay 20ms rate 1mbit limit 100", ""),
        "netem holds it back for 20.0 ms, and until its rate of 1 Mbit/s lets it go\n\
         the queue inside netem holds 100 packets: at worst 99 of 1514 bytes are ahead and one has \
         just left, 151 kB: 1.2 s at the \
         1 Mbit/s it has\n"
    );
    let bucket = "tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 1mbit burst 5k limit 15000";
    assert_eq!(
        story("delay 20ms", bucket),
        format!(
            "{delay}then it waits in tbf 10:, which hangs in netem\nthe queue holds 15 kB, all of which may \
            be ahead, and a frame has just left: 132 ms at the 1 Mbit/s it has\nnetem 1: takes no more than 1000 packets, those that \
            wait below it included\n"
        )
    );
}

#[test]
fn frames_cost_what_the_size_table_has() {
    let of = |stab: &str| {
        waits(&format!(
            "tc qdisc add dev eth0 root handle 1: {stab} htb default 10\n\
             tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n\
             tc qdisc add dev eth0 parent 1:10 pfifo limit 101\n"
        ))
        .split_once("the queue holds")
        .map_or_else(String::new, |(_, output)| format!("the queue holds{output}"))
    };
    let ahead =
        "the queue holds 101 packets: at worst 100 of 1514 bytes are ahead and one has just left, 153 kB";
    assert_eq!(of(""), format!("{ahead}: 1.2 s at the 1 Mbit/s it has\n"));
    // 1,514 and 44 bytes take 33 cells of 48 bytes, 53 on the line.
    assert_eq!(
        of("stab overhead 44 linklayer atm"),
        format!("{ahead}, which stab counts as 177 kB: 1.4 s at the 1 Mbit/s it has\n")
    );
}

/// What a queue is held near follows from what the engine has: CAKE's tin waits for a frame and a half at
/// least, CoDel for one frame.
#[test]
fn targets_are_those_in_force() {
    let waits = |policy: &str| {
        let story = explain(&["eth0"], policy, "tcp 10.0.0.1:1 > 192.0.2.1:443 out eth0");
        story
            .lines()
            .filter(|line| line.contains("held near") || line.contains("rtt"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let cake = |words: &str| waits(&format!("tc qdisc add dev eth0 root cake besteffort bandwidth {words}"));
    assert_eq!(cake("9mbit"), "  its queue is held near 5 ms, as long as senders heed losses and marks");
    assert_eq!(cake("1mbit"), "  its queue is held near 18 ms, as long as senders heed losses and marks");
    // A bare number is microseconds to tc.
    assert_eq!(
        cake("9mbit rtt 20"),
        "  its queue is held near 2 ms, as long as senders heed losses and marks\n  its rtt is 20 µs: it \
        drops sooner than senders farther away than that can slow down, which costs them throughput"
    );
    assert_eq!(
        cake("9gbit rtt 20"),
        "  its queue is held near 2 µs, as long as senders heed losses and marks\n  its rtt is 20 µs: it \
        drops sooner than senders farther away than that can slow down, which costs them throughput"
    );
    let codel = |rate: &str| {
        waits(&format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10\ntc class add dev eth0 parent 1: classid \
            1:10 htb rate {rate}\n\
             tc qdisc add dev eth0 parent 1:10 fq_codel"
        ))
    };
    assert_eq!(codel("9mbit"), "  its queue is held near 5 ms, as long as senders heed losses and marks");
    assert_eq!(
        codel("100kbit"),
        "  its queue is held near one frame, as long as senders heed losses and marks: that takes 121 ms \
        here, more than its target of 5 ms"
    );
}

/// bfifo counts bytes. Where a turn is shorter than a frame, others send a frame between two of its packets:
/// Linux 6.1 was asked, 11 flows of full frames with a quantum of 300 leave 15,140 bytes apart.
#[test]
fn queues_are_explained_in_their_own_units() {
    let of = |queue: &str| {
        let policy = format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 6mbit
tc qdisc add dev eth0 parent 1:10 handle 10: {queue}"
        );
        explain(&["eth0"], &policy, "tcp 10.0.0.1:4000 > 10.9.0.1:53 len 1500")
    };
    let bytes = of("bfifo limit 6k");
    assert!(
        bytes.contains("the queue holds 6.14 kB, all of which may be ahead, and a frame has just left: 10 ms at the 6 Mbit/s"),
        "{bytes}"
    );
    let short = of("fq_codel quantum 300");
    let wanted = "flows take turns of 300 bytes: with 10 others, 15140 bytes between two packets of this \
    length: 20 ms";
    assert!(short.contains(wanted), "{short}");
    let plain = of("fq_codel quantum 1514");
    assert!(
        plain
            .contains("flows take turns of 1514 bytes: with 10 others, 15140 bytes between two turns: 20 ms"),
        "{plain}"
    );
}

/// Linux 6.1 was asked: beside a busy 1:10, 1:20 gets 1.00 Mbit/s (its link sharing is a weight), and 1:13
/// alone sends 2.00 Mbit/s (real time knows no upper limit).
#[test]
fn link_sharing_is_no_rate_and_real_time_has_no_limit() {
    let shared = "tc qdisc add dev eth0 root handle 1: hfsc default 20
tc class add dev eth0 parent 1: classid 1:1 hfsc ls m2 10mbit ul m2 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 hfsc rt m2 9mbit ls m2 9mbit
tc class add dev eth0 parent 1:1 classid 1:20 hfsc ls m2 9mbit
tc qdisc add dev eth0 parent 1:20 pfifo limit 50
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 5060 0xffff flowid 1:10";
    let waits = |policy: &str, words: &str| {
        let story = explain(&["eth0"], policy, words);
        story.split_once("ends: ").expect("an end").1.to_owned()
    };
    assert_eq!(
        waits(shared, "udp 10.0.0.1:4000 > 10.9.0.1:53"),
        "eth0 1:1 1:20, pfifo 8001:
  the queue holds 50 packets: at worst 49 of 1514 bytes are ahead and one has just left, 75.7 kB: 61 ms at the 10 Mbit/s it may \
  have when no other class sends
  its link sharing is a weight, not a rate: what others send decides how much it gets beside them
"
    );
    let real = waits(shared, "udp 10.0.0.1:4000 > 10.9.0.1:5060");
    assert!(real.contains("at the 9 Mbit/s it is guaranteed") && !real.contains("weight"), "{real}");
    let above_limit = "tc qdisc add dev eth0 root handle 1: hfsc default 13
tc class add dev eth0 parent 1: classid 1:1 hfsc ls m2 10mbit ul m2 10mbit
tc class add dev eth0 parent 1:1 classid 1:13 hfsc sc m2 2mbit ul m2 1mbit";
    let above_limit = waits(above_limit, "udp 10.0.0.1:4000 > 10.9.0.1:53");
    assert!(above_limit.contains("6.1 s at the 2 Mbit/s it has\n"), "{above_limit}");
}

/// Linux 6.1, asked with 20 packets: with `netem limit 5` above a tbf five are queued in all, and the others
/// are dropped at netem.
#[test]
fn a_queue_inside_netem_is_no_longer_than_netems_limit() {
    let bucket = "tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 100kbit burst 2000 limit 100000";
    let fifo = "tc qdisc add dev eth0 parent 1:1 handle 10: pfifo limit 1000";
    for inner in [bucket, fifo] {
        let output = waits(&format!("tc qdisc add dev eth0 root handle 1: netem delay 1ms limit 5\n{inner}"));
        assert!(output.contains("the netem holds 5 packets: at worst 4 of 1514 bytes are ahead"), "{output}");
        assert!(!output.contains("1000") && !output.contains("100 kB"), "{output}");
    }
    let short = "tc qdisc add dev eth0 parent 1:1 handle 10: pfifo limit 3";
    let output = waits(&format!("tc qdisc add dev eth0 root handle 1: netem delay 1ms limit 5\n{short}"));
    assert!(output.contains("the queue holds 3 packets: at worst 2 of 1514 bytes are ahead"), "{output}");
}

/// Beside full tins each keeps to its threshold, and the tin of the whole rate has the rest. Linux 6.1,
/// diffserv4 at 9 Mbit/s, each tin offered 12 Mbit/s (1514 of 1538 bytes count): Bulk beside Best Effort
/// 0.553, beside all 0.553; Voice beside Best Effort 2.216; Voice offered 1.21 beside Best Effort 1.21; Voice
/// and Bulk alone, both above theirs, 8.228 and 0.630.
#[test]
fn a_tin_has_a_threshold_above_which_it_waits_for_those_below_theirs() {
    let tin = |tos: &str| {
        let policy = "tc qdisc add dev eth0 root cake bandwidth 9mbit diffserv4";
        let story = explain(&["eth0"], policy, &format!("udp 10.0.0.1:4 > 10.9.0.1:53 dscp {tos}"));
        story.lines().find(|line| line.contains(" puts it in tin ")).map(|line| line.trim().to_owned())
    };
    let above = "above that, tins below theirs go first";
    for (tos, text) in [
        (
            "cs0",
            "its DSCP 0 puts it in tin Best Effort of diffserv4, with a threshold of 9 Mbit/s, the whole rate"
                .to_owned(),
        ),
        ("cs1", format!("its DSCP 8 puts it in tin Bulk of diffserv4, with a threshold of 562 kbit/s: \
        {above}")),
        ("ef", format!("its DSCP 46 puts it in tin Voice of diffserv4, with a threshold of 2.25 Mbit/s: \
        {above}")),
    ] {
        assert_eq!(tin(tos).as_deref(), Some(text.as_str()));
    }
}

/// Linux 6.1, 40 packets a millisecond apart through `delay 50ms reorder 25% 50% gap 5`: 2 leave at once, all
/// others after 50 ms.
#[test]
fn netems_reordering_and_loss_are_explained() {
    let netem = |options: &str| at_worst(&format!("tc qdisc add dev eth0 root netem delay 50ms {options}"));
    let delay = "netem holds it back for 50.0 ms";
    for (options, text) in [
        ("", ""),
        ("reorder 25%", ", unless it goes ahead at once (reorder): a chance of 25 %"),
        (
            "reorder 25% 50% gap 5",
            ", unless it goes ahead at once (reorder): once 4 before it were held back, a chance of 25 % \
            (correlation 50 %)",
        ),
        ("reorder 100% gap 5", ", unless it goes ahead at once (reorder): once 4 before it were held back"),
        ("loss 5%", "; a chance of 5 % that it is lost"),
        ("loss 0.1% 25%", "; a chance of 0.1 % (correlation 25 %) that it is lost"),
        ("loss 5% ecn", "; a chance of 5 % that it is lost, or marked if it can be (ecn)"),
        ("loss gemodel 1% 10% 70% 0.1%", "; it may be lost, by gemodel"),
    ] {
        let message = netem(options);
        assert_eq!(
            message.lines().find(|line| line.starts_with("netem")),
            Some(format!("{delay}{text}").as_str()),
            "{options}: {message}"
        );
    }
}

/// Linux 6.1: ten full frames of such a class take 4.00 ms at 35 Mbit/s, 33 cells each.
#[test]
fn a_class_counts_frames_with_its_own_framing() {
    let policy = |inner: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 1\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate 35mbit ceil 35mbit overhead 34 mpu 68 \
             linklayer atm\n\
             tc qdisc add dev eth0 parent 1:1 handle 2: {inner}"
        )
    };
    let turns = at_worst(&policy("fq_codel"));
    let output = "flows take turns of 1514 bytes: with 10 others, 15140 bytes between two turns: 4.0 ms at \
    the 35 Mbit/s it has\n";
    assert!(turns.contains(output), "{turns}");
    assert_eq!(
        at_worst(&policy("pfifo limit 101")),
        "the queue holds 101 packets: at worst 100 of 1514 bytes are ahead and one has just left, 153 kB, which the shaper counts \
        as 177 kB: 40 ms at the 35 Mbit/s it has\n"
    );
    assert_eq!(
        at_worst(&policy("bfifo limit 151400")),
        "the queue holds 151 kB, all of which may be ahead, and a frame has just left: 40 ms at the 35 Mbit/s it has\n"
    );
}

/// Cake without `nat` on the outside of MASQUERADE sees one host.
#[test]
fn hosts_behind_nat_are_one_to_a_cake_without_nat() {
    let sharing = |nat: &str, cake: &str| {
        let output = at_worst(&format!("{nat}tc qdisc add dev eth0 root cake bandwidth 20mbit {cake}"));
        output.lines().nth(1).map(str::to_owned).unwrap_or_default()
    };
    let nat = "iptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE\n";
    let one = "it sees the source as NAT left it (no `nat`): hosts behind one address are one there";
    for (mode, turns) in [
        ("dual-srchost", ", whose conversations take turns"),
        ("triple-isolate", ", whose conversations take turns"),
        ("srchost", ""),
        ("hosts", ""),
    ] {
        assert_eq!(sharing(nat, mode), format!("{one}{turns} ({mode})"));
        assert!(sharing(nat, &format!("{mode} nat")).starts_with("hosts take turns there"), "{mode}");
        assert!(sharing("", mode).starts_with("hosts take turns there"), "{mode}");
    }
    for mode in ["dual-dsthost", "dsthost"] {
        assert!(sharing(nat, mode).starts_with("hosts take turns there"), "{mode}");
    }
}

/// A queue of one packet has no one ahead, but a shaper lets it go only when the packet before is paid for.
#[test]
fn a_queue_of_one_packet_waits_for_the_one_that_left() {
    let story = waits(
        "tc qdisc add dev eth0 root handle 1: htb default 10\n\
         tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n\
         tc qdisc add dev eth0 parent 1:10 pfifo limit 1\n",
    );
    let expected =
        "the queue holds one packet: at worst one of 1514 bytes has just left: 12 ms at the 1 Mbit/s it has";
    assert!(story.contains(expected), "{story}");
}

/// As many others take turns as there are queues for.
#[test]
fn few_queues_take_few_turns() {
    let of = |queue: &str| {
        at_worst(&format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10\n\
             tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n\
             tc qdisc add dev eth0 parent 1:10 {queue}\n"
        ))
    };
    for one in ["fq_codel flows 1", "fq_pie flows 1"] {
        let text = of(one);
        assert!(text.starts_with("it has one queue, which all flows share\n"), "{text}");
        assert!(!text.contains("take turns"), "{text}");
    }
    for (queue, others) in [
        ("fq_codel flows 2", "with 1 other, 1514 bytes"),
        ("sfq flows 4 perturb 10", "with 3 others, 4542 bytes"),
        ("fq_codel", "with 10 others, 15140 bytes"),
        ("fq quantum 1514 initial_quantum 1514", "with 10 others, 15140 bytes"),
    ] {
        let text = of(queue);
        assert!(text.starts_with(&format!("flows take turns of 1514 bytes: {others}")), "{text}");
    }
    // Linux 6.1 was asked, at 2 Mbit/s beside ten others: from one packet of a flow to the next it takes
    // 612 ms in fq and 127 in sfq with this quantum, its own 6 included.
    assert!(of("fq").contains("of 3028 bytes, a new one's first of 15140: with 10 others, 151400 bytes"));
    assert!(of("sfq quantum 1600").contains("of 1600 bytes: with 10 others, 30280 bytes"));
}
