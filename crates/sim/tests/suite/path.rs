//! A path in virtual time has the properties it was given.

use tidegate_measure::oneway;
use tidegate_measure::stream::{Exchange, PacketTrain, Path, Stream};
use tidegate_packet::Nanos;
use tidegate_sim::path::{PathSpec, VirtualPath};
use tidegate_sim::world::CableDirection;
use tidegate_sim::{Impairment, LossModel};

fn exchange(payload: u16, gap_ns: u64, packets: u32) -> Exchange {
    let stream = Stream::steady(PacketTrain { payload, gap_ns, packets, ..PacketTrain::default() });
    Exchange { up: stream.clone(), down: stream }
}

#[test]
fn delays_losses_and_clocks_are_those_of_the_line() {
    let mut spec = PathSpec::plain(
        CableDirection::plain(1_000_000, Nanos::millis(7)),
        CableDirection::plain(8_000_000, Nanos::millis(7)),
    );
    spec.up.impairment = Impairment { loss: LossModel::Every(10), ..Impairment::default() };
    (spec.offset_ns, spec.skew_ppm) = (55_000_000_000, 31.0);
    let mut path = VirtualPath::new(spec);
    let Ok(outcome) = path.carry_out(&exchange(83, 20_000_000, 1000));
    let reading = oneway::read(&outcome);
    assert_eq!((reading.up.losses.lost, reading.down.losses.lost), (100, 0));
    assert_eq!((reading.up.losses.runs.len(), &reading.up.losses.gaps[..3]), (100, &[9, 9, 9][..]));
    // 125 bytes: a millisecond up, an eighth down.
    let round_trip = reading.clocks.round_trip_ns.unwrap_or(0);
    assert!(round_trip.abs_diff(15_125_000) < 2_000, "{round_trip}");
    assert!((reading.clocks.skew_ppm - 31.0).abs() < 0.1, "{:?}", reading.clocks);
    assert_eq!(reading.caveats, Vec::<String>::new());
    assert!(reading.up.above().max().unwrap_or(u64::MAX) < 2_000, "{:?}", reading.up.above().max());
}

/// The network continues between exchanges; both are carried out alike.
#[test]
fn exchanges_follow_each_other() {
    let line = CableDirection::plain(1_000_000, Nanos::millis(7));
    let mut path = VirtualPath::new(PathSpec::plain(line, line));
    let Ok(first) = path.carry_out(&exchange(83, 100_000, 50));
    let Ok(second) = path.carry_out(&exchange(83, 100_000, 50));
    let above = |outcome| oneway::read(outcome).up.above();
    assert_eq!(above(&first), above(&second));
    // Each waits for those before it: a millisecond of sending, less a tenth between arrivals.
    assert_eq!(above(&first).max(), Some(49 * 900_000));
    assert!(second.up.packets[0].sent > first.up.packets[49].arrived);
}
