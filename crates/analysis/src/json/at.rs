//! Reading JSON documents: each value knows its place, and what is wrong is told with it.

use serde_json::{Map, Value};
use std::fmt;

/// The most values (numbers, texts, lists, members) of a document: each takes some 30 to 150 bytes once it is read, in the file as few
/// as two. The longest scenario here (choke-sweep) writes more than four million.
const MAX_VALUES: usize = 16_000_000;

/// Why a text is no document of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// Where: `runs[3].probes[0].answers[17]`, or line and column of what is no JSON.
    pub place: String,
    /// What is wrong there.
    pub what: String,
    /// What the document should be, and who writes such: ``a trial is written by `tidegate try SCRIPT --json` ``.
    pub origin: &'static str,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.what, self.origin)
    }
}

impl std::error::Error for ReadError {}

pub(crate) type Read<T> = Result<T, ReadError>;

/// Parses a text, sees to it that its form is the one that is read here (the member `form.0` says `form.1`), and reads it.
///
/// # Errors
///
/// It is no JSON, of another form, or `read` finds something wrong.
pub(crate) fn document<T>(
    text: &str,
    form: (&str, u64),
    origin: &'static str,
    read: impl Fn(&At<'_>) -> Read<T>,
) -> Read<T> {
    plain_document(text, origin, |root| {
        let found = root.member(form.0, At::u64)?;
        if found != form.1 {
            return Err(root.at(form.0).wrong(format!("form {found}, where this version reads form {}", form.1)));
        }
        read(root)
    })
}

/// Parses a text that others wrote, whose form `read` knows, and reads it.
///
/// # Errors
///
/// It is no JSON, or `read` finds something wrong.
pub(crate) fn plain_document<T>(text: &str, origin: &'static str, read: impl Fn(&At<'_>) -> Read<T>) -> Read<T> {
    if values(text) > MAX_VALUES {
        return Err(ReadError {
            place: "the document".to_owned(),
            what: format!("more than {MAX_VALUES} values; fewer repeats, or a shorter run, make a smaller one"),
            origin,
        });
    }
    let document: Value = serde_json::from_str(text).map_err(|error| ReadError {
        place: format!("line {}, column {}", error.line(), error.column()),
        what: format!("no valid JSON ({})", reason(&error)),
        origin,
    })?;
    read(&At { value: &document, place: String::new(), origin })
}

/// How many values a text in JSON has at most: what begins one stands behind `[`, `{`, `,` or `:` outside strings.
fn values(text: &str) -> usize {
    let (mut count, mut inside, mut escaped) = (1, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            b'[' | b'{' | b',' | b':' if !inside => count += 1,
            _ => {}
        }
    }
    count
}

/// serde_json's reason, without the place it adds.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

/// A value and where it stands.
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

    pub(crate) fn wrong(&self, what: impl Into<String>) -> ReadError {
        let place = if self.place.is_empty() { "the document".to_owned() } else { self.place.clone() };
        ReadError { place, what: what.into(), origin: self.origin }
    }

    pub(crate) fn expected(&self, what: &str) -> ReadError {
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
        let item = |(n, value)| read(&At { value, place: format!("{}[{n}]", self.place), origin: self.origin });
        items.iter().enumerate().map(item).collect()
    }

    pub(crate) fn maybe<T>(&self, read: impl Fn(&At<'v>) -> Read<T>) -> Read<Option<T>> {
        if self.value.is_null() { Ok(None) } else { read(self).map(Some) }
    }

    pub(crate) fn u64(&self) -> Read<u64> {
        self.value.as_u64().ok_or_else(|| self.expected("a whole number of at least 0"))
    }

    pub(crate) fn u32(&self) -> Read<u32> {
        self.u64()?.try_into().map_err(|_| self.expected("a number of at most 4294967295"))
    }

    pub(crate) fn i64(&self) -> Read<i64> {
        self.value.as_i64().ok_or_else(|| self.expected("a whole number"))
    }

    pub(crate) fn bool(&self) -> Read<bool> {
        self.value.as_bool().ok_or_else(|| self.expected("true or false"))
    }

    pub(crate) fn string(&self) -> Read<String> {
        self.value.as_str().map(str::to_owned).ok_or_else(|| self.expected("a text"))
    }

    pub(crate) fn u8(&self) -> Read<u8> {
        self.u64()?.try_into().map_err(|_| self.expected("a number of at most 255"))
    }

    fn both(&self) -> Read<[At<'v>; 2]> {
        match self.value.as_array().map(Vec::as_slice) {
            Some([a, b]) => {
                let at = |value, n| At { value, place: format!("{}[{n}]", self.place), origin: self.origin };
                Ok([at(a, 0), at(b, 1)])
            }
            _ => Err(self.expected("a pair")),
        }
    }

    /// A pair of a whole number and something else.
    pub(crate) fn pair<T>(&self, second: impl Fn(&At<'v>) -> Read<T>) -> Read<(u64, T)> {
        let [a, b] = self.both()?;
        Ok((a.u64()?, second(&b)?))
    }

    /// A pair of two of a kind.
    pub(crate) fn two<T>(&self, read: impl Fn(&At<'v>) -> Read<T>) -> Read<(T, T)> {
        let [a, b] = self.both()?;
        Ok((read(&a)?, read(&b)?))
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
