//! What a search says on a terminal, and its drawing.

use super::options::Options;
use std::cmp::Ordering;
use std::fmt::Write as _;
use tidegate_analysis::experiment::written;
use tidegate_measure::numbers::USUAL;
use tidegate_report::{Align, Table};
use tidegate_scenario::shell::{quoted, quoted_input};
use tidegate_sessions::tune::{CheckedWith, TuneCheck, TuneResult, TunedPoint};
use tidegate_sweep::{PlotPoint, PlotSeries, PlotX, SweepPlot, TuneBound, number_of};

/// The figures of a search: of the objective, and of each bound.
pub(super) struct Shown<'s> {
    pub(super) options: &'s Options,
    pub(super) result: &'s TuneResult,
}

impl Shown<'_> {
    fn objective(&self, point: &TunedPoint) -> String {
        let figure = &self.options.objective.figure;
        point.objective.map_or_else(|| "–".into(), |value| written(figure, value, &self.result.unit, USUAL))
    }

    fn bounded(&self, at: usize, value: Option<f64>) -> String {
        let (bound, unit) = (&self.options.subject[at], &self.result.limits[at].1);
        value.map_or_else(|| "–".into(), |value| written(&bound.figure, value, unit, USUAL))
    }

    /// `upload.rate at least 8.6 Mbit/s`.
    fn bound(&self, at: usize, limit: f64) -> String {
        let TuneBound { figure, least, .. } = &self.options.subject[at];
        format!("{figure} at {} {}", if *least { "least" } else { "most" }, self.bounded(at, Some(limit)))
    }

    /// The bounds that a point breaks.
    fn broken(&self, point: &TunedPoint, limits: &[f64]) -> Vec<String> {
        let each = self.options.subject.iter().zip(limits).zip(&point.bounds).enumerate();
        let is_broken = |bound: &TuneBound, limit: f64, value: Option<f64>| {
            value.is_none_or(|value| bound.broken(value, limit) > 0.0)
        };
        each.filter(|(_, ((bound, limit), value))| is_broken(bound, **limit, **value))
            .map(|(at, ((_, limit), value))| {
                format!(
                    "{} is {}, not {}",
                    self.options.subject[at].figure,
                    self.bounded(at, *value),
                    self.bound(at, *limit).split_once(' ').map_or(String::new(), |(_, rest)| rest.to_owned())
                )
            })
            .collect()
    }

    /// Is the objective of one better than that of the other?
    fn is_better(&self, one: &TunedPoint, other: &TunedPoint) -> bool {
        match (one.objective, other.objective) {
            (Some(one), Some(other)) => {
                if self.result.large {
                    one > other
                } else {
                    one < other
                }
            }
            (one, _) => one.is_some(),
        }
    }

    /// The best point, if it is better than the scenario's own values: with other seeds by more than
    /// chance, or because those break a bound.
    pub(super) fn found(&self) -> Option<&TunedPoint> {
        let best = &self.result.tried[*self.result.best.first()?];
        let own = &self.result.own;
        if !own.rank.is_feasible() {
            return Some(best);
        }
        let seeds = self.result.checks.iter().find(|one| matches!(one.with, CheckedWith::Seeds(..)));
        let is_confirmed = seeds.is_none_or(|check| self.compared(check) == Some(Ordering::Less));
        (self.is_better(best, own) && is_confirmed).then_some(best)
    }

    /// The best against the scenario's own values in a check: less is better, equal means that the interval
    /// of the difference has 0 in it. `None`: a run has no value.
    fn compared(&self, check: &TuneCheck) -> Option<Ordering> {
        let (low, high) = check.differences.first().copied().flatten()?;
        let (low, high) = if self.result.large { (-high, -low) } else { (low, high) };
        Some(match (high < 0.0, low > 0.0) {
            (true, _) => Ordering::Less,
            (_, true) => Ordering::Greater,
            _ => Ordering::Equal,
        })
    }

    /// How far the best is above the scenario's own values: `0.4 ms to 1.2 ms less`.
    fn margin(&self, (low, high): (f64, f64)) -> String {
        let figure = &self.options.objective.figure;
        let shown = |value: f64| written(figure, value.abs(), &self.result.unit, USUAL);
        match (high < 0.0, low > 0.0) {
            _ if low == high && low == 0.0 => "the same in each run".to_owned(),
            (true, _) => format!("{} to {} less", shown(high), shown(low)),
            (_, true) => format!("{} to {} more", shown(low), shown(high)),
            _ => format!("from {} less to {} more", shown(low), shown(high)),
        }
    }

    fn limits(&self) -> Vec<f64> {
        self.result.limits.iter().map(|(limit, _)| *limit).collect()
    }

    /// The whole report.
    pub(super) fn report(&self) -> String {
        let (options, result) = (self.options, self.result);
        let mut out = self.table();
        let (seed, count) = result.seeds;
        let many =
            |count: usize, thing: &str| format!("{count} {thing}{}", if count == 1 { "" } else { "s" });
        let _ = writeln!(
            out,
            "\n{} tried, policy {}, load {}, each with {}",
            many(result.tried.len(), "point"),
            result.policy,
            result.load,
            seeds(seed, count)
        );
        if let Some((count, why)) = &result.refused {
            let first = why.lines().next().unwrap_or_default();
            let _ =
                writeln!(out, "{} could not be simulated, the first because: {first}", many(*count, "point"));
        }
        let limits = self.limits();
        for (at, limit) in limits.iter().enumerate() {
            let _ = writeln!(out, "Bound: {}", self.bound(at, *limit));
        }
        let Some(first) = result.best.first() else {
            let broken = result.tried.iter().min_by(|a, b| a.rank.compare(&b.rank));
            let none = match options.subject.is_empty() {
                _ if result.tried.is_empty() => "No point was finished",
                true => "No point has a value for the objective",
                false => "No point keeps all bounds",
            };
            let _ = writeln!(out, "{none}");
            for line in broken.map(|point| self.broken(point, &limits)).unwrap_or_default() {
                let _ = writeln!(out, "The nearest: {line}");
            }
            return out;
        };
        let best = &result.tried[*first];
        match self.found() {
            Some(_) if !result.own.rank.is_feasible() => {
                let _ = writeln!(out, "The scenario's own values break a bound; the best point keeps all");
            }
            Some(_) => {
                let own = self.objective(&result.own);
                let new = self.objective(best);
                let _ = writeln!(
                    out,
                    "The best: {} {new}, with the scenario's own values {own}",
                    options.objective.figure
                );
            }
            None if self.is_better(best, &result.own) => {
                let _ = writeln!(
                    out,
                    "The best with the seeds of the search is not better than the scenario's own values with other \
                    seeds"
                );
            }
            None => {
                let _ = writeln!(out, "No point is better than the scenario's own values");
            }
        }
        let equal = result.tried.iter().filter(|point| point.rank == best.rank).count();
        if equal > 1 {
            let _ = writeln!(
                out,
                "{} are as good as the first: the objective does not tell them apart",
                many(equal, "point")
            );
        }
        self.checks(&mut out);
        if self.found().is_some() {
            let set: Vec<String> =
                best.settings.iter().map(|one| format!(" --set {}", quoted(&one.to_string()))).collect();
            let cases = options.cases.choice().words(options.cases.seed);
            let file = quoted_input(&options.file);
            let sandbox = options.sandbox.words();
            let _ = writeln!(out, "\nUse it: tidegate sim {file}{}{cases}{sandbox}", set.concat());
        }
        out
    }

    /// The scenario's own values, and the best points.
    fn table(&self) -> String {
        let (options, result) = (self.options, self.result);
        let axes = result.tried.first().map_or(&[][..], |point| &point.settings);
        let mut columns = vec![(String::new(), Align::Left)];
        columns.extend(axes.iter().map(|one| (one.path.clone(), Align::Right)));
        columns.push((options.objective.figure.clone(), Align::Right));
        columns.extend(options.subject.iter().map(|bound| (bound.figure.clone(), Align::Right)));
        let mut table = Table::new(columns);
        let mut row = |name: String, point: &TunedPoint| {
            let mut cells = vec![name];
            match point.settings.is_empty() {
                true => cells.extend(axes.iter().map(|_| String::new())),
                false => cells.extend(point.settings.iter().map(|one| one.value.clone())),
            }
            cells.push(self.objective(point));
            cells.extend(point.bounds.iter().enumerate().map(|(at, value)| self.bounded(at, *value)));
            table.row(cells);
        };
        row("own values".into(), &result.own);
        for (number, at) in (1..).zip(&result.best) {
            row(format!("best {number}"), &result.tried[*at]);
        }
        table.to_string()
    }

    /// What remains with other seeds and loads.
    fn checks(&self, out: &mut String) {
        for check in &self.result.checks {
            let TuneCheck { with, limits, own, best, differences } = check;
            let name = match with {
                CheckedWith::Seeds(first, count) => {
                    format!("With {} that the search did not use", seeds(*first, *count))
                }
                CheckedWith::Load(load, first, count) => {
                    format!("With the load {load} and {}", seeds(*first, *count))
                }
            };
            let Some(first) = best.first() else { continue };
            let (now, before) = (self.objective(first), self.objective(own));
            let verdict = match self.compared(check) {
                Some(Ordering::Less) => "better",
                Some(Ordering::Greater) => "worse",
                Some(Ordering::Equal) => "not clearly better or worse",
                None => "not compared, as a run has no value",
            };
            let margin = differences.first().copied().flatten();
            let margin = margin.map_or(String::new(), |margin| {
                format!(" (the difference, with 95 % confidence: {})", self.margin(margin))
            });
            let _ = writeln!(
                out,
                "{name}: the best has {} {now}, the scenario's own values {before}: {verdict}{margin}",
                self.options.objective.figure
            );
            for line in self.broken(first, limits) {
                let _ = writeln!(out, "  it breaks a bound there: {line}");
            }
            let ahead = (1..best.len()).find(|at| best[*at].rank.compare(&first.rank).is_lt());
            if let Some(at) = ahead {
                let _ = writeln!(out, "  there, best {} has a better mean than best 1", at + 1);
            }
        }
        let result = self.result;
        if !result.checks.is_empty()
            && !result.checks.iter().any(|one| matches!(one.with, CheckedWith::Load(..)))
        {
            let _ = writeln!(
                out,
                "Under other loads it was not checked: the scenario has none that measures these figures"
            );
        }
        for load in &result.other_loads {
            let _ = writeln!(out, "The load {load} does not measure these figures");
        }
    }

    /// The objective against the first bounded figure, or against the first parameter.
    pub(super) fn plot(&self) -> SweepPlot {
        let (options, result) = (self.options, self.result);
        let first = options.subject.first();
        let axis = result.tried.first().and_then(|point| point.settings.first());
        let x = match (first, axis) {
            (Some(bound), _) => {
                PlotX::Figure { name: bound.figure.clone(), unit: result.limits[0].1.clone() }
            }
            (None, axis) => PlotX::Figure {
                name: axis.map_or(String::new(), |axis| axis.path.clone()),
                unit: axis.and_then(|axis| number_of(&axis.value)).map_or("", |(_, unit)| unit).to_owned(),
            },
        };
        let point = |point: &TunedPoint| -> Option<PlotPoint> {
            let x = match first {
                Some(_) => point.bounds.first().copied().flatten()?,
                None => number_of(&point.settings.first()?.value)?.0,
            };
            Some(PlotPoint { x, y: point.objective?, interval: None })
        };
        let series = |name: &str, points: Vec<PlotPoint>| PlotSeries {
            name: name.to_owned(),
            points,
            outline: Vec::new(),
        };
        let of = |places: &[usize]| places.iter().filter_map(|at| point(&result.tried[*at])).collect();
        let mut all = vec![series("tried", result.tried.iter().filter_map(point).collect())];
        if first.is_some() {
            all.push(series("front", of(&result.front)));
        }
        all.push(series("best", of(result.best.get(..1).unwrap_or_default())));
        all.push(series("own values", point(&result.own).into_iter().collect()));
        all.retain(|series| !series.points.is_empty());
        let y = Some((options.objective.figure.clone(), result.unit.clone()));
        SweepPlot { x, y, series: all, without: 0 }
    }
}

fn seeds(first: u64, count: u32) -> String {
    match count {
        1 => format!("the seed {first}"),
        _ => format!("the seeds {first} to {}", first.wrapping_add(u64::from(count) - 1)),
    }
}
