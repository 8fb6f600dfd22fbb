//! Six panels about repeated pings, arranged as Dan Siemon's ping-exp (2009) arranges them: latency over
//! time; packet loss, mean latency and its deviation side by side; a histogram; losses over time.

use super::axis::Axis;
use super::drawing::{Body, Drawing, cut, short, words};
use super::look::{LOOKS, Look};
use super::panel::Panel;
use super::time_series::SeriesStyle;
use std::fmt::Write as _;
use tidegate_measure::numbers::{format_duration, percent};
use tidegate_measure::{Pings, deviation};

/// The pings of one target.
#[derive(Clone, Debug, Default)]
pub struct PingRow {
    /// What the target is called, written beside its row.
    pub name: String,
    /// When each request was sent, in ns from the beginning, and the round-trip time; `None`: lost.
    pub answers: Vec<(u64, Option<u64>)>,
}

const WIDTH: f64 = 800.0;
const LEFT: f64 = 116.0;
const ROOM: f64 = WIDTH - LEFT - 20.0;
/// The width of the histogram's bins.
const BIN: u64 = 2_000_000;
/// Bins that are still seen apart; if there would be more, several are one.
const MOST_BINS: u64 = 170;

/// What the figures of a target come to.
struct Figures {
    look: Look,
    loss: f64,
    mean: Option<u64>,
    deviation: Option<u64>,
}

/// The six panels; at most [`LOOKS`] targets, those beyond are named below. Round-trip times are dots, or
/// joined by lines that losses break.
pub fn pingexp(title: &str, description: &str, targets: &[PingRow], drawn: SeriesStyle) -> Drawing {
    let shown = &targets[..targets.len().min(LOOKS)];
    let longest =
        shown.iter().flat_map(|target| &target.answers).filter_map(|(_, took)| *took).max().unwrap_or(0);
    let ends = || shown.iter().flat_map(|target| &target.answers).map(|(sent, _)| *sent);
    let (begin, end) = (ends().min().unwrap_or(0), ends().max().unwrap_or(1));
    let time = || Axis::time(end.saturating_sub(begin).max(1));
    let mut out = String::new();
    words(&mut out, WIDTH / 2.0, 20.0, "large strong mid", &cut(title, 90));
    latency(&mut out, shown, begin, drawn, Panel::at(58.0, 220.0, time(), Axis::spans(longest, 5)));
    bars(&mut out, shown, 352.0);
    let foot = histogram(&mut out, shown, longest, 534.0);
    let foot = losses(&mut out, shown, begin, foot + 78.0, time());
    let mut height = foot + 44.0;
    if targets.len() > LOOKS {
        let names: Vec<&str> = targets[LOOKS..].iter().map(|target| target.name.as_str()).collect();
        words(&mut out, LEFT, height, "", &format!("not drawn: {}", names.join(", ")));
        height += 12.0;
    }
    let body = Body::Fixed { width: WIDTH, height, content: out };
    Drawing { title: title.to_owned(), description: description.to_owned(), body }
}

impl Panel {
    fn at(top: f64, height: f64, x: Axis, y: Axis) -> Panel {
        Panel { left: LEFT, top, width: ROOM, height, x, y }
    }
}

fn latency(out: &mut String, targets: &[PingRow], begin: u64, drawn: SeriesStyle, panel: Panel) {
    panel.axes(out, "Latency over time", Some(("time", panel.y.unit)));
    for (n, target) in targets.iter().enumerate() {
        let at = |sent: u64| (sent - begin) as f64;
        match drawn {
            SeriesStyle::Dots => {
                let points =
                    target.answers.iter().filter_map(|(sent, took)| Some((at(*sent), (*took)? as f64)));
                panel.dots(out, Look(n), points);
            }
            SeriesStyle::Lines | SeriesStyle::Stairs => {
                let points =
                    target.answers.iter().map(|(sent, took)| (at(*sent), took.map(|took| took as f64)));
                panel.line(out, Look(n), points);
            }
        }
    }
}

/// Bars leave room for their figures.
const HEADED: f64 = 1.18;

fn headed(ns: u64) -> u64 {
    (ns as f64 * HEADED) as u64
}

/// Three small bar charts and the legend beside them.
fn bars(out: &mut String, targets: &[PingRow], top: f64) {
    let figures = |(n, target): (usize, &PingRow)| {
        let answered: Vec<u64> = target.answers.iter().filter_map(|(_, took)| *took).collect();
        let pings = Pings::new(target.answers.iter().map(|(_, took)| *took));
        Figures { look: Look(n), loss: pings.loss(), mean: pings.rtt.mean(), deviation: deviation(&answered) }
    };
    let all: Vec<Figures> = targets.iter().enumerate().map(figures).collect();
    let loss: Vec<_> = all.iter().map(|f| (f.look, Some(f.loss), percent(f.loss))).collect();
    let spans = |of: fn(&Figures) -> Option<u64>| -> Vec<_> {
        let bar = |f: &Figures| {
            (f.look, of(f).map(|ns| ns as f64), of(f).map_or("none".to_owned(), format_duration))
        };
        all.iter().map(bar).collect()
    };
    let most = |of: fn(&Figures) -> Option<u64>| all.iter().filter_map(of).max().unwrap_or(0);
    let shares = Axis::percent(all.iter().map(|f| f.loss).fold(0.0, f64::max) * HEADED, 4);
    group(out, 0, top, "Packets lost", shares, &loss);
    group(out, 1, top, "Mean latency", Axis::spans(headed(most(|f| f.mean)), 4), &spans(|f| f.mean));
    group(
        out,
        2,
        top,
        "Deviation (mdev)",
        Axis::spans(headed(most(|f| f.deviation)), 4),
        &spans(|f| f.deviation),
    );
    for (n, target) in targets.iter().enumerate() {
        let y = top + 12.0 + 19.0 * n as f64;
        let (x, fill) = (short(WIDTH - 152.0), Look(n).fill());
        let _ = write!(
            out,
            "<rect class=\"mark {fill}\" x=\"{x}\" y=\"{}\" width=\"12\" height=\"12\"/>",
            short(y - 10.0)
        );
        words(out, WIDTH - 134.0, y, "ink", &cut(&target.name, 19));
    }
}

fn group(
    out: &mut String,
    place: usize,
    top: f64,
    title: &str,
    y: Axis,
    bars: &[(Look, Option<f64>, String)],
) {
    const WIDE: f64 = 132.0;
    let left = LEFT + (WIDE + 58.0) * place as f64;
    let panel = Panel { left, top, width: WIDE, height: 110.0, x: Axis::shares(), y };
    words(out, left + WIDE / 2.0, top - 9.0, "strong mid", title);
    words(out, left - 6.0, top - 9.0, "small end", panel.y.unit);
    panel.upright(out);
    panel.frame(out);
    let slot = WIDE / bars.len().max(1) as f64;
    for (n, (look, value, text)) in bars.iter().enumerate() {
        let (middle, wide) = (left + slot * (n as f64 + 0.5), (slot * 0.6).min(40.0));
        let y = panel.down(value.unwrap_or(0.0));
        let _ = write!(
            out,
            "<rect class=\"mark {}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            look.fill(),
            short(middle - wide / 2.0),
            short(y),
            short(wide),
            short(panel.foot() - y)
        );
        // With more bars, figures would cover each other; the table has them.
        if bars.len() <= 2 {
            words(out, middle, (y - 3.0).max(top + 10.0), "small ink halo mid", text);
        }
    }
}

/// Shares of answers by their latency, in bins of 2 ms; of many bins several are one. Returns where it ends.
fn histogram(out: &mut String, targets: &[PingRow], longest: u64, top: f64) -> f64 {
    let bins = longest / BIN + 1;
    let wide = BIN * bins.div_ceil(MOST_BINS);
    let count = longest / wide + 1;
    let shares: Vec<Vec<f64>> = targets.iter().map(|target| binned(target, wide, count as usize)).collect();
    let most = shares.iter().flatten().copied().fold(0.0, f64::max);
    let panel = Panel::at(top, 130.0, Axis::spans_to(count * wide), Axis::percent(most, 4));
    panel.axes(
        out,
        &format!("Latency histogram ({} ms bins)", wide / 1_000_000),
        Some(("latency", "% of replies")),
    );
    // Outlines over each other: filled bars would hide those behind.
    for (n, shares) in shares.iter().enumerate() {
        let mut path = format!("M{} {}", short(panel.left), short(panel.foot()));
        for (bin, share) in (0..count).zip(shares) {
            let end = short(panel.across(((bin + 1) * wide) as f64));
            let _ = write!(path, "V{}H{end}", short(panel.down(*share)));
        }
        let _ = write!(path, "V{}", short(panel.foot()));
        let _ = write!(out, "<path class=\"mark {} outline\" d=\"{path}\"/>", Look(n).line());
        // Of many, the fillings would only mix.
        if targets.len() <= 2 {
            let _ = write!(out, "<path class=\"{} light\" d=\"{path}Z\"/>", Look(n).fill());
        }
    }
    panel.foot()
}

/// The share of a target's answers in each bin.
fn binned(target: &PingRow, wide: u64, count: usize) -> Vec<f64> {
    let mut bins = vec![0u64; count];
    let mut answered = 0;
    for took in target.answers.iter().filter_map(|(_, took)| *took) {
        answered += 1;
        if let Some(bin) = bins.get_mut((took / wide) as usize) {
            *bin += 1;
        }
    }
    bins.into_iter().map(|n| tidegate_measure::share(n, answered)).collect()
}

/// A row of strokes for each target. Returns where it ends.
fn losses(out: &mut String, targets: &[PingRow], begin: u64, top: f64, time: Axis) -> f64 {
    const ROW: f64 = 16.0;
    let height = ROW * targets.len().max(1) as f64 + 8.0;
    let panel = Panel::at(top, height, time, Axis::shares());
    words(out, panel.left + panel.width / 2.0, top - 9.0, "strong mid", "Losses over time");
    for (value, text) in panel.x.marked_across() {
        let x = short(panel.across(value));
        let _ = write!(out, "<path class=\"grid\" d=\"M{x} {}v{}\"/>", short(top), short(height));
        words(out, panel.across(value), panel.foot() + 15.0, "small mid", &text);
    }
    panel.frame(out);
    for (n, target) in targets.iter().enumerate() {
        let y = top + 4.0 + ROW * n as f64;
        words(out, LEFT - 6.0, y + 12.0, "small end", &cut(&target.name, 16));
        let lost =
            target.answers.iter().filter(|(_, took)| took.is_none()).map(|(sent, _)| (sent - begin) as f64);
        panel.strokes(out, Look(n), y + 2.0, ROW - 4.0, lost);
    }
    panel.foot()
}
