//! Ranges side by side: how an answer fares under each load, at a glance.

use super::axis::Axis;
use super::drawing::{Drawing, EDGE, Margin, short, words};
use super::plot::Plot;
use std::fmt::Write as _;

/// A row with what it compares.
#[derive(Clone, Debug)]
pub struct Range {
    /// What the row is.
    pub title: String,
    /// Bars, one below the other: how it looks, the median, the 95th percentile, and the figure at its end.
    pub bars: Vec<(&'static str, u64, u64, String)>,
}

/// Pixels of a row's title.
const TITLE: f64 = 24.0;
/// Pixels of a bar with its distance to the next.
const BAR: f64 = 18.0;
/// Pixels at the left for half of a tick's figure.
const MARGIN: f64 = 14.0;
/// Pixels between rows.
const GAP: f64 = 12.0;

/// Bars from the median to the 95th percentile on a common scale.
pub fn ranges(title: &str, description: &str, x: Axis, rows: &[Range]) -> Drawing {
    let height = rows.iter().map(|row| TITLE + BAR * row.bars.len() as f64 + GAP).sum::<f64>().max(1.0);
    let margin = Margin { left: MARGIN, right: 24.0, top: 4.0, bottom: 24.0 };
    let mut plot = Plot::new(x, Axis::shares(), height, margin);
    plot.downward_grid();
    let mut top = 0.0;
    for row in rows {
        let mut name = String::new();
        words(&mut name, EDGE - MARGIN, top + 16.0, "strong halo", &row.title);
        plot.beneath(&name);
        top += TITLE;
        for (class, median, p95, text) in &row.bars {
            let (from, to) = (plot.x.scale.share(*median as f64), plot.x.scale.share(*p95 as f64));
            bar(&mut plot, class, (from, to), top + BAR / 2.0, text);
            top += BAR;
        }
        top += GAP;
    }
    plot.finished(title, description)
}

fn bar(plot: &mut Plot, class: &str, (from, to): (f64, f64), y: f64, text: &str) {
    let (a, b) = (short(from * 100.0), short(to * 100.0));
    let mut piece = String::new();
    let _ =
        write!(piece, "<line class=\"mark {class} solid\" x1=\"{a}%\" x2=\"{b}%\" y1=\"{y}\" y2=\"{y}\"/>");
    let _ = write!(piece, "<circle class=\"mark {class} dot\" cx=\"{a}%\" cy=\"{y}\" r=\"4.5\"/>");
    let _ = write!(
        piece,
        "<line class=\"{class} solid\" x1=\"{b}%\" x2=\"{b}%\" y1=\"{}\" y2=\"{}\"/>",
        y - 5.0,
        y + 5.0
    );
    plot.beneath(&piece);
    // Where there is no room on the right, the figure is on the left; where there is none either, on the bar.
    let (across, down, anchor) = match (from, to) {
        (_, to) if to < 0.72 => (to + 0.012, 4.0, ""),
        (from, _) if from > 0.2 => (from - 0.012, 4.0, " end"),
        _ => (to - 0.012, -5.0, " end"),
    };
    plot.text(&format!("{class} halo{anchor}"), across, y + down, text);
}
