//! Rules as the model has them, as expressions.

mod condition;
mod target;
mod unknown;

use super::batch::Batch;
use super::expression::{Expressions, NftVerdict};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use tidegate_policy::netfilter::{
    Condition, Family, Match, NetfilterRule, NetfilterTarget, RuleChain, RuleTable,
};
use unknown::Unknown;

/// A rule that is not set here: which, and what of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedRule {
    /// The table's name,
    pub table: String,
    /// the chain's,
    pub chain: String,
    /// and the rule's number in it, counted from 1.
    pub rule: usize,
    /// What has no expression.
    pub what: String,
    /// What to do instead.
    pub remedy: String,
}

impl fmt::Display for UnsupportedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnsupportedRule { table, chain, rule, what, remedy } = self;
        write!(
            f,
            "rule {rule} of the chain {chain} in the table {table}: {what} is not set by tidegate; {remedy}"
        )
    }
}

impl core::error::Error for UnsupportedRule {}

/// The batch that makes a table of tidegate's with all these rules in it, in place of the one that is there.
///
/// # Errors
/// A rule has a condition or target without an expression here.
pub fn ruleset(
    name: &str,
    comment: &str,
    replaces: bool,
    tables: &[RuleTable],
) -> Result<Batch, UnsupportedRule> {
    let mut batch = Batch::new(name);
    if replaces {
        batch.delete_table();
    }
    batch.make_table(Some(comment));
    filled(batch, tables)
}

/// Makes a table that goes with the socket it is made through, so nothing is left when its owner dies. (Linux
/// 5.12.)
///
/// # Errors
/// As for [`ruleset`].
pub fn own_ruleset(
    name: &str,
    comment: &str,
    replaces: bool,
    tables: &[RuleTable],
) -> Result<Batch, UnsupportedRule> {
    let mut batch = Batch::new(name);
    if replaces {
        batch.delete_table();
    }
    batch.make_own_table(Some(comment));
    filled(batch, tables)
}

fn filled(mut batch: Batch, tables: &[RuleTable]) -> Result<Batch, UnsupportedRule> {
    // Chains first: rules may lead to any of them.
    for table in tables {
        for chain in table.chains.iter().filter(|chain| is_wanted(chain)) {
            // A policy applies to both families, but the table has one: what a chain of one family drops, its
            // last rule does.
            let accepts = chain.accepts || table.family != Family::Inet;
            batch.chain(&chain_name(table, &chain.name), chain.base, accepts);
        }
    }
    for table in tables {
        for chain in table.chains.iter().filter(|chain| is_wanted(chain)) {
            fill(&mut batch, table, chain)?;
        }
    }
    Ok(batch)
}

/// Base chains in which nothing is done are left out.
fn is_wanted(chain: &RuleChain) -> bool {
    chain.base.is_none() || !chain.rules.is_empty() || !chain.accepts
}

/// Chains of all tables are in one: their names give the table.
fn chain_name(table: &RuleTable, chain: &str) -> String {
    let version = match table.family {
        Family::Ipv4 => "ip",
        Family::Ipv6 => "ip6",
        Family::Inet => "inet",
    };
    format!("{version}_{}_{chain}", table.name)
}

fn fill(batch: &mut Batch, table: &RuleTable, chain: &RuleChain) -> Result<(), UnsupportedRule> {
    let name = chain_name(table, &chain.name);
    for (number, rule) in (1..).zip(&chain.rules) {
        let put = if rule.matches.iter().any(|one| matches!(one.what, Condition::Ports(_)) && !one.not) {
            either(batch, table, &name, number, rule)
        } else {
            mixed(batch, &name, number, rule);
            one(batch, table, rule, &aside(&name, number)).map(|steps| batch.rule(&name, &steps))
        };
        put.map_err(|Unknown { what, remedy }| UnsupportedRule {
            table: table.name.clone(),
            chain: chain.name.clone(),
            rule: number,
            what,
            remedy: remedy.to_owned(),
        })?;
    }
    if !chain.accepts && table.family != Family::Inet {
        let mut last = Expressions::default();
        condition::version(&mut last, table.family == Family::Ipv6, false);
        batch.rule(&name, last.verdict(&NftVerdict::Drop));
    }
    Ok(())
}

/// Which version of IP a rule is for; `None`: both.
fn version(table: &RuleTable, rule: &NetfilterRule) -> Option<bool> {
    match table.family {
        Family::Ipv4 => Some(false),
        Family::Ipv6 => Some(true),
        Family::Inet => rule.matches.iter().find_map(|one| match one.what {
            Condition::Version6(v6) => Some(v6 != one.not),
            _ => None,
        }),
    }
}

/// The beginning of every rule: the family that its table had.
fn begin(table: &RuleTable) -> Expressions {
    let mut steps = Expressions::default();
    if table.family != Family::Inet {
        condition::version(&mut steps, table.family == Family::Ipv6, false);
    }
    steps
}

/// A chain of its own for what takes a rule more than one step.
fn aside(chain: &str, number: usize) -> String {
    format!("{chain}_{number}")
}

/// Marks of which some bits stay and others are carried over: nftables of before 6.13 cannot join two
/// numbers, so bits are carried one by one.
fn mixed(batch: &mut Batch, chain: &str, number: usize, rule: &NetfilterRule) {
    let Some(steps) = rule.target.as_ref().and_then(target::carry_bits) else { return };
    let aside = aside(chain, number);
    batch.chain(&aside, None, true);
    steps.iter().for_each(|steps| batch.rule(&aside, steps));
}

/// A rule as one of tidegate's; `aside`: the chain that was made for it, if it needs one.
fn one(
    batch: &mut Batch,
    table: &RuleTable,
    rule: &NetfilterRule,
    aside: &str,
) -> Result<Expressions, Unknown> {
    let mut steps = begin(table);
    let v6 = version(table, rule);
    for one in &rule.matches {
        condition::put(batch, &mut steps, one, v6)?;
    }
    steps.counter();
    targets(&mut steps, table, rule, aside)?;
    Ok(steps)
}

fn targets(
    steps: &mut Expressions,
    table: &RuleTable,
    rule: &NetfilterRule,
    aside: &str,
) -> Result<(), Unknown> {
    let to =
        target::TargetContext { v6: version(table, rule), names: &|chain| chain_name(table, chain), aside };
    rule.first.iter().try_for_each(|target| target::put(steps, target, false, &to))?;
    rule.target.iter().try_for_each(|target| target::put(steps, target, true, &to))
}

/// A rule that holds for either of two ports, as two rules that lead to a chain of its own; the second only
/// where the first did not hold.
fn either(
    batch: &mut Batch,
    table: &RuleTable,
    chain: &str,
    number: usize,
    rule: &NetfilterRule,
) -> Result<(), Unknown> {
    let aside = aside(chain, number);
    batch.chain(&aside, None, true);
    mixed(batch, &aside, number, rule);
    let mut inside = Expressions::default();
    inside.counter();
    targets(&mut inside, table, rule, &self::aside(&aside, number))?;
    batch.rule(&aside, &inside);
    // What goes back from there goes back from here.
    let leaves = matches!(rule.target, Some(NetfilterTarget::Return | NetfilterTarget::Goto(_)));
    let lead = if leaves { NftVerdict::Goto(aside) } else { NftVerdict::Jump(aside) };
    for second in [false, true] {
        let mut rule = rule.clone();
        rule.matches = rule.matches.iter().flat_map(|one| split(one, second)).collect();
        (rule.first, rule.target) = (Vec::new(), None);
        let mut steps = self::one(batch, table, &rule, "")?;
        batch.rule(chain, steps.verdict(&lead));
    }
    Ok(())
}

/// A condition on either port, as one on the source's, or on the destination's where that does not hold.
fn split(one: &Match, second: bool) -> Vec<Match> {
    match (&one.what, one.not, second) {
        (Condition::Ports(ports), false, false) => {
            vec![Match { not: false, what: Condition::SourcePorts(ports.clone()) }]
        }
        (Condition::Ports(ports), false, true) => vec![
            Match { not: true, what: Condition::SourcePorts(ports.clone()) },
            Match { not: false, what: Condition::DestinationPorts(ports.clone()) },
        ],
        _ => vec![one.clone()],
    }
}
