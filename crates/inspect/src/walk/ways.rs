//! All packets at once on all ways through the machine: routed, sent by its own programs, and arriving.

use crate::reading::{CLSACT_EGRESS, CLSACT_INGRESS, PolicyModel};
use crate::sets::bdd::{Set, TooLarge};
use crate::sets::field::View;
use crate::sets::set::{Space, Vocabulary};
use crate::walk::list::{Coming, List, lists};
use crate::walk::outcome::{asks_connections, redirects, rewrites_any};
use crate::walk::rules::{Hook, RuleKey, RuleSeen, Walk, fits};
use crate::walk::state::{Passing, Priority, State, States};
use crate::walk::tree::{Classes, HOOKS, Led, Place, Seen, Tree, classes_of, lists_of};
use crate::walk::u32::U32Tables;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_classify::netfilter::NetfilterTable;
use tidegate_gateway::DeviceKind;
use tidegate_packet::Handle;
use tidegate_policy::dump::{FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::netfilter::{self, Condition, ConnmarkTarget, NetfilterRule, NetfilterTarget};
use tidegate_policy::{Act, Kind, Op, Verb};

/// How often the marks that connections may have are looked for again.
const MOST_ROUNDS: usize = 5;
/// Marks that connections may have, and devices that packets may come in by: as many as their fields can
/// hold.
const MOST_CONNMARKS: usize = 1 << 10;
const MOST_INPUTS: usize = 1 << 8;
/// Ways of counting what a connection carried, and intervals of each.
const MOST_COUNTS: usize = 9;
const MOST_INTERVALS: usize = 1 << 8;
/// Sets that filters lead from device to device, in all.
const MOST_LED: usize = 4096;

/// A device that no file names, by which packets may leave, too: of it only the rules on the way are known.
const ANOTHER: &str = "";

/// A way through the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It came in and is not routed yet.
    ComesIn,
    /// It came in and is for the machine's own programs: it comes to no queue.
    Received,
    /// It was routed to this device.
    Forwarded(String),
    /// The machine's own programs send it by this device.
    Local(String),
    /// It arrives at this device; nothing but the filters there.
    Arrives(String),
}

/// All that is known after all packets went all ways.
pub(crate) struct Walked {
    pub(crate) space: Space,
    pub(crate) states: States,
    pub(crate) ways: Vec<Way>,
    pub(crate) rules: BTreeMap<RuleKey, RuleSeen>,
    pub(crate) seen: Seen,
    pub(crate) lists: BTreeMap<Place, List>,
    tables: U32Tables,
    pub(crate) classes: Classes,
    /// What is on packets that come to a device's tree by a way.
    pub(crate) arrived: Vec<(usize, Passing)>,
    /// Marks that connections have when a packet of theirs has passed a hook, or was dropped in it.
    connmarks: BTreeSet<u32>,
    /// Some rule translates addresses.
    pub(crate) translated: bool,
    /// The devices that are looked into; `None`: all.
    only: Option<BTreeSet<String>>,
}

/// Sends all packets all ways; or all ways through some devices, to which no others may lead packets.
pub(crate) fn walk(reading: &PolicyModel, only: Option<&BTreeSet<String>>) -> Result<Walked, TooLarge> {
    if asks_connections(reading) && !marks_connections(reading) {
        return Err(TooLarge);
    }
    let mut words = vocabulary(reading)?;
    for _ in 0..MOST_ROUNDS {
        let mut walked = Walked::begin(reading, Space::new(words.clone())?);
        walked.only = only.cloned();
        walked.through_netfilter(reading)?;
        let new = walked.new_connmarks(&words);
        if new.is_empty() || !reads_connmarks(reading) {
            walked.through_trees(reading)?;
            return Ok(walked);
        }
        words.connmarks.extend(new);
        if words.connmarks.len() > MOST_CONNMARKS {
            break;
        }
    }
    Err(TooLarge)
}

/// All packets through two policies: the sets of both are of one space, which the second has.
pub(crate) fn walk_both(
    first: &PolicyModel,
    second: &PolicyModel,
) -> Result<(Vec<Way>, Seen, Walked), TooLarge> {
    if [first, second].into_iter().any(|one| asks_connections(one) && !marks_connections(one)) {
        return Err(TooLarge);
    }
    let mut words = joined(vocabulary(first)?, vocabulary(second)?)?;
    for _ in 0..MOST_ROUNDS {
        let mut walked = Walked::begin(first, Space::new(words.clone())?);
        walked.through_netfilter(first)?;
        let mut new = walked.new_connmarks(&words);
        walked.through_trees(first)?;
        let Walked { space, ways, seen, .. } = walked;
        let mut walked = Walked::begin(second, space);
        walked.through_netfilter(second)?;
        new.extend(walked.new_connmarks(&words));
        if new.is_empty() || !reads_connmarks(first) && !reads_connmarks(second) {
            walked.through_trees(second)?;
            return Ok((ways, seen, walked));
        }
        words.connmarks.extend(new);
        words.connmarks.sort_unstable();
        words.connmarks.dedup();
        if words.connmarks.len() > MOST_CONNMARKS {
            break;
        }
    }
    Err(TooLarge)
}

/// The words of either policy.
fn joined(mut words: Vocabulary, other: Vocabulary) -> Result<Vocabulary, TooLarge> {
    for name in other.inputs {
        if !words.inputs.contains(&name) {
            words.inputs.push(name);
        }
    }
    for (mode, direction, begins) in other.counted {
        match words.counted.iter_mut().find(|known| (known.0, known.1) == (mode, direction)) {
            Some(known) => known.2.extend(begins),
            None => words.counted.push((mode, direction, begins)),
        }
    }
    for (_, _, begins) in &mut words.counted {
        begins.sort_unstable();
        begins.dedup();
    }
    words.fits().then_some(words).ok_or(TooLarge)
}

impl Vocabulary {
    /// Have the fields of a packet room for them?
    fn fits(&self) -> bool {
        self.inputs.len() <= MOST_INPUTS
            && self.counted.len() <= MOST_COUNTS
            && self.counted.iter().all(|(_, _, begins)| begins.len() <= MOST_INTERVALS)
    }
}

impl Walked {
    /// Before any packet went anywhere.
    pub(crate) fn nowhere(reading: &PolicyModel) -> Result<Walked, TooLarge> {
        let linux = reading.kernel().linux;
        let words =
            Vocabulary { inputs: vec![String::new()], connmarks: vec![0], counted: Vec::new(), linux };
        Ok(Walked::begin(reading, Space::new(words)?))
    }

    /// Marks that connections were given and that are not among the words.
    fn new_connmarks(&self, words: &Vocabulary) -> Vec<u32> {
        let known: BTreeSet<u32> = words.connmarks.iter().copied().collect();
        self.connmarks.difference(&known).copied().collect()
    }

    fn looks_into(&self, device: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(device))
    }

    fn begin(reading: &PolicyModel, space: Space) -> Walked {
        let tables = U32Tables::of(&reading.filters);
        Walked {
            space,
            states: States::default(),
            ways: Vec::new(),
            rules: BTreeMap::new(),
            seen: Seen::default(),
            lists: lists(&reading.filters, &tables, only_added(reading)),
            tables,
            classes: classes_of(reading),
            arrived: Vec::new(),
            connmarks: BTreeSet::new(),
            translated: rules(reading).any(translates),
            only: None,
        }
    }

    fn way(&mut self, way: Way) -> usize {
        let known = self.ways.iter().position(|known| *known == way);
        known.unwrap_or_else(|| {
            self.ways.push(way);
            self.ways.len() - 1
        })
    }

    fn through_netfilter(&mut self, reading: &PolicyModel) -> Result<(), TooLarge> {
        let plain = self.space.store.or(self.space.v4, self.space.v6)?;
        let coming = self.space.begin(&mut self.states, plain, Priority::Is(0))?;
        if arrivals_are_written_on(reading) {
            for passing in self.through_hooks(reading, coming)? {
                self.forward(reading, passing)?;
            }
        } else {
            self.forward(reading, coming)?;
        }
        for output in self.outputs(reading) {
            let way = self.way(Way::Local(output.clone()));
            let all = self.on_device(reading, &output)?;
            let own = self.space.begin(&mut self.states, all, Priority::Is(0))?;
            let out = Hook { at: netfilter::Hook::Output, input: false, output: &output, view: View::PLAIN };
            let sent = self.hook(reading, way, out, own)?;
            self.depart(reading, way, &output, self.late(), sent)?;
        }
        Ok(())
    }

    /// Devices by which packets may leave that are looked into.
    fn outputs(&self, reading: &PolicyModel) -> Vec<String> {
        let mut outputs = outputs(reading);
        outputs.retain(|output| output == ANOTHER || self.looks_into(output));
        outputs
    }

    /// What translation has changed of routed packets before they are sent.
    fn late(&self) -> View {
        View { source: true, destination: !self.translated, ports: !self.translated }
    }

    /// Packets that came in go to the machine's own programs, or are routed.
    fn forward(&mut self, reading: &PolicyModel, passing: Passing) -> Result<(), TooLarge> {
        let coming = self.way(Way::ComesIn);
        let before = Hook { at: netfilter::Hook::Prerouting, input: true, output: "", view: View::PLAIN };
        let routed = self.hook(reading, coming, before, passing)?;
        let late = self.late();
        let received = self.way(Way::Received);
        self.hook(reading, received, Hook { at: netfilter::Hook::Input, view: late, ..before }, routed)?;
        let routed = self.prioritised(routed)?;
        for output in self.outputs(reading) {
            let way = self.way(Way::Forwarded(output.clone()));
            let forward = Hook { at: netfilter::Hook::Forward, input: true, output: &output, view: late };
            let forwarded = self.hook(reading, way, forward, routed)?;
            self.depart(reading, way, &output, late, forwarded)?;
        }
        Ok(())
    }

    fn depart(
        &mut self,
        reading: &PolicyModel,
        way: usize,
        output: &str,
        view: View,
        passing: Passing,
    ) -> Result<(), TooLarge> {
        let last = Hook { at: netfilter::Hook::Postrouting, input: false, output, view };
        let mut passing = self.hook(reading, way, last, passing)?;
        if output == ANOTHER {
            return Ok(());
        }
        let all = self.on_device(reading, output)?;
        passing.set = self.space.store.and(passing.set, all)?;
        self.arrived.push((way, passing));
        Ok(())
    }

    /// Packets that a device can send: without a link header, IP only.
    fn on_device(&mut self, reading: &PolicyModel, device: &str) -> Result<Set, TooLarge> {
        let kind = reading.gateway.device(device).map(|id| reading.gateway.spec(id).kind);
        match kind {
            Some(DeviceKind::PointToPoint | DeviceKind::Raw | DeviceKind::Tunnel) => {
                self.space.store.or(self.space.v4, self.space.v6)
            }
            _ => self.space.all(),
        }
    }

    fn hook(
        &mut self,
        reading: &PolicyModel,
        way: usize,
        hook: Hook<'_>,
        passing: Passing,
    ) -> Result<Passing, TooLarge> {
        let Walked { space, states, rules, .. } = self;
        let mut walk = Walk { space, states, rules, way, steps: 0 };
        let came = passing.set;
        let mut passing = passing;
        for ipv6 in [false, true] {
            for (table, chain) in reading.gateway.chains_at(ipv6, hook.at) {
                // What translation does shows in the view.
                if !is_nat(table) {
                    passing = walk.base(table, chain, ipv6, hook, passing)?;
                }
            }
        }
        // What a rule writes and a later one of the hook writes over, no packet after this one meets.
        let states = &self.states;
        let left = self.space.store.split(passing.states, came, &|n| states.get(n).connmark)?;
        self.connmarks.extend(left.into_keys());
        Ok(passing)
    }

    /// Routing gives IPv4 packets a priority by their DS field.
    fn prioritised(&mut self, passing: Passing) -> Result<Passing, TooLarge> {
        let all = &mut self.states;
        let states = self.space.store.alter(passing.states, self.space.v4, &mut |n| {
            let state = all.get(n);
            all.number(State { priority: Priority::OfDs(state.ds), ..state })
        })?;
        Ok(Passing { states, ..passing })
    }

    fn through_trees(&mut self, reading: &PolicyModel) -> Result<(), TooLarge> {
        let late = View { source: !self.translated, destination: !self.translated, ports: !self.translated };
        for (way, passing) in self.arrived.clone() {
            let (Way::Forwarded(device) | Way::Local(device)) = self.ways[way].clone() else { continue };
            for (set, connections) in self.by_connection(reading, passing, false)? {
                let coming = Coming::from(passing, late, connections);
                self.leave(reading, way, &device, set, coming)?;
                self.follow(reading)?;
            }
        }
        if !arrivals_are_written_on(reading) {
            let passing = self.space.begin(&mut self.states, Set::NONE, Priority::Is(0))?;
            self.through_hooks(reading, passing)?;
        }
        Ok(())
    }

    /// Packets through the filters of the devices that they arrive at, and to where these lead them. What
    /// comes in afterwards is returned with what they wrote on it: once, or twice where it is not known
    /// whether a packet's connection is found.
    fn through_hooks(&mut self, reading: &PolicyModel, plain: Passing) -> Result<Vec<Passing>, TooLarge> {
        let mut devices: Vec<String> =
            reading.qdiscs.iter().filter(|q| q.kind.is_hook()).map(|q| q.dev.clone()).collect();
        // What is written on packets there goes with them, whatever device they leave by.
        let everywhere = arrivals_are_written_on(reading);
        devices.retain(|device| everywhere || self.looks_into(device));
        let (mut whole, mut other) = (plain, Passing { set: Set::NONE, ..plain });
        for device in devices {
            let way = self.way(Way::Arrives(device.clone()));
            let all = self.on_device(reading, &device)?;
            let passing = self.space.begin(&mut self.states, all, Priority::Is(0))?;
            let here = self.space.came_in(|name| name == device)?;
            let found = [&mut whole, &mut other].into_iter();
            for ((set, connections), into) in
                self.by_connection(reading, passing, true)?.into_iter().zip(found)
            {
                let coming = Coming::from(passing, View::PLAIN, connections);
                let mut tree = self.tree(reading, way, coming);
                tree.hook(&device, HOOKS, set)?;
                tree.hook(&device, CLSACT_INGRESS, set)?;
                let states = tree.coming.states;
                self.follow(reading)?;
                into.states = self.space.store.either_map(here, states, into.states)?;
                if into.set != plain.set {
                    let more = self.space.store.and(here, set)?;
                    let more = self.space.store.and(more, plain.set)?;
                    into.set = self.space.store.or(into.set, more)?;
                }
            }
        }
        Ok(if other.set.is_empty() { vec![whole] } else { vec![whole, other] })
    }

    /// Packets, and which of them have a connection that actions find. Those of which it is not known whether
    /// they have one are there a second time, as if they had.
    fn by_connection(
        &mut self,
        reading: &PolicyModel,
        passing: Passing,
        arrives: bool,
    ) -> Result<Vec<(Set, Set)>, TooLarge> {
        if !asks_connections(reading) {
            return Ok(vec![(passing.set, Set::NONE)]);
        }
        let ip = self.space.store.or(self.space.v4, self.space.v6)?;
        let ip = self.space.store.and(ip, passing.set)?;
        let found = if !tracks(reading) {
            // Whether anything is tracked at all is the machine's affair.
            Set::NONE
        } else if arrives {
            // It is looked up by its own addresses and ports, which later fragments do not have; answers to
            // others and errors are looked up in vain.
            self.space.answerable()?
        } else {
            let states = &self.states;
            let connected = self.space.store.and(ip, self.space.connected())?;
            self.space.store.select(passing.states, connected, &mut |n| !states.get(n).untracked)?
        };
        let found = self.space.store.and(found, ip)?;
        let doubtful = self.space.store.minus(ip, found)?;
        let mut parts = vec![(passing.set, found)];
        if !doubtful.is_empty() {
            parts.push((doubtful, doubtful));
        }
        Ok(parts)
    }

    /// Out by a device: clsact's filters, then the tree.
    fn leave(
        &mut self,
        reading: &PolicyModel,
        way: usize,
        device: &str,
        set: Set,
        coming: Coming,
    ) -> Result<Coming, TooLarge> {
        if undecided(reading, device) {
            return Ok(coming);
        }
        let mut tree = self.tree(reading, way, coming);
        let set = tree.hook(device, CLSACT_EGRESS, set)?;
        tree.enter(device, set)?;
        Ok(tree.coming)
    }

    /// Continues on the devices that filters redirected packets to, and back from an ifb.
    fn follow(&mut self, reading: &PolicyModel) -> Result<(), TooLarge> {
        let mut followed = 0;
        while let Some(led) = self.seen.led.pop() {
            followed += 1;
            if followed > MOST_LED {
                return Err(TooLarge);
            }
            let Led { from, to, way, set, coming, out } = led;
            // A device that is down drops packets redirected to it.
            if reading.down.contains(&to) {
                continue;
            }
            if !self.looks_into(&to) {
                let written = reading.filters.iter().any(|dump| dump.dev == to && rewrites_any(dump));
                if !out && written {
                    return Err(TooLarge);
                }
                continue;
            }
            let before = self.seen.led.len();
            let written = self.leave(reading, way, &to, set, coming)?;
            // What comes back from there goes on to netfilter's rules with it.
            if !out && written.states != coming.states {
                return Err(TooLarge);
            }
            let further = self.seen.led.len() > before;
            let ifb = reading
                .gateway
                .device(&to)
                .is_some_and(|id| reading.gateway.spec(id).kind == DeviceKind::Ifb);
            if ifb && out {
                // The kernel skips the actions of the first filter that matches, and carries out those of
                // later ones. A packet that an ifb redirects to another comes back to it and is dropped
                // there.
                if further || lists_with_actions(reading, &from) > 1 {
                    return Err(TooLarge);
                }
                let back = Coming { passed_over: true, ..written };
                self.leave(reading, way, &from, set, back)?;
            }
        }
        Ok(())
    }

    fn tree<'a>(&'a mut self, reading: &'a PolicyModel, way: usize, coming: Coming) -> Tree<'a> {
        Tree {
            lists: lists_of(&mut self.space, &mut self.states, reading, &self.tables),
            reading,
            all_lists: &self.lists,
            classes: &self.classes,
            seen: &mut self.seen,
            way,
            coming,
        }
    }
}

/// Whether it is undecided what comes to a device's classes. Where others are stacked on it, it carries their
/// frames; where it has SFB among other qdiscs, Linux does not list its classes; and copies (`mirred …
/// mirror`) are not followed, nor what a machine sends to itself.
pub(crate) fn undecided(reading: &PolicyModel, device: &str) -> bool {
    let Some(id) = reading.gateway.device(device) else { return false };
    if reading.gateway.spec(id).kind == DeviceKind::Loopback {
        return true;
    }
    let carries = reading.gateway.devices().any(|upper| reading.gateway.beneath(upper) == Some(id));
    let unlisted = |qdisc: &QdiscDump| qdisc.kind == Kind::Sfb && qdisc.parent != Handle::ROOT;
    carries
        || copied_to(reading, device)
        || reading.qdiscs.iter().any(|qdisc| qdisc.dev == device && unlisted(qdisc))
}

/// How many lists of filters that packets meet as they leave by a device have actions.
fn lists_with_actions(reading: &PolicyModel, device: &str) -> usize {
    let acts = |dump: &&FilterDump| match &dump.entry {
        FilterEntry::Filter { actions, .. } => !actions.is_empty(),
        _ => false,
    };
    let leaving =
        |dump: &&FilterDump| dump.dev == device && dump.parent != HOOKS && dump.parent != CLSACT_INGRESS;
    let parents = reading.filters.iter().filter(leaving).filter(acts).map(|dump| dump.parent);
    parents.collect::<BTreeSet<_>>().len()
}

/// Do filters write on packets as they arrive, or on an ifb from which these come back, so that netfilter's
/// rules see it?
fn arrivals_are_written_on(reading: &PolicyModel) -> bool {
    let arriving = reading.filters.iter().filter(|dump| reading.arrives(dump));
    let led: BTreeSet<&str> = arriving.flat_map(redirects).collect();
    let written =
        |dump: &FilterDump| rewrites_any(dump) && (reading.arrives(dump) || led.contains(dump.dev.as_str()));
    reading.filters.iter().any(written)
}

/// Did no command take filters of flower away or change them, so that the listing tells in which order they
/// were made?
fn only_added(reading: &PolicyModel) -> bool {
    !reading.ops.iter().any(|op| match op {
        Op::Filter(op) => op.verb != Verb::Add && op.kind.as_deref().is_none_or(|kind| kind == "flower"),
        _ => false,
    })
}

/// Does any filter send copies of packets to a device?
fn copied_to(reading: &PolicyModel, device: &str) -> bool {
    reading.filters.iter().any(|dump| match &dump.entry {
        FilterEntry::Filter { actions, .. } => actions.iter().any(
            |action| matches!(&action.action.act, Act::Mirred(mirred) if mirred.copy && mirred.to == device),
        ),
        _ => false,
    })
}

/// The rules of all tables.
pub(crate) fn rules(reading: &PolicyModel) -> impl Iterator<Item = &NetfilterRule> {
    let chains = reading.gateway.all_tables().iter().flat_map(NetfilterTable::chains);
    chains.flat_map(|chain| chain.rules.iter().map(|counted| &counted.rule))
}

/// All conditions of all rules, those of sets one by one.
pub(crate) fn conditions(reading: &PolicyModel) -> impl Iterator<Item = &Condition> {
    rules(reading).flat_map(|rule| &rule.matches).flat_map(|m| match &m.what {
        Condition::Any(several) => several.iter().collect::<Vec<_>>(),
        one => vec![one],
    })
}

/// Is it iptables' table of translations?
fn is_nat(table: &NetfilterTable) -> bool {
    !table.is_free() && table.name() == "nat"
}

pub(crate) fn translates(rule: &NetfilterRule) -> bool {
    matches!(rule.target, Some(NetfilterTarget::Translate(_)))
}

/// Whether anything depends on connections.
pub(crate) fn uses_conntrack(reading: &PolicyModel) -> bool {
    tracks(reading) || asks_connections(reading)
}

/// Does any rule give connections a mark? Where none does and filters ask for it, others do that.
pub(crate) fn marks_connections(reading: &PolicyModel) -> bool {
    let sets = |target: &NetfilterTarget| {
        matches!(target, NetfilterTarget::Connmark(ConnmarkTarget::Set { .. } | ConnmarkTarget::Save { .. }))
    };
    rules(reading).any(|rule| rule.targets().any(sets))
}

/// Whether netfilter's rules ask for connections, so that they are tracked.
fn tracks(reading: &PolicyModel) -> bool {
    let matches = |what: &Condition| {
        matches!(
            what,
            Condition::Connmark(..) | Condition::Connstate(_) | Condition::State(_) | Condition::Connbytes(_)
        )
    };
    let keeps = |target: &NetfilterTarget| {
        matches!(
            target,
            NetfilterTarget::Connmark(_) | NetfilterTarget::Notrack(_) | NetfilterTarget::Translate(_)
        )
    };
    conditions(reading).any(matches) || rules(reading).any(|rule| rule.targets().any(keeps))
}

/// Does any rule look at the mark that a connection has?
pub(crate) fn reads_connmarks(reading: &PolicyModel) -> bool {
    let restores = |target: &NetfilterTarget| {
        matches!(target, NetfilterTarget::Connmark(ConnmarkTarget::Restore { .. }))
    };
    conditions(reading).any(|what| matches!(what, Condition::Connmark(..)))
        || rules(reading).any(|rule| rule.targets().any(restores))
        || asks_connections(reading)
}

/// Devices by which packets may leave that matter: those with a tree, those with filters on what leaves, and
/// those that a rule names.
fn outputs(reading: &PolicyModel) -> Vec<String> {
    let mut outputs: BTreeSet<String> = reading
        .qdiscs
        .iter()
        .filter(|qdisc| !qdisc.handle.is_none() && !qdisc.kind.is_hook())
        .map(|q| q.dev.clone())
        .collect();
    let leaving = reading.filters.iter().filter(|dump| dump.parent == CLSACT_EGRESS);
    outputs.extend(leaving.map(|dump| dump.dev.clone()));
    let named = |what: &Condition| match what {
        Condition::Out(pattern) => Some(pattern.clone()),
        _ => None,
    };
    let by_name = names(reading, named);
    // A rule for one device is none for the machine's others, which need not be named.
    outputs.extend((!by_name.is_empty()).then(|| ANOTHER.to_owned()));
    outputs.extend(by_name);
    outputs.retain(|name| {
        let kind = reading.gateway.device(name).map(|id| reading.gateway.spec(id).kind);
        !matches!(kind, Some(DeviceKind::Ifb | DeviceKind::Loopback))
    });
    outputs.into_iter().collect()
}

/// Names that conditions ask for; for a pattern, those of devices that fit it, or one that would.
fn names(reading: &PolicyModel, named: impl Fn(&Condition) -> Option<String>) -> Vec<String> {
    let patterns: BTreeSet<String> = conditions(reading).filter_map(named).collect();
    let devices: Vec<String> =
        reading.gateway.devices().map(|id| reading.gateway.name(id).to_owned()).collect();
    let mut names = Vec::new();
    for pattern in patterns {
        let fitting: Vec<&String> = devices.iter().filter(|name| fits(&pattern, name)).collect();
        match pattern.strip_suffix('+') {
            _ if !fitting.is_empty() => names.extend(fitting.into_iter().cloned()),
            Some(prefix) => names.push(format!("{prefix}0")),
            None => names.push(pattern),
        }
    }
    names
}

/// The values of a policy by which packets are distinguished.
fn vocabulary(reading: &PolicyModel) -> Result<Vocabulary, TooLarge> {
    let mut inputs = vec![String::new()];
    inputs.extend(reading.gateway.devices().map(|id| reading.gateway.name(id).to_owned()));
    let named = |what: &Condition| match what {
        Condition::In(pattern) => Some(pattern.clone()),
        _ => None,
    };
    for name in names(reading, named) {
        if !inputs.contains(&name) {
            inputs.push(name);
        }
    }
    let mut counted: Vec<(_, _, Vec<u64>)> = Vec::new();
    for what in conditions(reading) {
        let Condition::Connbytes(range) = what else { continue };
        let at = counted
            .iter()
            .position(|(mode, direction, _)| (*mode, *direction) == (range.mode, range.direction));
        let at = at.unwrap_or_else(|| {
            counted.push((range.mode, range.direction, vec![0]));
            counted.len() - 1
        });
        let bounds = &mut counted[at].2;
        bounds.extend([Some(range.from), range.to.checked_add(1)].into_iter().flatten());
        bounds.sort_unstable();
        bounds.dedup();
    }
    let words = Vocabulary { inputs, connmarks: vec![0], counted, linux: reading.kernel().linux };
    words.fits().then_some(words).ok_or(TooLarge)
}
