//! The JSON schema of short policies, for editors: made from the table of keys.

use super::apps::APPS;
use super::keys::{self, Key, Section, Takes};
use super::links::{LINKS, OTHER_NAMES};
use super::presets::PRESETS;
use crate::json::quoted;
use std::fmt::Write as _;

/// The schema (JSON Schema, draft 7).
pub fn schema() -> String {
    let mut out = String::from(
        "{\n  \"$schema\": \"http://json-schema.org/draft-07/schema#\",\n  \"title\": \"tidegate short policy\",\n  \"type\": \"object\",\n  \"additionalProperties\": false,\n",
    );
    out.push_str("  \"required\": [\"device\"],\n  \"properties\": {\n");
    for key in keys::keys(Section::Top) {
        let _ = writeln!(out, "    {}: {},", quoted(key.name), property(key));
    }
    out.push_str(
        "    \"classes\": {\n      \"type\": \"object\",\n      \"description\": \"A section for each class.\",\n",
    );
    out.push_str(
        "      \"additionalProperties\": \
    {\n        \"type\": \"object\",\n        \"additionalProperties\": false,\n        \"properties\": {\n",
    );
    let all: Vec<String> = keys::keys(Section::Class)
        .map(|key| format!("          {}: {}", quoted(key.name), property(key)))
        .collect();
    out.push_str(&all.join(",\n"));
    out.push_str("\n        }\n      }\n    }\n  }\n}\n");
    out
}

fn property(key: &Key) -> String {
    let about = format!("{} Takes {}; default: {}.", key.about, key.takes.words(), key.default);
    let words = |words: &[&str]| {
        format!("\"enum\": [{}]", words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", "))
    };
    let pattern = |pattern: &str| format!("\"type\": \"string\", \"pattern\": {}", quoted(pattern));
    let kind = match key.takes {
        Takes::Device => pattern("^[^\\s/:]{1,15}$"),
        Takes::Rate => pattern("^[0-9.]+ ?[kmgKMG](bit|bits)?(/s)?$"),
        Takes::Percent => pattern("^[0-9.]+%$"),
        Takes::ShareOrRate(_) => pattern("^[0-9.]+ ?(%|[kmgKMG](bit|bits)?(/s)?)$"),
        Takes::Size => pattern("^[0-9.]+ ?[kmgKMG][bB]$"),
        Takes::Number(low, high) => format!("\"type\": \"integer\", \"minimum\": {low}, \"maximum\": {high}"),
        Takes::Truth => "\"type\": \"boolean\"".into(),
        Takes::Word(known) => words(known),
        Takes::Preset => words(&PRESETS.map(|preset| preset.name)),
        Takes::Link => {
            let others = OTHER_NAMES.iter().map(|(name, _)| *name);
            words(&LINKS.iter().map(|link| link.name).chain(others).collect::<Vec<_>>())
        }
        Takes::Apps => format!("\"type\": \"array\", \"items\": {{ {} }}", words(&APPS.map(|app| app.name))),
        Takes::Ports | Takes::Dscps => {
            "\"type\": \"array\", \"items\": { \"type\": [\"string\", \"integer\"] }".into()
        }
        Takes::Hosts => "\"type\": \"array\", \"items\": { \"type\": \"string\" }".into(),
    };
    format!("{{ {kind}, \"description\": {} }}", quoted(&about))
}
