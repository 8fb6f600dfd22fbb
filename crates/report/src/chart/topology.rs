//! Stations on a way and the wires between them.

use super::drawing::{Body, Drawing, cut, short, words};
use std::fmt::Write as _;

/// A place packets pass.
#[derive(Clone, Debug)]
pub struct Station {
    /// What it is.
    pub name: String,
    /// More about it, a line each.
    pub lines: Vec<String>,
    /// What the picture is about.
    pub strong: bool,
}

/// What joins a station to the next.
#[derive(Clone, Debug)]
pub struct Wire {
    /// To the right.
    pub there: String,
    /// To the left.
    pub back: String,
}

const WIDTH: f64 = 150.0;
const HEIGHT: f64 = 92.0;
const GAP: f64 = 92.0;
/// Characters a station's line holds.
const MOST: usize = 23;

/// Stations in a row.
pub fn topology(title: &str, description: &str, stations: &[Station], wires: &[Wire]) -> Drawing {
    let mut out = String::from(ARROW);
    for (n, station) in stations.iter().enumerate() {
        let x = 1.0 + n as f64 * (WIDTH + GAP);
        let strong = if station.strong { " with" } else { "" };
        let _ = write!(
            out,
            "<rect class=\"mark box{strong}\" x=\"{x}\" y=\"1\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
            rx=\"6\"/>"
        );
        words(&mut out, x + WIDTH / 2.0, 24.0, "strong mid", &cut(&station.name, MOST - 3));
        for (line, text) in (0..).zip(station.lines.iter().take(3)) {
            words(&mut out, x + WIDTH / 2.0, 44.0 + 17.0 * f64::from(line), "mid", &cut(text, MOST));
        }
        if let Some(wire) = wires.get(n).filter(|_| n + 1 < stations.len()) {
            let (from, to) = (x + WIDTH + 4.0, x + WIDTH + GAP - 4.0);
            for (y, a, b, text, dy) in
                [(38.0, from, to, &wire.there, -7.0), (56.0, to, from, &wire.back, 17.0)]
            {
                let _ = write!(
                    out,
                    "<path class=\"edge\" marker-end=\"url(#arrow)\" d=\"M{} {y}H{}\"/>",
                    short(a),
                    short(b)
                );
                words(&mut out, (a + b) / 2.0, y + dy, "mid", text);
            }
        }
    }
    let width = stations.len() as f64 * (WIDTH + GAP) - GAP + 2.0;
    let body = Body::Fixed { width: width.max(2.0), height: HEIGHT + 2.0, content: out };
    Drawing { title: title.to_owned(), description: description.to_owned(), body }
}

const ARROW: &str = "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" \
markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0 8 4 0 8z\" fill=\"currentColor\" \
opacity=\".7\"/></marker></defs>";
