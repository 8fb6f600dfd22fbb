//! Lines over time: without and with a policy.

use super::axis::Axis;
use super::drawing::{Drawing, Margin};
use super::plot::Plot;

/// A line, with its name at its end.
#[derive(Clone, Debug)]
pub struct ChartLine {
    /// What the line is called, written at its end.
    pub name: String,
    /// How it looks, in the words of the style sheet: `with`, `without`, `s1`, ….
    pub class: &'static str,
    /// The look of the area below it, if that is filled.
    pub fill: Option<&'static str>,
    /// Time and value in order of time; no value: it failed, and is marked at the top.
    pub points: Vec<(f64, Option<f64>)>,
}

/// Lines over time, `height` pixels high; what comes before `measured` is shaded.
pub fn lines(
    title: &str,
    description: &str,
    (x, y): (Axis, Axis),
    height: f64,
    measured: f64,
    lines: &[ChartLine],
) -> Drawing {
    let named = lines.iter().any(|line| !line.name.is_empty());
    let margin = Margin { left: 48.0, right: if named { 62.0 } else { 22.0 }, top: 26.0, bottom: 24.0 };
    let mut plot = Plot::new(x, y, height, margin);
    plot.warm_up(measured, true);
    plot.axes(false);
    plot.unit();
    let mut names = Vec::new();
    for line in lines {
        let points: Vec<Option<(f64, f64)>> = line.points.iter().map(|&(x, y)| y.map(|y| (x, y))).collect();
        if let Some(fill) = line.fill {
            let above: Vec<(f64, f64)> = points.iter().copied().flatten().collect();
            let low = plot.y.scale.ends().0;
            let below: Vec<(f64, f64)> =
                [above.first(), above.last()].into_iter().flatten().map(|p| (p.0, low)).collect();
            plot.area(fill, &above, &below);
        }
        // A filled line needs no dashes to be distinguished.
        let plain = if line.fill.is_some() { " plain" } else { "" };
        plot.line(&format!("{}{plain}", line.class), &points);
        plot.hanging(line.points.iter().filter(|(_, value)| value.is_none()).map(|(x, _)| *x), 7.0);
        if let Some(value) = late(&line.points) {
            names.push((line.name.clone(), line.class, plot.down(value)));
        }
    }
    plot.names(&names);
    plot.finished(title, description)
}

/// The median of a line's last tenth: where its name belongs.
fn late(points: &[(f64, Option<f64>)]) -> Option<f64> {
    let values: Vec<f64> = points.iter().filter_map(|(_, value)| *value).collect();
    let mut last = values[values.len() - values.len().div_ceil(10)..].to_vec();
    last.sort_by(f64::total_cmp);
    last.get(last.len() / 2).copied()
}
