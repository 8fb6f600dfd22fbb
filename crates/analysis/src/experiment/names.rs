//! The names of files, and the ends of links.

use tidegate_measure::experiment::LinkRecord;

/// A name for a file: letters, digits, points, hyphens and underscores; anything else is a hyphen.
pub fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).collect();
    let name = name.trim_matches(['-', '.']);
    if name.is_empty() { "chart".to_owned() } else { name.to_owned() }
}

/// The node an end belongs to: `gateway` of `gateway:eth0`.
fn node_of(end: &str) -> &str {
    end.split_once(':').map_or(end, |(node, _)| node)
}

/// The pairs of nodes that a link joins: several hosts may share one (`a, b`).
pub fn joined(cable: &LinkRecord) -> impl Iterator<Item = (&str, &str)> {
    let from: Vec<&str> = cable.from.split(", ").map(node_of).collect();
    let to: Vec<&str> = cable.to.split(", ").map(node_of).collect();
    from.into_iter().flat_map(move |from| to.clone().into_iter().map(move |to| (from, to)))
}
