//! Links through rtnetlink (RFC 3549): create one, change it, delete it, give it an address and the way to
//! everyone.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use tidegate_netlink_wire::attribute::{put, put_head};
use tidegate_netlink_wire::numbers::{
    IFF_UP, IFLA_ADDRESS, IFLA_IFNAME, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINKINFO, IFLA_MTU, IFLA_TXQLEN,
    LINK_HEAD, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NLMSG_ERROR, NLMSG_HEAD, RTM_DELLINK,
    RTM_NEWADDR, RTM_NEWLINK, RTM_NEWROUTE,
};

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Longest name of a link, in bytes (the kernel's IFNAMSIZ less the closing zero).
pub const MAX_NAME: usize = 15;

/// Kinds of link that can replace any other, best first: not every kernel has every kind.
const SUBSTITUTE_KINDS: [&str; 4] = ["dummy", "ifb", "bridge", "veth"];

const IFLA_GSO_MAX_SEGS: u16 = 40;
const IFLA_NET_NS_FD: u16 = 28;
const VETH_INFO_PEER: u16 = 1;
/// Addresses on it are not resolved.
const IFF_NOARP: u32 = 0x80;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// An IPv6 address is ready at once, without duplicate address detection.
const IFA_F_NODAD: u8 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_PRIORITY: u16 = 6;
/// The main routing table, a route that an administrator set, to a host that is reached directly, for one
/// receiver.
const ROUTE: [u8; 4] = [254, 3, 253, 1];
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// What is changed of a link; `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkUpdate {
    /// Bring it up, or down.
    pub up: Option<bool>,
    /// Bytes of the largest packet.
    pub mtu: Option<u32>,
    /// Packets of the transmit queue.
    pub txqlen: Option<u32>,
    /// Packets of one size that a sender may hand over as one (GSO); 1: each on its own.
    pub segments: Option<u32>,
    /// Another name.
    pub name: Option<String>,
}

/// A netlink socket for the kernel's link table in the current network namespace.
#[derive(Debug)]
pub struct Links {
    socket: OwnedFd,
    sequence: u32,
}

impl Links {
    /// Opens the socket.
    ///
    /// # Errors
    /// What `socket(2)` reports.
    pub fn open() -> io::Result<Self> {
        let socket =
            rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Creates a link of `kind` (`dummy`, `ifb`, …) with a transmit queue of `txqlen` packets, and brings it
    /// up.
    ///
    /// # Errors
    /// `InvalidInput` for a name the kernel cannot hold; otherwise the kernel's answer.
    pub fn create(&mut self, name: &str, kind: &str, txqlen: u32) -> io::Result<()> {
        let mut attributes = Vec::new();
        name_attribute(&mut attributes, name)?;
        put(&mut attributes, IFLA_TXQLEN, &txqlen.to_ne_bytes());
        let mut info = Vec::new();
        put(&mut info, IFLA_INFO_KIND, kind.as_bytes());
        put(&mut attributes, IFLA_LINKINFO, &info);
        self.link_request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, 0, Some(true), &attributes)
    }

    /// Creates a link of `kind`, or in its place of the first kind that this kernel has.
    ///
    /// # Errors
    /// The kernel's answer to the last kind tried.
    pub fn create_like(&mut self, name: &str, kind: &str, txqlen: u32) -> io::Result<()> {
        let first = self.create(name, kind, txqlen);
        SUBSTITUTE_KINDS.iter().fold(first, |made, other| made.or_else(|_| self.create(name, other, txqlen)))
    }

    /// Creates two links of Ethernet that are each other's wire, the second in another network namespace (a
    /// descriptor of it), and brings up the first.
    ///
    /// # Errors
    /// As for [`Links::create`].
    pub fn pair(&mut self, name: &str, other: &str, there: &impl AsFd) -> io::Result<()> {
        let mut peer = vec![0; LINK_HEAD];
        name_attribute(&mut peer, other)?;
        put(&mut peer, IFLA_NET_NS_FD, &there.as_fd().as_raw_fd().to_ne_bytes());
        let (mut data, mut info, mut attributes) = (Vec::new(), Vec::new(), Vec::new());
        put(&mut data, VETH_INFO_PEER, &peer);
        put(&mut info, IFLA_INFO_KIND, b"veth");
        put(&mut info, IFLA_INFO_DATA, &data);
        name_attribute(&mut attributes, name)?;
        put(&mut attributes, IFLA_LINKINFO, &info);
        self.link_request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, 0, Some(true), &attributes)
    }

    /// Deletes the link.
    ///
    /// # Errors
    /// As for [`Links::create`].
    pub fn delete(&mut self, name: &str) -> io::Result<()> {
        let index = self.index(name)?;
        self.link_request(RTM_DELLINK, 0, index, None, &[])
    }

    /// Changes the link.
    ///
    /// # Errors
    /// As for [`Links::create`].
    pub fn change(&mut self, name: &str, change: &LinkUpdate) -> io::Result<()> {
        let index = self.index(name)?;
        let mut attributes = Vec::new();
        if let Some(mtu) = change.mtu {
            put(&mut attributes, IFLA_MTU, &mtu.to_ne_bytes());
        }
        if let Some(packets) = change.txqlen {
            put(&mut attributes, IFLA_TXQLEN, &packets.to_ne_bytes());
        }
        if let Some(segments) = change.segments {
            put(&mut attributes, IFLA_GSO_MAX_SEGS, &segments.to_ne_bytes());
        }
        if let Some(name) = &change.name {
            name_attribute(&mut attributes, name)?;
        }
        self.link_request(RTM_NEWLINK, 0, index, change.up, &attributes)
    }

    /// The number of a link.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn index(&self, name: &str) -> io::Result<u32> {
        Ok(rustix::net::netdevice::name_to_index(&self.socket, name)?)
    }

    /// The name of a link.
    ///
    /// # Errors
    /// There is none of that number.
    pub fn name(&self, index: u32) -> io::Result<String> {
        Ok(rustix::net::netdevice::index_to_name(&self.socket, index)?)
    }

    /// Brings up the link with this index (1 is `lo`).
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn up(&mut self, index: u32) -> io::Result<()> {
        self.link_request(RTM_NEWLINK, 0, index, Some(true), &[])
    }

    /// Gives a link an address without neighbours, whatever its prefix.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn address(&mut self, name: &str, address: IpAddr) -> io::Result<()> {
        let index = self.index(name)?;
        let (family, bytes) = address_bytes(address);
        let flags = if family == AF_INET6 { IFA_F_NODAD } else { 0 };
        let mut body = vec![family, (bytes.len() * 8) as u8, flags, 0];
        body.extend(index.to_ne_bytes());
        put(&mut body, IFA_LOCAL, &bytes);
        put(&mut body, IFA_ADDRESS, &bytes);
        self.request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &body)
    }

    /// Adds a default route over this link for the address's family. Another such route stays, behind this
    /// one, and is used again when this link is gone.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn add_default_route(&mut self, name: &str, like: IpAddr) -> io::Result<()> {
        let index = self.index(name)?;
        let mut body = vec![address_bytes(like).0, 0, 0, 0];
        body.extend(ROUTE);
        body.extend(0_u32.to_ne_bytes());
        put(&mut body, RTA_OIF, &index.to_ne_bytes());
        if like.is_ipv6() {
            // Before those that are made by hand (1024).
            put(&mut body, RTA_PRIORITY, &1_u32.to_ne_bytes());
        }
        // Without NLM_F_EXCL, a route of IPv4 is put before others alike.
        self.request(RTM_NEWROUTE, NLM_F_CREATE, &body)
    }

    /// Adds a host route over this link.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn add_route(&mut self, name: &str, address: IpAddr) -> io::Result<()> {
        let index = self.index(name)?;
        let (family, bytes) = address_bytes(address);
        let mut body = vec![family, (bytes.len() * 8) as u8, 0, 0];
        body.extend(ROUTE);
        body.extend(0_u32.to_ne_bytes());
        put(&mut body, RTA_DST, &bytes);
        put(&mut body, RTA_OIF, &index.to_ne_bytes());
        self.request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &body)
    }

    /// Sets a link's Ethernet address; all neighbours on its wire are taken to have it, so none is resolved.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn only_wire(&mut self, name: &str, address: [u8; 6]) -> io::Result<()> {
        let index = self.index(name)?;
        let mut body = vec![0; 4];
        body.extend(index.to_ne_bytes());
        body.extend(IFF_NOARP.to_ne_bytes());
        body.extend(IFF_NOARP.to_ne_bytes());
        put(&mut body, IFLA_ADDRESS, &address);
        self.request(RTM_NEWLINK, 0, &body)
    }

    fn link_request(
        &mut self,
        kind: u16,
        flags: u16,
        index: u32,
        up: Option<bool>,
        attributes: &[u8],
    ) -> io::Result<()> {
        let mut body = vec![0; 4];
        body.extend(index.to_ne_bytes());
        // The flags, and which of them are meant.
        body.extend(if up == Some(true) { IFF_UP } else { 0 }.to_ne_bytes());
        body.extend(if up.is_some() { IFF_UP } else { 0 }.to_ne_bytes());
        body.extend(attributes);
        self.request(kind, flags, &body)
    }

    fn request(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        self.sequence += 1;
        let length = u32::try_from(NLMSG_HEAD + body.len()).map_err(io::Error::other)?;
        let mut message = Vec::with_capacity(NLMSG_HEAD + body.len());
        put_head(&mut message, length, kind, NLM_F_REQUEST | NLM_F_ACK | flags, self.sequence);
        message.extend(body);
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
            (Some(NLMSG_ERROR), Some(code)) if length >= 20 => {
                Err(io::Error::from_raw_os_error(code.saturating_neg()))
            }
            _ => Err(io::Error::other("the kernel's answer is no acknowledgement")),
        }
    }
}

/// The family of an address, and its bytes.
fn address_bytes(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AF_INET6, address.octets().to_vec()),
    }
}

fn name_attribute(to: &mut Vec<u8>, name: &str) -> io::Result<()> {
    if name.is_empty() || name.len() > MAX_NAME || name.contains(['/', '\0']) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("`{name}` cannot be the name of a link"),
        ));
    }
    let mut zero_ended = name.as_bytes().to_vec();
    zero_ended.push(0);
    put(to, IFLA_IFNAME, &zero_ended);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_too_long_for_the_kernel_are_refused_first() {
        let mut links = Links::open().expect("a netlink socket needs no privilege");
        for name in ["", "sixteen-letters-", "a/b"] {
            let error = links.create(name, "dummy", 1000).expect_err(name);
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}");
        }
    }
}
