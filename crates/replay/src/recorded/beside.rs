//! The devices beside the recorded one: where forwarded packets come in, what takes packets that are
//! redirected away, and gives them back.

use super::run::Run;
use tidegate_gateway::{DeviceId, DeviceKind, EgressPath, ReceiveOutcome, XmitStatus};
use tidegate_packet::header::ethertype;
use tidegate_packet::{Pkt, Time};

/// Where the recordings' forwarded packets come in.
const CAME_IN: &str = "in1";
/// How often devices may be served in a row, as packets go from one to the other; the others wait for the
/// next time.
const MOST_RETURNS: u32 = 64;
/// Packets that filters may have arrive at devices in one go; the others wait for the next one.
const MOST_ARRIVED: u32 = 64;

impl Run<'_> {
    /// All devices but the recorded one, as they are now.
    pub(crate) fn look_around(&mut self) {
        self.beside = self.machine.gateway.devices().filter(|id| *id != self.device).collect();
    }

    /// A packet of the schedule comes.
    pub(crate) fn arrive(&mut self, now: Time, pkt: Pkt) {
        let offer = if self.recording.link.forward {
            self.come_in(now, pkt)
        } else {
            let device = self.device;
            let (gateway, world) = self.gateway(now);
            gateway.offer(world, device, EgressPath::Direct, pkt)
        };
        self.served(now, offer);
        self.route_arrived(now);
    }

    /// The devices continue after an offer to the link. A packet dropped or redirected before the link does
    /// not wake it.
    fn served(&mut self, now: Time, offer: XmitStatus) {
        self.serve_beside(now, None);
        if wakes(offer) {
            self.send(now);
        }
    }

    /// It is to be routed.
    fn come_in(&mut self, now: Time, pkt: Pkt) -> XmitStatus {
        let Some(by) = self.machine.gateway.device(CAME_IN) else {
            self.pool.release(pkt);
            return XmitStatus::Stopped;
        };
        let (gateway, world) = self.gateway(now);
        let received = gateway.receive(world, by, pkt);
        self.route_arrived(now);
        match received {
            ReceiveOutcome::Passed(pkt, by) => self.route(now, by, pkt),
            ReceiveOutcome::Redirected(_) | ReceiveOutcome::Dropped => XmitStatus::Stopped,
        }
    }

    /// Routes what filters had arrive at devices.
    pub(crate) fn route_arrived(&mut self, now: Time) {
        for _ in 0..MOST_ARRIVED {
            let Some((pkt, by)) = self.machine.gateway.take_arrived() else { return };
            let mut offer = XmitStatus::Stopped;
            if self.recording.link.forward {
                offer = self.route(now, by, pkt);
            } else {
                self.pool.release(pkt);
            }
            self.served(now, offer);
        }
    }

    /// The machine has one way out. Those that recorded forwarded IPv4 only.
    fn route(&mut self, now: Time, by: DeviceId, pkt: Pkt) -> XmitStatus {
        if self.is_recorded() && self.pool.meta(&pkt).ethertype == ethertype::IPV6 {
            self.pool.release(pkt);
            return XmitStatus::Stopped;
        }
        let device = self.device;
        let (gateway, world) = self.gateway(now);
        gateway.offer(world, device, EgressPath::Forwarded(Some(by)), pkt)
    }

    /// Lets the devices continue, and what filters had arrive at them.
    pub(crate) fn go_on(&mut self, now: Time, woke: Option<DeviceId>) {
        self.serve_beside(now, woke);
        if woke == Some(self.device) {
            self.send(now);
        }
        self.route_arrived(now);
    }

    /// Lets the devices do what they can to which packets came, and the one that `woke`: they send in no
    /// time.
    pub(crate) fn serve_beside(&mut self, now: Time, woke: Option<DeviceId>) {
        let mut woke = woke;
        for _ in 0..MOST_RETURNS {
            let mut any = false;
            for at in 0..self.beside.len() {
                let id = self.beside[at];
                if self.machine.gateway.take_redirect_target_flag(id) || woke == Some(id) {
                    self.serve_one(now, id);
                    any = true;
                }
            }
            if !any {
                return;
            }
            woke = None;
        }
    }

    /// Polls a device beside; where that is an ifb, what it gives back is offered, each packet on its own.
    fn serve_one(&mut self, now: Time, id: DeviceId) {
        let returns = self.machine.gateway.spec(id).kind == DeviceKind::Ifb;
        loop {
            let (gateway, world) = self.gateway(now);
            let Some(pkt) = gateway.poll(world, id) else { return };
            match self.machine.gateway.returned_from(&self.pool, &pkt).filter(|_| returns) {
                Some((from, false)) => {
                    let offer = self.route(now, from, pkt);
                    if wakes(offer) {
                        self.transmit(now);
                    }
                }
                Some((from, true)) => {
                    let (gateway, world) = self.gateway(now);
                    let offer = gateway.offer_back(world, from, pkt);
                    if wakes(offer) && from == self.device {
                        self.transmit(now);
                    } else if wakes(offer) {
                        self.machine.gateway.flag_redirect_target(from);
                    }
                }
                None => self.pool.release(pkt),
            }
        }
    }

    /// When the first watchdog of a device beside is due.
    pub(crate) fn watchdog_beside(&mut self) -> Option<(Time, DeviceId)> {
        let gateway = &mut self.machine.gateway;
        self.beside.iter().filter_map(|id| Some((gateway.timeout(*id)?, *id))).min()
    }
}

/// Did a packet come to the device, which therefore continues?
fn wakes(offer: XmitStatus) -> bool {
    !matches!(offer, XmitStatus::Stopped | XmitStatus::Away)
}
