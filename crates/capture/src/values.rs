//! What the variables and arguments of a script may be, by its text.

use super::words::{Command, is_name};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Values by name, those of arguments by their number.
pub(super) type Values = BTreeMap<String, Vec<String>>;

/// What variables and arguments may be, by the text.
#[derive(Debug, Default)]
pub(super) struct Variables {
    values: Values,
    /// The arguments that each function is called with; of no function, the script's own.
    given: BTreeMap<Option<Rc<str>>, Values>,
}

impl Variables {
    /// The values that variables get in the text: `NAME=value`, `for NAME in a b`, `${NAME:-value}`; `$1`…
    /// from `args`, and within a function from its calls.
    pub(super) fn of(commands: &[Command], args: &[String]) -> Self {
        let mut found = Self::default();
        let numbered = args.iter().enumerate();
        let own = numbered.map(|(number, arg)| ((number + 1).to_string(), vec![arg.clone()]));
        found.given.insert(None, own.collect());
        let functions: BTreeSet<Rc<str>> =
            commands.iter().filter_map(|command| command.function.clone()).collect();
        // Functions are called below their bodies, and from one another.
        for _ in 0..if functions.is_empty() { 1 } else { MAX_ROUNDS } {
            for command in commands {
                found.assign(command);
                found.call(command, &functions);
            }
        }
        found
    }

    /// The values of variables by name, and of the script's own arguments by number.
    pub(super) fn of_script(mut self) -> Values {
        self.values.extend(self.given.remove(&None).unwrap_or_default());
        self.values
    }

    /// The values of variables by name.
    pub(super) fn named(&self) -> &Values {
        &self.values
    }

    /// What a raw word of a command may become.
    pub(super) fn resolve(&self, raw: &str, command: &Command) -> Vec<String> {
        let given = self.given.get(&command.function);
        // A function's arguments are its own.
        resolve_by(raw, &|name| match name.bytes().all(|byte| byte.is_ascii_digit()) {
            true => given?.get(name),
            false => self.values.get(name),
        })
    }

    fn assign(&mut self, command: &Command) {
        let words = &command.words;
        if let [keyword, name, inside, values @ ..] = &words[..]
            && keyword.text == "for"
            && inside.text == "in"
        {
            for value in values {
                let resolved = self.resolve(&value.raw, command);
                may_be(self.values.entry(name.text.clone()).or_default(), resolved);
            }
        }
        for word in words {
            if let Some((name, value)) = word.raw.split_once('=')
                && is_name(name)
            {
                let resolved = self.resolve(value, command);
                may_be(self.values.entry(name.to_owned()).or_default(), resolved);
            }
        }
    }

    /// Notes what a command gives to the function that it calls.
    fn call(&mut self, command: &Command, functions: &BTreeSet<Rc<str>>) {
        let Some(at) = command.words.iter().position(|word| !Command::leads(word)) else { return };
        let Some(function) = functions.get(command.words[at].text.as_str()) else { return };
        let words = command.words[at + 1..].iter().take(MAX_GIVEN);
        let mut given: Values = words
            .enumerate()
            .map(|(number, word)| ((number + 1).to_string(), self.resolve(&word.raw, command)))
            .collect();
        if command.passes_on().is_some() {
            for (number, values) in self.given.get(&command.function).into_iter().flatten() {
                given.entry(number.clone()).or_default().extend(values.iter().cloned());
            }
        }
        let known = self.given.entry(Some(Rc::clone(function))).or_default();
        for (number, values) in given {
            may_be(known.entry(number).or_default(), values);
        }
    }
}

/// How many arguments of a function are followed.
const MAX_GIVEN: usize = 32;
/// How many calls of functions within functions are followed.
const MAX_ROUNDS: usize = 3;
/// The most values that are followed of one variable, and the longest, bytes: `A=$A` a hundred times must not
/// double them.
const MAX_VALUES: usize = 64;
const MAX_VALUE: usize = 4096;

/// Notes values that are new.
fn may_be(known: &mut Vec<String>, values: Vec<String>) {
    for value in values {
        if known.len() < MAX_VALUES && value.len() <= MAX_VALUE && !known.contains(&value) {
            known.push(value);
        }
    }
}

/// What a raw word may become: itself, or the values of the variable it is.
pub(super) fn resolve(raw: &str, variables: &Values) -> Vec<String> {
    resolve_by(raw, &|name| variables.get(name))
}

/// Gives the values of a name.
type LookUp<'v> = dyn Fn(&str) -> Option<&'v Vec<String>> + 'v;

fn resolve_by<'v>(raw: &str, variables: &LookUp<'v>) -> Vec<String> {
    let bare = raw.trim_matches(['"', '\'']);
    let Some(rest) = bare.strip_prefix('$').filter(|_| !is_several_words(bare)) else {
        return if bare.contains(['$', '`']) { first_words(bare, variables) } else { vec![bare.to_owned()] };
    };
    let rest = rest.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(rest);
    let (name, default) = match rest.find(":-").or_else(|| rest.find(":=")) {
        Some(at) => (&rest[..at], Some(rest[at + 2..].trim_matches(['"', '\'']))),
        None => (rest, None),
    };
    match (variables(name), default) {
        (Some(values), _) => values.clone(),
        (None, Some(default)) if !default.contains('$') => vec![default.to_owned()],
        // `$(which tc)` and the like: the last word counts; arguments that follow stay.
        _ => rest
            .strip_prefix('(')
            .filter(|inner| LOOKUPS.iter().any(|lookup| inner.trim_start().starts_with(lookup)))
            .and_then(|inner| inner.split_once(')'))
            .filter(|(_, after)| after.is_empty() || after.starts_with(' '))
            .and_then(|(inner, after)| Some(vec![format!("{}{after}", inner.split_whitespace().last()?)]))
            .unwrap_or_default(),
    }
}

/// Commands that print where another is.
const LOOKUPS: [&str; 4] = ["which ", "command -v ", "type -P ", "type -p "];

/// `$TC filter add dev $IF`, but not `$(command -v tc)` nor `${TC:-a b}`.
fn is_several_words(text: &str) -> bool {
    let opens = text.find(['(', '{']).unwrap_or(text.len());
    text.find(' ').is_some_and(|blank| blank < opens)
}

/// Of several words in one (`tc filter add dev $IF parent 1:`), those whose values are known, up to the first
/// that is not: enough to identify the tool. A single word is not known by a part of it.
fn first_words(text: &str, variables: &LookUp<'_>) -> Vec<String> {
    if !is_several_words(text) {
        return Vec::new();
    }
    let value = |word: &str| match word.contains(['$', '`']) {
        false => Some(word.to_owned()),
        true => word.starts_with('$').then(|| resolve_by(word, variables).first().cloned()).flatten(),
    };
    let mut known = String::new();
    for word in text.split(' ').map_while(value) {
        // A script may use `$A` a million times.
        if known.len() + word.len() > MAX_VALUE {
            break;
        }
        known.push_str(&word);
        known.push(' ');
    }
    let known = known.trim_end();
    if known.is_empty() { Vec::new() } else { vec![known.to_owned()] }
}

#[cfg(test)]
mod tests {
    use super::super::words::commands;
    use super::*;

    #[test]
    fn variables_are_followed_through_defaults_loops_and_arguments() {
        let parsed = commands(
            "A=eth0\nB=${1:-eth1}\nC=\"$A\"\nD=${2:-ppp0}\nfor E in x $C; do :; done\nTC=$(which \
            tc)\nIPT=\"$(which iptables) -t mangle\"",
        );
        let found = Variables::of(&parsed, &["wan0".to_owned()]).of_script();
        let show = |name: &str| found.get(name).map(|values| values.join(" "));
        assert_eq!(
            ["A", "B", "C", "D", "E", "TC", "IPT"].map(show),
            ["eth0", "wan0", "eth0", "ppp0", "x eth0", "tc", "iptables -t mangle"]
                .map(|v| Some(v.to_owned()))
        );
    }

    #[test]
    fn values_of_a_variable_have_a_bound() {
        let text = format!(
            "A=x\n{}{}",
            "A=$A\n".repeat(100),
            (0..500).map(|n| format!("B={n}\n")).collect::<String>()
        );
        let found = Variables::of(&commands(&text), &[]).of_script();
        assert_eq!((found["A"].len(), found["B"].len()), (1, MAX_VALUES));
    }
}
