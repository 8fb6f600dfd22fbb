//! What other programs' settings come to, whatever program it is.

use crate::short::Problem;

/// What a file of another program comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignPolicy {
    /// The devices that it is for and does not make.
    pub devices: Vec<String>,
    /// The commands that it comes to, in order.
    pub commands: Vec<ForeignCommand>,
    /// What its reader should know.
    pub notes: Vec<Problem>,
}

/// A command that a file comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignCommand {
    /// The tool: `tc`, `iptables` or `ip`.
    pub tool: &'static str,
    /// Its arguments.
    pub words: Vec<String>,
    /// The line of the file that it comes from, from 1.
    pub line: usize,
}

impl ForeignCommand {
    /// A command in words that are known, and hold no others: divided at blanks.
    pub(crate) fn new(tool: &'static str, words: &str, line: usize) -> ForeignCommand {
        ForeignCommand { tool, words: words.split_whitespace().map(str::to_owned).collect(), line }
    }
}
