//! What a line adds to each packet, how it codes them, and how many it takes in a second, from a sweep of
//! packet sizes.
//!
//! ```text
//! find the rate ──▶ flood size by size (sweep) ──▶ a packet's time on the line, by size (`service`) ──▶ the line that explains it (fit) ──▶ words
//! ```
//! A line that is always busy gives each packet `8 × on_wire(size + overhead) / rate`, or its limit of
//! packets if that takes longer (Siemon's measurements of a VDSL2 line, 2012). Sizes are those of IP packets,
//! so the overhead is what the line adds to IP.

mod coding;
mod fit;
mod line;
mod sweep;
mod words;

pub use coding::Coding;
pub use fit::estimate;
pub use line::{Floor, LineEstimate, Size};
pub use sweep::{Sweep, Swept, sweep};
pub use words::Words;

pub use crate::service::{Service, irregularity, service};

use alloc::string::String;
use alloc::vec::Vec;

/// A sweep as a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverheadDocument {
    /// The version that measured.
    pub version: String,
    /// The command that measures again.
    pub again: String,
    /// When it began, ns since 1970.
    pub began_ns: u64,
    /// The remote end, or the file that the sweep came from.
    pub host: String,
    /// What was swept.
    pub swept: Swept,
    /// What this machine itself did to the measurement.
    pub caveats: Vec<String>,
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
                    let sweep: Vec<Size> = sizes()
                        .into_iter()
                        // Datagrams that arrived in five seconds, whole ones.
                        .map(|size| {
                            let pps = rate / 8.0 / f64::from(coding.on_wire(size + 28 + overhead));
                            Size::of_rate(size + 28, whole(pps.min(cap.unwrap_or(f64::INFINITY)) * 5.0) / 5.0)
                        })
                        .collect();
                    let line = estimate(&sweep).expect("a sweep");
                    let off = line.overhead.abs_diff(overhead);
                    let rate_off = (line.bits_per_second / rate - 1.0).abs();
                    let case = format!("{coding:?} {overhead} {cap:?}: {line:?}");
                    assert!(line.coding == coding && off <= 1 && rate_off <= 0.005, "{case}");
                    assert_eq!(line.packets_per_second().is_some(), cap.is_some(), "{case}");
                    let cap_off = line.packets_per_second().map_or(0.0, |found| (found / 4750.0 - 1.0).abs());
                    assert!(cap_off <= 0.01, "{case}");
                    worst = (worst.0.max(off), worst.1.max(rate_off), worst.2.max(cap_off));
                }
            }
        }
        std::println!(
            "validation: The articles' experiments | V-S5a | a line's overhead, rate and packet limit from \
            a sweep of sizes, 24 lines | 1 byte, 0.5 %, 1 % | {} byte, {:.2} %, {:.2} % at worst | within | \
            synthetic sweeps",
            worst.0,
            worst.1 * 100.0,
            worst.2 * 100.0
        );
    }

    fn whole(value: f64) -> f64 {
        value as u64 as f64
    }
}
