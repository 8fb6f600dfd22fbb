//! How tc words its complaints about a kind: the kinds were written by different people.

/// How tc words its errors about a kind. Its lines have placeholders for what differs from case to case:
/// `{kind}`, `{name}` of the option, `{text}` for its value, `{word}` that is no option, and `{more}`, lines
/// that come before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorStyle {
    /// Of a value that cannot be read.
    pub illegal: &'static str,
    /// Does the usage follow that?
    pub illegal_usage: bool,
    /// Does it name an option that has several names as it was typed?
    pub as_typed: bool,
    /// Of a word that is no option; the usage follows.
    pub unknown: &'static str,
    /// Of an option given twice.
    pub twice: &'static str,
    /// Where `help` is understood.
    pub help: Help,
    /// A missing value is reported before any other error of its option.
    pub value_first: bool,
}

/// Where `help` is understood among a kind's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Help {
    /// Everywhere.
    Known,
    /// Everywhere, its first letters too.
    Begun,
    /// In the words of a class.
    InClasses,
    /// Nowhere.
    Unknown,
}

impl ErrorStyle {
    /// `Illegal "limit"`; `What is "x"?` and the usage.
    pub const PLAIN: ErrorStyle = ErrorStyle {
        illegal: "{more}Illegal \"{name}\"",
        illegal_usage: false,
        as_typed: false,
        unknown: "What is \"{word}\"?",
        twice: "Double \"{name}\" spec",
        help: Help::Known,
        value_first: false,
    };
}
