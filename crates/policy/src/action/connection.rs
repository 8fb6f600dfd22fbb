//! Actions that ask what connection tracking knows of a packet.

use super::Control;

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
