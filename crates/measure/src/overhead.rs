//! What a line adds to each packet, and how many it takes in a second, from a sweep of packet sizes.
//!
//! A line that is always busy passes `rate / (8 × on_wire(size + overhead))` packets per second, or its limit of packets if that is less
//! (Siemon's measurements of a VDSL2 line, 2012). Every overhead and coding is tried, and the one that explains the sweep best is taken.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// How a line codes what it carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coding {
    /// Byte by byte.
    #[default]
    Bytes,
    /// In ATM cells: 53 bytes for each 48.
    Atm,
}

impl Coding {
    fn on_wire(self, bytes: u32) -> u32 {
        match self {
            Coding::Bytes => bytes,
            Coding::Atm => bytes.div_ceil(48) * 53,
        }
    }
}

/// What a sweep tells of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Line {
    /// Bytes added to each size of the sweep: if those are payloads of UDP, its 28 bytes of headers are among them.
    pub overhead: u32,
    /// How it codes.
    pub coding: Coding,
    /// Bits per second on the wire.
    pub bits_per_second: f64,
    /// The most packets in a second, if sizes of the sweep met that limit.
    pub packets_per_second: Option<f64>,
    /// Mean of the relative errors of the packet rates that this explains, 0 to 1.
    pub error: f64,
}

/// Overheads that are tried, in bytes.
const OVERHEADS: RangeInclusive<u32> = 0..=160;
/// What passes by so much less than the line's rate met another limit.
const CAPPED: f64 = 0.99;
/// Explanations that differ by less than this are as good as each other: the middle one is taken.
const AS_GOOD: f64 = 1e-6;

/// Estimates a line from sizes (bytes) and the packets per second that arrived of each; the line was offered more than it carries.
/// `None` with fewer than four sizes.
pub fn estimate(sweep: &[(u32, f64)]) -> Option<Line> {
    if sweep.len() < 4 {
        return None;
    }
    let lines = [Coding::Bytes, Coding::Atm].map(|coding| best(sweep, coding));
    // Cells explain whatever bytes explain, and more: they must do so much better.
    let [bytes, cells] = lines;
    Some(if cells.error < bytes.error / 2.0 - AS_GOOD { cells } else { bytes })
}

fn best(sweep: &[(u32, f64)], coding: Coding) -> Line {
    let tried: Vec<Line> = OVERHEADS.map(|overhead| explain(sweep, coding, overhead)).collect();
    let least = tried.iter().map(|line| line.error).fold(f64::INFINITY, f64::min);
    let good: Vec<&Line> = tried.iter().filter(|line| line.error <= least + AS_GOOD).collect();
    good.get(good.len() / 2).map_or(Line::default(), |line| **line)
}

/// How well this overhead explains the sweep.
fn explain(sweep: &[(u32, f64)], coding: Coding, overhead: u32) -> Line {
    let wire = |size: u32| f64::from(coding.on_wire(size + overhead).max(1)) * 8.0;
    let mut by_size: Vec<(u32, f64)> = sweep.to_vec();
    by_size.sort_by_key(|(size, _)| *size);
    // The larger half of the sizes is not held by a limit of packets.
    let mut rates: Vec<f64> = by_size[by_size.len() / 2..].iter().map(|(size, pps)| pps * wire(*size)).collect();
    rates.sort_by(f64::total_cmp);
    let bits_per_second = rates[rates.len() / 2];
    let is_capped = |(size, pps): &&(u32, f64)| pps * wire(*size) < CAPPED * bits_per_second;
    let capped: Vec<f64> = by_size.iter().take_while(is_capped).map(|(_, pps)| *pps).collect();
    let packets_per_second = (capped.len() >= 2).then(|| capped.iter().sum::<f64>() / capped.len() as f64);
    let predicted = |size: u32| (bits_per_second / wire(size)).min(packets_per_second.unwrap_or(f64::INFINITY));
    let errors = by_size.iter().map(|(size, pps)| (predicted(*size) - pps).abs() / pps.max(1.0));
    let error = errors.sum::<f64>() / by_size.len() as f64;
    Line { overhead, coding, bits_per_second, packets_per_second, error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    /// The sizes of both of Siemon's sweeps.
    fn sizes() -> Vec<u32> {
        let mut sizes: Vec<u32> = [25, 50, 75, 100, 200, 300, 400, 500, 1000, 1400].into();
        sizes.extend((0..=30).map(|n| n * 10));
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// V-S5a: overhead within a byte, rate within half a percent, limit within one, for every line tried.
    #[test]
    fn v_s5a_lines_are_found_again() {
        extern crate std;
        let (rate, mut worst) = (6_500_000.0, (0u32, 0.0f64, 0.0f64));
        for coding in [Coding::Bytes, Coding::Atm] {
            for overhead in [0, 8, 22, 30, 44, 53] {
                for cap in [None, Some(4750.0)] {
                    let sweep: Vec<(u32, f64)> = sizes()
                        .into_iter()
                        // Datagrams that arrived in five seconds, whole ones.
                        .map(|size| {
                            let pps = rate / 8.0 / f64::from(coding.on_wire(size + 28 + overhead));
                            (size, whole(pps.min(cap.unwrap_or(f64::INFINITY)) * 5.0) / 5.0)
                        })
                        .collect();
                    let line = estimate(&sweep).expect("a sweep");
                    let off = line.overhead.abs_diff(28 + overhead);
                    let rate_off = (line.bits_per_second / rate - 1.0).abs();
                    let case = format!("{coding:?} {overhead} {cap:?}: {line:?}");
                    assert!(line.coding == coding && off <= 1 && rate_off <= 0.005, "{case}");
                    assert_eq!(line.packets_per_second.is_some(), cap.is_some(), "{case}");
                    let cap_off = line.packets_per_second.map_or(0.0, |found| (found / 4750.0 - 1.0).abs());
                    assert!(cap_off <= 0.01, "{case}");
                    worst = (worst.0.max(off), worst.1.max(rate_off), worst.2.max(cap_off));
                }
            }
        }
        std::println!(
            "validation: The articles' experiments | V-S5a | a line's overhead, rate and packet limit from a sweep of sizes, 24 lines | 1 byte, 0.5 %, 1 % | {} byte, {:.2} %, {:.2} % at worst | within | synthetic sweeps",
            worst.0,
            worst.1 * 100.0,
            worst.2 * 100.0
        );
    }

    fn whole(value: f64) -> f64 {
        value as u64 as f64
    }
}
