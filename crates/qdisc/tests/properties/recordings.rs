//! Recorded runs of a real kernel, compared with the tree of one device: every packet's departure and drop,
//! every random draw, every counter that tc lists.
//!
//! Recordings that need more than one device and tc (redirects, netfilter, shared blocks, a shell) are
//! carried out by the crate `replay`.

use super::recorded::{Machine, NeedsMore};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tidegate_archives::{RecordingFiles, first_line, identical, recordings, without_place};
use tidegate_recording::{Recording, Texts};

/// The archives, and how many of their recordings need one device and tc only.
const ARCHIVES: [(&str, usize); 12] = [
    ("linux-7.2", 201),
    ("traces", 101),
    ("answers", 23),
    ("answers-A", 11),
    ("answers-B", 40),
    ("answers-filters", 8),
    ("answers-kinds", 30),
    ("answers-fuzz", 20),
    ("answers-rewrite", 95),
    ("answers-cake", 55),
    ("answers-around", 4),
    ("dualpi2", 59),
];

/// The recordings of the chapters: one of each kind.
fn chapters() -> BTreeMap<String, RecordingFiles> {
    let packets = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/disciplines/packets");
    let entries = |path: &PathBuf| {
        std::fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry").path())
    };
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    #[allow(clippy::disallowed_methods, reason = "recordings are read from files")]
    let text = |path: PathBuf| (name(&path), std::fs::read_to_string(&path).expect("a text"));
    entries(&packets)
        .filter(|path| path.is_dir())
        .map(|kind| (name(&kind), entries(&kind).map(text).collect()))
        .collect()
}

/// The first difference between what the kernel did and what the tree does.
fn difference(files: &RecordingFiles) -> Result<Option<String>, NeedsMore> {
    let text = |name: &str| files.get(name).map_or("", String::as_str);
    let random = files.get("draws.csv").map(String::as_str);
    let linux = files.get("linux").map(String::as_str);
    if text("link").contains("forward") {
        return Err(NeedsMore);
    }
    let texts =
        Texts { link: text("link"), schedule: text("schedule.csv"), random, has_frames: false, linux };
    let recording = Recording::parse(&texts, 1).expect("a recording");
    let tc = files.get("tc").map_or_else(Default::default, |text| text.parse().expect("a release of tc"));
    let done = Machine::new(&recording, tc).run(&recording, text("script.tc"))?;
    if let Err(error) = done.random.check() {
        return Ok(Some(error.to_string()));
    }
    let dropped = without_place(text("drops.csv"));
    let pairs = [
        ("egress.csv", text("egress.csv"), &done.egress),
        ("drops.csv", &dropped, &done.drops),
        ("stats.txt", text("stats.txt"), &done.stats),
        ("filters.txt", text("filters.txt"), &done.filters),
        ("snap.txt", text("snap.txt"), &done.snapshot),
    ];
    let differs = |(name, kernel, ours): &(&str, &str, &String)| {
        files.contains_key(*name).then(|| first_line(name, kernel, ours)).flatten()
    };
    Ok(pairs.iter().find_map(differs))
}

#[test]
fn recordings_of_one_device_are_identical() {
    identical(&ARCHIVES, difference);
}

#[test]
fn the_recording_of_each_chapter_is_identical() {
    let (mut wrong, mut waiting) = (String::new(), 0);
    for (name, files) in chapters() {
        match difference(&files) {
            Err(NeedsMore) => continue,
            Ok(None) => {}
            Ok(Some(difference)) => wrong += &format!("{name}: {difference}\n"),
        }
        waiting += 1;
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(waiting, 27);
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
