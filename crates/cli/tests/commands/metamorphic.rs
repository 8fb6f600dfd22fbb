//! Policies made up at random, and the same policy in other words: the findings of `check` must not change
//! where the meaning does not, must follow from the document, and must go when it is fixed.

use crate::common;

use common::policies::{PLAIN, Policy, Wording};
use common::{Place, TIDEGATE, skip};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The default number of policies; TIDEGATE_POLICIES sets another.
const POLICIES: u64 = 24;
/// So often `--fix` may have to be called: fixes in one place wait for each other.
const TURNS: u32 = 4;

/// A finding as it is compared: level and rule, the command it is about, what is wrong.
type FoundLine = (String, String, String);

/// What is found in a script of these lines, in any order, once each.
fn found_lines(place: &Place, lines: &[String]) -> Vec<FoundLine> {
    let findings = document(&place.file("policy.sh", lines.join("\n") + "\n"))["findings"].clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |finding: &Value| {
        let rule = format!("{} {}", text(&finding["level"]), text(&finding["rule"]));
        let what = (1..).zip(lines).fold(text(&finding["what"]), |what, (number, line)| {
            // A line's number, whatever follows it.
            let mentions =
                |end: char| (format!("line {number}{end}"), format!("`{}`{end}", plain_call(line)));
            [' ', ',', ':'].into_iter().map(mentions).fold(what, |what, (from, to)| what.replace(&from, &to))
        });
        (rule, plain_call(text(&finding["text"]).trim()), what)
    };
    let mut all: Vec<FoundLine> = findings.as_array().expect("a list").iter().map(one).collect();
    all.sort();
    all.dedup();
    all
}

fn document(script: &Path) -> Value {
    let output = Command::new(TIDEGATE).args(["check", "--json", "--fail-on", "never"]).arg(script).output();
    let output = output.expect("tidegate runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let text = || std::fs::read_to_string(script).unwrap_or_default();
    assert_eq!(output.status.code(), Some(0), "{stderr}\n{}", text());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"))
}

/// A command as it is without the wrapper function.
fn plain_call(line: &str) -> String {
    line.strip_prefix("t ").map_or(line.to_owned(), |rest| format!("tc {rest}"))
}

/// Compares the findings about one wording with those about another; only differences are shown.
fn same(found: &[FoundLine], expected: &[FoundLine], why: &str, seed: u64, lines: &[String]) {
    let only = |here: &[FoundLine], there: &[FoundLine]| {
        here.iter().filter(|one| !there.contains(one)).cloned().collect::<Vec<_>>()
    };
    let (more, less) = (only(found, expected), only(expected, found));
    assert!(
        more.is_empty() && less.is_empty(),
        "{why}, seed {seed}: said now {more:#?}, no longer {less:#?} of\n{}",
        lines.join("\n")
    );
}

/// The text with the classes' numbers of the plain wording.
fn renamed(text: &str, back: impl Fn(u32, u32) -> Option<(u32, u32)>) -> String {
    let is_hex = |c: char| c.is_ascii_hexdigit();
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(':') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        let head = before.trim_end_matches(is_hex);
        let tail = after.trim_start_matches(is_hex);
        let (major, minor) = (&before[head.len()..], &after[..after.len() - tail.len()]);
        let number = |digits: &str| u32::from_str_radix(digits, 16).ok();
        let new = number(major).and_then(|major| back(major, number(minor).unwrap_or(0)));
        match new {
            Some((major, 0)) => out += &format!("{head}{major:x}:"),
            Some((major, minor)) => out += &format!("{head}{major:x}:{minor:x}"),
            None => out += &format!("{before}:{minor}"),
        }
        rest = tail;
    }
    out + rest
}

/// Does it, with a policy and what is found in its plain wording, for every policy.
fn for_all(name: &str, mut check: impl FnMut(&Place, u64, &Policy, &[FoundLine])) {
    if skip() {
        return;
    }
    let place = Place::new(&format!("metamorphic-{name}"));
    let mut findings = 0;
    let policies =
        std::env::var("TIDEGATE_POLICIES").ok().and_then(|number| number.parse().ok()).unwrap_or(POLICIES);
    for seed in 0..policies {
        let policy = Policy::new(seed);
        let plain = found_lines(&place, &policy.commands(PLAIN));
        findings += plain.len();
        check(&place, seed, &policy, &plain);
    }
    assert!(findings as u64 > policies, "policies of which something is said");
}

#[test]
fn names_and_order_say_nothing() {
    for_all("names", |place, seed, policy, plain| {
        let wording = Wording { major: 0x2b, minor: |minor| minor + 0x300, ..PLAIN };
        let back = |major: u32, minor: u32| match (major, minor) {
            (0x2b, 0) => Some((1, 0)),
            (0x2b, minor) => Some((1, minor - 0x300)),
            _ => None,
        };
        let default = |text: &str| {
            text.replace(
                &format!("default {:x}", policy.default + 0x300),
                &format!("default {:x}", policy.default),
            )
        };
        let mut found = found_lines(place, &policy.commands(wording));
        for (_, text, what) in &mut found {
            (*text, *what) = (default(&renamed(text, back)), default(&renamed(what, back)));
        }
        found.sort();
        same(&found, plain, "renamed", seed, &policy.commands(wording));

        let wording = Wording { reversed: true, ..PLAIN };
        let found = found_lines(place, &policy.commands(wording));
        same(&found, plain, "reordered", seed, &policy.commands(wording));
    });
}

#[test]
fn wrappers_and_repetition_say_nothing() {
    for_all("wrapped", |place, seed, policy, plain| {
        let commands = policy.commands(PLAIN);
        let mut lines = vec!["TC=tc".to_owned(), "t() { $TC \"$@\"; }".to_owned()];
        lines.extend(
            commands
                .iter()
                .map(|line| line.strip_prefix("tc ").map_or(line.clone(), |rest| format!("t {rest}"))),
        );
        let found = found_lines(place, &lines);
        same(&found, plain, "through a function", seed, &lines);

        let begin =
            ["tc qdisc del dev eth0 root 2>/dev/null", "iptables -t mangle -D POSTROUTING 1 2>/dev/null"];
        let once: Vec<String> = std::iter::once(begin[0])
            .chain(policy.marks.iter().map(|_| begin[1]))
            .map(str::to_owned)
            .chain(commands)
            .collect();
        let twice: Vec<String> = once.iter().chain(&once).cloned().collect();
        same(&found_lines(place, &twice), &found_lines(place, &once), "twice", seed, &once);
    });
}

/// The protocol of filters, and the kind of classful qdisc, matter to filters and to shares; that a default
/// class is missing and how long a queue is has nothing to do with them.
#[test]
fn rules_about_classes_apply_to_any_classifier() {
    let of = |all: &[FoundLine], rules: &[&str]| -> Vec<(String, String)> {
        let about = all.iter().filter(|(rule, ..)| rules.iter().any(|name| rule.ends_with(name)));
        about.map(|(rule, text, _)| (rule.clone(), text.clone())).collect()
    };
    for_all("twins", |place, seed, policy, plain| {
        let rules = [" R3", " R4", " R5", " R12", " R13", " R19"];
        let all = found_lines(place, &policy.commands(Wording { protocol: "all", ..PLAIN }));
        assert_eq!(
            of(&all, &rules),
            of(plain, &rules),
            "protocol all, seed {seed}: {:#?}",
            policy.commands(PLAIN)
        );

        let twin = Wording { kind: "hfsc", ..PLAIN };
        let mut all = found_lines(place, &policy.commands(twin));
        let (htb, hfsc) = (policy.commands(PLAIN), policy.commands(twin));
        for (_, text, _) in &mut all {
            if let Some(n) = hfsc.iter().position(|line| line == text) {
                text.clone_from(&htb[n]);
            }
        }
        all.sort();
        let leaf_queues = |all: &[FoundLine]| -> Vec<String> {
            let mut texts: Vec<String> = of(all, &[" R13"]).into_iter().map(|(_, text)| text).collect();
            texts.retain(|text| text.contains(" pfifo ") || text.contains(" classid "));
            texts
        };
        assert_eq!(leaf_queues(&all), leaf_queues(plain), "an HFSC twin, seed {seed}: {hfsc:#?}");
        let missing = |all: &[FoundLine]| !of(all, &[" R11"]).is_empty();
        assert_eq!(missing(&all), missing(plain), "an HFSC twin's default class, seed {seed}: {hfsc:#?}");
    });
}

#[test]
fn what_is_fixed_is_gone() {
    for_all("fixed", |place, seed, policy, plain| {
        let script = place.file("policy.sh", policy.commands(PLAIN).join("\n") + "\n");
        let found = document(&script);
        let findings = found["findings"].as_array().expect("a list");
        for (level, count) in [("error", "errors"), ("warning", "warnings"), ("note", "notes")] {
            let of_level = findings.iter().filter(|finding| finding["level"] == level).count();
            assert_eq!(found[count], of_level, "seed {seed}");
        }
        let has_edits =
            |finding: &Value| finding["fix"]["edits"].as_array().is_some_and(|edits| !edits.is_empty());
        let mut last = policy.commands(PLAIN);
        let mut turns = 0;
        while document(&script)["findings"].as_array().is_some_and(|all| all.iter().any(has_edits)) {
            turns += 1;
            assert!(
                turns <= TURNS,
                "seed {seed}: something is said to be fixed and is not in\n{}",
                last.join("\n")
            );
            let copy = place.0.join("fixed.sh");
            let words = ["check", "--fail-on", "never", "--fix"];
            let output =
                Command::new(TIDEGATE).args(words).args([&copy, &script]).output().expect("tidegate runs");
            let stdout = String::from_utf8_lossy(&output.stdout);
            let fixed = std::fs::read_to_string(&copy).expect("the copy");
            let lines: Vec<String> = fixed.lines().map(str::to_owned).collect();
            assert_ne!(lines, last, "seed {seed}: {stdout}");
            std::fs::write(&script, fixed).expect("a file");
            last = lines;
        }
        let after = found_lines(place, &last);
        let errors = |all: &[FoundLine]| all.iter().filter(|(rule, ..)| rule.starts_with("error")).count();
        assert!(
            errors(&after) <= errors(plain),
            "seed {seed}: more errors than before in\n{}\n{after:#?}",
            last.join("\n")
        );
    });
}
