//! Devices that are stacked on others: PPPoE, tags, tunnels.

use crate::device::{DeviceId, DeviceKind, Encap, Stacked};
use crate::firewall::Passage;
use crate::machine::{Gateway, GatewayContext, address};
use crate::redirect::ReceiveOutcome;
use core::net::IpAddr;
use tidegate_packet::encap::{self, Outer, PPPOE_LEN};
use tidegate_packet::header::ethertype;
use tidegate_packet::{Head, Pkt, Pool};
use tidegate_policy::{Tunnel, TunnelMode};
use tidegate_qdisc::{DropReason, XmitStatus};

/// How deep devices may be stacked.
const MOST_STOREYS: usize = 8;

impl Gateway {
    /// Puts a device on another one.
    pub fn stack(&mut self, upper: DeviceId, lower: DeviceId, encap: Encap) {
        self.port(upper).stacked = Some(Stacked { on: Some(lower), encap });
    }

    /// Puts a device on another one in the way its kind has: PPPoE for point-to-point devices; tunnels and
    /// tagged devices as they were made.
    pub fn stack_by_kind(&mut self, upper: DeviceId, lower: DeviceId) {
        let port = self.port(upper);
        let encap = match (port.stacked, port.spec.kind) {
            (Some(stacked), _) => stacked.encap,
            (None, DeviceKind::PointToPoint) => Encap::Pppoe,
            (None, DeviceKind::Tunnel) => Encap::Tunnel(Tunnel::unsaid(TunnelMode::Ipip)),
            (None, _) => Encap::Bare,
        };
        self.stack(upper, lower, encap);
    }

    /// The device below this one.
    pub fn beneath(&self, device: DeviceId) -> Option<DeviceId> {
        self.ports[device.0 as usize].stacked.and_then(|stacked| stacked.on)
    }

    /// How a device encapsulates packets for the one below; `None`: it is not stacked and is no tunnel.
    pub fn encap(&self, device: DeviceId) -> Option<Encap> {
        self.ports[device.0 as usize].stacked.map(|stacked| stacked.encap)
    }

    /// Removes what a modem or provider removes on the way to another machine: PPPoE that no device there
    /// handles.
    pub fn unwrap_arrival(&self, pool: &mut Pool, device: DeviceId, pkt: &Pkt) {
        let matches = |stacked: Stacked| stacked.on == Some(device) && stacked.encap == Encap::Pppoe;
        if pool.meta(pkt).ethertype != ethertype::PPPOE
            || self.ports.iter().any(|port| port.stacked.is_some_and(matches))
        {
            return;
        }
        let Some(inner) = encap::of_pppoe(pool.head(pkt)) else { return };
        let meta = pool.meta_mut(pkt);
        meta.frame_len = meta.frame_len.saturating_sub(PPPOE_LEN as u32);
        (meta.len, meta.ethertype, meta.dsfield) = (meta.frame_len, inner.ethertype(), inner.dsfield());
        pool.set_head(pkt, inner, false);
    }

    /// A packet that a device gave goes to the one beneath, wrapped as theirs is; mark and priority stay.
    pub fn descend(
        &mut self,
        world: GatewayContext<'_>,
        upper: DeviceId,
        lower: DeviceId,
        pkt: Pkt,
    ) -> XmitStatus {
        let GatewayContext { now, pool, random: draws } = world;
        let encap = self.ports[upper.0 as usize].stacked.map_or(Encap::Bare, |stacked| stacked.encap);
        self.wrap(pool, &pkt, upper, lower, encap);
        if let Encap::Tunnel(_) = encap {
            let Gateway { ports, firewall, .. } = self;
            let home = |name: &str, v6: bool| address(ports, name, v6);
            if firewall.send(now, &ports[lower.0 as usize].name, &home, pool, &pkt) != Passage::Passed {
                self.port(lower).shaper.refuse(now, pool, draws, pkt, DropReason::Policy);
                return XmitStatus::Refused;
            }
        }
        let offer = self.lent(lower, |shaper| shaper.offer(now, pool, draws, pkt));
        self.follow(GatewayContext { now, pool, random: draws }, lower, offer)
    }

    /// Wraps a packet that arrives at `device` as the remote end of the device that is there does before it
    /// sends: for drivers that know of no headers. What is wrapped already stays as it is; `tunnels`: those
    /// end beyond the driver too.
    pub fn wrap_arrival(&self, pool: &mut Pool, device: DeviceId, pkt: &Pkt, tunnels: bool) {
        let above = |on: DeviceId| {
            (0..).zip(&self.ports).find_map(|(at, port)| {
                let stacked = port.stacked.filter(|stacked| stacked.on == Some(on) && !port.is_gone())?;
                (tunnels || !matches!(stacked.encap, Encap::Tunnel(_)))
                    .then_some((DeviceId(at), stacked.encap))
            })
        };
        // From the ground up; what is highest is furthest in.
        let mut storeys = [Encap::Bare; MOST_STOREYS];
        let (mut at, mut height) = (device, 0);
        while let (Some((upper, encap)), Some(storey)) = (above(at), storeys.get_mut(height)) {
            (at, *storey) = (upper, encap);
            height += 1;
        }
        if height == 0 || self.opened(pool, device, pkt).is_some() {
            return;
        }
        for encap in storeys[..height].iter().rev().copied() {
            let encap = match encap {
                Encap::Tunnel(t) => Encap::Tunnel(Tunnel { local: t.remote, remote: t.local, ..t }),
                encap => encap,
            };
            self.wrap(pool, pkt, device, device, encap);
        }
    }

    fn wrap(&self, pool: &mut Pool, pkt: &Pkt, from: DeviceId, to: DeviceId, encap: Encap) {
        let (above, below) = (self.ports[from.0 as usize].spec, self.ports[to.0 as usize].spec);
        let meta = pool.meta(pkt);
        let (len, dsfield) = (meta.frame_len.saturating_sub(above.link_header), meta.dsfield);
        let mut head = pool.head(pkt).clone();
        head.set_dsfield(dsfield);
        let (head, bytes, protocol) = match encap {
            Encap::Bare => (None, 0, None),
            Encap::Vlan(_) => (None, 0, Some(ethertype::VLAN)),
            Encap::Pppoe => (Some(encap::pppoe(&head, len)), PPPOE_LEN, Some(ethertype::PPPOE)),
            Encap::Tunnel(tunnel) => {
                let outer = Outer {
                    src: tunnel.local,
                    dst: tunnel.remote,
                    ttl: tunnel.ttl,
                    gre: matches!(tunnel.mode, TunnelMode::Gre | TunnelMode::Gretap),
                    limit: tunnel.encap_limit,
                };
                let protocol = if tunnel.remote.is_ipv6() { ethertype::IPV6 } else { ethertype::IPV4 };
                (Some(encap::tunnelled(&head, len, outer)), outer.header_len(), Some(protocol))
            }
        };
        let meta = pool.meta_mut(pkt);
        meta.frame_len = len + bytes as u32 + below.link_header;
        meta.len = meta.frame_len;
        meta.ethertype = protocol.unwrap_or(meta.ethertype);
        if let Some(head) = head {
            let another = matches!(encap, Encap::Tunnel(_));
            if another {
                meta.dsfield = head.dsfield();
            }
            pool.set_head(pkt, head, another);
        }
    }

    /// A packet that passed a device's ingress belongs to the device that is there, if it is wrapped as
    /// that one's are; it arrives there next.
    pub(crate) fn ascend(&mut self, world: GatewayContext<'_>, device: DeviceId, pkt: Pkt) -> ReceiveOutcome {
        let GatewayContext { now, pool, random: draws } = world;
        let Some((upper, head, bytes)) = self.opened(pool, device, &pkt) else {
            return ReceiveOutcome::Passed(pkt, device);
        };
        let tunnel =
            matches!(self.ports[upper.0 as usize].stacked, Some(Stacked { encap: Encap::Tunnel(_), .. }));
        if tunnel {
            let Gateway { ports, firewall, .. } = self;
            let home = |name: &str, v6: bool| address(ports, name, v6);
            if !firewall.receive(now, &ports[device.0 as usize].name, &home, pool, &pkt) {
                self.port(device).shaper.refuse(now, pool, draws, pkt, DropReason::Policy);
                return ReceiveOutcome::Dropped;
            }
        }
        let (above, below) = (self.ports[upper.0 as usize].spec, self.ports[device.0 as usize].spec);
        // Congestion marked on the outer header on the way is the packet's now; one that cannot carry the
        // mark is dropped (RFC 6040, section 4.2).
        let marked = pool.meta(&pkt).ecn() == 3 && pool.head(&pkt).dsfield() & 3 != 3;
        if tunnel && marked && head.dsfield() & 3 == 0 {
            self.port(device).shaper.refuse(now, pool, draws, pkt, DropReason::Policy);
            return ReceiveOutcome::Dropped;
        }
        let meta = pool.meta_mut(&pkt);
        meta.frame_len =
            (meta.frame_len + above.link_header).saturating_sub(below.link_header + bytes as u32);
        meta.len = meta.frame_len;
        meta.ethertype = head.ethertype();
        meta.dsfield = head.dsfield();
        if marked {
            meta.set_ce();
        }
        pool.set_head(&pkt, head, tunnel);
        self.receive(GatewayContext { now, pool, random: draws }, upper, pkt)
    }

    /// The device that a wrapped packet is for, what is in it, and the bytes taken off.
    fn opened(&self, pool: &Pool, device: DeviceId, pkt: &Pkt) -> Option<(DeviceId, Head, usize)> {
        let head = pool.head(pkt);
        let tagged = pool.meta(pkt).ethertype == ethertype::VLAN;
        let mut above = (0..).zip(&self.ports).filter(|(_, port)| !port.is_gone());
        above.find_map(|(at, port)| {
            let stacked = port.stacked.filter(|stacked| stacked.on == Some(device))?;
            let (head, bytes) = match stacked.encap {
                Encap::Bare => return None,
                Encap::Vlan(_) if tagged && head.ethertype() != ethertype::VLAN => (head.clone(), 0),
                Encap::Vlan(_) => return None,
                Encap::Pppoe => (encap::of_pppoe(head)?, PPPOE_LEN),
                Encap::Tunnel(tunnel) => {
                    let (inner, outer, bytes) = encap::of_tunnelled(head)?;
                    let is = |known: IpAddr, seen: IpAddr| known.is_unspecified() || known == seen;
                    let ours = outer.gre == matches!(tunnel.mode, TunnelMode::Gre | TunnelMode::Gretap);
                    let ours = ours && outer.dst.is_ipv6() == (tunnel.mode == TunnelMode::Ip6tnl);
                    if !ours || !is(tunnel.remote, outer.src) || !is(tunnel.local, outer.dst) {
                        return None;
                    }
                    (inner, bytes)
                }
            };
            Some((DeviceId(at), head, bytes))
        })
    }
}
