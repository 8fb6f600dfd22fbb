//! A network laid out from its parts: nodes, the cables between them, machines with their devices.
//!
//! ```text
//! Layout (who, what joins them) ──▶ World: a Net whose machines are GatewayMachines, and for each cable its links
//!                                     └─ paths by the fewest cables, through the devices that stand on each other
//! ```
//! *Invariant.* The same layout and the same seed give the same network: links are made in the layout's
//! order, and of several shortest paths the first is taken.

mod layout;
mod routes;

pub use layout::{Cable, CableDirection, CableEnd, Laid, Layout, NodePath, RouterNode};

use crate::gateway_machine::GatewayMachine;
use crate::link::{LinkId, LinkQueue, LinkSpec};
use crate::machine::Port;
use crate::machines::Machines;
use crate::net::Net;
use crate::transport_meta::PathId;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use layout::Step;
use tidegate_gateway::{DeviceId, DeviceKind, Encap};
use tidegate_packet::{Nanos, Time};

/// A device of a machine, as routes need to know it.
#[derive(Clone, Copy, Debug)]
struct Upper {
    /// The link from it to the device beneath.
    link: LinkId,
    /// The device beneath.
    on: usize,
    /// It is taken only on the way to this machine, where the tunnel ends.
    only_to: Option<usize>,
    /// It is taken only where a cable's end names it: one tag of several.
    named: bool,
}

/// A network with machines in it.
pub struct World {
    /// The simulated network.
    pub net: Net<Machines>,
    /// Its links, cable by cable.
    pub laid: Vec<Laid>,
    cables: Vec<Vec<CableEnd>>,
    nodes: usize,
    /// Of each node the machine that it is.
    machine_of: Vec<Option<usize>>,
    /// For each machine and device: the device that it is stacked on.
    uppers: Vec<BTreeMap<usize, Upper>>,
    /// Ways that were requested.
    known: BTreeMap<(usize, usize), Option<NodePath>>,
}

impl World {
    /// Lays it out; the clock is at `start`.
    pub fn new(layout: Layout, start: Time) -> World {
        let Layout { nodes, cables, machines, host_jitter, hosts, seed } = layout;
        let mut machine_of = alloc::vec![None; nodes];
        let mut all = Machines::new();
        let mut devices = Vec::new();
        for station in machines {
            let number = all.len();
            if let Some(of) = machine_of.get_mut(station.node) {
                *of = Some(number);
            }
            devices.push(station.devices.clone());
            all.add(GatewayMachine::numbered(station.gateway, station.devices, seed, number as u32));
        }
        let mut world = World {
            net: Net::new(all, seed, start),
            laid: Vec::new(),
            cables: cables.iter().map(|cable| cable.ends.clone()).collect(),
            nodes,
            machine_of,
            uppers: alloc::vec![BTreeMap::new(); devices.len()],
            known: BTreeMap::new(),
        };
        world.stack(&devices);
        for cable in &cables {
            let jitter =
                |end: CableEnd| if hosts.get(end.node) == Some(&true) { host_jitter } else { Nanos(0) };
            let laid = world.lay(cable, &jitter);
            world.laid.push(laid);
        }
        world
    }

    /// The way from one node to another, if there is one.
    pub fn way(&mut self, from: usize, to: usize) -> Option<NodePath> {
        if let Some(known) = self.known.get(&(from, to)) {
            return *known;
        }
        let way = self.steps(from, to).map(|steps| self.pave(&steps));
        self.known.insert((from, to), way);
        way
    }

    /// The nodes that a way passes between its ends, in their order; none if there is no way.
    pub fn between(&self, from: usize, to: usize) -> Vec<usize> {
        let mut nodes: Vec<usize> =
            self.steps(from, to).into_iter().flatten().map(|step| self.arrives(&step).node).collect();
        nodes.pop();
        nodes
    }

    /// The links of a cable in one direction: from its first ends, or from its last.
    pub fn links(&self, cable: usize, there: bool) -> Vec<LinkId> {
        let Some(laid) = self.laid.get(cable) else { return Vec::new() };
        if there { laid.there.clone() } else { laid.back.into_iter().collect() }
    }

    /// The least of what the cables and devices on a way carry in one packet, `of_cable` telling it of each
    /// cable.
    pub fn narrowest(&mut self, from: usize, to: usize, of_cable: &dyn Fn(usize) -> u32) -> Option<u32> {
        let steps = self.steps(from, to)?;
        let mut least = u32::MAX;
        for (at, step) in steps.iter().enumerate() {
            least = least.min(of_cable(step.cable));
            let end = self.departs(step);
            let Some(machine) = self.machine_of(end.node) else { continue };
            let mut devices: Vec<usize> =
                end.device.map(|device| self.ground(machine, device)).into_iter().collect();
            devices.extend(self.storeys(end, &self.later(&steps[at..])).iter().map(|(device, _)| *device));
            let Some(of) = self.net.machine.get(machine) else { continue };
            let mtus =
                devices.iter().filter_map(|at| Some(of.gateway.spec(of.device(Port(*at as u16))?).mtu));
            least = mtus.fold(least, u32::min);
        }
        Some(least)
    }

    /// The number of the machine that a node is.
    pub fn machine_of(&self, node: usize) -> Option<usize> {
        *self.machine_of.get(node)?
    }

    /// The links from devices to those beneath, and those of devices that give back what they are given.
    fn stack(&mut self, devices: &[Vec<DeviceId>]) {
        for (machine, ids) in devices.iter().enumerate() {
            for (at, id) in ids.iter().enumerate() {
                let Some(port) = self.net.machine.port(machine, at) else { continue };
                let Some(of) = self.net.machine.get(machine) else { continue };
                let kind = of.gateway.spec(*id).kind;
                let beneath =
                    of.gateway.beneath(*id).and_then(|lower| ids.iter().position(|known| *known == lower));
                if kind == DeviceKind::Ifb {
                    self.net.link(LinkSpec::returning(port));
                } else if let Some(on) = beneath {
                    let link = self.net.link(LinkSpec::above(port));
                    let only_to = self.peer_of(machine, *id);
                    let named = !matches!(self.encap(machine, *id), Some(Encap::Pppoe | Encap::Tunnel(_)));
                    self.uppers[machine].insert(at, Upper { link, on, only_to, named });
                    if only_to.is_some()
                        && let Some(of) = self.net.machine.get(machine)
                    {
                        of.tunnels_are_met = true;
                    }
                }
            }
        }
    }

    /// The machine where a tunnel of this one ends: it has a tunnel device with the same addresses, seen from
    /// the other side.
    fn peer_of(&mut self, machine: usize, device: DeviceId) -> Option<usize> {
        let Encap::Tunnel(ours) = self.encap(machine, device)? else { return None };
        (0..self.net.machine.len()).filter(|other| *other != machine).find(|other| {
            let Some(of) = self.net.machine.get(*other) else { return false };
            let mut theirs = of.gateway.devices().filter_map(|id| of.gateway.encap(id));
            theirs.any(|encap| {
                matches!(encap, Encap::Tunnel(t) if t.mode == ours.mode && t.local == ours.remote
                    && t.remote == ours.local)
            })
        })
    }

    fn encap(&mut self, machine: usize, device: DeviceId) -> Option<Encap> {
        self.net.machine.get(machine)?.gateway.encap(device)
    }

    fn lay(&mut self, cable: &Cable, host_jitter: &dyn Fn(CableEnd) -> Nanos) -> Laid {
        let Some((&hub, spokes)) = cable.ends.split_last() else { return Laid::default() };
        let several = spokes.len() > 1;
        let there =
            spokes.iter().map(|&spoke| self.one_way(spoke, Some(hub), &cable.there, host_jitter(spoke)));
        let there = there.collect();
        let session = if several { None } else { spokes.first().copied() };
        let back = self.one_way(hub, session, &cable.back, host_jitter(hub));
        let tails = spokes.iter().map(|&spoke| {
            let port = self.port_at(spoke).filter(|_| several)?;
            Some(self.net.link(LinkSpec::wire(Nanos(0)).into_port(port)))
        });
        let tails = tails.collect();
        Laid { there, back: Some(back), tails }
    }

    fn one_way(
        &mut self,
        from: CableEnd,
        to: Option<CableEnd>,
        direction: &CableDirection,
        host_jitter: Nanos,
    ) -> LinkId {
        let waiting = match self.port_at(from) {
            Some(port) => LinkQueue::Port { port, ring: direction.ring, bytes: direction.queue_limit },
            None => LinkQueue::DropTail(direction.limit),
        };
        let spec = LinkSpec {
            bits_per_second: direction.bits_per_second,
            packet_rate: direction.packet_rate,
            jitter: if direction.jitter.0 > 0 { direction.jitter } else { host_jitter },
            waiting,
            framing: direction.framing,
            ..LinkSpec::wire(direction.delay)
        };
        self.net.link(match to.and_then(|to| self.port_at(to)) {
            Some(port) => spec.into_port(port),
            None => spec,
        })
    }

    /// The port at an end: of the device that the cable is in, which others may be stacked on.
    fn port_at(&self, end: CableEnd) -> Option<Port> {
        let machine = self.machine_of(end.node)?;
        self.net.machine.port(machine, self.ground(machine, end.device?))
    }

    /// The lowest device of a stack.
    fn ground(&self, machine: usize, device: usize) -> usize {
        let mut at = device;
        for _ in 0..self.uppers[machine].len() {
            match self.uppers[machine].get(&at) {
                Some(upper) => at = upper.on,
                None => break,
            }
        }
        at
    }

    /// The links of a path: those of its cables, before each the devices of the machine that are stacked on
    /// the one it leaves by.
    fn pave(&mut self, steps: &[Step]) -> NodePath {
        let mut links = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let ends = &self.cables[step.cable];
            let hub = ends.len() - 1;
            let (from, spoke) =
                if step.there { (ends[step.spoke], step.spoke) } else { (ends[hub], step.spoke) };
            links.extend(self.storeys(from, &self.later(&steps[at..])).iter().map(|(_, link)| *link));
            let laid = &self.laid[step.cable];
            match (step.there, laid.back) {
                (true, _) => links.push(laid.there[spoke]),
                (false, Some(back)) => links.extend([Some(back), laid.tails[spoke]].into_iter().flatten()),
                (false, None) => {}
            }
        }
        let path: PathId = self.net.path(&links);
        NodePath {
            path,
            first: steps.first().map(|step| self.departs(step)),
            last: steps.last().map(|step| self.arrives(step)),
        }
    }

    /// The machines that some steps lead to.
    fn later(&self, steps: &[Step]) -> Vec<usize> {
        steps.iter().filter_map(|step| self.machine_of(self.arrives(step).node)).collect()
    }

    /// The devices above the one that a packet leaves by, from the highest, each with its link downwards;
    /// tunnels only where they end among the machines `later` on the way.
    fn storeys(&self, from: CableEnd, later: &[usize]) -> Vec<(usize, LinkId)> {
        let (Some(machine), Some(device)) = (self.machine_of(from.node), from.device) else {
            return Vec::new();
        };
        let uppers = &self.uppers[machine];
        let mut links = Vec::new();
        let mut at = self.ground(machine, device);
        for _ in 0..uppers.len() {
            let fits = |upper: &Upper| upper.on == at && upper.only_to.is_none_or(|end| later.contains(&end));
            // The device that the cable's end names comes first: of several tags on one card it is the one
            // meant.
            let named = uppers.get(&device).filter(|upper| fits(upper)).map(|upper| (device, upper));
            let Some((above, upper)) =
                named.or_else(|| uppers.iter().find(|(_, u)| fits(u) && !u.named).map(|(n, u)| (*n, u)))
            else {
                break;
            };
            links.push((above, upper.link));
            at = above;
        }
        links.reverse();
        links
    }
}
