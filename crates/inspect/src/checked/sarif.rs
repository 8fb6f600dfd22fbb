//! Findings as SARIF 2.1.0 (OASIS): what code hosts and editors show beside the lines.

use super::path::CommandPath;
use super::result::Checked;
use crate::finding::{Edit, Finding, Rule, Witness};
use crate::reading::{Frame, PolicyModel, SourceLocation};
use serde_json::{Value, json};

/// The findings as a SARIF log, with the end of line.
pub fn to_sarif(checked: &Checked) -> String {
    let rules: Vec<Value> = Rule::ALL
        .iter()
        .map(|rule| json!({ "id": rule.id(), "name": rule.name(), "shortDescription": { "text": rule.about() } }))
        .collect();
    let results: Vec<Value> =
        checked.findings.iter().map(|finding| result(&checked.reading, finding)).collect();
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "tidegate",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    format!("{document:#}\n")
}

fn result(reading: &PolicyModel, finding: &Finding) -> Value {
    let shown = match &finding.witness {
        Some(Witness::Number(number)) => format!(" Shown: {number}."),
        Some(Witness::Packet { packet, went }) => format!(" Shown: `{packet}` goes to {went}."),
        None => String::new(),
    };
    let mut value = json!({
        "ruleId": finding.rule.id(),
        "ruleIndex": Rule::ALL.iter().position(|rule| *rule == finding.rule),
        "level": finding.level.name(),
        "message": { "text": format!("{}: {}.{shown}", finding.what, finding.because) },
    });
    // A result without a place is about the files as a whole.
    let file = finding.place.as_ref().map_or(0, |place| place.file);
    if let Some(source) = reading.sources.get(file) {
        let mut location = json!({ "artifactLocation": { "uri": uri(&source.name) } });
        if let Some(place) = &finding.place {
            location["region"] = region(place);
        }
        value["locations"] = json!([{ "physicalLocation": location }]);
    }
    let CommandPath { called_from, used_in, frames } = CommandPath::of(reading, finding);
    if !called_from.is_empty() || !used_in.is_empty() {
        let related = |(place, what): (&SourceLocation, &str)| {
            json!({
                "physicalLocation": physical(reading, place),
                "message": { "text": what },
            })
        };
        let used = used_in.iter().map(|place| (place, "used here"));
        let called = called_from.iter().map(|place| (place, "called from here"));
        value["relatedLocations"] = used.chain(called).map(related).collect();
    }
    if !frames.is_empty() {
        let frames: Vec<Value> = frames.iter().rev().map(|frame| frame_of(reading, frame)).collect();
        value["stacks"] =
            json!([{ "message": { "text": "from the tool's call outwards" }, "frames": frames }]);
    }
    if let Some(fix) = finding.fix.as_ref().filter(|fix| !fix.edits.is_empty()) {
        let changes: Vec<Value> = fix.edits.iter().map(|edit| change(reading, edit)).collect();
        value["fixes"] = json!([{ "description": { "text": fix.what }, "artifactChanges": changes }]);
    }
    value
}

/// A function that the command passed through.
fn frame_of(reading: &PolicyModel, frame: &Frame) -> Value {
    json!({ "location": {
        "physicalLocation": physical(reading, &frame.place),
        "logicalLocations": [{ "name": frame.function, "kind": "function" }],
    }})
}

/// A place as SARIF calls it.
fn physical(reading: &PolicyModel, place: &SourceLocation) -> Value {
    let name = reading.sources.get(place.file).map_or("", |source| source.name.as_str());
    json!({ "artifactLocation": { "uri": uri(name) }, "region": region(place) })
}

fn change(reading: &PolicyModel, edit: &Edit) -> Value {
    let source = &reading.sources[edit.place.file];
    let mut region = region(&edit.place);
    let mut text = edit.text.clone();
    if edit.place.columns.0 == edit.place.columns.1 {
        // The line as a whole, with its end where it goes away.
        region["startColumn"] = 1.into();
        region["endLine"] = (edit.place.line + 1).into();
        region["endColumn"] = 1.into();
        if !text.is_empty() {
            text.push('\n');
        }
    }
    json!({
        "artifactLocation": { "uri": uri(&source.name) },
        "replacements": [{ "deletedRegion": region, "insertedContent": { "text": text } }],
    })
}

fn region(place: &SourceLocation) -> Value {
    let mut region = json!({ "startLine": place.line });
    if place.columns.1 > place.columns.0 {
        region["startColumn"] = (place.columns.0 + 1).into();
        region["endColumn"] = (place.columns.1 + 1).into();
    }
    region
}

/// A path as a relative URI reference (RFC 3986).
fn uri(path: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-._~/".contains(letter);
    let mut out = String::new();
    for letter in path.chars() {
        if plain(letter) {
            out.push(letter);
        } else {
            let mut bytes = [0; 4];
            out.extend(letter.encode_utf8(&mut bytes).bytes().map(|byte| format!("%{byte:02X}")));
        }
    }
    out
}
