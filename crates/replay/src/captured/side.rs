//! Which packets of a capture go out, and which come in.

use super::frames::{Ip, LeftOut};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use tidegate_pcap::CaptureDirection;

/// Addresses that are counted while it is not known which are ours.
const MOST_ADDRESSES: usize = 65_536;
/// Bytes of an address of IPv4 written in sixteen, before it.
const V4_BITS: u8 = 96;

/// Addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    first: [u8; 16],
    /// Of sixteen bytes.
    bits: u8,
}

impl Prefix {
    /// Is it the beginning of an address (of IPv4 as an IPv6-mapped one)?
    pub fn contains(&self, address: &[u8; 16]) -> bool {
        let (ours, theirs) = (u128::from_be_bytes(self.first), u128::from_be_bytes(*address));
        (ours ^ theirs).checked_shr(128 - u32::from(self.bits)).unwrap_or(0) == 0
    }

    const fn v4(bytes: [u8; 4], bits: u8) -> Prefix {
        let [a, b, c, d] = bytes;
        Prefix { first: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d], bits: V4_BITS + bits }
    }
}

/// A text that is no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPrefix;

impl std::fmt::Display for BadPrefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "not a network; write 192.168.1.0/24, 2001:db8::/32 or an address")
    }
}

impl std::error::Error for BadPrefix {}

impl FromStr for Prefix {
    type Err = BadPrefix;

    fn from_str(text: &str) -> Result<Prefix, BadPrefix> {
        let wrong = || BadPrefix;
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let whole = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(whole), |bits| bits.parse::<u8>().map_err(|_| wrong()))?;
        if bits > whole {
            return Err(wrong());
        }
        Ok(match address {
            IpAddr::V4(address) => Prefix::v4(address.octets(), bits),
            IpAddr::V6(address) => Prefix { first: address.octets(), bits },
        })
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (address, whole) =
            (as_address(&self.first), if self.bits >= V4_BITS && is_v4(&self.first) { 32 } else { 128 });
        match if whole == 32 { self.bits - V4_BITS } else { self.bits } {
            bits if bits == whole => write!(f, "{address}"),
            bits => write!(f, "{address}/{bits}"),
        }
    }
}

fn is_v4(address: &[u8; 16]) -> bool {
    address[..10] == [0; 10] && address[10..12] == [0xff; 2]
}

/// An address in sixteen bytes, for people.
pub fn as_address(address: &[u8; 16]) -> IpAddr {
    match address {
        [.., a, b, c, d] if is_v4(address) => Ipv4Addr::from([*a, *b, *c, *d]).into(),
        _ => Ipv6Addr::from(*address).into(),
    }
}

/// Addresses without a place on the Internet (RFC 1918, RFC 6598, RFC 3927).
const PRIVATE: [Prefix; 5] = [
    Prefix::v4([10, 0, 0, 0], 8),
    Prefix::v4([172, 16, 0, 0], 12),
    Prefix::v4([192, 168, 0, 0], 16),
    Prefix::v4([100, 64, 0, 0], 10),
    Prefix::v4([169, 254, 0, 0], 16),
];

/// How outgoing packets are recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectionRule {
    /// The capture has a direction for each packet.
    Recorded,
    /// What these addresses send goes out, what is sent to them comes in.
    Ours(Vec<Prefix>),
}

impl DirectionRule {
    /// Which way a packet goes.
    ///
    /// # Errors
    /// Why it is left out: it is of others, or from here to here.
    pub fn way(&self, ip: &Ip<'_>) -> Result<CaptureDirection, LeftOut> {
        match self {
            DirectionRule::Recorded => ip.direction.ok_or(LeftOut::OfOthers),
            DirectionRule::Ours(ours) => {
                let ours = |address: [u8; 16]| ours.iter().any(|prefix| prefix.contains(&address));
                match (ours(ip.source()), ours(ip.destination())) {
                    (true, true) => Err(LeftOut::Ours),
                    (true, false) => Ok(CaptureDirection::Out),
                    (false, true) => Ok(CaptureDirection::In),
                    (false, false) => Err(LeftOut::OfOthers),
                }
            }
        }
    }

    /// In words.
    pub fn words(&self) -> String {
        match self {
            DirectionRule::Recorded => "the capture says of each packet which way it went".into(),
            DirectionRule::Ours(ours) => {
                let ours: Vec<String> = ours.iter().map(Prefix::to_string).collect();
                format!("what {} sends goes out", ours.join(", "))
            }
        }
    }
}

/// What a first pass over a capture's packets gathers for that.
#[derive(Default)]
pub(crate) struct Looking {
    packets: u64,
    recorded: u64,
    /// IPv4: packets between an address of each private network and one that is not private.
    mixed: [u64; PRIVATE.len()],
    /// How many packets each address sent or got, and each network of 64 bits.
    met: BTreeMap<([u8; 16], u8), u64>,
}

impl Looking {
    pub(crate) fn see(&mut self, ip: &Ip<'_>) {
        self.packets += 1;
        self.recorded += u64::from(ip.direction.is_some());
        let private = |address: &[u8; 16]| PRIVATE.iter().position(|prefix| prefix.contains(address));
        let (source, destination) = (ip.source(), ip.destination());
        if let (Some(network), None) | (None, Some(network)) = (private(&source), private(&destination)) {
            self.mixed[network] += 1;
        }
        for address in [source, destination] {
            let mut key = address;
            if ip.v6 {
                key[8..].fill(0);
            }
            let is_of_many =
                if ip.v6 { address[0] == 0xff || address[0] == 0xfe } else { address[12] >= 224 };
            let full = self.met.len() >= MOST_ADDRESSES;
            match self.met.get_mut(&(key, if ip.v6 { 64 } else { 128 })) {
                Some(count) => *count += 1,
                None if full || is_of_many => {}
                None => drop(self.met.insert((key, if ip.v6 { 64 } else { 128 }), 1)),
            }
        }
    }

    /// The rule for what was seen: the capture's own directions; else private addresses are local, otherwise
    /// the most frequent address; for IPv6 the most frequent network.
    pub(crate) fn rule(&self) -> DirectionRule {
        if self.packets > 0 && self.recorded == self.packets {
            return DirectionRule::Recorded;
        }
        let most = |bits: u8| {
            let of_kind = self.met.iter().filter(|((_, kind), _)| *kind == bits);
            of_kind
                .max_by_key(|((address, _), count)| (**count, *address))
                .map(|((first, _), _)| Prefix { first: *first, bits })
        };
        let private = PRIVATE.iter().zip(&self.mixed).filter(|(_, packets)| **packets > 0);
        let mut ours: Vec<Prefix> = private.map(|(network, _)| *network).collect();
        if ours.is_empty() {
            ours.extend(most(128));
        }
        ours.extend(most(64));
        DirectionRule::Ours(ours)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_and_written() {
        for text in ["192.168.1.0/24", "10.0.0.1", "2001:db8::/32", "::1", "0.0.0.0/0"] {
            assert_eq!(text.parse::<Prefix>().expect(text).to_string(), text);
        }
        for text in ["", "192.168.1.0/33", "home", "::/129", "10.0.0.0/x"] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
        let home: Prefix = "192.168.1.0/24".parse().expect("a network");
        let address = |text: &str| text.parse::<Prefix>().expect(text).first;
        assert!(home.contains(&address("192.168.1.77")));
        assert!(!home.contains(&address("192.168.2.77")));
        assert!(!home.contains(&address("2001:db8::1")));
        let all: Prefix = "::/0".parse().expect("a network");
        assert!(all.contains(&address("2001:db8::1")));
    }
}
