//! `tidegate top`: classes as they are at work, on the terminal or line by line.

use super::keys::KeyReader;
use super::screen::TopScreen;
use super::terminal::OtherScreen;
use super::{failed, is_closed_pipe, snapshot};
use crate::values;
use anyhow::ensure;
use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tidegate_analysis::watch::{DeviceInterval, Snapshot, device_intervals, line};
use tidegate_apply::status::{self, Health};
use tidegate_apply::{SnapshotSource, sources};
use tidegate_report::watch::screen;
use tidegate_sessions::autorate::controls;
use tidegate_sys::{interrupt, poll};

/// Show classes live: throughput, queueing delay, drops, marks
#[derive(clap::Args)]
#[command(after_help = "\
Figures are of the last interval: throughput and its share of what the policy allows, backlog in bytes, \
queueing delay (median and 99th percentile, overestimated by an eighth at most), packets dropped and marked \
per second, and the share borrowed from parent classes (HTB). The kernel's qdiscs have counters, but no \
queueing delays. `oldest` is the age of the oldest packet in the queue. `late` is the maximum lateness of the \
engine (! where packets left too late: --realtime).

On a terminal, classes that were idle for ten intervals are left out (i shows them), and a line of bars has \
the 99th percentiles of past intervals: half a decade for each step, from 1 ms or less to more than 1 s.

Keys: q or Ctrl-C ends; i idle classes; s sort by throughput, queueing delay, backlog or drops, or as a tree; \
arrows, PgUp, PgDn, Home and End scroll; space pauses; Ctrl-Z stops, and fg continues.

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
    let live = !options.once && !options.json && crate::output::canvas(&crate::output::stdout()).is_some();
    match live {
        true => on_screen(&mut sources, options.interval)?,
        false => line_by_line(&mut sources, options)?,
    }
    gone()
}

/// Prints intervals one after the other.
fn line_by_line(sources: &mut [SnapshotSource], options: &Options) -> anyhow::Result<()> {
    let stop = interrupt::notice();
    let mut before = all(sources)?;
    let mut due = Instant::now();
    loop {
        due += options.interval;
        while Instant::now() < due {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            poll::readable(&[], due.saturating_duration_since(Instant::now()))?;
        }
        let now = all(sources)?;
        say(&shown(&before, &now), options.json)?;
        if options.once {
            return Ok(());
        }
        before = now;
    }
}

/// How long the first interval is at most, so that there is something to see at once.
const FIRST: Duration = Duration::from_millis(250);
/// How often the size of the terminal is looked at.
const RESIZED: Duration = Duration::from_millis(250);

/// Draws intervals on the terminal, and obeys keys.
fn on_screen(sources: &mut [SnapshotSource], interval: Duration) -> anyhow::Result<()> {
    let ended = interrupt::event_fd()?;
    let stops = interrupt::StopRequests::begin()?;
    let mut terminal = OtherScreen::begin()?;
    let (mut screen, mut keys) = (TopScreen::new(), KeyReader::default());
    let mut before = all(sources)?;
    let mut due = Instant::now() + interval.min(FIRST);
    let stdin = io::stdin();
    loop {
        // Ctrl-Z.
        if stops.take() {
            terminal.aside(|| stops.stop())?;
        }
        let size = OtherScreen::size();
        terminal.draw(|buffer| screen.draw(buffer))?;
        let left = due.saturating_duration_since(Instant::now());
        if !left.is_zero() && size == OtherScreen::size() {
            let readable = poll::readable(&[stdin.as_fd(), ended.as_fd()], left.min(RESIZED))?;
            // Ctrl-C or SIGTERM.
            if readable[1] {
                return Ok(());
            }
            if readable[0] {
                let mut bytes = [0; 64];
                let count = io::Read::read(&mut stdin.lock(), &mut bytes)?;
                // A closed terminal ends it, too.
                if count == 0 || !keys.read(&bytes[..count]).into_iter().all(|key| screen.obey(key)) {
                    return Ok(());
                }
            }
            continue;
        }
        if left.is_zero() {
            let now = all(sources)?;
            if !screen.is_paused() {
                screen.push(shown(&before, &now));
            }
            before = now;
            // After a stop of this process, the intervals missed are not made up for.
            let now = Instant::now();
            due = if due + interval > now { due + interval } else { now + interval };
        }
    }
}

fn shown(before: &[Snapshot], now: &[Snapshot]) -> Vec<DeviceInterval> {
    let mut intervals: Vec<DeviceInterval> =
        before.iter().zip(now).flat_map(|(before, now)| device_intervals(before, now)).collect();
    for control in controls() {
        let of = intervals.iter_mut().find(|interval| interval.device == control.device);
        of.into_iter().for_each(|interval| interval.control = Some(control.clone()));
    }
    intervals
}

fn all(sources: &mut [SnapshotSource]) -> anyhow::Result<Vec<Snapshot>> {
    sources.iter_mut().map(snapshot).collect()
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
