//! From calls to steps: each command with its words, and their places.

use super::LoadedPolicy;
use super::lists::ListedCall;
use super::traced::Came;
use crate::format::MAX_POLICY;
use crate::inside::{line_inside, line_refused, refusals};
use crate::line_words::LineWords;
use std::path::Path;
use tidegate_capture::{Recorded, ScriptRun};
use tidegate_inspect::{Frame, Source, SourceLocation, Step, Word};
use tidegate_shims::{Carried, blamed};
use tidegate_syntax::batch;

impl LoadedPolicy {
    /// Notes what a file came to: `list` are its calls where it is a list.
    pub(super) fn note(
        &mut self,
        path: &Path,
        text: &str,
        outcome: &ScriptRun,
        came: &[Came],
        list: Option<&[ListedCall]>,
    ) {
        let main = self.source(path, Some(text));
        let mut came = came.iter().peekable();
        for recorded in &outcome.calls {
            let came = came.next_if(|_| recorded.answered);
            if came.is_none() && recorded.code == 0 {
                continue;
            }
            // What the tool itself failed at, such as a batch that is not there, came to nothing.
            let ops = self.steps.last().map_or(0, |step| step.ops.end);
            let nothing = Came { ops: ops..ops, carried: 0..0 };
            let came = came.unwrap_or(&nothing);
            let file = match &recorded.source {
                Some(source) => self.source(&source.file, None),
                None => main,
            };
            let carried = self.machine.carried[came.carried.clone()].to_vec();
            if carried.iter().any(|one| one.line.is_some()) || recorded.call.stdin.is_some() && list.is_some()
            {
                self.note_lines(recorded, &carried, came, file, list.is_some());
                continue;
            }
            let place = recorded.source.as_ref().map(|source| SourceLocation {
                file,
                line: source.line,
                columns: (0, 0),
            });
            let words = match (list.is_some(), &place) {
                (true, Some(place)) => self.words_at(place, &recorded.call.args),
                _ => self.words(recorded),
            };
            let frames = self.frames(recorded);
            let called_from = self.called_from(recorded);
            self.steps.push(Step {
                tool: recorded.call.tool.clone(),
                words,
                place,
                ops: came.ops.clone(),
                refused: (recorded.code != 0).then(|| recorded.stderr.clone()),
                at_fault: recorded.at_fault,
                may_fail: recorded.may_fail(),
                is_skipped: false,
                frames,
                called_from,
            });
        }
    }

    /// Notes a text of several commands that one call was given to read.
    fn note_lines(
        &mut self,
        recorded: &Recorded,
        carried: &[Carried],
        came: &Came,
        file: usize,
        direct: bool,
    ) {
        let mut done = came.ops.start;
        let begun = self.steps.len();
        // The line of each step, of the text.
        let mut lines: Vec<Option<usize>> = carried.iter().map(|one| one.line).collect();
        let frames = self.frames(recorded);
        let mut called_from = self.called_from(recorded);
        let outside = recorded.source.as_ref().map(|source| SourceLocation {
            file,
            line: source.line,
            columns: (0, 0),
        });
        // The text is in a file of its own, or in the lines of the tool's call.
        let read = recorded.input.as_ref().map(|path| self.source(path, None));
        if read.is_some() {
            called_from.clone_from(&outside);
        }
        let call_of_tool = frames.last().map(|frame| frame.place.clone()).or_else(|| outside.clone());
        let inside = |policy: &Self, line: usize, words: &[String]| match read {
            Some(file) => Some((SourceLocation { file, line, columns: (0, 0) }, 0)),
            None => call_of_tool.as_ref().and_then(|call| policy.inside(call, line, words)),
        };
        for one in carried {
            let (place, from) = match (direct, one.line) {
                (true, Some(line)) => (Some(SourceLocation { file, line, columns: (0, 0) }), Some(0)),
                (false, Some(line)) => match inside(self, line, &one.words[1..]) {
                    Some((place, from)) => (Some(place), Some(from)),
                    None => (outside.clone(), None),
                },
                _ => (outside.clone(), direct.then_some(0)),
            };
            let words = match (&place, from) {
                (Some(place), Some(from)) => {
                    let mut words = self.words_from(place, from, &one.words[1..]);
                    // Other calls may share a line inside a function, or the file.
                    let own = frames.is_empty() && read.is_none();
                    words.iter_mut().for_each(|word| word.literal &= own);
                    words
                }
                _ => one.words[1..].iter().cloned().map(Word::unplaced).collect(),
            };
            let ops = done..one.ops.max(done);
            done = ops.end;
            // A command in no line of the file is the tool's own: it clears the device first.
            let tool =
                if direct && one.line.is_none() { recorded.call.tool.clone() } else { one.words[0].clone() };
            self.steps.push(Step {
                tool,
                words,
                place,
                ops,
                refused: None,
                at_fault: None,
                may_fail: false,
                is_skipped: false,
                frames: frames.clone(),
                called_from: called_from.clone(),
            });
        }
        let refused = if recorded.code == 0 { Vec::new() } else { refusals(&recorded.stderr) };
        for refused in refused {
            let found = line_refused(recorded, &refused).filter(|_| !direct);
            lines.push(found.as_ref().map(|(line, _)| *line));
            let at_fault = found.as_ref().and_then(|(_, words)| blamed(words, &refused));
            let (words, place) = match found {
                None => (Vec::new(), outside.clone()),
                Some((line, words)) => match inside(self, line, &words) {
                    Some((place, from)) => (self.words_from(&place, from, &words), Some(place)),
                    None => (words.into_iter().map(Word::unplaced).collect(), outside.clone()),
                },
            };
            self.steps.push(Step {
                tool: recorded.call.tool.clone(),
                words,
                place,
                ops: done..done,
                refused: Some(refused),
                at_fault,
                may_fail: recorded.may_fail(),
                is_skipped: false,
                frames: frames.clone(),
                called_from: called_from.clone(),
            });
        }
        if !direct && recorded.code != 0 {
            let batch = recorded
                .call
                .stdin
                .as_deref()
                .filter(|_| ["tc", "ip"].contains(&recorded.call.tool.as_str()));
            for (line, words) in batch.map(|batch| behind(batch, &lines)).unwrap_or_default() {
                lines.push(Some(line));
                self.steps.push(Step {
                    tool: recorded.call.tool.clone(),
                    words: words.into_iter().map(Word::unplaced).collect(),
                    place: None,
                    ops: done..done,
                    refused: Some(String::new()),
                    at_fault: None,
                    may_fail: false,
                    is_skipped: true,
                    frames: frames.clone(),
                    called_from: called_from.clone(),
                });
            }
        }
        // A batch that went on has refused lines before others; those of no known line stay where they are.
        if lines.iter().all(Option::is_some) {
            let mut steps: Vec<_> = lines.into_iter().zip(self.steps.drain(begun..)).collect();
            steps.sort_by_key(|(line, _)| *line);
            let mut done = came.ops.start;
            for (_, mut step) in steps {
                if step.refused.is_some() {
                    step.ops = done..done;
                }
                done = step.ops.end;
                self.steps.push(step);
            }
        }
    }

    /// The words of a script's call.
    fn words(&mut self, recorded: &Recorded) -> Vec<Word> {
        let mut found = recorded.words.iter();
        let mut words = Vec::with_capacity(recorded.call.args.len());
        for text in &recorded.call.args {
            let source = found.next().and_then(Option::as_ref);
            let place = source.map(|word| SourceLocation {
                file: self.source(&word.file, None),
                line: word.line,
                columns: (word.columns.start, word.columns.end),
            });
            words.push(Word { text: text.clone(), place, literal: source.is_some_and(|word| word.literal) });
        }
        words
    }

    /// The commands that a call went through on its way from its line to the tool.
    fn frames(&mut self, recorded: &Recorded) -> Vec<Frame> {
        let frames = recorded.source.as_ref().map_or(&[][..], |source| &source.frames);
        let mut notes = Vec::new();
        for frame in frames {
            let file = self.source(&frame.file, None);
            notes.push(Frame {
                function: frame.function.clone(),
                place: SourceLocation { file, line: frame.line, columns: (0, 0) },
            });
        }
        notes
    }

    /// The call that led to a line inside a function.
    fn called_from(&mut self, recorded: &Recorded) -> Option<SourceLocation> {
        let (file, line) = recorded.source.as_ref()?.called_from.as_ref()?;
        Some(SourceLocation { file: self.source(file, None), line: *line, columns: (0, 0) })
    }

    /// The place of a command of a batch that a script's call at `call` read: literally in the call's own
    /// line (`printf '…' | tc -b -`), or in line `number` of the text behind it (`tc -b - <<EOF`), where
    /// variables of the shell may replace some of its words. With the column it begins in.
    fn inside(
        &self,
        call: &SourceLocation,
        number: usize,
        words: &[String],
    ) -> Option<(SourceLocation, usize)> {
        let (line, column) = line_inside(&self.sources[call.file].lines, call.line, number, words)?;
        Some((SourceLocation { line, ..call.clone() }, column))
    }

    /// The words of a command at their places in its line.
    fn words_at(&mut self, place: &SourceLocation, words: &[String]) -> Vec<Word> {
        self.words_from(place, 0, words)
    }

    /// The words of a command that begins behind others in its line.
    fn words_from(&mut self, place: &SourceLocation, from: usize, words: &[String]) -> Vec<Word> {
        let own = (place.file, place.line);
        // The commands of one line follow each other; a line of a short policy may be as long as the file.
        let (_, line) = match self.line_words.take().filter(|(of, _)| *of == own) {
            Some(known) => self.line_words.insert(known),
            None => {
                let text = self.sources[place.file].lines.get(place.line - 1).map_or("", String::as_str);
                self.line_words.insert((own, LineWords::of(text)))
            }
        };
        let mut from = from;
        let word = |text: &String| {
            let found = line.find(text, from);
            if let Some((_, end)) = found {
                from = end;
            }
            let place = found.map(|columns| SourceLocation { columns, ..place.clone() });
            Word { text: text.clone(), literal: place.is_some(), place }
        };
        words.iter().map(word).collect()
    }

    /// Notes a file of several that one list is in.
    pub(super) fn note_source(&mut self, path: &Path, text: &str) {
        self.source(path, Some(text));
    }

    /// The number of a source; it is read where its text is not given.
    fn source(&mut self, path: &Path, text: Option<&str>) -> usize {
        let name = path.display().to_string();
        if let Some(at) = self.sources.iter().position(|source| source.name == name) {
            return at;
        }
        let text = match text {
            Some(text) => text.to_owned(),
            None => String::from_utf8_lossy(&crate::files::read(path, MAX_POLICY).unwrap_or_default())
                .into_owned(),
        };
        self.sources.push(Source { name, lines: text.lines().map(str::to_owned).collect() });
        self.sources.len() - 1
    }
}

/// The commands of a batch that its tool did not come to: behind all that were carried out or refused.
fn behind(batch: &[u8], known: &[Option<usize>]) -> Vec<(usize, Vec<String>)> {
    let Some(last) = known.iter().flatten().max() else { return Vec::new() };
    let text = String::from_utf8_lossy(batch);
    let lines = batch::lines(&text).into_iter().flatten();
    lines.filter(|line| line.number > *last).map(|line| (line.number, line.args)).collect()
}

#[cfg(test)]
mod tests {
    /// With a search through the whole line for each word this takes a minute.
    #[test]
    fn a_line_of_thousands_of_words_is_looked_through_once() {
        const PORTS: usize = 20_000;
        let ports: Vec<String> = (0..PORTS).map(|at| format!("\"udp {}\"", 2 * at + 1)).collect();
        let text =
            format!("device = \"eth0\"\nup = \"9mbit\"\n[classes.a]\nports = [{}]\n", ports.join(", "));
        let policy = crate::read_text("a.toml", &text, &crate::ReadOptions::default()).expect("is a policy");
        let words = policy.steps.iter().map(|step| step.words.len()).sum::<usize>();
        assert!(words >= PORTS, "{words} words");
    }
}
