//! Nodes and links: nodes in columns by their distance from one end, links between them with what they carry.

use super::drawing::{Body, Drawing, cut, escape, short, words};
use std::fmt::Write as _;

/// A node of the network.
#[derive(Clone, Debug, Default)]
pub struct NetworkNode {
    /// The node's name, written below its box.
    pub name: String,
    /// More about it.
    pub aside: String,
    /// What the picture is about.
    pub strong: bool,
}

/// What joins two places, by their numbers.
#[derive(Clone, Debug, Default)]
pub struct NetworkLink {
    /// One end.
    pub from: usize,
    /// The other end.
    pub to: usize,
    /// What it is called.
    pub name: String,
    /// What it carries from the first end to the other.
    pub there: String,
    /// What it carries back.
    pub back: String,
    /// It is the slowest link.
    pub strong: bool,
}

const WIDE: f64 = 116.0;
const HIGH: f64 = 46.0;
const BESIDE: f64 = 146.0;
const ROW: f64 = 104.0;
/// Pixels between a place that has many roads and where these part.
const STUB: f64 = 14.0;
/// Characters that fit on a road, in one line.
const FITS: usize = 19;
/// Lines above a road, and below it.
const MOST_LINES: usize = 3;
const LINE: f64 = 12.0;
/// From here on it would be no picture.
const MOST_PLACES: usize = 40;

/// The position of a node: its column and its height.
#[derive(Clone, Copy, Debug, Default)]
struct Spot {
    column: usize,
    y: f64,
}

/// Places and roads; `None` if there are too many to draw, or none.
pub fn network(
    title: &str,
    description: &str,
    places: &[NetworkNode],
    roads: &[NetworkLink],
) -> Option<Drawing> {
    if places.is_empty() || places.len() > MOST_PLACES {
        return None;
    }
    let spots = spots(places.len(), roads);
    let mut out = String::new();
    for road in roads {
        way(&mut out, road, &spots, roads);
    }
    for (place, spot) in places.iter().zip(&spots) {
        boxed(&mut out, place, *spot);
    }
    let columns = spots.iter().map(|spot| spot.column).max().unwrap_or(0) + 1;
    let height = spots.iter().map(|spot| spot.y).fold(0.0, f64::max) + HIGH / 2.0 + 28.0;
    let width = columns as f64 * (WIDE + BESIDE) - BESIDE + 4.0;
    let body = Body::Fixed { width, height, content: out };
    Some(Drawing { title: title.to_owned(), description: description.to_owned(), body })
}

fn x_of(spot: Spot) -> f64 {
    2.0 + spot.column as f64 * (WIDE + BESIDE)
}

/// Columns by distance from one end of the longest path; rows so that neighbours are near each other.
fn spots(count: usize, roads: &[NetworkLink]) -> Vec<Spot> {
    let furthest = |from: usize| distances(from, count, roads).into_iter().max().unwrap_or(0);
    // The first of those that are furthest from something: scenarios name the users first.
    let begin = (0..count).min_by_key(|&n| usize::MAX - furthest(n)).unwrap_or(0);
    let mut columns = distances(begin, count, roads);
    back_to_front(&mut columns, roads);
    let mut spots: Vec<Spot> = columns.iter().map(|&column| Spot { column, y: 0.0 }).collect();
    let most = (0..count).map(|n| columns.iter().filter(|&&c| c == n).count()).max().unwrap_or(1) as f64;
    for column in 0..count {
        let mut here: Vec<usize> = (0..count).filter(|&n| columns[n] == column).collect();
        let wanted = |n: &usize| {
            neighbours(*n, roads).filter(|&m| columns[m] < column).map(|m| spots[m].y).sum::<f64>()
        };
        here.sort_by(|a, b| wanted(a).total_cmp(&wanted(b)));
        let top = 58.0 + (most - here.len() as f64) * ROW / 2.0;
        for (row, n) in here.into_iter().enumerate() {
            spots[n].y = top + ROW * row as f64;
        }
    }
    spots
}

/// A node in the nearer half with one neighbour only is placed before it: users beside users.
fn back_to_front(columns: &mut [usize], roads: &[NetworkLink]) {
    let last = columns.iter().copied().max().unwrap_or(0);
    for n in 0..columns.len() {
        let near: Vec<usize> = neighbours(n, roads).filter(|&m| m < columns.len()).collect();
        if let [only] = near[..]
            && columns[only] > 0
            && columns[only] < columns[n]
            && columns[only] * 2 <= last
        {
            columns[n] = columns[only] - 1;
        }
    }
}

fn neighbours(of: usize, roads: &[NetworkLink]) -> impl Iterator<Item = usize> {
    roads.iter().filter_map(move |road| match of {
        n if n == road.from => Some(road.to),
        n if n == road.to => Some(road.from),
        _ => None,
    })
}

/// Links from a node to every other; unreachable nodes are in the first column.
fn distances(from: usize, count: usize, roads: &[NetworkLink]) -> Vec<usize> {
    let mut known = vec![None; count];
    let mut reached = vec![from];
    known[from] = Some(0);
    let mut next = 0;
    while let Some(&here) = reached.get(next) {
        next += 1;
        let far = known[here].unwrap_or(0) + 1;
        for there in neighbours(here, roads).filter(|&n| n < count) {
            if known[there].is_none() {
                known[there] = Some(far);
                reached.push(there);
            }
        }
    }
    known.into_iter().map(|far| far.unwrap_or(0)).collect()
}

fn boxed(out: &mut String, place: &NetworkNode, spot: Spot) {
    let (x, y) = (x_of(spot), spot.y - HIGH / 2.0);
    let strong = if place.strong { " with" } else { "" };
    let _ = write!(
        out,
        "<rect class=\"mark box{strong}\" x=\"{}\" y=\"{}\" width=\"{WIDE}\" height=\"{HIGH}\" rx=\"6\"/>",
        short(x),
        short(y)
    );
    let name = if place.aside.is_empty() { spot.y + 4.0 } else { spot.y - 3.0 };
    words(out, x + WIDE / 2.0, name, "strong mid", &cut(&place.name, 16));
    words(out, x + WIDE / 2.0, spot.y + 14.0, "small mid", &cut(&place.aside, 21));
}

fn way(out: &mut String, road: &NetworkLink, spots: &[Spot], roads: &[NetworkLink]) {
    let (Some(&from), Some(&to)) = (spots.get(road.from), spots.get(road.to)) else { return };
    // From left to right; the arrows of the words are turned with it.
    let turned = from.column > to.column;
    let (left, right, l) = if turned { (to, from, road.to) } else { (from, to, road.from) };
    let parts = roads.iter().filter(|other| other.from == l || other.to == l).count() > 2;
    let many_ahead =
        neighbours(l, roads).filter(|&n| spots.get(n).is_some_and(|s| s.column > left.column)).count() > 1;
    let (x1, x2) = (x_of(left) + WIDE, x_of(right));
    let class = if road.strong { "edge ink-edge" } else { "edge" };
    let mut path = |d: String| {
        let _ = write!(out, "<path class=\"{class}\" d=\"{d}\"/>");
    };
    if left.column == right.column {
        let (x, bulge) = (x_of(left) + WIDE, 26.0);
        path(format!(
            "M{0} {1}C{2} {1} {2} {3} {0} {3}",
            short(x),
            short(left.y),
            short(x + bulge),
            short(right.y)
        ));
        label(out, road, (x + 8.0, x + BESIDE), (left.y + right.y) / 2.0, turned);
    } else if many_ahead && parts {
        path(format!(
            "M{} {}H{}V{}H{}",
            short(x1),
            short(left.y),
            short(x1 + STUB),
            short(right.y),
            short(x2)
        ));
        label(out, road, (x1 + STUB, x2), right.y, turned);
    } else {
        path(format!(
            "M{} {}H{}V{}H{}",
            short(x1),
            short(left.y),
            short(x2 - STUB),
            short(right.y),
            short(x2)
        ));
        label(out, road, (x1, x2 - STUB), left.y, turned);
    }
}

/// What a road carries, above and below it.
fn label(out: &mut String, road: &NetworkLink, (from, to): (f64, f64), y: f64, turned: bool) {
    let middle = (from + to) / 2.0;
    let class = if road.strong { "small strong mid" } else { "small mid" };
    let mut line = |dy: f64, shown: &str, whole: &str| {
        let (x, y) = (short(middle), short(y + dy));
        let (shown, whole) = (escape(shown), escape(whole));
        let _ =
            write!(out, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\"><title>{whole}</title>{shown}</text>");
    };
    let (ahead, behind) = if turned { (&road.back, &road.there) } else { (&road.there, &road.back) };
    let (ahead, behind) = match ahead == behind {
        true => (ahead.clone(), String::new()),
        false => (format!("→ {ahead}"), format!("← {behind}")),
    };
    let above = broken(&ahead);
    let top = -6.0 - LINE * (above.len() as f64 - 1.0);
    line(top - LINE, &road.name, &road.name);
    for (n, text) in above.iter().enumerate() {
        line(top + LINE * n as f64, text, &ahead);
    }
    for (n, text) in broken(&behind).iter().enumerate() {
        line(15.0 + LINE * n as f64, text, &behind);
    }
}

/// A list in as many lines as there may be; what does not fit is cut.
fn broken(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for piece in text.split_inclusive(", ") {
        let last = lines.len() == MOST_LINES;
        match lines.last_mut() {
            Some(line) if last || line.chars().count() + piece.trim_end().chars().count() <= FITS => {
                line.push_str(piece)
            }
            _ => lines.push(piece.to_owned()),
        }
    }
    lines.into_iter().map(|line| cut(line.trim_end(), FITS + 2)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_by_distance() {
        let road = |from, to| NetworkLink { from, to, ..NetworkLink::default() };
        // a and b behind a gateway, a line, two targets.
        let roads = [road(0, 2), road(1, 2), road(2, 3), road(3, 4), road(5, 3)];
        let columns: Vec<usize> = spots(6, &roads).iter().map(|spot| spot.column).collect();
        assert_eq!(columns, [0, 0, 1, 2, 3, 3]);
        let lines = broken("→ 768 kbit/s, 8 ms, buffer 64 kB, loses 1 %, and much more");
        assert_eq!(lines, ["→ 768 kbit/s, 8 ms,", "buffer 64 kB,", "loses 1 %, and much…"]);
        assert_eq!(distances(0, 3, &[road(0, 1)]), [0, 1, 0], "what cannot be reached is there too");
    }
}
