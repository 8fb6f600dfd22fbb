//! The place that a call came from.

use std::ops::Range;
use std::path::PathBuf;

/// A place in a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine {
    /// The file, as the user named it.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The text of the line.
    pub text: String,
    /// The columns of the word in question, in characters from 0, where one is known.
    pub columns: Option<Range<usize>>,
    /// The commands between this line and the tool, the tool's own last, where functions pass on what they
    /// are given.
    pub frames: Vec<CallFrame>,
    /// For a line inside a function: file and line of the call that led to it, as far as it is known.
    pub called_from: Option<(PathBuf, usize)>,
}

/// A command inside a function that passed on what the function was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFrame {
    /// The function's name.
    pub function: String,
    /// The file, as the user named it.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
}

/// A word of a script that gave an argument of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceWord {
    /// The file, as the user named it.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// Columns in that line, in characters from 0.
    pub columns: Range<usize>,
    /// It is literal: without variable or substitution.
    pub literal: bool,
}
