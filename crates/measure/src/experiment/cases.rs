//! The cases of an experiment: a policy under a load, with all its repeats, and a figure's time series over
//! these.

use super::figures::{NoSuchFigure, figure};
use super::parts::{Experiment, LoadRecord, PolicyRecord, RunRecord};
use alloc::vec::Vec;

/// A policy under a load.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentCase<'e> {
    /// The policy of the case.
    pub policy: &'e PolicyRecord,
    /// The load of the case.
    pub load: &'e LoadRecord,
    /// Its runs, by repeat; never empty.
    pub runs: Vec<&'e RunRecord>,
}

/// A figure over the repeats of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The middle one; of an even number the mean of the two in the middle.
    pub median: f64,
    /// The smallest of the repeats.
    pub least: f64,
    /// The largest of the repeats.
    pub most: f64,
    /// How many repeats have the figure.
    pub count: usize,
    /// Its unit: `s`, `bit/s`, `bytes`, `` (a number or a share).
    pub unit: &'static str,
}

impl Spread {
    /// Of figures in any order; `None` of none.
    pub fn new(mut numbers: Vec<f64>, unit: &'static str) -> Option<Spread> {
        numbers.sort_by(f64::total_cmp);
        let (least, most) = (*numbers.first()?, *numbers.last()?);
        let count = numbers.len();
        let median = (numbers[(count - 1) / 2] + numbers[count / 2]) / 2.0;
        Some(Spread { median, least, most, count, unit })
    }
}

impl ExperimentCase<'_> {
    /// A figure in the measured window of each run; repeats that have nothing to measure are left out.
    ///
    /// # Errors
    ///
    /// No run has such a figure, or none has anything to measure: the first run's error.
    pub fn figure(&self, name: &str) -> Result<Spread, NoSuchFigure> {
        let (values, unit) = self.values(name)?;
        Spread::new(values, unit).ok_or(NoSuchFigure::Unknown { known: Vec::new() })
    }

    /// A figure in the measured window of each run, in the order of the repeats, with its unit; repeats that
    /// have nothing to measure are left out, and there is at least one.
    ///
    /// # Errors
    ///
    /// No run has such a figure, or none has anything to measure: the first run's error.
    pub fn values(&self, name: &str) -> Result<(Vec<f64>, &'static str), NoSuchFigure> {
        let (mut values, mut unit, mut first_error) = (Vec::new(), "", None);
        for run in &self.runs {
            match figure(run, name, run.window) {
                Ok(value) => {
                    values.push(value.number);
                    unit = value.unit;
                }
                Err(error) => drop(first_error.get_or_insert(error)),
            }
        }
        match first_error {
            Some(error) if values.is_empty() => Err(error),
            _ if values.is_empty() => Err(NoSuchFigure::Unknown { known: Vec::new() }),
            _ => Ok((values, unit)),
        }
    }
}

impl Experiment {
    /// Its cases, by policy, then by load, in the scenario's order; those that were not run are left out.
    pub fn cases(&self) -> Vec<ExperimentCase<'_>> {
        let pairs = self.policies.iter().flat_map(|policy| self.loads.iter().map(move |load| (policy, load)));
        pairs.filter_map(|(policy, load)| self.case(&policy.name, &load.name)).collect()
    }

    /// One case by its names; `None` if it was not run.
    pub fn case(&self, policy: &str, load: &str) -> Option<ExperimentCase<'_>> {
        let runs: Vec<&RunRecord> =
            self.runs.iter().filter(|run| run.policy == policy && run.load == load).collect();
        let policy = self.policies.iter().find(|known| known.name == policy)?;
        let load = self.loads.iter().find(|known| known.name == load)?;
        (!runs.is_empty()).then_some(ExperimentCase { policy, load, runs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn medians() {
        let of = |numbers: &[f64]| {
            Spread::new(numbers.to_vec(), "s").map(|s| (s.least, s.median, s.most, s.count))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[3.0]), Some((3.0, 3.0, 3.0, 1)));
        assert_eq!(of(&[9.0, 1.0, 2.0]), Some((1.0, 2.0, 9.0, 3)));
        assert_eq!(of(&[9.0, 1.0, 2.0, 4.0]), Some((1.0, 3.0, 9.0, 4)));
    }

    #[test]
    fn cases_in_the_order_of_the_scenario() {
        let run = |policy: &str, load: &str, repeat| RunRecord {
            policy: policy.into(),
            load: load.into(),
            repeat,
            ..RunRecord::default()
        };
        let policy = |name: &str| PolicyRecord { name: name.into(), ..PolicyRecord::default() };
        let load = |name: &str| LoadRecord { name: name.into(), ..LoadRecord::default() };
        let experiment = Experiment {
            policies: vec![policy("none"), policy("tbf")],
            loads: vec![load("empty"), load("up")],
            runs: vec![
                run("tbf", "up", 0),
                run("none", "up", 0),
                run("none", "up", 1),
                run("none", "empty", 0),
            ],
            ..Experiment::default()
        };
        let cases: Vec<_> = experiment
            .cases()
            .iter()
            .map(|c| (c.policy.name.clone(), c.load.name.clone(), c.runs.len()))
            .collect();
        let expected = [("none", "empty", 1), ("none", "up", 2), ("tbf", "up", 1)];
        assert_eq!(cases, expected.map(|(policy, load, n)| (policy.into(), load.into(), n)));
    }
}
