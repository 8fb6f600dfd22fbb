//! A place among the tokens of a text, and what may be taken from there.

use super::lex::{Kind, Span, Token};
use super::wrong::Wrong;
use crate::number::whole;

/// How deep brackets may be nested.
const MAX_DEPTH: u32 = 32;

/// A place among tokens.
pub(super) struct Cursor<'t> {
    tokens: &'t [Token],
    at: usize,
    depth: u32,
}

impl<'t> Cursor<'t> {
    /// At the beginning of a text, whose last token is its end.
    pub(super) fn new(tokens: &'t [Token]) -> Cursor<'t> {
        Cursor { tokens, at: 0, depth: 0 }
    }

    pub(super) fn peek(&self) -> &'t Token {
        // The last one is the end of the text.
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    /// The token behind the next ones.
    pub(super) fn ahead(&self, tokens: usize) -> &'t Token {
        &self.tokens[(self.at + tokens).min(self.tokens.len() - 1)]
    }

    pub(super) fn text(&self) -> &'t str {
        &self.peek().text
    }

    pub(super) fn kind(&self) -> Kind {
        self.peek().kind
    }

    pub(super) fn here(&self) -> Span {
        self.peek().span
    }

    /// The place of the last token taken.
    pub(super) fn before(&self) -> Span {
        self.at.checked_sub(1).map(|at| self.tokens[at].span).unwrap_or_default()
    }

    pub(super) fn next(&mut self) -> &'t Token {
        let token = self.peek();
        self.at += 1;
        token
    }

    pub(super) fn step_back(&mut self) {
        self.at = self.at.saturating_sub(1);
    }

    fn is(&self, kind: Kind, text: &str) -> bool {
        self.peek().kind == kind && self.peek().text == text
    }

    pub(super) fn is_word(&self, text: &str) -> bool {
        self.is(Kind::Word, text)
    }

    pub(super) fn is_sign(&self, text: &str) -> bool {
        self.is(Kind::Sign, text)
    }

    pub(super) fn take_word(&mut self, text: &str) -> bool {
        let found = self.is_word(text);
        self.at += usize::from(found);
        found
    }

    pub(super) fn take_sign(&mut self, text: &str) -> bool {
        let found = self.is_sign(text);
        self.at += usize::from(found);
        found
    }

    pub(super) fn want_sign(&mut self, text: &str) -> Result<(), Wrong> {
        if self.take_sign(text) { Ok(()) } else { Err(self.expecting(&format!("'{text}'"))) }
    }

    pub(super) fn want_word(&mut self, text: &str) -> Result<(), Wrong> {
        if self.take_word(text) { Ok(()) } else { Err(self.expecting(text)) }
    }

    /// A name: a word or something in quotes.
    pub(super) fn name(&mut self) -> Result<&'t Token, Wrong> {
        match self.kind() {
            Kind::Word | Kind::Quoted => Ok(self.next()),
            _ => Err(self.expecting("string")),
        }
    }

    /// Something in quotes.
    pub(super) fn quoted(&mut self) -> Result<&'t Token, Wrong> {
        if self.kind() == Kind::Quoted { Ok(self.next()) } else { Err(self.expecting("quoted string")) }
    }

    /// A number, with its place.
    pub(super) fn number(&mut self) -> Result<(u64, Span), Wrong> {
        let found = whole(self.text(), 0).filter(|_| self.kind() == Kind::Word);
        match found {
            Some(value) => Ok((value, self.next().span)),
            None => Err(self.unexpected()),
        }
    }

    pub(super) fn at_end(&self) -> bool {
        matches!(self.kind(), Kind::End | Kind::Eof) || self.is_sign("}")
    }

    fn what(&self) -> String {
        let token = self.peek();
        match token.kind {
            Kind::End if token.text == ";" => "semicolon".into(),
            Kind::Sign if token.text == ":" => "colon".into(),
            Kind::Sign if token.text == "," => "comma".into(),
            Kind::Sign => format!("'{}'", token.text),
            Kind::Quoted => "quoted string".into(),
            Kind::Word if token.text.starts_with(|c: char| c.is_ascii_digit()) => "number".into(),
            Kind::Word => "string".into(),
            Kind::End | Kind::Eof => token.text.clone(),
        }
    }

    pub(super) fn unexpected(&self) -> Wrong {
        Wrong::new(self.here(), format!("syntax error, unexpected {}", self.what()))
    }

    pub(super) fn expecting(&self, what: &str) -> Wrong {
        Wrong::new(self.here(), format!("syntax error, unexpected {}, expecting {what}", self.what()))
    }

    /// Inside a bracket.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Wrong>) -> Result<T, Wrong> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Wrong::later(self.here(), "such deep brackets", "Write it flatter."));
        }
        let read = read(self);
        self.depth -= 1;
        read
    }
}
