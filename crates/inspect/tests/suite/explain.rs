//! Stories of packets: told by the engine, so that words and engine cannot part.

use crate::common;

use common::reading;
use std::fmt::Write as _;
use tidegate_inspect::{Explainer, Outcome, Packet, Story};
use tidegate_packet::{Draws, Seeded};

fn told(story: &Story) -> String {
    let mut text = String::new();
    for scene in &story.scenes {
        let _ = writeln!(text, "{}", scene.title);
        for line in &scene.lines {
            let sign = match line.outcome {
                Outcome::Met => '+',
                Outcome::Passed => '-',
                Outcome::Told => ' ',
            };
            let place = line.place.as_ref().map_or(String::new(), |place| format!(" :{}", place.line));
            let _ = writeln!(text, " {sign} {}{place}", line.what);
            line.why.iter().for_each(|why| text.push_str(&format!("     {why}\n")));
        }
    }
    let _ = writeln!(text, "ends: {}", story.end.text);
    story.end.waits.iter().for_each(|wait| text.push_str(&format!("  {wait}\n")));
    text
}

fn explain(devices: &[&str], policy: &str, words: &str) -> String {
    let reading = reading(devices, policy);
    let mut explainer = Explainer::new(&reading);
    let packet = Packet::parse(words).expect(words);
    let course = explainer.course(&packet).expect(words);
    told(&explainer.explain(&packet, course))
}

const CHAINS: &str = "\
iptables -t mangle -N MARKS
iptables -t mangle -A MARKS -m mark ! --mark 0 -j RETURN
iptables -t mangle -A MARKS -p tcp --dport 22 -j MARK --set-mark 5
iptables -t mangle -A MARKS -p tcp --syn -j DSCP --set-dscp-class EF
iptables -t mangle -A PREROUTING -i eth1 -j MARKS
iptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE
iptables -t mangle -A POSTROUTING -d 10.0.0.0/8 -j ACCEPT
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 400kbit ceil 1mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 600kbit ceil 1mbit
tc qdisc add dev eth0 parent 1:20 handle 20: prio
tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip src 10.0.0.1/32 flowid 1:10
tc filter add dev eth0 parent 1: protocol ip pref 2 handle 5 fw flowid 1:1
tc filter add dev eth0 parent 1:1 protocol ip pref 1 u32 match ip dport 22 0xffff match ip tos 0x10 0xff flowid 1:10";

#[test]
fn chains_jumps_translation_and_inner_classes() {
    let story = explain(&["eth0", "eth1"], CHAINS, "tcp 10.0.0.1:40000 > 10.9.9.9:22 syn len 60 in eth1");
    assert_eq!(
        story,
        "\
netfilter prerouting, in eth1: table mangle
 + PREROUTING: -i eth1 -j MARKS :5
     on in chain MARKS
 - MARKS: -m mark ! --mark 0x0 -j RETURN :2
     `-m mark ! --mark 0x0` does not hold: the mark is 0x0
 + MARKS: -p tcp -m tcp --dport 22 -j MARK --set-xmark 0x5/0xffffffff :3
     mark 0x0 → 0x5
 + MARKS: -p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -j DSCP --set-dscp 0x2e :4
     code point CS0 (0x00) → EF (0x2e)
routing
   priority from the TOS bits
     TOS 0xb8 & 0x18 = 0x18: priority 4
netfilter postrouting, out eth0: table mangle
 + POSTROUTING: -d 10.0.0.0/8 -j ACCEPT :7
     it is accepted, and leaves this table here
netfilter postrouting, out eth0: table nat
 + POSTROUTING: -o eth0 -j MASQUERADE :6
     its connection is translated: MASQUERADE
leaves by eth0
   qdisc htb 1: :8
 - pref 1 u32 src 10.0.0.1/32 → 1:10 :13
     source 192.0.2.2, not 10.0.0.1
 + pref 2 fw mark 0x5 → 1:1 :14
     mark 0x5 = 0x5
   1:1 has classes below it: its own filters are asked next
 - pref 1 u32 dport 22, tos 0x10/0xff → 1:10 :15
     destination port 22 = 22
     TOS 0xb8, not 0x10
   no filter decides: the default class 1:20
   class 1:1: rate 1Mbit ceil 1Mbit prio 0 :9
   class 1:20: rate 600Kbit ceil 1Mbit prio 0 :11
   qdisc prio 20: :12
   priority 4 is band 1 by the map: 20:2
   class 20:2
ends: eth0 1:1 1:20 20:2, pfifo by default
  the pfifo holds 1000 packets: at worst 999 of 1514 bytes are ahead, 1.51 MB: 12.1 s at the 1 Mbit/s it may have when nobody else sends
  a band before it goes first as long as it has anything to send: it may wait without end
"
    );
}

const ACTING: &str = "\
tc qdisc add dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip pref 1 flower ip_proto udp dst_port 5060 action skbedit mark 7 priority 1:1
tc filter add dev eth0 parent 1: protocol ip pref 2 u32 match ip protocol 1 0xff police rate 100kbit burst 10k conform-exceed drop/ok flowid 1:1
tc filter add dev eth0 parent 1: protocol ip pref 3 basic match cmp(u8 at 9 layer network eq 17) flowid 1:3
tc filter add dev eth0 parent 1: protocol ip pref 4 matchall action police rate 1mbit burst 20k drop";

/// Filters that edit, police and compare: what a filter writes into the packet is no reason for where the packet went before.
#[test]
fn filters_that_act_are_told_as_the_engine_took_them() {
    let ends = |words: &str| {
        let story = explain(&["eth0"], ACTING, words);
        story.lines().find_map(|line| line.strip_prefix("ends: ").map(str::to_owned)).expect("an end")
    };
    let found = [
        "udp 10.0.0.1:4000 > 10.9.0.1:5060",
        "udp 10.0.0.1:4000 > 10.9.0.1:53",
        "icmp 10.0.0.1 > 10.9.0.1",
        "tcp 10.0.0.1:4000 > 10.9.0.1:80",
    ]
    .map(ends);
    // Without a class of its own a filter leaves prio its default for priority 0: the second band.
    let wanted = ["1:2", "1:3", "1:1", "1:2"].map(|class| format!("eth0 {class}, pfifo by default"));
    assert_eq!(found, wanted);
}

#[test]
fn what_loses_it_is_the_last_thing_told() {
    let policy = "\
iptables -t filter -P FORWARD DROP
iptables -t filter -A FORWARD -p udp -j ACCEPT
tc qdisc add dev eth0 root handle 1: drr
tc class add dev eth0 parent 1: classid 1:1 drr
tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip dport 9 0xffff action drop
tc filter add dev eth0 parent 1: protocol ip pref 2 u32 match ip dport 53 0xffff flowid 1:1";
    let tail = |words: &str| {
        let story = explain(&["eth0"], policy, words);
        story.lines().rev().take(3).map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        tail("tcp 10.0.0.1 > 10.0.0.2:5"),
        ["ends: lost at eth0: a rule of netfilter drops it", "it is dropped", "+ FORWARD: policy DROP at its end"]
    );
    assert_eq!(
        tail("udp 10.0.0.1 > 10.0.0.2:9"),
        ["ends: lost at eth0: a filter drops it (by 1:)", "1 filter behind it: not asked", "it is dropped"]
    );
    assert_eq!(
        tail("udp 10.0.0.1 > 10.0.0.2:5"),
        [
            "ends: lost at eth0: no class takes it (by 1:)",
            "no filter decides: no class takes it",
            "destination port 5, not 53"
        ]
    );
}

/// A policy of random filters and rules, some of which can match.
fn random_policy(draws: &mut Seeded) -> String {
    let root = ["htb default 30", "hfsc default 30", "prio bands 5", "drr"][draws.below(4) as usize];
    let kind = root.split(' ').next().unwrap_or_default();
    let mut policy = format!("tc qdisc add dev eth0 root handle 1: {root}\n");
    for class in ["1:1", "1:10", "1:20", "1:30"] {
        let parent = if class == "1:1" || kind == "drr" || draws.below(3) == 0 { "1:" } else { "1:1" };
        let made = match kind {
            "htb" => "htb rate 1mbit",
            "hfsc" => "hfsc sc rate 1mbit",
            "drr" => "drr",
            // prio has its bands from the start.
            _ => continue,
        };
        let _ = writeln!(policy, "tc class add dev eth0 parent {parent} classid {class} {made}");
    }
    for _ in 0..draws.below(8) {
        let parent = if kind == "htb" && draws.below(3) == 0 { "1:1" } else { "1:" };
        let protocol = ["ip", "ip", "ipv6", "all"][draws.below(4) as usize];
        let class = ["1:1", "1:10", "1:20", "1:30", "1:99", "1:2"][draws.below(6) as usize];
        let pref = 1 + draws.below(4) * 10 + u32::from(protocol != "ip") * [1, 2][usize::from(protocol == "all")];
        let _ = match draws.below(6) {
            0 => {
                let mark = 1 + draws.below(3);
                let pref = pref + 5;
                writeln!(
                    policy,
                    "tc filter add dev eth0 parent {parent} protocol {protocol} pref {pref} handle {mark} fw flowid {class}"
                )
            }
            1 => {
                let pref = pref + 3;
                writeln!(
                    policy,
                    "tc filter add dev eth0 parent {parent} protocol {protocol} pref {pref} matchall flowid {class}"
                )
            }
            _ => {
                let (at, mask) = (4 * draws.below(14), draws.u32() & draws.u32() & draws.u32() & draws.u32());
                let mask = if draws.below(2) == 0 { mask & 0xf0 } else { mask };
                let value = draws.u32() & mask & if draws.below(3) > 0 { 0 } else { u32::MAX };
                writeln!(
                    policy,
                    "tc filter add dev eth0 parent {parent} protocol {protocol} pref {pref} u32 match u32 {value:#x} {mask:#x} at {at} flowid {class}"
                )
            }
        };
    }
    for _ in 0..draws.below(8) {
        let tool = ["iptables", "iptables", "ip6tables"][draws.below(3) as usize];
        let chain = ["PREROUTING", "FORWARD", "POSTROUTING"][draws.below(3) as usize];
        let asks = [
            "-p tcp",
            "-p udp ! --dport 53",
            "-m mark --mark 1/1",
            "-m length --length 0:200",
            "-m conntrack --ctstate NEW",
            "",
        ][draws.below(6) as usize];
        let does = [
            "-j MARK --set-mark 1",
            "-j MARK --or-mark 2",
            "-j CONNMARK --save-mark",
            "-j CONNMARK --restore-mark",
            "-j DSCP --set-dscp 10",
            "-j ACCEPT",
        ][draws.below(6) as usize];
        let _ = writeln!(policy, "{tool} -t mangle -A {chain} {asks} {does}");
    }
    policy
}

#[test]
fn stories_and_engine_never_part() {
    let mut draws = Seeded::new(7);
    let words = [
        "tcp 192.168.1.7:22 > 203.0.113.9:443 dscp AF21 len 60",
        "udp 192.168.1.7:5060 > 203.0.113.9:53 dscp EF len 200 mark 2",
        "udp 192.168.1.7:5060 > 203.0.113.9:54 len 30",
        "tcp [2001:db8::7]:22 > [2001:db8::9]:443 syn len 80",
        "icmp 192.168.1.7 > 203.0.113.9 tos 0x10 established",
        "arp 192.168.1.7 > 192.168.1.1",
        "tcp 192.168.1.7:22 > 203.0.113.9:443 priority 1:20 in lo",
    ];
    let mut met = 0;
    for _ in 0..400 {
        // What the kernel refuses is no matter here: it is left out of the machine, as of the story.
        let reading = reading(&["eth0", "eth1"], &random_policy(&mut draws));
        let mut explainer = Explainer::new(&reading);
        for words in words {
            let packet = Packet::parse(words).expect(words);
            let course = explainer.course(&packet).expect("one device is governed");
            // Debug builds compare each line with what the engine noted, counted and chose.
            let story = explainer.explain(&packet, course);
            met +=
                story.scenes.iter().flat_map(|scene| &scene.lines).filter(|line| line.outcome == Outcome::Met).count();
        }
    }
    assert!(met > 2000, "{met} filters and rules matched");
}

/// What a packet waits for at worst, of a policy at the root of eth0.
fn waits(policy: &str) -> String {
    let text = explain(&["eth0"], policy, "tcp 192.168.1.10 > 198.51.100.7:443");
    text.lines().filter(|line| line.starts_with("  ")).map(|line| format!("{}\n", line.trim())).collect()
}

/// The same without the way there.
fn at_worst(policy: &str) -> String {
    let text = explain(&["eth0"], policy, "tcp 192.168.1.10 > 198.51.100.7:443");
    let (_, end) = text.split_once("ends: ").expect("an end");
    end.lines().skip(1).map(|line| format!("{}\n", line.trim())).collect()
}

#[test]
fn the_queue_inside_netem_is_told() {
    let delay = "netem holds it back for 20.0 ms\n";
    let story = |netem: &str, rest: &str| {
        let text = waits(&format!("tc qdisc add dev eth0 root handle 1: netem {netem}\n{rest}"));
        let from = text.find("netem holds").expect("it does");
        text[from..].to_owned()
    };
    assert_eq!(story("delay 20ms", ""), delay);
    assert_eq!(
        story("delay 20ms rate 1mbit limit 100", ""),
        format!(
            "{delay}the queue inside netem holds 100 packets: at worst 99 of 1514 bytes are ahead, 150 kB: 1.2 s at the \
             1 Mbit/s it has\n"
        )
    );
    let bucket = "tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 1mbit burst 5k limit 15000";
    assert_eq!(
        story("delay 20ms", bucket),
        format!(
            "{delay}then it waits in tbf 10:, which hangs in netem\nthe queue holds 15 kB, all of which may be ahead: 120 ms \
             at the 1 Mbit/s it has\nnetem 1: takes no more than 1000 packets, those that wait below it included\n"
        )
    );
}

#[test]
fn frames_cost_what_the_size_table_says() {
    let of = |stab: &str| {
        waits(&format!(
            "tc qdisc add dev eth0 root handle 1: {stab} htb default 10\n\
             tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n\
             tc qdisc add dev eth0 parent 1:10 pfifo limit 101\n"
        ))
        .split_once("the queue holds")
        .map_or_else(String::new, |(_, told)| format!("the queue holds{told}"))
    };
    let ahead = "the queue holds 101 packets: at worst 100 of 1514 bytes are ahead, 151 kB";
    assert_eq!(of(""), format!("{ahead}: 1.2 s at the 1 Mbit/s it has\n"));
    // 1,514 and 44 bytes take 33 cells of 48 bytes, 53 on the line.
    assert_eq!(
        of("stab overhead 44 linklayer atm"),
        format!("{ahead}, which stab counts as 175 kB: 1.4 s at the 1 Mbit/s it has\n")
    );
}

#[test]
fn a_filter_that_names_no_class_ends_the_search() {
    let of = |root: &str, filter: &str| {
        let policy = format!(
            "tc qdisc add dev eth0 root handle 1: {root}\n\
             tc filter add dev eth0 parent 1: protocol ip prio 1 {filter}\n\
             tc filter add dev eth0 parent 1: protocol ip prio 2 matchall classid 1:1\n"
        );
        let text = explain(&["eth0"], &policy, "tcp 192.168.1.10 > 198.51.100.7:443");
        text.lines().find(|line| line.contains("names no class")).unwrap_or("none").trim().to_owned()
    };
    let band = "the filter that matches names no class: the band of priority 0, 1:2";
    assert_eq!(of("prio", "u32 match ip protocol 6 0xff action skbedit priority 6"), band);
    assert_eq!(of("prio", "matchall action skbedit priority 6"), band);
    assert_eq!(of("prio", "u32 match ip protocol 17 0xff action skbedit priority 6"), "none");
    assert_eq!(
        of(
            "htb default 1\ntc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit",
            "u32 match ip protocol 6 0xff action skbedit priority 6"
        ),
        "the filter that matches names no class: the default class 1:1"
    );
}

#[test]
fn conditions_of_basic_and_flower_are_told_one_by_one() {
    let policy = "\
tc qdisc add dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip prio 1 basic match cmp(u8 at 9 layer network eq 6) and cmp(u16 at 2 layer transport gt 1000) flowid 1:1
tc filter add dev eth0 parent 1: protocol ip prio 2 basic match cmp(u16 at 2 layer transport eq 22) or cmp(u16 at 2 layer transport eq 443) flowid 1:2
tc filter add dev eth0 parent 1: protocol ip prio 3 flower ip_proto tcp dst_port 443 flowid 1:3";
    let text = explain(&["eth0"], policy, "tcp 192.168.1.10 > 198.51.100.7:443");
    let of_tree = text.split("leaves by eth0\n").nth(1).expect("its way");
    let expected = "    qdisc prio 1: :1
 - pref 1 basic cmp(u8 at 9 layer network eq 6) and cmp(u16 at 2 layer transport gt 1000) → 1:1 :2
     `cmp(u8 at 9 layer network eq 6)` holds
     `cmp(u16 at 2 layer transport gt 1000)` does not hold
 + pref 2 basic cmp(u16 at 2 layer transport eq 22) or cmp(u16 at 2 layer transport eq 443) → 1:2 :3
     `cmp(u16 at 2 layer transport eq 22)` does not hold
     `cmp(u16 at 2 layer transport eq 443)` holds
";
    assert!(of_tree.trim_start().starts_with(expected.trim_start()), "{of_tree}");
    let udp = explain(&["eth0"], policy, "udp 192.168.1.10 > 198.51.100.7:53");
    let flower = udp.split("pref 3 flower").nth(1).expect("it is asked");
    assert!(flower.contains("`ip_proto tcp` does not hold: the protocol is udp\n"), "{udp}");
    assert!(!flower.contains("dst_port 443`"), "{udp}");
}

/// A policer's word is what it counted: what is longer than its mtu, or than its burst, goes over its limits.
#[test]
fn a_policer_says_what_it_did() {
    let of = |limits: &str| {
        let policy = format!(
            "tc qdisc add dev eth0 handle ffff: ingress\n\
             tc filter add dev eth0 parent ffff: protocol all matchall action police rate 10mbit {limits} conform-exceed drop"
        );
        explain(&["eth0"], &policy, "tcp 192.0.2.1:80 > 198.51.100.1:1024 len 1500 in eth0")
    };
    let over = "     it is over the policer's limits (rate, burst or mtu): it is dropped\n";
    for (limits, wanted) in [("burst 100k mtu 1k", true), ("burst 1k", true), ("burst 100k", false)] {
        let story = of(limits);
        assert_eq!((story.contains(over), story.contains("ends: lost at eth0")), (wanted, wanted), "{limits}: {story}");
    }
}

/// HTB's default class is a leaf whatever hangs in it; what that does not keep is lost there.
#[test]
fn a_default_class_with_a_qdisc_in_it_has_no_classes_below_it() {
    let policy = "\
tc qdisc add dev eth0 root handle 1: htb default 1
tc class add dev eth0 parent 1: classid 1:1 htb rate 4mbit
tc qdisc add dev eth0 parent 1:1 handle 2: drr
tc class add dev eth0 parent 2: classid 2:1 drr quantum 1600";
    let story = explain(&["eth0"], policy, "tcp 192.168.1.10 > 198.51.100.7:443 out eth0");
    assert!(story.contains("no filter decides: the default class 1:1\n"), "{story}");
    assert!(!story.contains("below it") && story.contains("ends: lost at eth0"), "{story}");
}

/// What a queue is held near follows from what the engine has: CAKE's tin waits for a frame and a half at least, CoDel
/// for one frame.
#[test]
fn targets_are_those_in_force() {
    let waits = |policy: &str| {
        let story = explain(&["eth0"], policy, "tcp 10.0.0.1:1 > 192.0.2.1:443 out eth0");
        story.lines().filter(|line| line.contains("held near") || line.contains("rtt")).collect::<Vec<_>>().join("\n")
    };
    let cake = |words: &str| waits(&format!("tc qdisc add dev eth0 root cake besteffort bandwidth {words}"));
    assert_eq!(cake("9mbit"), "  its queue is held near 5 ms, as long as senders heed losses and marks");
    assert_eq!(cake("1mbit"), "  its queue is held near 18 ms, as long as senders heed losses and marks");
    // A bare number is microseconds to tc.
    assert_eq!(
        cake("9mbit rtt 20"),
        "  its queue is held near 2 ms, as long as senders heed losses and marks\n  its rtt is 20 µs: it drops sooner than \
         senders farther away than that can slow down, which costs them throughput"
    );
    assert_eq!(
        cake("9gbit rtt 20"),
        "  its queue is held near 2 µs, as long as senders heed losses and marks\n  its rtt is 20 µs: it drops sooner than \
         senders farther away than that can slow down, which costs them throughput"
    );
    let codel = |rate: &str| {
        waits(&format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10\ntc class add dev eth0 parent 1: classid 1:10 htb rate {rate}\n\
             tc qdisc add dev eth0 parent 1:10 fq_codel"
        ))
    };
    assert_eq!(codel("9mbit"), "  its queue is held near 5 ms, as long as senders heed losses and marks");
    assert_eq!(
        codel("100kbit"),
        "  its queue is held near one frame, as long as senders heed losses and marks: that takes 121 ms here, more than its \
         target of 5 ms"
    );
}

/// Classes go by the names that the policy's own language gives them.
#[test]
fn named_classes_are_called_by_their_names() {
    let mut reading = reading(
        &["eth0"],
        "tc qdisc add dev eth0 root handle 1: htb default 10\ntc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit",
    );
    reading.names.insert(("eth0".to_owned(), tidegate_packet::Handle::new(1, 0x10)), "calls".to_owned());
    let mut explainer = Explainer::new(&reading);
    let packet = Packet::parse("udp 10.0.0.1:1 > 192.0.2.1:53 out eth0").expect("a packet");
    let course = explainer.course(&packet).expect("a way");
    let story = told(&explainer.explain(&packet, course));
    assert!(story.contains("class 1:10 (calls): rate 1Mbit"), "{story}");
    assert!(story.contains("ends: eth0 1:10 (calls), pfifo by default"), "{story}");
}

/// bfifo counts bytes. Where a turn is shorter than a frame, others send a frame between two of its packets: Linux 6.1
/// was asked, 11 flows of full frames with a quantum of 300 leave 15,140 bytes apart.
#[test]
fn queues_are_told_in_their_own_units() {
    let of = |queue: &str| {
        let policy = format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 6mbit
tc qdisc add dev eth0 parent 1:10 handle 10: {queue}"
        );
        explain(&["eth0"], &policy, "tcp 10.0.0.1:4000 > 10.9.0.1:53 len 1500")
    };
    let bytes = of("bfifo limit 6k");
    assert!(bytes.contains("the queue holds 6.14 kB, all of which may be ahead: 8.2 ms at the 6 Mbit/s"), "{bytes}");
    let short = of("fq_codel quantum 300");
    let wanted = "flows take turns of 300 bytes: with 10 others, 15140 bytes between two packets of this length: 20 ms";
    assert!(short.contains(wanted), "{short}");
    let plain = of("fq_codel quantum 1514");
    assert!(
        plain.contains("flows take turns of 1514 bytes: with 10 others, 15140 bytes between two turns: 20 ms"),
        "{plain}"
    );
}

/// Linux 6.1 was asked: beside a busy 1:10, 1:20 gets 1.00 Mbit/s (its link sharing is a weight), and 1:13 alone sends
/// 2.00 Mbit/s (real time knows no upper limit).
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
  the queue holds 50 packets: at worst 49 of 1514 bytes are ahead, 74.2 kB: 59 ms at the 10 Mbit/s it may have when nobody else sends
  its link sharing is a weight, not a rate: what others send decides how much it gets beside them
"
    );
    let real = waits(shared, "udp 10.0.0.1:4000 > 10.9.0.1:5060");
    assert!(real.contains("at the 9 Mbit/s it is assured") && !real.contains("weight"), "{real}");
    let above_limit = "tc qdisc add dev eth0 root handle 1: hfsc default 13
tc class add dev eth0 parent 1: classid 1:1 hfsc ls m2 10mbit ul m2 10mbit
tc class add dev eth0 parent 1:1 classid 1:13 hfsc sc m2 2mbit ul m2 1mbit";
    let above_limit = waits(above_limit, "udp 10.0.0.1:4000 > 10.9.0.1:53");
    assert!(above_limit.contains("6.0 s at the 2 Mbit/s it has\n"), "{above_limit}");
}

/// Hash tables are told as packets go through them: by the link, into one bucket, and on behind the link.
#[test]
fn u32_tables_are_told_by_the_bucket_that_is_asked() {
    let policy = |at: u8| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 99
tc class add dev eth0 parent 1: classid 1:99 htb rate 1mbit
tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit
tc class add dev eth0 parent 1: classid 1:11 htb rate 1mbit
tc filter add dev eth0 parent 1: prio 5 protocol ip u32
tc filter add dev eth0 parent 1: prio 5 handle 2: protocol ip u32 divisor 256
tc filter add dev eth0 parent 1: protocol ip prio 5 u32 ht 2:10: match ip dst 192.168.1.16 flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 5 u32 ht 2:11: match ip dst 192.168.1.17 flowid 1:11
tc filter add dev eth0 parent 1: protocol ip prio 5 u32 ht 800:: match ip dst 192.168.1.0/24 hashkey mask 0x000000ff at {at} link 2:"
        )
    };
    let filters = |at: u8| {
        let story = explain(&["eth0"], &policy(at), "udp 10.0.0.1:4000 > 192.168.1.17:53");
        let from = story.find(" + pref").expect("a filter");
        story[from..story.find("   class ").expect("a class")].to_owned()
    };
    assert_eq!(
        filters(16),
        " + pref 5 u32 dst 192.168.1.0/24 → table 2: :9
     destination 192.168.1.17 & 255.255.255.0 = 192.168.1.0 = 192.168.1.0
     it leads to bucket 2:11: (destination 192.168.1.17 & 0.0.0.255 = 0.0.0.17)
 + pref 5 u32 dst 192.168.1.17/32 → 1:11 :8
     destination 192.168.1.17 = 192.168.1.17
   1 filter behind it: not asked
"
    );
    // The wrong field: its bucket is empty.
    assert_eq!(
        filters(12),
        " + pref 5 u32 dst 192.168.1.0/24 → table 2: :9
     destination 192.168.1.17 & 255.255.255.0 = 192.168.1.0 = 192.168.1.0
     it leads to bucket 2:1: (source 10.0.0.1 & 0.0.0.255 = 0.0.0.1)
   bucket 2:1: has no filters
   nothing in bucket 2:1: decides: the search goes on
   2 filters in other buckets: not asked
   no filter decides: the default class 1:99
"
    );
}

/// An offset that a link reads from the packet holds in the table that it leads to.
#[test]
fn a_link_says_where_the_next_header_begins() {
    let policy = "tc qdisc add dev eth0 root handle 1: htb default 99
tc class add dev eth0 parent 1: classid 1:99 htb rate 1mbit
tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit
tc filter add dev eth0 parent 1: prio 5 handle 2: protocol ip u32 divisor 1
tc filter add dev eth0 parent 1: protocol ip prio 5 u32 ht 2:: match tcp dst 25 0xffff flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 5 u32 ht 800:: match ip protocol 6 0xff link 2: offset at 0 mask 0x0f00 shift 6";
    let story = |port: u16| explain(&["eth0"], policy, &format!("tcp 10.0.0.1:4000 > 192.168.1.17:{port}"));
    let met = story(25);
    assert!(met.contains("     it leads to bucket 2:0:\n"), "{met}");
    assert!(met.contains("     destination port 25 = 25\n") && met.contains("class 1:10:"), "{met}");
    assert!(!met.contains("no filter before has told"), "{met}");
    let passed = story(80);
    assert!(passed.contains("     destination port 80, not 25\n") && passed.contains("class 1:99:"), "{passed}");
}

/// Linux 6.1 was asked: with a transmit queue of 10, 29 packets of the other bands and its
/// own were ahead.
#[test]
fn pfifo_fast_has_three_bands() {
    let policy = "tc qdisc add dev ppp0 handle ffff: ingress";
    let waits = |words: &str| {
        let reading = reading(&["eth0", "ppp0"], policy);
        let mut explainer = Explainer::new(&reading);
        let packet = Packet::parse(words).expect(words);
        let course = explainer.course(&packet).expect(words);
        told(&explainer.explain(&packet, course)).split_once("ends: ").expect("an end").1.to_owned()
    };
    let plain = waits("udp 10.0.0.1:4000 > 10.9.0.1:53 out eth0");
    assert!(
        plain.contains("  priority 0 is band 1 of pfifo_fast's bands 0 to 2\n  the band holds 1000 packets"),
        "{plain}"
    );
    assert!(plain.contains("a band before it goes first"), "{plain}");
    let first = waits("udp 10.0.0.1:4000 > 10.9.0.1:53 tos 0x10 out eth0");
    assert!(first.contains("is band 0 of") && !first.contains("goes first"), "{first}");
}

/// Everything that leaves is redirected to an ifb and comes back: asked of Linux 6.1, whose ifb0 counts the packet in 1:10 and whose
/// eth0 sends it in the end, without having redirected it again.
#[test]
fn what_leaves_is_followed_to_an_ifb_and_back() {
    let ifb = "tc qdisc add dev ifb0 root handle 1: htb default 20\n\
               tc class add dev ifb0 parent 1: classid 1:10 htb rate 2mbit\n\
               tc class add dev ifb0 parent 1: classid 1:20 htb rate 8mbit\n\
               tc filter add dev ifb0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:10";
    let clsact = "tc qdisc add dev eth0 clsact\n\
                  tc filter add dev eth0 egress protocol all prio 1 matchall action mirred egress redirect dev ifb0\n";
    let htb = "tc qdisc add dev eth0 root handle 2: htb default 30\n\
               tc class add dev eth0 parent 2: classid 2:30 htb rate 9mbit\n\
               tc filter add dev eth0 parent 2: protocol ip prio 1 matchall action mirred egress redirect dev ifb0\n";
    let skipped = "the actions of the first filter that matches are skipped";
    for (redirects, ends) in
        [(clsact, "ends: eth0, where nothing is configured"), (htb, "ends: eth0 2:30, pfifo by default")]
    {
        let story = explain(&["eth0", "ifb0"], &format!("{redirects}{ifb}"), "tcp 10.0.0.1:4 > 10.9.0.1:22");
        let order = [
            "leaves by eth0\n",
            "it is redirected to ifb0",
            "leaves by ifb0\n",
            "class 1:10",
            "leaves by eth0, come back from an ifb\n",
            skipped,
            ends,
            "on the way it waits in ifb0 1:10, pfifo by default:",
        ];
        let mut rest = story.as_str();
        for part in order {
            let at = rest.find(part).unwrap_or_else(|| panic!("`{part}` is missing, or too early, in\n{story}"));
            rest = &rest[at + part.len()..];
        }
        assert_eq!(story.matches("it is redirected to").count(), 1, "{story}");
    }
}

#[test]
fn an_action_may_have_the_next_filter_asked() {
    let policy = "\
tc qdisc add dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip dport 53 0xffff police rate 100kbit burst 5k conform-exceed continue/ok flowid 1:1
tc filter add dev eth0 parent 1: protocol ip pref 2 u32 match ip dport 80 0xffff police rate 100kbit burst 5k conform-exceed drop/continue flowid 1:1
tc filter add dev eth0 parent 1: protocol ip pref 3 matchall flowid 1:3";
    let told = |words: &str| explain(&["eth0"], policy, words);
    let over = told("udp 10.0.0.1:4 > 10.9.0.1:53 len 9000");
    assert!(over.contains("limits (rate, burst or mtu): the next filter is asked (continue)"), "{over}");
    assert!(over.contains("ends: eth0 1:3") && !over.contains("not asked"), "{over}");
    let under = told("udp 10.0.0.1:4 > 10.9.0.1:53 len 900");
    assert!(under.contains("the policer lets it through: it passes\n   2 filters behind it: not asked"), "{under}");
    let conforming = told("udp 10.0.0.1:4 > 10.9.0.1:80 len 900");
    assert!(conforming.contains("the policer lets it through: the next filter is asked (continue)"), "{conforming}");
    assert!(conforming.contains("ends: eth0 1:3"), "{conforming}");
}

#[test]
fn filters_of_another_chain_are_told_where_an_action_leads_there() {
    let policy = "\
tc qdisc add dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff action goto chain 5
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip protocol 6 0xff flowid 1:3
tc filter add dev eth0 parent 1: chain 5 protocol ip prio 1 u32 match ip dport 53 0xffff flowid 1:1";
    let dns = explain(&["eth0"], policy, "udp 10.0.0.1:4 > 10.9.0.1:53");
    assert!(
        dns.contains(
            "the filters of chain 5 are asked (goto)\n   1 filter behind it: not asked\n + pref 1 u32 dport 53 → 1:1"
        ),
        "{dns}"
    );
    let other = explain(&["eth0"], policy, "udp 10.0.0.1:4 > 10.9.0.1:54");
    assert!(
        other.contains("destination port 54, not 53\n   no filter of chain 5 decides\n   priority 0 is band 1"),
        "{other}"
    );
}

#[test]
fn marks_and_priorities_are_told_as_each_filter_sees_them() {
    let policy = "\
tc qdisc add dev eth0 clsact
tc filter add dev eth0 egress protocol ip prio 1 handle 5 fw action drop
tc filter add dev eth0 egress protocol ip prio 2 u32 match ip dport 22 0xffff action skbedit mark 5
tc filter add dev eth0 egress protocol ip prio 3 u32 match ip dport 80 0xffff action skbedit priority 1:3
tc qdisc add dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 5 fw flowid 1:1
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dport 443 0xffff action skbedit priority 1:1
tc qdisc add dev eth0 parent 1:2 handle 20: prio";
    let told = |port: u16| explain(&["eth0"], policy, &format!("tcp 10.0.0.1:4 > 10.9.0.1:{port}"));
    let ssh = told(22);
    assert!(ssh.contains("mark 0x0 is not 0x5") && ssh.contains("its mark becomes 0x5, it passes"), "{ssh}");
    assert!(ssh.contains("mark 0x5 = 0x5") && ssh.contains("ends: eth0 1:1"), "{ssh}");
    let web = told(80);
    assert!(web.contains("its priority becomes 1:3, it passes"), "{web}");
    assert!(web.contains("its priority 1:3 names the class: no filter is asked"), "{web}");
    // prio read the priority before its filter wrote it: what is left is the band of priority 0.
    let late = told(443);
    assert!(late.contains("the filter that matches names no class: the band of priority 0, 1:2"), "{late}");
    assert!(
        late.contains("priority 1:1 names a class of another qdisc and counts as 0 here, band 1 by the map: 20:2"),
        "{late}"
    );
}

#[test]
fn a_packet_too_long_is_blamed_on_what_is_too_small() {
    let lost = |tbf: &str| {
        let policy = format!("tc qdisc add dev eth0 root handle 1: tbf rate 1mbit latency 70ms {tbf}");
        let story = explain(&["eth0"], &policy, "udp 10.0.0.1:4 > 10.9.0.1:53 len 1400");
        story.lines().find_map(|line| line.strip_prefix("ends: ").map(str::to_owned)).expect("an end")
    };
    let peak = "lost at eth0: it is longer than the mtu of the peakrate, which never lets it through (by 1:)";
    assert_eq!(lost("burst 10k peakrate 2mbit mtu 500"), peak);
    assert_eq!(lost("burst 500"), "lost at eth0: it is longer than the bucket (burst) can ever hold (by 1:)");
}

/// Linux 6.1, asked with 20 packets: of `netem limit 5` above a tbf five wait in all, and the others are dropped at netem.
#[test]
fn a_queue_inside_netem_is_no_longer_than_netems_limit() {
    let bucket = "tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 100kbit burst 2000 limit 100000";
    let fifo = "tc qdisc add dev eth0 parent 1:1 handle 10: pfifo limit 1000";
    for inner in [bucket, fifo] {
        let said = waits(&format!("tc qdisc add dev eth0 root handle 1: netem delay 1ms limit 5\n{inner}"));
        assert!(said.contains("the netem holds 5 packets: at worst 4 of 1514 bytes are ahead"), "{said}");
        assert!(!said.contains("1000") && !said.contains("100 kB"), "{said}");
    }
    let short = "tc qdisc add dev eth0 parent 1:1 handle 10: pfifo limit 3";
    let said = waits(&format!("tc qdisc add dev eth0 root handle 1: netem delay 1ms limit 5\n{short}"));
    assert!(said.contains("the queue holds 3 packets: at worst 2 of 1514 bytes are ahead"), "{said}");
}

#[test]
fn classes_below_a_bucket_are_told_whatever_number_they_hang_on() {
    let policy = |parent: &str| {
        format!(
            "\
tc qdisc add dev eth0 root handle 1: tbf rate 9mbit burst 15k latency 300ms
tc qdisc add dev eth0 parent {parent} handle 10: drr
tc class add dev eth0 parent 10: classid 10:1 drr quantum 1500
tc class add dev eth0 parent 10: classid 10:2 drr quantum 1500
tc filter add dev eth0 parent 10: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 10:2"
        )
    };
    for parent in ["1:", "1:1"] {
        let story = explain(&["eth0"], &policy(parent), "tcp 10.0.0.1:4 > 10.9.0.1:22");
        assert!(story.contains("qdisc drr 10:") && story.contains("+ pref 1 u32 dport 22 → 10:2"), "{story}");
    }
}

#[test]
fn filters_at_a_device_that_was_not_named_are_known_to_be_missing() {
    let policy = "\
tc qdisc add dev eth1 clsact
tc filter add dev eth1 ingress protocol ip prio 1 u32 match ip src 192.168.1.0/24 action skbedit mark 7
tc qdisc add dev eth0 root handle 1: htb default 2
tc class add dev eth0 parent 1: classid 1:1 htb rate 4mbit
tc class add dev eth0 parent 1: classid 1:2 htb rate 4mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 7 fw flowid 1:1";
    let words = "tcp 192.168.1.10:4 > 10.9.0.1:22";
    let open = explain(&["eth0", "eth1"], policy, &format!("{words} out eth0"));
    assert!(open.contains("the filters on what arrives by eth1 are not asked: `in eth1` asks them"), "{open}");
    let named = explain(&["eth0", "eth1"], policy, &format!("{words} in eth1 out eth0"));
    assert!(named.contains("its mark becomes 0x7") && named.contains("ends: eth0 1:1"), "{named}");
    assert!(!named.contains("are not asked"), "{named}");
}

/// Asked of Linux 6.1: ifb1 gives the packet back to ifb0, from which it was redirected, ifb0 counts it in 2:10, and nothing is sent.
#[test]
fn what_an_ifb_redirects_to_another_is_lost() {
    let policy = "\
tc qdisc add dev ifb1 root handle 3: pfifo
tc qdisc add dev ifb0 root handle 2: htb default 10
tc class add dev ifb0 parent 2: classid 2:10 htb rate 100mbit
tc filter add dev ifb0 parent 2: protocol ip prio 1 matchall action mirred egress redirect dev ifb1
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 100mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff action mirred egress redirect dev ifb0";
    let story = explain(&["eth0", "ifb0", "ifb1"], policy, "tcp 10.0.0.1:4 > 10.9.0.1:22");
    let end = "ends: lost at ifb0: it came back to an ifb, which sends only what was redirected to it";
    assert!(story.contains("leaves by ifb0, come back from an ifb") && story.contains(end), "{story}");
    assert!(story.contains("class 2:10"), "{story}");
}

/// What filters drop on arrival has no routing behind it, and comes to no egress filter.
#[test]
fn a_story_ends_where_the_packet_is_dropped_on_arrival() {
    let drop = "tc qdisc add dev eth0 clsact\n\
                tc filter add dev eth0 ingress protocol ip prio 2 flower ip_proto icmp action drop";
    let smtp = "tc filter add dev eth0 egress protocol ip prio 1 flower ip_proto tcp dst_port 25 action drop";
    let ingress = "tc qdisc add dev eth0 ingress\n\
                   tc filter add dev eth0 parent ffff: protocol ip prio 2 flower ip_proto icmp action drop";
    for policy in [drop.to_owned(), format!("{drop}\n{smtp}"), ingress.to_owned()] {
        let story = explain(&["eth0", "eth1"], &policy, "icmp 203.0.113.9 > 192.168.1.7 in eth0");
        let rest = story.split_once("     it is dropped\n").unwrap_or_else(|| panic!("not dropped: {story}")).1;
        assert_eq!(rest, "ends: lost at eth0: a filter drops it (by ffff:)\n", "{story}");
    }
    // The mail itself is dropped as it leaves, behind routing.
    let mail = explain(&["eth0", "eth1"], &format!("{drop}\n{smtp}"), "tcp 10.0.0.1:4 > 10.9.0.1:25 in eth1 out eth0");
    assert!(mail.contains("routing\n") && mail.contains("leaves by eth0\n + pref 1 flower"), "{mail}");
}

/// Filters of two chains may have the same preference and handle.
#[test]
fn filters_of_two_chains_are_kept_apart() {
    let policy = "\
tc qdisc add dev eth0 clsact
tc filter add dev eth0 ingress protocol ip prio 1 flower src_ip 10.0.0.0/8 action goto chain 7
tc filter add dev eth0 ingress protocol ip prio 2 flower ip_proto udp action police rate 2mbit burst 20k conform-exceed drop
tc filter add dev eth0 ingress chain 7 protocol ip prio 1 flower ip_proto tcp dst_port 80 action drop
tc filter add dev eth0 ingress chain 7 protocol ip prio 2 matchall action drop
tc filter add dev eth0 egress protocol all prio 1 matchall action police rate 5mbit burst 5k mtu 1000 drop";
    let story = explain(&["eth0", "eth1"], policy, "udp 10.1.1.1:5000 > 192.168.1.1:80 in eth0");
    assert_eq!(
        story,
        "\
arrives at eth0, before any routing
 + pref 1 flower eth_type ipv4, src_ip 10.0.0.0/8 ⇒ goto :2
     `eth_type ipv4` holds
     `src_ip 10.0.0.0/8` holds: the source is 10.1.1.1
     the filters of chain 7 are asked (goto)
   1 filter behind it: not asked
 - pref 1 flower eth_type ipv4, ip_proto tcp, dst_port 80 ⇒ drop :4
     `eth_type ipv4` holds
     `ip_proto tcp` does not hold: the protocol is udp
 + pref 2 everything ⇒ drop :5
     it is dropped
ends: lost at eth0: a filter drops it (by ffff:)
"
    );
}

/// Beside full tins each keeps to its threshold, and the tin of the whole rate has the rest. Linux 6.1, diffserv4 at 9 Mbit/s, each
/// tin offered 12 Mbit/s (1514 of 1538 bytes count): Bulk beside Best Effort 0.553, beside all 0.553; Voice beside Best Effort 2.216;
/// Voice offered 1.21 beside Best Effort 1.21; Voice and Bulk alone, both above theirs, 8.228 and 0.630.
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
        ("cs1", format!("its DSCP 8 puts it in tin Bulk of diffserv4, with a threshold of 562 kbit/s: {above}")),
        ("ef", format!("its DSCP 46 puts it in tin Voice of diffserv4, with a threshold of 2.25 Mbit/s: {above}")),
    ] {
        assert_eq!(tin(tos).as_deref(), Some(text.as_str()));
    }
}

/// Linux 6.1, 40 packets a millisecond apart through `delay 50ms reorder 25% 50% gap 5`: 2 leave at once, all others after 50 ms.
#[test]
fn netem_that_reorders_and_loses_says_so() {
    let netem = |options: &str| at_worst(&format!("tc qdisc add dev eth0 root netem delay 50ms {options}"));
    let held = "netem holds it back for 50.0 ms";
    for (options, text) in [
        ("", ""),
        ("reorder 25%", ", unless it goes ahead at once (reorder): a chance of 25 %"),
        (
            "reorder 25% 50% gap 5",
            ", unless it goes ahead at once (reorder): once 4 before it were held back, a chance of 25 % (correlation 50 %)",
        ),
        ("reorder 100% gap 5", ", unless it goes ahead at once (reorder): once 4 before it were held back"),
        ("loss 5%", "; a chance of 5 % that it is lost"),
        ("loss 0.1% 25%", "; a chance of 0.1 % (correlation 25 %) that it is lost"),
        ("loss 5% ecn", "; a chance of 5 % that it is lost, or marked if it can be (ecn)"),
        ("loss gemodel 1% 10% 70% 0.1%", "; it may be lost, by gemodel"),
    ] {
        let said = netem(options);
        assert_eq!(
            said.lines().find(|line| line.starts_with("netem")),
            Some(format!("{held}{text}").as_str()),
            "{options}: {said}"
        );
    }
}

/// Linux 6.1: ten full frames of such a class take 4.00 ms at 35 Mbit/s, 33 cells each.
#[test]
fn a_class_counts_frames_with_its_own_framing() {
    let policy = |inner: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 1\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate 35mbit ceil 35mbit overhead 34 mpu 68 linklayer atm\n\
             tc qdisc add dev eth0 parent 1:1 handle 2: {inner}"
        )
    };
    let turns = at_worst(&policy("fq_codel"));
    let said = "flows take turns of 1514 bytes: with 10 others, 15140 bytes between two turns: 4.0 ms at the 35 Mbit/s it has\n";
    assert!(turns.contains(said), "{turns}");
    assert_eq!(
        at_worst(&policy("pfifo limit 101")),
        "the queue holds 101 packets: at worst 100 of 1514 bytes are ahead, 151 kB, which the shaper counts as 175 kB: \
         40 ms at the 35 Mbit/s it has\n"
    );
    assert_eq!(
        at_worst(&policy("bfifo limit 151400")),
        "the queue holds 151 kB, all of which may be ahead: 40 ms at the 35 Mbit/s it has\n"
    );
}

/// Cake without `nat` on the outside of MASQUERADE sees one host.
#[test]
fn hosts_behind_nat_are_one_to_a_cake_without_nat() {
    let sharing = |nat: &str, cake: &str| {
        let said = at_worst(&format!("{nat}tc qdisc add dev eth0 root cake bandwidth 20mbit {cake}"));
        said.lines().nth(1).map(str::to_owned).unwrap_or_default()
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

/// `tidegate run` gives the way out 192.0.2.2, and the others 192.168.1.1 and so on.
#[test]
fn what_is_masqueraded_has_the_address_of_its_device() {
    let policy = "\
iptables -t nat -A POSTROUTING -j MASQUERADE
tc qdisc add dev eth0 root handle 1: prio
tc qdisc add dev eth1 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src 1.2.3.4 flowid 1:1
tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip src 1.2.3.4 flowid 1:1";
    for (out, address) in [("eth0", "192.0.2.2"), ("eth1", "192.168.1.1")] {
        let story = explain(&["eth0", "eth1"], policy, &format!("udp 10.0.0.1:4 > 10.9.0.1:53 out {out}"));
        assert!(story.contains(&format!("     source {address}, not 1.2.3.4\n")), "{story}");
    }
}
