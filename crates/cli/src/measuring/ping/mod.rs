//! `tidegate ping`: hosts pinged repeatedly, and the six panels of ping-exp.
//!
//! ```text
//! options ─▶ plans ─▶ prober::ping::Pinger (its own thread) ── look ──▶ the terminal's chart
//!                                          └─ end ──▶ measure::pinged::Pinged ──▶ table, JSON, six panels, page
//! ```

mod live;
mod options;

pub use options::Options;

use crate::exit::CliExit;
use crate::outputs::{self, Form, PAGES, ReportFile};
use anyhow::Context;
use std::path::Path;
use std::process::ExitCode;
use tidegate_analysis::ping::{from_json, from_pingexp, to_json};
use tidegate_measure::pinged::Pinged;
use tidegate_prober::ping::{PingProgress, Pinger};
use tidegate_report::chart::{Theme, file, png};
use tidegate_report::measuring::ping::{page, six_panels, text};

/// Width of pictures.
const WIDTH: f64 = 800.0;
/// Pixels of a PNG for each of the drawing's.
const SCALE: f32 = 2.0;

/// Plays `tidegate ping`.
pub fn command(options: &Options) -> ExitCode {
    super::ended("ping", attempt(options))
}

fn attempt(options: &Options) -> anyhow::Result<CliExit> {
    let files = outputs::paths(&options.output).chain(options.write.as_deref());
    crate::output::may_write(files)?;
    let pinged = match &options.read {
        Some(path) => read(path).with_context(|| path.display().to_string())?,
        None => measure(options)?,
    };
    let shown = if options.json { to_json(&pinged) } else { text(&pinged) };
    crate::output::report(&shown);
    if let Some(path) = &options.write {
        crate::output::file(path, to_json(&pinged).as_bytes())?;
    }
    for file in &options.output {
        draw(file, &pinged, options.lines)?;
    }
    Ok(code(&pinged))
}

/// A file of tidegate's, or of ping-exp's.
fn read(path: &Path) -> anyhow::Result<Pinged> {
    let bytes = crate::input::result(path)?;
    match bytes.trim_ascii_start().first() {
        Some(b'{') => Ok(from_json(std::str::from_utf8(&bytes).context("it is not text")?)?),
        _ => Ok(from_pingexp(&bytes)?),
    }
}

fn measure(options: &Options) -> anyhow::Result<Pinged> {
    let plans = options.plans()?;
    let pinger = Pinger::begin(&plans)?;
    let is_stopped = live::watch(&pinger, !crate::output::is_quiet() && !options.json)?;
    let seen = if is_stopped { pinger.end() } else { pinger.finish() };
    // Without a count, Ctrl-C is the end that was meant.
    Ok(document(seen, is_stopped && options.limit().is_some()))
}

fn document(seen: PingProgress, is_stopped: bool) -> Pinged {
    let stopped = || format!("stopped after {}", tidegate_report::format_duration(seen.now_ns));
    let mut notes = Vec::new();
    if seen.clock_steps > 0 {
        notes.push(format!(
            "the wall clock was set {} times meanwhile; the times of answers then are by the clock that \
            never steps, and include how long this program waited for its turn",
            seen.clock_steps
        ));
    }
    Pinged {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        again: crate::measuring::again(),
        began_ns: seen.began_ns,
        partial: seen.problem.clone().or_else(|| is_stopped.then(stopped)),
        targets: seen.targets,
        notes,
    }
}

fn code(pinged: &Pinged) -> CliExit {
    let is_silent = pinged.targets.iter().any(|target| target.figures().rtt.is_none());
    match (&pinged.partial, is_silent) {
        (Some(_), _) => CliExit::Partial,
        (None, true) => CliExit::No,
        (None, false) => CliExit::Yes,
    }
}

fn draw(ReportFile { path, form }: &ReportFile, pinged: &Pinged, lines: bool) -> anyhow::Result<()> {
    match form {
        Form::Svg if PAGES => {
            crate::output::file(path, file(&six_panels(pinged, lines), WIDTH, Theme::Light).as_bytes())
        }
        Form::Png if PAGES => {
            crate::output::file(path, &png(&six_panels(pinged, lines), WIDTH, SCALE, Theme::Light)?)
        }
        Form::Html if PAGES => crate::output::file(path, page(pinged, lines).as_bytes()),
        _ => crate::output::file(path, to_json(pinged).as_bytes()),
    }
}
