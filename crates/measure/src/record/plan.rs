//! What is sent next, within the budget.

use super::log::{Purpose, TaggedStream, WayLog};
use super::trains::{self, ServedTrain, median};
use super::types::{ETHERNET, LEAST_BUDGET, MOST_BUDGET, RecordingRequest, SECOND};
use crate::capacity::FULL;
use crate::stream::PacketTrain;
use alloc::vec::Vec;

/// Payload of a small packet, bytes.
pub(super) const LIGHT: u16 = 44;
/// From one small packet to the next, ns.
const LIGHT_GAP_NS: u64 = 12_500_000;
/// Small packets are in the last part of an interval: this many per cent of it.
const LIGHT_PART: u64 = 40;
/// What small packets may cost of the budget.
const LIGHT_SHARE: f64 = 0.25;
/// Packets before anything is known: small ones, and a train.
const QUIET: u32 = 20;
const FIRST_TRAIN: u32 = 60;
/// No two packets are sent closer than this, ns: 1.4 Gbit/s.
const LEAST_GAP_NS: u64 = 8_000;
/// The share of the budget for a flood, its size, and how long it may be, ns.
const FLOOD_SHARE: f64 = 0.1;
const FLOODED: f64 = 600e3;
const FLOOD_NS: f64 = 4e9;
const FLOOD_PACE: f64 = 1.5;
/// How much faster than the line trains are sent: the first of each second, and the others.
const PACES: [f64; 2] = [8.0, 2.0];
/// Packets of a train: at least; at most.
const LEAST_TRAIN: u32 = 8;
/// At least on a slow line, if more of them would make trains rare; then they may keep it busy for longer.
const SLOW_TRAIN: u32 = 6;
const SLOW_BUSY: f64 = 0.6;
const SLOW_NS: u64 = SECOND / 2;
const MOST_TRAIN: u32 = 20_000;
/// How long the line is busy with a train, ns: if the budget allows it; at least.
const TRAIN_NS: f64 = 50e6;
const SHORT_TRAIN_NS: f64 = 3e6;
/// The shortest interval between trains, ns; the longest that still shows each second; the longest.
const INTERVAL_NS: u64 = SECOND / 4;
pub(super) const EACH_SECOND_NS: u64 = SECOND;
const LONG_NS: u64 = 8 * SECOND;
/// The share of an interval that a train may keep the line busy for.
const BUSY: f64 = 0.4;
const BUSY_AT_MOST: f64 = 0.5;
/// The slowest and the fastest line that is planned for, in packets per second.
const SLOWEST: f64 = 2.0;
const FASTEST: f64 = 1e9 / LEAST_GAP_NS as f64;
/// What the server allows is used up to this share.
const ALLOWED: f64 = 0.9;
/// So many trains that come as they were sent mean that the line is faster than was thought.
const AS_SENT: f64 = 0.3;

/// What may still be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    whole: u64,
    /// Bytes of IP packets so far.
    pub(super) sent: u64,
    /// Why the recording ended early.
    pub(super) ended: Option<NoChunk>,
}

impl Budget {
    pub(super) fn new(request: &RecordingRequest) -> Budget {
        let whole = request.budget.clamp(LEAST_BUDGET, MOST_BUDGET);
        Budget { whole, sent: 0, ended: None }
    }

    fn left(&self) -> u64 {
        self.whole.saturating_sub(self.sent)
    }
}

/// What a direction's trains are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    interval_ns: u64,
    packets: u32,
    light: u32,
}

/// Why no more trains can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoChunk {
    /// The budget has too little left.
    Budget,
    /// The server does not even allow a short train in eight seconds.
    Server,
}

/// Why trains are not as they should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limited {
    /// The budget allows too few or too short ones.
    pub(super) by_budget: bool,
    /// The server's rate does.
    pub(super) by_server: bool,
    /// The line is so slow that a train takes more than a second's half.
    pub(super) by_line: bool,
}

/// One direction: what is known of it, and what is sent next.
#[derive(Clone, Debug)]
pub(super) struct Planner {
    pub(super) headers: u32,
    most_bits_per_second: f64,
    most_packets: u32,
    most_ns: u64,
    /// Full packets per second: the highest of late, and the usual.
    highest: f64,
    usual: f64,
    is_known: bool,
    /// The path's own irregularity, ns.
    pub(super) irregularity: f64,
    /// What a flood got at last, packets per second.
    pub(super) flooded: Option<f64>,
    pub(super) limited: Limited,
    /// The fewest and the most packets of a train; the shortest and the longest interval.
    pub(super) train: Option<(u32, u32)>,
    pub(super) interval_ns: Option<(u64, u64)>,
}

impl Planner {
    pub(super) fn new(request: &RecordingRequest) -> Planner {
        Planner {
            headers: request.headers,
            most_bits_per_second: request.most_bits_per_second as f64 * ALLOWED,
            most_packets: request.most_packets,
            most_ns: request.most_ns,
            highest: 1000.0,
            usual: 1000.0,
            is_known: false,
            irregularity: 0.0,
            flooded: None,
            limited: Limited::default(),
            train: None,
            interval_ns: None,
        }
    }

    /// The usual rate, bits per second of full packets with their Ethernet headers.
    pub(super) fn rate(&self) -> Option<f64> {
        self.is_known.then_some(self.usual * self.full_frame() * 8.0)
    }

    fn full_ip(&self) -> f64 {
        f64::from(u32::from(FULL) + self.headers)
    }

    pub(super) fn full_frame(&self) -> f64 {
        self.full_ip() + f64::from(ETHERNET)
    }

    fn light_ip(&self) -> f64 {
        f64::from(u32::from(LIGHT) + self.headers)
    }

    fn gap_ns(&self, pace: f64) -> u64 {
        ((1e9 / (self.highest * pace)) as u64).max(LEAST_GAP_NS)
    }

    /// Full packets that the server lets pass in this time.
    fn allowed(&self, length_ns: u64) -> f64 {
        self.most_bits_per_second * length_ns as f64 / 1e9 / 8.0 / f64::from(FULL)
    }

    /// Small packets, and a train as fast as can be.
    pub(super) fn look(&mut self, _: &Budget) -> TaggedStream {
        let quiet = PacketTrain {
            payload: LIGHT,
            gap_ns: SECOND / 40,
            packets: QUIET,
            rest_ns: SECOND / 5,
            ..PacketTrain::default()
        };
        let packets = (self.allowed(SECOND) as u32).clamp(1, FIRST_TRAIN);
        let train = PacketTrain { payload: FULL, gap_ns: LEAST_GAP_NS, packets, ..PacketTrain::default() };
        let rest = PacketTrain { rest_ns: SECOND / 2, ..train };
        TaggedStream { phases: [(Purpose::Light, quiet), (Purpose::Train, rest)].into() }
    }

    /// Full packets for longer: what a bucket saves up is spent.
    pub(super) fn flood(&mut self, budget: &Budget) -> TaggedStream {
        let full = self.full_ip();
        // A budget's half for each direction.
        let most = budget.left() as f64 / 2.0 * FLOOD_SHARE;
        let wanted = FLOODED.max(self.highest * full);
        let bytes = wanted.min(most).min(self.highest * FLOOD_PACE * full * FLOOD_NS / 1e9);
        let rest_ns = SECOND;
        let gap_ns = self.gap_ns(FLOOD_PACE);
        let mut packets = (bytes / full) as u32;
        let allowed = self.allowed(u64::from(packets) * gap_ns + rest_ns);
        packets = packets.min(allowed as u32).min(self.most_packets);
        packets = packets.min((self.most_ns.saturating_sub(rest_ns) / gap_ns) as u32);
        if packets < FIRST_TRAIN || !self.is_known {
            return TaggedStream::default();
        }
        let flood = PacketTrain { payload: FULL, gap_ns, packets, rest_ns, ..PacketTrain::default() };
        TaggedStream { phases: [(Purpose::Flood, flood)].into() }
    }

    /// Takes up what the last exchange showed.
    pub(super) fn learn(&mut self, log: &WayLog) {
        let mut trains: Vec<ServedTrain> = Vec::new();
        for phase in &log.phases[log.last_from..] {
            match phase.purpose {
                Purpose::Light if log.main_from.is_none() => {
                    self.irregularity = trains::irregularity(&log.raw(phase));
                }
                Purpose::Light => {}
                Purpose::Train => {
                    let packets = log.raw(phase);
                    // Of a train into a short queue few arrive: they show about what it can be.
                    let faint = || ServedTrain {
                        rate: trains::roughly(&packets).unwrap_or_default(),
                        is_saturating: true,
                        ..ServedTrain::default()
                    };
                    let train = trains::served(&packets, self.irregularity).unwrap_or_else(faint);
                    trains.extend((train.rate > 0.0).then_some(train));
                }
                Purpose::Flood => self.learn_flood(&log.raw(phase), &mut trains),
            }
        }
        if trains.is_empty() {
            return;
        }
        let busy: Vec<f64> =
            trains.iter().filter(|train| train.is_saturating).map(|train| train.rate).collect();
        let as_sent = trains.len() - busy.len();
        let highest = busy.iter().copied().fold(0.0, f64::max);
        let usual = median(&busy).unwrap_or(self.usual);
        self.is_known = true;
        let grown = match (busy.is_empty(), as_sent as f64 > AS_SENT * trains.len() as f64) {
            (true, _) => self.highest * 4.0,
            (false, true) => highest.max(self.highest * 2.0),
            (false, false) => highest,
        };
        (self.highest, self.usual) = (grown.clamp(SLOWEST, FASTEST), usual.clamp(SLOWEST, FASTEST));
    }

    fn learn_flood(&mut self, packets: &[trains::Sent], trains: &mut Vec<ServedTrain>) {
        let last = trains::served(&packets[packets.len() / 2..], self.irregularity);
        self.flooded = last.as_ref().map(|last| last.rate);
        trains.extend(last);
    }

    /// What would be sent without a budget, bytes a second.
    fn wanted(&self) -> f64 {
        let (interval_ns, least) = self.interval();
        let packets = self.best_train(interval_ns, least);
        let per_second = 1e9 / interval_ns as f64;
        packets * per_second * self.full_ip() + self.light_per_second()
    }

    fn light_per_second(&self) -> f64 {
        LIGHT_PART as f64 / 100.0 * 1e9 / LIGHT_GAP_NS as f64 * self.light_ip()
    }

    /// The shortest interval that leaves the line idle for about half of it, and the fewest packets of a
    /// train in it.
    fn interval(&self) -> (u64, u32) {
        let busy = |packets: u32| f64::from(packets) * 1e9 / self.usual;
        let mut interval_ns = INTERVAL_NS;
        loop {
            if busy(LEAST_TRAIN) <= BUSY_AT_MOST * interval_ns as f64 || interval_ns >= LONG_NS {
                return (interval_ns, LEAST_TRAIN);
            }
            if interval_ns <= SLOW_NS && busy(SLOW_TRAIN) <= SLOW_BUSY * interval_ns as f64 {
                return (interval_ns, SLOW_TRAIN);
            }
            interval_ns *= 2;
        }
    }

    /// Packets of a train with which the line is busy for as long as it should be.
    fn best_train(&self, interval_ns: u64, least: u32) -> f64 {
        let long = TRAIN_NS.min(BUSY * interval_ns as f64);
        (self.usual * long / 1e9).clamp(f64::from(least), f64::from(MOST_TRAIN))
    }

    /// Trains for so many bytes a second, in a chunk of this length.
    fn shape(&mut self, bytes_per_second: f64, length_ns: u64) -> Result<Shape, NoChunk> {
        let light_share = (bytes_per_second * LIGHT_SHARE / self.light_per_second()).min(1.0);
        let for_trains = bytes_per_second - light_share * self.light_per_second();
        let (mut interval_ns, fewest) = self.interval();
        let is_fast = interval_ns <= EACH_SECOND_NS;
        let fewest = f64::from(fewest);
        let least = fewest.max(self.usual * SHORT_TRAIN_NS / 1e9);
        let by_budget = |interval_ns: u64| for_trains * interval_ns as f64 / 1e9 / self.full_ip();
        let may = |interval_ns: u64| by_budget(interval_ns).min(self.allowed(interval_ns));
        while may(interval_ns) < least && interval_ns < EACH_SECOND_NS {
            interval_ns *= 2;
        }
        while may(interval_ns) < fewest && interval_ns < LONG_NS {
            interval_ns *= 2;
        }
        let interval_ns = interval_ns.min(length_ns.max(INTERVAL_NS));
        let (most, allowed) = (by_budget(interval_ns), self.allowed(interval_ns));
        if allowed < fewest {
            return Err(NoChunk::Server);
        }
        if most < fewest {
            return Err(NoChunk::Budget);
        }
        let best = self.best_train(interval_ns, fewest as u32);
        let packets = best.min(most).min(allowed);
        self.limited.by_line |= !is_fast;
        self.limited.by_server |= allowed < least.min(most);
        self.limited.by_budget |= most < least || (is_fast && interval_ns > EACH_SECOND_NS && most < allowed);
        let light = (interval_ns * LIGHT_PART / 100) as f64 / LIGHT_GAP_NS as f64 * light_share;
        Ok(Shape { interval_ns, packets: packets as u32, light: (light as u32).max(2) })
    }

    /// A chunk of trains. `begins_ns` later than the other direction's.
    fn trains(&mut self, shape: Shape, length_ns: u64, is_later: bool) -> TaggedStream {
        let Shape { interval_ns, packets, light } = shape;
        let count = (length_ns / interval_ns).max(1);
        let mut phases = Vec::new();
        if is_later {
            let first = PacketTrain {
                payload: LIGHT,
                gap_ns: LIGHT_GAP_NS,
                packets: 1,
                rest_ns: (interval_ns / 2).saturating_sub(LIGHT_GAP_NS),
                ..PacketTrain::default()
            };
            phases.push((Purpose::Light, first));
        }
        let silent_ns = interval_ns * (100 - LIGHT_PART) / 100;
        for turn in 0..count {
            let is_first = turn * interval_ns % SECOND < interval_ns;
            let pace = PACES[usize::from(!is_first)];
            let gap_ns = self.gap_ns(pace).min(silent_ns / u64::from(packets));
            let rest_ns = silent_ns.saturating_sub(gap_ns * u64::from(packets));
            let train = PacketTrain { payload: FULL, gap_ns, packets, rest_ns, ..PacketTrain::default() };
            let gap_ns = (interval_ns - silent_ns) / u64::from(light);
            let small = PacketTrain { payload: LIGHT, gap_ns, packets: light, ..PacketTrain::default() };
            phases.extend([(Purpose::Train, train), (Purpose::Light, small)]);
        }
        let (least, most) = self.train.unwrap_or((packets, packets));
        self.train = Some((least.min(packets), most.max(packets)));
        let (short, long) = self.interval_ns.unwrap_or((interval_ns, interval_ns));
        self.interval_ns = Some((short.min(interval_ns), long.max(interval_ns)));
        TaggedStream { phases }
    }
}

/// The next chunk, both ways. `left_ns` is to be recorded still.
pub(super) fn chunk(
    planners: &mut [Planner; 2],
    budget: &Budget,
    length_ns: u64,
    left_ns: u64,
) -> Result<[TaggedStream; 2], NoChunk> {
    let seconds = left_ns as f64 / 1e9;
    let whole = budget.left() as f64 / seconds;
    // The direction that needs less gets what it needs, up to half; the other one the rest.
    let [up, down] = planners.each_ref().map(Planner::wanted);
    let half = whole / 2.0;
    let shares = if up < half {
        [up, (whole - up).min(down)]
    } else if down < half {
        [(whole - down).min(up), down]
    } else {
        [half, half]
    };
    let [first, second] = planners;
    let shapes = [first.shape(shares[0], length_ns)?, second.shape(shares[1], length_ns)?];
    let streams = [first.trains(shapes[0], length_ns, false), second.trains(shapes[1], length_ns, true)];
    let bytes = |stream: &TaggedStream| {
        let of = |phase: &PacketTrain| {
            u64::from(phase.packets) * u64::from(u32::from(phase.payload) + first.headers)
        };
        stream.phases.iter().map(|(_, phase)| of(phase)).sum::<u64>()
    };
    if streams.iter().map(bytes).sum::<u64>() <= budget.left() { Ok(streams) } else { Err(NoChunk::Budget) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planner(rate: f64, request: &RecordingRequest) -> Planner {
        let mut planner = Planner::new(request);
        let packets = rate / 8.0 / planner.full_frame();
        (planner.highest, planner.usual, planner.is_known) = (packets, packets, true);
        planner
    }

    /// Whatever the line and the budget: a chunk costs its share of what is left, and the line is idle for
    /// most of it.
    #[test]
    fn a_chunk_keeps_within_the_budget() {
        for rate in [64e3, 1e6, 20e6, 300e6, 1e9] {
            for budget in [1_000_000, 20_000_000, 100_000_000, 2_000_000_000] {
                let request = RecordingRequest { budget, ..RecordingRequest::default() };
                let mut both = [planner(rate, &request), planner(rate * 5.0, &request)];
                let left = Budget::new(&request);
                let Ok(streams) = chunk(&mut both, &left, 10 * SECOND, 60 * SECOND) else {
                    assert!(budget < 20_000_000, "{rate} {budget}");
                    continue;
                };
                let bytes: u64 = streams
                    .iter()
                    .flat_map(|stream| &stream.phases)
                    .map(|(_, phase)| u64::from(phase.packets) * u64::from(u32::from(phase.payload) + 28))
                    .sum();
                assert!(bytes <= budget / 6 + 2 * 20_000, "{rate} {budget}: {bytes}");
                for (stream, planner) in streams.iter().zip(&both) {
                    let length = stream.stream().length_ns();
                    assert!(length <= 10 * SECOND + 5 * SECOND, "{rate} {budget}: {length}");
                    let full = stream.phases.iter().filter(|(purpose, _)| *purpose == Purpose::Train);
                    let busy: f64 =
                        full.map(|(_, phase)| f64::from(phase.packets) * 1e9 / planner.usual).sum();
                    assert!(busy <= 0.61 * length as f64, "{rate} {budget}: {busy} of {length}");
                }
            }
        }
    }

    #[test]
    fn what_limits_trains_is_known() {
        let rich = RecordingRequest { budget: 2_000_000_000, ..RecordingRequest::default() };
        let mut fast = planner(50e6, &rich);
        assert_eq!(fast.shape(1e7, 10 * SECOND).map(|shape| shape.interval_ns), Ok(SECOND / 4));
        assert_eq!(fast.limited, Limited::default());
        // 8 packets need 11 kB: a train each four seconds.
        let mut poor = planner(50e6, &rich);
        assert_eq!(poor.shape(4_000.0, 10 * SECOND).map(|shape| shape.interval_ns), Ok(4 * SECOND));
        assert!(poor.limited.by_budget && !poor.limited.by_server);
        assert_eq!(poor.shape(100.0, 10 * SECOND), Err(NoChunk::Budget));
        let few = RecordingRequest { most_bits_per_second: 120_000, ..rich };
        let mut held = planner(50e6, &few);
        let shape = held.shape(1e7, 10 * SECOND).expect("trains");
        assert!(
            held.limited.by_server && !held.limited.by_budget && shape.packets >= LEAST_TRAIN,
            "{shape:?}"
        );
        let hardly = RecordingRequest { most_bits_per_second: 10_000, ..rich };
        assert_eq!(planner(50e6, &hardly).shape(1e7, 10 * SECOND), Err(NoChunk::Server));
        let mut slow = planner(50e3, &rich);
        assert!(slow.shape(1e6, 10 * SECOND).is_ok() && slow.limited.by_line, "{:?}", slow.limited);
    }
}
