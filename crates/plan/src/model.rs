//! What is configured on a model machine.

use tidegate_classify::netfilter as model;
use tidegate_gateway::Gateway;
use tidegate_packet::Time;
use tidegate_policy::dump::{Installed, QdiscDump};
use tidegate_policy::netfilter::{RuleChain, RuleTable};

/// Everything that is configured on a device of the model machine at a moment of its time; nothing, where the
/// machine has no device of that name.
pub fn installed(machine: &mut Gateway, now: Time, dev: &str) -> Installed {
    let Some(device) = machine.device(dev) else { return Installed::default() };
    let (qdiscs, classes) = (machine.qdiscs(now, device), machine.classes(now, device));
    let of_classes = classes.iter().map(|class| class.classid).filter(|class| class.minor() != 0);
    let mut filters = Vec::new();
    for place in qdiscs.iter().flat_map(QdiscDump::filter_lists).chain(of_classes) {
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
