//! The mangle table: chains of rules that mark a packet on its way to the queue.

mod place;

use crate::conntrack::{self, Conntrack, network_len};
use crate::headers::Outer;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use tidegate_packet::header::ethertype;
use tidegate_packet::{Meta, Pkt, Pool};
use tidegate_policy::netfilter::{Condition, Connmark, Match, NfCommand, NfOp, Rule, Target, Translate};
use tidegate_policy::{Errno, TcError};

/// The chains that a table has from the start.
fn built_in(table: &str) -> &'static [&'static str] {
    match table {
        "filter" | "security" => &["INPUT", "FORWARD", "OUTPUT"],
        "nat" => &["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"],
        "raw" => &["PREROUTING", "OUTPUT"],
        _ => &["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
    }
}
/// How deep chains may call one another, and how often they may go to one another.
const MAX_STEPS: u32 = 10_000;

/// One table of one address family.
#[derive(Clone, Debug)]
pub struct Table {
    ipv6: bool,
    name: String,
    touched: bool,
    chains: Vec<Chain>,
}

/// A chain with its counters.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Its name.
    pub name: String,
    /// Built-in chains have a policy: `true` = accept.
    pub policy: Option<bool>,
    /// Packets that reached the policy.
    pub packets: u64,
    /// Bytes that reached the policy.
    pub bytes: u64,
    /// Its rules.
    pub rules: Vec<CountedRule>,
}

/// A rule with its counters.
#[derive(Clone, Debug)]
pub struct CountedRule {
    /// The rule.
    pub rule: Rule,
    /// Packets that matched.
    pub packets: u64,
    /// Bytes that matched.
    pub bytes: u64,
}

/// Where a packet is on its way: which devices `-i` and `-o` may ask for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place<'a> {
    /// The device it came in by; empty for packets of the machine's own.
    pub input: &'a str,
    /// The device it will leave by; empty before routing.
    pub output: &'a str,
}

/// What became of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Accept,
    /// It is dropped.
    Drop,
    /// Its connection is translated so; it goes on.
    Translate(Translate),
}

enum Walk {
    Decided(Verdict),
    Return,
}

impl Table {
    /// An empty table with its built-in chains.
    pub fn new(ipv6: bool, name: &str) -> Table {
        let chain =
            |n: &&str| Chain { name: n.to_string(), policy: Some(true), packets: 0, bytes: 0, rules: Vec::new() };
        Table { ipv6, name: name.to_string(), touched: false, chains: built_in(name).iter().map(chain).collect() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Is it ip6tables' own?
    pub fn is_ipv6(&self) -> bool {
        self.ipv6
    }

    /// Has anything been done to it, beyond emptying it?
    pub fn is_touched(&self) -> bool {
        self.touched
    }

    /// Its chains, for listings.
    pub fn chains(&self) -> &[Chain] {
        &self.chains
    }

    /// Sends a packet through a built-in chain.
    pub fn run(
        &mut self,
        chain: &str,
        place: Place<'_>,
        connections: &mut Conntrack,
        pool: &mut Pool,
        pkt: &Pkt,
    ) -> Verdict {
        let family = if self.ipv6 { ethertype::IPV6 } else { ethertype::IPV4 };
        if pool.meta(pkt).ethertype != family {
            return Verdict::Accept;
        }
        let Some(start) = self.position(chain) else { return Verdict::Accept };
        let mut visit = Visit { place, connections, pool, pkt, steps: 0 };
        match self.walk(start, &mut visit) {
            Walk::Decided(verdict) => verdict,
            Walk::Return => {
                let chain = &mut self.chains[start];
                chain.packets += 1;
                chain.bytes += network_len(pool.meta(pkt));
                if chain.policy.unwrap_or(true) { Verdict::Accept } else { Verdict::Drop }
            }
        }
    }

    fn walk(&mut self, chain: usize, visit: &mut Visit<'_>) -> Walk {
        for at in 0..self.chains[chain].rules.len() {
            visit.steps += 1;
            if visit.steps > MAX_STEPS {
                return Walk::Decided(Verdict::Drop);
            }
            let counted = &mut self.chains[chain].rules[at];
            if !counted.rule.matches.iter().all(|m| visit.holds(m)) {
                continue;
            }
            counted.packets += 1;
            counted.bytes += network_len(visit.pool.meta(visit.pkt));
            let next = match &counted.rule.target {
                None => continue,
                Some(Target::Accept) => return Walk::Decided(Verdict::Accept),
                Some(Target::Drop | Target::Reject(_)) => return Walk::Decided(Verdict::Drop),
                Some(Target::Return) => return Walk::Return,
                Some(Target::Translate(how)) => return Walk::Decided(Verdict::Translate(*how)),
                Some(Target::Jump(name)) => (name.clone(), true),
                Some(Target::Goto(name)) => (name.clone(), false),
                Some(target) => {
                    visit.alter(target);
                    continue;
                }
            };
            let Some(target) = self.position(&next.0) else { continue };
            match self.walk(target, visit) {
                Walk::Return if next.1 => {}
                walked => return walked,
            }
        }
        Walk::Return
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.chains.iter().position(|c| c.name == name)
    }

    /// Carries out an operation meant for this table.
    ///
    /// # Errors
    /// As iptables refuses: no such chain, no such rule, chain in use or exists already.
    pub fn apply(&mut self, op: &NfOp) -> Result<(), TcError> {
        self.carry_out(op)?;
        self.touched |= !matches!(op.command, NfCommand::Flush(None) | NfCommand::DeleteChain(None));
        Ok(())
    }

    fn carry_out(&mut self, op: &NfOp) -> Result<(), TcError> {
        place::check(op)?;
        const NO_CHAIN: TcError = TcError::new(Errno::NoEnt, "No chain/target/match by that name");
        let find = |table: &Table, name: &str| table.position(name).ok_or(NO_CHAIN);
        match &op.command {
            NfCommand::Append(chain, rule) => {
                let at = find(self, chain)?;
                self.check_target(rule)?;
                self.chains[at].rules.push(counted(rule));
            }
            NfCommand::Insert(chain, position, rule) => {
                let at = find(self, chain)?;
                self.check_target(rule)?;
                let rules = &mut self.chains[at].rules;
                let index = position.saturating_sub(1);
                if index > rules.len() {
                    return Err(TcError::new(Errno::Range, "Index of insertion too big"));
                }
                rules.insert(index, counted(rule));
            }
            NfCommand::ReplaceAt(chain, position, rule) => {
                let at = find(self, chain)?;
                self.check_target(rule)?;
                *self.rule_at(at, *position, "Index of replacement too big")? = counted(rule);
            }
            NfCommand::Delete(chain, rule) => {
                let at = find(self, chain)?;
                let rules = &mut self.chains[at].rules;
                let index = rules
                    .iter()
                    .position(|r| r.rule == *rule)
                    .ok_or(TcError::new(Errno::NoEnt, "Bad rule (does a matching rule exist in that chain?)"))?;
                rules.remove(index);
            }
            NfCommand::DeleteAt(chain, position) => {
                let at = find(self, chain)?;
                self.rule_at(at, *position, "Index of deletion too big")?;
                self.chains[at].rules.remove(position - 1);
            }
            NfCommand::Flush(chain) => {
                for at in self.chosen(chain.as_deref())? {
                    self.chains[at].rules.clear();
                }
            }
            NfCommand::Zero(chain) => {
                for at in self.chosen(chain.as_deref())? {
                    let chain = &mut self.chains[at];
                    (chain.packets, chain.bytes) = (0, 0);
                    for rule in &mut chain.rules {
                        (rule.packets, rule.bytes) = (0, 0);
                    }
                }
            }
            NfCommand::NewChain(name) => {
                if self.position(name).is_some() {
                    return Err(TcError::new(Errno::Exist, "Chain already exists"));
                }
                self.chains.push(Chain { name: name.clone(), policy: None, packets: 0, bytes: 0, rules: Vec::new() });
            }
            NfCommand::DeleteChain(Some(name)) => {
                let at = find(self, name)?;
                if self.chains[at].policy.is_some() {
                    return Err(TcError::bare(Errno::Inval));
                }
                if !self.chains[at].rules.is_empty() {
                    return Err(TcError::new(Errno::Busy, "Directory not empty"));
                }
                if self.is_called(name) {
                    return Err(TcError::new(Errno::Busy, "Too many links"));
                }
                self.chains.remove(at);
            }
            NfCommand::DeleteChain(None) => {
                if self.chains.iter().any(|c| c.policy.is_none() && !c.rules.is_empty()) {
                    return Err(TcError::new(Errno::Busy, "Directory not empty"));
                }
                self.chains.retain(|c| c.policy.is_some());
            }
            NfCommand::Policy(chain, accept) => {
                let at = find(self, chain)?;
                if self.chains[at].policy.is_none() {
                    return Err(TcError::bare(Errno::Inval));
                }
                self.chains[at].policy = Some(*accept);
            }
            NfCommand::Counters(chain, rule, packets, bytes) => {
                let at = find(self, chain)?;
                let counters = match rule {
                    None => {
                        let chain = &mut self.chains[at];
                        (&mut chain.packets, &mut chain.bytes)
                    }
                    Some(number) => {
                        let position = if *number == 0 { self.chains[at].rules.len() } else { *number };
                        let rule = self.rule_at(at, position, "Index of replacement too big")?;
                        (&mut rule.packets, &mut rule.bytes)
                    }
                };
                (*counters.0, *counters.1) = (*packets, *bytes);
            }
        }
        Ok(())
    }

    fn chosen(&self, chain: Option<&str>) -> Result<Vec<usize>, TcError> {
        match chain {
            None => Ok((0..self.chains.len()).collect()),
            Some(name) => self
                .position(name)
                .map(|at| vec![at])
                .ok_or(TcError::new(Errno::NoEnt, "No chain/target/match by that name")),
        }
    }

    fn rule_at(&mut self, chain: usize, position: usize, missing: &'static str) -> Result<&mut CountedRule, TcError> {
        let rules = &mut self.chains[chain].rules;
        position.checked_sub(1).and_then(|i| rules.get_mut(i)).ok_or(TcError::new(Errno::Range, missing))
    }

    fn check_target(&self, rule: &Rule) -> Result<(), TcError> {
        match &rule.target {
            Some(Target::Jump(name) | Target::Goto(name)) if self.position(name).is_none() => {
                let message = Some(format!("Chain '{name}' does not exist").into());
                Err(TcError { errno: Errno::NoEnt, message })
            }
            _ => Ok(()),
        }
    }

    fn is_called(&self, name: &str) -> bool {
        let calls = |r: &CountedRule| matches!(&r.rule.target, Some(Target::Jump(n) | Target::Goto(n)) if n == name);
        self.chains.iter().any(|c| c.rules.iter().any(calls))
    }
}

fn counted(rule: &Rule) -> CountedRule {
    CountedRule { rule: rule.clone(), packets: 0, bytes: 0 }
}

/// A packet in a chain.
struct Visit<'a> {
    place: Place<'a>,
    connections: &'a mut Conntrack,
    pool: &'a mut Pool,
    pkt: &'a Pkt,
    steps: u32,
}

impl Visit<'_> {
    fn alter(&mut self, target: &Target) {
        let meta = self.pool.meta_mut(self.pkt);
        match target {
            Target::Mark { value, mask } => meta.mark.0 = (meta.mark.0 & !mask) ^ value,
            Target::Connmark(action) => remark(action, self.connections, meta),
            Target::Notrack(_) => conntrack::untrack(meta),
            Target::Classify(class) => meta.priority = class.0,
            Target::Dscp(dscp) => meta.dsfield = meta.dsfield & 3 | dscp << 2,
            Target::Tos(value, mask) => meta.dsfield = (meta.dsfield & !mask) ^ value,
            _ => {}
        }
    }

    fn holds(&self, m: &Match) -> bool {
        let meta = self.pool.meta(self.pkt);
        let truth = match &m.what {
            Condition::In(name) => names(name, self.place.input),
            Condition::Out(name) => names(name, self.place.output),
            Condition::Mark(value, mask) => meta.mark.0 & mask == *value,
            Condition::Connmark(value, mask) => match self.connections.mark(meta) {
                Some(mark) => mark & mask == *value,
                // Without a connection the match fails, inverted or not.
                None => return false,
            },
            Condition::Connstate(states) | Condition::State(states) => states.has(conntrack::state(meta)),
            Condition::Comment(_) => return true,
            Condition::Connbytes(asked) => match self.connections.counters(meta) {
                Some((packets, bytes)) => asked.holds(packets, bytes),
                None => return false,
            },
            Condition::Length(low, high) => (u64::from(*low)..=u64::from(*high)).contains(&network_len(meta)),
            Condition::Dscp(dscp) => meta.dsfield >> 2 == *dscp,
            Condition::Tos(value, mask) => meta.dsfield & mask == *value,
            header => asks_header(header, self.pool, self.pkt),
        };
        truth != m.not
    }
}

/// `-j CONNMARK`.
fn remark(action: &Connmark, connections: &mut Conntrack, meta: &mut Meta) {
    let Some(mark) = connections.mark(meta) else { return };
    match action {
        Connmark::Set { value, mask } => connections.set_mark(meta, (mark & !mask) ^ value),
        Connmark::Save { nfmask, ctmask } => connections.set_mark(meta, (mark & !ctmask) ^ (meta.mark.0 & nfmask)),
        Connmark::Restore { nfmask, ctmask } => meta.mark.0 = (meta.mark.0 & !nfmask) ^ (mark & ctmask),
    }
}

fn asks_header(what: &Condition, pool: &Pool, pkt: &Pkt) -> bool {
    let outer = Outer::of(pool, pkt);
    let inside = |ranges: &[(u16, u16)], port: u16| ranges.iter().any(|(low, high)| (*low..=*high).contains(&port));
    match what {
        Condition::Protocol(p) => *p == 0 || outer.protocol == *p,
        Condition::Source(net, bits) => within(outer.source, *net, *bits, outer.v6),
        Condition::Destination(net, bits) => within(outer.destination, *net, *bits, outer.v6),
        Condition::SourcePort(range) => outer.ports.is_some_and(|(s, _)| inside(&[*range], s)),
        Condition::DestinationPort(range) => outer.ports.is_some_and(|(_, d)| inside(&[*range], d)),
        Condition::SourcePorts(ranges) => outer.ports.is_some_and(|(s, _)| inside(ranges, s)),
        Condition::DestinationPorts(ranges) => outer.ports.is_some_and(|(_, d)| inside(ranges, d)),
        Condition::Ports(ranges) => outer.ports.is_some_and(|(s, d)| inside(ranges, s) || inside(ranges, d)),
        Condition::TcpFlags(mask, comp) => outer.tcp_flags.is_some_and(|flags| flags & mask == *comp),
        Condition::IcmpType(kind, (low, high)) => {
            outer.icmp.is_some_and(|(k, code)| *kind == 255 || k == *kind && (*low..=*high).contains(&code))
        }
        _ => false,
    }
}

fn within(address: [u8; 16], net: [u8; 16], bits: u8, v6: bool) -> bool {
    let skip = if v6 { 0 } else { 96 };
    let bits = (skip + u32::from(bits)).min(128);
    if bits == skip {
        return true;
    }
    let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
    (u128::from_be_bytes(address) ^ u128::from_be_bytes(net)) & mask == 0
}

fn names(pattern: &str, device: &str) -> bool {
    match pattern.strip_suffix('+') {
        Some(prefix) => device.starts_with(prefix),
        None => device == pattern,
    }
}
