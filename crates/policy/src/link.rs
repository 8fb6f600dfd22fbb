//! Links: the kinds of device that a script can make, and their options.

use alloc::string::String;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a device is, by its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkDriver {
    /// An Ethernet card; not made by hand.
    Ethernet,
    /// `lo`; not made by hand.
    Loopback,
    /// Swallows what it is given.
    Dummy,
    /// Gives back what is redirected to it, after queueing.
    Ifb,
    /// A switch in software.
    Bridge,
    /// One end of a cable whose other end is `peer`.
    Veth {
        /// The other end.
        peer: String,
    },
    /// ppp: packets without a link header.
    PointToPoint,
    /// IP without a link header, and not ppp.
    Raw(RawLink),
    /// A tagged part of another device.
    Vlan {
        /// The device it is part of.
        lower: String,
        /// The tag, 0-4095.
        id: u16,
    },
    /// IP in IP, or GRE.
    Tunnel(Tunnel),
}

/// Devices that carry bare IP, by their driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawLink {
    /// WireGuard: `wg0`.
    Wireguard,
    /// What a program reads and writes: `tun0`.
    Tun,
    /// A modem for mobile networks: `wwan0`.
    Wwan,
}

/// How a tunnel wraps its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelMode {
    /// IPv4 in IPv4 (RFC 2003), protocol 4.
    Ipip,
    /// IPv6 in IPv4 (RFC 4213), protocol 41.
    Sit,
    /// GRE (RFC 2784), protocol 47.
    Gre,
    /// Ethernet in GRE.
    Gretap,
    /// IPv4 or IPv6 in IPv6 (RFC 2473), protocol 4 or 41.
    Ip6tnl,
}

/// The ends of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// How packets are wrapped.
    pub mode: TunnelMode,
    /// The outer source address, of the outer family; unspecified: chosen by the route.
    pub local: IpAddr,
    /// The outer destination address; unspecified: taken from the packet or the route.
    pub remote: IpAddr,
    /// The outer time to live; 0: the packet's own.
    pub ttl: u8,
    /// How many more tunnels the packet may enter, carried in a destination option (RFC 2473 section 4.1.1);
    /// IPv6 only.
    pub encap_limit: Option<u8>,
}

impl Tunnel {
    /// A tunnel of which only the kind is known.
    pub fn unsaid(mode: TunnelMode) -> Tunnel {
        let v6 = mode == TunnelMode::Ip6tnl;
        let nowhere: IpAddr = if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        Tunnel { mode, local: nowhere, remote: nowhere, ttl: 0, encap_limit: v6.then_some(4) }
    }
}

/// An operation on a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkOp {
    /// `ip link add NAME type KIND`, `ip tunnel add NAME …`.
    Add {
        /// The new device.
        name: String,
        /// What it is.
        kind: LinkDriver,
    },
    /// `ip link del NAME`: what attached on it goes with it.
    Delete {
        /// The device's name.
        name: String,
    },
    /// `ip link set NAME name NEW`.
    Rename {
        /// The device's name.
        name: String,
        /// Its new name.
        to: String,
    },
    /// `ip link add NAME numtxqueues N …`: the transmit queues it has from the beginning.
    TxQueues {
        /// The device's name.
        name: String,
        /// How many.
        count: u32,
    },
    /// `ip addr add|del ADDRESS/PREFIX dev NAME`.
    Address {
        /// The device's name.
        name: String,
        /// True to add, false to take away.
        add: bool,
        /// The address, of either family.
        address: IpAddr,
        /// Leading bits that are the network's.
        prefix: u8,
    },
}

impl LinkOp {
    /// The device it is about.
    pub fn device(&self) -> &str {
        match self {
            LinkOp::Add { name, .. }
            | LinkOp::Delete { name }
            | LinkOp::Rename { name, .. }
            | LinkOp::TxQueues { name, .. }
            | LinkOp::Address { name, .. } => name,
        }
    }
}

impl LinkDriver {
    /// What a device of that name most likely is, where nothing but the name is known: `ppp0`, `ifb0`,
    /// `br-lan`, `eth0.5`.
    pub fn of_name(name: &str) -> LinkDriver {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let tunnel = |mode| LinkDriver::Tunnel(Tunnel::unsaid(mode));
        if let Some((lower, id)) = name.rsplit_once('.')
            && let Ok(id) = id.parse()
        {
            return LinkDriver::Vlan { lower: lower.into(), id };
        }
        match stem {
            "lo" => LinkDriver::Loopback,
            "dummy" => LinkDriver::Dummy,
            "ppp" => LinkDriver::PointToPoint,
            // OpenWrt names them after the interface: `pppoe-wan`.
            _ if ["ppp-", "pppoe-", "pppoa-"].iter().any(|begin| name.starts_with(begin)) => {
                LinkDriver::PointToPoint
            }
            "wg" => LinkDriver::Raw(RawLink::Wireguard),
            "tun" => LinkDriver::Raw(RawLink::Tun),
            "wwan" => LinkDriver::Raw(RawLink::Wwan),
            "tunl" | "ipip" => tunnel(TunnelMode::Ipip),
            "sit" | "he-ipv" | "hurricane" => tunnel(TunnelMode::Sit),
            "gre" => tunnel(TunnelMode::Gre),
            "ip6tnl" => tunnel(TunnelMode::Ip6tnl),
            "br" | "br-lan" | "virbr" | "docker" => LinkDriver::Bridge,
            // `ifb0`, SQM's `ifb4eth0`, FireQOS' `eth0-ifb`.
            _ if name.starts_with("ifb") || name.ends_with("-ifb") => LinkDriver::Ifb,
            _ => LinkDriver::Ethernet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn a_name_tells_the_kind() {
        let kind = |name: &str| match LinkDriver::of_name(name) {
            LinkDriver::Tunnel(tunnel) => format!("{:?}", tunnel.mode),
            LinkDriver::Vlan { lower, id } => format!("{lower} {id}"),
            kind => format!("{kind:?}"),
        };
        let names = ["eth0", "ppp0", "ifb4eth0", "ifb1", "tunl1", "br0", "eth0.5", "lo", "wlan0", "sit1"];
        let wanted = [
            "Ethernet",
            "PointToPoint",
            "Ifb",
            "Ifb",
            "Ipip",
            "Bridge",
            "eth0 5",
            "Loopback",
            "Ethernet",
            "Sit",
        ];
        assert_eq!(names.map(kind), wanted);
        assert_eq!(["wg0", "tun1", "wwan0"].map(kind), ["Raw(Wireguard)", "Raw(Tun)", "Raw(Wwan)"]);
    }
}
