//! The line that explains a sweep.
//!
//! A packet of `size` takes `max(8 × on_wire(size + overhead) / rate, floor)`; the floor is a limit of
//! packets per second, or a smallest unit. Every coding is tried with every overhead; of each the rate is the
//! best by least squares, and what explains the sweep with the least relative error wins, if it is better by
//! more than its additional figures make it (BIC, Schwarz 1978).

use super::coding::Coding;
use super::line::{Floor, LineEstimate, Size};
use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// Overheads that are tried, in bytes.
const OVERHEADS: RangeInclusive<u32> = 0..=160;
/// No time is measured better than this, as a share.
const LEAST_ERROR: f64 = 1e-4;
/// Sizes that took the same time to within this share met the same limit.
const ALIKE: f64 = 0.002;
/// What is likelier by this much is outside the 95 % interval: half of chi square's, on a scale of -2 log L.
const BEYOND: f64 = 3.84;
/// A floor of a unit up to this many bytes is taken for a smallest unit, above it for a limit of packets.
const LARGEST_UNIT: f64 = 128.0;

/// An explanation.
#[derive(Clone, Copy, Debug)]
struct Explanation {
    coding: Coding,
    overhead: u32,
    /// Nanoseconds for a byte on the wire.
    ns_per_byte: f64,
    floor_ns: Option<f64>,
    /// The less the better: -2 log L and a price for each figure.
    score: f64,
    /// Mean relative error.
    error: f64,
    /// Standard error of the rate, as a share.
    rate_error: f64,
}

/// The line that explains a sweep best; `None` with fewer than four sizes.
pub fn estimate(sizes: &[Size]) -> Option<LineEstimate> {
    if sizes.len() < 4 {
        return None;
    }
    let mut sorted = sizes.to_vec();
    sorted.sort_by_key(|size| size.ip);
    let tried: Vec<Explanation> = Coding::ALL
        .iter()
        .flat_map(|coding| OVERHEADS.flat_map(|overhead| explanations(&sorted, *coding, overhead)))
        .collect();
    let best = tried.iter().min_by(|a, b| a.score.total_cmp(&b.score))?;
    let same =
        |one: &&Explanation| one.coding == best.coding && one.floor_ns.is_some() == best.floor_ns.is_some();
    let good: Vec<&Explanation> =
        tried.iter().filter(same).filter(|one| one.score <= best.score + BEYOND).collect();
    // Those that explain it as well as the best: the middle one is taken.
    let equal: Vec<&&Explanation> = good.iter().filter(|one| one.score <= best.score + 1e-6).collect();
    let taken = equal.get(equal.len() / 2).map_or(best, |one| **one);
    let others = tried.iter().filter(|one| one.coding != best.coding && one.score <= best.score + BEYOND);
    let rival = others.min_by(|a, b| a.score.total_cmp(&b.score)).map(|one| (one.coding, one.overhead));
    Some(line(taken, &good, rival, &sorted))
}

fn line(
    taken: &Explanation,
    good: &[&Explanation],
    rival: Option<(Coding, u32)>,
    sizes: &[Size],
) -> LineEstimate {
    let rate = |one: &Explanation| 8e9 / one.ns_per_byte;
    let rates = || good.iter().map(|one| (rate(one), 1.96 * one.rate_error));
    let overheads = || good.iter().map(|one| one.overhead);
    LineEstimate {
        overhead: taken.overhead,
        between: (overheads().min().unwrap_or(0), overheads().max().unwrap_or(0)),
        coding: taken.coding,
        bits_per_second: rate(taken),
        rate_between: (
            rates().map(|(rate, share)| rate * (1.0 - share)).fold(f64::INFINITY, f64::min),
            rates().map(|(rate, share)| rate * (1.0 + share)).fold(0.0, f64::max),
        ),
        floor: taken.floor_ns.map(|ns| floor(taken, ns)),
        rival,
        error: taken.error,
        sizes: sizes.len(),
    }
}

fn floor(line: &Explanation, ns: f64) -> Floor {
    let unit = ns / line.ns_per_byte;
    // The bytes that become a unit of this length: coding undone.
    let bytes = match line.coding {
        Coding::Bytes | Coding::Steps(_) => unit,
        Coding::Ptm => unit * 64.0 / 65.0,
        Coding::Atm => unit * 48.0 / 53.0,
    };
    Floor { packets_per_second: 1e9 / ns, bytes, is_unit: unit <= LARGEST_UNIT }
}

/// An overhead, without and with a floor.
fn explanations(sizes: &[Size], coding: Coding, overhead: u32) -> impl Iterator<Item = Explanation> {
    let plateau = plateau(sizes);
    let plain = explain(sizes, coding, overhead, 0);
    let floored =
        (plateau >= 2 && plateau + 2 <= sizes.len()).then(|| explain(sizes, coding, overhead, plateau));
    [plain].into_iter().chain(floored)
}

/// How many of the smallest sizes took the same time.
fn plateau(sizes: &[Size]) -> usize {
    let Some(first) = sizes.first() else { return 0 };
    sizes.iter().take_while(|size| (size.ns / first.ns - 1.0).abs() <= ALIKE.max(3.0 * size.error)).count()
}

/// How well this explains the sweep, `floored` of the smallest sizes having met the floor.
fn explain(sizes: &[Size], coding: Coding, overhead: u32, floored: usize) -> Explanation {
    let weight = |size: &Size| 1.0 / (size.error * size.error + LEAST_ERROR * LEAST_ERROR);
    let wire = |size: &Size| f64::from(coding.on_wire(size.ip + overhead).max(1));
    let (at_floor, rest) = sizes.split_at(floored);
    let floor_ns = (floored > 0).then(|| weighted(at_floor.iter().map(|size| (size.ns, weight(size)))));
    let is_free = |size: &&Size| floor_ns.is_none_or(|floor| size.ns > floor * (1.0 + ALIKE));
    // The squares of relative errors are least where the sum of w·x·(c·x - 1) is nothing, x being bytes per
    // ns.
    let (mut upper, mut lower) = (0.0, 0.0);
    for size in rest.iter().filter(is_free) {
        let x = wire(size) / size.ns;
        upper += weight(size) * x;
        lower += weight(size) * x * x;
    }
    let ns_per_byte = if lower > 0.0 { upper / lower } else { f64::INFINITY };
    let miss = |size: &Size| {
        let expected = (wire(size) * ns_per_byte).max(floor_ns.unwrap_or(0.0));
        let miss = expected / size.ns - 1.0;
        if miss.is_finite() { miss } else { 1e3 }
    };
    let n = sizes.len() as f64;
    let chi: f64 = sizes.iter().map(|size| miss(size) * miss(size) * weight(size)).sum();
    let figures = f64::from(u8::from(coding != Coding::Bytes)) + f64::from(u8::from(floored > 0));
    let spread = libm::sqrt((chi / n).max(1.0));
    Explanation {
        coding,
        overhead,
        ns_per_byte,
        floor_ns,
        score: n * libm::log(chi / n + 1.0) + figures * libm::log(n),
        error: sizes.iter().map(|size| miss(size).abs()).sum::<f64>() / n,
        rate_error: spread / libm::sqrt(sizes.iter().map(weight).sum::<f64>()),
    }
}

fn weighted(values: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (sum, weights) =
        values.fold((0.0, 0.0), |(sum, all), (value, weight)| (sum + value * weight, all + weight));
    sum / weights
}
