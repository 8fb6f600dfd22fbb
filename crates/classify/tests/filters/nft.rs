//! Rules of nft as the real one listed them, with what their counters counted (`data/nft-order.txt`).

use tidegate_classify::conntrack::{Conntrack, begin_hooks};
use tidegate_classify::netfilter::{HookDevices, NetfilterTable, NetfilterVerdict};
use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Head, Meta, Pool, Time};
use tidegate_policy::netfilter::{Family, Hook};
use tidegate_syntax::nft::{Ask, parse, print_parts};

const ORDER: &str = include_str!("../data/nft-order.txt");
/// Destination, port and bytes of data of each packet that the recording names.
const PACKETS: [(&str, u16, usize); 9] = [
    ("127.0.0.1", 9, 72),
    ("127.0.0.1", 9, 20),
    ("127.0.0.2", 9, 33),
    ("127.0.0.1", 7, 40),
    ("127.0.0.2", 7, 10),
    ("127.0.0.2", 7, 100),
    ("::1", 9, 50),
    ("::1", 7, 5),
    ("127.0.0.1", 9, 1),
];

/// The table after commands of nft.
fn table(text: &str) -> NetfilterTable {
    let mut table = NetfilterTable::free(Family::Inet, "t");
    for command in parse(text, None).expect("nft takes them") {
        match command.ask {
            Ask::Op(op) => table.apply(&op).expect("the kernel takes it"),
            other => panic!("{other:?}"),
        }
    }
    table
}

/// A UDP packet of the machine's own from port 1001.
fn packet(to: &str, port: u16, data: usize) -> (Meta, Head) {
    let udp = (8 + data) as u16;
    let mut transport = [1001_u16, port, udp, 0].map(u16::to_be_bytes).concat();
    transport.resize(8 + data, b'x');
    let (kind, mut bytes) = match to.parse().expect("an address") {
        std::net::IpAddr::V4(to) => {
            let len = (20 + udp).to_be_bytes();
            let mut bytes = vec![0x45, 0, len[0], len[1], 0, 0, 0x40, 0, 64, proto::UDP, 0, 0, 127, 0, 0, 1];
            bytes.extend(to.octets());
            (ethertype::IPV4, bytes)
        }
        std::net::IpAddr::V6(to) => {
            let len = udp.to_be_bytes();
            let mut bytes = vec![0x60, 0, 0, 0, len[0], len[1], proto::UDP, 64];
            bytes.extend([to.octets(), to.octets()].concat());
            (ethertype::IPV6, bytes)
        }
    };
    bytes.extend(transport);
    let head = Head::from_network(kind, &bytes);
    (Meta::of(&head, bytes.len() as u32 + 14), head)
}

/// Sends a packet through the chains of the hook `output`, by priority, with conntrack between them.
fn send(table: &mut NetfilterTable, connections: &mut Conntrack, (meta, head): (Meta, Head)) {
    let mut pool = Pool::new(1);
    let pkt = pool.insert(meta, head).expect("the pool has room");
    begin_hooks(pool.meta_mut(&pkt));
    let mut chains: Vec<(i32, usize)> = table.at_hook(Hook::Output).collect();
    chains.sort_unstable();
    let place = HookDevices { input: "", output: "lo", ..HookDevices::default() };
    let (early, late): (Vec<_>, Vec<_>) = chains.into_iter().partition(|(priority, _)| *priority < -200);
    let mut pass = |chains: Vec<(i32, usize)>, connections: &mut Conntrack, pool: &mut Pool| {
        let passes =
            |chain| table.run(chain, place, connections, pool, &pkt, None) == NetfilterVerdict::Accept;
        chains.into_iter().map(|(_, chain)| chain).all(passes)
    };
    let passed = pass(early, connections, &mut pool)
        && connections.enter(Time(0), &mut pool, &pkt)
        && pass(late, connections, &mut pool);
    if passed {
        connections.confirm(&pool, &pkt)
    } else {
        connections.abandon(&pool, &pkt)
    }
    pool.release(pkt);
}

/// The rules of a chain as nft lists them, with handles if wanted.
fn listed(table: &NetfilterTable, chain: &str, handles: bool) -> Vec<String> {
    let chain = table.chains().iter().find(|one| one.name == chain).expect("it was made");
    let line = |parts: &[tidegate_classify::netfilter::CountedRule]| {
        let rules: Vec<_> =
            parts.iter().map(|one| (one.rule.clone(), Some((one.packets, one.bytes)))).collect();
        let number = if handles { format!(" # handle {}", parts[0].handle) } else { String::new() };
        print_parts(&rules, Family::Inet) + &number
    };
    chain.rules.chunk_by(|_, one| one.rule.part.is_later()).map(line).collect()
}

#[test]
fn counters_count_what_comes_to_their_place() {
    let cases: Vec<(&str, &str)> = ORDER
        .split("\n> ")
        .skip(1)
        .map(|case| case.trim_end().split_once('\n').expect("a rule and its listing"))
        .collect();
    let mut commands = "add table inet t\n\
        add chain inet t raw { type filter hook output priority -300; }\n\
        add rule inet t raw udp dport 7 notrack\n"
        .to_owned();
    for (at, (rule, _)) in (-100..).zip(&cases) {
        commands += &format!("add chain inet t c{at} {{ type filter hook output priority {at}; }}\n");
        commands += &format!("add rule inet t c{at} {rule}\n");
    }
    let (mut table, mut connections) = (table(&commands), Conntrack::default());
    connections.activate(false);
    for (to, port, data) in PACKETS {
        send(&mut table, &mut connections, packet(to, port, data));
    }
    let found: Vec<String> =
        (-100..).zip(&cases).flat_map(|(at, _)| listed(&table, &format!("c{at}"), false)).collect();
    let wanted: Vec<&str> = cases.iter().map(|(_, listing)| *listing).collect();
    assert_eq!(found, wanted);
    assert_eq!(wanted.len(), 23);
}
