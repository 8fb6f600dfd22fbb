//! Where rules lead: how deep chains call one another, and from which hooks packets come to them. Linux 6.1
//! looks into both when a rule is added.

use super::place::{HookSet, WRONG_HOOK, allowed, hook_bit};
use super::{CountedRule, NetfilterTable};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use tidegate_policy::netfilter::{NetfilterRule, NetfilterTarget};
use tidegate_policy::{Errno, TcError};

/// With more chains than this, how deep they lead is not looked into.
const MOST_COMPARED: usize = 1000;
/// Chains that a packet may be in at once, the base chain among them (Linux: 16).
const MOST_CHAINS: usize = 16;

/// The name of the chain that a rule leads to.
fn chain_of(rule: &NetfilterRule) -> Option<&str> {
    match &rule.target {
        Some(NetfilterTarget::Jump(name) | NetfilterTarget::Goto(name)) => Some(name),
        _ => None,
    }
}

impl NetfilterTable {
    /// The chain that a rule leads to; `None`: to none.
    pub(super) fn led_to(&self, rule: &NetfilterRule) -> Result<Option<usize>, TcError> {
        let Some(name) = chain_of(rule) else { return Ok(None) };
        let message = || Some(format!("Chain '{name}' does not exist").into());
        self.position(name).map(Some).ok_or_else(|| TcError { errno: Errno::NoEnt, message: message() })
    }

    /// Is there the chain that a rule leads to, can packets come to its end from there, and do they come from
    /// hooks at which its target works? A rule for which this is true is added at once.
    pub(super) fn check_target(&mut self, from: usize, rule: &NetfilterRule) -> Result<(), TcError> {
        let Some(to) = self.led_to(rule)? else {
            let works = rule.targets().fold(HookSet::MAX, |set, target| set & allowed(target));
            let limited = !self.free && works != HookSet::MAX;
            return if limited && self.hooks()[from] & !works != 0 { Err(WRONG_HOOK) } else { Ok(()) };
        };
        if self.chains[to].policy.is_some() || self.chains[to].base.is_some() {
            // iptables makes a chain of its own when it first needs it; packets come there by hooks alone.
            let is_made = self.free || to == from || !self.chains[to].rules.is_empty();
            return Err(TcError::bare(if is_made { Errno::OpNotSupp } else { Errno::NoEnt }));
        }
        if self.chains.len() <= MOST_COMPARED {
            // What leads there already comes no deeper a second time.
            let leads = |counted: &CountedRule| chain_of(&counted.rule) == chain_of(rule);
            let known = self.chains[from].rules.iter().rev().any(leads);
            if self.is_deep(to) || !known && self.too_deep(from, to) {
                return Err(TcError::bare(Errno::Links));
            }
        }
        if self.free {
            return Ok(());
        }
        let came = self.hooks()[from];
        self.spread(to, came)
    }

    /// The hooks from which packets come to each chain.
    fn hooks(&mut self) -> &[HookSet] {
        if self.hooks.is_none() {
            let numbers: BTreeMap<&str, usize> =
                self.chains.iter().enumerate().map(|(at, chain)| (chain.name.as_str(), at)).collect();
            let bases = self.chains.iter().enumerate();
            let mut open: Vec<(usize, HookSet)> =
                bases.filter_map(|(at, chain)| Some((at, hook_bit(chain.base?.hook)))).collect();
            let mut sets = vec![0; self.chains.len()];
            while let Some((at, bits)) = open.pop() {
                if sets[at] & bits == bits {
                    continue;
                }
                sets[at] |= bits;
                let targets = self.chains[at].rules.iter().filter_map(|counted| chain_of(&counted.rule));
                open.extend(targets.filter_map(|name| Some((*numbers.get(name)?, bits))));
            }
            self.hooks = Some(sets);
        }
        self.hooks.as_deref().unwrap_or_default()
    }

    /// Packets from these hooks come to a chain now, and to those behind it: do all targets there work?
    fn spread(&mut self, to: usize, came: HookSet) -> Result<(), TcError> {
        if self.hooks()[to] & came == came {
            return Ok(());
        }
        let mut sets = self.hooks().to_vec();
        let mut open = vec![to];
        while let Some(at) = open.pop() {
            if sets[at] & came == came {
                continue;
            }
            sets[at] |= came;
            for counted in &self.chains[at].rules {
                if counted.rule.targets().any(|target| came & !allowed(target) != 0) {
                    return Err(WRONG_HOOK);
                }
                open.extend(chain_of(&counted.rule).and_then(|name| self.position(name)));
            }
        }
        self.hooks = Some(sets);
        Ok(())
    }

    /// The chains that the rules of some lead to.
    fn behind(&self, chains: &[usize]) -> Vec<usize> {
        let rules = chains.iter().flat_map(|at| &self.chains[*at].rules);
        let mut targets: Vec<usize> = rules
            .filter_map(|counted| chain_of(&counted.rule))
            .filter_map(|name| self.position(name))
            .collect();
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    /// Do more chains follow one another from this one on than the kernel follows, in a circle or not? It
    /// looks at them whether packets come there or not, but not at the rule that is added.
    fn is_deep(&self, to: usize) -> bool {
        let mut level = vec![to];
        (0..MOST_CHAINS).all(|_| {
            level = self.behind(&level);
            !level.is_empty()
        })
    }

    /// Would packets come through more chains than the kernel follows, were a rule of `from` to lead to `to`?
    /// Chains that lead to one another in a circle are endlessly deep; those that no packet comes to may.
    fn too_deep(&self, from: usize, to: usize) -> bool {
        let leads = |at: usize| self.behind(&[at]).into_iter().map(move |to| (at, to));
        let mut edges: Vec<(usize, usize)> = (0..self.chains.len()).flat_map(leads).collect();
        edges.push((from, to));
        edges.sort_unstable();
        edges.dedup();
        // The longest way to each chain from where packets come in, 0 where none do.
        let mut depth: Vec<usize> =
            self.chains.iter().map(|chain| usize::from(chain.base.is_some())).collect();
        // Each round follows one more jump.
        for _ in 0..=MOST_CHAINS {
            for (from, to) in &edges {
                if depth[*from] > 0 {
                    depth[*to] = depth[*to].max(depth[*from] + 1);
                }
            }
        }
        depth.iter().any(|depth| *depth > MOST_CHAINS)
    }
}
