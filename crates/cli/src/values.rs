//! Values of options that several commands take. Every rate, time and size on a command line is read here.

use std::time::Duration;
pub(crate) use tidegate_scenario::quantities::{duration, measured, rate, run_time, size, span, time};

/// An interval as ping takes it: a number alone is seconds.
///
/// # Errors
/// What to write instead.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    let is_number = text.bytes().all(|letter| letter.is_ascii_digit() || letter == b'.');
    if is_number { duration(&format!("{text}s")) } else { duration(text) }
}

/// A time in whole seconds, a fraction counting as one more.
///
/// # Errors
/// What to write instead.
pub(crate) fn whole_seconds(text: &str) -> Result<u64, String> {
    let time = time(text)?;
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
    fn a_time_has_a_unit() {
        let seconds = Duration::from_secs;
        assert_eq!(duration("2min"), Ok(seconds(120)));
        assert_eq!((whole_seconds("1.5s"), whole_seconds("0")), (Ok(2), Ok(0)));
        assert_eq!((interval(".2"), interval("200ms")), (Ok(Duration::from_millis(200)), duration("200ms")));
        let twice = "`30` has no unit; did you mean 30ms (milliseconds) or 30s (seconds)?";
        assert_eq!((duration("30"), span("30")), (Err(twice.into()), Err(twice.into())));
        assert!(whole_seconds("60").is_err() && duration("0").is_err() && interval("0").is_err());
        assert_eq!(span("2h"), Err("an hour at most".into()));
        for wrong in ["", "soon", "-1s", "1m", "inf", "nan"] {
            assert!(
                duration(wrong).is_err() && whole_seconds(wrong).is_err() && interval(wrong).is_err(),
                "{wrong}"
            );
        }
    }
}
