//! Which line of a text behind a command (`tc -b - <<EOF`, `nft -f - <<EOF`) a tool refused.

use crate::format::MAX_POLICY;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tidegate_capture::{Recorded, ScriptRun};
use tidegate_sys::input_file;

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
            let bytes = input_file::read(file, MAX_POLICY).unwrap_or_default();
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
    let behind: Vec<&str> = lines.get(call - 1 + number)?.split_whitespace().collect();
    let agrees = |(one, other): (&&str, &String)| *one == other || may_become(one, other);
    let same = own.contains("<<") && behind.len() == words.len() && behind.iter().zip(words).all(agrees);
    let same = same && behind.iter().zip(words).any(|(one, other)| *one == other);
    same.then_some((call + number, 0))
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
    let words: Vec<String> =
        text.lines().nth(number.checked_sub(1)?)?.split_whitespace().map(str::to_owned).collect();
    (!words.is_empty()).then_some((number, words))
}
