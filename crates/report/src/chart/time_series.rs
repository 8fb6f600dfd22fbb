//! Several time series over the same time: lines or dots, losses, and events.

pub use tidegate_analysis::experiment::Moment;

use super::axis::Axis;
use super::drawing::{Body, Drawing, Margin, cut, escape, short};
use super::look::Look;
use super::plot::{NOT_YET, Plot, Reference};
use std::fmt::Write as _;

/// One time series.
#[derive(Clone, Debug)]
pub struct ChartSeries {
    /// Its name, written at its end.
    pub name: String,
    /// How it looks.
    pub look: Look,
    /// Time and value in order of time; no value: lost, which is marked at the top.
    pub points: Vec<(f64, Option<f64>)>,
}

/// How time series are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeriesStyle {
    /// A line from point to point.
    #[default]
    Lines,
    /// A dot for each point.
    Dots,
    /// Each value holds until the next: a line in steps.
    Stairs,
}

/// What is drawn.
#[derive(Clone, Debug, Default)]
pub struct TimeSeriesChart {
    /// The things compared.
    pub series: Vec<ChartSeries>,
    /// The style of all series.
    pub drawn: SeriesStyle,
    /// Levels to compare with.
    pub references: Vec<Reference>,
    /// When measuring began; what comes before is shaded.
    pub measured: f64,
}

/// Characters of a name at the right end.
const NAME: usize = 14;
/// Pixels for names.
const NAMES: f64 = 126.0;
/// Pixels for a row of losses.
const ROW: f64 = 7.0;
/// Pixels for all of them at least: `lost` beside them stands above the axis's highest figure.
const HEAD: f64 = 20.0;

/// Courses over time, `height` pixels high.
pub fn time_series(
    title: &str,
    description: &str,
    (x, y): (Axis, Axis),
    height: f64,
    what: &TimeSeriesChart,
) -> Drawing {
    let margin = Margin { left: 52.0, right: NAMES, top: 26.0, bottom: 24.0 };
    let losing: Vec<&ChartSeries> =
        what.series.iter().filter(|course| course.points.iter().any(|(_, value)| value.is_none())).collect();
    let head = if losing.is_empty() { 0.0 } else { (ROW * losing.len() as f64 + 4.0).max(HEAD) };
    let mut plot = Plot::new(x, y, height + head, margin);
    plot.head = head;
    plot.warm_up(what.measured, true);
    plot.axes(false);
    plot.unit();
    let mut names = Vec::new();
    for course in &what.series {
        draw(&mut plot, course, what.drawn);
        if let Some(value) = late(&course.points) {
            names.push((cut(&course.name, NAME), course.look.line(), plot.down(value)));
        }
    }
    for (row, course) in losing.iter().enumerate() {
        let times = course.points.iter().filter(|(_, value)| value.is_none()).map(|(at, _)| *at);
        plot.losses(&format!("{} rug", course.look.line()), ROW * row as f64 + 1.0, times);
    }
    if !losing.is_empty() {
        plot.aside(ROW * losing.len() as f64 / 2.0 + 5.0, "lost");
    }
    plot.levels(&what.references);
    // What never had a value has its name beside its losses.
    for (row, course) in losing.iter().enumerate().filter(|(_, course)| late(&course.points).is_none()) {
        names.push((cut(&course.name, NAME), course.look.line(), ROW * row as f64 + 4.0));
    }
    plot.keys(&names, what.drawn == SeriesStyle::Dots);
    plot.finished(title, description)
}

fn draw(plot: &mut Plot, course: &ChartSeries, drawn: SeriesStyle) {
    let valued = course.points.iter().map(|&(x, y)| y.map(|y| (x, y)));
    match drawn {
        SeriesStyle::Dots => plot.dots(&format!("{} spot", course.look.line()), valued.flatten()),
        SeriesStyle::Lines => plot.line(course.look.line(), &valued.collect::<Vec<_>>()),
        SeriesStyle::Stairs => {
            let points: Vec<(f64, f64)> = valued.flatten().collect();
            let corners = points.windows(2).flat_map(|pair| [Some(pair[0]), Some((pair[1].0, pair[0].1))]);
            let line: Vec<_> = corners.chain([points.last().copied()]).collect();
            plot.line(course.look.line(), &line);
        }
    }
}

/// The median of a series' last tenth: where its name belongs.
fn late(points: &[(f64, Option<f64>)]) -> Option<f64> {
    let values: Vec<f64> = points.iter().filter_map(|(_, value)| *value).collect();
    let mut last = values[values.len() - values.len().div_ceil(10)..].to_vec();
    last.sort_by(f64::total_cmp);
    last.get(last.len() / 2).copied()
}

impl Drawing {
    /// Marks events in the drawing: a line from top to bottom and a number above it. Only plots over time
    /// have events.
    pub fn with_moments(mut self, x: &Axis, moments: &[Moment]) -> Drawing {
        let Body::Plot { height, over, .. } = &mut self.body else { return self };
        // On a telephone's width the words reach to the middle.
        if moments.iter().any(|moment| x.scale.share(moment.at) < 0.6) {
            *over = over.replace(NOT_YET, "");
        }
        for moment in moments {
            let across = short(x.scale.share(moment.at) * 100.0);
            let _ = write!(
                over,
                "<line class=\"moment\" x1=\"{across}%\" x2=\"{across}%\" y1=\"-4\" y2=\"{height}\"/>"
            );
            let number = escape(&moment.number);
            let wide = 10.0 + 6.0 * moment.number.chars().count() as f64;
            let _ = write!(
                over,
                "<svg x=\"{across}%\" y=\"-11\" overflow=\"visible\"><rect class=\"number ring\" x=\"{}\" \
                y=\"-8\" width=\"{}\" height=\"16\" rx=\"8\"/><text class=\"number mid\" \
                dy=\".35em\">{number}</text></svg>",
                short(-wide / 2.0),
                short(wide)
            );
        }
        self
    }
}
