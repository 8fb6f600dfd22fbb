//! Rates and shares over every interval.

use super::flat::{Flat, bytes_per_second, htb, tbf};
use super::world::{ROOT, World, bucket};
use tidegate_packet::{Handle, Nanos, Time};
use tidegate_policy::*;
use tidegate_qdisc::DeviceInfo;
use tidegate_qdisc::algo::Cost;

/// Packets come at random, now in bursts, now slowly.
fn random_load(world: &mut World, classes: u16, packets: usize, mean_gap: u64) {
    for _ in 0..packets {
        let gap = if world.below(4) == 0 { world.below(8 * mean_gap) } else { world.below(mean_gap) };
        let (class, len) = (1 + world.below(u64::from(classes)) as u16, 64 + world.below(1451) as u32);
        world.pass(world.now + Nanos(gap));
        world.offer(class, 0, len);
    }
    world.pass(world.now + Nanos::secs(100));
}

/// The most by which what was sent in an interval, as time on the wire, exceeds the interval; `last`: does
/// its last packet count?
fn excess(departures: &[(Time, u32)], cost: &Cost, last: bool) -> i64 {
    let mut most = i64::MIN;
    for (first, (begin, _)) in departures.iter().enumerate() {
        let mut wire = 0i64;
        for (end, len) in &departures[first..] {
            let before = wire;
            wire += cost.ns(*len) as i64;
            most = most.max(if last { wire } else { before } - end.since(*begin).0 as i64);
        }
    }
    most
}

/// Over every interval a token bucket sends at most its burst and what the rate brings, to the nanosecond.
#[test]
fn tbf_never_exceeds_its_rate() {
    for seed in 0..20 {
        let mut world = World::new(seed, 0);
        let (bits, burst) = (100_000 + world.below(20_000_000), 1514 + world.below(20_000) as u32);
        let mut params = tbf(bits, burst, 60_000);
        if seed % 2 == 1 {
            (params.peak, params.peak_burst) = (Some(super::world::rate(bits * 3)), 1600);
        }
        world.root("tbf", Some(QdiscParams::Tbf(params.clone())));
        random_load(&mut world, 1, 400, 1514 * 8_000_000_000 / bits);
        let departures = world.departures(0);
        assert!(departures.len() > 100, "seed {seed}: only {} were sent", departures.len());
        let cost = Cost::new(params.rate);
        assert!(excess(&departures, &cost, true) <= cost.ns(burst) as i64, "seed {seed}");
        if let Some(peak) = params.peak {
            let cost = Cost::new(peak);
            assert!(excess(&departures, &cost, true) <= cost.ns(1600) as i64, "seed {seed}, peak");
        }
    }
}

/// A leaf of HTB sends while its ceiling's bucket is not in debt: over every interval at most the bucket,
/// what the ceiling brings, and its last packet. All together exceed the parent's ceiling at most by the sum
/// of the leaves' guaranteed rates.
#[test]
fn htb_never_exceeds_its_ceilings() {
    for seed in 0..12 {
        let mut world = World::new(seed, 0);
        let (total, burst) = (4_000_000, 3000);
        world.root("htb", Some(QdiscParams::Htb(HtbParams::default())));
        world.class(Verb::Add, Handle::ROOT, ROOT.class(0x10), htb(total, total, burst, 1514));
        let mut ceilings = Vec::new();
        for n in 1..=4u16 {
            let (sure, most) = (total / 8 * (1 + world.below(2)), total / 2 + world.below(total / 2));
            ceilings.push(most);
            world.class(Verb::Add, ROOT.class(0x10), ROOT.class(n), htb(sure, most, burst, 1514));
        }
        random_load(&mut world, 4, 1500, 1_200_000);
        for (n, most) in (1..).zip(&ceilings) {
            let cost = Cost::new(super::world::rate(*most));
            let over = excess(&world.departures(n), &cost, false);
            assert!(over <= bucket(*most, burst).duration().0 as i64, "seed {seed}, class {n}: {over} ns");
        }
        let cost = Cost::new(super::world::rate(total));
        let over = excess(&world.departures(0), &cost, false);
        let leaves = 4 * (cost.ns(burst as u32) + cost.ns(1514)) as i64;
        assert!(over <= bucket(total, burst).duration().0 as i64 + leaves, "seed {seed}: {over} ns");
    }
}

/// Keeps three packets queued in each class while `packets` are dequeued; calls `each` with what each class
/// sent.
fn saturate(
    world: &mut World,
    classes: u16,
    packets: usize,
    mut len: impl FnMut(&mut World, u16) -> u32,
    mut each: impl FnMut(u16, u32),
) {
    for class in 1..=classes {
        for _ in 0..3 {
            let len = len(world, class);
            world.offer_only(class, 0, len);
        }
    }
    for _ in 0..packets {
        let number = world.poll().expect("all classes have packets");
        let packet = world.offered[number];
        each(packet.class, packet.len);
        let len = len(world, packet.class);
        world.offer_only(packet.class, 0, len);
    }
}

/// The greatest change that a running figure showed between any two moments.
#[derive(Default)]
struct Swing {
    least: i128,
    most: i128,
}

impl Swing {
    fn see(&mut self, figure: i128) {
        (self.least, self.most) = (self.least.min(figure), self.most.max(figure));
    }
    fn width(&self) -> i128 {
        self.most - self.least
    }
}

/// V-R3: while both stay backlogged, two classes' services divided by their quanta differ by at most 1 +
/// Lmax/Qi + Lmax/Qj in every interval (Shreedhar and Varghese).
#[test]
fn v_r3_drr_is_fair_in_every_interval() {
    const CLASSES: usize = 8;
    let mut world = World::new(3, 0);
    world.root("drr", None);
    let quanta: Vec<i128> = (0..CLASSES).map(|_| i128::from(1514 + world.below(4000))).collect();
    for (n, quantum) in (1..).zip(&quanta) {
        let params = DrrClassParams { quantum: Some(*quantum as u32) };
        world.class(Verb::Add, ROOT, ROOT.class(n), ClassParams::Drr(params));
    }
    let mut sent = [0i128; CLASSES];
    let mut swings: Vec<Swing> = (0..CLASSES * CLASSES).map(|_| Swing::default()).collect();
    saturate(
        &mut world,
        CLASSES as u16,
        100_000,
        |world, _| 64 + world.below(1451) as u32,
        |class, len| {
            let i = usize::from(class) - 1;
            sent[i] += i128::from(len);
            for j in 0..CLASSES {
                swings[i.min(j) * CLASSES + i.max(j)]
                    .see(sent[i.min(j)] * quanta[i.max(j)] - sent[i.max(j)] * quanta[i.min(j)]);
            }
        },
    );
    for i in 0..CLASSES {
        for j in i + 1..CLASSES {
            let bound = quanta[i] * quanta[j] + 1514 * (quanta[i] + quanta[j]);
            assert!(swings[i * CLASSES + j].width() <= bound, "classes {i} and {j}");
        }
    }
}

/// How far QFQ's service of a class strays from its share within any interval, in bytes: the most of ten
/// backlogged classes with weights 1 to 16, on a device whose aggregates hold so many classes.
fn qfq_strays(seed: u64, classes_together: u32) -> i128 {
    let device = DeviceInfo { tx_queue_len: classes_together - 1, ..DeviceInfo::default() };
    let mut world = World::on(device, seed, 0);
    world.root("qfq", None);
    let weights: Vec<i128> = (0..10).map(|_| 1i128 << world.below(5)).collect();
    for (n, weight) in (1..).zip(&weights) {
        let params = QfqClassParams { weight: Some(*weight as u32), maxpkt: None };
        world.class(Verb::Add, ROOT, ROOT.class(n), ClassParams::Qfq(params));
        let limit = QdiscParams::Fifo(FifoParams { limit: Some(10) });
        world.qdisc(Verb::Add, ROOT.class(n), Handle::new(0x100 + n, 0), "pfifo", Some(limit));
    }
    let all: i128 = weights.iter().sum();
    let (mut sent, mut total) = ([0i128; 10], 0i128);
    let mut swings: Vec<Swing> = (0..10).map(|_| Swing::default()).collect();
    saturate(
        &mut world,
        10,
        20_000,
        |world, _| 64 + world.below(1451) as u32,
        |class, len| {
            sent[usize::from(class) - 1] += i128::from(len);
            total += i128::from(len);
            for (k, swing) in swings.iter_mut().enumerate() {
                swing.see(sent[k] * all - weights[k] * total);
            }
        },
    );
    swings.iter().map(|swing| swing.width() / all).max().unwrap_or(0)
}

/// V-X2: with one class in each aggregate QFQ is within a few longest packets of ideal sharing (its paper's
/// B-WFI is below eight: three turns of less than two packets each, and two of any other class's); with eight
/// together, within eight times three and three more.
#[test]
fn v_x2_qfq_keeps_to_the_shares_in_every_interval() {
    let mut worst = 0;
    for seed in 0..6 {
        let (alone, together) = (qfq_strays(seed, 1), qfq_strays(seed, 8));
        assert!(alone <= 8 * 1514, "seed {seed}: {alone} bytes");
        assert!(together <= (3 * 8 + 3) * 1514, "seed {seed}: {together} bytes");
        worst = worst.max(alone);
    }
    println!(
        "validation: Queue management and fairness with TCP | V-X2 | QFQ: most bytes away from ideal \
        sharing in any interval | at most {} | {worst} | within | Checconi, Rizzo, Valente 2013",
        8 * 1514
    );
}

/// Two flows of SFQ that stay backlogged differ by at most a quantum and two packets in every interval.
#[test]
fn sfq_shares_bytes_in_every_interval() {
    for quantum in [300, 1514, 4000] {
        let mut world = World::new(u64::from(quantum), 0);
        let params = SfqParams { divisor: 16, quantum, ..SfqParams::default() };
        world.root("sfq", Some(QdiscParams::Sfq(params)));
        let mut sent = [0i128; 4];
        let mut swings: Vec<Swing> = (0..16).map(|_| Swing::default()).collect();
        saturate(
            &mut world,
            4,
            20_000,
            |world, class| if class == 1 { 1514 } else { 64 + world.below(1451) as u32 },
            |class, len| {
                sent[usize::from(class) - 1] += i128::from(len);
                for (pair, swing) in swings.iter_mut().enumerate() {
                    swing.see(sent[pair / 4] - sent[pair % 4]);
                }
            },
        );
        for swing in &swings {
            assert!(
                swing.width() <= i128::from(quantum) + 2 * 1514,
                "quantum {quantum}: {} bytes",
                swing.width()
            );
        }
    }
}

/// When the real-time curves together stay below the link, every packet of theirs is on the link by its
/// deadline plus one longest packet, whatever else wants to be sent. With straight curves a deadline is the
/// virtual clock's.
#[test]
fn hfsc_meets_its_deadlines() {
    const LINK: u64 = 10_000_000;
    let longest = 1514 * 8_000_000_000 / LINK;
    for seed in 0..8 {
        let mut world = World::new(seed, LINK);
        world.root("hfsc", Some(QdiscParams::Hfsc(HfscParams::default())));
        // 0.5, 1, 2 and 4 Mbit/s: their slopes have no fraction in the kernel's arithmetic.
        let rates: Vec<u64> = (0..4u32).map(|n| 500_000 << n).collect();
        for (n, bits) in (1..).zip(&rates) {
            let rt = Some(ServiceCurve { m1: 0, d_us: 0, m2: bytes_per_second(*bits) });
            world.class(
                Verb::Add,
                ROOT,
                ROOT.class(n),
                ClassParams::Hfsc(HfscClassParams { rt, ..Default::default() }),
            );
        }
        world.class(Verb::Add, ROOT, ROOT.class(9), super::flat::share(bytes_per_second(LINK)));
        let mut deadlines: Vec<(usize, Time)> = Vec::new();
        let mut clock = [Time(0); 4];
        for _ in 0..3000 {
            let step = world.below(1_500_000);
            world.pass(world.now + Nanos(step));
            let (class, len) = (1 + world.below(4) as u16, 64 + world.below(1451) as u32);
            let which = usize::from(class) - 1;
            clock[which] = clock[which].max(world.now) + Nanos(u64::from(len) * 8_000_000_000 / rates[which]);
            deadlines.push((world.offered.len(), clock[which]));
            world.offer(class, 0, len);
            world.offer(9, 0, 1514);
        }
        world.pass(world.now + Nanos::secs(30));
        assert_eq!(world.waiting(), 0);
        for (number, deadline) in deadlines {
            let super::world::PacketState::Sent(at) = world.outcomes[number] else {
                panic!("{number} was lost")
            };
            // The end of its transmission; a tick of 64 ns is the grain of the arithmetic.
            let done = at + Nanos(u64::from(world.offered[number].len) * 8_000_000_000 / LINK);
            assert!(
                done <= deadline + Nanos(longest + 128),
                "seed {seed}, packet {number}: {} ns late",
                done.since(deadline).0
            );
        }
    }
}

/// A class with an upper limit never gets more by link sharing than the limit's line, one packet and the
/// moment it waits for.
#[test]
fn hfsc_keeps_to_upper_limits() {
    let mut world = World::new(5, 100_000_000);
    world.root("hfsc", Some(QdiscParams::Hfsc(HfscParams::default())));
    let line = |bits| Some(ServiceCurve { m1: 0, d_us: 0, m2: bytes_per_second(bits) });
    for (n, bits) in [(1, 1_000_000), (2, 2_000_000), (3, 4_000_000)] {
        let params = HfscClassParams { rt: None, ls: line(bits), ul: line(bits) };
        world.class(Verb::Add, ROOT, ROOT.class(n), ClassParams::Hfsc(params));
    }
    random_load(&mut world, 3, 3000, 700_000);
    for (n, bits) in [(1, 1_000_000), (2, 2_000_000), (3, 4_000_000)] {
        let cost = Cost::new(super::world::rate(bits));
        let over = excess(&world.departures(n), &cost, false);
        assert!(over <= cost.ns(1514) as i64, "class {n}: {over} ns");
    }
}

/// Shapes of one level under a random load, on a link that is often full: all is accounted for and in order.
#[test]
fn one_level_is_whole_and_in_order() {
    for (seed, kind) in (0..).zip(Flat::ALL) {
        let mut world = World::new(seed, 5_000_000);
        kind.build(&mut world, 3);
        world.account(ROOT, &[], &[1, 2, 3]);
        random_load(&mut world, 3, 800, 1_000_000);
        assert_eq!(world.waiting(), 0, "{kind:?}");
        world.flows_are_in_order();
    }
}
