//! Nodes and links.

use crate::chart::{Drawing, NetworkLink, NetworkNode, network};
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
