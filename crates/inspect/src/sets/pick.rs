//! One packet out of a set: a plain one, as people send them, where the set leaves the choice.

use crate::packet::{Packet, has_ports, is_icmp};
use crate::sets::bdd::{Literal, Set, TooLarge};
use crate::sets::field::{ByteBit, Field, Layout, View, byte_bit};
use crate::sets::set::{STATES, Space};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tidegate_packet::Head;
use tidegate_packet::header::{ethertype, proto, tcp_flags};
use tidegate_policy::netfilter::Connstate;

/// What plain packets have, the most telling first: each is kept to where the set has such packets.
const PLAIN: [(Field, u16, u16, u128); 15] = [
    (Field::Ethertype, 0, 16, ethertype::IPV4 as u128),
    (Field::Ethertype, 0, 16, ethertype::IPV6 as u128),
    (Field::Ethertype, 0, 16, ethertype::ARP as u128),
    (Field::Ihl, 0, 4, 5),
    (Field::Fragment, 0, 16, 0x4000),
    (Field::Protocol, 0, 8, proto::TCP as u128),
    (Field::Protocol, 0, 8, proto::UDP as u128),
    (Field::Protocol, 0, 8, proto::ICMP as u128),
    (Field::Protocol, 0, 8, proto::ICMPV6 as u128),
    (Field::Input, 0, 8, 0),
    (Field::Connmark, 0, 10, 0),
    (Field::Carried, 0, 72, 0),
    (Field::Transport, 0, 16, 40_000),
    (Field::Transport, 16, 16, 443),
    (Field::Ds, 0, 8, 0),
];
/// Sender and receiver by default: a host on a LAN and one of the addresses for documentation (RFC 1918,
/// 5737, 3849).
const V4: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 168, 1, 10), Ipv4Addr::new(198, 51, 100, 7)];
const V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 10), Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 7)];

/// The bits of a packet: those that the set determines, and the defaults elsewhere.
struct Choice {
    requested: BTreeMap<u16, bool>,
}

impl Space {
    /// A packet of a set, as plain as possible; `None`: there is none, or none that can be described, because
    /// the set needs link addresses, which packets in words do not have.
    pub(crate) fn packet(&mut self, set: Set) -> Result<Option<Packet>, TooLarge> {
        let mut set = set;
        for (field, from, width, value) in PLAIN {
            // The bytes of ports have another meaning in ICMP.
            if field == Field::Transport && !self.has_ports(set)? {
                continue;
            }
            set = self.kept_to(set, field.literals(from, width, value, u128::MAX))?;
        }
        for (family, length) in [(self.v4, 500), (self.v6, 460), (self.other, 28)] {
            if !self.store.and(set, family)?.is_empty() {
                set = self.kept_to(set, Field::Length.literals(0, 16, length, u128::MAX))?;
            }
        }
        let Some(literals) = self.store.pick(set, usual) else { return Ok(None) };
        let choice = Choice { requested: literals.into_iter().collect() };
        let packet = self.described(&choice);
        Ok(choice.is_of_link(&packet).then_some(packet))
    }

    /// Is any packet of a set one of TCP or UDP?
    fn has_ports(&mut self, set: Set) -> Result<bool, TooLarge> {
        for protocol in [proto::TCP, proto::UDP] {
            let of_protocol = self.is(Field::Protocol, protocol.into())?;
            if !self.store.and(set, of_protocol)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Those of a set that have these bits, if there are any; else all.
    fn kept_to(&mut self, set: Set, literals: Vec<Literal>) -> Result<Set, TooLarge> {
        let plain = self.store.cube(&literals)?;
        let plainer = self.store.and(set, plain)?;
        Ok(if plainer.is_empty() { set } else { plainer })
    }

    fn described(&self, choice: &Choice) -> Packet {
        let ethertype = choice.number(Field::Ethertype, 0, 16) as u16;
        let ip = matches!(ethertype, ethertype::IPV4 | ethertype::IPV6);
        let protocol = if ip { choice.number(Field::Protocol, 0, 8) as u8 } else { 0 };
        let ihl = if ethertype == ethertype::IPV4 { choice.number(Field::Ihl, 0, 4) as u8 } else { 5 };
        let first = choice.number(Field::Transport, 0, 16) as u16;
        let second = choice.number(Field::Transport, 16, 16) as u16;
        let length = choice.number(Field::Length, 0, 16) as u16;
        let state = choice.is_relevant(Field::State).then(|| choice.number(Field::State, 0, 3) as usize);
        let mut packet = Packet {
            ethertype,
            protocol,
            source: choice.address(Field::Source, ethertype),
            destination: choice.address(Field::Destination, ethertype),
            ports: if has_ports(protocol) { (first, second) } else { (0, 0) },
            icmp: (0, 0),
            tcp_flags: if protocol == proto::TCP { choice.number(Field::Transport, 104, 8) as u8 } else { 0 },
            dsfield: if ip { choice.number(Field::Ds, 0, 8) as u8 } else { 0 },
            length: if ethertype == ethertype::IPV6 { length.saturating_add(40) } else { length },
            ihl,
            // Whatever begins a connection needs no word for it.
            state: state.and_then(|at| STATES.get(at).copied()).filter(|state| *state != Connstate::New),
            connmark: self
                .words
                .connmarks
                .get(choice.number(Field::Connmark, 0, 10) as usize)
                .copied()
                .unwrap_or(0),
            carried: self.carried_so_far(choice),
            from: self
                .words
                .inputs
                .get(choice.number(Field::Input, 0, 8) as usize)
                .filter(|name| !name.is_empty())
                .cloned(),
            ..Packet::default()
        };
        if is_icmp(protocol) {
            let requested = choice.requested.contains_key(&Field::Transport.bit(0));
            packet.icmp = if requested { ((first >> 8) as u8, first as u8) } else { packet.echo_request() };
        }
        packet.raw_bytes = choice.unnamed(&packet);
        packet
    }

    /// As much as the connection must have carried, of whatever is counted.
    fn carried_so_far(&self, choice: &Choice) -> u64 {
        let begins = self.words.counted.iter().zip(0u16..).map(|((_, _, begins), group)| {
            let at = choice.number(Field::Carried, group * 8, 8) as usize;
            begins.get(at).copied().unwrap_or(0)
        });
        begins.max().unwrap_or(0)
    }
}

impl Choice {
    fn bit(&self, bit: u16) -> bool {
        self.requested.get(&bit).copied().unwrap_or_else(|| usual(bit))
    }

    fn number(&self, field: Field, from: u16, width: u16) -> u128 {
        (from..from + width).fold(0, |number, at| number << 1 | u128::from(self.bit(field.bit(at))))
    }

    /// Whether a condition depends on a field.
    fn is_relevant(&self, field: Field) -> bool {
        self.requested.range(field.bit(0)..field.bit(0) + field.width()).next().is_some()
    }

    /// Whether a packet has the link addresses that are needed.
    fn is_of_link(&self, packet: &Packet) -> bool {
        let head = packet.head();
        (0..Field::Link.width()).all(|at| {
            let byte = head.byte_at(i32::from(at / 8) - Head::ETHERNET as i32).unwrap_or(0);
            self.requested
                .get(&Field::Link.bit(at))
                .is_none_or(|wanted| (byte >> (7 - at % 8) & 1 == 1) == *wanted)
        })
    }

    fn address(&self, field: Field, family: u16) -> IpAddr {
        let at = usize::from(field == Field::Destination);
        let (usual, width) = match family {
            ethertype::IPV6 => (V6[at].to_bits(), 128),
            _ => (u128::from(V4[at].to_bits()), 32),
        };
        let address = (128 - width..128).fold(0, |address, bit| {
            let plain = usual >> (127 - bit) & 1 == 1;
            address << 1 | u128::from(self.requested.get(&field.bit(bit)).copied().unwrap_or(plain))
        });
        if width == 128 {
            Ipv6Addr::from_bits(address).into()
        } else {
            Ipv4Addr::from_bits(address as u32).into()
        }
    }

    /// The bytes that are determined and have no name, where the packet described so far has others.
    fn unnamed(&self, packet: &Packet) -> Vec<(u8, u8)> {
        let layout = Layout::of(packet);
        let head = packet.head();
        let bytes = head.network().iter().zip(0u8..Head::NETWORK as u8);
        let differing = bytes.filter_map(|(has, at)| {
            let wanted = (0..8).fold(0, |byte: u8, bit| {
                let plain = has >> (7 - bit) & 1 == 1;
                let requested = match byte_bit(layout, View::PLAIN, i32::from(at), bit) {
                    ByteBit::Bit(number) => self.requested.get(&number).copied(),
                    ByteBit::Ds(_) | ByteBit::Fixed(_) => None,
                };
                byte << 1 | u8::from(requested.unwrap_or(plain))
            });
            (wanted != *has).then_some((at, wanted))
        });
        differing.collect()
    }
}

/// The default of a bit.
fn usual(bit: u16) -> bool {
    let (field, at) = Field::of(bit);
    let of = |value: u128, width: u16| value >> (width - 1 - at) & 1 == 1;
    match field {
        Field::Ethertype => of(u128::from(ethertype::IPV4), 16),
        Field::Protocol => of(u128::from(proto::TCP), 8),
        Field::Ihl => of(5, 4),
        Field::Length => of(500, 16),
        Field::Fragment => of(0x4000, 16),
        Field::Ttl => of(64, 8),
        Field::Source if at >= 96 => V4[0].to_bits() >> (127 - at) & 1 == 1,
        Field::Destination if at >= 96 => V4[1].to_bits() >> (127 - at) & 1 == 1,
        Field::Transport => match at {
            0..32 => of(40_000 << 16 | 443, 32),
            96..104 => 0x50 >> (103 - at) & 1 == 1,
            104..112 => tcp_flags::ACK >> (111 - at) & 1 == 1,
            _ => false,
        },
        _ => false,
    }
}
