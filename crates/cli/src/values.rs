//! Values of options that several commands take.

use std::time::Duration;
use tidegate_lang::units;

/// A time as tc writes it: 30ms, 2s.
///
/// # Errors
/// What it should be.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    match units::parse_time(text) {
        Some(0) => Err("must be longer than nothing".into()),
        Some(micros) => Ok(Duration::from_micros(micros.into())),
        None => Err("not a time; write 30ms, 2s, 500us".into()),
    }
}
