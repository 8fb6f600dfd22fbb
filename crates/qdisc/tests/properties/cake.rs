//! CAKE: what its tins, hosts and flows share, its shaper's bound, and how rarely its queues are shared (the
//! reference's rows V-K and V-H4).

use super::world::World;
use tidegate_packet::{Nanos, Rate, Time};
use tidegate_policy::dump::{CakeStats, Xstats};
use tidegate_policy::{CakeFlows, CakeParams, CakeTins, QdiscParams};

const RATE: u64 = 10_000_000;

/// Tells a row of `docs/validation.md`, and holds it.
fn row(group: &str, id: &str, what: &str, expected: &str, found: &str, within: bool, source: &str) {
    let verdict = if within { "within" } else { "outside" };
    println!("validation: {group} | {id} | {what} | {expected} | {found} | {verdict} | {source}");
    assert!(within, "{id}: {found} for {expected}");
}

fn cake(tins: CakeTins, flows: CakeFlows) -> World {
    let mut world = World::new(7, 0);
    let params = CakeParams {
        bandwidth: Some(Rate::bits(RATE)),
        tins: Some(tins),
        flows: Some(flows),
        ..CakeParams::default()
    };
    world.root("cake", Some(QdiscParams::Cake(Box::new(params))));
    world
}

fn stats(world: &mut World) -> CakeStats {
    match world.dumps().remove(0).xstats {
        Xstats::Cake(stats) => *stats,
        other => panic!("{other:?}"),
    }
}

/// Shares in percent of what was sent in the last of these seconds, by class.
fn shares(world: &World, start: Time, classes: &[u16]) -> Vec<f64> {
    let later = start + Nanos::secs(4);
    let bytes = |class: u16| -> f64 {
        world.departures(class).iter().filter(|(at, _)| *at > later).map(|(_, len)| f64::from(*len)).sum()
    };
    let all: Vec<f64> = classes.iter().map(|class| bytes(*class)).collect();
    let total: f64 = all.iter().sum();
    all.iter().map(|bytes| bytes * 100.0 / total).collect()
}

fn shares_text(shares: &[f64]) -> String {
    shares.iter().map(|share| format!("{share:.2}")).collect::<Vec<_>>().join(" / ")
}

fn all_near(found: &[f64], wanted: &[f64], points: f64) -> bool {
    found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() <= points)
}

/// Each of these tins, by its place in a listing from 1, gets more than the link carries.
fn saturated(tins: CakeTins, places: &[u16]) -> Vec<f64> {
    let mut world = cake(tins, CakeFlows::Flows);
    let start = world.now;
    for ms in 0..20_000 {
        world.pass(start + Nanos::millis(ms));
        places.iter().for_each(|place| (0..2).for_each(|_| world.offer(*place, 0, 1000)));
    }
    shares(&world, start, places)
}

/// What is reported, the tins, the saturated ones by place, their shares in percent, and how near that must
/// be.
type Saturated = (&'static str, CakeTins, &'static [u16], &'static [f64], f64);

/// V-K1: the highest tin whose time has come sends, and each has a clock of its own.
#[test]
fn v_k1_saturated_tins() {
    let table: [Saturated; 4] = [
        ("diffserv3: bulk, best effort, voice", CakeTins::Diffserv3, &[1, 2, 3], &[6.25, 68.75, 25.0], 0.3),
        ("diffserv4 without video", CakeTins::Diffserv4, &[1, 2, 4], &[6.25, 68.75, 25.0], 0.3),
        (
            "diffserv4: bulk, best effort, video, voice",
            CakeTins::Diffserv4,
            &[1, 2, 3, 4],
            &[6.25, 18.75, 50.0, 25.0],
            0.3,
        ),
        (
            "diffserv8, tins 0 to 7",
            CakeTins::Diffserv8,
            &[1, 2, 3, 4, 5, 6, 7, 8],
            &[0.0, 0.0, 0.0, 0.0, 0.0, 15.85, 44.88, 39.27],
            0.3,
        ),
    ];
    for (n, (what, tins, places, wanted, points)) in table.into_iter().enumerate() {
        let found = saturated(tins, places);
        row(
            "Queue management and fairness with TCP",
            &format!("V-K1-{}", n + 1),
            &format!("CAKE, saturated tins: {what}, shares in percent"),
            &format!("{} ± {points}", shares_text(wanted)),
            &shares_text(&found),
            all_near(&found, wanted, points),
            "a real kernel",
        );
    }
}

/// V-K2: in any stretch of time no more is sent than the rate allows and one packet.
#[test]
fn v_k2_shaper_has_no_burst() {
    let mut world = cake(CakeTins::Diffserv4, CakeFlows::Triple);
    let start = world.now;
    for n in 0..30_000 {
        let (class, flow) = (1 + world.below(4) as u16, world.below(6) as u16);
        let len = 60 + world.below(1455) as u32;
        let jitter = world.below(700_000);
        world.pass(start + Nanos(n * 700_000 + jitter));
        (0..1 + n % 3).for_each(|_| world.offer(class, flow, len));
        if n % 5000 == 0 {
            world.pass(world.now + Nanos::secs(2));
        }
    }
    // Bytes beyond the rate at each departure, that of the packet before it included: the worst of all
    // stretches that end there.
    let (mut beyond, mut worst, mut before) = (0.0_f64, 0.0_f64, None);
    for (at, len) in world.departures(0) {
        let passed = before.map_or(0.0, |before: Time| at.since(before).as_secs_f64() * (RATE / 8) as f64);
        beyond = (beyond - passed).max(0.0);
        worst = worst.max(beyond);
        (beyond, before) = (beyond + f64::from(len), Some(at));
    }
    // A packet's time is cut to whole nanoseconds.
    let within = worst <= world.sent.len() as f64 * RATE as f64 / 8e9;
    let found = format!("{worst:.3} bytes more");
    row(
        "Queue management and fairness with TCP",
        "V-K2",
        "CAKE's shaper: bytes in any window",
        "rate·t + 1 packet",
        &found,
        within,
        "model",
    );
}

/// V-K11: host A sends to a, b and twice to c, host B to c and d; all of them more than the link carries.
#[test]
fn v_k11_hosts_share() {
    let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let to = |host: u8| [192, 0, 2, host];
    let flows = [(a, to(1)), (a, to(2)), (a, to(3)), (a, to(3)), (b, to(3)), (b, to(4))];
    let table: [(CakeFlows, [f64; 6]); 4] = [
        (CakeFlows::Flows, [16.667; 6]),
        (CakeFlows::DualSource, [12.5, 12.5, 12.5, 12.5, 25.0, 25.0]),
        (CakeFlows::DualDestination, [25.0, 25.0, 8.333, 8.333, 8.333, 25.0]),
        (CakeFlows::Triple, [13.636, 13.636, 13.636, 13.636, 18.182, 27.273]),
    ];
    for (mode, wanted) in table {
        let mut world = cake(CakeTins::BestEffort, mode);
        let start = world.now;
        for ms in 0..20_000 {
            world.pass(start + Nanos::millis(ms));
            for (n, (source, destination)) in flows.into_iter().enumerate() {
                world.offer_between(source, destination, n as u16 + 1, 0, 1000);
            }
        }
        let found = shares(&world, start, &[1, 2, 3, 4, 5, 6]);
        row(
            "Queue management and fairness with TCP",
            &format!("V-K11-{}", mode.name()),
            "CAKE: A to a, b, c, c and B to c, d; shares in percent",
            &format!("{} ± 0.5", shares_text(&wanted)),
            &shares_text(&found),
            all_near(&found, &wanted, 0.5),
            "CAKE paper, figure 3",
        );
    }
}

/// V-H4: of so many flows, how many find no queue of their own among 1024 in sets of eight.
#[test]
fn v_h4_queues_are_rarely_shared() {
    for (flows, groups, expected) in [(400, 400, 0.0022), (600, 60, 0.0178), (800, 40, 0.0607)] {
        let mut shared = 0;
        for group in 0..groups {
            let mut world = cake(CakeTins::BestEffort, CakeFlows::Flows);
            (0..flows).for_each(|flow| world.offer_only(group + 1, flow, 100));
            shared += stats(&mut world).tins[0].way_collisions;
        }
        let part = f64::from(shared) / f64::from(flows) / f64::from(groups);
        let within = (part / expected - 1.0).abs() <= 0.1;
        row(
            "Queueing theory and hashing",
            &format!("V-H4-{flows}"),
            &format!("CAKE: flows of {flows} without a queue of their own"),
            &format!("{expected} ± 10 %"),
            &format!("{part:.4}"),
            within,
            "CAKE paper, figure 1",
        );
    }
}

/// On a link of cells a packet takes the time of its cells.
#[test]
fn what_is_charged_is_what_the_link_carries() {
    let mut world = World::new(3, 0);
    let params = CakeParams {
        bandwidth: Some(Rate::bits(RATE)),
        overhead: Some(18),
        mpu: Some(64),
        framing: Some(tidegate_policy::CakeFraming::Atm),
        ..CakeParams::default()
    };
    world.root("cake", Some(QdiscParams::Cake(Box::new(params))));
    (0..4).for_each(|flow| world.offer(2, flow, 1514));
    world.offer(2, 9, 60);
    world.pass(world.now + Nanos::secs(1));
    let stats = stats(&mut world);
    // 1500 bytes and 18 more fill 32 cells; 46 and 18 are the least of 64, which fill two.
    assert_eq!((stats.network_sizes, stats.adjusted_sizes), ((46, 1500), (106, 32 * 53)));
    let gaps: Vec<u64> = world.departures(0).windows(2).map(|pair| pair[1].0.since(pair[0].0).0).collect();
    let cells = |n: u64| n * 53 * 800;
    assert!(
        gaps.iter().zip([cells(32), cells(32), cells(32), cells(32)]).all(|(gap, full)| full - gap <= 1),
        "{gaps:?}"
    );
}
