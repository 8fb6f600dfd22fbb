//! The link's rates: from the command line, or from a short policy that has them.

use super::options::Options;
use std::io::ErrorKind;
use std::path::Path;
use tidegate_packet::Rate;

/// The rates of a trial's link, up and down.
///
/// # Errors
/// One is missing: which, and where it can be written.
pub(crate) fn of(options: &Options) -> Result<(Rate, Rate), String> {
    if let (Some(up), Some(down)) = (options.up, options.down) {
        return Ok((up, down));
    }
    let (up, down) = of_policy(&options.script)?;
    match (options.up.or(up), options.down.or(down)) {
        (Some(up), Some(down)) => Ok((up, down)),
        (up, down) => {
            let missing = [("--up RATE", up), ("--down RATE", down)].into_iter();
            let missing = missing.filter(|(_, rate)| rate.is_none()).map(|(option, _)| option);
            Err(format!(
                "the link's rate is missing: {}, such as 20mbit (only a short policy with `up` and `down` needs \
                 no such options)",
                missing.collect::<Vec<_>>().join(" ")
            ))
        }
    }
}

/// The rates that a short policy names.
///
/// # Errors
/// There is no such file, or its policy has mistakes.
fn of_policy(file: &Path) -> Result<(Option<Rate>, Option<Rate>), String> {
    let name = file.to_string_lossy();
    let text = match crate::input::policy(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(format!("{name}: there is no such file; check the path"));
        }
        // What else is wrong with a file is said where it is loaded.
        text => text.unwrap_or_default(),
    };
    tidegate_sessions::trial::rates_of(file, &text)
}
