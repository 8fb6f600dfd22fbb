//! The highest rate of a direction at which delay does not rise.
//!
//! ```text
//! flood (capacity) ──▶ bisection: [quiet][burst spent][steady at a rate] ──▶ was it sustained? ──▶ both directions at once, with margin
//! ```
//! A rate is sustained if no more is lost than when the path is calm, and if the delay is at its least or
//! falling there. A token bucket's burst is spent before, so a queue exists to begin with, and it shrinks
//! exactly if the rate is below the path's capacity.

use crate::capacity::{self, Capacity, FULL, HEADERS, PathDirection, SPENDING, ip_bits};
use crate::overhead;
use crate::stream::{Exchange, PacketRecord, PacketTrain, Path, Stream, StreamTrace};
use crate::{Durations, wilson};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The search ends when the rates that were sustained and those that were not are this close.
const CLOSE: f64 = 0.004;
/// And after so many exchanges.
const STEPS: usize = 9;
/// How long a rate is tried: time, and packets.
const LENGTH_NS: f64 = 1.5e9;
const PACKETS: f64 = 160.0;
/// With a policer only losses are evidence, and they are few: the trial is this many times longer.
const POLICED_LONGER: f64 = 3.0;
/// A queue shrinks if it does by this share of a packet's time.
const FALLEN: f64 = 0.4;
/// Delay counts as risen beyond this, ns.
const RISEN_NS: f64 = 1e6;
/// What a path carries differs by more than this ratio where it varies.
const VARIES: f64 = 1.015;
/// What a policer may drop beyond what is lost anyway, as a share.
const POLICED: f64 = 0.003;
/// A loss share that is too much, unless a calm path loses about as much.
const OFTEN: f64 = 0.02;
/// The lead grows up to so many times its length until it leaves a queue.
const MOST_LEAD: f64 = 64.0;
const SECOND: u64 = 1_000_000_000;
/// Bytes of an Ethernet header, which tc counts.
const ETHERNET: f64 = 14.0;

/// A rate that was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateTrial {
    /// Bits per second of IP packets.
    pub bits_per_second: f64,
    /// Delay did not rise at this rate.
    pub sustained: bool,
    /// The share of packets that were lost, 0 to 1.
    pub loss: f64,
    /// The delay in the last part, above the least, ns.
    pub delay_ns: f64,
    /// By how much the delay grew, as a share of time; negative: the queue shrank.
    pub slope: f64,
    /// What the path carried just before, when it was too much for it, in bits per second of IP packets; if
    /// that could be seen.
    pub carried: Option<f64>,
}

/// What was found of a direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calibration {
    /// The highest rate that was sustained, in bits per second of IP packets.
    pub bits_per_second: f64,
    /// It is not below the first, nor above the second.
    pub between: (f64, f64),
    /// What a flood of it showed.
    pub capacity: Capacity,
    /// Bytes of the packets it was found with, IP header included.
    pub packet: u32,
    /// The rates tried, in order.
    pub steps: Vec<RateTrial>,
    /// What else was found that a policy should know of.
    pub notes: Vec<String>,
    /// Why not to believe it, as text for people.
    pub caveats: Vec<String>,
}

impl Calibration {
    /// Bits per second as tc counts them on an Ethernet device without words about overhead, for full
    /// packets.
    pub fn as_tc_counts(&self) -> f64 {
        let full = f64::from(self.packet);
        self.bits_per_second * (full + ETHERNET) / full
    }

    /// Of that, what to write into a policy with this margin, 0 to 1: rounded down to three figures.
    pub fn to_write(&self, margin: f64) -> f64 {
        rounded_down(self.as_tc_counts() * (1.0 - margin))
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calibrated {
    /// Upwards, if requested and anything arrived.
    pub up: Option<Calibration>,
    /// Downwards.
    pub down: Option<Calibration>,
    /// Both at once at the rates to write: how much the delay rose, ns, up and down (the 95th percentile
    /// above the least).
    pub together: Option<(f64, f64)>,
    /// Caveats about both together.
    pub caveats: Vec<String>,
    /// Why it is not the whole.
    pub cut: Option<String>,
}

/// By how much an IPv6 header is longer than one of IPv4, bytes.
const IPV6_MORE: u32 = 20;

impl Calibrated {
    /// A direction's.
    pub fn of(&self, way: PathDirection) -> Option<&Calibration> {
        match way {
            PathDirection::Up => self.up.as_ref(),
            PathDirection::Down => self.down.as_ref(),
        }
    }

    /// Takes a calibration whose packets were IPv6: they are longer.
    #[must_use]
    pub fn over_ipv6(mut self) -> Calibrated {
        for one in [&mut self.up, &mut self.down].into_iter().flatten() {
            let more = f64::from(one.packet + IPV6_MORE) / f64::from(one.packet);
            one.packet += IPV6_MORE;
            one.bits_per_second *= more;
            one.between = (one.between.0 * more, one.between.1 * more);
            one.capacity.bits_per_second *= more;
            one.steps.iter_mut().for_each(|step| step.bits_per_second *= more);
        }
        self
    }
}

/// Three figures, downwards.
fn rounded_down(rate: f64) -> f64 {
    if rate < 1.0 {
        return 0.0;
    }
    let unit = libm::pow(10.0, libm::floor(libm::log10(rate)) - 2.0);
    libm::floor(rate / unit) * unit
}

/// A calibration as a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CalibrationDocument {
    /// The version that measured.
    pub version: String,
    /// The command that measures again.
    pub again: String,
    /// When it began, ns since 1970.
    pub began_ns: u64,
    /// The remote end.
    pub host: String,
    /// What was found.
    pub found: Calibrated,
    /// What is left below what was found, 0 to 1.
    pub margin: f64,
    /// What this machine itself did to the measurement.
    pub caveats: Vec<String>,
}

/// Calibrates these directions with this margin; `report` is called after each step.
///
/// # Errors
/// The path's.
pub fn calibrate<P: Path>(
    path: &mut P,
    ways: &[PathDirection],
    margin: f64,
    report: &mut dyn FnMut(PathDirection, &RateTrial),
) -> Result<Calibrated, P::Error> {
    let mut found = Calibrated::default();
    for way in ways {
        let Some(capacity) = capacity::find(path, *way)? else { continue };
        let calibration = search(path, *way, capacity, report, &mut found.cut)?;
        match way {
            PathDirection::Up => found.up = Some(calibration),
            PathDirection::Down => found.down = Some(calibration),
        }
    }
    if let (Some(up), Some(down), None) = (&found.up, &found.down, &found.cut) {
        let rates = [up, down].map(|one| one.bits_per_second * (1.0 - margin));
        let (rises, caveat) = together(path, rates, [&up.capacity, &down.capacity])?;
        found.together = Some(rises);
        found.caveats.extend(caveat);
    }
    Ok(found)
}

fn search<P: Path>(
    path: &mut P,
    way: PathDirection,
    capacity: Capacity,
    report: &mut dyn FnMut(PathDirection, &RateTrial),
    cut: &mut Option<String>,
) -> Result<Calibration, P::Error> {
    let top = capacity.bits_per_second;
    let (mut low, mut high) = (0.0f64, f64::INFINITY);
    // What a flood got through is the best guess: a little below and above it first.
    let mut next = top * 0.99;
    let mut lead = 1.0;
    let mut failed = None;
    let mut calibration =
        Calibration { capacity, packet: u32::from(FULL) + HEADERS, ..Calibration::default() };
    while calibration.steps.len() < STEPS && cut.is_none() {
        let outcome = path.carry_out(&trial(way, next, &capacity, lead))?;
        if outcome.cut.is_some() {
            cut.clone_from(&outcome.cut);
            break;
        }
        if lead < MOST_LEAD && !is_spent(way.trace(&outcome), &capacity) {
            lead *= 4.0;
            continue;
        }
        let step = evaluate(way.trace(&outcome), next, &capacity);
        report(way, &step);
        // Any disturbance makes delays longer, so a rate that should be sustained and was not is tried once
        // more.
        if !step.sustained && next < top && failed != Some(next) {
            failed = Some(next);
            continue;
        }
        calibration.steps.push(step);
        if step.sustained {
            low = low.max(next);
        } else {
            high = high.min(next);
        }
        if high / low - 1.0 < CLOSE {
            break;
        }
        next = match (low > 0.0, high.is_finite()) {
            (true, false) => low * 1.015,
            (false, _) => high * if calibration.steps.len() < 3 { 0.985 } else { 0.9 },
            (true, true) => (low + high) / 2.0,
        };
    }
    calibration.bits_per_second = low;
    calibration.between = (low, if high.is_finite() { high } else { low * 1.015 });
    calibration.notes = if calibration.steps.is_empty() { Vec::new() } else { notes(&calibration.capacity) };
    calibration.caveats = caveats(&calibration);
    Ok(calibration)
}

/// Packets before a stream, on an empty line.
fn quiet() -> PacketTrain {
    PacketTrain {
        payload: 100,
        gap_ns: SECOND / 40,
        packets: 20,
        rest_ns: SECOND / 20,
        ..PacketTrain::default()
    }
}

/// A trial's stream: quiet packets, then what spends a saved burst and leaves a queue, then the rate.
fn trial(way: PathDirection, rate: f64, capacity: &Capacity, lead: f64) -> Exchange {
    let service = ip_bits(FULL) * 1e9 / capacity.bits_per_second;
    let quiet = quiet();
    let lead = if capacity.has_burst() {
        let spent = capacity.burst_bytes * 8e9 / capacity.bits_per_second / (SPENDING - 1.0);
        steady(capacity.bits_per_second * SPENDING, (spent * lead + 200e6).min(20e9))
    } else {
        steady(capacity.bits_per_second * 1.3, (20.0 * service).max(50e6) * lead)
    };
    let packets = PACKETS * if capacity.service.is_policed { POLICED_LONGER } else { 1.0 };
    way.exchange(Stream { phases: [quiet, lead, steady(rate, LENGTH_NS.max(packets * service))].into() })
}

/// The parts of a trial's stream.
const QUIET: usize = 0;
const LEAD: usize = 1;
const STEADY: usize = 2;

fn steady(rate: f64, length_ns: f64) -> PacketTrain {
    let gap_ns = (ip_bits(FULL) * 1e9 / rate.max(1.0)).max(1.0) as u64;
    PacketTrain {
        payload: FULL,
        gap_ns,
        packets: (length_ns as u64 / gap_ns).clamp(10, 65_536) as u32,
        ..PacketTrain::default()
    }
}

/// How much longer a journey took than another clock's zero, ns.
fn raw(packet: &PacketRecord) -> Option<i64> {
    Some(packet.arrived?.wrapping_sub(packet.sent?) as i64)
}

/// Whether the lead left a queue, or lost packets. If not, there is a burst that it did not spend.
fn is_spent(trace: &StreamTrace, capacity: &Capacity) -> bool {
    let least = trace.packets.iter().filter_map(raw).min().unwrap_or(0);
    let lead: Vec<&PacketRecord> = trace.of_phase(LEAD).map(|(_, packet)| packet).collect();
    let (_, last) = lead.split_at(lead.len() * 3 / 4);
    let late = median(last.iter().filter_map(|packet| raw(packet)).map(|delay| (delay - least) as f64));
    let lost = last.iter().filter(|packet| packet.sent.is_some() && packet.arrived.is_none()).count();
    late > 3.0 * ip_bits(FULL) * 1e9 / capacity.bits_per_second || lost * 20 > last.len()
}

/// Whether the rate was sustained.
fn evaluate(trace: &StreamTrace, rate: f64, capacity: &Capacity) -> RateTrial {
    let quiet: Vec<i64> = trace.of_phase(QUIET).filter_map(|(_, packet)| raw(packet)).collect();
    let all: Vec<&PacketRecord> = trace.of_phase(STEADY).map(|(_, packet)| packet).collect();
    // What is lost at first, the queue of before may have lost.
    let (_, later) = all.split_at(all.len() / 4);
    let sent = later.iter().filter(|packet| packet.sent.is_some()).count() as u64;
    let arrived: Vec<(f64, i64)> =
        later.iter().filter_map(|packet| Some((packet.sent? as f64, raw(packet)?))).collect();
    let lost = sent - arrived.len() as u64;
    let least = quiet.iter().chain(arrived.iter().map(|(_, delay)| delay)).min().copied().unwrap_or(0);
    let service = ip_bits(FULL) * 1e9 / capacity.bits_per_second;
    // A small packet of the quiet phase takes less time on the line than a full one.
    let own = service * (1.0 - 128.0 / f64::from(u32::from(FULL) + HEADERS));
    let delays: Vec<(f64, f64)> =
        arrived.iter().map(|(at, delay)| (*at, (delay - least) as f64 - own)).collect();
    let tail = &delays[delays.len() * 3 / 4..];
    let delay_ns = median(tail.iter().map(|(_, delay)| *delay)).max(0.0);
    let slope = slope(&delays);
    let is_down = delay_ns <= RISEN_NS.max(1.5 * service).max(4.0 * capacity.irregularity);
    let span = delays.last().map_or(0.0, |last| last.0) - delays.first().map_or(0.0, |first| first.0);
    let falls = slope < -0.001 && -slope * span * 2.0 / 3.0 > FALLEN * service + capacity.irregularity;
    let keeps = is_down && slope < 0.01 || falls;
    let exists = !arrived.is_empty() && !exceeds_loss(lost, sent, capacity) && keeps;
    let carried = overhead::service(trace, LEAD, capacity.irregularity)
        .filter(|lead| lead.is_regular && !lead.is_idle && !capacity.has_burst())
        .map(|lead| ip_bits(FULL) * 1e9 / lead.ns);
    RateTrial {
        bits_per_second: rate,
        sustained: exists,
        loss: crate::share(lost, sent),
        delay_ns,
        slope,
        carried,
    }
}

/// Whether more is lost than when the path is calm. With a policer every packet counts; a queue shows by its
/// delay, and only heavy loss is a sign.
fn exceeds_loss(lost: u64, sent: u64, capacity: &Capacity) -> bool {
    let (calm_sent, calm_lost) = capacity.calm;
    if capacity.service.is_policed {
        return crate::share(lost, sent) > crate::share(calm_lost, calm_sent) + POLICED;
    }
    // Where few packets pass, chance could explain much: what is lost often all the same is too much.
    let often = (crate::share(calm_lost, calm_sent) * 3.0).max(OFTEN);
    wilson(lost, sent).0 > wilson(calm_lost, calm_sent).1 || lost >= 3 && crate::share(lost, sent) > often
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// How fast delays grow: the slope between the medians of the first and the last third, by time.
fn slope(delays: &[(f64, f64)]) -> f64 {
    let third = delays.len() / 3;
    if third == 0 {
        return 0.0;
    }
    let (first, last) = (&delays[..third], &delays[delays.len() - third..]);
    let middle = |part: &[(f64, f64)]| median(part.iter().map(|(at, _)| *at));
    let height = |part: &[(f64, f64)]| median(part.iter().map(|(_, delay)| *delay));
    (height(last) - height(first)) / (middle(last) - middle(first)).max(1.0)
}

/// How much the delay rose up and down, and a caveat about that.
type Rises = ((f64, f64), Option<String>);

/// Both directions at once: the delay that remains, and a caveat if it is more than each direction alone had.
fn together<P: Path>(path: &mut P, rates: [f64; 2], capacities: [&Capacity; 2]) -> Result<Rises, P::Error> {
    let quiet = quiet();
    let stream = |at: usize| {
        let length = LENGTH_NS.max(PACKETS * ip_bits(FULL) * 1e9 / capacities[at].bits_per_second);
        Stream { phases: [quiet, steady(rates[at], length)].into() }
    };
    let outcome = path.carry_out(&Exchange { up: stream(0), down: stream(1) })?;
    let rise = |trace: &StreamTrace| {
        let raw = |packet: &PacketRecord| Some(packet.arrived?.wrapping_sub(packet.sent?) as i64);
        let delays: Vec<i64> = trace.packets.iter().filter_map(raw).collect();
        let least = delays.iter().copied().min().unwrap_or(0);
        let loaded = trace.of_phase(1).filter_map(|(_, packet)| raw(packet));
        Durations::new(loaded.map(|delay| (delay - least) as u64).collect()).percentile(95.0).unwrap_or(0)
            as f64
    };
    let rises = (rise(&outcome.up), rise(&outcome.down));
    let most = |at: usize| (RISEN_NS * 5.0).max(4.0 * ip_bits(FULL) * 1e9 / capacities[at].bits_per_second);
    let shares = rises.0 > most(0) || rises.1 > most(1);
    let caveat = shares.then(|| {
        format!(
            "with both directions at these rates at once the delay rises by {:.0} ms up and {:.0} ms down: \
            they share something (Wi-Fi, a modem's processor), or the rate varies",
            rises.0 / 1e6,
            rises.1 / 1e6
        )
    });
    Ok((rises, caveat))
}

fn notes(capacity: &Capacity) -> Vec<String> {
    let mut notes = Vec::new();
    if capacity.service.is_policed {
        notes.push(
            "excess packets are dropped without a queue (a policer): shape below this rate, because delay \
            does not show when it is too high"
                .into(),
        );
    }
    if let Some(peak) = capacity.peak_bits_per_second.filter(|_| capacity.has_burst()) {
        notes.push(format!(
            "a token bucket lets {:.1} Mbit/s through for up to {:.0} kB before it comes down to its rate",
            peak / 1e6,
            capacity.burst_bytes / 1e3
        ));
    }
    notes
}

/// Why a policer's rate may not be exact: what is lost anyway blurs it.
fn policed(capacity: &Capacity) -> Option<String> {
    if !capacity.service.is_policed {
        return None;
    }
    let (sent, lost) = capacity.calm;
    let (share, most) = (crate::share(lost, sent) * 100.0, wilson(lost, sent).1);
    let blurred = "and a policer shows in its losses alone: the rate is not exact";
    if lost > 0 {
        return Some(format!("{share:.1} % are lost anyway, {blurred}"));
    }
    (most > 0.03).then(|| format!("too few packets pass to know the losses of the calm line, {blurred}"))
}

fn caveats(found: &Calibration) -> Vec<String> {
    if found.steps.is_empty() {
        return Vec::new();
    }
    let capacity = &found.capacity;
    let mut caveats = Vec::new();
    let carried = || found.steps.iter().filter_map(|step| step.carried);
    let (least, most) = (carried().fold(f64::INFINITY, f64::min), carried().fold(0.0, f64::max));
    if !capacity.is_settled {
        caveats.push("floods got through at other rates each time: what the path carries varies".into());
    } else if most > least * VARIES {
        let (least, most) = (least / 1e6, most / 1e6);
        caveats.push(format!(
            "it carried {least:.2} Mbit/s at one time and {most:.2} at another: the rate varies"
        ));
    }
    caveats.extend(policed(capacity));
    let sustained =
        found.steps.iter().filter(|step| step.sustained).map(|step| step.bits_per_second).fold(0.0, f64::max);
    let failed = found
        .steps
        .iter()
        .filter(|step| !step.sustained)
        .map(|step| step.bits_per_second)
        .fold(f64::INFINITY, f64::min);
    if failed < sustained {
        caveats.push("a rate failed though a higher one passed: the capacity of the path varies".into());
    }
    let calm = crate::share(capacity.calm.1, capacity.calm.0);
    let last =
        found.steps.iter().find(|step| step.sustained && step.bits_per_second == found.bits_per_second);
    if let Some(step) = last.filter(|step| step.loss > calm + 0.01) {
        let lost = step.loss * 100.0;
        caveats.push(format!(
            "{lost:.0} % were lost at the rate that passed: the buffer is short, or there is cross traffic"
        ));
    }
    if found.bits_per_second < capacity.bits_per_second * 0.97 {
        let (sustained, flood) = (found.bits_per_second / 1e6, capacity.bits_per_second / 1e6);
        caveats.push(format!(
            "a flood gets {flood:.2} Mbit/s through, but only {sustained:.2} passed: there is cross traffic, or \
            the capacity varies"
        ));
    }
    if !failed.is_finite() {
        caveats.push("no rate was too high: something else than the path was the limit".into());
    }
    caveats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_figures_downwards() {
        let cases = [(1_234_567.0, 1_230_000.0), (999.9, 999.0), (20_000_000.0, 20_000_000.0), (0.0, 0.0)];
        for (rate, expected) in cases {
            assert!((rounded_down(rate) - expected).abs() < 1e-6, "{rate}: {}", rounded_down(rate));
        }
    }
}
