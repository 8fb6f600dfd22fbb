//! Throughput stacked by class.

use super::axis::Axis;
use super::drawing::{Drawing, Margin};
use super::plot::{Plot, Reference};
use super::steps::staircase;

/// A band of the stack; the first lies lowest.
#[derive(Clone, Debug)]
pub struct Band {
    /// A short name, written at the band's right end.
    pub name: String,
    /// Its colour, from 1.
    pub colour: usize,
    /// A value per step.
    pub values: Vec<f64>,
}

/// Bands stacked over time, each value holding for `step` of the horizontal unit.
pub fn stack(
    title: &str,
    description: &str,
    (x, y): (Axis, Axis),
    measured: f64,
    step: f64,
    bands: &[Band],
    references: &[Reference],
) -> Drawing {
    let margin = Margin { left: 56.0, right: 62.0, top: 26.0, bottom: 24.0 };
    let mut plot = Plot::new(x, y, 300.0, margin);
    plot.warm_up(measured, true);
    plot.axes(false);
    plot.unit();
    let steps = bands.iter().map(|band| band.values.len()).max().unwrap_or(0);
    let mut floor = vec![0.0; steps];
    let mut names = Vec::new();
    for band in bands {
        let top: Vec<f64> =
            (0..steps).map(|n| floor[n] + band.values.get(n).copied().unwrap_or(0.0)).collect();
        if band.values.iter().any(|value| *value > 0.0) {
            plot.area(
                &format!("mark band f{}", band.colour),
                &staircase(&top, step),
                &staircase(&floor, step),
            );
            if let Some(place) = late(&floor, &top) {
                names.push((band.name.clone(), "strong", plot.down(place)));
            }
        }
        floor = top;
    }
    plot.levels(references);
    plot.names(&names);
    plot.finished(title, description)
}

/// The middle of a band over its last tenth; `None` where it is nothing there.
fn late(floor: &[f64], top: &[f64]) -> Option<f64> {
    let from = floor.len() - floor.len().div_ceil(10);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (low, high) = (mean(&floor[from..]), mean(&top[from..]));
    (high > low).then_some((low + high) / 2.0)
}
