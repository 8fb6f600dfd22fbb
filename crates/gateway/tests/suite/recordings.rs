//! Recorded runs of a real kernel with several devices: what filters redirect, what is routed, marked and dropped on
//! the way. Recordings that need more of a machine than tc and rules of iptables are carried out by the crate `replay`.

use crate::recorded::{Machine, NeedsMore};
use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use tidegate_recording::{Recording, Texts};

/// The archives, and how many of their recordings need no more than that.
const ARCHIVES: [(&str, usize); 7] = [
    ("traces", 102),
    ("routed", 8),
    ("answers-around", 7),
    ("answers-blocks", 2),
    ("answers-filters", 7),
    ("answers-rewrite", 81),
    ("answers-fuzz", 35),
];

type Files = BTreeMap<String, String>;

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
    all.retain(|_, files| files.get("script.tc").is_some_and(|script| !script.contains("distribution experimental")));
    all
}

/// The first difference between what the kernel did and what the model machine does.
fn difference(files: &Files) -> Result<Option<String>, NeedsMore> {
    let text = |name: &str| files.get(name).map_or("", String::as_str);
    let draws = files.get("draws.csv").map(String::as_str);
    let has_frames = files.contains_key("frames.csv");
    let texts = Texts { link: text("link"), schedule: text("schedule.csv"), draws, has_frames };
    let recording = Recording::parse(&texts, 1).expect("a recording");
    let done = Machine::new(&recording).run(&recording, text("script.tc"))?;
    if let Err(error) = done.draws.check() {
        return Ok(Some(error.to_string()));
    }
    let pairs = [
        ("egress.csv", &done.egress),
        ("frames.csv", &done.frames),
        ("stats.txt", &done.stats),
        ("filters.txt", &done.filters),
        ("snap.txt", &done.snapshot),
    ];
    let differs = |(name, ours): &(&str, &String)| {
        let kernel = files.get(*name)?;
        let found = kernel.lines().zip(ours.lines()).enumerate().find(|(_, (kernel, ours))| kernel != ours);
        (kernel != *ours).then(|| format!("{name}: {found:?}"))
    };
    Ok(pairs.iter().find_map(differs))
}

#[test]
fn recordings_of_the_machine_are_identical() {
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
