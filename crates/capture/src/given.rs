//! The arguments of a function: which words of a command inside it are its arguments, and which call gave
//! them.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::agree::{self, Match};
use super::words::{Command, Word};

/// Commands of a function that are read backwards for its variables.
const MAX_BODY: usize = 200;

/// A word that gave an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Giver {
    /// Its number in its command.
    pub(super) word: usize,
    /// What it came to.
    pub(super) value: Rc<str>,
    /// It came to the argument as a whole, and to no other.
    pub(super) whole: bool,
}

/// Arguments of a tool's call that a function passed on.
pub(super) struct Given {
    /// Those of `"$@"`: the number of the tool's argument, and its text.
    all: Vec<(usize, String)>,
    /// Those by number: `$3`, or a variable that was set to it.
    numbered: Vec<Numbered>,
}

struct Numbered {
    /// Which of the function's arguments, from 1.
    number: usize,
    value: Rc<str>,
    /// Numbers of the tool's arguments.
    args: Vec<usize>,
    whole: bool,
    /// The call may leave it out: `${3:-10mbit}`.
    may_lack: bool,
}

/// How well a call of a function agrees with what the function was given.
pub(super) struct Agreement {
    pub(super) score: i32,
    pub(super) perfect: bool,
    pub(super) givers: Vec<Option<Giver>>,
}

impl Given {
    /// The arguments of the function that contains the command `at`, as far as they came to the tool;
    /// `givers` are the command's words that gave the tool's arguments.
    pub(super) fn new(commands: &[Command], at: usize, givers: &[Option<Giver>]) -> Option<Given> {
        let command = &commands[at];
        command.function.as_ref()?;
        let passes_on = command.passes_on();
        let mut by_word: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (arg, giver) in givers.iter().enumerate() {
            if let Some(giver) = giver {
                by_word.entry(giver.word).or_default().push(arg);
            }
        }
        let mut given = Given { all: Vec::new(), numbered: Vec::new() };
        let mut parameters = None;
        for (word, args) in by_word {
            let value = |arg: &usize| givers[*arg].as_ref().map_or("", |giver| &giver.value).to_owned();
            if passes_on == Some(word) {
                given.all.extend(args.iter().map(|arg| (*arg, value(arg))));
                continue;
            }
            let Some(hole) = Hole::of(&command.words[word]) else { continue };
            let parameters = parameters.get_or_insert_with(|| Parameters::before(commands, at));
            let Some((number, may_lack)) = parameters.number(&hole) else { continue };
            let text = args.iter().map(value).collect::<Vec<_>>().join(" ");
            let Some(inner) = text.strip_prefix(hole.before).and_then(|rest| rest.strip_suffix(hole.behind))
            else {
                continue;
            };
            let whole = args.len() == 1
                && hole.before.is_empty()
                && hole.behind.is_empty()
                && givers[args[0]].as_ref().is_some_and(|giver| giver.whole);
            given.numbered.push(Numbered { number, value: inner.into(), args, whole, may_lack });
        }
        (!given.all.is_empty() || !given.numbered.is_empty()).then_some(given)
    }

    /// Holds a call against it: `name` is the word that names the function, `args` how many arguments the
    /// tool has.
    pub(super) fn agree(&self, call: &Command, name: usize, args: usize) -> Agreement {
        let mut givers = vec![None; args];
        let (mut score, mut perfect) = (0, true);
        if !self.all.is_empty() {
            let passed: Vec<String> = self.all.iter().map(|(_, text)| text.clone()).collect();
            let Match { score: of_all, perfect: all_perfect, words } = agree::agree(call, name, &passed);
            // Until now all of them counted as one word that may be anything.
            score += of_all - 1;
            perfect &= all_perfect;
            let once = |word: usize| words.iter().filter(|other| **other == Some(word)).count() == 1;
            for ((arg, text), word) in self.all.iter().zip(&words) {
                // Literal, or a variable and nothing else.
                let whole = |word: usize| agree::fits(&call.words[word], text) != 2;
                givers[*arg] = word.map(|word| Giver {
                    word,
                    value: text.as_str().into(),
                    whole: whole(word) && once(word),
                });
            }
        }
        for part in &self.numbered {
            let word = name + part.number;
            let Some(written) = call.words.get(word) else {
                // A default replaced it, or the call is another's.
                score -= if part.may_lack { 0 } else { 3 };
                perfect = false;
                continue;
            };
            let gain = agree::fits(written, &part.value);
            score += if gain == 0 { -4 } else { gain - 1 };
            perfect &= gain == 3;
            for arg in part.args.iter().filter(|_| gain > 0) {
                givers[*arg] = Some(Giver { word, value: Rc::clone(&part.value), whole: part.whole });
            }
        }
        Agreement { score, perfect, givers }
    }
}

/// A word with one variable in it.
struct Hole<'w> {
    /// The fixed text before it and behind it.
    before: &'w str,
    behind: &'w str,
    name: &'w str,
    has_default: bool,
}

impl<'w> Hole<'w> {
    fn of(word: &'w Word) -> Option<Hole<'w>> {
        let (before, behind) = word.text.split_once(Word::HOLE)?;
        if behind.contains(Word::HOLE) {
            return None;
        }
        let text = &word.raw[word.raw.find('$')?..];
        if let Some((name, inner)) = alternative(text) {
            // What the word comes to where the variable is set: `prio $4` of `${4:+prio $4}`.
            let at = inner.find('$')?;
            let (named, _) = variable(&inner[at..]).filter(|(named, _)| *named == name)?;
            let end = inner[at..].strip_prefix("${").map_or(at + 1 + named.len(), |_| at + 3 + named.len());
            let plain = before.is_empty() && behind.is_empty() && !inner[end..].contains('$');
            return plain.then_some(Hole {
                before: &inner[..at],
                behind: &inner[end..],
                name,
                has_default: true,
            });
        }
        let (name, has_default) = variable(text)?;
        Some(Hole { before, behind, name, has_default })
    }
}

/// The variable and the text that replaces it where it is set: `${name:+text}`, `${name+text}`.
fn alternative(text: &str) -> Option<(&str, &str)> {
    let inner = text.trim_end_matches('"').strip_prefix("${")?.strip_suffix('}')?;
    let (name, behind) = inner.split_once('+')?;
    let name = name.strip_suffix(':').unwrap_or(name);
    let is_name =
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    is_name.then_some((name, behind))
}

/// The variable that a text begins with: `$name`, `$1`, `${name}`, `${name:-value}`.
fn variable(text: &str) -> Option<(&str, bool)> {
    let rest = text.strip_prefix('$')?;
    let (rest, braced) = rest.strip_prefix('{').map_or((rest, false), |inner| (inner, true));
    let digits = rest.starts_with(|first: char| first.is_ascii_digit());
    let end = match digits {
        // `$12` is `$1` and a 2.
        true if !braced => 1,
        true => rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len()),
        false => {
            rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len())
        }
    };
    let (name, behind) = rest.split_at(end);
    let has_default = braced && behind.starts_with([':', '-']);
    let plain = !braced || behind.starts_with('}') || behind.starts_with(":-") || behind.starts_with('-');
    (!name.is_empty() && plain).then_some((name, has_default))
}

/// The values of a function's variables at one of its commands.
struct Parameters {
    variables: BTreeMap<String, (usize, bool)>,
    /// Numbers count from another argument by now.
    shifted: bool,
}

impl Parameters {
    fn before(commands: &[Command], at: usize) -> Parameters {
        let function = &commands[at].function;
        let body =
            commands[..at].iter().rev().take(MAX_BODY).take_while(|command| command.function == *function);
        let body: Vec<&Command> = body.collect();
        let mut known = Parameters { variables: BTreeMap::new(), shifted: false };
        for command in body.into_iter().rev() {
            known.command(command);
        }
        known
    }

    fn command(&mut self, command: &Command) {
        let declares =
            |word: &Word| ["local", "declare", "typeset", "readonly", "export"].contains(&word.text.as_str());
        for word in command.words.iter().skip_while(|word| Command::leads(word) && !word.raw.contains('=')) {
            let assigned = word.raw.split_once('=').filter(|(name, _)| super::words::is_name(name));
            match assigned {
                Some((name, value)) => {
                    let value = value.trim_matches('"');
                    let whole = |(name, _): &(&str, bool)| {
                        let rest = value.trim_start_matches(['$', '{']);
                        rest.len() == name.len() || (value.starts_with("${") && value.ends_with('}'))
                    };
                    let stands_for = variable(value).filter(whole).and_then(|(of, has_default)| {
                        let (number, may_lack) = self.of(of)?;
                        Some((number, may_lack || has_default))
                    });
                    match stands_for {
                        Some(stands_for) => self.variables.insert(name.to_owned(), stands_for),
                        None => self.variables.remove(name),
                    };
                }
                None if declares(word) || word.raw.starts_with('-') => {}
                None => {
                    self.shifted |= word.text == "shift";
                    return;
                }
            }
        }
    }

    fn of(&self, name: &str) -> Option<(usize, bool)> {
        match name.parse::<usize>() {
            Ok(0) => None,
            Ok(number) => (!self.shifted).then_some((number, false)),
            Err(_) => self.variables.get(name).copied(),
        }
    }

    fn number(&self, hole: &Hole<'_>) -> Option<(usize, bool)> {
        self.of(hole.name).map(|(number, may_lack)| (number, may_lack || hole.has_default))
    }
}
