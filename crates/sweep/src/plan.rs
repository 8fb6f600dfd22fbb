//! The design of a sweep: which cases there are, in which order.

use crate::axis::{AxisValues, BadAxis, SweepAxis};
use crate::condition::SweepCondition;
use tidegate_packet::{RandomSource, Seeded};
use tidegate_scenario::settings::Setting;

/// The most cases of one sweep.
pub const MAX_CASES: usize = 10_000_000;

/// How the values of the axes are put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Every value of each with every value of the others.
    #[default]
    Grid,
    /// The first value of each, then the second, and so on.
    Paired,
    /// So many samples, each axis evenly covered by them (McKay, Beckman and Conover, 1979).
    Latin(u32),
}

/// What a sweep varies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepPlan {
    /// The parameters.
    pub axes: Vec<SweepAxis>,
    /// How they are put together.
    pub method: Method,
    /// Cases for which one of these does not hold are left out.
    pub only: Vec<String>,
    /// So are those for which one of these holds.
    pub skip: Vec<String>,
    /// What a Latin hypercube is drawn by.
    pub seed: u64,
}

/// One set of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepCase {
    /// From 0, without gaps.
    pub number: u32,
    /// A value for each axis.
    pub settings: Vec<Setting>,
}

impl SweepPlan {
    /// All cases, in order; of a grid the last axis changes fastest.
    ///
    /// # Errors
    /// Too many cases or none, axes of different lengths that are to be paired, a range without a number of
    /// values, a condition that is none.
    pub fn cases(&self) -> Result<Vec<SweepCase>, BadAxis> {
        let paths: Vec<&str> = self.axes.iter().map(|axis| axis.path.as_str()).collect();
        if let Some(twice) = paths.iter().enumerate().find(|(n, path)| paths[..*n].contains(path)) {
            return Err(BadAxis(format!("`{}` is varied twice", twice.1)));
        }
        let conditions = |all: &[String]| -> Result<Vec<SweepCondition>, BadAxis> {
            all.iter().map(|text| SweepCondition::parse(text, &self.axes)).collect()
        };
        let (only, skip) = (conditions(&self.only)?, conditions(&self.skip)?);
        let rows = match self.method {
            Method::Grid => self.grid()?,
            Method::Paired => self.paired()?,
            Method::Latin(samples) => self.latin(samples),
        };
        let settings = |row: Vec<String>| -> Vec<Setting> {
            let each = self.axes.iter().zip(row);
            each.map(|(axis, value)| Setting { path: axis.path.clone(), value }).collect()
        };
        let meant = |settings: &Vec<Setting>| {
            only.iter().all(|condition| condition.holds(settings))
                && !skip.iter().any(|condition| condition.holds(settings))
        };
        let cases = rows.into_iter().map(settings).filter(meant);
        let cases: Vec<SweepCase> =
            cases.zip(0..).map(|(settings, number)| SweepCase { number, settings }).collect();
        if cases.is_empty() {
            return Err(BadAxis("the conditions leave no case".into()));
        }
        Ok(cases)
    }

    /// The values of each axis.
    fn lists(&self) -> Result<Vec<&[String]>, BadAxis> {
        self.axes
            .iter()
            .map(|axis| match &axis.values {
                AxisValues::List(list) => Ok(list.as_slice()),
                AxisValues::Range(_) => Err(BadAxis(format!(
                    "the range of {} needs the number of its values (:lin5, :log5), or a Latin hypercube",
                    axis.path
                ))),
            })
            .collect()
    }

    fn grid(&self) -> Result<Vec<Vec<String>>, BadAxis> {
        let lists = self.lists()?;
        let count = lists.iter().try_fold(1_usize, |count, list| count.checked_mul(list.len()));
        let count = count.filter(|count| *count <= MAX_CASES).ok_or_else(too_many)?;
        let row = |case: usize| {
            let mut left = case;
            let mut row: Vec<String> = lists
                .iter()
                .rev()
                .map(|list| {
                    let value = list[left % list.len()].clone();
                    left /= list.len();
                    value
                })
                .collect();
            row.reverse();
            row
        };
        Ok((0..count).map(row).collect())
    }

    fn paired(&self) -> Result<Vec<Vec<String>>, BadAxis> {
        let lists = self.lists()?;
        let count = lists.first().map_or(0, |list| list.len());
        if let Some((axis, list)) = self.axes.iter().zip(&lists).find(|(_, list)| list.len() != count) {
            return Err(BadAxis(format!(
                "axes that are paired have as many values each: {} has {count}, {} has {}",
                self.axes[0].path,
                axis.path,
                list.len()
            )));
        }
        Ok((0..count).map(|n| lists.iter().map(|list| list[n].clone()).collect()).collect())
    }

    /// Each axis is cut into as many equal parts as there are samples; each sample has a part of its own of
    /// every axis, and lies anywhere in it.
    fn latin(&self, samples: u32) -> Vec<Vec<String>> {
        let columns: Vec<Vec<String>> = self
            .axes
            .iter()
            .zip(0..)
            .map(|(axis, salt)| {
                let mut random = Seeded::new(self.seed).fork(salt);
                let mut parts: Vec<u32> = (0..samples).collect();
                for at in (1..parts.len()).rev() {
                    parts.swap(at, random.below(at as u32 + 1) as usize);
                }
                let value = |part: u32| match &axis.values {
                    AxisValues::Range(range) => {
                        let within = f64::from(random.below(1 << 24)) / f64::from(1 << 24);
                        range.at((f64::from(part) + within) / f64::from(samples))
                    }
                    AxisValues::List(list) => {
                        list[(u64::from(part) * list.len() as u64 / u64::from(samples)) as usize].clone()
                    }
                };
                parts.into_iter().map(value).collect()
            })
            .collect();
        (0..samples as usize).map(|n| columns.iter().map(|column| column[n].clone()).collect()).collect()
    }
}

fn too_many() -> BadAxis {
    BadAxis(format!("these are more than {MAX_CASES} cases: use fewer values, or --latin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(axes: &[&str], method: Method) -> SweepPlan {
        let axes = axes.iter().map(|text| SweepAxis::parse(text).unwrap_or_else(|wrong| panic!("{wrong}")));
        SweepPlan { axes: axes.collect(), method, seed: 1, ..SweepPlan::default() }
    }

    fn rows(plan: &SweepPlan) -> Vec<String> {
        let cases = plan.cases().unwrap_or_else(|wrong| panic!("{wrong}"));
        let row = |case: &SweepCase| {
            let values: Vec<&str> = case.settings.iter().map(|one| one.value.as_str()).collect();
            format!("{}:{}", case.number, values.join(" "))
        };
        cases.iter().map(row).collect()
    }

    #[test]
    fn a_grid_has_every_pair_once() {
        let mut plan = plan(&["a=1,2", "b=x,y,z"], Method::Grid);
        assert_eq!(rows(&plan), ["0:1 x", "1:1 y", "2:1 z", "3:2 x", "4:2 y", "5:2 z"]);
        plan.skip = vec!["a = 2 and b = y".into()];
        plan.only = vec!["b != z".into()];
        assert_eq!(rows(&plan), ["0:1 x", "1:1 y", "2:2 x"]);
        plan.only = vec!["a > 2".into()];
        assert!(plan.cases().is_err_and(|wrong| wrong.0.contains("leave no case")));
    }

    #[test]
    fn pairs_and_what_has_no_partner() {
        assert_eq!(rows(&plan(&["a=1,2", "b=x,y"], Method::Paired)), ["0:1 x", "1:2 y"]);
        let uneven = plan(&["a=1,2", "b=x"], Method::Paired).cases();
        assert!(uneven.is_err_and(|wrong| wrong.0.contains("a has 2, b has 1")));
        let range = plan(&["a=1..2"], Method::Grid).cases();
        assert!(range.is_err_and(|wrong| wrong.0.contains("needs the number of its values")));
        let huge = plan(&["a=1..2:9999", "b=1..2:9999"], Method::Grid).cases();
        assert!(huge.is_err_and(|wrong| wrong.0.contains("more than")));
        assert!(plan(&["a=1", "a=2"], Method::Grid).cases().is_err());
    }

    #[test]
    fn a_latin_hypercube_covers_each_axis_evenly() {
        let plan = plan(&["a=0..10", "b=1..1000:log", "c=x,y"], Method::Latin(10));
        let cases = plan.cases().unwrap_or_else(|wrong| panic!("{wrong}"));
        let number = |case: &SweepCase, at: usize| case.settings[at].value.parse().unwrap_or(f64::NAN);
        let mut of_a: Vec<u32> = cases.iter().map(|case| number(case, 0) as u32).collect();
        of_a.sort_unstable();
        assert_eq!(of_a, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let decade = cases.iter().filter(|case| number(case, 1) < 10.0).count();
        assert!((3..=4).contains(&decade), "{decade} of 10 in a third of the logarithms");
        assert_eq!(cases.iter().filter(|case| case.settings[2].value == "x").count(), 5);
        assert_eq!(rows(&plan), rows(&plan));
        assert_ne!(rows(&plan), rows(&SweepPlan { seed: 2, ..plan.clone() }));
    }
}
