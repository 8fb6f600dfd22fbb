//! The six panels of ping-exp.

use super::words::title;
use crate::chart::{self, Drawing, SeriesStyle};
use tidegate_measure::pinged::{PingTarget, Pinged};

/// The six panels of ping-exp; with `lines` answers are joined, otherwise each is a dot.
pub fn six_panels(pinged: &Pinged, lines: bool) -> Drawing {
    let target = |target: &PingTarget| chart::PingRow {
        name: target.id.clone(),
        answers: target.requests.iter().map(|request| (request.sent_ns, request.took_ns)).collect(),
    };
    let text_of = |target: &PingTarget| {
        let figures = target.figures();
        format!("{}: {} of {} replies", target.id, figures.sent - figures.lost, figures.sent)
    };
    let targets: Vec<chart::PingRow> = pinged.targets.iter().map(target).collect();
    let sentences: Vec<String> = pinged.targets.iter().map(text_of).collect();
    let drawn = if lines { SeriesStyle::Lines } else { SeriesStyle::Dots };
    chart::pingexp(&title(pinged), &sentences.join("; "), &targets, drawn)
}
