//! iptables and ip6tables, answered; their -save too. Other netfilter tools are refused with a plain word.

use crate::call::{Call, Reply};
use crate::shim::{ToolShim, refused};
use tidegate_classify::netfilter::{NetfilterChain, NetfilterTable};
use tidegate_policy::netfilter::{Family, NetfilterTarget, NfCommand, NfOp};
use tidegate_policy::{Op, TcError};
use tidegate_syntax::iptables::{
    self, IptCommand, ListedChain, ListedRule, Restore, RestoreLine, RestoredTable,
};

/// The call of one of these tools; `lines` gets the line of each operation that a -restore did, 0 for what
/// clears the way.
pub(super) fn answer(shim: &mut ToolShim<'_>, call: &Call, lines: &mut Vec<usize>) -> Reply {
    let tool = call.tool.as_str();
    if tool.ends_with("-restore") {
        return restore(shim, tool, call, lines);
    }
    let lines = match iptables::spread(tool, &call.args) {
        Ok(lines) => lines,
        Err(refusal) => return refused(shim, tool, refusal),
    };
    let mut reply = Reply::ok();
    for args in lines {
        reply = answer_one(shim, tool, &args);
        if reply.code != 0 {
            break;
        }
    }
    reply
}

/// The call of a tool for one rule.
fn answer_one(shim: &mut ToolShim<'_>, tool: &str, args: &[String]) -> Reply {
    let parsed = match iptables::parse(tool, args) {
        Ok(parsed) => parsed,
        Err(refusal) => return refused(shim, tool, refusal),
    };
    match parsed.command {
        IptCommand::Apply(op) => match (classifies_early(&op), shim.apply(Op::Netfilter(op))) {
            (_, Ok(_)) => Reply::ok(),
            (remedy, Err(error)) => {
                let (mut stderr, code) = iptables::refusal_text(tool, &error);
                if let Some(remedy) = remedy.filter(|_| shim.machine.grows) {
                    stderr.push_str(&format!("{tool}: {remedy}\n"));
                }
                Reply::error(code, stderr)
            }
        },
        IptCommand::Check(op) => match rule_exists(shim, &op) {
            Ok(true) => Reply::ok(),
            Ok(false) => {
                Reply::error(1, format!("{tool}: Bad rule (does a matching rule exist in that chain?).\n"))
            }
            Err(error) => {
                let (stderr, code) = iptables::refusal_text(tool, &error);
                Reply::error(code, stderr)
            }
        },
        IptCommand::List { ipv6, table, chain, style } => {
            let listed = listed(shim.machine.gateway.table(ipv6, &table));
            let wanted: Vec<ListedChain> =
                listed.into_iter().filter(|c| chain.as_ref().is_none_or(|name| *name == c.name)).collect();
            match (&chain, wanted.is_empty()) {
                (Some(_), true) => Reply::error(1, format!("{tool}: No chain/target/match by that name.\n")),
                _ => Reply::text(iptables::list(&wanted, ipv6, &style)),
            }
        }
        IptCommand::Save { ipv6, table, counters } => {
            let gateway = &mut shim.machine.gateway;
            let tables: Vec<&NetfilterTable> = match &table {
                Some(name) => vec![gateway.table(ipv6, name)],
                None => gateway.tables(ipv6),
            };
            let texts =
                tables.iter().map(|table| iptables::save(table.name(), &listed(table), ipv6, counters));
            Reply::text(texts.collect::<String>())
        }
        IptCommand::Version => Reply::text(format!("{tool} {}\n", iptables::VERSION)),
        IptCommand::Help(text) => Reply::text(text),
    }
}

/// What to do about a rule that gives a class where no packet has its device yet.
fn classifies_early(op: &NfOp) -> Option<&'static str> {
    let (NfCommand::Append(chain, rule) | NfCommand::Insert(chain, _, rule)) = &op.command else {
        return None;
    };
    let early = ["PREROUTING", "INPUT"].contains(&chain.as_str());
    let classifies = rule.targets().any(|target| matches!(target, NetfilterTarget::Classify(_)));
    (early && classifies).then_some(
        "CLASSIFY works in POSTROUTING, FORWARD and OUTPUT only, as the class is one of the device that the \
        packet \
        leaves by; in PREROUTING set a mark (-j MARK --set-mark) and let an fw filter lead it.",
    )
}

/// The most chains of one `-restore`: whether their jumps end must be known, and a table is one step.
const MAX_CHAINS: usize = 5_000;

/// `iptables-restore`: each table whole or not at all.
fn restore(shim: &mut ToolShim<'_>, tool: &str, call: &Call, done: &mut Vec<usize>) -> Reply {
    let text = String::from_utf8_lossy(call.stdin.as_deref().unwrap_or_default());
    let chains = text.lines().filter(|line| line.starts_with(':')).count();
    if chains > MAX_CHAINS {
        return Reply::error(
            1,
            format!("tidegate: {chains} chains in one call, {MAX_CHAINS} is the limit\n"),
        );
    }
    let restore = match iptables::restore(tool, &call.args, &text) {
        Ok(restore) => restore,
        Err(refusal) => return refused(shim, tool, refusal),
    };
    for table in restore.tables.iter().filter(|_| !restore.test) {
        let lowered = lowered(shim.machine.gateway.table(restore.ipv6, &table.name), &restore, table);
        let (lines, ops): (Vec<usize>, Vec<NfOp>) = lowered.into_iter().unzip();
        match shim.machine.gateway.apply_netfilter(&ops) {
            Ok(()) => {
                shim.machine.log.extend(ops.into_iter().map(Op::Netfilter));
                done.extend(lines);
            }
            Err((at, error)) => {
                let why = error.message.as_deref().unwrap_or(error.errno.text());
                if why.ends_with("does not exist") {
                    return refused(
                        shim,
                        tool,
                        iptables::blamed(iptables::complain(tool, why), table.commit),
                    );
                }
                let line = lines.get(at).copied().unwrap_or_default();
                return Reply::error(1, format!("{tool}: line {line} failed: {why}.\n"));
            }
        }
    }
    match restore.refusal {
        Some(refusal) => refused(shim, tool, refusal),
        None => Reply::ok(),
    }
}

/// A table's lines as operations, given the present table: with their line, 0 for operations that clear it
/// first.
fn lowered(there: &NetfilterTable, restore: &Restore, table: &RestoredTable) -> Vec<(usize, NfOp)> {
    let op = |command| NfOp { family: Family::of(restore.ipv6), table: table.name.clone(), command };
    let mut known: Vec<&str> = there.chains().iter().map(|chain| chain.name.as_str()).collect();
    let mut ops = Vec::new();
    if restore.flush {
        ops.extend(
            [NfCommand::Flush(None), NfCommand::DeleteChain(None), NfCommand::Zero(None)].map(|c| (0, op(c))),
        );
        let dropping = there.chains().iter().filter(|chain| chain.policy == Some(false));
        ops.extend(dropping.map(|chain| (0, op(NfCommand::Policy(chain.name.clone(), true)))));
        known.retain(|name| there.chains().iter().any(|chain| chain.name == *name && chain.policy.is_some()));
    }
    for (line, what) in &table.lines {
        let (chain, place, (packets, bytes)) = match what {
            RestoreLine::Chain(chain, policy, counters) => {
                let command = match policy {
                    Some(accept) => NfCommand::Policy(chain.clone(), *accept),
                    None if known.contains(&chain.as_str()) => NfCommand::Flush(Some(chain.clone())),
                    None => NfCommand::NewChain(chain.clone()),
                };
                known.push(chain);
                ops.push((*line, op(command)));
                (chain, None, *counters)
            }
            RestoreLine::Rule(rule, counters) => {
                ops.push((*line, rule.clone()));
                match &rule.command {
                    NfCommand::Append(chain, _) => (chain, Some(0), *counters),
                    NfCommand::Insert(chain, at, _) => (chain, Some(*at), *counters),
                    _ => continue,
                }
            }
        };
        if restore.counters && packets + bytes > 0 {
            ops.push((*line, op(NfCommand::Counters(chain.clone(), place, packets, bytes))));
        }
    }
    ops
}

/// Is there such a rule?
fn rule_exists(shim: &mut ToolShim<'_>, op: &NfOp) -> Result<bool, TcError> {
    let NfCommand::Delete(chain, rule) = &op.command else { return Ok(false) };
    shim.machine.gateway.table(op.family == Family::Ipv6, &op.table).has_rule(chain, rule)
}

fn listed(table: &NetfilterTable) -> Vec<ListedChain> {
    let calls = |name: &str| {
        let rules = table.chains().iter().flat_map(|c| &c.rules);
        rules
            .filter(|r| {
                matches!(&r.rule.target, Some(NetfilterTarget::Jump(to)
                | NetfilterTarget::Goto(to)) if to == name)
            })
            .count()
    };
    let chain = |c: &NetfilterChain| ListedChain {
        name: c.name.clone(),
        policy: c.policy,
        references: calls(&c.name),
        // iptables over nf_tables does not count what its policies meet.
        packets: 0,
        bytes: 0,
        rules: c
            .rules
            .iter()
            .map(|r| ListedRule { rule: r.rule.clone(), packets: r.packets, bytes: r.bytes })
            .collect(),
    };
    table.chains().iter().map(chain).collect()
}
