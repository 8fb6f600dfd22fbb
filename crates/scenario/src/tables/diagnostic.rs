//! What is wrong with a text, and where.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::DeTable;

/// The most characters of a reason: the value that it quotes may be a whole file.
const MAX_REASON: usize = 1000;

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
        let mut reason: String = reason.into();
        if let Some((end, _)) = reason.char_indices().nth(MAX_REASON) {
            reason.truncate(end);
            reason.push('…');
        }
        Diagnostic { at, reason, remedy: remedy.into() }
    }

    /// With its line, as compilers show it.
    pub fn shown(&self, path: &Path, text: &str) -> String {
        let at = self.at.start.min(text.len());
        let begin = text[..at].rfind('\n').map_or(0, |found| found + 1);
        let end = text[at..].find('\n').map_or(text.len(), |found| at + found);
        let line = text[..at].matches('\n').count() + 1;
        let column = text[begin..at].chars().count();
        let wide = text[at..self.at.end.clamp(at, end)].chars().count().max(1);
        // A line may be a whole file.
        let (shown, from, to) =
            tidegate_text::excerpt(&text[begin..end], (column, column + wide), usize::MAX);
        let number = line.to_string();
        let blank = " ".repeat(number.len());
        format!(
            "{}:{line}:{}: {}\n  {number} | {}\n  {blank} | {}{}\n  {blank} = {}",
            path.display(),
            column + 1,
            self.reason,
            shown,
            " ".repeat(from),
            "^".repeat(to.saturating_sub(from).max(1)),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A value may be a whole file: what is shown of its line, and quoted of it, has an end.
    #[test]
    fn long_lines_are_shown_in_part() {
        let long = "x".repeat(3_000_000);
        let text = format!("a = 1\ntitle = \"{long}\"\nb = 2\n");
        let at = 14..text.len() - 7;
        let shown = Diagnostic::new(at, format!("`{long}` is no title"), "write a title")
            .shown(Path::new("f"), &text);
        assert!(shown.len() < 2000 && shown.starts_with("f:2:9: `xxx"), "{}", shown.len());
        let short = Diagnostic::new(4..5, "it is 1", "write 2").shown(Path::new("f"), &text);
        assert_eq!(short, "f:1:5: it is 1\n  1 | a = 1\n    |     ^\n    = write 2");
    }
}
