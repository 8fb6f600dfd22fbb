//! The network driven by another clock.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;

use tidegate_packet::header::ethertype;
use tidegate_packet::{Head, Nanos, Time};
use tidegate_sim::world::{NodePath, World};
use tidegate_sim::{Arrived, Ends};

use crate::conversations::Conversations;
use crate::frames::Frames;
use crate::icmp;
use crate::lateness::LatenessHistogram;

/// Bytes of the largest packet that is taken in.
const LARGEST: usize = 65_536;
/// Packets taken in before those that arrived meanwhile are given out.
const BATCH: usize = 64;

/// Where time and packets come from.
pub trait Environment {
    /// What time it is in the network; never less than before.
    fn now(&mut self) -> Time;
    /// The next packet from a party: its number, and the packet's bytes.
    ///
    /// # Errors
    /// The outside is gone.
    fn receive(&mut self, into: &mut [u8]) -> io::Result<Option<(usize, usize)>>;
    /// Gives a packet to a party; false: its queue was full.
    ///
    /// # Errors
    /// The outside is gone.
    fn send(&mut self, party: usize, packet: &[u8]) -> io::Result<bool>;
    /// Waits until a packet has come or this time.
    ///
    /// # Errors
    /// The outside is gone.
    fn wait(&mut self, until: Time) -> io::Result<()>;
}

/// A real party at the edge of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    /// The node of the network that he is.
    pub node: usize,
    /// His addresses.
    pub addresses: Vec<IpAddr>,
}

/// What was taken in and given out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverStats {
    /// Packets of real hosts.
    pub received: u64,
    /// Packets given to them.
    pub sent: u64,
    /// Packets to an address that no party has.
    pub nowhere: u64,
    /// Packets that a host's own queue had no space for.
    pub refused: u64,
}

/// A network with real parties at its edges.
pub struct Driver {
    /// What it did.
    pub counts: DriverStats,
    /// How much later than scheduled packets were delivered.
    pub lateness: LatenessHistogram,
    /// An address that was requested and that no party has.
    pub unknown_address: Option<IpAddr>,
    parties: Vec<Party>,
    /// Of each address the node that has it: parties and machines.
    homes: HashMap<IpAddr, usize>,
    /// Nodes that are a real router's devices: what no way leads to from where it is sent goes through that
    /// router.
    ports: Vec<usize>,
    /// Of each node its party.
    party_of: HashMap<usize, usize>,
    conversations: Conversations,
    frames: Frames,
    buffer: Vec<u8>,
    /// The addresses of each node that is no party: it forwards packets, and answers those it drops.
    routers: HashMap<usize, Vec<IpAddr>>,
    /// Replies of machines, by the party that asked.
    answers: Vec<(usize, usize, Vec<u8>)>,
}

impl Driver {
    /// A network with these parties; `machines`: the addresses of its machines and relays, which answer echo
    /// requests, and packets whose hop limit runs out.
    pub fn new(parties: Vec<Party>, machines: &[(IpAddr, usize)]) -> Driver {
        let mut homes: HashMap<IpAddr, usize> = machines.iter().copied().collect();
        homes.extend(
            parties.iter().flat_map(|party| party.addresses.iter().map(|address| (*address, party.node))),
        );
        let mut routers: HashMap<usize, Vec<IpAddr>> = HashMap::new();
        for (address, node) in machines {
            if parties.iter().all(|party| party.node != *node) {
                routers.entry(*node).or_default().push(*address);
            }
        }
        Driver {
            routers,
            counts: DriverStats::default(),
            lateness: LatenessHistogram::default(),
            unknown_address: None,
            party_of: parties.iter().enumerate().map(|(number, party)| (party.node, number)).collect(),
            parties,
            homes,
            ports: Vec::new(),
            conversations: Conversations::default(),
            frames: Frames::default(),
            buffer: vec![0; LARGEST],
            answers: Vec::new(),
        }
    }

    /// These nodes are a real router's devices.
    #[must_use]
    pub fn with_ports(self, ports: Vec<usize>) -> Driver {
        Driver { ports, ..self }
    }

    /// Continues until a time.
    ///
    /// # Errors
    /// The outside is gone.
    pub fn run(&mut self, world: &mut World, outside: &mut impl Environment, until: Time) -> io::Result<()> {
        loop {
            let now = outside.now().min(until);
            world.net.run(now);
            self.send_due(world, outside)?;
            if now >= until {
                return Ok(());
            }
            if self.take_in(world, outside, until)? {
                continue;
            }
            let due = world.net.due().unwrap_or(until);
            outside.wait(due.min(until))?;
        }
    }

    /// Takes in what has come, each packet at the time of its taking; false: nothing had.
    fn take_in(
        &mut self,
        world: &mut World,
        outside: &mut impl Environment,
        until: Time,
    ) -> io::Result<bool> {
        for taken in 0..BATCH {
            let Some((party, bytes)) = outside.receive(&mut self.buffer)? else { return Ok(taken > 0) };
            world.net.run(outside.now().min(until));
            let buffer = std::mem::take(&mut self.buffer);
            self.put_in(world, self.parties[party].node, &buffer[..bytes]);
            self.buffer = buffer;
            self.counts.received += 1;
        }
        Ok(true)
    }

    /// Puts a packet on its way from a node.
    fn put_in(&mut self, world: &mut World, from: usize, packet: &[u8]) {
        let ethertype = match packet.first().map(|byte| byte >> 4) {
            Some(4) => ethertype::IPV4,
            Some(6) => ethertype::IPV6,
            _ => return,
        };
        let mut head = Head::from_network(ethertype, packet);
        // Its checksums are real.
        head.set_summed();
        let Some(ends) = Ends::seen(&head) else { return };
        let to = self.homes.get(&ends.dst).copied();
        // The reply to a translated packet goes to the translator's address, and from there to the packet's
        // sender.
        let to = self.conversations.sender(ends).or(to);
        let to = to.filter(|to| *to != from).map(|to| self.end_of(world, packet, from, to));
        let way = to.and_then(|to| match world.way(from, to) {
            Some(way) => Some((to, way)),
            None => self.through(world, from),
        });
        let Some((to, way)) = way else {
            self.counts.nowhere += 1;
            // Multicast has no receiver here: neighbour resolution, router discovery.
            if !is_for_many(ends.dst) {
                self.unknown_address.get_or_insert(ends.dst);
            }
            return;
        };
        let owner = (from as u32) << 16 | to as u32;
        if let Some(slot) = world.net.inject(head, packet.len() as u32, way.path, owner) {
            self.frames.keep(slot, packet);
        }
        for (copy, of) in world.net.take_copies() {
            self.frames.copy(copy, of);
        }
    }

    /// Where a packet's way to a node ends: there, or at the router beyond which it may not go.
    fn end_of(&self, world: &World, packet: &[u8], from: usize, to: usize) -> usize {
        let left = icmp::hops_left(packet).map_or(usize::MAX, usize::from);
        // Hosts send with space for many hops: their packets are not checked one by one.
        if left > self.routers.len() {
            return to;
        }
        let between = world.between(from, to).into_iter().filter(|node| self.routers.contains_key(node));
        between.take(left).nth(left.saturating_sub(1)).unwrap_or(to)
    }

    /// The way to the router, for what has none of its own.
    fn through(&self, world: &mut World, from: usize) -> Option<(usize, NodePath)> {
        if self.ports.contains(&from) {
            return None;
        }
        self.ports.iter().find_map(|port| Some((*port, world.way(from, *port)?)))
    }

    /// Gives out what has arrived.
    fn send_due(&mut self, world: &mut World, outside: &mut impl Environment) -> io::Result<()> {
        loop {
            for (copy, of) in world.net.take_copies() {
                self.frames.copy(copy, of);
            }
            let mut result = Ok(());
            let Driver {
                frames,
                counts,
                lateness,
                parties,
                homes,
                ports,
                party_of,
                conversations,
                answers,
                routers,
                ..
            } = self;
            let more = world.net.take_arrived(|arrived| {
                let (from, to) = ((arrived.owner >> 16) as usize, (arrived.owner & 0xffff) as usize);
                let Some(party) = party_of.get(&to) else {
                    let is_for = Ends::seen(arrived.head).and_then(|ends| homes.get(&ends.dst)) == Some(&to);
                    let answer = match is_for {
                        true => icmp::echoed(frames.leaving(&arrived)),
                        // Quoted is what was sent, so that the sender knows it whatever was translated on the
                        // way.
                        false => routers.get(&to).and_then(|own| icmp::expired(frames.sent(&arrived), own)),
                    };
                    answers.extend(answer.map(|answer| (to, from, answer)));
                    return;
                };
                // A router passes on what others sent.
                if !ports.contains(&from) {
                    remember(conversations, homes, &arrived, from);
                }
                result = outside.send(*party, frames.leaving(&arrived)).map(|taken| match taken {
                    true => counts.sent += 1,
                    false => counts.refused += 1,
                });
                lateness.note(Nanos(outside.now().0.saturating_sub(arrived.at.0)));
                debug_assert!(*party < parties.len(), "a party");
            });
            result?;
            if more {
                continue;
            }
            let answers = std::mem::take(&mut self.answers);
            if answers.is_empty() {
                return Ok(());
            }
            for (machine, asker, answer) in answers {
                self.answer(world, machine, asker, &answer);
            }
        }
    }

    /// A machine's reply to a party.
    fn answer(&mut self, world: &mut World, machine: usize, asker: usize, packet: &[u8]) {
        let Some(way) = world.way(machine, asker) else { return };
        let ethertype = if packet[0] >> 4 == 6 { ethertype::IPV6 } else { ethertype::IPV4 };
        let mut head = Head::from_network(ethertype, packet);
        // Its checksums are real.
        head.set_summed();
        let owner = (machine as u32) << 16 | asker as u32;
        if let Some(slot) = world.net.inject(head, packet.len() as u32, way.path, owner) {
            self.frames.keep(slot, packet);
        }
    }
}

/// Remembers the sender of an arrived packet, if its source is not the sender's own address: replies would go
/// to another party.
fn remember(
    conversations: &mut Conversations,
    homes: &HashMap<IpAddr, usize>,
    arrived: &Arrived<'_>,
    from: usize,
) {
    if let Some(ends) = Ends::seen(arrived.head)
        && homes.get(&ends.src) != Some(&from)
    {
        conversations.note(ends, from);
    }
}

/// Is this address a multicast or broadcast one?
fn is_for_many(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_multicast() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_multicast(),
    }
}
