//! tidegate's documents: an error in one names its place.

use super::error::{DocumentError, MAX_VALUES, reason, values};
use super::layout::laid_out;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// Letters of a text that is shown because it should be something else.
const SHOWN: usize = 40;

/// A document's text: the member that gives the form, then those of `of`; `more` may add members.
pub(crate) fn text(form: (&str, u64), of: &impl Serialize, more: impl FnOnce(&mut Value)) -> String {
    let mut document = Map::new();
    document.insert(form.0.to_owned(), form.1.into());
    // What is written here has texts for names and no numbers that JSON lacks.
    if let Ok(Value::Object(members)) = serde_json::to_value(of) {
        document.extend(members);
    }
    let mut document = Value::Object(document);
    more(&mut document);
    laid_out(&document)
}

/// Reads a text whose member `form.0` is `form.1`, or a lower number: old names are known to the types.
///
/// # Errors
///
/// It is no JSON, of another form, or a member is missing or not what it should be.
pub(crate) fn document<T: DeserializeOwned>(
    text: &str,
    form: (&'static str, u64),
    origin: &'static str,
) -> Result<T, DocumentError> {
    let wrong = |place: String, what: String| DocumentError { place, what, origin };
    if values(text) > MAX_VALUES {
        let what =
            format!("more than {MAX_VALUES} values; fewer repeats, or a shorter run, make a smaller one");
        return Err(wrong("the document".to_owned(), what));
    }
    let no_json = |error: &serde_json::Error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        wrong(place, format!("no valid JSON ({})", reason(error)))
    };
    let mut reader = serde_json::Deserializer::from_str(text);
    let found = Form(form.0).deserialize(&mut reader).map_err(|error| no_json(&error))?;
    reader.end().map_err(|error| no_json(&error))?;
    match found {
        Found::Number(number) if (1..=form.1).contains(&number) => {}
        Found::Number(number) => {
            let known = if form.1 == 1 { "form 1".to_owned() } else { format!("forms 1 to {}", form.1) };
            let what = format!("form {number}, where this version reads {known}");
            return Err(wrong(form.0.to_owned(), what));
        }
        Found::Other(value) => {
            return Err(wrong(form.0.to_owned(), format!("{WHOLE} expected, found {value}")));
        }
        Found::Missing => return Err(wrong(form.0.to_owned(), missing(text))),
        Found::NoObject(found) => {
            return Err(wrong("the document".to_owned(), format!("an object expected, found {found}")));
        }
    }
    serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(text)).map_err(|error| {
        let (path, what) = (error.path().to_string(), reason(error.inner()));
        let place = if path == "." { String::new() } else { path };
        let (place, what) = in_words(place, &what);
        wrong(if place.is_empty() { "the document".to_owned() } else { place }, what)
    })
}

const WHOLE: &str = "a whole number of at least 0";

/// serde's message in plain words: where, and what.
fn in_words(place: String, what: &str) -> (String, String) {
    let member = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    let named = |prefix: &str| what.strip_prefix(prefix).and_then(|rest| rest.strip_suffix('`'));
    if let Some(name) = named("missing field `") {
        return (member(name), "missing".to_owned());
    }
    if let Some(name) = named("duplicate field `") {
        return (member(name), "it is there twice".to_owned());
    }
    if what == "trailing characters" {
        return (place, "a pair expected, found a longer list".to_owned());
    }
    let kinds = ["invalid type: ", "invalid value: ", "invalid length "];
    let Some((found, expected)) = kinds
        .iter()
        .find_map(|kind| what.strip_prefix(kind))
        .and_then(|rest| rest.rsplit_once(", expected "))
    else {
        return (place, what.to_owned());
    };
    let quoted = |kind: &str| found.strip_prefix(kind).and_then(|rest| rest.strip_suffix('`'));
    let number = quoted("integer `");
    let at_most = |most: u32| match number {
        Some(number) if !number.starts_with('-') => format!("a number of at most {most}"),
        _ => WHOLE.to_owned(),
    };
    let expected = match expected {
        "u8" => at_most(u8::MAX.into()),
        "u16" => at_most(u16::MAX.into()),
        "u32" => at_most(u32::MAX),
        "u64" => WHOLE.to_owned(),
        "i64" => "a whole number".to_owned(),
        "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" => "a text".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a tuple of size 2" => "a pair".to_owned(),
        structure if structure.starts_with("struct ") => "an object".to_owned(),
        other => other.to_owned(),
    };
    let plain = number.or_else(|| quoted("boolean `")).or_else(|| quoted("floating point `"));
    let found = match found {
        "sequence" => "a list".to_owned(),
        "map" => "an object".to_owned(),
        _ if what.starts_with("invalid length ") => format!("a list of {}", found.trim_end_matches(',')),
        _ => plain.or_else(|| found.strip_prefix("string ")).unwrap_or(found).chars().take(SHOWN).collect(),
    };
    (place, format!("{expected} expected, found {found}"))
}

/// Looks for the member that gives the form.
struct Form(&'static str);

/// The value of that member.
enum Found {
    Number(u64),
    Other(Value),
    Missing,
    /// The document is something else, in words.
    NoObject(String),
}

impl<'de> DeserializeSeed<'de> for Form {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Found, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Form {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Found, A::Error> {
        let mut found = Found::Missing;
        while let Some(name) = members.next_key::<String>()? {
            if name != self.0 {
                members.next_value::<IgnoredAny>()?;
                continue;
            }
            let value: Value = members.next_value()?;
            found = value.as_u64().map_or(Found::Other(value), Found::Number);
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Found, A::Error> {
        let mut count = 0;
        while items.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Found::NoObject(format!("a list of {count}")))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Found, E> {
        Ok(Found::NoObject(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Found, E> {
        Ok(Found::NoObject(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Found, E> {
        Ok(Found::NoObject(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Found, E> {
        Ok(Found::NoObject(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Found, E> {
        Ok(Found::NoObject(Value::from(value).to_string().chars().take(SHOWN).collect()))
    }

    fn visit_unit<E>(self) -> Result<Found, E> {
        Ok(Found::NoObject("null".to_owned()))
    }
}

/// A member that must be there, though it may be `null`.
pub(crate) fn required<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(from)
}

/// Why a document's form is missing: it may be the result of another command.
fn missing(text: &str) -> String {
    let members: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).unwrap_or_default();
    let is_form = |name: &&String| {
        let rest = name.strip_prefix("tidegate_").unwrap_or_default();
        !rest.is_empty() && rest.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
    };
    match members.keys().find(is_form) {
        Some(other) => format!("missing; this is a result of another command ({other})"),
        None => "missing".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Inner {
        pair: (u64, Option<u8>),
        text: String,
        real: f64,
        truth: bool,
        list: Vec<i64>,
        #[serde(deserialize_with = "required")]
        maybe: Option<u16>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Whole {
        inner: Vec<Inner>,
    }

    #[test]
    fn serde_errors_are_in_plain_words() {
        let good =
            r#"{"pair": [1, null], "text": "a", "real": 1, "truth": true, "list": [-1], "maybe": null}"#;
        let read = |inner: &str| {
            document::<Whole>(&format!(r#"{{"form": 1, "inner": [{inner}]}}"#), ("form", 1), "origin")
                .map_err(|error| format!("{}: {}", error.place, error.what))
        };
        assert!(read(good).is_ok());
        let cases = [
            (r#""pair": [1, null]"#, r#""pair": [1]"#, "inner[0].pair: a pair expected, found a list of 1"),
            (
                r#""pair": [1, null]"#,
                r#""pair": [1, 2, 3]"#,
                "inner[0].pair: a pair expected, found a longer list",
            ),
            (r#""pair": [1, null]"#, r#""pair": 7"#, "inner[0].pair: a pair expected, found 7"),
            (r#"[1, null]"#, r#"[1, 300]"#, "inner[0].pair[1]: a number of at most 255 expected, found 300"),
            (
                r#"[1, null]"#,
                r#"[1.5, 3]"#,
                "inner[0].pair[0]: a whole number of at least 0 expected, found 1.5",
            ),
            (r#""text": "a""#, r#""text": null"#, "inner[0].text: a text expected, found null"),
            (
                r#""real": 1"#,
                r#""real": "x, expected y""#,
                "inner[0].real: a number expected, found \"x, expected y\"",
            ),
            (r#""truth": true"#, r#""truth": 1"#, "inner[0].truth: true or false expected, found 1"),
            (r#""list": [-1]"#, r#""list": {}"#, "inner[0].list: a list expected, found an object"),
            (r#""list": [-1]"#, r#""list": ["x"]"#, "inner[0].list[0]: a whole number expected, found \"x\""),
            (r#", "maybe": null"#, "", "inner[0].maybe: missing"),
            (
                r#""maybe": null"#,
                r#""maybe": -1"#,
                "inner[0].maybe: a whole number of at least 0 expected, found -1",
            ),
            (r#""truth": true"#, r#""truth": true, "truth": true"#, "inner[0].truth: it is there twice"),
        ];
        for (what, instead, expected) in cases {
            assert_eq!(read(&good.replace(what, instead)).expect_err(expected), expected);
        }
        assert_eq!(read("7").expect_err("no object"), "inner[0]: an object expected, found 7");
    }

    #[test]
    fn a_document_of_another_form_is_none() {
        let cases = [
            ("", "line 1, column 0: no valid JSON (EOF while parsing a value)"),
            ("{} x", "line 1, column 4: no valid JSON (trailing characters)"),
            ("[1, 2]", "the document: an object expected, found a list of 2"),
            ("\"form\"", "the document: an object expected, found \"form\""),
            ("{\"form\": \"x\"}", "form: a whole number of at least 0 expected, found \"x\""),
            ("{\"inner\": []}", "form: missing"),
            ("{\"form\": 2}", "form: form 2, where this version reads form 1"),
        ];
        for (text, expected) in cases {
            let error = document::<Whole>(text, ("form", 1), "origin").expect_err(expected);
            assert_eq!(format!("{}: {}", error.place, error.what), expected);
        }
    }
}
