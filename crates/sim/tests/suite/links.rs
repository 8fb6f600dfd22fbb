//! Links with losses, reordering, changes and recorded rates: when each packet arrives.

use tidegate_packet::{Nanos, Time};
use tidegate_sim::{
    ArrivalProcess, DropTail, Ends, Forwarder, Impairment, Limit, LinkAdjustment, LinkId, LinkSpec,
    LossModel, Net, NoMachine, Port, ProbePacket, Reorder, Sizes, SourceId, SourceSpec, Trace,
};

const ENDS: Ends = Ends::v4([10, 0, 0, 1], 4000, [10, 0, 0, 2], 5000);

/// So many frames of 1,000 bytes at once at `at_ms`.
fn burst<M: Forwarder>(net: &mut Net<M>, link: LinkId, frames: u64, every_ms: u64) -> SourceId {
    let path = net.path(&[link]);
    net.source(SourceSpec {
        arrivals: ArrivalProcess::Every(Nanos::millis(every_ms)),
        sizes: Sizes::Fixed(1000),
        count: frames,
        record: true,
        ..SourceSpec::steady(ENDS, path, 1000, Nanos::millis(1))
    })
}

/// Arrivals in ms from the beginning, -1 for what was lost.
fn arrivals<M: Forwarder>(net: &Net<M>, source: SourceId) -> Vec<i64> {
    let ms = |packet: &ProbePacket| match packet.took {
        Some(took) => ((packet.sent + took).0 / 1_000_000) as i64,
        None => -1,
    };
    net.source_stats(source).packets.iter().map(ms).collect()
}

fn run_to_end<M: Forwarder>(net: &mut Net<M>) {
    net.run(Time(0) + Nanos::secs(600));
    assert_eq!(net.packets(), 0, "every packet ended somewhere");
}

/// 1,000 bytes take 8 ms at 1 Mbit/s. At 20 ms the rate becomes a tenth: what is on the wire keeps its pace.
#[test]
fn a_changed_rate_moves_what_waits() {
    let mut net = Net::new(NoMachine, 1, Time(0));
    let link = net.link(LinkSpec::drop_tail(1_000_000, Nanos::millis(5), Limit::None));
    let source = burst(&mut net, link, 6, 1);
    net.run(Time(0) + Nanos::millis(20));
    net.change_link(link, LinkAdjustment::Rate(Some(100_000)));
    net.run(Time(0) + Nanos::millis(200));
    net.change_link(link, LinkAdjustment::Rate(Some(8_000_000)));
    run_to_end(&mut net);
    // Through at 8, 16, 24, then 80 ms each: 104, 184, and the one begun at 184 ends at 264.
    assert_eq!(arrivals(&net, source), [13, 21, 29, 109, 189, 269]);
}

/// The same link before a machine's device, whose ring holds three frames.
#[test]
fn a_changed_rate_moves_what_is_in_a_ring() {
    let mut net = Net::new(DropTail::new(Limit::None), 1, Time(0));
    let link = net.link(LinkSpec::port(Port(0), Some(1_000_000), Nanos::millis(5)));
    net.change_link(link, LinkAdjustment::Ring(3));
    let source = burst(&mut net, link, 6, 1);
    net.run(Time(0) + Nanos::millis(20));
    net.change_link(link, LinkAdjustment::Rate(Some(100_000)));
    net.change_link(link, LinkAdjustment::Delay(Nanos(0)));
    net.run(Time(0) + Nanos::millis(200));
    net.change_link(link, LinkAdjustment::Rate(Some(8_000_000)));
    net.change_link(link, LinkAdjustment::Ring(1));
    run_to_end(&mut net);
    // The two in the ring behind the third were put on the line with the old delay.
    assert_eq!(arrivals(&net, source), [13, 21, 29, 109, 189, 264]);
}

#[test]
fn packets_per_second_are_capped() {
    let mut net = Net::new(NoMachine, 1, Time(0));
    let spec = LinkSpec { packet_rate: Some(100), ..LinkSpec::drop_tail(1_000_000, Nanos(0), Limit::None) };
    let link = net.link(spec);
    let source = burst(&mut net, link, 4, 1);
    run_to_end(&mut net);
    assert_eq!(arrivals(&net, source), [10, 20, 30, 40]);
}

#[test]
fn a_pattern_of_losses_is_kept() {
    let mut net = Net::new(NoMachine, 1, Time(0));
    let link = net.link(LinkSpec::drop_tail(1_000_000, Nanos(0), Limit::None));
    let loss = LossModel::Pattern(vec![false, true, false]);
    net.impair(link, Impairment { loss, ..Impairment::default() });
    let source = burst(&mut net, link, 7, 8);
    run_to_end(&mut net);
    // What is lost takes its time on the wire all the same.
    assert_eq!(arrivals(&net, source), [8, -1, 24, 32, -1, 48, 56]);
    assert_eq!((net.link_stats(link).lost, net.source_stats(source).lost), (2, 2));
}

/// Impaired and slowed in the middle of a run, with packets on the line and waiting.
#[test]
fn what_is_under_way_survives_changes() {
    let mut net = Net::new(NoMachine, 1, Time(0));
    let link = net.link(LinkSpec::drop_tail(1_000_000, Nanos::millis(50), Limit::None));
    let source = burst(&mut net, link, 40, 2);
    net.run(Time(0) + Nanos::millis(30));
    net.impair(link, Impairment { loss: LossModel::Every(3), ..Impairment::default() });
    net.run(Time(0) + Nanos::millis(70));
    net.change_link(link, LinkAdjustment::Rate(Some(500_000)));
    net.run(Time(0) + Nanos::millis(100));
    net.change_link(link, LinkAdjustment::Rate(Some(2_000_000)));
    run_to_end(&mut net);
    let found = arrivals(&net, source);
    let lost = found.iter().filter(|at| **at < 0).count() as u64;
    assert_eq!(lost, net.link_stats(link).lost);
    assert!((7..=9).contains(&lost), "{lost} of those after 30 ms");
    let came: Vec<i64> = found.into_iter().filter(|at| *at >= 0).collect();
    assert!(came.is_sorted(), "nothing overtakes on this line: {came:?}");
}

#[test]
fn a_share_of_packets_is_overtaken() {
    let mut net = Net::new(NoMachine, 1, Time(0));
    let link = net.link(LinkSpec::wire(Nanos::millis(10)));
    let reorder = Reorder { share: 0.1, by: Nanos::millis(5) };
    net.impair(link, Impairment { reorder, ..Impairment::default() });
    let source = burst(&mut net, link, 10_000, 1);
    run_to_end(&mut net);
    let late = net.source_stats(source).packets.iter().filter(|j| j.took == Some(Nanos::millis(15))).count();
    assert!((900..1100).contains(&late), "{late} of 10,000 were held up");
    assert!(!arrivals(&net, source).is_sorted());
}

/// A recorded rate: two opportunities of 1,500 bytes each 10 ms, and a queue of two packets.
#[test]
fn a_recorded_rate_is_followed() {
    let mut net = Net::new(NoMachine, 1, Time(0));
    let link = net.link(LinkSpec::drop_tail(1_000_000, Nanos::millis(1), Limit::Packets(3)));
    net.follow(link, Trace::parse("10\n10\n").expect("a trace"));
    let source = burst(&mut net, link, 5, 1);
    run_to_end(&mut net);
    // Two opportunities carry three frames of 1,000 bytes; what came when three waited was refused.
    assert_eq!(arrivals(&net, source), [11, 11, 11, -1, -1]);
}
