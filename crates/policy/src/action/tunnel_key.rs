//! tunnel_key: what a tunnel device of the packet's way shall write into its outer header.

use super::control::Control;
use alloc::vec::Vec;
use core::net::IpAddr;

/// tunnel_key: gives a packet the metadata of a tunnel, or takes them (tc-tunnel_key(8)).
///
/// Only devices that were made with `external` read them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelKey {
    /// What is done; `None`: only the number of an action was given, or no verb.
    pub how: Option<TunnelHow>,
    /// How the packet continues after this action.
    pub control: Control,
}

/// What is done with a packet's tunnel metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TunnelHow {
    /// It loses them (`unset`).
    Unset,
    /// It gets these (`set`).
    Set(TunnelFields),
}

/// The metadata of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelFields {
    /// The outer source address.
    pub source: IpAddr,
    /// The outer destination address.
    pub destination: IpAddr,
    /// The tunnel's number (`id`), such as a VNI.
    pub id: Option<u32>,
    /// The outer UDP destination port; 0 counts as none.
    pub port: Option<u16>,
    /// The outer header's DS field.
    pub tos: u8,
    /// The outer header's time to live; 0: the device's.
    pub ttl: u8,
    /// The outer UDP header has no checksum (`nocsum`).
    pub no_checksum: bool,
    /// Options of the kind of tunnel.
    pub options: TunnelOptions,
}

/// Options of a kind of tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TunnelOptions {
    /// None are given.
    #[default]
    None,
    /// Options of GENEVE, in order.
    Geneve(Vec<GeneveOption>),
    /// The group policy of VXLAN.
    Vxlan(u32),
    /// The header of ERSPAN.
    Erspan {
        /// Its version: 1 or 2; another is refused by the kernel.
        version: u8,
        /// The session's number, for version 1.
        index: u32,
        /// The direction and the hardware's number, for version 2.
        direction: Option<(u8, u8)>,
    },
}

/// One option of GENEVE (RFC 8926, section 3.5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GeneveOption {
    /// Its class.
    pub class: u16,
    /// Its type.
    pub kind: u8,
    /// Its data: a multiple of 4 bytes. Empty: it was not given.
    pub data: Vec<u8>,
}
