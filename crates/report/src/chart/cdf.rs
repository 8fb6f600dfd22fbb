//! Distributions: which share of answers came within a time.

use super::axis::Axis;
use super::drawing::{Drawing, Margin};
use super::plot::Plot;

/// A sample to compare.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What the sample is called in the legend.
    pub name: String,
    /// How its line looks.
    pub class: &'static str,
    /// Values, ascending.
    pub sorted: Vec<u64>,
    /// The number of requests, lost ones included: the line ends at the share that arrived.
    pub of: usize,
}

/// Cumulative distributions on a logarithmic scale.
pub fn cdf(title: &str, description: &str, x: Axis, height: f64, samples: &[Sample]) -> Drawing {
    let margin = Margin { left: 48.0, right: 22.0, top: 26.0, bottom: 24.0 };
    let mut plot = Plot::new(x, Axis::shares(), height, margin);
    plot.axes(false);
    plot.unit();
    for sample in samples {
        let line: Vec<Option<(f64, f64)>> = course(&plot, sample).into_iter().map(Some).collect();
        plot.line(sample.class, &line);
    }
    name(&mut plot, samples);
    plot.finished(title, description)
}

/// Stairs: each value lifts the line by one answer.
fn course(plot: &Plot, sample: &Sample) -> Vec<(f64, f64)> {
    let of = sample.of.max(1) as f64;
    let mut points = Vec::with_capacity(2 * sample.sorted.len() + 1);
    for (n, &value) in sample.sorted.iter().enumerate() {
        let value = value as f64;
        if n == 0 {
            points.push((value, 0.0));
        }
        points.push((value, n as f64 / of));
        points.push((value, (n + 1) as f64 / of));
    }
    if let Some(&(_, top)) = points.last() {
        points.push((plot.x.scale.ends().1, top));
    }
    points
}

/// Names beside the lines where these are far enough apart: the left line's on its left, the right one's on
/// its right, unless there is no room.
fn name(plot: &mut Plot, samples: &[Sample]) {
    let mut known: Vec<(&Sample, f64)> = samples
        .iter()
        .filter(|sample| !sample.sorted.is_empty())
        .map(|sample| (sample, plot.x.scale.share(sample.sorted[sample.sorted.len() / 2] as f64)))
        .collect();
    known.sort_by(|a, b| a.1.total_cmp(&b.1));
    let count = known.len();
    for (n, (sample, across)) in known.into_iter().enumerate() {
        let rightmost = n + 1 == count;
        let room = if rightmost { across < 0.75 } else { across < 0.2 };
        let (anchor, shift) = if room { ("", 0.02) } else { (" end", -0.02) };
        // One above the other, where both are on the same side.
        let share = if count == 1 { 0.5 } else { 0.62 - 0.3 * n as f64 };
        let down = plot.height * (1.0 - share);
        plot.text(&format!("{} halo{anchor}", sample.class), across + shift, down, &sample.name);
    }
}
