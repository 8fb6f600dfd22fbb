//! What may go wrong with a script: each trouble with its place, its reason and its remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::place::SourceLine;

/// Why a script could not be captured at all.
#[derive(Debug)]
#[non_exhaustive]
pub enum CaptureError {
    /// There is no such file.
    NotFound(PathBuf),
    /// The file cannot be read.
    Unreadable(PathBuf, String),
    /// A directory stands there.
    IsDirectory(PathBuf),
    /// The file is a program, or some other kind of data.
    NotAScript(PathBuf),
    /// The file is longer than the limit, in bytes.
    TooLong(PathBuf, u64),
    /// The lines end in CR LF, as on Windows; the number of the first.
    CarriageReturns(PathBuf, usize),
    /// The program of the `#!` line is not there.
    NoInterpreter {
        /// The script.
        script: PathBuf,
        /// The missing program.
        interpreter: String,
    },
    /// Namespaces are forbidden to us.
    Forbidden {
        /// What was refused, and why.
        reason: String,
        /// What to change.
        remedy: String,
    },
    /// The sandbox could not be set up, for another reason.
    Sandbox(String),
    /// A system call failed.
    Io {
        /// What was being done.
        step: &'static str,
        /// Why it failed.
        reason: String,
    },
}

impl CaptureError {
    pub(super) fn read(path: &Path, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound(path.to_owned()),
            io::ErrorKind::PermissionDenied => {
                Self::Unreadable(path.to_owned(), format!("{error}; check its permissions with `ls -l`"))
            }
            _ => Self::Unreadable(path.to_owned(), error.to_string()),
        }
    }

    pub(super) fn io(step: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::Io { step, reason: error.to_string() }
    }
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(path) => write!(
                f,
                "{}: there is no such script; check the path (it is taken from the current directory)",
                path.display()
            ),
            Self::Unreadable(path, reason) => {
                write!(f, "{}: the script cannot be read: {reason}", path.display())
            }
            Self::IsDirectory(path) => {
                write!(f, "{}: this is a directory; name the script in it", path.display())
            }
            Self::NotAScript(path) => write!(
                f,
                "{}: this is not a text, so it cannot be a script; name the script that configures the link",
                path.display()
            ),
            Self::TooLong(path, limit) => write!(
                f,
                "{}: longer than {limit} bytes, which no script is; name the script that configures the link",
                path.display()
            ),
            Self::CarriageReturns(path, line) => write!(
                f,
                "{0}:{line}: the lines end in CR LF, as on Windows, and a shell takes the CR for part of \
                the last word; convert it: sed -i 's/\\r$//' {0}",
                path.display()
            ),
            Self::NoInterpreter { script, interpreter } => write!(
                f,
                "{}:1: the script asks for {interpreter}, which is not on this machine; install it, or name \
                another in the first line",
                script.display()
            ),
            Self::Forbidden { reason, remedy } => {
                write!(f, "this system does not let us make a sandbox: {reason}\n{remedy}")
            }
            Self::Sandbox(reason) => write!(f, "the sandbox cannot be made: {reason}"),
            Self::Io { step, reason } => write!(f, "could not {step}: {reason}"),
        }
    }
}

impl std::error::Error for CaptureError {}

/// Something wrong that a run showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Where, if it is known.
    pub place: Option<SourceLine>,
    /// Who complains: the tool, or the shell.
    pub who: String,
    /// What is wrong.
    pub reason: String,
    /// What to do about it, if we know.
    pub remedy: Option<String>,
    /// A command deleted what was not there: the machine is as the script wants it all the same.
    pub idle: bool,
}

impl fmt::Display for Trouble {
    /// `modem.sh:12: tc: reason`, the line, the word underlined, the remedy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{}:{}: ", place.file.display(), place.line)?;
        }
        write!(f, "{}: {}", self.who, self.reason.trim_end())?;
        if let Some(place) = &self.place {
            let number = place.line.to_string();
            // Tabs would move the underline away from its word.
            write!(f, "\n  {number} | {}", place.text.replace('\t', " ").trim_end())?;
            if let Some(columns) = &place.columns {
                let blank = " ".repeat(number.len());
                write!(f, "\n  {blank} | {}{}", " ".repeat(columns.start), "^".repeat(columns.len().max(1)))?;
            }
        }
        if let Some(remedy) = &self.remedy {
            write!(f, "\n  remedy: {remedy}")?;
        }
        Ok(())
    }
}
