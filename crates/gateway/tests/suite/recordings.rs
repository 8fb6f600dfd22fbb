//! Recorded runs of a real kernel with several devices: what filters redirect, what is routed, marked and
//! dropped on the way. Recordings that need more of a machine than tc and rules of iptables are carried out
//! by the crate `replay`.

use crate::recorded::{Machine, NeedsMore};
use tidegate_archives::{RecordingFiles, first_line, identical};
use tidegate_recording::{Recording, Texts};

/// The archives, and how many of their recordings need no more than that.
const ARCHIVES: [(&str, usize); 7] = [
    ("traces", 102),
    ("routed", 8),
    ("answers-around", 8),
    ("answers-blocks", 2),
    ("answers-filters", 8),
    ("answers-rewrite", 112),
    ("answers-fuzz", 36),
];

/// The first difference between what the kernel did and what the model machine does.
fn difference(files: &RecordingFiles) -> Result<Option<String>, NeedsMore> {
    let text = |name: &str| files.get(name).map_or("", String::as_str);
    let random = files.get("draws.csv").map(String::as_str);
    let linux = files.contains_key("linux").then(|| text("linux"));
    let has_frames = files.contains_key("frames.csv");
    let texts = Texts { link: text("link"), schedule: text("schedule.csv"), random, has_frames, linux };
    let recording = Recording::parse(&texts, 1).expect("a recording");
    let done = Machine::new(&recording).run(&recording, text("script.tc"))?;
    if let Err(error) = done.random.check() {
        return Ok(Some(error.to_string()));
    }
    let pairs = [
        ("egress.csv", &done.egress),
        ("frames.csv", &done.frames),
        ("stats.txt", &done.stats),
        ("filters.txt", &done.filters),
        ("snap.txt", &done.snapshot),
    ];
    let differs = |(name, ours): &(&str, &String)| first_line(name, files.get(*name)?, ours);
    Ok(pairs.iter().find_map(differs))
}

#[test]
fn recordings_of_the_machine_are_identical() {
    identical(&ARCHIVES, difference);
}
