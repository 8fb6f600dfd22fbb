//! Values of options that several commands take. Every rate, time and size on a command line is read here.

use std::time::Duration;
use tidegate_packet::{Nanos, Rate};
use tidegate_syntax::quantity;

/// A time, with its unit.
///
/// # Errors
/// What to write instead.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    quantity::time(text).map(Duration::from_nanos).map_err(|wrong| wrong.to_string())
}

fn some(time: Duration) -> Result<Duration, String> {
    if time.is_zero() { Err("must be greater than zero".into()) } else { Ok(time) }
}

/// A time longer than nothing, with its unit.
///
/// # Errors
/// What to write instead.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    time(text).and_then(some)
}

/// The same as the simulator counts it.
///
/// # Errors
/// What to write instead.
pub(crate) fn run_time(text: &str) -> Result<Nanos, String> {
    duration(text).map(|time| Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
}

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

/// The lowest rate of a link, bits per second.
const MIN_RATE: u64 = 1_000;

/// The rate of a link.
///
/// # Errors
/// What to write instead.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    match quantity::rate(text) {
        Ok(bits) if bits < MIN_RATE => Err("a link needs at least 1kbit".into()),
        Ok(bits) => Ok(Rate::bits(bits)),
        Err(wrong) => Err(wrong.to_string()),
    }
}

/// A size in bytes, more than nothing.
///
/// # Errors
/// What to write instead.
pub(crate) fn size(text: &str) -> Result<u32, String> {
    let bytes = quantity::size(text).map_err(|wrong| wrong.to_string())?;
    match u32::try_from(bytes) {
        Ok(0) => Err("must be more than nothing".into()),
        Ok(bytes) => Ok(bytes),
        Err(_) => Err("must be less than 4 GiB".into()),
    }
}

/// The longest time that a link or a trial has.
const HOUR: Nanos = Nanos(3_600_000_000_000);

/// A time of an hour at most.
///
/// # Errors
/// What to write instead.
pub(crate) fn span(text: &str) -> Result<Nanos, String> {
    let span = Nanos(u64::try_from(duration(text)?.as_nanos()).unwrap_or(u64::MAX));
    if span > HOUR { Err("an hour at most".into()) } else { Ok(span) }
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

    #[test]
    fn a_rate_and_a_size_have_one_reading() {
        assert_eq!(rate("20Mbit/s"), Ok(Rate::bits(20_000_000)));
        assert!(rate("20Mbps").is_err_and(|why| why.contains("20mbit") && why.contains("160mbit")));
        assert_eq!(rate("999bit"), Err("a link needs at least 1kbit".into()));
        assert_eq!((size("3000"), size("3kB")), (Ok(3000), Ok(3000)));
        assert!(size("0").is_err() && size("3k").is_err() && size("8GB").is_err());
    }
}
