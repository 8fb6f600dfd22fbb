//! The sweep: floods of one size after the other, none of which lets the line rest.

use super::fit::estimate;
use super::line::{LineEstimate, Size};
use crate::capacity::{self, Capacity, FULL, HEADERS, OVERLOAD, PathDirection, services};
use crate::service::Service;
use crate::stream::{Exchange, PacketTrain, Path, Stream, StreamTrace};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// One after the other from the smallest packet on: enough to see every byte of a cell's or a unit's length.
const FINE: u32 = 66;
/// The smallest IP packet that can be identified, and one that is longer by more than any cell.
const SMALLEST: u32 = PacketTrain::LEAST as u32 + HEADERS;
const SMALL: u32 = SMALLEST + 64;
/// This many bytes before the size at which a limit of packets seems to end, it may end: the overhead is not
/// known yet.
const LIMITED_BEFORE: u32 = 64;
/// The share of the rate that is sent before floods, to see what is lost without them.
const CALM: f64 = 0.4;
/// And beyond those.
const COARSE: [u32; 8] = [160, 256, 384, 512, 700, 900, 1100, 1300];
/// The size that comes repeatedly, to see whether the line stays what it is.
const REFERENCE: u32 = 512;
/// The shortest gap between packets that a sender must keep, ns.
const CLOSEST_NS: f64 = 4_000.0;
/// A size is flooded for so many packets' time, but no less and no more than this.
const PACKETS: f64 = 45.0;
const LEAST_NS: f64 = 150e6;
const MOST_NS: f64 = 2.2e9;
/// An exchange is no longer than this, ns.
const PIECE_NS: u64 = 15_000_000_000;
/// Nor has it more packets, lead and reference not counted.
const PIECE_PACKETS: u32 = 500_000;
/// Slower lines than this are swept in both directions at once, bits per second.
const TOGETHER: f64 = 20e6;
/// Sizes that should be kept.
const ENOUGH: usize = 24;

/// A direction's sweep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// What was found before it.
    pub capacity: Capacity,
    /// What was kept.
    pub sizes: Vec<Size>,
    /// Sizes that were not, and why.
    pub left_out: Vec<(u32, String)>,
    /// The line that explains it.
    pub line: Option<LineEstimate>,
    /// Why not to believe it, as text for people.
    pub caveats: Vec<String>,
    /// What the reference took each time, ns.
    references: Vec<f64>,
    /// Packets sent and lost while the line was not full.
    calm: (u64, u64),
    services: Vec<Service>,
    requested: u64,
    sent: u64,
}

/// What was swept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Swept {
    /// Upwards, if that was requested and something arrived.
    pub up: Option<Sweep>,
    /// Downwards.
    pub down: Option<Sweep>,
    /// Why it is not the whole.
    pub cut: Option<String>,
}

/// By how much an IPv6 header is longer than one of IPv4, bytes.
const IPV6_MORE: u32 = 20;

impl Swept {
    /// Takes a sweep whose packets were IPv6: they are longer, and what the line adds is less.
    #[must_use]
    pub fn over_ipv6(mut self) -> Swept {
        for sweep in [&mut self.up, &mut self.down].into_iter().flatten() {
            sweep.sizes.iter_mut().for_each(|size| size.ip += IPV6_MORE);
            sweep.left_out.iter_mut().for_each(|(ip, _)| *ip += IPV6_MORE);
            sweep.line = estimate(&sweep.sizes);
        }
        self
    }

    /// A direction's.
    pub fn of(&self, way: PathDirection) -> Option<&Sweep> {
        match way {
            PathDirection::Up => self.up.as_ref(),
            PathDirection::Down => self.down.as_ref(),
        }
    }
}

/// A direction, what is known about it, and what is sent.
type Planned = (PathDirection, Sweep, Vec<Stream>);

/// Sweeps these directions; `report` gets the progress, 0 to 1.
///
/// # Errors
/// The path's.
pub fn sweep<P: Path>(
    path: &mut P,
    ways: &[PathDirection],
    report: &mut dyn FnMut(f64),
) -> Result<Swept, P::Error> {
    let mut sweeps: Vec<Planned> = Vec::new();
    for way in ways {
        report(0.0);
        let Some(capacity) = capacity::find(path, *way)? else { continue };
        let limited = limited(path, *way, &capacity)?;
        let pieces = pieces(capacity.bits_per_second, limited);
        sweeps.push((*way, Sweep { capacity, calm: capacity.calm, ..Sweep::default() }, pieces));
    }
    let rounds = rounds(&sweeps);
    let mut cut = None;
    for (done, exchange) in rounds.iter().enumerate() {
        report(done as f64 / rounds.len() as f64);
        let outcome = path.carry_out(exchange)?;
        for (way, sweep, _) in &mut sweeps {
            sweep.take(way.trace(&outcome));
        }
        if outcome.cut.is_some() {
            cut = outcome.cut;
            break;
        }
    }
    let mut swept = Swept { cut, ..Swept::default() };
    for (way, mut sweep, _) in sweeps {
        sweep.conclude(swept.cut.as_deref());
        match way {
            PathDirection::Up => swept.up = Some(sweep),
            PathDirection::Down => swept.down = Some(sweep),
        }
    }
    Ok(swept)
}

/// Slow lines at once, others one direction after the other: two floods would be too much for the sender.
fn rounds(sweeps: &[Planned]) -> Vec<Exchange> {
    let together = sweeps.iter().all(|(_, sweep, _)| sweep.capacity.bits_per_second < TOGETHER);
    let mut rounds: Vec<Exchange> = Vec::new();
    for (way, _, pieces) in sweeps {
        let begin = if together { 0 } else { rounds.len() };
        for (piece, at) in pieces.iter().zip(begin..) {
            if rounds.len() <= at {
                rounds.push(Exchange::default());
            }
            match way {
                PathDirection::Up => rounds[at].up = piece.clone(),
                PathDirection::Down => rounds[at].down = piece.clone(),
            }
        }
    }
    rounds
}

/// If a limit of packets holds the smallest sizes, the size of IP packets at which it ends, about.
fn limited<P: Path>(path: &mut P, way: PathDirection, known: &Capacity) -> Result<Option<u32>, P::Error> {
    let rate = known.bits_per_second;
    // No cell is as long as what lies between these two.
    let phases = [flood(u32::from(FULL) + HEADERS, rate, 700e6), phase(SMALLEST, rate), phase(SMALL, rate)];
    if phases[1].gap_ns < CLOSEST_NS as u64 {
        return Ok(None);
    }
    let outcome = path.carry_out(&way.exchange(Stream { phases: phases.into() }))?;
    let found = services(way.trace(&outcome), known.irregularity);
    let [_, Some(smallest), Some(small)] = found[..] else { return Ok(None) };
    let is_limited = (small.ns / smallest.ns - 1.0).abs() < 0.02;
    Ok(is_limited.then(|| (smallest.ns * rate / 8e9) as u32))
}

/// What is sent: pieces that begin calmly, continue with full packets (until a burst is spent and the queue
/// is full), and then flood size by size, with the reference first and last.
fn pieces(rate: f64, limited: Option<u32>) -> Vec<Stream> {
    let full = u32::from(FULL) + HEADERS;
    // On slow lines so little is sent that it shows nothing, and what was seen before must do.
    let calm_packets = (rate * CALM / (f64::from(full) * 8.0)).clamp(4.0, 60_000.0) as u32;
    let calm = PacketTrain {
        packets: calm_packets,
        rest_ns: 50_000_000,
        ..flood(full, rate * CALM / OVERLOAD, 1e9)
    };
    let reference = phase(REFERENCE, rate);
    let begin = || Vec::from([calm, flood(full, rate, 700e6), reference]);
    let mut pieces = Vec::new();
    let mut phases = begin();
    let (mut length, mut packets) = (0, 0);
    for size in sizes(rate, limited) {
        let phase = phase(size, rate);
        if length + phase.length_ns() > PIECE_NS || packets + phase.packets > PIECE_PACKETS {
            phases.push(reference);
            pieces.push(Stream { phases: core::mem::replace(&mut phases, begin()) });
            (length, packets) = (0, 0);
        }
        (length, packets) = (length + phase.length_ns(), packets + phase.packets);
        phases.push(phase);
    }
    phases.push(reference);
    pieces.push(Stream { phases });
    pieces
}

/// The sizes of IP packets, those beside each other far apart in time.
fn sizes(rate: f64, limited: Option<u32>) -> Vec<u32> {
    let full = u32::from(FULL) + HEADERS;
    let slowest = (CLOSEST_NS * OVERLOAD * rate / 8e9) as u32 + 1;
    let least = SMALLEST.max(slowest).max(limited.map_or(0, |size| size.saturating_sub(LIMITED_BEFORE)));
    let fine = if limited.is_some() { FINE + LIMITED_BEFORE } else { FINE };
    let least = least.min(full - fine);
    let mut sizes: Vec<u32> = (least..least + fine).collect();
    if slowest < SMALLEST {
        sizes
            .extend([SMALLEST, SMALLEST + 16, SMALLEST + 32, SMALL].into_iter().filter(|size| *size < least));
    }
    sizes.extend(COARSE.into_iter().filter(|size| *size >= least + fine));
    sizes.push(full);
    // 41 has no divisor in common with the number of sizes: each comes once.
    let n = sizes.len();
    let stride = (41..).find(|stride| gcd(*stride, n) == 1).unwrap_or(1);
    (0..n).map(|at| sizes[at * stride % n]).collect()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn phase(ip: u32, rate: f64) -> PacketTrain {
    let service = f64::from(ip) * 8e9 / rate;
    flood(ip, rate, (service * PACKETS).clamp(LEAST_NS, MOST_NS))
}

/// Packets of this size, more than the line takes, for so long.
fn flood(ip: u32, rate: f64, length_ns: f64) -> PacketTrain {
    let gap_ns = (f64::from(ip) * 8e9 / rate / OVERLOAD).max(1.0) as u64;
    let packets = (length_ns as u64 / gap_ns.max(1)).clamp(20, 60_000) as u32;
    PacketTrain { payload: (ip - HEADERS) as u16, gap_ns, packets, ..PacketTrain::default() }
}

impl Sweep {
    /// Of sizes that were measured elsewhere.
    pub fn of_sizes(sizes: Vec<Size>) -> Sweep {
        let mut sweep = Sweep { sizes, ..Sweep::default() };
        sweep.conclude(None);
        sweep
    }

    /// Reads a piece.
    fn take(&mut self, trace: &StreamTrace) {
        self.requested += trace.stream.packets();
        self.sent += trace.sent();
        let calm = || trace.of_phase(0).filter(|(_, packet)| packet.sent.is_some());
        self.calm.0 += calm().count() as u64;
        self.calm.1 += calm().filter(|(_, packet)| packet.arrived.is_none()).count() as u64;
        let services = services(trace, self.capacity.irregularity);
        // The second is there to fill the queue.
        for (phase, service) in trace.stream.phases.iter().zip(services).skip(2) {
            let ip = u32::from(phase.payload) + HEADERS;
            match service {
                None => self.left_out.push((ip, "too few of them arrived".into())),
                Some(one) if one.is_idle => {
                    self.left_out.push((ip, "the line was not busy with them".into()))
                }
                Some(one) => {
                    if ip == REFERENCE {
                        self.references.push(one.ns);
                    }
                    self.services.push(one);
                    self.sizes.push(Size { ip, ns: one.ns, error: one.error });
                }
            }
        }
    }

    /// Finds the line, and what speaks against it.
    fn conclude(&mut self, cut: Option<&str>) {
        self.line = estimate(&self.sizes);
        let of = |what: fn(&Service) -> bool| {
            self.services.iter().filter(|one| what(one)).count() * 2 > self.services.len()
        };
        let mut caveats: Vec<String> =
            cut.iter().map(|why| format!("only part of it was done: {why}")).collect();
        if self.sizes.is_empty() && cut.is_some() {
            // Other sizes would show the same.
            self.caveats = caveats;
            return;
        }
        if self.sizes.len() < ENOUGH {
            caveats.push(format!("only {} sizes could be measured", self.sizes.len()));
        }
        if of(|one| one.is_policed) {
            caveats.push(
                "something drops by rate without a queue (a policer): it is its sizes that were \
            measured, not the line's"
                    .into(),
            );
        } else if of(|one| one.is_uneven) {
            caveats.push(
                "packets came too unevenly to measure the line's own pace (cross traffic, or a busy \
                computer at either end): the rate may be higher than found"
                    .into(),
            );
        } else if of(|one| !one.is_regular) && self.calm.1 > 0 {
            let share = crate::share(self.calm.1, self.calm.0) * 100.0;
            caveats.push(format!(
                "{share:.1} % are lost even when the line is not full, and only packets \
            that arrive are counted: the rate is higher by about as much"
            ));
        }
        if self.sent * 10 < self.requested * 9 {
            caveats.push("the sender did not keep its schedule".into());
        }
        caveats.extend(self.unsteady());
        caveats.extend(self.unexplained());
        self.caveats = caveats;
    }

    /// Does the reference take other times than before?
    fn unsteady(&self) -> Option<String> {
        let least = self.references.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.references.iter().copied().fold(0.0, f64::max);
        let by = most / least - 1.0;
        (by > 0.01 && by.is_finite())
            .then(|| format!("the rate changed by {:.1} % during the sweep", by * 100.0))
    }

    fn unexplained(&self) -> Vec<String> {
        let Some(line) = self.line else {
            return Vec::from(["too little was measured for a result".into()]);
        };
        let mut caveats = Vec::new();
        if line.error > 0.005 {
            caveats.push(format!(
                "no kind of line that is known explains the sweep: {:.1} % are left",
                line.error * 100.0
            ));
        }
        if let Some((coding, overhead)) = line.rival {
            caveats.push(format!(
                "{} with an overhead of {overhead} bytes explains it nearly as well",
                coding.name()
            ));
        }
        let widest = line.between.1 - line.between.0;
        if widest > 4 {
            caveats.push(format!("overheads from {} to {} bytes explain it", line.between.0, line.between.1));
        }
        caveats
    }
}
