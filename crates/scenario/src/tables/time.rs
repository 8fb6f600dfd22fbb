//! Times as people write them.

use tidegate_packet::Nanos;

/// The longest time that is read: a week.
const LONGEST: u64 = 7 * 24 * 3_600_000_000_000;

/// A number and its unit, in nanoseconds: `500us`, `30ms`, `1.5s`, `2m` (or `2min`), `1h`; `0` needs none.
/// `None`: it is none, or longer than a week.
pub fn parse_time(text: &str) -> Option<Nanos> {
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
    (ns <= LONGEST).then_some(Nanos(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_and_its_unit() {
        let us = |n: u64| Some(Nanos(n * 1000));
        for (text, found) in [
            ("0", us(0)),
            ("500us", us(500)),
            ("50µs", us(50)),
            ("1500ns", Some(Nanos(1500))),
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
}
