//! Netfilter's tables: chains of rules that mark a packet on its way to the queue.

mod carried;
mod leads;
mod place;
mod seen;
mod visit;
mod watch;

use crate::conntrack::{Conntrack, network_len};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
pub use carried::CarriedHeader;
use core::ops::Range;
use place::{HookSet, built_in};
pub use seen::{Known, RuleTrace};
use tidegate_packet::header::ethertype;
use tidegate_packet::{Pkt, Pool};
use tidegate_policy::netfilter::{
    Base, Family, Hook, NetfilterRule, NetfilterTarget, NfCommand, NfOp, Translate,
};
use tidegate_policy::{Errno, TcError};
pub use visit::HookDevices;
use visit::Visit;

const NO_CHAIN: TcError = TcError::new(Errno::NoEnt, "No chain/target/match by that name");
/// A chain with rules, or that others lead to, stays.
fn in_use(chain: &str) -> TcError {
    let message = format!("CHAIN_DEL failed (Device or resource busy): chain {chain}");
    TcError { message: Some(message.into()), ..TcError::bare(Errno::Busy) }
}

const NO_BUILT_IN: TcError = TcError::new(Errno::NoEnt, "Bad built-in chain name");
/// How deep chains may call one another, and how often they may go to one another.
const MAX_STEPS: u32 = 10_000;

/// A table: of one family, or of both.
#[derive(Clone, Debug)]
pub struct NetfilterTable {
    family: Family,
    name: String,
    /// Made by nft: its chains name their own hooks, and any of them may hold any rule.
    free: bool,
    touched: bool,
    /// The last handle that was given out.
    handles: u64,
    chains: Vec<NetfilterChain>,
    /// The hooks from which packets come to each chain; `None`: not known at the moment.
    hooks: Option<Vec<HookSet>>,
}

/// A chain with its counters.
#[derive(Clone, Debug)]
pub struct NetfilterChain {
    /// The chain's name, built-in (`FORWARD`) or the user's.
    pub name: String,
    /// nft's number for it.
    pub handle: u64,
    /// The chain's hook and priority; `None`: packets come to it only by jumps.
    pub base: Option<Base>,
    /// Base chains have a policy: `true` = accept.
    pub policy: Option<bool>,
    /// Packets that matched the rule.
    pub packets: u64,
    /// Bytes of the packets that matched, from the network header on.
    pub bytes: u64,
    /// The chain's rules, in order.
    pub rules: Vec<CountedRule>,
}

/// A rule with its counters.
#[derive(Clone, Debug)]
pub struct CountedRule {
    /// The rule itself.
    pub rule: NetfilterRule,
    /// nft's number for it.
    pub handle: u64,
    /// Packets that matched.
    pub packets: u64,
    /// Bytes that matched.
    pub bytes: u64,
}

/// The outcome of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetfilterVerdict {
    /// The packet continues.
    Accept,
    /// It is dropped.
    Drop,
    /// Its connection is translated so; it continues.
    Translate(Translate),
}

enum Walk {
    Decided(NetfilterVerdict),
    Return,
}

impl NetfilterTable {
    /// One of iptables' tables, empty, with its built-in chains.
    pub fn new(ipv6: bool, name: &str) -> NetfilterTable {
        let mut table = NetfilterTable { free: false, ..NetfilterTable::free(Family::of(ipv6), name) };
        for chain in built_in(name) {
            table.add_chain(chain, Base::of_iptables(name, chain), Some(true));
        }
        table
    }

    /// A table without chains, as nft makes them.
    pub fn free(family: Family, name: &str) -> NetfilterTable {
        NetfilterTable {
            family,
            name: name.to_string(),
            free: true,
            touched: false,
            handles: 0,
            chains: Vec::new(),
            hooks: None,
        }
    }

    fn add_chain(&mut self, name: &str, base: Option<Base>, policy: Option<bool>) {
        let handle = self.next_handle();
        let name = name.to_string();
        match &mut self.hooks {
            Some(hooks) if base.is_none() => hooks.push(0),
            hooks => *hooks = None,
        }
        self.chains.push(NetfilterChain {
            name,
            handle,
            base,
            policy,
            packets: 0,
            bytes: 0,
            rules: Vec::new(),
        });
    }

    fn next_handle(&mut self) -> u64 {
        self.handles += 1;
        self.handles
    }

    /// The name of the table: `mangle`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The table's address family.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Was it made by nft, without iptables' chains?
    pub fn is_free(&self) -> bool {
        self.free
    }

    /// Has anything been done to it, beyond emptying it?
    pub fn is_touched(&self) -> bool {
        self.touched
    }

    /// Its chains, for listings.
    pub fn chains(&self) -> &[NetfilterChain] {
        &self.chains
    }

    /// The chains that are at a hook, with their priorities.
    pub fn at_hook(&self, hook: Hook) -> impl Iterator<Item = (i32, usize)> + '_ {
        let place = move |(at, chain): (usize, &NetfilterChain)| {
            chain.base.filter(|base| base.hook == hook).map(|base| (base.priority, at))
        };
        self.chains.iter().enumerate().filter_map(place)
    }

    /// Sends a packet through a base chain, by its number. An observer is notified of each rule that the
    /// packet comes to.
    pub fn run(
        &mut self,
        start: usize,
        place: HookDevices<'_>,
        connections: &mut Conntrack,
        pool: &mut Pool,
        pkt: &Pkt,
        watch: Option<&mut Vec<RuleTrace>>,
    ) -> NetfilterVerdict {
        let concerned = match pool.meta(pkt).ethertype {
            ethertype::IPV4 => self.family.has(false),
            ethertype::IPV6 => self.family.has(true),
            _ => false,
        };
        if !concerned || start >= self.chains.len() {
            return NetfilterVerdict::Accept;
        }
        let hook = self.chains[start].base.map(|base| base.hook);
        let mut visit = Visit { place, connections, pool, pkt, steps: 0, hook, watch };
        match self.walk(start, &mut visit) {
            Walk::Decided(verdict) => verdict,
            Walk::Return => {
                visit.meets(self, start, None, None);
                let chain = &mut self.chains[start];
                chain.packets += 1;
                chain.bytes += network_len(visit.pool.meta(pkt));
                if chain.policy.unwrap_or(true) { NetfilterVerdict::Accept } else { NetfilterVerdict::Drop }
            }
        }
    }

    fn walk(&mut self, chain: usize, visit: &mut Visit<'_>) -> Walk {
        // What the part before found of a rule in parts: the conditions that held, and whether all did.
        let mut known = (0, true);
        for at in 0..self.chains[chain].rules.len() {
            visit.steps += 1;
            if visit.steps > MAX_STEPS {
                return Walk::Decided(NetfilterVerdict::Drop);
            }
            let rule = &self.chains[chain].rules[at].rule;
            let (held, all) = if rule.part.is_later() { known } else { (0, true) };
            let failed = if all {
                let rest = rule.matches.get(held..).unwrap_or_default();
                rest.iter().position(|m| !visit.matches(m)).map(|failed| held + failed)
            } else {
                Some(held)
            };
            known = (failed.unwrap_or(rule.matches.len()), failed.is_none());
            visit.meets(self, chain, Some(at), failed);
            if failed.is_some() {
                continue;
            }
            let counted = &mut self.chains[chain].rules[at];
            counted.packets += 1;
            counted.bytes += network_len(visit.pool.meta(visit.pkt));
            counted.rule.first.iter().for_each(|target| visit.alter(target));
            let (name, returns) = match &self.chains[chain].rules[at].rule.target {
                None => continue,
                Some(NetfilterTarget::Accept) => return Walk::Decided(NetfilterVerdict::Accept),
                Some(NetfilterTarget::Drop | NetfilterTarget::Reject(_)) => {
                    return Walk::Decided(NetfilterVerdict::Drop);
                }
                Some(NetfilterTarget::Return) => return Walk::Return,
                Some(NetfilterTarget::Translate(how)) => {
                    return Walk::Decided(NetfilterVerdict::Translate(*how));
                }
                Some(NetfilterTarget::Jump(name)) => (name, true),
                Some(NetfilterTarget::Goto(name)) => (name, false),
                Some(target) => {
                    visit.alter(target);
                    continue;
                }
            };
            let Some(target) = self.position(name) else { continue };
            match self.walk(target, visit) {
                Walk::Return if returns => {}
                walked => return walked,
            }
        }
        Walk::Return
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.chains.iter().position(|c| c.name == name)
    }

    /// Whether a chain has this rule.
    ///
    /// # Errors
    /// There is no chain that the rule would lead to.
    pub fn has_rule(&self, chain: &str, rule: &NetfilterRule) -> Result<bool, TcError> {
        self.led_to(rule)?;
        Ok(self.position(chain).is_some_and(|at| self.chains[at].rules.iter().any(|one| one.rule == *rule)))
    }

    /// Carries out an operation meant for this table.
    ///
    /// # Errors
    /// As iptables refuses: no such chain, no such rule, chain in use or exists already.
    pub fn apply(&mut self, op: &NfOp) -> Result<(), TcError> {
        self.carry_out(op).map_err(|error| if self.free { error } else { place::named(op, error) })?;
        self.touched |= !matches!(op.command, NfCommand::Flush(None) | NfCommand::DeleteChain(None));
        Ok(())
    }

    fn carry_out(&mut self, op: &NfOp) -> Result<(), TcError> {
        if !self.free {
            place::check(op)?;
        }
        match &op.command {
            NfCommand::Append(chain, rule) => {
                let at = self.find(chain)?;
                self.put(at, self.chains[at].rules.len(), rule)?;
            }
            NfCommand::Insert(chain, position, rule) => {
                let at = self.find(chain)?;
                self.led_to(rule)?;
                let index = position.saturating_sub(1);
                if index > self.chains[at].rules.len() {
                    return Err(TcError::new(Errno::Range, "Index of insertion too big"));
                }
                self.put(at, index, rule)?;
            }
            NfCommand::Beside { chain, handle, behind, rule } => {
                let (at, parts) = self.by_handle(chain, *handle)?;
                self.put(at, if *behind { parts.end } else { parts.start }, rule)?;
            }
            NfCommand::ReplaceAt(chain, position, rule) => {
                let at = self.find(chain)?;
                self.led_to(rule)?;
                self.rule_at(at, *position, "Index of replacement too big")?;
                self.check_target(at, rule)?;
                let handle = self.next_handle();
                *self.rule_at(at, *position, "Index of replacement too big")? = counted(rule, handle);
                self.hooks = None;
            }
            NfCommand::ReplaceHandle(chain, handle, rule) => {
                let (at, parts) = self.by_handle(chain, *handle)?;
                self.check_target(at, rule)?;
                self.chains[at].rules.splice(parts, [counted(rule, *handle)]);
                self.hooks = None;
            }
            NfCommand::Delete(chain, rule) => {
                if !self.free {
                    self.led_to(rule)?;
                }
                let at = self.find(chain)?;
                let rules = &mut self.chains[at].rules;
                let index = rules.iter().position(|r| r.rule == *rule).ok_or(TcError::new(
                    Errno::NoEnt,
                    "Bad rule (does a matching rule exist in that chain?)",
                ))?;
                rules.remove(index);
                self.hooks = None;
            }
            NfCommand::DeleteAt(chain, position) => {
                let at = self.find(chain)?;
                self.rule_at(at, *position, "Index of deletion too big")?;
                self.chains[at].rules.remove(position - 1);
                self.hooks = None;
            }
            NfCommand::DeleteHandle(chain, handle) => {
                let (at, parts) = self.by_handle(chain, *handle)?;
                self.chains[at].rules.drain(parts);
                self.hooks = None;
            }
            NfCommand::Flush(chain) => {
                for at in self.chosen(chain.as_deref())? {
                    self.chains[at].rules.clear();
                }
                self.hooks = None;
            }
            NfCommand::Zero(chain) => self.zero(chain.as_deref())?,
            NfCommand::NewChain(name) => match self.position(name) {
                // nft's `add` accepts an existing object.
                Some(_) if self.free => {}
                Some(_) => return Err(TcError::new(Errno::Exist, "Chain already exists")),
                None => self.add_chain(name, None, None),
            },
            NfCommand::NewBase(name, base, policy) => self.new_base(name, *base, *policy)?,
            NfCommand::DeleteChain(name) => self.delete_chain(name.as_deref())?,
            NfCommand::Policy(chain, accept) => {
                let at = self.position(chain).ok_or(NO_BUILT_IN)?;
                if self.chains[at].policy.is_none() {
                    return Err(TcError::bare(Errno::Inval));
                }
                self.chains[at].policy = Some(*accept);
            }
            NfCommand::Counters(chain, rule, packets, bytes) => {
                let counters = self.counters(chain, *rule)?;
                (*counters.0, *counters.1) = (*packets, *bytes);
            }
            // The table itself is its owner's to make and to throw away.
            NfCommand::NewTable | NfCommand::DeleteTable => {}
        }
        Ok(())
    }

    fn find(&self, chain: &str) -> Result<usize, TcError> {
        self.position(chain).ok_or(NO_CHAIN)
    }

    /// The chain and the places in it of a rule's parts.
    fn by_handle(&self, chain: &str, handle: u64) -> Result<(usize, Range<usize>), TcError> {
        let at = self.find(chain)?;
        let rules = &self.chains[at].rules;
        let first = rules.iter().position(|rule| rule.handle == handle).ok_or(TcError::bare(Errno::NoEnt))?;
        let parts = rules[first..].iter().take_while(|rule| rule.handle == handle).count();
        Ok((at, first..first + parts))
    }

    fn put(&mut self, chain: usize, index: usize, rule: &NetfilterRule) -> Result<(), TcError> {
        self.check_target(chain, rule)?;
        // Parts of one rule come one by one, and have one handle.
        let rules = &self.chains[chain].rules;
        let before = index.checked_sub(1).and_then(|before| rules.get(before));
        let open = before.filter(|before| before.rule.part.goes_on() && rule.part.is_later());
        let rest = rules.get(index).filter(|rest| rest.rule.part.is_later() && rule.part.goes_on());
        let handle = match open.or(rest.filter(|_| !before.is_some_and(|one| one.rule.part.goes_on()))) {
            Some(part) => part.handle,
            None => self.next_handle(),
        };
        self.chains[chain].rules.insert(index, counted(rule, handle));
        Ok(())
    }

    fn counters(&mut self, chain: &str, rule: Option<usize>) -> Result<(&mut u64, &mut u64), TcError> {
        let at = self.find(chain)?;
        Ok(match rule {
            None => {
                let chain = &mut self.chains[at];
                (&mut chain.packets, &mut chain.bytes)
            }
            Some(number) => {
                let position = if number == 0 { self.chains[at].rules.len() } else { number };
                let rule = self.rule_at(at, position, "Index of replacement too big")?;
                (&mut rule.packets, &mut rule.bytes)
            }
        })
    }

    fn zero(&mut self, chain: Option<&str>) -> Result<(), TcError> {
        for at in self.chosen(chain)? {
            let chain = &mut self.chains[at];
            (chain.packets, chain.bytes) = (0, 0);
            for rule in &mut chain.rules {
                (rule.packets, rule.bytes) = (0, 0);
            }
        }
        Ok(())
    }

    fn new_base(&mut self, name: &str, base: Base, policy: Option<bool>) -> Result<(), TcError> {
        match self.position(name) {
            None => self.add_chain(name, Some(base), Some(policy.unwrap_or(true))),
            // It is somewhere else, or nowhere.
            Some(at) if self.chains[at].base.is_none_or(|there| there != base) => {
                return Err(TcError::bare(Errno::Exist));
            }
            Some(at) => self.chains[at].policy = policy.or(self.chains[at].policy),
        }
        Ok(())
    }

    /// One chain, or all that are not built in.
    fn delete_chain(&mut self, name: Option<&str>) -> Result<(), TcError> {
        self.hooks = None;
        let Some(name) = name else {
            let is_kept = |chain: &&NetfilterChain| {
                chain.policy.is_none() && (!chain.rules.is_empty() || self.is_called(&chain.name))
            };
            if let Some(chain) = self.chains.iter().find(is_kept) {
                return Err(in_use(&chain.name));
            }
            self.chains.retain(|c| c.policy.is_some());
            return Ok(());
        };
        let at = self.find(name)?;
        if self.free && self.is_called(name) {
            return Err(TcError::bare(Errno::Busy));
        }
        if !self.free {
            if self.chains[at].policy.is_some() {
                return Err(TcError::bare(Errno::Inval));
            }
            if !self.chains[at].rules.is_empty() || self.is_called(name) {
                return Err(in_use(name));
            }
        }
        self.chains.remove(at);
        Ok(())
    }

    fn chosen(&self, chain: Option<&str>) -> Result<Vec<usize>, TcError> {
        match chain {
            None => Ok((0..self.chains.len()).collect()),
            Some(name) => self.position(name).map(|at| vec![at]).ok_or(NO_CHAIN),
        }
    }

    fn rule_at(
        &mut self,
        chain: usize,
        position: usize,
        missing: &'static str,
    ) -> Result<&mut CountedRule, TcError> {
        let rules = &mut self.chains[chain].rules;
        position.checked_sub(1).and_then(|i| rules.get_mut(i)).ok_or(TcError::new(Errno::Range, missing))
    }

    fn is_called(&self, name: &str) -> bool {
        let calls = |r: &CountedRule| {
            matches!(&r.rule.target, Some(NetfilterTarget::Jump(n)
            | NetfilterTarget::Goto(n)) if n == name)
        };
        self.chains.iter().any(|c| c.rules.iter().any(calls))
    }
}

fn counted(rule: &NetfilterRule, handle: u64) -> CountedRule {
    CountedRule { rule: rule.clone(), handle, packets: 0, bytes: 0 }
}
