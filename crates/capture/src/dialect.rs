//! Where a script has words of bash's, and the shell that runs it is another.

use super::error::{CaptureError, SHELL, Trouble, TroubleKind};
use super::place::SourceLine;
use super::scan::Script;
use super::words::{self, Bashism, BashismKind};
use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use tidegate_shims::TOOLS;

/// The most lines of one script that are told.
const MAX_TOLD: usize = 20;
/// Commands that look for another and do not run it.
const LOOKUPS: [&str; 4] = ["command", "which", "type", "hash"];
/// Commands that run others, whose names may stand in a variable or a file.
const RUNNERS: [&str; 16] = [
    ".", "source", "eval", "sh", "bash", "dash", "ash", "sudo", "doas", "env", "busybox", "nohup", "timeout",
    "xargs", "nice", "exec",
];
/// Commands that bash has and a shell of POSIX has not, and what their absence does.
const BUILTINS: [(&str, &str, &str); 9] = [
    ("[[", "the condition counts as false", "write it with `[`, which has no && and no == within"),
    ("source", "the file is not read in", "write `. FILE`"),
    ("declare", "the variable is not set", "write `NAME=VALUE`"),
    ("typeset", "the variable is not set", "write `NAME=VALUE`"),
    ("let", "the variable is not set", "write `NAME=$((…))`"),
    ("shopt", "the option is not set", "take the line out"),
    ("mapfile", "nothing is read", "read with `while read -r LINE`"),
    ("readarray", "nothing is read", "read with `while read -r LINE`"),
    ("pushd", "the directory stays", "write `cd DIR`"),
];

/// Refuses a script whose result is a matter of chance: its shell runs in the background what may configure
/// traffic control.
///
/// # Errors
/// The first such line.
pub(super) fn refuse_race(script: &Script) -> Result<(), CaptureError> {
    if !runs_in_dash(script) {
        return Ok(());
    }
    let all: Vec<_> = script.files.iter().map(|(file, text)| (file, words::commands(text), text)).collect();
    let functions: BTreeSet<&str> = all
        .iter()
        .flat_map(|(_, commands, _)| commands.iter().filter_map(|command| command.function.as_deref()))
        .collect();
    for (file, _, text) in &all {
        if let Some(found) = words::bashisms(text).iter().find(|found| races(found, &functions)) {
            return Err(CaptureError::Background((*file).clone(), found.line));
        }
    }
    Ok(())
}

/// Whether what is written so may configure traffic control beside what follows.
fn races(found: &Bashism, functions: &BTreeSet<&str>) -> bool {
    match &found.kind {
        BashismKind::BothOutputs { command } => may_call_tools(command, functions),
        BashismKind::Braces
        | BashismKind::DollarQuote
        | BashismKind::Arithmetic
        | BashismKind::DollarBracket
        | BashismKind::Variable(_) => false,
    }
}

/// What its shell reads otherwise than bash does, each with its place.
pub(super) fn remarks(script: &Script) -> Vec<Trouble> {
    if !runs_in_dash(script) {
        return Vec::new();
    }
    // What the script or who calls it has given a value.
    let mut given = BTreeSet::new();
    for (_, text) in &script.files {
        for command in words::commands(text) {
            given.extend((0..command.words.len()).filter_map(|word| command.sets(word).map(str::to_owned)));
        }
    }
    let is_given = |bashism: &Bashism| match bashism.kind {
        BashismKind::Variable(name) => given.contains(name) || env::var_os(name).is_some(),
        _ => false,
    };
    let found = script.files.iter().flat_map(|(file, text)| {
        let found = words::bashisms(text).into_iter().filter(|bashism| !is_given(bashism));
        found.map(move |bashism| remark(file, text, &bashism))
    });
    found.take(MAX_TOLD).collect()
}

/// Whether a remark says already why a command was not found: `n++` of `((n++))` is none.
pub(super) fn is_told(trouble: &Trouble, remarks: &[Trouble]) -> bool {
    let (TroubleKind::NotRun, Some(place)) = (trouble.kind, &trouble.place) else { return false };
    let name = trouble.reason.split(": ").next().unwrap_or_default();
    remarks.iter().filter_map(|remark| remark.place.as_ref()).any(|at| {
        let start = at.columns.as_ref().map_or(0, |columns| columns.start);
        let rest: String = at.text.chars().skip(start).collect();
        (&at.file, at.line) == (&place.file, place.line) && rest.starts_with("((") && rest.contains(name)
    })
}

fn remark(file: &Path, text: &str, bashism: &Bashism) -> Trouble {
    let (reason, remedy) = match bashism.kind {
        BashismKind::BothOutputs { .. } => (
            "`&>` is bash's: sh (dash) runs the command before it in the background, and goes on as if it had \
             succeeded"
                .to_owned(),
            "write `>FILE 2>&1`",
        ),
        BashismKind::Braces => (
            "`{…}` is not replaced by several words here: bash does that, sh (dash) takes it as it is written"
                .to_owned(),
            "write the words out",
        ),
        BashismKind::DollarQuote => (
            "`$'` is bash's: sh (dash) takes the dollar as a letter, and the text as it is written".to_owned(),
            "write `\"$(printf '…')\"`",
        ),
        BashismKind::Arithmetic => (
            "`((…))` is bash's: sh (dash) runs what is within as a command, in a shell of its own, where nothing \
             is computed"
                .to_owned(),
            "write `NAME=$((…))`, or `[ … ]` for a condition",
        ),
        BashismKind::DollarBracket => (
            "`$[…]` is bash's: sh (dash) computes nothing there, and takes it as it is written".to_owned(),
            "write `$((…))`",
        ),
        BashismKind::Variable(name) => (
            format!("`{name}` is a variable of bash's: sh (dash) does not set it, and it is empty here"),
            "find its value by a command (`id -u`, `hostname`)",
        ),
    };
    let place = SourceLine {
        file: file.to_owned(),
        line: bashism.line,
        text: text.lines().nth(bashism.line - 1).unwrap_or_default().to_owned(),
        columns: Some(bashism.columns.clone()),
        frames: Vec::new(),
        called_from: None,
    };
    Trouble {
        place: Some(place),
        who: SHELL.to_owned(),
        reason,
        remedy: Some(format!("{remedy}, or let the first line name bash")),
        kind: TroubleKind::Dialect,
    }
}

/// What the shell says it does not know, where bash does: reason and remedy. `line` is the script's.
pub(super) fn complaint(text: &str, line: &str) -> Option<(String, String)> {
    let is_test = text.starts_with("[: ") || text.starts_with("test: ");
    if is_test && text.ends_with(": unexpected operator") && line.contains("==") {
        return Some((
            "`==` is bash's: `[` of the shell that runs this script does not know it, and the condition counts \
             as false"
                .to_owned(),
            "write `=`".to_owned(),
        ));
    }
    let name = text.strip_suffix(": not found")?;
    if let Some((variable, _)) = name.split_once("+=").filter(|(before, _)| words::is_name(before)) {
        return Some((
            format!(
                "`{variable}+=` is bash's: the shell that runs this script takes it for a command's name, and \
                 the variable stays as it was"
            ),
            format!("let the first line name bash, or write `{variable}=\"${variable}…\"`"),
        ));
    }
    let (_, effect, remedy) = BUILTINS.iter().find(|(builtin, ..)| *builtin == name)?;
    Some((
        format!("`{name}` is bash's: the shell that runs this script has no such command, and {effect}"),
        format!("let the first line name bash, or {remedy}"),
    ))
}

/// A remedy for what a shell of POSIX cannot read; `None`: its words are about something else.
pub(super) fn syntax_remedy(text: &str) -> Option<&'static str> {
    ends_shell(text).then_some(
        "if the line is bash's (`<(…)`, `<<<`, `A=(…)`, `${A//x/y}`, `set -o pipefail`), let the first line name \
         bash; nothing outside the sandbox was changed",
    )
}

/// Whether a shell of POSIX ends with these words of its own, because it cannot go on behind what it read.
pub(super) fn ends_shell(text: &str) -> bool {
    let anywhere = ["Syntax error: ", "Bad substitution", "bad substitution", "arithmetic expression: "];
    let of_builtins = ["set: Illegal option", "export: Illegal option", "unset: Illegal option"];
    anywhere.iter().any(|words| text.contains(words))
        || of_builtins.iter().any(|words| text.starts_with(words))
        || text.starts_with("local: ") && text.ends_with(": bad variable name")
}

fn runs_in_dash(script: &Script) -> bool {
    // `/usr/bin/env sh`
    let is_env = |word: &&OsString| Path::new(word).file_name().is_some_and(|name| name == "env");
    let shell = script.interpreter.iter().find(|word| !is_env(word));
    // Without a directory it is the usual one's.
    let shell = shell.and_then(|name| fs::canonicalize(Path::new("/bin").join(name)).ok());
    shell.is_some_and(|shell| shell.file_name().is_some_and(|name| name == "dash"))
}

/// Whether a command, or what it runs, may be a tool that is answered here.
fn may_call_tools(command: &[words::Word], functions: &BTreeSet<&str>) -> bool {
    // What ends with a bracket or a keyword has other commands within.
    let Some(first) = command.iter().find(|word| !words::Command::leads(word)) else { return true };
    let name = first.text.rsplit('/').next().unwrap_or_default();
    if LOOKUPS.contains(&name) && !command.iter().any(|word| word.text == "-p") {
        return false;
    }
    let is_tool = |word: &words::Word| TOOLS.contains(&word.text.rsplit('/').next().unwrap_or_default());
    !first.is_literal()
        || ["fi", "done", "esac", "}"].contains(&name)
        || RUNNERS.contains(&name)
        || functions.contains(name)
        || command.iter().any(is_tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_configure_something_is_a_race() {
        let rows = [
            ("tc qdisc del dev eth0 root &>/dev/null", true),
            ("/sbin/tc qdisc show &> x", true),
            ("$TC qdisc show &>x", true),
            ("if ! tc qdisc show &>x; then :; fi", true),
            ("A=1 sudo $X &>x", true),
            ("f() { tc qdisc show; }\nf 1 &>x", true),
            ("{ tc qdisc show; } &>x", true),
            ("(tc qdisc show) &>x", true),
            ("x=$(tc qdisc show &>x)", true),
            ("command -v tc &>/dev/null || exit 1", false),
            ("which tc &>x", false),
            ("command -p tc qdisc show &>x", true),
            ("ping -c1 $HOST &>x", false),
            ("grep -q ifb /proc/modules &>x", false),
            ("echo '&>' # &>", false),
        ];
        for (text, expected) in rows {
            let commands = words::commands(text);
            let functions = commands.iter().filter_map(|command| command.function.as_deref()).collect();
            let is_race = words::bashisms(text).iter().any(|found| races(found, &functions));
            assert_eq!(is_race, expected, "{text}");
        }
    }

    #[test]
    fn the_first_line_names_the_shell() {
        if !Path::new("/bin/dash").exists() {
            eprintln!("SKIPPED: no /bin/dash on this machine");
            return;
        }
        let path = std::env::temp_dir().join(format!("tidegate-dash-{}.sh", std::process::id()));
        let in_dash = |first: &str| {
            fs::write(&path, format!("{first}\ntrue\n")).expect("a file");
            runs_in_dash(&Script::read(&path).expect("a script"))
        };
        let rows = ["#!/bin/dash", "#!/bin/dash -e", "#!/usr/bin/env dash", "#! dash", "#!/bin/bash"];
        let found = rows.map(in_dash);
        let _ = fs::remove_file(&path);
        assert_eq!(found, [true, true, true, true, false]);
    }

    #[test]
    fn what_only_bash_knows_is_told_by_its_name() {
        let told = |text: &str, line: &str| complaint(text, line).map(|(reason, _)| reason);
        for (name, effect, _) in BUILTINS {
            let reason = told(&format!("{name}: not found"), "").unwrap_or_default();
            assert!(
                reason.starts_with(&format!("`{name}` is bash's")) && reason.ends_with(effect),
                "{reason}"
            );
        }
        assert!(told("[: a: unexpected operator", "[ $1 == a ]").is_some());
        // Another mistake of the same kind.
        assert_eq!(told("[: a: unexpected operator", "[ $1 a b ]"), None);
        assert_eq!(told("flent: not found", "flent x"), None);
        assert!(syntax_remedy("Syntax error: \"(\" unexpected").is_some());
        assert_eq!(syntax_remedy("x: not found"), None);
    }
}
