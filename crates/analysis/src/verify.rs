//! A load without and with a policy, in turns: what the policy changed, and how sure that is.

use crate::experiment::written;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tidegate_measure::experiment::{Experiment, RunRecord, figure, group_of};
use tidegate_measure::numbers::USUAL;
use tidegate_measure::paired::{Paired, adjusted};

/// Statistics of probes, and of transfers; with each, whether less of it is better.
const ANSWERS: [(&str, bool); 6] = [
    ("median", true),
    ("p95", true),
    ("there-p95", true),
    ("back-p95", true),
    ("jitter", true),
    ("loss", true),
];
const TRANSFERS: [(&str, bool); 1] = [("rate", false)];

/// A difference is significant up to this p-value.
const SIGNIFICANT: f64 = 0.05;

/// A figure without and with.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifyRow {
    /// The load's name.
    pub load: String,
    /// `ping.p95`.
    pub figure: String,
    /// Its unit: `s`, `bit/s`, `` (a share).
    pub unit: &'static str,
    /// What it was, and how it differs.
    pub paired: Paired,
    /// The p-value of the difference, corrected for the number of rows ([`adjusted`]); `None` of one round.
    pub p_value: Option<f64>,
    /// Less of it is better.
    pub less_is_better: bool,
}

/// The simulator's prediction of a figure, from measurements without the policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicted {
    /// The load's name.
    pub load: String,
    /// `udp.median`.
    pub figure: String,
    /// As it is, and with the policy.
    pub without: f64,
    /// With the policy.
    pub with: f64,
}

/// How a figure changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeVerdict {
    /// It got better.
    Better,
    /// It got worse.
    Worse,
    /// Less goes through: the price of whatever got better.
    Costs,
    /// There is no difference at all.
    Same,
    /// There is one, too small to matter: see [`VerifyRow::verdict`].
    Slight,
    /// What there is may be chance.
    Unsure,
    /// One round, which shows nothing of chance.
    Untested,
}

impl ChangeVerdict {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            ChangeVerdict::Better => "better",
            ChangeVerdict::Worse => "worse",
            ChangeVerdict::Costs => "cost",
            ChangeVerdict::Same => "the same",
            ChangeVerdict::Slight => "slight",
            ChangeVerdict::Unsure => "not significant",
            ChangeVerdict::Untested => "one round",
        }
    }
}

impl VerifyRow {
    /// The verdict on the difference. It is significant if chance alone would not show one like it in any
    /// row, with 95 % confidence; and slight below 1 ms or 5 % of a time, half a point of a loss, or 1 % of a
    /// rate.
    pub fn verdict(&self) -> ChangeVerdict {
        let Paired { first, difference, interval, .. } = self.paired;
        let (least, share) = match self.unit {
            "s" => (0.001, 0.05),
            "bit/s" => (0.0, 0.01),
            _ => (0.005, 0.0),
        };
        let is_slight = difference.abs() < least || difference.abs() < first.abs() * share;
        if interval.is_none() {
            return ChangeVerdict::Untested;
        }
        match self.p_value.is_some_and(|p| p <= SIGNIFICANT) {
            _ if difference == 0.0 && interval.is_some_and(|(low, high)| low == high) => ChangeVerdict::Same,
            false => ChangeVerdict::Unsure,
            true if is_slight => ChangeVerdict::Slight,
            true if (self.paired.difference < 0.0) == self.less_is_better => ChangeVerdict::Better,
            true if self.less_is_better => ChangeVerdict::Worse,
            true => ChangeVerdict::Costs,
        }
    }

    /// A value of this figure as people write it.
    pub fn shown(&self, number: f64) -> String {
        let text = written(&self.figure, number.abs(), self.unit, USUAL);
        // A share's difference is given in points.
        if number < 0.0 { format!("−{text}") } else { text }
    }

    /// How it differs, with the interval that 95 of 100 such lie in.
    pub fn change(&self) -> String {
        let signed =
            |number: f64| if number > 0.0 { format!("+{}", self.shown(number)) } else { self.shown(number) };
        match self.paired.interval {
            Some((low, high)) if low != high => {
                format!("{} ({} to {})", signed(self.paired.difference), signed(low), signed(high))
            }
            _ => signed(self.paired.difference),
        }
    }
}

/// The figures of an experiment whose first policy is the previous state, and its second the policy in
/// question; its repeats are the rounds. Figures that not every round has are of the rounds that have them.
pub fn rows(experiment: &Experiment) -> Vec<VerifyRow> {
    let [before, after, ..] = experiment.policies.as_slice() else { return Vec::new() };
    let of = |policy: &str, load: &str| -> Vec<&RunRecord> {
        experiment.runs.iter().filter(|run| run.policy == policy && run.load == load).collect()
    };
    let under = |load: &String| {
        let (first, second) = (of(&before.name, load), of(&after.name, load));
        let names = names(first.iter().chain(&second).copied());
        names
            .into_iter()
            .filter_map(|(name, less)| row((load, &name, less), &first, &second))
            .collect::<Vec<VerifyRow>>()
    };
    let mut rows: Vec<VerifyRow> = experiment.loads.iter().flat_map(|load| under(&load.name)).collect();
    let alone: Vec<Option<f64>> = rows.iter().map(|row| row.paired.p_value()).collect();
    for (row, p_value) in rows.iter_mut().zip(adjusted(&alone)) {
        row.p_value = p_value;
    }
    rows
}

/// A figure under a load, from the rounds that have it.
fn row(
    (load, name, less_is_better): (&str, &str, bool),
    first: &[&RunRecord],
    second: &[&RunRecord],
) -> Option<VerifyRow> {
    let mut unit = "";
    let mut pairs = Vec::new();
    for run in first {
        let Some(other) = second.iter().find(|other| other.repeat == run.repeat) else { continue };
        let values = (figure(run, name, run.window), figure(other, name, other.window));
        if let (Ok(one), Ok(two)) = values {
            unit = one.unit;
            pairs.push((one.number, two.number));
        }
    }
    Some(VerifyRow {
        load: load.into(),
        figure: name.into(),
        unit,
        paired: Paired::new(&pairs)?,
        p_value: None,
        less_is_better,
    })
}

/// The figures that runs have, each once.
fn names<'r>(runs: impl Iterator<Item = &'r RunRecord> + Clone) -> Vec<(String, bool)> {
    let mut known = BTreeSet::new();
    let mut names = Vec::new();
    let mut add = |id: &str, statistics: &[(&str, bool)]| {
        let figures = statistics.iter().map(|(statistic, less)| (format!("{id}.{statistic}"), *less));
        names.extend(figures.filter(|(figure, _)| known.insert(figure.clone())));
    };
    let probes = || runs.clone().flat_map(|run| &run.probes);
    // One-way figures are given with the round trip, so once is enough.
    let ways: BTreeSet<String> = probes()
        .filter(|probe| !probe.there.is_empty())
        .flat_map(|probe| ["up", "down"].map(|way| format!("{}-{way}", probe.id)))
        .collect();
    probes().filter(|probe| !ways.contains(&probe.id)).for_each(|probe| add(&probe.id, &ANSWERS));
    runs.clone().flat_map(|run| &run.transfers).for_each(|transfer| add(group_of(&transfer.id), &TRANSFERS));
    names
}

/// All rows as JSON, numbers in their unit (`s`, `bit/s`, shares as 0 to 1).
pub fn json(experiment: &Experiment) -> Value {
    let rows = rows(experiment).into_iter().map(|row| {
        let Paired { rounds, first, second, difference, interval } = row.paired;
        json!({
            "load": row.load, "figure": row.figure, "unit": row.unit, "rounds": rounds,
            "without": first, "with": second, "difference": difference,
            "low": interval.map(|(low, _)| low), "high": interval.map(|(_, high)| high),
            "p_value": row.p_value, "verdict": row.verdict().word(),
        })
    });
    rows.collect()
}
