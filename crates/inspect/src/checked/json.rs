//! Findings for programs.

use super::path::CommandPath;
use super::result::Checked;
use crate::finding::{Edit, Finding, Level, Witness};
use crate::reading::{Frame, PolicyModel, SourceLocation};
use serde_json::{Value, json};

/// The form of the document: it changes when a member changes its meaning or goes away.
const FORM: u32 = 2;

/// The findings as one document, with the end of line: `docs/check.md` has its members.
pub fn to_json(checked: &Checked) -> String {
    let count = |level: Level| checked.findings.iter().filter(|finding| finding.level == level).count();
    let document = json!({
        "tidegate_check": FORM,
        "version": env!("CARGO_PKG_VERSION"),
        "files": checked.reading.sources.iter().map(|source| &source.name).collect::<Vec<_>>(),
        "commands": checked.reading.steps.len(),
        "errors": count(Level::Error),
        "warnings": count(Level::Warning),
        "notes": count(Level::Note),
        "suppressed": checked.silenced,
        "caveats": checked.caveats,
        "findings": checked.findings.iter().map(|finding| one(&checked.reading, finding)).collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}

fn one(reading: &PolicyModel, finding: &Finding) -> Value {
    let way = CommandPath::of(reading, finding);
    json!({
        "rule": finding.rule.id(),
        "name": finding.rule.name(),
        "level": finding.level.name(),
        "place": finding.place.as_ref().map(|at| place(reading, at)),
        "text": finding.place.as_ref().and_then(|at| reading.sources[at.file].lines.get(at.line - 1)),
        "called_from": way.called_from.iter().map(|at| place(reading, at)).collect::<Vec<_>>(),
        "used_in": way.used_in.iter().map(|at| place(reading, at)).collect::<Vec<_>>(),
        "frames": way.frames.iter().map(|frame| frame_of(reading, frame)).collect::<Vec<_>>(),
        "what": finding.what,
        "because": finding.because,
        "witness": finding.witness.as_ref().map(|witness| match witness {
            Witness::Packet { packet, went } => json!({ "packet": packet, "went": went }),
            Witness::Number(number) => json!({ "number": number }),
        }),
        "fix": finding.fix.as_ref().map(|fix| json!({
            "what": fix.what,
            "edits": fix.edits.iter().map(|edit| replacement(reading, edit)).collect::<Vec<_>>(),
        })),
    })
}

/// A function that the command passed through.
fn frame_of(reading: &PolicyModel, frame: &Frame) -> Value {
    let mut value = place(reading, &frame.place);
    value["function"] = frame.function.as_str().into();
    value
}

fn replacement(reading: &PolicyModel, edit: &Edit) -> Value {
    let mut value = place(reading, &edit.place);
    value["with"] = edit.text.as_str().into();
    value
}

/// Lines and columns count from 1; without columns it is the line as a whole.
fn place(reading: &PolicyModel, at: &SourceLocation) -> Value {
    let mut value = json!({ "file": reading.sources[at.file].name, "line": at.line });
    if at.columns.1 > at.columns.0 {
        value["column"] = (at.columns.0 + 1).into();
        value["end_column"] = (at.columns.1 + 1).into();
    }
    value
}
