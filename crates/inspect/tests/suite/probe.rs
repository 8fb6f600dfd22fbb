//! Packets sent through policies: where the engine puts each, and what it takes it for.

use crate::common;

use common::reading;
use tidegate_gateway::EgressPath;
use tidegate_inspect::{Packet, PacketEntry, ProbeResult, Prober};

/// Three bands by priority, and what each takes.
const BANDS: &str = "\
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 300kbit ceil 1mbit prio 0
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 300kbit ceil 1mbit prio 1
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 300kbit ceil 1mbit prio 2
tc qdisc add dev eth0 parent 1:10 handle 110: prio
tc qdisc add dev eth0 parent 1:20 handle 120: fq_codel
tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip dport 22 0xffff flowid 1:10
tc filter add dev eth0 parent 1: protocol ip pref 2 handle 7 fw flowid 1:20
iptables -t mangle -A POSTROUTING -o eth0 -p udp --dport 53 -j MARK --set-mark 7
iptables -t mangle -A POSTROUTING -o eth0 -p udp --dport 9 -j DROP";

fn packet(words: &str) -> Packet {
    Packet::parse(words).expect(words)
}

/// Classes, and the qdiscs with those that no one named as `-`.
fn result_text(prober: &mut Prober, way: &ProbeResult) -> String {
    let mut text = String::new();
    for stop in &way.stops {
        let classes: Vec<String> = stop.classes.iter().map(ToString::to_string).collect();
        let qdiscs = stop.qdiscs.iter().map(|spot| match spot.qdisc.is_none() {
            true => format!("-{}", spot.kind.name()),
            false => format!("{}{}", spot.qdisc, spot.kind.name()),
        });
        let qdiscs: Vec<String> = qdiscs.collect();
        let name = prober.gateway().name(stop.device).to_owned();
        let led = if stop.led_to.is_some() { " led" } else { "" };
        text.push_str(&format!("{name}{led} [{}] [{}] ", classes.join(" "), qdiscs.join(" ")));
    }
    if let Some(loss) = way.dropped {
        text.push_str(&format!("lost at {}: {:?}", loss.at, loss.why));
    }
    text.trim_end().to_owned()
}

#[test]
fn where_each_packet_waits() {
    let mut prober = Prober::new(&reading(&["eth0", "eth1"], BANDS));
    let (eth0, eth1) = (prober.device("eth0").expect("eth0"), prober.device("eth1"));
    let table = [
        ("tcp 10.0.0.1 > 10.0.0.2:22", "eth0 [1:1 1:10 110:2] [1:htb 110:prio -pfifo]"),
        ("tcp 10.0.0.1 > 10.0.0.2:22 tos 0x10", "eth0 [1:1 1:10 110:1] [1:htb 110:prio -pfifo]"),
        ("udp 10.0.0.1 > 10.0.0.2:53", "eth0 [1:1 1:20] [1:htb 120:fq_codel]"),
        ("udp 10.0.0.1 > 10.0.0.2:54", "eth0 [1:1 1:30] [1:htb -pfifo]"),
        ("udp 10.0.0.1 > 10.0.0.2:54 mark 7", "eth0 [1:1 1:20] [1:htb 120:fq_codel]"),
        ("arp 10.0.0.1 > 10.0.0.2", "eth0 [1:1 1:30] [1:htb -pfifo]"),
        ("udp 10.0.0.1 > 10.0.0.2:9", "lost at none: NetfilterLeaving"),
    ];
    for _ in 0..2 {
        for (words, wanted) in table {
            let way = prober.send(&packet(words), eth0, EgressPath::Forwarded(eth1));
            assert_eq!(result_text(&mut prober, &way), wanted, "{words}");
        }
    }
    // A class that priority names, and HTB's direct queue.
    let local = prober.send(&packet("tcp 10.0.0.1 > 10.0.0.2:80 priority 1:20"), eth0, EgressPath::Local);
    let direct = prober.send(&packet("tcp 10.0.0.1 > 10.0.0.2:80 priority 1:0"), eth0, EgressPath::Local);
    assert_eq!(result_text(&mut prober, &local), "eth0 [1:1 1:20] [1:htb 120:fq_codel]");
    assert_eq!(result_text(&mut prober, &direct), "eth0 [] [1:htb]");
}

#[test]
fn what_a_connection_is_made_to_be() {
    let policy = "\
tc qdisc add dev eth0 root handle 1: prio
iptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE
iptables -t mangle -A PREROUTING -j CONNMARK --restore-mark
iptables -t mangle -A FORWARD -m connbytes --connbytes 100000: --connbytes-dir original --connbytes-mode \
bytes -j MARK --set-mark 9
iptables -t mangle -A FORWARD -m conntrack --ctstate RELATED -j MARK --set-mark 8";
    let mut prober = Prober::new(&reading(&["eth0", "eth1"], policy));
    let (eth0, eth1) = (prober.device("eth0").expect("eth0"), prober.device("eth1").expect("eth1"));
    let (up, down) =
        (PacketEntry::Leaves(eth0, EgressPath::Forwarded(Some(eth1))), PacketEntry::Through(eth0, eth1));
    let table = [
        (up, "tcp 10.0.0.1 > 1.1.1.1:80 syn", "new 0"),
        (up, "tcp 10.0.0.1 > 1.1.1.1:80", "new 0"),
        (up, "tcp 10.0.0.1 > 1.1.1.1:80 established", "established 0"),
        (up, "tcp 10.0.0.1 > 1.1.1.1:80 invalid", "invalid 0"),
        (up, "tcp 10.0.0.1 > 1.1.1.1:80 new connmark 3", "new 3"),
        (up, "udp 10.0.0.1 > 1.1.1.1:80 established connmark 3", "established 3"),
        (up, "udp 10.0.0.1 > 1.1.1.1:80 established bytes 99000", "established 0"),
        (up, "tcp 10.0.0.1 > 1.1.1.1:80 established bytes 100000", "established 9"),
        (up, "tcp 10.0.0.1 > 1.1.1.1:80 bytes 40MB", "new 9"),
        (up, "icmp 10.0.0.1 > 1.1.1.1", "new 0"),
        (up, "icmp 10.0.0.1 > 1.1.1.1 established", "established 0"),
        (up, "icmp 10.0.0.1 > 1.1.1.1 unreachable", "invalid 0"),
        (down, "tcp 1.1.1.1:80 > 10.0.0.1:5000 reply connmark 4", "established 4"),
        (down, "icmp 1.1.1.1 > 10.0.0.1 echo-reply reply", "established 0"),
        (down, "icmp 1.1.1.1 > 10.0.0.1 unreachable related", "related 8"),
        (down, "icmp 1.1.1.1 > 10.0.0.1 echo-reply", "invalid 0"),
    ];
    for (course, words, wanted) in table {
        let way = prober.travel(&packet(words), course);
        assert_eq!(format!("{:?} {}", way.state, way.mark).to_lowercase(), wanted, "{words}");
    }
}

#[test]
fn led_to_an_ifb_and_back() {
    let policy = "\
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip u32 match u32 0 0 action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root handle 2: drr
tc class add dev ifb0 parent 2: classid 2:1 drr
tc filter add dev ifb0 parent 2: protocol ip u32 match ip sport 443 0xffff flowid 2:1
tc qdisc add dev eth1 root handle 3: prio
tc filter add dev eth1 parent 3: protocol ip pref 1 u32 match ip dport 7 0xffff action mirred egress \
redirect dev ifb0
tc filter add dev eth1 parent 3: protocol ip pref 1 u32 match ip dport 9 0xffff action drop";
    let mut prober = Prober::new(&reading(&["eth0", "eth1", "ifb0"], policy));
    let (eth0, eth1) = (prober.device("eth0").expect("eth0"), prober.device("eth1").expect("eth1"));
    let table = [
        (
            PacketEntry::Arrives(eth0),
            "tcp 1.1.1.1:443 > 10.0.0.1:80",
            "eth0 led [] [] ifb0 [2:1] [2:drr -pfifo]",
        ),
        (
            PacketEntry::Through(eth0, eth1),
            "tcp 1.1.1.1:443 > 10.0.0.1:80",
            "eth0 led [] [] ifb0 [2:1] [2:drr -pfifo] eth1 [3:2] [3:prio -pfifo]",
        ),
        (
            PacketEntry::Through(eth0, eth1),
            "tcp 1.1.1.1:444 > 10.0.0.1:80",
            "eth0 led [] [] lost at 2:: Unclassified",
        ),
        (PacketEntry::Arrives(eth0), "arp 1.1.1.1 > 10.0.0.1", ""),
        (
            PacketEntry::Through(eth0, eth1),
            "tcp 1.1.1.1:443 > 10.0.0.1:7",
            "eth0 led [] [] ifb0 [2:1] [2:drr -pfifo] eth1 led [] [] ifb0 [2:1] [2:drr -pfifo] eth1 [3:2] \
            [3:prio -pfifo]",
        ),
        (PacketEntry::Leaves(eth1, EgressPath::Local), "tcp 1.1.1.1:443 > 10.0.0.1:9", "lost at 3:: Policy"),
    ];
    for (course, words, wanted) in table {
        let way = prober.travel(&packet(words), course);
        assert_eq!(result_text(&mut prober, &way), wanted, "{words}");
    }
}

#[test]
fn thousands_of_classes_at_low_rates() {
    let mut policy = String::from("tc qdisc add dev eth0 root handle 1: htb\n");
    for class in 1..=3000 {
        policy.push_str(&format!("tc class add dev eth0 parent 1: classid 1:{class:x} htb rate 8kbit\n"));
    }
    policy.push_str("tc filter add dev eth0 parent 1: protocol all handle 1 fw classid 1:1\n");
    let mut prober = Prober::new(&reading(&["eth0"], &policy));
    let eth0 = prober.device("eth0").expect("eth0");
    for class in (1..=3000).chain(1..=3000) {
        let words = format!("udp 10.0.0.1 > 10.0.0.2:5 len 1500 priority 1:{class:x}");
        let way = prober.send(&packet(&words), eth0, EgressPath::Local);
        assert_eq!(way.leaf_class().map(|class| class.minor()), Some(class));
    }
}
