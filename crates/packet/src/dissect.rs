//! The dissector: from a packet's bytes to the keys of its flow.

use crate::flow::{Addrs, FlowKeys, Labelled};
use crate::header::{Head, ethertype, proto};

/// How deep the dissector follows headers: encapsulations beyond this are left unread.
const MAX_HEADERS: usize = 8;

/// How far into a packet flow keys are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dissector {
    /// Through tunnels to the innermost headers, as Linux does since 4.2.
    #[default]
    Modern,
    /// The outermost network header only, as kernels up to 3.2 did.
    Legacy,
}

/// Reads the flow keys of a packet: VLAN tags, then network headers as far as the dissector goes.
pub fn dissect(head: &Head, dissector: Dissector) -> FlowKeys {
    let follow = match dissector {
        Dissector::Modern => usize::MAX,
        Dissector::Legacy => 0,
    };
    let mut keys = match head.tags() {
        [outermost, next, ..] => behind_tags(head, *outermost, next.0, follow),
        _ => read(head.ethertype(), head.network(), follow).0,
    };
    if let [(kind, tag)] = head.tags() {
        keys.vlan = [Some((*tag, *kind)), keys.vlan[0]];
    }
    if dissector == Dissector::Legacy {
        // Old kernels knew no flow labels.
        keys.labelled = None;
    }
    keys
}

/// The keys of a packet with several tags. Linux 6.1 has the outermost beside the packet, and looks for the
/// next behind the place of the network header: it takes the first bytes of that header for a tag.
#[cold]
fn behind_tags(head: &Head, (kind, tag): (u16, u16), next: u16, follow: usize) -> FlowKeys {
    let mut keys = match head.lost_network() {
        Some(bytes) => read(next, &bytes, follow).0,
        None => read(next, head.network(), follow).0,
    };
    keys.vlan = [Some((tag, kind)), keys.vlan[0]];
    keys
}

/// The innermost network header that the dissector comes to, with all that follows it, and its EtherType;
/// `None` where there is none.
pub fn innermost(head: &Head, dissector: Dissector) -> Option<(u16, &[u8])> {
    let (mut ethertype, mut data) = (head.ethertype(), head.network());
    if let [_, next, ..] = head.tags() {
        // As for the keys: the network header is taken for a tag.
        ethertype = next.0;
    }
    let mut found = None;
    for _ in 0..MAX_HEADERS {
        match ethertype {
            ethertype::VLAN | ethertype::QINQ if data.len() >= 4 => {
                (ethertype, data) = (u16::from_be_bytes([data[2], data[3]]), &data[4..]);
            }
            ethertype::PPPOE if data.len() >= 8 => {
                let inner = if data[7] == 0x57 { ethertype::IPV6 } else { ethertype::IPV4 };
                (ethertype, data) = (inner, &data[8..]);
            }
            ethertype::IPV4 | ethertype::IPV6 => {
                found = Some((ethertype, data));
                match network(&mut FlowKeys::default(), ethertype, data) {
                    Some(next) if dissector == Dissector::Modern => (ethertype, data) = next,
                    _ => break,
                }
            }
            _ => break,
        }
    }
    found
}

/// What follows the header that `network` begins with: an IP packet's bytes behind options, and its
/// protocol.
pub fn transport(ethertype: u16, network: &[u8]) -> Option<(u8, &[u8])> {
    match ethertype {
        ethertype::IPV4 => Some((*network.get(9)?, network.get(usize::from(network.first()? & 0x0f) * 4..)?)),
        ethertype::IPV6 => Some(behind_options(*network.get(6)?, network.get(40..)?)),
        _ => None,
    }
}

/// The keys of the packet inside an IP tunnel (IP in IP, in any of the four combinations), one level deep;
/// `None`: it is no such tunnel.
pub fn dissect_inner(head: &Head) -> Option<FlowKeys> {
    let (outer, (ethertype, data)) = read(head.ethertype(), head.network(), 0);
    matches!(outer.protocol, proto::IPIP | proto::IPV6).then(|| read(ethertype, data, 0).0)
}

/// Reads keys, following at most `follow` tunnels; beside them what is inside the last header read.
fn read(mut ethertype: u16, mut data: &[u8], mut follow: usize) -> (FlowKeys, (u16, &[u8])) {
    let mut keys = FlowKeys::default();
    let mut tags = 0;
    for _ in 0..MAX_HEADERS {
        keys.ethertype = ethertype;
        match ethertype {
            ethertype::VLAN | ethertype::QINQ if data.len() >= 4 => {
                if tags < 2 {
                    keys.vlan[tags] = Some((u16::from_be_bytes([data[0], data[1]]), ethertype));
                    tags += 1;
                }
                ethertype = u16::from_be_bytes([data[2], data[3]]);
                data = &data[4..];
            }
            ethertype::PPPOE if data.len() >= 8 => {
                ethertype = match (data[6], data[7]) {
                    (0x00, 0x21) => ethertype::IPV4,
                    (0x00, 0x57) => ethertype::IPV6,
                    _ => return (keys, (0, &[])),
                };
                data = &data[8..];
            }
            ethertype::IPV4 | ethertype::IPV6 => match network(&mut keys, ethertype, data) {
                Some(inner) if follow == 0 => return (keys, inner),
                Some(inner) => {
                    follow -= 1;
                    (ethertype, data) = inner;
                }
                None => return (keys, (0, &[])),
            },
            _ => return (keys, (0, &[])),
        }
    }
    (keys, (0, &[]))
}

/// One network header; returns the EtherType and bytes of what it tunnels, if it does.
fn network<'a>(keys: &mut FlowKeys, ethertype: u16, data: &'a [u8]) -> Option<(u16, &'a [u8])> {
    let (protocol, rest, fragment) = if ethertype == ethertype::IPV4 {
        let ihl = usize::from(data.first()? & 0x0f) * 4;
        if data.len() < 20 || ihl < 20 {
            return None;
        }
        let a4 = |at: usize| [data[at], data[at + 1], data[at + 2], data[at + 3]];
        keys.addrs = Addrs::V4(a4(12), a4(16));
        let place = u16::from_be_bytes([data[6], data[7]]);
        (data[9], data.get(ihl..)?, place & 0x3fff != 0)
    } else {
        if data.len() < 40 {
            return None;
        }
        let a16 = |at: usize| -> [u8; 16] { core::array::from_fn(|i| data[at + i]) };
        keys.addrs = Addrs::V6(a16(8), a16(24));
        keys.flow_label = u32::from_be_bytes([0, data[1] & 0x0f, data[2], data[3]]);
        if keys.flow_label != 0 && keys.labelled.is_none() {
            let (flow_label, gre_key, addrs) = (keys.flow_label, keys.gre_key, keys.addrs);
            keys.labelled = Some(Labelled { flow_label, next_header: data[6], gre_key, addrs });
        }
        match behind_options(data[6], &data[40..]) {
            // Not even options that follow a Fragment header are read, in the first fragment either.
            (proto::FRAGMENT, [next, _, _, _, _, _, _, _, ..]) => (*next, &data[..0], true),
            (protocol, rest) => (protocol, rest, false),
        }
    };
    keys.protocol = protocol;
    if fragment {
        return None;
    }
    match protocol {
        proto::IPIP => Some((ethertype::IPV4, rest)),
        proto::IPV6 => Some((ethertype::IPV6, rest)),
        proto::GRE => gre(keys, rest),
        // The protocols that begin with two ports: TCP, UDP, DCCP, ESP's and AH's SPI halves are read as such
        // too, SCTP, UDP-Lite.
        proto::TCP | proto::UDP | 33 | 50 | 51 | 132 | 136 => {
            if rest.len() >= 4 {
                let at = if protocol == 51 { 4 } else { 0 };
                let p = rest.get(at..at + 4)?;
                keys.ports = (u16::from_be_bytes([p[0], p[1]]), u16::from_be_bytes([p[2], p[3]]));
            }
            None
        }
        _ => None,
    }
}

/// Whether the packet that `network` begins with is a fragment, and then whether it is the first. With a
/// whole Fragment header (RFC 8200 section 4.5) an IPv6 packet is one, even where nothing comes before or
/// behind it.
pub fn fragment(ethertype: u16, network: &[u8]) -> Option<bool> {
    if ethertype == ethertype::IPV4 {
        let place = u16::from_be_bytes([*network.get(6)?, *network.get(7)?]);
        return (place & 0x3fff != 0).then_some(place & 0x1fff == 0);
    }
    match transport(ethertype, network)? {
        (proto::FRAGMENT, [_, _, high, low, _, _, _, _, ..]) => {
            Some(u16::from_be_bytes([*high, *low]) & 0xfff8 == 0)
        }
        _ => None,
    }
}

/// What follows IPv6's options for routers and destinations and its routing header (RFC 8200 section 4).
fn behind_options(mut protocol: u8, mut data: &[u8]) -> (u8, &[u8]) {
    for _ in 0..MAX_HEADERS {
        if !matches!(protocol, 0 | 43 | proto::DESTINATION_OPTIONS) {
            break;
        }
        let Some((&next, length)) = data.first().zip(data.get(1)) else { break };
        // A header that is longer than the packet still names the protocol behind it.
        let rest = data.get(8 + 8 * usize::from(*length)..).unwrap_or_default();
        (protocol, data) = (next, rest);
    }
    (protocol, data)
}

fn gre<'a>(keys: &mut FlowKeys, data: &'a [u8]) -> Option<(u16, &'a [u8])> {
    let (flags, inner) = (
        u16::from_be_bytes([*data.first()?, *data.get(1)?]),
        u16::from_be_bytes([*data.get(2)?, *data.get(3)?]),
    );
    // Version 0 without routing is the only form followed.
    if flags & 0x4007 != 0 {
        return None;
    }
    let mut at = 4;
    if flags & 0x8000 != 0 {
        at += 4;
    }
    if flags & 0x2000 != 0 {
        keys.gre_key = data.get(at..at + 4)?.try_into().ok()?;
        at += 4;
    }
    if flags & 0x1000 != 0 {
        at += 4;
    }
    Some((inner, data.get(at..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TCP packet from 10.0.0.1 to 10.9.0.1 within IP in IP from 192.0.2.1 to 192.0.2.2.
    fn tunnelled() -> Head {
        let ip = |protocol: u8, source: [u8; 4], destination: [u8; 4]| {
            let mut header = [0; 20];
            (header[0], header[9]) = (0x45, protocol);
            header[12..16].copy_from_slice(&source);
            header[16..].copy_from_slice(&destination);
            header
        };
        let outer = ip(proto::IPIP, [192, 0, 2, 1], [192, 0, 2, 2]);
        let inner = ip(proto::TCP, [10, 0, 0, 1], [10, 9, 0, 1]);
        let ports = [0x04, 0x00, 0x00, 0x50, 0, 0, 0, 0];
        Head::from_network(ethertype::IPV4, &[&outer[..], &inner, &ports].concat())
    }

    #[test]
    fn both_dissectors_and_the_inside_of_a_tunnel() {
        let head = tunnelled();
        let parts = |keys: FlowKeys| (keys.addrs, keys.protocol, keys.ports);
        let outer = Addrs::V4([192, 0, 2, 1], [192, 0, 2, 2]);
        let inner = Addrs::V4([10, 0, 0, 1], [10, 9, 0, 1]);
        let table = [
            (parts(dissect(&head, Dissector::Modern)), (inner, proto::TCP, (1024, 80))),
            (parts(dissect(&head, Dissector::Legacy)), (outer, proto::IPIP, (0, 0))),
            (dissect_inner(&head).map_or_else(Default::default, parts), (inner, proto::TCP, (1024, 80))),
        ];
        for (found, wanted) in table {
            assert_eq!(found, wanted);
        }
    }

    /// The protocol and ports of IPv6 packets, and which fragment they are, as Linux 6.1 and 7.2 read them
    /// (recorded: answers-fragments).
    #[test]
    fn a_fragment_header_names_the_protocol_and_hides_the_ports() {
        let header = |next: u8, place: u16| {
            let [high, low] = place.to_be_bytes();
            [next, 0, high, low, 0, 0, 0, 77]
        };
        let options = |next: u8| [next, 0, 1, 4, 0, 0, 0, 0];
        let udp = [0, 5, 0, 55, 0, 12, 0, 0, 1, 2, 3, 4];
        /// Protocol, ports, and whether it is the first fragment.
        type Found = (u8, (u16, u16), Option<bool>);
        let table: [(&str, u8, &[&[u8]], Found); 11] = [
            ("whole", 17, &[&udp], (17, (5, 55), None)),
            ("first", 44, &[&header(17, 1), &udp], (17, (0, 0), Some(true))),
            ("later", 44, &[&header(17, 801), &udp], (17, (0, 0), Some(false))),
            ("last", 44, &[&header(17, 800), &udp], (17, (0, 0), Some(false))),
            ("the only one", 44, &[&header(17, 0), &udp], (17, (0, 0), Some(true))),
            ("behind options", 0, &[&options(44), &header(17, 800), &udp], (17, (0, 0), Some(false))),
            ("before options", 44, &[&header(60, 1), &options(17), &udp], (60, (0, 0), Some(true))),
            ("two", 44, &[&header(44, 1), &header(17, 800), &udp], (44, (0, 0), Some(true))),
            ("of a tunnel", 44, &[&header(4, 1), &[0x45; 40]], (4, (0, 0), Some(true))),
            ("nothing behind it", 44, &[&header(17, 0)], (17, (0, 0), Some(true))),
            ("cut off", 44, &[&header(17, 1)[..7]], (44, (0, 0), None)),
        ];
        for (what, next, parts, expected) in table {
            let mut bytes = [0; 40];
            (bytes[0], bytes[6], bytes[23], bytes[39]) = (0x60, next, 1, 2);
            let head = Head::from_network(ethertype::IPV6, &[&bytes[..], &parts.concat()].concat());
            let keys = dissect(&head, Dissector::Modern);
            let found = (keys.protocol, keys.ports, fragment(ethertype::IPV6, head.network()));
            assert_eq!(found, expected, "{what}");
        }
    }

    #[test]
    fn nothing_inside_what_is_no_tunnel() {
        let plain = Head::from_network(ethertype::IPV4, &tunnelled().network()[20..]);
        assert_eq!(dissect_inner(&plain), None);
    }
}
