//! A session with tc: each command's answer, and what the listings show then, as a real Linux gave them
//! (`data/session.txt`).

use super::lists::Lists;
use super::vectors::words;
use tidegate_packet::Time;
use tidegate_recording::{SCRIPT_AT, at};

const SESSION: &str = include_str!("../data/session.txt");

#[test]
fn commands_are_answered_as_linux_did() {
    let mut lists = Lists::new();
    // Actions of deleted filters stay while time does not advance.
    let now: Time = at(SCRIPT_AT);
    assert_eq!(lists.answer(now, &words("qdisc add dev link0 root handle 1: prio bands 16")), "");
    let (mut differ, mut count) = (String::new(), 0);
    let mut lines = SESSION.lines().filter(|line| !line.starts_with('#')).peekable();
    while let Some(command) = lines.next() {
        let mut wanted = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with('=')) {
            wanted.push(line[1..].strip_prefix(' ').unwrap_or_default());
        }
        let output = lists.answer(now, &words(command.strip_prefix("tc ").expect(command)));
        let sentences: Vec<&str> = output.lines().map(|line| line.trim_end_matches(' ')).collect();
        if sentences != wanted {
            differ += &format!("{command}\n  Linux {wanted:#?}\n  here  {sentences:#?}\n");
        }
        count += 1;
    }
    assert!(differ.is_empty(), "{differ}");
    assert!(count > 150, "only {count} commands");
}
