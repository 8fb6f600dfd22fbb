//! The fields of a packet that flower compares: behind VLAN tags and PPPoE, but not what a tunnel
//! carries (recorded: answers-classify/flower-fields).

use crate::conntrack::flower_state;
use crate::context::ClassifyContext;
use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Addrs, Dissector, FlowKeys, dissect, fragment, innermost, transport};
use tidegate_policy::{FlowerField, FlowerKey};

/// What was read of one packet.
#[derive(Debug, Default)]
pub(super) struct Fields {
    inner: Option<Inner>,
    /// Whether the packet is a tunnel's, and then its own keys: the pool has those of what it carries.
    tunnel: Option<Option<FlowKeys>>,
}

/// What is read of the headers beside the keys of the flow.
#[derive(Clone, Copy, Debug, Default)]
struct Inner {
    dsfield: u8,
    ttl: u8,
    fragment: u8,
    tcp_flags: u16,
    icmp: (u8, u8),
}

impl Fields {
    /// Does a field hold what it must?
    pub(super) fn compare(&mut self, key: &FlowerKey, context: &mut ClassifyContext<'_>) -> bool {
        if key.never_holds() {
            return false;
        }
        let found = self.read(key.field, context);
        if key.range { (key.value..=key.mask).contains(&found) } else { (found ^ key.value) & key.mask == 0 }
    }

    /// A field's value; 0 where the packet has none.
    fn read(&mut self, field: FlowerField, context: &mut ClassifyContext<'_>) -> u128 {
        use FlowerField as F;
        match field {
            F::IpTos | F::IpTtl | F::IpFlags | F::TcpFlags | F::IcmpType | F::IcmpCode => {
                let inner = *self.inner.get_or_insert_with(|| Inner::of(context));
                u128::from(match field {
                    F::IpTos => u32::from(inner.dsfield),
                    F::IpTtl => u32::from(inner.ttl),
                    F::TcpFlags => u32::from(inner.tcp_flags),
                    F::IcmpType => u32::from(inner.icmp.0),
                    F::IcmpCode => u32::from(inner.icmp.1),
                    _ => u32::from(inner.fragment),
                })
            }
            F::CtState => u128::from(flower_state(context.pool.meta(context.pkt))),
            F::CtMark => context.actions.connections.mark(context.pool.meta(context.pkt)).unwrap_or(0).into(),
            F::DstMac => mac(context, 0),
            F::SrcMac => mac(context, 6),
            F::ArpSip | F::ArpTip | F::ArpOp | F::ArpSha | F::ArpTha => arp(field, context),
            _ => {
                let tunnel = self.tunnel.get_or_insert_with(|| own_keys(context));
                keyed(field, tunnel.as_ref(), context)
            }
        }
    }
}

/// The keys of a packet that carries another one.
fn own_keys(context: &ClassifyContext<'_>) -> Option<FlowKeys> {
    let head = context.pool.head(context.pkt);
    let (family, network) = innermost(head, Dissector::Legacy)?;
    let (protocol, _) = transport(family, network)?;
    let tunnels = matches!(protocol, proto::IPIP | proto::IPV6 | proto::GRE);
    tunnels.then(|| dissect(head, Dissector::Legacy))
}

/// Fields among the keys of the flow.
fn keyed(field: FlowerField, tunnel: Option<&FlowKeys>, context: &mut ClassifyContext<'_>) -> u128 {
    use FlowerField as F;
    let outer = context.pool.meta(context.pkt).ethertype;
    let keys = tunnel.unwrap_or_else(|| context.pool.keys(context.pkt));
    let [first, second] = keys.vlan.map(|tag| tag.map_or(0, |(tci, _)| tci));
    u128::from(match field {
        F::NumVlans => keys.vlan.iter().flatten().count() as u16,
        F::VlanId => first & 0xfff,
        F::VlanPrio => first >> 13,
        F::CvlanId => second & 0xfff,
        F::CvlanPrio => second >> 13,
        F::VlanEthtype | F::EthType if keys.vlan[0].is_none() => {
            if keys.ethertype == 0 {
                outer
            } else {
                keys.ethertype
            }
        }
        F::VlanEthtype => keys.vlan[1].map_or(keys.ethertype, |(_, tpid)| tpid),
        F::CvlanEthtype | F::EthType => keys.ethertype,
        F::IpProto => u16::from(keys.protocol),
        F::SrcPort => keys.ports.0,
        F::DstPort => keys.ports.1,
        F::SrcIp | F::DstIp => return address(keys.addrs, field == F::DstIp),
        _ => 0,
    })
}

fn address(addrs: Addrs, destination: bool) -> u128 {
    match addrs {
        Addrs::None => 0,
        Addrs::V4(src, dst) => u128::from(u32::from_be_bytes(if destination { dst } else { src })),
        Addrs::V6(src, dst) => u128::from_be_bytes(if destination { dst } else { src }),
    }
}

/// A link address, from this byte of the frame on.
fn mac(context: &ClassifyContext<'_>, from: usize) -> u128 {
    let bytes = context.pool.head(context.pkt).frame().get(from..from + 6).unwrap_or(&[]);
    bytes.iter().fold(0, |address, byte| address << 8 | u128::from(*byte))
}

/// ARP of IPv4 over Ethernet (RFC 826); what else there is has no fields.
fn arp(field: FlowerField, context: &ClassifyContext<'_>) -> u128 {
    let head = context.pool.head(context.pkt);
    if head.ethertype() != ethertype::ARP || head.word(0) != Some(0x0001_0800) {
        return 0;
    }
    let (at, bytes) = match field {
        FlowerField::ArpOp => (6, 2),
        FlowerField::ArpSha => (8, 6),
        FlowerField::ArpSip => (14, 4),
        FlowerField::ArpTha => (18, 6),
        _ => (24, 4),
    };
    (at..at + bytes).fold(0, |value, at| value << 8 | u128::from(head.byte_at(at).unwrap_or(0)))
}

impl Inner {
    fn of(context: &ClassifyContext<'_>) -> Inner {
        let (head, meta) = (context.pool.head(context.pkt), context.pool.meta(context.pkt));
        let Some((family, network)) = innermost(head, Dissector::Legacy) else {
            return Inner::default();
        };
        let outermost = network.len() == head.network().len();
        let byte = |at: usize| network.get(at).copied().unwrap_or(0);
        let mut inner = Inner::default();
        if family == ethertype::IPV4 {
            (inner.dsfield, inner.ttl) = (byte(1), byte(8));
        } else {
            (inner.dsfield, inner.ttl) = (byte(0) << 4 | byte(1) >> 4, byte(7));
        }
        inner.fragment = fragment(family, network).map_or(0, |first| 1 | u8::from(first) << 1);
        if outermost {
            // It may have been rewritten since the packet came.
            inner.dsfield = meta.dsfield;
        }
        let Some((protocol, rest)) = transport(family, network).filter(|_| inner.fragment == 0) else {
            return inner;
        };
        match protocol {
            proto::TCP => {
                inner.tcp_flags = rest.get(12..14).map_or(0, |f| u16::from_be_bytes([f[0], f[1]]) & 0xfff)
            }
            proto::ICMP | proto::ICMPV6 => {
                inner.icmp = rest.first().copied().zip(rest.get(1).copied()).unwrap_or_default()
            }
            _ => {}
        }
        inner
    }
}
