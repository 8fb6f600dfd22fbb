//! Several model machines in one network.

use crate::gateway_machine::GatewayMachine;
use crate::machine::{DropRecord, Forwarder, OfferResult, Origin, Port, ReceiveResult};
use alloc::vec::Vec;
use tidegate_packet::{Pkt, Pool, Time};

/// Machines that meet in one network: each has its own connections, marks and randomness, and what comes from
/// another one comes as from a stranger.
///
/// Their ports are numbered through: first those of the first machine, then those of the second.
#[derive(Default)]
pub struct Machines {
    machines: Vec<GatewayMachine>,
    /// Of each port its machine.
    homes: Vec<u16>,
    /// Of each machine its first port.
    first: Vec<u16>,
}

impl Machines {
    /// None yet.
    pub fn new() -> Machines {
        Machines::default()
    }

    /// Adds a machine with its ports; returns its number.
    ///
    /// # Panics
    /// With more than 65,535 ports in all.
    pub fn add(&mut self, machine: GatewayMachine) -> usize {
        let number = self.machines.len();
        assert!(self.homes.len() + machine.ports() <= usize::from(u16::MAX), "65,535 ports at most");
        self.first.push(self.homes.len() as u16);
        self.homes.extend(core::iter::repeat_n(number as u16, machine.ports()));
        self.machines.push(machine);
        number
    }

    /// A machine, by number.
    pub fn get(&mut self, machine: usize) -> Option<&mut GatewayMachine> {
        self.machines.get_mut(machine)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.machines.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.machines.is_empty()
    }

    /// The port before the n-th device of a machine.
    pub fn port(&self, machine: usize, device: usize) -> Option<Port> {
        let first = usize::from(*self.first.get(machine)?);
        let port = first + device;
        (self.homes.get(port).map(|home| usize::from(*home)) == Some(machine)).then_some(Port(port as u16))
    }

    /// The machine of a port, and the port as that machine knows it.
    fn at(&mut self, port: Port) -> Option<(&mut GatewayMachine, Port)> {
        let (home, own) = self.place(port)?;
        Some((&mut self.machines[home], own))
    }

    fn place(&self, port: Port) -> Option<(usize, Port)> {
        let home = usize::from(*self.homes.get(usize::from(port.0))?);
        Some((home, Port(port.0 - self.first[home])))
    }

    /// Where a packet comes from, as the machine of `port` sees it: what another machine's port is, it does
    /// not know.
    fn origin_at(&self, port: Port, origin: Origin) -> Origin {
        let own = |from: Port| {
            self.place(from).filter(|(home, _)| Some(*home) == self.place(port).map(|(home, _)| home))
        };
        match origin {
            Origin::Port(from) => own(from).map_or(Origin::Outside, |(_, from)| Origin::Port(from)),
            Origin::Above(from) => own(from).map_or(Origin::Outside, |(_, from)| Origin::Above(from)),
            other => other,
        }
    }
}

impl Forwarder for Machines {
    #[inline]
    fn offer(&mut self, pool: &mut Pool, now: Time, port: Port, origin: Origin, pkt: Pkt) -> OfferResult {
        let origin = self.origin_at(port, origin);
        match self.at(port) {
            Some((machine, own)) => machine.offer(pool, now, own, origin, pkt),
            None => {
                pool.release(pkt);
                OfferResult::Dropped
            }
        }
    }

    #[inline]
    fn poll(&mut self, pool: &mut Pool, now: Time, port: Port) -> Option<Pkt> {
        let (machine, own) = self.at(port)?;
        machine.poll(pool, now, own)
    }

    fn take_redirected(&mut self) -> bool {
        // All of them are asked, so that none says it again.
        self.machines.iter_mut().fold(false, |any, machine| machine.take_redirected() | any)
    }

    #[inline]
    fn timeout(&mut self, port: Port) -> Option<Time> {
        let (machine, own) = self.at(port)?;
        machine.timeout(own)
    }

    fn handle_timeout(&mut self, pool: &mut Pool, now: Time, port: Port) -> bool {
        self.at(port).is_some_and(|(machine, own)| machine.handle_timeout(pool, now, own))
    }

    #[inline]
    fn receive(&mut self, pool: &mut Pool, now: Time, port: Port, pkt: Pkt) -> ReceiveResult {
        let Some((home, own)) = self.place(port) else { return ReceiveResult::Passed(pkt, port) };
        pool.reset_for_next_machine(&pkt);
        match self.machines[home].receive(pool, now, own, pkt) {
            ReceiveResult::Passed(pkt, Port(came_in)) => {
                ReceiveResult::Passed(pkt, Port(self.first[home] + came_in))
            }
            ReceiveResult::Taken => ReceiveResult::Taken,
        }
    }

    fn origin(&self, pool: &Pool, port: Port, pkt: &Pkt) -> Origin {
        let Some((home, own)) = self.place(port) else { return Origin::Outside };
        let all = |Port(own): Port| Port(self.first[home] + own);
        match self.machines[home].origin(pool, own, pkt) {
            Origin::Port(from) => Origin::Port(all(from)),
            Origin::Above(from) => Origin::Above(all(from)),
            other => other,
        }
    }

    fn losses(&mut self, port: Port, report: &mut dyn FnMut(DropRecord)) {
        if let Some((machine, own)) = self.at(port) {
            machine.losses(own, report);
        }
    }

    fn input(&mut self, pool: &mut Pool, now: Time, port: Port, pkt: &Pkt) -> bool {
        self.at(port).is_none_or(|(machine, own)| machine.input(pool, now, own, pkt))
    }
}
