//! Rules of iptables as a real Linux counted them (`data/netfilter.txt` describes the runs).

use super::vectors::words;
use tidegate_classify::conntrack::{Conntrack, begin_hooks};
use tidegate_classify::netfilter::{HookDevices, NetfilterTable, NetfilterVerdict};
use tidegate_packet::Pool;
use tidegate_packet::header::ethertype;
use tidegate_policy::netfilter::Hook;
use tidegate_recording::{Recording, RowKind, Texts, at};
use tidegate_syntax::iptables::{IptCommand, parse};

const SESSION: &str = include_str!("../data/netfilter-session.txt");
/// Rules, and the packets that came by them.
const RUNS: [(&str, &str); 2] = [
    (include_str!("../data/netfilter.txt"), include_str!("../data/packets.csv")),
    (include_str!("../data/netfilter-2.txt"), include_str!("../data/packets-3.csv")),
];

#[test]
fn rules_count_as_linux_did() {
    for (rules, packets) in RUNS {
        let kernel: Vec<&str> = rules.lines().filter(|line| line.starts_with("= ")).collect();
        let commands: Vec<&str> = rules.lines().filter(|line| line.starts_with("iptables ")).collect();
        let ours = counted(&commands, packets);
        let differ = (0..).zip(ours.iter().zip(&kernel)).filter(|(_, (ours, kernel))| ours != *kernel);
        let differ: Vec<_> = differ.map(|(at, both)| (commands.get::<usize>(at), both)).collect();
        assert!(differ.is_empty() && ours.len() == kernel.len(), "{differ:#?}");
    }
}

/// What each rule of FORWARD, a and b counts after these commands and packets: `= CHAIN PACKETS BYTES`.
fn counted(commands: &[&str], packets: &str) -> Vec<String> {
    let (mut mangle, mut connections, mut pool) =
        (NetfilterTable::new(false, "mangle"), Conntrack::default(), Pool::new(1));
    connections.activate(true);
    for command in commands {
        match parse("iptables", &words(command)[1..]).expect(command).command {
            IptCommand::Apply(op) => mangle.apply(&op).expect(command),
            other => panic!("{command}: {other:?}"),
        }
    }
    // The broadcast went to a neighbour's address, which routers pass on.
    let schedule = packets.replace("255.255.255.255,udp", "10.9.0.255,udp");
    let texts =
        Texts { link: "0 0 1500 1000", schedule: &schedule, random: None, has_frames: false, linux: None };
    let forward = mangle.at_hook(Hook::Forward).next().expect("mangle has it").1;
    let place = HookDevices { input: "in1", output: "link0", ..HookDevices::default() };
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
    let mut counts = Vec::new();
    for name in ["FORWARD", "a", "b"] {
        let chain = mangle.chains().iter().find(|chain| chain.name == name);
        let rules = chain.into_iter().flat_map(|chain| &chain.rules);
        counts.extend(rules.map(|rule| format!("= {name} {} {}", rule.packets, rule.bytes)));
    }
    counts
}

/// Commands in turn: those that Linux refused are refused, and each table has as many rules as it had there.
#[test]
fn commands_are_refused_as_linux_did() {
    let names = ["mangle", "filter", "nat", "raw"];
    let mut tables = names.map(|name| NetfilterTable::new(false, name));
    let mut differ = String::new();
    for line in SESSION.lines().filter(|line| !line.starts_with('#')) {
        let (verdict, command) = line.split_once(" -t ").expect("a command");
        let table = &mut tables[names.iter().position(|name| command.starts_with(name)).expect("a table")];
        let done = match parse("iptables", &words(&format!("-t {command}"))).map(|parsed| parsed.command) {
            Ok(IptCommand::Apply(op)) => table.apply(&op).is_ok(),
            Ok(IptCommand::Check(op)) => table.clone().apply(&op).is_ok(),
            // iptables itself refuses it.
            _ => false,
        };
        let rules: usize = table.chains().iter().map(|chain| chain.rules.len()).sum();
        let found = format!("{} {rules}", if done { '+' } else { '-' });
        if found != verdict {
            differ += &format!("{command}: Linux {verdict}, here {found}\n");
        }
    }
    assert!(differ.is_empty(), "{differ}");
}
