//! What is wrong with a text, and where.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::DeTable;

/// What is wrong with a file: where, why, what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The bytes of the text that it is about.
    pub at: Range<usize>,
    /// What is wrong, in one line.
    pub reason: String,
    /// What to write instead.
    pub remedy: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.reason, self.remedy)
    }
}

impl std::error::Error for Diagnostic {}

impl Diagnostic {
    /// At a place of the file.
    pub fn new(at: Range<usize>, reason: impl Into<String>, remedy: impl Into<String>) -> Diagnostic {
        Diagnostic { at, reason: reason.into(), remedy: remedy.into() }
    }

    /// With its line, as compilers show it.
    pub fn shown(&self, path: &Path, text: &str) -> String {
        let at = self.at.start.min(text.len());
        let begin = text[..at].rfind('\n').map_or(0, |found| found + 1);
        let end = text[at..].find('\n').map_or(text.len(), |found| at + found);
        let line = text[..at].matches('\n').count() + 1;
        let column = text[begin..at].chars().count();
        let wide = text[at..self.at.end.clamp(at, end)].chars().count().max(1);
        let number = line.to_string();
        let blank = " ".repeat(number.len());
        format!(
            "{}:{line}:{}: {}\n  {number} | {}\n  {blank} | {}{}\n  {blank} = {}",
            path.display(),
            column + 1,
            self.reason,
            &text[begin..end],
            " ".repeat(column),
            "^".repeat(wide),
            self.remedy
        )
    }
}

/// The tables of a text.
///
/// # Errors
/// What is no TOML.
pub fn parse(text: &str) -> Result<Spanned<DeTable<'_>>, Diagnostic> {
    DeTable::parse(text).map_err(|error| {
        let at = error.span().unwrap_or(0..0);
        Diagnostic::new(
            at,
            error.message().to_owned(),
            "the file is TOML (toml.io): key = value, texts in quotes",
        )
    })
}
