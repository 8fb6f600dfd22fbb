//! What drawings of a sweep show: a figure over a parameter, one figure against another, a distribution.

use crate::axis::{number_of, one_unit};
use crate::row::{BadRows, SweepRun, SweepTable};
use crate::summary::{Column, IntervalMethod, SweepQuery, figure_names, grouped, row, value_of};
use std::collections::BTreeSet;

/// What is to be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlotWanted {
    /// How a figure is distributed over the runs.
    Distribution(String),
    /// A figure (the second) over a parameter, a policy or a load, or against another figure (the first).
    Over(String, String),
}

/// The horizontal axis.
#[derive(Clone, Debug, PartialEq)]
pub enum PlotX {
    /// A parameter of quantities, with its basic unit.
    Parameter {
        /// Its path.
        name: String,
        /// `s`, `bit/s`, `bytes`, or nothing.
        unit: &'static str,
    },
    /// A parameter of words, a policy, a load: a point's `x` is the number of its value.
    Words {
        /// Its path.
        name: String,
        /// Its values, in the order of the sweep.
        values: Vec<String>,
    },
    /// A figure.
    Figure {
        /// Its name.
        name: String,
        /// Its unit.
        unit: String,
    },
}

/// A point of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlotPoint {
    /// Across.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// Over a parameter, where the mean lies with 95 % confidence; `None` as in a summary's row.
    pub interval: Option<(f64, f64)>,
}

/// What is compared in a plot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlotSeries {
    /// What tells it from the others: `fq_codel, 20ms`.
    pub name: String,
    /// Over a parameter, the mean at each of its values; of a distribution, each value and the share of runs
    /// with at most that; of figures, the mean of both.
    pub points: Vec<PlotPoint>,
    /// Of one figure against another: the ellipse of one standard deviation of both (in which 39 % of runs
    /// lie if they are normally distributed); empty of fewer than three runs, and where one does not vary.
    pub outline: Vec<(f64, f64)>,
}

/// What a drawing of a sweep shows.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepPlot {
    /// The horizontal axis.
    pub x: PlotX,
    /// The figure of the vertical axis, and its unit; of a distribution none: shares of the runs.
    pub y: Option<(String, String)>,
    /// What is compared.
    pub series: Vec<PlotSeries>,
    /// Runs that have no value for a figure.
    pub without: usize,
}

/// Corners of an ellipse.
const CORNERS: usize = 60;

impl SweepTable {
    /// What a drawing shows. A series for each combination of the query's columns; without those, of all that
    /// differ.
    ///
    /// # Errors
    /// A column or figure that the table does not have, or a condition that leaves nothing.
    pub fn plot(&self, query: &SweepQuery, wanted: &PlotWanted) -> Result<SweepPlot, BadRows> {
        let runs = self.chosen(query)?;
        let known: BTreeSet<&str> = figure_names(runs.iter().copied()).into_iter().collect();
        let need = |name: &str| match known.contains(name) {
            true => Ok(()),
            false => {
                let all: Vec<&str> = known.iter().copied().collect();
                Err(BadRows(format!("no run has the figure {name}: there are {}", all.join(", "))))
            }
        };
        let (across, figure) = match wanted {
            PlotWanted::Distribution(figure) => (None, figure),
            PlotWanted::Over(across, figure) => (Some(across.as_str()), figure),
        };
        need(figure)?;
        let against = across.filter(|name| known.contains(name));
        let column = match across.filter(|_| against.is_none()) {
            Some(name) => Some(self.column(name).map_err(|wrong| {
                BadRows(format!("{}; figures are {}", wrong.0, Vec::from_iter(known.clone()).join(", ")))
            })?),
            None => None,
        };
        let columns: Vec<Column> = self
            .columns_of(query, &runs)?
            .into_iter()
            .filter(|one| column.as_ref().is_none_or(|column| column.name != one.name))
            .collect();
        let unit = |name: &str| unit_of(&runs, name);
        let without = runs.iter().filter(|run| {
            [Some(figure.as_str()), against]
                .into_iter()
                .flatten()
                .any(|name| run.figures.iter().any(|one| one.name == name && one.value.is_none()))
        });
        let without = without.count();
        let x = match (&column, against) {
            (Some(column), _) => axis_of(column, &runs),
            (None, Some(name)) => PlotX::Figure { name: name.to_owned(), unit: unit(name) },
            (None, None) => PlotX::Figure { name: figure.clone(), unit: unit(figure) },
        };
        let y = across.map(|_| (figure.clone(), unit(figure)));
        let groups = grouped(runs, &columns);
        let series = groups.into_iter().map(|(keys, runs)| {
            let (points, outline) = match (&column, against) {
                (Some(column), _) => (over(column, &x, &runs, (figure, query.intervals))?, Vec::new()),
                (None, Some(name)) => ellipse(&runs, name, figure),
                (None, None) => (distribution(&runs, figure), Vec::new()),
            };
            Ok(PlotSeries { name: keys.join(", "), points, outline })
        });
        let series = series.collect::<Result<Vec<_>, BadRows>>()?;
        let series = series.into_iter().filter(|one| !one.points.is_empty()).collect();
        Ok(SweepPlot { x, y, series, without })
    }
}

/// The unit of a figure, of a run that has a value for it.
fn unit_of(runs: &[&SweepRun], name: &str) -> String {
    let mut figures = runs.iter().flat_map(|run| &run.figures);
    let unit = figures.find(|one| one.name == name && one.value.is_some()).map(|one| one.unit.clone());
    unit.unwrap_or_default()
}

/// A column as a horizontal axis.
fn axis_of(column: &Column, runs: &[&SweepRun]) -> PlotX {
    let mut values: Vec<String> = Vec::new();
    for value in runs.iter().map(|run| column.of(run)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let name = column.name.clone();
    match one_unit(values.iter().map(String::as_str)) {
        Some(unit) if column.name != "policy" && column.name != "load" => PlotX::Parameter { name, unit },
        _ => PlotX::Words { name, values },
    }
}

/// The mean at each value of a column, from left to right.
fn over(
    column: &Column,
    x: &PlotX,
    runs: &[&SweepRun],
    (figure, intervals): (&str, IntervalMethod),
) -> Result<Vec<PlotPoint>, BadRows> {
    let place = |value: &str| match x {
        PlotX::Words { values, .. } => values.iter().position(|one| one == value).map(|at| at as f64),
        _ => number_of(value).map(|(number, _)| number),
    };
    let mut points = Vec::new();
    for (keys, runs) in grouped(runs.to_vec(), std::slice::from_ref(column)) {
        let Some(x) = keys.first().and_then(|value| place(value)) else { continue };
        let summary = row(&keys, &runs, figure, (intervals, None, None))?;
        points.extend(summary.and_then(|row| Some(PlotPoint { x, y: row.mean?, interval: row.interval })));
    }
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    Ok(points)
}

/// Each value, and the share of all runs with at most that. Runs without a value are never reached.
fn distribution(runs: &[&SweepRun], figure: &str) -> Vec<PlotPoint> {
    let count = runs.iter().filter(|run| run.figures.iter().any(|one| one.name == figure)).count();
    let mut values: Vec<f64> = runs.iter().filter_map(|run| value_of(run, figure)).collect();
    values.sort_by(f64::total_cmp);
    let point = |(n, x): (usize, f64)| PlotPoint { x, y: (n + 1) as f64 / count as f64, interval: None };
    values.into_iter().enumerate().map(point).collect()
}

/// The mean of two figures, and the ellipse around it.
fn ellipse(runs: &[&SweepRun], across: &str, figure: &str) -> (Vec<PlotPoint>, Vec<(f64, f64)>) {
    let pair = |run: &&SweepRun| Some((value_of(run, across)?, value_of(run, figure)?));
    let pairs: Vec<(f64, f64)> = runs.iter().filter_map(pair).collect();
    if pairs.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let count = pairs.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(|pair| of(pair) / count).sum::<f64>();
    let (x, y) = (mean(&|pair| pair.0), mean(&|pair| pair.1));
    let point = vec![PlotPoint { x, y, interval: None }];
    let over = count - 1.0;
    let spread = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / over;
    let (xx, xy, yy) = (
        spread(&|pair| (pair.0 - x) * (pair.0 - x)),
        spread(&|pair| (pair.0 - x) * (pair.1 - y)),
        spread(&|pair| (pair.1 - y) * (pair.1 - y)),
    );
    if pairs.len() < 3 || xx <= 0.0 || yy <= 0.0 {
        return (point, Vec::new());
    }
    // The covariance as a product of a triangle with itself: what it makes of a circle is the ellipse.
    let a = libm::sqrt(xx);
    let b = xy / a;
    let c = libm::sqrt((yy - b * b).max(0.0));
    let corner = |n: usize| {
        let angle = n as f64 / CORNERS as f64 * core::f64::consts::TAU;
        let (sin, cos) = libm::sincos(angle);
        (x + a * cos, y + b * cos + c * sin)
    };
    (point, (0..=CORNERS).map(corner).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{FigureRow, SweepHead};

    /// Two policies, three round trips, three repeats.
    fn table() -> SweepTable {
        let head = SweepHead { id: "x".into(), runs: 18, axes: vec!["home.rtt".into()] };
        let mut table = SweepTable { head, ..SweepTable::default() };
        for run in 0..18_u64 {
            let (case, repeat) = ((run / 6) as u32, (run % 3) as u32);
            let policy = if run / 3 % 2 == 0 { "none" } else { "fair" };
            let delay = f64::from(case + 1) * 0.1 + f64::from(repeat) * 0.01;
            let figure = |name: &str, value, unit: &str| FigureRow {
                name: name.into(),
                value: Some(value),
                unit: unit.into(),
            };
            let rate = 1e6 + f64::from(repeat * repeat) * 1e4;
            let figures = vec![figure("ping.p95", delay, "s"), figure("upload.rate", rate, "bit/s")];
            let values = vec![["160ms", "10ms", "40ms"][case as usize].to_owned()];
            let seed = u64::from(repeat);
            let run = SweepRun {
                run,
                case,
                policy: policy.into(),
                repeat,
                seed,
                values,
                figures,
                ..SweepRun::default()
            };
            table.runs.insert(run.run, run);
        }
        table
    }

    fn plot(wanted: &PlotWanted, by: &[&str]) -> Result<SweepPlot, BadRows> {
        let by = by.iter().map(|name| (*name).to_owned()).collect();
        table().plot(&SweepQuery { by, ..SweepQuery::default() }, wanted)
    }

    fn of(across: &str, figure: &str) -> PlotWanted {
        PlotWanted::Over(across.into(), figure.into())
    }

    #[test]
    fn a_figure_over_a_parameter_goes_from_left_to_right() {
        let plot = plot(&of("rtt", "ping.p95"), &[]).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(plot.x, PlotX::Parameter { name: "home.rtt".into(), unit: "s" });
        assert_eq!(plot.y, Some(("ping.p95".into(), "s".into())));
        let names: Vec<&str> = plot.series.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["none", "fair"]);
        let points: Vec<(f64, f64)> =
            plot.series[0].points.iter().map(|one| (one.x, (one.y * 1e6).round() / 1e6)).collect();
        assert_eq!(points, [(0.01, 0.21), (0.04, 0.31), (0.16, 0.11)]);
        assert!(plot.series[0].points[0].interval.is_some_and(|(low, high)| low < 0.21 && high > 0.21));
    }

    #[test]
    fn words_have_places() {
        let plot = plot(&of("policy", "ping.p95"), &["rtt"]).unwrap_or_else(|wrong| panic!("{wrong}"));
        let values = vec!["none".to_owned(), "fair".to_owned()];
        assert_eq!(plot.x, PlotX::Words { name: "policy".into(), values });
        assert_eq!((plot.series.len(), plot.series[0].points[1].x), (3, 1.0));
    }

    #[test]
    fn distributions_end_at_all_runs() {
        let wanted = PlotWanted::Distribution("ping.p95".into());
        let plot = plot(&wanted, &["policy"]).unwrap_or_else(|wrong| panic!("{wrong}"));
        let shares: Vec<f64> = plot.series[0].points.iter().map(|one| (one.y * 9.0).round()).collect();
        assert_eq!(shares, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
        let mut table = table();
        table.runs.values_mut().filter(|run| run.repeat == 2).for_each(|run| run.figures[0].value = None);
        let plot = table.plot(&SweepQuery::default(), &wanted).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!((plot.without, plot.series[0].points.len()), (6, 2));
        assert!(plot.series[0].points.last().is_some_and(|last| (last.y - 2.0 / 3.0).abs() < 1e-9));
    }

    #[test]
    fn an_ellipse_has_the_covariance() {
        let plot = plot(&of("ping.p95", "upload.rate"), &[]).unwrap_or_else(|wrong| panic!("{wrong}"));
        let first = &plot.series[0];
        assert_eq!((plot.series.len(), first.points.len(), first.outline.len()), (6, 1, CORNERS + 1));
        // The farthest to the right is a standard deviation away.
        let right = first.outline.iter().map(|corner| corner.0).fold(0.0, f64::max);
        assert!((right - first.points[0].x - 0.01).abs() < 1e-9, "{right}");
        let top = first.outline.iter().map(|corner| corner.1).fold(0.0, f64::max);
        // Of 0, 10 and 40 kbit/s above the least.
        assert!((top - first.points[0].y - 20_817.0).abs() < 30.0, "{top}");
    }

    #[test]
    fn what_is_not_there_is_said() {
        let of = |wanted: &PlotWanted| plot(wanted, &[]).map(|_| ()).unwrap_err().0;
        assert!(
            of(&PlotWanted::Distribution("x".into())).contains("no run has the figure x: there are ping.p95")
        );
        let across = of(&PlotWanted::Over("x".into(), "ping.p95".into()));
        assert!(
            across.contains("no column is called x") && across.contains("figures are ping.p95"),
            "{across}"
        );
    }
}
