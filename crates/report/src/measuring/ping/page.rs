//! As one page.

use super::panels::six_panels;
use super::text::table;
use super::words::{remarks, sentence, title};
use crate::chart::{Axis, Drawing, LOOKS, Look, Sample, cdf};
use crate::html::document::document as page_document;
use crate::html::parts::{Data, Reading, Tabled as _, ending, figure, inline, prose};
use maud::{Markup, html};
use tidegate_measure::numbers::format_duration;
use tidegate_measure::pinged::{PingTarget, Pinged};

/// Percentiles in the table behind the distribution.
const SHARES: [f64; 10] = [1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 100.0];
/// Height of the distribution, pixels.
const HEIGHT: f64 = 240.0;

/// The page: an HTML document that needs nothing else.
pub fn page(pinged: &Pinged, lines: bool) -> String {
    let title = title(pinged);
    let text =
        "Arranged as ping-exp’s: latency over time; loss, mean and deviation; a histogram; losses over time.";
    let made = format!("tidegate {}", pinged.version);
    let promise = "This command repeats the measurement; a network's delays vary";
    let content = html! {
        header {
            p.eyebrow { "tidegate · pings, measured" }
            h1.name { (title) }
            @for target in &pinged.targets { p.about { (prose(&sentence(target))) } }
            @if let Some(why) = &pinged.partial {
                p.about { b { "Partial" } ": " (prose(why)) }
            }
        }
        main {
            section { h2 { "Figures" } (table(pinged).table()) }
            section {
                h2 { "Six panels" }
                figure.wide tabindex="0" { figcaption { (text) } (inline(&six_panels(pinged, lines))) }
            }
            (distribution(pinged))
            (ending(&remarks(pinged), promise, &pinged.again, &made))
        }
    };
    page_document(&title, content)
}

/// How often how long.
fn distribution(pinged: &Pinged) -> Markup {
    let drawings: Vec<Drawing> = pinged.targets.chunks(LOOKS).filter_map(drawing).collect();
    if drawings.is_empty() {
        return Markup::default();
    }
    let head = std::iter::once("share").chain(pinged.targets.iter().map(|target| target.id.as_str()));
    let row = |p: f64| {
        let of = |target: &PingTarget| percentile(target, p).map_or_else(|| "–".to_owned(), format_duration);
        std::iter::once(format!("{p} %")).chain(pinged.targets.iter().map(of)).collect()
    };
    let data = Data {
        caption: "Percentiles of the replies".to_owned(),
        head: head.map(str::to_owned).collect(),
        rows: SHARES.into_iter().map(row).collect(),
    };
    let text = "The share of requests answered within a time; losses leave a gap at the top.";
    html! {
        section {
            h2 { "Distribution (CDF)" }
            (figure(&drawings, html! { (text) }, Reading::Upwards, &data))
        }
    }
}

fn drawing(targets: &[PingTarget]) -> Option<Drawing> {
    let samples: Vec<Sample> =
        targets.iter().enumerate().map(|(n, target)| sample(Look(n), target)).collect();
    let values = || samples.iter().flat_map(|sample| sample.sorted.iter().copied());
    let (low, high) = (values().min()?, values().max()?);
    Some(cdf(
        "Distribution (CDF)",
        "The share of requests answered within a time.",
        axis(low, high),
        HEIGHT,
        &samples,
    ))
}

fn axis(low: u64, high: u64) -> Axis {
    Axis::log_spans(low.max(1), high.max(low + 2))
}

fn sample(look: Look, target: &PingTarget) -> Sample {
    let mut sorted: Vec<u64> = target.requests.iter().filter_map(|request| request.took_ns).collect();
    sorted.sort_unstable();
    Sample { name: target.id.clone(), class: look.line(), of: target.requests.len(), sorted }
}

fn percentile(target: &PingTarget, p: f64) -> Option<u64> {
    tidegate_measure::Durations::new(target.requests.iter().filter_map(|request| request.took_ns).collect())
        .percentile(p)
}
