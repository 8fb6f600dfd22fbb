//! How the command of a finding came to its tool.

use crate::finding::Finding;
use crate::reading::{Frame, Place, Reading};

/// How a finding's command came to its tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandPath {
    /// Of a line inside a function: the calls that led to it.
    pub called_from: Vec<Place>,
    /// The functions it passed through on its way from its line to the tool, where all commands of that line took the
    /// same way.
    pub frames: Vec<Frame>,
}

impl CommandPath {
    /// Of a finding of this policy.
    pub fn of(reading: &Reading, finding: &Finding) -> CommandPath {
        let Some(place) = &finding.place else { return CommandPath::default() };
        let line = |at: &Place| at.file == place.file && at.line == place.line;
        let (mut called_from, mut frames) = (Vec::new(), None);
        let mut agree = true;
        for step in &reading.steps {
            // A command may go over several lines.
            let mut words = step.words.iter().filter_map(|word| word.place.as_ref());
            let outside = step.place.as_ref().is_some_and(line);
            let inside = step.frames.iter().rposition(|frame| line(&frame.place));
            let caller = match inside {
                Some(_) if !outside => step.place.as_ref(),
                _ if outside => step.called_from.as_ref(),
                _ if words.any(line) => None,
                _ => continue,
            };
            let way = match inside {
                Some(at) if !outside => &step.frames[at + 1..],
                _ => &step.frames[..],
            };
            let caller = caller.map(|caller| Place { columns: (0, 0), ..caller.clone() });
            called_from.extend(caller.filter(|caller| !called_from.contains(caller)));
            agree &= *frames.get_or_insert(way) == way;
        }
        CommandPath { called_from, frames: frames.filter(|_| agree).unwrap_or(&[]).to_vec() }
    }
}
