//! Actions that ask what connection tracking knows of a packet.

use super::control::Control;
use core::net::IpAddr;

/// connmark: the packet gets the firewall mark of its connection (tc-connmark(8)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connmark {
    /// The conntrack zone in which connections are looked up; 0: the usual one.
    pub zone: u16,
    /// How the packet continues after this action.
    pub control: Control,
}

/// ctinfo: the packet's DSCP, its mark or both are restored from its connection's mark (tc-ctinfo(8)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ctinfo {
    /// The conntrack zone in which connections are looked up; 0: the usual one.
    pub zone: u16,
    /// The packet's DSCP becomes the six bits of the connection's mark that the first number selects, if one
    /// of the bits of the second is set there; second 0: always.
    pub dscp: Option<(u32, u32)>,
    /// The packet's mark becomes the connection's mark in these bits.
    pub mark: Option<u32>,
    /// How the packet continues after this action.
    pub control: Control,
}

/// What a ctinfo counted: packets, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CtinfoCounts {
    /// Packets that got a DSCP.
    pub dscp_set: u64,
    /// Packets whose DS field could not be written.
    pub dscp_failed: u64,
    /// Packets that got a mark.
    pub mark_set: u64,
}

/// ct: the packet is sent through connection tracking here (tc-ct(8)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ct {
    /// The packet is separated from its connection, and nothing else is done.
    pub clear: bool,
    /// Its connection is kept from now on, not when the packet has passed the hooks.
    pub commit: bool,
    /// A connection that the other side began is forgotten: this packet begins one.
    pub force: bool,
    /// With `commit`: the connection's mark becomes this in the bits of the second.
    pub mark: Option<(u32, u32)>,
    /// What is done about addresses.
    pub nat: Option<CtNat>,
    /// The zone it is looked up in, if one was named.
    pub zone: Option<u16>,
    /// With `commit`: the connection's labels become the first in the bits of the second.
    pub label: Option<(u128, u128)>,
    /// How the packet continues after this action.
    pub control: Control,
}

/// What ct does about addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CtNat {
    /// What is settled for the connection is carried out.
    Known,
    /// A new connection is translated.
    New {
        /// Its source; otherwise its destination.
        source: bool,
        /// To one of these addresses.
        addresses: (IpAddr, IpAddr),
        /// To one of these ports.
        ports: Option<(u16, u16)>,
    },
}
