//! What is configured on a model machine.

use tidegate_classify::netfilter as model;
use tidegate_gateway::Gateway;
use tidegate_packet::{Handle, Time};
use tidegate_policy::Kind;
use tidegate_policy::dump::{Installed, QdiscDump};
use tidegate_policy::netfilter::{RuleChain, RuleTable};

/// Everything that is configured on a device of the model machine at a moment of its time; nothing, where the
/// machine has no device of that name.
pub fn installed(machine: &mut Gateway, now: Time, dev: &str) -> Installed {
    let Some(device) = machine.device(dev) else { return Installed::default() };
    let (qdiscs, classes) = (machine.qdiscs(now, device), machine.classes(now, device));
    let of_qdisc = |qdisc: &QdiscDump| match qdisc.kind {
        // It has a list for each direction, and none of its own.
        Kind::Clsact => vec![Handle::CLSACT_INGRESS, Handle::CLSACT_EGRESS],
        _ => vec![qdisc.handle],
    };
    let of_classes = classes.iter().map(|class| class.classid).filter(|class| class.minor() != 0);
    let places: Vec<Handle> =
        qdiscs.iter().flat_map(of_qdisc).chain(of_classes).filter(|place| !place.is_none()).collect();
    let mut filters = Vec::new();
    for place in places {
        filters.extend(machine.own_filters(now, device, place).unwrap_or_default());
    }
    Installed { qdiscs, classes, filters }
}

/// The tables of netfilter's rules on a model machine that do anything.
pub fn rule_tables(machine: &Gateway) -> Vec<RuleTable> {
    let chain = |chain: &model::NetfilterChain| RuleChain {
        name: chain.name.clone(),
        base: chain.base,
        accepts: chain.policy.unwrap_or(true),
        rules: chain.rules.iter().map(|counted| counted.rule.clone()).collect(),
    };
    let table = |table: &model::NetfilterTable| RuleTable {
        family: table.family(),
        name: table.name().to_owned(),
        chains: table.chains().iter().map(chain).collect(),
    };
    machine.all_tables().iter().map(table).filter(RuleTable::does_anything).collect()
}
