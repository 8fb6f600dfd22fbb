//! Is a result that of a policy at hand? Figures of another one on its classes would be wrong.

use crate::document::{class_figures, qdisc_options, qdisc_rate};
use crate::home::InstalledTrees;
use std::collections::BTreeMap;
use tidegate_measure::trial::{TreeNode, TrialDocument};
use tidegate_policy::Kind;

/// In what a policy at hand differs from the one that a result is of, in words; `None`: their scripts issued
/// as many commands, and the result's qdiscs and classes are the policy's. Filters are not compared.
///
/// `commands` is the number that the policy's scripts issued, `trees` what they installed.
pub fn difference(result: &TrialDocument, commands: usize, trees: &InstalledTrees) -> Option<String> {
    let of_qdiscs = trees.qdiscs.iter().filter(|qdisc| !qdisc.handle.is_none()).map(|qdisc| TreeNode {
        device: qdisc.dev.clone(),
        id: qdisc.handle.to_string(),
        kind: qdisc.kind.name().to_owned(),
        options: qdisc_options(qdisc),
        rate_bits: qdisc_rate(qdisc),
        ..TreeNode::default()
    });
    let of_classes = trees.classes.iter().map(|class| {
        let (rate_bits, ceil_bits, prio) = class_figures(class);
        let device = class.dev.clone();
        let (id, kind) = (class.classid.to_string(), class.kind.name().to_owned());
        TreeNode { device, id, is_class: true, kind, rate_bits, ceil_bits, prio, ..TreeNode::default() }
    });
    let there: BTreeMap<_, _> = of_qdiscs.chain(of_classes).map(|node| (key(&node), node)).collect();
    let of_node = result.tree.iter().find_map(|node| {
        let thing =
            format!("{} {} on {}", if node.is_class { "class" } else { "qdisc" }, node.id, node.device);
        match there.get(&key(node)) {
            None => Some(format!("{thing} is not in the policy")),
            Some(other) => changed(node, other).map(|what| format!("{thing} has {what} in the policy")),
        }
    });
    let counts = (result.commands, commands as u64);
    of_node.or_else(|| {
        (counts.0 != counts.1).then(|| format!("it is of {} commands, the policy has {}", counts.0, counts.1))
    })
}

/// A qdisc or a class of a device: both may be `1:`.
fn key(node: &TreeNode) -> (String, String, bool) {
    (node.device.clone(), node.id.clone(), node.is_class)
}

/// Are these the options of one qdisc, whatever HTB has counted?
fn is_same(one: &str, other: &str) -> bool {
    let fixed = |text: &str| {
        let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        if let Some(count) = words.iter().position(|word| word == COUNT).and_then(|at| words.get_mut(at + 1))
        {
            count.clear();
        }
        words
    };
    fixed(one) == fixed(other)
}

/// HTB's count of packets past all classes, among its options.
const COUNT: &str = "direct_packets_stat";

/// What differs between a result's qdisc or class and the policy's, as far as no packet changes it.
fn changed(node: &TreeNode, other: &TreeNode) -> Option<&'static str> {
    // RED's listing has what adapts to traffic among the options.
    let is_fixed = node.kind != Kind::Red.name();
    match () {
        () if node.kind != other.kind => Some("another kind"),
        () if node.rate_bits != other.rate_bits => Some("another rate"),
        () if node.ceil_bits != other.ceil_bits => Some("another ceil"),
        () if node.prio != other.prio => Some("another priority"),
        () if !node.is_class && is_fixed && !is_same(&node.options, &other.options) => Some("other options"),
        () => None,
    }
}
