//! `tidegate policy wizard` on a terminal: what it asks, writes and applies, and what it leaves behind.

use crate::common;
use crate::folds::Terminal;
use common::TIDEGATE;
use common::computer::stderr;
use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

/// The answers, typed ahead: a terminal keeps them until they are read.
fn answered(terminal: &Terminal, typed: &str) -> Output {
    let typed_file = terminal.place.file("typed", typed);
    let mut command = terminal.command(100, &[], "policy wizard new.toml");
    command
        .env("TIDEGATE_STATE", terminal.place.0.join("kept"))
        .env("SSH_CONNECTION", "")
        .env("TMPDIR", &terminal.place.0);
    // `script` ends the input of its terminal where its own ends.
    command.stdin(std::fs::File::open(typed_file).expect("it was written"));
    terminal.computer.as_ref().map_or_else(
        || panic!("it is there"),
        |computer| {
            computer.place.go(move || command.output()).expect("the thread is there").expect("it runs")
        },
    )
}

/// The same, with Ctrl-C once a prompt is shown: what was shown, and the exit code.
fn interrupted(terminal: &Terminal, typed: &str, prompt: &str) -> (Option<i32>, String) {
    let mut command = terminal.command(100, &[], "policy wizard new.toml");
    command
        .env("TIDEGATE_STATE", terminal.place.0.join("kept"))
        .env("SSH_CONNECTION", "")
        .env("TMPDIR", &terminal.place.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let computer = terminal.computer.as_ref().expect("it is there");
    let mut child =
        computer.place.go(move || command.spawn()).expect("the thread is there").expect("it runs");
    let (mut stdin, mut stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    stdin.write_all(typed.as_bytes()).expect("it is taken");
    let (mut seen, mut bytes) = (Vec::new(), [0; 4096]);
    let shown = |seen: &[u8]| String::from_utf8_lossy(seen).into_owned();
    while shown(&seen).matches(prompt).count() == 0 {
        let count = stdout.read(&mut bytes).expect("it is read");
        assert!(count > 0, "it ended: {}", shown(&seen));
        seen.extend_from_slice(&bytes[..count]);
    }
    stdin.write_all(b"\x03").expect("it is taken");
    stdout.read_to_end(&mut seen).expect("it is read");
    (child.wait().expect("it is ours").code(), shown(&seen))
}

fn says(terminal: &Terminal, words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(TIDEGATE);
    command
        .args(words)
        .env("TIDEGATE_RUN", terminal.place.0.join("run"))
        .env("TIDEGATE_STATE", terminal.place.0.join("kept"));
    let computer = terminal.computer.as_ref().expect("it is there");
    let output = computer.place.go(move || command.output()).expect("the thread is there").expect("it runs");
    (output.status.code(), stderr(&output))
}

/// What the wizard leaves in its directory.
fn left(terminal: &Terminal) -> Vec<String> {
    let all = std::fs::read_dir(&terminal.place.0).expect("it is there").flatten();
    let names = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("new") || name.starts_with("tidegate")).collect()
}

const ANSWERS: &str = "eth0\n900kbit 2mbit\nfibre\nvoip\nnone\n";

#[test]
fn the_wizard_asks_again_and_only_writes_after_a_no() {
    let Some(terminal) = Terminal::new("wizard-no") else { return };
    if terminal.computer.is_none() {
        return;
    }
    let typed = "eth7\nlo\neth0\n38\n900kbit 2\n900kbit 2mbit\ndsl\u{7}\nfibre\neverybody\nhome\nnobody\n\
        10.0.0.9\nperhaps\nno\n";
    let output = answered(&terminal, typed);
    let text = stderr(&output);
    for reason in [
        "There is no device \"eth7\"; there are eth",
        "lo leads to no other computer; there are eth",
        "Write two rates",
        "\"2\" has no unit",
        "unknown kind of link \"dsl",
        "unknown preset \"everybody\"",
        "\"nobody\"",
        "Write yes, no or neither.",
        // What it changes.
        "cuts the ping's 95th percentile from",
        "new.toml is written",
    ] {
        assert!(text.contains(reason), "{reason}: {text}");
    }
    assert_eq!((output.status.code(), left(&terminal)), (Some(0), vec!["new.toml".to_owned()]), "{text}");
    let written = std::fs::read_to_string(terminal.place.0.join("new.toml")).expect("it is there");
    assert!(
        written.contains("up = \"900kbit\"") && written.contains("[classes.bulk]\nhosts = [\"10.0.0.9\"]"),
        "{written}"
    );
    assert_eq!(says(&terminal, &["status"]).0, Some(1), "nothing is applied");
    // Neither leaves all as it is.
    std::fs::remove_file(terminal.place.0.join("new.toml")).expect("it was there");
    let output = answered(&terminal, &format!("{ANSWERS}neither\n"));
    let text = stderr(&output);
    assert_eq!((output.status.code(), left(&terminal)), (Some(0), Vec::new()), "{text}");
    assert!(text.trim_end().ends_with("Nothing was written or changed."), "{text}");
    terminal.place.file("new.toml", "");
    // It writes over nothing.
    let text = stderr(&answered(&terminal, ANSWERS));
    assert!(text.contains("there is a file of that name"), "{text}");
}

#[test]
fn the_end_of_input_and_ctrl_c_leave_nothing_behind() {
    let Some(terminal) = Terminal::new("wizard-end") else { return };
    if terminal.computer.is_none() {
        return;
    }
    for typed in ["", "eth0\n900kbit 2mbit\n", ANSWERS] {
        let output = answered(&terminal, typed);
        let text = stderr(&output);
        assert_eq!((output.status.code(), left(&terminal)), (Some(3), Vec::new()), "{typed:?}: {text}");
        assert!(text.contains("ended; nothing was written or changed"), "{typed:?}: {text}");
    }
    for (typed, prompt) in [
        ("eth0\n", "rates:"),
        ("eth0\n900kbit 2mbit\nfib", "link [ethernet]:"),
        (ANSWERS, "yes, no or neither:"),
    ] {
        let (code, text) = interrupted(&terminal, typed, prompt);
        assert_eq!((code, left(&terminal)), (Some(3), Vec::new()), "{typed:?}: {text}");
        assert!(text.contains("ended; nothing was written or changed"), "{typed:?}: {text}");
    }
    assert_eq!(says(&terminal, &["status"]).0, Some(1), "nothing is applied");
}

#[test]
fn the_wizard_applies_after_a_yes() {
    let Some(terminal) = Terminal::new("wizard-yes") else { return };
    if terminal.computer.is_none() {
        return;
    }
    let text = stderr(&answered(&terminal, &format!("{ANSWERS}yes\nyes\n")));
    if text.contains("not permitted") || text.contains("not supported") {
        eprintln!("SKIPPED: {text}");
        return;
    }
    assert!(
        text.contains("it is undone in 120 s unless confirmed") && text.contains("confirmed: eth0"),
        "{text}"
    );
    let (code, status) = says(&terminal, &["status"]);
    assert_eq!(code, Some(0), "{status}");
    assert!(status.contains("(calls)"), "{status}");
    assert_eq!(says(&terminal, &["down"]).0, Some(0));

    // After a no, or without an answer, it is undone at once.
    for (typed, kept) in [("yes\nno\n", 1), ("yes\n", 0)] {
        let _ = std::fs::remove_file(terminal.place.0.join("new.toml"));
        let text = stderr(&answered(&terminal, &format!("{ANSWERS}{typed}")));
        assert!(text.contains("reverted: eth0"), "{typed:?}: {text}");
        assert_eq!(left(&terminal).len(), kept, "{typed:?}: {text}");
        assert_eq!(says(&terminal, &["status"]).0, Some(1), "{typed:?}: nothing is applied");
    }
    let _ = std::fs::remove_file(terminal.place.0.join("new.toml"));
    let (code, text) = interrupted(&terminal, &format!("{ANSWERS}yes\n"), "and shall the policy stay?");
    assert!(text.contains("reverted: eth0"), "{text}");
    assert_eq!((code, left(&terminal)), (Some(3), Vec::new()), "{text}");
    assert_eq!(says(&terminal, &["status"]).0, Some(1), "nothing is applied");
}

#[test]
fn without_a_terminal_the_wizard_prints_what_to_give_instead() {
    let output =
        Command::new(TIDEGATE).args(["policy", "wizard"]).stdin(Stdio::null()).output().expect("it runs");
    let text = stderr(&output);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{text}");
    assert!(text.contains("tidegate policy new home --dev eth0") && text.contains("--confirm 60s"), "{text}");
}
