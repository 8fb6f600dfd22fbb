//! What all views of an experiment share: which run represents a case, how figures are written, the look of
//! each series, the events.

use tidegate_measure::experiment::{
    EventRecord, Experiment, ExperimentCase, LoadRecord, ProbeRecord, RunRecord, Spread, figure, group_of,
};
use tidegate_measure::numbers::{USUAL, format_duration_in, percent_in, plain_in, rate_in, size_in};

/// A load with its cases.
pub struct Under<'e> {
    /// The load.
    pub load: &'e LoadRecord,
    /// Each policy's place in the experiment, and its case.
    pub cases: Vec<(usize, ExperimentCase<'e>)>,
}

impl<'e> Under<'e> {
    /// The loads that were run, in order.
    pub fn all(experiment: &'e Experiment) -> Vec<Under<'e>> {
        let under = |load: &'e LoadRecord| {
            let case = |(n, policy): (usize, &'e tidegate_measure::experiment::PolicyRecord)| {
                Some((n, experiment.case(&policy.name, &load.name)?))
            };
            Under { load, cases: experiment.policies.iter().enumerate().filter_map(case).collect() }
        };
        experiment.loads.iter().map(under).filter(|under| !under.cases.is_empty()).collect()
    }

    /// The run that represents each case, with its policy's index and title.
    pub fn typical(&self) -> Vec<RunView<'e>> {
        let shown = |(n, case): &(usize, ExperimentCase<'e>)| RunView {
            policy: *n,
            title: title(&case.policy.title, &case.policy.name),
            label: label(&case.policy.title, &case.policy.name),
            run: typical(case),
        };
        self.cases.iter().map(shown).collect()
    }

    /// The ids of all probes, in order.
    pub fn probes(&self) -> Vec<&'e str> {
        distinct(
            self.cases
                .iter()
                .flat_map(|(_, case)| case.runs.iter())
                .flat_map(|run| &run.probes)
                .map(|p| &*p.id),
        )
    }

    /// The groups of transfers, in order.
    pub fn groups(&self) -> Vec<&'e str> {
        let runs = self.cases.iter().flat_map(|(_, case)| case.runs.iter());
        distinct(runs.flat_map(|run| &run.transfers).map(|transfer| group_of(&transfer.id)))
    }

    /// What it is called.
    pub fn title(&self) -> &'e str {
        title(&self.load.title, &self.load.name)
    }
}

/// A run that is shown.
#[derive(Clone, Copy, Debug)]
pub struct RunView<'e> {
    /// The policy's place in the experiment.
    pub policy: usize,
    /// The policy's title.
    pub title: &'e str,
    /// What it is called where there is little room.
    pub label: &'e str,
    /// The run that is shown.
    pub run: &'e RunRecord,
}

/// What something is called, for people.
pub fn title<'t>(title: &'t str, name: &'t str) -> &'t str {
    if title.is_empty() { name } else { title }
}

/// Characters that fit beside a line.
const SHORT: usize = 14;

/// What something is called on a chart: its title if that is short, else its name if that is shorter.
pub fn label<'t>(long: &'t str, name: &'t str) -> &'t str {
    let long = title(long, name);
    if long.chars().count() > SHORT && name.chars().count() < long.chars().count() { name } else { long }
}

/// Each once, in order of appearance.
pub fn distinct<'t>(names: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    let mut known: Vec<&str> = Vec::new();
    for name in names {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known
}

/// The repeat in the middle, by the mean answer of the first probe (or, without probes, what the first
/// transfer carried).
pub fn typical<'e>(case: &ExperimentCase<'e>) -> &'e RunRecord {
    let by = |run: &RunRecord| {
        let probe = run.probes.first().map(|probe| format!("{}.mean", probe.id));
        let transfer = run.transfers.first().map(|transfer| format!("{}.bytes", transfer.id));
        let name = probe.or(transfer)?;
        figure(run, &name, run.window).ok().map(|value| value.number)
    };
    let mut runs: Vec<(Option<f64>, &'e RunRecord)> = case.runs.iter().map(|run| (by(run), *run)).collect();
    // Nothing was answered: that is the longest wait.
    runs.sort_by(|a, b| a.0.unwrap_or(f64::INFINITY).total_cmp(&b.0.unwrap_or(f64::INFINITY)));
    runs[(runs.len() - 1) / 2].1
}

/// A figure in words, with so many significant digits; `name` distinguishes shares from counts.
pub fn written(name: &str, number: f64, unit: &str, digits: usize) -> String {
    match unit {
        _ if number < 0.0 => format!("−{}", written(name, -number, unit, digits)),
        "s" => format_duration_in(number * 1e9, digits),
        "bit/s" => rate_in(number, digits),
        "bytes" => size_in(number, digits),
        _ if is_share(name) => percent_in(number, digits),
        _ => plain_in(number, digits),
    }
}

/// Whether a figure without a unit is a share of one, which people write in per cent.
pub fn is_share(name: &str) -> bool {
    let statistic = name.rsplit('.').next().unwrap_or_default();
    ["loss", "loss-low", "loss-high", "share", "utilisation", "there-loss", "back-loss"].contains(&statistic)
}

/// A figure over repeats: the median, and from the least to the most where they differ.
pub fn spread(name: &str, spread: &Spread) -> String {
    let [median, least, most] =
        [spread.median, spread.least, spread.most].map(|n| written(name, n, spread.unit, USUAL));
    if spread.count > 1 && least != most { format!("{median} ({least} – {most})") } else { median }
}

/// When a run ends, its series and answers considered.
pub fn end_of(run: &RunRecord) -> u64 {
    let series = run.transfers.iter().map(|transfer| transfer.series.len());
    let series = series.chain(run.queues.iter().map(|queue| queue.backlog.len()));
    let series = series.chain(run.classes.iter().map(|class| class.sent.len()));
    let steps = series.max().unwrap_or(0) as u64 * run.step_ns;
    let requested =
        run.probes.iter().filter_map(|probe| probe.answers.last()).map(|(sent, _)| *sent).max().unwrap_or(0);
    steps.max(requested).max(run.window.1).max(1)
}

/// An event on a chart over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// When, ns.
    pub at: f64,
    /// The number under which the text beside the chart names it.
    pub number: String,
}

/// A probe of a run by its id.
pub fn probe<'e>(shown: &RunView<'e>, id: &str) -> Option<&'e ProbeRecord> {
    shown.run.probes.iter().find(|probe| probe.id == id)
}

/// A probe's name and what its answers are: `ping to b, round trip`.
pub fn called(probe: &ProbeRecord) -> String {
    let name = title(&probe.title, &probe.id);
    if probe.unit.is_empty() { name.to_owned() } else { format!("{name}, {}", probe.unit) }
}

/// A probe's answers in all repeats of a case.
pub fn answers(case: &ExperimentCase<'_>, id: &str) -> Vec<u64> {
    let probes = case.runs.iter().flat_map(|run| run.probes.iter().map(move |probe| (run, probe)));
    probes
        .filter(|(_, p)| p.id == id)
        .flat_map(|(run, p)| p.within(run.window))
        .filter_map(|(_, took)| took)
        .collect()
}

/// What happened in some runs, in order of time: when, what, and to which policies if not to all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Happened<'e> {
    /// Its number; events that happened almost at once share a mark: `2–7`.
    pub moments: Vec<Moment>,
    /// Event and the policies it concerns; none: all.
    pub events: Vec<(&'e EventRecord, Vec<&'e str>)>,
}

/// Marks nearer than this share of a run's length are one.
const NEAR: f64 = 0.03;

/// The events of runs, queries and their output included.
pub fn happened<'e>(shown: &[RunView<'e>]) -> Happened<'e> {
    let mut events: Vec<(&'e EventRecord, Vec<&'e str>)> = Vec::new();
    for one in shown {
        for event in &one.run.events {
            let same = |(known, _): &&mut (&EventRecord, Vec<&str>)| {
                (known.at, &known.on, &known.what) == (event.at, &event.on, &event.what)
            };
            match events.iter_mut().find(same) {
                Some((_, of)) => of.push(one.title),
                None => events.push((event, vec![one.title])),
            }
        }
    }
    events.sort_by_key(|(event, _)| event.at);
    events.iter_mut().filter(|(_, of)| of.len() == shown.len()).for_each(|(_, of)| of.clear());
    let end = shown.iter().map(|one| end_of(one.run)).max().unwrap_or(1) as f64;
    let mut marks: Vec<(f64, usize, usize)> = Vec::new();
    for (n, (event, _)) in events.iter().enumerate() {
        match marks.last_mut() {
            Some((at, _, last)) if event.at as f64 - *at < NEAR * end => *last = n + 1,
            _ => marks.push((event.at as f64, n + 1, n + 1)),
        }
    }
    let number = |first: usize, last: usize| {
        if first == last { first.to_string() } else { format!("{first}–{last}") }
    };
    let moments =
        marks.into_iter().map(|(at, first, last)| Moment { at, number: number(first, last) }).collect();
    Happened { moments, events }
}
