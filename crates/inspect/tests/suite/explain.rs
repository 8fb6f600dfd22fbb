//! Explanations of packets: made by the engine, so that words and engine agree.

use crate::common;

use common::reading;
use std::fmt::Write as _;
use tidegate_inspect::{Explainer, Packet, StepOutcome, Story};
use tidegate_packet::{RandomSource, Seeded};

fn story_text(story: &Story) -> String {
    let mut text = String::new();
    for scene in &story.scenes {
        let _ = writeln!(text, "{}", scene.title);
        for line in &scene.lines {
            let sign = match line.outcome {
                StepOutcome::Met => '+',
                StepOutcome::Passed => '-',
                StepOutcome::Note => ' ',
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

pub(crate) fn explain(devices: &[&str], policy: &str, words: &str) -> String {
    let reading = reading(devices, policy);
    let mut explainer = Explainer::new(&reading);
    let packet = Packet::parse(words).expect(words);
    let course = explainer.course(&packet).expect(words);
    story_text(&explainer.explain(&packet, course))
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
tc filter add dev eth0 parent 1:1 protocol ip pref 1 u32 match ip dport 22 0xffff match ip tos 0x10 0xff \
flowid 1:10";

#[test]
fn chains_jumps_translation_and_inner_classes() {
    let story = explain(&["eth0", "eth1"], CHAINS, "tcp 10.0.0.1:40000 > 10.9.9.9:22 syn len 60 in eth1");
    assert_eq!(
        story,
        "\
netfilter prerouting, in eth1: table mangle
 + PREROUTING: -i eth1 -j MARKS :5
     continues in chain MARKS
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
   1:1 has classes below it: its own filters are evaluated next
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
  the pfifo holds 1000 packets: at worst 999 of 1514 bytes are ahead and one has just left, 1.51 MB: 12.1 s at the 1 Mbit/s it \
  may have when no other class sends
  bands before this one are served first: it waits while they have packets that may leave, indefinitely if \
  they always do
"
    );
}

const ACTING: &str = "\
tc qdisc add dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip pref 1 flower ip_proto udp dst_port 5060 action skbedit mark 7 \
priority 1:1
tc filter add dev eth0 parent 1: protocol ip pref 2 u32 match ip protocol 1 0xff police rate 100kbit burst \
10k conform-exceed drop/ok flowid 1:1
tc filter add dev eth0 parent 1: protocol ip pref 3 basic match cmp(u8 at 9 layer network eq 17) flowid 1:3
tc filter add dev eth0 parent 1: protocol ip pref 4 matchall action police rate 1mbit burst 20k drop";

/// Filters that edit, police and compare: what a filter writes into the packet is no reason for where the
/// packet went before.
#[test]
fn filters_with_actions_are_explained_by_the_engine() {
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
fn the_drop_is_the_last_step() {
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
        ["ends: dropped at eth0: netfilter drops it", "it is dropped", "+ FORWARD: policy DROP at its end"]
    );
    assert_eq!(
        tail("udp 10.0.0.1 > 10.0.0.2:9"),
        [
            "ends: dropped at eth0: a filter drops it (by 1:)",
            "1 filter behind it: not evaluated",
            "it is dropped"
        ]
    );
    assert_eq!(
        tail("udp 10.0.0.1 > 10.0.0.2:5"),
        [
            "ends: dropped at eth0: no class takes it (by 1:)",
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
        let pref =
            1 + draws.below(4) * 10 + u32::from(protocol != "ip") * [1, 2][usize::from(protocol == "all")];
        let _ = match draws.below(6) {
            0 => {
                let mark = 1 + draws.below(3);
                let pref = pref + 5;
                writeln!(
                    policy,
                    "tc filter add dev eth0 parent {parent} protocol {protocol} pref {pref} handle {mark} \
                    fw flowid {class}"
                )
            }
            1 => {
                let pref = pref + 3;
                writeln!(
                    policy,
                    "tc filter add dev eth0 parent {parent} protocol {protocol} pref {pref} matchall flowid \
                    {class}"
                )
            }
            _ => {
                let (at, mask) = (4 * draws.below(14), draws.u32() & draws.u32() & draws.u32() & draws.u32());
                let mask = if draws.below(2) == 0 { mask & 0xf0 } else { mask };
                let value = draws.u32() & mask & if draws.below(3) > 0 { 0 } else { u32::MAX };
                writeln!(
                    policy,
                    "tc filter add dev eth0 parent {parent} protocol {protocol} pref {pref} u32 match u32 \
                    {value:#x} {mask:#x} at {at} flowid {class}"
                )
            }
        };
    }
    for _ in 0..draws.below(8) {
        let tool = ["iptables", "iptables", "ip6tables"][draws.below(3) as usize];
        let chain = ["PREROUTING", "FORWARD", "POSTROUTING"][draws.below(3) as usize];
        let condition = [
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
        let _ = writeln!(policy, "{tool} -t mangle -A {chain} {condition} {does}");
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
            met += story
                .scenes
                .iter()
                .flat_map(|scene| &scene.lines)
                .filter(|line| line.outcome == StepOutcome::Met)
                .count();
        }
    }
    assert!(met > 2000, "{met} filters and rules matched");
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
fn conditions_of_basic_and_flower_are_explained_one_by_one() {
    let policy = "\
tc qdisc add dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip prio 1 basic match cmp(u8 at 9 layer network eq 6) and cmp(u16 \
at 2 layer transport gt 1000) flowid 1:1
tc filter add dev eth0 parent 1: protocol ip prio 2 basic match cmp(u16 at 2 layer transport eq 22) or \
cmp(u16 at 2 layer transport eq 443) flowid 1:2
tc filter add dev eth0 parent 1: protocol ip prio 3 flower ip_proto tcp dst_port 443 flowid 1:3
tc filter add dev eth0 parent 1: protocol ip prio 4 flower src_ip 0/0 flowid 1:3";
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
    let address = "`src_ip 0.0.0.0/0` does not hold: no bit of the address is compared, and no other address";
    assert!(udp.contains(address), "{udp}");
}

/// A policer's word is what it counted: what is longer than its mtu, or than its burst, goes over its limits.
#[test]
fn a_policers_decision_is_explained() {
    let of = |limits: &str| {
        let policy = format!(
            "tc qdisc add dev eth0 handle ffff: ingress\n\
             tc filter add dev eth0 parent ffff: protocol all matchall action police rate 10mbit {limits} \
             conform-exceed drop"
        );
        explain(&["eth0"], &policy, "tcp 192.0.2.1:80 > 198.51.100.1:1024 len 1500 in eth0")
    };
    let over = "     it is over the policer's limits (rate, burst or mtu): it is dropped\n";
    for (limits, wanted) in [("burst 100k mtu 1k", true), ("burst 1k", true), ("burst 100k", false)] {
        let story = of(limits);
        assert_eq!(
            (story.contains(over), story.contains("ends: dropped at eth0")),
            (wanted, wanted),
            "{limits}: {story}"
        );
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
    assert!(!story.contains("below it") && story.contains("ends: dropped at eth0"), "{story}");
}

/// Classes go by the names that the policy's own language gives them.
#[test]
fn named_classes_are_called_by_their_names() {
    let mut reading = reading(
        &["eth0"],
        "tc qdisc add dev eth0 root handle 1: htb default 10\ntc class add dev eth0 parent 1: classid 1:10 \
        htb rate 1mbit",
    );
    reading.names.insert(("eth0".to_owned(), tidegate_packet::Handle::new(1, 0x10)), "calls".to_owned());
    let mut explainer = Explainer::new(&reading);
    let packet = Packet::parse("udp 10.0.0.1:1 > 192.0.2.1:53 out eth0").expect("a packet");
    let course = explainer.course(&packet).expect("a way");
    let story = story_text(&explainer.explain(&packet, course));
    assert!(story.contains("class 1:10 (calls): rate 1Mbit"), "{story}");
    assert!(story.contains("ends: eth0 1:10 (calls), pfifo by default"), "{story}");
}

/// Hash tables are explained as packets pass them: by the link, into one bucket, and on behind the link.
#[test]
fn u32_tables_are_explained_by_their_bucket() {
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
tc filter add dev eth0 parent 1: protocol ip prio 5 u32 ht 800:: match ip dst 192.168.1.0/24 hashkey mask \
0x000000ff at {at} link 2:"
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
   1 filter behind it: not evaluated
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
   2 filters in other buckets: not evaluated
   no filter decides: the default class 1:99
"
    );
}

/// An offset that a link reads from the packet holds in the table that it leads to.
#[test]
fn a_link_shows_where_the_next_header_begins() {
    let policy = "tc qdisc add dev eth0 root handle 1: htb default 99
tc class add dev eth0 parent 1: classid 1:99 htb rate 1mbit
tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit
tc filter add dev eth0 parent 1: prio 5 handle 2: protocol ip u32 divisor 1
tc filter add dev eth0 parent 1: protocol ip prio 5 u32 ht 2:: match tcp dst 25 0xffff flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 5 u32 ht 800:: match ip protocol 6 0xff link 2: offset at \
0 mask 0x0f00 shift 6";
    let story = |port: u16| explain(&["eth0"], policy, &format!("tcp 10.0.0.1:4000 > 192.168.1.17:{port}"));
    let met = story(25);
    assert!(met.contains("     it leads to bucket 2:0:\n"), "{met}");
    assert!(met.contains("     destination port 25 = 25\n") && met.contains("class 1:10:"), "{met}");
    assert!(!met.contains("no filter before has told"), "{met}");
    let passed = story(80);
    assert!(
        passed.contains("     destination port 80, not 25\n") && passed.contains("class 1:99:"),
        "{passed}"
    );
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
        story_text(&explainer.explain(&packet, course)).split_once("ends: ").expect("an end").1.to_owned()
    };
    let plain = waits("udp 10.0.0.1:4000 > 10.9.0.1:53 out eth0");
    assert!(
        plain.contains("  priority 0 is band 1 of pfifo_fast's bands 0 to 2\n  the band holds 1000 packets"),
        "{plain}"
    );
    assert!(plain.contains("bands before this one are served first"), "{plain}");
    let first = waits("udp 10.0.0.1:4000 > 10.9.0.1:53 tos 0x10 out eth0");
    assert!(first.contains("is band 0 of") && !first.contains("goes first"), "{first}");
}

/// Everything that leaves is redirected to an ifb and comes back: asked of Linux 6.1, whose ifb0 counts the
/// packet in 1:10 and whose eth0 sends it in the end, without having redirected it again.
#[test]
fn what_leaves_is_followed_to_an_ifb_and_back() {
    let ifb = "tc qdisc add dev ifb0 root handle 1: htb default 20\n\
               tc class add dev ifb0 parent 1: classid 1:10 htb rate 2mbit\n\
               tc class add dev ifb0 parent 1: classid 1:20 htb rate 8mbit\n\
               tc filter add dev ifb0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:10";
    let clsact = "tc qdisc add dev eth0 clsact\n\
                  tc filter add dev eth0 egress protocol all prio 1 matchall action mirred egress redirect \
                  dev ifb0\n";
    let htb = "tc qdisc add dev eth0 root handle 2: htb default 30\n\
               tc class add dev eth0 parent 2: classid 2:30 htb rate 9mbit\n\
               tc filter add dev eth0 parent 2: protocol ip prio 1 matchall action mirred egress redirect \
               dev ifb0\n";
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
            let at =
                rest.find(part).unwrap_or_else(|| panic!("`{part}` is missing, or too early, in\n{story}"));
            rest = &rest[at + part.len()..];
        }
        assert_eq!(story.matches("it is redirected to").count(), 1, "{story}");
    }
}

#[test]
fn an_action_may_continue_with_the_next_filter() {
    let policy = "\
tc qdisc add dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip dport 53 0xffff police rate 100kbit burst \
5k conform-exceed continue/ok flowid 1:1
tc filter add dev eth0 parent 1: protocol ip pref 2 u32 match ip dport 80 0xffff police rate 100kbit burst \
5k conform-exceed drop/continue flowid 1:1
tc filter add dev eth0 parent 1: protocol ip pref 3 matchall flowid 1:3";
    let output_of = |words: &str| explain(&["eth0"], policy, words);
    let over = output_of("udp 10.0.0.1:4 > 10.9.0.1:53 len 9000");
    assert!(over.contains("limits (rate, burst or mtu): the next filter is evaluated (continue)"), "{over}");
    assert!(over.contains("ends: eth0 1:3") && !over.contains("not evaluated"), "{over}");
    let under = output_of("udp 10.0.0.1:4 > 10.9.0.1:53 len 900");
    assert!(
        under.contains("the policer lets it through: it passes\n   2 filters behind it: not evaluated"),
        "{under}"
    );
    let conforming = output_of("udp 10.0.0.1:4 > 10.9.0.1:80 len 900");
    assert!(
        conforming.contains("the policer lets it through: the next filter is evaluated (continue)"),
        "{conforming}"
    );
    assert!(conforming.contains("ends: eth0 1:3"), "{conforming}");
}

#[test]
fn filters_of_another_chain_are_explained_behind_goto() {
    let policy = "\
tc qdisc add dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff action goto chain 5
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip protocol 6 0xff flowid 1:3
tc filter add dev eth0 parent 1: chain 5 protocol ip prio 1 u32 match ip dport 53 0xffff flowid 1:1";
    let dns = explain(&["eth0"], policy, "udp 10.0.0.1:4 > 10.9.0.1:53");
    assert!(
        dns.contains(
            "the filters of chain 5 are evaluated (goto)\n   1 filter behind it: not evaluated\n + pref 1 u32 dport \
            53 → 1:1"
        ),
        "{dns}"
    );
    let other = explain(&["eth0"], policy, "udp 10.0.0.1:4 > 10.9.0.1:54");
    assert!(
        other.contains(
            "destination port 54, not 53\n   no filter of chain 5 decides\n   priority 0 is band 1"
        ),
        "{other}"
    );
}

#[test]
fn marks_and_priorities_are_shown_as_each_filter_sees_them() {
    let policy = "\
tc qdisc add dev eth0 clsact
tc filter add dev eth0 egress protocol ip prio 1 handle 5 fw action drop
tc filter add dev eth0 egress protocol ip prio 2 u32 match ip dport 22 0xffff action skbedit mark 5
tc filter add dev eth0 egress protocol ip prio 3 u32 match ip dport 80 0xffff action skbedit priority 1:3
tc qdisc add dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 5 fw flowid 1:1
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dport 443 0xffff action skbedit priority 1:1
tc qdisc add dev eth0 parent 1:2 handle 20: prio";
    let output_of = |port: u16| explain(&["eth0"], policy, &format!("tcp 10.0.0.1:4 > 10.9.0.1:{port}"));
    let ssh = output_of(22);
    assert!(ssh.contains("mark 0x0 is not 0x5") && ssh.contains("its mark becomes 0x5, it passes"), "{ssh}");
    assert!(ssh.contains("mark 0x5 = 0x5") && ssh.contains("ends: eth0 1:1"), "{ssh}");
    let web = output_of(80);
    assert!(web.contains("its priority becomes 1:3, it passes"), "{web}");
    assert!(web.contains("its priority 1:3 names the class: no filter is evaluated"), "{web}");
    // prio read the priority before its filter wrote it: what is left is the band of priority 0.
    let late = output_of(443);
    assert!(late.contains("the filter that matches names no class: the band of priority 0, 1:2"), "{late}");
    assert!(
        late.contains(
            "priority 1:1 names a class of another qdisc and counts as 0 here, band 1 by the map: 20:2"
        ),
        "{late}"
    );
}

#[test]
fn marks_of_connections_are_shown_as_each_filter_sees_them() {
    let policy = "\
tc qdisc add dev eth0 root handle 1: htb default 2
tc class add dev eth0 parent 1: classid 1:1 htb rate 4mbit
tc class add dev eth0 parent 1: classid 1:2 htb rate 4mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 7 fw flowid 1:1
tc qdisc add dev eth0 clsact
tc filter add dev eth0 egress protocol ip prio 1 handle 7 fw action drop
tc filter add dev eth0 egress protocol ip prio 2 u32 match ip dport 22 0xffff action skbedit mark 5
tc filter add dev eth0 egress protocol ip prio 3 matchall action skbedit mark 9 pipe action connmark";
    let words = "tcp 10.0.0.1:4 > 10.9.0.1:80 connmark 7";
    let tracked = format!("iptables -t mangle -A POSTROUTING -m connmark --mark 3 -j ACCEPT\n{policy}");
    let story = explain(&["eth0"], &tracked, words);
    assert!(story.contains("mark 0x0 is not 0x7"), "{story}");
    assert!(
        story.contains("its mark becomes 0x9, its mark becomes its connection's, 0x7, it passes"),
        "{story}"
    );
    assert!(story.contains("mark 0x7 = 0x7") && story.contains("ends: eth0 1:1"), "{story}");
    let untracked = explain(&["eth0"], policy, words);
    assert!(untracked.contains("`connmark` changes nothing"), "{untracked}");
    assert!(untracked.contains("it has no connection whose mark it could get, it passes"), "{untracked}");
    assert!(untracked.contains("mark 0x9 is not 0x7") && untracked.contains("ends: eth0 1:2"), "{untracked}");
}

#[test]
fn a_packet_too_long_is_blamed_on_what_is_too_small() {
    let lost = |tbf: &str| {
        let policy = format!("tc qdisc add dev eth0 root handle 1: tbf rate 1mbit latency 70ms {tbf}");
        let story = explain(&["eth0"], &policy, "udp 10.0.0.1:4 > 10.9.0.1:53 len 1400");
        story.lines().find_map(|line| line.strip_prefix("ends: ").map(str::to_owned)).expect("an end")
    };
    let peak =
        "dropped at eth0: it is longer than the mtu of the peakrate, which never lets it through (by 1:)";
    assert_eq!(lost("burst 10k peakrate 2mbit mtu 500"), peak);
    assert_eq!(
        lost("burst 500"),
        "dropped at eth0: it is longer than the bucket (burst) can ever hold (by 1:)"
    );
}

#[test]
fn classes_below_a_bucket_are_listed_whatever_their_number() {
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
    assert!(
        open.contains("the filters on what arrives by eth1 are not evaluated: `in eth1` evaluates them"),
        "{open}"
    );
    let named = explain(&["eth0", "eth1"], policy, &format!("{words} in eth1 out eth0"));
    assert!(named.contains("its mark becomes 0x7") && named.contains("ends: eth0 1:1"), "{named}");
    assert!(!named.contains("are not evaluated"), "{named}");
}

/// Asked of Linux 6.1: ifb1 gives the packet back to ifb0, from which it was redirected, ifb0 counts it in
/// 2:10, and nothing is sent.
#[test]
fn what_an_ifb_redirects_to_another_is_lost() {
    let policy = "\
tc qdisc add dev ifb1 root handle 3: pfifo
tc qdisc add dev ifb0 root handle 2: htb default 10
tc class add dev ifb0 parent 2: classid 2:10 htb rate 100mbit
tc filter add dev ifb0 parent 2: protocol ip prio 1 matchall action mirred egress redirect dev ifb1
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 100mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff action mirred egress \
redirect dev ifb0";
    let story = explain(&["eth0", "ifb0", "ifb1"], policy, "tcp 10.0.0.1:4 > 10.9.0.1:22");
    let end = "ends: dropped at ifb0: it came back to an ifb, which sends only what was redirected to it";
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
        let rest =
            story.split_once("     it is dropped\n").unwrap_or_else(|| panic!("not dropped: {story}")).1;
        assert_eq!(rest, "ends: dropped at eth0: a filter drops it (by ffff:)\n", "{story}");
    }
    // The mail itself is dropped as it leaves, behind routing.
    let mail = explain(
        &["eth0", "eth1"],
        &format!("{drop}\n{smtp}"),
        "tcp 10.0.0.1:4 > 10.9.0.1:25 in eth1 out eth0",
    );
    assert!(mail.contains("routing\n") && mail.contains("leaves by eth0\n + pref 1 flower"), "{mail}");
}

/// Filters of two chains may have the same preference and handle.
#[test]
fn filters_of_two_chains_are_kept_apart() {
    let policy = "\
tc qdisc add dev eth0 clsact
tc filter add dev eth0 ingress protocol ip prio 1 flower src_ip 10.0.0.0/8 action goto chain 7
tc filter add dev eth0 ingress protocol ip prio 2 flower ip_proto udp action police rate 2mbit burst 20k \
conform-exceed drop
tc filter add dev eth0 ingress chain 7 protocol ip prio 1 flower ip_proto tcp dst_port 80 action drop
tc filter add dev eth0 ingress chain 7 protocol ip prio 2 matchall action drop
tc filter add dev eth0 egress protocol all prio 1 matchall action police rate 5mbit burst 5k mtu 1000 drop";
    let story = explain(&["eth0", "eth1"], policy, "udp 10.1.1.1:5000 > 192.168.1.1:80 in eth0");
    assert_eq!(
        story,
        "\
arrives at eth0, before any routing
 + pref 1 flower eth_type ipv4, src_ip 10.0.0.0/8 ⇒ goto chain 7 :2
     `eth_type ipv4` holds
     `src_ip 10.0.0.0/8` holds: the source is 10.1.1.1
     the filters of chain 7 are evaluated (goto)
   1 filter behind it: not evaluated
 - chain 7 pref 1 flower eth_type ipv4, ip_proto tcp, dst_port 80 ⇒ drop :4
     `eth_type ipv4` holds
     `ip_proto tcp` does not hold: the protocol is udp
 + chain 7 pref 2 everything ⇒ drop :5
     it is dropped
ends: dropped at eth0: a filter drops it (by ffff:)
"
    );
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

/// A router answers ARP, and forwards none.
#[test]
fn arp_is_not_routed() {
    let policy = "tc qdisc add dev eth0 root handle 1: prio\ntc qdisc add dev eth0 handle ffff: ingress";
    let devices = ["eth0", "eth1"];
    let story = |words: &str| explain(&devices, policy, &format!("arp 192.168.1.7 > 192.168.1.1 {words}"));
    let own =
        "ends: goes on to this machine itself: ARP is not routed (a bridge, or a device on top, may take it)";
    assert!(story("in eth1").contains(own), "{}", story("in eth1"));
    assert!(story("in eth0").contains(own), "{}", story("in eth0"));
    // Its own leaves; and a bridge passes it on.
    assert!(story("").contains("leaves by eth0\n"), "{}", story(""));
    assert_eq!(story("").lines().next(), story("in lo").lines().next());
    let bridged = story("in eth1 out eth0");
    let note = "ARP is not routed: this is the way through a bridge of which eth1 is a port";
    assert!(bridged.contains(note) && bridged.contains("leaves by eth0\n"), "{bridged}");
    let ip = explain(&devices, policy, "udp 192.168.1.7:1 > 203.0.113.9:53 in eth1");
    assert!(ip.contains("leaves by eth0\n") && !ip.contains("not routed"), "{ip}");
}

/// A tunnel's outer packet is reported as not followed.
#[test]
fn a_tunnels_outer_packet_is_reported_as_not_followed() {
    let story = |dev: &str| {
        let policy = format!("tc qdisc add dev {dev} root handle 1: fq_codel");
        explain(&["eth0", dev], &policy, &format!("udp 192.168.1.7:1 > 203.0.113.9:53 out {dev}"))
    };
    for dev in ["gre1", "sit0", "tunl0", "ip6tnl1"] {
        let outer = "it goes on in an outer packet by the device that its route names, whose qdisc sees the \
        outer \
                     header: that is not followed here";
        assert!(story(dev).contains(outer), "{dev}: {}", story(dev));
    }
    assert!(story("wg0").contains("encrypted in an outer packet (UDP)"), "{}", story("wg0"));
    for dev in ["eth1", "ppp0", "tun0"] {
        assert!(!story(dev).contains("outer"), "{dev}: {}", story(dev));
    }
}

/// A copy is sent elsewhere; the packet itself is followed.
#[test]
fn a_copy_is_not_the_packet() {
    let policy = "tc qdisc add dev ifb0 root handle 1: tbf rate 5mbit burst 20k latency 50ms\n\
                  tc qdisc add dev ifb1 root handle 1: fq_codel\n\
                  tc qdisc add dev eth0 handle ffff: ingress\n\
                  tc filter add dev eth0 parent ffff: protocol all matchall action mirred egress mirror dev \
                  ifb1 \
                  action mirred egress redirect dev ifb0";
    let story = explain(
        &["eth0", "ifb0", "ifb1", "eth1"],
        policy,
        "udp 198.51.100.7:1 > 192.168.1.10:53 in eth0 out eth1",
    );
    assert!(story.contains("leaves by ifb0\n") && !story.contains("leaves by ifb1"), "{story}");
    assert!(story.contains("ends: eth1,"), "{story}");
}

/// A label is on the packet only behind the filter whose action puts it there; another device sees it.
#[test]
fn labels_change_the_ethertype_for_later_filters() {
    let policy = |control: &str, to: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 20\n\
             tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n\
             tc class add dev eth0 parent 1: classid 1:20 htb rate 1mbit\n\
             tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:10 action mpls \
             push protocol mpls_uc label 123 ttl 64 {control}\n\
             tc filter add dev eth0 parent 1: protocol {to} prio 2 matchall flowid 1:20"
        )
    };
    let packet = "tcp 192.168.1.7:4000 > 203.0.113.9:80 out eth0";
    let first = explain(&["eth0"], &policy("", "ip"), packet);
    assert!(
        first.contains(" + pref 1 u32 dport 80 → 1:10 ⇒ mpls") && first.contains("ends: eth0 1:10"),
        "{first}"
    );
    assert!(first.contains("a label of MPLS is put on") && !first.contains("0x8847"), "{first}");
    let labelled = explain(&["eth0"], &policy("continue", "mpls_uc"), packet);
    assert!(labelled.contains(" + pref 2 ") && labelled.contains("ends: eth0 1:20"), "{labelled}");
    let passed = explain(&["eth0"], &policy("continue", "ip"), packet);
    assert!(passed.contains("it matches IPv4, the packet is 0x8847"), "{passed}");
}

/// What an action of the same device rewrote later is not shown as what a filter compared.
#[test]
fn values_from_before_a_rewriting_are_not_made_up() {
    let policy = "tc qdisc add dev eth0 clsact\n\
        tc filter add dev eth0 egress pref 1 protocol ip u32 match ip dsfield 0x20 0xfc action drop\n\
        tc filter add dev eth0 egress pref 2 protocol ip matchall action pedit ex munge ip dsfield set 0x20 \
        retain 0xfc pipe action csum ip4h\n";
    let told = explain(&["eth0"], policy, "tcp 192.168.1.7:5000 > 203.0.113.9:24 out eth0");
    assert!(told.contains("`tos 0x20/0xfc` does not hold (actions on this device rewrite packets"), "{told}");
    assert!(!told.contains("TOS 0x20 &"), "{told}");
}

/// Linux 6.1 was asked: `InHdrErrors` counts it, and PREROUTING does not.
#[test]
fn a_wrong_checksum_is_dropped_before_routing() {
    let policy = "tc qdisc add dev eth0 clsact\ntc filter add dev eth0 ingress protocol ip prio 1 flower ip_proto \
        tcp action pedit ex munge ip dsfield set 0x28 retain 0xfc\n";
    let told = explain(&["eth0"], policy, "tcp 198.51.100.1:80 > 192.168.1.7:5000 in eth0");
    assert!(told.contains("dropped at eth0, before routing: Linux does not take it in"), "{told}");
    assert!(!told.contains("priority from the TOS"), "{told}");
}

#[test]
fn waits_that_a_limit_a_frame_or_a_wash_decides() {
    let of = |tree: &str, words: &str| explain(&["eth0"], tree, words);
    let udp = "udp 192.168.1.7:5000 > 203.0.113.9:53 dscp CS1 out eth0";
    let washed = of("tc qdisc add dev eth0 root cake bandwidth 20mbit diffserv4 wash\n", udp);
    assert!(washed.contains("its DSCP as it comes here chooses the tin of diffserv4"), "{washed}");
    let fq = of("tc qdisc add dev eth0 root fq maxrate 1mbit limit 30\n", udp);
    assert!(fq.contains("the flow's own queue holds 30 packets"), "{fq}");
    let pie = "tc qdisc add dev eth0 root handle 1: htb default 1\ntc class add dev eth0 parent 1: classid 1:1 htb \
        rate 2mbit\ntc qdisc add dev eth0 parent 1:1 pie target 20us\n";
    let pie = of(pie, udp);
    assert!(
        pie.contains("its queue is longer than its target of 19 µs: one frame alone takes 6.1 ms"),
        "{pie}"
    );
    let skbprio = of("tc qdisc add dev eth0 root handle 1: skbprio limit 20\n", udp);
    assert!(!skbprio.contains("no class takes it"), "{skbprio}");
    let notrack = "tc qdisc add dev eth0 root pfifo\niptables -t raw -A PREROUTING -p udp -j NOTRACK\n";
    let notrack = of(notrack, "udp 192.168.1.7:5000 > 203.0.113.9:53 in eth1 out eth0");
    assert!(notrack.contains("its connection is not looked up"), "{notrack}");
}

#[test]
fn a_hash_may_name_classes_that_are_not_there() {
    let policy = "\
tc qdisc add dev eth0 root handle 1: drr
tc class add dev eth0 parent 1: classid 1:1 drr
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 1 flow map key src rshift 0 addend -10.0.0.1 divisor 8 \
baseclass 1:1
tc filter add dev eth0 parent 1: protocol ipv6 prio 2 flower ip_proto udp flowid 1:9";
    let first = explain(&["eth0"], policy, "udp 10.0.0.1:4 > 10.9.0.1:80");
    assert!(first.contains("ends: eth0 1:1,") && !first.contains("the hash names"), "{first}");
    let second = explain(&["eth0"], policy, "udp 10.0.0.2:4 > 10.9.0.1:80");
    assert!(second.contains("the hash names a class that takes no packets: no class takes it"), "{second}");
    let missing = explain(&["eth0"], policy, "udp 2001:db8::1 > [2001:db8:2::7]:443");
    assert!(missing.contains("1:9 is not there: no class takes it"), "{missing}");
}

/// Filters without a preference are before those that are there: each has its own line, equal ones too.
#[test]
fn equal_filters_without_a_preference_have_their_own_lines() {
    let filter = "tc filter add dev eth0 parent 1: protocol ip u32 match ip sport 22 0xffff";
    let policy = format!(
        "tc qdisc add dev eth0 root handle 1: htb\n{filter} action drop\n{filter} action pass\n{filter} flowid 1:1\n"
    );
    let text = explain(&["eth0"], &policy, "tcp 192.168.1.7:40000 > 203.0.113.9:22 out eth0");
    for line in ["⇒ drop :2", "⇒ pass :3", "→ 1:1 :4"] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
}

/// What a machine sends to itself leaves by `lo`, and nothing for others does. An ifb that nothing slows down
/// holds no packet; netem's losses are draws.
#[test]
fn lo_ifbs_and_losses() {
    let lo = "tc qdisc add dev lo root handle 1: htb default 12\n\
              tc class add dev lo parent 1: classid 1:12 htb rate 100mbit\n";
    assert!(explain(&["lo"], lo, "tcp 127.0.0.1:5 > 127.0.0.1:80").contains("ends: lo 1:12"));
    let reading = reading(&["lo"], lo);
    let packet = Packet::parse("tcp 192.168.1.7:5 > 203.0.113.9:443").expect("a packet");
    assert!(Explainer::new(&reading).course(&packet).is_err(), "it does not leave by lo");
    // A loopback address, or both ends the machine's own: not by another device.
    let eth0 = self::reading(&["eth0", "eth1"], "tc qdisc add dev eth0 root netem delay 10ms\n");
    for ends in ["127.0.0.1:5 > 192.0.2.2:6", "192.168.1.1:5 > 192.0.2.2:6", "192.0.2.2:5 > 127.0.0.1:6"] {
        let packet = Packet::parse(&format!("udp {ends}")).expect("a packet");
        assert!(Explainer::new(&eth0).course(&packet).is_err(), "{ends}");
    }
    let out = Packet::parse("udp 192.0.2.2:5 > 203.0.113.9:6").expect("a packet");
    assert!(Explainer::new(&eth0).course(&out).is_ok());
    let ifb = "tc qdisc add dev ifb0 root sfq\ntc qdisc add dev eth0 ingress\n\
               tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0\n";
    let text = explain(&["eth0", "ifb0"], ifb, "tcp 198.51.100.7:443 > 192.168.1.10:40000 in eth0");
    assert!(text.contains("leaves by ifb0") && !text.contains("it waits in ifb0"), "{text}");
    let loss = "tc qdisc add dev eth0 root netem loss 100%\n";
    let text = explain(&["eth0"], loss, "tcp 192.168.1.7:40000 > 203.0.113.9:22 out eth0");
    assert!(text.contains("netem drops every packet"), "{text}");
}
