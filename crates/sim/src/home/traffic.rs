//! The traffic of a home: senders, receivers and what they exchange.

use crate::tcp::cc::CongestionControl;
use crate::tcp_flow::EcnCodepoint;
use crate::transaction::Transaction;
use crate::wire::Ends;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tidegate_packet::Nanos;
use tidegate_packet::header::proto;

/// The hosts on this side of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Local {
    /// A host on the LAN, by the last byte of its address: 192.168.1.n, fd00::n.
    Host(u8),
    /// A host on the LAN with this address.
    At(IpAddr),
    /// The gateway itself, at 192.0.2.1, 2001:db8:1::1: what it sends passes OUTPUT, and it notices what its
    /// own queue refuses.
    Gateway,
}

impl Local {
    /// The address: of IPv6 if `v6`, else of IPv4; one that was given stays as it is.
    pub fn address(self, v6: bool) -> IpAddr {
        match (self, v6) {
            (Local::At(address), _) => address,
            (Local::Host(n), false) => Ipv4Addr::new(192, 168, 1, n).into(),
            (Local::Host(n), true) => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(n)).into(),
            (Local::Gateway, false) => Ipv4Addr::new(192, 0, 2, 1).into(),
            (Local::Gateway, true) => Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1).into(),
        }
    }
}

/// The server's address on the Internet.
fn server(v6: bool) -> IpAddr {
    if v6 {
        Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 7).into()
    } else {
        Ipv4Addr::new(198, 51, 100, 7).into()
    }
}

/// Sender and receiver, and how their packets look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parties {
    /// The end on this side of the link.
    pub local: Local,
    /// Its port (an echo's identifier; of a transaction the first port, which counts up).
    pub local_port: u16,
    /// The server's address, if it is not the usual one (198.51.100.7, 2001:db8:2::7).
    pub remote: Option<IpAddr>,
    /// Its port; a transaction has its own.
    pub remote_port: u16,
    /// Over IPv6, else over IPv4.
    pub v6: bool,
    /// DSCP in the upper six bits, in both directions.
    pub dsfield: u8,
}

impl Parties {
    /// Between this end and the usual server, over IPv4, with a DS field of 0.
    pub fn new(local: Local, local_port: u16, remote_port: u16) -> Parties {
        Parties { local, local_port, remote: None, remote_port, v6: false, dsfield: 0 }
    }

    /// Seen from here.
    pub(super) fn ends(self) -> Ends {
        Ends {
            src: self.local.address(self.v6),
            dst: self.remote.unwrap_or(server(self.v6)),
            sport: self.local_port,
            dport: self.remote_port,
        }
    }
}

/// A TCP transfer between a party here and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bulk {
    /// The ends of the transfer.
    pub parties: Parties,
    /// It is an upload, otherwise a download.
    pub up: bool,
    /// The congestion control of its sender.
    pub control: CongestionControl,
    /// Whether and how it uses ECN (RFC 3168).
    pub ecn: EcnCodepoint,
    /// How many bytes are sent; `None`: without end.
    pub bytes: Option<u64>,
    /// When it begins, after the begin of the run.
    pub start: Nanos,
    /// Its receiver opens the connection, as in a download; otherwise its sender does.
    pub called: bool,
}

impl Bulk {
    /// An endless CUBIC transfer over IPv4 from the beginning on: host 2 sends to port 22 as `scp` would, or
    /// fetches from port 80.
    pub fn new(up: bool, local_port: u16) -> Bulk {
        Bulk {
            parties: Parties::new(Local::Host(2), local_port, if up { 22 } else { 80 }),
            up,
            control: CongestionControl::Cubic,
            ecn: EcnCodepoint::Off,
            bytes: None,
            start: Nanos(0),
            called: false,
        }
    }
}

/// ICMP echoes from a party here to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingTraffic {
    /// The ends; the local port is the identifier of the echoes.
    pub parties: Parties,
    /// The time from one request to the next.
    pub interval: Nanos,
    /// Bytes of data behind the ICMP header; ping's usual ones are 56.
    pub data: u32,
    /// When the first request is sent, after the begin of the run.
    pub start: Nanos,
}

impl PingTraffic {
    /// 56 bytes from host 3 at this interval, as `ping` sends them.
    pub fn every(interval: Nanos) -> PingTraffic {
        PingTraffic {
            parties: Parties::new(Local::Host(3), 1, 0),
            interval,
            data: 56,
            start: Nanos::millis(500),
        }
    }
}

/// Datagrams at a constant rate, one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramTraffic {
    /// Sender and receiver.
    pub parties: Parties,
    /// They go from here to the server, otherwise the other way.
    pub up: bool,
    /// The IP protocol: 17 is UDP.
    pub protocol: u8,
    /// Bytes of each datagram behind the UDP header (of other protocols: behind the IP header).
    pub payload: u32,
    /// The time from one datagram to the next.
    pub interval: Nanos,
    /// When the first one is sent, after the begin of the run.
    pub start: Nanos,
}

impl DatagramTraffic {
    /// Bytes of each Ethernet frame, link header included.
    pub fn frame(&self) -> u32 {
        let (ip, udp) =
            (if self.parties.v6 { 40 } else { 20 }, if self.protocol == proto::UDP { 8 } else { 0 });
        14 + ip + udp + self.payload
    }
}

/// Something that a party here wants of the server, repeatedly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionTraffic {
    /// The ends; the local port is the first, and counts up.
    pub parties: Parties,
    /// When it is done first, after the begin of the run.
    pub start: Nanos,
    /// The questions and replies, how often, and the timeouts.
    pub what: Transaction,
}

/// What continues in the home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HomeTraffic {
    /// A bulk transfer.
    Bulk(Bulk),
    /// Echoes.
    Ping(PingTraffic),
    /// Datagrams.
    Datagrams(DatagramTraffic),
    /// Something waited for, repeatedly.
    Transaction(TransactionTraffic),
}
