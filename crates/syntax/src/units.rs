//! tc's units: rates, amounts of data, times, ids; read and printed.

use crate::number::{self, float_prefix, general, whole};
use crate::{TcChange, TcVersion};
use tidegate_packet::{Handle, Rate};
use tidegate_policy::{RateSpec, Ticks};

/// psched ticks in a microsecond.
const TICKS_PER_US: f64 = 15.625;

/// A rate in tc's notation: `500kbit`, `1.5mbit`, `64kbps` (kilobytes), `1Mibit`; without a unit, bits per
/// second. Negative rates are refused (tc 6.1 takes most for enormous ones).
pub fn parse_rate(text: &str) -> Option<Rate> {
    const PREFIXES: [(&str, f64); 9] = [
        ("", 1.0),
        ("k", 1e3),
        ("m", 1e6),
        ("g", 1e9),
        ("t", 1e12),
        ("ki", 1024.0),
        ("mi", 1048576.0),
        ("gi", 1073741824.0),
        ("ti", 1099511627776.0),
    ];
    let (number, suffix) = float_prefix(text)?;
    let lower = suffix.to_ascii_lowercase();
    let (prefix, unit) = match lower.strip_suffix("bit") {
        Some(prefix) => (prefix, 1.0),
        None => match lower.strip_suffix("bps") {
            Some(prefix) => (prefix, 8.0),
            None if lower.is_empty() => ("", 1.0),
            None => return None,
        },
    };
    let scale = PREFIXES.iter().find(|(name, _)| *name == prefix)?.1;
    let bytes = number * scale * unit / 8.0;
    if number < 0.0 || bytes.is_nan() || (bytes.is_finite() && bytes >= u64::MAX as f64) {
        return None;
    }
    // An infinite rate becomes 0, which every user refuses as missing.
    Some(Rate(if bytes.is_finite() { bytes as u64 } else { 0 }))
}

/// `10%`: the number before the sign; `None` if this is not a percentage.
pub fn parse_percent(text: &str) -> Option<f64> {
    let (number, rest) = float_prefix(text)?;
    (rest == "%" && (0.0..=100.0).contains(&number)).then_some(number)
}

/// An amount of data in bytes: `10k`, `1500b`, `12kbit`.
pub fn parse_size(text: &str) -> Option<u32> {
    let (number, suffix) = float_prefix(text)?;
    let scale = match suffix.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1024.0,
        "m" | "mb" => 1048576.0,
        "g" | "gb" => 1073741824.0,
        "kbit" => 1024.0 / 8.0,
        "mbit" => 1048576.0 / 8.0,
        "gbit" => 1073741824.0 / 8.0,
        _ => return None,
    };
    let bytes = number * scale;
    (0.0..4294967296.0).contains(&bytes).then_some(bytes as u32)
}

/// An amount of data and the log of a cell: `10k/8`.
pub fn parse_size_cell(text: &str) -> Option<(u32, u8)> {
    match text.split_once('/') {
        None => Some((parse_size(text)?, 0)),
        Some((size, cell)) => {
            let cell = whole(cell, 0)?;
            (cell.is_power_of_two() && cell < 1 << 32).then_some(())?;
            Some((parse_size(size)?, cell.trailing_zeros() as u8))
        }
    }
}

/// A length of time in microseconds: `5ms`, `1s`; without a unit, microseconds. As in tc 6.1 it wraps at 2³².
pub fn parse_time(text: &str) -> Option<u32> {
    let (number, suffix) = float_prefix(text)?;
    let scale = match suffix.to_ascii_lowercase().as_str() {
        "" | "us" | "usec" | "usecs" => 1.0,
        "ms" | "msec" | "msecs" => 1e3,
        "s" | "sec" | "secs" => 1e6,
        _ => return None,
    };
    let us = number * scale;
    Some(if us.is_finite() { us as i64 as u32 } else { 0 })
}

/// A length of time as this release of tc reads it.
pub(crate) fn time_by(text: &str, tc: TcVersion) -> Option<u32> {
    parse_time(text).filter(|_| is_within(text, tc))
}

/// A length of time in nanoseconds as this release of tc reads it.
pub(crate) fn nanos_by(text: &str, tc: TcVersion) -> Option<i64> {
    parse_nanos(text).filter(|_| is_within(text, tc))
}

/// A rate as this release of tc reads it.
pub(crate) fn rate_by(text: &str, tc: TcVersion) -> Option<Rate> {
    parse_rate(text).filter(|_| is_within(text, tc))
}

/// Does this release of tc take a number that is negative, or too large for a floating-point number? (What is
/// spelled `inf` is none of these.)
fn is_within(text: &str, tc: TcVersion) -> bool {
    let bounded =
        |(number, _): (f64, &str)| number >= 0.0 && (number.is_finite() || is_spelled_infinite(text));
    !tc.has(TcChange::NumberBounds) || float_prefix(text).is_some_and(bounded)
}

fn is_spelled_infinite(text: &str) -> bool {
    text.trim_start().trim_start_matches(['+', '-']).starts_with(['i', 'I'])
}

/// A length of time in nanoseconds: `10us`, `1.5ms`; without a unit, nanoseconds.
pub fn parse_nanos(text: &str) -> Option<i64> {
    let (number, suffix) = float_prefix(text)?;
    let scale = match suffix.to_ascii_lowercase().as_str() {
        "" | "ns" | "nsec" | "nsecs" => 1.0,
        "us" | "usec" | "usecs" => 1e3,
        "ms" | "msec" | "msecs" => 1e6,
        "s" | "sec" | "secs" => 1e9,
        _ => return None,
    };
    Some((number * scale) as i64)
}

/// A qdisc's handle: `1:`, `1`, `none`; the part after the colon is ignored.
pub fn parse_handle(text: &str) -> Option<Handle> {
    if text == "none" {
        return Some(Handle::NONE);
    }
    let major = text.split_once(':').map_or(text, |(major, _)| major);
    Some(Handle::new(number::u16_in(major, 16)?, 0))
}

/// A class id: `1:10`, `1:`, `:5`, `root`, `none`, or 32 bits in hexadecimal.
pub fn parse_classid(text: &str) -> Option<Handle> {
    match text {
        "root" => return Some(Handle::ROOT),
        "none" => return Some(Handle::NONE),
        _ => {}
    }
    let half = |text: &str| if text.is_empty() { Some(0) } else { number::u16_in(text, 16) };
    match text.split_once(':') {
        Some((major, minor)) => Some(Handle::new(half(major)?, half(minor)?)),
        // Longer than 32 bits: tc keeps the lowest.
        None => Some(Handle(whole(text, 16)? as u32)),
    }
}

/// A rate in words, to three digits: `160 kbit/s`.
pub fn rate_in_words(rate: Rate) -> String {
    scaled(rate.0 as f64 * 8.0, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

/// A number of bytes in words, to three digits: `15 kB`.
pub fn bytes_in_words(bytes: u64) -> String {
    scaled(bytes as f64, &["bytes", "kB", "MB", "GB"])
}

fn scaled(value: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if value >= 100.0 || value.fract() < 0.005 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {}", units[unit])
}

/// A rate as tc prints it.
pub fn print_rate(rate: Rate, iec: bool) -> String {
    const SI: [&str; 5] = ["", "K", "M", "G", "T"];
    const IEC: [&str; 5] = ["", "Ki", "Mi", "Gi", "Ti"];
    let base = if iec { 1024 } else { 1000 };
    let mut bits = rate.0.wrapping_mul(8);
    let mut step = 0;
    while step + 1 < SI.len() && bits >= base && (bits.is_multiple_of(base) || bits >= base * base) {
        bits /= base;
        step += 1;
    }
    format!("{bits}{}bit", if iec { IEC[step] } else { SI[step] })
}

/// An amount of data as this release of tc prints it.
pub(crate) fn print_size_by(bytes: u32, tc: TcVersion) -> String {
    const GIGA: u64 = 1 << 30;
    let units = (u64::from(bytes) + GIGA / 2) / GIGA;
    let is_near = (units * GIGA).abs_diff(bytes.into()) < 1024;
    match tc.has(TcChange::SizeWords) && u64::from(bytes) >= GIGA && is_near {
        true => format!("{units}Gb"),
        false => print_size(bytes),
    }
}

/// An amount of data as tc 6.1 prints it.
pub fn print_size(bytes: u32) -> String {
    let near = |unit: f64, slack: f64| {
        let units = (f64::from(bytes) / unit).round_ties_even();
        (f64::from(bytes) >= unit && (units * unit - f64::from(bytes)).abs() < slack).then_some(units)
    };
    if let Some(units) = near(1048576.0, 1024.0) {
        format!("{}Mb", general(units, 6))
    } else if let Some(units) = near(1024.0, 16.0) {
        format!("{}Kb", general(units, 6))
    } else {
        format!("{bytes}b")
    }
}

/// A length of time in microseconds as tc prints it.
pub fn print_time(us: u32) -> String {
    let value = f64::from(us);
    if us >= 1_000_000 {
        format!("{}s", general(value / 1e6, 3))
    } else if us >= 1000 {
        format!("{}ms", general(value / 1e3, 3))
    } else {
        format!("{us}us")
    }
}

/// A length of time in nanoseconds as tc prints it.
pub fn print_nanos(ns: i64) -> String {
    let value = ns as f64;
    match ns {
        1_000_000_000.. => format!("{}s", general(value / 1e9, 3)),
        1_000_000.. => format!("{}ms", general(value / 1e6, 3)),
        1000.. => format!("{}us", general(value / 1e3, 3)),
        _ => format!("{ns}ns"),
    }
}

/// How long `bytes` take at `rate`, in the ticks tc sends: whole microseconds first, both steps wrapping at
/// 32 bits.
pub fn ticks_of(rate: Rate, bytes: u32) -> Ticks {
    if rate.0 == 0 {
        return Ticks(0);
    }
    let us = (1e6 * (f64::from(bytes) / rate.0 as f64)) as i64 as u32;
    Ticks((f64::from(us) * TICKS_PER_US) as i64 as u32)
}

/// Nanoseconds in a tick.
const TICK_NS: u128 = 64;

/// The same as tc 7.2 counts, in whole ticks. `up`: what is left over takes another.
pub(crate) fn fine_ticks_of(rate: Rate, bytes: u32, up: bool) -> Ticks {
    Ticks(whole_ticks(rate, bytes, up) as u32)
}

fn whole_ticks(rate: Rate, bytes: u32, up: bool) -> u128 {
    let (ns, per_tick) = (u128::from(bytes) * 1_000_000_000, u128::from(rate.0) * TICK_NS);
    match (rate.0, up) {
        (0, _) => 0,
        (_, true) => ns.div_ceil(per_tick),
        (_, false) => ns / per_tick,
    }
}

/// The ticks of a bucket as this release of tc counts them; `up` where it counts fine. `None`: they do not
/// fit their 32 bits, and it looks.
pub(crate) fn bucket_by(rate: Rate, bytes: u32, up: bool, tc: TcVersion) -> Option<Ticks> {
    match tc.has(TcChange::FineTicks) {
        true => u32::try_from(whole_ticks(rate, bytes, up)).ok().map(Ticks),
        false => Some(ticks_of(rate, bytes)),
    }
}

/// tc 7.2's refusal of a burst that lasts too long; `kind` as tc writes it.
pub(crate) fn burst_out_of_range(kind: &str) -> String {
    format!("{kind}: burst out of range")
}

/// What to do about it.
pub(crate) const SHORTER_BURST: &str =
    "Since 7.2 tc refuses a burst that lasts longer than 274 s at its rate: give a smaller one.";

/// How many bytes leave at `rate` in so many ticks, as tc 7.2 prints a burst.
pub(crate) fn fine_bytes_of(rate: Rate, ticks: Ticks) -> u32 {
    let bytes = u128::from(rate.0) * u128::from(ticks.0) * TICK_NS / 1_000_000_000;
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Whole microseconds of so many ticks, as tc prints with.
pub fn us_of(ticks: Ticks) -> u32 {
    (f64::from(ticks.0) / TICKS_PER_US) as u32
}

/// How many bytes leave at `rate` in so many ticks: how tc prints a burst.
pub fn bytes_of(rate: Rate, ticks: Ticks) -> u32 {
    (rate.0 as f64 * f64::from(us_of(ticks)) / 1e6) as i64 as u32
}

/// HTB's bucket when none is given: what one timer period brings, and a packet.
pub(crate) fn default_burst(rate: Rate, mtu: u32) -> u32 {
    const TIMER_HZ: f64 = 1e9;
    (rate.0 as f64 / TIMER_HZ + f64::from(mtu)) as i64 as u32
}

/// TBF's limit for a longest wait: what leaves in that time, and the bucket; the tighter of the two buckets
/// counts.
pub(crate) fn limit_of_latency(
    rate: &RateSpec,
    burst: u32,
    peak: Option<(&RateSpec, u32)>,
    latency_us: u32,
) -> u32 {
    let limit = |rate: Rate, burst: u32| rate.0 as f64 * f64::from(latency_us) / 1e6 + f64::from(burst);
    let mut bytes = limit(rate.rate, burst);
    if let Some((peak, mtu)) = peak {
        bytes = bytes.min(limit(peak.rate, mtu));
    }
    bytes as i64 as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V-U1, with tc 6.1's answers to further notations.
    #[test]
    fn v_u1_rates() {
        let table = [
            "1mbit", "1Mibit", "1kbps", "1KiBps", "8bit", "1m", "100", "-1mbit", "1.5mbit", "1e6", "0x10000",
            ".5mbit", "1mbi", "1 mbit", "infbit", "+1MBIT", "1tbps",
        ]
        .map(|text| parse_rate(text).map(|rate| rate.0));
        let wanted = [
            Some(125000),
            Some(131072),
            Some(1000),
            Some(1024),
            Some(1),
            None,
            Some(12),
            None,
            Some(187500),
            Some(125000),
            Some(8192),
            Some(62500),
            None,
            None,
            Some(0),
            Some(125000),
            Some(1_000_000_000_000),
        ];
        assert_eq!(table, wanted);
    }

    /// V-U2 and the edges that tc 6.1 showed.
    #[test]
    fn v_u2_printed_sizes() {
        let table = [
            10240, 2048, 10258, 33554432, 15503360, 5000000, 2047, 2056, 1048570, 1048577, 10486000,
            1073741824, 1073745920, 4294859921,
        ]
        .map(print_size);
        let wanted = [
            "10Kb",
            "2Kb",
            "10258b",
            "32Mb",
            "15140Kb",
            "5000000b",
            "2Kb",
            "2Kb",
            "1024Kb",
            "1Mb",
            "10Mb",
            "1024Mb",
            "1.04858e+06Kb",
            "4294859921b",
        ];
        assert_eq!(table, wanted);
    }

    /// V-U3.
    #[test]
    fn v_u3_printed_times() {
        let table = [4999, 99999, 999, 0, 1_580_000_000, 1_000_000_000].map(print_time);
        assert_eq!(table, ["5ms", "100ms", "999us", "0us", "1.58e+03s", "1e+03s"]);
    }

    #[test]
    fn printed_rates() {
        let rates =
            [125000, 312500, 15875, 95703, 1048576, 134217728, 1024, 12, 125_000_000_000, 0].map(Rate);
        let table = rates.map(|rate| print_rate(rate, false));
        let wanted = [
            "1Mbit",
            "2500Kbit",
            "127Kbit",
            "765624bit",
            "8388Kbit",
            "1073Mbit",
            "8192bit",
            "96bit",
            "1Tbit",
            "0bit",
        ];
        assert_eq!(table, wanted);
        assert_eq!(
            [print_rate(Rate(125000), true), print_rate(Rate(250000), true)],
            ["1000000bit", "1953Kibit"]
        );
    }

    #[test]
    fn sizes_and_times() {
        let sizes =
            ["10k", "1.5k", "1kbit", "2KB", "1e3", "0x10", "4g", "-1", "1kbyte", "20000b"].map(parse_size);
        let wanted = [
            Some(10240),
            Some(1536),
            Some(128),
            Some(2048),
            Some(1000),
            Some(16),
            None,
            None,
            None,
            Some(20000),
        ];
        assert_eq!(sizes, wanted);
        assert_eq!(
            ["10k/8", "10k/7", "10k/0", "10k/x", "10k"].map(parse_size_cell),
            [Some((10240, 3)), None, None, None, Some((10240, 0))]
        );
        assert_eq!(
            ["5ms", "5", "5.5ms", "1min", "1S", "ms", "5000s"].map(parse_time),
            [Some(5000), Some(5), Some(5500), None, Some(1_000_000), None, Some(705_032_704)]
        );
    }

    /// Bursts in ticks and back, as tc 7.2 showed them of tbf and htb.
    #[test]
    fn bursts_in_fine_ticks() {
        let rows = [(41_666, 1514, 567_759, 567_760, 1513), (1_250_000, 1514, 18_925, 18_925, 1514)];
        for (rate, bytes, down, up, shown) in rows {
            let rate = Rate(rate);
            let ticks = [false, true].map(|up| fine_ticks_of(rate, bytes, up));
            assert_eq!((ticks[0].0, ticks[1].0), (down, up), "{bytes}");
            assert_eq!((fine_bytes_of(rate, ticks[0]), fine_bytes_of(rate, ticks[1])), (shown, 1514));
        }
    }

    /// Bursts in ticks and back, as tc 6.1 showed them.
    #[test]
    fn bursts() {
        let cases =
            [(25000, 1500), (103000, 1500), (128000, 1500), (125_000_000, 1600), (125, 614400), (1, 1600)];
        let table = cases.map(|(rate, bytes)| {
            let ticks = ticks_of(Rate(rate), bytes);
            (ticks.0, bytes_of(Rate(rate), ticks))
        });
        let wanted = [
            (937500, 1500),
            (227546, 1499),
            (183093, 1499),
            (187, 1375),
            (1101201408, 8809),
            (3525163520, 225),
        ];
        assert_eq!(table, wanted);
    }

    #[test]
    fn ids() {
        let classes =
            ["1:10", "1:", ":5", "root", "none", "5", "1:1x", "1:1:", ":", "1:-1", "1:10000", "ffff:fff1"];
        let wanted = [
            Some(0x10010),
            Some(0x10000),
            Some(5),
            Some(u32::MAX),
            Some(0),
            Some(5),
            None,
            None,
            Some(0),
            None,
            None,
            Some(0xffff_fff1),
        ];
        assert_eq!(classes.map(|text| parse_classid(text).map(|id| id.0)), wanted);
        let handles = ["1:", "1", "1:zz", "none", "10000:", "zz:", ":", "ffff", "ffffffff", "0x1:"];
        let wanted = [
            Some(0x10000),
            Some(0x10000),
            Some(0x10000),
            Some(0),
            None,
            None,
            None,
            Some(0xffff_0000),
            None,
            Some(0x10000),
        ];
        assert_eq!(handles.map(|text| parse_handle(text).map(|id| id.0)), wanted);
    }
}
