//! Stories for people.

use std::fmt::Write as _;
use tidegate_inspect::explained::{Explained, PacketExplanation};
use tidegate_inspect::{ExplainStep, Packet, PolicyModel, Scene, SourceLocation, StepOutcome, Story};

/// Lines in a row that do not fit are folded from so many on,
const FOLD: usize = 8;
/// and so many of them stay at each end.
const KEPT: usize = 2;

/// The most unnamed bytes of a packet that are shown.
const SOME_BYTES: usize = 4;
/// Lines of a scene; one with more goes round in circles.
const MOST_LINES: usize = 400;

/// The stories, one after the other.
pub(super) fn stories(answer: &Explained, all: bool) -> String {
    let one = |explanation: &PacketExplanation| match (&explanation.other, &answer.other) {
        (Some(other), Some(reading)) => {
            parted(explanation, (&answer.reading, &explanation.story), (reading, other))
        }
        _ => story(&answer.reading, explanation, all),
    };
    let mut out = answer.explanations.iter().map(one).collect::<Vec<_>>().join("\n");
    for (place, why) in answer.missing() {
        let place =
            place.map_or_else(String::new, |at| format!("{}:{}, ", tidegate_text::line(at.file), at.line));
        let _ = write!(
            out,
            "\nnot included: {place}which tidegate cannot carry out ({why}). With it the packet's way may be \
             another.\n"
        );
    }
    out
}

fn story(reading: &PolicyModel, explanation: &PacketExplanation, all: bool) -> String {
    let mut out = heading(explanation);
    for scene in &explanation.story.scenes {
        let _ = writeln!(out, "\n{}", scene.title);
        lines(&mut out, reading, scene, all);
    }
    let _ = write!(out, "\n{}", end(&explanation.story));
    out
}

fn heading(explanation: &PacketExplanation) -> String {
    // A captured packet has checksums, numbers and data of its own, which mean nothing to people.
    let packet = match explanation.packet.packet.raw_bytes.len() {
        0..=SOME_BYTES => explanation.packet.packet.clone(),
        _ if explanation.packet.heading.is_empty() => explanation.packet.packet.clone(),
        _ => Packet { raw_bytes: Vec::new(), ..explanation.packet.packet.clone() },
    };
    // NAT has changed the addresses of what it answers.
    let sent = Packet { raw_bytes: packet.raw_bytes.clone(), ..explanation.story.packet.clone() };
    let sent = match sent {
        sent if sent == packet => String::new(),
        sent => format!("comes as {sent}\n"),
    };
    match explanation.packet.heading.as_str() {
        "" => format!("{packet}\n{sent}"),
        heading => format!("{heading}: {packet}\n{sent}"),
    }
}

/// The lines of a scene; long runs of what does not fit are folded.
fn lines(out: &mut String, reading: &PolicyModel, scene: &Scene, all: bool) {
    let mut at = 0;
    while at < scene.lines.len() {
        if at >= MOST_LINES && !all {
            let _ = writeln!(out, "  … {} more lines (--all shows them)", scene.lines.len() - at);
            return;
        }
        let run = scene.lines[at..].iter().take_while(|line| line.outcome == StepOutcome::Passed).count();
        if run >= FOLD && !all {
            scene.lines[at..at + KEPT].iter().for_each(|step| line(out, reading, step));
            let _ = writeln!(out, "  … {} more do not fit (--all shows them)", run - 2 * KEPT);
            scene.lines[at + run - KEPT..at + run].iter().for_each(|step| line(out, reading, step));
            at += run;
        } else {
            line(out, reading, &scene.lines[at]);
            at += 1;
        }
    }
}

fn line(out: &mut String, reading: &PolicyModel, step: &ExplainStep) {
    let sign = match step.outcome {
        StepOutcome::Met => '+',
        StepOutcome::Passed => '-',
        StepOutcome::Note => ' ',
    };
    let place =
        step.place.as_ref().map(|place| format!("  [{}]", place_text(reading, place))).unwrap_or_default();
    let _ = writeln!(out, "  {sign} {}{place}", tidegate_text::line(&step.what));
    for why in &step.why {
        let _ = writeln!(out, "      {}", tidegate_text::line(why));
    }
}

/// `home.sh:14`.
fn place_text(reading: &PolicyModel, place: &SourceLocation) -> String {
    let name = reading.sources.get(place.file).map_or("", |source| source.name.as_str());
    format!("{name}:{}", place.line)
}

/// Where it ends.
fn end(story: &Story) -> String {
    let mut out = format!("ends: {}\n", story.end.text);
    if story.mark != 0 {
        let _ = writeln!(out, "      with mark {:#x}", story.mark);
    }
    if story.dsfield != story.packet.dsfield {
        let _ = writeln!(out, "      with DS field {:#04x}", story.dsfield);
    }
    for wait in &story.end.waits {
        let _ = writeln!(out, "      {wait}");
    }
    out
}

/// Where two policies part.
fn parted(
    explanation: &PacketExplanation,
    ours: (&PolicyModel, &Story),
    theirs: (&PolicyModel, &Story),
) -> String {
    let mut out = heading(explanation);
    let names =
        [ours.0, theirs.0].map(|reading| reading.sources.first().map_or("", |source| source.name.as_str()));
    match ours.1.parts_from(theirs.1) {
        None => {
            let _ = writeln!(out, "\nthe same under {} and {}", names[0], names[1]);
        }
        Some(first) => {
            for ((reading, name), parted) in [ours.0, theirs.0].into_iter().zip(names).zip(first) {
                let _ = writeln!(out, "\n{name}");
                match parted {
                    Some((title, step)) => {
                        let _ = writeln!(out, "  {title}");
                        line(&mut out, reading, step);
                    }
                    None => out.push_str("  nothing more\n"),
                }
            }
        }
    }
    for (name, story) in names.into_iter().zip([ours.1, theirs.1]) {
        let _ = write!(out, "\n{name}\n{}", end(story));
    }
    out
}
