//! The JSON schemas of the documents that other programs read: docs/schemas, made from the types, or from
//! their description in `documents.txt`. Tests of the command line hold what commands print against them.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use tidegate_measure::experiment::Experiment;
use tidegate_measure::trial::TrialDocument;

/// Where they are, from the root.
const FOLDER: &str = "docs/schemas";

/// The documents that are no type's.
const DOCUMENTS: &str = include_str!("documents.txt");
/// What is said of the member that names the form.
const FORM: &str =
    "The form of the document; its number changes when a member changes its meaning or goes away.";

/// The name of each file, and its content.
fn all() -> Vec<(String, String)> {
    let of_types = [
        (
            "trial".to_owned(),
            schema::<TrialDocument>("tidegate_trial", 2, "The result of `tidegate try --json`."),
        ),
        (
            "experiment".to_owned(),
            schema::<Experiment>(
                "tidegate_experiment",
                2,
                "The result of `tidegate sim`, `lab` and `measure` (`--json`, `-o FILE.json`) and `verify -o FILE.json`.",
            ),
        ),
    ];
    let all = of_types.into_iter().chain(described(DOCUMENTS));
    all.map(|(name, schema)| (format!("{name}.schema.json"), schema)).collect()
}

/// The schemas of described documents, each with its name; see the head of the description.
///
/// # Panics
/// The description is wrong: a mistake in this repository.
fn described(text: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, Value)> = Vec::new();
    // Members are of the document itself, or of the type named last.
    let mut of: Option<String> = None;
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        if let Some(head) = line.strip_prefix("document ") {
            let (head, about) = head.split_once(": ").expect(line);
            let (name, form) = head.split_once(' ').expect(line);
            let mut schema = json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "title": name, "description": about, "type": "object", "required": [],
                "properties": {}, "$defs": {},
            });
            if form != "-" {
                let member = format!("tidegate_{name}");
                let number: u64 = form.parse().expect(line);
                schema["required"] = json!([&member]);
                schema["properties"] = json!({&member: {"description": FORM, "const": number}});
            }
            all.push((name.to_owned(), schema));
            of = None;
            continue;
        }
        let (_, schema) = all.last_mut().expect("a document first");
        if let Some(name) = line.strip_prefix("type ") {
            schema["$defs"][name] = json!({"type": "object", "properties": {}, "required": []});
            of = Some(name.to_owned());
            continue;
        }
        let (member, about) = line.trim().split_once(" -- ").unwrap_or((line.trim(), ""));
        let (name, kind) = member.split_once(": ").expect(line);
        let object = match &of {
            Some(name) => &mut schema["$defs"][name],
            None => schema,
        };
        let mut value = kind_of(kind);
        if !about.is_empty() {
            value["description"] = about.into();
        }
        if !name.ends_with('?') {
            object["required"].as_array_mut().expect("a list").push(name.into());
        }
        object["properties"][name.trim_end_matches('?')] = value;
    }
    all.into_iter().map(|(name, schema)| (name, format!("{schema:#}\n"))).collect()
}

/// The schema of a type as the description writes it.
fn kind_of(text: &str) -> Value {
    let inside = |open: char, close: char| text.strip_prefix(open)?.strip_suffix(close);
    let choices: Vec<&str> = text.split(" | ").collect();
    let values: Vec<Value> = choices.iter().filter_map(|one| serde_json::from_str(one).ok()).collect();
    if !values.is_empty() {
        let types = choices.iter().filter(|one| serde_json::from_str::<Value>(one).is_err());
        let mut all: Vec<Value> = types.map(|one| kind_of(one)).collect();
        let values = json!({"enum": values});
        if all.is_empty() {
            return values;
        }
        all.push(values);
        return json!({"anyOf": all});
    }
    if let Some(of) = inside('[', ']') {
        let parts = parts(of);
        return match parts.as_slice() {
            [one] => json!({"type": "array", "items": kind_of(one)}),
            some => {
                let kinds: Vec<Value> = some.iter().map(|one| kind_of(one)).collect();
                json!({"type": "array", "prefixItems": kinds, "minItems": some.len(), "maxItems": some.len()})
            }
        };
    }
    if let Some(of) = inside('{', '}') {
        return json!({"type": "object", "additionalProperties": kind_of(of)});
    }
    match text.strip_suffix('?') {
        Some(of) => json!({"anyOf": [kind_of(of), {"type": "null"}]}),
        None if text == "any" => json!({}),
        None if text.starts_with(|first: char| first.is_ascii_uppercase()) => {
            json!({"$ref": format!("#/$defs/{text}")})
        }
        None => json!({"type": text}),
    }
}

/// What stands between commas that are in no brackets.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}

/// The schema of a document: that of its type, and the member that names its form.
fn schema<T: JsonSchema>(form: &str, number: u32, about: &str) -> String {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    schema["description"] = Value::from(about);
    // Of a measured run there is one figure more: see `tidegate_analysis::experiment::to_json`.
    if schema["$defs"]["RunRecord"].is_object() {
        schema["$defs"]["RunRecord"]["properties"]["round_trips_per_minute"] =
            json!({"description": "Round trips per minute under load.", "type": ["number", "null"]});
    }
    // Scores follow from a probe's packets: see `tidegate_analysis::outcome`.
    for probe in ["ProbeRecord", "TrialProbe"] {
        if schema["$defs"][probe].is_object() {
            schema["$defs"][probe]["properties"]["qoo"] = outcome_scores();
        }
    }
    let mut properties = Map::new();
    properties.insert(form.to_owned(), json!({"description": FORM, "const": number}));
    if let Some(members) = schema["properties"].as_object() {
        properties.extend(members.clone());
    }
    schema["properties"] = Value::from(properties);
    if let Some(required) = schema["required"].as_array_mut() {
        required.insert(0, form.into());
    }
    format!("{schema:#}\n")
}

/// Quality of Outcome of a probe's packets.
fn outcome_scores() -> Value {
    let limit = "What limits the score: a percentile of the delays (`p99`) or `loss`; null at 100.";
    json!({
        "description": "Quality of Outcome (draft-ietf-ippm-qoo-11) of the packets within the window for \
            tidegate's applications; absent where answers are not the delays of packets, and of fewer than 100.",
        "type": "array",
        "items": {
            "type": "object",
            "required": ["application", "score", "limit"],
            "properties": {
                "application": {"description": "`call`, `meeting`, `game`, `browsing`.", "type": "string"},
                "score": {"description": "0 (unacceptable) to 100 (optimal).", "type": "number"},
                "limit": {"description": limit, "type": ["string", "null"]},
            },
        },
    })
}

/// Is this text that document? The order of its members is no part of it.
fn is_same(text: &str, schema: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    read(text).is_some_and(|published| Some(published) == read(schema))
}

/// Holds the schemas against the files; with TIDEGATE_BLESS set it writes them.
pub(crate) fn run(root: &Path) -> ExitCode {
    let bless = std::env::var_os("TIDEGATE_BLESS").is_some();
    let mut differs = false;
    for (name, schema) in all() {
        let path = root.join(FOLDER).join(&name);
        if bless {
            let written = fs::create_dir_all(root.join(FOLDER)).and_then(|()| fs::write(&path, &schema));
            if let Err(error) = written {
                eprintln!("xtask: {}: {error}", path.display());
                return ExitCode::from(2);
            }
        } else if !is_same(&fs::read_to_string(&path).unwrap_or_default(), &schema) {
            eprintln!(
                "{FOLDER}/{name} is not the types' schema: `TIDEGATE_BLESS=1 cargo xtask schemas` writes it"
            );
            differs = true;
        }
    }
    if differs { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_schemas_are_those_of_the_types() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for (name, schema) in all() {
            let published = fs::read_to_string(root.join(FOLDER).join(&name)).unwrap_or_default();
            assert!(is_same(&published, &schema), "{name}: `TIDEGATE_BLESS=1 cargo xtask schemas` writes it");
            let value: Value = serde_json::from_str(&schema).expect("JSON");
            // A document names its form; only a line of a protocol does not, and an answer may be `{}`.
            let form = format!("tidegate_{}", name.trim_end_matches(".schema.json"));
            let required = value["required"].as_array().unwrap_or_else(|| panic!("{name}"));
            let is_line =
                ["controller.schema.json", "controller_answer.schema.json"].contains(&name.as_str());
            let has_form = required.contains(&form.into());
            assert!(has_form != is_line && (!required.is_empty() || name.contains("answer")), "{name}");
            // Each object that is named is described.
            let names = schema.split("#/$defs/").skip(1).filter_map(|rest| rest.split('"').next());
            for named in names {
                assert!(value["$defs"][named].is_object(), "{name}: {named}");
            }
        }
    }

    #[test]
    fn types_are_read_as_they_are_written() {
        let rows = [
            ("string", json!({"type": "string"})),
            ("Hop?", json!({"anyOf": [{"$ref": "#/$defs/Hop"}, {"type": "null"}]})),
            (
                "[integer?]",
                json!({"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}),
            ),
            ("{any}", json!({"type": "object", "additionalProperties": {}})),
            ("\"a\" | null", json!({"enum": ["a", null]})),
            ("Hop | \"a\"", json!({"anyOf": [{"$ref": "#/$defs/Hop"}, {"enum": ["a"]}]})),
        ];
        for (text, schema) in rows {
            assert_eq!(kind_of(text), schema, "{text}");
        }
        assert_eq!(kind_of("[[string, any]]")["items"]["prefixItems"], json!([{"type": "string"}, {}]));
        assert_eq!(kind_of("[integer]?")["anyOf"][0]["type"], "array");
    }
}
