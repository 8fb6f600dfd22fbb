//! Rules of iptables as a real Linux counted them (`data/netfilter.txt` describes the run).

use std::fmt::Write as _;
use tidegate_classify::conntrack::{Conntrack, begin_hooks};
use tidegate_classify::netfilter::{HookDevices, NetfilterTable, NetfilterVerdict};
use tidegate_packet::Pool;
use tidegate_packet::header::ethertype;
use tidegate_policy::netfilter::Hook;
use tidegate_recording::{Recording, RowKind, Texts, at};
use tidegate_syntax::iptables::{IptCommand, parse};

const RULES: &str = include_str!("../data/netfilter.txt");
const PACKETS: &str = include_str!("../data/packets.csv");

#[test]
fn rules_count_as_linux_did() {
    let (mut mangle, mut connections, mut pool) =
        (NetfilterTable::new(false, "mangle"), Conntrack::default(), Pool::new(1));
    connections.activate(false);
    for line in RULES.lines().filter(|line| line.starts_with("iptables ")) {
        let words: Vec<String> = line.split(' ').skip(1).map(str::to_owned).collect();
        match parse("iptables", &words).expect(line).command {
            IptCommand::Apply(op) => mangle.apply(&op).expect(line),
            other => panic!("{line}: {other:?}"),
        }
    }
    // The broadcast went to a neighbour's address, which routers pass on.
    let schedule = PACKETS.replace("255.255.255.255,udp", "10.9.0.255,udp");
    let texts = Texts { link: "0 0 1500 1000", schedule: &schedule, random: None, has_frames: false };
    let forward = mangle.at_hook(Hook::Forward).next().expect("mangle has it").1;
    let place = HookDevices { input: "in1", output: "link0" };
    for row in Recording::parse(&texts, 1).expect("packets").rows {
        let RowKind::Packet(arrival) = row.what else { continue };
        if arrival.meta.ethertype != ethertype::IPV4 {
            continue;
        }
        let pkt = pool.insert(arrival.meta, arrival.head).expect("the pool has room");
        begin_hooks(pool.meta_mut(&pkt));
        assert!(connections.enter(at(row.time), &mut pool, &pkt));
        match mangle.run(forward, place, &mut connections, &mut pool, &pkt, None) {
            NetfilterVerdict::Accept => connections.confirm(&pool, &pkt),
            _ => connections.abandon(&pool, &pkt),
        }
        pool.release(pkt);
    }
    let mut ours = String::new();
    for chain in ["FORWARD", "a", "b"] {
        let chain = mangle.chains().iter().find(|there| there.name == chain).expect("it was made");
        for rule in &chain.rules {
            let _ = writeln!(ours, "= {} {} {}", chain.name, rule.packets, rule.bytes);
        }
    }
    let kernel: Vec<&str> = RULES.lines().filter(|line| line.starts_with("= ")).collect();
    assert_eq!(ours.lines().collect::<Vec<_>>(), kernel);
}
