//! Which word of a command names the tool, and what stands behind it in the same word.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::super::values::resolve;
use super::super::words::{Command, Word};

/// What follows the tool's name in a word (`T="tc filter add dev eth0"`), for each value that it may have.
pub(super) fn words_behind(
    variables: &BTreeMap<String, Vec<String>>,
    word: &Word,
    tool: &str,
) -> Rc<[Vec<String>]> {
    // What a shell reads again is words of its own.
    if word.is_literal() || word.within {
        return Rc::new([]);
    }
    let values = resolve(&word.raw, variables);
    let behind = |value: &String| {
        let mut words = run_words(value).map(str::to_owned);
        words
            .next()
            .is_some_and(|name| name.rsplit('/').next() == Some(tool))
            .then(|| words.collect::<Vec<_>>())
    };
    values.iter().filter_map(behind).collect()
}

/// The words of a value that is run as a command, without those that only run it (`sudo tc …`).
fn run_words(value: &str) -> impl Iterator<Item = &str> {
    value.split_whitespace().skip_while(|word| RUN_BY.contains(word))
}

/// Commands that run the words behind them.
const RUN_BY: [&str; 6] = ["sudo", "doas", "nohup", "command", "exec", "env"];

/// The word of a command that names the tool: `tc`, `/sbin/tc`, `$TC`.
pub(super) fn tool_word(
    variables: &BTreeMap<String, Vec<String>>,
    command: &Command,
    tool: &str,
) -> Option<usize> {
    let is_tool = |name: &str| name.rsplit('/').next() == Some(tool);
    let literal = command.words.iter().position(|word| word.is_literal() && is_tool(&word.text));
    // `echo "$cmd"` shows what `eval "$cmd"` runs.
    let first = command.words.iter().find(|word| !Command::leads(word)).map_or("", |word| word.text.as_str());
    if matches!(first, "echo" | "printf" | "logger") {
        return literal;
    }
    literal.or_else(|| {
        command.words.iter().take(4).position(|word| {
            !word.is_literal()
                && !word.raw.contains(['=', ' '])
                && (resolve(&word.raw, variables)
                    .iter()
                    .any(|value| run_words(value).next().is_some_and(is_tool))
                    || word.raw.trim_matches(['$', '{', '}', '"']).eq_ignore_ascii_case(tool))
        })
    })
}
