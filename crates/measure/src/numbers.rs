//! Figures as people write them: three significant digits, the unit that fits.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};

/// Significant digits that figures have where nothing requests more.
pub const USUAL: usize = 3;

/// So many significant digits of a number; more digits before the point are kept.
pub fn significant(value: f64, digits: usize) -> String {
    let (mut decimals, mut limit) = (digits.saturating_sub(1), 10.0);
    while decimals > 0 && value.abs() >= limit - 0.5 / power_of_ten(decimals) {
        (decimals, limit) = (decimals - 1, limit * 10.0);
    }
    format!("{value:.decimals$}")
}

/// Ten to a small power.
fn power_of_ten(power: usize) -> f64 {
    (0..power).fold(1.0, |value, _| value * 10.0)
}

fn scaled(value: f64, step: f64, units: &[&str], digits: usize) -> String {
    if value == 0.0 {
        return format!("0 {}", units[0]);
    }
    let mut value = value;
    let mut unit = 0;
    while value.abs() >= step * 0.9995 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    format!("{} {}", significant(value, digits), units[unit])
}

/// A rate, from bits per second: `127 kbit/s`.
pub fn rate(bits_per_second: f64) -> String {
    rate_in(bits_per_second, USUAL)
}

/// A rate with this many significant digits.
pub fn rate_in(bits_per_second: f64, digits: usize) -> String {
    scaled(bits_per_second, 1000.0, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s"], digits)
}

/// A number of bytes: `24.0 kB`.
pub fn size(bytes: u64) -> String {
    size_in(bytes as f64, USUAL)
}

/// A size with this many significant digits.
pub fn size_in(bytes: f64, digits: usize) -> String {
    if bytes < 999.5 {
        return format!("{bytes:.0} B");
    }
    scaled(bytes, 1000.0, &["B", "kB", "MB", "GB", "TB"], digits)
}

/// A span in ns as milliseconds: `12.3 ms`.
pub fn milliseconds(ns: u64) -> String {
    format!("{} ms", significant(ns as f64 / 1e6, USUAL))
}

/// A span in ns in the unit that fits: `126 ms`, `1.55 s`.
pub fn format_duration(ns: u64) -> String {
    format_duration_in(ns as f64, USUAL)
}

/// A duration with this many significant digits.
pub fn format_duration_in(ns: f64, digits: usize) -> String {
    let (value, unit) = match libm::round(ns) {
        ns if ns < 999_500.0 => (ns / 1e3, "µs"),
        ns if ns < 999_500_000.0 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{} {unit}", significant(value, digits))
}

/// A number without a unit: whole ones as they are, others with so many significant digits.
pub fn plain_in(number: f64, digits: usize) -> String {
    if libm::trunc(number) == number && number.abs() < 1e15 {
        format!("{number:.0}")
    } else {
        significant(number, digits)
    }
}

/// A figure without and with the policy: `1430 → 35.0`; a dash for what there is none of, one figure where
/// both are written alike.
pub fn arrow<T>(pair: [Option<T>; 2], written: impl Fn(T) -> String) -> String {
    let [without, with] = pair.map(|value| value.map_or_else(|| "–".to_owned(), &written));
    if without == with { with } else { format!("{without} → {with}") }
}

/// A share of one as percent: `6.7 %`. What is not nothing is not shown as nothing.
pub fn percent(share: f64) -> String {
    percent_in(share, USUAL)
}

/// A share in per cent; with more than three digits, as many of them as are requested.
pub fn percent_in(share: f64, digits: usize) -> String {
    let percent = share * 100.0;
    match digits {
        0..=USUAL if percent > 0.0 && percent < 0.05 => "<0.1 %".to_string(),
        0..=USUAL => format!("{percent:.1} %"),
        _ => format!("{percent:.0$} %", digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        let shown = [
            rate(127_000.0),
            rate(0.0),
            rate(999.6),
            rate(1_000_000.0),
            size(24_000),
            size(999),
            milliseconds(720_626_000),
            milliseconds(16_252_000),
            milliseconds(180_000),
            milliseconds(1_517_038_000),
            format_duration(180_000),
            format_duration(126_400_000),
            format_duration(1_549_000_000),
            arrow([Some(1), None], |n| n.to_string()),
            arrow([Some(2), Some(2)], |n| n.to_string()),
            percent(0.0667),
            percent(0.0001),
            percent(0.0),
        ];
        let expected = [
            "127 kbit/s",
            "0 bit/s",
            "1.00 kbit/s",
            "1.00 Mbit/s",
            "24.0 kB",
            "999 B",
            "721 ms",
            "16.3 ms",
            "0.18 ms",
            "1517 ms",
            "180 µs",
            "126 ms",
            "1.55 s",
            "1 → –",
            "2",
            "6.7 %",
            "<0.1 %",
            "0.0 %",
        ];
        assert_eq!(shown, expected);
    }
}
