//! Rules of netfilter on fragments and behind IPv6's extension headers, as real kernels matched them
//! (`data/carried.txt` describes the runs).

use super::vectors::words;
use tidegate_classify::conntrack::Conntrack;
use tidegate_classify::netfilter::{HookDevices, NetfilterTable};
use tidegate_packet::header::ethertype;
use tidegate_packet::{Head, LinuxVersion, Meta, Pool};
use tidegate_policy::netfilter::Hook;
use tidegate_syntax::iptables::{IptCommand, parse};

const SEEN: &str = include_str!("../data/carried.txt");

#[test]
fn rules_find_what_a_packet_carries_as_linux_did() {
    for (family, tool) in [("4", "iptables"), ("6", "ip6tables")] {
        let rules: Vec<&str> = rows("rule", family).collect();
        let mut packets = 0;
        for row in rows("packet", family) {
            packets += 1;
            let mut parts = row.split(" | ").map(str::trim);
            let bytes = network(family == "6", parts.next().expect("a packet"));
            for (release, wanted) in LinuxVersion::RECORDED.into_iter().zip(parts) {
                let matched = matching(tool, &rules, &bytes, release);
                assert_eq!(matched, wanted, "{family}: {row}\nLinux {release}: {rules:?}");
            }
        }
        assert!(packets > 7, "{family}");
    }
}

fn rows(kind: &str, family: &str) -> impl Iterator<Item = &'static str> {
    let kind = format!("{kind} {family} ");
    SEEN.lines().filter_map(move |line| line.strip_prefix(&kind))
}

/// The bytes of a packet from `PROTOCOL WORD HEX`.
fn network(v6: bool, packet: &str) -> Vec<u8> {
    let mut words = packet.split(' ');
    let protocol: u8 = words.next().and_then(|word| word.parse().ok()).expect("a protocol");
    let word = words.next().and_then(|word| word.strip_prefix("0x")).expect("a fragment word");
    let word = u16::from_str_radix(word, 16).expect("a number").to_be_bytes();
    let hex = words.next().unwrap_or_default();
    let carried = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"));
    let mut bytes = vec![0; if v6 { 40 } else { 20 }];
    let length = hex.len() / 2 + if v6 { 0 } else { bytes.len() };
    let length = u16::try_from(length).expect("a short packet").to_be_bytes();
    if v6 {
        (bytes[0], bytes[6], bytes[7]) = (0x60, protocol, 64);
        bytes[4..6].copy_from_slice(&length);
    } else {
        (bytes[0], bytes[8], bytes[9]) = (0x45, 64, protocol);
        bytes[2..4].copy_from_slice(&length);
        bytes[6..8].copy_from_slice(&word);
    }
    bytes.extend(carried);
    bytes
}

/// The rules that match a packet, by their numbers.
fn matching(tool: &str, rules: &[&str], bytes: &[u8], linux: LinuxVersion) -> String {
    let v6 = tool == "ip6tables";
    let mut mangle = NetfilterTable::new(v6, "mangle");
    for rule in rules {
        let command = format!("-t mangle -A FORWARD {rule} -j MARK --set-mark 1");
        match parse(tool, &words(&command)).expect(rule).command {
            IptCommand::Apply(op) => mangle.apply(&op).expect(rule),
            other => panic!("{rule}: {other:?}"),
        }
    }
    let (mut connections, mut pool) = (Conntrack::default(), Pool::new(1));
    let head = Head::from_network(if v6 { ethertype::IPV6 } else { ethertype::IPV4 }, bytes);
    let pkt = pool.insert(Meta::of(&head, 0), head).expect("the pool has room");
    let place = HookDevices { input: "in1", output: "link0", linux };
    let forward = mangle.at_hook(Hook::Forward).next().expect("mangle has it").1;
    mangle.run(forward, place, &mut connections, &mut pool, &pkt, None);
    pool.release(pkt);
    let chain = mangle.chains().iter().find(|chain| chain.name == "FORWARD").expect("mangle has it");
    let matched = chain.rules.iter().enumerate().filter(|(_, rule)| rule.packets > 0);
    matched.map(|(at, _)| at.to_string()).collect::<Vec<_>>().join(" ")
}
