//! What is wrong with the files of a recording, and which random draws differ from the recorded ones.

use std::error::Error;
use std::fmt;
use tidegate_packet::{LinuxVersion, UnknownLinux};

/// Why the text of a recording cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file `link`, and what is wrong with it.
    RecordedLink(String),
    /// The schedule has no line.
    Empty,
    /// The file `linux` names no release that is modelled.
    Linux(UnknownLinux),
    /// The file `linux` names a release between those whose behaviour is known.
    LinuxBetween(LinuxVersion),
    /// A line of a file.
    Line {
        /// The file's name.
        file: &'static str,
        /// The line, from 1.
        line: usize,
        /// The line's text.
        text: String,
        /// What is wrong with it.
        why: String,
    },
}

impl RecordingError {
    pub(crate) fn line(file: &'static str, line: usize, text: &str, why: String) -> RecordingError {
        RecordingError::Line { file, line, text: text.to_owned(), why }
    }
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordingError::RecordedLink(why) => write!(f, "link: {why}"),
            RecordingError::Empty => write!(f, "schedule.csv is empty"),
            RecordingError::Linux(error) => write!(f, "linux: {error}"),
            RecordingError::LinuxBetween(linux) => {
                let [first, last] = LinuxVersion::RECORDED;
                write!(
                    f,
                    "linux: what Linux {linux} does is not known exactly: recordings are of {first} or {last}"
                )
            }
            RecordingError::Line { file, line, text, why } => write!(f, "{file}:{line}: `{text}`: {why}"),
        }
    }
}

impl Error for RecordingError {}

/// How the draws that the engine requested differ from the recorded ones.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RandomError {
    /// A draw of another width was requested. A width is in bits; 65 is a word of a key, 0 a draw below a
    /// bound.
    Width {
        /// Which draw, from 1.
        number: usize,
        /// The recorded width.
        recorded: u8,
        /// The width that was requested.
        requested: u8,
    },
    /// One was requested after all were used.
    None {
        /// The width that was requested.
        requested: u8,
        /// How many were recorded.
        of: usize,
    },
    /// Some were not used.
    Left {
        /// How many.
        left: usize,
        /// How many were recorded.
        of: usize,
    },
}

impl fmt::Display for RandomError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RandomError::Width { number, recorded, requested: asked } => {
                write!(f, "draw {number} has width {recorded}, {asked} was asked for")
            }
            RandomError::None { requested: asked, of } => {
                write!(f, "a draw of width {asked} was asked for after all {of} were used")
            }
            RandomError::Left { left, of } => write!(f, "{left} of {of} recorded draws were not used"),
        }
    }
}

impl Error for RandomError {}
