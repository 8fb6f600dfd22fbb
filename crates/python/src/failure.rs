//! Errors as Python's `tidegate.Error`: what failed, where, what to do, and the exit code that the command
//! line would have.

use pyo3::prelude::*;
use std::io;
use std::path::{Path, PathBuf};
use tidegate_capture::CaptureError;
use tidegate_inspect::PacketError;
use tidegate_loader::LoadError;
use tidegate_scenario::tables::Diagnostic;

/// `EPERM`: Operation not permitted.
const EPERM: i32 = 1;
/// The exit codes of the command line: wrong input, not permitted, a bug in tidegate.
const INPUT: u8 = 2;
const NOT_PERMITTED: u8 = 4;
const INTERNAL: u8 = 70;

/// Why a call has no result.
#[derive(Debug)]
pub(crate) struct Failure {
    /// As the command line prints it.
    message: String,
    /// The file, and line and column from 1 where they are known.
    place: Option<(PathBuf, Option<usize>, Option<usize>)>,
    remedy: Option<String>,
    exit_code: u8,
}

impl Failure {
    /// Wrong input, in words.
    pub(crate) fn input(message: impl ToString) -> Failure {
        Failure { message: message.to_string(), place: None, remedy: None, exit_code: INPUT }
    }

    /// A bug in tidegate.
    pub(crate) fn internal() -> Failure {
        let message =
            "internal error. This is a bug in tidegate, not a finding about your input: please report it";
        Failure { exit_code: INTERNAL, ..Failure::input(message) }
    }

    /// A file that cannot be read.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Failure {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        let why = if is_missing { "there is no such file".to_owned() } else { error.to_string() };
        let remedy = is_missing.then(|| "check the path".to_owned());
        let exit_code = if error.raw_os_error() == Some(EPERM) { NOT_PERMITTED } else { INPUT };
        let what_to_do = remedy.as_ref().map(|remedy| format!("; {remedy}")).unwrap_or_default();
        Failure {
            place: Some((path.to_owned(), None, None)),
            remedy,
            exit_code,
            ..Failure::input(format!("{}: {why}{what_to_do}", path.display()))
        }
    }

    /// A scenario's text that is wrong.
    pub(crate) fn scenario(wrong: &Diagnostic, path: &Path, text: &str) -> Failure {
        let at = wrong.at.start.min(text.len());
        let begin = text[..at].rfind('\n').map_or(0, |found| found + 1);
        let (line, column) = (text[..at].matches('\n').count() + 1, text[begin..at].chars().count() + 1);
        Failure {
            place: Some((path.to_owned(), Some(line), Some(column))),
            remedy: Some(wrong.remedy.clone()),
            ..Failure::input(wrong.shown(path, text))
        }
    }

    /// As an exception.
    pub(crate) fn into_exception(self, py: Python<'_>) -> PyErr {
        let made = || {
            let class = py.import("tidegate._errors")?.getattr("Error")?;
            class.call1((self.message, self.place, self.remedy, self.exit_code))
        };
        match made() {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Failure {
        let failure = Failure::input(&error);
        match error {
            LoadError::File(path, _) => Failure { place: Some((path, None, None)), ..failure },
            LoadError::Capture(error) => of_capture(error, failure),
            _ => failure,
        }
    }
}

fn of_capture(error: CaptureError, failure: Failure) -> Failure {
    let place = |path: PathBuf, line: Option<usize>| Some((path, line, None));
    match error {
        CaptureError::NotFound(path)
        | CaptureError::Unreadable(path, _)
        | CaptureError::IsDirectory(path)
        | CaptureError::NotAScript(path)
        | CaptureError::TooLong(path, _) => Failure { place: place(path, None), ..failure },
        CaptureError::CarriageReturns(path, line) => Failure { place: place(path, Some(line)), ..failure },
        CaptureError::NoInterpreter { script, .. } => Failure { place: place(script, Some(1)), ..failure },
        CaptureError::Forbidden { remedy, .. } => {
            let remedy = remedy.strip_prefix("help: ").map_or(remedy.clone(), str::to_owned);
            Failure { remedy: Some(remedy), ..failure }
        }
        _ => failure,
    }
}

impl From<PacketError> for Failure {
    fn from(error: PacketError) -> Failure {
        Failure { remedy: Some(error.remedy.clone()), ..Failure::input(error) }
    }
}

impl From<tidegate_sessions::Error> for Failure {
    fn from(error: tidegate_sessions::Error) -> Failure {
        let mut message = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            message += &format!(": {error}");
            cause = error.source();
        }
        let is_refused = error.io().and_then(io::Error::raw_os_error) == Some(EPERM);
        let exit_code = if is_refused { NOT_PERMITTED } else { INPUT };
        Failure { exit_code, place: place_of(&message), ..Failure::input(message) }
    }
}

/// The place that a message begins with: `FILE:LINE:COLUMN: …`, as [`Diagnostic::shown`] writes it.
fn place_of(message: &str) -> Option<(PathBuf, Option<usize>, Option<usize>)> {
    // What stands before it names the case of a sweep.
    let message = message
        .strip_prefix("with ")
        .and_then(|rest| rest.split_once(": "))
        .map_or(message, |(_, rest)| rest);
    let (place, _) = message.lines().next()?.split_once(": ")?;
    let mut parts = place.rsplitn(3, ':');
    let (column, line, file) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?);
    Some((file.into(), Some(line), Some(column)))
}
