//! Values of a file: texts, lists, numbers with their units.

use super::diagnostic::Diagnostic;
use super::keys::TableValue;
use tidegate_packet::Nanos;
use tidegate_syntax::quantity::{self, BadQuantity, SizeOrTime};
use toml::de::DeValue;

/// A string.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn text<'t>(value: TableValue<'t>) -> Result<&'t str, Diagnostic> {
    value
        .get_ref()
        .as_str()
        .ok_or_else(|| Diagnostic::new(value.span(), "expected a string", "put it in quotes"))
}

/// A title: a string of one line, because it is printed within lines of ours.
///
/// # Errors
/// The value is no text, or has line breaks or other control characters.
pub fn title(value: TableValue<'_>) -> Result<&str, Diagnostic> {
    match text(value)? {
        title if title.chars().any(char::is_control) => Err(Diagnostic::new(
            value.span(),
            "a title has no line breaks or other control characters",
            "write it in one line; longer texts belong to `about`",
        )),
        title => Ok(title),
    }
}

/// A list.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn list<'t>(value: TableValue<'t>) -> Result<&'t [toml::Spanned<DeValue<'t>>], Diagnostic> {
    match value.get_ref() {
        DeValue::Array(items) => Ok(&items[..]),
        _ => Err(Diagnostic::new(value.span(), "expected a list", "put it in brackets: [\"…\", \"…\"]")),
    }
}

/// A list of texts; a text alone is a list of one.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn texts<'t>(value: TableValue<'t>) -> Result<Vec<&'t str>, Diagnostic> {
    match value.get_ref() {
        DeValue::String(one) => Ok(vec![one]),
        _ => list(value)?.iter().map(text).collect(),
    }
}

/// A string or a number, as it would be written on a command line.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn plain(value: TableValue<'_>) -> Result<String, Diagnostic> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.as_str().to_owned()),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        _ => Err(Diagnostic::new(value.span(), "expected a string or a number", "put it in quotes")),
    }
}

/// True or false.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn flag(value: TableValue<'_>) -> Result<bool, Diagnostic> {
    value
        .get_ref()
        .as_bool()
        .ok_or_else(|| Diagnostic::new(value.span(), "expected true or false", "without quotes"))
}

/// A whole number from `low` to `high`, both included.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn number(value: TableValue<'_>, low: u64, high: u64) -> Result<u64, Diagnostic> {
    let found =
        plain(value)?.replace('_', "").parse::<u64>().ok().filter(|number| (low..=high).contains(number));
    found.ok_or_else(|| {
        Diagnostic::new(
            value.span(),
            "this number is out of range",
            format!("write a whole number from {low} to {high}"),
        )
    })
}

/// What is wrong with a quantity, at its place.
fn bad(value: TableValue<'_>, wrong: BadQuantity) -> Diagnostic {
    Diagnostic::new(value.span(), wrong.reason, wrong.remedy)
}

/// A time: `30s`, `1.5ms`, `0`.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn span(value: TableValue<'_>) -> Result<Nanos, Diagnostic> {
    quantity::time(&plain(value)?).map(Nanos).map_err(|wrong| bad(value, wrong))
}

/// A time that is longer than nothing.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn some_span(value: TableValue<'_>) -> Result<Nanos, Diagnostic> {
    match span(value)? {
        Nanos(0) => {
            Err(Diagnostic::new(value.span(), "this must be greater than zero", "write 500us, 30ms, 2s"))
        }
        span => Ok(span),
    }
}

/// A rate in bits per second: `128kbit`, `20Mbit/s`, `16kB/s`. It is one byte per second at least.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn rate(value: TableValue<'_>) -> Result<u64, Diagnostic> {
    let text = plain(value)?;
    match quantity::rate(&text).map_err(|wrong| bad(value, wrong))? {
        0 => Err(Diagnostic::new(
            value.span(),
            "a rate of zero carries nothing",
            "write what the line carries (128kbit), or let a `loss = \"100%\"` end it",
        )),
        1..8 => Err(Diagnostic::new(
            value.span(),
            format!("`{text}` is less than 8bit, one byte per second, the lowest rate"),
            "write what the line carries (128kbit)",
        )),
        // Rates are whole bytes per second.
        bits => Ok(bits / 8 * 8),
    }
}

/// A number of bytes: `24kB` (thousands), `64KiB`, `1500`.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn size(value: TableValue<'_>) -> Result<u64, Diagnostic> {
    quantity::size(&plain(value)?).map_err(|wrong| bad(value, wrong))
}

/// A number of bytes (`24kB`) or a time (`200ms`).
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn size_or_time(value: TableValue<'_>) -> Result<SizeOrTime, Diagnostic> {
    quantity::size_or_time(&plain(value)?).map_err(|wrong| bad(value, wrong))
}

/// A share, 0 to 1: `1%` or `0.01`.
///
/// # Errors
/// The value is something else: where, and what to write instead.
pub fn share(value: TableValue<'_>) -> Result<f64, Diagnostic> {
    let text = plain(value)?;
    quantity::share(&text).filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| {
        Diagnostic::new(
            value.span(),
            format!("`{text}` is not a share"),
            "write a percentage (1%), or a number from 0 to 1",
        )
    })
}
