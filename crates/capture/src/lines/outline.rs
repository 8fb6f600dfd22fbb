//! What the text of a script shows of its course, without running it: questions, arguments, calls to come.

use super::super::place::SourceLine;
use super::super::words::{Command, Word};
use super::tool::tool_word;
use super::{Finder, Source};
use tidegate_shims::TOOLS;

impl Finder {
    /// The first line of the script that reads an answer from standard input; `None` where that has answers:
    /// which of them a line reads is not known.
    pub(crate) fn question(&self) -> Option<SourceLine> {
        let main = self.files.first().filter(|_| !self.is_answered)?;
        let fed = Fed::of(main);
        let matches = |command: &&Command| {
            let first = command.words.iter().find(|word| !Command::leads(word));
            first.is_some_and(|word| matches!(word.text.as_str(), "read" | "select"))
                && !fed.is_fed(main, command)
        };
        // A function may not be called.
        let first = outside(main).find(matches).or_else(|| main.commands.iter().find(matches));
        first.map(|command| main.place(command.line(), None))
    }

    /// The number of the only line of the script that fits, from 1.
    pub(crate) fn only_line(&self, fits: impl Fn(&str) -> bool) -> Option<usize> {
        let lines = &self.files.first()?.lines;
        let mut found = lines.iter().enumerate().filter(|(_, line)| fits(line)).map(|(at, _)| at + 1);
        found.next().filter(|_| found.next().is_none())
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
    TOOLS.iter().any(|tool| tool_word(&source.variables, command, tool).is_some())
}

/// Where a script reads from something else than its own standard input.
struct Fed {
    /// Of each line, whether it stands in a block that a pipe or a file feeds.
    lines: Vec<bool>,
    /// The line of the first `exec <FILE`, from 1: behind it all is fed.
    redirected: Option<usize>,
}

impl Fed {
    fn of(source: &Source) -> Self {
        let texts = &source.lines;
        let mut lines = vec![false; texts.len()];
        // The blocks that are open, and loops before their `do`: their first lines, and whether a pipe leads
        // to them.
        let (mut open, mut loops) = (Vec::new(), Vec::new());
        for (at, text) in texts.iter().enumerate() {
            let code = without_comment(text);
            for (column, word) in tokens(code) {
                let before = match code[..column].trim() {
                    "" => at.checked_sub(1).map_or("", |before| without_comment(&texts[before])),
                    own => own,
                };
                let begins = (at, takes_input(before, '|'));
                match word {
                    "while" | "until" => loops.push(begins),
                    "do" => open.push(loops.pop().unwrap_or(begins)),
                    "{" | "then" => open.push(begins),
                    _ if word.starts_with('(') && !word.starts_with("((") => open.push(begins),
                    _ if ends_block(word) => {
                        if let Some((start, piped)) = open.pop()
                            && (piped || takes_input(&code[column..], '<'))
                        {
                            lines[start..=at].fill(true);
                        }
                    }
                    _ => {}
                }
            }
        }
        let redirects = |text: &String| {
            tokens(without_comment(text)).any(|(_, word)| word == "exec") && takes_input(text, '<')
        };
        Self { lines, redirected: texts.iter().position(redirects).map(|at| at + 1) }
    }

    /// Is what a command reads from its own line, a block around it, or a call of its function?
    fn is_fed(&self, source: &Source, command: &Command) -> bool {
        let here = |line: usize| {
            let at = line.saturating_sub(1);
            let text = source.lines.get(at).map_or("", String::as_str);
            self.lines.get(at) == Some(&true)
                || self.redirected.is_some_and(|first| line >= first)
                || takes_input(text, '|')
                || takes_input(text, '<')
        };
        let calls = |function: &str| {
            source.commands.iter().any(|call| call.calls(function).is_some() && here(call.line()))
        };
        here(command.line()) || command.function.as_deref().is_some_and(calls)
    }
}

/// Does a word end a block, with or without what leads to or from it: `done`, `}<file`?
fn ends_block(word: &str) -> bool {
    let rest = ["done", "}", ")", "fi"].iter().find_map(|end| word.strip_prefix(end));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['<', '|', '>']))
}

/// Does a pipe (not `||`) or a redirection of input stand in a line?
fn takes_input(text: &str, sign: char) -> bool {
    text.replace("||", "").contains(sign)
}

fn without_comment(text: &str) -> &str {
    let ends = |(at, _): &(usize, &str)| *at == 0 || text[..*at].ends_with(char::is_whitespace);
    text.match_indices('#').find(ends).map_or(text, |(at, _)| &text[..at])
}

/// The words of a line, each with its place in it.
fn tokens(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let words = text.split(|letter: char| letter.is_whitespace() || letter == ';');
    words.filter(|word| !word.is_empty()).map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
}

#[cfg(test)]
mod tests {
    use super::Finder;

    #[test]
    fn a_question_is_what_nothing_feeds() {
        let asked = |script: &str| {
            Finder::new(&[("x.sh".into(), script.into())], &[]).question().map(|place| place.line)
        };
        for (script, line) in [
            ("read a\n", Some(1)),
            ("if read -r a; then tc; fi\n", Some(1)),
            ("IFS=: read a b\n", Some(1)),
            ("read a || exit 1\n", Some(1)),
            ("while read a; do\n  tc $a\ndone\n", Some(1)),
            ("ls | while read a; do :; done\nread b\n", Some(2)),
            ("f() { read a; }\nf\nread b\n", Some(3)),
            ("f() {\n  read a\n}\nf\n", Some(2)),
            ("# read a <file\nselect a in b c; do\n  break\ndone\n", Some(2)),
            ("read a <file\n", None),
            ("echo 5 | read a\n", None),
            ("exec 0<file\nread a\n", None),
            ("while\n  read a\ndo\n  tc $a\ndone <file\n", None),
            ("ls |\nwhile read a\ndo\n  read b\ndone\n", None),
            ("{\n  read a\n  tc $a\n} <<EOF\n5\nEOF\n", None),
            ("(\n  read a\n) < file\n", None),
            ("echo 5 | {\n  read a\n  for d in eth0; do tc $d; done\n}\n", None),
            ("f() {\n  read a\n}\nf <file\n", None),
            ("f() {\n  read a\n}\necho 5 | f\n", None),
            ("if true; then\n  read a\nfi <file\n", None),
        ] {
            assert_eq!(asked(script), line, "{script}");
        }
    }
}
