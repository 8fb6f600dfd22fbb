//! The network by a real clock is the simulator's network: the same arrivals leave it at the same times, with
//! the same bytes.

use std::io;
use std::net::IpAddr;

use tidegate_gateway::{DeviceSpec, Gateway};
use tidegate_lab::{Driver, Environment, Party};
use tidegate_packet::header::ethertype;
use tidegate_packet::{Head, Nanos, Pool, Seeded, Time, checksum};
use tidegate_sim::world::{Cable, CableDirection, CableEnd, Layout, RouterNode, World};
use tidegate_syntax::Env;
use tidegate_syntax::tc::{self, TcCommand};

const START: Time = Time(1_000_000_000);
const HOSTS: [[u8; 4]; 2] = [[192, 168, 1, 2], [198, 51, 100, 7]];
const ROUTER: [u8; 4] = [192, 168, 1, 1];

/// A packet at the edge: its time, its party, its bytes.
type Sent = (Time, usize, Vec<u8>);

/// An environment whose time and packets come from a list.
struct Listed {
    now: Time,
    to_come: Vec<Sent>,
    given: Vec<Sent>,
}

impl Environment for Listed {
    fn now(&mut self) -> Time {
        self.now
    }

    fn receive(&mut self, into: &mut [u8]) -> io::Result<Option<(usize, usize)>> {
        match self.to_come.first() {
            Some((at, ..)) if *at <= self.now => {
                let (_, party, packet) = self.to_come.remove(0);
                into[..packet.len()].copy_from_slice(&packet);
                Ok(Some((party, packet.len())))
            }
            _ => Ok(None),
        }
    }

    fn send(&mut self, party: usize, packet: &[u8]) -> io::Result<bool> {
        self.given.push((self.now, party, packet.to_vec()));
        Ok(true)
    }

    /// Until something comes or the time: no earlier, no later.
    fn wait(&mut self, until: Time) -> io::Result<()> {
        let next = self.to_come.first().map_or(until, |(at, ..)| *at);
        self.now = self.now.max(next.min(until));
        Ok(())
    }
}

/// a - eth1 gateway eth0 - 4 Mbit/s, 10 ms - b, the gateway configured by these commands.
fn world(commands: &[&str]) -> World {
    let cable = |a: CableEnd, b: CableEnd, bits, delay| Cable {
        ends: vec![a, b],
        there: CableDirection::plain(bits, delay),
        back: CableDirection::plain(bits, delay),
    };
    let (host, device) = (|node| CableEnd { node, device: None }, |n| CableEnd { node: 1, device: Some(n) });
    let cables = vec![
        cable(host(0), device(0), 100_000_000, Nanos(0)),
        cable(device(1), host(2), 4_000_000, Nanos::millis(10)),
    ];
    let mut gateway = Gateway::new();
    let devices = ["eth1", "eth0"].map(|name| gateway.add_device(name, DeviceSpec::default())).to_vec();
    let (mut pool, mut source) = (Pool::new(0), Seeded::new(1));
    for command in commands {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        let parsed =
            tc::parse(&words, &Env::default()).unwrap_or_else(|refusal| panic!("{command}: {refusal:?}"));
        let TcCommand::Apply(op) = parsed.command else { panic!("{command} changes something") };
        let world = tidegate_gateway::GatewayContext { now: Time(0), pool: &mut pool, random: &mut source };
        gateway.apply(world, &op).unwrap_or_else(|error| panic!("{command}: {error:?}"));
    }
    let machines = vec![RouterNode { node: 1, gateway, devices }];
    let hosts = vec![true, false, true];
    World::new(Layout { nodes: 3, cables, machines, host_jitter: Nanos(0), hosts, seed: 7 }, START)
}

fn parties() -> Vec<Party> {
    let party = |(node, address): (usize, [u8; 4])| Party { node, addresses: vec![address.into()] };
    [0, 2].into_iter().zip(HOSTS).map(party).collect()
}

/// A datagram of this many bytes, its header's checksum right.
fn datagram(from: usize, sport: u16, bytes: usize, dsfield: u8) -> Vec<u8> {
    let mut packet = vec![0; bytes];
    packet[0] = 0x45;
    packet[1] = dsfield;
    packet[2..4].copy_from_slice(&(bytes as u16).to_be_bytes());
    (packet[8], packet[9]) = (64, 17);
    packet[12..16].copy_from_slice(&HOSTS[from]);
    packet[16..20].copy_from_slice(&HOSTS[1 - from]);
    packet[20..22].copy_from_slice(&sport.to_be_bytes());
    packet[24..26].copy_from_slice(&((bytes - 20) as u16).to_be_bytes());
    for (n, byte) in packet[28..].iter_mut().enumerate() {
        *byte = n as u8;
    }
    let sum = checksum::updated(0xffff, &[], &packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// Bursts from both sides, several flows, ECN capable or not.
fn arrivals() -> Vec<Sent> {
    let mut random = Seeded::new(3);
    let mut at = START;
    let mut all = Vec::new();
    for _ in 0..400 {
        at += Nanos(random.next() % 2_000_000);
        let (from, flow) = (usize::from(random.next().is_multiple_of(4)), (random.next() % 5) as u16);
        let bytes = 28 + (random.next() % 1400) as usize;
        all.push((at, from, datagram(from, 1000 + flow, bytes, (random.next() % 3) as u8)));
    }
    all
}

/// The packets that leave the simulated network when the same packets are put in at the same times: when, to
/// whom, with which DS field.
fn simulated(commands: &[&str], sent: &[Sent]) -> Vec<(Time, usize, u8)> {
    let mut world = world(commands);
    let mut left = Vec::new();
    let mut drain = |world: &mut World| {
        while world.net.take_arrived(|one| left.push((one.at, one.owner as usize, one.dsfield))) {}
    };
    for (at, party, packet) in sent {
        world.net.run(*at);
        drain(&mut world);
        let (from, to) = if *party == 0 { (0, 2) } else { (2, 0) };
        let way = world.way(from, to).expect("they are joined");
        let head = Head::from_network(ethertype::IPV4, packet);
        world.net.inject(head, packet.len() as u32, way.path, 1 - *party as u32).expect("there is room");
    }
    world.net.run(START + Nanos::secs(20));
    drain(&mut world);
    left
}

fn driven(commands: &[&str], sent: Vec<Sent>) -> (Vec<Sent>, Driver) {
    let (mut world, mut driver) = (world(commands), Driver::new(parties(), &[(IpAddr::from(ROUTER), 1)]));
    let mut outside = Listed { now: START, to_come: sent, given: Vec::new() };
    driver.run(&mut world, &mut outside, START + Nanos::secs(20)).expect("a list does not fail");
    (outside.given, driver)
}

const POLICIES: [&[&str]; 3] = [
    &["qdisc add dev eth0 root pfifo limit 5"],
    &[
        "qdisc add dev eth0 root handle 1: tbf rate 3mbit burst 5k limit 60k",
        "qdisc add dev eth0 parent 1:1 fq_codel limit 40 target 1ms interval 20ms",
    ],
    &["qdisc add dev eth0 root netem delay 5ms 2ms duplicate 20% loss 5%"],
];

#[test]
fn one_list_of_arrivals_leaves_both_at_the_same_times() {
    for commands in POLICIES {
        let sent = arrivals();
        let expected = simulated(commands, &sent);
        let (given, driver) = driven(commands, sent.clone());
        let found: Vec<_> = given.iter().map(|(at, party, packet)| (*at, *party, packet[1])).collect();
        assert_eq!(found, expected, "{commands:?}");
        assert!(
            expected.len() > 100 && expected.len() != sent.len(),
            "the policy did something: {}",
            expected.len()
        );
        assert_eq!(driver.lateness.most(), Nanos(0), "a clock that stops at each event is never late");
    }
}

/// What is behind the bytes that the network knows comes out as it went in; a mark is written, and the
/// checksum stays right.
#[test]
fn bytes_come_out_as_they_went_in_but_for_marks() {
    let sent = arrivals();
    let (given, _) = driven(POLICIES[1], sent.clone());
    let marked = given.iter().filter(|(.., packet)| packet[1] & 3 == 3).count();
    assert!(marked > 0, "fq_codel marks");
    for (_, party, packet) in given {
        assert_eq!(checksum::updated(0xffff, &[], &packet[..20]), 0, "the header's checksum holds");
        let is_it = |(_, from, other): &Sent| {
            *from != party && other.len() == packet.len() && other[20..] == packet[20..]
        };
        assert!(sent.iter().any(is_it), "somebody sent it");
    }
}

/// A packet whose hop limit runs out ends at the router, which answers its sender; with a higher limit it
/// continues.
#[test]
fn a_router_reports_where_a_packet_ended() {
    let mut sent = Vec::new();
    for hops in [1, 2] {
        let mut packet = datagram(0, 9, 700, 0);
        checksum::rewrite(&mut packet, 8, &[hops]);
        sent.push((START, 0, packet));
    }
    let (given, _) = driven(POLICIES[0], sent.clone());
    let [(_, 0, bytes), (_, 1, passed)] = given.as_slice() else { panic!("one of each: {given:?}") };
    assert_eq!((&bytes[12..20], bytes[20], bytes.len()), (&[ROUTER, HOSTS[0]].concat()[..], 11, 576));
    assert_eq!((&bytes[28..], passed), (&sent[0].2[..548], &sent[1].2));
}

/// A machine answers echo requests; packets for an unknown address are counted and reported.
#[test]
fn machines_answer_pings_and_unknown_addresses_are_reported() {
    let mut request = datagram(0, 0, 84, 0);
    (request[9], request[20], request[22], request[23]) = (1, 8, 0, 0);
    let sum = checksum::updated(0xffff, &[], &request[20..]);
    request[22..24].copy_from_slice(&sum.to_be_bytes());
    checksum::rewrite(&mut request, 16, &ROUTER);
    let mut astray = datagram(0, 9, 100, 0);
    checksum::rewrite(&mut astray, 16, &[203, 0, 113, 5]);
    let (given, driver) = driven(POLICIES[0], vec![(START, 0, request.clone()), (START, 0, astray)]);
    let [(_, 0, answer)] = given.as_slice() else { panic!("one answer: {given:?}") };
    assert_eq!((&answer[12..16], &answer[16..20], answer[20]), (&ROUTER[..], &HOSTS[0][..], 0));
    assert_eq!(checksum::updated(0xffff, &[], &answer[20..]), 0, "the answer's checksum holds");
    assert_eq!((driver.counts.nowhere, driver.unknown_address), (1, Some([203, 0, 113, 5].into())));
}
