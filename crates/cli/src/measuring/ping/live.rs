//! The chart on the terminal while hosts are pinged.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegate_measure::pinged::PingTarget;
use tidegate_prober::ping::{PingProgress, Pinger};
use tidegate_report::measuring::ping::screen;
use tidegate_sys::{interrupt, poll};

/// From one drawing to the next.
const REDRAW: Duration = Duration::from_millis(250);
/// Figures on the terminal are of so many requests at most: those of the end are of all.
const RECENT: usize = 1000;

/// Shows how it goes on until all is answered or someone stops it (true). Draws only where a terminal is
/// looked at.
///
/// # Errors
/// Waiting is not possible.
pub(super) fn watch(pinger: &Pinger, may_draw: bool) -> io::Result<bool> {
    let stop = interrupt::notice();
    let draws = may_draw && crate::output::canvas(&crate::output::stderr()).is_some();
    let mut drawn = 0;
    while !pinger.is_over() && !stop.load(Ordering::Relaxed) {
        // Ctrl-C ends the wait.
        poll::readable(&[], REDRAW)?;
        if draws {
            drawn = draw(pinger, drawn);
        }
    }
    if draws {
        erase(drawn);
    }
    Ok(stop.load(Ordering::Relaxed) && !pinger.is_over())
}

/// Draws over the lines drawn before; how many there are now.
fn draw(pinger: &Pinger, before: usize) -> usize {
    let (columns, rows) = crate::output::canvas(&crate::output::stderr()).unwrap_or((79, 24));
    let (targets, now_ns) =
        pinger.look(|seen: &PingProgress| (seen.targets.iter().map(recent).collect::<Vec<_>>(), seen.now_ns));
    let text = screen(&targets, now_ns, columns);
    let lines: Vec<&str> = text.lines().take(rows.saturating_sub(1).max(1)).collect();
    erase(before);
    eprintln!("{}", lines.join("\n"));
    lines.len()
}

fn erase(lines: usize) {
    if lines > 0 {
        crate::output::draw(&format!("\x1b[{lines}A\x1b[J"));
    }
}

/// A target with its last requests only.
fn recent(target: &PingTarget) -> PingTarget {
    let from = target.requests.len().saturating_sub(RECENT);
    PingTarget { id: target.id.clone(), requests: target.requests[from..].to_vec(), ..PingTarget::default() }
}
