//! Values of a file: texts, lists, numbers with their units.

use super::diagnostic::Diagnostic;
use super::keys::Value;
use super::time::parse_time;
use tidegate_packet::Nanos;
use tidegate_syntax::units;
use toml::de::DeValue;

/// A text.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn text<'t>(value: Value<'t>) -> Result<&'t str, Diagnostic> {
    value
        .get_ref()
        .as_str()
        .ok_or_else(|| Diagnostic::new(value.span(), "here a text was expected", "put it in quotes"))
}

/// A list.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn list<'t>(value: Value<'t>) -> Result<&'t [toml::Spanned<DeValue<'t>>], Diagnostic> {
    match value.get_ref() {
        DeValue::Array(items) => Ok(&items[..]),
        _ => Err(Diagnostic::new(
            value.span(),
            "here a list was expected",
            "put it in brackets: [\"…\", \"…\"]",
        )),
    }
}

/// A list of texts; a text alone is a list of one.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn texts<'t>(value: Value<'t>) -> Result<Vec<&'t str>, Diagnostic> {
    match value.get_ref() {
        DeValue::String(one) => Ok(vec![one]),
        _ => list(value)?.iter().map(text).collect(),
    }
}

/// A text or a number, as it would stand on a command line.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn plain(value: Value<'_>) -> Result<String, Diagnostic> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.as_str().to_owned()),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        _ => Err(Diagnostic::new(value.span(), "here a text or a number was expected", "put it in quotes")),
    }
}

/// True or false.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn flag(value: Value<'_>) -> Result<bool, Diagnostic> {
    value
        .get_ref()
        .as_bool()
        .ok_or_else(|| Diagnostic::new(value.span(), "here true or false was expected", "without quotes"))
}

/// A whole number from `low` to `high`, both included.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn number(value: Value<'_>, low: u64, high: u64) -> Result<u64, Diagnostic> {
    let found =
        plain(value)?.replace('_', "").parse::<u64>().ok().filter(|number| (low..=high).contains(number));
    found.ok_or_else(|| {
        Diagnostic::new(
            value.span(),
            "this is no number that fits here",
            format!("write a whole number from {low} to {high}"),
        )
    })
}

/// A time: `30s`, `1.5ms`, `0`.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn span(value: Value<'_>) -> Result<Nanos, Diagnostic> {
    let said = plain(value)?;
    parse_span(&said).ok_or_else(|| {
        Diagnostic::new(
            value.span(),
            format!("`{said}` is no time"),
            "write a number and its unit: 500us, 30ms, 2s, 5min, 1h",
        )
    })
}

/// A time that is longer than nothing.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn some_span(value: Value<'_>) -> Result<Nanos, Diagnostic> {
    match span(value)? {
        Nanos(0) => {
            Err(Diagnostic::new(value.span(), "this must be longer than nothing", "write 500us, 30ms, 2s"))
        }
        span => Ok(span),
    }
}

/// `30s`, in nanoseconds. What ends in `m` may be meant as a size here, so minutes are `min`.
pub fn parse_span(text: &str) -> Option<Nanos> {
    parse_time(text).filter(|_| !text.trim_end().ends_with(['m', 'M']))
}

/// A rate in bits per second: `128kbit`, `16kbps` (bytes), as tc writes them. It is more than 0.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn rate(value: Value<'_>) -> Result<u64, Diagnostic> {
    let said = plain(value)?;
    let unit = said.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    match units::parse_rate(&said).filter(|_| unit != said && !unit.is_empty()) {
        Some(rate) if rate.0 > 0 => Ok(rate.as_bits()),
        Some(_) if said.contains(|c: char| ('1'..='9').contains(&c)) => Err(Diagnostic::new(
            value.span(),
            format!("`{said}` is less than 8bit, one byte per second, the lowest rate"),
            "write what the line carries (128kbit)",
        )),
        Some(_) => Err(Diagnostic::new(
            value.span(),
            "a rate of nothing carries nothing",
            "write what the line carries (128kbit), or let a `loss = \"100%\"` end it",
        )),
        None => Err(Diagnostic::new(
            value.span(),
            format!("`{said}` is no rate"),
            "write 128kbit, 2mbit, 1gbit (bits per second) or 16kbps (bytes per second)",
        )),
    }
}

/// A number of bytes: `24kB` (thousands), `64KiB`, `1500`.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn size(value: Value<'_>) -> Result<u64, Diagnostic> {
    let said = plain(value)?;
    parse_size(&said).ok_or_else(|| {
        Diagnostic::new(
            value.span(),
            format!("`{said}` is no size"),
            "write 1500, 24kB, 4MB (thousands) or 64KiB (1024)",
        )
    })
}

/// `24kB`, in bytes.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let scale: u64 = match text[split..].to_ascii_lowercase().trim_end_matches('b') {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "ki" => 1 << 10,
        "mi" => 1 << 20,
        "gi" => 1 << 30,
        _ => return None,
    };
    let number: f64 = text[..split].trim().parse().ok()?;
    let bytes = number * scale as f64;
    (number >= 0.0 && bytes < 1e15).then_some(bytes as u64)
}

/// A share, 0 to 1: `1%` or `0.01`.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn share(value: Value<'_>) -> Result<f64, Diagnostic> {
    let said = plain(value)?;
    let number = match said.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
        None => said.parse::<f64>().ok(),
    };
    number.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| {
        Diagnostic::new(
            value.span(),
            format!("`{said}` is no share"),
            "write a percentage (1%), or a number from 0 to 1",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes() {
        assert_eq!(["5min", "5m", "5"].map(parse_span), [Some(Nanos(300_000_000_000)), None, None]);
        let sizes = ["1500", "24kB", "1.5k", "4MB", "64KiB", "3000b", "x", "5 parsecs"];
        let bytes =
            [Some(1500), Some(24_000), Some(1500), Some(4_000_000), Some(65_536), Some(3000), None, None];
        assert_eq!(sizes.map(parse_size), bytes);
    }
}
