//! A RED with `adaptive` adapts only where that is switched on: a stock kernel with today's tc only stores
//! the flag.

use tidegate_packet::{Handle, Head, Meta, Pool, Seeded, Time};
use tidegate_policy::{QdiscOp, QdiscParams, RedCurve, RedParams, SharedBlocks, Verb};
use tidegate_qdisc::{DeviceInfo, EventRing, Shaper, Switches, XmitStatus};

/// The probability of a mark, in per cent, after ten seconds in which the queue stays beyond the target.
fn after_ten_seconds(switches: Switches) -> u64 {
    let (mut pool, mut random) = (Pool::new(100), Seeded::new(1));
    let mut shaper = Shaper::new(DeviceInfo { switches, ..DeviceInfo::default() }, EventRing::new(0));
    let curve = RedCurve { min: 5_000, max: 50_000, wlog: 1, plog: 0, scell_log: 10, max_p: u32::MAX / 50 };
    let red = RedParams {
        limit: 200_000,
        curve,
        idle: None,
        ecn: true,
        harddrop: false,
        adaptive: true,
        nodrop: true,
    };
    let op = QdiscOp {
        verb: Verb::Add,
        dev: "eth0".into(),
        parent: Handle::ROOT,
        handle: Handle::new(1, 0),
        kind: Some("red".into()),
        params: Some(QdiscParams::Red(red)),
        stab: None,
        estimator: None,
        blocks: SharedBlocks::default(),
    };
    shaper.qdisc_op(Time(0), &mut pool, &mut random, &op).unwrap_or_else(|error| panic!("{error}"));
    for n in 0..40 {
        let head = Head::default();
        let meta = Meta::of(&head, 1000);
        let pkt = pool.insert(meta, head).unwrap_or_else(|| panic!("there is room for a hundred"));
        assert_eq!(shaper.offer(Time(n), &mut pool, &mut random, pkt), XmitStatus::Queued);
    }
    let dumps = shaper.dump_qdiscs("eth0", Time(10_000_000_000));
    let QdiscParams::Red(params) = &dumps[0].params else { panic!("it is a red") };
    u64::from(params.curve.max_p) * 100 / u64::from(u32::MAX)
}

#[test]
fn adapts_where_switched_on() {
    let stock = after_ten_seconds(Switches::default());
    let switched = after_ten_seconds(Switches { adaptive_red: true, ..Switches::default() });
    assert_eq!((stock, switched), (1, 19));
}
