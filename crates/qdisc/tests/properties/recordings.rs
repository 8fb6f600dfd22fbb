//! Recorded runs of a real kernel, held against the tree of one device: every packet's departure and drop, every random
//! draw, every counter that tc lists.
//!
//! Recordings that need more than one device and tc (redirects, netfilter, shared blocks, a shell) are carried out by
//! the crate `replay`.

use super::recorded::{Machine, NeedsMore};
use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use tidegate_recording::{Recording, Texts};

/// The archives, and how many of their recordings need one device and tc only.
const ARCHIVES: [(&str, usize); 10] = [
    ("traces", 101),
    ("answers", 23),
    ("answers-A", 11),
    ("answers-B", 40),
    ("answers-filters", 7),
    ("answers-kinds", 30),
    ("answers-fuzz", 19),
    ("answers-rewrite", 70),
    ("answers-cake", 55),
    ("answers-around", 3),
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
    // A table of netem's that iproute2 installs is not there.
    let complete = |script: &String| !script.contains("distribution experimental");
    all.retain(|_, files| files.get("script.tc").is_some_and(complete));
    all
}

/// The recordings of the chapters: one of each kind.
fn chapters() -> BTreeMap<String, Files> {
    let packets = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/disciplines/packets");
    let entries =
        |path: &PathBuf| std::fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry").path());
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    #[allow(clippy::disallowed_methods, reason = "recordings are read from files")]
    let text = |path: PathBuf| (name(&path), std::fs::read_to_string(&path).expect("a text"));
    entries(&packets)
        .filter(|path| path.is_dir())
        .map(|kind| (name(&kind), entries(&kind).map(text).collect()))
        .collect()
}

/// The first difference between what the kernel did and what the tree does.
fn difference(files: &Files) -> Result<Option<String>, NeedsMore> {
    let text = |name: &str| files.get(name).map_or("", String::as_str);
    let draws = files.get("draws.csv").map(String::as_str);
    if text("link").contains("forward") {
        return Err(NeedsMore);
    }
    let texts = Texts { link: text("link"), schedule: text("schedule.csv"), draws, has_frames: false };
    let recording = Recording::parse(&texts, 1).expect("a recording");
    let done = Machine::new(&recording).run(&recording, text("script.tc"))?;
    if let Err(error) = done.draws.check() {
        return Ok(Some(error.to_string()));
    }
    // The recording names the kernel's function that freed a packet; that is for people.
    let dropped: String =
        text("drops.csv").lines().skip(1).filter_map(|line| Some(line.rsplit_once(',')?.0.to_owned() + "\n")).collect();
    let pairs = [
        ("egress.csv", text("egress.csv"), &done.egress),
        ("drops.csv", &dropped, &done.drops),
        ("stats.txt", text("stats.txt"), &done.stats),
        ("filters.txt", text("filters.txt"), &done.filters),
        ("snap.txt", text("snap.txt"), &done.snapshot),
    ];
    let differs = |(name, kernel, ours): &(&str, &str, &String)| {
        (files.contains_key(*name) && kernel != ours).then(|| first_line(name, kernel, ours))
    };
    Ok(pairs.iter().find_map(differs))
}

fn first_line(name: &str, kernel: &str, ours: &str) -> String {
    let found = kernel.lines().zip(ours.lines()).enumerate().find(|(_, (kernel, ours))| kernel != ours);
    match found {
        Some((line, (kernel, ours))) => format!("{name}:{}: kernel `{kernel}`, tidegate `{ours}`", line + 1),
        None => format!("{name}: kernel {} lines, tidegate {}", kernel.lines().count(), ours.lines().count()),
    }
}

#[test]
fn recordings_of_one_device_are_identical() {
    let (mut wrong, mut counts) = (String::new(), Vec::new());
    for (archive, _) in ARCHIVES {
        let mut held = 0;
        for (name, files) in recordings(archive) {
            match difference(&files) {
                Err(NeedsMore) => continue,
                Ok(None) => {}
                Ok(Some(difference)) => wrong += &format!("{archive}/{name}: {difference}\n"),
            }
            held += 1;
        }
        counts.push((archive, held));
    }
    assert!(wrong.is_empty(), "{wrong}");
    // Fewer: a recording needs more of a machine than it did before.
    assert_eq!(counts, ARCHIVES);
}

#[test]
fn the_recording_of_each_chapter_is_identical() {
    let (mut wrong, mut held) = (String::new(), 0);
    for (name, files) in chapters() {
        match difference(&files) {
            Err(NeedsMore) => continue,
            Ok(None) => {}
            Ok(Some(difference)) => wrong += &format!("{name}: {difference}\n"),
        }
        held += 1;
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(held, 27);
}

#[test]
fn a_packet_more_is_noticed() {
    let mut files = recordings("traces").remove("contract-tie").expect("it is there");
    assert_eq!(difference(&files), Ok(None));
    let schedule = files.get_mut("schedule.csv").expect("a schedule");
    let last = schedule.lines().last().expect("a row").to_owned();
    schedule.push_str(&last);
    assert!(difference(&files).is_ok_and(|found| found.is_some()));
}
