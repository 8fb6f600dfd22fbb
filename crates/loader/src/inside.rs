//! Which line of a text behind a command (`tc -b - <<EOF`, `nft -f - <<EOF`) a tool refused.

use crate::format::MAX_POLICY;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tidegate_capture::{Recorded, ScriptRun};

/// A tool's refusal of a line of its input: where the tool is called, or the file it read; the line's number,
/// its words.
type Refused = (Result<PathBuf, (PathBuf, usize)>, usize, Vec<String>);

/// Says of what was refused in a text behind a command which line of the file that is.
pub fn point_inside(outcome: &mut ScriptRun) {
    // The first of each tool and line: there may be as many refusals as lines.
    let mut refused: BTreeMap<(&str, &Path, usize), Refused> = BTreeMap::new();
    for recorded in outcome.calls.iter().filter(|recorded| recorded.code != 0) {
        let (Some(source), Some((number, words))) = (&recorded.source, refused_line(recorded)) else {
            continue;
        };
        // The text is in the lines of the tool's call.
        let call = source.frames.last();
        let call = call.map_or((source.file.clone(), source.line), |frame| (frame.file.clone(), frame.line));
        let call = recorded.input.clone().ok_or(call);
        let key = (recorded.call.tool.as_str(), source.file.as_path(), source.line);
        refused.entry(key).or_insert((call, number, words));
    }
    let mut files: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for trouble in &mut outcome.troubles {
        let Some(place) = &mut trouble.place else { continue };
        let key = (trouble.who.as_str(), place.file.as_path(), place.line);
        let Some((from, number, words)) = refused.get(&key) else { continue };
        let file = from.as_ref().unwrap_or_else(|(file, _)| file);
        let lines = files.entry(file.clone()).or_insert_with(|| {
            let bytes = crate::files::read(file, MAX_POLICY).unwrap_or_default();
            String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
        });
        let found = match from {
            Ok(_) => Some(*number),
            Err((_, line)) => {
                line_inside(lines, *line, *number, words).map(|(at, _)| at).filter(|at| at != line)
            }
        };
        if let Some(at) = found {
            if from.is_ok() {
                place.called_from = Some((place.file.clone(), place.line));
            }
            let text = lines.get(at - 1).cloned().unwrap_or_default();
            let file = file.clone();
            place.text = text;
            (place.file, place.line, place.columns) = (file, at, None);
        }
    }
}

/// The place of a command that the call in line `call` read: literally in that line, or in line `number` of
/// the text behind it, where variables of the shell may replace some of its words. With the column it begins
/// in.
pub(super) fn line_inside(
    lines: &[String],
    call: usize,
    number: usize,
    words: &[String],
) -> Option<(usize, usize)> {
    let own = lines.get(call - 1)?;
    let text = words.join(" ");
    if let Some(at) = own.find(&text) {
        let begins = own[..at].chars().count();
        // The same words twice in a line are two commands, and which of them it was is not known.
        let once = !own[at + text.len()..].contains(&text);
        return once.then_some((call, begins));
    }
    let begin = if own.contains("<<") {
        behind(lines, call, number, words)
    } else {
        // Or the script has written the text before, as `cat >file <<EOF`: the only one that fits.
        let texts = (1..call).filter(|at| lines[at - 1].contains("<<")).take(MAX_TEXTS);
        let mut found = texts.filter_map(|at| behind(lines, at, number, words));
        found.next().filter(|_| found.next().is_none())
    };
    begin.map(|begin| (begin + 1, 0))
}

/// The line, from 0, where a command begins that is in line `number` of the text behind line `call`.
fn behind(lines: &[String], call: usize, number: usize, words: &[String]) -> Option<usize> {
    let (_, end) = lines.get(call - 1)?.split_once("<<")?;
    // Where the word that ends the text is quoted, the shell leaves the text as it is: the tool joins lines.
    let is_kept = end.trim_start_matches(['-', ' ']).starts_with(['\'', '"', '\\']);
    [begin_of(lines, call - 1 + number), begin_of_joined(lines, call, number).filter(|_| !is_kept)]
        .into_iter()
        .flatten()
        .find(|begin| agrees(&joined(lines, *begin), words))
}

/// The most texts that are looked through for one that a script has written to a file.
const MAX_TEXTS: usize = 64;
/// The most lines that are looked through for one that the shell has joined, and that one command may have.
const MAX_JOINED: usize = 4096;
const MAX_LINES: usize = 64;

fn goes_on(lines: &[String], at: usize) -> bool {
    lines.get(at).is_some_and(|line| line.ends_with('\\'))
}

/// The line where a command begins that ends in line `last`, from 0.
fn begin_of(lines: &[String], last: usize) -> Option<usize> {
    lines.get(last)?;
    (0..MAX_LINES)
        .map(|back| last.checked_sub(back))
        .find_map(|at| at.filter(|at| *at == 0 || !goes_on(lines, at - 1)))
}

/// The line where the command begins that is line `number` of what the shell makes of the text behind line
/// `call`, joining what goes on.
fn begin_of_joined(lines: &[String], call: usize, number: usize) -> Option<usize> {
    let mut begins =
        (call..lines.len().min(call + MAX_JOINED)).filter(|at| *at == call || !goes_on(lines, at - 1));
    begins.nth(number.checked_sub(1)?)
}

/// The words of the command that begins in a line, and goes on where that ends in a backslash.
fn joined(lines: &[String], begin: usize) -> Vec<&str> {
    let last = (begin..begin + MAX_LINES).find(|at| !goes_on(lines, *at)).unwrap_or(begin);
    let lines = lines.get(begin..=last.min(lines.len().saturating_sub(1))).unwrap_or_default();
    lines.iter().flat_map(|line| line.strip_suffix('\\').unwrap_or(line).split_whitespace()).collect()
}

/// Whether these words are what the shell, and the tool, may make of the written ones.
fn agrees(written: &[&str], words: &[String]) -> bool {
    let plain = |text: &str| -> String {
        let quoted = ['\'', '"'].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
        quoted.unwrap_or(text).to_owned()
    };
    // A tool that reads whole lines is given the quotes, too.
    let same = |(one, other): (&&str, &String)| *one == other || plain(one) == *other;
    let pairs = || written.iter().zip(words);
    written.len() == words.len()
        && pairs().all(|pair| same(pair) || may_become(&plain(pair.0), pair.1))
        && pairs().any(same)
}

/// Whether the shell can make `word` of what is written: the parts before its first variable and behind its
/// last must agree.
fn may_become(written: &str, word: &str) -> bool {
    let Some(first) = written.find(['$', '`']) else { return false };
    let name = |letter: char| letter.is_ascii_alphanumeric() || "_$`{}()".contains(letter);
    let last = written.rfind(['$', '`', '}', ')']).unwrap_or(first);
    let behind = written[last..].trim_start_matches(name);
    word.len() >= first + behind.len() && word.starts_with(&written[..first]) && word.ends_with(behind)
}

/// How the line begins with which tc and ip end what they say of a refused command of a batch.
const FAILED: &str = "Command failed ";

/// The number of the line of its standard input that a tool refused, by its message: `Command failed -:5`
/// (tc, ip), `/dev/stdin:5:43-46: Error` (nft), `iptables-restore: line 5 failed`, `Error occurred at line:
/// 5`.
fn refused_number(stderr: &str) -> Option<usize> {
    let number = |text: &str| text.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok();
    stderr.lines().find_map(|line| {
        if let Some(words) = line.strip_prefix(FAILED) {
            return number(words.rsplit_once(':')?.1);
        }
        let behind = ["/dev/stdin:", "Error occurred at line: ", "-restore: line "];
        behind.iter().find_map(|before| number(line.split_once(before)?.1))
    })
}

/// The line of its standard input that a tool refused, and its words.
fn refused_line(recorded: &Recorded) -> Option<(usize, Vec<String>)> {
    line_refused(recorded, &recorded.stderr)
}

/// What a tool said of each command of its standard input that it refused: a batch may go on after one.
pub(super) fn refusals(stderr: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut ended = false;
    for line in stderr.lines() {
        if std::mem::replace(&mut ended, line.starts_with(FAILED)) {
            all.push(String::new());
        }
        if let Some(text) = all.last_mut() {
            *text += line;
            text.push('\n');
        }
    }
    all
}

/// The line of its standard input that this text of a tool's refuses, and its words.
pub(super) fn line_refused(recorded: &Recorded, stderr: &str) -> Option<(usize, Vec<String>)> {
    let number = refused_number(stderr)?;
    let text = String::from_utf8_lossy(recorded.call.stdin.as_deref()?);
    let last = number.checked_sub(1)?;
    let lines: Vec<String> =
        text.lines().skip(last.saturating_sub(MAX_LINES)).take(MAX_LINES + 1).map(str::to_owned).collect();
    let begin = begin_of(&lines, last.min(MAX_LINES))?;
    let words: Vec<String> = joined(&lines, begin).into_iter().map(str::to_owned).collect();
    (!words.is_empty()).then_some((number, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of the script for a line of the text behind its first.
    fn at(script: &str, number: usize, words: &str) -> Option<usize> {
        let lines: Vec<String> = script.lines().map(str::to_owned).collect();
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        line_inside(&lines, 1, number, &words).map(|(line, _)| line)
    }

    #[test]
    fn lines_that_go_on_belong_to_where_they_begin() {
        let text = "a 1\nb \\\n  2 \\\n 3\n# c\nd '4' $X\nb 2 9\nEOF";
        let (kept, joined) = (format!("tc -b - <<'EOF'\n{text}"), format!("tc -b - <<EOF\n{text}"));
        // tc counts the lines that it is given, and names the last of a command.
        for (script, numbers) in [(&kept, [1, 4, 6, 7]), (&joined, [1, 2, 4, 5])] {
            let [first, second, third, fourth] = numbers;
            assert_eq!(at(script, first, "a 1"), Some(2), "{script}");
            assert_eq!(at(script, second, "b 2 3"), Some(3), "{script}");
            assert_eq!(at(script, third, "d 4 5"), Some(7), "{script}");
            assert_eq!(at(script, fourth, "b 2 9"), Some(8), "{script}");
            assert_eq!(at(script, second, "b 2 4"), None, "{script}");
        }
        assert_eq!(at("tc -b file\nb 2", 1, "b 2"), None);
        assert_eq!(at("tc -b - <<EOF\n\\", 1, "zz"), None);
        let call = "cat >/tmp/x <<EOF\na 1\nb 2\nEOF\ncat <<E >/tmp/y\na 1\nb 3\nE\ntc -b /tmp/x";
        let lines: Vec<String> = call.lines().map(str::to_owned).collect();
        let found = |number, words: [&str; 2]| {
            line_inside(&lines, 9, number, &words.map(str::to_owned)).map(|(line, _)| line)
        };
        assert_eq!(found(2, ["b", "2"]), Some(3));
        assert_eq!(at("nft -f - <<X\na \"b\" c", 1, "a \"b\" c"), Some(2));
        assert_eq!((found(1, ["a", "1"]), found(1, ["b", "2"])), (None, None), "twice, and elsewhere");
        let long = format!("tc -b - <<EOF\n{}x 1\n", "x \\\n".repeat(10_000));
        assert_eq!(at(&long, 9_000, "x 1"), None);
    }
}
