//! Netfilter's hooks on each path through the machine, and tables that are put back as they were.

use crate::words::{FRAME, Machine, udp};
use tidegate_gateway::{DropReason, EgressPath, Event, EventKind, tos_priority};
use tidegate_packet::header::ethertype;
use tidegate_policy::Op;
use tidegate_policy::netfilter::{
    Base, ChainType, Family, Hook, NetfilterRule, NetfilterTarget, NfCommand, NfOp,
};

fn machine() -> Machine {
    Machine::new(&["lan0", "wan0"])
}

fn head() -> tidegate_packet::Head {
    udp(("10.0.0.2", 4000), ("203.0.113.7", 53), 0)
}

/// The chains that a packet meets, in the order of the Netfilter documentation's picture: raw, mangle, nat,
/// filter.
#[test]
fn each_way_through_the_machine_has_its_chains() {
    let all = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];
    // Forwarded, sent, taken in, given as it is: does a rule that drops in this chain drop the packet?
    let table = [
        ("PREROUTING", [true, false, true, false]),
        ("INPUT", [false, false, true, false]),
        ("FORWARD", [true, false, false, false]),
        ("OUTPUT", [false, true, false, false]),
        ("POSTROUTING", [true, true, false, false]),
    ];
    assert_eq!(table.map(|row| row.0), all);
    for (chain, lost) in table {
        let mut machine = machine();
        machine.run(&format!("iptables -t mangle -A {chain} -p udp -j DROP"));
        let lan = machine.id("lan0");
        let pkt = machine.insert(head(), FRAME);
        let taken_in = machine.gateway.input(machine.now, &mut machine.pool, lan, &pkt);
        assert_eq!(machine.pool.meta(&pkt).frame_len, FRAME);
        machine.pool.release(pkt);
        let found = [
            machine.passes(EgressPath::Forwarded(Some(lan)), "wan0", head()).is_none(),
            machine.passes(EgressPath::Local, "wan0", head()).is_none(),
            !taken_in,
            machine.passes(EgressPath::Direct, "wan0", head()).is_none(),
        ];
        assert_eq!(found, lost, "{chain}");
        // Who only shows the packet hears the same.
        for (route, lost) in [
            (EgressPath::Forwarded(Some(lan)), lost[0]),
            (EgressPath::Local, lost[1]),
            (EgressPath::Direct, lost[3]),
        ] {
            let (wan, pkt) = (machine.id("wan0"), machine.insert(head(), FRAME));
            assert_eq!(
                machine.gateway.only_hooks(machine.now, &mut machine.pool, wan, route, &pkt),
                !lost,
                "{chain}"
            );
            machine.pool.release(pkt);
        }
        assert_eq!(machine.live(), 0);
    }
}

/// The outgoing device counts what is dropped at the last hook, and no one's else.
#[test]
fn what_is_lost_at_the_last_hook_is_the_devices() {
    for (chain, wanted) in [("FORWARD", DropReason::Netfilter), ("POSTROUTING", DropReason::NetfilterLeaving)]
    {
        let mut machine = machine();
        machine.run(&format!("iptables -t mangle -A {chain} -j DROP"));
        let (lan, wan) = (machine.id("lan0"), machine.id("wan0"));
        assert!(machine.passes(EgressPath::Forwarded(Some(lan)), "wan0", head()).is_none());
        let seen: Vec<EventKind> = machine.gateway.events(wan).map(|Event { what, .. }| what).collect();
        assert_eq!(seen, [EventKind::Drop(wanted)], "{chain}");
    }
}

/// A rule knows the device a packet came in by before it is routed, and the one it leaves by behind that
/// (iptables(8), -i and -o).
#[test]
fn rules_know_the_devices() {
    let table = [
        ("PREROUTING -i lan0", true, false, true),
        ("INPUT -i lan0", false, false, true),
        ("INPUT -i wan0", false, false, false),
        ("FORWARD -i lan0 -o wan0", true, false, false),
        ("FORWARD -i wan0", false, false, false),
        ("FORWARD -o lan0", false, false, false),
        ("OUTPUT -o wan0", false, true, false),
        ("OUTPUT -o lan0", false, false, false),
        ("POSTROUTING -o wan0", true, true, false),
    ];
    for (rule, forwarded, sent, taken_in) in table {
        let mut machine = machine();
        machine.run(&format!("iptables -t mangle -A {rule} -j DROP"));
        let lan = machine.id("lan0");
        let pkt = machine.insert(head(), FRAME);
        let lost = !machine.gateway.input(machine.now, &mut machine.pool, lan, &pkt);
        machine.pool.release(pkt);
        let found = (
            machine.passes(EgressPath::Forwarded(Some(lan)), "wan0", head()).is_none(),
            machine.passes(EgressPath::Local, "wan0", head()).is_none(),
            lost,
        );
        assert_eq!(found, (forwarded, sent, taken_in), "{rule}");
    }
}

/// Priorities (man nft): raw -300, mangle -150, dstnat -100, filter 0, security 50, srcnat 100. Of equals the
/// table made last comes first.
#[test]
fn chains_come_by_priority() {
    let mut machine = machine();
    let free = |name: &str| NfOp { family: Family::Inet, table: name.into(), command: NfCommand::NewTable };
    let base = |name: &str, priority| {
        let command = NfCommand::NewBase(
            "c".into(),
            Base { kind: ChainType::Filter, hook: Hook::Output, priority },
            None,
        );
        NfOp { family: Family::Inet, table: name.into(), command }
    };
    machine.run(
        "iptables -t filter -A OUTPUT -p udp\niptables -t nat -A OUTPUT -p udp -j \
    REDIRECT\niptables -t raw -A OUTPUT -p udp",
    );
    for (name, priority) in [("early", -400), ("late", 200), ("beside", 0), ("same", 0)] {
        for op in [free(name), base(name, priority)] {
            assert_eq!(machine.op(&Op::Netfilter(op)), "");
        }
    }
    machine.run("ip6tables -t mangle -A OUTPUT -p udp");
    let names = |machine: &Machine, v6, hook| -> Vec<String> {
        machine.gateway.chains_at(v6, hook).iter().map(|(table, _)| table.name().to_owned()).collect()
    };
    assert_eq!(
        names(&machine, false, Hook::Output),
        ["early", "raw", "nat", "same", "beside", "filter", "late"]
    );
    assert_eq!(names(&machine, true, Hook::Output), ["early", "mangle", "same", "beside", "late"]);
    assert_eq!(
        names(&machine, false, Hook::Input),
        ["nat", "filter"].map(str::to_owned).into_iter().rev().collect::<Vec<_>>()
    );
    // What a packet of the machine's own meets: the table nat is evaluated per connection, between the chains
    // before it and behind it.
    machine.gateway.watch();
    assert!(machine.passes(EgressPath::Local, "wan0", head()).is_some());
    let met: Vec<String> = machine.gateway.take_seen().into_iter().map(|seen| seen.table).collect();
    let order: Vec<&str> = met.iter().map(String::as_str).fold(Vec::new(), |mut order, name| {
        if order.last() != Some(&name) {
            order.push(name);
        }
        order
    });
    assert_eq!(order[..7], ["early", "raw", "nat", "same", "beside", "filter", "late"], "{order:?}");
    assert!(machine.gateway.take_seen().is_empty(), "it was told");
    // A connection's second packet does not ask nat.
    assert!(machine.passes(EgressPath::Local, "wan0", head()).is_some());
    assert!(machine.gateway.take_seen().iter().all(|seen| seen.table != "nat"));
}

#[test]
fn several_operations_are_all_carried_out_or_none() {
    let mut machine = machine();
    let append = |chain: &str| {
        let command = NfCommand::Append(
            chain.into(),
            NetfilterRule { target: Some(NetfilterTarget::Drop), ..NetfilterRule::default() },
        );
        NfOp { family: Family::Ipv4, table: "filter".into(), command }
    };
    let refused = machine
        .gateway
        .apply_netfilter(&[append("OUTPUT"), append("NOWHERE")])
        .expect_err("there is no such chain");
    assert_eq!(refused.0, 1);
    assert!(machine.passes(EgressPath::Local, "wan0", head()).is_some(), "nothing was done");
    let before = machine.gateway.checkpoint();
    machine.gateway.apply_netfilter(&[append("OUTPUT"), append("INPUT")]).expect("both are there");
    assert!(machine.passes(EgressPath::Local, "wan0", head()).is_none());
    machine.gateway.revert(before);
    assert!(machine.passes(EgressPath::Local, "wan0", head()).is_some());
}

/// `iptables-save` shows the tables that were requested, in its own order, each family's on its own.
#[test]
fn tables_are_listed_as_iptables_saves_them() {
    let mut machine = machine();
    machine.run(
        "iptables -t nat -A OUTPUT -p udp -j REDIRECT
         iptables -t filter -A OUTPUT -p udp
         iptables -t mangle -A OUTPUT -p udp
         ip6tables -t raw -A OUTPUT -p udp",
    );
    let names = |machine: &Machine, v6| {
        machine.gateway.tables(v6).iter().map(|t| t.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&machine, false), ["mangle", "filter", "nat"]);
    assert_eq!(names(&machine, true), ["raw"]);
    assert_eq!(machine.gateway.all_tables().len(), 4);
    // One that is only looked at was not requested.
    assert_eq!(machine.gateway.table(true, "filter").name(), "filter");
    assert_eq!((names(&machine, true), machine.gateway.all_tables().len()), (vec![String::from("raw")], 5));
    // Other names are nft's to make, and its family has none of iptables' tables.
    for (family, table) in [(Family::Ipv4, "shaping"), (Family::Inet, "filter")] {
        let command = NfCommand::Append("OUTPUT".into(), NetfilterRule::default());
        let answer = machine.op(&Op::Netfilter(NfOp { family, table: table.into(), command }));
        assert_eq!(answer, "RTNETLINK answers: No such file or directory");
    }
}

/// Connections are kept once a rule requests them; their marks come and go.
#[test]
fn connections_remember_their_marks() {
    let mut machine = machine();
    let mark =
        |machine: &mut Machine| machine.passes(EgressPath::Local, "wan0", head()).map(|seen| seen.mark);
    machine.run("iptables -t mangle -A POSTROUTING -j CONNMARK --restore-mark");
    assert_eq!(mark(&mut machine), Some(0));
    let pkt = machine.insert(head(), FRAME);
    let wan = machine.id("wan0");
    assert!(machine.gateway.only_hooks(machine.now, &mut machine.pool, wan, EgressPath::Local, &pkt));
    machine.gateway.mark_connection(&machine.pool, &pkt, 9);
    machine.pool.release(pkt);
    assert_eq!(mark(&mut machine), Some(9));
    machine.gateway.forget_connections();
    assert_eq!(mark(&mut machine), Some(0));
}

/// Routed packets get a priority by their TOS bits (tc-prio(8): minimum delay is interactive 6, maximum
/// throughput bulk 2, both 4), and their hops are counted where that was requested.
#[test]
fn routing_reads_the_header() {
    for (tos, priority) in [(0x00, 0), (0x08, 2), (0x10, 6), (0x18, 4), (0x04, 0), (0xb8, 4)] {
        assert_eq!(tos_priority(tos), priority, "{tos:#x}");
        let mut machine = machine();
        let pkt = machine.insert(udp(("10.0.0.2", 1), ("10.9.0.3", 2), tos), FRAME);
        let _ = machine.offer("wan0", EgressPath::Forwarded(None), pkt);
        let pkt = machine.poll("wan0").expect("it leaves");
        assert_eq!(machine.pool.meta(&pkt).priority, priority, "{tos:#x}");
        machine.pool.release(pkt);
    }
    // IPv6 has none; and a hop limit of 64 is 63 behind a machine that counts.
    for counts in [false, true] {
        let mut machine = machine();
        if counts {
            machine.gateway.count_hops();
        }
        let pkt = machine.insert(udp(("fd00::2", 1), ("fd00::3", 2), 0x10), FRAME);
        let _ = machine.offer("wan0", EgressPath::Forwarded(None), pkt);
        let pkt = machine.poll("wan0").expect("it leaves");
        assert_eq!(
            (machine.pool.meta(&pkt).priority, machine.pool.meta(&pkt).ethertype),
            (0, ethertype::IPV6)
        );
        assert_eq!(machine.pool.settle(&pkt).network()[7], if counts { 63 } else { 64 });
        machine.pool.release(pkt);
    }
}
