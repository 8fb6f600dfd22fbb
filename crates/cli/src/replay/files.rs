//! The files of a recording.

use super::draws::Recorded;
use super::frame::Arrival;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use tidegate_gateway::{DeviceSpec, Switches};

/// Where recordings have their zero: 128 s after the machine started.
pub(super) const EPOCH: i64 = 128_000_000_000;
/// When the script runs.
pub(super) const SCRIPT_AT: i64 = -8_000_000_000;
/// How long after the last row statistics are taken.
pub(super) const DRAIN: i64 = 5_000_000_000;

/// A recording, read.
pub(super) struct Recording {
    pub(super) link: Link,
    pub(super) script: PathBuf,
    pub(super) rows: Vec<Row>,
    pub(super) draws: Recorded,
    /// It has the frames that left, octet by octet.
    pub(super) has_frames: bool,
}

/// The device and what is behind it.
pub(super) struct Link {
    /// Bits per second; 0: infinitely fast.
    pub(super) rate: u64,
    /// Bytes per frame beside its own.
    pub(super) overhead: u32,
    pub(super) mtu: u32,
    pub(super) tx_queue_len: u32,
    /// Packets are routed through the machine.
    pub(super) forward: bool,
}

/// A row of the schedule: what happens when (ns, from the recording's zero).
pub(super) struct Row {
    pub(super) time: i64,
    pub(super) what: What,
}

pub(super) enum What {
    Packet(Box<Arrival>),
    Command(String),
}

impl Link {
    fn parse(text: &str) -> anyhow::Result<Link> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [rate, overhead, mtu, tx_queue_len, rest @ ..] = words.as_slice() else {
            bail!("link: expected `rate overhead mtu txqueuelen [forward]`, found `{}`", text.trim());
        };
        let number = |what: &str, word: &str| word.parse::<u64>().with_context(|| format!("link: {what} `{word}`"));
        Ok(Link {
            rate: number("rate", rate)?,
            overhead: number("overhead", overhead)? as u32,
            mtu: number("mtu", mtu)? as u32,
            tx_queue_len: number("txqueuelen", tx_queue_len)? as u32,
            forward: rest.first() == Some(&"forward"),
        })
    }

    /// The device that the recordings name `link0`. Their kernel ticks a thousand times a second.
    pub(super) fn device(&self) -> DeviceSpec {
        let switches = Switches { no_bypass: true, ..Switches::default() };
        DeviceSpec { mtu: self.mtu, tx_queue_len: self.tx_queue_len, hz: 1000, switches, ..DeviceSpec::default() }
    }

    /// Nanoseconds that a frame occupies the link.
    pub(super) fn frame_time(&self, len: u32) -> u64 {
        (u64::from(len) + u64::from(self.overhead)) * 8_000_000_000 / self.rate
    }
}

impl Recording {
    /// Reads a folder; without draws.csv what is random comes from `seed`.
    pub(super) fn read(dir: &Path, seed: u64) -> anyhow::Result<Recording> {
        let text = |name: &str| {
            let path = dir.join(name);
            crate::input::result_text(&path)
        };
        let draws = match text("draws.csv") {
            Ok(text) => Recorded::parse(&text, EPOCH)?,
            Err(_) if !dir.join("draws.csv").exists() => Recorded::from_seed(seed),
            Err(error) => return Err(error),
        };
        let script = dir.join("script.tc");
        if !script.is_file() {
            bail!("cannot read {}", script.display());
        }
        Ok(Recording {
            link: Link::parse(&text("link")?)?,
            script: script.canonicalize()?,
            rows: schedule(&text("schedule.csv")?)?,
            draws,
            has_frames: dir.join("frames.csv").exists(),
        })
    }
}

fn schedule(text: &str) -> anyhow::Result<Vec<Row>> {
    let mut lines = text.lines().enumerate();
    let Some((_, head)) = lines.next() else { bail!("schedule.csv is empty") };
    let columns: Vec<&str> = head.split(',').collect();
    let mut rows: Vec<Row> = Vec::new();
    for (n, line) in lines.filter(|(_, l)| !l.trim().is_empty()) {
        let row = || -> anyhow::Result<Row> {
            let (time, rest) = line.split_once(',').context("no comma")?;
            let time: i64 = time.parse().with_context(|| format!("time `{time}`"))?;
            let what = match rest.strip_prefix("!,") {
                Some(command) => What::Command(command.to_owned()),
                None => What::Packet(Box::new(Arrival::parse(&columns, line)?)),
            };
            Ok(Row { time, what })
        };
        rows.push(row().with_context(|| format!("schedule.csv:{}: `{line}`", n + 1))?);
    }
    // Rows happen in the order of the file: one whose time is past happens at once.
    let mut latest = i64::MIN;
    for row in &mut rows {
        latest = latest.max(row.time);
        row.time = latest;
    }
    Ok(rows)
}
