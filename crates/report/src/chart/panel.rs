//! A plot of fixed size at a place of a larger drawing.

use super::axis::Axis;
use super::drawing::{short, words};
use super::look::Look;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The position of a panel and its axes.
pub(super) struct Panel {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) x: Axis,
    pub(super) y: Axis,
}

impl Panel {
    pub(super) fn across(&self, x: f64) -> f64 {
        self.left + self.x.scale.share(x) * self.width
    }

    pub(super) fn down(&self, y: f64) -> f64 {
        self.top + (1.0 - self.y.scale.share(y)) * self.height
    }

    /// Its bottom edge.
    pub(super) fn foot(&self) -> f64 {
        self.top + self.height
    }

    /// Frame, title, grid and figures; with `names`, of the axes, too.
    pub(super) fn axes(&self, out: &mut String, title: &str, names: Option<(&str, &str)>) {
        words(out, self.left + self.width / 2.0, self.top - 9.0, "strong mid", title);
        self.upright(out);
        for (value, text) in self.x.marked_across() {
            let x = short(self.across(value));
            let _ =
                write!(out, "<path class=\"grid\" d=\"M{x} {}v{}\"/>", short(self.top), short(self.height));
            words(out, self.across(value), self.foot() + 15.0, "small mid", &text);
        }
        if let Some((x, y)) = names {
            words(out, self.left + self.width / 2.0, self.foot() + 31.0, "small mid", x);
            words(out, self.left, self.top - 9.0, "small", y);
        }
        self.frame(out);
    }

    /// The upright axis's grid and figures.
    pub(super) fn upright(&self, out: &mut String) {
        for (value, text) in self.y.marked() {
            let y = self.down(value);
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{} {}h{}\"/>",
                short(self.left),
                short(y),
                short(self.width)
            );
            words(out, self.left - 6.0, y + 4.0, "small end", &text);
        }
    }

    pub(super) fn frame(&self, out: &mut String) {
        let [x, y, w, h] = [self.left, self.top, self.width, self.height].map(short);
        let _ = write!(out, "<rect class=\"frame\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"/>");
    }

    /// A dot for each point; those that would lie on each other are drawn once.
    pub(super) fn dots(&self, out: &mut String, look: Look, points: impl Iterator<Item = (f64, f64)>) {
        let mut path = String::new();
        let mut drawn = BTreeSet::new();
        for (x, y) in points {
            let (x, y) = ((self.across(x) * 2.0).round() as i64, (self.down(y) * 2.0).round() as i64);
            if drawn.insert((x, y)) {
                let _ = write!(path, "M{} {}h.1", short(x as f64 / 2.0), short(y as f64 / 2.0));
            }
        }
        if !path.is_empty() {
            let _ = write!(out, "<path class=\"mark {} spot fine\" d=\"{path}\"/>", look.line());
        }
    }

    /// A line from point to point, broken where a value is missing.
    pub(super) fn line(
        &self,
        out: &mut String,
        look: Look,
        points: impl Iterator<Item = (f64, Option<f64>)>,
    ) {
        let (mut path, mut is_broken) = (String::new(), true);
        for (x, y) in points {
            if let Some(y) = y {
                let command = if is_broken { 'M' } else { 'L' };
                let _ = write!(path, "{command}{} {}", short(self.across(x)), short(self.down(y)));
            }
            is_broken = y.is_none();
        }
        if !path.is_empty() {
            let _ = write!(out, "<path class=\"mark {} outline\" d=\"{path}\"/>", look.line());
        }
    }

    /// Strokes of a row: losses at these times.
    pub(super) fn strokes(
        &self,
        out: &mut String,
        look: Look,
        y: f64,
        length: f64,
        times: impl Iterator<Item = f64>,
    ) {
        let columns: BTreeSet<i64> = times.map(|time| (self.across(time) * 2.0).round() as i64).collect();
        let path: String =
            columns.iter().map(|x| format!("M{} {}v{length}", short(*x as f64 / 2.0), short(y))).collect();
        if !path.is_empty() {
            let _ = write!(out, "<path class=\"mark {} rug\" d=\"{path}\"/>", look.line());
        }
    }
}
