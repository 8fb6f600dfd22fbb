//! Addresses of IPv4 and IPv6 sockets as the kernel writes and reads them.

use std::mem::offset_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use libc::{sa_family_t, sockaddr_in, sockaddr_in6, socklen_t};

const V4: usize = size_of::<sockaddr_in>();
const V6: usize = size_of::<sockaddr_in6>();
const PORT: usize = offset_of!(sockaddr_in, sin_port);
const V4_IP: usize = offset_of!(sockaddr_in, sin_addr);
const V6_IP: usize = offset_of!(sockaddr_in6, sin6_addr);
const V6_SCOPE: usize = offset_of!(sockaddr_in6, sin6_scope_id);

// `sockaddr_in` and `sockaddr_in6` are the same on every Linux.
const _: () = assert!(V4 == 16 && V6 == 28 && size_of::<sa_family_t>() == 2);
const _: () = assert!(PORT == 2 && offset_of!(sockaddr_in6, sin6_port) == PORT);
const _: () = assert!(V4_IP == 4 && V6_IP == 8 && V6_SCOPE == 24);

/// A `sockaddr_in` or `sockaddr_in6`, byte by byte.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Address([u8; V6]);

impl Address {
    /// No address: space for one.
    pub(crate) const NONE: Address = Address([0; V6]);

    /// The bytes of this address.
    pub(crate) fn new(of: SocketAddr) -> Address {
        let mut bytes = [0; V6];
        let family = if of.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        bytes[..2].copy_from_slice(&(family as sa_family_t).to_ne_bytes());
        bytes[PORT..PORT + 2].copy_from_slice(&of.port().to_be_bytes());
        match of {
            SocketAddr::V4(of) => bytes[V4_IP..V4_IP + 4].copy_from_slice(&of.ip().octets()),
            SocketAddr::V6(of) => {
                bytes[V6_IP..V6_IP + 16].copy_from_slice(&of.ip().octets());
                bytes[V6_SCOPE..].copy_from_slice(&of.scope_id().to_ne_bytes());
            }
        }
        Address(bytes)
    }

    /// Its length as the kernel wants it.
    pub(crate) fn len(&self) -> socklen_t {
        let is_v4 = family(&self.0) == Some(libc::AF_INET);
        (if is_v4 { V4 } else { V6 }) as socklen_t
    }

    pub(crate) fn bytes(&self) -> &[u8; V6] {
        &self.0
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8; V6] {
        &mut self.0
    }

    /// The address, if it is of IPv4 or IPv6.
    pub(crate) fn get(&self) -> Option<SocketAddr> {
        read(&self.0)
    }
}

/// The address at the front of `bytes`, if it is a whole one of IPv4 or IPv6.
pub(crate) fn read(bytes: &[u8]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes(bytes.get(PORT..PORT + 2)?.try_into().ok()?);
    match family(bytes)? {
        libc::AF_INET => {
            let ip: [u8; 4] = bytes.get(V4_IP..V4_IP + 4)?.try_into().ok()?;
            Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::from(ip)), port))
        }
        libc::AF_INET6 => {
            let ip: [u8; 16] = bytes.get(V6_IP..V6_IP + 16)?.try_into().ok()?;
            let scope = u32::from_ne_bytes(bytes.get(V6_SCOPE..V6_SCOPE + 4)?.try_into().ok()?);
            Some(SocketAddrV6::new(Ipv6Addr::from(ip), port, 0, scope).into())
        }
        _ => None,
    }
}

fn family(bytes: &[u8]) -> Option<i32> {
    Some(sa_family_t::from_ne_bytes(bytes.get(..2)?.try_into().ok()?).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_back_as_they_were_written() {
        for text in ["192.0.2.7:53", "[2001:db8::1]:443", "[fe80::2%3]:9"] {
            let address: SocketAddr = text.parse().expect(text);
            assert_eq!(Address::new(address).get(), Some(address));
        }
        assert_eq!(
            (Address::NONE.get(), Address::new("192.0.2.7:53".parse().expect("one")).len()),
            (None, 16)
        );
    }

    #[test]
    fn an_address_cut_short_is_none() {
        let whole = Address::new("[2001:db8::1]:443".parse().expect("an address"));
        for cut in 0..V6 {
            assert_eq!(read(&whole.0[..cut]), None, "{cut} bytes");
        }
    }
}
