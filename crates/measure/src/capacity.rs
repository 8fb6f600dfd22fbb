//! How much a path carries in one direction when it is flooded for long enough.
//!
//! A short train of packets shows what the narrowest line does at once; a token bucket may let far more than
//! its rate through as long as its burst lasts, so floods follow, longer and longer, until what arrives no
//! longer falls.

use crate::service::{Service, irregularity, service};
use crate::stream::{Exchange, ExchangeResult, PacketTrain, Path, Stream, StreamTrace};
use alloc::vec::Vec;

/// A direction of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathDirection {
    /// From here to the remote end.
    Up,
    /// From the remote end to here.
    Down,
}

impl PathDirection {
    /// Both directions, upload first.
    pub const BOTH: [PathDirection; 2] = [PathDirection::Up, PathDirection::Down];

    /// Its name in documents and options.
    pub fn name(self) -> &'static str {
        match self {
            PathDirection::Up => "up",
            PathDirection::Down => "down",
        }
    }

    /// An exchange that sends this way only.
    pub fn exchange(self, stream: Stream) -> Exchange {
        match self {
            PathDirection::Up => Exchange { up: stream, down: Stream::default() },
            PathDirection::Down => Exchange { up: Stream::default(), down: stream },
        }
    }

    /// Its part of an outcome.
    pub fn trace(self, outcome: &ExchangeResult) -> &StreamTrace {
        match self {
            PathDirection::Up => &outcome.up,
            PathDirection::Down => &outcome.down,
        }
    }
}

/// Bytes of IP and UDP headers; IPv6 has 20 more.
pub const HEADERS: u32 = 28;
/// Payload of a full packet: what every path takes in one piece.
pub const FULL: u16 = 1400;
/// Floods offer so much more than is expected to get through.
pub const OVERLOAD: f64 = 1.15;

/// Floods that are tried.
const FLOODS: u32 = 8;
/// What arrives of two floods agrees within this share: the burst is spent.
const SETTLED: f64 = 0.05;
/// So much more than the rate is a burst that was saved up,
const PEAK: f64 = 1.3;
/// if it has this many bytes.
const LEAST_BURST: f64 = 12_000.0;
/// A bucket that is known is spent with so much more than its rate: no whole number, lest what a queue passes
/// on keeps the pace it came with.
pub const SPENDING: f64 = 3.7;
/// The share of the rate at which a path is calm, and how long that is looked at: time, and packets.
const CALM: f64 = 0.4;
const CALM_NS: f64 = 1e9;
const CALM_PACKETS: f64 = 150.0;
const MOST_CALM_NS: f64 = 4e9;
const POLICED_MORE: f64 = 4.0;
/// A flood has at least this many bytes, so that buckets of usual sizes are spent.
const FLOODED: f64 = 600e3;
const TRAIN: u32 = 60;
const TRAIN_GAP_NS: u64 = 8_000;
const SECOND: u64 = 1_000_000_000;

/// What a direction carries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Capacity {
    /// Bits per second of IP packets of [`FULL`] payload, in the long run.
    pub bits_per_second: f64,
    /// The rate at first, bits per second, if that was higher: the burst of a token bucket.
    pub peak_bits_per_second: Option<f64>,
    /// Bytes of IP that got through beyond the rate before the burst was spent; at most this.
    pub burst_bytes: f64,
    /// How the last flood was served.
    pub service: Service,
    /// Floods agreed with each other at last.
    pub is_settled: bool,
    /// Packets sent while the path was calm, and lost.
    pub calm: (u64, u64),
    /// The path's own irregularity, ns: a quartile distance.
    pub irregularity: f64,
}

/// Bits of an IP packet with this payload.
pub fn ip_bits(payload: u16) -> f64 {
    f64::from(u32::from(payload) + HEADERS) * 8.0
}

/// A flood of full packets at so many bits per second for so long: twice the phase, of which the second is
/// read.
fn flood(rate: f64, length_ns: u64) -> Stream {
    let gap_ns = ((ip_bits(FULL) * 1e9 / rate.max(1.0)) as u64).max(1);
    let packets = (length_ns / 2 / gap_ns).clamp(24, 60_000) as u32;
    let phase = PacketTrain { payload: FULL, gap_ns, packets, ..PacketTrain::default() };
    Stream { phases: [phase, phase].into() }
}

impl Capacity {
    /// Was so much more let through at first that something saves up for it?
    pub fn has_burst(&self) -> bool {
        self.peak_bits_per_second.is_some_and(|peak| peak > PEAK * self.bits_per_second)
            && self.burst_bytes > LEAST_BURST
    }

    /// What to flood it with, in bits per second: much more where a bucket refilled that was spent before.
    fn flooding(&self) -> f64 {
        let much = self.peak_bits_per_second.map_or(0.0, |peak| peak.min(self.bits_per_second * SPENDING));
        much.max(self.bits_per_second * OVERLOAD)
    }
}

/// Finds what a direction carries; `None`: nothing arrives.
///
/// # Errors
/// The path's.
pub fn find<P: Path>(path: &mut P, way: PathDirection) -> Result<Option<Capacity>, P::Error> {
    let quiet = PacketTrain {
        payload: 100,
        gap_ns: SECOND / 50,
        packets: 40,
        rest_ns: SECOND / 5,
        ..PacketTrain::default()
    };
    let train = PacketTrain { payload: FULL, gap_ns: TRAIN_GAP_NS, packets: TRAIN, ..PacketTrain::default() };
    let outcome = path.carry_out(&way.exchange(Stream { phases: [quiet, train].into() }))?;
    let stream_trace = way.trace(&outcome);
    if stream_trace.arrived() == 0 {
        return Ok(None);
    }
    let irregularity = irregularity(stream_trace, 0);
    let trained =
        service(stream_trace, 1, irregularity).map(|service| service.ns).or_else(|| roughly(stream_trace, 1));
    let trained = trained.map(|ns| ip_bits(FULL) * 1e9 / ns.max(1.0));
    let mut known = Capacity { bits_per_second: trained.unwrap_or(1e6), irregularity, ..Capacity::default() };
    let mut length = SECOND;
    for n in 0..FLOODS {
        // A slow line needs time for packets enough.
        let service = ip_bits(FULL) * 1e9 / known.bits_per_second;
        length = length
            .max((60.0 * service) as u64)
            .max((FLOODED * 8e9 / known.flooding()) as u64)
            .min(12 * SECOND);
        let outcome = path.carry_out(&way.exchange(flood(known.flooding(), length)))?;
        let is_measured = n > 0 || trained.is_some();
        if settle(&mut known, way.trace(&outcome), is_measured) {
            known.is_settled = true;
            break;
        }
        length = (length * 2).min(8 * SECOND);
    }
    calm(path, way, &mut known)?;
    Ok(Some(known))
}

/// About how far apart the packets of a phase came, ns, if a few did.
fn roughly(trace: &StreamTrace, phase: usize) -> Option<f64> {
    let arrived: Vec<u64> = trace.of_phase(phase).filter_map(|(_, packet)| packet.arrived).collect();
    let (first, last) = (arrived.iter().min()?, arrived.iter().max()?);
    (arrived.len() >= 3).then(|| (last - first) as f64 / (arrived.len() - 1) as f64)
}

/// Looks how much is lost when the path is far from full.
fn calm<P: Path>(path: &mut P, way: PathDirection, known: &mut Capacity) -> Result<(), P::Error> {
    let gap_ns = (ip_bits(FULL) * 1e9 / (known.bits_per_second * CALM).max(1.0)) as u64;
    // A policer is found by its losses alone, so the usual loss has to be known well.
    let more = if known.service.is_policed { POLICED_MORE } else { 1.0 };
    let most = MOST_CALM_NS * more.min(2.5) / gap_ns as f64;
    let packets =
        (CALM_NS * more / gap_ns as f64).max((CALM_PACKETS * more).min(most)).clamp(10.0, 5000.0) as u32;
    let outcome = path.carry_out(&way.exchange(Stream::steady(PacketTrain {
        payload: FULL,
        gap_ns,
        packets,
        ..PacketTrain::default()
    })))?;
    let stream_trace = way.trace(&outcome);
    known.calm = (stream_trace.sent(), stream_trace.sent() - stream_trace.arrived());
    Ok(())
}

/// Takes up what a flood showed; true: nothing new.
fn settle(known: &mut Capacity, trace: &StreamTrace, is_measured: bool) -> bool {
    let Some(second) = service(trace, 1, known.irregularity) else {
        known.bits_per_second /= 2.0;
        return false;
    };
    let found = ip_bits(FULL) * 1e9 / second.ns.max(1.0);
    let before = known.bits_per_second;
    known.service = second;
    if second.is_idle {
        // All of it got through: there is more.
        known.bits_per_second = found * 2.0;
        return false;
    }
    if found < before * (1.0 - SETTLED) && is_measured {
        known.peak_bits_per_second.get_or_insert(before);
    }
    let arrived = trace.arrived() as f64 * ip_bits(FULL) / 8.0;
    let span = trace.stream.length_ns() as f64 / 1e9;
    known.burst_bytes = known.burst_bytes.max(arrived - found / 8.0 * span);
    known.bits_per_second = found;
    (found / before - 1.0).abs() <= SETTLED
}

/// The service time of each phase of a stream that has one.
pub fn services(trace: &StreamTrace, irregularity: f64) -> Vec<Option<Service>> {
    (0..trace.stream.phases.len()).map(|phase| service(trace, phase, irregularity)).collect()
}
