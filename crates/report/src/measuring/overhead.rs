//! What a line adds to each packet, as text and JSON.

use crate::chart::{Axis, ChartSeries, Drawing, Look, SeriesStyle, TimeSeriesChart, time_series};
use crate::html::document::document as page_document;
use crate::html::parts::{Data, Tabled as _, ending, inline, prose, tied};
use crate::table::{Align, Table};
use maud::{Markup, html};
use std::fmt::Write as _;
use tidegate_measure::capacity::PathDirection;
use tidegate_measure::numbers::{format_duration, rate};
use tidegate_measure::overhead::{Coding, LineEstimate, OverheadDocument, Size, Sweep, Words};

/// Sizes that are shown.
const SHOWN: usize = 8;

/// The terminal's view.
pub fn text(document: &OverheadDocument) -> String {
    let mut out = String::new();
    if let Some(why) = &document.swept.cut {
        let _ = writeln!(out, "Only a part was measured: {why}.\n");
    }
    let mut ways =
        PathDirection::BOTH.into_iter().filter_map(|way| Some((way, document.swept.of(way)?))).peekable();
    if ways.peek().is_none() {
        out.push_str("Nothing arrived, so nothing was measured.\n");
    }
    for (way, sweep) in ways {
        let _ = writeln!(out, "{}: {}", way.name(), sentence(sweep));
        if let Some(line) = &sweep.line {
            words(&mut out, &Words::of(line));
            let _ = write!(out, "\n{}", table(&sweep.sizes, line));
        }
        for caveat in &sweep.caveats {
            let _ = writeln!(out, "caveat: {caveat}");
        }
        out.push('\n');
    }
    for caveat in &document.caveats {
        let _ = writeln!(out, "caveat: {caveat}");
    }
    let _ = writeln!(out, "Again: {}", document.again);
    out
}

/// The coding, in words.
fn coding(coding: Coding) -> String {
    match coding {
        Coding::Bytes => "byte by byte (Ethernet, cable, fibre, a shaper)".into(),
        Coding::Ptm => "PTM, 65 bytes for each 64 (VDSL2)".into(),
        Coding::Atm => "ATM cells, 53 bytes for each 48 (ADSL)".into(),
        Coding::Steps(step) => format!("in steps of {step} bytes (a shaper's table of rates)"),
    }
}

fn sentence(sweep: &Sweep) -> String {
    let Some(line) = &sweep.line else { return "too little was measured for a result".into() };
    let (low, high) = line.between;
    let mut text = format!(
        "{} bytes over IP ({low} to {high} with 95 % confidence), {}, {} on the line ({} to {})",
        line.overhead,
        coding(line.coding),
        rate(line.bits_per_second),
        rate(line.rate_between.0),
        rate(line.rate_between.1)
    );
    if let Some(floor) = line.floor {
        let (unit, packets) = (floor.bytes, floor.packets_per_second);
        text += &match floor.is_unit {
            true => format!(
                "; minimum packet size {unit:.0} bytes (or a limit of {packets:.0} packets per second)"
            ),
            false => format!("; at most {packets:.0} packets per second"),
        };
    }
    text
}

fn words(out: &mut String, words: &Words) {
    if let Some(name) = words.known_as {
        let _ = writeln!(out, "  cake's keyword         {name}");
    }
    let _ = writeln!(out, "  cake                   {}", words.cake);
    let _ = writeln!(out, "  tc on eth0             {}", words.tc);
    let _ = writeln!(out, "  tc on ppp0, a tunnel   {}", words.tc_without_header);
    if let Some(left_out) = &words.left_out {
        let _ = writeln!(out, "  {left_out}");
    }
}

/// What a packet takes according to the line, ns.
fn explained(line: &LineEstimate, ip: u32) -> f64 {
    let limit = line.packets_per_second().map_or(0.0, |packets| 1e9 / packets);
    (f64::from(line.on_wire(ip)) * 8e9 / line.bits_per_second).max(limit)
}

/// So many of the sizes, from the smallest to the largest: names of columns, rows.
fn cells(sizes: &[Size], line: &LineEstimate, shown: usize) -> ([&'static str; 5], Vec<Vec<String>>) {
    let mut sorted = sizes.to_vec();
    sorted.sort_by_key(|size| size.ip);
    sorted.dedup_by_key(|size| size.ip);
    let step = sorted.len().div_ceil(shown).max(1);
    let last = sorted.len().saturating_sub(1);
    let row = |size: &Size| {
        vec![
            format!("{} B", size.ip),
            format!("{} B", line.on_wire(size.ip)),
            format!("{:.0}", 1e9 / size.ns),
            format_duration(size.ns as u64),
            format_duration(explained(line, size.ip) as u64),
        ]
    };
    let picked = sorted.iter().enumerate().filter(|(n, _)| n % step == 0 || *n == last);
    (
        ["IP packet", "on the line", "a second", "took", "explained"],
        picked.map(|(_, size)| row(size)).collect(),
    )
}

fn table(sizes: &[Size], line: &LineEstimate) -> Table {
    let (head, rows) = cells(sizes, line, SHOWN);
    let mut table = Table::new(head.map(|name| (name, Align::Right)));
    rows.into_iter().for_each(|row| {
        table.row(row);
    });
    table
}

/// The sizes at which cells and units show.
const CLOSE: u32 = 256;
/// Height of the charts, pixels.
const HEIGHT: f64 = 260.0;

/// The caption of each chart: what it shows, and how to read it.
const CAPTIONS: [(&str, &str); 2] = [
    ("Packets per second", " on the saturated line, by packet size: measured, and as the model predicts."),
    (
        "Transmission time of small packets",
        ": cells and minimum sizes show as steps, a packet rate limit as a flat part at the left.",
    ),
];

/// What was measured, and what the line explains at every size, in dots.
fn drawn(sizes: &[Size], line: &LineEstimate, most: u32, of: impl Fn(f64) -> f64) -> TimeSeriesChart {
    let point = |ip: u32, ns: f64| (f64::from(ip), Some(of(ns)));
    let least = sizes.iter().map(|size| size.ip).min().unwrap_or(0);
    let mut measured: Vec<(f64, Option<f64>)> =
        sizes.iter().filter(|size| size.ip <= most).map(|size| point(size.ip, size.ns)).collect();
    measured.sort_by(|a, b| a.0.total_cmp(&b.0));
    let course = |name: &str, look, points| ChartSeries { name: name.to_owned(), look: Look(look), points };
    let explained = (least..=most).map(|ip| point(ip, explained(line, ip))).collect();
    TimeSeriesChart {
        series: vec![course("explained", 1, explained), course("measured", 0, measured)],
        drawn: SeriesStyle::Dots,
        ..TimeSeriesChart::default()
    }
}

/// Packets per second by size, and how long the small ones took.
pub fn charts(sweep: &Sweep) -> Vec<Drawing> {
    let Some(line) = &sweep.line else { return Vec::new() };
    let largest = sweep.sizes.iter().map(|size| size.ip).max().unwrap_or(0);
    let shortest = sweep.sizes.iter().map(|size| size.ns).fold(f64::INFINITY, f64::min);
    let packets = (
        "Packets per second by size",
        drawn(&sweep.sizes, line, largest, |ns| 1e9 / ns),
        (Axis::sizes(u64::from(largest), 7), Axis::count((1e9 / shortest) as u64, "packets/s", 5)),
    );
    let close = (
        "Transmission time of small packets",
        drawn(&sweep.sizes, line, CLOSE, |ns| ns),
        (Axis::sizes(u64::from(CLOSE), 8), Axis::spans(explained(line, CLOSE) as u64, 5)),
    );
    let text = sentence(sweep);
    let has_small = sweep.sizes.iter().any(|size| size.ip <= CLOSE);
    let all = [Some(packets), has_small.then_some(close)];
    all.into_iter()
        .flatten()
        .map(|(title, what, axes)| time_series(title, &text, axes, HEIGHT, &what))
        .collect()
}

/// The page: an HTML document that needs nothing else.
pub fn page(document: &OverheadDocument) -> String {
    let title = format!("Overhead of the line to {}", document.host);
    let made = format!("tidegate {}", document.version);
    let promise = "This command repeats the sweep; results vary with cross traffic";
    let content = html! {
        header {
            p.eyebrow { "tidegate · a line's overhead, measured" }
            h1.name { (title) }
        }
        main {
            @if let Some(why) = &document.swept.cut {
                p.about { b { "Partial" } ": " (prose(why)) }
            }
            @for way in PathDirection::BOTH {
                @if let Some(sweep) = document.swept.of(way) { (direction(way, sweep)) }
            }
            (ending(&document.caveats, promise, &document.again, &made))
        }
    };
    page_document(&title, content)
}

fn direction(way: PathDirection, sweep: &Sweep) -> Markup {
    html! {
        section {
            h2 { (way.name()) }
            p { (prose(&sentence(sweep))) }
            @for caveat in &sweep.caveats { p { b { "Caveat" } ": " (prose(caveat)) } }
            @if let Some(line) = &sweep.line { (explanation(sweep, line)) }
        }
    }
}

/// The words to paste, both charts, and the sizes in a table.
fn explanation(sweep: &Sweep, line: &LineEstimate) -> Markup {
    let mut pasted = String::new();
    words(&mut pasted, &Words::of(line));
    let (head, rows) = cells(&sweep.sizes, line, usize::MAX);
    let data = Data { caption: "Sizes of IP packets".into(), head: head.map(str::to_owned).to_vec(), rows };
    html! {
        pre { (pasted) }
        @for (drawing, (shows, read)) in charts(sweep).iter().zip(CAPTIONS) {
            figure { figcaption { (tied(html! { b { (shows) } (read) })) } (inline(drawing)) }
        }
        (data.csv_behind())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_measure::overhead::Swept;

    fn document() -> OverheadDocument {
        let wire = |ip: u32| f64::from((ip + 40).div_ceil(48) * 53) * 8e9 / 4e6;
        let sizes =
            (52..160).chain([400, 800, 1428]).map(|ip| Size { ip, ns: wire(ip), error: 0.0 }).collect();
        let swept = Swept { up: Some(Sweep::of_sizes(sizes)), ..Swept::default() };
        OverheadDocument {
            version: "1".into(),
            again: "tidegate overhead far".into(),
            host: "far".into(),
            swept,
            ..OverheadDocument::default()
        }
    }

    #[test]
    fn cells_are_written_as_options_to_paste() {
        let sentence = text(&document());
        for expected in [
            "up: 40 bytes over IP (40 to 40 with 95 % confidence), ATM cells, 53 bytes for each 48 (ADSL), \
            4.00 Mbit/s on the line",
            "  cake's keyword         pppoe-llcsnap\n",
            "  cake                   overhead 40 atm\n",
            "  tc on eth0             overhead 26 linklayer atm\n",
            "   1428 B       1643 B       304  3.29 ms    3.29 ms\n",
        ] {
            assert!(sentence.contains(expected), "{expected} in\n{sentence}");
        }
        assert!(!sentence.contains("caveat"), "{sentence}");
    }

    #[test]
    fn the_page_draws_both_charts() {
        let page = page(&document());
        for expected in [
            "Packets per second by size",
            "Transmission time of small packets",
            "overhead 40 atm",
            "\n1428,1643,304,3.29,3.29\n",
        ] {
            assert!(page.contains(expected), "{expected}");
        }
    }
}
