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
    // These two have a colour that text can be read in; before other names is a piece of their line.
    let with_samples = lines.iter().any(|line| !matches!(line.class, "with" | "without"));
    let right = match (named, with_samples) {
        (false, _) => 22.0,
        (true, false) => 62.0,
        (true, true) => 77.0,
    };
    let margin = Margin { left: 48.0, right, top: 26.0, bottom: 24.0 };
    let mut plot = Plot::new(x, y, height, margin);
    plot.warm_up(measured, true);
    plot.axes(false);
    plot.unit();
    let mut names = Vec::new();
    // A filled line needs no dashes to be distinguished.
    let class =
        |line: &ChartLine| format!("{}{}", line.class, if line.fill.is_some() { " plain" } else { "" });
    let classes: Vec<String> = lines.iter().map(class).collect();
    for (line, class) in lines.iter().zip(&classes) {
        let points: Vec<Option<(f64, f64)>> = line.points.iter().map(|&(x, y)| y.map(|y| (x, y))).collect();
        if let Some(fill) = line.fill {
            let above: Vec<(f64, f64)> = points.iter().copied().flatten().collect();
            let low = plot.y.scale.ends().0;
            let below: Vec<(f64, f64)> =
                [above.first(), above.last()].into_iter().flatten().map(|p| (p.0, low)).collect();
            plot.area(fill, &above, &below);
        }
        plot.line(class, &points);
        plot.hanging(line.points.iter().filter(|(_, value)| value.is_none()).map(|(x, _)| *x), 7.0);
        if let Some(value) = late(&line.points) {
            let class = if with_samples { class } else { line.class };
            names.push((line.name.clone(), class, plot.down(value)));
        }
    }
    if with_samples {
        plot.keys(&names, false)
    } else {
        plot.names(&names)
    }
    plot.finished(title, description)
}

/// The median of a line's last tenth: where its name belongs.
fn late(points: &[(f64, Option<f64>)]) -> Option<f64> {
    let values: Vec<f64> = points.iter().filter_map(|(_, value)| *value).collect();
    let mut last = values[values.len() - values.len().div_ceil(10)..].to_vec();
    last.sort_by(f64::total_cmp);
    last.get(last.len() / 2).copied()
}
