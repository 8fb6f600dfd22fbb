//! Many cases at a glance: for each load a row per policy, with the median, the 95th and the 99th percentile, or with one figure and
//! its spread.

use super::look::Look;
use super::plot::Plot;
use super::{Axis, Drawing, Margin, short, words};
use std::fmt::Write as _;

/// Cases under a heading.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// What they have in common: a load.
    pub title: String,
    /// The cases, one below the other.
    pub cases: Vec<Mark>,
}

/// A case.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Its look.
    pub look: Look,
    /// The bar from here to there.
    pub bar: (f64, f64),
    /// The dot.
    pub dot: f64,
    /// The thin line's end beyond the bar, and before it its beginning.
    pub whisker: (f64, f64),
    /// What stands beside it.
    pub text: String,
}

/// Pixels of a group's title.
const TITLE: f64 = 24.0;
/// Pixels of a case.
const CASE: f64 = 18.0;
/// Pixels between groups.
const GAP: f64 = 12.0;
/// Pixels at the left, where half a tick's figure stands.
const MARGIN: f64 = 14.0;
/// Pixels of a character of the text beside a case, at most.
const CHARACTER: f64 = 7.2;
/// Pixels of the narrowest plot, a telephone's.
const NARROW: f64 = 310.0;

/// Groups of cases on a common scale.
pub fn cases(title: &str, description: &str, x: Axis, groups: &[Group]) -> Drawing {
    let height = groups.iter().map(|group| TITLE + CASE * group.cases.len() as f64 + GAP).sum::<f64>().max(1.0);
    let margin = Margin { left: MARGIN, right: 40.0, top: 4.0, bottom: 24.0 };
    let mut plot = Plot::new(x, Axis::shares(), height, margin);
    plot.downward_grid();
    let mut top = 0.0;
    for group in groups {
        let mut name = String::new();
        words(&mut name, -MARGIN, top + 16.0, "strong halo", &group.title);
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
        let _ = write!(piece, "<line class=\"mark {line} {class}\" x1=\"{a}%\" x2=\"{b}%\" y1=\"{y}\" y2=\"{y}\"/>");
    }
    let end = short(across(case.whisker.1));
    let (up, down) = (y - 4.0, y + 4.0);
    let _ = write!(piece, "<line class=\"{line} whisker\" x1=\"{end}%\" x2=\"{end}%\" y1=\"{up}\" y2=\"{down}\"/>");
    let dot = short(across(case.dot));
    let _ = write!(piece, "<circle class=\"mark {fill} dot\" cx=\"{dot}%\" cy=\"{y}\" r=\"4.5\"/>");
    let (least, most) = (across(case.whisker.0.min(case.bar.0)), across(case.whisker.1));
    plot.beneath(&piece);
    // Where a telephone has no room on the right, the text stands on the left.
    let needed = CHARACTER * case.text.chars().count() as f64 / NARROW * 100.0;
    let (place, anchor) =
        if most + needed < 104.0 || least < needed { (most + 1.2, "") } else { (least - 1.2, " end") };
    plot.text(&format!("ink halo{anchor}"), place / 100.0, y + 4.0, &case.text);
}
