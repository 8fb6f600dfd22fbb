//! A file's values with their places, whatever read them.

use crate::nft::Span;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct SpannedValue {
    /// The place of the value.
    pub span: Span,
    /// The value itself.
    pub value: TomlValue,
}

/// A value of TOML.
#[derive(Clone, Debug, PartialEq)]
pub enum TomlValue {
    /// `"eth0"`.
    Text(String),
    /// `34`.
    Whole(i64),
    /// `1.5`.
    Real(f64),
    /// `true`.
    Truth(bool),
    /// `[ … ]`.
    List(Vec<SpannedValue>),
    /// `[section]` or `{ … }`, in the order of the file.
    Table(Vec<Entry>),
    /// Something that no key takes: a date.
    Other(String),
}

impl TomlValue {
    /// What it is, in a word or two.
    pub fn name(&self) -> &'static str {
        match self {
            TomlValue::Text(_) => "a text",
            TomlValue::Whole(_) | TomlValue::Real(_) => "a number",
            TomlValue::Truth(_) => "true or false",
            TomlValue::List(_) => "a list",
            TomlValue::Table(_) => "a section",
            TomlValue::Other(_) => "a date",
        }
    }
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key's name.
    pub key: String,
    /// The place of the key.
    pub span: Span,
    /// The value, with its place.
    pub node: SpannedValue,
}
