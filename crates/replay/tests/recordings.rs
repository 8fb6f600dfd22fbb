//! Recorded runs of a real kernel, compared with the engine below every command: no process, no sandbox, no
//! file but the recordings themselves.
//!
//! Recordings whose commands need more of a shell than plain lines are listed by name in the command line's
//! own test, which runs all of them.

use tidegate_archives::{RecordingFiles, first_line, identical, recordings, without_place};
use tidegate_replay::recorded::{
    NotPlain, PlainCommands, Recording, ReplayError, ReplayedRun, Texts, recorded_device, replay,
};
use tidegate_shims::Machine;

/// The archives, and how many of their recordings are plain.
const ARCHIVES: [(&str, usize); 19] = [
    ("linux-7.2", 214),
    ("traces", 102),
    ("answers", 29),
    ("answers-A", 14),
    ("answers-B", 50),
    ("answers-filters", 8),
    ("answers-kinds", 42),
    ("answers-fuzz", 60),
    ("answers-around", 13),
    ("answers-rewrite", 114),
    ("answers-blocks", 18),
    ("answers-cake", 69),
    ("translated", 5),
    ("redirects", 5),
    ("answers-limits", 595),
    ("answers-redirected", 347),
    ("answers-fragments", 36),
    ("dualpi2", 66),
    ("routed", 8),
];

/// Carries a recording out again; `None`: its commands need a shell.
fn carried_out(files: &RecordingFiles) -> Option<(ReplayedRun, PlainCommands)> {
    let text = |name: &str| files.get(name).map(String::as_str);
    let texts = Texts {
        link: text("link").unwrap_or_default(),
        schedule: text("schedule.csv").unwrap_or_default(),
        random: text("draws.csv"),
        has_frames: files.contains_key("frames.csv"),
        linux: text("linux"),
    };
    let recording = Recording::parse(&texts, 1).expect("a recording");
    let mut machine = Machine::recorded(recorded_device(&recording.link), recording.link.forward);
    machine.tc = text("tc").map_or_else(Default::default, |text| text.parse().expect("a release of tc"));
    let mut commands = PlainCommands::new(text("script.tc").unwrap_or_default());
    match replay(&recording, machine, &mut commands) {
        Ok(done) => Some((done, commands)),
        Err(ReplayError::Commands(error)) if error.is::<NotPlain>() => None,
        Err(error) => panic!("{error}"),
    }
}

/// The first difference between what the kernel did and what the engine does.
fn difference(files: &RecordingFiles, done: &ReplayedRun, commands: &PlainCommands) -> Option<String> {
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
    let differs = |(name, ours): (&str, Option<&String>)| {
        first_line(name, files.get(name)?, ours.map_or("", String::as_str))
    };
    let drops = files.get("drops.csv").map_or("", String::as_str);
    let dropped = || first_line("drops.csv", &without_place(drops), &without_place(&done.drops));
    ours.into_iter().find_map(differs).or_else(dropped)
}

#[test]
fn plain_recordings_are_identical() {
    // Those that need a shell are carried out by the command line only.
    identical(&ARCHIVES, |files| {
        let (done, commands) = carried_out(files).ok_or(())?;
        Ok::<_, ()>(difference(files, &done, &commands))
    });
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
