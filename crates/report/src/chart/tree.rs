//! A class tree: the classes with their limits, what they sent, and the filters that lead there.

use super::drawing::{Body, Drawing, OTHERS, cut, escape, short, words};
use std::fmt::Write as _;

/// A box of the tree; parents come before their children.
#[derive(Clone, Debug, Default)]
pub struct TreeBox {
    /// The index of its parent's box.
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
    /// How warm it is painted, 0 to 1.
    pub heat: Option<f64>,
}

/// Something that goes from one box to another beside the tree.
#[derive(Clone, Debug, Default)]
pub struct TreeEdge {
    /// The index of the box it leaves.
    pub from: usize,
    /// The index of the box it comes to.
    pub to: usize,
    /// What goes there.
    pub text: String,
}

/// What warmth means.
#[derive(Clone, Debug, Default)]
pub struct Legend {
    /// What it is.
    pub words: String,
    /// What the coldest is.
    pub low: String,
    /// What the warmest is.
    pub high: String,
}

const WIDTH: f64 = 300.0;
/// How much further to the right than its parent a child is.
const INDENT: f64 = 24.0;
const LINE: f64 = 16.0;
/// Between boxes.
const GAP: f64 = 10.0;
/// Characters a line of a box holds.
const MOST: usize = 40;
/// Pixels for what leads to a box, and the characters that fit.
const FILTERS: (f64, usize) = (360.0, 50);
/// Filters lines of one box.
const MOST_FILTERS: usize = 3;

impl TreeBox {
    fn height(&self) -> f64 {
        30.0 + LINE * self.lines.len() as f64 + if self.load.is_some() { 14.0 } else { 2.0 }
    }

    /// The words beside a leaf: a reason, or filters.
    fn beside(&self) -> Vec<(&'static str, String)> {
        let mut lines: Vec<(&str, String)> =
            self.dead.iter().map(|why| ("lost", format!("unreachable: {why}"))).collect();
        let room = MOST_FILTERS - lines.len();
        let more = self.filters.len().saturating_sub(room);
        lines.extend(self.filters.iter().take(room).map(|filter| ("", format!("◂ {filter}"))));
        if more > 0 {
            lines.push(("", format!("◂ {more} more")));
        }
        lines
    }
}

/// The tree, roots on top, children below and to the right of their parent; the filters that lead to a box
/// are on its right.
pub fn tree(title: &str, description: &str, nodes: &[TreeBox]) -> Drawing {
    forest(title, description, nodes, &[], None)
}

/// Several trees, what goes between them beside, and what warmth means on top.
pub fn forest(
    title: &str,
    description: &str,
    nodes: &[TreeBox],
    links: &[TreeEdge],
    legend: Option<&Legend>,
) -> Drawing {
    let mut out = String::from(HATCH);
    let mut places: Vec<(f64, f64)> = vec![(1.0, 1.0); nodes.len()];
    let mut width = legend.map_or(0.0, |legend| scale(&mut out, legend));
    let mut y = if legend.is_some() { 1.0 + LEGEND } else { 1.0 };
    // Links run on the left, each in a lane of its own.
    let left = 1.0 + LANE * links.len() as f64;
    for (n, depth) in order(nodes) {
        let node = &nodes[n];
        let x = left + INDENT * depth as f64;
        places[n] = (x, y);
        if let Some(parent) = node.parent {
            let (left, top) = places[parent];
            let (from, to) = (top + nodes[parent].height(), (y + 20.0).floor() + 0.5);
            let line = (left + INDENT / 2.0).floor() + 0.5;
            let _ = write!(out, "<path class=\"edge\" d=\"M{line} {}V{}H{x}\"/>", short(from), short(to));
        }
        boxed(&mut out, node, x, y);
        let beside = node.beside();
        for (line, (class, text)) in (0..).zip(&beside) {
            filter(&mut out, x + WIDTH + 10.0, y + 20.0 + LINE * f64::from(line), class, text);
        }
        width = width.max(x + WIDTH + if beside.is_empty() { 1.0 } else { FILTERS.0 });
        y += node.height().max(8.0 + LINE * beside.len() as f64) + GAP;
    }
    for (lane, link) in links.iter().enumerate() {
        if let (Some(from), Some(to)) = (places.get(link.from), places.get(link.to)) {
            arrow(&mut out, link, *from, *to, 1.0 + LANE * lane as f64 + LANE / 2.0);
        }
    }
    let body = Body::Fixed { width: width.max(2.0), height: (y - GAP + 2.0).max(2.0), content: out };
    Drawing { title: title.to_owned(), description: description.to_owned(), body }
}

/// Pixels for the legend.
const LEGEND: f64 = 34.0;
/// Pixels for a link beside the tree.
const LANE: f64 = 16.0;

/// The legend; returns its width.
fn scale(out: &mut String, legend: &Legend) -> f64 {
    const STEPS: u32 = 12;
    const STEP: f64 = 10.0;
    words(out, 1.0, 16.0, "", &legend.low);
    let from = 36.0;
    for step in 0..STEPS {
        let _ = write!(
            out,
            "<rect class=\"heat\" style=\"opacity:{:.2}\" x=\"{}\" y=\"6\" width=\"{STEP}\" height=\"12\"/>",
            warmth(f64::from(step) / f64::from(STEPS - 1)),
            short(from + STEP * f64::from(step))
        );
    }
    let to = from + STEP * f64::from(STEPS) + 8.0;
    words(out, to, 16.0, "", &legend.high);
    words(out, to + 56.0, 16.0, "ink", &legend.words);
    to + 56.0 + 6.5 * legend.words.chars().count() as f64
}

/// How strong the colour is that a value is painted with: text on it stays readable.
fn warmth(value: f64) -> f64 {
    0.04 + 0.4 * value.clamp(0.0, 1.0)
}

/// A dashed line from one box to another, round the left, with a head; its text comes up where it is pointed
/// at.
fn arrow(out: &mut String, link: &TreeEdge, (x1, y1): (f64, f64), (x2, y2): (f64, f64), lane: f64) {
    let (from, to) = (short(y1 + 15.0), short(y2 + 15.0));
    let _ = write!(
        out,
        "<path class=\"edge dashed\" d=\"M{} {from}H{}V{to}H{}\"><title>{}</title></path>",
        short(x1),
        short(lane),
        short(x2),
        escape(&link.text)
    );
    let (x, y) = (x2, y2 + 15.0);
    let _ = write!(
        out,
        "<path class=\"head\" d=\"M{} {}L{} {}L{} {}Z\"/>",
        short(x),
        short(y),
        short(x - 6.0),
        short(y - 4.0),
        short(x - 6.0),
        short(y + 4.0)
    );
}

/// Boxes with their depths, each before its children, these in the order given.
fn order(nodes: &[TreeBox]) -> Vec<(usize, usize)> {
    let mut order = Vec::with_capacity(nodes.len());
    let roots = nodes.iter().enumerate().filter(|(_, node)| node.parent.is_none());
    let mut waiting: Vec<(usize, usize)> = roots.map(|(n, _)| (n, 0)).collect();
    waiting.reverse();
    while let Some((n, depth)) = waiting.pop() {
        order.push((n, depth));
        // Parents come before their children: what claims otherwise is left out, and nothing turns in
        // circles.
        let children = nodes.iter().enumerate().skip(n + 1).filter(|(_, child)| child.parent == Some(n));
        let children: Vec<(usize, usize)> = children.map(|(child, _)| (child, depth + 1)).collect();
        waiting.extend(children.into_iter().rev());
    }
    order
}

const HATCH: &str = "<defs><pattern id=\"hatch\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\" \
patternTransform=\"rotate(45)\">\
                     <path class=\"hatching\" d=\"M0 0V8\"/></pattern></defs>";

fn boxed(out: &mut String, node: &TreeBox, x: f64, top: f64) {
    let (y, height) = (short(top), short(node.height()));
    let dead = if node.dead.is_some() { " dead" } else { "" };
    let _ = write!(
        out,
        "<rect class=\"mark box{dead}\" x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{height}\" rx=\"6\"/>"
    );
    if let Some(heat) = node.heat {
        let _ = write!(
            out,
            "<rect class=\"heat\" style=\"opacity:{:.2}\" x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" \
            height=\"{height}\" rx=\"6\"/>",
            warmth(heat)
        );
    }
    if let Some(colour) = node.colour {
        let (y, height) = (short(top + 6.0), short(node.height() - 12.0));
        let _ = write!(
            out,
            "<rect class=\"f{colour}\" x=\"{}\" y=\"{y}\" width=\"5\" height=\"{height}\" rx=\"2\"/>",
            x + 6.0
        );
    }
    // On hatching, words need a ground.
    let halo = if node.dead.is_some() { " halo" } else { "" };
    words(out, x + 18.0, top + 20.0, &format!("strong{halo}"), &cut(&node.name, 26));
    words(out, x + WIDTH - 10.0, top + 20.0, &format!("end{halo}"), &cut(&node.aside, 20));
    for (line, text) in node.lines.iter().enumerate() {
        words(out, x + 18.0, top + 37.0 + LINE * line as f64, halo.trim(), &cut(text, MOST));
    }
    if let Some((used, sure)) = node.load {
        let y = top + node.height() - 14.0;
        let (x, wide) = (x + 18.0, WIDTH - 28.0);
        let colour = node.colour.unwrap_or(OTHERS);
        let _ =
            write!(out, "<rect class=\"track\" x=\"{x}\" y=\"{}\" width=\"{wide}\" height=\"6\"/>", short(y));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_before_children_and_no_circles() {
        let node = |parent| TreeBox { parent, ..TreeBox::default() };
        let nodes = [
            node(None),
            node(Some(0)),
            node(Some(0)),
            node(Some(1)),
            node(Some(5)),
            node(Some(4)),
            node(None),
        ];
        assert_eq!(order(&nodes), [(0, 0), (1, 1), (3, 2), (2, 1), (6, 0)]);
    }
}
