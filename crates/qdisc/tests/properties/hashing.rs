//! How flows fall into queues: the reference's rows V-H, by counting.

use super::world::World;
use tidegate_policy::{FqCodelParams, QdiscParams, SfqParams};

/// Tells a row of `docs/validation.md`.
fn row(id: &str, what: &str, expected: &str, found: &str, within: bool, source: &str) {
    let verdict = if within { "within" } else { "outside" };
    println!(
        "validation: Queueing theory and hashing | {id} | {what} | {expected} | {found} | {verdict} | \
        {source}"
    );
}

/// Packets per busy queue after one packet each of so many flows, in several groups of flows.
fn occupancy(kind: &str, params: &QdiscParams, flows: u16, groups: u16) -> Vec<Vec<u32>> {
    (0..groups)
        .map(|group| {
            let mut world = World::new(u64::from(group) + 1, 0);
            world.named = false;
            world.root(kind, Some(params.clone()));
            (0..flows).for_each(|flow| world.offer_only(1, group * flows + flow, 100));
            world.listed()
        })
        .collect()
}

fn fq_codel() -> QdiscParams {
    QdiscParams::FqCodel(FqCodelParams::default())
}

/// V-H1: with 100 flows on 1024 queues a flow is alone with a probability of (1023/1024)^99 (RFC 8290).
#[test]
fn v_h1_flows_are_mostly_alone() {
    let busy = occupancy("fq_codel", &fq_codel(), 100, 300);
    let alone = busy.iter().flatten().filter(|packets| **packets == 1).count();
    let part = alone as f64 / 30_000.0;
    let within = (part - 0.9078).abs() <= 0.005;
    row(
        "V-H1",
        "a flow of 100 has one of 1024 queues alone",
        "0.9078 ± 0.005",
        &format!("{part:.4}"),
        within,
        "RFC 8290",
    );
    assert!(within, "{part}");
}

/// V-H2: n balls in 1024 bins occupy 1024 (1 - (1 - 1/1024)^n) of them.
#[test]
fn v_h2_flows_fill_bins_as_balls_do() {
    for (flows, expected) in [(50, 48.8), (100, 95.3), (200, 181.8), (500, 395.7)] {
        let busy = occupancy("fq_codel", &fq_codel(), flows, 100);
        let mean = busy.iter().map(Vec::len).sum::<usize>() as f64 / busy.len() as f64;
        let within = (mean / expected - 1.0).abs() <= 0.01;
        let (what, wanted) = (format!("busy queues of 1024, {flows} flows"), format!("{expected} ± 1 %"));
        row(&format!("V-H2-{flows}"), &what, &wanted, &format!("{mean:.1}"), within, "balls in bins");
        assert!(within, "{flows} flows: {mean} for {expected}");
    }
}

/// V-H3: SFQ's bucket is shared with a probability of 1 - (1023/1024)^29.
#[test]
fn v_h3_sfq_buckets_are_rarely_shared() {
    let params = QdiscParams::Sfq(SfqParams { divisor: 1024, limit: 127, ..SfqParams::default() });
    let busy = occupancy("sfq", &params, 30, 1000);
    let shared: u32 = busy.iter().flatten().filter(|packets| **packets > 1).sum();
    let part = f64::from(shared) / 30_000.0;
    let within = (part - 0.0279).abs() <= 0.003;
    row(
        "V-H3",
        "a flow of 30 shares its bucket of 1024",
        "0.0279 ± 0.003",
        &format!("{part:.4}"),
        within,
        "binomial",
    );
    assert!(within, "{part}");
}
