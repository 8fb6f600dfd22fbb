//! What the text of a script shows of its course, without running it: questions, arguments, calls to come.

use super::super::place::SourceLine;
use super::super::words::{Command, Word};
use super::{Finder, Source, tool_word};
use tidegate_shims::TOOLS;

impl Finder {
    /// The first line of the script that reads an answer from standard input.
    pub(crate) fn question(&self) -> Option<SourceLine> {
        let main = self.files.first()?;
        // `cmd | while read …` and `read … <file` do not prompt the user.
        let matches = |command: &&Command| {
            let text = main.lines.get(command.line().saturating_sub(1)).map_or("", String::as_str);
            command.words.first().is_some_and(|word| matches!(word.text.as_str(), "read" | "select"))
                && !text.contains('|')
                && !text.contains('<')
                && !is_in_fed_loop(&main.lines, command.line())
        };
        // A function may not be called.
        let first = outside(main).find(matches).or_else(|| main.commands.iter().find(matches));
        first.map(|command| main.place(command.line(), None))
    }

    /// Does a line of the script give a variable a value?
    pub(crate) fn sets(&self, name: &str) -> bool {
        let is_it = |line: &String| {
            let code = line.trim_start();
            let code = ["export ", "readonly ", "local "]
                .iter()
                .find_map(|word| code.strip_prefix(word))
                .unwrap_or(code);
            code.strip_prefix(name).is_some_and(|rest| rest.starts_with('='))
        };
        self.files.iter().any(|file| file.lines.iter().any(is_it))
    }

    /// Whether the script's own lines call tools, outside of functions, behind the one that issued a call.
    pub(crate) fn has_calls_behind(&self, place: Option<&SourceLine>) -> bool {
        let Some(main) = self.files.first() else { return false };
        // A function's line is reached by its call.
        let line = place.map(|place| match &place.called_from {
            Some((file, line)) => (file == &main.path).then_some(*line),
            None => (place.file == main.path).then_some(place.line),
        });
        let line = match line {
            None => 0,
            Some(None) => return false,
            Some(Some(line)) => line,
        };
        outside(main).filter(|command| command.line() > line).any(|command| calls_tool(main, command))
    }

    /// The highest number of an argument that the script uses outside of functions and without a default, and
    /// how many it was given, where these are fewer.
    pub(crate) fn missing_arguments(&self) -> Option<(usize, usize)> {
        let main = self.files.first()?;
        let wanted = outside(main).flat_map(|command| &command.words).flat_map(Word::arguments).max()?;
        (wanted > self.given).then_some((wanted, self.given))
    }

    /// Is an argument that the script was not given a part of a longer word, which without it means something
    /// else: `DEV=eth$1`, `rate ${2}mbit`?
    pub(crate) fn joins_missing_arguments(&self) -> bool {
        let Some(main) = self.files.first() else { return false };
        outside(main).any(|command| {
            let calls = calls_tool(main, command);
            command.words.iter().enumerate().any(|(at, word)| {
                let value = match command.sets(at) {
                    Some(_) => word.text.split_once('=').map_or("", |(_, value)| value),
                    None if calls => &word.text,
                    None => "",
                };
                value.contains(char::is_alphanumeric) && word.arguments().any(|number| number > self.given)
            })
        })
    }
}

/// The commands outside of functions: a function may not be called.
fn outside(source: &Source) -> impl Iterator<Item = &Command> {
    source.commands.iter().filter(|command| command.function.is_none())
}

fn calls_tool(source: &Source, command: &Command) -> bool {
    TOOLS.iter().any(|tool| tool_word(source, command, tool).is_some())
}
/// Is a line inside a loop that reads from a file, a pipe or lines below it (`done <<EOF`)?
fn is_in_fed_loop(lines: &[String], line: usize) -> bool {
    let mut depth = 0_usize;
    for text in lines.iter().skip(line) {
        let words = || text.split(|letter: char| letter.is_whitespace() || letter == ';');
        depth += words().filter(|word| *word == "do").count();
        for _ in words().filter(|word| *word == "done") {
            if depth == 0 && text.contains('<') {
                return true;
            }
            depth = depth.saturating_sub(1);
        }
    }
    false
}
