//! The six panels of ping-exp.

use super::words::title;
use crate::chart::{self, Drawing, Drawn};
use tidegate_measure::pinged::{PingTarget, Pinged};

/// The six panels of ping-exp; with `lines` answers are joined, otherwise each is a dot.
pub fn six_panels(pinged: &Pinged, lines: bool) -> Drawing {
    let target = |target: &PingTarget| chart::Target {
        name: target.id.clone(),
        answers: target.asked.iter().map(|asked| (asked.sent_ns, asked.took_ns)).collect(),
    };
    let told = |target: &PingTarget| {
        let figures = target.figures();
        format!("{}: {} of {} replies", target.id, figures.sent - figures.lost, figures.sent)
    };
    let targets: Vec<chart::Target> = pinged.targets.iter().map(target).collect();
    let told: Vec<String> = pinged.targets.iter().map(told).collect();
    let drawn = if lines { Drawn::Lines } else { Drawn::Dots };
    chart::pingexp(&title(pinged), &told.join("; "), &targets, drawn)
}
