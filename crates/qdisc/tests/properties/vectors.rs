//! The exact vectors of the reference, by their names there.

use super::flat::{bytes_per_second, htb, share, tbf};
use super::world::{PacketState, ROOT, World, rate};
use std::collections::BTreeMap;
use tidegate_packet::{Handle, Nanos, Rate, Time};
use tidegate_policy::*;

/// When packets of these lengths, all there at once, leave, in ns.
fn times(world: &mut World, lens: &[u32], class: u16) -> Vec<u64> {
    let start = world.now;
    for len in lens {
        world.offer(class, 0, *len);
    }
    world.pass(start + Nanos::secs(10));
    world.departures(0).iter().map(|(at, _)| at.since(start).0).collect()
}

#[test]
fn v_t1_tbf() {
    let mut world = World::new(1, 0);
    world.root("tbf", Some(QdiscParams::Tbf(tbf(1_000_000, 10_240, 13_990))));
    let steps = (0..9).map(|n| 2_864_000 + n * 12_112_000);
    assert_eq!(times(&mut world, &[1514; 20], 1), [0; 6].into_iter().chain(steps).collect::<Vec<u64>>());
    assert_eq!(world.outcomes.iter().filter(|outcome| matches!(outcome, PacketState::Lost(_))).count(), 5);
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
    let params =
        TbfParams { peak: Some(rate(2_000_000)), peak_burst: 1540, ..tbf(1_000_000, 10_240, 100_000) };
    world.root("tbf", Some(QdiscParams::Tbf(params)));
    let wanted: Vec<u64> = [0].into_iter().chain((0..7).map(|n| 5_952_000 + n * 6_056_000)).collect();
    assert_eq!(times(&mut world, &[1514; 8], 1), wanted);
}

/// Neither bucket holds more for a long idle time: the second burst leaves as the first did.
#[test]
fn idle_buckets_of_tbf_are_full_and_no_fuller() {
    let mut world = World::new(1, 0);
    let params =
        TbfParams { peak: Some(rate(2_000_000)), peak_burst: 1540, ..tbf(1_000_000, 10_240, 100_000) };
    world.root("tbf", Some(QdiscParams::Tbf(params)));
    let burst = |world: &mut World| {
        let before = world.departures(0).len();
        let start = world.now;
        for _ in 0..10 {
            world.offer(1, 0, 1514);
        }
        world.pass(start + Nanos::secs(10));
        let after = world.departures(0);
        after[before..].iter().map(|(at, _)| at.since(start).0).collect::<Vec<u64>>()
    };
    let first = burst(&mut world);
    assert_eq!((first.len(), burst(&mut world)), (10, first));
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
        world.pass(start + Nanos::millis(step));
        if step % 10 == 0 {
            world.offer(1, 0, 1514);
            world.offer(2, 0, 1514);
        }
    }
    [1, 2]
        .map(|class| world.departures(class).iter().map(|(_, len)| f64::from(*len)).sum::<f64>() * 8.0 / 60.0)
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

/// Bits per second of each class that is offered more than it may send, for a minute.
fn greedy(world: &mut World, classes: &[u16]) -> Vec<f64> {
    let start = world.now;
    for step in 0..60_000 {
        world.pass(start + Nanos::millis(step));
        if step % 10 == 0 {
            classes.iter().for_each(|class| world.offer(*class, 0, 1514));
        }
    }
    let bits = |class: &u16| {
        world.departures(*class).iter().map(|(_, len)| f64::from(*len)).sum::<f64>() * 8.0 / 60.0
    };
    classes.iter().map(bits).collect()
}

#[test]
fn v_t8_htb_borrows_up_to_its_ceiling() {
    let mut world = World::new(1, 0);
    world.root("htb", Some(QdiscParams::Htb(HtbParams::default())));
    world.class(Verb::Add, Handle::ROOT, ROOT.class(9), htb(1_000_000, 1_000_000, 1600, 1514));
    world.class(Verb::Add, ROOT.class(9), ROOT.class(1), htb(200_000, 400_000, 1600, 1514));
    near(greedy(&mut world, &[1])[0], 400_000.0, 0.005);
}

#[test]
fn v_t9_htb_roots_do_not_borrow() {
    let mut world = World::new(1, 0);
    world.root("htb", Some(QdiscParams::Htb(HtbParams::default())));
    world.class(Verb::Add, Handle::ROOT, ROOT.class(1), htb(200_000, 200_000, 1600, 1514));
    world.class(Verb::Add, Handle::ROOT, ROOT.class(2), htb(824_000, 1_024_000, 1600, 1514));
    let rates = greedy(&mut world, &[1, 2]);
    near(rates[0], 200_000.0, 0.005);
    near(rates[1], 824_000.0, 0.005);
}

#[test]
fn v_t10_htb_sends_the_unclassified_unshaped() {
    let mut world = World::new(1, 0);
    world.root("htb", Some(QdiscParams::Htb(HtbParams::default())));
    world.class(Verb::Add, Handle::ROOT, ROOT.class(1), htb(8000, 8000, 1600, 1514));
    assert_eq!(times(&mut world, &[1514; 9], 7), [0; 9]);
    let direct = world.dumps().into_iter().map(|dump| dump.xstats).next();
    assert_eq!(direct, Some(tidegate_policy::dump::Xstats::Htb { direct_packets: 9 }));
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
        world.class(
            Verb::Add,
            ROOT,
            ROOT.class(n),
            ClassParams::Drr(DrrClassParams { quantum: Some(quantum) }),
        );
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

/// V-S3: below a slow token bucket, at most four packets: z z a a a b b c d come together. The first z leaves
/// at once, the second is held for a peek and counts; then the longest flow drops, of equals the one that
/// grew last, at length 1 the one whose turn is next.
#[test]
fn v_s3_sfq_drops_from_the_longest() {
    let mut world = World::new(1, 0);
    let slow = Handle::new(9, 0);
    world.qdisc(Verb::Add, Handle::ROOT, slow, "tbf", Some(QdiscParams::Tbf(tbf(40_000, 500, 10_000))));
    let params = SfqParams { divisor: 16, limit: 4, ..SfqParams::default() };
    world.qdisc(Verb::Replace, slow.class(1), ROOT, "sfq", Some(QdiscParams::Sfq(params)));
    let letters = ['z', 'a', 'b', 'c', 'd'];
    for letter in "zzaaabbcd".chars() {
        let class = 1 + letters.iter().position(|other| *other == letter).unwrap_or(0) as u16;
        world.offer(class, 0, 500);
    }
    let name = |number: usize| letters[usize::from(world.offered[number].class) - 1];
    let lost: String =
        (0..9).filter(|n| matches!(world.outcomes[*n], PacketState::Lost(_))).map(name).collect();
    assert_eq!(lost, "aaab");
    world.pass(world.now + Nanos::secs(5));
    let name = |number: &usize| letters[usize::from(world.offered[*number].class) - 1];
    assert_eq!(world.sent.iter().map(name).collect::<String>(), "zzbcd");
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
        world.now = start + Nanos::millis(ms);
        let lost = |world: &World| {
            world.outcomes.iter().filter(|outcome| matches!(outcome, PacketState::Lost(_))).count()
        };
        let before = lost(&world);
        world.poll().expect("it has packets");
        seen.push((lost(&world) - before, world.waiting()));
    }
    assert_eq!(seen, [(0, 19), (1, 17), (0, 16), (3, 12)]);
}

/// V-C2: a packet every 0.8 ms, one taken out every millisecond.
#[test]
fn v_c2_codel_under_a_quarter_too_much() {
    let mut world = World::new(1, 0);
    world.root(
        "codel",
        Some(QdiscParams::Codel(CodelParams { limit: Some(10_000), ..CodelParams::default() })),
    );
    let (start, mut came, mut drops) = (world.now, 0, Vec::new());
    for ms in 1..=3000 {
        while came * 800 <= ms * 1000 {
            world.now = start + Nanos::micros(came * 800);
            world.offer_only(1, 0, 1514);
            came += 1;
        }
        world.now = start + Nanos::millis(ms);
        let before = world.waiting();
        world.poll().expect("more comes than goes");
        // Counted from the first time.
        (world.waiting()..before - 1).for_each(|_| drops.push(ms - 1));
    }
    assert_eq!(drops[..10], [121, 221, 271, 328, 377, 421, 461, 499, 534, 567]);
    let until = |end: u64| drops.iter().filter(|ms| **ms < end).count();
    assert_eq!([until(1000), until(2000), until(3000)], [28, 105, 233]);
}

/// V-F1: two bulk flows, and a sparse one that goes first when it comes back.
#[test]
fn v_f1_fq_codel_serves_sparse_flows_first() {
    let mut world = World::new(1, 0);
    world.root("fq_codel", Some(QdiscParams::FqCodel(FqCodelParams::default())));
    for _ in 0..40 {
        world.offer_only(1, 0, 1514);
        world.offer_only(2, 0, 1514);
    }
    let mut order = String::new();
    for step in 0..24 {
        let (count, len) = match step {
            5 => (1, 100),
            9 => (3, 100),
            15 => (2, 1514),
            _ => (0, 0),
        };
        (0..count).for_each(|_| world.offer_only(3, 0, len));
        let number = world.poll().expect("packets wait");
        order.push(['a', 'b', 's'][usize::from(world.offered[number].class) - 1]);
    }
    assert_eq!(order, "ababasbabsssabasbsababab");
}

/// V-F2: beyond the limit of 100 packets the fat flow drops from its head, half its bytes but at most 64
/// packets each time.
#[test]
fn v_f2_fq_codel_takes_from_the_fattest() {
    let mut world = World::new(1, 0);
    let params = FqCodelParams { limit: Some(100), ..FqCodelParams::default() };
    world.root("fq_codel", Some(QdiscParams::FqCodel(params)));
    (0..10).for_each(|_| world.offer_only(2, 0, 1000));
    let mut losses = Vec::new();
    for _ in 0..200 {
        let before = world.waiting();
        world.offer_only(1, 0, 1000);
        let lost = before + 1 - world.waiting();
        if lost > 0 {
            losses.push(lost);
        }
    }
    let victims: Vec<usize> =
        (0..210).filter(|n| matches!(world.outcomes[*n], PacketState::Lost(_))).collect();
    assert!(victims.iter().all(|number| world.offered[*number].class == 1), "the thin flow loses nothing");
    assert!(
        losses.iter().all(|lost| *lost <= 64 && *lost >= 40),
        "about half of some 90 each time: {losses:?}"
    );
    let first = victims.iter().copied().min();
    assert_eq!(first, Some(10), "from the head: the fat flow's first packet goes first");
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

/// Waiting times and transmission, in ns, of 160 bytes every 20 ms by this real-time curve on 10 Mbit/s,
/// beside a saturated class, and now and then six long packets at once that must all be sent within 8 ms.
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
        world.pass(start + Nanos(ms * 1_003_000));
        world.offer(2, 0, 1514);
        if ms % 200 == 0 {
            (11..17).for_each(|class| world.offer(class, 0, 1514));
        }
        if ms % 20 == 0 {
            world.offer(1, 0, 160);
        }
    }
    world.pass(world.now + Nanos::secs(5));
    let offered: Vec<Time> =
        world.offered.iter().filter(|packet| packet.class == 1).map(|packet| packet.at).collect();
    let done = |(at, len): &(Time, u32)| *at + Nanos(u64::from(*len) * 8_000_000_000 / LINK);
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
        world.pass(start + Nanos::millis(ms));
        (1..=3).for_each(|class| world.offer(class, 0, 1000));
    }
    let bytes =
        [1, 2, 3].map(|class| world.departures(class).iter().map(|(_, len)| f64::from(*len)).sum::<f64>());
    let total: f64 = bytes.iter().sum();
    near(total * 8.0 / 20.0, 6_000_000.0, 0.005);
    for (share, wanted) in bytes.iter().zip([1.0, 2.0, 3.0]) {
        near(share / total, wanted / 6.0, 0.005);
    }
}
