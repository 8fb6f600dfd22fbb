//! A file's values with their places, whatever read them.

use crate::nft::Span;

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where.
    pub span: Span,
    /// What.
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `"eth0"`.
    Text(String),
    /// `34`.
    Whole(i64),
    /// `1.5`.
    Real(f64),
    /// `true`.
    Truth(bool),
    /// `[ … ]`.
    List(Vec<Node>),
    /// `[section]` or `{ … }`, in the order of the file.
    Table(Vec<Entry>),
    /// Something that no key takes: a date.
    Other(String),
}

impl Value {
    /// What it is, in a word or two.
    pub fn name(&self) -> &'static str {
        match self {
            Value::Text(_) => "a text",
            Value::Whole(_) | Value::Real(_) => "a number",
            Value::Truth(_) => "true or false",
            Value::List(_) => "a list",
            Value::Table(_) => "a section",
            Value::Other(_) => "a date",
        }
    }
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where it stands.
    pub span: Span,
    /// The value.
    pub node: Node,
}
