//! The seeds' experiments at home: a cable modem with a big buffer, and
//! what a policy before it does.

use crate::common;

use tidegate_packet::{Handle, Nanos, Rate, Time};
use tidegate_policy::{FifoParams, Op, QdiscParams, RateSpec, TbfParams, Ticks};
use tidegate_sim::{Bulk, Home, HomeResult, HomeSpec, HomeTraffic, Local, Parties};

fn run(ops: &[Op], spec: HomeSpec) -> HomeResult {
    let (result, machine) = Home::new(common::machine(ops), spec, Time(0) + Nanos::secs(1)).finish();
    drop(machine);
    result
}

/// `tbf rate 127kbit burst 2048 latency 50ms`.
fn tbf() -> Op {
    let rate = Rate::bits(127_000);
    let buffer = Ticks((2048 * Ticks::PER_SECOND / rate.0) as u32);
    let params = TbfParams {
        rate: RateSpec { rate, ..RateSpec::default() },
        limit: 2841,
        burst: 2048,
        buffer,
        ..TbfParams::default()
    };
    common::qdisc(Handle::ROOT, Handle::new(1, 0), "tbf", Some(QdiscParams::Tbf(params)))
}

/// The cable modem of the third seed: 128 kbit/s up behind 24 kB, an upload of a megabyte, 60 pings. The
/// recorded minimum is the idle one, so part of the pings ran before the upload; a little less than half fits
/// both recorded means.
fn kettlewell(loaded: bool) -> HomeSpec {
    let upload = Bulk { bytes: Some(1_000_000), start: Nanos::secs(27), ..Bulk::new(true, 40000) };
    let spec = HomeSpec { warm_up: Nanos(0), duration: Nanos::secs(60), ..HomeSpec::new(128_000, 2_000_000) };
    spec.with(loaded.then_some(HomeTraffic::Bulk(upload)))
}

fn uploads(count: u16) -> impl Iterator<Item = HomeTraffic> {
    (0..count).map(|i| {
        HomeTraffic::Bulk(Bulk { start: Nanos::millis(10 * u64::from(i)), ..Bulk::new(true, 40000 + i) })
    })
}

/// V-S2: without a policy the ping rises to a second and a half, with it it stays below a fifth of a second.
#[test]
fn v_s2_modem_with_and_without_tbf() {
    let idle = run(&[], kettlewell(false)).pings();
    let bare_run = run(&[], kettlewell(true));
    let shaped_run = run(&[tbf()], kettlewell(true));
    let (bare, shaped) = (bare_run.pings(), shaped_run.pings());
    for (name, pings) in [("idle", &idle), ("bare", &bare), ("shaped", &shaped)] {
        println!("{name}: {:?}, lost {}", pings.rtt.summary(), pings.lost);
    }
    println!("goodput bare {:.0}, shaped {:.0} bit/s", bare_run.goodput(), shaped_run.goodput());
    let ms = |ns: Option<u64>| ns.unwrap_or(0) / 1_000_000;
    assert!((20..40).contains(&ms(idle.rtt.max())) && idle.lost == 0);
    assert!((450..=950).contains(&ms(bare.rtt.mean())), "mean {} ms, recorded 721", ms(bare.rtt.mean()));
    assert!((1365..=1669).contains(&ms(bare.rtt.max())), "max {} ms, recorded 1517", ms(bare.rtt.max()));
    assert!((55..=110).contains(&ms(shaped.rtt.mean())), "mean {} ms, recorded 86", ms(shaped.rtt.mean()));
    assert!(ms(shaped.rtt.max()) <= 200, "max {} ms, recorded 187", ms(shaped.rtt.max()));
    assert!(ms(bare.rtt.mean()) >= 6 * ms(shaped.rtt.mean()));
    assert!(shaped_run.goodput() > 0.95 * bare_run.goodput());
}

/// V-S0a: a web server on the gateway behind HTB of 200 kbit/s sends at exactly that rate without a drop, and
/// the ping of others is not delayed.
#[test]
fn v_s0a_local_server_behind_htb() {
    let [root, class] = common::htb(Rate::bits(200_000));
    let fifo = QdiscParams::Fifo(FifoParams { limit: Some(64) });
    let leaf = common::qdisc(Handle::new(1, 1), Handle::new(0x10, 0), "pfifo", Some(fifo));
    let serve = |i: u16| Bulk { parties: Parties::new(Local::Gateway, 80, 40000 + i), ..Bulk::new(true, 0) };
    let spec = HomeSpec::new(1_000_000, 8_000_000).with([0, 1].map(|i| HomeTraffic::Bulk(serve(i))));
    let result = run(&[root, class, leaf], spec);
    // Payload of full frames, and the pings' share of 98 bytes a second.
    let expected = (200_000.0 - 98.0 * 8.0) * 1448.0 / 1514.0;
    let again: u64 = result.flows().map(|flow| flow.total.retransmissions).sum();
    println!("{:.0} bit/s of payload, expected {expected:.0}; wan {:?}", result.goodput(), result.wan);
    assert!((result.goodput() / expected - 1.0).abs() < 0.005, "{} for {expected}", result.goodput());
    assert_eq!((again, result.wan.dropped, result.pings().lost), (0, 0, 0));
}

/// Steps, as a progress bar takes them, change nothing; nor does running it again.
#[test]
fn steps_do_not_matter() {
    let spec = HomeSpec { duration: Nanos::secs(20), ..HomeSpec::new(256_000, 2_000_000) }.with(uploads(2));
    let whole = run(&[tbf()], spec.clone());
    let mut home = Home::new(common::machine(&[tbf()]), spec.clone(), Time(0) + Nanos::secs(1));
    let mut at = Time(0);
    while !home.run(at) {
        at += Nanos::millis(333);
    }
    assert!(home.finish().0 == whole);
    assert!(run(&[tbf()], HomeSpec { seed: 2, ..spec }) != whole);
}
