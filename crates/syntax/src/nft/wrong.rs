//! What is wrong in a text, and how nft complains about it.

use super::lex::Span;
use crate::Refusal;

/// Something wrong in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// The place of the error.
    pub(crate) span: Span,
    /// nft's words, or ours.
    pub(crate) what: String,
    /// What to write instead.
    pub(crate) remedy: Option<String>,
}

impl Wrong {
    pub(crate) fn new(span: Span, what: impl Into<String>) -> Wrong {
        Wrong { span, what: what.into(), remedy: None }
    }

    /// nft knows it, tidegate does not.
    pub(crate) fn later(span: Span, what: impl std::fmt::Display, remedy: &str) -> Wrong {
        Wrong {
            span,
            what: format!("tidegate: {what} is not supported in this version"),
            remedy: Some(remedy.into()),
        }
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Wrong {
        self.remedy = Some(remedy.into());
        self
    }
}

/// A complaint about a stretch of a text in nft's form; `file`: its name, if it is not the command line
/// itself.
pub fn complaint(text: &str, file: Option<&str>, span: Span, what: &str) -> Refusal {
    let place = match file {
        Some(file) => format!("{file}:{}:{}-{}: ", span.line, span.from, span.to),
        None => String::new(),
    };
    let line = text.lines().nth(span.line.saturating_sub(1)).or(text.lines().last()).unwrap_or("");
    let before = line.chars().chain(std::iter::repeat(' ')).take(span.from.saturating_sub(1));
    let blank: String = before.map(|letter| if letter == '\t' { '\t' } else { ' ' }).collect();
    let mark = "^".repeat((span.to + 1).saturating_sub(span.from).max(1));
    Refusal::new(1, format!("{place}Error: {what}\n{line}\n{blank}{mark}"))
}

/// [`complaint`] about what was found wrong.
pub(crate) fn refuse(text: &str, file: Option<&str>, wrong: Wrong) -> Refusal {
    let refusal = complaint(text, file, wrong.span, &wrong.what);
    match wrong.remedy {
        Some(remedy) => refusal.remedy(remedy),
        None => refusal,
    }
}
