//! Packets that filters lead from one device to another, and what an ifb gives back.

use super::{DeviceId, Gateway, Offer, Why, World};
use alloc::borrow::Cow;
use tidegate_packet::{Pkt, Pool};
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::{Act, Errno, FilterOp, TcError};
use tidegate_qdisc::Arrival;

/// Devices that one packet may be led through in one call; beyond that it is lost, as in the kernel a loop would be.
const MOST_LEADS: u32 = 4;

/// What became of a packet that arrived at a device.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    /// It goes on to routing, as having come in by this device: another one where that stands on the first.
    Passed(Pkt, DeviceId),
    /// A filter led it to this device's egress, which must be polled; an ifb gives it back there (see [`Gateway::given_back`]).
    Led(DeviceId),
    /// It was dropped, by a filter or because the device it was led to had no room.
    Lost,
}

/// The numbers that actions get, by kind; none that was in use is used again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ActionNumbers {
    gact: u32,
    mirred: u32,
}

impl ActionNumbers {
    fn next(&mut self, act: &Act) -> u32 {
        let last = match act {
            Act::Gact(_) => &mut self.gact,
            Act::Redirect { .. } => &mut self.mirred,
        };
        *last = last.wrapping_add(1);
        *last
    }
}

impl Gateway {
    /// A packet arrives at a device, before routing and netfilter: the filters of its ingress qdisc decide.
    pub fn receive(&mut self, world: World<'_>, device: DeviceId, pkt: Pkt) -> Received {
        let World { now, pool, draws } = world;
        match self.port(device).shaper.arrive(now, pool, draws, pkt) {
            Arrival::Passed(pkt) => self.ascend(World { now, pool, draws }, device, pkt),
            Arrival::Lost => Received::Lost,
            Arrival::Led(pkt, to) => {
                let meta = pool.meta_mut(&pkt);
                (meta.led_from, meta.led_out) = (device.0 as u16 + 1, false);
                match self.lead(World { now, pool, draws }, device, to, pkt) {
                    (Offer::Refused | Offer::Stopped, _) => Received::Lost,
                    (_, to) => Received::Led(to),
                }
            }
        }
    }

    /// Where a packet that an ifb's egress gave belongs: the device it was led from, and whether it was on its way out there. `None`:
    /// it was never led anywhere.
    pub fn given_back(&self, pool: &Pool, pkt: &Pkt) -> Option<(DeviceId, bool)> {
        let meta = pool.meta(pkt);
        Some((DeviceId(u32::from(meta.led_from.checked_sub(1)?)), meta.led_out))
    }

    /// Gives a packet that was led away on its way out of `device`, and came back, to that device again. The actions that led it away are passed over.
    pub fn offer_back(&mut self, world: World<'_>, device: DeviceId, pkt: Pkt) -> Offer {
        let World { now, pool, draws } = world;
        let meta = pool.meta_mut(&pkt);
        (meta.len, meta.passed_over, meta.led_from) = (meta.frame_len, true, 0);
        self.port(device).shaper.offer(now, pool, draws, pkt)
    }

    /// Was a packet led to this device since this was last asked? Then it is to be polled.
    pub fn take_led_to(&mut self, device: DeviceId) -> bool {
        core::mem::take(&mut self.port(device).led_to)
    }

    /// Carries out what the last offer to `device` left to do: its filters may have led the packet away.
    #[inline]
    pub(crate) fn follow(&mut self, world: World<'_>, device: DeviceId, offer: Offer) -> Offer {
        let Some((pkt, to)) = self.port(device).shaper.take_led() else { return offer };
        let meta = world.pool.meta_mut(&pkt);
        (meta.led_from, meta.led_out) = (device.0 as u16 + 1, true);
        self.lead(world, device, to, pkt).0
    }

    /// Gives a packet to the egress of device number `to`, and on if filters there lead it further.
    fn lead(&mut self, world: World<'_>, from: DeviceId, to: u32, pkt: Pkt) -> (Offer, DeviceId) {
        let World { now, pool, draws } = world;
        let (mut pkt, mut to) = (pkt, to);
        self.firewall.connections.see_inside(now, pool, &pkt);
        for _ in 0..MOST_LEADS {
            let Some(port) = self.ports.get_mut(to as usize).filter(|port| !port.is_gone()) else { break };
            let meta = pool.meta_mut(&pkt);
            meta.len = meta.frame_len;
            port.led_to = true;
            let offer = port.shaper.offer(now, pool, draws, pkt);
            match port.shaper.take_led() {
                Some((again, further)) => (pkt, to) = (again, further),
                None => return (offer, DeviceId(to)),
            }
        }
        self.port(from).shaper.refuse(now, pool, draws, pkt, Why::Policy);
        (Offer::Refused, from)
    }

    /// Fills in what the kernel would have been told by number: the devices packets are led to, and the numbers of the actions.
    pub(crate) fn complete<'a>(&mut self, op: &'a FilterOp) -> Result<Cow<'a, FilterOp>, TcError> {
        if op.actions.is_empty() {
            return Ok(Cow::Borrowed(op));
        }
        let mut op = op.clone();
        for action in &mut op.actions {
            if let Act::Redirect { to, device } = &mut action.act {
                *device = self.device(to).ok_or(TcError::bare(Errno::NoDev))?.0;
            }
            action.index = self.action_numbers.next(&action.act);
        }
        Ok(Cow::Owned(op))
    }

    /// Devices are listed by the names they have now.
    pub(crate) fn name_devices(&self, dumps: &mut [FilterDump]) {
        for dump in dumps {
            let FilterEntry::Filter { actions, .. } = &mut dump.entry else { continue };
            for action in actions {
                if let Act::Redirect { to, device } = &mut action.action.act {
                    let port = self.ports.get(*device as usize).filter(|port| !port.is_gone());
                    *to = port.map_or("*", |port| &port.name).into();
                }
            }
        }
    }
}
