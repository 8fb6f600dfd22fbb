//! What plots are put together from: axes, paths, areas, labels.

use super::axis::Axis;
use super::compact::number;
use super::drawing::{Body, Drawing, Margin, WIDE, escape, short};
use super::labels;
use super::thin::thin;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A level to compare with.
#[derive(Clone, Debug)]
pub struct Reference {
    /// What it is.
    pub name: String,
    /// Where it lies.
    pub value: f64,
}

/// Columns a line is thinned to where it is drawn large.
const COLUMNS: usize = 200;

/// Pixels from a level's line down to the foot of its name where the name is below.
const NAME_HEIGHT: f64 = 14.0;

/// The words above the shaded time; where something else needs the room, they are left out.
pub(super) const NOT_YET: &str = "<text class=\"halo\" x=\"4\" y=\"-4\">warm-up</text>";

/// A plot in the making.
pub(super) struct Plot {
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) height: f64,
    /// Columns that lines are thinned to.
    pub(super) columns: usize,
    /// Pixels at the top that no value reaches: samples without a value are marked there.
    pub(super) head: f64,
    margin: Margin,
    under: String,
    marks: String,
    over: String,
}

impl Plot {
    pub(super) fn new(x: Axis, y: Axis, height: f64, margin: Margin) -> Plot {
        Plot {
            x,
            y,
            height,
            columns: COLUMNS,
            head: 0.0,
            margin,
            under: String::new(),
            marks: String::new(),
            over: String::new(),
        }
    }

    pub(super) fn finished(self, title: &str, description: &str) -> Drawing {
        let Plot { height, margin, under, marks, over, .. } = self;
        let body = Body::Plot { height, margin, under, marks, over };
        Drawing { title: title.to_owned(), description: description.to_owned(), body }
    }

    /// A value's place in units of the marks.
    pub(super) fn place(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.scale.share(x) * WIDE, self.down(y))
    }

    /// A value's distance from the top in pixels.
    pub(super) fn down(&self, y: f64) -> f64 {
        self.head + (1.0 - self.y.scale.share(y)) * (self.height - self.head)
    }

    /// Above the vertical axis, its unit.
    pub(super) fn unit(&mut self) {
        let _ = write!(self.under, "<text class=\"end\" x=\"-8\" y=\"-11\">{}</text>", self.y.unit);
    }

    /// Above a small plot, what it shows and the vertical axis's unit.
    pub(super) fn heading(&mut self, text: &str) {
        let (x, text, unit) = (short(-self.margin.left), escape(text), self.y.unit);
        let _ =
            write!(self.under, "<text x=\"{x}\" y=\"-11\"><tspan class=\"ink\">{text}</tspan> {unit}</text>");
    }

    /// Both axes with their grid and figures. `bare`: of the horizontal one only the grid.
    pub(super) fn axes(&mut self, bare: bool) {
        for (value, text) in self.y.marked() {
            let y = short(self.down(value));
            let _ = write!(self.under, "<line class=\"grid\" x2=\"100%\" y1=\"{y}\" y2=\"{y}\"/>");
            let _ = write!(self.under, "<text class=\"end\" x=\"-8\" y=\"{y}\" dy=\".35em\">{text}</text>");
        }
        for (value, text) in self.x.marked_across() {
            let x = short(self.x.scale.share(value) * 100.0);
            let _ =
                write!(self.under, "<line class=\"grid\" x1=\"{x}%\" x2=\"{x}%\" y2=\"{}\"/>", self.height);
            if !bare {
                let y = self.height + 16.0;
                let _ = write!(self.under, "<text class=\"mid\" x=\"{x}%\" y=\"{y}\">{text}</text>");
            }
        }
        let base = short(self.down(0.0));
        let _ = write!(self.under, "<line class=\"base\" x2=\"100%\" y1=\"{base}\" y2=\"{base}\"/>");
    }

    /// Shades what comes before the measured time.
    pub(super) fn warm_up(&mut self, until: f64, reported: bool) {
        let share = short(self.x.scale.share(until) * 100.0);
        if share != "0" {
            let _ =
                write!(self.under, "<rect class=\"warm\" width=\"{share}%\" height=\"{}\"/>", self.height);
            if reported {
                self.over.push_str(NOT_YET);
            }
        }
    }

    /// A line through points; `None` breaks it.
    pub(super) fn line(&mut self, class: &str, points: &[Option<(f64, f64)>]) {
        let mut path = String::new();
        for piece in points.split(Option::is_none) {
            let placed: Vec<(f64, f64)> = piece.iter().flatten().map(|&(x, y)| self.place(x, y)).collect();
            let kept = thin(&placed, WIDE, self.columns);
            trace(&mut path, kept.iter().copied());
            // A lone answer is a dot: a line of almost no length with round ends.
            if kept.len() == 1 {
                path.push_str("h.1");
            }
        }
        if !path.is_empty() {
            let _ = write!(self.marks, "<path class=\"mark {class}\" d=\"{path}\"/>");
        }
    }

    /// An area between two series of equally many points.
    pub(super) fn area(&mut self, class: &str, above: &[(f64, f64)], below: &[(f64, f64)]) {
        let place = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
            points.iter().map(|&(x, y)| self.place(x, y)).collect()
        };
        let above = thin(&place(above), WIDE, self.columns);
        let below = thin(&place(below), WIDE, self.columns);
        let mut path = String::new();
        trace(&mut path, above.into_iter().chain(below.into_iter().rev()));
        if !path.is_empty() {
            let _ = write!(self.marks, "<path class=\"{class}\" d=\"{path}Z\"/>");
        }
    }

    /// Levels all across, each named above its line, the highest at the left, others at the right; below it
    /// where the one above is too near.
    pub(super) fn levels(&mut self, levels: &[Reference]) {
        let mut order: Vec<&Reference> = levels.iter().collect();
        order.sort_by(|a, b| b.value.total_cmp(&a.value));
        let mut above = f64::NEG_INFINITY;
        for (n, level) in order.into_iter().enumerate() {
            let y = self.down(level.value);
            let class = if n == 0 { "ref firm" } else { "ref" };
            let _ = write!(self.marks, "<path class=\"{class}\" d=\"M0 {}H{WIDE}\"/>", short(y));
            let (x, anchor) = if n == 0 { ("4", "") } else { ("99%", " end") };
            let baseline = if y - above < NAME_HEIGHT { y + NAME_HEIGHT } else { y - 4.0 };
            let (name, baseline) = (escape(&level.name), short(baseline));
            let _ = write!(
                self.over,
                "<text class=\"ink halo{anchor}\" x=\"{x}\" y=\"{baseline}\">{name}</text>"
            );
            above = y;
        }
    }

    /// Short strokes hanging from the top: something that failed at these times; one a column.
    pub(super) fn hanging(&mut self, times: impl Iterator<Item = f64>, length: f64) {
        let mut path = String::new();
        let mut before = None;
        for time in times {
            let column = (self.x.scale.share(time) * WIDE / 2.0) as i64;
            if before != Some(column) {
                let _ = write!(path, "M{} 0v{}", column * 2, short(length));
                before = Some(column);
            }
        }
        if !path.is_empty() {
            let _ = write!(self.marks, "<path class=\"mark lost\" d=\"{path}\"/>");
        }
    }

    /// Names at the right end, each at its height or near it.
    pub(super) fn names(&mut self, names: &[(String, &str, f64)]) {
        let mut places: Vec<f64> = names.iter().map(|(_, _, y)| *y).collect();
        labels::apart(&mut places, 14.0, 4.0, self.height - 4.0);
        for ((name, class, _), y) in names.iter().zip(places) {
            let y = short(y);
            let _ = write!(
                self.over,
                "<text class=\"{class}\" x=\"100%\" dx=\"7\" y=\"{y}\" dy=\".35em\">{}</text>",
                escape(name)
            );
        }
    }

    /// Names at the right end, each at its height or near it, with a piece of its line, or a dot, before it.
    pub(super) fn keys(&mut self, names: &[(String, &str, f64)], dots: bool) {
        let (how, sample) = if dots { ("spot key-spot", "M11 0h.1") } else { ("sample", "M4 0H18") };
        let mut places: Vec<f64> = names.iter().map(|(_, _, y)| *y).collect();
        labels::apart(&mut places, 14.0, 4.0, self.height - 4.0);
        for ((name, class, _), y) in names.iter().zip(places) {
            let _ = write!(
                self.over,
                "<svg x=\"100%\" y=\"{}\" overflow=\"visible\"><path class=\"mark {class} {how}\" \
                d=\"{sample}\"/>\
                 <text class=\"ink\" x=\"22\" dy=\".35em\">{}</text></svg>",
                short(y),
                escape(name)
            );
        }
    }

    /// Dots at points, as large as `class` sets; those that would overlap are drawn once.
    pub(super) fn dots(&mut self, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        let mut path = String::new();
        let mut drawn = BTreeSet::new();
        for (x, y) in points {
            let (x, y) = self.place(x, y);
            let (x, y) = (x.round() as i64, y.round() as i64);
            if drawn.insert((x, y)) {
                let _ = write!(path, "M{x} {y}h.1");
            }
        }
        if !path.is_empty() {
            let _ = write!(self.marks, "<path class=\"mark {class}\" d=\"{path}\"/>");
        }
    }

    /// Short strokes in a row at the top: the times of losses.
    pub(super) fn losses(&mut self, class: &str, top: f64, times: impl Iterator<Item = f64>) {
        let columns: BTreeSet<i64> =
            times.map(|time| (self.x.scale.share(time) * WIDE / 2.0) as i64).collect();
        let path: String = columns.iter().map(|column| format!("M{} {}v5", column * 2, short(top))).collect();
        if !path.is_empty() {
            let _ = write!(self.marks, "<path class=\"mark {class}\" d=\"{path}\"/>");
        }
    }

    /// The words at the left of a row at the top.
    pub(super) fn aside(&mut self, y: f64, text: &str) {
        let (y, text) = (short(y), escape(text));
        let _ = write!(self.under, "<text class=\"end\" x=\"-8\" y=\"{y}\">{text}</text>");
    }

    /// A text at a place, given in shares of the width and in pixels from the top.
    pub(super) fn text(&mut self, class: &str, across: f64, down: f64, text: &str) {
        let (x, y) = (short(across * 100.0), short(down));
        let _ = write!(self.over, "<text class=\"{class}\" x=\"{x}%\" y=\"{y}\">{}</text>", escape(text));
    }

    /// A text a little behind a place given in percent of the width.
    pub(super) fn text_behind(&mut self, class: &str, percent: f64, down: f64, text: &str) {
        let (x, y, text) = (short(percent), short(down), escape(text));
        let _ = write!(self.over, "<text class=\"{class}\" x=\"{x}%\" dx=\"9\" y=\"{y}\">{text}</text>");
    }

    /// A text a little before a place given in percent of the width.
    pub(super) fn text_before(&mut self, class: &str, percent: f64, down: f64, text: &str) {
        let (x, y, text) = (short(percent), short(down), escape(text));
        let _ = write!(
            self.over,
            "<text class=\"{class}\" x=\"{x}%\" dx=\"-9\" y=\"{y}\" text-anchor=\"end\">{text}</text>"
        );
    }

    /// The horizontal axis only: its grid from top to bottom, its figures below.
    pub(super) fn downward_grid(&mut self) {
        for (value, text) in self.x.marked_across() {
            let x = short(self.x.scale.share(value) * 100.0);
            let _ =
                write!(self.under, "<line class=\"grid\" x1=\"{x}%\" x2=\"{x}%\" y2=\"{}\"/>", self.height);
            let y = self.height + 16.0;
            let _ = write!(self.under, "<text class=\"mid\" x=\"{x}%\" y=\"{y}\">{text}</text>");
        }
    }

    /// Drawn under everything.
    pub(super) fn beneath(&mut self, piece: &str) {
        self.under.push_str(piece);
    }
}

/// A path through points in tenths of a unit, each relative to the one before: the shortest encoding.
fn trace(path: &mut String, points: impl Iterator<Item = (f64, f64)>) {
    let tenths = |value: f64| (value * 10.0).round() as i64;
    let mut before = None;
    for (x, y) in points {
        let (x, y) = (tenths(x), tenths(y));
        match before {
            None => {
                path.push('M');
                number(path, x);
                number(path, y);
            }
            Some((x0, y0)) => {
                path.push('l');
                number(path, x - x0);
                number(path, y - y0);
            }
        }
        before = Some((x, y));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_short_and_do_not_drift() {
        let mut path = String::new();
        trace(&mut path, [(0.0, 240.0), (0.34, 239.96), (0.68, 0.0), (10.0, -0.52)].into_iter());
        assert_eq!(path, "M0 240l.3 0l.4-240l9.3-.5");
    }
}
