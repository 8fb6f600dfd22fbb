//! Devices on devices: downloads redirected through an ifb, ppp0 and a tunnel on top of eth0.

use crate::common;

use tidegate_gateway::{DeviceKind, DeviceSpec, Encap, Gateway, GatewayContext};
use tidegate_packet::{Handle, Nanos, Pool, Rate, Seeded, Time};
use tidegate_policy::{
    Act, Action, FilterOp, FilterParams, LinkDriver, Op, PrioParams, QdiscOp, QdiscParams, Tunnel,
    TunnelMode, U32Key, U32Params, Verb,
};
use tidegate_sim::{Bulk, GatewayMachine, Home, HomeResult, HomeSpec, HomeTraffic, Port};

/// The operation on another device.
fn on(dev: &str, op: Op) -> Op {
    match op {
        Op::Qdisc(op) => Op::Qdisc(QdiscOp { dev: dev.into(), ..op }),
        Op::Class(op) => Op::Class(tidegate_policy::ClassOp { dev: dev.into(), ..op }),
        other => other,
    }
}

fn gateway(devices: &[(&str, DeviceSpec)], ops: &[Op]) -> GatewayMachine {
    let mut gateway = Gateway::new();
    let ids: Vec<_> = devices.iter().map(|(name, spec)| gateway.add_device(name, *spec)).collect();
    let (mut pool, mut source) = (Pool::new(0), Seeded::new(1));
    for op in ops {
        let world = GatewayContext { now: Time(0), pool: &mut pool, random: &mut source };
        gateway.apply(world, op).unwrap_or_else(|error| panic!("{op:?}: {error:?}"));
    }
    GatewayMachine::new(gateway, ids, 1)
}

fn ingress(dev: &str) -> Op {
    on(dev, common::qdisc(Handle::INGRESS, Handle::new(0xffff, 0), "ingress", None))
}

/// `tc filter add dev DEV parent PARENT protocol all prio 10 u32 match u32 0 0 action mirred egress redirect
/// dev TO`.
fn redirect(dev: &str, parent: Handle, to: &str) -> Op {
    filter(dev, parent, vec![Action::from(Act::redirect(to))])
}

/// A filter that matches everything, with these actions.
fn filter(dev: &str, parent: Handle, actions: Vec<Action>) -> Op {
    let all = U32Key { value: 0, mask: 0, offset: 0, offset_mask: 0 };
    Op::Filter(FilterOp {
        verb: Verb::Add,
        dev: dev.into(),
        block: 0,
        parent,
        pref: 10,
        protocol: FilterOp::ALL,
        chain: 0,
        handle: 0,
        kind: Some("u32".into()),
        params: Some(FilterParams::U32(U32Params { keys: vec![all], ..U32Params::default() })),
        actions,
    })
}

fn run(machine: GatewayMachine, spec: HomeSpec) -> (HomeResult, GatewayMachine) {
    Home::new(machine, spec, Time(0) + Nanos::secs(1)).finish()
}

fn ifb() -> DeviceSpec {
    DeviceSpec::of(&LinkDriver::Ifb)
}

/// A prio at the root of a device.
fn prio(dev: &str) -> Op {
    let params = QdiscParams::Prio(PrioParams::default());
    on(dev, common::qdisc(Handle::ROOT, Handle::new(1, 0), "prio", Some(params)))
}

/// Downloads redirected through an ifb come at the rate of the HTB there, below the provider's; the
/// provider's queue stays empty and the ping is not delayed in it.
#[test]
fn an_ifb_shapes_downloads() {
    let [root, class] = common::htb(Rate::bits(4_000_000));
    let ffff = Handle::new(0xffff, 0);
    let shaped = [on("ifb0", root), on("ifb0", class), ingress("wan0"), redirect("wan0", ffff, "ifb0")];
    let devices = [("wan0", DeviceSpec::default()), ("ifb0", ifb())];
    assert_eq!(devices[1].1.kind, DeviceKind::Ifb);
    let downloads = || {
        [0, 1]
            .map(|i| HomeTraffic::Bulk(Bulk { start: Nanos::millis(i * 100), ..Bulk::new(false, i as u16) }))
    };
    let spec = || HomeSpec {
        returning: vec![Port(1)],
        warm_up: Nanos::secs(10),
        duration: Nanos::secs(20),
        ..HomeSpec::new(1_000_000, 8_000_000)
    };
    let (bare, _) = run(gateway(&devices, &[]), spec().with(downloads()));
    let (home_result, mut machine) = run(gateway(&devices, &shaped), spec().with(downloads()));

    let expected = 4e6 * 1448.0 / 1514.0;
    let share = home_result.goodput() / expected;
    println!("{:.0} bit/s bare, {:.0} held", bare.goodput(), home_result.goodput());
    assert!(bare.goodput() > 7e6 && (share - 1.0).abs() < 0.02, "{} for {expected}", home_result.goodput());
    let wan = machine.gateway.device("wan0").expect("wan0");
    let dumps = machine.gateway.qdiscs(Time(0), wan);
    let ingress = dumps.last().expect("an ingress qdisc");
    let ifb0 = machine.gateway.device("ifb0").expect("ifb0");
    let sent = machine.gateway.qdiscs(Time(0), ifb0)[0].stats;
    assert!(ingress.stats.packets >= sent.packets && sent.packets > 1000, "{ingress:?} {sent:?}");
}

/// What leaves is redirected through the ifb too, and comes back to the device it was to leave by.
#[test]
fn an_ifb_shapes_uploads_led_there_from_the_root() {
    let [root, class] = common::htb(Rate::bits(500_000));
    let one = Handle::new(1, 0);
    let wan_root = prio("wan0");
    let ops = [on("ifb0", root), on("ifb0", class), wan_root, redirect("wan0", one, "ifb0")];
    let devices = [("wan0", DeviceSpec::default()), ("ifb0", ifb())];
    let spec = HomeSpec {
        returning: vec![Port(1)],
        warm_up: Nanos::secs(10),
        duration: Nanos::secs(20),
        ..HomeSpec::new(1_000_000, 8_000_000)
    };
    let (result, _) = run(gateway(&devices, &ops), spec.with([HomeTraffic::Bulk(Bulk::new(true, 0))]));
    let expected = 500_000.0 * 1448.0 / 1514.0;
    assert!((result.goodput() / expected - 1.0).abs() < 0.02, "{} for {expected}", result.goodput());
}

/// The traffic of `upper` on `eth0`, with a queue on each and all arrivals redirected through an ifb: bytes
/// and packets that left by `upper`, by `eth0`, that arrived at `eth0`, at `upper`, and that passed the ifb.
fn stacked(upper: &str, spec: DeviceSpec, encap: Encap) -> [(u64, u64); 5] {
    let devices = [(upper, spec), ("eth0", DeviceSpec::default()), ("ifb0", ifb())];
    let ffff = Handle::new(0xffff, 0);
    let queues = [prio(upper), prio("eth0"), prio("ifb0"), ingress("eth0"), ingress(upper)];
    // An ingress without filters counts nothing.
    let filters = [filter("eth0", ffff, Vec::new()), redirect(upper, ffff, "ifb0")];
    let ops: Vec<Op> = queues.into_iter().chain(filters).collect();
    let mut machine = gateway(&devices, &ops);
    let id = |machine: &GatewayMachine, name: &str| machine.gateway.device(name).expect("a device");
    let (above, below) = (id(&machine, upper), id(&machine, "eth0"));
    machine.gateway.stack(above, below, encap);
    let home = HomeSpec {
        beneath: Some(Port(1)),
        returning: vec![Port(2)],
        warm_up: Nanos(0),
        duration: Nanos::secs(20),
        ..HomeSpec::new(1_000_000, 8_000_000)
    };
    let files = [true, false].map(|up| Bulk { bytes: Some(200_000), ..Bulk::new(up, 5) });
    let (result, mut machine) = run(machine, home.with(files.map(HomeTraffic::Bulk)));
    let whole: Vec<u64> = result.flows().map(|flow| flow.total.acked).collect();
    assert_eq!(whole, [200_000, 200_000]);
    let ifb0 = id(&machine, "ifb0");
    let mut counted = |device, ingress: bool| {
        let dumps = machine.gateway.qdiscs(Time(0), device);
        let stats = if ingress { dumps.last() } else { dumps.first() }.expect("a qdisc").stats;
        (stats.bytes, stats.packets)
    };
    [(above, false), (below, false), (below, true), (above, true), (ifb0, false)].map(|(d, i)| counted(d, i))
}

/// Each frame of ppp0 (no link header) is 22 bytes longer on eth0: 8 of PPPoE and 14 of Ethernet; a tunnel's
/// grows by its outer header. What arrives is counted without link header, on eth0 wrapped, above it bare.
#[test]
fn devices_on_devices_wrap_what_passes() {
    let tunnel = Tunnel {
        mode: TunnelMode::Ipip,
        local: [192, 0, 2, 1].into(),
        remote: [198, 51, 100, 9].into(),
        ttl: 64,
        encap_limit: None,
    };
    let gre = Tunnel { mode: TunnelMode::Gre, ..tunnel };
    let cases = [
        ("ppp0", LinkDriver::PointToPoint, Encap::Pppoe, 8),
        ("tunl1", LinkDriver::Tunnel(tunnel), Encap::Tunnel(tunnel), 20),
        ("gre1", LinkDriver::Tunnel(gre), Encap::Tunnel(gre), 24),
    ];
    for (name, kind, encap, bytes) in cases {
        let [up, down, arrived, opened, led] = stacked(name, DeviceSpec::of(&kind), encap);
        println!("{name}: {up:?} {down:?} {arrived:?} {opened:?} {led:?}");
        assert!(up.1 > 140 && opened.1 > 140);
        assert_eq!(down, (up.0 + up.1 * (bytes + 14), up.1), "{name}: up");
        assert_eq!(arrived, (opened.0 + opened.1 * bytes, opened.1), "{name}: down");
        assert_eq!(led, opened, "{name}: ifb");
    }
}
