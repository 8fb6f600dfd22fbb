//! Rates, times and sizes as people write them: on the command line, in short policies and in scenario files.
//!
//! `units` reads what tc, iptables and nft read. Here, what people and tc read differently (`20Mbps`, `10M`,
//! `24k`), and a number without a unit, is refused with both readings.

use std::fmt;

/// The longest time that is read, ns: a week.
const MAX_TIME: u64 = 7 * 24 * 3_600_000_000_000;
/// The highest rate that is read, bits per second, and the largest size, bytes.
const MAX_AMOUNT: f64 = 1e15;

/// How a remedy begins that offers what may be meant.
const OFFER: &str = "did you mean ";

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadQuantity {
    /// What is wrong, in one line.
    pub reason: String,
    /// What to write instead.
    pub remedy: String,
}

impl BadQuantity {
    fn new(reason: String, remedy: impl Into<String>) -> BadQuantity {
        BadQuantity { reason, remedy: remedy.into() }
    }

    /// Does it offer what may be meant?
    fn is_offer(&self) -> bool {
        self.remedy.starts_with(OFFER)
    }
}

impl fmt::Display for BadQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.reason, self.remedy)
    }
}

impl std::error::Error for BadQuantity {}

/// A rate in bits per second: `128kbit`, `20Mbit/s`, `2MB/s`.
///
/// ```
/// use tidegate_syntax::quantity::rate;
///
/// assert_eq!((rate("20Mbit/s"), rate("2MB/s")), (Ok(20_000_000), Ok(16_000_000)));
/// let twice = rate("20Mbps").unwrap_err().remedy;
/// assert_eq!(
///     twice,
///     "did you mean 20mbit (20 megabits per second) or 160mbit (20 megabytes per second, as tc reads it)?"
/// );
/// ```
///
/// # Errors
/// It is none, or has two readings.
pub fn rate(text: &str) -> Result<u64, BadQuantity> {
    let usual = "write 128kbit, 20mbit or 20Mbit/s (bits per second), or 2MB/s (bytes per second)";
    let wrong = || BadQuantity::new(format!("`{text}` is not a rate"), usual);
    let too_large = || BadQuantity::new(format!("`{text}` is too large"), usual);
    let (digits, unit) = split(text);
    let number = decimal(digits).ok_or_else(wrong)?;
    let per_second = unit.strip_suffix("/s").or(unit.strip_suffix("/S"));
    if let Some(bytes) = per_second.and_then(bytes_unit) {
        return amount(number * bytes * 8.0).ok_or_else(too_large);
    }
    let plain = per_second.unwrap_or(unit).to_ascii_lowercase();
    if let Some(scale) = plain.strip_suffix("bit").and_then(prefix) {
        return amount(number * scale.factor).ok_or_else(too_large);
    }
    let digits = number_text(number);
    if unit.is_empty() {
        return Err(BadQuantity::new(
            format!("`{text}` has no unit"),
            format!(
                "did you mean {digits}mbit, {digits}kbit or {digits}bit ({digits} bits per second, as tc reads it)?"
            ),
        ));
    }
    // `20Mbps`, `20Mb/s`, `20M`: bits to people, bytes to tc.
    let is_of_tc = plain.ends_with("bps");
    let letters = plain.strip_suffix("bps").or(plain.strip_suffix('b')).unwrap_or(&plain);
    let scale = prefix(letters).filter(|_| !plain.is_empty()).ok_or_else(wrong)?;
    amount(number * scale.factor * 8.0).ok_or_else(too_large)?;
    let (bits, more) = (scale.letter.to_ascii_lowercase(), number_text(number * 8.0));
    let by_tc = if is_of_tc { ", as tc reads it" } else { "" };
    Err(BadQuantity::new(
        format!("`{text}` has two readings"),
        format!(
            "did you mean {digits}{bits}bit ({digits} {}bits per second) or {more}{bits}bit ({digits} \
             {}bytes per second{by_tc})?",
            scale.name, scale.name
        ),
    ))
}

/// A time in nanoseconds: `500us`, `30ms`, `1.5s`, `5min`, `1h`; `0` needs no unit.
///
/// ```
/// use tidegate_syntax::quantity::time;
///
/// assert_eq!(time("1.5ms"), Ok(1_500_000));
/// assert_eq!(time("30").unwrap_err().remedy, "did you mean 30ms (milliseconds) or 30s (seconds)?");
/// ```
///
/// # Errors
/// It is none, is longer than a week, or has two readings.
pub fn time(text: &str) -> Result<u64, BadQuantity> {
    let usual = "write 500us, 30ms, 2s, 5min or 1h";
    let wrong = || BadQuantity::new(format!("`{text}` is not a time"), usual);
    let (digits, unit) = split(text);
    let number = number_text(decimal(digits).ok_or_else(wrong)?);
    let scale: u64 = match unit.to_ascii_lowercase().as_str() {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" if number == "0" => 1,
        "" => {
            let remedy = format!("did you mean {number}ms (milliseconds) or {number}s (seconds)?");
            return Err(BadQuantity::new(format!("`{text}` has no unit"), remedy));
        }
        "m" => {
            let remedy = format!("did you mean {number}min (minutes) or {number}ms (milliseconds)?");
            return Err(BadQuantity::new(format!("`{text}` has two readings"), remedy));
        }
        _ => return Err(wrong()),
    };
    let ns = scaled(digits, scale)
        .map_err(|why| BadQuantity::new(format!("`{text}` is not a time: {why}"), usual))?;
    if ns > MAX_TIME {
        return Err(BadQuantity::new(format!("`{text}` is longer than a week"), usual));
    }
    Ok(ns)
}

/// A size in bytes: `1500B`, `24kB` (thousands), `64KiB` (1024), `4MB`. A number alone is bytes.
///
/// ```
/// use tidegate_syntax::quantity::size;
///
/// assert_eq!((size("24kB"), size("64KiB"), size("1500")), (Ok(24_000), Ok(65_536), Ok(1_500)));
/// let twice = size("24k").unwrap_err().remedy;
/// assert_eq!(twice, "did you mean 24kB (24000 bytes) or 24KiB (24576 bytes, as tc reads it)?");
/// ```
///
/// # Errors
/// It is none, or has two readings.
pub fn size(text: &str) -> Result<u64, BadQuantity> {
    let usual = "write 1500B, 24kB, 4MB (thousands) or 64KiB (1024)";
    let wrong = || BadQuantity::new(format!("`{text}` is not a size"), usual);
    let too_large = || BadQuantity::new(format!("`{text}` is too large"), usual);
    let (digits, unit) = split(text);
    let number = decimal(digits).ok_or_else(wrong)?;
    let bytes = match unit {
        "" | "byte" | "bytes" => Some(1.0),
        unit => bytes_unit(unit),
    };
    if let Some(bytes) = bytes {
        return amount(number * bytes).ok_or_else(too_large);
    }
    let lower = unit.to_ascii_lowercase();
    let digits = number_text(number);
    let refused = |why, remedy| BadQuantity::new(format!("`{text}` {why}"), remedy);
    if lower == "b" {
        let as_bits = number / 8.0;
        return Err(match as_bits.fract() == 0.0 {
            true => refused(
                "has two readings",
                format!("did you mean {digits}B (bytes) or {}B ({digits} bits)?", number_text(as_bits)),
            ),
            false => refused("is not a size", format!("did you mean {digits}B (bytes)?")),
        });
    }
    let scale = prefix(lower.strip_suffix('b').unwrap_or(&lower)).ok_or_else(wrong)?;
    amount(number * scale.binary).ok_or_else(too_large)?;
    let (thousands, binary) = (number_text(number * scale.factor), number_text(number * scale.binary));
    let letter = scale.letter;
    // With an `i` it is 1024 to everybody.
    if scale.factor == scale.binary {
        return Err(refused("is not a size", format!("did you mean {digits}{letter}B ({binary} bytes)?")));
    }
    let long = letter.to_ascii_uppercase();
    Err(refused(
        "has two readings",
        format!(
            "did you mean {digits}{letter}B ({thousands} bytes) or {digits}{long}iB ({binary} bytes, as tc reads it)?"
        ),
    ))
}

/// The number of a percentage, which is digits, a decimal point and the sign: of `6.7%` 6.7.
///
/// ```
/// use tidegate_syntax::quantity::percent;
///
/// assert_eq!((percent("50%"), percent("5e0%")), (Some(50.0), None));
/// ```
pub fn percent(text: &str) -> Option<f64> {
    decimal(text.trim().strip_suffix('%')?.trim())
}

/// A share, `6.7%` or as a part of 1 (`0.067`).
pub fn share(text: &str) -> Option<f64> {
    percent(text).map(|percent| percent / 100.0).or_else(|| decimal(text.trim()))
}

/// What a text is where a size and a time are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeOrTime {
    /// Bytes.
    Size(u64),
    /// Nanoseconds.
    Time(u64),
}

/// A size (`24kB`) or a time (`200ms`), such as that of a buffer. A number alone has two readings here.
///
/// # Errors
/// It is neither, or has two readings.
pub fn size_or_time(text: &str) -> Result<SizeOrTime, BadQuantity> {
    let (digits, unit) = split(text);
    if unit.is_empty() && decimal(digits).is_some() {
        let remedy = format!("did you mean {digits}B (bytes) or {digits}ms (milliseconds)?");
        return Err(BadQuantity::new(format!("`{text}` has no unit"), remedy));
    }
    match (size(text), time(text)) {
        (Ok(bytes), _) => Ok(SizeOrTime::Size(bytes)),
        (_, Ok(ns)) => Ok(SizeOrTime::Time(ns)),
        // `2m`: what is offered of both.
        (Err(as_size), Err(as_time)) if as_size.is_offer() && as_time.is_offer() => {
            let sizes = as_size.remedy.trim_end_matches('?').replacen(" or ", ", ", 1);
            let times = as_time.remedy.trim_start_matches(OFFER);
            let reason = format!("`{text}` has more than two readings");
            Err(BadQuantity::new(reason, format!("{sizes}, {times}")))
        }
        (Err(as_size), Err(_)) if as_size.is_offer() => Err(as_size),
        _ => Err(BadQuantity::new(
            format!("`{text}` is neither a size nor a time"),
            "write bytes (24kB, 64KiB) or a time (200ms)",
        )),
    }
}

/// The factors of a unit's prefix.
#[derive(Clone, Copy)]
struct Prefix {
    letter: &'static str,
    name: &'static str,
    factor: f64,
    /// 1024 and its powers.
    binary: f64,
}

/// The prefix of these letters, in lower case.
fn prefix(letters: &str) -> Option<Prefix> {
    let of = |letter, name, factor, binary| Some(Prefix { letter, name, factor, binary });
    match letters {
        "" => of("", "", 1.0, 1.0),
        "k" => of("k", "kilo", 1e3, 1024.0),
        "m" => of("M", "mega", 1e6, 1_048_576.0),
        "g" => of("G", "giga", 1e9, 1_073_741_824.0),
        "t" => of("T", "tera", 1e12, 1_099_511_627_776.0),
        "ki" => of("Ki", "kibi", 1024.0, 1024.0),
        "mi" => of("Mi", "mebi", 1_048_576.0, 1_048_576.0),
        "gi" => of("Gi", "gibi", 1_073_741_824.0, 1_073_741_824.0),
        _ => None,
    }
}

/// The bytes of a unit whose capital B marks it as bytes: `kB`, `KiB`.
fn bytes_unit(unit: &str) -> Option<f64> {
    let letters = unit.strip_suffix('B')?;
    let scale = prefix(&letters.to_ascii_lowercase())?;
    // `mB` is a thousandth of a byte to the SI, and a megabyte to no standard; `kiB` and `KIB` are 1024 to
    // all.
    let is_known =
        letters == "k" || letters == scale.letter.to_ascii_uppercase() || scale.factor == scale.binary;
    is_known.then_some(scale.factor)
}

/// A number and what follows it, without blanks between.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let at = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(text.len());
    (&text[..at], text[at..].trim())
}

/// A decimal number without sign and exponent.
fn decimal(digits: &str) -> Option<f64> {
    let is_plain = digits.bytes().all(|digit| digit.is_ascii_digit() || digit == b'.');
    // Rust's own parser takes care of points that stand alone or twice.
    (is_plain && digits.len() <= 30).then(|| digits.parse().ok())?
}

/// A decimal number times a scale, exactly; or why it has no whole number of nanoseconds.
fn scaled(digits: &str, scale: u64) -> Result<u64, &'static str> {
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let part = part.trim_end_matches('0');
    let long = "longer than a week";
    let fine = "finer than a nanosecond";
    if part.len() > 13 {
        return Err(fine);
    }
    let number = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u64>().ok() };
    let parts = 10_u128.pow(part.len() as u32);
    let fraction = u128::from(number(part).ok_or(fine)?) * u128::from(scale);
    if fraction % parts != 0 {
        return Err(fine);
    }
    let whole = number(whole).and_then(|whole| whole.checked_mul(scale)).ok_or(long)?;
    whole.checked_add(u64::try_from(fraction / parts).map_err(|_| long)?).ok_or(long)
}

fn amount(number: f64) -> Option<u64> {
    (number <= MAX_AMOUNT).then_some(number.round() as u64)
}

/// A number without more places than it needs.
fn number_text(number: f64) -> String {
    let text = format!("{number:.9}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_bits_per_second() {
        let rows = [
            ("128kbit", 128_000),
            ("20mbit", 20_000_000),
            ("20Mbit", 20_000_000),
            ("20 Mbit/s", 20_000_000),
            ("0.8mbit", 800_000),
            ("1.5gbit", 1_500_000_000),
            ("500bit", 500),
            ("1mibit", 1_048_576),
            ("2MB/s", 16_000_000),
            ("16kB/s", 128_000),
            ("1KiB/s", 8_192),
            ("2MB/S", 16_000_000),
            ("1kiB/S", 8_192),
            ("20MBIT/S", 20_000_000),
        ];
        for (text, bits) in rows {
            assert_eq!(rate(text), Ok(bits), "{text}");
        }
        for wrong in [
            "",
            "fast",
            "mbit",
            "-1mbit",
            "1e6bit",
            "infbit",
            "1.2.3mbit",
            "5parsec",
            "2µs",
            "1ps",
            "2Mps",
            "1/s",
        ] {
            assert!(rate(wrong).unwrap_err().reason.ends_with("is not a rate"), "{wrong}");
        }
        for wrong in ["9999999tbit", "9999999Tbps"] {
            assert!(rate(wrong).unwrap_err().reason.ends_with("is too large"), "{wrong}");
        }
    }

    #[test]
    fn a_rate_with_two_readings_is_refused_with_both() {
        let rows = [
            ("20Mbps", "20mbit (20 megabits", "160mbit (20 megabytes per second, as tc reads it)"),
            ("2.5kbps", "2.5kbit (", "20kbit ("),
            ("1000bps", "1000bit (", "8000bit ("),
            ("10M", "10mbit (", "80mbit (10 megabytes per second)"),
            ("10m", "10mbit (", "80mbit ("),
            ("10Mb/s", "10mbit (", "80mbit ("),
            ("10mb", "10mbit (", "80mbit ("),
            ("10mB/s", "10mbit (", "80mbit ("),
            ("8b", "8bit (", "64bit ("),
            ("1KiB", "1kibit (", "8kibit ("),
            ("020.50Mbps", "20.5mbit (", "164mbit ("),
            ("0.0001gbps", "0.0001gbit (", "0.0008gbit ("),
            ("1600", "1600mbit, 1600kbit", "1600bit (1600 bits per second, as tc reads it)"),
        ];
        for (text, one, other) in rows {
            let remedy = rate(text).unwrap_err().remedy;
            assert!(remedy.contains(&format!("did you mean {one}")), "{text}: {remedy}");
            assert!(remedy.contains(&format!(" or {other}")), "{text}: {remedy}");
        }
    }

    #[test]
    fn every_reading_that_is_offered_is_understood() {
        let offers =
            ["20Mbps", "2.5kbps", "1000bps", "10M", "3g", "1600"].map(|text| rate(text).unwrap_err().remedy);
        for word in offers
            .iter()
            .flat_map(|remedy| remedy.split([' ', ',', '?']))
            .filter(|word| word.ends_with("bit"))
        {
            assert!(rate(word).is_ok(), "{word}");
        }
        for (text, offered) in
            [("64kib", "64KiB (65536 bytes)"), ("1Ki", "1KiB (1024 bytes)"), ("3b", "3B (bytes)")]
        {
            assert_eq!(size(text).unwrap_err().remedy, format!("did you mean {offered}?"));
        }
        for text in ["24k", "24kb", "2M", "1.5g", "8b", "3000b", "02mb"] {
            let remedy = size(text).unwrap_err().remedy;
            let offered: Vec<&str> =
                remedy.split([' ', ',', '?']).filter(|word| word.ends_with('B')).collect();
            assert_eq!(offered.len(), 2, "{remedy}");
            assert!(offered.iter().all(|word| size(word).is_ok()), "{remedy}");
        }
        for text in ["5m", "30", "2M"] {
            let remedy = time(text).unwrap_err().remedy;
            let offered =
                remedy.split([' ', ',', '?']).filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
            assert_eq!(offered.filter(|word| time(word).is_ok()).count(), 2, "{remedy}");
        }
    }

    #[test]
    fn a_time_is_a_number_and_its_unit() {
        let us = |n: u64| Ok(n * 1000);
        for (text, found) in [
            ("0", us(0)),
            ("0.0", us(0)),
            ("500us", us(500)),
            ("50µs", us(50)),
            ("1500ns", Ok(1500)),
            ("1.500us", Ok(1500)),
            ("1.0000000000s", us(1_000_000)),
            ("0.0000000001h", Ok(360)),
            ("1.5ms", us(1500)),
            ("2s", us(2_000_000)),
            (".5s", us(500_000)),
            ("2S", us(2_000_000)),
            ("5min", us(300_000_000)),
            ("1h", us(3_600_000_000)),
        ] {
            assert_eq!(time(text), found, "{text}");
        }
        for wrong in
            ["s", ".s", "1.5.2s", "-1s", "inf s", "200h", "5 parsecs", "1.0000000001s", "5", "2m", "2M"]
        {
            assert!(time(wrong).is_err(), "{wrong}");
        }
        assert_eq!(time("200h").unwrap_err().reason, "`200h` is longer than a week");
        for fine in ["0.5ns", "1.0000000001s", "1.00000000000000000001s"] {
            let reason = time(fine).unwrap_err().reason;
            assert_eq!(reason, format!("`{fine}` is not a time: finer than a nanosecond"));
        }
    }

    #[test]
    fn a_size_is_bytes() {
        let rows = [
            ("1500", 1500),
            ("1500B", 1500),
            ("1500 bytes", 1500),
            ("24kB", 24_000),
            ("24KB", 24_000),
            ("1.5kB", 1500),
            ("4MB", 4_000_000),
            ("64KiB", 65_536),
            ("64kiB", 65_536),
            ("64KIB", 65_536),
            ("2GiB", 2 << 30),
        ];
        for (text, bytes) in rows {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for wrong in ["x", "5 parsecs", "-1", "1kbit", "1e3", "24k", "24kb", "2m", "3000b"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_share_is_a_plain_number() {
        assert_eq!(["5%", "12.5 %", "100%"].map(percent), [Some(5.0), Some(12.5), Some(100.0)]);
        assert_eq!(["0.05", "5%"].map(share), [Some(0.05); 2]);
        assert!(
            ["5e0%", "inf%", "nan%", "-5%", "+5%", "%", "5", ""].map(percent).iter().all(Option::is_none)
        );
        assert!(["5e0", "inf", "+1", "-1"].map(share).iter().all(Option::is_none));
    }

    #[test]
    fn a_buffer_is_a_size_or_a_time() {
        assert_eq!(size_or_time("24kB"), Ok(SizeOrTime::Size(24_000)));
        assert_eq!(size_or_time("200ms"), Ok(SizeOrTime::Time(200_000_000)));
        assert_eq!(
            size_or_time("1500").unwrap_err().remedy,
            "did you mean 1500B (bytes) or 1500ms (milliseconds)?"
        );
        assert_eq!(
            size_or_time("2m").unwrap_err().remedy,
            "did you mean 2MB (2000000 bytes), 2MiB (2097152 bytes, as tc reads it), 2min (minutes) or 2ms \
             (milliseconds)?"
        );
        assert!(size_or_time("64kib").unwrap_err().remedy.contains("64KiB"));
        assert!(size_or_time("24k").unwrap_err().remedy.contains("24KiB"));
        assert!(size_or_time("lots").unwrap_err().reason.contains("neither"));
    }
}
