//! Recorded runs of a real kernel, held against the engine below every command: no process, no sandbox, no file but the
//! recordings themselves.
//!
//! What a recording's commands need of a shell beyond plain lines stands by name in the command line's own test, which
//! runs all of them.

// The recordings are files, and a test may read them.
#![allow(clippy::disallowed_types, reason = "recordings are read from files")]

use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use tidegate_replay::recorded::{
    NotPlain, PlainCommands, Recording, ReplayError, ReplayedRun, Texts, recorded_device, replay,
};
use tidegate_shims::Machine;

/// The archives, and how many of their recordings are plain.
const ARCHIVES: [(&str, usize); 14] = [
    ("traces", 102),
    ("answers", 29),
    ("answers-A", 14),
    ("answers-B", 50),
    ("answers-filters", 7),
    ("answers-kinds", 39),
    ("answers-fuzz", 59),
    ("answers-around", 12),
    ("answers-rewrite", 81),
    ("answers-blocks", 18),
    ("answers-cake", 69),
    ("translated", 5),
    ("redirects", 5),
    ("routed", 8),
];

/// The files of a recording, by name.
type Files = BTreeMap<String, String>;

/// The recordings of an archive, by name.
fn recordings(archive: &str) -> BTreeMap<String, Files> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../cli/tests/data/{archive}.tar.gz"));
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut all: BTreeMap<String, Files> = BTreeMap::new();
    for entry in tar::Archive::new(GzDecoder::new(file)).entries().expect("an archive") {
        let mut entry = entry.expect("an entry");
        let path = entry.path().expect("a path").into_owned();
        let name = |path: Option<&std::ffi::OsStr>| path.unwrap_or_default().to_string_lossy().into_owned();
        let mut text = String::new();
        if entry.header().entry_type().is_file() && entry.read_to_string(&mut text).is_ok() {
            let folder = name(path.parent().and_then(|parent| parent.file_name()));
            all.entry(folder).or_default().insert(name(path.file_name()), text);
        }
    }
    // Some need a table of netem's that iproute2 installs.
    let complete = |script: &String| !script.contains("distribution experimental");
    all.retain(|_, files| files.get("script.tc").is_some_and(complete));
    all
}

/// Carries a recording out again; `None`: its commands need a shell.
fn carried_out(files: &Files) -> Option<(ReplayedRun, PlainCommands)> {
    let text = |name: &str| files.get(name).map(String::as_str);
    let texts = Texts {
        link: text("link").unwrap_or_default(),
        schedule: text("schedule.csv").unwrap_or_default(),
        draws: text("draws.csv"),
        has_frames: files.contains_key("frames.csv"),
    };
    let recording = Recording::parse(&texts, 1).expect("a recording");
    let machine = Machine::recorded(recorded_device(&recording.link), recording.link.forward);
    let mut commands = PlainCommands::new(text("script.tc").unwrap_or_default());
    match replay(&recording, machine, &mut commands) {
        Ok(done) => Some((done, commands)),
        Err(ReplayError::Commands(error)) if error.is::<NotPlain>() => None,
        Err(error) => panic!("{error}"),
    }
}

/// The first difference between what the kernel did and what the engine does.
fn difference(files: &Files, done: &ReplayedRun, commands: &PlainCommands) -> Option<String> {
    if let Err(error) = done.check_draws() {
        return Some(error.to_string());
    }
    let snapshot = commands.snapshot().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let ours = [
        ("egress.csv", Some(&done.egress)),
        ("frames.csv", done.frames.as_ref()),
        ("stats.txt", Some(&done.stats)),
        ("filters.txt", Some(&done.filters)),
        ("snap.txt", snapshot.as_ref()),
    ];
    for (name, ours) in ours {
        let Some(wanted) = files.get(name) else { continue };
        let ours = ours.map_or("", String::as_str);
        if ours != wanted {
            return Some(first_line(name, wanted, ours));
        }
    }
    // The recording names the kernel's function that freed the packet; that is for people.
    let without_place = |text: &str| {
        text.lines()
            .skip(1)
            .map(|line| line.rsplit_once(',').map_or(line, |(rest, _)| rest).to_owned() + "\n")
            .collect()
    };
    let (wanted, ours): (String, String) =
        (without_place(files.get("drops.csv").map_or("", String::as_str)), without_place(&done.drops));
    (wanted != ours).then(|| first_line("drops.csv", &wanted, &ours))
}

fn first_line(name: &str, wanted: &str, ours: &str) -> String {
    let found = wanted.lines().zip(ours.lines()).enumerate().find(|(_, (wanted, ours))| wanted != ours);
    match found {
        Some((line, (wanted, ours))) => format!("{name}:{}: kernel `{wanted}`, tidegate `{ours}`", line + 1),
        None => format!("{name}: kernel {} lines, tidegate {}", wanted.lines().count(), ours.lines().count()),
    }
}

#[test]
fn plain_recordings_are_identical() {
    let (mut wrong, mut counts) = (String::new(), Vec::new());
    for (archive, _) in ARCHIVES {
        let mut plain = 0;
        for (name, files) in recordings(archive) {
            let Some((done, commands)) = carried_out(&files) else { continue };
            plain += 1;
            if let Some(difference) = difference(&files, &done, &commands) {
                wrong += &format!("{archive}/{name}: {difference}\n");
            }
        }
        counts.push((archive, plain));
    }
    assert!(wrong.is_empty(), "{wrong}");
    // Fewer: a recording needs a shell that did not before, and is held by the command line only.
    assert_eq!(counts, ARCHIVES);
}

#[test]
fn a_packet_more_is_noticed() {
    let (_, mut files) =
        recordings("answers").into_iter().find(|(_, files)| carried_out(files).is_some()).expect("one");
    let (done, commands) = carried_out(&files).expect("it is plain");
    assert_eq!(difference(&files, &done, &commands), None);
    let schedule = files.get_mut("schedule.csv").expect("a schedule");
    let last = schedule.lines().last().expect("a row").to_owned();
    schedule.push_str(&last);
    let (done, commands) = carried_out(&files).expect("it is plain still");
    assert!(difference(&files, &done, &commands).is_some());
}
