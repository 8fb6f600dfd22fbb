//! The rates in explanations: what Linux 6.1 gives a class, and what it does not.

use super::waits::at_worst;
use crate::common::{check_finding, silent};
use tidegate_inspect::Rule;

const LONG: &str =
    "the pfifo holds 1000 packets: at worst 999 of 1514 bytes are ahead and one has just left, 1.51 MB";

/// The topmost class has no one to borrow from, whatever its ceil is; nor has one without a parent.
#[test]
fn a_ceil_is_reached_where_siblings_lend() {
    let top = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
               tc class add dev eth0 parent 1: classid 1:1 htb rate 5mbit ceil 10mbit\n\
               tc class add dev eth0 parent 1:1 classid 1:30 htb rate 1mbit ceil 10mbit";
    let output = "12.1 s at the 1 Mbit/s it is guaranteed, 2.4 s at the 5 Mbit/s it may have when no other class sends";
    assert_eq!(at_worst(top), format!("{LONG}: {output}\n"));
    let alone = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                 tc class add dev eth0 parent 1: classid 1:30 htb rate 1mbit ceil 10mbit";
    assert_eq!(at_worst(alone), format!("{LONG}: 12.1 s at the 1 Mbit/s it has\n"));
    // A class in between lends of its own rate, though the topmost has less.
    let between = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                   tc class add dev eth0 parent 1: classid 1:1 htb rate 2mbit\n\
                   tc class add dev eth0 parent 1:1 classid 1:2 htb rate 4mbit\n\
                   tc class add dev eth0 parent 1:2 classid 1:30 htb rate 1mbit ceil 10mbit";
    assert!(at_worst(between).contains("3.0 s at the 4 Mbit/s it may have when no other class sends"));
}

/// A class of HTB has its own rate, whatever the class above may send.
#[test]
fn a_guaranteed_rate_is_not_limited_from_above() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                tc class add dev eth0 parent 1: classid 1:1 htb rate 2mbit\n\
                tc class add dev eth0 parent 1:1 classid 1:30 htb rate 5mbit";
    assert_eq!(at_worst(text), format!("{LONG}: 2.4 s at the 5 Mbit/s it has\n"));
    // A tree within a class has no more than that class is assured.
    let within = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                  tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit\n\
                  tc class add dev eth0 parent 1:1 classid 1:30 htb rate 1mbit ceil 10mbit\n\
                  tc qdisc add dev eth0 parent 1:30 handle 2: htb default 10\n\
                  tc class add dev eth0 parent 2: classid 2:10 htb rate 5mbit";
    let output = "12.1 s at the 1 Mbit/s it is guaranteed, 2.4 s at the 5 Mbit/s it may have when no other class sends";
    assert_eq!(at_worst(within), format!("{LONG}: {output}\n"));
}

/// What hangs behind other bands is assured nothing, however fast it may go.
#[test]
fn behind_other_bands_nothing_is_assured() {
    let first = "bands before this one are served first: it waits while they have packets that may leave, \
    indefinitely if they always do\n";
    let tbf = "tc qdisc add dev eth0 root handle 1: prio priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2\n\
               tc qdisc add dev eth0 parent 1:3 handle 30: tbf rate 1mbit burst 5k limit 15140";
    let output = "the bucket's queue holds 15.1 kB, all of which may be ahead, and a frame has just left: 133 ms \
    at the 1 Mbit/s it may have when no other class sends\n";
    assert_eq!(at_worst(tbf), format!("{output}{first}"));
    let netem = tbf.replace("tbf rate 1mbit burst 5k limit 15140", "netem rate 1mbit limit 11");
    assert!(at_worst(&netem).contains("133 ms at the 1 Mbit/s it may have when no other class sends\n"));
    let ets = "tc qdisc add dev eth0 root handle 1: tbf rate 8mbit burst 10k latency 1s\n\
               tc qdisc add dev eth0 parent 1:1 handle 2: ets bands 3 strict 1 quanta 3000 1514 priomap 2 2 2 2";
    assert!(at_worst(ets).contains("strict bands are served first"), "{}", at_worst(ets));
}

/// Of 60 packets of one flow Linux sends ten at once and then two each 12.1 ms.
#[test]
fn fq_limits_each_flow_to_its_rate() {
    let text = "tc qdisc add dev eth0 root handle 1: fq maxrate 2mbit flow_limit 51";
    let output = "holds 51 packets: at worst 50 of 1514 bytes are ahead and one has just left, 77.2 kB: 309 ms \
    at the 2 Mbit/s it";
    assert!(at_worst(text).contains(output), "{}", at_worst(text));
    assert!(at_worst(text).contains("between two turns\n"), "{}", at_worst(text));
}

/// 500 frames of 100 bytes, counted as 159 each, leave Linux in 63.7 ms: 9.98 Mbit/s of the link.
#[test]
fn framing_that_the_class_above_does_not_count_matters_where_more_leaves() {
    let of = |ceil: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit overhead 18 linklayer ethernet\n\
             tc class add dev eth0 parent 1:1 classid 1:10 htb rate 4mbit ceil {ceil} overhead 40 linklayer \
             atm mpu 64"
        )
    };
    silent(&of("10mbit"), &[Rule::Overhead]);
    let parts =
        ["2 warning R16", "with short packets more leaves than its 10 Mbit/s", "13.5 Mbit/s of the link"];
    check_finding(&of("20mbit"), &[Rule::Overhead], &parts);
}

/// What drops early, by its average, says so beside the limit.
#[test]
fn early_drops_are_named() {
    let of = |qdisc: &str| at_worst(&format!("tc qdisc add dev eth0 root handle 1: {qdisc}"));
    let red = of("red limit 100k min 10k max 30k avpkt 1000 bandwidth 5mbit");
    assert!(red.contains("red 1: drops packets at random from an average of 10240 bytes on"), "{red}");
    let marks = of("red limit 100k min 10k max 30k avpkt 1000 bandwidth 5mbit ecn");
    assert!(marks.contains("red 1: drops or marks packets"), "{marks}");
    let choke = of("choke limit 1000 min 50 max 150 bandwidth 5mbit");
    assert!(
        choke.contains("the choke holds 1000 packets") && choke.contains("average of 50 packets on"),
        "{choke}"
    );
    assert!(of("sfb").contains(
        "at random, with a probability that rises with each that finds 20 or more in a bin, and drops a \
            packet whose bins all hold 25 or more"
    ));
    assert!(of("sfb limit 500").contains("the pfifo holds 500 packets"));
    // In Linux 6.1 a burst of 40 to this one leaves its probability at 0 and 34 behind its bins; with a limit
    // of 4 it never comes to them.
    let full = of("sfb limit 100 max 5 target 8");
    assert!(full.contains("sfb 1: drops a packet whose bins all hold 5 or more") && !full.contains("random"));
    assert!(!of("sfb limit 4 max 5 target 8").contains("bins"));
}
