//! The engine between a backend that is none and a clock that is none: what leaves when, and that each ticket
//! comes back once.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use tidegate_dataplane::engine::{CREDIT, Engine, PacketOutcome, link_rate};
use tidegate_dataplane::packet_io::{
    AttachPoint, Came, Leaving, PacketIo, PacketIoStats, Passed, TrafficDirection,
};
use tidegate_gateway::{DeviceSpec, GatewayContext};
use tidegate_packet::{Handle, Rate, Time};
use tidegate_policy::{LinkDriver, Op};
use tidegate_syntax::Env;
use tidegate_syntax::tc::{self, TcCommand};

/// A backend on nothing: frames are put in by hand, and what leaves is written down.
#[derive(Default)]
struct Harness {
    waiting: VecDeque<(usize, Vec<u8>, u32)>,
    frames: BTreeMap<u32, Vec<u8>>,
    next: u32,
    left: Vec<(usize, u32, Option<u8>)>,
    lost: Vec<u32>,
}

impl Harness {
    fn put(&mut self, place: usize, frame: Vec<u8>, mark: u32) {
        self.waiting.push_back((place, frame, mark));
    }
}

impl PacketIo for Harness {
    fn receive(&mut self, most: usize, take: &mut dyn FnMut(Came<'_>)) -> io::Result<usize> {
        let many = most.min(self.waiting.len());
        for (place, frame, mark) in self.waiting.drain(..many) {
            let (ticket, len) = (self.next, frame.len() as u32);
            self.next += 1;
            take(Came { ticket, place, frame: &frame, link_header: 14, len, mark, priority: 0, segments: 1 });
            self.frames.insert(ticket, frame);
        }
        Ok(many)
    }

    fn pass(&mut self, ticket: u32, leaving: &Leaving<'_>) -> io::Result<Passed> {
        self.frames.remove(&ticket).expect("a ticket that is out");
        self.left.push((leaving.place, ticket, leaving.dsfield));
        Ok(Passed::Gone)
    }

    fn drop_packet(&mut self, ticket: u32) -> io::Result<()> {
        self.frames.remove(&ticket).expect("a ticket that is out");
        self.lost.push(ticket);
        Ok(())
    }

    fn copy(&mut self, ticket: u32) -> Option<u32> {
        let frame = self.frames.get(&ticket).expect("a ticket that is out").clone();
        let copy = self.next;
        self.next += 1;
        self.frames.insert(copy, frame);
        Some(copy)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn handles(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    fn counts(&self) -> PacketIoStats {
        PacketIoStats::default()
    }

    fn split(&mut self, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn cannot(&self) -> &'static [&'static str] {
        &[]
    }
}

fn ops(script: &str) -> Vec<Op> {
    let one = |line: &str| {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        match tc::parse(&words, &Env::default()) {
            Ok(tc::TcCommandLine { command: TcCommand::Apply(op), .. }) => op,
            other => panic!("{line}: {other:?}"),
        }
    };
    script.lines().map(str::trim).filter(|line| !line.is_empty()).map(one).collect()
}

fn spot(dev: &str, direction: TrafficDirection) -> AttachPoint {
    AttachPoint { dev: dev.into(), direction }
}

/// A machine with `eth0` and `ifb0`, configured by the script, with a backend on both directions of `eth0`.
fn machine(script: &str, most: usize) -> (Engine, Harness) {
    let devices = [("eth0".into(), DeviceSpec::default()), ("ifb0".into(), DeviceSpec::of(&LinkDriver::Ifb))];
    let places = [spot("eth0", TrafficDirection::Egress), spot("eth0", TrafficDirection::Ingress)];
    let (mut engine, mut bench) = (Engine::new(&devices, &places, most, 1), Harness::default());
    engine.apply(&mut bench, Time(0), &ops(script)).expect("no door").expect("words that are right");
    (engine, bench)
}

/// A UDP datagram with a frame of this many bytes, from a port, with this ECN field.
fn frame(bytes: usize, port: u16, ecn: u8) -> Vec<u8> {
    let mut frame = vec![0; bytes];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[15] = ecn;
    frame[16..18].copy_from_slice(&(bytes as u16 - 14).to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 17]);
    frame[26..34].copy_from_slice(&[192, 0, 2, 1, 198, 51, 100, 1]);
    frame[34..36].copy_from_slice(&port.to_be_bytes());
    frame
}

/// Continues to a time, waking up so many nanoseconds after something was due.
fn go(engine: &mut Engine, bench: &mut Harness, until: u64, late: u64) {
    while engine.turn(bench, engine.now()).expect("no door") {}
    while let Some(due) = engine.due().filter(|due| due.0 <= until) {
        engine.turn(bench, Time((due.0 + late).min(until))).expect("no door");
    }
    engine.turn(bench, Time(until)).expect("no door");
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn a_rate_is_the_rate_however_late_the_wakeup() {
    for late in [0, 50_000, 900_000, 5_000_000] {
        let (mut engine, mut bench) = machine(
            "qdisc add dev eth0 root handle 1: htb default 10
             class add dev eth0 parent 1: classid 1:10 htb rate 8mbit
             qdisc add dev eth0 parent 1:10 pfifo limit 2000",
            4000,
        );
        (0..1500).for_each(|_| bench.put(0, frame(1000, 1, 0), 0));
        go(&mut engine, &mut bench, SECOND, late);
        // 8 Mbit/s are 1000 frames of 1000 bytes; the bucket holds a few more.
        assert!((1000..=1003).contains(&bench.left.len()), "{} left, {late} ns late", bench.left.len());
        assert_eq!(engine.held_packets() + bench.left.len() + bench.lost.len(), 1500);
    }
}

#[test]
fn after_a_long_pause_what_was_missed_is_missed() {
    let (mut engine, mut bench) =
        machine("qdisc add dev eth0 root tbf rate 8mbit burst 2000 limit 2000000", 4000);
    (0..1500).for_each(|_| bench.put(0, frame(1000, 1, 0), 0));
    while engine.turn(&mut bench, Time(0)).expect("no door") {}
    let before = bench.left.len();
    engine.turn(&mut bench, Time(SECOND)).expect("no door");
    let made_up = (bench.left.len() - before) as u64;
    // A millisecond for each frame, and the bucket is full after a second.
    assert!(made_up <= CREDIT.0 / 1_000_000 + 3, "{made_up} left at once");
}

#[test]
fn each_ticket_comes_back_once() {
    let (mut engine, mut bench) = machine(
        "qdisc add dev eth0 root handle 1: tbf rate 4mbit burst 3000 limit 20000
         qdisc add dev eth0 parent 1: handle 10: netem duplicate 30% loss 10%",
        5000,
    );
    for turn in 0..200 {
        (0..10).for_each(|port| bench.put(0, frame(200 + usize::from(port) * 100, port, 0), 0));
        engine.turn(&mut bench, Time(turn * 1_000_000)).expect("no door");
    }
    let inside = bench.frames.len();
    assert_eq!(engine.held_packets(), inside, "tickets are out for what is inside");
    assert!(
        bench.lost.len() > 100 && bench.left.len() > 50 && bench.next > 2300,
        "some of each: {:?}",
        engine.counts()
    );
    engine.empty(&mut bench).expect("no door");
    assert!(bench.frames.is_empty());
    assert_eq!(bench.left.len() + bench.lost.len(), bench.next as usize);
}

#[test]
fn beyond_the_memory_limit_packets_are_dropped() {
    let (mut engine, mut bench) =
        machine("qdisc add dev eth0 root tbf rate 1mbit burst 2000 limit 2000000", 100);
    (0..500).for_each(|_| bench.put(0, frame(1000, 1, 0), 0));
    go(&mut engine, &mut bench, 1000, 0);
    assert_eq!(engine.held_packets(), 100);
    assert_eq!(engine.counts().no_room as usize, 500 - 100 - bench.left.len());
    assert_eq!(bench.lost.len() as u64, engine.counts().no_room);
}

#[test]
fn what_arrives_is_shaped_on_an_ifb_and_goes_on() {
    let (mut engine, mut bench) = machine(
        "qdisc add dev eth0 handle ffff: ingress
         filter add dev eth0 parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev \
         ifb0
         qdisc add dev ifb0 root tbf rate 8mbit burst 2000 limit 100000",
        4000,
    );
    (0..50).for_each(|_| bench.put(1, frame(1000, 1, 0), 0));
    bench.put(0, frame(1000, 1, 0), 0);
    go(&mut engine, &mut bench, SECOND / 50, 0);
    let arrived = bench.left.iter().filter(|(place, ..)| *place == 1).count();
    assert!((20..=22).contains(&arrived), "{arrived} of those that arrive went on in 20 ms");
    assert_eq!(bench.left.iter().filter(|(place, ..)| *place == 0).count(), 1, "what leaves is not held");
}

#[test]
fn only_devices_with_a_door_are_the_kernels() {
    let (mut engine, _) = machine("qdisc add dev eth0 root pfifo", 10);
    engine.number([(1, "lo".into()), (2, "eth0".into()), (3, "ifb0".into())]);
    assert_eq!([1, 2, 3].map(|number| engine.numbered(number)), [None, Some("eth0"), None]);
}

#[test]
fn a_mark_of_congestion_goes_with_the_packet() {
    let (mut engine, mut bench) = machine(
        "qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 2000 limit 2000000
         qdisc add dev eth0 parent 1: handle 10: fq_codel target 1ms interval 10ms ecn",
        4000,
    );
    (0..200).for_each(|_| bench.put(0, frame(1000, 1, 2), 0));
    go(&mut engine, &mut bench, SECOND, 0);
    let marked = bench.left.iter().filter(|(_, _, dsfield)| *dsfield == Some(3)).count();
    assert!(marked > 5, "{marked} marked");
}

#[test]
fn a_reload_loses_nothing_that_waits() {
    let (mut engine, mut bench) = machine(
        "qdisc add dev eth0 root handle 1: htb default 10
         class add dev eth0 parent 1: classid 1:10 htb rate 1mbit
         qdisc add dev eth0 parent 1:10 pfifo limit 2000",
        4000,
    );
    (0..1000).for_each(|_| bench.put(0, frame(1000, 1, 0), 0));
    go(&mut engine, &mut bench, 1000, 0);
    for turn in 1..=1000 {
        let rate = if turn % 2 == 0 { "1mbit" } else { "2mbit" };
        let change = ops(&format!("class change dev eth0 parent 1: classid 1:10 htb rate {rate}"));
        engine.apply(&mut bench, Time(turn * 1000), &change).expect("no door").expect("a change");
    }
    assert_eq!((bench.lost.len(), engine.held_packets() + bench.left.len()), (0, 1000));
    let refused = ops("class change dev eth0 parent 1: classid 1:99 htb rate 1mbit\nqdisc del dev eth0 root");
    let (at, error) =
        engine.apply(&mut bench, Time(2_000_000), &refused).expect("no door").expect_err("no such class");
    assert_eq!((at, error.to_string().contains("No such file")), (0, true), "{error}");
    assert_eq!(bench.lost.len(), 0, "nothing is done after what was refused");
}

#[test]
fn who_watches_sees_how_long_packets_wait_in_each_class() {
    let (mut engine, mut bench) = machine(
        "qdisc add dev eth0 root handle 1: htb default 10
         class add dev eth0 parent 1: classid 1:10 htb rate 8mbit
         class add dev eth0 parent 1: classid 1:20 htb rate 8mbit
         filter add dev eth0 parent 1: protocol ip handle 7 fw classid 1:20",
        4000,
    );
    let (to, captured) = std::sync::mpsc::sync_channel(100);
    let device = engine
        .visit(&mut bench, Time(0), |gateway, _| gateway.device("eth0"))
        .expect("no door")
        .expect("eth0");
    let class = |minor| Handle::new(1, minor);
    engine.watch().capture(device, class(0x20), to);
    (0..11).for_each(|_| bench.put(0, frame(1000, 1, 0), 0));
    bench.put(0, frame(1000, 1, 0), 7);
    go(&mut engine, &mut bench, SECOND, 0);
    let many = |minor| {
        let seen = engine_seen(&mut engine, device, class(minor));
        seen.iter().map(|(_, count)| count).sum::<u64>()
    };
    assert_eq!([0x10, 0x20].map(many), [11, 1]);
    let longest = engine_seen(&mut engine, device, class(0x10)).last().expect("some").0;
    assert!(
        (8_000_000..10_500_000).contains(&longest),
        "the last waits for ten before it, less the bucket: {longest} ns"
    );
    let seen: Vec<_> = captured.try_iter().collect();
    assert_eq!(seen.len(), 1);
    assert_eq!(
        (seen[0].class, seen[0].len, seen[0].outcome),
        (class(0x20), 1000, PacketOutcome::Left { marked: false })
    );
}

fn engine_seen(engine: &mut Engine, device: tidegate_gateway::DeviceId, class: Handle) -> Vec<(u64, u64)> {
    engine.watch().of(device, class).map(|seen| seen.sojourn.buckets().collect()).unwrap_or_default()
}

/// The devices of [`machine`], by name.
fn named(engine: &mut Engine, bench: &mut Harness, name: &str) -> tidegate_gateway::DeviceId {
    engine.visit(bench, Time(0), |gateway, _| gateway.device(name)).expect("no door").expect("it is there")
}

/// What arrives at eth0 is led to ifb0, where a class has 8 Mbit/s: a frame of 1000 bytes in a millisecond.
const ARRIVALS_AT_IFB: &str = "qdisc add dev eth0 handle ffff: ingress
    filter add dev eth0 parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev ifb0
    qdisc add dev ifb0 root handle 1: htb default 10
    class add dev ifb0 parent 1: classid 1:10 htb rate 8mbit
    qdisc add dev ifb0 parent 1:10 pfifo limit 20";

#[test]
fn what_waits_at_an_ifb_is_noted_there_and_not_where_it_came() {
    let (mut engine, mut bench) = machine(ARRIVALS_AT_IFB, 4000);
    let (to_eth0, of_eth0) = std::sync::mpsc::sync_channel(100);
    let (to_ifb0, of_ifb0) = std::sync::mpsc::sync_channel(100);
    let (eth0, ifb0) = (named(&mut engine, &mut bench, "eth0"), named(&mut engine, &mut bench, "ifb0"));
    let class = Handle::new(1, 0x10);
    engine.watch().capture(eth0, Handle::NONE, to_eth0);
    engine.watch().capture(ifb0, class, to_ifb0);
    (0..30).for_each(|_| bench.put(1, frame(1000, 1, 0), 0));
    go(&mut engine, &mut bench, 5 * SECOND / 1000, 0);
    let oldest: Vec<_> = engine.oldest().into_iter().collect();
    assert_eq!(oldest, [((ifb0, class), Time(0))]);
    go(&mut engine, &mut bench, SECOND, 0);

    let (left, lost) = (bench.left.len() as u64, bench.lost.len() as u64);
    assert_eq!(left + lost, 30);
    assert!(bench.left.iter().all(|(place, ..)| *place == 1) && lost > 5, "{left} went on, {lost} did not");
    let seen = engine.watch().of(ifb0, class).expect("packets were there").clone();
    let waited: Vec<_> = seen.sojourn.buckets().collect();
    assert_eq!((waited.iter().map(|(_, count)| count).sum::<u64>(), seen.dropped), (left, lost));
    let longest = waited.last().expect("some").0;
    assert!((18_000_000..24_000_000).contains(&longest), "the last waits for those before it: {longest} ns");
    assert_eq!(engine.watch().on(eth0).count(), 0, "nothing waited at eth0");

    let captured: Vec<_> = of_ifb0.try_iter().collect();
    assert_eq!(captured.len(), 30);
    assert!(captured.iter().all(|packet| packet.class == class && packet.came == Time(0)));
    assert_eq!(
        captured.iter().filter(|packet| packet.outcome == PacketOutcome::Dropped).count() as u64,
        lost
    );
    assert_eq!(of_eth0.try_iter().count(), 0);
}

#[test]
fn what_an_ifb_gives_back_to_a_queue_waits_twice() {
    let (mut engine, mut bench) = machine(
        "qdisc add dev eth0 clsact
         filter add dev eth0 egress protocol all u32 match u32 0 0 action mirred egress redirect dev ifb0
         qdisc add dev ifb0 root handle 1: htb default 10
         class add dev ifb0 parent 1: classid 1:10 htb rate 8mbit
         qdisc add dev ifb0 parent 1:10 handle 10: fq_codel target 100us interval 1ms ecn
         qdisc add dev eth0 root handle 2: htb default 20
         class add dev eth0 parent 2: classid 2:20 htb rate 4mbit
         qdisc add dev eth0 parent 2:20 pfifo limit 1000",
        4000,
    );
    let (eth0, ifb0) = (named(&mut engine, &mut bench, "eth0"), named(&mut engine, &mut bench, "ifb0"));
    engine.watch();
    (0..20).for_each(|_| bench.put(0, frame(1000, 1, 2), 0));
    go(&mut engine, &mut bench, SECOND, 0);
    assert_eq!(bench.left.len(), 20);

    let seen = |engine: &mut Engine, device, class| engine.watch().of(device, class).expect("some").clone();
    let (at_ifb0, at_eth0) =
        (seen(&mut engine, ifb0, Handle::new(1, 0x10)), seen(&mut engine, eth0, Handle::new(2, 0x20)));
    // A millisecond for each frame at the first, two at the second, less the buckets; each only its own.
    for seen in [&at_ifb0, &at_eth0] {
        let waited: Vec<_> = seen.sojourn.buckets().collect();
        let longest = waited.last().expect("some").0;
        assert_eq!(waited.iter().map(|(_, count)| count).sum::<u64>(), 20);
        assert!((14_000_000..24_000_000).contains(&longest), "{longest} ns");
    }
    let marked = bench.left.iter().filter(|(_, _, dsfield)| *dsfield == Some(3)).count() as u64;
    assert!(marked > 3, "{marked}");
    assert_eq!((at_ifb0.marked, at_eth0.marked), (marked, 0), "a mark is noted where it was made");
}

#[test]
fn what_meets_no_queue_is_nothing_to_a_class() {
    let (mut engine, mut bench) = machine(
        "qdisc add dev eth0 handle ffff: ingress
         filter add dev eth0 parent ffff: protocol ip prio 1 handle 7 fw action drop
         qdisc add dev eth0 root handle 1: htb default 10
         class add dev eth0 parent 1: classid 1:10 htb rate 8mbit",
        4000,
    );
    let (to, captured) = std::sync::mpsc::sync_channel(100);
    let eth0 = named(&mut engine, &mut bench, "eth0");
    engine.watch().capture(eth0, Handle::NONE, to);
    bench.put(0, frame(1000, 1, 0), 0);
    go(&mut engine, &mut bench, 1000, 0);
    // The same slot holds one that arrives and passes, and then one that arrives and is dropped.
    bench.put(1, frame(1000, 1, 0), 0);
    go(&mut engine, &mut bench, 2000, 0);
    bench.put(1, frame(1000, 1, 0), 7);
    go(&mut engine, &mut bench, 3000, 0);
    assert_eq!((bench.left.len(), bench.lost.len()), (2, 1));
    let class = Handle::new(1, 0x10);
    let seen = engine.watch().of(eth0, class).expect("the first").clone();
    assert_eq!((seen.sojourn.buckets().map(|(_, count)| count).sum::<u64>(), seen.dropped), (1, 0));
    assert_eq!(engine.watch().on(eth0).count(), 1);
    let captured: Vec<_> = captured.try_iter().map(|packet| (packet.class, packet.outcome)).collect();
    let left = PacketOutcome::Left { marked: false };
    assert_eq!(
        captured,
        [(class, left), (Handle::NONE, left), (Handle::NONE, PacketOutcome::Dropped)],
        "a capture shows them, without a class"
    );
}

#[test]
fn the_rate_of_a_link_is_the_most_that_its_disciplines_let_through() {
    let cases = [
        ("qdisc add dev eth0 root tbf rate 4mbit burst 3000 limit 20000", Some(4)),
        ("qdisc add dev eth0 root cake bandwidth 7mbit", Some(7)),
        (
            "qdisc add dev eth0 root handle 1: htb\nclass add dev eth0 parent 1: classid 1:1 htb rate 1mbit \
            ceil 9mbit",
            Some(9),
        ),
        ("qdisc add dev eth0 root fq_codel", None),
    ];
    for (script, mbit) in cases {
        let (mut engine, mut bench) = machine(script, 10);
        let dumps = |gateway: &mut tidegate_gateway::Gateway,
                     GatewayContext { now, .. }: GatewayContext<'_>| {
            let device = gateway.device("eth0").expect("eth0");
            (gateway.qdiscs(now, device), gateway.classes(now, device))
        };
        let (qdiscs, classes) = engine.visit(&mut bench, Time(0), dumps).expect("no door");
        assert_eq!(link_rate(&qdiscs, &classes), mbit.map(|mbit| Rate::bits(mbit * 1_000_000)), "{script}");
    }
}

/// Bytes from a generator that is the same everywhere.
fn strange(seed: &mut tidegate_packet::Seeded, most: usize) -> Vec<u8> {
    let bytes = (seed.next() as usize) % most;
    (0..bytes).map(|_| seed.next() as u8).collect()
}

#[test]
fn frames_of_any_bytes_pass_or_are_dropped_and_no_ticket_stays() {
    let scripts = [
        "qdisc add dev eth0 root fq_codel",
        "qdisc add dev eth0 root cake bandwidth 100mbit diffserv4 ack-filter nat",
        "qdisc add dev eth0 root handle 1: prio
         filter add dev eth0 parent 1: protocol ip u32 match ip dport 80 0xffff flowid 1:1
         filter add dev eth0 parent 1: protocol all prio 9 handle 1 flow hash keys \
         src,dst,proto,proto-src,proto-dst divisor 3 baseclass 1:1",
    ];
    for script in scripts {
        let (mut engine, mut bench) = machine(script, 500);
        engine.never_starve(None);
        let mut seed = tidegate_packet::Seeded::new(7);
        for turn in 0..2000_u64 {
            let mut bytes = strange(&mut seed, 120);
            // Half of them claim to be IP, of either version, and are cut anywhere.
            if turn % 2 == 0 && bytes.len() > 15 {
                let (kind, version) = if turn % 4 == 0 { ([8, 0], 0x45) } else { ([0x86, 0xdd], 0x60) };
                bytes[12..14].copy_from_slice(&kind);
                bytes[14] = version;
            }
            bench.put((turn % 2) as usize, bytes, 0);
            engine.turn(&mut bench, Time(turn * 10_000)).expect("no door");
        }
        go(&mut engine, &mut bench, 100 * SECOND, 0);
        assert_eq!((engine.held_packets(), bench.frames.len()), (0, 0), "{script}");
        assert_eq!(bench.left.len() + bench.lost.len(), 2000, "{script}");
    }
}

#[test]
fn a_hundred_thousand_flows_share_a_bounded_table() {
    let (mut engine, mut bench) = machine(
        "qdisc add dev eth0 root handle 1: htb default 10
         class add dev eth0 parent 1: classid 1:10 htb rate 100mbit
         qdisc add dev eth0 parent 1:10 fq_codel",
        20_000,
    );
    for flow in 0..100_000_u32 {
        let mut bytes = frame(200, (flow >> 16) as u16, 0);
        bytes[36..38].copy_from_slice(&(flow as u16).to_be_bytes());
        bench.put(0, bytes, 0);
        if flow % 64 == 63 {
            engine.turn(&mut bench, Time(u64::from(flow) * 1000)).expect("no door");
        }
    }
    go(&mut engine, &mut bench, 100 * SECOND, 0);
    let (counts, all) = (engine.counts(), bench.left.len() + bench.lost.len());
    assert_eq!((all, engine.held_packets()), (100_000, 0), "{counts:?}");
    // fq_codel holds 10,240 packets, so at 10 times the rate most are dropped, and those that leave come from
    // all flows.
    assert!(counts.dropped > 50_000 && counts.passed > 10_000 && counts.no_room == 0, "{counts:?}");
}
