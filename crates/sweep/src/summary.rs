//! What the runs of a sweep say together: means with intervals, and differences between pairs of runs that
//! share their random numbers.

use crate::axis::{named_axis, number_of};
use crate::bootstrap::bootstrap_interval;
use crate::harm::{Harm, harm, more_is_better};
use crate::row::{BadRows, SweepRun, SweepTable};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_measure::experiment::Spread;
use tidegate_measure::paired::{Paired, adjusted, mean_interval};

/// What is asked of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepQuery {
    /// Only runs with these values, by column: an axis (or the last key of its path), `policy`, `load`,
    /// `case`, `repeat`.
    pub only: Vec<(String, String)>,
    /// Only these figures; empty: all.
    pub figures: Vec<String>,
    /// A row for each combination of these columns; empty: of all that differ, repeats aside.
    pub by: Vec<String>,
    /// The value of a column that the other values of that column are compared with.
    pub versus: Option<(String, String)>,
    /// The value of a column with which a workload is alone, for the harm that the other values do to it.
    pub harm: Option<(String, String)>,
    /// How intervals are found.
    pub intervals: IntervalMethod,
}

/// How the interval is found in which a mean lies with 95 % confidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntervalMethod {
    /// By Student's t: of few values, if they are about normal.
    #[default]
    Student,
    /// By the means of samples drawn again from the sample: of values however they are distributed, if they
    /// are not few.
    Bootstrap,
}

impl IntervalMethod {
    /// Its name in documents.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            IntervalMethod::Student => "student",
            IntervalMethod::Bootstrap => "bootstrap",
        }
    }

    /// The interval of these values.
    pub(crate) fn of(self, values: &[f64]) -> Option<(f64, f64)> {
        match self {
            IntervalMethod::Student => mean_interval(values),
            IntervalMethod::Bootstrap => bootstrap_interval(values),
        }
    }
}

/// A figure over the runs of one combination.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryRow {
    /// The values of the columns, in the order of [`SweepSummary::columns`].
    pub keys: Vec<String>,
    /// The figure's name.
    pub figure: String,
    /// Its unit.
    pub unit: String,
    /// How many runs have it, and how many have not.
    pub runs: usize,
    /// How many runs have no value for it.
    pub without: usize,
    /// Its mean; `None`, as of the figures behind it: no run has a value.
    pub mean: Option<f64>,
    /// Where the mean lies with 95 % confidence, if repeats are a sample (see [`IntervalMethod`]).
    /// `None` of one run, of runs that all have the same value, and of runs of several cases, which are no
    /// sample of one thing.
    pub interval: Option<(f64, f64)>,
    /// The middle one.
    pub median: Option<f64>,
    /// The smallest and the largest.
    pub range: Option<(f64, f64)>,
    /// With `versus`: how it differs, run by run with the same seed, from the value that is compared with.
    pub difference: Option<Difference>,
    /// With `harm`: how much worse it is than in the runs with the same seed in which the workload is alone.
    /// `None` of these themselves, of figures that are not better or worse by their size, and where the
    /// definition divides by 0.
    pub harm: Option<Harm>,
}

/// How a figure differs between pairs of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The pairs.
    pub paired: Paired,
    /// How probable such a difference is by chance: Student's t of the pairs, corrected for the number of all
    /// rows (Holm). `None` of fewer than two pairs, of pairs that all differ by the same, of several cases.
    pub p_value: Option<f64>,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepSummary {
    /// The columns that distinguish the rows.
    pub columns: Vec<String>,
    /// The rows, in the order of the sweep.
    pub rows: Vec<SummaryRow>,
    /// How their intervals were found.
    pub intervals: IntervalMethod,
}

/// The figures that any of these runs has, each once, in the order in which they come.
pub fn figure_names<'r>(runs: impl IntoIterator<Item = &'r SweepRun>) -> Vec<&'r str> {
    let mut known = BTreeSet::new();
    let all = runs.into_iter().flat_map(|run| &run.figures).map(|figure| figure.name.as_str());
    all.filter(|name| known.insert(*name)).collect()
}

/// Columns beside the axes.
const OWN: [&str; 4] = ["case", "policy", "load", "repeat"];

impl SweepTable {
    /// Summarises.
    ///
    /// # Errors
    /// A column or a figure that the table does not have, or a condition that leaves nothing.
    pub fn summary(&self, query: &SweepQuery) -> Result<SweepSummary, BadRows> {
        if self.runs.is_empty() {
            return Ok(SweepSummary::default());
        }
        let runs = self.chosen(query)?;
        let versus = self.compared(query.versus.as_ref())?;
        let alone = self.compared(query.harm.as_ref())?;
        let columns = self.columns_of(query, &runs)?;
        let known = figure_names(runs.iter().copied());
        if let Some(unknown) = query.figures.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(BadRows(format!("no run has the figure {unknown}: there are {}", known.join(", "))));
        }
        let wanted = |name: &&str| query.figures.is_empty() || query.figures.iter().any(|one| one == name);
        let names: Vec<&str> = known.into_iter().filter(wanted).collect();
        let groups = grouped(runs, &columns);
        let pairs = versus.as_ref().map(|(column, value)| Pairs::new(self, column, value)).transpose()?;
        let alone = alone.as_ref().map(|(column, value)| Pairs::new(self, column, value)).transpose()?;
        let mut rows = Vec::new();
        for (keys, runs) in &groups {
            for name in &names {
                rows.extend(row(keys, runs, name, (query.intervals, pairs.as_ref(), alone.as_ref()))?);
            }
        }
        let raw = rows.iter().map(|row| row.difference.and_then(|one| one.p_value));
        let corrected = adjusted(&raw.collect::<Vec<_>>());
        for (row, p_value) in rows.iter_mut().zip(corrected) {
            if let Some(difference) = &mut row.difference {
                difference.p_value = p_value;
            }
        }
        let columns = columns.into_iter().map(|column| column.name).collect();
        Ok(SweepSummary { columns, rows, intervals: query.intervals })
    }

    /// A column and the value of it that others are compared with.
    fn compared<'q>(
        &self,
        wanted: Option<&'q (String, String)>,
    ) -> Result<Option<(Column, &'q str)>, BadRows> {
        let Some((name, value)) = wanted else { return Ok(None) };
        let column = self.column(name)?;
        match column.is_of_run() {
            true => Err(BadRows(format!(
                "a {} has no partner with the same random numbers: compare policies, loads or a parameter's values",
                column.name
            ))),
            false => Ok(Some((column, value))),
        }
    }

    /// The runs that a query is about.
    pub(crate) fn chosen(&self, query: &SweepQuery) -> Result<Vec<&SweepRun>, BadRows> {
        let only: Vec<(Column, &str)> = query
            .only
            .iter()
            .map(|(name, value)| Ok((self.column(name)?, value.as_str())))
            .collect::<Result<_, BadRows>>()?;
        let meant = |run: &&SweepRun| only.iter().all(|(column, value)| is(&column.of(run), value));
        let runs: Vec<&SweepRun> = self.runs.values().filter(meant).collect();
        match runs.is_empty() {
            true => Err(BadRows("no run is left: look at the values that the files have".into())),
            false => Ok(runs),
        }
    }

    /// The columns that distinguish the rows.
    pub(crate) fn columns_of(&self, query: &SweepQuery, runs: &[&SweepRun]) -> Result<Vec<Column>, BadRows> {
        if !query.by.is_empty() {
            return query.by.iter().map(|name| self.column(name)).collect();
        }
        let names = self.head.axes.iter().map(String::as_str).chain(["policy", "load"]);
        let all: Vec<Column> = names.map(|name| self.column(name)).collect::<Result<_, _>>()?;
        let differs = |column: &Column| {
            let first = runs.first().map(|run| column.of(run));
            runs.iter().any(|run| Some(column.of(run)) != first)
        };
        Ok(all.into_iter().filter(differs).collect())
    }

    pub(crate) fn column(&self, name: &str) -> Result<Column, BadRows> {
        let axes = &self.head.axes;
        if OWN.contains(&name) && !axes.iter().any(|path| path == name) {
            return Ok(Column { name: name.to_owned(), axis: None });
        }
        let path = named_axis(name, axes.iter().map(String::as_str)).map_err(|wrong| BadRows(wrong.0))?;
        match axes.iter().position(|axis| Some(axis.as_str()) == path) {
            Some(at) => Ok(Column { name: axes[at].clone(), axis: Some(at) }),
            None => Err(BadRows(format!(
                "no column is called {name}: there are {}",
                axes.iter().map(String::as_str).chain(OWN).collect::<Vec<_>>().join(", ")
            ))),
        }
    }
}

/// Runs with the same values in some columns, and these values.
pub(crate) type RunGroup<'r> = (Vec<String>, Vec<&'r SweepRun>);

/// Groups of runs that have the same values in these columns, in the order in which their first run comes.
pub(crate) fn grouped<'r>(runs: Vec<&'r SweepRun>, columns: &[Column]) -> Vec<RunGroup<'r>> {
    let mut groups: Vec<RunGroup<'r>> = Vec::new();
    let mut places: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for run in runs {
        let keys: Vec<String> = columns.iter().map(|column| column.of(run)).collect();
        let at = *places.entry(keys.clone()).or_insert(groups.len());
        if at == groups.len() {
            groups.push((keys, Vec::new()));
        }
        groups[at].1.push(run);
    }
    groups
}

/// A column of the table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    axis: Option<usize>,
}

impl Column {
    /// Is it the number of a case or of a repeat?
    fn is_of_run(&self) -> bool {
        self.axis.is_none() && matches!(self.name.as_str(), "case" | "repeat")
    }

    pub(crate) fn of(&self, run: &SweepRun) -> String {
        match (self.axis, self.name.as_str()) {
            (Some(at), _) => run.values.get(at).cloned().unwrap_or_default(),
            (None, "case") => run.case.to_string(),
            (None, "policy") => run.policy.clone(),
            (None, "load") => run.load.clone(),
            (None, _) => run.repeat.to_string(),
        }
    }
}

/// Whether a value is the one asked for, also if it is written otherwise (`0.02s`, `20ms`).
fn is(value: &str, wanted: &str) -> bool {
    value == wanted || matches!((number_of(value), number_of(wanted)), (Some(a), Some(b)) if a == b)
}

/// The runs that others are compared with, by all that pairs share.
pub(crate) struct Pairs<'t> {
    column: &'t Column,
    base: BTreeMap<Vec<String>, &'t SweepRun>,
}

impl<'t> Pairs<'t> {
    fn new(table: &'t SweepTable, column: &'t Column, value: &str) -> Result<Pairs<'t>, BadRows> {
        let mut pairs = Pairs { column, base: BTreeMap::new() };
        for run in table.runs.values().filter(|run| is(&column.of(run), value)) {
            pairs.base.insert(pairs.shared(run), run);
        }
        match pairs.base.is_empty() {
            true => Err(BadRows(format!(
                "no run has {} = {value}, which others are to be compared with",
                column.name
            ))),
            false => Ok(pairs),
        }
    }

    /// What a run and its partner have in common: everything but the column.
    fn shared(&self, run: &SweepRun) -> Vec<String> {
        let mut shared = vec![run.repeat.to_string(), run.seed.to_string()];
        shared.extend((self.column.name != "policy").then(|| run.policy.clone()));
        shared.extend((self.column.name != "load").then(|| run.load.clone()));
        let values = run.values.iter().enumerate();
        shared.extend(values.filter(|(at, _)| self.column.axis != Some(*at)).map(|(_, value)| value.clone()));
        shared
    }

    /// The partner of a run; none of those that are compared with.
    fn partner(&self, run: &SweepRun) -> Option<&'t SweepRun> {
        self.base.get(&self.shared(run)).copied().filter(|base| base.run != run.run)
    }
}

pub(crate) fn value_of(run: &SweepRun, name: &str) -> Option<f64> {
    run.figures.iter().find(|figure| figure.name == name)?.value
}

/// Whether values are the same but for rounding, which no interval is made of.
fn all_equal(values: &[f64]) -> bool {
    const ROUNDING: f64 = 1e-12;
    let (low, high) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)));
    high - low <= ROUNDING * high.abs().max(low.abs())
}

/// A figure over runs; `None`: none of them has a row for it.
pub(crate) fn row(
    keys: &[String],
    runs: &[&SweepRun],
    name: &str,
    (intervals, pairs, alone): (IntervalMethod, Option<&Pairs<'_>>, Option<&Pairs<'_>>),
) -> Result<Option<SummaryRow>, BadRows> {
    let figures = || runs.iter().flat_map(|run| &run.figures).filter(|figure| figure.name == name);
    let asked = figures().count();
    let mut values: Vec<f64> = figures().filter_map(|figure| figure.value).collect();
    let Some(first) = figures().next() else { return Ok(None) };
    let mut units = figures().filter(|figure| figure.value.is_some()).map(|figure| figure.unit.as_str());
    let unit = units.next().unwrap_or(&first.unit).to_owned();
    if let Some(other) = units.find(|other| *other != unit) {
        return Err(BadRows(format!("{name} has two units, `{unit}` and `{other}`")));
    }
    // The values of several cases are no sample of one thing.
    let is_sample = runs
        .iter()
        .all(|one| (one.case, &one.policy, &one.load) == (runs[0].case, &runs[0].policy, &runs[0].load));
    let difference = pairs.and_then(|pairs| {
        let pair = |run: &&SweepRun| Some((value_of(pairs.partner(run)?, name)?, value_of(run, name)?));
        let pairs: Vec<(f64, f64)> = runs.iter().filter_map(pair).collect();
        let paired = Paired::new(&pairs)?;
        // Pairs that all differ by the same say nothing of how others would.
        let differences: Vec<f64> = pairs.iter().map(|(base, this)| this - base).collect();
        let varies = |_: &(f64, f64)| !all_equal(&differences) || paired.difference == 0.0;
        let paired = Paired { interval: paired.interval.filter(|_| is_sample).filter(varies), ..paired };
        let p_value = paired.p_value();
        let interval = paired.interval.and_then(|_| intervals.of(&differences));
        Some(Difference { paired: Paired { interval, ..paired }, p_value })
    });
    let harm = alone.zip(more_is_better(name, &unit)).and_then(|(alone, more)| {
        let one = |run: &&SweepRun| harm(value_of(alone.partner(run)?, name)?, value_of(run, name)?, more);
        let each: Vec<f64> = runs.iter().filter_map(one).collect();
        let interval = intervals.of(&each).filter(|_| is_sample && !all_equal(&each));
        let mean = each.iter().map(|harm| harm / each.len() as f64).sum();
        (!each.is_empty()).then_some(Harm { pairs: each.len(), mean, interval })
    });
    let varies = |(low, high): &(f64, f64)| !all_equal(&values) && (high - low).is_finite();
    let interval = intervals.of(&values).filter(|_| is_sample).filter(varies);
    values.sort_by(f64::total_cmp);
    let spread = Spread::new(values.clone(), "");
    Ok(Some(SummaryRow {
        keys: keys.to_vec(),
        figure: name.to_owned(),
        unit,
        runs: values.len(),
        without: asked - values.len(),
        mean: spread.map(|spread| values.iter().map(|value| value / spread.count as f64).sum()),
        interval,
        median: spread.map(|spread| spread.median),
        range: spread.map(|spread| (spread.least, spread.most)),
        difference,
        harm,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{FigureRow, SweepHead};

    /// Two policies, two values of an axis, four repeats; the second policy is a tenth quicker.
    fn table() -> SweepTable {
        let mut table = SweepTable {
            head: SweepHead { id: "x".into(), runs: 16, axes: vec!["home.rtt".into()] },
            runs: BTreeMap::new(),
        };
        for run in 0..16_u64 {
            let (case, second, repeat) = ((run / 8) as u32, run / 4 % 2 == 1, (run % 4) as u32);
            let noise = [0.0, 3.0, 1.0, 5.0][repeat as usize];
            let value = (f64::from(case + 1) * 20.0 + noise) * if second { 0.9 } else { 1.0 };
            let policy = if second { "fair" } else { "none" }.to_owned();
            let values = vec![format!("{}ms", 10 * (case + 1))];
            let figures = vec![FigureRow { name: "ping.p95".into(), value: Some(value), unit: "s".into() }];
            let seed = u64::from(repeat) + 1;
            table.runs.insert(
                run,
                SweepRun { run, case, policy, load: "up".into(), repeat, seed, values, figures },
            );
        }
        table
    }

    #[test]
    fn rows_have_a_mean_and_an_interval() {
        let summary = table().summary(&SweepQuery::default()).unwrap_or_default();
        assert_eq!(summary.columns, ["home.rtt", "policy"]);
        let keys: Vec<String> = summary.rows.iter().map(|row| row.keys.join(" ")).collect();
        assert_eq!(keys, ["10ms none", "10ms fair", "20ms none", "20ms fair"]);
        let first = &summary.rows[0];
        let (mean, median) = (first.mean, first.median);
        assert_eq!((first.runs, mean, median, first.range), (4, Some(22.25), Some(22.0), Some((20.0, 25.0))));
        // Of 20, 23, 21, 25: s = 2.217, t(3) = 3.182.
        let (low, high) = first.interval.unwrap_or_default();
        assert!((low - 18.722).abs() < 0.001 && (high - 25.778).abs() < 0.001, "{low} {high}");
        let query = SweepQuery { by: vec!["policy".into()], ..SweepQuery::default() };
        let by = table().summary(&query).unwrap_or_default();
        let rows: Vec<_> = by.rows.iter().map(|row| (row.runs, row.interval)).collect();
        assert_eq!(rows, [(8, None), (8, None)]);
        let query = SweepQuery { only: vec![("rtt".into(), "0.01s".into())], ..SweepQuery::default() };
        assert_eq!(table().summary(&query).unwrap_or_default().rows.len(), 2);
    }

    /// The mean of five equal values is not quite that value.
    #[test]
    fn rounding_is_no_spread() {
        let mut table = table();
        for run in table.runs.values_mut() {
            run.figures[0].value = Some(0.892_543_859_649_122_9);
        }
        let by = SweepQuery { by: vec!["case".into(), "policy".into()], ..SweepQuery::default() };
        let summary = table.summary(&by).unwrap_or_default();
        assert!(summary.rows.iter().all(|row| row.interval.is_none()), "{:?}", summary.rows[0]);
    }

    /// Too few runs for the bootstrap: no interval; the p-value is Student's.
    #[test]
    fn the_bootstrap_needs_some_runs() {
        let query = |intervals| SweepQuery {
            versus: Some(("policy".into(), "none".into())),
            intervals,
            ..SweepQuery::default()
        };
        let of = |intervals| {
            let summary = table().summary(&query(intervals)).unwrap_or_default();
            let difference = summary.rows[1].difference.unwrap_or_else(|| panic!("pairs"));
            (summary.rows[1].interval.is_some(), difference.paired.interval.is_some(), difference.p_value)
        };
        let (student, bootstrap) = (of(IntervalMethod::Student), of(IntervalMethod::Bootstrap));
        assert_eq!((student.0, student.1, bootstrap.0, bootstrap.1), (true, true, false, false));
        assert_eq!(student.2, bootstrap.2);
    }

    /// A policy under which no reply comes is in the table, without a mean.
    #[test]
    fn what_has_no_value_has_a_row() {
        let mut table = table();
        for run in table.runs.values_mut().filter(|run| run.policy == "fair") {
            run.figures[0] = FigureRow { value: None, unit: String::new(), ..run.figures[0].clone() };
        }
        let summary = table.summary(&SweepQuery::default()).unwrap_or_default();
        let rows: Vec<_> = summary.rows.iter().map(|row| (row.runs, row.without, row.mean)).collect();
        assert_eq!(rows[..2], [(4, 0, Some(22.25)), (0, 4, None)]);
    }

    #[test]
    fn pairs_share_their_seed() {
        let query = SweepQuery { versus: Some(("policy".into(), "none".into())), ..SweepQuery::default() };
        let summary = table().summary(&query).unwrap_or_default();
        assert!(summary.rows[0].difference.is_none());
        let fair = summary.rows[1].difference.unwrap_or_else(|| panic!("pairs"));
        assert_eq!((fair.paired.rounds, fair.paired.first), (4, 22.25));
        assert!((fair.paired.difference + 2.225).abs() < 1e-9);
        // Surer than the rows' own intervals, which overlap: the repeats vary alike.
        assert!(fair.p_value.is_some_and(|p| p < 0.01) && fair.paired.is_sure());
        assert!(summary.rows[1].interval.is_some_and(|(_, high)| high > 22.25));
    }

    /// Loads in place of policies: the figures are seconds, of which the second load has 9 tenths.
    #[test]
    fn harm_is_that_of_pairs() {
        let mut table = table();
        for run in table.runs.values_mut() {
            run.load = if run.policy == "fair" { "alone" } else { "both" }.to_owned();
            run.policy = "none".to_owned();
        }
        let query = SweepQuery { harm: Some(("load".into(), "alone".into())), ..SweepQuery::default() };
        let summary = table.summary(&query).unwrap_or_default();
        let harms: Vec<Option<Harm>> = summary.rows.iter().map(|row| row.harm).collect();
        assert_eq!(summary.rows[1].keys, ["10ms", "alone"]);
        assert!(harms[1].is_none() && harms[3].is_none(), "{harms:?}");
        for harm in [harms[0], harms[2]].into_iter().flatten() {
            // All pairs have the same harm, which is no sample of anything.
            assert!(
                harm.pairs == 4 && (harm.mean - 0.1).abs() < 1e-12 && harm.interval.is_none(),
                "{harm:?}"
            );
        }
        assert!(harms[0].is_some());
        if let Some(run) = table.runs.get_mut(&0) {
            run.figures[0].value = Some(36.0);
        }
        let first = table.summary(&query).unwrap_or_default().rows[0].harm;
        assert!(first.is_some_and(|harm| harm.mean > 0.1 && harm.interval.is_some()), "{first:?}");
        let repeats = SweepQuery { harm: Some(("repeat".into(), "1".into())), ..SweepQuery::default() };
        assert!(table.summary(&repeats).is_err_and(|wrong| wrong.0.contains("a repeat has no partner")));
    }

    #[test]
    fn what_is_not_there_is_said() {
        let of = |query: SweepQuery| match table().summary(&query) {
            Err(wrong) => wrong.0,
            Ok(_) => String::new(),
        };
        let figures = SweepQuery { figures: vec!["ping.p9".into()], ..SweepQuery::default() };
        assert!(of(figures).contains("no run has the figure ping.p9: there are ping.p95"));
        let by = SweepQuery { by: vec!["up".into()], ..SweepQuery::default() };
        assert!(of(by).contains("no column is called up: there are home.rtt, case"));
        let only = SweepQuery { only: vec![("policy".into(), "x".into())], ..SweepQuery::default() };
        assert!(of(only).contains("no run is left"));
        let versus = SweepQuery { versus: Some(("rtt".into(), "1s".into())), ..SweepQuery::default() };
        assert!(of(versus).contains("no run has home.rtt = 1s"));
        let repeats = SweepQuery { versus: Some(("repeat".into(), "1".into())), ..SweepQuery::default() };
        assert!(of(repeats).contains("a repeat has no partner"));
        let mut two = table();
        two.head.axes = vec!["links.x.delay".into(), "links.y.delay".into()];
        two.runs.values_mut().for_each(|run| run.values.push("1ms".into()));
        let by = SweepQuery { by: vec!["delay".into()], ..SweepQuery::default() };
        let wrong = two.summary(&by).err().map(|wrong| wrong.0).unwrap_or_default();
        assert_eq!(wrong, "`delay` is several: write links.x.delay or links.y.delay");
    }
}
