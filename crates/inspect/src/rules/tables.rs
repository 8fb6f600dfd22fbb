//! R15: what a script does to rules that are not its own.

use super::making::finding;
use crate::finding::{Finding, Fix, Level, Rule};
use crate::reading::{PolicyModel, Step};
use crate::words::count;
use std::collections::BTreeSet;
use tidegate_gateway::GatewayContext;
use tidegate_packet::{Pool, Seeded};
use tidegate_policy::Op;
use tidegate_policy::netfilter::{
    Condition, Family, Match, NetfilterRule as NfRule, NetfilterTarget, NfCommand, NfOp,
};

/// The address for measuring these rules, which no host has (RFC 5737).
const UNUSED_ADDRESS: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1];

/// Tables emptied, and marks for packets of all devices.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for at in 0..reading.ops.len() {
        if let Op::Netfilter(NfOp { command: NfCommand::Flush(None), .. }) = &reading.ops[at] {
            found.extend(flushed(reading, at));
        }
    }
    found.extend(ruleset_flushed(reading));
    found.extend(everywhere(reading));
    found
}

/// `nft flush ruleset` in a script: in a file of nft alone, which defines a firewall, that is its purpose.
fn ruleset_flushed(reading: &PolicyModel) -> Option<Finding> {
    let flushes =
        |step: &&Step| step.tool == "nft" && step.words.iter().map(|word| word.text.as_str()).eq(FLUSH_ALL);
    let step = reading.steps.iter().filter(|_| reading.is_script()).find(flushes)?;
    let mut finding = finding(
        Rule::Flush,
        Level::Warning,
        step.place.clone(),
        "every table of nftables is deleted, not only this policy's".to_owned(),
        "rules of the firewall, of containers and of other policies go with it".to_owned(),
        "`flush ruleset` names no table".to_owned(),
    );
    finding.fix = Some(Fix {
        what: "keep the rules in a table of their own, and delete that: nft delete table inet qos".to_owned(),
        edits: Vec::new(),
    });
    Some(finding)
}

/// The words of the command that deletes all tables.
const FLUSH_ALL: [&str; 2] = ["flush", "ruleset"];

/// A table flushed as a whole: a rule that existed before is gone.
fn flushed(reading: &PolicyModel, at: usize) -> Option<Finding> {
    let Op::Netfilter(NfOp { family, table, .. }) = &reading.ops[at] else { return None };
    let step = reading.step_of(at)?;
    // A file for -restore defines the whole table: that is its purpose.
    if step.tool.ends_with("-restore") || step.words.is_empty() {
        return None;
    }
    let (before, after) = foreign_rules(reading, *family, table)?;
    if after == before {
        return None;
    }
    let what = format!("every rule of the table {table} is deleted, not only this policy's");
    let because = "rules of the firewall, of containers and of other policies go with it".to_owned();
    let witness = format!("of {before} rules of other programs, one in each chain, {after} are left");
    let mut finding = finding(Rule::Flush, Level::Warning, step.place.clone(), what, because, witness);
    finding.fix = Some(Fix {
        what: format!(
            "keep the rules in a chain of their own (-t {table} -N QOS, and -j QOS where they hang now), \
            and flush that: -t {table} -F QOS"
        ),
        edits: Vec::new(),
    });
    Some(finding)
}

/// Foreign rules in every chain of a table, before and after the policy was carried out.
fn foreign_rules(reading: &PolicyModel, family: Family, table: &str) -> Option<(usize, usize)> {
    // A table of nft is its maker's own.
    let ipv6 = match family {
        Family::Ipv4 => false,
        Family::Ipv6 => true,
        Family::Inet => return None,
    };
    let mut gateway = reading.machine_before();
    let rule = NfRule {
        matches: vec![Match { not: false, what: Condition::Source(UNUSED_ADDRESS, 32) }],
        target: Some(NetfilterTarget::Return),
        ..NfRule::default()
    };
    let chains: Vec<String> =
        gateway.table(ipv6, table).chains().iter().map(|chain| chain.name.clone()).collect();
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    let foreign = chains.iter().map(|chain| {
        let command = NfCommand::Append(chain.clone(), rule.clone());
        Op::Netfilter(NfOp { family, table: table.to_owned(), command })
    });
    for op in foreign.chain(reading.ops.iter().cloned()) {
        // What is refused now is so because of the rules that are there.
        let _ = gateway.apply(
            GatewayContext { now: crate::reading::CARRIED_OUT_AT, pool: &mut pool, random: &mut draws },
            &op,
        );
    }
    let count = |chain: &tidegate_classify::netfilter::NetfilterChain| {
        chain.rules.iter().filter(|counted| counted.rule == rule).count()
    };
    let left = gateway.table(ipv6, table).chains().iter().map(count).sum();
    Some((chains.len(), left))
}

/// Does a target end a packet's way through its chain?
fn ends(target: &NetfilterTarget) -> bool {
    matches!(
        target,
        NetfilterTarget::Accept
            | NetfilterTarget::Return
            | NetfilterTarget::Drop
            | NetfilterTarget::Reject(_)
            | NetfilterTarget::Goto(_)
            | NetfilterTarget::Jump(_)
    )
}

/// Rules that mark whatever passes, where others of the same chain ask for a device.
fn everywhere(reading: &PolicyModel) -> Vec<Finding> {
    let rules: Vec<(usize, (&Family, &str, &str), &NfRule)> = reading
        .ops
        .iter()
        .enumerate()
        .filter_map(|(at, op)| match op {
            Op::Netfilter(NfOp {
                family,
                table,
                command: NfCommand::Append(chain, rule) | NfCommand::Insert(chain, _, rule),
            }) => Some((at, (family, table.as_str(), chain.as_str()), rule)),
            _ => None,
        })
        .collect();
    let matches =
        |rule: &NfRule| rule.matches.iter().any(|m| matches!(m.what, Condition::In(_) | Condition::Out(_)));
    let marks = |rule: &NfRule| {
        rule.targets()
            .any(|target| matches!(target, NetfilterTarget::Mark { .. } | NetfilterTarget::Classify(_)))
    };
    let built_in = |chain: &str| ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"].contains(&chain);
    let chains = |of: &dyn Fn(&NfRule) -> bool| -> BTreeSet<_> {
        rules.iter().filter(|(_, _, rule)| of(rule)).map(|(_, chain, _)| *chain).collect()
    };
    let conditions = chains(&|rule| matches(rule) && marks(rule));
    // What may let packets of other devices out before, is not followed here.
    let left_early = chains(&|rule| rule.targets().any(ends));
    let lone = rules.iter().filter(|(_, chain, rule)| {
        built_in(chain.2)
            && !left_early.contains(chain)
            && marks(rule)
            && !matches(rule)
            && !rule.matches.iter().any(|m| matches!(m.what, Condition::Source(..)))
            && conditions.contains(chain)
    });
    lone.filter_map(|(at, chain, rule)| {
        let step: &Step = reading.step_of(*at)?;
        let devices = reading.gateway.devices().filter(|id| reading.gateway.name(*id) != "lo").count();
        let is_mark = |target: &NetfilterTarget| matches!(target, NetfilterTarget::Mark { .. });
        let (does, because) = match rule.targets().any(is_mark) {
            true => ("marks", "packets of other devices get it, too, and filters there that name it match them"),
            false => (
                "gives a class to",
                "packets of other devices get it, too, and are in that class where a qdisc there has its number",
            ),
        };
        Some(finding(
            Rule::Flush,
            Level::Note,
            step.place.clone(),
            format!("the rule {does} packets of every device, others in {} only those of one", chain.2),
            because.into(),
            format!("it has no -i and no -o; the machine has {}", count(devices, "device", "devices")),
        ))
    })
    .collect()
}
