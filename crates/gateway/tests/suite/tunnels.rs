//! Flows inside tunnels: what the flow filter distinguishes, by dissector and keys.

use tidegate_gateway::{DeviceSpec, EgressPath, Gateway, GatewayContext};
use tidegate_packet::header::ethertype;
use tidegate_packet::{Dissector, Handle, Head, KernelModel, Meta, Pool, Seeded, Time};
use tidegate_policy::{
    ClassOp, ClassParams, DrrClassParams, FilterOp, FilterParams, FlowKeySet, FlowMode, FlowParams, Op,
    QdiscOp, QdiscParams, SharedBlocks, Verb,
};

const ROOT: Handle = Handle::new(1, 0);

fn ip(protocol: u8, source: [u8; 4], destination: [u8; 4]) -> [u8; 20] {
    let mut header = [0; 20];
    (header[0], header[9]) = (0x45, protocol);
    header[12..16].copy_from_slice(&source);
    header[16..].copy_from_slice(&destination);
    header
}

/// UDP from a host of the LAN, in a tunnel to the office or as it is.
fn packet(tunnelled: bool, host: u8) -> Head {
    let inner = ip(17, [10, 0, 0, host], [10, 9, 0, 1]);
    let outer = ip(4, [192, 0, 2, 1], [192, 0, 2, 2]);
    let ports = [0x04, host, 0, 53, 0, 8, 0, 0];
    let bytes = if tunnelled { [&outer[..], &inner, &ports].concat() } else { [&inner[..], &ports].concat() };
    Head::from_network(ethertype::IPV4, &bytes)
}

/// How many of three packets wait in each of five classes, chosen by the last byte of one key: two hosts in
/// a tunnel, one outside.
fn classes(dissector: Dissector, key: &str) -> Vec<u32> {
    let (mut pool, mut source) = (Pool::new(16), Seeded::new(1));
    let mut gateway = Gateway::new();
    let eth0 = gateway.add_device("eth0", DeviceSpec::default());
    gateway.set_kernel(KernelModel { dissector, ..KernelModel::default() });
    let bit = FlowKeySet::NAMES.iter().position(|name| *name == key).expect("a key");
    let flow = FlowParams {
        mode: Some(FlowMode::Map),
        keys: FlowKeySet(1 << bit),
        mask: 0xff,
        baseclass: Some(Handle::new(1, 1)),
        ..FlowParams::default()
    };
    let qdisc = QdiscOp {
        verb: Verb::Add,
        dev: "eth0".into(),
        parent: Handle::ROOT,
        handle: ROOT,
        kind: Some("drr".into()),
        params: Some(QdiscParams::Drr),
        stab: None,
        estimator: None,
        blocks: SharedBlocks::default(),
    };
    let class = |minor| {
        Op::Class(ClassOp {
            verb: Verb::Add,
            dev: "eth0".into(),
            parent: ROOT,
            classid: Handle::new(1, minor),
            kind: Some("drr".into()),
            params: Some(ClassParams::Drr(DrrClassParams { quantum: Some(1500) })),
            estimator: None,
        })
    };
    let filter = FilterOp {
        verb: Verb::Add,
        dev: "eth0".into(),
        block: 0,
        parent: ROOT,
        pref: 1,
        protocol: FilterOp::ALL,
        chain: 0,
        handle: 1,
        kind: Some("flow".into()),
        params: Some(FilterParams::Flow(flow)),
        actions: Vec::new(),
    };
    let mut ops = vec![Op::Qdisc(qdisc)];
    ops.extend([1, 2, 3, 4, 5].map(class));
    ops.push(Op::Filter(filter));
    for op in ops {
        let world = GatewayContext { now: Time(1), pool: &mut pool, random: &mut source };
        gateway.apply(world, &op).unwrap_or_else(|error| panic!("{op:?}: {error}"));
    }
    for (tunnelled, host) in [(true, 3), (true, 4), (false, 3)] {
        let head = packet(tunnelled, host);
        let pkt = pool.insert(Meta::of(&head, 100), head).expect("room");
        let world = GatewayContext { now: Time(2), pool: &mut pool, random: &mut source };
        let _ = gateway.offer(world, eth0, EgressPath::Direct, pkt);
    }
    let queued = gateway
        .classes(Time(3), eth0)
        .iter()
        .map(|class| class.stats.map_or(0, |stats| stats.qlen))
        .collect();
    while let Some(pkt) =
        gateway.poll(GatewayContext { now: Time(4), pool: &mut pool, random: &mut source }, eth0)
    {
        pool.release(pkt);
    }
    queued
}

/// Two hosts in a tunnel and one outside; classes 1 to 5 are the last byte of the key's address, 0 to 4.
#[test]
fn addresses_distinguished() {
    let table = [
        // The innermost source: 3, 4 and 3.
        (classes(Dissector::Modern, "src"), vec![0, 0, 0, 2, 1]),
        // The outer one: 1, 1 and 3.
        (classes(Dissector::Legacy, "src"), vec![0, 2, 0, 1, 0]),
        // Inside the tunnel: 3 and 4; the third is in none.
        (classes(Dissector::Legacy, "tunnel-src"), vec![1, 0, 0, 1, 1]),
        (classes(Dissector::Legacy, "tunnel-dst"), vec![1, 2, 0, 0, 0]),
    ];
    for (n, (found, wanted)) in table.into_iter().enumerate() {
        assert_eq!(found, wanted, "row {n}");
    }
}
