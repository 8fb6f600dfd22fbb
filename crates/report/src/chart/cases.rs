//! Many cases at a glance: for each load a row per policy, with the median, the 95th and the 99th percentile,
//! or with one figure and its spread.

use super::axis::{Axis, WIDE_RANGE};
use super::drawing::{Drawing, EDGE, Margin, cut, short, words};
use super::look::Look;
use super::plot::Plot;
use std::fmt::Write as _;

/// Cases under a heading.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// What they have in common: a load.
    pub title: String,
    /// The cases, one below the other.
    pub cases: Vec<Mark>,
}

/// A case with its marks.
#[derive(Clone, Debug)]
pub struct Mark {
    /// What it is called: a policy.
    pub name: String,
    /// The mark's look.
    pub look: Look,
    /// The bar from here to there.
    pub bar: (f64, f64),
    /// The value of the dot.
    pub dot: f64,
    /// The thin line's end beyond the bar, and before it its beginning.
    pub whisker: (f64, f64),
    /// The figure written behind it.
    pub text: String,
}

/// Pixels of a group's title.
const TITLE: f64 = 24.0;
/// Pixels of a case.
const CASE: f64 = 18.0;
/// Pixels between groups.
const GAP: f64 = 12.0;
/// Pixels at the left, for names.
const NAMES: f64 = 118.0;
/// Characters of a name.
const NAME: usize = 16;

/// The share of the width that marks may take: figures come behind them.
const ROOM: f64 = 0.7;

/// An axis for cases with spans up to `high` ns: what is beyond it leaves room for figures.
pub fn cases_spans(low: u64, high: u64) -> Axis {
    if low > 0 && high / low >= WIDE_RANGE {
        let range = high as f64 / low as f64;
        Axis { ticks: 5, ..Axis::log_spans(low, (low as f64 * range.powf(1.0 / ROOM)) as u64) }
    } else {
        Axis { ticks: 4, ..Axis::spans_to((high as f64 / ROOM) as u64) }
    }
}

/// An axis for rates.
pub fn cases_rates(high: f64) -> Axis {
    Axis::rates_to(high / ROOM)
}

/// Groups of cases on a common scale.
pub fn cases(title: &str, description: &str, x: Axis, groups: &[Group]) -> Drawing {
    let height =
        groups.iter().map(|group| TITLE + CASE * group.cases.len() as f64 + GAP).sum::<f64>().max(1.0);
    let margin = Margin { left: NAMES, right: 40.0, top: 4.0, bottom: 24.0 };
    let mut plot = Plot::new(x, Axis::shares(), height, margin);
    plot.downward_grid();
    let mut top = 0.0;
    for group in groups {
        let mut name = String::new();
        words(&mut name, EDGE - NAMES, top + 16.0, "strong halo", &group.title);
        plot.beneath(&name);
        top += TITLE;
        for case in &group.cases {
            mark(&mut plot, case, top + CASE / 2.0);
            top += CASE;
        }
        top += GAP;
    }
    plot.finished(title, description)
}

fn mark(plot: &mut Plot, case: &Mark, y: f64) {
    let across = |value: f64| plot.x.scale.share(value) * 100.0;
    let (line, fill) = (case.look.line(), case.look.fill());
    let mut piece = String::new();
    for (class, (from, to)) in [("whisker", case.whisker), ("bar", case.bar)] {
        let (a, b) = (short(across(from)), short(across(to)));
        let _ = write!(
            piece,
            "<line class=\"mark {line} {class}\" x1=\"{a}%\" x2=\"{b}%\" y1=\"{y}\" y2=\"{y}\"/>"
        );
    }
    let end = short(across(case.whisker.1));
    let (up, down) = (y - 4.0, y + 4.0);
    let _ = write!(
        piece,
        "<line class=\"{line} whisker\" x1=\"{end}%\" x2=\"{end}%\" y1=\"{up}\" y2=\"{down}\"/>"
    );
    let dot = short(across(case.dot));
    let _ = write!(piece, "<circle class=\"mark {fill} dot\" cx=\"{dot}%\" cy=\"{y}\" r=\"4.5\"/>");
    words(&mut piece, -8.0, y + 4.0, "end", &cut(&case.name, NAME));
    let end = across(case.whisker.1.max(case.bar.1));
    plot.beneath(&piece);
    plot.text_behind("ink halo", end, y + 4.0, &case.text);
}
