//! Dates with a time of day, as seconds.

/// Seconds since 1 March 0000, UTC where the text names its distance from it, of a date with a time of day:
/// year, month, day, hour, minute and second in this order, with a fraction and a time zone as ISO 8601 has
/// them, if there are any.
pub(super) fn time_of_day(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut number = || {
        let from = rest.find(|c: char| c.is_ascii_digit())?;
        let digits = &rest[from..];
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        rest = &digits[end..];
        digits[..end].parse::<i64>().ok()
    };
    let (year, month, day) = (number()?, number()?, number()?);
    let (hour, minute, second) = (number()?, number()?, number()?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    if hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    // Days since 1 March 0000: leap days end the year.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
    let (fraction, zone) = fraction(rest)?;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second;
    Some(seconds as f64 + fraction - zone_seconds(zone)? as f64)
}

/// A fraction of a second, and what follows it.
fn fraction(rest: &str) -> Option<(f64, &str)> {
    let Some(digits) = rest.strip_prefix(['.', ',']) else { return Some((0.0, rest)) };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    Some((format!("0.{}", &digits[..end]).parse().ok()?, &digits[end..]))
}

/// By how many seconds a time zone is ahead of UTC: nothing, `Z`, `+02:00`, `-0530`, `+02`.
fn zone_seconds(zone: &str) -> Option<i64> {
    let zone = zone.trim();
    let (sign, digits) = match zone.chars().next() {
        None | Some('Z' | 'z') => return Some(0),
        Some('+') => (1, &zone[1..]),
        Some('-') => (-1, &zone[1..]),
        // A word behind the time, such as `UTC`.
        Some(_) => return zone.eq_ignore_ascii_case("UTC").then_some(0),
    };
    let digits: String = digits.chars().filter(|c| *c != ':').collect();
    let number = |part: &str| part.parse::<i64>().ok();
    let (hours, minutes) = match digits.len() {
        2 => (number(&digits)?, 0),
        4 => (number(&digits[..2])?, number(&digits[2..])?),
        _ => return None,
    };
    Some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_seconds() {
        let day = |a: &str, b: &str| time_of_day(b).zip(time_of_day(a)).map(|(b, a)| b - a);
        assert_eq!(day("2024.02.28_23.59.59", "2024.02.29_00.00.00"), Some(1.0));
        assert_eq!(day("2023.02.28_23.59.59", "2023.03.01_00.00.00"), Some(1.0));
        assert_eq!(day("2023.12.31_23.59.59", "2024-01-01T00:00:00.5"), Some(1.5));
        // The hour that is there twice, when clocks go back.
        assert_eq!(day("2023-10-29T02:59:59+02:00", "2023-10-29T02:00:00.250+01:00"), Some(1.25));
        assert_eq!(day("2023-10-29 00:00:00Z", "2023-10-28 19:30:01-0430"), Some(1.0));
        for wrong in [
            "",
            "soon",
            "2023-10-29",
            "2023-13-01 00:00:00",
            "2023-10-29 00:61:00",
            "2023-10-29 00:00:00+x",
            "2023-10-29 00:00:00 +é",
        ] {
            assert_eq!(time_of_day(wrong), None, "{wrong}");
        }
    }
}
