//! Measuring real links, a file or folder for each command (what is measured is `tidegate_sessions`'), and
//! what they have in common: how a command ends, how the server is reached (`far.rs`).

pub mod calibrate;
pub mod doctor;
mod family;
pub mod far;
pub mod loss;
pub mod measure;
pub mod overhead;
pub mod ping;
pub mod quick;
pub mod record;
pub mod serve;
pub mod verify;

use crate::exit::CliExit;
use anyhow::Context;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use tidegate_inspect::CODE_POINTS;
use tidegate_text::shell_bytes;

/// How a command ends: with its code, or with its error and that one's code.
fn ended(command: &str, done: anyhow::Result<CliExit>) -> ExitCode {
    match done {
        Ok(code) => code.into(),
        Err(error) => {
            crate::output::error_lines(&format!("tidegate {command}: {error:#}"));
            far::code(&error).into()
        }
    }
}

/// Progress, a line on the terminal; nothing in a pipe.
fn tell(quiet: bool, words: &str) {
    if !quiet {
        crate::output::progress_line(words);
    }
}

/// The DS field of a word: a number (the whole byte, as ping's -Q and ping-exp take it) or the name of a
/// code point.
pub(crate) fn ds_field(word: &str) -> anyhow::Result<u8> {
    let named = CODE_POINTS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    if let Some((_, point)) = named {
        return Ok(point << 2);
    }
    let parsed = match word.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16),
        None => word.parse(),
    };
    parsed.with_context(|| {
        format!("`{word}` is not a DS field: 0 to 255 (0xb8), or a name such as EF, AF41, CS1, LE")
    })
}

/// The command line that measures again, as this process was started.
pub(crate) fn again() -> String {
    let words = std::env::args_os().skip(1).map(|word| shell_bytes(word.as_bytes()));
    std::iter::once("tidegate".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ds_fields_by_number_and_by_name() {
        let values: Vec<Option<u8>> =
            ["16", "0xb8", "ef", "AF41", "LE", "256", "xx", ""].map(|word| ds_field(word).ok()).into();
        assert_eq!(values, [Some(16), Some(0xb8), Some(0xb8), Some(0x88), Some(4), None, None, None]);
    }
}
