//! Reading what users name: bounded in size and time, see [`tidegate_sys::input_file`].

use anyhow::Context;
use std::io;
use std::path::Path;
use tidegate_sessions::simulated::scenario_text;
use tidegate_sys::input_file;

/// Bytes of the longest policy, scenario, test file.
pub(crate) use tidegate_loader::MAX_POLICY;
/// Bytes of the longest result, recording, trace.
pub(crate) const MAX_RESULT: u64 = 256 << 20;
/// Bytes of the longest file with a token.
pub(crate) const MAX_TOKEN: u64 = 4 << 10;

/// The text of a policy, scenario or test file.
///
/// # Errors
/// It cannot be read, is too long, is no text, or is no file.
pub(crate) fn policy(path: &Path) -> io::Result<String> {
    input_file::read_text(path, MAX_POLICY).map_err(with_remedy)
}

/// The text of a scenario: of a file, or, where there is none of this name, one that is part of the program.
///
/// # Errors
/// As above; the error names the scenarios that there are if the name looks like one of theirs.
pub(crate) fn scenario(path: &Path) -> io::Result<String> {
    scenario_text(path).map_err(with_remedy)
}

/// A file that is not there has a remedy.
fn with_remedy(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(error.kind(), "there is no such file; check the path"),
        _ => error,
    }
}

/// A result's bytes.
///
/// # Errors
/// As above; the error names the file.
pub(crate) fn result(path: &Path) -> anyhow::Result<Vec<u8>> {
    input_file::read(path, MAX_RESULT)
        .map_err(with_remedy)
        .with_context(|| format!("cannot read {}", path.display()))
}

/// A result's text.
///
/// # Errors
/// As above; the error names the file.
pub(crate) fn result_text(path: &Path) -> anyhow::Result<String> {
    input_file::read_text(path, MAX_RESULT)
        .map_err(with_remedy)
        .with_context(|| format!("cannot read {}", path.display()))
}
