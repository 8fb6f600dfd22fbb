//! The devices beside the recorded one: where forwarded packets come in, what takes packets that are led away, and gives them back.

use super::run::Run;
use tidegate_gateway::{DeviceId, DeviceKind, Offer, Received, Route};
use tidegate_packet::{Pkt, Time};

/// Where the recordings' forwarded packets come in.
const CAME_IN: &str = "in1";
/// Packets that filters may have arrive at devices in one go; the others wait for the next one.
const MOST_ARRIVED: u32 = 64;

impl Run<'_> {
    /// All devices but the recorded one, as they are now.
    pub(super) fn look_around(&mut self) {
        self.beside = self.machine.gateway.devices().filter(|id| *id != self.device).collect();
    }

    /// A packet of the schedule comes.
    pub(super) fn arrive(&mut self, now: Time, pkt: Pkt) {
        if !self.recording.link.forward {
            let device = self.device;
            let (gateway, world) = self.gateway(now);
            let _ = gateway.offer(world, device, Route::Direct, pkt);
            self.go_on(now, None);
            return;
        }
        match self.machine.gateway.device(CAME_IN) {
            Some(by) => {
                let (gateway, world) = self.gateway(now);
                let received = gateway.receive(world, by, pkt);
                self.route_arrived(now);
                if let Received::Passed(pkt, by) = received
                    && self.route(now, by, pkt) == Offer::Stopped
                {
                    return;
                }
            }
            None => self.pool.release(pkt),
        }
        self.go_on(now, None);
    }

    /// Routes what filters had arrive at devices.
    fn route_arrived(&mut self, now: Time) {
        for _ in 0..MOST_ARRIVED {
            let Some((pkt, by)) = self.machine.gateway.take_arrived() else { return };
            if self.recording.link.forward {
                let _ = self.route(now, by, pkt);
            } else {
                self.pool.release(pkt);
            }
            self.serve(now, None);
        }
    }

    /// The machine has one way out.
    fn route(&mut self, now: Time, by: DeviceId, pkt: Pkt) -> Offer {
        let device = self.device;
        let (gateway, world) = self.gateway(now);
        gateway.offer(world, device, Route::Forwarded(Some(by)), pkt)
    }

    /// Lets the devices go on, and what filters had arrive at them.
    pub(super) fn go_on(&mut self, now: Time, woke: Option<DeviceId>) {
        self.serve(now, woke);
        self.route_arrived(now);
    }

    /// Lets the devices do what they can to which packets were led, and the one that `woke`: they send in no time.
    fn serve(&mut self, now: Time, woke: Option<DeviceId>) {
        for at in 0..self.beside.len() {
            let id = self.beside[at];
            if !self.machine.gateway.take_led_to(id) && woke != Some(id) {
                continue;
            }
            let returns = self.machine.gateway.spec(id).kind == DeviceKind::Ifb;
            loop {
                let (gateway, world) = self.gateway(now);
                let Some(pkt) = gateway.poll(world, id) else { break };
                match self.machine.gateway.given_back(&self.pool, &pkt).filter(|_| returns) {
                    Some((from, false)) => {
                        let _ = self.route(now, from, pkt);
                    }
                    Some((from, true)) => {
                        let (gateway, world) = self.gateway(now);
                        let _ = gateway.offer_back(world, from, pkt);
                    }
                    None => self.pool.release(pkt),
                }
            }
        }
        self.send(now);
    }

    /// When the first watchdog of a device beside is due.
    pub(super) fn watchdog_beside(&mut self) -> Option<(Time, DeviceId)> {
        let gateway = &mut self.machine.gateway;
        self.beside.iter().filter_map(|id| Some((gateway.timeout(*id)?, *id))).min()
    }
}
