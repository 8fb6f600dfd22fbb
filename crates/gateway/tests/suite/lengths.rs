//! Netfilter counts network packets, whatever link header the devices have that they come and go by.

use core::net::Ipv4Addr;
use tidegate_gateway::{DeviceSpec, EgressPath, Gateway, GatewayContext};
use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Head, Meta, Pool, Seeded, Time};
use tidegate_policy::netfilter::{Condition, Family, Match, NetfilterRule, NetfilterTarget, NfCommand, NfOp};
use tidegate_policy::{LinkDriver, Op};

/// A UDP datagram's front.
fn head(bytes: u16) -> Head {
    let mut data = [0_u8; 28];
    data[0] = 0x45;
    data[2..4].copy_from_slice(&bytes.to_be_bytes());
    data[9] = proto::UDP;
    data[12..16].copy_from_slice(&Ipv4Addr::new(192, 0, 2, 1).octets());
    data[16..20].copy_from_slice(&Ipv4Addr::new(198, 51, 100, 1).octets());
    Head::from_network(ethertype::IPV4, &data)
}

#[test]
fn a_packet_is_as_long_on_ppp_as_on_ethernet() {
    let mut gateway = Gateway::new();
    for name in ["eth0", "eth1", "ppp0"] {
        gateway.add_device(name, DeviceSpec::of(&LinkDriver::of_name(name)));
    }
    let (mut pool, mut source) = (Pool::new(64), Seeded::new(1));
    let rule = NetfilterRule {
        matches: vec![Match { not: false, what: Condition::Length(60, 60) }],
        target: Some(NetfilterTarget::Mark { value: 7, mask: u32::MAX }),
        ..NetfilterRule::default()
    };
    let command = NfCommand::Append("POSTROUTING".into(), rule);
    let op = Op::Netfilter(NfOp { family: Family::Ipv4, table: "mangle".into(), command });
    gateway
        .apply(GatewayContext { now: Time(1), pool: &mut pool, random: &mut source }, &op)
        .expect("is taken");
    let mut seen = Vec::new();
    for (input, output) in
        [(Some("eth1"), "eth0"), (Some("eth1"), "ppp0"), (Some("ppp0"), "eth1"), (None, "ppp0")]
    {
        let id = |gateway: &Gateway, name: &str| gateway.device(name).expect("is there");
        let from = input.map(|name| id(&gateway, name));
        // What comes in has the link header of the device it came by; the machine's own have Ethernet's.
        let header = from.map_or(Head::ETHERNET as u32, |from| gateway.spec(from).link_header);
        let to = id(&gateway, output);
        let route = if from.is_some() { EgressPath::Forwarded(from) } else { EgressPath::Local };
        let head = head(60);
        let pkt = pool.insert(Meta::of(&head, 60 + header), head).expect("has room");
        let _ = gateway.offer(
            GatewayContext { now: Time(2), pool: &mut pool, random: &mut source },
            to,
            route,
            pkt,
        );
        let world = GatewayContext { now: Time(3), pool: &mut pool, random: &mut source };
        let pkt = gateway.poll(world, to).expect("leaves");
        let meta = pool.meta(&pkt);
        seen.push((output, meta.mark.0, meta.frame_len));
        pool.release(pkt);
    }
    assert_eq!(seen, [("eth0", 7, 74), ("ppp0", 7, 60), ("eth1", 7, 74), ("ppp0", 7, 60)]);
}
