//! Figures in sentences.

use tidegate_measure::numbers::milliseconds;

/// A time: below a second in ms, above in s.
pub(crate) fn seconds(ns: u64) -> String {
    if ns < 1_000_000_000 { milliseconds(ns) } else { format!("{:.1} s", ns as f64 / 1e9) }
}
