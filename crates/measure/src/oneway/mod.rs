//! One-way delays between two ends whose clocks agree on nothing, and what was lost, copied and overtaken on
//! the way.
//!
//! The remote clock shows `offset + (1 + skew) × here`, so the raw delay upwards is `delay + offset + skew ×
//! time` and downwards `delay - offset - skew × time`. Queues only add, so what lies lowest over time is a
//! straight line whose slope is the skew (Moon, Skelly and Towsley 1999; by the lower convex hull: Zhang, Liu
//! and Xia 2002); both directions share it. What remains after it is delay above the least, exactly. The
//! offset cannot be known from within: it is taken so that the least delays are the same in both directions,
//! and whatever prints absolute delays must state that.

mod hull;
mod losses;
mod steps;

pub use hull::MOST_SKEW_PPM;
pub use losses::{LossStats, Order};
pub use steps::ClockStep;

use crate::stream::{ExchangeResult, StreamTrace};
use crate::{Durations, Jitter};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use hull::Point;

/// The shift of delays by the skew's uncertainty that is worth a caveat, ns.
const UNSURE_NS: f64 = 1e6;

/// The delay of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delay {
    /// Its number in the stream.
    pub number: u32,
    /// The phase of the packet.
    pub phase: usize,
    /// When it was sent, ns from the first packet of its direction.
    pub at_ns: u64,
    /// How much longer it took than the fastest one, ns.
    pub above_ns: u64,
}

/// One direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectionStats {
    /// What did not arrive.
    pub losses: LossStats,
    /// Copies that arrived beside the packet itself.
    pub duplicates: u64,
    /// What was overtaken.
    pub order: Order,
    /// The jitter of RFC 3550 at the end, ns.
    pub jitter_ns: Option<f64>,
    /// The least delay, ns, if it is the same in both directions.
    pub least_ns: Option<u64>,
    /// The delays, in the order of sending.
    pub delays: Vec<Delay>,
}

impl DirectionStats {
    /// Delays above the least.
    pub fn above(&self) -> Durations {
        Durations::new(self.delays.iter().map(|delay| delay.above_ns).collect())
    }

    /// Delays, if the least is the same in both directions.
    pub fn absolute(&self) -> Option<Durations> {
        let least = self.least_ns?;
        Some(Durations::new(self.delays.iter().map(|delay| delay.above_ns + least).collect()))
    }
}

/// What is known about the remote clock against the one here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clocks {
    /// By how many millionths the other clock runs faster; negative: slower.
    pub skew_ppm: f64,
    /// Skews that explain the delays as well.
    pub skew_between: (f64, f64),
    /// What it shows more, ns, at the first packet, if the least delay is the same in both directions.
    pub offset_ns: Option<i64>,
    /// The least delay there and back together, ns: needs no assumption.
    pub round_trip_ns: Option<u64>,
    /// Times at which one of them was set.
    pub steps: Vec<ClockStep>,
}

/// The one-way result of an exchange.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OneWayResult {
    /// From here to the remote end.
    pub up: DirectionStats,
    /// From the remote end to here.
    pub down: DirectionStats,
    /// The relation of both clocks.
    pub clocks: Clocks,
    /// Why not to believe it, as text for people.
    pub caveats: Vec<String>,
}

/// Reads the delays of an outcome.
pub fn read(outcome: &ExchangeResult) -> OneWayResult {
    let raw = |trace: &StreamTrace, sent_here: bool| raw_points(trace, sent_here);
    let (mut up, mut down) = (raw(&outcome.up, true), raw(&outcome.down, false));
    let start = up.iter().chain(&down).map(|point| point.at).fold(f64::INFINITY, f64::min);
    let first = Bases { up: base(&up), down: base(&down) };
    for (points, base) in [(&mut up, first.up), (&mut down, first.down)] {
        points.iter_mut().for_each(|point| *point = Point { at: point.at - start, raw: point.raw - base });
    }
    let shown = steps::find(&up, &down);
    steps::remove(&shown, &mut up, &mut down);
    let steps: Vec<ClockStep> = shown.iter().map(ClockStep::from).collect();
    let skew = hull::skew(&up, &down);
    let mut reading = OneWayResult { caveats: caveats(outcome, &skew, &steps), ..OneWayResult::default() };
    let least = [(&mut up, 1.0), (&mut down, -1.0)].map(|(points, sign)| {
        points.iter_mut().for_each(|point| point.raw -= sign * skew.slope * point.at);
        let least = points.iter().map(|point| point.raw).fold(f64::INFINITY, f64::min);
        points.iter_mut().for_each(|point| point.raw -= least);
        least
    });
    reading.up = side(&outcome.up, &up);
    reading.down = side(&outcome.down, &down);
    reading.clocks = Clocks {
        skew_ppm: skew.slope * 1e6,
        skew_between: (skew.between.0 * 1e6, skew.between.1 * 1e6),
        steps,
        ..Clocks::default()
    };
    if !up.is_empty() && !down.is_empty() {
        anchor(&mut reading, first, least);
    }
    reading
}

/// What was taken from the raw delays of each direction so that differences stay small numbers.
#[derive(Clone, Copy)]
struct Bases {
    up: f64,
    down: f64,
}

/// Takes the offset that makes the least delays equal.
fn anchor(reading: &mut OneWayResult, first: Bases, least: [f64; 2]) {
    let (up, down) = (first.up + least[0], first.down + least[1]);
    let round_trip = (up + down).max(0.0);
    reading.clocks.round_trip_ns = Some(libm::round(round_trip) as u64);
    reading.clocks.offset_ns = Some(libm::round((up - down) / 2.0) as i64);
    let half = Some(libm::round(round_trip / 2.0) as u64);
    (reading.up.least_ns, reading.down.least_ns) = (half, half);
}

/// Raw delays by the time here: what the receiver's clock shows more than the sender's did.
fn raw_points(trace: &StreamTrace, sent_here: bool) -> Vec<Point> {
    let travelled = trace.packets.iter().filter_map(|packet| Some((packet.sent?, packet.arrived?)));
    let point = |(sent, arrived): (u64, u64)| Point {
        at: if sent_here { sent as f64 } else { arrived as f64 },
        raw: (arrived as i64).wrapping_sub(sent as i64) as f64,
    };
    travelled.map(point).collect()
}

fn base(points: &[Point]) -> f64 {
    points.first().map_or(0.0, |point| point.raw)
}

/// The statistics of one direction, `points` being the delays of the packets that arrived.
fn side(trace: &StreamTrace, points: &[Point]) -> DirectionStats {
    let began = trace.packets.iter().filter_map(|packet| packet.sent).min().unwrap_or(0);
    let arrived = trace.stream.dues().zip(&trace.packets).filter_map(|(due, packet)| {
        packet.arrived?;
        Some((due, packet, packet.sent?))
    });
    let mut by_arrival = Vec::new();
    let mut delays = Vec::new();
    for ((due, packet, sent), point) in arrived.zip(points) {
        let above_ns = libm::round(point.raw.max(0.0)) as u64;
        delays.push(Delay {
            number: due.number,
            phase: due.phase,
            at_ns: sent.saturating_sub(began),
            above_ns,
        });
        by_arrival.push((packet.rank, above_ns));
    }
    by_arrival.sort_unstable_by_key(|(rank, _)| *rank);
    DirectionStats {
        losses: LossStats::of(trace),
        duplicates: trace.packets.iter().map(|packet| u64::from(packet.duplicates)).sum(),
        order: Order::of(trace),
        jitter_ns: Jitter::of(by_arrival.iter().map(|(_, above)| *above)).last(),
        least_ns: None,
        delays,
    }
}

fn caveats(outcome: &ExchangeResult, skew: &hull::Skew, steps: &[ClockStep]) -> Vec<String> {
    let mut caveats: Vec<String> =
        outcome.cut.iter().map(|why| format!("only part of it was done: {why}")).collect();
    if (skew.between.1 - skew.between.0) * skew.length > UNSURE_NS {
        caveats.push(format!(
            "a queue that grew or shrank all the time looks like a clock that goes otherwise: skews from \
            {:.0} to {:.0} ppm explain the delays",
            skew.between.0 * 1e6,
            skew.between.1 * 1e6
        ));
    }
    if skew.is_bounded {
        caveats.push(format!(
            "delays drift by more than clocks do ({MOST_SKEW_PPM:.0} ppm): the queue never was empty"
        ));
    }
    if !steps.is_empty() {
        caveats.push(format!("a clock was set {} times during the test", steps.len()));
    }
    if losses::is_reordered(&outcome.up) || losses::is_reordered(&outcome.down) {
        caveats.push("the receiver's clock went back during the test".into());
    }
    caveats
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{PacketRecord, PacketTrain, Stream};

    /// The clocks of a made-up path.
    #[derive(Clone, Copy)]
    struct Truth {
        offset: i64,
        skew_ppm: f64,
        step: Option<(u64, i64)>,
    }

    impl Truth {
        /// What the remote clock shows at a time here.
        fn far(self, here: u64) -> u64 {
            let skewed = here as i64 + (here as f64 * self.skew_ppm / 1e6) as i64 + self.offset;
            let step = self.step.filter(|(at, _)| here >= *at).map_or(0, |(_, by)| by);
            (skewed + step) as u64
        }
    }

    /// Twenty seconds of packets each 20 ms, delayed by 10 ms upwards and 30 ms downwards and more at times.
    fn outcome(truth: Truth) -> ExchangeResult {
        let phase = PacketTrain { payload: 200, gap_ns: 20_000_000, packets: 1000, ..PacketTrain::default() };
        let course = |up: bool| {
            let journey = |n: u64| {
                let begun = 1_000_000_000 + n * 20_000_000;
                let queue = (n * 7919 % 101) * (n * 31 % 7) * 10_000;
                let ended = begun + if up { 10_000_000 } else { 30_000_000 } + queue;
                let stamps = if up { (begun, truth.far(ended)) } else { (truth.far(begun), ended) };
                PacketRecord {
                    sent: Some(stamps.0),
                    arrived: Some(stamps.1),
                    rank: n as u32,
                    ..PacketRecord::default()
                }
            };
            StreamTrace { stream: Stream::steady(phase), packets: (0..1000).map(journey).collect() }
        };
        ExchangeResult { up: course(true), down: course(false), cut: None, is_reported: true }
    }

    /// The largest difference between delays found and those made up, ns.
    fn worst(side: &DirectionStats) -> u64 {
        let off = |delay: &Delay| {
            delay
                .above_ns
                .abs_diff(u64::from(delay.number) * 7919 % 101 * (u64::from(delay.number) * 31 % 7) * 10_000)
        };
        side.delays.iter().map(off).max().unwrap_or(u64::MAX)
    }

    #[test]
    fn offsets_and_skews_come_off() {
        for (offset, skew_ppm) in [(0, 0.0), (1_700_000_000_000_000_000, 37.0), (-500_000_000, -210.0)] {
            let reading = read(&outcome(Truth { offset, skew_ppm, step: None }));
            assert!((reading.clocks.skew_ppm - skew_ppm).abs() < 0.1, "{:?}", reading.clocks);
            assert!(worst(&reading.up) < 2000 && worst(&reading.down) < 2000, "{}", worst(&reading.up));
            // The remote clock's share of a delay is not reported from the delay itself: skew × delay is
            // left.
            let round_trip = reading.clocks.round_trip_ns.unwrap_or(0);
            assert!(round_trip.abs_diff(40_000_000) < 10_000, "{round_trip}");
            assert_eq!(reading.up.least_ns, Some(round_trip.div_ceil(2)));
            assert!(reading.caveats.is_empty(), "{:?}", reading.caveats);
        }
    }

    #[test]
    fn a_clock_that_was_set_is_found() {
        let truth =
            Truth { offset: 77_000_000_000, skew_ppm: 20.0, step: Some((11_300_000_000, -250_000_000)) };
        let reading = read(&outcome(truth));
        let [step] = reading.clocks.steps[..] else { panic!("one step: {:?}", reading.clocks) };
        assert!(
            step.at_ns.abs_diff(10_300_000_000) <= 20_000_000 && (step.by_ns + 250_000_000).abs() < 100_000,
            "{step:?}"
        );
        assert!(worst(&reading.up) < 200_000 && worst(&reading.down) < 200_000, "{}", worst(&reading.up));
        assert_eq!(reading.caveats.len(), 2, "{:?}", reading.caveats);
    }

    /// Two seconds of nothing, then a queue upwards that goes just when one comes downwards.
    #[test]
    fn a_queue_that_changes_its_direction_is_no_step() {
        let mut moved = outcome(Truth { offset: -3_000_000_000_000, skew_ppm: 10.0, step: None });
        for (course, busy) in [(&mut moved.up, 100..500), (&mut moved.down, 500..900)] {
            let queued = course.packets.iter_mut().enumerate().filter(|(n, _)| busy.contains(n));
            queued.for_each(|(_, journey)| journey.arrived = journey.arrived.map(|at| at + 120_000_000));
        }
        let reading = read(&moved);
        assert_eq!(reading.clocks.steps, []);
        assert!(
            reading.clocks.round_trip_ns.is_some_and(|ns| ns.abs_diff(40_000_000) < 10_000),
            "{:?}",
            reading.clocks
        );
    }

    #[test]
    fn one_direction_alone_has_no_offset() {
        let mut one = outcome(Truth { offset: 5, skew_ppm: 0.0, step: None });
        one.down = StreamTrace::default();
        let reading = read(&one);
        assert_eq!(
            (reading.clocks.offset_ns, reading.up.least_ns, reading.down),
            (None, None, DirectionStats::default())
        );
        assert_eq!(worst(&reading.up), 0);
        assert_eq!(
            read(&ExchangeResult::default()),
            OneWayResult { clocks: Clocks::default(), ..OneWayResult::default() }
        );
    }
}
