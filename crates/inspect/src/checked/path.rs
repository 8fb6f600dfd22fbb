//! How a finding's command came to its tool: by whose calls, and through which functions.

use crate::finding::{Finding, Rule, Witness};
use crate::reading::{Frame, PolicyModel, SourceLocation, Step};

/// What a reader needs beside a finding's line to find his way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandPath {
    /// For a line inside a function: the calls that led to it.
    pub called_from: Vec<SourceLocation>,
    /// Of a line that sets a variable: the lines that use it.
    pub used_in: Vec<SourceLocation>,
    /// The functions it passed through on its way from its line to the tool, where all commands of that line
    /// took the same way.
    pub frames: Vec<Frame>,
}

/// The position of a finding's line relative to a command.
enum LinePosition {
    /// It is the command's own line.
    Own,
    /// It is the line of this one of its functions.
    Inside(usize),
    /// It sets a variable that the command uses.
    Set,
}

impl CommandPath {
    /// Of a finding of this policy.
    pub fn of(reading: &PolicyModel, finding: &Finding) -> CommandPath {
        let Some(place) = &finding.place else { return CommandPath::default() };
        let mut way = CommandPath::default();
        let mut frames: Option<&[Frame]> = None;
        let mut agree = true;
        for (step, line_position) in concerned(reading, place, finding) {
            let (locations, from, inner) = match line_position {
                LinePosition::Own => (&mut way.called_from, &step.called_from, &step.frames[..]),
                LinePosition::Inside(at) => (&mut way.called_from, &step.place, &step.frames[at + 1..]),
                LinePosition::Set => (&mut way.used_in, &step.place, &step.frames[..]),
            };
            let from = from.as_ref().map(|from| SourceLocation { columns: (0, 0), ..from.clone() });
            locations.extend(from.filter(|from| !locations.contains(from)));
            agree &= *frames.get_or_insert(inner) == inner;
        }
        way.frames = frames.filter(|_| agree).unwrap_or(&[]).to_vec();
        way
    }
}

/// The commands that a place belongs to: where it is a word, those that have this word; where it came to
/// several values (`$4`), those whose value the finding names; of a refusal, those that were refused so.
fn concerned<'r>(
    reading: &'r PolicyModel,
    place: &SourceLocation,
    finding: &Finding,
) -> Vec<(&'r Step, LinePosition)> {
    let refused = |step: &Step| match (&finding.witness, &step.refused) {
        (Some(Witness::Number(shown)), Some(told)) => finding.rule == Rule::Refused && told.contains(shown),
        _ => false,
    };
    let all = reading.steps.iter().filter_map(|step| Some((step, line_position(reading, step, place)?)));
    let all: Vec<(&Step, LinePosition)> = all.collect();
    let has_word = |step: &Step| step.words.iter().any(|word| word.place.as_ref() == Some(place));
    let named = |step: &Step| {
        let here = step.words.iter().filter(|word| word.place.as_ref() == Some(place));
        here.into_iter()
            .any(|word| finding.what.split([' ', ':', ',', ';', '"']).any(|part| part == word.text))
    };
    let narrower: [&dyn Fn(&Step) -> bool; 3] = [&refused, &named, &has_word];
    match narrower.into_iter().find(|is_meant| all.iter().any(|(step, _)| is_meant(step))) {
        Some(is_meant) => all.into_iter().filter(|(step, _)| is_meant(step)).collect(),
        None => all,
    }
}

fn line_position(reading: &PolicyModel, step: &Step, place: &SourceLocation) -> Option<LinePosition> {
    let here = |at: &SourceLocation| (at.file, at.line) == (place.file, place.line);
    let own = step.place.as_ref()?;
    if here(own) {
        return Some(LinePosition::Own);
    }
    if let Some(at) = step.frames.iter().rposition(|frame| here(&frame.place)) {
        return Some(LinePosition::Inside(at));
    }
    let has_word = step.words.iter().filter_map(|word| word.place.as_ref()).any(here);
    // A call whose command was refused inside the function.
    let calls = step.called_from.as_ref().is_some_and(here);
    (has_word && !calls).then_some(if goes_on(reading, own, place) {
        LinePosition::Own
    } else {
        LinePosition::Set
    })
}

/// Does a command that begins in one line go on to another?
fn goes_on(reading: &PolicyModel, begins: &SourceLocation, place: &SourceLocation) -> bool {
    let lines = reading.sources.get(begins.file).filter(|_| begins.file == place.file);
    let between = lines.and_then(|source| source.lines.get(begins.line - 1..place.line - 1));
    between.is_some_and(|lines| lines.iter().all(|line| line.ends_with('\\')))
}
