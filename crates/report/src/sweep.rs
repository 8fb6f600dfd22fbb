//! Drawings of sweeps.

use crate::chart::{Axis, Drawing, Group, LOOKS, Look, Mark, PlotCurve, Scale, WIDE_RANGE, cases, curves};
use std::fmt;
use tidegate_analysis::experiment::{is_share, written};
use tidegate_measure::numbers::USUAL;
use tidegate_sweep::{PlotPoint, PlotX, SweepPlot};

/// Why a sweep has no drawing, with a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPlot(pub String);

impl fmt::Display for BadPlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadPlot {}

/// Pixels of a plot's height.
const HEIGHT: f64 = 190.0;
/// Marks on an axis, and on a logarithmic one, whose marks lie unevenly.
const TICKS: usize = 5;
const LOG_TICKS: usize = 8;
/// The share of the width that bars may take: figures come behind them.
const ROOM: f64 = 0.7;

/// What a plot of a sweep shows as a drawing.
///
/// # Errors
/// More things are compared than can be distinguished, or there is nothing to draw.
pub fn sweep_drawing(plot: &SweepPlot) -> Result<Drawing, BadPlot> {
    let count = plot.series.len();
    if count == 0 {
        return Err(BadPlot("no run has a value for this figure".into()));
    }
    if count > LOOKS {
        return Err(BadPlot(format!(
            "these are {count} things to compare in one drawing, and {LOOKS} are the most: choose with --where, \
            or name with --by what is to be compared"
        )));
    }
    match (&plot.x, &plot.y) {
        (PlotX::Words { name, values }, Some(y)) => words(plot, (name, values), y),
        (PlotX::Parameter { name, unit }, Some(y)) => {
            let title = format!("{} over {name}", y.0);
            Ok(quantities(plot, (name, unit), (&y.0, &y.1), &title))
        }
        (PlotX::Figure { name, unit }, Some(y)) => {
            let title = format!("{} against {name}", y.0);
            Ok(quantities(plot, (name, unit), (&y.0, &y.1), &title))
        }
        (PlotX::Figure { name, unit }, None) => Ok(distribution(plot, (name, unit))),
        (PlotX::Words { name, .. } | PlotX::Parameter { name, .. }, None) => {
            Err(BadPlot(format!("{name} is no figure, and has no distribution")))
        }
    }
}

/// Points of all series.
fn points(plot: &SweepPlot) -> impl Iterator<Item = &PlotPoint> {
    plot.series.iter().flat_map(|series| &series.points)
}

/// Curves, or dots with ellipses.
fn quantities(plot: &SweepPlot, x: (&str, &str), y: (&str, &str), title: &str) -> Drawing {
    let corners = || plot.series.iter().flat_map(|series| &series.outline);
    let across = axis(x, points(plot).map(|point| point.x).chain(corners().map(|corner| corner.0)));
    let ends = |point: &PlotPoint| {
        let (low, high) = point.interval.unwrap_or((point.y, point.y));
        [point.y, low, high]
    };
    let up = axis(y, points(plot).flat_map(ends).chain(corners().map(|corner| corner.1)));
    let is_curve = matches!(plot.x, PlotX::Parameter { .. });
    let shown = plot.series.iter().enumerate().map(|(n, series)| {
        let place = |point: &PlotPoint| (point.x * across.1, point.y * up.1);
        let dots: Vec<(f64, f64)> = series.points.iter().map(place).collect();
        let bars = series.points.iter().filter_map(|point| {
            let (low, high) = point.interval?;
            Some((point.x * across.1, low * up.1, high * up.1))
        });
        PlotCurve {
            name: named(&series.name),
            look: Look(n),
            line: if is_curve { dots.clone() } else { Vec::new() },
            dots,
            labels: Vec::new(),
            bars: if is_curve { bars.collect() } else { Vec::new() },
            outline: series.outline.iter().map(|(x, y)| (x * across.1, y * up.1)).collect(),
        }
    });
    let shown: Vec<PlotCurve> = shown.collect();
    let description = format!("{title}: {}", names(plot));
    curves(title, &description, (across.0, up.0), (x.0, y.0), HEIGHT, &shown)
}

/// The share of runs with at most a value.
fn distribution(plot: &SweepPlot, x: (&str, &str)) -> Drawing {
    let across = axis(x, points(plot).map(|point| point.x));
    let curve = |(n, series): (usize, &tidegate_sweep::PlotSeries)| {
        let mut line = Vec::new();
        let mut before = 0.0;
        for point in &series.points {
            line.extend([(point.x * across.1, before), (point.x * across.1, point.y)]);
            before = point.y;
        }
        line.push((across.0.scale.ends().1, before));
        let (dots, bars, outline) = (Vec::new(), Vec::new(), Vec::new());
        PlotCurve { name: named(&series.name), look: Look(n), line, dots, labels: Vec::new(), bars, outline }
    };
    let shown: Vec<PlotCurve> = plot.series.iter().enumerate().map(curve).collect();
    let title = format!("Distribution of {}", x.0);
    let description = format!("{title}: {}", names(plot));
    curves(&title, &description, (across.0.clone(), Axis::shares()), (x.0, "runs"), HEIGHT, &shown)
}

/// A row for each word of each series.
fn words(
    plot: &SweepPlot,
    (name, values): (&str, &[String]),
    y: &(String, String),
) -> Result<Drawing, BadPlot> {
    if values.len() > LOOKS {
        return Err(BadPlot(format!(
            "{name} has {} values, and {LOOKS} are the most of one drawing: choose with --where",
            values.len()
        )));
    }
    let ends = |point: &PlotPoint| point.interval.map_or(point.y, |(_, high)| high) / ROOM;
    let (axis, times) = axis((&y.0, &y.1), points(plot).map(ends));
    let groups = plot.series.iter().map(|series| {
        let mark = |point: &PlotPoint| {
            let place = point.x as usize;
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            let bar = (low * times, high * times);
            let text = written(&y.0, point.y, &y.1, USUAL);
            let name = values.get(place).cloned().unwrap_or_default();
            Mark { name, look: Look(place), bar, dot: point.y * times, whisker: bar, text }
        };
        Group { title: named(&series.name), cases: series.points.iter().map(mark).collect() }
    });
    let groups: Vec<Group> = groups.collect();
    let title = format!("{} by {name}", y.0);
    Ok(cases(&title, &format!("{title}: {}", names(plot)), axis, &groups))
}

/// The name of a series; of the only one, which needs none, that it is all runs.
fn named(name: &str) -> String {
    if name.is_empty() { "all runs".into() } else { name.to_owned() }
}

fn names(plot: &SweepPlot) -> String {
    plot.series.iter().map(|series| named(&series.name)).collect::<Vec<_>>().join("; ")
}

/// An axis that holds these values, and what to multiply values by to place them on it. It holds 0, or is
/// logarithmic where the largest is many times the smallest.
fn axis((name, unit): (&str, &str), values: impl Iterator<Item = f64>) -> (Axis, f64) {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values.filter(|value| value.is_finite()) {
        (low, high) = (low.min(value), high.max(value));
    }
    let is_log = low > 0.0 && low.is_finite() && high / low >= WIDE_RANGE as f64;
    let times = if unit == "s" { 1e9 } else { 1.0 };
    let (low, high) = (low * times, high * times);
    let most = high.max(-low).max(0.0);
    let linear = match unit {
        "s" => Axis::spans(most as u64, TICKS),
        "bit/s" => Axis::rates(most, TICKS),
        "bytes" => Axis::sizes(most as u64, TICKS),
        _ if is_share(name) => Axis::percent(most, TICKS),
        _ => Axis::numbers(most, TICKS),
    };
    let linear = match low < 0.0 {
        true => {
            let scale = Scale::even(low / linear.per, high.max(0.0) / linear.per, TICKS).times(linear.per);
            Axis { scale, ..linear }
        }
        false => linear,
    };
    match is_log {
        true if unit == "s" => (Axis { ticks: LOG_TICKS, ..Axis::log_spans(low as u64, high as u64) }, times),
        true => (Axis { scale: Scale::log(low, high), ticks: LOG_TICKS, ..linear }, times),
        false => (linear, times),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Theme, file};
    use tidegate_sweep::PlotSeries;

    fn series(name: &str, points: &[(f64, f64)]) -> PlotSeries {
        let point = |(x, y): &(f64, f64)| PlotPoint { x: *x, y: *y, interval: Some((y * 0.9, y * 1.1)) };
        PlotSeries { name: name.into(), points: points.iter().map(point).collect(), outline: Vec::new() }
    }

    #[test]
    fn figures_over_parameters_have_names_units_and_intervals() {
        let plot = SweepPlot {
            x: PlotX::Parameter { name: "home.rtt".into(), unit: "s" },
            y: Some(("ping.p95".into(), "s".into())),
            series: vec![series("<none>", &[(0.01, 0.2), (0.04, 0.3)]), series("fair", &[(0.01, 0.02)])],
            without: 0,
        };
        let text = file(&sweep_drawing(&plot).unwrap_or_else(|wrong| panic!("{wrong}")), 330.0, Theme::Light);
        for expected in ["ping.p95 over home.rtt", "&lt;none&gt;", "fair", ">home.rtt, ms<", ">40<"] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        assert_eq!(text.matches("whisker\" d=").count(), 3);
        let words = SweepPlot {
            x: PlotX::Words { name: "policy".into(), values: vec!["none".into(), "fair".into()] },
            series: vec![series("", &[(0.0, 0.3), (1.0, 0.02)])],
            ..plot.clone()
        };
        let text =
            file(&sweep_drawing(&words).unwrap_or_else(|wrong| panic!("{wrong}")), 330.0, Theme::Light);
        assert!(text.contains("all runs") && text.contains("300 ms"), "{text}");
        let many = SweepPlot { series: vec![series("x", &[(0.01, 0.2)]); 7], ..plot };
        assert!(sweep_drawing(&many).is_err_and(|wrong| wrong.0.contains("7 things to compare")));
    }

    #[test]
    fn axes_suit_their_values() {
        let shown = |unit: &str, name: &str, values: &[f64]| {
            let (axis, _) = axis((name, unit), values.iter().copied());
            axis.marked_across().into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown("s", "a", &[0.01, 0.04]), "0 10 20 30 40 ms");
        assert_eq!(shown("bit/s", "a", &[1e6, 1e8]), "1 2 5 10 20 50 100 Mbit/s");
        assert_eq!(shown("", "ping.loss", &[0.0, 0.04]), "0 1 2 3 4 %");
        assert_eq!(shown("", "count", &[1.0, 8.0]), "0 2 4 6 8");
        assert_eq!(shown("s", "a", &[-0.02, 0.01]), "−20 −10 0 10 ms");
        assert_eq!(shown("bit/s", "a", &[1e3, 1e9]), "0.001 0.01 0.1 1 10 100 1000 Mbit/s");
        assert_eq!(shown("", "count", &[1e-6, 10.0]), "0.000001 0.00001 0.0001 0.001 0.01 0.1 1 10");
        assert_eq!(shown("bytes", "a", &[0.0]), "0 0.2 0.4 0.6 0.8 1 bytes");
    }
}
