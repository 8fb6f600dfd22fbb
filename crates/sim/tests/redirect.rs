//! Devices on devices: downloads led through an ifb.

mod common;

use tidegate_gateway::{DeviceKind, DeviceSpec, Gateway, World};
use tidegate_packet::{Handle, Pool, Rate, Seeded, Span, Time};
use tidegate_policy::{Act, Action, FilterOp, FilterParams, LinkKind, Op, QdiscOp, U32Key, U32Params, Verb};
use tidegate_sim::{Bulk, GatewayMachine, Home, HomeResult, HomeSpec, Port, Traffic};

/// The same operation on another device.
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
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    for op in ops {
        let world = World { now: Time(0), pool: &mut pool, draws: &mut draws };
        gateway.apply(world, op).unwrap_or_else(|error| panic!("{op:?}: {error:?}"));
    }
    GatewayMachine::new(gateway, ids, 1)
}

fn ingress(dev: &str) -> Op {
    on(dev, common::qdisc(Handle::INGRESS, Handle::new(0xffff, 0), "ingress", None))
}

/// `tc filter add dev DEV parent PARENT protocol all prio 10 u32 match u32 0 0 action mirred egress redirect dev TO`.
fn redirect(dev: &str, parent: Handle, to: &str) -> Op {
    let all = U32Key { value: 0, mask: 0, offset: 0, offset_mask: 0 };
    Op::Filter(FilterOp {
        verb: Verb::Add,
        dev: dev.into(),
        parent,
        pref: 10,
        protocol: FilterOp::ALL,
        chain: 0,
        handle: 0,
        kind: Some("u32".into()),
        params: Some(FilterParams::U32(U32Params { keys: vec![all], ..U32Params::default() })),
        actions: vec![Action { act: Act::Redirect { to: to.into(), device: Act::NOWHERE }, index: 0 }],
    })
}

fn run(machine: GatewayMachine, spec: HomeSpec) -> (HomeResult, GatewayMachine) {
    Home::new(machine, spec, Time(0) + Span::secs(1)).finish()
}

fn ifb() -> DeviceSpec {
    DeviceSpec::of(&LinkKind::Ifb)
}

/// Downloads led through an ifb come at the rate of the HTB there, below the provider's; the provider's queue stays empty and
/// the ping does not wait in it.
#[test]
fn an_ifb_shapes_downloads() {
    let [root, class] = common::htb(Rate::bits(4_000_000));
    let ffff = Handle::new(0xffff, 0);
    let shaped = [on("ifb0", root), on("ifb0", class), ingress("wan0"), redirect("wan0", ffff, "ifb0")];
    let devices = [("wan0", DeviceSpec::default()), ("ifb0", ifb())];
    assert_eq!(devices[1].1.kind, DeviceKind::Ifb);
    let downloads =
        || [0, 1].map(|i| Traffic::Bulk(Bulk { start: Span::millis(i * 100), ..Bulk::new(false, i as u16) }));
    let spec = || HomeSpec {
        returning: vec![Port(1)],
        warm_up: Span::secs(10),
        duration: Span::secs(20),
        ..HomeSpec::new(1_000_000, 8_000_000)
    };
    let (bare, _) = run(gateway(&devices, &[]), spec().with(downloads()));
    let (held, mut machine) = run(gateway(&devices, &shaped), spec().with(downloads()));

    let expected = 4e6 * 1448.0 / 1514.0;
    let share = held.goodput() / expected;
    println!("{:.0} bit/s bare, {:.0} held", bare.goodput(), held.goodput());
    assert!(bare.goodput() > 7e6 && (share - 1.0).abs() < 0.02, "{} for {expected}", held.goodput());
    let wan = machine.gateway.device("wan0").expect("wan0");
    let dumps = machine.gateway.qdiscs(Time(0), wan);
    let ingress = dumps.last().expect("an ingress qdisc");
    let ifb0 = machine.gateway.device("ifb0").expect("ifb0");
    let sent = machine.gateway.qdiscs(Time(0), ifb0)[0].stats;
    assert!(ingress.stats.packets >= sent.packets && sent.packets > 1000, "{ingress:?} {sent:?}");
}

/// What leaves is led through the ifb too, and comes back to the device it was to leave by.
#[test]
fn an_ifb_shapes_uploads_led_there_from_the_root() {
    let [root, class] = common::htb(Rate::bits(500_000));
    let prio = tidegate_policy::QdiscParams::Prio(tidegate_policy::PrioParams::default());
    let one = Handle::new(1, 0);
    let wan_root = common::qdisc(Handle::ROOT, one, "prio", Some(prio));
    let ops = [on("ifb0", root), on("ifb0", class), wan_root, redirect("wan0", one, "ifb0")];
    let devices = [("wan0", DeviceSpec::default()), ("ifb0", ifb())];
    let spec = HomeSpec {
        returning: vec![Port(1)],
        warm_up: Span::secs(10),
        duration: Span::secs(20),
        ..HomeSpec::new(1_000_000, 8_000_000)
    };
    let (result, _) = run(gateway(&devices, &ops), spec.with([Traffic::Bulk(Bulk::new(true, 0))]));
    let expected = 500_000.0 * 1448.0 / 1514.0;
    assert!((result.goodput() / expected - 1.0).abs() < 0.02, "{} for {expected}", result.goodput());
}
