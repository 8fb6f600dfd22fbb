//! Findings and their remedies, as rules make them.

use crate::finding::{Edit, Finding, Fix, Level, Rule, Witness};
use crate::reading::{SourceLocation, Step, Word};

/// A finding whose witness is a number.
pub(super) fn finding(
    rule: Rule,
    level: Level,
    place: Option<SourceLocation>,
    what: String,
    because: String,
    witness: String,
) -> Finding {
    Finding { rule, level, place, what, because, witness: Some(Witness::Number(witness)), fix: None }
}

/// A finding that holds on other devices, too.
pub(super) fn on_others((mut finding, devices): (Finding, Vec<String>)) -> Finding {
    if !devices.is_empty() {
        finding.because.push_str(&format!("; so it is on {}", devices.join(", ")));
    }
    finding
}

/// The place of a keyword's value; else of the command.
pub(super) fn at_word(step: &Step, keyword: &str) -> Option<SourceLocation> {
    step.after(keyword).and_then(|word| word.place.clone()).or_else(|| step.place.clone())
}

/// A fix that writes another value for a keyword.
pub(super) fn edit(step: &Step, keyword: &str, value: &str, what: &str) -> Option<Fix> {
    let word = step.after(keyword)?;
    let place = word.place.clone().filter(|_| word.literal);
    let edits = place.map(|place| Edit { place, text: value.to_owned() }).into_iter().collect();
    Some(Fix { what: or_by_hand(word, format!("{what}: {keyword} {value}")), edits })
}

/// A fix that adds words at the end of a command.
pub(super) fn addition(step: &Step, words: &str, what: &str) -> Option<Fix> {
    let last = step.words.last()?;
    let place = last.place.clone().filter(|_| last.literal);
    let edits =
        place.map(|place| Edit { place, text: format!("{} {words}", last.text) }).into_iter().collect();
    Some(Fix { what: or_by_hand(last, format!("{what}: {words}")), edits })
}

/// A remedy; where it is not for `--fix`, with the reason.
pub(super) fn or_by_hand(word: &Word, what: String) -> String {
    match &word.place {
        _ if word.literal => what,
        Some(_) => format!(
            "{what} (by hand: `{}` comes from a variable, a substitution, or a line that is used more than once)",
            word.text
        ),
        None => format!("{what} (by hand: where `{}` is written is not known)", word.text),
    }
}
