//! The exact vectors of the reference, by their names there.

use super::flat::{bytes_per_second, htb, share, tbf};
use super::world::{Fate, ROOT, World, rate};
use std::collections::BTreeMap;
use tidegate_packet::{Handle, Rate, Span, Time};
use tidegate_policy::*;

/// When packets of these lengths, all there at once, leave, in ns.
fn times(world: &mut World, lens: &[u32], class: u16) -> Vec<u64> {
    let start = world.now;
    for len in lens {
        world.offer(class, 0, *len);
    }
    world.pass(start + Span::secs(10));
    world.departures(0).iter().map(|(at, _)| at.since(start).0).collect()
}

#[test]
fn v_t1_tbf() {
    let mut world = World::new(1, 0);
    world.root("tbf", Some(QdiscParams::Tbf(tbf(1_000_000, 10_240, 13_990))));
    let steps = (0..9).map(|n| 2_864_000 + n * 12_112_000);
    assert_eq!(times(&mut world, &[1514; 20], 1), [0; 6].into_iter().chain(steps).collect::<Vec<u64>>());
    assert_eq!(world.fates.iter().filter(|fate| matches!(fate, Fate::Lost(_))).count(), 5);
}

#[test]
fn v_t2_tbf_of_a_modem() {
    let mut world = World::new(1, 0);
    world.root("tbf", Some(QdiscParams::Tbf(tbf(127_000, 2048, 2841))));
    assert_eq!(times(&mut world, &[1514, 98, 98, 1514], 1), [0, 0, 0, 74_078_738]);
}

#[test]
fn v_t3_tbf_with_a_peak() {
    let mut world = World::new(1, 0);
    let params = TbfParams { peak: Some(rate(2_000_000)), peak_burst: 1540, ..tbf(1_000_000, 10_240, 100_000) };
    world.root("tbf", Some(QdiscParams::Tbf(params)));
    let wanted: Vec<u64> = [0].into_iter().chain((0..7).map(|n| 5_952_000 + n * 6_056_000)).collect();
    assert_eq!(times(&mut world, &[1514; 8], 1), wanted);
}

#[test]
fn v_t4_htb_of_one_class() {
    let mut world = World::new(1, 0);
    world.root("htb", Some(QdiscParams::Htb(HtbParams::default())));
    world.class(Verb::Add, Handle::ROOT, ROOT.class(1), htb(200_000, 200_000, 1600, 1514));
    let wanted: Vec<u64> = [0, 0].into_iter().chain((0..4).map(|n| 57_120_000 + n * 60_560_000)).collect();
    assert_eq!(times(&mut world, &[1514; 6], 1), wanted);
}

/// Bits per second that classes 1 and 2 get in 60 seconds of an HTB class of 1 Mbit/s.
fn htb_rates(a: ClassParams, b: ClassParams) -> [f64; 2] {
    let mut world = World::new(1, 0);
    world.root("htb", Some(QdiscParams::Htb(HtbParams::default())));
    world.class(Verb::Add, Handle::ROOT, ROOT.class(9), htb(1_000_000, 1_000_000, 1600, 1514));
    world.class(Verb::Add, ROOT.class(9), ROOT.class(1), a);
    world.class(Verb::Add, ROOT.class(9), ROOT.class(2), b);
    let start = world.now;
    for step in 0..60_000 {
        world.pass(start + Span::millis(step));
        if step % 10 == 0 {
            world.offer(1, 0, 1514);
            world.offer(2, 0, 1514);
        }
    }
    [1, 2].map(|class| world.departures(class).iter().map(|(_, len)| f64::from(*len)).sum::<f64>() * 8.0 / 60.0)
}

fn near(seen: f64, wanted: f64, part: f64) {
    assert!((seen - wanted).abs() <= wanted * part, "{seen} instead of {wanted}");
}

#[test]
fn v_t5_htb_gives_each_its_rate() {
    let [a, b] = htb_rates(htb(200_000, 1_000_000, 1600, 1514), htb(800_000, 1_000_000, 1600, 1514));
    near(a, 200_000.0, 0.005);
    near(b, 800_000.0, 0.005);
}

#[test]
fn v_t6_htb_shares_the_rest_by_quantum() {
    let [a, b] = htb_rates(htb(100_000, 1_000_000, 1600, 1514), htb(100_000, 1_000_000, 1600, 3028));
    near(a, 366_700.0, 0.01);
    near(b, 633_300.0, 0.01);
}

#[test]
fn v_t7_htb_gives_the_rest_to_the_better_priority() {
    let later = |params| match params {
        ClassParams::Htb(params) => ClassParams::Htb(HtbClassParams { prio: 1, ..params }),
        other => other,
    };
    let [a, b] = htb_rates(htb(100_000, 1_000_000, 1600, 1514), later(htb(100_000, 1_000_000, 1600, 1514)));
    near(a, 900_000.0, 0.01);
    near(b, 100_000.0, 0.01);
}

/// Who is served in which order: 24 packets, all there at once, lengths by class; `a` is class 1.
fn order(world: &mut World, lens: [u32; 2]) -> String {
    for _ in 0..30 {
        for (class, len) in (1..).zip(lens) {
            world.offer_only(class, 0, len);
        }
    }
    let mut letter = || world.poll().map(|number| ['a', 'b'][usize::from(world.offered[number].class) - 1]);
    (0..24).filter_map(|_| letter()).collect()
}

fn drr(quanta: [u32; 2]) -> World {
    let mut world = World::new(1, 0);
    world.root("drr", None);
    for (n, quantum) in (1..).zip(quanta) {
        world.class(Verb::Add, ROOT, ROOT.class(n), ClassParams::Drr(DrrClassParams { quantum: Some(quantum) }));
    }
    world
}

#[test]
fn v_r1_drr_with_different_quanta() {
    assert_eq!(order(&mut drr([1500, 3000]), [1000, 1000]), "abbbaabbbabbbaabbbabbbaa");
}

#[test]
fn v_r2_drr_with_different_lengths() {
    assert_eq!(order(&mut drr([1514, 1514]), [1514, 500]), "abbbabbbabbbabbbabbbabbb");
}

fn sfq(limit: u32) -> World {
    let mut world = World::new(1, 0);
    let params = SfqParams { divisor: 16, quantum: 1514, limit, ..SfqParams::default() };
    world.root("sfq", Some(QdiscParams::Sfq(params)));
    world
}

#[test]
fn v_s1_sfq_with_equal_lengths() {
    assert_eq!(order(&mut sfq(127), [1000, 1000]), "aabbaabbabaabbabaabbabaa");
}

#[test]
fn v_s2_sfq_with_different_lengths() {
    assert_eq!(order(&mut sfq(127), [1514, 500]), "abbbbabbbabbbabbbabbbabb");
}

#[test]
fn v_p1_prio_serves_the_best_band_alone() {
    let mut world = World::new(1, 0);
    world.root("prio", Some(QdiscParams::Prio(PrioParams::default())));
    assert_eq!(order(&mut world, [1000, 100]), "a".repeat(24));
}

/// V-C1: ns-3's unit test of CoDel, with the drops that the control law gives.
#[test]
fn v_c1_codel_drops() {
    let mut world = World::new(1, 0);
    world.root("codel", Some(QdiscParams::Codel(CodelParams::default())));
    let start = world.now;
    for _ in 0..20 {
        world.offer_only(1, 0, 1000);
    }
    let mut seen = Vec::new();
    for ms in [10, 210, 210, 420] {
        world.now = start + Span::millis(ms);
        let lost = |world: &World| world.fates.iter().filter(|fate| matches!(fate, Fate::Lost(_))).count();
        let before = lost(&world);
        world.poll().expect("it has packets");
        seen.push((lost(&world) - before, world.waiting()));
    }
    assert_eq!(seen, [(0, 19), (1, 17), (0, 16), (3, 12)]);
}

/// V-G1: the weights that are shown are those in force.
#[test]
fn v_g1_qfq_rounds_weights() {
    let weights = [1u32, 3, 700, 600].map(|weight| (1u32 << 30) / ((1u32 << 30) / weight));
    assert_eq!(weights, [1, 3, 700, 600]);
}

/// Bytes that each class gets of `packets` packets, all classes backlogged.
fn shares(world: &mut World, classes: u16, packets: usize, lens: &[u32]) -> BTreeMap<u16, f64> {
    let mut bytes = BTreeMap::new();
    for class in 1..=classes {
        (0..4).for_each(|_| world.offer_only(class, 0, lens[usize::from(class) % lens.len()]));
    }
    let mut total = 0.0;
    for _ in 0..packets {
        let number = world.poll().expect("all have packets");
        let packet = world.offered[number];
        *bytes.entry(packet.class).or_insert(0.0) += f64::from(packet.len);
        total += f64::from(packet.len);
        world.offer_only(packet.class, 0, packet.len);
    }
    bytes.values_mut().for_each(|share| *share /= total);
    bytes
}

#[test]
fn v_g2_qfq_shares_by_weight() {
    let mut world = World::new(1, 0);
    world.root("qfq", None);
    for (n, weight) in [(1, 1), (2, 2), (3, 4)] {
        let params = QfqClassParams { weight: Some(weight), maxpkt: None };
        world.class(Verb::Add, ROOT, ROOT.class(n), ClassParams::Qfq(params));
    }
    let shares = shares(&mut world, 3, 10_000, &[1514, 700]);
    for (n, weight) in [(1, 1.0), (2, 2.0), (3, 4.0)] {
        near(shares[&n], weight / 7.0, 0.005);
    }
}

/// Waiting times and transmission, in ns, of 160 bytes every 20 ms by this real-time curve on 10 Mbit/s, beside a saturated class, and
/// now and then six long packets at once that must all be sent within 8 ms.
fn voice_delays(rt: ServiceCurve) -> Vec<u64> {
    const LINK: u64 = 10_000_000;
    let mut world = World::new(1, LINK);
    world.root("hfsc", Some(QdiscParams::Hfsc(HfscParams::default())));
    let params = HfscClassParams { rt: Some(rt), ..HfscClassParams::default() };
    world.class(Verb::Add, ROOT, ROOT.class(1), ClassParams::Hfsc(params));
    world.class(Verb::Add, ROOT, ROOT.class(2), share(bytes_per_second(LINK)));
    for n in 11..17 {
        let rt = Some(ServiceCurve { m1: 189_250, d_us: 8000, m2: 12_500 });
        let params = HfscClassParams { rt, ..HfscClassParams::default() };
        world.class(Verb::Add, ROOT, ROOT.class(n), ClassParams::Hfsc(params));
    }
    let start = world.now;
    for ms in 0..4000 {
        // Not in step with the others' packets.
        world.pass(start + Span(ms * 1_003_000));
        world.offer(2, 0, 1514);
        if ms % 200 == 0 {
            (11..17).for_each(|class| world.offer(class, 0, 1514));
        }
        if ms % 20 == 0 {
            world.offer(1, 0, 160);
        }
    }
    world.pass(world.now + Span::secs(5));
    let offered: Vec<Time> = world.offered.iter().filter(|packet| packet.class == 1).map(|packet| packet.at).collect();
    let done = |(at, len): &(Time, u32)| *at + Span(u64::from(*len) * 8_000_000_000 / LINK);
    world.departures(1).iter().map(done).zip(offered).map(|(done, came)| done.since(came).0).collect()
}

/// V-A1: `rt umax 160 dmax 5ms rate 64kbit` bounds the delay by 5 ms and a longest packet.
#[test]
fn v_a1_hfsc_concave_curve_bounds_the_delay() {
    let delays = voice_delays(ServiceCurve { m1: 32_000, d_us: 5000, m2: 8000 });
    assert_eq!(delays.len(), 200);
    assert!(delays.iter().all(|ns| *ns <= 5_000_000 + 1_211_200), "{:?}", delays.iter().max());
}

/// V-A2: with `rt rate 64kbit` the bound is 20 ms and a longest packet, and it is made use of.
#[test]
fn v_a2_hfsc_straight_curve_delays_more() {
    let delays = voice_delays(ServiceCurve { m1: 0, d_us: 0, m2: 8000 });
    let most = delays.iter().copied().max().unwrap_or(0);
    assert!((5_000_000..=20_000_000 + 1_211_200).contains(&most), "{most}");
}

/// V-A3: link sharing 1:2:3 under an upper limit of 6 Mbit/s.
#[test]
fn v_a3_hfsc_shares_by_its_curves() {
    let mut world = World::new(1, 0);
    world.root("hfsc", Some(QdiscParams::Hfsc(HfscParams::default())));
    let line = |bits| Some(ServiceCurve { m1: 0, d_us: 0, m2: Rate::bits(bits).0 as u32 });
    let top = HfscClassParams { rt: None, ls: line(6_000_000), ul: line(6_000_000) };
    world.class(Verb::Add, ROOT, ROOT.class(9), ClassParams::Hfsc(top));
    for n in 1..=3u16 {
        world.class(Verb::Add, ROOT.class(9), ROOT.class(n), share(125_000 * u32::from(n)));
    }
    let start = world.now;
    for ms in 0..20_000 {
        world.pass(start + Span::millis(ms));
        (1..=3).for_each(|class| world.offer(class, 0, 1000));
    }
    let bytes = [1, 2, 3].map(|class| world.departures(class).iter().map(|(_, len)| f64::from(*len)).sum::<f64>());
    let total: f64 = bytes.iter().sum();
    near(total * 8.0 / 20.0, 6_000_000.0, 0.005);
    for (share, wanted) in bytes.iter().zip([1.0, 2.0, 3.0]) {
        near(share / total, wanted / 6.0, 0.005);
    }
}
