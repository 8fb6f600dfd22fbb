//! The JSON schemas of the documents that other programs read: docs/schemas, made from the types.

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

/// The name of each file, and its content.
fn all() -> Vec<(&'static str, String)> {
    vec![
        (
            "trial.schema.json",
            schema::<TrialDocument>("tidegate_trial", 1, "The result of `tidegate try --json`."),
        ),
        (
            "experiment.schema.json",
            schema::<Experiment>(
                "tidegate_experiment",
                1,
                "The result of `tidegate sim`, `lab` and `measure` (`--json`, `-o FILE.json`) and `verify -o FILE.json`.",
            ),
        ),
    ]
}

/// The schema of a document: that of its type, and the member that names its form.
fn schema<T: JsonSchema>(form: &str, number: u32, about: &str) -> String {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    schema["description"] = Value::from(about);
    let mut properties = Map::new();
    let why = "The form of the document; its number changes when a member changes its meaning or goes away.";
    properties.insert(form.to_owned(), json!({"description": why, "const": number}));
    if let Some(members) = schema["properties"].as_object() {
        properties.extend(members.clone());
    }
    schema["properties"] = Value::from(properties);
    if let Some(required) = schema["required"].as_array_mut() {
        required.insert(0, form.into());
    }
    format!("{schema:#}\n")
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
        let path = root.join(FOLDER).join(name);
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
            let published = fs::read_to_string(root.join(FOLDER).join(name)).unwrap_or_default();
            assert!(is_same(&published, &schema), "{name}: `TIDEGATE_BLESS=1 cargo xtask schemas` writes it");
            let value: Value = serde_json::from_str(&schema).expect("JSON");
            assert!(value["required"].as_array().is_some_and(|all| all.len() > 5), "{name}");
        }
    }
}
