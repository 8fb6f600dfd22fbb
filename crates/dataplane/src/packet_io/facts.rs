//! What a backend must know of a device.

use std::io;
use tidegate_sys::numbers::{IFLA_MTU, LINK_HEAD, RTM_GETLINK};

use tidegate_sys::netlink::Links;
use tidegate_sys::netlink_socket::NetlinkSocket;

use tidegate_sys::attribute;

/// Kinds of hardware whose frames begin with Ethernet's header: Ethernet and the loopback.
const ETHERNET: [u16; 2] = [1, 772];
/// Those that carry IP and nothing before it: PPP, raw IP, tunnels, TUN.
const PACKETS: [u16; 8] = [512, 519, 768, 769, 776, 778, 823, 65534];

/// What the engine needs to know of a network device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) number: u32,
    /// Bytes of link header.
    pub(super) link_header: u32,
    /// Bytes of its largest packet.
    pub(super) mtu: u32,
}

impl Facts {
    /// Of a device in the network namespace of the calling thread.
    pub(super) fn of(dev: &str) -> io::Result<Facts> {
        let number = Links::open()?.index(dev)?;
        let mut question = [0; LINK_HEAD];
        question[4..8].copy_from_slice(&number.to_ne_bytes());
        let body = NetlinkSocket::open()?.get(RTM_GETLINK, &question)?.body;
        let hardware = body.get(2..4).map_or(0, |bytes| u16::from_ne_bytes([bytes[0], bytes[1]]));
        let mtu = attribute::read(body.get(LINK_HEAD..).unwrap_or_default()).u32(IFLA_MTU).unwrap_or(0);
        Ok(Facts { number, link_header: link_header(hardware)?, mtu })
    }
}

/// Bytes of link header by kind of hardware.
fn link_header(hardware: u16) -> io::Result<u32> {
    match hardware {
        kind if ETHERNET.contains(&kind) => Ok(14),
        kind if PACKETS.contains(&kind) => Ok(0),
        kind => {
            let why = format!("its frames (hardware type {kind}) are neither Ethernet's nor plain IP");
            Err(io::Error::new(io::ErrorKind::Unsupported, why))
        }
    }
}
