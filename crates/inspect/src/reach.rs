//! Which packets reach what: each class, filter and rule with the exact set of packets that come to it.
//!
//! The sets are computed for all packets at once ([`Reached::of`]); a packet taken from one is a candidate,
//! and the engine has the last word.

use crate::packet::Packet;
use crate::probe::PacketEntry;
use crate::reading::PolicyModel;
use crate::sets::bdd::{Set, TooLarge};
use crate::sets::field::{ByteBit, Field, Layout, View, byte_bit};
use crate::sets::set::{STATES, Space};
use crate::walk::tree::{By, Place};
use crate::walk::ways::{Walked, Way, undecided, walk};
use crate::walk::{Parts, RuleKey};
use std::collections::BTreeSet;
use tidegate_gateway::EgressPath;
use tidegate_packet::Handle;
use tidegate_policy::netfilter::{Connstate, NetfilterRule, NetfilterTarget};

/// A packet, and how it comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The packet itself.
    pub packet: Packet,
    /// Where it enters the machine.
    pub course: PacketEntry,
}

/// What comes to a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Packets like this one.
    Packet(Candidate),
    /// Whose packets come there is a hash's choice.
    Hashed,
    /// None: it is shown that no packet can.
    Unreachable,
    /// It is not decided: the question is too large, or the device carries the frames of others.
    Undecided,
}

/// All that all packets reach.
pub struct Reached {
    pub(crate) walked: Walked,
}

impl Reached {
    /// What all packets reach; `None`: the policy is too large to decide.
    pub fn of(reading: &PolicyModel) -> Option<Reached> {
        walk(reading, None).ok().map(|walked| Reached { walked })
    }

    /// What all packets reach on some devices, to which no others may lead packets.
    pub(crate) fn of_part(reading: &PolicyModel, devices: &BTreeSet<String>) -> Option<Reached> {
        walk(reading, Some(devices)).ok().map(|walked| Reached { walked })
    }

    /// Without any set, for callers with other questions.
    pub(crate) fn nothing(reading: &PolicyModel) -> Option<Reached> {
        Walked::nowhere(reading).ok().map(|walked| Reached { walked })
    }

    /// What comes to a leaf class of a device.
    pub fn class(&mut self, reading: &PolicyModel, device: &str, class: Handle) -> Arrival {
        if undecided(reading, device) {
            return Arrival::Undecided;
        }
        let place = (device.to_owned(), class);
        for by in [By::Word, By::Default] {
            let Some(parts) = self.walked.seen.classes.get(&(place.clone(), by)).cloned() else { continue };
            match self.pick(reading, &parts) {
                Ok(Some(candidate)) => return Arrival::Packet(candidate),
                // There are packets, though none that can be described.
                Ok(None) if parts.0.iter().any(|(_, set)| !set.is_empty()) => return Arrival::Undecided,
                Ok(None) => {}
                Err(TooLarge) => return Arrival::Undecided,
            }
        }
        match self.walked.seen.classes.contains_key(&(place, By::Hash)) {
            true => Arrival::Hashed,
            false => Arrival::Unreachable,
        }
    }

    /// The leaf classes of a device that a packet may come to by its course, by a hash several; none for one
    /// whose connection has a mark that no rule gives.
    pub fn classes(
        &self,
        reading: &PolicyModel,
        packet: &Packet,
        state: Connstate,
        device: &str,
        course: PacketEntry,
    ) -> Vec<Handle> {
        let name = |device| reading.gateway.name(device).to_owned();
        let way = match course {
            PacketEntry::Leaves(output, EgressPath::Local) => Way::Local(name(output)),
            PacketEntry::Leaves(output, _) | PacketEntry::Through(_, output) => Way::Forwarded(name(output)),
            PacketEntry::Arrives(input) => Way::Arrives(name(input)),
        };
        let Some(way) = self.walked.ways.iter().position(|known| *known == way) else { return Vec::new() };
        if !self.walked.space.words.connmarks.contains(&packet.connmark) {
            return Vec::new();
        }
        let bits = bits_of(&self.walked.space, packet, state);
        let seen = self.walked.seen.classes.iter().filter(|((place, _), _)| place.0 == device);
        let comes =
            |parts: &Parts| self.walked.space.store.contains(parts.by(way), |bit| bits[usize::from(bit)]);
        let mut classes: Vec<Handle> =
            seen.filter(|(_, parts)| comes(parts)).map(|((place, _), _)| place.1).collect();
        classes.dedup();
        classes
    }

    /// The rules that set a mark or a class which no packet has any more when it comes to a queue: later
    /// rules overwrite it. Of equal rules, only where it is so for all.
    pub fn overwritten(&mut self, reading: &PolicyModel) -> Vec<NetfilterRule> {
        let keys: Vec<RuleKey> = self.walked.rules.keys().cloned().collect();
        let (mut gone, mut kept) = (Vec::new(), Vec::new());
        for key in keys {
            let Some(rule) = rule_of(reading, &key) else { continue };
            let Some(target) = rule.targets().filter(|target| writes(target)).last() else { continue };
            match self.carries(&key, target, None) {
                Ok(Some(false)) => gone.push(rule.clone()),
                _ => kept.push(rule.clone()),
            }
        }
        gone.retain(|rule| !kept.contains(rule));
        gone
    }

    /// The rules that set marks or a class, and match only packets for the machine's own programs, which come
    /// to no queue. Of equal rules, only where it is so for all.
    pub fn received(&self, reading: &PolicyModel) -> Vec<NetfilterRule> {
        let marks =
            |target: &NetfilterTarget| writes(target) || matches!(target, NetfilterTarget::Connmark(_));
        let (mut received, mut others) = (Vec::new(), Vec::new());
        for (key, seen) in &self.walked.rules {
            let Some(rule) = rule_of(reading, key).filter(|rule| rule.targets().any(marks)) else { continue };
            let mut taken = seen.matched.0.iter().filter(|(_, set)| !set.is_empty()).peekable();
            let any = taken.peek().is_some();
            let only = any && taken.all(|(way, _)| self.walked.ways[*way] == Way::Received);
            if only { &mut received } else { &mut others }.push(rule.clone());
        }
        received.retain(|rule| !others.contains(rule));
        received
    }

    /// Whether any packet that a rule matched comes to a queue with what it wrote, of those in `among` if
    /// that is given. `None`: none of them comes to a queue at all.
    pub(crate) fn carries(
        &mut self,
        key: &RuleKey,
        target: &NetfilterTarget,
        among: Option<&Parts>,
    ) -> Result<Option<bool>, TooLarge> {
        let Some(matched) = self.walked.rules.get(key).map(|seen| seen.matched.clone()) else {
            return Ok(None);
        };
        let walked = &mut self.walked;
        let coming = walked.ways.iter().position(|way| *way == Way::ComesIn);
        let mut any = None;
        for (way, passing) in walked.arrived.clone() {
            let mut set = matched.by(way);
            if let (Some(coming), Way::Forwarded(_)) = (coming, &walked.ways[way]) {
                // Before routing a packet is on no device's way yet.
                set = walked.space.store.or(set, matched.by(coming))?;
            }
            let set = walked.space.store.and(set, passing.set)?;
            let set = among.map_or(Ok(set), |among| walked.space.store.and(set, among.by(way)))?;
            let states = &walked.states;
            let has = |n: u32| match target {
                NetfilterTarget::Mark { value, mask } => states.get(n).mark & mask == value & mask,
                NetfilterTarget::Classify(class) => states.get(n).priority.class() == *class,
                _ => true,
            };
            let kept = walked.space.store.select(passing.states, set, &mut |n| has(n))?;
            if !set.is_empty() {
                any = Some(any.unwrap_or(false) || !kept.is_empty());
            }
        }
        Ok(any)
    }

    /// A packet of one of the sets, with its way: a routed one where there is any.
    pub(crate) fn pick(
        &mut self,
        reading: &PolicyModel,
        parts: &Parts,
    ) -> Result<Option<Candidate>, TooLarge> {
        let ways = &self.walked.ways;
        let mut parts: Vec<(usize, Set)> =
            parts.0.iter().filter(|(_, set)| !set.is_empty()).copied().collect();
        parts.sort_by_key(|(way, _)| !matches!(ways[*way], Way::Forwarded(_) | Way::ComesIn));
        for (way, set) in parts {
            if let Some(candidate) = self.pick_by(reading, way, set)? {
                return Ok(Some(candidate));
            }
        }
        Ok(None)
    }

    /// Some sets without the packets of a packet's protocol, with one destination port if that is given.
    pub(crate) fn without(
        &mut self,
        parts: &Parts,
        packet: &Packet,
        port: Option<u16>,
    ) -> Result<Parts, TooLarge> {
        let space = &mut self.walked.space;
        let mut like = space.is(Field::Ethertype, packet.ethertype.into())?;
        if packet.protocol != 0 {
            let protocol = space.is(Field::Protocol, packet.protocol.into())?;
            like = space.store.and(like, protocol)?;
        }
        if let Some(port) = port {
            let literals = Field::Transport.literals(16, 16, port.into(), u128::MAX);
            let ports = space.store.cube(&literals)?;
            like = space.store.and(like, ports)?;
        }
        let mut left = Parts::default();
        for (way, set) in &parts.0 {
            let set = space.store.minus(*set, like)?;
            left.add(space, *way, set)?;
        }
        Ok(left)
    }

    /// A packet of a set that comes by one way.
    pub(crate) fn pick_by(
        &mut self,
        reading: &PolicyModel,
        way: usize,
        set: Set,
    ) -> Result<Option<Candidate>, TooLarge> {
        let mut set = set;
        if let Way::Forwarded(output) = self.walked.ways[way].clone() {
            // Few packets leave by the device that they came in by.
            let back = self.walked.space.came_in(|name| name == output)?;
            let onward = self.walked.space.store.minus(set, back)?;
            set = if onward.is_empty() { set } else { onward };
        }
        let Some(mut packet) = self.walked.space.packet(set)? else { return Ok(None) };
        let device = |name: &str| reading.gateway.device(name);
        let course = match &self.walked.ways[way] {
            Way::ComesIn => {
                let any = reading.gateway.devices().next();
                let from = packet.from.as_deref().and_then(device);
                any.map(|any| PacketEntry::Leaves(any, EgressPath::Forwarded(from)))
            }
            // The engine decides for outgoing packets.
            Way::Received => None,
            Way::Forwarded(output) => {
                let from = packet.from.as_deref().and_then(device);
                packet.to = Some(output.clone());
                device(output).map(|output| PacketEntry::Leaves(output, EgressPath::Forwarded(from)))
            }
            Way::Local(output) => {
                (packet.from, packet.to) = (Some("lo".to_owned()), Some(output.clone()));
                device(output).map(|output| PacketEntry::Leaves(output, EgressPath::Local))
            }
            Way::Arrives(input) => {
                packet.from = Some(input.clone());
                device(input).map(PacketEntry::Arrives)
            }
        };
        Ok(course.map(|course| Candidate { packet, course }))
    }

    /// Packets that came to a list of filters, by any way.
    pub(crate) fn list(&self, place: &Place) -> Parts {
        self.walked.seen.lists.get(place).cloned().unwrap_or_default()
    }
}

/// Does a target write what a qdisc may look at?
fn writes(target: &NetfilterTarget) -> bool {
    matches!(target, NetfilterTarget::Mark { .. } | NetfilterTarget::Classify(_))
}

/// A rule by its place.
pub(crate) fn rule_of<'r>(reading: &'r PolicyModel, key: &RuleKey) -> Option<&'r NetfilterRule> {
    let tables = reading.gateway.all_tables().iter();
    let table = tables.into_iter().find(|table| table.family() == key.family && table.name() == key.table)?;
    let chain = table.chains().iter().find(|chain| chain.name == key.chain)?;
    chain.rules.get(key.at).map(|counted| &counted.rule)
}

/// All bits of a packet that is this to its connection.
fn bits_of(space: &Space, packet: &Packet, state: Connstate) -> Vec<bool> {
    let mut bits = vec![false; usize::from(Field::END)];
    let mut write = |field: Field, from: u16, width: u16, value: u64| {
        for at in 0..width {
            bits[usize::from(field.bit(from + at))] = value >> (width - 1 - at) & 1 == 1;
        }
    };
    let position = |known: Option<usize>| known.unwrap_or(0) as u64;
    let from = packet.from.as_deref().unwrap_or("");
    write(Field::Input, 0, 8, position(space.words.inputs.iter().position(|name| name == from)));
    write(
        Field::Connmark,
        0,
        10,
        position(space.words.connmarks.iter().position(|mark| *mark == packet.connmark)),
    );
    write(Field::State, 0, 3, position(STATES.iter().position(|known| *known == state)));
    write(Field::Ethertype, 0, 16, u64::from(packet.ethertype));
    let header = if packet.is_ipv6() { 40 } else { 0 };
    write(Field::Length, 0, 16, u64::from(packet.length.saturating_sub(header)));
    for ((_, _, begins), group) in space.words.counted.iter().zip(0u16..) {
        // This packet counts too.
        let carried = packet.carried + u64::from(packet.length);
        let interval = begins.partition_point(|begin| *begin <= carried).saturating_sub(1);
        write(Field::Carried, group * 8, 8, interval as u64);
    }
    let layout = Layout::of(packet);
    let head = packet.head();
    for (byte, at) in head.network().iter().zip(0..) {
        for bit in 0..8 {
            let number = match byte_bit(layout, View::PLAIN, at, bit) {
                ByteBit::Bit(number) => number,
                ByteBit::Ds(place) => Field::Ds.bit(place),
                ByteBit::Fixed(_) => continue,
            };
            bits[usize::from(number)] = byte >> (7 - bit) & 1 == 1;
        }
    }
    // Behind options, what follows the header is not where words of fixed offsets are read.
    let behind = head.network().iter().skip(packet.network_header()).zip(0..);
    for (byte, at) in behind.filter(|_| layout == Layout::V4Options) {
        for bit in 0..8 {
            bits[usize::from(Field::Transport.bit(at * 8 + bit))] = byte >> (7 - bit) & 1 == 1;
        }
    }
    bits
}
