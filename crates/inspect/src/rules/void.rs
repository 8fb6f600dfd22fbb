//! R25: options without effect beside the others of their command.

use super::making::finding;
use crate::finding::{Finding, Level, Rule};
use crate::reading::{PolicyModel, Step, Word};
use tidegate_policy::dump::QdiscDump;
use tidegate_policy::{CakeFlows, CakeParams, CakeTins, QdiscParams};

/// CAKE's options for the cost of a packet on the link, which its own shaper and its turns between flows use.
const FRAMING: [&str; 17] = [
    "overhead",
    "mpu",
    "atm",
    "ptm",
    "conservative",
    "ethernet",
    "ether-vlan",
    "docsis",
    "raw",
    "pppoa-vcmux",
    "pppoa-llc",
    "pppoe-vcmux",
    "pppoe-llcsnap",
    "bridged-vcmux",
    "bridged-llcsnap",
    "pppoe-ptm",
    "bridged-ptm",
];

/// CAKE's words that come to nothing.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let reading = &*reading;
    let mut found = Vec::new();
    for qdisc in &reading.qdiscs {
        let QdiscParams::Cake(cake) = &qdisc.params else { continue };
        let Some(step) = reading.maker_of_qdisc(qdisc).and_then(|op| reading.step_of(op)) else { continue };
        found.extend(framing(qdisc, cake, step));
        let tins: Vec<&str> = CakeTins::ALL.iter().map(|tins| tins.name()).collect();
        found.extend(replaced(step, &tins, cake.tins.map(CakeTins::name)));
        let flows: Vec<&str> = CakeFlows::ALL.iter().map(|flows| flows.name()).collect();
        found.extend(replaced(step, &flows, cake.flows.map(CakeFlows::name)));
    }
    found
}

/// The words behind the kind's name.
fn options(step: &Step) -> &[Word] {
    let kind = step.words.iter().position(|word| word.text == "cake");
    kind.and_then(|at| step.words.get(at + 1..)).unwrap_or(&[])
}

/// What a packet costs on the link, where nothing is shaped.
fn framing(qdisc: &QdiscDump, cake: &CakeParams, step: &Step) -> Option<Finding> {
    let shapes = cake.bandwidth.is_some_and(|rate| rate.0 > 0) || cake.autorate == Some(true);
    if shapes {
        return None;
    }
    let word = options(step).iter().find(|word| FRAMING.contains(&word.text.as_str()))?;
    Some(finding(
        Rule::Void,
        Level::Note,
        word.place.clone().or_else(|| step.place.clone()),
        format!("`{}` shapes nothing: cake {} has no bandwidth", word.text, qdisc.handle),
        "it counts at most in the turns between flows; where another qdisc holds the rate, what a packet takes of \
        the link is said there (overhead and linklayer of htb and tbf, or stab)"
            .into(),
        "bandwidth unlimited".into(),
    ))
}

/// Words of which a command takes one: the last.
fn replaced(step: &Step, among: &[&str], took: Option<&str>) -> Option<Finding> {
    let words: Vec<&Word> = options(step).iter().filter(|word| among.contains(&word.text.as_str())).collect();
    let last = words.last()?;
    let idle = words.iter().find(|word| word.text != last.text)?;
    // The final value must be that of the last of them.
    if took != Some(last.text.as_str()) {
        return None;
    }
    Some(finding(
        Rule::Void,
        Level::Warning,
        idle.place.clone().or_else(|| step.place.clone()),
        format!("`{}` has no effect: `{}` behind it replaces it", idle.text, last.text),
        "cake has one of them at a time, the last that is said".into(),
        format!("cake took {}", last.text),
    ))
}
