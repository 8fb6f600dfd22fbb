//! `tidegate top`: classes as they are at work, on the terminal or line by line.

use super::{failed, is_closed_pipe, snapshot};
use crate::values;
use anyhow::ensure;
use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tidegate_analysis::watch::{DeviceInterval, Snapshot, device_intervals, line};
use tidegate_apply::status::{self, Health};
use tidegate_apply::{SnapshotSource, sources};
use tidegate_report::watch::screen;
use tidegate_sys::terminal::RawTerminal;
use tidegate_sys::{interrupt, poll};

/// Show classes live: throughput, queueing delay, drops, marks
#[derive(clap::Args)]
#[command(after_help = "\
Figures are of the last interval: throughput and its share of what the policy allows, backlog in bytes, \
queueing delay (median and 99th percentile, overestimated by an eighth at most), packets dropped and marked \
per second, and the share borrowed from parent classes (HTB). The kernel's qdiscs have counters, but no \
queueing delays. `oldest` is the age of the oldest packet in the queue. `late` is the maximum lateness of the \
engine (! where packets left too late: --realtime).

q or Ctrl-C ends.

Exit codes: 0 done; 2 wrong usage or input: nothing is shaped, a device is missing, or a daemon died or does \
not answer; 4 not permitted.

Examples:
  tidegate top
  tidegate top eth0 --interval 500ms
  tidegate top --once --json")]
pub struct Options {
    /// The devices; default: all that are shaped
    pub devices: Vec<String>,
    /// Show one interval, and exit
    #[arg(long)]
    pub once: bool,
    /// Print one line of JSON for each device and interval
    #[arg(long)]
    pub json: bool,
    /// Time from one reading to the next
    #[arg(short, long, value_name = "TIME", value_parser = values::duration, default_value = "1s")]
    pub interval: Duration,
}

/// Runs the command.
pub fn command(options: &Options) -> ExitCode {
    match watch(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => failed("top", &error),
    }
}

fn watch(options: &Options) -> anyhow::Result<()> {
    let allowed = Duration::from_millis(50)..=Duration::from_secs(3600);
    ensure!(allowed.contains(&options.interval), "--interval is from 50ms to 1h");
    let healths = status::healths(None)?;
    let selected = healths.iter().filter(|health| health.is_on(&options.devices));
    let dead: Vec<String> = selected.filter_map(Health::daemon_failure).collect();
    let gone = || -> anyhow::Result<()> {
        ensure!(dead.is_empty(), "{}", dead.join("\n"));
        Ok(())
    };
    let mut sources = match sources(&options.devices, &healths) {
        Ok(sources) => sources,
        // Why it is dead is more helpful than that nothing answers.
        Err(error) => return gone().and(Err(error.into())),
    };
    if sources.is_empty() {
        gone()?;
    }
    dead.iter().for_each(|why| eprintln!("tidegate top: {why}"));
    ensure!(!sources.is_empty(), "nothing is shaped here; `tidegate apply POLICY` does that");
    let stop = interrupt::notice();
    let live = !options.once && !options.json && crate::output::canvas(&crate::output::stdout()).is_some();
    let terminal = if live { Some(Terminal::begin()?) } else { None };
    let mut before = all(&mut sources)?;
    let mut due = Instant::now();
    loop {
        due += options.interval;
        if !wait_until(due, terminal.is_some(), stop)? {
            return gone();
        }
        let now = all(&mut sources)?;
        let shown: Vec<DeviceInterval> =
            before.iter().zip(&now).flat_map(|(before, now)| device_intervals(before, now)).collect();
        match &terminal {
            Some(_) => draw(&shown)?,
            None => say(&shown, options.json)?,
        }
        if options.once {
            return gone();
        }
        before = now;
    }
}

fn all(sources: &mut [SnapshotSource]) -> anyhow::Result<Vec<Snapshot>> {
    sources.iter_mut().map(snapshot).collect()
}

/// Waits; false: someone has seen enough.
fn wait_until(due: Instant, keys: bool, stop: &AtomicBool) -> anyhow::Result<bool> {
    let stdin = io::stdin();
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if left.is_zero() {
            return Ok(true);
        }
        let listened = [stdin.as_fd()];
        if poll::readable(if keys { &listened } else { &[] }, left)?.contains(&true) {
            let mut keys = [0; 64];
            let pressed = io::Read::read(&mut stdin.lock(), &mut keys)?;
            // A closed terminal ends it, too.
            if pressed == 0 || keys[..pressed].iter().any(|key| matches!(key, b'q' | b'Q')) {
                return Ok(false);
            }
        }
    }
}

/// Plain text or JSON, for pipes.
fn say(shown: &[DeviceInterval], json: bool) -> anyhow::Result<()> {
    for course in shown {
        crate::output::next(&if json { format!("{}\n", line(course)) } else { screen(course, columns()) })?;
    }
    Ok(())
}

fn columns() -> usize {
    crate::output::columns().unwrap_or(80)
}

/// Draws over what was there; the terminal may have another size each time.
fn draw(shown: &[DeviceInterval]) -> anyhow::Result<()> {
    let (columns, rows) = crate::output::canvas(&crate::output::stdout()).unwrap_or((79, 24));
    let text: String = shown.iter().map(|course| screen(course, columns)).collect();
    Ok(crate::output::drawn(drawn(&text, rows).as_bytes())?)
}

/// A text over a screen of so many rows: from its upper left corner, each line to its end, the rest empty.
fn drawn(text: &str, rows: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let room = rows.saturating_sub(1).max(1);
    let shown = if lines.len() > room { room - 1 } else { lines.len() };
    let mut drawn = "\x1b[H".to_owned();
    for line in &lines[..shown] {
        drawn += &format!("{}\x1b[K\n", tidegate_text::line(line));
    }
    if shown < lines.len() {
        drawn += &format!("… {} lines more\x1b[K\n", lines.len() - shown);
    }
    drawn + "\x1b[J"
}

/// The terminal's other screen, without a cursor, until this goes.
struct Terminal {
    _keys: Option<RawTerminal<io::Stdin>>,
}

impl Terminal {
    fn begin() -> anyhow::Result<Terminal> {
        // A pipe has no keys.
        let keys = RawTerminal::begin(io::stdin()).ok();
        crate::output::drawn(b"\x1b[?1049h\x1b[?25l\x1b[2J")?;
        Ok(Terminal { _keys: keys })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = crate::output::drawn(b"\x1b[?25h\x1b[?1049l");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_counted() {
        assert_eq!(drawn("a\nb\n", 24), "\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J");
        assert_eq!(drawn("a\nb\nc\nd\n", 4), "\x1b[Ha\x1b[K\nb\x1b[K\n… 2 lines more\x1b[K\n\x1b[J");
        assert_eq!(drawn("a\nb\n", 1), "\x1b[H… 2 lines more\x1b[K\n\x1b[J");
    }
}
