//! Actions that ask what connection tracking knows of a packet.

use super::Control;
use core::net::IpAddr;

/// connmark: a packet gets its connection's mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connmark {
    /// The zone in which connections are looked up.
    pub zone: u16,
    /// How things go on.
    pub control: Control,
}

/// ctinfo: a packet gets what is written in its connection's mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ctinfo {
    /// The zone in which connections are looked up.
    pub zone: u16,
    /// Its DSCP is in these six bits of the mark (first), if one of these is set (second; 0: always).
    pub dscp: Option<(u32, u32)>,
    /// Its own mark becomes the connection's in these bits.
    pub mark: Option<u32>,
    /// How things go on.
    pub control: Control,
}

/// What a ctinfo did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CtinfoCounts {
    /// Packets that got a DSCP.
    pub dscp_set: u64,
    /// Packets that could not get one.
    pub dscp_failed: u64,
    /// Packets that got a mark.
    pub mark_set: u64,
}

/// ct: a packet is shown to connection tracking here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ct {
    /// The packet has no connection any more.
    pub clear: bool,
    /// Its connection is kept from now on, not when the packet has passed the hooks.
    pub commit: bool,
    /// A connection that somebody else began is forgotten: this packet begins one.
    pub force: bool,
    /// With `commit`: the connection's mark becomes this in the bits of the second.
    pub mark: Option<(u32, u32)>,
    /// What is done about addresses.
    pub nat: Option<CtNat>,
    /// The zone it is looked up in, if one was named.
    pub zone: Option<u16>,
    /// With `commit`: the connection's labels become the first in the bits of the second.
    pub label: Option<(u128, u128)>,
    /// How things go on.
    pub control: Control,
}

/// What ct does about addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CtNat {
    /// What is settled for the connection is carried out.
    Known,
    /// A new connection is translated.
    New {
        /// Its source; else its destination.
        source: bool,
        /// To one of these addresses.
        addresses: (IpAddr, IpAddr),
        /// To one of these ports.
        ports: Option<(u16, u16)>,
    },
}
