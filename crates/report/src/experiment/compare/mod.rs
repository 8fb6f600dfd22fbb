//! Results beside each other: the same cases, figure by figure, and what cannot be compared.
//!
//! What was predicted and what was measured are two results like any others.

mod apart;
mod json;
mod page;
mod text;

use super::show::{distinct, written};
use crate::numbers::USUAL;
use std::collections::BTreeSet;
use tidegate_measure::experiment::{Case, Experiment, Spread, group_of};

pub use json::comparison_json;
pub use page::comparison_page;
pub use text::comparison_text;

/// A result and what it is called here.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// A short name: its file's.
    pub label: String,
    /// The result.
    pub experiment: Experiment,
}

/// Results compared with the first of them.
#[derive(Clone, Debug)]
pub struct Comparing<'s> {
    /// The results, in order.
    pub sides: &'s [Side],
    /// Figures that at least two results have, by case.
    pub rows: Vec<Row>,
    /// What cannot be compared, or only with care, in sentences.
    pub apart: Vec<String>,
}

/// A figure of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The policy's name.
    pub policy: String,
    /// The load's name.
    pub load: String,
    /// `ping.p95`.
    pub figure: String,
    /// In each result: the figure over its repeats.
    pub found: Vec<Option<Spread>>,
}

/// How a figure differs from the first result's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// In percent of the first; of shares in percentage points. `None`: the first is nothing, so there is no ratio.
    pub percent: Option<f64>,
    /// It is a share: `percent` is a difference in points.
    pub points: bool,
    /// Beyond the spread of repeats: the ranges of both do not meet. `None`: a result has one repeat only, its spread is not known.
    pub beyond: Option<bool>,
}

/// Statistics of answers that are compared, and of transfers.
const ANSWERS: [&str; 4] = ["median", "p95", "p99", "loss"];
const TRANSFERS: [&str; 2] = ["rate", "time"];

impl<'s> Comparing<'s> {
    /// Compares results, figure by figure.
    pub fn new(sides: &'s [Side]) -> Comparing<'s> {
        let mut rows = Vec::new();
        for (policy, load) in cases(sides) {
            let here: Vec<Option<Case<'s>>> = sides.iter().map(|side| side.experiment.case(policy, load)).collect();
            for figure in figures(&here) {
                let found: Vec<Option<Spread>> =
                    here.iter().map(|case| case.as_ref().and_then(|case| case.figure(&figure).ok())).collect();
                if found.iter().flatten().count() > 1 {
                    rows.push(Row { policy: policy.to_owned(), load: load.to_owned(), figure, found });
                }
            }
        }
        Comparing { sides, rows, apart: apart::sentences(sides) }
    }

    /// One of how many figures is beyond the spread by chance alone, where both results are of one kind: of two samples of n and m
    /// figures, all of one are above all of the other in 2 of (n + m)! / (n! m!) orders. `None` where no spread is known.
    pub fn by_chance(&self) -> Option<u64> {
        let pair = |row: &Row, side: usize| {
            let (first, other) = (row.found.first().copied().flatten()?, row.found.get(side).copied().flatten()?);
            (first.count > 1 && other.count > 1).then(|| orders(first.count as u64, other.count as u64) / 2)
        };
        self.rows.iter().flat_map(|row| (1..row.found.len()).filter_map(move |side| pair(row, side))).min()
    }

    /// What the sign behind a change means, in words.
    pub(super) fn beyond_words(&self) -> Option<String> {
        let chance = self.by_chance()?;
        Some(format!(
            "beyond the spread of repeats: the ranges of both do not meet (by chance alone in 1 of {chance} figures)"
        ))
    }

    /// The cases that rows are of, in order.
    pub(super) fn cases(&self) -> Vec<(&str, &str)> {
        let mut cases: Vec<(&str, &str)> = Vec::new();
        for row in &self.rows {
            if !cases.contains(&(row.policy.as_str(), row.load.as_str())) {
                cases.push((&row.policy, &row.load));
            }
        }
        cases
    }
}

impl Row {
    /// How a result's figure differs from the first result's; `None` if one of them has none.
    pub fn change(&self, side: usize) -> Option<Change> {
        let (first, other) = (self.found.first().copied().flatten()?, self.found.get(side).copied().flatten()?);
        let points = self.figure.ends_with(".loss");
        let difference = other.median - first.median;
        let percent = match points {
            true => Some(difference * 100.0),
            false if difference == 0.0 => Some(0.0),
            false => (first.median != 0.0).then(|| difference / first.median * 100.0),
        };
        let known = first.count > 1 && other.count > 1;
        let meet = first.least <= other.most && other.least <= first.most;
        Some(Change { percent, points, beyond: known.then_some(!meet) })
    }

    /// A result's figure as people write it.
    pub(super) fn shown(&self, side: usize) -> String {
        let found = self.found.get(side).copied().flatten();
        found.map_or_else(|| "–".to_owned(), |found| super::show::spread(&self.figure, &found))
    }

    /// The figure's median alone.
    pub(super) fn median(&self, side: usize) -> String {
        let found = self.found.get(side).copied().flatten();
        found.map_or_else(|| "–".to_owned(), |found| written(&self.figure, found.median, found.unit, USUAL))
    }
}

impl Change {
    /// `+3.6 %`, `−1.2 points`; `*` behind what is beyond the spread, `?` where that is not known.
    pub(super) fn shown(&self) -> String {
        let sign = match self.beyond {
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

/// In how many ways n and m things can be put in a row where those of a kind are alike: (n + m)! / (n! m!).
fn orders(n: u64, m: u64) -> u64 {
    (1..=m).fold(1, |all: u64, k| all.saturating_mul(n + k) / k)
}

/// Policies and loads of all results, by load, then by policy, each pair once.
fn cases(sides: &[Side]) -> Vec<(&str, &str)> {
    let policies = distinct(sides.iter().flat_map(|side| &side.experiment.policies).map(|policy| policy.name.as_str()));
    let loads = distinct(sides.iter().flat_map(|side| &side.experiment.loads).map(|load| load.name.as_str()));
    loads.iter().flat_map(|load| policies.iter().map(move |policy| (*policy, *load))).collect()
}

/// The figures that are compared of a case, in the order of the first result that has them.
fn figures(here: &[Option<Case<'_>>]) -> Vec<String> {
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

/// How a result came about, and by which version of what.
fn by(experiment: &Experiment) -> String {
    match experiment.execution.as_str() {
        "flent" => format!("flent {}", experiment.version),
        execution => format!("{execution}, tidegate {}", experiment.version),
    }
}
