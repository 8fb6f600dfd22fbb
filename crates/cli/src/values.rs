//! Values of options that several commands take. Every time on a command line is read here.

use std::time::Duration;
use tidegate_packet::Span;

/// The longest time that is read: a week.
const LONGEST: u64 = 7 * 24 * 3_600_000_000_000;
/// How a time is written.
const NOT_A_TIME: &str = "not a time (of a week at most); write 500us, 30ms, 2s, 5m, 1h";

/// What a number without a unit is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bare {
    Seconds,
    Refused,
}

/// A number and its unit, in nanoseconds: `500us`, `30ms`, `1.5s`, `2m` (or `2min`), `1h`; `0` needs none. `None`: it
/// is none, or longer than a week.
pub(crate) fn parse_time(text: &str) -> Option<Span> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic() || c == 'µ').unwrap_or(text.len());
    let (digits, unit) = (text[..split].trim(), &text[split..]);
    let scale: u64 = match unit.to_ascii_lowercase().as_str() {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" if digits == "0" => 1,
        _ => return None,
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || part.len() > 9 || whole.len() + part.len() == 0 {
        return None;
    }
    let fraction = part.parse::<u64>().unwrap_or(0).checked_mul(scale)? / 10_u64.pow(part.len() as u32);
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
    let ns = whole.checked_mul(scale)?.checked_add(fraction)?;
    (ns <= LONGEST).then_some(Span(ns))
}

/// A time for an option, and what its user is told of one that is none.
fn time(text: &str, bare: Bare) -> Result<Duration, String> {
    let has_unit = text.contains(|c: char| c.is_alphabetic());
    let with_unit = format!("{text}s");
    let text = if bare == Bare::Seconds && !has_unit { with_unit.as_str() } else { text };
    match parse_time(text) {
        Some(span) => Ok(Duration::from_nanos(span.0)),
        None if bare == Bare::Refused && text.parse::<f64>().is_ok() => {
            Err("needs a unit; write 500us, 30ms, 2s, 5m, 1h".into())
        }
        None => Err(NOT_A_TIME.into()),
    }
}

fn some(time: Duration) -> Result<Duration, String> {
    if time.is_zero() { Err("must be longer than nothing".into()) } else { Ok(time) }
}

/// A time longer than nothing, with its unit.
///
/// # Errors
/// What it should be.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    time(text, Bare::Refused).and_then(some)
}

/// A time longer than nothing; a number alone is seconds.
///
/// # Errors
/// What it should be.
pub(crate) fn duration_or_seconds(text: &str) -> Result<Duration, String> {
    time(text, Bare::Seconds).and_then(some)
}

/// The same as a number of seconds; nothing is allowed too.
///
/// # Errors
/// What it should be.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    time(text, Bare::Seconds).map(|time| time.as_secs_f64())
}

/// The same as whole seconds, a fraction counting as one more.
///
/// # Errors
/// What it should be.
pub(crate) fn whole_seconds(text: &str) -> Result<u64, String> {
    let time = time(text, Bare::Seconds)?;
    Ok(time.as_secs() + u64::from(time.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_and_its_unit() {
        let us = |n: u64| Some(Span(n * 1000));
        for (text, found) in [
            ("0", us(0)),
            ("500us", us(500)),
            ("50µs", us(50)),
            ("1500ns", Some(Span(1500))),
            ("1.5ms", us(1500)),
            ("2s", us(2_000_000)),
            (".5s", us(500_000)),
            ("2S", us(2_000_000)),
            ("2m", us(120_000_000)),
            ("5min", us(300_000_000)),
            ("1h", us(3_600_000_000)),
            ("5", None),
            ("s", None),
            (".s", None),
            ("1.5.2s", None),
            ("-1s", None),
            ("inf s", None),
            ("200h", None),
            ("5 parsecs", None),
        ] {
            assert_eq!(parse_time(text), found, "{text}");
        }
    }

    #[test]
    fn a_number_alone_is_seconds_where_that_is_allowed() {
        let seconds = Duration::from_secs;
        assert_eq!(duration_or_seconds("2"), Ok(seconds(2)));
        assert_eq!(duration_or_seconds("2m"), Ok(seconds(120)));
        assert_eq!(duration_or_seconds("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Ok(seconds(120)));
        assert!(duration("2").is_err_and(|why| why == "needs a unit; write 500us, 30ms, 2s, 5m, 1h"));
        assert_eq!(
            [duration("0"), duration_or_seconds("0s")],
            [(); 2].map(|()| Err("must be longer than nothing".into()))
        );
        assert_eq!(["0", "1m", "90", "500ms"].map(whole_seconds), [0, 60, 90, 1].map(Ok));
        assert_eq!(super::seconds(".2"), Ok(0.2));
        for wrong in ["", "soon", "-1", "inf", "nan", "1e3", "99999999999999999999"] {
            assert!(duration_or_seconds(wrong).is_err() && whole_seconds(wrong).is_err(), "{wrong}");
        }
    }
}
