//! How well the words of a line agree with the arguments that a tool was given.

use super::words::{Command, Word};

/// The most words of a call that are compared; more would make a long line slow without a better result.
const MAX_WORDS: usize = 96;

/// How well a command agrees with a call, and which word of it gave which argument.
pub(super) struct Match {
    pub(super) score: i32,
    pub(super) perfect: bool,
    pub(super) words: Vec<Option<usize>>,
}

/// Aligns the words behind the tool's name with the arguments.
///
/// The best alignment of two lists, by the textbook table: an equal word counts 3, a word with a hole that
/// fits 2, one that is all hole 1 and may take several arguments; a literal word that the call does not have
/// costs 2, an argument that no word gave costs 1.
pub(super) fn agree(command: &Command, tool: usize, args: &[String]) -> Match {
    let given = &command.words[(tool + 1).min(command.words.len())..];
    let given = &given[..given.len().min(MAX_WORDS)];
    let weighed = &args[..args.len().min(MAX_WORDS)];
    let (rows, columns) = (given.len(), weighed.len());
    let width = columns + 1;
    let mut table = vec![0_i32; (rows + 1) * width];
    for row in (0..=rows).rev() {
        for column in (0..=columns).rev() {
            table[row * width + column] = step(&table, width, given, weighed, row, column).0;
        }
    }
    let mut words = vec![None; args.len()];
    let (mut row, mut column, mut perfect) = (0, 0, rows == columns && args.len() == columns);
    while row < rows || column < columns {
        let (_, way) = step(&table, width, given, weighed, row, column);
        perfect &= matches!(way, Way::Pair) && given.get(row).is_some_and(Word::is_literal);
        match way {
            Way::End => break,
            Way::Pair => {
                words[column] = Some(tool + 1 + row);
                row += 1;
                column += 1;
            }
            Way::Absorb => {
                words[column] = Some(tool + 1 + row);
                column += 1;
            }
            Way::SkipWord => row += 1,
            Way::SkipArg => column += 1,
        }
    }
    Match { score: table[0], perfect, words }
}

#[derive(Clone, Copy)]
enum Way {
    End,
    Pair,
    Absorb,
    SkipWord,
    SkipArg,
}

fn step(
    table: &[i32],
    width: usize,
    given: &[Word],
    args: &[String],
    row: usize,
    column: usize,
) -> (i32, Way) {
    let at = |row: usize, column: usize| table.get(row * width + column).copied().unwrap_or(0);
    let (word, arg) = (given.get(row), args.get(column));
    let mut ways = Vec::with_capacity(4);
    if let (Some(word), Some(arg)) = (word, arg) {
        let gain = fits(word, arg);
        if gain > 0 {
            ways.push((at(row + 1, column + 1) + gain, Way::Pair));
            if gain == 1 {
                ways.push((at(row, column + 1), Way::Absorb));
            }
        }
    }
    if let Some(word) = word {
        let cost = if word.is_literal() { 2 } else { 0 };
        ways.push((at(row + 1, column) - cost, Way::SkipWord));
    }
    if arg.is_some() {
        ways.push((at(row, column + 1) - 1, Way::SkipArg));
    }
    // `max_by_key` takes the last of equals; the first is the more telling.
    ways.into_iter().rev().max_by_key(|(score, _)| *score).unwrap_or((0, Way::End))
}

/// 3: the same word; 2: a word with a variable whose fixed parts are in the argument; 1: nothing but a
/// variable; 0: no.
pub(super) fn fits(word: &Word, arg: &str) -> i32 {
    if word.is_literal() {
        return if word.text == arg { 3 } else { 0 };
    }
    let mut parts = word.text.split(Word::HOLE);
    let (first, mut rest) = (parts.next().unwrap_or(""), arg);
    let Some(after) = rest.strip_prefix(first) else {
        return 0;
    };
    rest = after;
    let mut fixed = !first.is_empty();
    let parts: Vec<&str> = parts.collect();
    for (number, part) in parts.iter().enumerate() {
        if part.is_empty() {
            continue;
        }
        fixed = true;
        let found = if number + 1 == parts.len() {
            rest.strip_suffix(part).map(|_| "")
        } else {
            rest.find(part).map(|at| &rest[at + part.len()..])
        };
        match found {
            Some(after) => rest = after,
            None => return 0,
        }
    }
    if fixed { 2 } else { 1 }
}
