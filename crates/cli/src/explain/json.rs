//! Stories as JSON.

use super::answer::{Answer, PacketExplanation};
use serde_json::{Value, json};
use tidegate_inspect::{End, ExplainStep, PolicyModel, SourceLocation, Story};

/// The form of the document.
const FORM: u32 = 2;

/// All stories, as one document.
pub(super) fn document(answer: &Answer) -> String {
    let one = |explanation: &PacketExplanation| {
        let mut value = story(&answer.reading, &explanation.story);
        if let (Some(other), Some(reading)) = (&explanation.other, &answer.other) {
            value["other"] = story(reading, other);
            value["difference"] = match explanation.story.parts_from(other) {
                None => Value::Null,
                Some([ours, theirs]) => json!({
                    "here": ours.map(|(title, step)| json!({ "section": title, "line": line(&answer.reading, step) })),
                    "there": theirs.map(|(title, step)| json!({ "section": title, "line": line(reading, step) })),
                }),
            };
        }
        value
    };
    let document = json!({
        "tidegate_explain": FORM,
        "policy": answer.reading.sources.iter().map(|source| source.name.as_str()).collect::<Vec<_>>(),
        "packets": answer.explanations.iter().map(one).collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}

fn story(reading: &PolicyModel, story: &Story) -> Value {
    let scenes = story.scenes.iter().map(|scene| {
        let lines: Vec<Value> = scene.lines.iter().map(|step| line(reading, step)).collect();
        json!({ "title": scene.title, "lines": lines })
    });
    json!({
        "packet": story.packet.to_string(),
        "sections": scenes.collect::<Vec<_>>(),
        "mark": story.mark,
        "dsfield": story.dsfield,
        "priority": story.priority,
        "end": end(&story.end),
    })
}

fn line(reading: &PolicyModel, line: &ExplainStep) -> Value {
    json!({
        "what": line.what,
        "outcome": line.outcome.name(),
        "why": line.why,
        "place": line.place.as_ref().map(|at| place(reading, at)),
    })
}

fn place(reading: &PolicyModel, place: &SourceLocation) -> Value {
    let file = reading.sources.get(place.file).map(|source| source.name.as_str());
    json!({ "file": file, "line": place.line })
}

fn end(end: &End) -> Value {
    json!({
        "text": end.text,
        "device": end.device,
        "classes": end.classes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "queue": end.queue,
        "bucket": end.bucket,
        "waits": end.waits,
        "dropped": end.lost,
    })
}
