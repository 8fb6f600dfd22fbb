//! iptables and ip6tables, answered; their -save too. Other netfilter tools are refused with a plain word.

use super::{Face, refused, unknown};
use crate::capture::{Call, Reply};
use tidegate_classify::netfilter::{Chain, Table};
use tidegate_lang::iptables::{self, IptCommand, ListedChain, ListedRule};
use tidegate_policy::Op;
use tidegate_policy::netfilter::{NfCommand, NfOp, Target};

/// The call of one of these tools.
pub(super) fn answer(face: &mut Face<'_>, call: &Call) -> Reply {
    let tool = call.tool.as_str();
    if tool.contains("restore") {
        return unknown(tool);
    }
    let parsed = match iptables::parse(tool, &call.args) {
        Ok(parsed) => parsed,
        Err(refusal) => return refused(face, tool, refusal),
    };
    match parsed.command {
        IptCommand::Apply(op) => match face.apply(Op::Netfilter(op)) {
            Ok(_) => Reply::ok(),
            Err(error) => {
                let (stderr, code) = iptables::refusal_text(tool, &error);
                Reply::error(code, stderr)
            }
        },
        IptCommand::Check(op) if holds(face, &op) => Reply::ok(),
        IptCommand::Check(_) => {
            Reply::error(1, format!("{tool}: Bad rule (does a matching rule exist in that chain?).\n"))
        }
        IptCommand::List { ipv6, table, chain, style } => {
            let listed = listed(face.machine.gateway.table(ipv6, &table));
            let wanted: Vec<ListedChain> =
                listed.into_iter().filter(|c| chain.as_ref().is_none_or(|name| *name == c.name)).collect();
            match (&chain, wanted.is_empty()) {
                (Some(_), true) => Reply::error(1, format!("{tool}: No chain/target/match by that name.\n")),
                _ => Reply::text(iptables::list(&wanted, ipv6, &style)),
            }
        }
        IptCommand::Save { ipv6, table } => {
            let name = table.unwrap_or_else(|| "mangle".to_owned());
            let chains = listed(face.machine.gateway.table(ipv6, &name));
            Reply::text(iptables::save(&name, &chains, ipv6))
        }
        IptCommand::Version => Reply::text(format!("{tool} {}\n", iptables::VERSION)),
        IptCommand::Help(text) => Reply::text(text),
    }
}

/// Is there such a rule?
fn holds(face: &mut Face<'_>, op: &NfOp) -> bool {
    let NfCommand::Delete(chain, rule) = &op.command else { return false };
    let table = face.machine.gateway.table(op.ipv6, &op.table);
    table.chains().iter().any(|c| c.name == *chain && c.rules.iter().any(|r| r.rule == *rule))
}

fn listed(table: &Table) -> Vec<ListedChain> {
    let calls = |name: &str| {
        let rules = table.chains().iter().flat_map(|c| &c.rules);
        rules.filter(|r| matches!(&r.rule.target, Some(Target::Jump(to) | Target::Goto(to)) if to == name)).count()
    };
    let chain = |c: &Chain| ListedChain {
        name: c.name.clone(),
        policy: c.policy,
        references: calls(&c.name),
        packets: c.packets,
        bytes: c.bytes,
        rules: c
            .rules
            .iter()
            .map(|r| ListedRule { rule: r.rule.clone(), packets: r.packets, bytes: r.bytes })
            .collect(),
    };
    table.chains().iter().map(chain).collect()
}
