//! What the checker says about which packets go where: policies with one mistake each, and what is found of it.

mod common;

use common::reading;
use tidegate_insight::{Finding, Rule, Witness, check};

const BANDS: &str = "\
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 9mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 3mbit ceil 9mbit prio 0
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 3mbit ceil 9mbit prio 1
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 3mbit ceil 9mbit prio 2
";

/// What is found by some rules: where, what, what follows, what shows it, what is done.
fn told(text: &str, rules: &[Rule]) -> Vec<String> {
    let mut reading = reading(&["eth0", "eth1"], text);
    let found = check(&mut reading);
    found.iter().filter(|finding| rules.contains(&finding.rule)).map(line).collect()
}

fn line(finding: &Finding) -> String {
    let at = finding.place.as_ref().map_or(0, |place| place.line);
    let witness = match &finding.witness {
        Some(Witness::Packet { packet, went }) => format!("{packet} -> {went}"),
        Some(Witness::Number(number)) => number.clone(),
        None => "-".into(),
    };
    let fix = finding.fix.as_ref().map_or("-".into(), |fix| {
        let edits: Vec<String> = fix.edits.iter().map(|e| format!("{}={}", e.place.line, e.text)).collect();
        format!("{} [{}]", fix.what, edits.join(" "))
    });
    format!(
        "{} {} {at}: {} | {} | {witness} | {fix}",
        finding.rule.id(),
        finding.level.name(),
        finding.what,
        finding.because
    )
}

fn with(rest: &str) -> String {
    format!("{BANDS}{rest}")
}

#[test]
fn a_filter_behind_one_that_takes_all_it_asks_for() {
    // 0xb8 & 0x1c is 0x18: the telephones of the last filter are taken by the first.
    let text = with(
        "tc filter add dev eth0 parent 1: protocol ip pref 5 u32 match ip tos 0x18 0x1c flowid 1:20
tc filter add dev eth0 parent 1: protocol ip pref 5 u32 match ip tos 0x08 0x1c flowid 1:30
tc filter add dev eth0 parent 1: protocol ip pref 5 u32 match ip tos 0xb8 0xfc flowid 1:10",
    );
    assert_eq!(told(&text, &[Rule::Unreachable]), [""]);
}

#[test]
fn print_all() {
    let cases = [
        (
            "leaf",
            with(
                "tc qdisc add dev eth0 parent 1:10 handle 10: prio
tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip protocol 17 0xff flowid 1:10
tc filter add dev eth0 parent 1:10 protocol ip pref 1 u32 match ip dport 53 0xffff flowid 10:1
tc filter add dev eth0 parent 1:10 protocol ip pref 1 u32 match ip dport 54 0xffff flowid 10:2",
            ),
        ),
        ("default", with("").replace("default 20", "default 77")),
        ("nodefault", with("").replace("default 20", "")),
        (
            "drr",
            "tc qdisc add dev eth0 root handle 1: drr
tc class add dev eth0 parent 1: classid 1:1 drr
tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match u32 0 0 flowid 1:1"
                .into(),
        ),
        (
            "icmp6",
            with("tc filter add dev eth0 parent 1: protocol ipv6 pref 7 u32 match ip protocol 1 0xff flowid 1:10"),
        ),
        (
            "marks",
            with(
                "tc filter add dev eth0 parent 1: protocol ip pref 1 handle 1 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ip pref 2 handle 5 fw flowid 1:30
iptables -t mangle -A POSTROUTING -o eth0 -p udp -j MARK --set-mark 1
iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 80 -j MARK --set-mark 3",
            ),
        ),
        (
            "replaced",
            with(
                "tc filter add dev eth0 parent 1: protocol ip pref 1 handle 1 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ip pref 2 handle 3 fw flowid 1:30
iptables -t mangle -A POSTROUTING -o eth0 -p udp --dport 53 -j MARK --set-mark 1
iptables -t mangle -A POSTROUTING -o eth0 -p udp -j MARK --set-mark 3",
            ),
        ),
        (
            "connmark",
            with(
                "tc filter add dev eth0 parent 1: protocol ip pref 1 handle 1 fw flowid 1:10
iptables -t mangle -A POSTROUTING -o eth0 -p udp --dport 53 -j CONNMARK --set-mark 1",
            ),
        ),
        (
            "rules",
            with(
                "tc filter add dev eth0 parent 1: protocol ip pref 1 handle 1 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ip pref 2 handle 2 fw flowid 1:30
iptables -t mangle -A FORWARD -o eth0 -p udp -j MARK --set-mark 2
iptables -t mangle -A FORWARD -o eth0 -p udp -j RETURN
iptables -t mangle -A FORWARD -o eth0 -p udp --dport 53 -j MARK --set-mark 1",
            ),
        ),
        (
            "hash",
            "tc qdisc add dev eth0 root handle 1: drr
tc class add dev eth0 parent 1: classid 1:1 drr
tc class add dev eth0 parent 1: classid 1:2 drr
tc filter add dev eth0 parent 1: protocol all pref 1 handle 1 flow hash keys src divisor 2 baseclass 1:1
tc filter add dev eth0 parent 1: protocol all pref 9 matchall flowid 1:1"
                .into(),
        ),
        (
            "intent",
            with(
                "tc filter add dev eth0 parent 1: protocol ip pref 5 u32 match ip tos 0x08 0x1c flowid 1:30
tc filter add dev eth0 parent 1: protocol ip pref 5 u32 match ip tos 0x00 0x1c flowid 1:20
tc filter add dev eth0 parent 1: protocol ip pref 5 u32 match ip tos 0x10 0x10 flowid 1:10",
            ),
        ),
    ];
    for (name, text) in cases {
        println!("== {name}");
        for line in told(&text, Rule::ALL) {
            println!("{line}");
        }
    }
}
