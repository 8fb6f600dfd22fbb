//! What was expected against what was found.

use crate::model::{Expectation, FigureRef, Scenario};
use crate::tables::Diagnostic;
use tidegate_measure::experiment::{Comparison, Experiment, NoSuchFigure, RunRecord, Spread, figure};

/// All expectations whose cases were run.
pub(crate) fn comparisons(scenario: &Scenario, experiment: &Experiment) -> Vec<Comparison> {
    scenario.expect.iter().filter_map(|expected| compare(scenario, experiment, expected)).collect()
}

/// The first expectation about a figure that is not measured, or in another unit; which figures there are is
/// known only after a run.
///
/// # Errors
/// The expectation's place, and the figures there are.
pub fn check(scenario: &Scenario, experiment: &Experiment) -> Result<(), Diagnostic> {
    let selected =
        scenario.expect.iter().flat_map(|expected| std::iter::once(&expected.figure).chain(&expected.over));
    for figure in selected {
        for run in runs(scenario, experiment, figure) {
            if let Err(NoSuchFigure::Unknown { known }) = of_run(run, figure) {
                let of = figure.name.rsplit_once('.').map_or(figure.name.as_str(), |(of, _)| of);
                let near: Vec<&str> =
                    known.iter().filter(|name| name.starts_with(of)).map(String::as_str).take(24).collect();
                let groups = known.iter().filter_map(|name| name.rsplit_once('.').map(|(of, _)| of));
                let mut things: Vec<&str> = groups.collect();
                things.dedup();
                let remedy = match near.as_slice() {
                    [] => {
                        format!("what is measured is {} (each with .mean, .p95, .rate …)", things.join(", "))
                    }
                    near => format!("there are {}", near.join(", ")),
                };
                let why = format!("no measurement is named `{}`", figure.name);
                return Err(Diagnostic::new(figure.at.clone(), why, remedy));
            }
        }
    }
    scenario.expect.iter().try_for_each(|expected| unit_fits(scenario, experiment, expected))
}

/// Whether what is expected of a figure is written in its unit, or in none.
fn unit_fits(scenario: &Scenario, experiment: &Experiment, expected: &Expectation) -> Result<(), Diagnostic> {
    let found = runs(scenario, experiment, &expected.figure);
    let measured = found.into_iter().find_map(|run| of_run(run, &expected.figure).ok());
    let name = &expected.figure.name;
    // Scores have no share that a per cent would be one of.
    let scored = name.rsplit_once('.').is_some_and(|(_, statistic)| statistic.starts_with("qoo-"));
    let (own, how) = match measured.map(|quantity| quantity.unit) {
        _ if expected.over.is_some() => ("%", "write a ratio, as 0.9 or 90%"),
        _ if scored => ("", "write a score from 0 to 100, without a unit"),
        None => return Ok(()),
        Some("s") => ("s", "write a time, as 20ms"),
        Some("bit/s") => ("bit/s", "write a rate, as 4mbit"),
        Some("bytes") => ("bytes", "write an amount of data, as 24kB"),
        Some(_) => ("%", "write a number, or a share in %"),
    };
    match expected.units.iter().find(|(unit, _)| *unit != own) {
        Some((_, at)) => Err(Diagnostic::new(at.clone(), format!("`{name}` is not in that unit"), how)),
        None => Ok(()),
    }
}

fn runs<'e>(scenario: &Scenario, experiment: &'e Experiment, figure: &FigureRef) -> Vec<&'e RunRecord> {
    let (policy, load) = (&scenario.policies[figure.policy].name, &scenario.loads[figure.load].name);
    experiment.runs.iter().filter(|run| run.policy == *policy && run.load == *load).collect()
}

fn of_run(
    run: &RunRecord,
    wanted: &FigureRef,
) -> Result<tidegate_measure::experiment::Quantity, NoSuchFigure> {
    let window = wanted.between.map_or(run.window, |(from, to)| (from.0, to.0));
    figure(run, &wanted.name, window)
}

fn compare(scenario: &Scenario, experiment: &Experiment, expected: &Expectation) -> Option<Comparison> {
    let found = runs(scenario, experiment, &expected.figure);
    if found.is_empty() {
        return None;
    }
    let (mut unit, mut numbers, mut missing) = ("", Vec::new(), None);
    let under = expected.over.as_ref().map(|over| runs(scenario, experiment, over));
    if under.as_ref().is_some_and(Vec::is_empty) {
        return None;
    }
    for (at, run) in found.into_iter().enumerate() {
        let value = of_run(run, &expected.figure);
        // Repeats are compared with the same seed.
        let over = match (&expected.over, &under) {
            (Some(asked), Some(runs)) => runs.get(at).map(|run| of_run(run, asked)),
            _ => None,
        };
        match (value, over) {
            (Ok(value), None) if expected.over.is_none() => {
                unit = value.unit;
                numbers.push(value.number);
            }
            (Ok(value), Some(Ok(over))) if over.number != 0.0 => numbers.push(value.number / over.number),
            (Err(NoSuchFigure::Nothing { why }), _) | (_, Some(Err(NoSuchFigure::Nothing { why }))) => {
                missing = Some(why);
            }
            _ => {}
        }
    }
    let spread = Spread::new(numbers, unit);
    let (low, high) = expected.within;
    let matches = spread.is_some_and(|spread| (low..=high).contains(&spread.median));
    let why = expected.why.clone().or_else(|| missing.filter(|_| spread.is_none()).map(str::to_owned));
    Some(Comparison {
        id: expected.id.clone(),
        what: expected.what.clone(),
        figure: words(scenario, expected),
        unit: unit.to_owned(),
        published: expected.published,
        found: spread.map(|spread| spread.median),
        spread: spread.map(|spread| (spread.least, spread.most)),
        within: expected.within,
        held: matches,
        gated: expected.gate,
        why,
    })
}

/// The figure in the scenario's words.
fn words(scenario: &Scenario, expected: &Expectation) -> String {
    let of = |figure: &FigureRef| {
        let case = format!("{}/{}", scenario.policies[figure.policy].name, scenario.loads[figure.load].name);
        format!("{} of {case}", figure.name)
    };
    match &expected.over {
        Some(over) => format!("{} over {}", of(&expected.figure), of(over)),
        None => of(&expected.figure),
    }
}
