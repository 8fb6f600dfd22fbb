//! Documents of other programs, whose members' names are data: each value knows its place, and errors name
//! it.

use super::error::{DocumentError, MAX_VALUES, reason, values};
use serde_json::{Map, Value};

pub(crate) type Read<T> = Result<T, DocumentError>;

/// Parses a text that others wrote, whose form `read` knows, and reads it.
///
/// # Errors
///
/// It is no JSON, or `read` finds something wrong.
pub(crate) fn plain_document<T>(
    text: &str,
    origin: &'static str,
    read: impl Fn(&At<'_>) -> Read<T>,
) -> Read<T> {
    if values(text) > MAX_VALUES {
        return Err(DocumentError {
            place: "the document".to_owned(),
            what: format!(
                "more than {MAX_VALUES} values; fewer repeats, or a shorter run, make a smaller one"
            ),
            origin,
        });
    }
    let document: Value = serde_json::from_str(text).map_err(|error| DocumentError {
        place: format!("line {}, column {}", error.line(), error.column()),
        what: format!("no valid JSON ({})", reason(&error)),
        origin,
    })?;
    read(&At { value: &document, place: String::new(), origin })
}

/// A value and its place.
#[derive(Clone)]
pub(crate) struct At<'v> {
    value: &'v Value,
    place: String,
    origin: &'static str,
}

impl<'v> At<'v> {
    pub(crate) fn at(&self, name: &str) -> At<'v> {
        let dot = if self.place.is_empty() { "" } else { "." };
        At { value: &self.value[name], place: format!("{}{dot}{name}", self.place), origin: self.origin }
    }

    pub(crate) fn wrong(&self, what: impl Into<String>) -> DocumentError {
        let place = if self.place.is_empty() { "the document".to_owned() } else { self.place.clone() };
        DocumentError { place, what: what.into(), origin: self.origin }
    }

    pub(crate) fn expected(&self, what: &str) -> DocumentError {
        let found = match self.value {
            Value::Array(items) => format!("a list of {}", items.len()),
            Value::Object(_) => "an object".to_owned(),
            plain => plain.to_string().chars().take(40).collect(),
        };
        self.wrong(format!("{what} expected, found {found}"))
    }

    pub(crate) fn object(&self) -> Read<&'v Map<String, Value>> {
        self.value.as_object().ok_or_else(|| self.expected("an object"))
    }

    pub(crate) fn member<T>(&self, name: &str, read: impl Fn(&At<'v>) -> Read<T>) -> Read<T> {
        if !self.object()?.contains_key(name) {
            return Err(self.at(name).wrong("missing"));
        }
        read(&self.at(name))
    }

    pub(crate) fn list<T>(&self, read: impl Fn(&At<'v>) -> Read<T>) -> Read<Vec<T>> {
        let items = self.value.as_array().ok_or_else(|| self.expected("a list"))?;
        let item =
            |(n, value)| read(&At { value, place: format!("{}[{n}]", self.place), origin: self.origin });
        items.iter().enumerate().map(item).collect()
    }

    pub(crate) fn maybe<T>(&self, read: impl Fn(&At<'v>) -> Read<T>) -> Read<Option<T>> {
        if self.value.is_null() { Ok(None) } else { read(self).map(Some) }
    }

    pub(crate) fn u64(&self) -> Read<u64> {
        self.value.as_u64().ok_or_else(|| self.expected("a whole number of at least 0"))
    }

    pub(crate) fn string(&self) -> Read<String> {
        self.value.as_str().map(str::to_owned).ok_or_else(|| self.expected("a text"))
    }

    /// What a member holds if it is there, else nothing: for members that came with a later version.
    pub(crate) fn since<T: Default>(&self, name: &str, read: impl Fn(&At<'v>) -> Read<T>) -> Read<T> {
        if self.object()?.contains_key(name) { read(&self.at(name)) } else { Ok(T::default()) }
    }

    pub(crate) fn f64(&self) -> Read<f64> {
        self.value.as_f64().ok_or_else(|| self.expected("a number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_file_does_not_become_a_large_document() {
        assert_eq!(values("{\"a,[\\\"{\": [1, 2, []], \"b\": \"x\"}"), 9);
        let dense = format!("[{}0]", "[],".repeat(MAX_VALUES / 2));
        let error = plain_document(&dense, "origin", |_| Ok(())).expect_err("too many");
        assert!(error.what.contains(&format!("more than {MAX_VALUES} values")), "{error}");
    }
}
