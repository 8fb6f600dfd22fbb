//! Two policies beside each other: which packets of a class of the one come to which class of the other.
//!
//! All packets go through both, in one space of sets, so that what is in a class here and in a class there is
//! exact.

use crate::packet::Packet;
use crate::probe::{PacketEntry, Prober};
use crate::reach::Reached;
use crate::reading::PolicyModel;
use crate::sets::bdd::{Set, TooLarge};
use crate::sets::field::Field;
use crate::walk::Parts;
use crate::walk::outcome::asks_connections;
use crate::walk::tree::{By, Seen};
use crate::walk::ways::{Way, rules, translates, undecided, walk_both};
use std::collections::BTreeMap;
use tidegate_gateway::EgressPath;
use tidegate_packet::Handle;
use tidegate_packet::header::proto;

/// What two classes of two policies have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassPair {
    /// The class of the first policy, with its device.
    pub from: (String, Handle),
    /// That of the second.
    pub to: (String, Handle),
    /// One of the packets that come to both; `None`: none that can be described.
    pub packet: Option<Packet>,
    /// TCP or UDP over IPv4 is among them, or nothing but other protocols, or nothing but IPv6.
    pub among: PacketKind,
}

/// What is among packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketKind {
    /// TCP or UDP over IPv4, whole, without options, of a connection, and not back by the device it came in
    /// by.
    Transport,
    /// All others over IPv4, or none of IP's.
    Other,
    /// IPv6 only.
    Ipv6,
}

/// The pairs of classes with packets in common, on devices of the first policy and what each is called in the
/// second; `None`: that is not decided.
pub fn pairs(
    first: &PolicyModel,
    second: &PolicyModel,
    devices: &[(String, String)],
) -> Option<Vec<ClassPair>> {
    if devices.iter().any(|(a, b)| undecided(first, a) || undecided(second, b)) {
        return None;
    }
    let (ways, seen, walked) = walk_both(first, second).ok()?;
    // The sets do not model translated addresses, nor what a hash does: then the engine decides.
    let translated = [first, second].into_iter().any(|reading| rules(reading).any(translates));
    let open = !seen.guessed.is_empty() || asks_connections(first);
    let prober = (translated || open).then(|| Prober::new(first));
    let mut both = Both { ways, reached: Reached { walked }, prober };
    let mut found = Vec::new();
    for (a, b) in devices {
        let here = classes(&seen, a);
        let there = classes(&both.reached.walked.seen, b);
        for (from, parts) in &here {
            for (to, others) in &there {
                found.extend(both.pair(second, (a, *from, parts), (b, *to, others)).ok()?);
            }
        }
    }
    Some(found)
}

/// The classes of a device that packets come to, with the packets.
fn classes(seen: &Seen, device: &str) -> BTreeMap<Handle, Vec<Parts>> {
    let mut classes: BTreeMap<Handle, Vec<Parts>> = BTreeMap::new();
    for ((place, by), parts) in &seen.classes {
        if place.0 == device && *by != By::Hash {
            classes.entry(place.1).or_default().push(parts.clone());
        }
    }
    classes
}

struct Both {
    /// The ways of the first policy.
    ways: Vec<Way>,
    /// What comes where in the second.
    reached: Reached,
    /// The engine with the first policy, where sets are wider than the truth.
    prober: Option<Prober>,
}

impl Both {
    fn pair(
        &mut self,
        second: &PolicyModel,
        (device, from, parts): (&str, Handle, &[Parts]),
        (other, to, others): (&str, Handle, &[Parts]),
    ) -> Result<Option<ClassPair>, TooLarge> {
        let mut best: Option<(PacketKind, usize, Set)> = None;
        for (at, way) in self.ways.clone().into_iter().enumerate() {
            // The same path through either machine.
            let Some(there) = self.reached.walked.ways.iter().position(|known| *known == way) else {
                continue;
            };
            let (a, b) = (self.whole(parts, at)?, self.whole(others, there)?);
            let common = self.reached.walked.space.store.and(a, b)?;
            // A connection's mark is that of its first packet: which it has is decided where it has none yet.
            let unmarked = self.reached.walked.space.is(Field::Connmark, 0)?;
            let common = self.reached.walked.space.store.and(common, unmarked)?;
            if common.is_empty() {
                continue;
            }
            let (kind, set) = self.kind(common, &way)?;
            if best.as_ref().is_none_or(|known| kind < known.0) {
                best = Some((kind, there, set));
            }
        }
        let Some((among, way, set)) = best else { return Ok(None) };
        let packet = self.reached.pick_by(second, way, set)?.map(|candidate| candidate.packet);
        let way = self.reached.walked.ways[way].clone();
        if packet.as_ref().is_some_and(|packet| !self.comes(packet, &way, (device, from))) {
            return Ok(None);
        }
        let (from, to) = ((device.to_owned(), from), (other.to_owned(), to));
        Ok(Some(ClassPair { from, to, packet, among }))
    }

    /// Whether a packet comes to a class of the first policy, as far as the engine was to decide.
    fn comes(&mut self, packet: &Packet, way: &Way, (device, class): (&str, Handle)) -> bool {
        let Some(prober) = &mut self.prober else { return true };
        let named =
            |prober: &Prober, name: &Option<String>| name.as_deref().and_then(|name| prober.device(name));
        let course = match way {
            Way::Forwarded(output) => {
                let from = named(prober, &packet.from);
                prober.device(output).map(|output| PacketEntry::Leaves(output, EgressPath::Forwarded(from)))
            }
            Way::Local(output) => {
                prober.device(output).map(|output| PacketEntry::Leaves(output, EgressPath::Local))
            }
            Way::Arrives(input) => prober.device(input).map(PacketEntry::Arrives),
            Way::ComesIn | Way::Received => None,
        };
        let (Some(course), Some(id)) = (course, prober.device(device)) else { return true };
        let way = prober.travel(packet, course);
        way.dropped.is_some()
            || way.stops.iter().any(|stop| stop.device == id && stop.classes.contains(&class))
    }

    fn whole(&mut self, parts: &[Parts], way: usize) -> Result<Set, TooLarge> {
        let mut whole = Set::NONE;
        for part in parts {
            whole = self.reached.walked.space.store.or(whole, part.by(way))?;
        }
        Ok(whole)
    }

    /// The plainest kind of packets in a set, and those of it.
    fn kind(&mut self, set: Set, way: &Way) -> Result<(PacketKind, Set), TooLarge> {
        let space = &mut self.reached.walked.space;
        let v6 = space.v6;
        let rest = space.store.minus(set, v6)?;
        if rest.is_empty() {
            return Ok((PacketKind::Ipv6, set));
        }
        let mut transport = Set::NONE;
        for protocol in [proto::TCP, proto::UDP] {
            let one = space.is(Field::Protocol, protocol.into())?;
            transport = space.store.or(transport, one)?;
        }
        let v4 = space.v4;
        let plain = space.store.and(rest, v4)?;
        let mut plain = space.store.and(plain, transport)?;
        let (whole, whole_too) = (space.is(Field::Fragment, 0x4000)?, space.is(Field::Fragment, 0)?);
        let whole = space.store.or(whole, whole_too)?;
        let bare = space.is(Field::Ihl, 5)?;
        let known = space.between(Field::State, 0, 1)?;
        for among in [whole, bare, known] {
            plain = space.store.and(plain, among)?;
        }
        if let Way::Forwarded(output) = way {
            let back = space.came_in(|name| name == output)?;
            plain = space.store.minus(plain, back)?;
        }
        Ok(if plain.is_empty() { (PacketKind::Other, rest) } else { (PacketKind::Transport, plain) })
    }
}
