//! Links that come and go, and what their names lead to.

use std::net::IpAddr;
use tidegate_gateway::{DeviceKind, DeviceSpec, Gateway, GatewayContext};
use tidegate_packet::{Pool, Seeded, Time};
use tidegate_policy::{LinkDriver, LinkOp, Op, TcError};

fn apply(gateway: &mut Gateway, op: LinkOp) -> Result<(), TcError> {
    let (mut pool, mut source) = (Pool::new(0), Seeded::new(1));
    let world = GatewayContext { now: Time(1), pool: &mut pool, random: &mut source };
    gateway.apply(world, &Op::Link(op)).map(|_| ())
}

fn names(gateway: &Gateway) -> Vec<(&str, DeviceKind, u32)> {
    gateway
        .devices()
        .map(|id| (gateway.name(id), gateway.spec(id).kind, gateway.spec(id).tx_queue_len))
        .collect()
}

#[test]
fn devices_are_made_renamed_and_deleted_and_their_places_used_again() {
    let mut gateway = Gateway::new();
    gateway.add_device("eth0", DeviceSpec { hz: 1000, ..DeviceSpec::default() });
    let add = |name: &str, kind| LinkOp::Add { name: name.into(), kind };
    let answers: Vec<String> = [
        add("ifb4eth0", LinkDriver::Ifb),
        add("ifb4eth0", LinkDriver::Ifb),
        add("veth0", LinkDriver::Veth { peer: "veth1".into() }),
        add("eth9.7", LinkDriver::Vlan { lower: "eth9".into(), id: 7 }),
        add("eth1", LinkDriver::Ethernet),
        LinkOp::Rename { name: "ifb4eth0".into(), to: "in0".into() },
        LinkOp::Rename { name: "in0".into(), to: "eth0".into() },
        LinkOp::Delete { name: "veth0".into() },
        LinkOp::Delete { name: "veth0".into() },
        add("dummy0", LinkDriver::Dummy),
    ]
    .into_iter()
    .map(|op| apply(&mut gateway, op).map_or_else(|error| error.to_string(), |()| String::new()))
    .collect();
    let wanted = [
        "",
        "RTNETLINK answers: File exists",
        "",
        "Error: Cannot find device \"eth9\".",
        "Error: Unknown device type.",
        "",
        "RTNETLINK answers: File exists",
        "",
        "Error: Cannot find device.",
        "",
    ];
    assert_eq!(answers, wanted);
    let devices = [
        ("eth0", DeviceKind::Ethernet, 1000),
        ("in0", DeviceKind::Ifb, 32),
        ("veth1", DeviceKind::Ethernet, 1000),
        ("dummy0", DeviceKind::Dummy, 1000),
    ];
    assert_eq!(names(&gateway), devices);
    assert!(gateway.devices().all(|id| gateway.spec(id).hz == 1000), "a machine has one clock");
}

#[test]
fn addresses_are_kept_with_their_device() {
    let mut gateway = Gateway::new();
    let eth0 = gateway.add_device("eth0", DeviceSpec::default());
    let address: IpAddr = "192.0.2.1".parse().expect("an address");
    let op = |add| LinkOp::Address { name: "eth0".into(), add, address, prefix: 24 };
    apply(&mut gateway, op(true)).expect("it is new");
    assert_eq!(gateway.addresses(eth0), [(address, 24)]);
    assert!(apply(&mut gateway, op(true)).is_err(), "it is there");
    apply(&mut gateway, op(false)).expect("it is there");
    assert!(apply(&mut gateway, op(false)).is_err(), "it is gone");
}

/// As a kernel was asked: the driver sets the bounds.
#[test]
fn the_largest_packet_has_bounds() {
    let mut gateway = Gateway::new();
    gateway.add_device("eth0", DeviceSpec::default());
    gateway.add_device("ifb0", DeviceSpec::of(&LinkDriver::Ifb));
    let mut set = |dev: &str, bytes| {
        let (mut pool, mut source) = (Pool::new(0), Seeded::new(1));
        let world = GatewayContext { now: Time(1), pool: &mut pool, random: &mut source };
        let answer = gateway.apply(world, &Op::Mtu { dev: dev.into(), bytes });
        answer.map_or_else(|error| error.to_string(), |_| String::new())
    };
    let table =
        [("eth0", 67), ("eth0", 68), ("eth0", 65_535), ("eth0", 65_536), ("ifb0", 20), ("ifb0", 70_000)]
            .map(|(d, b)| set(d, b));
    let (low, high) = ("Error: mtu less than device minimum.", "Error: mtu greater than device maximum.");
    assert_eq!(table, [low, "", "", high, "", ""]);
}
