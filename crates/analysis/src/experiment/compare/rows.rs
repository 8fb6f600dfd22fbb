//! Results beside each other: the same cases, figure by figure, and what cannot be compared.
//!
//! What was predicted and what was measured are two results like any others.

use super::side::{OF_EACH, Side};
use super::{apart, significance};
use crate::experiment::show::{distinct, spread, written};
use std::collections::BTreeSet;
use tidegate_measure::experiment::{ExperimentCase, Spread, group_of};
use tidegate_measure::numbers::USUAL;

/// Results compared with the first of them.
#[derive(Clone, Debug)]
pub struct Comparing<'s> {
    /// The results, in order.
    pub sides: &'s [Side],
    /// Figures that at least two results have, by case.
    pub rows: Vec<ComparisonRow>,
    /// What cannot be compared, or only with care, in sentences.
    pub apart: Vec<String>,
}

/// A figure of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonRow {
    /// The policy's name; empty where the sides are policies.
    pub policy: String,
    /// The load's name.
    pub load: String,
    /// `ping.p95`.
    pub figure: String,
    /// In each result: the figure over its repeats.
    pub found: Vec<Option<Spread>>,
    /// In each result but the first: how probable such a difference from the first is by chance, corrected
    /// for the number of all rows (permutation test, Benjamini and Hochberg's correction). `None`: one of the
    /// two has fewer than two repeats, or all repeats of both have the same figure.
    pub p_values: Vec<Option<f64>>,
}

/// How a figure differs from the first result's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// In percent of the first; of shares in percentage points. `None`: the first is nothing, so there is no
    /// ratio.
    pub percent: Option<f64>,
    /// It is a share: `percent` is a difference in points.
    pub points: bool,
    /// Is it more than chance, where 1 in 20 of those that are may be wrong? `None`: a result has one repeat
    /// only, so how much it varies is not known.
    pub significant: Option<bool>,
}

/// Statistics of answers that are compared, and of transfers.
const ANSWERS: [&str; 4] = ["median", "p95", "p99", "loss"];
const TRANSFERS: [&str; 2] = ["rate", "time"];

impl<'s> Comparing<'s> {
    /// Compares results, figure by figure.
    pub fn new(sides: &'s [Side]) -> Comparing<'s> {
        let mut rows = Vec::new();
        for (policy, load) in cases(sides) {
            let here: Vec<Option<ExperimentCase<'s>>> =
                sides.iter().map(|side| side.experiment.case(policy, load)).collect();
            for figure in figures(&here) {
                let values: Vec<Option<(Vec<f64>, &str)>> = here
                    .iter()
                    .map(|case| case.as_ref().and_then(|case| case.values(&figure).ok()))
                    .collect();
                if values.iter().flatten().count() > 1 {
                    rows.push(ComparisonRow::new(policy, load, figure, values));
                }
            }
        }
        significance::adjust(rows.iter_mut().flat_map(|row| row.p_values.iter_mut().flatten()));
        Comparing { sides, rows, apart: apart::sentences(sides) }
    }

    /// True if the policies of one result are compared ([`Side::policies`]).
    pub fn is_of_policies(&self) -> bool {
        self.sides.iter().flat_map(|side| &side.experiment.policies).all(|policy| policy.name == OF_EACH)
    }

    /// What the signs behind changes mean, in sentences: of the significant ones, and of those that are not
    /// known.
    pub fn legend(&self) -> Vec<String> {
        let changes =
            || self.rows.iter().flat_map(|row| (1..row.found.len()).filter_map(|side| row.change(side)));
        let tested = self.rows.iter().flat_map(|row| &row.p_values).flatten().count();
        let test = format!(
            "exact permutation test of the {tested} figures that vary, Benjamini and Hochberg's correction"
        );
        let mut sentences = Vec::new();
        if changes().any(|change| change.significant == Some(true)) {
            sentences.push(format!(
                "* significant: of changes so marked 1 in 20 at most is expected to be chance ({test})"
            ));
        } else if self.rows.iter().any(ComparisonRow::can_be_significant) {
            sentences.push(format!("No change is significant ({test}, error rate 1 in 20)"));
        } else if tested > 0 {
            sentences.push(
                "With so few repeats no change can be distinguished from chance: use 5 or more of each \
                result (--repeats)"
                    .to_owned(),
            );
        }
        if changes().any(|change| change.significant.is_none()) {
            sentences.push("? one repeat only: how much it varies is not known".to_owned());
        }
        sentences
    }

    /// The cases that rows are of, in order.
    pub fn cases(&self) -> Vec<(&str, &str)> {
        let mut cases: Vec<(&str, &str)> = Vec::new();
        for row in &self.rows {
            if !cases.contains(&(row.policy.as_str(), row.load.as_str())) {
                cases.push((&row.policy, &row.load));
            }
        }
        cases
    }
}

impl ComparisonRow {
    /// Of the values that each result has in its repeats, with their unit; the p-values are not corrected
    /// yet.
    fn new(
        policy: &str,
        load: &str,
        figure: String,
        values: Vec<Option<(Vec<f64>, &'static str)>>,
    ) -> ComparisonRow {
        let first = values.first().and_then(Option::as_ref);
        let p_value = |other: &Option<(Vec<f64>, &str)>| significance::p_value(&first?.0, &other.as_ref()?.0);
        let p_values = values.iter().skip(1).map(p_value).collect();
        let found =
            values.into_iter().map(|values| values.and_then(|(values, unit)| Spread::new(values, unit)));
        ComparisonRow {
            policy: policy.to_owned(),
            load: load.to_owned(),
            figure,
            found: found.collect(),
            p_values,
        }
    }

    /// Is a sample large enough for a change, whatever it is, to be more than chance?
    fn can_be_significant(&self) -> bool {
        let count = |found: &Option<Spread>| found.map_or(0, |found| found.count);
        let first = self.found.first().map_or(0, count);
        let least =
            |(other, p): (&Option<Spread>, &Option<f64>)| p.map(|_| significance::least(first, count(other)));
        let mut leasts = self.found.iter().skip(1).zip(&self.p_values).filter_map(least);
        leasts.any(|least| least <= significance::ERROR_RATE)
    }

    /// How a result's figure differs from the first result's; `None` if one of them has none.
    pub fn change(&self, side: usize) -> Option<Change> {
        let (first, other) =
            (self.found.first().copied().flatten()?, self.found.get(side).copied().flatten()?);
        let points = self.figure.ends_with(".loss");
        let difference = other.median - first.median;
        let percent = match points {
            true => Some(difference * 100.0),
            false if difference == 0.0 => Some(0.0),
            false => (first.median != 0.0).then(|| difference / first.median * 100.0),
        };
        let p_value = self.p_values.get(side.checked_sub(1)?).copied().flatten();
        let known = first.count > 1 && other.count > 1;
        let significant = known.then(|| p_value.is_some_and(|p| p <= significance::ERROR_RATE));
        Some(Change { percent, points, significant })
    }

    /// A result's figure as people write it.
    pub fn shown(&self, side: usize) -> String {
        let found = self.found.get(side).copied().flatten();
        found.map_or_else(|| "–".to_owned(), |found| spread(&self.figure, &found))
    }

    /// The figure's median alone.
    pub fn median(&self, side: usize) -> String {
        let found = self.found.get(side).copied().flatten();
        found.map_or_else(|| "–".to_owned(), |found| written(&self.figure, found.median, found.unit, USUAL))
    }
}

impl Change {
    /// `+3.6 %`, `−1.2 points`; `*` behind what is significant, `?` where that is not known.
    pub fn shown(&self) -> String {
        let sign = match self.significant {
            Some(true) => " *",
            Some(false) => "",
            None => " ?",
        };
        let Some(percent) = self.percent else { return format!("from nothing{sign}") };
        if percent == 0.0 {
            return "the same".to_owned();
        }
        let unit = if self.points { "points" } else { "%" };
        let direction = match percent {
            p if p.abs() < 0.05 => '±',
            p if p < 0.0 => '−',
            _ => '+',
        };
        format!("{direction}{:.1} {unit}{sign}", percent.abs())
    }
}

/// Policies and loads of all results, by load, then by policy, each pair once.
fn cases(sides: &[Side]) -> Vec<(&str, &str)> {
    let policies =
        distinct(sides.iter().flat_map(|side| &side.experiment.policies).map(|policy| policy.name.as_str()));
    let loads = distinct(sides.iter().flat_map(|side| &side.experiment.loads).map(|load| load.name.as_str()));
    loads.iter().flat_map(|load| policies.iter().map(move |policy| (*policy, *load))).collect()
}

/// The figures that are compared of a case, in the order of the first result that has them.
fn figures(here: &[Option<ExperimentCase<'_>>]) -> Vec<String> {
    let runs = || here.iter().flatten().flat_map(|case| &case.runs);
    let mut known = BTreeSet::new();
    let mut names = Vec::new();
    let mut add = |id: &str, statistics: &[&str]| {
        let figures = statistics.iter().map(|statistic| format!("{id}.{statistic}"));
        names.extend(figures.filter(|figure| known.insert(figure.clone())));
    };
    runs().flat_map(|run| &run.probes).for_each(|probe| add(&probe.id, &ANSWERS));
    runs().flat_map(|run| &run.transfers).for_each(|transfer| add(group_of(&transfer.id), &TRANSFERS));
    names
}
