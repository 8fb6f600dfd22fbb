//! A search for values of a scenario's parameters, and what remains of its result with other seeds and loads.
//!
//! ```text
//! own values ─▶ limits ─▶ search (points of the ranges ─▶ runs on all processors ─▶ ranks) ─▶ best ─▶ checks
//! ```
//! All points are simulated with the same seeds. The same scenario, options and version give the same result.

use crate::error::{Error, Result};
use crate::sweep::{PreparedSweep, SweepJob, SweepWatch, read};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use tidegate_measure::paired::mean_interval;
use tidegate_scenario::model::Scenario;
use tidegate_scenario::settings::{Setting, get};
use tidegate_scenario::{CaseChoice, Files};
use tidegate_sweep::{
    AxisValues, SweepAxis, SweepCase, TuneBound, TuneGoal, TuneRank, ValueRange, number_of, search,
};

/// How many of the best are simulated again.
const CHECKED: usize = 3;
/// With so many other seeds at least.
const FEWEST_SEEDS: u32 = 5;

/// What is searched for, and where.
#[derive(Clone, Copy)]
pub struct TuneJob<'j> {
    /// The scenario's file, for messages and files beside it.
    pub path: &'j Path,
    /// Its text.
    pub text: &'j str,
    /// The parameters: each a range.
    pub axes: &'j [SweepAxis],
    /// What is to be small or large.
    pub goal: &'j TuneGoal,
    /// What keeps within bounds.
    pub bounds: &'j [TuneBound],
    /// The policy and the load, the first seed, the repeats of each point.
    pub choice: &'j CaseChoice,
    /// The most points that are tried.
    pub most: usize,
    /// How many runs at once; `None`: as many as there are processors.
    pub workers: Option<usize>,
}

/// How a search is watched and stopped.
#[derive(Clone, Copy)]
pub struct TuneWatch<'w> {
    /// Once it is set the search ends.
    pub stop: &'w AtomicBool,
    /// Hears how many points were tried.
    pub tried: &'w dyn Fn(usize),
}

/// Values of the parameters, and the figures with them.
#[derive(Clone, Debug, PartialEq)]
pub struct TunedPoint {
    /// The values; none: those of the scenario.
    pub settings: Vec<Setting>,
    /// The mean of the objective over the repeats; `None`: a run has no value.
    pub objective: Option<f64>,
    /// The means of the figures that have bounds.
    pub bounds: Vec<Option<f64>>,
    /// How good that is.
    pub rank: TuneRank,
}

/// What is simulated otherwise than in the search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckedWith {
    /// Other seeds: the first, and how many.
    Seeds(u64, u32),
    /// Another load, with other seeds, too: the first, and how many.
    Load(String, u64, u32),
}

/// The best points, simulated otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneCheck {
    /// How.
    pub with: CheckedWith,
    /// The bounds there: a share is of what the figure is with the scenario's own values.
    pub limits: Vec<f64>,
    /// The scenario's own values.
    pub own: TunedPoint,
    /// The best points of the search, the best first.
    pub best: Vec<TunedPoint>,
    /// For each of them, where the mean of its objective minus that with the scenario's own values lies with
    /// 95 % confidence (Student's t of pairs with the same seed); `None`: a run has no value.
    pub differences: Vec<Option<(f64, f64)>>,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneResult {
    /// The policy and the load.
    pub policy: String,
    /// See there.
    pub load: String,
    /// The first seed, and how many.
    pub seeds: (u64, u32),
    /// Whether the objective is to be large, and its unit.
    pub large: bool,
    /// See there.
    pub unit: String,
    /// The bounds as numbers, and their units.
    pub limits: Vec<(f64, String)>,
    /// The scenario's own values.
    pub own: TunedPoint,
    /// All points, in the order in which they were tried.
    pub tried: Vec<TunedPoint>,
    /// The best that keep all bounds, the best first, as places in `tried`.
    pub best: Vec<usize>,
    /// Those that no other is better than in both the objective and the first bounded figure, as places in
    /// `tried`; without bounds the best alone.
    pub front: Vec<usize>,
    /// How many points a machine refused, and why the first was.
    pub refused: Option<(usize, String)>,
    /// The best, simulated otherwise.
    pub checks: Vec<TuneCheck>,
    /// Loads of the scenario that do not have the figures.
    pub other_loads: Vec<String>,
    /// It was stopped before its end: then nothing was checked.
    pub stopped: bool,
}

/// A figure of a case.
#[derive(Clone, Debug, Default)]
struct Measured {
    /// Its mean over the repeats; `None`: a run has no value.
    mean: Option<f64>,
    unit: String,
    /// Of each repeat, where all have one.
    values: Vec<f64>,
}

/// The figures of a case: the objective, and those that have bounds.
type Means = Vec<Measured>;

/// Searches.
///
/// # Errors
/// The scenario has several policies or loads; a figure that it does not have, or that has no value with its
/// own values; a parameter that is no range; a bound with another unit; values that all are refused.
pub fn tune(job: &TuneJob<'_>, files: &(dyn Files + Sync), watch: &TuneWatch<'_>) -> Result<TuneResult> {
    let ranges = ranges(job)?;
    let (scenario, other_loads) = one_case(job, files)?;
    let (policy, load) = scenario.cases[0];
    let (policy_name, load_name) =
        (scenario.policies[policy].name.clone(), scenario.loads[load].name.clone());
    let choice = CaseChoice {
        policies: vec![policy_name.clone()],
        loads: vec![load_name.clone()],
        ..job.choice.clone()
    };
    let bench = Bench { job, files, watch };
    let Some(own) = bench.means(&[Vec::new()], &choice)? else { return stopped() };
    let own = own.into_iter().next().unwrap_or_default();
    let large = job.goal.is_large(&own[0].unit).map_err(|wrong| Error::Invalid(wrong.0))?;
    let unit = own[0].unit.clone();
    let limits = limits(job, &own)?;
    let judge = Judge { bounds: job.bounds, limits: &limits, large };
    let mut result = TuneResult {
        policy: policy_name,
        load: load_name,
        seeds: (scenario.seed, scenario.repeats),
        large,
        unit,
        limits: limits.iter().copied().zip(own[1..].iter().map(|one| one.unit.clone())).collect(),
        own: judge.point(Vec::new(), &own),
        tried: Vec::new(),
        best: Vec::new(),
        front: Vec::new(),
        refused: None,
        checks: Vec::new(),
        other_loads: Vec::new(),
        stopped: false,
    };
    search::<Error>(ranges.len(), job.most, scenario.seed, &mut |points| {
        let settings: Vec<Vec<Setting>> =
            points.iter().map(|point| written(job.axes, &ranges, point)).collect();
        let Some(means) = bench.means_or_refused(&settings, &choice, &mut result)? else {
            result.stopped = true;
            return Ok(None);
        };
        let new = settings.into_iter().zip(&means).map(|(settings, means)| judge.point(settings, means));
        result.tried.extend(new);
        (watch.tried)(result.tried.len());
        Ok(Some(result.tried[result.tried.len() - means.len()..].iter().map(|point| point.rank).collect()))
    })?;
    choose(&mut result, job.bounds);
    if !result.stopped && !result.best.is_empty() {
        check(&bench, &choice, &other_loads, &mut result)?;
    }
    Ok(result)
}

fn stopped() -> Result<TuneResult> {
    Err(Error::Partial("stopped before anything was tried".into()))
}

fn ranges(job: &TuneJob<'_>) -> Result<Vec<ValueRange>> {
    let axes = job.axes;
    let range = |axis: &SweepAxis| match &axis.values {
        AxisValues::Range(range) => match other_unit(job.text, &axis.path, range) {
            Some(remedy) => Err(Error::Invalid(remedy)),
            None => Ok(range.clone()),
        },
        AxisValues::List(list) => {
            let (path, count) = (&axis.path, list.len());
            let what = match list.as_slice() {
                [one] => format!("the value {one}"),
                _ => format!("a list of {count} values"),
            };
            Err(Error::Invalid(format!(
                "{path} has {what}: a search needs a range of numbers, such as {path}=1..100ms:log (`tidegate sweep` \
                takes lists)"
            )))
        }
    };
    if axes.is_empty() {
        return Err(Error::Invalid(
            "nothing is varied: --set PATH=LOW..HIGH, such as target=1..50ms:log".into(),
        ));
    }
    axes.iter().map(range).collect()
}

/// A range without the unit that the scenario's value has, or of another quantity.
fn other_unit(text: &str, path: &str, range: &ValueRange) -> Option<String> {
    let now = get(text, path)?;
    let unit = now.trim_start_matches(|c: char| c.is_ascii_digit() || "-.".contains(c));
    let (_, kind) = number_of(&now).filter(|_| !unit.is_empty())?;
    let (low, high) = (range.at(0.0), range.at(1.0));
    if !range.unit.is_empty() {
        let differs = number_of(&high).is_some_and(|(_, of)| of != kind);
        return differs.then(|| {
            format!("{path} is {now} in the scenario, and the range {low}..{high} has another unit: write it in {unit}")
        });
    }
    let log = if range.log { ":log" } else { "" };
    Some(format!(
        "{path} is {now} in the scenario, and the range {low}..{high} has no unit: write {path}={low}..{high}{unit}\
            {log}"
    ))
}

fn written(axes: &[SweepAxis], ranges: &[ValueRange], point: &[f64]) -> Vec<Setting> {
    let each = axes.iter().zip(ranges).zip(point);
    each.map(|((axis, range), share)| Setting { path: axis.path.clone(), value: range.at(*share) }).collect()
}

/// The scenario, of which one policy and one load are left, and the other loads of that policy.
fn one_case(job: &TuneJob<'_>, files: &dyn Files) -> Result<(Scenario, Vec<String>)> {
    let cases = [SweepCase { number: 0, settings: Vec::new() }];
    let sweep = sweep_job(job, &cases, &|_| Ok(()), &[]);
    let mut scenario = read(&sweep, files, 0).map_err(Error::Invalid)?;
    let all = scenario.cases.clone();
    job.choice.narrow(&mut scenario).map_err(Error::Invalid)?;
    if let [(policy, load)] = scenario.cases[..] {
        let others = all.iter().filter(|(of, other)| *of == policy && *other != load);
        let names = others.map(|(_, other)| scenario.loads[*other].name.clone()).collect();
        return Ok((scenario, names));
    }
    let names = |all: Vec<&str>| all.join(", ");
    Err(Error::Invalid(format!(
        "a search is for one policy and one load: choose with --policy ({}) and --load ({})",
        names(scenario.policies.iter().map(|policy| policy.name.as_str()).collect()),
        names(scenario.loads.iter().map(|load| load.name.as_str()).collect())
    )))
}

fn sweep_job<'j>(
    job: &TuneJob<'j>,
    cases: &'j [SweepCase],
    narrow: &'j (dyn Fn(&mut Scenario) -> std::result::Result<(), String> + Sync),
    figures: &'j [String],
) -> SweepJob<'j> {
    SweepJob { path: job.path, text: job.text, cases, narrow, figures, shard: (1, 1), workers: job.workers }
}

/// Runs points.
struct Bench<'b> {
    job: &'b TuneJob<'b>,
    files: &'b (dyn Files + Sync),
    watch: &'b TuneWatch<'b>,
}

impl Bench<'_> {
    /// The means of the objective and of the bounded figures, for each point; `None`: it was stopped.
    fn means(&self, points: &[Vec<Setting>], choice: &CaseChoice) -> Result<Option<Vec<Means>>> {
        let cases: Vec<SweepCase> = points
            .iter()
            .cloned()
            .zip(0..)
            .map(|(settings, number)| SweepCase { number, settings })
            .collect();
        let narrow = |scenario: &mut Scenario| choice.narrow(scenario);
        let mut figures = vec![self.job.goal.figure.clone()];
        figures.extend(self.job.bounds.iter().map(|bound| bound.figure.clone()));
        let wanted = figures.clone();
        figures.sort();
        figures.dedup();
        let job = SweepJob { workers: self.job.workers, ..sweep_job(self.job, &cases, &narrow, &figures) };
        let sweep = PreparedSweep::new(job, self.files)?;
        let watch = SweepWatch { stop: self.watch.stop, begin: &|_, _| {}, done: &|| {} };
        let table = sweep.carry_out(None, &watch)?;
        if (table.runs.len() as u64) < sweep.runs() {
            return Ok(None);
        }
        let mut by_case: BTreeMap<u32, Vec<_>> = BTreeMap::new();
        for run in table.runs.values() {
            by_case.entry(run.case).or_default().push(run);
        }
        let mean = |case: u32, name: &String| -> Measured {
            let runs = by_case.get(&case).map_or(&[][..], Vec::as_slice);
            let rows: Vec<_> =
                runs.iter().filter_map(|run| run.figures.iter().find(|row| row.name == *name)).collect();
            let values: Option<Vec<f64>> = rows.iter().map(|row| row.value).collect();
            let values = values.filter(|values| !values.is_empty() && values.len() == runs.len());
            let unit =
                rows.iter().find(|row| row.value.is_some()).map_or(String::new(), |row| row.unit.clone());
            let mean = |values: &Vec<f64>| values.iter().map(|value| value / values.len() as f64).sum();
            Measured { mean: values.as_ref().map(mean), unit, values: values.unwrap_or_default() }
        };
        Ok(Some(
            cases.iter().map(|case| wanted.iter().map(|name| mean(case.number, name)).collect()).collect(),
        ))
    }

    /// The same; a point that a machine refuses has no figures. The first points are not all refused.
    fn means_or_refused(
        &self,
        points: &[Vec<Setting>],
        choice: &CaseChoice,
        result: &mut TuneResult,
    ) -> Result<Option<Vec<Means>>> {
        let whole = self.means(points, choice);
        let Err(Error::Invalid(_)) = whole else { return whole };
        let mut all = Vec::new();
        for point in points {
            match self.means(std::slice::from_ref(point), choice) {
                Ok(Some(one)) => all.extend(one),
                Ok(None) => return Ok(None),
                Err(Error::Invalid(why)) => {
                    let (count, _) = result.refused.get_or_insert((0, why));
                    *count += 1;
                    all.push(vec![Measured::default(); 1 + self.job.bounds.len()]);
                }
                Err(other) => return Err(other),
            }
        }
        let none_so_far = result.tried.is_empty() && all.iter().all(|means| means[0].mean.is_none());
        match (&result.refused, none_so_far) {
            (Some((_, why)), true) => Err(Error::Invalid(why.clone())),
            _ => Ok(Some(all)),
        }
    }
}

/// The bounds as numbers, where these are the figures with the scenario's own values.
fn limits(job: &TuneJob<'_>, own: &Means) -> Result<Vec<f64>> {
    let figure = |of: &str| format!("{of} has no value with the scenario's own values");
    if own[0].mean.is_none() {
        return Err(Error::Invalid(figure(&job.goal.figure)));
    }
    let one = |(bound, Measured { mean, unit, .. }): (&TuneBound, &Measured)| {
        let now = mean.ok_or_else(|| Error::Invalid(figure(&bound.figure)))?;
        bound.limit(now, unit).map_err(|wrong| Error::Invalid(wrong.0))
    };
    job.bounds.iter().zip(&own[1..]).map(one).collect()
}

/// Ranks what was measured.
struct Judge<'j> {
    bounds: &'j [TuneBound],
    limits: &'j [f64],
    large: bool,
}

impl Judge<'_> {
    fn point(&self, settings: Vec<Setting>, means: &Means) -> TunedPoint {
        let objective = means[0].mean;
        let bounds: Vec<Option<f64>> = means[1..].iter().map(|one| one.mean).collect();
        let each = self.bounds.iter().zip(self.limits).zip(&bounds);
        let broken = each
            .map(|((bound, limit), value)| value.map_or(f64::INFINITY, |value| bound.broken(value, *limit)));
        let broken: f64 = broken.sum();
        let cost = objective.map_or(f64::INFINITY, |value| if self.large { -value } else { value });
        let broken = if objective.is_none() { f64::INFINITY } else { broken };
        TunedPoint { settings, objective, bounds, rank: TuneRank { broken, cost } }
    }
}

/// The best points, and the front.
fn choose(result: &mut TuneResult, bounds: &[TuneBound]) {
    let tried = &result.tried;
    let mut feasible: Vec<usize> = (0..tried.len()).filter(|at| tried[*at].rank.is_feasible()).collect();
    feasible.sort_by(|a, b| tried[*a].rank.compare(&tried[*b].rank));
    result.best = feasible.into_iter().take(CHECKED).collect();
    let Some(bound) = bounds.first() else {
        result.front = result.best.iter().copied().take(1).collect();
        return;
    };
    // Both as costs.
    let costs: Vec<Option<(f64, f64)>> = tried
        .iter()
        .map(|point| {
            let value = point.bounds.first().copied().flatten()?;
            point.rank.cost.is_finite().then_some((point.rank.cost, if bound.least { -value } else { value }))
        })
        .collect();
    let dominated = |one: (f64, f64)| {
        let better = |other: &(f64, f64)| other.0 <= one.0 && other.1 <= one.1 && *other != one;
        costs.iter().flatten().any(better)
    };
    result.front = (0..tried.len()).filter(|at| costs[*at].is_some_and(|cost| !dominated(cost))).collect();
}

/// Simulates the best again: with other seeds, and with the scenario's other loads.
fn check(bench: &Bench<'_>, choice: &CaseChoice, loads: &[String], result: &mut TuneResult) -> Result<()> {
    let best: Vec<Vec<Setting>> = result.best.iter().map(|at| result.tried[*at].settings.clone()).collect();
    let (first, count) = result.seeds;
    let others = count.max(FEWEST_SEEDS);
    let other_seeds = first.wrapping_add(u64::from(count));
    let with_seeds = CaseChoice { seed: Some(other_seeds), repeats: Some(others), ..choice.clone() };
    let mut ways = vec![(CheckedWith::Seeds(other_seeds, others), with_seeds.clone())];
    for load in loads {
        let with_load = CaseChoice { loads: vec![load.clone()], ..with_seeds.clone() };
        ways.push((CheckedWith::Load(load.clone(), other_seeds, others), with_load));
    }
    for (with, choice) in ways {
        if bench.watch.stop.load(Ordering::Relaxed) {
            result.stopped = true;
            break;
        }
        // The scenario's own values are a case of its own: they set nothing.
        let measured =
            bench.means(&[Vec::new()], &choice).and_then(|own| Ok((own, bench.means(&best, &choice)?)));
        let (own, means) = match (measured, &with) {
            (Ok((Some(own), Some(means))), _) => (own.into_iter().next().unwrap_or_default(), means),
            (Ok(_), _) => {
                result.stopped = true;
                break;
            }
            // That load does not measure the figures.
            (Err(Error::Invalid(why)), CheckedWith::Load(name, ..))
                if why.contains("no figure is called") =>
            {
                result.other_loads.push(name.clone());
                continue;
            }
            (Err(other), _) => return Err(other),
        };
        let Ok(limits) = limits(bench.job, &own) else {
            if let CheckedWith::Load(name, ..) = with {
                result.other_loads.push(name);
            }
            continue;
        };
        let judge = Judge { bounds: bench.job.bounds, limits: &limits, large: result.large };
        let differences = means.iter().map(|one| difference(&one[0].values, &own[0].values)).collect();
        let best =
            best.iter().zip(&means).map(|(settings, means)| judge.point(settings.clone(), means)).collect();
        let own = judge.point(Vec::new(), &own);
        result.checks.push(TuneCheck { with, limits, own, best, differences });
    }
    Ok(())
}

/// Where the mean of one minus the other lies, of pairs with the same seed.
fn difference(one: &[f64], other: &[f64]) -> Option<(f64, f64)> {
    if one.len() != other.len() {
        return None;
    }
    let each: Vec<f64> = one.iter().zip(other).map(|(one, other)| one - other).collect();
    mean_interval(&each)
}
