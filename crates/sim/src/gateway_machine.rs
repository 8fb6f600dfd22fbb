//! The model machine as the simulator's machine.

use crate::machine::{DropRecord, Forwarder, OfferResult, Origin, Port, ReceiveResult};
use alloc::vec::Vec;
use tidegate_gateway::{DeviceId, EgressPath, EventKind, Gateway, GatewayContext};
use tidegate_packet::{Pkt, Pool, Seeded, Time};

/// A [`Gateway`] with its stream of randomness; port n is the n-th device given.
pub struct GatewayMachine {
    /// The machine, for operations and dumps.
    pub gateway: Gateway,
    /// The machine's source of randomness.
    pub random: Seeded,
    /// Tunnels end at other machines of the network, so what comes through one is wrapped when it comes.
    pub tunnels_are_met: bool,
    devices: Vec<DeviceId>,
}

impl GatewayMachine {
    /// The machine with these devices as ports, its randomness from `seed`.
    pub fn new(gateway: Gateway, devices: impl IntoIterator<Item = DeviceId>, seed: u64) -> GatewayMachine {
        GatewayMachine::numbered(gateway, devices, seed, 0)
    }

    /// One of several machines of a network, by number: each has a stream of its own.
    pub fn numbered(
        gateway: Gateway,
        devices: impl IntoIterator<Item = DeviceId>,
        seed: u64,
        number: u32,
    ) -> GatewayMachine {
        // The network draws from the same seed: the machine's stream is another one.
        let random = Seeded::new(seed).fork(u64::from(u32::MAX - number));
        GatewayMachine { gateway, random, tunnels_are_met: false, devices: devices.into_iter().collect() }
    }

    /// What filters had arrive at a device beside what continues ends there: no conversation of the network
    /// expects it.
    #[inline]
    fn end_arrived(&mut self, pool: &mut Pool) {
        while let Some((pkt, _)) = self.gateway.take_arrived() {
            pool.release(pkt);
        }
    }

    /// How many ports it has.
    pub fn ports(&self) -> usize {
        self.devices.len()
    }

    /// The port before a device.
    fn port(&self, device: DeviceId) -> Option<Port> {
        self.devices.iter().position(|known| *known == device).map(|at| Port(at as u16))
    }

    /// The device behind a port.
    pub fn device(&self, port: Port) -> Option<DeviceId> {
        self.devices.get(usize::from(port.0)).copied()
    }
}

impl Forwarder for GatewayMachine {
    #[inline]
    fn offer(&mut self, pool: &mut Pool, now: Time, port: Port, origin: Origin, pkt: Pkt) -> OfferResult {
        let Some(device) = self.device(port) else {
            pool.release(pkt);
            return OfferResult::Dropped;
        };
        let from = match origin {
            Origin::Port(from) | Origin::Above(from) => self.device(from),
            _ => None,
        };
        let world = GatewayContext { now, pool, random: &mut self.random };
        let route = match origin {
            Origin::Local => EgressPath::Local,
            Origin::Outside | Origin::Port(_) => EgressPath::Forwarded(from),
            Origin::Above(_) => EgressPath::Direct,
            Origin::Returned => {
                let offer = self.gateway.offer_back(world, device, pkt);
                self.end_arrived(pool);
                return offer_result(offer);
            }
        };
        let offer = match (origin, from) {
            (Origin::Above(_), Some(upper)) => self.gateway.descend(world, upper, device, pkt),
            _ => self.gateway.offer(world, device, route, pkt),
        };
        self.end_arrived(pool);
        offer_result(offer)
    }

    #[inline]
    fn poll(&mut self, pool: &mut Pool, now: Time, port: Port) -> Option<Pkt> {
        let device = self.device(port)?;
        let polled = self.gateway.poll(GatewayContext { now, pool, random: &mut self.random }, device);
        self.end_arrived(pool);
        polled
    }

    fn take_redirected(&mut self) -> bool {
        self.gateway.take_redirected_by_polls()
    }

    #[inline]
    fn receive(&mut self, pool: &mut Pool, now: Time, port: Port, pkt: Pkt) -> ReceiveResult {
        let Some(device) = self.device(port) else { return ReceiveResult::Passed(pkt, port) };
        self.gateway.unwrap_arrival(pool, device, &pkt);
        self.gateway.wrap_arrival(pool, device, &pkt, !self.tunnels_are_met);
        let received =
            self.gateway.receive(GatewayContext { now, pool, random: &mut self.random }, device, pkt);
        self.end_arrived(pool);
        match received {
            tidegate_gateway::ReceiveOutcome::Passed(pkt, came_in) => {
                let port = if came_in == device { Some(port) } else { self.port(came_in) };
                match port {
                    Some(port) => ReceiveResult::Passed(pkt, port),
                    None => {
                        pool.release(pkt);
                        ReceiveResult::Taken
                    }
                }
            }
            tidegate_gateway::ReceiveOutcome::Redirected(_) | tidegate_gateway::ReceiveOutcome::Dropped => {
                ReceiveResult::Taken
            }
        }
    }

    fn origin(&self, pool: &Pool, _: Port, pkt: &Pkt) -> Origin {
        match self.gateway.returned_from(pool, pkt) {
            Some((device, false)) => self.port(device).map_or(Origin::Outside, Origin::Port),
            Some((_, true)) => Origin::Returned,
            None => Origin::Outside,
        }
    }

    fn timeout(&mut self, port: Port) -> Option<Time> {
        let device = self.device(port)?;
        let perturb = Some(self.gateway.perturb_due()).filter(|&due| due != Time::NEVER);
        self.gateway.timeout(device).into_iter().chain(perturb).min()
    }

    fn handle_timeout(&mut self, pool: &mut Pool, now: Time, port: Port) -> bool {
        let Some(device) = self.device(port) else { return false };
        while self.gateway.perturb_due() <= now {
            self.gateway.perturb(GatewayContext { now, pool, random: &mut self.random });
        }
        self.gateway.fire(now, device)
    }

    fn losses(&mut self, port: Port, report: &mut dyn FnMut(DropRecord)) {
        let Some(device) = self.device(port) else { return };
        for event in self.gateway.events(device) {
            if let EventKind::Drop(why) = event.what {
                report(DropRecord { slot: event.slot as usize, at: event.at, why });
            }
        }
    }

    fn input(&mut self, pool: &mut Pool, now: Time, port: Port, pkt: &Pkt) -> bool {
        self.device(port).is_none_or(|device| self.gateway.input(now, pool, device, pkt))
    }
}

fn offer_result(offer: tidegate_gateway::XmitStatus) -> OfferResult {
    match offer {
        tidegate_gateway::XmitStatus::Queued | tidegate_gateway::XmitStatus::Away => OfferResult::Queued,
        tidegate_gateway::XmitStatus::Congested => OfferResult::Congested,
        tidegate_gateway::XmitStatus::Refused | tidegate_gateway::XmitStatus::Stopped => OfferResult::Dropped,
    }
}
