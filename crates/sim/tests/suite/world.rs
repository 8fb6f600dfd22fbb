//! Networks laid out from nodes and cables: ways, switches, and what a path carries.

use tidegate_gateway::{DeviceSpec, Gateway};
use tidegate_packet::{Nanos, Time};
use tidegate_sim::world::{Cable, CableDirection, CableEnd, Layout, RouterNode, World};
use tidegate_sim::{Ends, ProbeSpec};

const START: Time = Time(1_000_000_000);

fn cable(ends: &[(usize, Option<usize>)], delay: Nanos) -> Cable {
    let ends = ends.iter().map(|&(node, device)| CableEnd { node, device }).collect();
    Cable {
        ends,
        there: CableDirection::plain(8_000_000, delay),
        back: CableDirection::plain(8_000_000, delay),
    }
}

fn machine(node: usize, mtus: &[u32]) -> RouterNode {
    let mut gateway = Gateway::new();
    let device = |(n, mtu): (usize, &u32)| {
        gateway.add_device(&format!("eth{n}"), DeviceSpec { mtu: *mtu, ..DeviceSpec::default() })
    };
    let devices = mtus.iter().enumerate().map(device).collect();
    RouterNode { node, gateway, devices }
}

fn world(nodes: usize, cables: Vec<Cable>, machines: Vec<RouterNode>) -> World {
    let hosts = vec![false; nodes];
    World::new(Layout { nodes, cables, machines, host_jitter: Nanos(0), hosts, seed: 1 }, START)
}

/// The round trip of one echo of 98 bytes; `None`: no way, or no answer.
fn round_trip(world: &mut World, from: usize, to: usize) -> Option<Nanos> {
    let (there, back) = (world.way(from, to)?, world.way(to, from)?);
    let probe = world.net.ping(ProbeSpec {
        ends: Ends::v4([10, 0, 0, from as u8], 1, [10, 0, 0, to as u8], 0),
        forward: there.path,
        back: back.path,
        start: world.net.now(),
        stop: world.net.now() + Nanos(1),
        interval: Nanos::secs(1),
        data: 56,
        dsfield: 0,
    });
    let until = world.net.now() + Nanos::secs(5);
    world.net.run(until);
    world.net.echoes(probe)[0].rtt
}

/// 98 bytes at 8 Mbit/s.
const SENDING: u64 = 98_000;

#[test]
fn the_fewest_cables_are_the_way() {
    let ms = Nanos::millis;
    let cables = vec![
        cable(&[(0, None), (1, None)], ms(10)),
        cable(&[(1, None), (2, None)], ms(10)),
        cable(&[(0, None), (2, None)], ms(50)),
        cable(&[(3, None), (4, None)], ms(1)),
    ];
    let mut world = world(5, cables, Vec::new());
    assert_eq!(round_trip(&mut world, 0, 2), Some(Nanos(2 * (50_000_000 + SENDING))));
    assert_eq!(round_trip(&mut world, 2, 1), Some(Nanos(2 * (10_000_000 + SENDING))));
    assert_eq!(world.way(0, 4), None);
}

/// At a switch each host has a cable of its own towards the last end, and shares the way back.
#[test]
fn a_switch_serves_several() {
    let switch = cable(&[(0, None), (1, None), (2, Some(0))], Nanos::millis(1));
    let out = cable(&[(2, Some(1)), (3, None)], Nanos::millis(1));
    let mut world = world(4, vec![switch, out], vec![machine(2, &[1500, 1400])]);
    for host in [0, 1] {
        assert_eq!(round_trip(&mut world, host, 3), Some(Nanos(4 * (1_000_000 + SENDING))), "host {host}");
    }
    assert_eq!((world.links(0, true).len(), world.links(0, false).len()), (2, 1));
    // Towards the server the machine's second device is the narrowest; on the way back it has no limit.
    let usual = |_| 1500;
    assert_eq!((world.narrowest(0, 3, &usual), world.narrowest(3, 0, &usual)), (Some(1400), Some(1500)));
    assert_eq!(world.narrowest(0, 3, &|cable| if cable == 0 { 600 } else { 1500 }), Some(600));
}

/// Two machines at one switch: what one sends arrives at the other's device.
#[test]
fn machines_meet_at_a_switch() {
    let switch = cable(&[(0, Some(0)), (1, Some(0)), (2, Some(0))], Nanos::millis(1));
    let lan = |host, machine| cable(&[(host, None), (machine, Some(1))], Nanos::millis(1));
    let machines = vec![machine(0, &[1500; 2]), machine(1, &[1500; 2]), machine(2, &[1500; 2])];
    let mut world = world(5, vec![switch, lan(3, 0), lan(4, 2)], machines);
    assert_eq!(round_trip(&mut world, 3, 4), Some(Nanos(6 * (1_000_000 + SENDING))));
    assert!(round_trip(&mut world, 0, 1).is_some(), "by way of the last end");
    assert_eq!(world.net.packets(), 0);
}
