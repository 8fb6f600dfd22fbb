//! Devices on devices: what a packet weighs and is called on the way down, up again at the remote end, and
//! whose it is.
//!
//! Bytes by the RFCs: PPPoE 8 (2516), IPv4 20 (791), GRE 4 (2784), IPv6 40 with 8 more for the encapsulation
//! limit (2473); a tag is the card's to add, so frames below are as long as above.

use crate::words::{Machine, Seen, udp};
use tidegate_gateway::{EgressPath, Encap, ReceiveOutcome, XmitStatus};
use tidegate_packet::Pkt;
use tidegate_packet::header::ethertype::{IPV4, IPV6, PPPOE, VLAN};
use tidegate_policy::{Tunnel, TunnelMode};

const NETWORK: u32 = 100;
const LOCAL: &str = "192.0.2.1";
const REMOTE: &str = "192.0.2.2";

/// A device on `eth0`: made in ip's words, or there from the beginning.
fn stacked(upper: &str, made: &str) -> Machine {
    let mut machine = Machine::new(&["eth0"]);
    if made.is_empty() {
        machine = Machine::new(&["eth0", upper]);
    } else {
        machine.run(made);
    }
    let (above, below) = (machine.id(upper), machine.id("eth0"));
    machine.gateway.stack_by_kind(above, below);
    assert_eq!(machine.gateway.beneath(above), Some(below));
    assert_eq!(machine.gateway.beneath(below), None);
    assert_eq!(machine.gateway.encap(below), None);
    machine
}

/// Sends a datagram down from a device, and gives it as `eth0` sends it.
fn down(machine: &mut Machine, upper: &str, v6: bool, dsfield: u8) -> Option<Pkt> {
    let head = if v6 {
        udp(("fd00::2", 1), ("fd00::3", 2), dsfield)
    } else {
        udp(("10.0.0.2", 1), ("10.9.0.3", 2), dsfield)
    };
    let (above, below) = (machine.id(upper), machine.id("eth0"));
    let header = machine.gateway.spec(above).link_header;
    let pkt = machine.insert(head, NETWORK + header);
    let _ = machine.offer(upper, EgressPath::Direct, pkt);
    let pkt = machine.poll(upper).expect("it has no queue to wait in");
    let (gateway, world) = machine.world();
    let _ = gateway.descend(world, above, below, pkt);
    machine.poll("eth0")
}

const TUNNELS: [(&str, bool, u32, u16); 5] = [
    ("ip tunnel add t mode ipip local 192.0.2.1 remote 192.0.2.2", false, 20, IPV4),
    ("ip tunnel add t mode sit local 192.0.2.1 remote 192.0.2.2", true, 20, IPV4),
    ("ip tunnel add t mode gre local 192.0.2.1 remote 192.0.2.2", false, 24, IPV4),
    ("ip tunnel add t mode gre local 192.0.2.1 remote 192.0.2.2", true, 24, IPV4),
    ("ip link add t type ip6tnl local 2001:db8::1 remote 2001:db8::2", false, 48, IPV6),
];

#[test]
fn a_packet_grows_by_what_is_put_before_it() {
    let others = [("ppp0", "", false, 8, PPPOE), ("ppp0", "", true, 8, PPPOE), ("eth1", "", false, 0, IPV4)];
    let vlan = [("eth0.7", "ip link add link eth0 name eth0.7 type vlan id 7", false, 0, VLAN)];
    let tunnels = TUNNELS.map(|(made, v6, bytes, outer)| ("t", made, v6, bytes, outer));
    for (upper, made, v6, bytes, outer) in others.into_iter().chain(vlan).chain(tunnels) {
        let mut machine = stacked(upper, made);
        let pkt = down(&mut machine, upper, v6, 0).expect(made);
        let meta = machine.pool.meta(&pkt);
        let found = (meta.frame_len, meta.len, meta.ethertype);
        // Anyone who meets the frame beyond the card counts the tag.
        assert_eq!(found, (14 + bytes + NETWORK, 14 + bytes + NETWORK, outer), "{upper} {made} IPv6 {v6}");
        machine.pool.release(pkt);
        assert_eq!(machine.live(), 0);
    }
}

#[test]
fn tunnels_have_their_ends() {
    for (made, v6, ..) in TUNNELS.into_iter().take(4) {
        let mut machine = stacked("t", made);
        let pkt = down(&mut machine, "t", v6, 0).expect(made);
        let Seen { source, destination, .. } = machine.see(pkt);
        assert_eq!([source.0.to_string(), destination.0.to_string()], [LOCAL, REMOTE], "{made}");
    }
    let mut machine = stacked("ppp0", "");
    let id = machine.id("ppp0");
    assert_eq!(machine.gateway.encap(id), Some(Encap::Pppoe));
    let pkt = down(&mut machine, "ppp0", true, 0).expect("sent");
    // Version 1, type 1, session 1; 102 bytes with PPP's protocol, which is IPv6's.
    assert_eq!(machine.pool.head(&pkt).network()[..8], [0x11, 0, 0, 1, 0, 102, 0x00, 0x57]);
    machine.pool.release(pkt);
}

/// The remote end of the same wire: what it takes a frame for that the near end sent.
fn arrives(far: &mut Machine, near: &Machine, pkt: &Pkt, dsfield: u8) -> ReceiveOutcome {
    let (meta, head) = (near.pool.meta(pkt).clone(), near.pool.head(pkt).clone());
    let pkt = far.pool.insert(meta, head).expect("room");
    far.pool.meta_mut(&pkt).dsfield = dsfield;
    far.receive("eth0", pkt)
}

#[test]
fn what_was_put_on_is_taken_off() {
    let (near_end, far_end) = ("local 192.0.2.1 remote 192.0.2.2", "local 192.0.2.2 remote 192.0.2.1");
    let (near_6, far_6) = ("local 2001:db8::1 remote 2001:db8::2", "local 2001:db8::2 remote 2001:db8::1");
    let tunnels = TUNNELS.map(|(made, v6, ..)| ("t", made, v6, 0));
    let others = [("ppp0", "", false, 0), ("ppp0", "", true, 0)];
    let vlan = [("eth0.7", "ip link add link eth0 name eth0.7 type vlan id 7", false, 14)];
    for (upper, made, v6, header) in tunnels.into_iter().chain(others).chain(vlan) {
        let mut near = stacked(upper, made);
        let mut far = stacked(upper, &made.replace(near_end, far_end).replace(near_6, far_6));
        let sent = down(&mut near, upper, v6, 0x28).expect(made);
        // A tag beside the packet: the network packet is not the tag's.
        let ReceiveOutcome::Passed(pkt, by) = arrives(&mut far, &near, &sent, 0x28) else { panic!("{made}") };
        near.pool.release(sent);
        let (name, meta) = (far.gateway.name(by).to_owned(), far.pool.meta(&pkt));
        let found = (name.as_str(), meta.frame_len, meta.len, meta.ethertype);
        let inner = if v6 { IPV6 } else { IPV4 };
        assert_eq!(found, (upper, NETWORK + header, NETWORK + header, inner), "{made} IPv6 {v6}");
        let source = far.see(pkt).source.0.to_string();
        assert_eq!(source, if v6 { "fd00::2" } else { "10.0.0.2" }, "{made}");
        assert_eq!(far.live(), 0);
    }
}

#[test]
fn only_what_is_wrapped_as_the_device_wraps_is_its_own() {
    let tunnel = |mode: &str, local: &str, remote: &str| {
        format!("ip tunnel add t mode {mode} local {local} remote {remote}")
    };
    let table = [
        (tunnel("ipip", REMOTE, LOCAL), "t"),
        (tunnel("ipip", "any", LOCAL), "t"),
        (tunnel("ipip", REMOTE, "any"), "t"),
        (tunnel("ipip", REMOTE, "192.0.2.99"), "eth0"),
        (tunnel("ipip", "192.0.2.99", LOCAL), "eth0"),
        (tunnel("gre", REMOTE, LOCAL), "eth0"),
        (String::from("ip link add t type ip6tnl local :: remote ::"), "eth0"),
        (String::from("ip link add link eth0 name t type vlan id 7"), "eth0"),
        // No one is there: it is routed as what it is.
        (String::from("ip link add t type dummy"), "eth0"),
    ];
    for (made, wanted) in table {
        let mut near = stacked("t", &tunnel("ipip", LOCAL, REMOTE));
        let mut far = stacked("t", &made);
        let sent = down(&mut near, "t", false, 0).expect("sent");
        let ReceiveOutcome::Passed(pkt, by) = arrives(&mut far, &near, &sent, 0) else { panic!("{made}") };
        assert_eq!(far.gateway.name(by), wanted, "{made}");
        far.pool.release(pkt);
        near.pool.release(sent);
    }
    // A device that is gone takes nothing.
    let mut near = stacked("t", &tunnel("ipip", LOCAL, REMOTE));
    let mut far = stacked("t", &tunnel("ipip", REMOTE, LOCAL));
    far.run("ip link del t");
    let sent = down(&mut near, "t", false, 0).expect("sent");
    let ReceiveOutcome::Passed(pkt, by) = arrives(&mut far, &near, &sent, 0) else { panic!("it passes") };
    assert_eq!(by, far.id("eth0"));
    far.pool.release(pkt);
    near.pool.release(sent);
    // A device stacked on one that is gone is stacked on nothing.
    let mut machine = stacked("t", &tunnel("ipip", LOCAL, REMOTE));
    let id = machine.id("t");
    machine.run("ip link del eth0");
    assert_eq!((machine.gateway.beneath(id), machine.gateway.encap(id).is_some()), (None, true));
}

/// RFC 6040, figure 4: congestion met on the way comes through to a packet that can carry the mark; another
/// is dropped.
#[test]
fn congestion_on_the_way_is_the_inner_packets() {
    // Inner field, outer field on arrival, what comes out.
    let table = [(0, 0, 0), (1, 1, 1), (2, 2, 2), (1, 3, 3), (2, 3, 3), (3, 3, 3), (3, 2, 3), (2, 1, 2)];
    for (inner, outer, wanted) in table {
        let mut near = stacked("t", TUNNELS[0].0);
        let mut far = stacked("t", "ip tunnel add t mode ipip local 192.0.2.2 remote 192.0.2.1");
        let sent = down(&mut near, "t", false, inner).expect("sent");
        let ReceiveOutcome::Passed(pkt, _) = arrives(&mut far, &near, &sent, outer) else {
            panic!("it passes")
        };
        assert_eq!(far.pool.meta(&pkt).dsfield, wanted, "inner {inner}, outer {outer}");
        far.pool.release(pkt);
        near.pool.release(sent);
    }
    let mut near = stacked("t", TUNNELS[0].0);
    let mut far = stacked("t", "ip tunnel add t mode ipip local 192.0.2.2 remote 192.0.2.1");
    let sent = down(&mut near, "t", false, 0).expect("sent");
    assert_eq!((arrives(&mut far, &near, &sent, 3), far.live()), (ReceiveOutcome::Dropped, 0));
    near.pool.release(sent);
}

/// The outer packet is the machine's own: OUTPUT sees it leave, INPUT sees it come.
#[test]
fn a_tunnels_packets_pass_the_machines_own_chains() {
    for (rule, there) in [
        ("-A OUTPUT -p 4 -j DROP", [false, true]),
        ("-A OUTPUT -p udp -j DROP", [true, true]),
        ("-A INPUT -p 4 -j DROP", [true, false]),
        ("-A INPUT -i eth0 -j DROP", [true, false]),
        ("-A INPUT -i t -j DROP", [true, true]),
        ("-A FORWARD -j DROP", [true, true]),
    ] {
        let mut near = stacked("t", TUNNELS[0].0);
        near.run(&format!("iptables {rule}"));
        let sent = down(&mut near, "t", false, 0);
        assert_eq!(sent.is_some(), there[0], "{rule}");
        if let Some(pkt) = sent {
            near.pool.release(pkt);
        }
        assert_eq!(near.live(), 0);
        let mut open = stacked("t", TUNNELS[0].0);
        let sent = down(&mut open, "t", false, 0).expect("nobody minds");
        let mut far = stacked("t", "ip tunnel add t mode ipip local 192.0.2.2 remote 192.0.2.1");
        far.run(&format!("iptables {rule}"));
        let received = arrives(&mut far, &open, &sent, 0);
        open.pool.release(sent);
        assert_eq!(received != ReceiveOutcome::Dropped, there[1], "{rule}");
        if let ReceiveOutcome::Passed(pkt, _) = received {
            far.pool.release(pkt);
        }
        assert_eq!(far.live(), 0);
    }
    // The sender gets the result.
    let mut machine = stacked("t", TUNNELS[0].0);
    machine.run("iptables -P OUTPUT DROP");
    let (above, below) = (machine.id("t"), machine.id("eth0"));
    let pkt = machine.insert(udp(("10.0.0.2", 1), ("10.9.0.3", 2), 0), NETWORK);
    let (gateway, world) = machine.world();
    assert_eq!(gateway.descend(world, above, below, pkt), XmitStatus::Refused);
}

/// For drivers that know of no headers: packets come as the other end of what is there would send them.
#[test]
fn arrivals_are_wrapped_for_the_device_there() {
    let length_of = |machine: &mut Machine, tunnels: bool, twice: bool| {
        let eth0 = machine.id("eth0");
        let pkt = machine.insert(udp(("10.9.0.3", 2), ("10.0.0.2", 1), 0), 14 + NETWORK);
        for _ in 0..=usize::from(twice) {
            machine.gateway.wrap_arrival(&mut machine.pool, eth0, &pkt, tunnels);
        }
        let meta = machine.pool.meta(&pkt);
        let found = (meta.frame_len - 14 - NETWORK, meta.ethertype);
        machine.pool.release(pkt);
        found
    };
    let ppp = |machine: &mut Machine| {
        let (above, below) = (machine.id("ppp0"), machine.id("eth0"));
        machine.gateway.stack(above, below, Encap::Pppoe);
    };
    let mut machine = Machine::new(&["eth0", "ppp0"]);
    assert_eq!(length_of(&mut machine, true, false), (0, IPV4));
    ppp(&mut machine);
    // What is wrapped already stays as it is.
    for twice in [false, true] {
        assert_eq!(length_of(&mut machine, false, twice), (8, PPPOE));
    }
    // A tunnel on the point-to-point device is entered where the driver's rules put it.
    machine.run("ip tunnel add t mode ipip local 192.0.2.1 remote 192.0.2.2");
    let (tunnel, below) = (machine.id("t"), machine.id("ppp0"));
    machine.gateway.stack_by_kind(tunnel, below);
    assert_eq!(
        [false, true].map(|tunnels| length_of(&mut machine, tunnels, false)),
        [(8, PPPOE), (28, PPPOE)]
    );
    // Its ends are those of the other side, and this machine takes it for its tunnel's.
    let eth0 = machine.id("eth0");
    let pkt = machine.insert(udp(("10.9.0.3", 2), ("10.0.0.2", 1), 0), 14 + NETWORK);
    machine.gateway.wrap_arrival(&mut machine.pool, eth0, &pkt, true);
    let ReceiveOutcome::Passed(pkt, by) = machine.receive("eth0", pkt) else { panic!("it passes") };
    assert_eq!((by, machine.see(pkt).frame_len), (tunnel, NETWORK));
    // A device that is gone wraps nothing.
    machine.run("ip link del t");
    assert_eq!(length_of(&mut machine, true, false), (8, PPPOE));
}

/// What a modem takes off on the way to a machine on which no one speaks PPPoE.
#[test]
fn pppoe_without_a_device_is_removed() {
    for (above, encap, wanted) in [
        (None, Encap::Bare, (14 + NETWORK, IPV4)),
        (Some("ppp0"), Encap::Pppoe, (14 + 8 + NETWORK, PPPOE)),
        (Some("ppp0"), Encap::Bare, (14 + NETWORK, IPV4)),
        (Some("eth1"), Encap::Pppoe, (14 + NETWORK, IPV4)),
    ] {
        let mut near = stacked("ppp0", "");
        let sent = down(&mut near, "ppp0", false, 0x28).expect("sent");
        let mut far = Machine::new(&["eth0", "eth1", "ppp0"]);
        if let Some(above) = above {
            // On eth0, or on another device beside it.
            let (upper, lower) = (far.id("ppp0"), far.id(if above == "eth1" { "eth1" } else { "eth0" }));
            far.gateway.stack(upper, lower, encap);
        }
        let (meta, head) = (near.pool.meta(&sent).clone(), near.pool.head(&sent).clone());
        near.pool.release(sent);
        let pkt = far.pool.insert(meta, head).expect("room");
        let eth0 = far.id("eth0");
        far.gateway.unwrap_arrival(&mut far.pool, eth0, &pkt);
        let meta = far.pool.meta(&pkt);
        assert_eq!((meta.frame_len, meta.ethertype), wanted, "{above:?} {encap:?}");
        far.pool.release(pkt);
        // Other packets are let alone.
        let pkt = far.insert(udp(("10.9.0.3", 2), ("10.0.0.2", 1), 0), 14 + NETWORK);
        far.gateway.unwrap_arrival(&mut far.pool, eth0, &pkt);
        assert_eq!(far.pool.meta(&pkt).frame_len, 14 + NETWORK);
        far.pool.release(pkt);
    }
}

/// What nothing is reported of has the way of its kind.
#[test]
fn devices_are_stacked_by_their_kind() {
    let unsaid = Encap::Tunnel(Tunnel::unsaid(TunnelMode::Ipip));
    for (upper, wanted) in
        [("ppp0", Encap::Pppoe), ("eth1", Encap::Bare), ("tunl0", unsaid), ("br0", Encap::Bare)]
    {
        let machine = stacked(upper, "");
        let id = machine.id(upper);
        assert_eq!(machine.gateway.encap(id), Some(wanted), "{upper}");
    }
    let machine = stacked("eth0.7", "ip link add link eth0 name eth0.7 type vlan id 7");
    assert_eq!(machine.gateway.encap(machine.id("eth0.7")), Some(Encap::Vlan(7)));
}
