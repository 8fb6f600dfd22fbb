//! The commands of a bundle: `tidegate` with words that read and write inside it only.
//!
//! What a bundle says is to be run may come from a stranger: a command is taken only if each of its words is
//! one of these.

use super::names::{self, FIGURES, INPUTS, RESULTS};
use std::collections::BTreeSet;

/// The most commands of a bundle, and words of one.
const MAX_COMMANDS: usize = 200;
const MAX_WORDS: usize = 10_000;

/// The options with a value, and without.
const VALUED: [&str; 16] = [
    "--set",
    "--latin",
    "--only",
    "--skip",
    "--policy",
    "--load",
    "--seed",
    "--repeats",
    "--duration",
    "--figure",
    "--plot",
    "--width",
    "--by",
    "--where",
    "--timeout",
    "--intervals",
];
const PLAIN: [&str; 2] = ["--paired", "--private"];

/// A command of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleCommand {
    /// The words behind the program's name: the command first.
    pub words: Vec<String>,
    /// The exit code that it ends with: 1 where an assertion of the scenario fails.
    pub exit: u8,
}

impl BundleCommand {
    /// The files that it writes, inside the bundle.
    pub(super) fn outputs(&self) -> impl Iterator<Item = &str> {
        self.words.windows(2).filter(|pair| pair[0] == "-o").map(|pair| pair[1].as_str())
    }
}

/// Checks commands that a file says.
///
/// # Errors
/// The first that is none of a bundle, and why.
pub(super) fn check(commands: &[BundleCommand]) -> Result<(), String> {
    if commands.is_empty() || commands.len() > MAX_COMMANDS {
        return Err(format!("it has {} commands: from 1 to {MAX_COMMANDS} are allowed", commands.len()));
    }
    let mut outputs = BTreeSet::new();
    for (number, command) in (1..).zip(commands) {
        let wrong = |why: String| format!("command {number}: {why}");
        words(&command.words).map_err(wrong)?;
        if command.exit > 1 || (command.exit == 1 && command.words[0] != "sim") {
            return Err(wrong(format!("{} is no exit code of a command that ended well", command.exit)));
        }
        if let Some(twice) = command.outputs().find(|name| !outputs.insert(*name)) {
            return Err(wrong(format!("`{twice}` is written twice")));
        }
    }
    Ok(())
}

fn words(words: &[String]) -> Result<(), String> {
    let Some((verb, rest)) = words.split_first() else { return Err("it has no word".into()) };
    if !matches!(verb.as_str(), "sweep" | "results" | "sim") {
        return Err(format!("`{}` is not among sweep, results and sim", tidegate_text::line(verb)));
    }
    if words.len() > MAX_WORDS {
        return Err(format!("it has more than {MAX_WORDS} words"));
    }
    let from = if verb == "results" { RESULTS } else { INPUTS };
    let below = |name: &str, dirs: &[&str]| -> Result<(), String> {
        let name = names::checked(name)?;
        let is_below = dirs.iter().any(|dir| name.split_once('/').is_some_and(|(first, _)| first == *dir));
        if is_below { Ok(()) } else { Err(format!("`{name}` is not in {}", dirs.join(" or "))) }
    };
    let (mut rest, mut files) = (rest.iter(), 0);
    while let Some(word) = rest.next() {
        if !word.chars().all(tidegate_text::is_visible) {
            let shown = tidegate_text::line(word);
            return Err(format!("`{shown}` has control characters or invisible ones"));
        }
        let (option, joined) = word.split_once('=').map_or((word.as_str(), None), |(a, b)| (a, Some(b)));
        if word == "-o" {
            below(rest.next().map_or("", String::as_str), &[RESULTS, FIGURES])?;
        } else if VALUED.contains(&option) {
            let value = joined.or_else(|| rest.next().map(String::as_str));
            let value = value.ok_or_else(|| format!("{option} has no value"))?;
            // A word with a hyphen before it could be taken for another option.
            if !value.chars().all(tidegate_text::is_visible) || (joined.is_none() && value.starts_with('-')) {
                return Err(format!("{option} has the value `{}`", tidegate_text::line(value)));
            }
        } else if !PLAIN.contains(&word.as_str()) {
            if word.starts_with('-') {
                return Err(format!("{word} is no option of a bundle's command"));
            }
            below(word, &[from])?;
            files += 1;
        }
    }
    if files == 1 { Ok(()) } else { Err(format!("it names {files} files, not one")) }
}

/// An option with its value as words of a command.
///
/// # Errors
/// The value has control characters, which neither lists nor shells show.
pub fn option(name: &str, value: &str) -> Result<Vec<String>, String> {
    if !value.chars().all(tidegate_text::is_visible) {
        let shown = tidegate_text::line(value);
        return Err(format!("{name} `{shown}`: control characters and invisible ones cannot be in a bundle"));
    }
    match value.starts_with('-') {
        true => Ok(vec![format!("{name}={value}")]),
        false => Ok(vec![name.to_owned(), value.to_owned()]),
    }
}

/// A word as any POSIX shell takes it for one; control characters are not among its letters.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: &str) -> BundleCommand {
        BundleCommand { words: line.split(' ').map(str::to_owned).collect(), exit: 0 }
    }

    #[test]
    fn commands_read_and_write_inside() {
        let good = [
            command("sweep inputs/s.toml --set rtt=1ms,2ms --paired --only=-1<rtt -o results/rows.csv"),
            command("results results/rows.csv --plot rtt,ping.p95 -o figures/1.pdf -o figures/1.svg"),
            BundleCommand { exit: 1, ..command("sim inputs/s.toml -o results/experiment.json") },
        ];
        assert_eq!(check(&good), Ok(()));
        assert_eq!(good[1].outputs().collect::<Vec<_>>(), ["figures/1.pdf", "figures/1.svg"]);
        for (line, why) in [
            ("apply inputs/s.toml", "`apply` is not among"),
            ("sweep inputs/../../x -o results/r.csv", "no path below"),
            ("sweep /etc/passwd", "no path below"),
            ("sweep results/x.toml", "is not in inputs"),
            ("sweep inputs", "is not in inputs"),
            ("sweep inputs/s.toml -o inputs/s.toml", "is not in results or figures"),
            ("sweep inputs/s.toml -o", "no path below"),
            ("sweep inputs/s.toml --output=/root/.bashrc", "--output=/root/.bashrc is no option"),
            ("sweep inputs/s.toml -o/root/.bashrc", "-o/root/.bashrc is no option"),
            ("sim inputs/s.toml --svg /tmp", "--svg is no option"),
            ("sweep inputs/s.toml --set", "--set has no value"),
            ("sweep inputs/s.toml --set --json", "--set has the value `--json`"),
            ("sweep inputs/s.toml inputs/t.toml", "it names 2 files"),
            ("sweep --paired", "it names 0 files"),
        ] {
            let wrong = check(&[command(line)]).expect_err(line);
            assert!(wrong.starts_with("command 1: ") && wrong.contains(why), "{line}: {wrong}");
        }
        let escape = BundleCommand { words: vec!["sweep".into(), "inputs/\u{1b}c".into()], exit: 0 };
        assert!(check(&[escape]).is_err());
        assert!(check(&[BundleCommand { exit: 1, ..good[0].clone() }]).is_err());
        let twice = [good[0].clone(), good[0].clone()];
        assert!(check(&twice).is_err_and(|why| why.contains("written twice")) && check(&[]).is_err());
    }

    #[test]
    fn words_are_quoted_for_any_shell() {
        for (word, expected) in [
            ("rtt=1ms", "rtt=1ms"),
            ("it's $(reboot)", r"'it'\''s $(reboot)'"),
            ("", "''"),
            ("a`b", "'a`b'"),
            ("~", "'~'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
        assert_eq!(option("--only", "-1<x"), Ok(vec!["--only=-1<x".into()]));
        assert!(option("--set", "a=b\n").is_err());
    }
}
