//! Links through rtnetlink (RFC 3549): create one, bring one up.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Longest name of a link, in bytes (the kernel's IFNAMSIZ less the closing zero).
pub const MAX_NAME: usize = 15;

const RTM_NEWLINK: u16 = 16;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;
const IFLA_IFNAME: u16 = 3;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFF_UP: u32 = 1;
/// Bytes of `nlmsghdr` and of `ifinfomsg`.
const HEADERS: usize = 16 + 16;

/// A door to the kernel's link table in the current network namespace.
#[derive(Debug)]
pub struct Links {
    socket: OwnedFd,
    sequence: u32,
}

impl Links {
    /// Opens the door.
    ///
    /// # Errors
    /// What `socket(2)` reports.
    pub fn open() -> io::Result<Self> {
        let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Creates a link of `kind` (`dummy`, `ifb`, …) with a transmit queue of `txqlen` packets, and brings it up.
    ///
    /// # Errors
    /// `InvalidInput` for a name the kernel cannot hold; otherwise the kernel's answer.
    pub fn create(&mut self, name: &str, kind: &str, txqlen: u32) -> io::Result<()> {
        if name.is_empty() || name.len() > MAX_NAME || name.contains(['/', '\0']) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{name}` cannot be the name of a link")));
        }
        let mut attributes = Vec::new();
        let mut zero_ended = name.as_bytes().to_vec();
        zero_ended.push(0);
        attribute(&mut attributes, IFLA_IFNAME, &zero_ended);
        attribute(&mut attributes, IFLA_TXQLEN, &txqlen.to_ne_bytes());
        let mut info = Vec::new();
        attribute(&mut info, IFLA_INFO_KIND, kind.as_bytes());
        attribute(&mut attributes, IFLA_LINKINFO, &info);
        self.ask(NLM_F_CREATE | NLM_F_EXCL, 0, &attributes)
    }

    /// Brings up the link with this index (1 is `lo`).
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn up(&mut self, index: u32) -> io::Result<()> {
        self.ask(0, index, &[])
    }

    fn ask(&mut self, flags: u16, index: u32, attributes: &[u8]) -> io::Result<()> {
        self.sequence += 1;
        let length = u32::try_from(HEADERS + attributes.len()).map_err(io::Error::other)?;
        let mut message = Vec::with_capacity(HEADERS + attributes.len());
        message.extend(length.to_ne_bytes());
        message.extend(RTM_NEWLINK.to_ne_bytes());
        message.extend((NLM_F_REQUEST | NLM_F_ACK | flags).to_ne_bytes());
        message.extend(self.sequence.to_ne_bytes());
        message.extend(0_u32.to_ne_bytes());
        message.extend([0; 4]);
        message.extend(index.to_ne_bytes());
        message.extend(IFF_UP.to_ne_bytes());
        message.extend(IFF_UP.to_ne_bytes());
        message.extend(attributes);
        rustix::net::sendto(&self.socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        self.answer()
    }

    fn answer(&self) -> io::Result<()> {
        let mut buffer = vec![0_u8; 8192];
        let (length, _) = rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
        let kind = buffer.get(4..6).map(|b| u16::from_ne_bytes([b[0], b[1]]));
        let code = buffer.get(16..20).map(|b| i32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
        match (kind, code) {
            (Some(NLMSG_ERROR), Some(0)) if length >= 20 => Ok(()),
            (Some(NLMSG_ERROR), Some(code)) if length >= 20 => Err(io::Error::from_raw_os_error(code.saturating_neg())),
            _ => Err(io::Error::other("the kernel's answer is no acknowledgement")),
        }
    }
}

/// Appends one attribute, padded to four bytes.
fn attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    to.extend(length.to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_kernel_cannot_hold_are_refused_before_it_is_asked() {
        let mut links = Links::open().expect("a netlink socket needs no privilege");
        for name in ["", "sixteen-letters-", "a/b"] {
            let error = links.create(name, "dummy", 1000).expect_err(name);
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}");
        }
    }

    #[test]
    fn an_attribute_is_padded_to_four_bytes() {
        let mut bytes = Vec::new();
        attribute(&mut bytes, 3, b"lo\0");
        assert_eq!(bytes.len(), 8);
        assert_eq!(&bytes[4..], b"lo\0\0");
    }
}
