//! Values of options that several commands take. Every time on a command line is read here.

use std::time::Duration;
use tidegate_scenario::tables::parse_time;

/// How a time is written.
const NOT_A_TIME: &str = "not a time (of a week at most); write 500us, 30ms, 2s, 5m, 1h";

/// What a number without a unit is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bare {
    Seconds,
    Refused,
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

/// Bytes of the longest name that Linux gives a device.
const MAX_DEVICE: usize = 15;

/// The name of a device, as Linux allows it.
///
/// # Errors
/// What a name may be.
pub(crate) fn device(text: &str) -> Result<String, String> {
    let fits = (1..=MAX_DEVICE).contains(&text.len())
        && !text.contains(|letter: char| letter == '/' || letter.is_whitespace() || letter.is_control())
        && text != "."
        && text != "..";
    fits.then(|| text.to_owned()).ok_or_else(|| {
        "not the name of a device: that has 1 to 15 letters, without blanks and slashes".into()
    })
}

/// Whether a value on a command line is a negative number, which no option takes.
pub fn is_negative(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or_default().trim_start_matches('.');
    digits.starts_with(|letter: char| letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_a_name_that_linux_allows() {
        assert!(["eth0", "br-lan", "eth0.10", "fifteen-letters"].iter().all(|name| device(name).is_ok()));
        for wrong in ["", ".", "..", "../../x", "a b", "a\tb", "a\u{1b}b", "sixteen-letters-"] {
            assert!(device(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_negative_number_is_known_from_an_option() {
        assert!(["-1", "-1ms", "-.5", "-0"].iter().all(|word| is_negative(word)));
        assert!(["-o", "--seed", "-", "1", "", "-x1"].iter().all(|word| !is_negative(word)));
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
