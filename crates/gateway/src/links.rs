//! Links that come and go.

use crate::device::{DeviceId, DeviceSpec, Encap, Stacked};
use crate::machine::{Gateway, GatewayContext, NO_DEVICE};
use alloc::borrow::Cow;
use alloc::format;
use core::net::IpAddr;
use tidegate_packet::Handle;
use tidegate_policy::{Errno, LinkDriver, LinkOp, Op, QdiscOp, SharedBlocks, TcError, Verb};
use tidegate_qdisc::DropReason;

/// The most devices of a machine.
const MAX_DEVICES: usize = 4096;

impl Gateway {
    /// Carries out an operation on a link.
    ///
    /// # Errors
    /// As the kernel refuses.
    pub(super) fn link(&mut self, world: GatewayContext<'_>, op: &LinkOp) -> Result<(), TcError> {
        match op {
            LinkOp::Add { name, kind } => self.add_link(name, kind),
            LinkOp::Delete { name } => self.delete_link(world, name),
            LinkOp::Rename { name, to } => {
                if name != to && self.device(to).is_some() {
                    return Err(TcError::bare(Errno::Exist));
                }
                self.named(name)?.name.clone_from(to);
                Ok(())
            }
            LinkOp::TxQueues { name, count } => {
                let device = self.device(name).ok_or(TcError::bare(Errno::NoDev))?;
                let port = &mut self.ports[device.0 as usize];
                // Others begin with an mq of their own, which is not modelled: to them the number means
                // nothing here.
                if port.spec.queueless {
                    port.respec(DeviceSpec { tx_queues: (*count).max(1), ..port.spec });
                }
                Ok(())
            }
            LinkOp::Address { name, add, address, prefix } => {
                let known = &mut self.named(name)?.addresses;
                match (known.iter().position(|(had, _)| had == address), add) {
                    (Some(_), true) => return Err(TcError::bare(Errno::Exist)),
                    (None, true) => known.push((*address, *prefix)),
                    (Some(at), false) => drop(known.remove(at)),
                    (None, false) => return Err(TcError::bare(Errno::AddrNotAvail)),
                }
                Ok(())
            }
        }
    }

    /// The addresses of a device with their prefix lengths, in the order they were given.
    pub fn addresses(&self, device: DeviceId) -> &[(IpAddr, u8)] {
        &self.ports[device.0 as usize].addresses
    }

    fn add_link(&mut self, name: &str, kind: &LinkDriver) -> Result<(), TcError> {
        if self.device(name).is_some() {
            return Err(TcError::bare(Errno::Exist));
        }
        if self.ports.len() >= MAX_DEVICES {
            return Err(TcError::bare(Errno::NoBufs));
        }
        match kind {
            LinkDriver::Ethernet | LinkDriver::Loopback | LinkDriver::PointToPoint => {
                return Err(TcError::new(Errno::OpNotSupp, "Unknown device type"));
            }
            LinkDriver::Vlan { lower, .. } if self.device(lower).is_none() => {
                let message = format!("Cannot find device \"{lower}\"");
                return Err(TcError { errno: Errno::NoDev, message: Some(Cow::Owned(message)) });
            }
            LinkDriver::Veth { peer } => {
                if peer == name || self.device(peer).is_some() {
                    return Err(TcError::bare(Errno::Exist));
                }
                let peer = self.add_device(peer, self.spec_of(kind));
                self.port(peer).never_up = true;
            }
            _ => {}
        }
        let spec = self.spec_of(kind);
        let id = self.add_device(name, spec);
        self.port(id).never_up = true;
        self.port(id).stacked = match kind {
            LinkDriver::Vlan { lower, id } => {
                Some(Stacked { on: self.device(lower), encap: Encap::Vlan(*id) })
            }
            LinkDriver::Tunnel(tunnel) => Some(Stacked { on: None, encap: Encap::Tunnel(*tunnel) }),
            _ => None,
        };
        Ok(())
    }

    /// A new device of this kind, on a machine whose clock ticks as it does for the others.
    fn spec_of(&self, kind: &LinkDriver) -> DeviceSpec {
        let spec = DeviceSpec::of(kind);
        self.ports.first().map_or(spec, |port| DeviceSpec {
            hz: port.spec.hz,
            switches: port.spec.switches,
            ..spec
        })
    }

    fn delete_link(&mut self, world: GatewayContext<'_>, name: &str) -> Result<(), TcError> {
        let gone = self.device(name).ok_or(NO_DEVICE)?;
        let GatewayContext { now, pool, random: draws } = world;
        // What waits is dropped, and every packet's ticket ends, before the tree goes.
        for parent in [Handle::ROOT, Handle::INGRESS] {
            let op = QdiscOp {
                verb: Verb::Delete,
                dev: name.into(),
                parent,
                handle: Handle::NONE,
                kind: None,
                params: None,
                stab: None,
                estimator: None,
                blocks: SharedBlocks::default(),
            };
            let _ = self.apply(GatewayContext { now, pool: &mut *pool, random: &mut *draws }, &Op::Qdisc(op));
        }
        let port = self.named(name)?;
        while let Some(pkt) = port.shaper.poll(now, pool, draws) {
            port.shaper.refuse(now, pool, draws, pkt, DropReason::Policy);
        }
        while let Some(pkt) = port.sent.pop_front() {
            port.shaper.refuse(now, pool, draws, pkt, DropReason::Policy);
        }
        port.name.clear();
        port.addresses.clear();
        port.stacked = None;
        self.shared.actions.forget_device(gone.0);
        for port in &mut self.ports {
            if let Some(stacked) = &mut port.stacked
                && stacked.on == Some(gone)
            {
                stacked.on = None;
            }
        }
        Ok(())
    }
}
