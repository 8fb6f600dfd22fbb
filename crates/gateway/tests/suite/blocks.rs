//! Shared blocks: filters that several devices have in common (tc(8), `ingress_block` and `egress_block`).

use crate::words::{Machine, udp};
use tidegate_gateway::{EgressPath, ReceiveOutcome};
use tidegate_packet::Handle;

const NO_BLOCK: &str = "Error: Block of given index was not found.";
const INVALID: &str = "RTNETLINK answers: Invalid argument";
const NO_MARK: &str = "Error: Must specify mark when attaching fw filter to block.";

fn machine() -> Machine {
    let mut machine = Machine::new(&["eth0", "eth1", "eth2"]);
    machine.run(
        "tc qdisc add dev eth0 ingress_block 22 clsact
         tc qdisc add dev eth1 egress_block 33 ingress_block 22 clsact
         tc qdisc add dev eth2 clsact",
    );
    machine
}

#[test]
fn hooks_tell_their_block() {
    let mut machine = machine();
    let (ingress, egress) = (Handle::new(0xffff, 0xfff2), Handle::new(0xffff, 0xfff3));
    let table = [("eth0", [22, 0]), ("eth1", [22, 33]), ("eth2", [0, 0])];
    for (name, wanted) in table {
        let id = machine.id(name);
        assert_eq!([ingress, egress].map(|hook| machine.gateway.block_at(id, hook)), wanted, "{name}");
    }
    assert_eq!([22, 33, 44].map(|block| machine.gateway.has_block(block)), [true, true, false]);
    machine.run("tc qdisc del dev eth1 clsact");
    assert_eq!([22, 33].map(|block| machine.gateway.has_block(block)), [true, false]);
    machine.run("tc qdisc del dev eth0 clsact");
    assert!(!machine.gateway.has_block(22));
}

#[test]
fn a_filter_of_a_block_is_evaluated_for_all_its_devices() {
    let mut machine = machine();
    machine.run(
        "tc filter add block 22 pref 5 protocol ip matchall action drop
         tc filter add block 33 pref 6 protocol ip matchall action drop
         tc chain add block 22 chain 4",
    );
    for (device, comes, goes) in [("eth0", false, true), ("eth1", false, false), ("eth2", true, true)] {
        let pkt = machine.insert(udp(("10.0.0.2", 1), ("10.9.0.3", 2), 0), 114);
        let received = machine.receive(device, pkt);
        assert_eq!(received != ReceiveOutcome::Dropped, comes, "{device}");
        if let ReceiveOutcome::Passed(pkt, _) = received {
            machine.pool.release(pkt);
        }
        let seen = machine.passes(EgressPath::Direct, device, udp(("10.0.0.2", 1), ("10.9.0.3", 2), 0));
        assert_eq!(seen.is_some(), goes, "{device}");
    }
    assert_eq!(machine.live(), 0);
    assert_eq!(machine.gateway.block_chains(22).expect("it is there"), [0, 4]);
    assert!(machine.gateway.block_chains(44).is_err());
    let listing = machine.answer("tc -s filter show block 22");
    assert!(listing.starts_with("filter protocol ip pref 5 matchall chain 0"), "{listing}");
    assert!(listing.contains("Sent 200 bytes 2 pkt (dropped 2"), "{listing}");
    assert_eq!(machine.answer("tc filter show block 44"), NO_BLOCK);
}

/// As Linux 6.1 answers: the whole request is read before the block is looked for, and a mark that is a class
/// needs a qdisc.
#[test]
fn what_is_refused_of_blocks() {
    let table = [
        ("tc filter add block 44 pref 1 protocol ip matchall", NO_BLOCK),
        ("tc filter del block 44 pref 1 protocol ip matchall", NO_BLOCK),
        ("tc filter del block 44", NO_BLOCK),
        (
            "tc filter del block 44 protocol ip",
            "Error: Cannot flush filters with protocol, handle or kind set.",
        ),
        (
            "tc filter del block 44 protocol ip matchall",
            "Error: Cannot flush filters with protocol, handle or kind set.",
        ),
        ("tc filter del block 22 pref 1 protocol ip", "Error: Cannot find specified filter chain."),
        ("tc chain add block 44 chain 1", NO_BLOCK),
        ("tc filter add block 22 pref 1 protocol ip fw", NO_MARK),
        ("tc filter add block 44 pref 1 protocol ip fw", NO_BLOCK),
        ("tc filter add block 22 pref 1 protocol ip handle 7 fw", INVALID),
        ("tc filter add block 22 pref 2 protocol ip handle 7 fw action ok", ""),
        ("tc filter add block 33 pref 3 protocol ip matchall", INVALID),
    ];
    for (line, wanted) in table {
        assert_eq!(machine().answer(line), wanted, "{line}");
    }
}
