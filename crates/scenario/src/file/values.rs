//! `[values]`: named values that the texts of a scenario take in, as `${name}`.
//!
//! A parameter that stands in many places (a rate in a policy and in its link) has one place, which a sweep
//! and `--set` can change.

use super::named::named;
use crate::tables::{self, Diagnostic, Keys};
use std::borrow::Cow;
use std::ops::Range;
use toml::de::DeValue;

/// A text with its values filled in, and where they were.
pub(super) struct Filled<'t> {
    pub(super) text: Cow<'t, str>,
    /// Each place in the original text, and how long what stands there now is; in order.
    places: Vec<(Range<usize>, usize)>,
}

impl Filled<'_> {
    /// A diagnostic about the filled text as one about the original.
    pub(super) fn original(&self, wrong: Diagnostic) -> Diagnostic {
        let at = self.before(wrong.at.start)..self.before(wrong.at.end);
        Diagnostic { at, ..wrong }
    }

    /// Where a byte of the filled text comes from; of a value, its name.
    fn before(&self, at: usize) -> usize {
        let mut moved = 0_isize;
        for (place, length) in &self.places {
            let begin = place.start.saturating_add_signed(moved);
            if at < begin {
                break;
            }
            if at < begin + length {
                return place.start;
            }
            moved += *length as isize - place.len() as isize;
        }
        at.saturating_add_signed(-moved)
    }
}

/// Fills the values of `[values]` in.
///
/// # Errors
/// A value that is no plain word, one that nothing uses, and a name that is not defined.
pub(super) fn fill(text: &str) -> Result<Filled<'_>, Diagnostic> {
    let parsed = tables::parse(text)?;
    let mut keys = Keys::new(parsed.get_ref(), 0..0);
    let Some(table) = keys.get("values") else {
        return Ok(Filled { text: Cow::Borrowed(text), places: Vec::new() });
    };
    let values: Vec<(&str, Range<usize>, String)> = named(Some(table))?
        .into_iter()
        .map(|(name, value)| {
            let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
            if !is_name || name.is_empty() {
                let how = "names have letters, digits, `-` and `_`";
                return Err(Diagnostic::new(value.span(), format!("`{name}` is no name of a value"), how));
            }
            let written = match value.get_ref() {
                DeValue::String(word) => word.to_string(),
                DeValue::Integer(number) => number.to_string(),
                DeValue::Float(number) => number.to_string(),
                _ => String::new(),
            };
            let breaks = |c: char| c.is_control() || "\"'\\$".contains(c);
            if written.is_empty() || written.contains(breaks) {
                let how = "a value is a number or a word without quotes, `$` and backslashes: \"10mbit\"";
                return Err(Diagnostic::new(value.span(), format!("{name} has no such value"), how));
            }
            Ok((name, value.span(), written))
        })
        .collect::<Result<_, _>>()?;
    let (mut filled, mut places, mut copied) = (String::new(), Vec::new(), 0);
    let mut used = vec![false; values.len()];
    for (at, _) in text.match_indices("${") {
        let Some(length) = text[at..].find('}') else { continue };
        let (place, name) = (at..at + length + 1, &text[at + 2..at + length]);
        let Some(found) = values.iter().position(|(known, ..)| *known == name) else {
            let known: Vec<&str> = values.iter().map(|(known, ..)| *known).collect();
            return Err(Diagnostic::new(
                place,
                format!("no value is called `{name}`"),
                format!("[values] has {}", known.join(", ")),
            ));
        };
        let value = &values[found].2;
        used[found] = true;
        filled.push_str(&text[copied..place.start]);
        filled.push_str(value);
        copied = place.end;
        places.push((place, value.len()));
    }
    if let Some(((name, at, _), _)) = values.iter().zip(&used).find(|(_, used)| !**used) {
        let how = format!("write ${{{name}}} in the texts that it belongs in");
        return Err(Diagnostic::new(at.clone(), format!("nothing uses the value {name}"), how));
    }
    filled.push_str(&text[copied..]);
    Ok(Filled { text: Cow::Owned(filled), places })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[values]\ntarget = '5ms'\nn = 3\n[x]\na = 'codel target ${target}'\nb = \
        '${n} of ${target}'\nc = 'wrong'\n";

    #[test]
    fn names_become_values_and_places_are_found_again() {
        let filled = fill(TEXT).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert!(filled.text.contains("a = 'codel target 5ms'\nb = '3 of 5ms'\nc"));
        for word in ["[x]", "'wrong'", "a = ", "b = "] {
            let now = filled.text.find(word).unwrap_or_default();
            let was = filled.original(Diagnostic::new(now..now + word.len(), "", ""));
            assert_eq!(&TEXT[was.at], word);
        }
        let inside = filled.text.find("5ms'\nb").unwrap_or_default();
        let was = filled.original(Diagnostic::new(inside + 1..inside + 2, "", "")).at;
        assert!(TEXT[was.start..].starts_with("${target}'\nb"));
        assert!(matches!(fill("a = '${b}'").map(|f| f.text), Ok(Cow::Borrowed(_))));
    }

    #[test]
    fn what_is_no_value_has_its_place() {
        let wrong = |text: &str| match fill(text) {
            Err(wrong) => format!("{} at {}", wrong.reason, &text[wrong.at]),
            Ok(filled) => filled.text.into_owned(),
        };
        assert_eq!(wrong("[values]\na = 1\n[x]\nb = '${c}'"), "no value is called `c` at ${c}");
        assert_eq!(wrong("[values]\na = 1\nb = 2\n[x]\nc = '${a}'"), "nothing uses the value b at 2");
        assert_eq!(wrong("[values]\na = \"x'y\"\n"), "a has no such value at \"x'y\"");
        assert_eq!(wrong("[values]\na = [1]\n"), "a has no such value at [1]");
    }
}
