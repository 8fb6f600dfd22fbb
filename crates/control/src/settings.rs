//! Settings of controllers: limits of rates, and `KEY=VALUE` files.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

/// The most lines of a file of settings.
const MAX_LINES: usize = 10_000;

/// A setting that cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadControlSetting {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub why: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for BadControlSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {} ({})", self.line, self.why, self.remedy)
    }
}

impl core::error::Error for BadControlSetting {}

/// Gives each `KEY=VALUE` of a shell's file of settings to `take`: as data, nothing is run. Lists in
/// brackets, which may take several lines, are passed over, and so is the rest of a line behind `#`.
///
/// # Errors
/// A line that is no setting; what `take` refuses.
pub(crate) fn key_values(
    text: &str,
    mut take: impl FnMut(&str, &str) -> Result<(), String>,
) -> Result<(), BadControlSetting> {
    let mut in_list = false;
    for (number, whole) in (1..).zip(text.lines()) {
        let bad =
            |why: String, remedy: &str| BadControlSetting { line: number, why, remedy: remedy.to_string() };
        if number > MAX_LINES {
            return Err(bad(format!("more than {MAX_LINES} lines"), "this is no file of settings"));
        }
        let line = without_comment(whole).trim();
        if in_list {
            in_list = !line.ends_with(')');
            continue;
        }
        if line.is_empty() {
            continue;
        }
        let Some((key, value)) = line.split_once('=').map(|(key, value)| (key.trim_end(), value.trim()))
        else {
            return Err(bad(format!("`{line}` is no setting"), "write KEY=VALUE; commands are not run"));
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if key.is_empty() || !key.chars().all(is_name) {
            return Err(bad(format!("`{key}` is no name of a setting"), "letters, digits and _"));
        }
        if value.starts_with('(') {
            in_list = !value.ends_with(')');
            continue;
        }
        let unquoted = value.trim_matches(|c| c == '"' || c == '\'');
        if unquoted.contains(['$', '`']) {
            return Err(bad(format!("`{key}` asks the shell for its value"), "write the value itself"));
        }
        take(key, unquoted).map_err(|why| bad(why, "see docs/gym.md for the settings that are read"))?;
    }
    Ok(())
}

/// Outside quotes a `#` that begins a word begins a comment.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == '#' && before.is_whitespace() => return &line[..at],
            _ => {}
        }
        before = c;
    }
    line
}

/// A number of a setting.
pub(crate) fn number(key: &str, value: &str) -> Result<f64, String> {
    let found: Option<f64> = value.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0);
    found.ok_or_else(|| format!("`{value}` is no number for {key}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn settings_are_data_and_nothing_is_run() {
        let mut seen = Vec::new();
        let text = "# a comment\nreflectors=(\n\"1.1.1.1\" # one\n\"8.8.8.8\"\n)\n a=1 # b=2\nc=\"x #1\"\n\n";
        key_values(text, |key, value| {
            seen.push((key.to_string(), value.to_string()));
            Ok(())
        })
        .expect("settings");
        assert_eq!(seen, [("a".into(), "1".into()), ("c".into(), "x #1".into())]);
        for (text, line) in [("a=1\nrm -rf x", 2), ("a=$(reboot)", 1), ("a b=1", 1), ("=1", 1)] {
            let wrong = key_values(text, |_, _| Ok(())).expect_err(text);
            assert_eq!(wrong.line, line, "{wrong}");
        }
    }
}
