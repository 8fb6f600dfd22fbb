//! Rates, times and sizes of links and runs, as options and arguments name them, with the bounds that they
//! have.

use std::time::Duration;
use tidegate_packet::{Nanos, Rate};
use tidegate_syntax::quantity;

/// A time, with its unit.
///
/// # Errors
/// What to write instead.
pub fn time(text: &str) -> Result<Duration, String> {
    quantity::time(text).map(Duration::from_nanos).map_err(|wrong| wrong.to_string())
}

fn some(time: Duration) -> Result<Duration, String> {
    if time.is_zero() { Err("must be greater than zero".into()) } else { Ok(time) }
}

/// A time longer than nothing, with its unit.
///
/// # Errors
/// What to write instead.
pub fn duration(text: &str) -> Result<Duration, String> {
    time(text).and_then(some)
}

/// The same as the simulator counts it.
///
/// # Errors
/// What to write instead.
pub fn run_time(text: &str) -> Result<Nanos, String> {
    duration(text).map(|time| Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
}

/// The lowest rate of a link, bits per second.
const MIN_RATE: u64 = 1_000;

/// The rate of a link.
///
/// ```
/// use tidegate_scenario::quantities::{rate, span};
///
/// assert_eq!(rate("20Mbit/s").unwrap().as_bits(), 20_000_000);
/// assert_eq!(span("2h"), Err("an hour at most".to_owned()));
/// ```
///
/// # Errors
/// What to write instead.
pub fn rate(text: &str) -> Result<Rate, String> {
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
pub fn size(text: &str) -> Result<u32, String> {
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
pub fn span(text: &str) -> Result<Nanos, String> {
    let span = Nanos(u64::try_from(duration(text)?.as_nanos()).unwrap_or(u64::MAX));
    if span > HOUR { Err("an hour at most".into()) } else { Ok(span) }
}

/// How long is measured: in less than a second there are hardly any replies.
///
/// # Errors
/// What to write instead.
pub fn measured(text: &str) -> Result<Nanos, String> {
    let short = "shorter than a second, in which nothing can be measured";
    span(text).and_then(|span| if span < Nanos::secs(1) { Err(short.into()) } else { Ok(span) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_and_a_size_have_one_reading() {
        assert_eq!(rate("20Mbit/s"), Ok(Rate::bits(20_000_000)));
        assert!(rate("20Mbps").is_err_and(|why| why.contains("20mbit") && why.contains("160mbit")));
        assert_eq!(rate("999bit"), Err("a link needs at least 1kbit".into()));
        assert_eq!((size("3000"), size("3kB")), (Ok(3000), Ok(3000)));
        assert!(size("0").is_err() && size("3k").is_err() && size("8GB").is_err());
    }
}
