//! What a flow's record shows, and how far ours is from the kernel's.

use std::fs;
use std::path::Path;

/// Rate and round trip of one flow in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figures {
    /// Acknowledged, in Mbit/s.
    pub(crate) rate: f64,
    /// The median of the smoothed round trip each 100 ms, in ms.
    pub(crate) trip: f64,
}

/// A flow's record: time in ms, acknowledged bytes, round trip in µs.
type Rows = Vec<[f64; 3]>;

fn rows(path: &Path) -> Option<Rows> {
    let text = fs::read_to_string(path).ok()?;
    let row = |line: &str| -> Option<[f64; 3]> {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().ok()).collect::<Option<_>>()?;
        Some([*cells.first()?, *cells.get(1)?, *cells.get(3)?])
    };
    text.lines().skip(1).map(row).collect()
}

fn figures(rows: &[[f64; 3]], until: f64) -> Option<Figures> {
    let rows: Vec<&[f64; 3]> = rows.iter().filter(|row| row[0] <= until).collect();
    let last = rows.last()?;
    let mut trips: Vec<f64> = rows.iter().map(|row| row[2] / 1000.0).filter(|trip| *trip > 0.0).collect();
    trips.sort_by(f64::total_cmp);
    if last[0] <= 0.0 || last[1] <= 0.0 || trips.is_empty() {
        return None;
    }
    Some(Figures { rate: last[1] * 8e-3 / last[0], trip: trips[trips.len() / 2] })
}

/// A flow in the kernel's run and in ours, over the time that both lasted; none if the kernel's connection
/// did not come about.
pub(crate) fn both(dir: &Path, name: &str) -> Option<[Figures; 2]> {
    let file = format!("{name}.csv");
    let theirs = rows(&dir.join(&file))?;
    let ours = rows(&dir.join("ours").join(&file)).unwrap_or_default();
    let until = match (theirs.last(), ours.last()) {
        (Some(theirs), Some(ours)) => theirs[0].min(ours[0]),
        _ => return None,
    };
    // A simulated flow that delivers nothing is as wrong as can be.
    let none = Figures { rate: 0.0, trip: 0.0 };
    Some([figures(&theirs, until)?, figures(&ours, until).unwrap_or(none)])
}

/// A flow in the kernel's run alone.
pub(crate) fn theirs(dir: &Path, name: &str) -> Option<Figures> {
    let rows = rows(&dir.join(format!("{name}.csv")))?;
    figures(&rows, rows.last()?[0])
}

/// One flow: what the kernel and ours found in each of the shifted runs.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) discipline: &'static str,
    /// Case and name.
    pub(crate) name: String,
    /// The kernel's answers to the shifted questions lie close together, for all flows of the run.
    pub(crate) calm: bool,
    /// The run as it is, then the shifted ones.
    pub(crate) runs: Vec<[Figures; 2]>,
    /// What the kernel answered when it was asked as often once more; empty if it was not.
    pub(crate) again: Vec<Figures>,
    /// It came first.
    pub(crate) first: bool,
}

impl Flow {
    /// The relative difference in the run as it is.
    pub(crate) fn error(&self, of: fn(&Figures) -> f64) -> f64 {
        self.runs.first().map_or(f64::NAN, |[theirs, ours]| (of(ours) / of(theirs) - 1.0).abs())
    }

    /// The relative difference of the means of all runs: above nought where ours is more.
    pub(crate) fn bias(&self, of: fn(&Figures) -> f64) -> f64 {
        let sum = |at: usize| self.runs.iter().map(|run| of(&run[at])).sum::<f64>();
        sum(1) / sum(0) - 1.0
    }

    /// The same without its sign.
    pub(crate) fn error_of_means(&self, of: fn(&Figures) -> f64) -> f64 {
        self.bias(of).abs()
    }

    /// How far the kernel's two means lie from one another, if it was asked twice as often: what chance alone
    /// does.
    pub(crate) fn chance(&self, of: fn(&Figures) -> f64) -> Option<f64> {
        let mean = |sum: f64, n: usize| sum / n as f64;
        let before = mean(self.runs.iter().map(|run| of(&run[0])).sum(), self.runs.len());
        let after = mean(self.again.iter().map(of).sum(), self.again.len());
        (!self.again.is_empty()).then(|| (after / before - 1.0).abs())
    }

    /// From the least to the greatest that the kernel found, in parts of their mean.
    pub(crate) fn spread(&self, of: fn(&Figures) -> f64) -> f64 {
        let found = || self.runs.iter().map(|[theirs, _]| of(theirs));
        let (least, most) =
            found().fold((f64::MAX, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        (most - least) * self.runs.len() as f64 / found().sum::<f64>()
    }
}

/// The value below which a part `p` of them lies.
pub(crate) fn quantile(values: &mut [f64], p: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n => values[(((n - 1) as f64) * p).round() as usize],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_spread() {
        let at = |rate: f64| Figures { rate, trip: 10.0 };
        let runs = vec![[at(2.0), at(2.2)], [at(1.0), at(1.0)], [at(3.0), at(2.8)]];
        let again = vec![at(1.0), at(2.0), at(2.4)];
        let flow = Flow { discipline: "pfifo", name: "1".into(), calm: true, runs, again, first: true };
        let round = |value: f64| (value * 1000.0).round() / 1000.0;
        let found =
            [flow.error(|f| f.rate), flow.error_of_means(|f| f.rate), flow.spread(|f| f.rate)].map(round);
        assert_eq!((found, flow.spread(|f| f.trip)), ([0.1, 0.0, 1.0], 0.0));
        assert_eq!(flow.chance(|f| f.rate).map(round), Some(0.1));
        assert_eq!([0.0, 0.5, 0.9].map(|p| quantile(&mut [4.0, 1.0, 2.0, 3.0, 5.0], p)), [1.0, 3.0, 5.0]);
    }
}
