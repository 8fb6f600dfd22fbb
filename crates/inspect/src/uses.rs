//! Which filters get packets, and which rules of netfilter bring packets to a filter or a class by what they
//! write.
//!
//! Both come from the exact sets ([`Reached`]). Where these are too intricate, or a device is left undecided,
//! what protocols, devices and the kernel's order alone exclude is still known: a filter of `protocol ip`
//! meets no mark of ip6tables, and what is redirected at an ingress was in none of netfilter's chains yet.

use crate::reach::{Reached, rule_of};
use crate::reading::{CLSACT_EGRESS, PolicyModel};
use crate::sets::bdd::TooLarge;
use crate::walk::tree::By;
use crate::walk::ways::{Way, reads_connmarks, rules, undecided};
use crate::walk::{Parts, RuleKey};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_gateway::DeviceKind;
use tidegate_packet::Handle;
use tidegate_packet::header::ethertype;
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::netfilter::{Condition, ConnmarkTarget, Family, NetfilterRule, NetfilterTarget};
use tidegate_policy::{Act, FilterOp, FilterParams, Kind};

/// A rule of netfilter, with its table and chain.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkingRule {
    /// Its table's family.
    pub family: Family,
    /// The table's name.
    pub table: String,
    /// The table is nft's, not one of iptables'.
    pub is_nft: bool,
    /// The chain's name.
    pub chain: String,
    /// The rule itself.
    pub rule: NetfilterRule,
    /// None of the packets that it marks comes here: others of their connections do, which bring the mark
    /// back.
    pub by_connection: bool,
}

impl MarkingRule {
    /// May a packet be one of the rule's family and of the filter's protocol?
    pub fn fits_protocol(&self, dump: &FilterDump) -> bool {
        match dump.protocol {
            ethertype::IPV4 => self.family != Family::Ipv6,
            ethertype::IPV6 => self.family != Family::Ipv4,
            FilterOp::ALL => true,
            // No rule of these sees ARP and the like.
            _ => false,
        }
    }
}

/// What identifies a filter: device, parent, chain, protocol, preference, handle.
type FilterKey = (String, Handle, u32, u16, u16, u32);

fn key_of(dump: &FilterDump) -> Option<FilterKey> {
    let FilterEntry::Filter { handle, .. } = &dump.entry else { return None };
    Some((dump.dev.clone(), dump.parent, dump.chain, dump.protocol, dump.pref, *handle))
}

/// What is known of all filters and classes of a policy.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    idle: BTreeSet<FilterKey>,
    /// They match some packets of their protocol that come to their list, and not all.
    partial: BTreeSet<FilterKey>,
    taken: BTreeSet<FilterKey>,
    markers: BTreeMap<FilterKey, Vec<MarkingRule>>,
    classifiers: BTreeMap<(String, Handle), Vec<MarkingRule>>,
    idle_defaults: BTreeSet<(String, Handle)>,
    unmarked: BTreeSet<String>,
    /// Marks come back from connections, by rules or by filters' actions.
    by_connection: bool,
    overwritten: Vec<NetfilterRule>,
    received: Vec<NetfilterRule>,
    rules: Vec<MarkingRule>,
}

impl Uses {
    /// What is known of a policy.
    pub fn of(reading: &PolicyModel) -> Uses {
        let by_connection = reads_connmarks(reading) || restores(reading);
        let mut uses = Uses { unmarked: unmarked(reading), by_connection, ..Uses::default() };
        let mut reached = Reached::of(reading);
        uses.overwritten = reached.as_mut().map_or(Vec::new(), |reached| reached.overwritten(reading));
        uses.received = reached.as_ref().map_or(Vec::new(), |reached| reached.received(reading));
        let rules: Vec<(RuleKey, MarkingRule)> = marking_rules(reading);
        let lost = reading.is_rule_lost();
        // Where these files have no rule at all, others set the marks.
        let foreign = rules.is_empty() && !by_connection;
        let mut open: BTreeMap<&str, bool> = BTreeMap::new();
        for (at, dump) in reading.filters.iter().enumerate() {
            let Some(key) = key_of(dump) else { continue };
            let hashed = reading.root(&dump.dev).is_some_and(|root| root.kind == Kind::Mq);
            let is_open = lost
                || hashed
                || foreign && asks_for_mark(dump)
                || *open.entry(&dump.dev).or_insert_with(|| undecided(reading, &dump.dev));
            let exact = reached.as_mut().filter(|_| !is_open && dump.chain == 0);
            let exact = exact.and_then(|reached| {
                let seen = reached.walked.seen.filters.get(&at).cloned().unwrap_or_default();
                let markers = reached.markers(reading, dump, &seen.matched, &rules).ok()?;
                let partial = reached.is_partial(dump, &seen.matched).unwrap_or(false);
                Some((seen.matched.is_empty(), !seen.eligible.is_empty(), markers, partial))
            });
            let (idle, fits, markers, partial) = exact.unwrap_or_else(|| {
                let may = |rule: &&MarkingRule| matches_mark(dump, rule) && uses.may_come(rule, dump);
                (false, true, rules.iter().map(|(_, rule)| rule).filter(may).cloned().collect(), false)
            });
            if idle && fits {
                uses.taken.insert(key.clone());
            }
            if idle {
                uses.idle.insert(key.clone());
            }
            if partial {
                uses.partial.insert(key.clone());
            }
            uses.markers.insert(key, markers);
        }
        uses.of_classes(reading, reached.as_mut(), &rules);
        uses.rules = rules.into_iter().map(|(_, rule)| rule).collect();
        uses
    }

    fn of_classes(
        &mut self,
        reading: &PolicyModel,
        mut reached: Option<&mut Reached>,
        rules: &[(RuleKey, MarkingRule)],
    ) {
        for place in reading.classes.iter().map(|class| (class.dev.clone(), class.classid)) {
            // Whose packets mq puts into which of its trees is a hash's choice.
            let hashed = reading.root(&place.0).is_some_and(|root| root.kind == Kind::Mq);
            let is_open = reading.is_rule_lost() || hashed || undecided(reading, &place.0);
            let exact = reached.as_mut().filter(|_| !is_open);
            if let Some(reached) = exact {
                let seen = &reached.walked.seen;
                let by = |by: By| seen.classes.get(&(place.clone(), by)).cloned().unwrap_or_default();
                if by(By::Default).is_empty() {
                    self.idle_defaults.insert(place.clone());
                }
                // A class with classes below it has no packets of its own: they are seen where they come to
                // its filters.
                let inner =
                    reading.classes.iter().any(|class| class.dev == place.0 && class.parent == place.1);
                let got =
                    if inner { seen.lists.get(&place).cloned().unwrap_or_default() } else { by(By::Word) };
                if let (false, Ok(found)) =
                    (inner && got.is_empty(), reached.classifiers(place.1, &got, rules))
                {
                    self.classifiers.insert(place, found);
                    continue;
                }
            }
            let may = |rule: &&MarkingRule| classifies(rule, place.1) && self.may_reach(rule, &place.0);
            let found = rules.iter().map(|(_, rule)| rule).filter(may).cloned().collect();
            self.classifiers.insert(place, found);
        }
    }

    /// Is it shown that no packet comes to a filter which fits it?
    pub fn is_idle(&self, dump: &FilterDump) -> bool {
        key_of(dump).is_some_and(|key| self.idle.contains(&key))
    }

    /// Is it shown that packets which fit a filter come to its list, and that those before it take them all?
    pub fn is_taken(&self, dump: &FilterDump) -> bool {
        key_of(dump).is_some_and(|key| self.taken.contains(&key))
    }

    /// Is it shown that packets of a filter's protocol come to its list, and that it does not get them all?
    pub fn is_partial(&self, dump: &FilterDump) -> bool {
        key_of(dump).is_some_and(|key| self.partial.contains(&key))
    }

    /// The rules that set the mark which a filter matches, on packets that come to it.
    pub fn markers(&self, dump: &FilterDump) -> &[MarkingRule] {
        key_of(dump).and_then(|key| self.markers.get(&key)).map(Vec::as_slice).unwrap_or_default()
    }

    /// The rules that write such a mark on any packets, which may never come to the filter.
    pub fn writers(&self, dump: &FilterDump) -> impl Iterator<Item = &MarkingRule> {
        self.rules.iter().filter(|rule| matches_mark(dump, rule))
    }

    /// The rules that lead packets of a device to a class by naming it.
    pub fn classifiers(&self, device: &str, class: Handle) -> &[MarkingRule] {
        let place = (device.to_owned(), class);
        self.classifiers.get(&place).map(Vec::as_slice).unwrap_or_default()
    }

    /// Is it shown that no packet comes to a class as the default?
    pub fn is_idle_default(&self, device: &str, class: Handle) -> bool {
        self.idle_defaults.contains(&(device.to_owned(), class))
    }

    /// Does a device get only what is redirected to it as it arrives elsewhere, before netfilter can mark it?
    pub fn comes_unmarked(&self, device: &str) -> bool {
        self.unmarked.contains(device)
    }

    /// Whether every packet loses what a rule writes on it before it comes to a queue.
    pub fn is_overwritten(&self, rule: &NetfilterRule) -> bool {
        self.overwritten.contains(rule)
    }

    /// Does a rule take only packets for the machine's own programs, which come to no queue?
    pub fn is_received(&self, rule: &NetfilterRule) -> bool {
        self.received.contains(rule)
    }

    /// By protocols, devices and the kernel's order alone, may a packet have what a rule writes when a filter
    /// sees it?
    fn may_come(&self, rule: &MarkingRule, dump: &FilterDump) -> bool {
        let arrives = dump.parent.major() == u16::MAX && dump.parent != CLSACT_EGRESS;
        rule.fits_protocol(dump) && !arrives && self.may_reach(rule, &dump.dev)
    }

    /// Whether packets of a rule may come to a device.
    fn may_reach(&self, rule: &MarkingRule, device: &str) -> bool {
        // Where connections keep marks, another packet than the one that comes here may have left by that
        // device.
        let elsewhere = !self.by_connection && leaves_elsewhere(&rule.rule, device);
        !self.unmarked.contains(device) && !self.is_overwritten(&rule.rule) && !elsewhere
    }
}

impl Reached {
    /// Are there packets of a filter's protocol in its list that it does not match?
    fn is_partial(&mut self, dump: &FilterDump, matched: &Parts) -> Result<bool, TooLarge> {
        let list = self.list(&(dump.dev.clone(), dump.parent));
        let of_protocol = self.walked.space.protocol(dump.protocol)?;
        for (way, set) in &list.0 {
            let all = self.walked.space.store.and(*set, of_protocol)?;
            if !self.walked.space.store.minus(all, matched.by(*way))?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The rules that write what a filter matches on packets that it gets.
    fn markers(
        &mut self,
        reading: &PolicyModel,
        dump: &FilterDump,
        got: &Parts,
        rules: &[(RuleKey, MarkingRule)],
    ) -> Result<Vec<MarkingRule>, TooLarge> {
        let by_connection = reads_connmarks(reading);
        let saves = saves(reading);
        let got = &self.routed(got)?;
        let mut found = Vec::new();
        for (key, rule) in rules.iter().filter(|(_, rule)| matches_mark(dump, rule)) {
            let target = rule.rule.targets().filter(|target| mark_bits(target).is_some()).last();
            let Some(target) = target else { continue };
            let by_packet = match target {
                NetfilterTarget::Mark { .. } => self.carries(key, target, Some(got))?.unwrap_or(false),
                _ => false,
            };
            // Another packet's mark comes by the connection only where something writes it there.
            let shares = by_connection && (saves || matches!(target, NetfilterTarget::Connmark(_)));
            if by_packet || shares && self.may_share(key, rule.family, got)? {
                let by_connection = !by_packet && matches!(target, NetfilterTarget::Mark { .. });
                found.push(MarkingRule { by_connection, ..rule.clone() });
            }
        }
        Ok(found)
    }

    /// The rules that name a class on packets that come to it so.
    fn classifiers(
        &mut self,
        class: Handle,
        got: &Parts,
        rules: &[(RuleKey, MarkingRule)],
    ) -> Result<Vec<MarkingRule>, TooLarge> {
        let got = &self.routed(got)?;
        let mut found = Vec::new();
        for (key, rule) in rules.iter().filter(|(_, rule)| classifies(rule, class)) {
            if self.carries(key, &NetfilterTarget::Classify(class), Some(got))?.unwrap_or(false) {
                found.push(rule.clone());
            }
        }
        Ok(found)
    }

    /// Packets without those that leave by the device they came in by, where there are others: a gateway
    /// sends few packets back, and findings about a class are about its other ones.
    fn routed(&mut self, got: &Parts) -> Result<Parts, TooLarge> {
        let mut routed = Parts::default();
        for (way, set) in &got.0 {
            let mut set = *set;
            if let Way::Forwarded(output) = &self.walked.ways[*way] {
                let output = output.clone();
                let back = self.walked.space.came_in(|name| name == output)?;
                set = self.walked.space.store.minus(set, back)?;
            }
            if !set.is_empty() {
                routed.add(&mut self.walked.space, *way, set)?;
            }
        }
        Ok(if routed.is_empty() { got.clone() } else { routed })
    }

    /// Where connections keep marks, a rule may mark one packet and a filter get another of the same
    /// connection: what is known is that both are of one family.
    fn may_share(&mut self, key: &RuleKey, family: Family, got: &Parts) -> Result<bool, TooLarge> {
        let matches = self.walked.rules.get(key).is_some_and(|seen| !seen.matched.is_empty());
        let space = &mut self.walked.space;
        let of_family = match family {
            Family::Ipv4 => space.v4,
            Family::Ipv6 => space.v6,
            Family::Inet => space.store.or(space.v4, space.v6)?,
        };
        for (_, set) in &got.0 {
            if matches && !space.store.and(*set, of_family)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// What a target writes into a mark, and into which bits.
fn mark_bits(target: &NetfilterTarget) -> Option<(u32, u32)> {
    match target {
        NetfilterTarget::Mark { value, mask }
        | NetfilterTarget::Connmark(ConnmarkTarget::Set { value, mask }) => Some((*value, *mask)),
        _ => None,
    }
}

/// Whether a rule writes bits of the mark that a filter matches, with the value it matches.
fn matches_mark(dump: &FilterDump, rule: &MarkingRule) -> bool {
    rule.rule.targets().filter_map(mark_bits).last().is_some_and(|written| fits_mark(dump, written))
}

/// The mark that a filter asks for, and its mask.
pub fn asked_mark(entry: &FilterEntry) -> Option<(u32, u32)> {
    match entry {
        FilterEntry::Filter { handle, params: FilterParams::Fw(fw), .. } => {
            Some((*handle, fw.mask.unwrap_or(u32::MAX)))
        }
        FilterEntry::Filter { params: FilterParams::U32(u32), .. } => u32.mark,
        _ => None,
    }
}

/// Does a filter ask for a mark?
fn asks_for_mark(dump: &FilterDump) -> bool {
    asked_mark(&dump.entry).is_some_and(|(mark, _)| mark != 0)
}

/// Whether a value under its mask fits the mark that a filter matches.
fn fits_mark(dump: &FilterDump, (value, mask): (u32, u32)) -> bool {
    let Some((mark, asked)) = asked_mark(&dump.entry) else { return false };
    let common = asked & mask;
    (value ^ mark) & common == 0 && (value & common != 0 || mark == 0 && common != 0)
}

fn classifies(rule: &MarkingRule, class: Handle) -> bool {
    rule.rule.targets().any(|target| *target == NetfilterTarget::Classify(class))
}

/// The rules that write marks or classes, in the order of their tables.
fn marking_rules(reading: &PolicyModel) -> Vec<(RuleKey, MarkingRule)> {
    let mut found = Vec::new();
    for table in reading.gateway.all_tables() {
        for chain in table.chains() {
            for at in 0..chain.rules.len() {
                let (family, name) = (table.family(), table.name().to_owned());
                let key = RuleKey { family, table: name.clone(), chain: chain.name.clone(), at };
                let Some(rule) = rule_of(reading, &key) else { continue };
                if rule.targets().any(|t| mark_bits(t).is_some() || matches!(t, NetfilterTarget::Classify(_)))
                {
                    let rule = rule.clone();
                    let is_nft = table.is_free();
                    let chain = chain.name.clone();
                    found.push((
                        key,
                        MarkingRule { family, table: name, is_nft, chain, rule, by_connection: false },
                    ));
                }
            }
        }
    }
    found
}

/// Do rules write packets' marks into connections?
fn saves(reading: &PolicyModel) -> bool {
    let saves =
        |target: &NetfilterTarget| matches!(target, NetfilterTarget::Connmark(ConnmarkTarget::Save { .. }));
    rules(reading).any(|rule| rule.targets().any(saves))
}

/// Does a rule ask for packets that leave by other devices, or came in by this one?
fn leaves_elsewhere(rule: &NetfilterRule, device: &str) -> bool {
    let fits = |pattern: &str| match pattern.strip_suffix('+') {
        Some(prefix) => device.starts_with(prefix),
        None => device == pattern,
    };
    rule.matches.iter().any(|m| match &m.what {
        Condition::Out(pattern) => fits(pattern) == m.not,
        Condition::In(pattern) => fits(pattern) && !m.not,
        _ => false,
    })
}

fn actions(dump: &FilterDump) -> Vec<&Act> {
    match &dump.entry {
        FilterEntry::Filter { actions, .. } => actions.iter().map(|action| &action.action.act).collect(),
        _ => Vec::new(),
    }
}

/// Do actions of filters write marks?
fn restores(reading: &PolicyModel) -> bool {
    let marks = |act: &Act| matches!(act, Act::Skbedit(_) | Act::Connmark(_) | Act::Ctinfo(_) | Act::Ct(_));
    reading.filters.iter().flat_map(actions).any(marks)
}

/// The ifbs that get packets from an ingress only, where netfilter has not seen them and no action restores a
/// mark.
pub(crate) fn unmarked(reading: &PolicyModel) -> BTreeSet<String> {
    if restores(reading) {
        return BTreeSet::new();
    }
    let is_hook = |dump: &FilterDump| {
        let hook = |qdisc: &&tidegate_policy::dump::QdiscDump| qdisc.dev == dump.dev && qdisc.kind.is_hook();
        dump.parent.major() == u16::MAX
            && dump.parent != CLSACT_EGRESS
            && reading.qdiscs.iter().filter(hook).any(|qdisc| qdisc.handle.major() == u16::MAX)
    };
    let leads_to = |dump: &FilterDump, device: &str| {
        actions(dump).iter().any(|act| match act {
            Act::Mirred(mirred) => mirred.to == device,
            _ => false,
        })
    };
    let ifbs = reading.gateway.devices().filter(|id| reading.gateway.spec(*id).kind == DeviceKind::Ifb);
    let names: Vec<String> = ifbs.map(|id| reading.gateway.name(id).to_owned()).collect();
    let from_ingress = |device: &String| {
        let leading: Vec<&FilterDump> =
            reading.filters.iter().filter(|dump| leads_to(dump, device)).collect();
        !leading.is_empty() && leading.iter().all(|dump| is_hook(dump))
    };
    names.into_iter().filter(from_ingress).collect()
}
