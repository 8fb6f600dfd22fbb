//! Sojourns at links: each packet has one at every link that it passes, with its queue.

use crate::common;

use tidegate_gateway::{DeviceSpec, Gateway, GatewayContext};
use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Handle, Head, Nanos, Pool, Seeded, Time};
use tidegate_policy::{
    Act, Action, FilterOp, FilterParams, LinkDriver, Op, PrioParams, QdiscOp, QdiscParams, U32Params, Verb,
};
use tidegate_sim::{
    GatewayMachine, Limit, LinkId, LinkSpec, Net, NoMachine, Port, SojournEnd, SojournRecord,
};

const START: Time = Time(1_000_000_000);

/// A datagram of IPv4, this many bytes long.
fn datagram(len: u16) -> Head {
    let mut packet = vec![0x45, 0];
    packet.extend(len.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, proto::UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2, 0, 0, 0, 0]);
    Head::from_network(ethertype::IPV4, &packet)
}

/// Where each stay was, when it began and ended after the start, in µs, how, and whose it was.
fn records(
    sojourns: impl Iterator<Item = SojournRecord>,
    links: &[LinkId],
) -> Vec<(usize, u64, u64, bool, u32)> {
    let us = |time: Time| time.since(START).0 / 1000;
    let place = |link: LinkId| links.iter().position(|known| *known == link).expect("observed");
    sojourns
        .map(|sojourn| {
            (
                place(sojourn.link),
                us(sojourn.came),
                us(sojourn.ended),
                sojourn.end == SojournEnd::Sent,
                sojourn.owner.expect("foreign"),
            )
        })
        .collect()
}

#[test]
fn a_buffer_delays_packets_and_drops_what_does_not_fit() {
    let mut net = Net::new(NoMachine, 1, START);
    // 1,000 bytes with their Ethernet header take a millisecond.
    let link = net.link(LinkSpec::drop_tail(8_000_000, Nanos(0), Limit::Packets(2)));
    let path = net.path(&[link]);
    net.observe(link);
    for owner in 0..5 {
        net.inject(datagram(986), 986, path, owner).expect("room");
    }
    net.run(START + Nanos::secs(1));
    let sojourns = records(net.take_sojourns(), &[link]);
    assert_eq!(
        sojourns,
        [
            (0, 0, 0, true, 0),
            (0, 0, 1000, true, 1),
            (0, 0, 2000, true, 2),
            (0, 0, 0, false, 3),
            (0, 0, 0, false, 4)
        ]
    );
    assert_eq!(net.take_sojourns().count(), 0, "each is told once");
}

/// eth0, whose arrivals a filter leads to an ifb with a prio; lan0 behind them.
fn led() -> GatewayMachine {
    let mut gateway = Gateway::new();
    let specs = [
        ("eth0", DeviceSpec::default()),
        ("ifb0", DeviceSpec::of(&LinkDriver::Ifb)),
        ("lan0", DeviceSpec::default()),
    ];
    let ids: Vec<_> = specs.iter().map(|(name, spec)| gateway.add_device(name, *spec)).collect();
    let on = |dev: &str, op: Op| match op {
        Op::Qdisc(op) => Op::Qdisc(QdiscOp { dev: dev.into(), ..op }),
        other => other,
    };
    let all = tidegate_policy::U32Key { value: 0, mask: 0, offset: 0, offset_mask: 0 };
    let ops = [
        on(
            "ifb0",
            common::qdisc(
                Handle::ROOT,
                Handle::new(1, 0),
                "prio",
                Some(QdiscParams::Prio(PrioParams::default())),
            ),
        ),
        on("eth0", common::qdisc(Handle::INGRESS, Handle::new(0xffff, 0), "ingress", None)),
        Op::Filter(FilterOp {
            verb: Verb::Add,
            dev: "eth0".into(),
            block: 0,
            parent: Handle::new(0xffff, 0),
            pref: 10,
            protocol: FilterOp::ALL,
            chain: 0,
            handle: 0,
            kind: Some("u32".into()),
            params: Some(FilterParams::U32(U32Params { keys: vec![all], ..U32Params::default() })),
            actions: vec![Action::from(Act::redirect("ifb0"))],
        }),
    ];
    let (mut pool, mut source) = (Pool::new(0), Seeded::new(1));
    for op in &ops {
        let world = GatewayContext { now: Time(0), pool: &mut pool, random: &mut source };
        gateway.apply(world, op).unwrap_or_else(|error| panic!("{op:?}: {error:?}"));
    }
    GatewayMachine::new(gateway, ids, 1)
}

#[test]
fn packets_redirected_to_an_ifb_are_queued_in_its_class() {
    let mut net = Net::new(led(), 1, START);
    let from_outside = net.link(LinkSpec::wire(Nanos(0)).into_port(Port(0)));
    let ifb = net.link(LinkSpec::returning(Port(1)));
    let lan = net.link(LinkSpec::port(Port(2), Some(8_000_000), Nanos(0)));
    let path = net.path(&[from_outside, lan]);
    for link in [ifb, lan] {
        net.observe(link);
    }
    for owner in 0..3 {
        net.inject(datagram(986), 986, path, owner).expect("room");
    }
    net.run(START + Nanos::secs(1));
    let sojourns: Vec<SojournRecord> = net.take_sojourns().collect();
    let locations: Vec<_> =
        sojourns.iter().filter(|sojourn| sojourn.link == ifb).map(|sojourn| sojourn.queue).collect();
    assert_eq!(locations.len(), 3);
    assert!(
        locations.iter().all(|location| location.on == Handle::new(1, 2)),
        "the middle band: {locations:?}"
    );
    let lan_only = records(sojourns.into_iter().filter(|sojourn| sojourn.link == lan), &[lan]);
    assert_eq!(lan_only, [(0, 0, 0, true, 0), (0, 0, 1000, true, 1), (0, 0, 2000, true, 2)]);
}
