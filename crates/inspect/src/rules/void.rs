//! R25: options without effect beside the others of their command.
//!
//! What Linux makes of flower's keys without their protocol was asked of 6.1 and 7.2: it keeps none of them.

use super::making::finding;
use crate::finding::{Finding, Fix, Level, Rule};
use crate::reading::{PolicyModel, Step, Word};
use tidegate_packet::header::{ethertype, proto};
use tidegate_policy::dump::{FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::{CakeFlows, CakeParams, CakeTins, FilterParams, FlowerField, FlowerKey, QdiscParams};

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

const IP: [u128; 2] = [ethertype::IPV4 as u128, ethertype::IPV6 as u128];
const TCP: [u128; 1] = [proto::TCP as u128];

/// A key of flower that Linux leaves out unless another has one of these values.
struct OfProtocol {
    name: &'static str,
    needs: (FlowerField, &'static [u128]),
    /// What to write for that.
    words: &'static str,
}

const OF_PROTOCOLS: [OfProtocol; 3] = [
    OfProtocol { name: "ip_tos", needs: (FlowerField::EthType, &IP), words: "protocol ip or ipv6" },
    OfProtocol { name: "ip_ttl", needs: (FlowerField::EthType, &IP), words: "protocol ip or ipv6" },
    OfProtocol { name: "tcp_flags", needs: (FlowerField::IpProto, &TCP), words: "ip_proto tcp" },
];

/// CAKE's and flower's words that come to nothing.
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
    found.extend(reading.filters.iter().filter_map(|dump| left_out(reading, dump)));
    found
}

/// A key of flower that the filter has not, for want of its protocol: the filter takes packets whatever they
/// have there. Or an address that it only seems to have.
fn left_out(reading: &PolicyModel, dump: &FilterDump) -> Option<Finding> {
    let FilterEntry::Filter { params: FilterParams::Flower(flower), .. } = &dump.entry else { return None };
    let step = reading.maker_of_filter(dump).and_then(|op| reading.step_of(op))?;
    let is_given = |name: &str| options(step, "flower").iter().find(|word| word.text == name);
    if flower.keys.iter().any(FlowerKey::never_holds) {
        let word = is_given("src_ip").or_else(|| is_given("dst_ip"))?;
        let mut found = finding(
            Rule::Void,
            Level::Error,
            word.place.clone().or_else(|| step.place.clone()),
            format!("with this `{}` the filter matches no packet", word.text),
            "an address of which no bit is compared, without another that is, never fits (Linux 6.1 and 7.2)"
                .into(),
            format!("the filter of preference {} compares no address", dump.pref),
        );
        found.fix = Some(Fix { what: format!("leave {} out", word.text), edits: Vec::new() });
        return Some(found);
    }
    let is_of = |(field, values): (FlowerField, &[u128])| {
        flower.key(field).is_some_and(|key| values.contains(&key.value))
    };
    let lost = OF_PROTOCOLS.iter().filter(|key| !is_of(key.needs));
    let (word, OfProtocol { name, words, .. }) =
        lost.into_iter().find_map(|key| Some((is_given(key.name)?, key)))?;
    let mut found = finding(
        Rule::Void,
        Level::Warning,
        word.place.clone().or_else(|| step.place.clone()),
        format!("`{name}` has no effect: it needs {words}"),
        "Linux leaves such a key out of the filter, which then matches whatever a packet has there".into(),
        format!("the filter of preference {} has no {name}", dump.pref),
    );
    found.fix = Some(Fix { what: format!("say {words}, or leave {name} out"), edits: Vec::new() });
    Some(found)
}

/// The words behind the kind's name.
fn options<'s>(step: &'s Step, kind: &str) -> &'s [Word] {
    let kind = step.words.iter().position(|word| word.text == kind);
    kind.and_then(|at| step.words.get(at + 1..)).unwrap_or(&[])
}

/// What a packet costs on the link, where nothing is shaped.
fn framing(qdisc: &QdiscDump, cake: &CakeParams, step: &Step) -> Option<Finding> {
    let shapes = cake.bandwidth.is_some_and(|rate| rate.0 > 0) || cake.autorate == Some(true);
    if shapes {
        return None;
    }
    let word = options(step, "cake").iter().find(|word| FRAMING.contains(&word.text.as_str()))?;
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
    let words: Vec<&Word> =
        options(step, "cake").iter().filter(|word| among.contains(&word.text.as_str())).collect();
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
