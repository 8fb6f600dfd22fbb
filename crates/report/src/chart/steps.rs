//! One time series in steps, small: a class's rate, its queue, its tokens.

use super::axis::Axis;
use super::drawing::{Drawing, Margin};
use super::plot::{Plot, Reference};

/// Columns of so small a plot.
const COLUMNS: usize = 100;

/// What is drawn.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    /// What is shown, above the plot; the unit follows.
    pub heading: String,
    /// The colour, from 1.
    pub colour: usize,
    /// Courses: the first is filled, the second dashed.
    pub courses: Vec<Vec<f64>>,
    /// Levels to compare with; the highest named at the left, others at the right.
    pub references: Vec<Reference>,
    /// Steps with losses.
    pub losses: Vec<usize>,
    /// Only lines, nothing filled.
    pub open: bool,
    /// Without the horizontal axis's figures.
    pub bare: bool,
}

/// Courses in steps of `step` of the horizontal unit, `height` pixels high.
pub fn steps(
    title: &str,
    description: &str,
    (x, y): (Axis, Axis),
    height: f64,
    measured: f64,
    step: f64,
    what: &Steps,
) -> Drawing {
    let bottom = if what.bare { 6.0 } else { 22.0 };
    let mut plot = Plot::new(x, y, height, Margin { left: 52.0, right: 16.0, top: 30.0, bottom });
    plot.columns = COLUMNS;
    plot.warm_up(measured, false);
    plot.axes(what.bare);
    plot.heading(&what.heading);
    for (n, course) in what.courses.iter().enumerate() {
        let stairs = staircase(course, step);
        if n == 0 && !what.open {
            let floor: Vec<(f64, f64)> =
                [stairs.first(), stairs.last()].into_iter().flatten().map(|p| (p.0, 0.0)).collect();
            plot.area(&format!("mark thin s{0} f{0} light", what.colour), &stairs, &floor);
            continue;
        }
        let line: Vec<Option<(f64, f64)>> = stairs.into_iter().map(Some).collect();
        let dashed = if n == 0 { "" } else { " dashed" };
        plot.line(&format!("thin s{}{dashed}", what.colour), &line);
    }
    plot.hanging(what.losses.iter().map(|n| *n as f64 * step), 7.0);
    plot.levels(&what.references);
    plot.finished(title, description)
}

/// The corners of a series that keeps each value for a step.
pub(super) fn staircase(values: &[f64], step: f64) -> Vec<(f64, f64)> {
    let corner = |(n, &value): (usize, &f64)| [(n as f64 * step, value), ((n + 1) as f64 * step, value)];
    values.iter().enumerate().flat_map(corner).collect()
}
