//! Nodes and links.

use crate::chart::{Drawing, NetworkLink, NetworkNode, network};
use crate::html::chain::{ChainLink, ChainPlace};
use tidegate_analysis::experiment::joined;
use tidegate_measure::experiment::{Experiment, LinkRecord};

/// The network as a picture; `None` if there is nothing to draw, or too much.
pub(super) fn drawing(experiment: &Experiment) -> Option<Drawing> {
    let places: Vec<NetworkNode> = experiment
        .nodes
        .iter()
        .map(|node| NetworkNode {
            name: node.name.clone(),
            aside: node.devices.join(", "),
            strong: node.kind == "machine",
        })
        .collect();
    let at = |name: &str| experiment.nodes.iter().position(|node| node.name == name);
    let slowest = experiment.links.iter().filter_map(rate).min();
    let cables =
        experiment.links.iter().flat_map(|cable| joined(cable).map(move |(from, to)| (cable, from, to)));
    let road = |(cable, from, to): (&LinkRecord, &str, &str)| {
        Some(NetworkLink {
            from: at(from)?,
            to: at(to)?,
            name: cable.name.clone(),
            there: cable.there.clone(),
            back: cable.back.clone(),
            strong: slowest.is_some() && rate(cable) == slowest,
        })
    };
    let roads: Vec<NetworkLink> = cables.filter_map(road).collect();
    network("The network", &link_text(experiment), &places, &roads)
}

/// The network as a chain, if it is one: hosts that share a link are one place (`a, b`).
pub(super) fn in_a_row(experiment: &Experiment) -> Option<(Vec<ChainPlace>, Vec<ChainLink>)> {
    let ends: Vec<[String; 2]> =
        experiment.links.iter().map(|link| [&link.from, &link.to].map(|end| place_of(end))).collect();
    let mut names: Vec<&String> = Vec::new();
    for name in ends.iter().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let members = || names.iter().flat_map(|name| name.split(", "));
    // Each node in one place, and no node elsewhere.
    let nodes = &experiment.nodes;
    if members().count() != nodes.len() || !nodes.iter().all(|node| members().any(|name| name == node.name)) {
        return None;
    }
    let links_of = |name: &String| ends.iter().filter(|pair| pair.contains(name)).count();
    let order =
        |name: &String| nodes.iter().position(|node| name.split(", ").any(|member| member == node.name));
    let mut here = *names.iter().filter(|name| links_of(name) == 1).min_by_key(|name| order(name))?;
    let slowest = experiment.links.iter().filter_map(rate).min();
    let (mut places, mut links, mut used) =
        (vec![place(experiment, here)], Vec::new(), vec![false; ends.len()]);
    while let Some(at) = (0..ends.len()).find(|&at| !used[at] && ends[at].contains(here)) {
        used[at] = true;
        let (pair, link) = (&ends[at], &experiment.links[at]);
        let ahead = &pair[0] == here;
        here = if ahead { &pair[1] } else { &pair[0] };
        let (there, back) = if ahead { (&link.there, &link.back) } else { (&link.back, &link.there) };
        links.push(ChainLink {
            name: link.name.clone(),
            there: there.clone(),
            back: back.clone(),
            strong: slowest.is_some() && rate(link) == slowest,
        });
        places.push(place(experiment, here));
    }
    // A chain ends where it has passed everything once.
    (places.len() == names.len() && used.iter().all(|used| *used)).then_some((places, links))
}

/// A link as a chain of its own.
pub(super) fn alone(experiment: &Experiment, link: &LinkRecord) -> (Vec<ChainPlace>, Vec<ChainLink>) {
    let places = [&link.from, &link.to].map(|end| place(experiment, &place_of(end)));
    let LinkRecord { name, there, back, .. } = link;
    let link = ChainLink { name: name.clone(), there: there.clone(), back: back.clone(), strong: false };
    (places.to_vec(), vec![link])
}

/// The nodes at the end of a link, without their devices.
fn place_of(end: &str) -> String {
    end.split(", ").map(|end| end.split(':').next().unwrap_or_default()).collect::<Vec<_>>().join(", ")
}

fn place(experiment: &Experiment, name: &str) -> ChainPlace {
    let node = experiment.nodes.iter().find(|node| node.name == name);
    ChainPlace {
        name: name.to_owned(),
        lines: node.map(|node| node.devices.join(", ")).into_iter().collect(),
        strong: node.is_some_and(|node| node.kind == "machine"),
    }
}

/// The slower direction's rate.
fn rate(cable: &LinkRecord) -> Option<u64> {
    [cable.there_bits, cable.back_bits].into_iter().flatten().min()
}

/// The links in words.
fn link_text(experiment: &Experiment) -> String {
    let link = |cable: &LinkRecord| match cable.there == cable.back {
        true => format!("{} from {} to {}: {}", cable.name, cable.from, cable.to, cable.there),
        false => format!(
            "{} from {} to {}: {}; back {}",
            cable.name, cable.from, cable.to, cable.there, cable.back
        ),
    };
    experiment.links.iter().map(link).collect::<Vec<_>>().join(". ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_measure::experiment::NodeRecord;

    fn experiment(nodes: &[&str], links: &[(&str, &str)]) -> Experiment {
        let node = |name: &&str| NodeRecord { name: (*name).to_owned(), ..NodeRecord::default() };
        let link = |(from, to): &(&str, &str)| LinkRecord {
            from: (*from).to_owned(),
            to: (*to).to_owned(),
            there: format!("{from} to {to}"),
            back: format!("{to} to {from}"),
            ..LinkRecord::default()
        };
        Experiment {
            nodes: nodes.iter().map(node).collect(),
            links: links.iter().map(link).collect(),
            ..Experiment::default()
        }
    }

    #[test]
    fn a_chain_is_found_in_any_order_and_direction() {
        let one = experiment(
            &["a", "b", "gw", "isp", "server"],
            &[("server", "isp"), ("a, b", "gw:eth0"), ("gw:eth1", "isp")],
        );
        let (places, links) = in_a_row(&one).expect("it is one");
        let names: Vec<&str> = places.iter().map(|place| place.name.as_str()).collect();
        assert_eq!(names, ["a, b", "gw", "isp", "server"]);
        assert_eq!((links[2].there.as_str(), links[2].back.as_str()), ("isp to server", "server to isp"));
    }

    #[test]
    fn other_networks_are_none() {
        let star = experiment(&["a", "b", "c", "gw"], &[("a", "gw"), ("b", "gw"), ("c", "gw")]);
        let ring = experiment(&["a", "b", "c"], &[("a", "b"), ("b", "c"), ("c", "a")]);
        let parts = experiment(&["a", "b", "c", "d"], &[("a", "b"), ("c", "d")]);
        let twice = experiment(&["a", "b", "c"], &[("a, b", "c"), ("a", "c")]);
        let lonely = experiment(&["a", "b", "c"], &[("a", "b")]);
        for one in [star, ring, parts, twice, lonely, experiment(&[], &[])] {
            assert!(in_a_row(&one).is_none(), "{:?}", one.links);
        }
    }
}
