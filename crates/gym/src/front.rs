//! Comparisons: of controllers over many cases.

use crate::score::GymScore;
use serde::Serialize;

/// The scores of one case, in the order of the controllers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseRow {
    /// The case's name.
    pub case: String,
    /// What the line was: its preset or file.
    pub line: String,
    /// The load.
    pub load: String,
    /// A score for each controller; nothing of one that failed.
    pub scores: Vec<Option<GymScore>>,
}

/// A controller over all cases.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ControllerSummary {
    /// Its name.
    pub name: String,
    /// Cases that it was scored in, and in which it failed.
    pub cases: usize,
    /// Cases without a score.
    pub failed: usize,
    /// The median over the cases of the call's p50, p95 and p99, ms.
    pub call_ms: [f64; 3],
    /// The 90th percentile over the cases of the call's p95, ms: bad cases.
    pub call_p95_bad_ms: f64,
    /// The mean over the cases.
    pub utilisation: f64,
    /// How much later than with the yardstick, ms: the median over the cases of the difference of p95.
    pub regret_ms: Option<f64>,
    /// What the yardstick used beyond it, as a share of the capacity: the mean.
    pub regret_utilisation: Option<f64>,
    /// Against the best fixed rate that carries as much: the median over the cases of the ratio of p95 (less
    /// than 1: better than every such rate).
    pub over_fixed: Option<f64>,
    /// No other controller has both a lower median p95 and a higher utilisation.
    pub on_front: bool,
}

/// Two utilisations are as good as equal within this.
pub(crate) const AS_MUCH: f64 = 0.02;

/// How often the first controller was better than another, at equal utilisation or more.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GymComparison {
    /// One row for each controller.
    pub controllers: Vec<ControllerSummary>,
    /// For each controller and each other one: the share of the cases in which the first has the lower p95
    /// and carries at least as much (within 2 % of the capacity).
    pub better: Vec<Vec<Option<f64>>>,
    /// Against each controller: the share of the cases in which tidegate's own has the lower p95 at one of
    /// its aims that carry at least as much; nothing against itself, and where there is one aim only.
    pub at_an_aim: Vec<Option<f64>>,
    /// The same at equal utilisation: the p95 of tidegate's own is interpolated between the two aims that
    /// carry the nearest to as much, one less and one more. Where all carry more, the one that carries least
    /// is compared; where all carry less (by more than 2 % of the capacity), it is not lower.
    pub at_equal_use: Vec<Option<f64>>,
}

/// Compares controllers by the rows of all cases.
#[must_use]
pub fn compare(names: &[String], rows: &[CaseRow]) -> GymComparison {
    let known = names.iter().position(|name| name == "known");
    let fixed: Vec<usize> = (0..names.len()).filter(|at| names[*at].starts_with("fixed:")).collect();
    let mut controllers: Vec<ControllerSummary> =
        names.iter().enumerate().map(|(at, name)| summary(name, at, (known, &fixed), rows)).collect();
    let points: Vec<(f64, f64)> = controllers.iter().map(|one| (one.call_ms[1], one.utilisation)).collect();
    for (at, one) in controllers.iter_mut().enumerate() {
        let is_beaten =
            |other: &(f64, f64)| other.0 <= points[at].0 && other.1 >= points[at].1 && *other != points[at];
        let others = points.iter().zip(names).filter(|(_, name)| *name != "known");
        one.on_front = one.cases > 0 && one.name != "known" && !others.map(|(point, _)| point).any(is_beaten);
    }
    let better = (0..names.len())
        .map(|one| (0..names.len()).map(|other| share_better(one, other, rows)).collect())
        .collect();
    let aims: Vec<usize> = (0..names.len()).filter(|at| is_own(&names[*at])).collect();
    let others: Vec<Option<usize>> =
        (0..names.len()).map(|other| (aims.len() > 1 && !aims.contains(&other)).then_some(other)).collect();
    let by = |is_better: fn(&[GymScore], &GymScore) -> bool| {
        others.iter().map(|other| share_by_aims(&aims, (*other)?, rows, is_better)).collect()
    };
    GymComparison { controllers, better, at_an_aim: by(is_at_an_aim), at_equal_use: by(is_at_equal_use) }
}

/// Is it tidegate's own controller, at any aim?
fn is_own(name: &str) -> bool {
    name == "tidegate" || name.starts_with("tidegate:")
}

/// In what share of the cases tidegate's own, with its scores at all aims, is better than another.
fn share_by_aims(
    aims: &[usize],
    other: usize,
    rows: &[CaseRow],
    is_better: fn(&[GymScore], &GymScore) -> bool,
) -> Option<f64> {
    let score = |row: &CaseRow, at: usize| row.scores.get(at).cloned().flatten();
    let is_better = rows.iter().filter_map(|row| {
        let other = score(row, other)?;
        let own: Vec<GymScore> = aims.iter().filter_map(|aim| score(row, *aim)).collect();
        Some(is_better(&own, &other))
    });
    let is_better: Vec<bool> = is_better.collect();
    let wins = is_better.iter().filter(|better| **better).count();
    (!is_better.is_empty()).then(|| wins as f64 / is_better.len() as f64)
}

fn is_at_an_aim(own: &[GymScore], other: &GymScore) -> bool {
    let mut as_much = own.iter().filter(|own| own.utilisation >= other.utilisation - AS_MUCH);
    as_much.any(|own| own.call_p95_ms < other.call_p95_ms)
}

fn is_at_equal_use(own: &[GymScore], other: &GymScore) -> bool {
    p95_at_use(own, other.utilisation).is_some_and(|ms| ms < other.call_p95_ms)
}

/// The p95 at a utilisation, ms, interpolated between scores.
#[must_use]
pub fn p95_at_use(scores: &[GymScore], utilisation: f64) -> Option<f64> {
    let by_use = |one: &&GymScore, other: &&GymScore| one.utilisation.total_cmp(&other.utilisation);
    let below = scores.iter().filter(|one| one.utilisation <= utilisation).max_by(by_use);
    let above = scores.iter().filter(|one| one.utilisation > utilisation).min_by(by_use);
    match (below, above) {
        (Some(below), Some(above)) => {
            let share = (utilisation - below.utilisation) / (above.utilisation - below.utilisation);
            Some(below.call_p95_ms + share * (above.call_p95_ms - below.call_p95_ms))
        }
        (None, Some(above)) => Some(above.call_p95_ms),
        (Some(below), None) => (below.utilisation >= utilisation - AS_MUCH).then_some(below.call_p95_ms),
        (None, None) => None,
    }
}

fn share_better(one: usize, other: usize, rows: &[CaseRow]) -> Option<f64> {
    if one == other {
        return None;
    }
    let pairs: Vec<(&GymScore, &GymScore)> = rows
        .iter()
        .filter_map(|row| Some((row.scores.get(one)?.as_ref()?, row.scores.get(other)?.as_ref()?)))
        .collect();
    let wins = pairs.iter().filter(|(one, other)| {
        one.call_p95_ms < other.call_p95_ms && one.utilisation >= other.utilisation - AS_MUCH
    });
    (!pairs.is_empty()).then(|| wins.count() as f64 / pairs.len() as f64)
}

fn summary(
    name: &str,
    at: usize,
    (known, fixed): (Option<usize>, &[usize]),
    rows: &[CaseRow],
) -> ControllerSummary {
    let score = |row: &CaseRow, at: usize| row.scores.get(at).cloned().flatten();
    let scores: Vec<GymScore> = rows.iter().filter_map(|row| score(row, at)).collect();
    let median = |values: Vec<f64>| quantile(values, 0.5);
    let of = |get: fn(&GymScore) -> f64| scores.iter().map(get).collect::<Vec<f64>>();
    let pairs: Vec<(GymScore, GymScore)> = known
        .filter(|known| *known != at)
        .map(|known| rows.iter().filter_map(|row| Some((score(row, at)?, score(row, known)?))).collect())
        .unwrap_or_default();
    let over: Vec<f64> = rows
        .iter()
        .filter_map(|row| {
            let own = score(row, at).filter(|_| !fixed.contains(&at))?;
            let as_much = fixed.iter().filter_map(|fixed| score(row, *fixed));
            let as_much = as_much.filter(|other| other.utilisation >= own.utilisation - AS_MUCH);
            let best = as_much.map(|other| other.call_p95_ms).min_by(f64::total_cmp)?;
            Some(own.call_p95_ms / best.max(0.001))
        })
        .collect();
    let any = |values: &[f64]| !values.is_empty();
    let later: Vec<f64> = pairs.iter().map(|(own, known)| own.call_p95_ms - known.call_p95_ms).collect();
    let less: Vec<f64> = pairs.iter().map(|(own, known)| known.utilisation - own.utilisation).collect();
    ControllerSummary {
        name: name.to_owned(),
        cases: scores.len(),
        failed: rows.len() - scores.len(),
        call_ms: [
            median(of(|score| score.call_p50_ms)),
            median(of(|score| score.call_p95_ms)),
            median(of(|score| score.call_p99_ms)),
        ],
        call_p95_bad_ms: quantile(of(|score| score.call_p95_ms), 0.9),
        utilisation: mean(&of(|score| score.utilisation)),
        regret_ms: any(&later).then(|| median(later.clone())),
        regret_utilisation: any(&less).then(|| mean(&less)),
        over_fixed: any(&over).then(|| median(over.clone())),
        on_front: false,
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    crate::score::percentile(&values, share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_compared_at_equal_use_of_the_line() {
        let names = ["tidegate", "tidegate:0.5", "rival"].map(str::to_owned);
        let score = |(ms, use_of_line): (f64, f64)| {
            Some(GymScore { call_p95_ms: ms, utilisation: use_of_line, ..GymScore::default() })
        };
        let row = |scores: [(f64, f64); 3]| CaseRow {
            case: String::new(),
            line: String::new(),
            load: String::new(),
            scores: scores.map(score).to_vec(),
        };
        let rows = [
            // The default uses as much and is later, the other aim uses as much and is not.
            row([(90.0, 0.9), (40.0, 0.5), (50.0, 0.5)]),
            // The other aim is not late, but uses less.
            row([(90.0, 0.9), (40.0, 0.4), (50.0, 0.5)]),
        ];
        let found = compare(&names, &rows);
        assert_eq!(found.at_an_aim, [None, None, Some(0.5)]);
        // At the rival's 50 %: 40 ms, and 40 + 0.2 × 50 = 50 ms, which is not lower.
        assert_eq!(found.at_equal_use, [None, None, Some(0.5)]);
        assert_eq!((found.better[0][2], found.better[1][2]), (Some(0.0), Some(0.5)));
        assert_eq!(compare(&names[1..], &[]).at_an_aim, [None, None]);
    }

    #[test]
    fn a_p95_at_a_use_is_between_those_of_its_neighbours() {
        let score = |(ms, use_of_line): (f64, f64)| GymScore {
            call_p95_ms: ms,
            utilisation: use_of_line,
            ..GymScore::default()
        };
        let scores = [(100.0, 0.75), (30.0, 0.25), (50.0, 0.5)].map(score);
        for (utilisation, expected) in [
            (0.375, Some(40.0)),
            (0.625, Some(75.0)),
            (0.5, Some(50.0)),
            // All use more; all use less, by little and by much.
            (0.125, Some(30.0)),
            (0.76, Some(100.0)),
            (0.8, None),
        ] {
            assert_eq!(p95_at_use(&scores, utilisation), expected, "{utilisation}");
        }
        assert_eq!(p95_at_use(&[], 0.5), None);
    }
}
