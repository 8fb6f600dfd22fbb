//! Numbers as C's library reads and prints them: tc's notation is `strtoul`, `strtod` and `%g`.

/// The longest floating-point number that `text` begins with, and what follows it. As `strtod`: blanks, a
/// sign, decimals, an exponent, `0x` for hexadecimal whole numbers, `inf` and `nan`.
pub(crate) fn float_prefix(text: &str) -> Option<(f64, &str)> {
    let trimmed = text.trim_start();
    let (negative, body) = match trimmed.as_bytes().first()? {
        b'-' => (true, &trimmed[1..]),
        b'+' => (false, &trimmed[1..]),
        _ => (false, trimmed),
    };
    let bytes = body.as_bytes();
    let sign = if negative { -1.0 } else { 1.0 };
    if bytes.len() > 2 && bytes[0] == b'0' && (bytes[1] | 0x20) == b'x' && bytes[2].is_ascii_hexdigit() {
        let end = 2 + digits(&bytes[2..], |b| b.is_ascii_hexdigit());
        let value = bytes[2..end].iter().fold(0.0, |sum, b| sum * 16.0 + f64::from(hex_digit(*b)));
        return Some((sign * value, &body[end..]));
    }
    let lower = body.get(..3).map(str::to_ascii_lowercase);
    match lower.as_deref() {
        Some("inf") => return Some((sign * f64::INFINITY, &body[3..])),
        Some("nan") => return Some((f64::NAN, &body[3..])),
        _ => {}
    }
    let mut end = digits(bytes, |b| b.is_ascii_digit());
    let mut count = end;
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(&bytes[end + 1..], |b| b.is_ascii_digit());
        count += fraction;
        if count > 0 {
            end += 1 + fraction;
        }
    }
    if count == 0 {
        return None;
    }
    if bytes.get(end).is_some_and(|b| b | 0x20 == b'e') {
        let signed = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(bytes.get(end + 1 + signed..).unwrap_or(&[]), |b| b.is_ascii_digit());
        if exponent > 0 {
            end += 1 + signed + exponent;
        }
    }
    let value: f64 = body[..end].parse().ok()?;
    Some((sign * value, &body[end..]))
}

/// A whole number that is all of `text`, as `strtoul` with this base: 0 takes `0x` for hexadecimal and a
/// leading 0 for octal.
pub(crate) fn whole(text: &str, base: u32) -> Option<u64> {
    let body = text.trim_start();
    let body = body.strip_prefix('+').unwrap_or(body);
    let hex = body.strip_prefix("0x").or_else(|| body.strip_prefix("0X"));
    let (digits, base) = match (base, hex) {
        (0 | 16, Some(rest)) => (rest, 16),
        (0, None) if body.len() > 1 && body.starts_with('0') => (&body[1..], 8),
        (0, None) => (body, 10),
        (base, _) => (body, base),
    };
    if digits.is_empty() || !digits.bytes().all(|b| (b as char).is_digit(base)) {
        return None;
    }
    u64::from_str_radix(digits, base).ok()
}

/// [`whole`], when it fits 32 bits.
pub(crate) fn u32_in(text: &str, base: u32) -> Option<u32> {
    u32::try_from(whole(text, base)?).ok()
}

/// [`whole`], when it fits 16 bits.
pub(crate) fn u16_in(text: &str, base: u32) -> Option<u16> {
    u16::try_from(whole(text, base)?).ok()
}

/// [`whole`], when it fits 8 bits.
pub(crate) fn u8_in(text: &str, base: u32) -> Option<u8> {
    u8::try_from(whole(text, base)?).ok()
}

/// A signed whole number that is all of `text`.
pub(crate) fn i32_in(text: &str, base: u32) -> Option<i32> {
    let body = text.trim_start();
    let value = match body.strip_prefix('-') {
        Some(rest) if !rest.starts_with(['+', '-', ' ']) => -i64::try_from(whole(rest, base)?).ok()?,
        _ => i64::try_from(whole(body, base)?).ok()?,
    };
    i32::try_from(value).ok()
}

/// `%.{digits}g`.
pub(crate) fn general(value: f64, precision: usize) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if !value.is_finite() {
        return if value.is_nan() {
            "nan".into()
        } else if value < 0.0 {
            "-inf".into()
        } else {
            "inf".into()
        };
    }
    let precision = precision.max(1);
    let scientific = format!("{:.*e}", precision - 1, value);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= precision as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs());
    }
    let decimals = (precision as i32 - 1 - exponent).max(0) as usize;
    without_zeros(&format!("{value:.decimals$}")).to_string()
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

fn digits(bytes: &[u8], is: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|b| is(**b)).count()
}

fn hex_digit(b: u8) -> u8 {
    match b {
        b'0'..=b'9' => b - b'0',
        _ => (b | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats() {
        let table = ["1.5mbit", "-1", "1e3", "1e", "0x10k", ".5", "5.", ".", "", "inf", "+2x", "e3"]
            .map(float_prefix);
        let wanted = [
            Some((1.5, "mbit")),
            Some((-1.0, "")),
            Some((1000.0, "")),
            Some((1.0, "e")),
            Some((16.0, "k")),
            Some((0.5, "")),
            Some((5.0, "")),
            None,
            None,
            Some((f64::INFINITY, "")),
            Some((2.0, "x")),
            None,
        ];
        assert_eq!(table, wanted);
    }

    #[test]
    fn whole_numbers() {
        let table = [
            whole("10", 0),
            whole("0x10", 0),
            whole("010", 0),
            whole("08", 0),
            whole("010", 10),
            whole("0x10", 10),
            whole("0x10", 16),
            whole("ff", 16),
            whole("-1", 0),
            whole("", 0),
            whole("0", 0),
            whole("0x", 0),
            whole("99999999999999999999", 0),
        ];
        let wanted = [
            Some(10),
            Some(16),
            Some(8),
            None,
            Some(10),
            None,
            Some(16),
            Some(255),
            None,
            None,
            Some(0),
            None,
            None,
        ];
        assert_eq!(table, wanted);
        assert_eq!([i32_in("-5", 10), i32_in("--5", 10), i32_in("5k", 0)], [Some(-5), None, None]);
    }

    #[test]
    fn general_notation() {
        let table = [
            general(1580.0, 3),
            general(0.1, 3),
            general(21.184, 3),
            general(99.999, 3),
            general(4.999, 3),
            general(1048579.0, 6),
            general(15140.0, 6),
            general(0.0000457771, 6),
            general(0.0, 3),
        ];
        let wanted = ["1.58e+03", "0.1", "21.2", "100", "5", "1.04858e+06", "15140", "4.57771e-05", "0"];
        assert_eq!(table, wanted);
    }
}
