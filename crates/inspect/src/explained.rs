//! Packets explained, for programs: their stories under one policy or two, as JSON.

use crate::lost::not_built;
use crate::{End, ExplainStep, Explainer, Packet, PolicyModel, SourceLocation, Story};
use serde_json::{Value, json};

/// The form of the document.
const FORM: u32 = 2;

/// A packet that is explained.
#[derive(Clone, Debug)]
pub struct ExplainedPacket {
    /// The heading of its explanation, where there are several.
    pub heading: String,
    /// The packet.
    pub packet: Packet,
}

/// One packet's story, under one policy or two.
#[derive(Clone, Debug)]
pub struct PacketExplanation {
    /// The packet.
    pub packet: ExplainedPacket,
    /// What it meets.
    pub story: Story,
    /// What it meets under the other policy.
    pub other: Option<Story>,
}

/// A line of a policy's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceName<'s> {
    /// The file, as the user named it.
    pub file: &'s str,
    /// The line, from 1.
    pub line: usize,
}

/// The packets that are explained, and the explanations.
pub struct Explained {
    /// The policy.
    pub reading: PolicyModel,
    /// Another, where the packets' paths are compared.
    pub other: Option<PolicyModel>,
    /// Each packet's story.
    pub explanations: Vec<PacketExplanation>,
}

impl Explained {
    /// Explains packets, and with `reply` what answers each.
    ///
    /// # Errors
    /// A packet that cannot come about, and why.
    pub fn of(
        reading: PolicyModel,
        other: Option<PolicyModel>,
        packets: Vec<ExplainedPacket>,
        reply: bool,
    ) -> Result<Explained, String> {
        let mut explanations = Vec::new();
        {
            let mut explainer = Explainer::new(&reading);
            let mut others = other.as_ref().map(Explainer::new);
            let mut both = |one: ExplainedPacket| -> Result<PacketExplanation, String> {
                let story = explained(&mut explainer, &one.packet)?;
                let other = others.as_mut().map(|others| explained(others, &one.packet)).transpose()?;
                Ok(PacketExplanation { packet: one, story, other })
            };
            for one in packets {
                let explanation = both(one)?;
                let answer = reply.then(|| self::reply(&explanation.packet, &explanation.story));
                explanations.push(explanation);
                if let Some(answer) = answer {
                    explanations.push(both(answer)?);
                }
            }
        }
        Ok(Explained { reading, other, explanations })
    }

    /// Commands of the policies that tidegate cannot carry out, each with its place, if it is known, and the
    /// reason: what they do is missing from the explanations.
    pub fn missing(&self) -> Vec<(Option<SourceName<'_>>, String)> {
        let readings = std::iter::once(&self.reading).chain(&self.other);
        let own = readings.flat_map(|reading| {
            reading.steps.iter().filter_map(|step| {
                let why = not_built(step)?;
                let place = step.place.as_ref().and_then(|at| {
                    let source = reading.sources.get(at.file)?;
                    Some(SourceName { file: &source.name, line: at.line })
                });
                Some((place, why))
            })
        });
        own.collect()
    }

    /// Is a packet's path another one under the other policy?
    pub fn differs(&self) -> bool {
        let other = |one: &PacketExplanation| {
            one.other.as_ref().is_some_and(|other| one.story.parts_from(other).is_some())
        };
        self.explanations.iter().any(other)
    }

    /// All stories, as one JSON document (`tidegate explain --json`).
    pub fn to_json(&self) -> String {
        let one = |explanation: &PacketExplanation| {
            let mut value = story(&self.reading, &explanation.story);
            if let (Some(other), Some(reading)) = (&explanation.other, &self.other) {
                value["other"] = story(reading, other);
                value["difference"] = match explanation.story.parts_from(other) {
                    None => Value::Null,
                    Some([ours, theirs]) => {
                        let step = |of, (title, step)| json!({ "section": title, "line": line(of, step) });
                        json!({
                            "here": ours.map(|one| step(&self.reading, one)),
                            "there": theirs.map(|one| step(reading, one)),
                        })
                    }
                };
            }
            value
        };
        let missing = self.missing().into_iter().map(|(place, why)| {
            let place = place.map(|place| json!({ "file": place.file, "line": place.line }));
            json!({ "place": place, "why": why })
        });
        let document = json!({
            "tidegate_explain": FORM,
            "not_carried_out": missing.collect::<Vec<_>>(),
            "policy": self.reading.sources.iter().map(|source| source.name.as_str()).collect::<Vec<_>>(),
            "packets": self.explanations.iter().map(one).collect::<Vec<_>>(),
        });
        format!("{document:#}\n")
    }
}

fn explained(explainer: &mut Explainer<'_>, packet: &Packet) -> Result<Story, String> {
    match explainer.course(packet) {
        Ok(course) => Ok(explainer.explain(packet, course)),
        Err(why) => Err(format!("{packet}: {why}")),
    }
}

/// What answers a packet; it comes in where that left.
fn reply(one: &ExplainedPacket, story: &Story) -> ExplainedPacket {
    let mut packet = one.packet.answer();
    if packet.from.is_none() && !story.end.device.is_empty() {
        packet.from = Some(story.end.device.clone());
    }
    let heading = match one.heading.as_str() {
        "" => "the answer".to_owned(),
        heading => format!("the answer to {heading}"),
    };
    ExplainedPacket { heading, packet }
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
