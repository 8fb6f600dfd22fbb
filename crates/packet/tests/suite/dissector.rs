//! What is read of packets, header by header: VLAN tags (802.1Q), PPPoE (RFC 2516), IPv6's options (RFC
//! 8200), GRE (RFC 2890), tunnels in tunnels; and packets that are cut off.

use tidegate_packet::header::ethertype::{ARP, IPV4, IPV6, PPPOE, QINQ, VLAN};
use tidegate_packet::{
    Addrs, Dissector, FlowKeys, HashKey, Head, Labelled, dissect, dissect_inner, innermost, transport,
};

fn v4(protocol: u8, rest: &[u8]) -> Vec<u8> {
    let mut header = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 9, 0, 2];
    header.extend(rest);
    header
}

/// From fd00::1:2 to fd00::3:4, flow label 0x54321.
fn v6(protocol: u8, rest: &[u8]) -> Vec<u8> {
    let mut header = vec![0x6f, 0xf5, 0x43, 0x21, 0, 0, protocol, 64];
    for last in [[1, 2], [3, 4]] {
        header.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last[0], 0, last[1]]);
    }
    header.extend(rest);
    header
}

const PORTS: [u8; 8] = [0x12, 0x34, 0x56, 0x78, 0, 0, 0, 0];
const BOTH: (u16, u16) = (0x1234, 0x5678);

fn keys(ethertype: u16, bytes: &[u8]) -> FlowKeys {
    dissect(&Head::from_network(ethertype, bytes), Dissector::Modern)
}

fn four() -> Addrs {
    Addrs::V4([10, 0, 0, 1], [10, 9, 0, 2])
}

fn six() -> Addrs {
    let end = |a, b| [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, 0, b];
    Addrs::V6(end(1, 2), end(3, 4))
}

#[test]
fn ports_are_read_per_protocol() {
    for protocol in [6, 17, 33, 50, 132, 136] {
        for (kind, packet, addrs, label) in
            [(IPV4, v4(protocol, &PORTS), four(), 0), (IPV6, v6(protocol, &PORTS), six(), 0x5_4321)]
        {
            let labelled = Labelled { flow_label: label, next_header: protocol, gre_key: [0; 4], addrs };
            let wanted = FlowKeys {
                ethertype: kind,
                protocol,
                addrs,
                flow_label: label,
                ports: BOTH,
                labelled: (label != 0).then_some(labelled),
                ..FlowKeys::default()
            };
            assert_eq!(keys(kind, &packet), wanted, "{protocol}");
            let hashed = if label == 0 { wanted } else { FlowKeys { ports: (0, 0), ..wanted } };
            assert_eq!(keys(kind, &packet).at_label(), hashed, "{protocol}");
        }
    }
    // The authentication header has its index four bytes on (RFC 4302).
    assert_eq!(keys(IPV4, &v4(51, &[0, 0, 0, 0, 0x12, 0x34, 0x56, 0x78])).ports, BOTH);
    for protocol in [1, 2, 58, 89] {
        assert_eq!(keys(IPV4, &v4(protocol, &PORTS)).ports, (0, 0), "{protocol}");
    }
    // A fragment has no ports of its own: only the first one carries them.
    for fragment in [[0x20, 0], [0, 1], [0x1f, 0xff]] {
        let mut packet = v4(17, &PORTS);
        packet[6..8].copy_from_slice(&fragment);
        assert_eq!((keys(IPV4, &packet).ports, keys(IPV4, &packet).protocol), ((0, 0), 17));
    }
    let mut packet = v4(17, &PORTS);
    packet[6] = 0x40;
    assert_eq!(keys(IPV4, &packet).ports, BOTH, "not to be fragmented");
    // Options move what follows.
    let mut options = v4(17, &[[1; 4].as_slice(), &PORTS].concat());
    options[0] = 0x46;
    assert_eq!(keys(IPV4, &options).ports, BOTH);
}

#[test]
fn packets_that_are_cut_off_say_what_they_can() {
    let (short, shorter) = (v4(17, &PORTS), v6(17, &PORTS));
    for len in 0..=short.len() {
        let found = keys(IPV4, &short[..len]);
        let wanted = (if len >= 20 { four() } else { Addrs::None }, if len >= 24 { BOTH } else { (0, 0) });
        assert_eq!((found.addrs, found.ports), wanted, "{len} bytes of IPv4");
    }
    for len in 0..=shorter.len() {
        let found = keys(IPV6, &shorter[..len]);
        let wanted = (if len >= 40 { six() } else { Addrs::None }, if len >= 44 { BOTH } else { (0, 0) });
        assert_eq!((found.addrs, found.ports), wanted, "{len} bytes of IPv6");
    }
    // A header of less than five words is none.
    let mut small = v4(17, &PORTS);
    small[0] = 0x44;
    assert_eq!(keys(IPV4, &small).addrs, Addrs::None);
}

#[test]
fn tags_and_pppoe_are_looked_behind() {
    let tag =
        |control: u16, inner: u16, rest: &[u8]| [&control.to_be_bytes(), &inner.to_be_bytes(), rest].concat();
    let plain = v4(17, &PORTS);
    let one = keys(VLAN, &tag(0x2007, IPV4, &plain));
    assert_eq!((one.vlan, one.ethertype, one.ports), ([Some((0x2007, VLAN)), None], IPV4, BOTH));
    let two = keys(QINQ, &tag(5, VLAN, &tag(7, IPV6, &v6(6, &PORTS))));
    assert_eq!((two.vlan, two.ethertype, two.addrs), ([Some((5, QINQ)), Some((7, VLAN))], IPV6, six()));
    let three = keys(QINQ, &tag(5, VLAN, &tag(7, VLAN, &tag(9, IPV4, &plain))));
    assert_eq!((three.vlan, three.ports), ([Some((5, QINQ)), Some((7, VLAN))], BOTH));
    assert_eq!(keys(VLAN, &[0x20, 7, 8]), FlowKeys { ethertype: VLAN, ..FlowKeys::default() });
    assert_eq!(keys(VLAN, &tag(7, ARP, &[])).ethertype, ARP);
    // Tags beside the packet precede those in it.
    let mut head = Head::from_network(VLAN, &tag(7, IPV4, &plain));
    assert!(head.push_tag(VLAN, 9));
    assert_eq!(dissect(&head, Dissector::Modern).vlan, [Some((9, VLAN)), Some((7, VLAN))]);
    let session = |protocol: [u8; 2], rest: &[u8]| {
        [&[0x11, 0, 0, 1, 0, 30, protocol[0], protocol[1]][..], rest].concat()
    };
    let inside = keys(PPPOE, &session([0, 0x21], &plain));
    assert_eq!((inside.ethertype, inside.ports), (IPV4, BOTH));
    let inside = keys(PPPOE, &session([0, 0x57], &v6(6, &PORTS)));
    assert_eq!((inside.ethertype, inside.addrs), (IPV6, six()));
    // A message of PPP's own, and one that is cut off.
    assert_eq!(keys(PPPOE, &session([0xc0, 0x21], &plain)).addrs, Addrs::None);
    assert_eq!(keys(PPPOE, &session([0, 0x21], &plain)[..7]).ethertype, PPPOE);
}

#[test]
fn options_of_ipv6_are_passed_over() {
    // For routers (0), a routing header (43) and for the destination (60): next header, and length in words
    // of eight bytes beyond the first.
    for first in [0, 43, 60] {
        let short = [&[17, 0, 0, 0, 0, 0, 0, 0][..], &PORTS].concat();
        let long = [&[17, 1][..], &[0; 14], &PORTS].concat();
        let two = [&[60, 0, 0, 0, 0, 0, 0, 0, 17, 2][..], &[0; 22], &PORTS].concat();
        for rest in [short, long, two] {
            let found = keys(IPV6, &v6(first, &rest));
            assert_eq!((found.protocol, found.ports), (17, BOTH), "{first} {}", rest.len());
        }
    }
    // A fragment header (44) ends it, and names the protocol; for queues a flow label ends it before.
    let fragment = keys(IPV6, &v6(44, &[17, 0, 0, 0, 0, 0, 0, 0]));
    assert_eq!((fragment.protocol, fragment.at_label().protocol), (17, 44));
    let packet = v6(60, &[[6, 0, 0, 0, 0, 0, 0, 0], PORTS].concat());
    assert_eq!(transport(IPV6, &packet), Some((6, &PORTS[..])));
    assert_eq!(transport(IPV4, &v4(17, &PORTS)), Some((17, &PORTS[..])));
    assert_eq!(
        (transport(ARP, &PORTS), transport(IPV4, &[0x45; 9]), transport(IPV6, &[0x60; 39])),
        (None, None, None)
    );
}

#[test]
fn tunnels_are_followed_to_the_innermost_packet() {
    let inner = v4(17, &PORTS);
    let gre = |flags: [u8; 2], fields: &[u8]| [&flags[..], &[8, 0], fields, &inner].concat();
    let table = [
        (v4(4, &inner), IPV4, [0; 4]),
        (v4(41, &v6(17, &PORTS)), IPV6, [0; 4]),
        (v4(47, &gre([0, 0], &[])), IPV4, [0; 4]),
        // With a checksum, a key, a sequence number, and all of them.
        (v4(47, &gre([0x80, 0], &[1, 1, 1, 1])), IPV4, [0; 4]),
        (v4(47, &gre([0x20, 0], &[7, 8, 9, 10])), IPV4, [7, 8, 9, 10]),
        (v4(47, &gre([0x10, 0], &[1, 1, 1, 1])), IPV4, [0; 4]),
        (v4(47, &gre([0xb0, 0], &[1, 1, 1, 1, 7, 8, 9, 10, 2, 2, 2, 2])), IPV4, [7, 8, 9, 10]),
    ];
    for (packet, kind, key) in table {
        let found = keys(IPV4, &packet);
        assert_eq!(
            (found.ethertype, found.protocol, found.ports, found.gre_key),
            (kind, 17, BOTH, key),
            "{packet:?}"
        );
        let head = Head::from_network(IPV4, &packet);
        assert_eq!(dissect(&head, Dissector::Legacy).ports, (0, 0));
        let (innermost_kind, bytes) = innermost(&head, Dissector::Modern).expect("there is one");
        let wanted = if kind == IPV6 { v6(17, &PORTS) } else { inner.clone() };
        assert_eq!((innermost_kind, bytes), (kind, &wanted[..]));
        assert_eq!(innermost(&head, Dissector::Legacy).map(|(_, bytes)| bytes.len()), Some(packet.len()));
    }
    // Routing (RFC 1701) and version 1 (PPTP) are not followed.
    for flags in [[0x40, 0], [0, 1], [0, 4]] {
        assert_eq!(keys(IPV4, &v4(47, &gre(flags, &[]))).protocol, 47);
    }
    assert_eq!(keys(IPV4, &v4(47, &[0, 0, 8])).protocol, 47);
    // IP in IP, one level deep; GRE is no such tunnel.
    let twice = Head::from_network(IPV4, &v4(4, &v4(4, &inner)));
    assert_eq!(dissect_inner(&twice).map(|keys| (keys.protocol, keys.ports)), Some((4, (0, 0))));
    assert_eq!(dissect_inner(&Head::from_network(IPV4, &v4(47, &gre([0, 0], &[])))), None);
    assert_eq!(
        dissect_inner(&Head::from_network(IPV6, &v6(41, &v6(17, &PORTS)))).map(|keys| keys.addrs),
        Some(six())
    );
}

#[test]
fn the_innermost_header_is_behind_tags_and_pppoe() {
    let plain = v4(17, &PORTS);
    let tagged = Head::from_network(VLAN, &[&[0, 7, 8, 0][..], &plain].concat());
    assert_eq!(innermost(&tagged, Dissector::Modern), Some((IPV4, &plain[..])));
    for (protocol, kind, packet) in [(0x21, IPV4, plain), (0x57, IPV6, v6(17, &PORTS))] {
        let head = Head::from_network(PPPOE, &[&[0x11, 0, 0, 1, 0, 30, 0, protocol][..], &packet].concat());
        assert_eq!(innermost(&head, Dissector::Modern), Some((kind, &packet[..])));
        assert_eq!(
            innermost(&Head::from_network(PPPOE, &[0x11, 0, 0, 1, 0, 30, 0]), Dissector::Modern),
            None
        );
    }
    assert_eq!(innermost(&Head::from_network(VLAN, &[0, 7, 8]), Dissector::Modern), None);
    assert_eq!(innermost(&Head::from_network(ARP, &[0; 28]), Dissector::Modern), None);
}

/// Both directions of a conversation have one hash, and each key that differs makes another.
#[test]
fn hashes_are_those_of_a_conversation() {
    let hash = |keys: &FlowKeys| keys.hash(HashKey(1, 2));
    let turned = |keys: &FlowKeys| FlowKeys {
        addrs: match keys.addrs {
            Addrs::V4(a, b) => Addrs::V4(b, a),
            Addrs::V6(a, b) => Addrs::V6(b, a),
            Addrs::None => Addrs::None,
        },
        ports: (keys.ports.1, keys.ports.0),
        ..*keys
    };
    for addrs in [four(), six(), Addrs::None] {
        let keys = FlowKeys { ethertype: IPV4, protocol: 17, addrs, ports: (1, 2), ..FlowKeys::default() };
        assert_eq!(hash(&keys), hash(&turned(&keys)), "{addrs:?}");
        let vlan = |first, second| FlowKeys { vlan: [first, second], ..keys };
        let tag = Some((7, VLAN));
        let others = [
            FlowKeys { protocol: 6, ..keys },
            FlowKeys { ethertype: IPV6, ..keys },
            FlowKeys { ports: (1, 3), ..keys },
            FlowKeys { gre_key: [0, 0, 0, 1], ..keys },
            FlowKeys { flow_label: 1, ..keys },
            vlan(tag, None),
            vlan(Some((8, VLAN)), None),
            vlan(Some((7, QINQ)), None),
            vlan(tag, tag),
            vlan(tag, Some((8, VLAN))),
        ];
        let mut hashes: Vec<u32> = others.iter().chain([&keys]).map(hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), others.len() + 1, "{addrs:?}");
        assert_ne!(keys.hash(HashKey(1, 3)), hash(&keys));
        // With a flow label, ports are left out (RFC 6437).
        assert_eq!(
            hash(&FlowKeys { flow_label: 1, ..keys }),
            hash(&FlowKeys { flow_label: 1, ports: (8, 9), ..keys })
        );
    }
}
