//! What may go wrong with a script: each trouble with its place, its reason and its remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::place::SourceLine;
use tidegate_text::{excerpt, line};

/// Why a script could not be captured at all.
#[derive(Debug)]
#[non_exhaustive]
pub enum CaptureError {
    /// There is no such file.
    NotFound(PathBuf),
    /// The file cannot be read.
    Unreadable(PathBuf, String),
    /// The path is a directory.
    IsDirectory(PathBuf),
    /// The file is a program, or some other kind of data.
    NotAScript(PathBuf),
    /// The file is longer than the limit, in bytes.
    TooLong(PathBuf, u64),
    /// The lines end in CR LF, as on Windows; the number of the first.
    CarriageReturns(PathBuf, usize),
    /// The shell takes bash's `&>` for the end of a command in the background, which may configure traffic
    /// control: the result would be a matter of chance. The number of the first such line.
    Background(PathBuf, usize),
    /// The program of the `#!` line is not there.
    NoInterpreter {
        /// The script's path.
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
                name(path)
            ),
            Self::Unreadable(path, reason) => {
                write!(f, "{}: the script cannot be read: {reason}", name(path))
            }
            Self::IsDirectory(path) => {
                write!(f, "{}: this is a directory; name the script in it", name(path))
            }
            Self::NotAScript(path) => write!(
                f,
                "{}: this is not text, so it cannot be a script; name the script that configures the link",
                name(path)
            ),
            Self::TooLong(path, limit) => write!(
                f,
                "{}: longer than {limit} bytes, which no script is; name the script that configures the link",
                name(path)
            ),
            Self::CarriageReturns(path, number) => write!(
                f,
                "{0}:{number}: the lines end in CR LF, as on Windows, and a shell takes the CR for part of \
                the last word; convert it: sed -i 's/\\r$//' {0}",
                name(path)
            ),
            Self::Background(path, number) => write!(
                f,
                "{0}:{number}: `&>` is bash's: sh (dash) runs the command before it in the background, and what \
                comes first is a matter of chance; write `>FILE 2>&1`, or let the first line of the script name \
                bash (#!/bin/bash)",
                name(path)
            ),
            Self::NoInterpreter { script, interpreter } if interpreter.ends_with("/rc.common") => write!(
                f,
                "{}:1: the script is run by OpenWrt's {interpreter}, which is not on this machine; in a copy, let \
                the first line be #!/bin/sh, and write a call of `start` as its last line",
                name(script)
            ),
            Self::NoInterpreter { script, interpreter } => write!(
                f,
                "{}:1: the script needs {interpreter}, which is not on this machine; install it, or name \
                another in the first line",
                name(script)
            ),
            Self::Forbidden { reason, remedy } => {
                write!(f, "this system does not let us make a sandbox: {reason}\n{remedy}")
            }
            Self::Sandbox(reason) => write!(f, "the sandbox cannot be made: {reason}"),
            Self::Io { step, reason } => write!(f, "could not {step}: {reason}"),
        }
    }
}

/// A path, safe to print on one line.
fn name(path: &Path) -> String {
    line(&path.to_string_lossy()).to_string()
}

impl std::error::Error for CaptureError {}

/// What is to be done where a script says how it wants to be called.
pub(super) const GIVE_ARGUMENTS: &str = "give it the arguments that it needs behind `--`: FILE -- ARGS";

/// The source of messages about lines that the shell cannot run.
pub(super) const SHELL: &str = "sh";

/// Something wrong that a run showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Where, if it is known.
    pub place: Option<SourceLine>,
    /// The source of the message: the tool, or the shell.
    pub who: String,
    /// What is wrong.
    pub reason: String,
    /// What to do about it, if we know.
    pub remedy: Option<String>,
    /// What kind of trouble it is.
    pub kind: TroubleKind,
}

/// What a trouble means for what is known of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TroubleKind {
    /// A call failed, or the script ended badly.
    Failed,
    /// A command deleted what was not there: the machine is as the script wants it all the same.
    Idle,
    /// The shell could not run a command that is not here: where the policy is to run, it may be.
    NotRun,
    /// The shell reads otherwise what is written for another.
    Dialect,
}

impl Trouble {
    /// Is the machine as the script wants it all the same?
    pub fn is_idle(&self) -> bool {
        self.kind == TroubleKind::Idle
    }

    /// In one line: place, what is wrong, what to do about it.
    pub fn sentence(&self) -> String {
        let place = self.place.as_ref();
        let place = place.map(|place| format!("{}:{}: ", line(&place.file.to_string_lossy()), place.line));
        place.unwrap_or_default() + &self.what_and_remedy()
    }

    /// What is wrong, and what to do about it.
    pub fn what_and_remedy(&self) -> String {
        let remedy = self.remedy.as_ref().map(|remedy| format!("; {remedy}"));
        format!("{}{}", self.reason, remedy.unwrap_or_default())
    }

    /// Does the script say how it wants to be called, so that the remedy is to give it its arguments?
    pub fn asks_for_arguments(&self) -> bool {
        self.remedy.as_deref() == Some(GIVE_ARGUMENTS)
    }
}

impl fmt::Display for Trouble {
    /// `modem.sh:12: tc: reason`, the line, the word underlined, the remedy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{}:{}: ", line(&place.file.to_string_lossy()), place.line)?;
        }
        write!(f, "{}: {}", self.who, self.reason.trim_end())?;
        if let Some(place) = &self.place {
            let number = place.line.to_string();
            let columns = place.columns.clone().unwrap_or(0..0);
            let (shown, from, to) = excerpt(&place.text, (columns.start, columns.end), usize::MAX);
            write!(f, "\n  {number} | {shown}")?;
            if place.columns.is_some() {
                let blank = " ".repeat(number.len());
                write!(
                    f,
                    "\n  {blank} | {}{}",
                    " ".repeat(from),
                    "^".repeat(to.saturating_sub(from).max(1))
                )?;
            }
        }
        if let Some(remedy) = &self.remedy {
            write!(f, "\n  help: {remedy}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(text: &str, columns: Option<std::ops::Range<usize>>) -> String {
        let place = SourceLine {
            file: PathBuf::from("a\nb\x1b[31m.sh"),
            line: 2,
            text: text.to_owned(),
            columns,
            frames: Vec::new(),
            called_from: None,
        };
        let reason = "no such kind".to_owned();
        Trouble { place: Some(place), who: "tc".into(), reason, remedy: None, kind: TroubleKind::Failed }
            .to_string()
    }

    /// A name is on one line, and of a long line only what is around the word is shown.
    #[test]
    fn names_and_lines_are_safe_to_print() {
        let short = trouble("tc\tbogus", Some(3..8));
        assert_eq!(short, "a\\nb\\x1b[31m.sh:2: tc: no such kind\n  2 | tc bogus\n    |    ^^^^^");
        let long = trouble(&format!("{} bogus {}", "x".repeat(5000), "y".repeat(5000)), Some(5001..5006));
        let lines: Vec<&str> = long.lines().collect();
        assert!(lines[1].chars().count() < 200 && lines[1].contains(" bogus "), "{long}");
        let from = lines[2].find('^').expect("it is underlined");
        let at = lines[1].chars().skip(lines[2][..from].chars().count()).take(5).collect::<String>();
        assert_eq!(at, "bogus");
        assert!(trouble(&"z".repeat(5000), None).lines().all(|line| line.chars().count() < 200));
        let missing = CaptureError::NotFound(PathBuf::from("a\nb")).to_string();
        assert!(missing.starts_with("a\\nb: "), "{missing}");
    }
}
