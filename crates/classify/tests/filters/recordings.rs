//! Recorded runs of a real kernel, as far as filters go: every filter's and action's counters at the end, and
//! the bytes of the frames that left, which are to be among those that filters let pass.

use super::lists::{Elsewhere, Lists};
use std::collections::BTreeSet;
use tidegate_archives::{RecordingFiles, identical};
use tidegate_packet::Head;
use tidegate_recording::line::{pieces, plain};
use tidegate_recording::{DRAIN, Recording, RowKind, SCRIPT_AT, Texts, at};

/// The archives, and how many of their recordings have filters at the root or at clsact's egress only.
const ARCHIVES: [(&str, usize); 5] = [
    ("traces", 12),
    ("answers-B", 1),
    ("answers-filters", 4),
    ("answers-rewrite", 43),
    ("answers-classify", 17),
];

/// Qdiscs that drop or mark before they ask filters, write into frames, or ask the root's filters twice
/// (hfsc).
const TOUCHING: [&str; 13] =
    ["cake", "codel", "red", "pie", "sfq", "sfb", "choke", "hhf", "dualpi2", "stab", "netem", "tbf", "hfsc"];

fn carry_out(lists: &mut Lists, now: tidegate_packet::Time, line: &str) -> Result<(), Elsewhere> {
    for piece in pieces(line).ok_or(Elsewhere)? {
        let Some((words, _)) = plain(&piece, 0).ok_or(Elsewhere)? else { continue };
        match words[0].as_str() {
            "tc" => lists.tc(now, &words[1..])?,
            "echo" | "true" | "set" => {}
            _ => return Err(Elsewhere),
        }
    }
    Ok(())
}

/// The first difference between what the kernel's filters did and what these do.
fn difference(files: &RecordingFiles) -> Result<Option<String>, Elsewhere> {
    let text = |name: &str| files.get(name).map_or("", String::as_str);
    let script = text("script.tc");
    let commands = format!("{script}{}", text("schedule.csv"));
    let drawn = ["random", "perturb"].iter().any(|word| commands.contains(word));
    if !script.contains("filter") || drawn || TOUCHING.iter().any(|word| commands.contains(word)) {
        return Err(Elsewhere);
    }
    let texts = Texts {
        link: text("link"),
        schedule: text("schedule.csv"),
        random: None,
        has_frames: false,
        linux: None,
    };
    let recording = Recording::parse(&texts, 1).expect("a recording");
    if recording.link.forward {
        return Err(Elsewhere);
    }
    let mut lists = Lists::new();
    for line in script.lines() {
        carry_out(&mut lists, at(SCRIPT_AT), line)?;
    }
    let mut frames = BTreeSet::new();
    for row in &recording.rows {
        let now = at(row.time);
        lists.count_actions(now);
        match &row.what {
            RowKind::Command(line) => carry_out(&mut lists, now, line)?,
            RowKind::Packet(arrival)
                if arrival.meta.frame_len > recording.link.mtu + Head::ETHERNET as u32 => {}
            RowKind::Packet(arrival) => {
                frames.extend(lists.offer(now, arrival.meta.clone(), arrival.head.clone()).1);
            }
        }
    }
    let end = at(recording.rows.last().map_or(0, |row| row.time) + DRAIN);
    lists.count_actions(end);
    let (kernel, ours) = (text("filters.txt"), lists.listing(end));
    if !kernel.starts_with(&ours) || ours.is_empty() && !kernel.is_empty() {
        let found = kernel.lines().zip(ours.lines()).find(|(kernel, ours)| kernel != ours);
        return Ok(Some(format!("filters.txt: {found:?}")));
    }
    let bytes = |line: &str| -> Vec<u8> {
        let hex = line.rsplit(',').next().unwrap_or_default();
        (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hex")).collect()
    };
    let missing = text("frames.csv").lines().skip(1).find(|line| !frames.contains(&bytes(line)));
    Ok(missing.map(|line| format!("frames.csv: not among ours: {line}")))
}

#[test]
fn filters_count_and_rewrite_as_recorded() {
    identical(&ARCHIVES, difference);
}
