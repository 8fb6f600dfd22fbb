//! Curves over a quantity, with intervals, dots and outlines: what papers print. The names stand below, so
//! that a column of a page is wide enough.

use super::axis::Axis;
use super::drawing::{Drawing, EDGE, Margin, cut, escape, short};
use super::labels;
use super::look::Look;
use super::plot::Plot;
use std::fmt::Write as _;

/// What is compared.
#[derive(Clone, Debug)]
pub struct PlotCurve {
    /// Its name.
    pub name: String,
    /// How it looks.
    pub look: Look,
    /// A line through these, from left to right.
    pub line: Vec<(f64, f64)>,
    /// A dot at each of these.
    pub dots: Vec<(f64, f64)>,
    /// Names of the dots, in their order; none: they have none. One for which there is no room is left out.
    pub labels: Vec<String>,
    /// Intervals: a place across, and from where to where.
    pub bars: Vec<(f64, f64, f64)>,
    /// A closed line around a dot.
    pub outline: Vec<(f64, f64)>,
}

/// Pixels for the figures of the vertical axis.
const LEFT: f64 = 52.0;
/// Pixels for the half of the last figure that is beyond the axis.
const RIGHT: f64 = 20.0;
/// Pixels of a row of names, and of the horizontal axis's name.
const ROW: f64 = 16.0;
/// Characters of a name that has half of a column of 88 mm, and of one that has it all.
const HALF: usize = 14;
const WHOLE: usize = 33;

/// Curves, `height` pixels high, the axes called `names`.
pub fn curves(
    title: &str,
    description: &str,
    (x, y): (Axis, Axis),
    names: (&str, &str),
    height: f64,
    curves: &[PlotCurve],
) -> Drawing {
    // The unit stands with the name: behind the last figure it would meet the one before.
    let across = match x.unit {
        "" => names.0.to_owned(),
        unit => format!("{}, {unit}", names.0),
    };
    let x = Axis { unit: "", ..x };
    let is_long = curves.iter().any(|curve| curve.name.chars().count() > HALF);
    let (beside, most) = if is_long { (1, WHOLE) } else { (2, HALF) };
    let rows = curves.len().div_ceil(beside) as f64;
    let margin = Margin { left: LEFT, right: RIGHT, top: 26.0, bottom: 24.0 + ROW * (rows + 1.0) + 4.0 };
    let mut plot = Plot::new(x, y, height, margin);
    plot.axes(false);
    let mut unit = String::new();
    let _ = write!(
        unit,
        "<text x=\"{}\" y=\"-11\"><tspan class=\"ink\">{}</tspan> {}</text>",
        EDGE - LEFT,
        escape(names.1),
        plot.y.unit
    );
    plot.beneath(&unit);
    plot.text("mid ink", 0.5, height + 34.0, &across);
    for curve in curves {
        let line = curve.look.line();
        let points: Vec<Option<(f64, f64)>> = curve.line.iter().copied().map(Some).collect();
        plot.line(line, &points);
        let outline: Vec<Option<(f64, f64)>> = curve.outline.iter().copied().map(Some).collect();
        plot.line(line, &outline);
        for (x, low, high) in &curve.bars {
            plot.line(&format!("{line} whisker"), &[Some((*x, *low)), Some((*x, *high))]);
        }
        plot.dots(&format!("{line} spot large-spot"), curve.dots.iter().copied());
    }
    let dots = curves.iter().flat_map(|curve| curve.dots.iter().zip(&curve.labels));
    let dots: Vec<(f64, f64, &str)> = dots
        .map(|((x, y), label)| {
            (plot.x.scale.share(*x), (1.0 - plot.y.scale.share(*y)) * height, label.as_str())
        })
        .collect();
    for ((across, _, name), label) in dots.iter().zip(labels::beside(&dots, height)) {
        match label {
            Some(label) if label.before => plot.text_before("ink", across * 100.0, label.down, name),
            Some(label) => plot.text_behind("ink", across * 100.0, label.down, name),
            None => {}
        }
    }
    for (n, curve) in curves.iter().enumerate() {
        let x = if n % beside == 0 { "0" } else { "50" };
        let y = height + 34.0 + ROW * ((n / beside) as f64 + 1.0);
        let mut key = String::new();
        let _ = write!(
            key,
            "<svg x=\"{x}%\" y=\"{}\" overflow=\"visible\"><path class=\"mark {} sample\" d=\"M0 -4H20\"/>\
             <text class=\"ink\" x=\"26\">{}</text></svg>",
            short(y),
            curve.look.line(),
            escape(&cut(&curve.name, most))
        );
        plot.beneath(&key);
    }
    plot.finished(title, description)
}
