//! The files of a recording.

use crate::because::{Because, Parsed};
use crate::error::RecordingError;
use crate::frame::RecordedArrival;
use crate::random::RecordedRandom;
use tidegate_packet::{LinuxVersion, Time};

/// Where recordings have their zero: 128 s after the machine started.
pub const EPOCH: i64 = 128_000_000_000;
/// When the script runs.
pub const SCRIPT_AT: i64 = -8_000_000_000;
/// How long after the last row statistics are taken.
pub const DRAIN: i64 = 5_000_000_000;

/// The texts of a recording's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Texts<'t> {
    /// `link`: `rate overhead mtu txqueuelen [forward]`, in bits per second, bytes, bytes, packets.
    pub link: &'t str,
    /// `schedule.csv`: packets and commands with their times.
    pub schedule: &'t str,
    /// `draws.csv`; `None`: no one recorded the run.
    pub random: Option<&'t str>,
    /// There is a `frames.csv`: the frames that leave are wanted, byte by byte.
    pub has_frames: bool,
    /// `linux`: the release of Linux that was recorded; `None`: 6.1.
    pub linux: Option<&'t str>,
}

/// A recording, read.
pub struct Recording {
    /// The device and what is behind it.
    pub link: RecordedLink,
    /// What happens, in the order of time.
    pub rows: Vec<ScheduleRow>,
    /// The random draws.
    pub random: RecordedRandom,
    /// It has the frames that left, byte by byte.
    pub has_frames: bool,
}

/// The device and what is behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedLink {
    /// Bits per second; 0: infinitely fast.
    pub rate: u64,
    /// Bytes per frame beside its own.
    pub overhead: u32,
    /// Bytes of the largest network packet.
    pub mtu: u32,
    /// The device's `txqueuelen`, in packets.
    pub tx_queue_len: u32,
    /// Packets are routed through the machine.
    pub forward: bool,
    /// The release of Linux.
    pub linux: LinuxVersion,
}

/// A row of the schedule: what happens when (ns, from the recording's zero).
pub struct ScheduleRow {
    /// When, ns from the recording's zero.
    pub time: i64,
    /// What happened then.
    pub what: RowKind,
}

/// What happens.
pub enum RowKind {
    /// A packet arrives.
    Packet(Box<RecordedArrival>),
    /// A line of shell is carried out.
    Command(String),
}

impl RecordedLink {
    fn parse(text: &str, linux: LinuxVersion) -> Result<RecordedLink, RecordingError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [rate, overhead, mtu, tx_queue_len, rest @ ..] = words.as_slice() else {
            let why = format!("expected `rate overhead mtu txqueuelen [forward]`, found `{}`", text.trim());
            return Err(RecordingError::RecordedLink(why));
        };
        let number = |what: &str, word: &str| {
            word.parse::<u64>().because(|| format!("{what} `{word}`")).map_err(RecordingError::RecordedLink)
        };
        Ok(RecordedLink {
            rate: number("rate", rate)?,
            overhead: number("overhead", overhead)? as u32,
            mtu: number("mtu", mtu)? as u32,
            tx_queue_len: number("txqueuelen", tx_queue_len)? as u32,
            forward: rest.first() == Some(&"forward"),
            linux,
        })
    }

    /// Nanoseconds that a frame occupies the link.
    pub fn frame_time(&self, len: u32) -> u64 {
        (u64::from(len) + u64::from(self.overhead)) * 8_000_000_000 / self.rate
    }
}

impl Recording {
    /// Of the texts of its files; without draws what is random comes from `seed`.
    ///
    /// # Errors
    /// Which file cannot be read, where, and why.
    pub fn parse(texts: &Texts<'_>, seed: u64) -> Result<Recording, RecordingError> {
        let linux = match texts.linux {
            Some(text) => match text.parse().map_err(RecordingError::Linux)? {
                between if LinuxVersion::is_between(between) => {
                    return Err(RecordingError::LinuxBetween(between));
                }
                known => known,
            },
            None => LinuxVersion::default(),
        };
        Ok(Recording {
            random: match texts.random {
                Some(text) => RecordedRandom::parse(text, EPOCH)?,
                None => RecordedRandom::from_seed(seed),
            },
            link: RecordedLink::parse(texts.link, linux)?,
            rows: schedule(texts.schedule, linux)?,
            has_frames: texts.has_frames,
        })
    }
}

fn schedule(text: &str, linux: LinuxVersion) -> Result<Vec<ScheduleRow>, RecordingError> {
    let mut lines = text.lines().enumerate();
    let Some((_, head)) = lines.next() else { return Err(RecordingError::Empty) };
    let columns: Vec<&str> = head.split(',').collect();
    let mut rows: Vec<ScheduleRow> = Vec::new();
    for (n, line) in lines.filter(|(_, l)| !l.trim().is_empty()) {
        let row = || -> Parsed<ScheduleRow> {
            let (time, rest) = line.split_once(',').ok_or("no comma")?;
            let time: i64 = time.parse().because(|| format!("time `{time}`"))?;
            let what = match rest.strip_prefix("!,") {
                Some(command) => RowKind::Command(command.to_owned()),
                None => {
                    let mut arrival = RecordedArrival::parse(&columns, line)?;
                    arrival.meta.truesize = linux.truesize(arrival.meta.frame_len);
                    RowKind::Packet(Box::new(arrival))
                }
            };
            Ok(ScheduleRow { time, what })
        };
        rows.push(row().map_err(|why| RecordingError::line("schedule.csv", n + 1, line, why))?);
    }
    // Rows happen in the order of the file: one whose time is past happens at once.
    let mut latest = i64::MIN;
    for row in &mut rows {
        latest = latest.max(row.time);
        row.time = latest;
    }
    Ok(rows)
}

/// A recording's time (ns from its zero) on the machine's clock.
pub fn at(ns: i64) -> Time {
    Time((ns + EPOCH) as u64)
}

/// A time of the machine's clock in a recording, ns from its zero.
pub fn ns(time: Time) -> i64 {
    time.0 as i64 - EPOCH
}
