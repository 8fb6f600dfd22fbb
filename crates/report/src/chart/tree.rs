//! A class tree: who shares with whom, what each may have, what it used, and what leads there.

use super::{Body, Drawing, cut, escape, short, words};
use std::fmt::Write as _;

/// A box of the tree; parents come before their children.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// The index of the box it hangs on.
    pub parent: Option<usize>,
    /// Its name, in strong letters.
    pub name: String,
    /// Small letters at the right of the name.
    pub aside: String,
    /// Lines of text.
    pub lines: Vec<String>,
    /// Its colour from 1, if it has one.
    pub colour: Option<usize>,
    /// The share of its ceiling that it used, and the share it is guaranteed, 0 to 1.
    pub load: Option<(f64, Option<f64>)>,
    /// What leads here.
    pub filters: Vec<String>,
    /// Nothing comes here; why.
    pub dead: Option<String>,
}

const WIDTH: f64 = 216.0;
const GAP: f64 = 34.0;
const LINE: f64 = 16.0;
/// Characters a line of a box holds.
const MOST: usize = 31;
/// Pixels for what leads to a box, and the characters that fit.
const FILTERS: (f64, usize) = (270.0, 40);
/// Filters told of one box.
const MOST_FILTERS: usize = 3;

impl Node {
    fn height(&self) -> f64 {
        30.0 + LINE * self.lines.len() as f64 + if self.load.is_some() { 14.0 } else { 2.0 }
    }

    /// What stands beside a leaf: a reason, or filters.
    fn beside(&self) -> Vec<(&'static str, String)> {
        let mut told: Vec<(&str, String)> =
            self.dead.iter().map(|why| ("lost", format!("unreachable: {why}"))).collect();
        let room = MOST_FILTERS - told.len();
        let more = self.filters.len().saturating_sub(room);
        told.extend(self.filters.iter().take(room).map(|filter| ("", format!("◂ {filter}"))));
        if more > 0 {
            told.push(("", format!("◂ {more} more")));
        }
        told
    }
}

/// The tree from left (where packets leave) to right (where they come in).
pub fn tree(title: &str, description: &str, nodes: &[Node]) -> Drawing {
    let depth = depths(nodes);
    let (centre, height) = rows(nodes);
    let columns = depth.iter().max().map_or(1, |deepest| deepest + 1);
    let left = |n: usize| 1.0 + depth[n] as f64 * (WIDTH + GAP);
    let mut out = String::from(HATCH);
    for (n, node) in nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            let (x0, y0) = (left(parent) + WIDTH, centre[parent]);
            let (x1, y1) = (left(n), centre[n]);
            let middle = short((x0 + x1) / 2.0);
            let _ = write!(out, "<path class=\"edge\" d=\"M{x0} {}H{middle}V{}H{x1}\"/>", short(y0), short(y1));
        }
    }
    for (n, node) in nodes.iter().enumerate() {
        let top = centre[n] - node.height() / 2.0;
        boxed(&mut out, node, left(n), top);
        let beside = node.beside();
        let first = centre[n] + 4.0 - LINE * (beside.len() as f64 - 1.0) / 2.0;
        // Beside an inner box stand its children.
        let leaf = !nodes.iter().any(|other| other.parent == Some(n));
        if leaf {
            for (line, (class, text)) in beside.iter().enumerate() {
                filter(&mut out, left(n) + WIDTH + 10.0, first + LINE * line as f64, class, text);
            }
        }
    }
    let width = 2.0 + columns as f64 * (WIDTH + GAP) - GAP + FILTERS.0;
    let body = Body::Fixed { width, height: height.max(2.0), content: out };
    Drawing { title: title.to_owned(), description: description.to_owned(), body }
}

const HATCH: &str = "<defs><pattern id=\"hatch\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
                     <path class=\"hatching\" d=\"M0 0V8\"/></pattern></defs>";

fn depths(nodes: &[Node]) -> Vec<usize> {
    let mut depths: Vec<usize> = Vec::with_capacity(nodes.len());
    for node in nodes {
        depths.push(node.parent.and_then(|parent| depths.get(parent)).map_or(0, |depth| depth + 1));
    }
    depths
}

/// The middle of each box: leaves one below the other, parents between their first and last child. And the height of all.
fn rows(nodes: &[Node]) -> (Vec<f64>, f64) {
    let mut centre = vec![0.0; nodes.len()];
    let mut y = 1.0;
    let mut order = Vec::new();
    for (n, _) in nodes.iter().enumerate().filter(|(_, node)| node.parent.is_none()) {
        depth_first(nodes, n, &mut order);
    }
    for &n in &order {
        if !nodes.iter().any(|other| other.parent == Some(n)) {
            let beside = 10.0 + LINE * nodes[n].beside().len() as f64;
            let height = nodes[n].height().max(beside);
            centre[n] = y + height / 2.0;
            y += height + 12.0;
        }
    }
    for &n in order.iter().rev() {
        let mut children =
            nodes.iter().enumerate().filter(|(_, other)| other.parent == Some(n)).map(|(c, _)| centre[c]);
        if let Some(first) = children.next() {
            centre[n] = (first + children.next_back().unwrap_or(first)) / 2.0;
        }
    }
    // A tall parent of one small child reaches above or below it.
    let highest = (0..nodes.len()).map(|n| centre[n] - nodes[n].height() / 2.0).fold(1.0, f64::min);
    centre.iter_mut().for_each(|c| *c += 1.0 - highest);
    let lowest = (0..nodes.len()).map(|n| centre[n] + nodes[n].height() / 2.0).fold(y - 12.0, f64::max);
    (centre, lowest + 2.0)
}

fn depth_first(nodes: &[Node], n: usize, order: &mut Vec<usize>) {
    order.push(n);
    for (child, _) in nodes.iter().enumerate().skip(n + 1).filter(|(_, other)| other.parent == Some(n)) {
        depth_first(nodes, child, order);
    }
}

fn boxed(out: &mut String, node: &Node, x: f64, top: f64) {
    let (y, height) = (short(top), short(node.height()));
    let dead = if node.dead.is_some() { " dead" } else { "" };
    let _ = write!(
        out,
        "<rect class=\"mark box{dead}\" x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{height}\" rx=\"6\"/>"
    );
    if let Some(colour) = node.colour {
        let (y, height) = (short(top + 6.0), short(node.height() - 12.0));
        let _ = write!(
            out,
            "<rect class=\"f{colour}\" x=\"{}\" y=\"{y}\" width=\"5\" height=\"{height}\" rx=\"2\"/>",
            x + 6.0
        );
    }
    words(out, x + 18.0, top + 20.0, "strong halo", &cut(&node.name, 18));
    words(out, x + WIDTH - 10.0, top + 20.0, "end halo", &cut(&node.aside, 20));
    for (line, text) in node.lines.iter().enumerate() {
        words(out, x + 18.0, top + 37.0 + LINE * line as f64, "halo", &cut(text, MOST));
    }
    if let Some((used, sure)) = node.load {
        let y = top + node.height() - 14.0;
        let (x, wide) = (x + 18.0, WIDTH - 28.0);
        let colour = node.colour.unwrap_or(super::OTHERS);
        let _ = write!(out, "<rect class=\"track\" x=\"{x}\" y=\"{}\" width=\"{wide}\" height=\"6\"/>", short(y));
        let _ = write!(
            out,
            "<rect class=\"f{colour}\" x=\"{x}\" y=\"{}\" width=\"{}\" height=\"6\"/>",
            short(y),
            short(used.clamp(0.0, 1.0) * wide)
        );
        if let Some(sure) = sure {
            let x = short(x + sure.clamp(0.0, 1.0) * wide);
            let _ = write!(out, "<path class=\"tick\" d=\"M{x} {}v10\"/>", short(y - 2.0));
        }
    }
}

fn filter(out: &mut String, x: f64, y: f64, class: &str, text: &str) {
    let shown = cut(text, FILTERS.1);
    let _ = write!(out, "<text class=\"{class}\" x=\"{}\" y=\"{}\">", short(x), short(y));
    if shown != text {
        let _ = write!(out, "<title>{}</title>", escape(text));
    }
    let _ = write!(out, "{}</text>", escape(&shown));
}
