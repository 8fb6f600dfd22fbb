//! The gallery: policies in the grammar of published ones, and the output of `check`, `try`, `explain` and
//! `graph` for each.
//!
//! `data/gallery` holds the policies, `data/gallery/expected.txt` the output for them in a readable form:
//! findings by line, level and rule; the verdict by its kind; where one packet ends; the trees by their
//! roots. A person has read the whole output of each once. `TIDEGATE_BLESS=1` writes the file again, to be
//! read again.

use crate::common;

use common::{Place, TIDEGATE, skip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The packet that `explain` follows.
const PACKET: [&str; 2] = ["tcp", "192.168.1.10 > 198.51.100.7:443"];
/// Programs run at once: the machines for tests have two processors.
const AT_ONCE: usize = 2;

fn gallery() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/gallery")
}

/// Files that are read by others beside them.
const PARTS: [&str; 4] = ["settings.conf", "library.sh", "shaper.config", "expected.txt"];

/// The policies, by their names within the gallery.
fn policies() -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(gallery()).expect("the gallery") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            let inside = fs::read_dir(entry.path()).expect("a folder");
            names.extend(
                inside.map(|file| format!("{name}/{}", file.expect("a file").file_name().to_string_lossy())),
            );
        } else {
            names.push(name);
        }
    }
    names.retain(|name| !PARTS.iter().any(|part| name.ends_with(part)));
    names.sort();
    names
}

fn tidegate(policy: &str, before: &[&str], after: &[&str], home: &Path) -> Output {
    let (dir, file) = policy.rsplit_once('/').unwrap_or(("", policy));
    let mut command = Command::new(TIDEGATE);
    command.args(before).arg(file).args(after).current_dir(home.join(dir));
    command.output().expect("it runs")
}

/// What went wrong, in a line: of the last complaint of tidegate's own the beginning.
fn refused(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let own = text.lines().rfind(|line| line.starts_with("tidegate ")).unwrap_or("says nothing");
    let mut words: Vec<&str> = own.split_whitespace().collect();
    words.truncate(24);
    format!("{} refused: {}", output.status.code().unwrap_or(-1), words.join(" "))
}

fn json(output: &Output) -> Option<Value> {
    serde_json::from_slice(&output.stdout).ok()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// `1: 9 note R14, 11 error R3`: the exit code, and each finding's line, level and rule.
fn check(policy: &str, home: &Path) -> String {
    let output = tidegate(policy, &["check", "--json"], &[], home);
    let Some(document) = json(&output) else { return refused(&output) };
    let one = |finding: &Value| {
        let file = text(&finding["place"]["file"]).rsplit('/').next().unwrap_or_default().to_owned();
        let own = policy.rsplit('/').next() == Some(&file) || file.is_empty();
        let file = if own { String::new() } else { format!("{file}:") };
        let line = finding["place"]["line"].as_u64().map_or_else(|| "-".to_owned(), |line| line.to_string());
        format!("{file}{line} {} {}", text(&finding["level"]), text(&finding["rule"]))
    };
    let findings: Vec<String> = document["findings"].as_array().expect("a list").iter().map(one).collect();
    let message = if findings.is_empty() { "nothing".to_owned() } else { findings.join(", ") };
    format!("{} {message}", output.status.code().unwrap_or(-1))
}

/// What begins each kind of sentence of the verdict, and its name here.
const KINDS: [(&str, &str); 16] = [
    ("Worse with the policy", "worse elsewhere"),
    ("transfers carry", "less one way"),
    ("Packets dropped under", "drops"),
    ("the policy cuts", "helps"),
    ("the policy makes the", "makes worse"),
    ("the policy hardly changes", "hardly changes it"),
    ("does not disturb", "nothing disturbs"),
    ("is answered with the policy", "nothing comes back"),
    ("is answered without the policy", "something comes back"),
    ("in the policy's own queue", "own queue"),
    ("packets were sent past all classes", "past all classes"),
    ("nothing that was carried out holds", "no shaper"),
    ("The modem still holds", "modem"),
    ("In the provider's download queue", "provider"),
    ("No packet was found", "unreachable"),
    ("Typically", "waits"),
];

/// `helps; provider`: the kinds of the verdict's sentences, and of the notes those that warn of something.
fn attempt(policy: &str, home: &Path) -> String {
    let words = ["try", "--json", "--up", "10mbit", "--down", "50mbit", "--duration", "2s"];
    let load = ["--load", "both", "--probes", "ping"];
    let output = tidegate(policy, &[&words[..], &load].concat(), &[], home);
    let Some(document) = json(&output) else { return refused(&output) };
    let kind = |sentence: &Value| {
        let sentence = text(sentence);
        let kind = KINDS.iter().find(|(words, _)| sentence.contains(words));
        kind.map_or_else(|| sentence.to_owned(), |(_, kind)| (*kind).to_owned())
    };
    let mut lines: Vec<String> = document["verdict"].as_array().expect("a list").iter().map(kind).collect();
    let notes = document["notes"].as_array().expect("a list");
    for (words, kind) in
        [("over IPv6", "IPv6 differs"), ("nothing of this trial", "untried"), ("towards the LAN", "LAN")]
    {
        if notes.iter().any(|note| text(note).contains(words)) {
            lines.push(kind.to_owned());
        }
    }
    lines.dedup();
    format!("{} {}", text(&document["device"]), lines.join("; "))
}

/// Where the packet ends: `eth0 1:1 1:10, pfifo 10:`.
fn explain(policy: &str, home: &Path) -> String {
    let output = tidegate(policy, &["explain", "--json"], &PACKET, home);
    let Some(document) = json(&output) else { return refused(&output) };
    text(&document["packets"][0]["end"]["text"]).to_owned()
}

/// `eth0 htb 1: (12 lines, 4 leads)`: the first entry of each device, and how many there are.
fn graph(policy: &str, home: &Path) -> String {
    let output = tidegate(policy, &["graph"], &[], home);
    let mut devices: Vec<(String, String, usize, usize)> = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let inner = line.trim_start_matches(|c| " │├└─".contains(c));
        if !line.starts_with([' ', '│', '├', '└']) {
            devices.push((
                line.split_whitespace().next().unwrap_or_default().to_owned(),
                String::new(),
                0,
                0,
            ));
        } else if let Some((_, first, lines, leads)) = devices.last_mut() {
            if first.is_empty() {
                *first = inner.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
            }
            *lines += 1;
            *leads += usize::from(inner.starts_with('◂'));
        }
    }
    if devices.is_empty() {
        return refused(&output);
    }
    let sentences: Vec<String> = devices
        .iter()
        .map(|(name, first, lines, leads)| format!("{name} {first} ({lines} lines, {leads} leads)"))
        .collect();
    sentences.join("; ")
}

/// The output for a policy.
fn verdicts(policy: &str, home: &Path) -> String {
    format!(
        "{policy}\n  check    {}\n  try      {}\n  explain  {}\n  graph    {}\n",
        check(policy, home),
        attempt(policy, home),
        explain(policy, home),
        graph(policy, home)
    )
}

/// A copy whose scripts may be run, whatever happened to their modes on the way here.
fn copied() -> Place {
    let place = Place::new("gallery");
    for entry in fs::read_dir(gallery()).expect("the gallery") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            fs::create_dir_all(place.0.join(&name)).expect("a folder");
            for file in fs::read_dir(&path).expect("a folder") {
                let file = file.expect("a file");
                let inner = format!("{name}/{}", file.file_name().to_string_lossy());
                place.script(&inner, fs::read(file.path()).expect("a file"));
            }
        } else {
            place.script(&name, fs::read(&path).expect("a file"));
        }
    }
    place
}

#[test]
fn the_output_for_the_gallery() {
    if skip() {
        return;
    }
    let names = policies();
    assert!(names.len() >= 60, "{} policies", names.len());
    let home = copied();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let text = verdicts(name, &home.0);
                    found.lock().expect("no thread panicked").insert(name.clone(), text);
                }
            });
        }
    });
    let output: String = found.into_inner().expect("no thread panicked").into_values().collect();
    let path = gallery().join("expected.txt");
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(&path, &output).expect("it is written");
    }
    let expected = fs::read_to_string(&path).expect("expected.txt");
    let differs: Vec<String> = output
        .lines()
        .zip(expected.lines())
        .enumerate()
        .filter(|(_, (ours, theirs))| ours != theirs)
        .map(|(number, (ours, theirs))| {
            format!("expected.txt:{}\n  expected {theirs}\n  said     {ours}", number + 1)
        })
        .collect();
    assert!(
        differs.is_empty() && output.lines().count() == expected.lines().count(),
        "{}",
        differs.join("\n")
    );
}
